from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cellmend import CellMender
from cellmend_bench.dirt import equal, kind_of_error, load_pair, measure_pair, pairs
from cellmend_bench.errors import MissingDatasetError
from cellmend_bench.methods import true_rates
from tests.conftest import SMALL


@pytest.fixture
def data(tmp_path, monkeypatch):
    """One pair: a misspelled city and a cell that is empty."""
    clean = pd.DataFrame({"city": ["Birmingham", "Florence", "Huntsville"] * 40, "n": [str(k % 7) for k in range(120)]})
    dirty = clean.copy()
    dirty.loc[3, "city"], dirty.loc[9, "n"] = "Birmxngham", ""
    folder = tmp_path / "dirt" / "some" / "towns"
    folder.mkdir(parents=True)
    dirty.to_csv(folder / "dirty.csv.gz", index=False)
    clean.to_csv(folder / "clean.csv.gz", index=False)
    monkeypatch.setenv("CELLMEND_DATA", str(tmp_path))
    return tmp_path


def test_pairs_are_found_and_empty_cells_left_out(data) -> None:
    assert pairs() == ["some/towns"]
    pair = load_pair("some/towns")
    assert np.argwhere(pair.wrong).tolist() == [[3, 0]]
    assert np.argwhere(pair.empty).tolist() == [[9, 1]]
    with pytest.raises(MissingDatasetError, match="some/rivers"):
        load_pair("some/rivers")


@pytest.mark.slow
def test_a_misspelled_city_is_found_and_repaired(data) -> None:
    pair = load_pair("some/towns")
    found = measure_pair(CellMender(**SMALL).fit(pair.dirty), pair)
    assert (found["wrong"], found["recall"], found["repaired_right"], found["made_worse"]) == (1, 1.0, 1.0, 0)
    assert found["found_by_kind"] == {"typo": [1, 1]}


def test_cells_are_compared_as_text_or_as_numbers() -> None:
    one = pd.DataFrame({"a": ["1.50", "x ", "7", ""]})
    assert equal(one, pd.DataFrame({"a": ["1.5", "x", "7.1", "0"]})).ravel().tolist() == [True, True, False, False]


def test_kinds_of_errors() -> None:
    assert kind_of_error("Rome", "Oslo", {"Rome"}) == "another level"
    assert kind_of_error("nonsense", "Oslo", {"Rome"}) == "other text"


def test_true_rates_are_those_of_rows_where_errors_come_in_rows() -> None:
    wrong = np.zeros((100, 5), dtype=bool)
    wrong[:10, :2] = True
    rates = true_rates(wrong, rare=0.0)
    assert (rates.rows, rates.cells, rates.columns) == (0.1, 0.4, (0.0,) * 5)
