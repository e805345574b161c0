"""Repairs that would break a rule which the row kept are not made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cellmend.findings.finding import Finding
from cellmend.findings.unbroken import unbroken
from cellmend.table.causes.named import DECIDED
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader

NAMES = ("Stapler", "Mouse pad", "Desk lamp", "Paper tray", "Webcam", "Scissors", "Door mat", "USB hub")


def sales(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    article = np.arange(rows) % len(NAMES)
    return pd.DataFrame(
        {
            "order": 5000 + rng.permutation(rows),
            "article": [f"A{at:02d}" for at in article],
            "name": [NAMES[at] for at in article],
            "pieces": rng.integers(1, 30, rows),
        }
    )


@pytest.fixture(scope="module")
def reader() -> TableReader:
    found, _ = TableReader.fit(read_frame(sales()), {"order": {"kind": "ignore", "reason": "identifier"}})
    assert "article decides name" in [each.words() for each in found.relations]
    return found


def kept(reader: TableReader, table: pd.DataFrame, *repairs: tuple[int, str, object], cause: str = "") -> list[Finding]:
    found = [Finding(row, name, None, 0.9, repair, None, None, "odd", cause=cause) for row, name, repair in repairs]
    return unbroken(found, reader.read(read_frame(table)), reader.relations, ["order"])


def test_a_row_that_keeps_a_learned_dependency_goes_on_to_keep_it(reader: TableReader) -> None:
    (found,) = kept(reader, sales(8), (1, "name", "Stapler"))
    assert found.repair is None
    assert found.reason.startswith("odd. Abstained: Stapler would break that ")


def test_a_new_article_keeps_the_name_that_it_has_in_the_newer_table(reader: TableReader) -> None:
    table = sales(80)
    table.loc[[10, 20, 30], ["article", "name"]] = "A21", "Sticky notes"
    assert kept(reader, table, (10, "name", "Stapler"))[0].repair is None
    assert kept(reader, table, (10, "article", "A00"))[0].repair is None


def test_repairs_that_mend_a_row_or_go_together_stay(reader: TableReader) -> None:
    table = sales(80)
    table.loc[1, "name"] = "Mouse pda"
    table.loc[10, ["article", "name"]] = "A21", "Sticky notes"
    repairs = [(1, "name", "Mouse pad"), (2, "article", "A00"), (2, "name", "Stapler"), (3, "pieces", 7)]
    assert [each.repair for each in kept(reader, table, *repairs)] == [repair for *_, repair in repairs]


def test_what_a_person_decided_stays(reader: TableReader) -> None:
    assert kept(reader, sales(8), (1, "name", "Stapler"), cause=DECIDED)[0].repair == "Stapler"


def test_an_identifier_is_not_repaired_to_that_of_another_row(reader: TableReader) -> None:
    table = sales(80)
    assert kept(reader, table, (1, "order", int(table["order"][5])))[0].repair is None
    assert kept(reader, table, (1, "order", 4000))[0].repair == 4000
    doubled = table.assign(order=table["order"].where(table.index != 7, table["order"][8]))
    assert kept(reader, doubled, (1, "order", int(table["order"][5])))[0].repair is not None, "it names no row"
