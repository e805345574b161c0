"""CSV in, the same CSV out: every byte that was not to be changed."""

from __future__ import annotations

import csv
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.errors import FileError
from cellmend.files.csvtext import read_csv_text
from cellmend.files.formats import read_file
from cellmend.files.layout import Asked

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
    columns, rows = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    header = [f"ä{place}" for place in range(columns)]  # so that cp1252 is not taken for UTF-8
    return [header, *([draw(CELLS) for _ in header] for _ in range(rows))]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@given(table=tables(), quote=st.booleans(), data=st.data())
def test_a_csv_file_keeps_every_byte_but_those_of_changed_cells(form, table, quote, data) -> None:
    delimiter, _, encoding = form
    raw = as_csv(table, *form, quote=quote)
    text = read_csv_text(raw, "a.csv", Asked(header_row=1, delimiter=delimiter))  # nothing is a title or a total
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
    assert read_csv_text(b'"a\nb",c\n1,"x\ny"\n', "x").table().to_pydict() == {"a\nb": ["1"], "c": ["x\ny"]}


@pytest.mark.parametrize("cells", [["Hello, world", "Bye, moon"], ["a,b;c|d\te", "f"], ['"two\nlines, yes"', "x,y"]])
def test_a_table_of_one_column_may_hold_delimiters(cells: list[str]) -> None:
    raw = "\n".join(["greeting", *cells]).encode()
    text = read_csv_text(raw, "a.csv")
    assert text.table().to_pydict() == {"greeting": [cell.strip('"') for cell in cells]}
    assert text.with_cells({1: {0: "one, two"}}).endswith(b"\none, two")


def test_an_emptied_cell_of_one_column_is_still_a_row() -> None:
    text = read_csv_text(b"a\n1\nN/A\n3\n", "a.csv")
    assert text.with_cells({1: {0: ""}}) == b'a\n1\n""\n3\n'
    again = text.changed({1: {0: ""}})
    assert again.table().to_pydict() == {"a": ["1", "", "3"]}
    assert again.with_cells({2: {0: "4"}}) == b'a\n1\n""\n4\n'
    assert read_csv_text(b"a,b\n1,2\n", "a.csv").with_cells({0: {1: ""}}) == b"a,b\n1,\n"


def test_a_header_alone_is_a_table_without_rows() -> None:
    assert read_csv_text(b"a,b\n\n", "a.csv").table().to_pydict() == {"a": [], "b": []}


def test_lines_may_end_in_returns_and_a_cell_hold_a_line_break() -> None:
    text = read_csv_text(b"a,b\rx,1\ry,2\r", "a.csv")
    again = read_csv_text(text.with_cells({0: {0: "u\nv"}}), "a.csv")
    assert again.table()["a"].to_pylist() == ["u\nv", "y"]
    assert again.line_numbers.tolist() == [2, 3]


LONG = ["id,city,size,a,b", *(f"{n},Rome,{n % 7},1,2" for n in range(3000))]


@pytest.mark.parametrize("stray", [(100,), (100, 2000), (2999,)])
def test_an_open_quote_is_an_error_and_not_a_footer_or_a_long_cell(stray: tuple[int, ...], tmp_path) -> None:
    lines = [line.replace("Rome", '"Oslo') if place in stray else line for place, line in enumerate(LONG)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(FileError, match=rf"quotes in pairs; line {stray[0] + 1} opens one that nothing closes\.$"):
        read_file(tmp_path / "t.csv")


def test_quotes_with_line_breaks_between_them_are_cells() -> None:
    raw = b'id,note\n1,"a\nb, ""c"" "\n2,"d\n" \n3,5" x 7"\n'
    assert read_csv_text(raw, "a.csv").table()["note"].to_pylist()[::2] == ['a\nb, "c" ', '5" x 7"']


def test_an_open_quote_in_a_large_file_is_found_in_time() -> None:
    raw = ("\n".join(["id,note", '1,"open', *["2,say 5"] * 400_000])).encode()
    start = time.perf_counter()
    assert len(read_csv_text(raw, "a.csv").starts) == 2
    assert time.perf_counter() - start < 10


RAGGED = b'id,city,size\r\n1,Rome,3\r\n2,"Os lo"\r\n3,Ulm,4,"x, y",z\r\n\r\n4,Bonn,5\r\n'


def test_a_line_that_does_not_fit_is_named_with_a_way_out(tmp_path) -> None:
    (tmp_path / "t.csv").write_bytes(RAGGED)
    with pytest.raises(FileError, match=r"line 3 has 2 and the header 3\. Hint: --ragged keep .* --ragged drop "):
        read_file(tmp_path / "t.csv")


def test_ragged_lines_are_kept_with_empty_cells_and_a_longer_last_one(tmp_path) -> None:
    (tmp_path / "t.csv").write_bytes(RAGGED)
    file = read_file(tmp_path / "t.csv", Asked(ragged="keep"))
    assert file.table["size"].to_pylist() == ["3", "", '4,"x, y",z', "5"]
    assert [note.rpartition("(")[2] for note in file.notes] == ["line 3)", "line 4)"]
    text = file.csv
    assert text is not None
    assert text.with_cells({}) == RAGGED
    assert text.with_cells({1: {0: "7"}}) == RAGGED.replace(b"2,", b"7,")
    assert text.with_cells({1: {2: "9"}}) == RAGGED.replace(b'"Os lo"', b'"Os lo",9')
    assert text.with_cells({2: {2: "4"}, 3: {2: "6"}}) == RAGGED.replace(b'4,"x, y",z', b"4").replace(b"n,5", b"n,6")
    assert text.changed({1: {2: "9"}}).table()["size"].to_pylist() == ["3", "9", '4,"x, y",z', "5"]


def test_ragged_lines_are_left_out_and_stay_in_the_copy(tmp_path) -> None:
    (tmp_path / "t.csv").write_bytes(RAGGED)
    file = read_file(tmp_path / "t.csv", Asked(ragged="drop"))
    assert file.table["id"].to_pylist() == ["1", "4"]
    assert file.notes == ("2 rows of more or fewer fields than the header left out (lines 3, 4)",)
    text = file.csv
    assert text is not None
    assert text.line_numbers.tolist() == [2, 6]
    assert text.with_cells({1: {1: "Köln"}}) == RAGGED.replace(b"Bonn", "Köln".encode())
    assert text.changed({1: {1: "Trier"}}).table()["city"].to_pylist() == ["Rome", "Trier"]


@pytest.mark.slow
@given(table=tables(), seed=st.randoms(use_true_random=False), how=st.sampled_from(["keep", "drop"]), data=st.data())
def test_a_ragged_file_keeps_every_byte_but_those_of_changed_cells(table, seed, how, data) -> None:
    if len(table[0]) == 1:
        return
    lines = [row[: seed.randint(1, len(row))] + ["z"] * seed.choice([0, 0, 2]) for row in table[1:]]
    raw = as_csv([table[0], *lines], ";", "\r\n", "utf-8", quote=False)
    text = read_csv_text(raw, "a.csv", Asked(header_row=1, delimiter=";")).with_ragged(how)
    assert text.with_cells({}) == raw
    before = text.table().to_pylist()
    if before:
        row, name = data.draw(st.integers(0, len(before) - 1)), data.draw(st.sampled_from(table[0]))
        again = text.changed({row: {table[0].index(name): "neu"}})
        before[row][name] = "neu"
        assert again.table().to_pylist() == before
