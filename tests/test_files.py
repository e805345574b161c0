"""Files in, the same files out: every byte that was not to be changed."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.files import FileError, read_csv_text, read_file, refuse_to_overwrite, whole_file

CELLS = st.text(st.sampled_from(list('ab01.,;|\t "\näß')), max_size=6)  # no two of them look like UTF-8 in cp1252
FORMS = [(",", "\n", "utf-8"), (";", "\r\n", "utf-8-sig"), ("\t", "\n", "utf-16"), ("|", "\r\n", "cp1252")]


def as_csv(rows: list[list[str]], delimiter: str, newline: str, encoding: str, *, quote: bool) -> bytes:
    text = io.StringIO()
    how = csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL
    csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=how).writerows(rows)
    return text.getvalue().encode(encoding)


def cells_of(raw: bytes, delimiter: str, encoding: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(raw.decode(encoding), newline=""), delimiter=delimiter))


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    columns, rows = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    header = [f"ä{place}" for place in range(columns)]  # so that cp1252 is not taken for UTF-8
    return [header, *([draw(CELLS) for _ in header] for _ in range(rows))]


@pytest.mark.parametrize("form", FORMS)
@given(table=tables(), quote=st.booleans(), data=st.data())
def test_a_csv_file_keeps_every_byte_but_those_of_changed_cells(form, table, quote, data) -> None:
    delimiter, _, encoding = form
    raw = as_csv(table, *form, quote=quote)
    text = read_csv_text(raw, "a.csv", delimiter)
    assert text.with_cells({}) == raw
    assert [list(row.values()) for row in text.table().to_pylist()] == table[1:]
    places = data.draw(st.lists(st.tuples(st.integers(0, len(table) - 2), st.integers(0, len(table[0]) - 1))))
    changes: dict[int, dict[int, str]] = {}
    for row, column in places:
        changes.setdefault(row, {})[column] = data.draw(CELLS)
        table[row + 1][column] = changes[row][column]
    changed = text.with_cells(changes)
    assert cells_of(changed, delimiter, encoding) == table
    if not changes:
        assert changed == raw


def test_numbers_spaces_and_dates_stay_as_they_were_written() -> None:
    raw = b'id,price,day\r\n007,1.50 ,2020-01-02\r\n\r\n008, 2.5,"3 Jan, 2020"\r\n'
    text = read_csv_text(raw, "a.csv")
    assert text.with_cells({1: {1: "2.60"}}) == raw.replace(b" 2.5", b"2.60")
    assert text.table().to_pydict()["id"] == ["007", "008"]


def test_a_quote_within_a_field_is_a_letter() -> None:
    raw = b'size,note\n5" pipe,a\n6" x 7" board,"two\nlines"\n3,"say ""no"""\n'
    text = read_csv_text(raw, "a.csv")
    assert text.table().to_pydict() == {
        "size": ['5" pipe', '6" x 7" board', "3"],
        "note": ["a", "two\nlines", 'say "no"'],
    }
    assert text.with_cells({1: {0: "8"}, 2: {1: "yes"}}) == raw.replace(b'6" x 7" board', b"8").replace(
        b'"say ""no"""', b'"yes"'
    )


def test_the_delimiter_is_told_from_the_records() -> None:
    assert read_csv_text(b"a;b\n1,5;2\n2,5;3\n", "x").delimiter == ";"
    assert read_csv_text(b'a,b\n"x;y;z",1\n"x;y;z",2\n', "x").delimiter == ","
    assert read_csv_text(b"a\n1\n2\n", "x").delimiter == ","


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".tsv"])
def test_compressed_and_plain_text_files_come_back_the_same(suffix: str, tmp_path: Path) -> None:
    path, copy = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    between = "\t" if suffix == ".tsv" else ","
    content = f"a{between}b\n1{between}x\n".encode()
    with pa.output_stream(path, compression={".gz": "gzip", ".zst": "zstd"}.get(path.suffix)) as stream:
        stream.write(content)
    file = read_file(path)
    assert file.table.to_pydict() == {"a": ["1"], "b": ["x"]}
    file.write_changed(copy, file.table, {0: {0: "2"}})
    assert read_file(copy).table.to_pydict() == {"a": ["2"], "b": ["x"]}
    assert sorted(tmp_path.iterdir()) == [path, copy]


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow", ".jsonl"])
def test_other_files_come_back_with_their_types(suffix: str, tmp_path: Path) -> None:
    table = pa.table({"a": [1, None, 3], "b": ["x", "ä", None], "c": [0.5, 1.5, 2.5]})
    file = read_file(write(table, tmp_path / f"a{suffix}"))
    assert file.table.schema.equals(table.schema)
    file.write_changed(tmp_path / f"b{suffix}", file.table, {})
    assert read_file(tmp_path / f"b{suffix}").table.equals(table)


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".jsonl":
        table.to_pandas(integer_object_nulls=True).to_json(path, orient="records", lines=True)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pa.feather.write_feather(table, path)
    return path


def test_a_folder_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    for part in range(3):
        pq.write_table(pa.table({"a": [part]}), tmp_path / f"{part}.parquet")
    assert read_file(tmp_path).table.to_pydict() == {"a": [0, 1, 2]}


def test_standard_input_is_csv() -> None:
    code = (
        "from pathlib import Path; from cellmend.files import read_file; print(read_file(Path('-')).table.to_pydict())"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"a,b\n1,2\n", capture_output=True, check=True)  # noqa: S603
    assert done.stdout.strip() == b"{'a': ['1'], 'b': ['2']}"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"", "must hold a table; it is empty"),
        ("a.csv", b"a,b\n1\n", "as many fields in every row as in its header"),
        ("a.csv", b'a,b\n1,"x\n2,y\n', "quotes in pairs|as many fields"),
        ("a.doc", b"x", "must end in one of .csv"),
        ("a.parquet", b"x", "must be a .parquet file"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(name, content, sentence, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=sentence):
        read_file(tmp_path / name)


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_file(tmp_path / "none.csv")
    with pytest.raises(FileError, match="it holds none"):
        read_file(tmp_path)


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")

    def stopped() -> None:
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_whole_is_not_left_behind(tmp_path: Path) -> None:
    def full_disk() -> None:
        with whole_file(tmp_path / "findings.csv") as temporary:
            temporary.write_text("half")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        full_disk()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    with pytest.raises(FileError, match="is there already"):
        refuse_to_overwrite([tmp_path / "b.csv", path], force=False)
    refuse_to_overwrite([path], force=True)


def test_excel_files_come_back_with_their_cells(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_excel(tmp_path / "a.xlsx", index=False)
    file = read_file(tmp_path / "a.xlsx")
    file.write_changed(tmp_path / "b.xlsx", file.table, {})
    assert read_file(tmp_path / "b.xlsx").table.to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
