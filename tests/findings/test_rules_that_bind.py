"""Rules that a person calls sure: every row that breaks one is a finding, and no repair breaks one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cellmend import CellMender, load
from cellmend.findings.finder import Finder
from cellmend.findings.finding import Finding
from cellmend.findings.keeping import breaking_texts, keeping_rules
from cellmend.findings.wording import Wording
from cellmend.model.encoding import TableEncoder
from cellmend.model.judge import Judge
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.relations.rules import Rules
from tests.conftest import SMALL

ROWS = 400
pytestmark = [pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning"), pytest.mark.slow]
CITIES = ["Ulm", "Bonn", "Graz", "Bern", "Lyon", "Oslo"]
OWN = [
    r"zip matches ^\d{5}$",
    "price > 0",
    "end >= start",
    "status in [open, paid]",
    "order_id unique",
    "customer decides city",
]


def orders() -> pd.DataFrame:
    random = np.random.default_rng(0)
    customer, start = random.integers(0, 30, ROWS), random.integers(0, 300, ROWS)
    days = [(pd.Timestamp("2024-01-01") + pd.to_timedelta(each, "D")).strftime("%Y-%m-%d") for each in
            (start, start + random.integers(0, 40, ROWS))]  # fmt: skip
    price, quantity = random.integers(100, 5000, ROWS) / 100, random.integers(1, 20, ROWS)
    return pd.DataFrame(
        {
            "order_id": [f"O{each:05d}" for each in random.permutation(ROWS)],
            "customer": [f"C{each:03d}" for each in customer],
            "city": [CITIES[each % 6] for each in customer],
            "zip": [f"{each}" for each in random.integers(10_000, 99_999, ROWS)],
            "status": random.choice(["open", "paid"], ROWS),
            "price": price,
            "quantity": quantity,
            "total": (price * quantity).round(2),
            "start": days[0],
            "end": days[1],
        }
    )


def broken_orders() -> pd.DataFrame:
    """Rows 5 to 10 break a rule each, and row 20 holds the order number of row 10."""
    table = orders()
    table.loc[5, "zip"] = "1234"
    table.loc[6, "price"] *= -1
    table.loc[7, "end"] = "2023-12-30"
    table.loc[8, "status"] = "lost"
    table.loc[9, "city"] = next(city for city in CITIES if city != table.loc[9, "city"])
    table.loc[20, "order_id"] = table.loc[10, "order_id"]
    return table


def found_in(table: pd.DataFrame, rules: Any, **flags: Any) -> pd.DataFrame:
    return CellMender(**SMALL, rules=rules).fit_mend(table, **flags).findings


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return found_in(broken_orders(), OWN, fdr=0.1)


# ---------------------------------------------------------------- rules of one's own


def test_every_row_that_breaks_a_rule_is_a_finding_with_the_rule_as_its_reason(found: pd.DataFrame) -> None:
    told = {(row, rule) for rule in OWN for row in found["row"][found["reason"].str.contains(rule, regex=False)]}
    assert told == {(5, OWN[0]), (6, OWN[1]), (7, OWN[2]), (8, OWN[3]), (10, OWN[4]), (20, OWN[4]), (9, OWN[5])}


def test_a_cell_that_breaks_a_rule_alone_is_surely_wrong(found: pd.DataFrame) -> None:
    alone = found[found["row"].isin([5, 6, 8])]
    assert set(zip(alone["row"], alone["column"], strict=True)) >= {(5, "zip"), (6, "price"), (8, "status")}
    assert (alone[alone["column"].isin(["zip", "status"])]["suspicion"] > 0.999).all()


def test_rules_that_all_rows_keep_find_nothing() -> None:
    assert not found_in(orders(), OWN, fdr=0.1)["reason"].str.contains("the rule is").any()


def test_they_are_kept_in_the_model_and_bind_newer_tables(tmp_path: Path) -> None:
    clean = orders()
    CellMender(**SMALL, rules=OWN).fit(clean).save(tmp_path / "m.cellmend")
    found = load(tmp_path / "m.cellmend").findings(broken_orders())
    assert {5, 6, 7, 8, 9, 10, 20} <= set(found["row"][found["reason"].str.contains("the rule is")])


def test_pieces_of_a_table_are_held_to_the_rules_that_a_row_shows_by_itself() -> None:
    mender = CellMender(**SMALL, rules=OWN).fit(orders())
    suspicion, _ = mender.score_rows(broken_orders())
    piece, _ = mender.score_rows(broken_orders().iloc[:30])
    assert np.array_equal(suspicion[:30], piece)
    assert piece[5, 3] > 0.999
    assert piece[20, 0] < 0.9  # whether a number stands twice other pieces would have to tell


def test_what_a_person_decided_to_be_right_stays_so() -> None:
    table = broken_orders()
    mender = CellMender(**SMALL, rules=OWN).fit(table)
    mender.learn(table, [{"row": 8, "column": "status", "value": "lost", "verdict": "right"}])
    found = mender.findings(table)
    assert 8 not in set(found["row"][found["column"] == "status"])
    assert 5 in set(found["row"][found["column"] == "zip"])


# ---------------------------------------------------------------- relations that are sure


def sure_of(table: pd.DataFrame, words: str) -> Rules:
    """The rules that a table shows, one of them called sure."""
    reader = TableReader.fit(read_frame(table), None)[0]
    return Rules.told_by(reader.relations, (words,))


def test_a_sure_relation_makes_every_row_that_breaks_it_a_finding() -> None:
    table = orders()
    table.loc[40:79, "total"] += 0.05  # so often that each may be an exception
    plain = found_in(table, None)
    assert not set(range(40, 80)) <= set(plain["row"])
    found = found_in(table, sure_of(table, "total = price × quantity"))
    assert set(range(40, 80)) <= set(found["row"])
    one = found[found["row"] == 40]
    assert one["contradiction"].nunique() == 1 or (one["suspicion"] > 0.5).any()


def test_a_sure_dependency_names_the_rows_that_break_it() -> None:
    table = orders()
    wrong = np.arange(50, 90)
    table.loc[wrong, "city"] = [next(c for c in CITIES if c != city) for city in table.loc[wrong, "city"]]
    found = found_in(table, sure_of(table, "customer decides city"))
    assert set(wrong.tolist()) <= set(found["row"][found["column"].isin(["customer", "city"])])


def test_a_sure_relation_that_the_table_no_longer_shows_binds_all_the_same() -> None:
    table = broken_orders().head(60)
    entry = {"rule": "customer decides city", "kind": "dependency", "columns": ["customer", "city"], "sure": True}
    assert 9 in set(found_in(table, [entry])["row"])


# ---------------------------------------------------------------- repairs


Repair = tuple[int, str, Any, str]  # row, column, repair and cause


@pytest.fixture(scope="module")
def encoder() -> TableEncoder:
    return CellMender(**SMALL).fit(orders()).encoder_


def kept(encoder: TableEncoder, rules: list[str], *repairs: Repair) -> list[Finding]:
    """What is left of repairs of the orders under these rules."""
    table = orders()
    reader, read = TableReader.fit(read_frame(table), None, rules)
    found = [
        Finding(row, column, table.loc[row, column], 1.0, repair, None, None, f"{column} is odd", cause, 1.0)
        for row, column, repair, cause in repairs
    ]
    return keeping_rules(found, Wording(read, encoder), reader.kept_by_all)


@pytest.mark.parametrize(
    ("column", "repair"),
    [("zip", "123"), ("price", -4.0), ("end", "2023-01-01"), ("start", "2025-12-31"), ("status", "lost"),
     ("order_id", orders().loc[3, "order_id"]), ("city", "Rome")],
)  # fmt: skip
def test_a_repair_that_would_break_a_rule_is_not_made(encoder: TableEncoder, column: str, repair: Any) -> None:
    (found,) = kept(encoder, OWN, (0, column, repair, "spelling"))
    assert found.repair is None
    assert f"Abstained: {repair:g}" in found.reason if column == "price" else f"Abstained: {repair}" in found.reason


def test_repairs_that_keep_the_rules_and_those_that_people_gave_are_made(encoder: TableEncoder) -> None:
    fine, given = kept(encoder, OWN, (0, "zip", "54321", "spelling"), (1, "zip", "123", "decided"))
    assert (fine.repair, given.repair) == ("54321", "123")


def test_a_repair_that_was_withdrawn_takes_others_along_that_need_it(encoder: TableEncoder) -> None:
    dates = [(0, "start", "2025-06-01", "spelling"), (0, "end", "2025-06-02", "spelling")]
    assert [each.repair for each in kept(encoder, ["end >= start"], *dates)] == ["2025-06-01", "2025-06-02"]
    found = kept(encoder, ["end >= start", "end < 2025-01-01"], *dates)
    assert [each.repair for each in found] == [None, None]


def test_gaps_are_not_filled_with_what_breaks_a_rule() -> None:
    table = orders()
    table.loc[[3, 4, 5], "quantity"] = np.nan
    free = CellMender(**SMALL).fit(table).repair(table, impute=True)
    assert (free.loc[[3, 4, 5], "quantity"] < 100).all()
    bound = CellMender(**SMALL, rules=["quantity > 100"]).fit(table).repair(table, impute=True)
    assert bound.loc[[3, 4, 5], "quantity"].isna().all()


def test_what_breaks_a_rule_is_no_hypothesis_about_a_cell() -> None:
    table = broken_orders()
    mender = CellMender(**SMALL, rules=OWN).fit(table)
    judge = Judge(mender.model_, mender.settings())
    encoded = judge.encode(mender.model_.reader.read(read_frame(table)))
    flagged = np.zeros(table.shape, dtype=bool)
    flagged[[5, 6], [3, 5]] = True  # zip and price
    words = Wording(encoded.table, mender.encoder_)
    asked, hypotheses, _ = Finder(judge).hypotheses(encoded, judge.suspicion(encoded), flagged, words)
    zips, prices = ([each.meant for each in own] for own in hypotheses)
    assert [cell.row for cell in asked] == [5, 6]
    assert all(len(each) == 5 for each in zips)
    assert prices
    assert all(float(each) > 0 for each in prices)


@pytest.mark.parametrize(
    ("column", "texts", "broken"),
    [("zip", ["12345", "123"], {"123"}), ("price", ["-4", "4.5"], {"-4"}), ("city", ["nowhere"], set())],
)
def test_a_text_is_tried_as_a_cell_of_its_column(column: str, texts: list[str], broken: set[str]) -> None:
    reader, read = TableReader.fit(read_frame(orders()), None, OWN)
    assert breaking_texts(read, column, texts, reader.kept_by_all) == broken
