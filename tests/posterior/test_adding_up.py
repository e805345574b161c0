"""All evidence adds up, from a table to the suspicion of a cell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cellmend import CellMender
from tests.conftest import SMALL

ROWS, GROUPS, WRONG = 400, 10, 57


def addresses(deciders: int) -> pd.DataFrame:
    """City, branch and dealer, of which the first ones each decide the zip, and one zip that is another's."""
    rng = np.random.default_rng(5)
    group = rng.integers(0, GROUPS, ROWS)
    group[WRONG] = 3
    cities = ["Denver", "Boston", "Austin", "Fresno", "Tulsa", "Omaha", "Miami", "Tampa", "Mesa", "Reno"]
    dealers = ["Abel", "Baker", "Cole", "Dunn", "Eaton", "Flores", "Gray", "Hale", "Irwin", "Jones"]
    words = [cities, [f"B{n}" for n in range(GROUPS)], dealers]
    columns = {
        name: np.array(each)[group if at < deciders else rng.permutation(group)]
        for at, (name, each) in enumerate(zip(("city", "branch", "dealer"), words, strict=True))
    }
    zips = np.array([f"{10_000 + 7_919 * n}" for n in range(GROUPS)])[group]
    zips[WRONG] = f"{10_000 + 7_919 * 8}"
    return pd.DataFrame({**columns, "zip": zips})


def suspicion(deciders: int) -> np.ndarray:
    table = addresses(deciders)
    return np.asarray(CellMender(**SMALL).fit(table).cell_suspicion(table))


@pytest.mark.filterwarnings("ignore")
def test_a_zip_that_three_columns_contradict_is_at_least_as_suspicious_as_one_that_a_single_one_does() -> None:
    three, one = suspicion(3), suspicion(1)
    assert three[WRONG, 3] >= one[WRONG, 3]
    assert three[:, 3].argmax() == one[:, 3].argmax() == WRONG
    assert three[WRONG, 3] > 10 * np.delete(three, WRONG, axis=0).max()
    assert three[WRONG, 3] > 10 * three[WRONG, :3].max()  # the zip is to blame, not the three
