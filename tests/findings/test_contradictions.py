"""Contradictions: one of several cells is wrong, and nothing tells which."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cellmend import PAPER, CellMender
from cellmend.findings.contradictions import Contradiction, find_contradictions, spans_of
from cellmend.findings.finder import Finder
from cellmend.findings.finding import Finding, Mended, with_contradictions
from cellmend.model.judge import Judge
from cellmend.model.violations import given_violations
from cellmend.settings import NO_SPANS, Threshold, fdr_cutoff
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.breaks import chance_of_error
from tests.conftest import SMALL

ROWS = 600
DOUBT = 0.01  # suspicion of a cell of which nothing is known


def orders() -> pd.DataFrame:
    random = np.random.default_rng(0)
    table = pd.DataFrame({"price": random.integers(100, 5000, ROWS) / 100, "quantity": random.integers(1, 20, ROWS)})
    table["total"] = (table["price"] * table["quantity"]).round(2)
    table["weight"] = random.normal(50, 9, ROWS).round(1)
    return table


def places(wrong: int = 0) -> pd.DataFrame:
    """Zips and their cities, the city of so many rows that of another zip, evenly spread."""
    random = np.random.default_rng(0)
    zips = random.integers(0, 12, ROWS)
    cities = zips.copy()
    rows = np.linspace(0, ROWS - 1, wrong).astype(int)
    cities[rows] = (cities[rows] + 1 + np.arange(wrong) % 11) % 12
    names = ["Ulm", "Rome", "Oslo", "Bern", "Graz", "Lyon", "Porto", "Ghent", "Lodz", "Brno", "Split", "Varna"]
    table = {"zip": [str(10007 + 3137 * each) for each in zips], "city": [names[each] for each in cities]}
    return pd.DataFrame(table | {"age": random.integers(18, 90, ROWS)})


def contradictions(table: pd.DataFrame, **doubts: float) -> list[Contradiction]:
    """Of a table whose cells have these suspicions by column, or hardly any."""
    reader, read = TableReader.fit(read_frame(table), None)
    suspicion = np.full(table.shape, DOUBT)
    for name, doubt in doubts.items():
        suspicion[:, table.columns.get_loc(name)] = doubt
    return find_contradictions(reader.relations, read, suspicion)


# ---------------------------------------------------------------- what is one


def test_a_total_that_is_no_product_contradicts_its_parts() -> None:
    table = orders()
    table.loc[7, "total"] = 120.0
    table.loc[7, ["price", "quantity"]] = 3.0, 4
    (found,) = contradictions(table)
    assert (found.row, found.names, found.suspicions) == (7, ("price", "quantity", "total"), (DOUBT,) * 3)
    assert found.reason == (
        "price 3 × quantity 4 is 12, but total is 120. One of price, quantity and total is wrong (97 %)"
    )
    assert found.probability == pytest.approx(0.97, abs=0.005)
    assert found.cause == "arithmetic"


def test_zip_and_city_say_both_why_they_contradict_each_other() -> None:
    found = contradictions(places(wrong=3), zip=0.4, city=0.5)
    assert [each.names for each in found] == [("zip", "city")] * 3
    assert found[0].reason.count("for zip ") == 1
    assert found[0].reason.count("for city ") == 1
    assert found[0].reason.count("One of zip and city is wrong") == 1
    assert all(each.probability == pytest.approx(0.9) for each in found)  # one of them is wrong, so they add up


def test_an_order_of_dates_that_is_broken_is_a_contradiction_also_where_the_cells_tell_nothing() -> None:
    random, table = np.random.default_rng(0), orders()
    table["ordered"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, ROWS), "D")
    table["delivered"] = table["ordered"] + pd.to_timedelta(random.integers(1, 60, ROWS), "D")
    table.loc[5, ["ordered", "delivered"]] = table.loc[5, ["delivered", "ordered"]].to_numpy()
    (found,) = contradictions(table)
    assert found.names == ("ordered", "delivered")
    assert f"is before ordered {table.loc[5, 'ordered'].date()}" in found.reason
    assert 0.6 < found.probability < 0.9  # three of twelve such orders have exceptions in public tables


def test_what_rounding_may_make_is_no_contradiction() -> None:
    table = orders()
    table.loc[[7, 9], "total"] += [0.02, 0.5]
    reader, read = TableReader.fit(read_frame(table), None)
    (rule,) = (each for each in reader.relations if isinstance(each, Arithmetic))
    broken = rule.formula.broken({name: table[name].to_numpy(dtype=float) for name in rule.columns})
    assert np.flatnonzero(broken).tolist() == [7, 9]
    assert [each.row for each in contradictions(table)] == rule.breaks(read).rows.tolist() == [9]


def test_where_only_the_cells_can_tell_doubtless_ones_are_exceptions() -> None:
    assert contradictions(places(wrong=3), zip=0.3, city=0.3)
    assert contradictions(places(wrong=3)) == []


def test_the_more_rows_break_a_formula_the_likelier_each_is_an_exception() -> None:
    chances = [chance_of_error(share) for share in (0.0, 0.002, 0.02, 0.05, 0.2)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.9 > 0.5 > chances[-1]


def test_it_is_at_least_as_probable_as_that_its_most_suspicious_cell_is_wrong() -> None:
    found = contradictions(places(wrong=3), zip=0.99, city=0.3)
    assert all(0.99 <= each.probability < 1 for each in found)
    assert found


def test_cells_beyond_doubt_are_in_none() -> None:
    table = orders()
    table.loc[7, "total"] *= 3
    assert [each.names for each in contradictions(table, quantity=0.0)] == [("price", "total")]
    assert contradictions(table, quantity=0.0, price=0.0) == []


def test_no_cell_is_in_two_contradictions() -> None:
    table = orders()
    table["tax"] = np.random.default_rng(1).integers(100, 900, ROWS) / 100
    table["gross"] = (table["total"] + table["tax"]).round(2)
    table.loc[7, "total"] += 35.5
    found = contradictions(table)
    cells = [cell for each in found for cell in each.cells]
    assert len(cells) == len(set(cells))
    assert [each.row for each in found] == [7]


# ---------------------------------------------------------------- which are flagged


def one(row: int, probability: float, *suspicions: float) -> Contradiction:
    cells = tuple((row, place) for place in range(len(suspicions)))
    return Contradiction(cells, suspicions, probability, "arithmetic", ("a is not b",), ("a", "b", "c")[: len(cells)])


def test_fdr_counts_a_contradiction_once() -> None:
    suspicion = np.array([[0.98, 0.0], [0.8, 0.0], [0.3, 0.3]])
    sure = spans_of([one(2, 0.92, 0.3, 0.3)])
    assert fdr_cutoff(suspicion, 0.1) == 0.98  # 0.98 and 0.8 together: 11 % are expected to be right
    assert fdr_cutoff(suspicion, 0.1, sure) == 0.8  # with 0.92 once: 10 %; twice it would be 9.5 %
    assert fdr_cutoff(suspicion, 0.099, sure) == 0.92
    assert Threshold(fdr=0.099).cutoff(suspicion, sure) == 0.92


def test_a_cell_that_is_flagged_takes_the_place_of_its_contradiction() -> None:
    suspicion = np.array([[0.9, 0.1], [0.6, 0.1]])
    explained = spans_of([one(1, 0.9, 0.6, 0.1)])
    assert fdr_cutoff(suspicion, 0.1, explained) == 0.9
    assert fdr_cutoff(suspicion, 0.25, explained) == 0.6  # 0.9 and 0.6 themselves: 25 %
    assert fdr_cutoff(suspicion, 0.24, explained) == 0.9
    assert not one(1, 0.9, 0.6, 0.1).flagged_from(0.6)
    assert one(1, 0.9, 0.6, 0.1).flagged_from(0.61)
    assert not one(1, 0.9, 0.6, 0.1).flagged_from(0.91)


def test_top_counts_a_contradiction_once_and_not_beside_the_cell_that_explains_it() -> None:
    suspicion = np.array([[0.95, 0.1], [0.8, 0.1], [0.3, 0.2]])
    spans = spans_of([one(0, 0.97, 0.95, 0.1), one(2, 0.9, 0.3, 0.2)])
    assert [Threshold(top=n).cutoff(suspicion, spans) for n in (1, 2, 3)] == [0.97, 0.9, 0.8]
    assert Threshold(top=100).cutoff(suspicion, spans) == 0.1


def test_without_contradictions_cutoffs_are_as_ever() -> None:
    suspicion = np.random.default_rng(0).random((50, 4)) ** 0.2
    for threshold in (Threshold(fdr=0.05), Threshold(fdr=0.3), Threshold(top=9), Threshold(suspicion=0.7)):
        assert threshold.cutoff(suspicion) == threshold.cutoff(suspicion, NO_SPANS) == _slowly(suspicion, threshold)


def _slowly(suspicion: np.ndarray, threshold: Threshold) -> float:
    ordered = np.sort(suspicion, axis=None)[::-1]
    if threshold.fdr is not None:
        flagged = [
            each for n, each in enumerate(ordered, 1) if each >= 0.5 and (1 - ordered[:n]).mean() <= threshold.fdr
        ]
        return float(flagged[-1])
    return float(ordered[threshold.top - 1]) if threshold.top else float(threshold.suspicion or 0)


def test_lines_of_a_contradiction_stand_together_and_share_number_and_sentence() -> None:
    read = read_frame(pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}))
    table = TableReader.fit(read, None)[1]
    cells = [Finding(0, "a", 1, 0.99, None, None, None, "a is 1"), Finding(1, "b", 5, 0.6, 7, None, None, "b is 5")]
    found, kept = with_contradictions(cells, [one(2, 0.8, 0.2, 0.3), one(1, 0.9, 0.1, 0.1)], table)
    assert [(each.row, each.column, each.contradiction) for each in found] == [
        (0, "a", None), (1, "a", 1), (1, "b", 1), (2, "a", 2), (2, "b", 2), (1, "b", None)
    ]  # fmt: skip
    assert [each.suspicion for each in found if each.contradiction == 2] == [0.2, 0.3]
    assert {each.repair for each in found if each.contradiction} == {None}
    assert found[1].reason == found[2].reason == "a is not b. One of a and b is wrong (90 %)"
    mended = Mended(table, np.zeros((3, 2)), found, None, kept)
    assert mended.expected_false == pytest.approx(0.01 + 0.4 + 0.1 + 0.2)
    assert [each.row for each in mended.flagged] == [0, 1]
    few, kept = with_contradictions(cells, [one(2, 0.8, 0.2, 0.3), one(1, 0.9, 0.1, 0.1)], table, top=2)
    assert ([each.row for each in few], [each.row for each in kept]) == ([0, 1, 1], [1])


# ---------------------------------------------------------------- from a table to its findings


@pytest.fixture(scope="module")
def broken() -> pd.DataFrame:
    """Three totals that may be wrong as well as their prices and quantities, and one that is wrong by itself."""
    table = orders()
    table.loc[[100, 200, 300], "total"] = (1.31 * table.loc[[100, 200, 300], "total"]).round(2)
    table.loc[400, "total"] *= 1000
    return table


@pytest.fixture(scope="module")
def mender(broken: pd.DataFrame) -> CellMender:
    return CellMender(**SMALL).fit(broken)


def test_findings_have_the_contradictions_of_a_table(mender: CellMender, broken: pd.DataFrame) -> None:
    mended = mender.mend(broken, fdr=0.1)
    findings = mended.findings
    assert findings.columns[-1] == "contradiction"
    own = findings[findings["contradiction"].notna()]
    assert sorted(set(own["row"])) == [100, 200, 300]
    for _, lines in own.groupby("contradiction"):
        assert lines["column"].tolist() == ["price", "quantity", "total"]
        assert lines["reason"].nunique() == 1
        assert lines["repair"].isna().all()
    assert (400, "total") in zip(findings["row"], findings["column"], strict=True)
    assert mended.repaired.loc[[100, 200, 300]].equals(broken.loc[[100, 200, 300]])
    np.testing.assert_array_equal(mended.suspicion.to_numpy(), mender.cell_suspicion(broken).to_numpy())


def test_of_a_total_times_ten_it_is_known_that_something_is_wrong() -> None:
    table, rows = orders(), [7, 100, 200, 333, 444]
    table.loc[rows, "total"] *= 10
    findings = CellMender(**SMALL).fit(table).findings(table, fdr=0.1)
    for row in rows:
        lines = findings[findings["row"] == row]
        told = set(lines["column"][lines["contradiction"].notna()])
        assert told == {"price", "quantity", "total"} or "total" in set(lines["column"][lines["contradiction"].isna()])
    assert set(findings["row"][findings["contradiction"].notna()]) <= set(rows)


def test_a_cell_that_the_first_look_hides_from_the_network_still_contradicts_the_others() -> None:
    table, rows = orders(), [7, 100, 200, 333, 444]
    table.loc[rows, "total"] *= 10
    fitted = CellMender(**SMALL).fit(table)
    finder = Finder(Judge(fitted.model_, fitted.settings()))
    encoded = finder.judge.encode(fitted.model_.reader.read(read_frame(table)))
    hidden = (encoded.whole.observed & ~encoded.cells.observed).any(dim=1).nonzero()[:, 0].tolist()
    assert set(hidden) & set(rows)
    found = finder._contradictions(encoded, finder.judge.suspicion(encoded))
    assert {each.row for each in found} >= set(rows)


def test_a_flagged_cell_explains_its_row(mender: CellMender, broken: pd.DataFrame) -> None:
    for threshold in ({"fdr": 0.1}, {"suspicion": 0.5}, {"suspicion": 0.9}):
        findings = mender.findings(broken, **threshold)
        of_row = findings[findings["row"] == 400]
        assert "total" in of_row["column"].tolist()
        assert of_row["contradiction"].isna().all()


def test_a_person_who_says_that_a_cell_is_right_takes_it_out(mender: CellMender, broken: pd.DataFrame) -> None:
    said = [{"row": 200, "column": "price", "value": broken.loc[200, "price"], "verdict": "right"}]
    taught = CellMender(**SMALL)
    taught.__dict__.update(mender.__dict__)
    findings = taught.learn(broken, said).findings(broken, fdr=0.1)
    own = findings[(findings["row"] == 200) & findings["contradiction"].notna()]
    assert own["column"].tolist() == ["quantity", "total"]


def test_other_kinds_of_tables_have_the_numbers_too(mender: CellMender, broken: pd.DataFrame) -> None:
    findings = mender.findings(pl.from_pandas(broken), fdr=0.1)
    assert findings["contradiction"].dtype == pl.Int64
    assert findings["contradiction"].drop_nulls().unique().sort().to_list() == [1, 2, 3]


def test_the_published_model_knows_no_contradictions(broken: pd.DataFrame) -> None:
    mended = CellMender(**PAPER | SMALL).fit(broken).mend(broken, suspicion=0.9)
    assert mended.contradictions == []
    assert all(each.contradiction is None for each in mended.found)


# ---------------------------------------------------------------- of rules that are sure, and of several rows


def of_rules(rules: list[str], **doubts: float) -> list[Contradiction]:
    """Of a small table that breaks these rules in row 0, and stands twice in rows 0 and 1."""
    table = pd.DataFrame({"a": [5, 5, 1], "b": [4, 6, 2], "c": [3, 7, 3]})
    reader, read = TableReader.fit(read_frame(table), None, rules)
    suspicion = np.full(table.shape, DOUBT)
    for name, doubt in doubts.items():
        suspicion[:, table.columns.get_loc(name)] = doubt
    return find_contradictions(reader.relations, read, given_violations(suspicion, read.violations))


@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
def test_cells_that_break_a_sure_rule_together_contradict_each_other_however_right_they_look() -> None:
    (found,) = of_rules(["b >= a"])
    assert (found.row, found.names, found.cause) == (0, ("a", "b"), "rule")
    assert found.reason == "b is 4 and a is 5; the rule is b >= a. One of a and b is wrong"
    assert found.suspicions == pytest.approx((0.5, 0.5), abs=0.01)
    assert found.flagged_from(0.999)


@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
def test_sure_rules_that_share_a_cell_are_one_contradiction_so_that_none_is_lost() -> None:
    (found,) = of_rules(["b >= a", "c >= b"])
    assert found.names == ("a", "b", "c")
    assert "the rule is b >= a; c is 3 and b is 4; the rule is c >= b. One of a, b and c is wrong" in found.reason


@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
def test_what_stands_twice_is_a_contradiction_of_both_rows() -> None:
    (found,) = of_rules(["a unique"])
    assert found.cells == ((0, 0), (1, 0))
    assert found.reason == "a is 5 in 2 rows; the rule is a unique. One of these 2 cells of 2 rows is wrong"


def test_of_several_rows_one_explains_what_stands_twice_only_if_the_others_are_hardly_suspicious() -> None:
    def twice(*suspicions: float) -> Contradiction:
        return Contradiction(((3, 0), (8, 0)), suspicions, 0.97, "key", ("a is 5 in 2 rows",), ("a", "a"))

    assert twice(0.5, 0.5).flagged_from(0.5)
    assert twice(0.6, 0.4).flagged_from(0.5)
    assert not twice(0.96, 0.01).flagged_from(0.5)
    assert not twice(0.5, 0.5).flagged_from(0.98)
