"""Rules of one's own: read from plain words, and the cells that break them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cellmend.errors import RulesError
from cellmend.table.frames import read_frame
from cellmend.table.notation import learn_notations, understand
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.rules import Rules, refuse_unfit
from cellmend.table.relations.stated import Among, Compares, Decides, Matches, Unique, parse

COLUMNS = ["zip", "price", "start", "end", "status", "order_id", "customer_id", "city", "check in date", "a and b"]


def read(table: Any) -> ReadTable:
    frame = read_frame(table)
    notations = learn_notations(frame.arrow, {})
    return ReadTable(frame, understand(frame.arrow, notations), notations)


def broken(rule: str, **columns: list[Any]) -> list[list[tuple[int, int]]]:
    """The cells of each violation of a rule, by row and column."""
    table = read(pa.table(columns))
    refuse_unfit(Rules(own=(rule,)), table)
    return [list(each.cells) for each in parse(rule, table.names).violations(table)]


def rows(rule: str, **columns: list[Any]) -> list[int]:
    return [cells[0][0] for cells in broken(rule, **columns)]


# ---------------------------------------------------------------- from words and back


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (r"zip matches ^\d{5}$", Matches("zip", r"^\d{5}$")),
        ("price > 0", Compares("price", ">", "0", with_column=False)),
        ("end >= start", Compares("end", ">=", "start", with_column=True)),
        ("status in [open, paid]", Among("status", ("open", "paid"))),
        ('status in ["a, b", c d, "say ""no"""]', Among("status", ("a, b", "c d", 'say "no"'))),
        ("order_id unique", Unique(("order_id",))),
        ("order_id and zip unique", Unique(("order_id", "zip"))),
        ("customer_id decides city", Decides(("customer_id",), "city")),
        ("customer_id and zip decide city", Decides(("customer_id", "zip"), "city")),
        ("check in date >= start", Compares("check in date", ">=", "start", with_column=True)),
        ("a and b and zip decide city", Decides(("a and b", "zip"), "city")),
        ("status matches in [a-z]", Matches("status", "in [a-z]")),
    ],
)
def test_plain_words_are_read_as_a_rule_that_says_the_same(words: str, rule: Any) -> None:
    assert parse(words, COLUMNS) == rule
    assert parse(rule.words(), COLUMNS) == rule


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("zpi matches x", "'zpi', which is none. Did you mean 'zip'"),
        ("zip is nice", "does not. Hint: rules are written"),
        ("", "one line"),
        ("price > 0\nprice < 9", "one line"),
        ("zip matches [", "regular expression"),
        ("status in open", r"listed as in"),
        ("status in []", r"listed as in"),
        ("price >", "complete"),
        ("order_id unique twice", "complete"),
        ("zip and city > 3", "complete"),
        ("customer_id decides town", "'town' in the rule"),
        ("city decides city", "another column"),
        ("zip and town decide city", "'town', which is none"),
    ],
)
def test_words_that_are_no_rule_are_refused_in_one_sentence(words: str, message: str) -> None:
    with pytest.raises(RulesError, match=message):
        parse(words, COLUMNS)


@pytest.mark.parametrize(
    ("words", "message"),
    [("name > 3", "'name' in the rule 'name > 3' holds neither"), ("size > nmae", "Did you mean 'name'")],
)
def test_what_cannot_be_compared_is_refused(words: str, message: str) -> None:
    with pytest.raises(RulesError, match=message):
        broken(words, name=["Ann", "Bob"] * 20, size=[*range(40)])


# ---------------------------------------------------------------- what breaks them


def test_a_text_breaks_a_pattern_that_is_not_found_in_it_as_it_is_written() -> None:
    assert rows(r"zip matches ^\d{5}$", zip=["12345", "1234", " 12345", None, "02134", ""] * 4)[:2] == [1, 2]
    assert rows(r"nr matches ^\d{2}$", nr=[10, 7, 99]) == [1]


@pytest.mark.parametrize("prices", [[5.0, -1.0, None, 0.0], ["5 €", "-1 €", "n/a", "0 €"], ["5,0", "-1,0", "", "0,0"]])
def test_numbers_are_compared_by_what_they_say_and_gaps_keep_every_rule(prices: list[Any]) -> None:
    assert rows("price > 0", price=prices * 10)[:2] == [1, 3]


def test_a_cell_that_is_no_number_keeps_no_bound_and_any_other_column() -> None:
    table = {"a": [*map(str, range(1, 40)), "many"], "b": ["0"] * 20 + ["1"] * 20}
    assert rows("a > 0", **table) == [39]
    assert rows("a >= b", **table) == []


def test_dates_are_compared_with_each_other_and_with_a_day() -> None:
    table = {"start": ["01.02.2024", "05.02.2024", ""] * 9, "end": ["03.02.2024", "04.02.2024", "01.01.2020"] * 9}
    assert broken("end >= start", **table)[0] == [(1, 1), (1, 0)]
    assert rows("end >= 2024-01-01", **table)[:2] == [2, 5]
    days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2023-12-31"] * 9)})
    assert [v.cells[0][0] for v in parse("day >= 2024-01-01", ["day"]).violations(read(days))][:2] == [1, 3]


def test_numbers_that_name_rows_and_codes_can_be_compared_too() -> None:
    assert rows("code < 500", code=[f"{number:05d}" for number in range(480, 510)]) == [*range(20, 30)]


def test_texts_can_only_be_the_same_or_not() -> None:
    assert rows("state != closed", state=["open", "closed", None] * 5)[0] == 1
    assert rows("a = b", a=["x", "y", None], b=["x", "z", "z"]) == [1]


def test_values_of_a_list_are_texts_or_numbers() -> None:
    assert rows("status in [open, paid]", status=["open", "Open", None, "paid"] * 5)[:2] == [1, 5]
    assert rows("stars in [1, 2.0]", stars=[1.0, 2.0, 3.0]) == [2]


def test_of_what_stands_twice_all_rows_are_named() -> None:
    assert broken("nr unique", nr=["a", "b", "a", None, None]) == [[(0, 0), (2, 0)]]
    assert broken("nr and part unique", nr=["a", "b", "a", "a"], part=[1, 1, 2, 1]) == [
        [(0, 0), (0, 1), (3, 0), (3, 1)]
    ]


def test_of_a_group_the_rows_without_the_majority_break_that_it_decides() -> None:
    table = read(pa.table({"id": ["a", "a", "a", "b", "b", None], "city": ["Ulm", "Bonn", "Ulm", "Rome", "Oslo", "x"]}))
    first, second = parse("id decides city", table.names).violations(table)
    assert (first.cells, first.meant) == (((1, 0), (1, 1)), "Ulm")
    assert first.reason == "for id a city is Ulm in 2 of 3 rows, but here Bonn; the rule is id decides city"
    assert (second.cells, second.meant) == (((3, 0), (3, 1), (4, 0), (4, 1)), None)


def test_columns_without_values_and_of_other_types_keep_or_break_rules_as_well() -> None:
    frame = pl.DataFrame({"none": [None, None], "flag": [True, False], "when": [None, "x"]})
    table = read(frame)
    for words, expected in [("none matches x", 0), ("none unique", 0), ("flag in [True]", 1), ("none decides flag", 0)]:
        assert len(parse(words, table.names).violations(table)) == expected
