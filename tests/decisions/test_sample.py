"""Decided cells as a sample of their table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cellmend.decisions.portrait import Portrait, Seen
from cellmend.decisions.sample import OTHERS, Sample
from cellmend.table.readtable import read_typed

ROWS = 60


@pytest.fixture
def seen() -> Seen:
    table = read_typed(pd.DataFrame({"crop": ["oats"] * (ROWS - 1) + ["rye"], "weight": np.arange(ROWS).astype(str)}))
    suspicion = np.full((ROWS, 2), 0.01)
    suspicion[-1, 0] = 0.8
    return Portrait.of(table, suspicion).see(table, suspicion)


def test_a_single_cell_stands_for_its_share_of_those_that_are_alike(seen: Seen) -> None:
    cells = [(0, 0), (1, 0), (ROWS - 1, 0)]
    examples = dict(Sample.of(seen, cells).examples(dict.fromkeys(cells, False)))
    assert [examples[cell].weight for cell in cells] == [(ROWS - 1) / 2, (ROWS - 1) / 2, 1]


def test_a_whole_row_stands_for_its_share_of_all_rows_and_all_kinds(seen: Seen) -> None:
    cells = [(row, place) for row in (3, 4) for place in (0, 1)]
    sample = Sample.of(seen, cells)
    assert {each.weight for _, each in sample.examples(dict.fromkeys(cells, False))} == {ROWS / 2}
    assert sample.others() == []


def test_kinds_of_which_nothing_was_decided_are_seen_as_the_model_has_them(seen: Seen) -> None:
    others = Sample.of(seen, [(0, 0)]).others()
    assert len(others) == OTHERS
    assert all(each.wrong == (each.marks[0] == "rye") for each in others)
    assert "oats" not in {each.marks[0] for each in others}
