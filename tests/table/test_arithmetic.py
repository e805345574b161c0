from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellmend.table.frames import read_frame
from cellmend.table.packing import pack, unpack
from cellmend.table.reader import TableReader
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.formulas import ORDER, PRODUCT, SUM, Formula
from cellmend.table.relations.quantities import learn_quantity

ROWS = 600


def sales(rows: int = ROWS) -> pd.DataFrame:
    """Orders whose columns are all arithmetic of a few."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"count": random.integers(1, 9, rows), "price": random.lognormal(3, 0.5, rows).round(2)})
    table["net"] = (table["count"] * table["price"]).round(2)
    table["gross"] = (table["net"] * 1.19).round(2)
    table["shipping"] = random.integers(200, 900, rows) / 100
    table["total"] = (table["gross"] + table["shipping"]).round(2)
    table["ordered"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, rows), "D")
    table["hours"] = random.integers(1, 200, rows)
    table["delivered"] = table["ordered"] + pd.to_timedelta(table["hours"], "h")
    return table


def learned(table: pd.DataFrame):
    reader, read = TableReader.fit(read_frame(table), None)
    return [each for each in reader.relations if isinstance(each, Arithmetic)], read


def told(table: pd.DataFrame) -> dict[tuple[int, str], tuple[float, tuple[str, ...]]]:
    """Suspicion and what was meant, by row and column."""
    found = [s for s in TableReader.fit(read_frame(table), None)[1].suspects if s.cause == "arithmetic"]
    return {(s.row, table.columns[s.column]): (s.suspicion, s.meant) for s in found}


def formulas(table: pd.DataFrame) -> set[str]:
    return {rule.words() for rule in learned(table)[0]}


def test_products_factors_sums_and_spans_of_time_are_found_in_a_dirty_table() -> None:
    table, random = sales(), np.random.default_rng(1)
    for name in ("count", "net", "gross", "total", "hours"):
        rows = random.random(ROWS) < 0.03
        table.loc[rows, name] = table[name].sample(frac=1, random_state=2).to_numpy()[rows]
    assert formulas(table) == {
        "gross = net × 1.19",
        "net = count × price",
        "total = gross + shipping",
        "delivered = ordered + 0.0416667 × hours",
    }


def test_rates_of_rounded_quotients_are_found() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame({"cases": random.integers(5, 900, ROWS), "people": random.integers(10_000, 90_000, ROWS)})
    table["rate"] = (table["cases"] / table["people"] * 100).round(2)
    assert formulas(table) == {"rate = cases × 100 / people"}


@pytest.mark.parametrize("largest", [4, 100, 100_000])
def test_a_random_table_has_no_formulas(largest: int) -> None:
    numbers = np.random.default_rng(0).integers(0, largest, (ROWS, 8))
    assert formulas(pd.DataFrame(numbers, columns=list("abcdefgh"))) == set()


def test_a_sum_in_which_the_second_part_is_nearly_always_zero_is_not_told() -> None:
    table = sales()[["price", "net"]].assign(fee=0.0)
    table["due"] = table["price"]
    table.loc[:5, "fee"] = 5.0
    assert "due = price + fee" not in formulas(table)


def test_a_rate_of_tips_is_no_rule_where_many_give_none() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame({"fare": random.lognormal(2.5, 0.5, ROWS).round(2)})
    table["tip"] = np.where(random.random(ROWS) < 0.6, (0.15 * table["fare"]).round(2), 0.0)
    table["total"] = (table["fare"] + table["tip"]).round(2)
    assert formulas(table) <= {"total = fare + tip", "total is not less than fare"}
    assert told(table) == {}


def test_another_rate_in_some_rows_is_no_error() -> None:
    table = sales()[["net", "price"]]
    table["gross"] = (table["net"] * np.where(np.arange(ROWS) % 12 == 0, 1.07, 1.19)).round(2)
    assert formulas(table) == {"gross is not less than net"}


def test_the_wrong_cell_is_told_from_the_right_ones_and_repaired() -> None:
    table = sales()
    true = table.loc[[10, 20, 30]].copy()
    table.loc[10, "count"] = 9 if table.loc[10, "count"] < 8 else 2
    table.loc[20, "gross"] = 7777.77
    table.loc[30, "net"] = round(table.loc[30, "net"] * 10, 2)
    found = {cell: each for cell, each in told(table).items() if each[0] >= 0.5}
    assert set(found) == {(10, "count"), (20, "gross"), (30, "net")}
    assert found[10, "count"][1] == (str(true.loc[10, "count"]),)
    assert [float(found[cell][1][0]) for cell in ((20, "gross"), (30, "net"))] == [
        true.loc[20, "gross"],
        true.loc[30, "net"],
    ]


def test_suspicion_is_shared_where_nothing_tells_which_cell_is_wrong() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"one": random.integers(1000, 9000, ROWS) / 100, "other": random.integers(1000, 9000, ROWS) / 100}
    )
    table["sum"] = (table["one"] + table["other"]).round(2)
    table.loc[7, "one"] = 55.51
    found = {name: each[0] for (row, name), each in told(table).items() if row == 7}
    assert found["one"] < 0.9
    assert sum(found.values()) == pytest.approx(1.0, abs=0.1)


def test_an_order_before_which_nothing_is_delivered_flags_and_does_not_repair() -> None:
    table, random = sales()[["ordered", "price"]], np.random.default_rng(1)
    table["due"] = table["ordered"] + pd.to_timedelta(random.integers(0, 60, ROWS), "D")
    table.loc[5, "due"] = pd.Timestamp("1999-01-01")
    assert formulas(table) == {"due is not before ordered"}
    suspicion, meant = told(table)[5, "due"]
    assert suspicion > 0.9
    assert meant == ()


def test_cells_that_keep_a_formula_are_vouched_for_and_others_are_not() -> None:
    table = sales()
    table.loc[20, "gross"] = 7777.77
    _, read = learned(table)
    left = read.vouched[read.names.index("gross")]
    assert left[21] < 0.1
    assert left[20] == 1.0


def test_a_formula_survives_json() -> None:
    for rule in learned(sales())[0]:
        assert unpack(Arithmetic, json.loads(json.dumps(pack(rule)))) == rule


def test_pieces_of_a_table_are_judged_as_the_whole_is() -> None:
    table = sales()
    table.loc[[20, 400], "gross"] = 7777.77
    reader, read = TableReader.fit(read_frame(table), None)
    whole = [(s.row, s.column, s.suspicion, s.meant) for s in read.suspects if s.cause == "arithmetic"]
    parts = []
    for start in (0, 300):
        piece = reader.read(read_frame(table.iloc[start : start + 300]), rows_alone=True)
        parts += [(s.row + start, s.column, s.suspicion, s.meant) for s in piece.suspects if s.cause == "arithmetic"]
    assert {each[0] for each in whole} >= {20, 400}
    assert sorted(parts) == sorted(whole)


@settings(max_examples=15, deadline=None)
@given(share=st.floats(0.01, 0.15), seed=st.integers(0, 1000))
def test_a_planted_sum_is_found_whatever_breaks_it(share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = {name: random.integers(100, 99_999, 400) / 100 for name in ("a", "b", "noise")}
    values["sum"] = np.round(values["a"] + values["b"], 2)
    broken = random.random(400) < share
    values["sum"][broken] = random.integers(100, 99_999, int(broken.sum())) / 100
    found = formulas(pd.DataFrame(values))
    assert found == {"sum = a + b"}


@pytest.mark.parametrize(
    ("formula", "name", "expected"),
    [
        (Formula(SUM, "a", ("b", "c"), (1.0, 1.0)), "b", 4.0),
        (Formula(PRODUCT, "a", ("b", "c"), (1.0, 1.0), 0.5), "b", 10.0),
        (Formula(PRODUCT, "a", ("b", "c"), (1.0, -1.0), 2.0), "c", 2 * 3 / 6),
        (Formula(ORDER, "a", ("b",), (1.0,)), "a", 3.0),
    ],
)
def test_each_column_of_a_formula_follows_from_the_others(formula: Formula, name: str, expected: float) -> None:
    values = {"a": np.array([10.0 if formula.form != PRODUCT or formula.factor == 0.5 else 6.0]), "b": np.array([3.0])}
    values["c"] = np.array([2.0 if formula.form == PRODUCT else 6.0])
    assert formula.solved(name, values)[0] == pytest.approx(expected)


def test_numbers_are_rounded_to_the_unit_of_their_column() -> None:
    quantity = learn_quantity("price", np.array([1.25, 2.5, 39.95, 7.0]))
    assert quantity.rounded(np.array([3.14159])).tolist() == [3.14]
