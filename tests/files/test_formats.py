"""Files in, the same files out: every byte that was not to be changed."""

from __future__ import annotations

import codecs
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cellmend.errors import FileError
from cellmend.files.formats import read_file, write_table, written_in_pieces
from cellmend.files.places import refuse_to_overwrite, whole_file
from cellmend.streaming import open_source


def test_columns_without_a_name_are_named_by_their_place(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'id,,"x", \n1,2,3,4\n')
    file = read_file(tmp_path / "a.csv")
    assert file.table.to_pydict() == {"id": ["1"], "column 2": ["2"], "x": ["3"], "column 4": ["4"]}
    file.write_changed(tmp_path / "b.csv", file.table, {0: {1: "5"}})
    assert (tmp_path / "b.csv").read_bytes() == b'id,,"x", \n1,5,3,4\n'


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


def test_folders_named_by_a_value_are_a_column(tmp_path: Path) -> None:
    base = tmp_path / "year=1999"  # not in the folder that is read
    for region, value in [("eu", 1), ("us", 2), (".old", 3), ("_temporary", 4)]:
        folder = base / (f"region={region}" if region.isalpha() else region)
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": [value]}), folder / "part.parquet")
    (base / "_SUCCESS").write_text("")
    (base / ".part.parquet").write_text("half")
    assert read_file(base).table.to_pydict() == {"a": [1, 2], "region": ["eu", "us"]}
    assert read_file(base / "region=eu" / "part.parquet").table.to_pydict() == {"a": [1]}


# ---------------------------------------------------------------- files written in pieces

NUMBERED = pa.table({"n": range(101), "text": [f"t{row}" for row in range(101)]})


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".arrow", ".jsonl", ".xlsx"])
def test_a_file_written_in_pieces_is_as_if_written_whole(suffix: str, tmp_path: Path) -> None:
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl")
    path, whole = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    with written_in_pieces(path, NUMBERED.schema) as write:
        for first in (0, 40, 80):
            write(NUMBERED.slice(first, 40))
            assert not path.exists()
    write_table(whole, NUMBERED)
    assert read_file(path).table.equals(read_file(whole).table)
    assert read_file(path).table["n"].cast(pa.int64()).equals(NUMBERED["n"])
    assert sorted(tmp_path.iterdir()) == [path, whole]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".jsonl"])
def test_a_file_that_is_not_written_to_its_end_leaves_the_old_one(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text("old")

    def stopped() -> None:
        with written_in_pieces(path, NUMBERED.schema) as write:
            write(NUMBERED)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_standard_output_takes_csv_in_pieces_and_stays_open(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with written_in_pieces(Path("-"), NUMBERED.schema) as write:
        write(NUMBERED.slice(0, 1))
        write(NUMBERED.slice(1, 1))
    sys.stdout.write("and more\n")
    assert capsysbinary.readouterr().out == b'"n","text"\n0,"t0"\n1,"t1"\nand more\n'


def test_a_name_that_says_no_kind_of_file_is_refused_before_the_work(tmp_path: Path) -> None:
    with (
        pytest.raises(FileError, match=r"a.pdf must end in one of .csv"),
        written_in_pieces(tmp_path / "a.pdf", NUMBERED.schema),
    ):
        pytest.fail("the work began")


# ---------------------------------------------------------------- JSON Lines and workbooks

JSON_LINES = (
    '{"id":"007", "day": "2020-01-02", "n": 1.50}\r\n'
    "\r\n"
    '{"n": "many", "id": "008", "tags": ["ä", 2]}\r\n'
    '{"id":"9","n":3,"day":null}'
).encode()


def test_json_lines_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(JSON_LINES)
    assert read_file(tmp_path / "a.jsonl").table.to_pydict() == {
        "id": ["007", "008", "9"],
        "day": ["2020-01-02", None, None],
        "n": ["1.5", "many", "3"],
        "tags": [None, '["ä", 2]', None],
    }


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_json_lines_keep_every_byte_but_those_of_changed_rows(tmp_path: Path, mark: bytes) -> None:
    (tmp_path / "a.ndjson").write_bytes(mark + JSON_LINES)
    file = read_file(tmp_path / "a.ndjson")
    changed = with_column(with_column(file.table, "n", ["1.5", "many", "4"]), "tags", [None, '["ö"]', None])
    file.write_changed(tmp_path / "b.ndjson", changed, {2: {2: "4"}, 1: {3: '["ö"]'}})
    expected = JSON_LINES.replace(b'"n":3', b'"n":4').replace('["ä", 2]'.encode(), '["ö"]'.encode())
    assert (tmp_path / "b.ndjson").read_bytes() == mark + expected
    changed = with_column(file.table, "day", ["2020-01-03", None, None])
    file.write_changed(tmp_path / "c.ndjson", changed, {0: {1: "2020-01-03"}})
    first = b'{"id": "007", "day": "2020-01-03", "n": 1.5}\r\n'
    assert (tmp_path / "c.ndjson").read_bytes() == mark + first + JSON_LINES.split(b"\n", 1)[1]


def test_numbers_that_are_not_numbers_stay_in_json_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(content := b'{"x":NaN,"big":100000000000000000000}\n{"x":1}\n')
    file = read_file(tmp_path / "a.jsonl")
    assert file.table["big"].to_pylist() == ["100000000000000000000", None]
    file.write_changed(tmp_path / "b.jsonl", file.table, {})
    assert (tmp_path / "b.jsonl").read_bytes() == content


def with_column(table: pa.Table, name: str, values: list[object]) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))


