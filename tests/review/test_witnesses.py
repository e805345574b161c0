"""Witnesses: what other rows say of a cell, counted by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cellmend.review.flagged import Flag
from cellmend.review.limits import Wishes
from cellmend.review.review import Review
from cellmend.review.rulebook import RuleBook
from cellmend.review.witnesses import Witness, Witnesses
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from tests.review.conftest import Client, wait_for_teacher

ROWS = 120


@pytest.fixture(scope="module")
def table() -> pa.Table:
    code = [f"c{row % 6}" for row in range(ROWS)]
    town = [f"town {each}" for each in code]
    town[5] = "twon c5"
    town[11] = None
    price = [2 + (37 * row) % 83 for row in range(ROWS)]
    count = [2 + (11 * row) % 7 for row in range(ROWS)]
    total = [p * c for p, c in zip(price, count, strict=True)]
    total[7] += 100
    number = [f"n{row:04d}" for row in range(ROWS)]
    return pa.table({"code": code, "town": town, "price": price, "count": count, "total": total, "number": number})


@pytest.fixture(scope="module")
def book(table: pa.Table) -> RuleBook:
    reader, _ = TableReader.fit(read_frame(table), {"number": "ignore"})
    return RuleBook(reader, table)


def heard(table: pa.Table, book: RuleBook | None, flag: Flag, wishes: Wishes | None = None) -> list[Witness]:
    return Witnesses(table).of(flag, book, wishes or Wishes())


def flag(row: int, column: str, value: str, repair: str | None = None) -> Flag:
    return Flag(row, column, value, 0.9, repair, None, None, "it looks odd", "typo")


def test_rows_that_agree_in_what_decides_a_cell_say_what_it_should_be(table: pa.Table, book: RuleBook) -> None:
    found = heard(table, book, flag(5, "town", "twon c5", "town c5"))
    first = next(each for each in found if "code" in each.words)
    assert first.words == "18 rows with code “c5” say “town c5”, 1 says this"  # 20 rows, one of them empty
    assert (first.says, first.count) == ("town c5", 18)
    shown = [each for each in found if each.rows]
    assert len(shown) == 1  # the same rows are not shown twice
    assert [(each.row, each.text) for each in shown[0].rows] == [(17, "town c5"), (23, "town c5"), (29, "town c5")]


def test_a_cell_that_decides_another_one_hears_of_it(table: pa.Table, book: RuleBook) -> None:
    found = [each for each in heard(table, book, flag(5, "code", "c5")) if "town" in each.words]
    assert found[0].words == "18 rows with code “c5” have town “town c5”; this one has “twon c5”"
    assert found[0].says is None


def test_rows_that_disagree_among_themselves_say_nothing(table: pa.Table, book: RuleBook) -> None:
    split = [f"town {row // 6 % 3}" if row % 6 == 5 else town for row, town in enumerate(table["town"].to_pylist())]
    torn = table.set_column(1, "town", [split])
    said = [each.words for each in heard(torn, book, flag(17, "town", "town 2", "town 1"))]
    assert [words for words in said if "with code" in words] == []


def test_a_formula_says_what_contradicts_what(table: pa.Table, book: RuleBook) -> None:
    found = [each for each in heard(table, book, flag(7, "total", "?")) if "rows keep" in each.words]
    price, count, total = (table[name][7].as_py() for name in ("price", "count", "total"))
    assert f"is {price * count}, but total is {total}; 119 rows keep total = price × count" in found[0].words


def test_rules_that_were_struck_out_are_not_heard(table: pa.Table, book: RuleBook) -> None:
    silent = Wishes(rules=dict.fromkeys(book.found, "struck"))
    found = heard(table, book, flag(5, "town", "twon c5", "town c5"), silent)
    assert [each.words for each in found] == ["“twon c5” stands in 1 of 120 rows, “town c5” in 18"]


def test_without_rules_the_column_itself_is_counted(table: pa.Table) -> None:
    (found,) = heard(table, None, flag(5, "town", "twon c5", "town c5"))
    assert [each.row for each in found.rows] == [17, 23, 29]
    (gap,) = heard(table, None, flag(11, "town", "", "town c5"))
    assert gap.words == "Nothing stands in 1 of 120 rows, “town c5” in 18"


def test_of_a_value_that_stands_once_nothing_is_said(table: pa.Table) -> None:
    assert heard(table, None, flag(5, "number", "n0005")) == []


@pytest.mark.slow
def test_a_card_has_its_witnesses_its_line_and_the_name_of_its_row(review: Review, client: Client) -> None:
    row = next(flag.row for flag in review.flagged.flags if flag.value == "Oslx")
    before = client.get(f"/api/cell?row={row}&column=city").json()
    assert (before["witnesses"], before["name"]) == (None, "")
    review.start()
    wait_for_teacher(review)
    card = client.get(f"/api/cell?row={row}&column=city").json()
    assert card["line"] == row + 2
    assert card["witnesses"][0]["words"].startswith("“Oslx” stands in 4 of 200 rows, ")
    assert all(each["line"] == each["row"] + 2 for each in card["witnesses"][0]["rows"])
    assert card["flag"]["repair_probability"] > 0
    assert f"P{row:04d}" in card["name"]


@pytest.mark.slow
def test_no_picture_is_drawn_where_it_says_nothing(review: Review, client: Client) -> None:
    review.start()
    wait_for_teacher(review)
    kinds = {name: client.get(f"/api/cell?row=5&column={name}").json()["picture"]["kind"] for name in review.places}
    assert kinds == {"parcel_id": "none", "city": "levels", "width": "numbers", "length": "numbers", "note": "none"}
