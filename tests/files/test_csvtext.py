"""CSV in, the same CSV out: every byte that was not to be changed."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.files.csvtext import read_csv_text
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
