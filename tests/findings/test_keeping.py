from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cellmend.findings.finding import Finding
from cellmend.findings.keeping import both_or_neither, in_keeping
from cellmend.table.causes.named import EXCHANGED
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.relations.arithmetic import Arithmetic

ROWS = 400


def kept(table: pd.DataFrame, *repairs: tuple[int, str, object]) -> list[Finding]:
    """Findings with these repairs, in keeping with the formulas of the table."""
    reader, read = TableReader.fit(read_frame(table), None)
    rules = [each for each in reader.relations if isinstance(each, Arithmetic)]
    found = [Finding(row, name, None, 0.9, repair, None, None, "it is odd") for row, name, repair in repairs]
    return in_keeping(found, read, rules)


def orders() -> pd.DataFrame:
    random = np.random.default_rng(0)
    table = pd.DataFrame({"count": random.integers(2, 9, ROWS), "price": random.integers(100, 9999, ROWS) / 100})
    table["total"] = (table["count"] * table["price"]).round(2)
    table["ordered"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, ROWS), "D")
    table["delivered"] = table["ordered"] + pd.to_timedelta(random.integers(0, 60, ROWS), "D")
    return table


def test_a_repair_that_breaks_a_formula_is_replaced_by_what_it_says() -> None:
    table = orders()
    found = kept(table, (3, "total", 1.11))[0]
    assert found.repair == table.loc[3, "total"]
    assert "total = count × price" in found.reason


def test_a_value_that_its_formula_confirms_is_not_repaired() -> None:
    table = orders()
    own = table.loc[3, "total"]
    reader, read = TableReader.fit(read_frame(table), None)
    rules = [each for each in reader.relations if isinstance(each, Arithmetic)]
    (found,) = in_keeping([Finding(3, "total", own, 0.9, 1.11, None, None, "it is odd")], read, rules)
    assert found.repair is None
    assert found.reason == "it is odd. Left as it is: total = count × price confirms it"


def test_no_order_is_repaired_to_a_day_after_its_delivery() -> None:
    table = orders()
    late = table.loc[5, "delivered"] + pd.Timedelta(days=30)
    found = kept(table, (5, "ordered", late.to_pydatetime()))[0]
    assert found.repair is None
    assert "would break that delivered is not before ordered" in found.reason


def test_repairs_that_keep_all_formulas_stay() -> None:
    table = orders()
    early = (table.loc[5, "ordered"] - pd.Timedelta(days=1)).to_pydatetime()
    assert [each.repair for each in kept(table, (5, "ordered", early), (7, "total", None))] == [early, None]


def test_two_repairs_of_a_row_that_contradict_each_other_are_not_made() -> None:
    found = kept(orders(), (3, "total", 1.11), (3, "count", 7))
    assert [each.repair for each in found] == [None, None]


def test_a_repair_that_a_person_gave_stays_and_others_follow_it() -> None:
    table = orders()
    reader, read = TableReader.fit(read_frame(table), None)
    rules = [each for each in reader.relations if isinstance(each, Arithmetic)]
    given = Finding(3, "count", None, 1.0, 7, None, None, "it was decided", "decided")
    total = Finding(3, "total", None, 0.9, 1.11, None, None, "it is odd")
    found = in_keeping([given, total], read, rules)
    assert found[0] == given
    assert found[1].repair == pytest.approx(7 * table.loc[3, "price"])


def test_text_is_repaired_as_it_is_written() -> None:
    table = orders().drop(columns=["ordered", "delivered"])
    table["total"] = [f"{total:.2f} EUR" for total in table["total"]]
    assert kept(table, (3, "total", "1.11 EUR"))[0].repair == table.loc[3, "total"]


# ---------------------------------------------------------------- exchanged cells


def swapped(column: str, value: str, repair: str | None, cause: str = EXCHANGED) -> Finding:
    reason = f"{column} is {value}; probably exchanged"
    return Finding(3, column, value, 0.9, repair, None, None, reason, cause, 0.9)


def test_two_exchanged_cells_are_both_repaired() -> None:
    pair = [swapped("born", "2007-05-05", "1985-02-14"), swapped("hired", "1985-02-14", "2007-05-05")]
    assert both_or_neither(pair) == pair


@pytest.mark.parametrize(
    "other",
    [
        swapped("hired", "1985-02-14", None),
        swapped("hired", "1985-02-14", "2007-05-06"),
        swapped("hired", "1985-02-14", "2007-05-05", "day"),
    ],
)
def test_of_two_exchanged_cells_none_is_repaired_alone(other: Finding) -> None:
    first, second = both_or_neither([swapped("born", "2007-05-05", "1985-02-14"), other])
    assert first.repair is None
    assert first.reason.endswith("Left as it is: the other cell is not sure enough")
    assert (second.repair is None) == (other.cause == EXCHANGED)
