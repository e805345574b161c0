"""Rows that slipped as a whole are found where they are planted, and nowhere else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cellmend.table.layoutslips import header_rows, shifted_rows

NAMES = ["id", "street", "city", "state", "opened", "beds", "phone"]
PLACES = [("Rome", "GA"), ("Athens", "GA"), ("Reno", "NV"), ("Salem", "OR"), ("Bend", "OR")]


def rows_of(count: int, seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [
        [
            f"H-{1000 + row}",
            f"{rng.integers(1, 999)} {rng.choice(['Oak', 'Elm', 'Main'])} St",
            *PLACES[rng.integers(5)],
            f"{rng.integers(1950, 2020)}-0{rng.integers(1, 9)}-{rng.integers(10, 28)}",
            str(rng.integers(3, 1200)),
            f"555-{rng.integers(1000, 9999)}",
        ]
        for row in range(count)
    ]


def table_of(rows: list[list[str]], names: list[str] = NAMES) -> pa.Table:
    return pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], names=names)


def moved_right(row: list[str], at: int) -> list[str]:
    """As an unquoted comma in a cell moves those after it."""
    half = len(row[at]) // 2
    return [*row[:at], row[at][:half], row[at][half:], *row[at + 1 :]][: len(row)]


def moved_left(row: list[str], at: int) -> list[str]:
    """As if a cell had been forgotten."""
    return [*row[:at], *row[at + 1 :], ""]


@pytest.mark.parametrize("again", [NAMES, [name.upper() for name in NAMES], [f" {name.title()}: " for name in NAMES]])
def test_a_header_that_stands_among_the_rows_is_found(again: list[str]) -> None:
    rows = rows_of(60)
    rows[17] = again
    assert header_rows(table_of(rows)).nonzero()[0].tolist() == [17]


def test_a_header_in_which_some_cells_are_empty_or_otherwise_is_found_and_one_name_is_no_header() -> None:
    rows = rows_of(60)
    rows[3] = ["id", "", "city", "", "opened", "no. of beds", ""]
    rows[9][2] = "city"
    rows[30][2:4] = "city", "state"
    rows[31] = ["", "", "city", "", "", "", ""]
    assert header_rows(table_of(rows)).nonzero()[0].tolist() == [3]


def test_words_above_columns_of_numbers_are_a_header() -> None:
    rng = np.random.default_rng(0)
    rows = [[f"{number:.1f}" for number in rng.normal(size=4)] for _ in range(50)]
    rows[0] = ["width in mm", "height in mm", "weight", "age"]
    rows[1] = ["unlit", "not measured", "broken", "1.2"]  # a number among them
    rows[2] = ["lost", "lost", "lost", "lost"]  # one word for all
    rows[3] = ["", "unknown", "broken", ""]
    assert header_rows(table_of(rows, list("abcd"))).nonzero()[0].tolist() == [0]


def test_a_name_that_is_a_usual_value_of_its_column_or_a_number_says_nothing() -> None:
    rows = [["trail", "road", str(row)] for row in range(20)] + [["path", "lane", str(row)] for row in range(20)]
    assert not header_rows(table_of(rows, ["trail", "road", "n"])).any()
    rows = [["2006", "35", "Butte"], ["2007", "36", "Colusa"], *[["2008", "37", "Napa"]] * 40]
    assert not header_rows(table_of(rows, ["2006", "35", "Alameda"])).any()


@pytest.mark.parametrize("at", [0, 1, 2])
def test_cells_that_a_comma_moved_to_the_right_are_found(at: int) -> None:
    rows = rows_of(200)
    rows[50] = moved_right(rows[50], at)
    found = shifted_rows(table_of(rows))
    assert np.flatnonzero(found.by).tolist() == [50]
    assert found.by[50] == 1
    assert found.last[50] == 6
    assert at + 1 <= found.first[50] <= at + 3  # halves of the cell tell little
    assert found.log_odds[50] > 12


@pytest.mark.parametrize("at", [0, 1, 2])
def test_cells_that_stand_too_far_left_are_found(at: int) -> None:
    rows = rows_of(200)
    rows[50] = moved_left(rows[50], at)
    found = shifted_rows(table_of(rows))
    assert (np.flatnonzero(found.by).tolist(), found.by[50], found.last[50]) == ([50], -1, 5)
    assert at <= found.first[50] <= at + 1


def test_cells_that_moved_by_two_columns_are_found() -> None:
    rows = rows_of(200)
    rows[50] = moved_right(moved_right(rows[50], 0), 0)
    assert shifted_rows(table_of(rows)).by[50] == 2


def test_several_rows_and_both_ways() -> None:
    rows = rows_of(300)
    for row in (10, 20, 30):
        rows[row] = moved_right(rows[row], 1)
        rows[row + 5] = moved_left(rows[row + 5], 0)
    by = shifted_rows(table_of(rows)).by
    assert (by > 0).nonzero()[0].tolist() == [10, 20, 30]
    assert (by < 0).nonzero()[0].tolist() == [15, 25, 35]


@pytest.mark.parametrize("seed", range(5))
def test_rows_where_they_belong_are_not_shifted(seed: int) -> None:
    rows = rows_of(200, seed)
    rng = np.random.default_rng(seed)
    for row, place in rng.integers(0, 7, (30, 2)) * [20, 1]:
        rows[row][place] = rng.choice(["", "N/A", "17", "Rome", "x", "2001-01-01"])  # single cells may be wrong
    found = shifted_rows(table_of(rows))
    assert not found.by.any()
    assert (found.first == -1).all()


def test_two_cells_in_each_others_place_are_no_shift() -> None:
    rows = rows_of(200)
    rows[50][2], rows[50][3] = rows[50][3], rows[50][2]
    assert not shifted_rows(table_of(rows)).by.any()


def test_a_cell_that_belongs_where_it_is_ends_a_run() -> None:
    rows = rows_of(200)
    row = rows[50]
    rows[50] = [row[0], row[0], row[1], row[3], row[3], row[4], row[6]]
    assert not shifted_rows(table_of(rows)).by.any()


def test_long_numbers_where_others_have_one_digit_do_not_come_from_quantities_beside_them() -> None:
    rng = np.random.default_rng(0)
    rows = [[str(rng.integers(1, 10 ** (1 + place % 2 * 3))) for place in range(1, 9)] for _ in range(200)]
    rows[50] = ["7", "12"] * 4
    assert not shifted_rows(table_of(rows, list("abcdefgh"))).by.any()


def test_a_large_row_of_quantities_is_not_shifted() -> None:
    """Each of its numbers is as long as those of the column before are."""
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(0, 0.3, (300, 8)) * 10.0 ** np.arange(8, 0, -1)
    numbers[7] *= 10
    texts = table_of([[str(int(number)) for number in row] for row in numbers], list("abcdefgh"))
    assert not shifted_rows(texts).by.any()
    assert not shifted_rows(pa.table({name: numbers[:, place] for place, name in enumerate("abcdefgh")})).by.any()


def test_too_few_rows_no_rows_and_columns_of_other_types_are_silent() -> None:
    rows = rows_of(10)
    rows[5] = moved_right(rows[5], 0)
    assert not shifted_rows(table_of(rows)).by.any()
    empty = table_of(rows).slice(0, 0)
    assert len(header_rows(empty)) == len(shifted_rows(empty).by) == 0
    odd = pa.table({"a": [b"raw"] * 30, "b": [None] * 30, "c": [["list"]] * 30, "d": [True] * 30, "e": ["x"] * 30})
    assert not header_rows(odd).any()
    assert not shifted_rows(odd).by.any()
