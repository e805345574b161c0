from __future__ import annotations

import pandas as pd
import pytest

from cellmend import CellMender
from cellmend_bench.decided import answers, measure_decisions
from cellmend_bench.dirt import Pair, equal
from tests.conftest import SMALL
from tests.decisions.conftest import harvest


@pytest.fixture(scope="module")
def pair() -> Pair:
    dirty = harvest(120)
    clean = dirty.assign(weight=dirty["weight"].str.removesuffix(" lb"))
    return Pair(dirty, clean, ~equal(dirty, clean), dirty.isna().to_numpy())


def test_answers_are_what_the_clean_table_says(pair) -> None:
    asked = pd.DataFrame({"row": [0, 1], "column": ["weight"] * 2, "value": pair.dirty["weight"][:2]})
    wrong, right = answers(asked, pair)
    assert (wrong["verdict"], wrong["repair"]) == ("wrong", pair.clean["weight"][0])
    assert right["verdict"] == "right"
    assert "repair" not in right


@pytest.mark.slow
def test_answers_help(pair) -> None:
    """Two weights of three in pounds are usual, and only people know that all should have none."""
    pounds = pair.clean["weight"].where(pair.clean.index % 3 == 0, pair.clean["weight"] + " lb")
    dirty = pair.dirty.assign(weight=pounds)
    often = Pair(dirty, pair.clean, ~equal(dirty, pair.clean), pair.empty)
    measured = measure_decisions(CellMender(**SMALL).fit(often.dirty), often)
    assert measured["f1 20 rows"] > max(measured["f1 without"], 0.9)
    assert measured["f1 100 cells"] > 0.9