@pytest.mark.process
def test_standard_input_is_csv() -> None:
    code = "from cellmend.files.formats import read_file; print(read_file(chr(45)).table.to_pydict())"
    done = subprocess.run([sys.executable, "-c", code], input=b"a,b\n1,2\n", capture_output=True, check=True)  # noqa: S603
    assert done.stdout.strip() == b"{'a': ['1'], 'b': ['2']}"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"", "must hold a table; it is empty"),
        ("a.csv", b"a,b\n1\n", "as many fields in every row as in its header; line 2 has 1 and the header 2"),
        ("a.csv", b'a,b\n"1\n2",3\n\n1,2,3\n', "line 5 has 3 and the header 2"),
        ("a.csv", b"a,b\r1,2\r3\r", "line 3 has 1 and the header 2"),
        ("a.csv", b"a,b\n1\n2\n3\n", "line 2 has 1 and the header 2"),
        ("a.csv", b'a,b\n1,"x\n2,y\n', "quotes in pairs; line 2 opens one"),
        ("a.csv", b"a,b,a\n1,2,3\n", "every column a name of its own; 2 are named 'a'"),
        ("a.csv.gz", b"x", "must be a .csv file"),
        ("a.doc", b"x", "must end in one of .csv"),
        ("a.parquet", b"x", "must be a .parquet file"),
        ("a.feather", b"x", "must be a .feather file"),
        ("a.arrow", b"", "must be a .arrow file"),
        ("a.jsonl", b'{"a": 1}\n\n[1]\n', "a JSON object in every line; line 3 holds none"),
        ("a.jsonl", b'{"a": 1}\n{"a": \n', "line 2 holds none"),
        ("a.jsonl", b'{"a": "\\ud800"}\n', "must be a .jsonl file"),
        ("a.jsonl", b"\n{}\n", "must hold a table; it is empty"),
        ("a.xlsx", b"x", r"must be an \.xlsx workbook"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(name, content, sentence, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=sentence) as refused:
        read_file(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_a_broken_parquet_file_in_a_folder_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"x")
    with pytest.raises(FileError, match=r"must be a .parquet file"):
        read_file(tmp_path)


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is none"):
        read_file(tmp_path / "none.csv")
    with pytest.raises(FileError, match="it holds none"):
        read_file(tmp_path)


def test_a_pipe_is_refused_with_a_hint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    for read in (read_file, lambda place: open_source(str(place), tmp_path, larger_than=10)):
        with pytest.raises(FileError, match=r"it is a pipe or a device. Hint: give - in its place"):
            read(tmp_path / "t.csv")


def test_what_arrow_says_of_a_broken_file_is_said_once_and_without_paths(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"junk" * 99)
    with pytest.raises(FileError) as caught:
        open_source(str(tmp_path / "t.parquet"), tmp_path, larger_than=10)
    assert str(caught.value).count("t.parquet") == 1


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


def workbook(path: Path) -> Path:
    """A table in B2:H5 of its first sheet, with a formula, formats, and a sheet beside it."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Orders"
    rows = [
        ["zip", "country", "size", "day", "paid", None, "twice"],
        ["07501", "NA", 1, datetime(2020, 1, 2), True, 1, "=D3*2"],
        ["89073", None, "n/a", None, False, 2.5, "=D4*2"],
        ["00001", "=x", 3.0, datetime(2020, 1, 4), None, 3, "=D5*2"],
    ]
    for row, cells in enumerate(rows, start=2):
        for column, value in enumerate(cells, start=2):
            sheet.cell(row, column).value = value
    sheet["C5"].data_type = "s"
    sheet["G3"].number_format = "0.00"
    sheet["K9"].number_format = "0.00"  # a cell without a value is none
    book.create_sheet("Notes")["A1"] = "keep me"
    book.save(path)
    return path


def test_a_workbook_is_read_as_it_is(tmp_path: Path) -> None:
    assert read_file(workbook(tmp_path / "a.xlsx")).table.to_pydict() == {
        "zip": ["07501", "89073", "00001"],
        "country": ["NA", None, "=x"],
        "size": ["1", "n/a", "3"],
        "day": [datetime(2020, 1, 2), None, datetime(2020, 1, 4)],
        "paid": [True, False, None],
        "column 7": [1.0, 2.5, 3.0],
        "twice": [None, None, None],  # no program has computed it
    }


def test_a_workbook_keeps_all_but_the_changed_cells(tmp_path: Path) -> None:
    file = read_file(workbook(tmp_path / "a.xlsx"))
    changed = with_column(with_column(file.table, "size", ["2", "", "3"]), "column 7", [9.5, 2.5, 3.0])
    changed = with_column(changed, "zip", ["=1+1", "89073", "00001"])
    changed = with_column(changed, "day", [datetime(2020, 1, 3), None, datetime(2020, 1, 4)])
    (tmp_path / "a.xlsx").unlink()
    file.write_changed(tmp_path / "b.xlsx", changed, {0: {0: "=1+1", 2: "2", 3: "2020-01-03", 5: "9.5"}, 1: {2: ""}})
    book = pytest.importorskip("openpyxl").load_workbook(tmp_path / "b.xlsx")
    assert book.sheetnames == ["Orders", "Notes"]
    assert book["Notes"]["A1"].value == "keep me"
    sheet = book["Orders"]
    assert [cell.value for cell in sheet[3]][1:8] == ["=1+1", "NA", 2, datetime(2020, 1, 3), True, 9.5, "=D3*2"]
    assert [cell.value for cell in sheet[4]][1:8] == ["89073", None, None, None, False, 2.5, "=D4*2"]
    assert [sheet[place].data_type for place in ("B3", "C5", "H3")] == ["s", "s", "f"]
    assert sheet["G3"].number_format == "0.00"


def test_two_columns_of_a_name_in_a_workbook_are_refused(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(FileError, match="sheet Sheet, must hold a table; it is empty"):
        read_file(tmp_path / "a.xlsx")
    book.active.append(["a", "a"])
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(FileError, match="2 are named 'a'"):
        read_file(tmp_path / "a.xlsx")


def test_without_openpyxl_a_workbook_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"x")
    with pytest.raises(FileError, match=r"needs openpyxl. Hint: pip install"):
        read_file(tmp_path / "a.xlsx")
