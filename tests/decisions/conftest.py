"""A table whose errors only people know, and a model of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cellmend import CellMender
from tests.conftest import SMALL


def harvest(rows: int = 300) -> pd.DataFrame:
    """Fields and what they gave; every third weight was written in pounds, which nothing but the unit tells."""
    rng = np.random.default_rng(0)
    weight = rng.integers(10, 99, rows)
    unit = np.where(np.arange(rows) % 3 == 0, " lb", "")
    crop = np.array(["wheat", "barley", "oats"])[rng.integers(0, 3, rows)]
    return pd.DataFrame({"crop": crop, "weight": [f"{w}{u}" for w, u in zip(weight, unit, strict=True)]})


def verdict(table: pd.DataFrame, row: int, column: str) -> dict[str, object]:
    """What a person says who knows that weights are without units."""
    value = table[column][row]
    if value.endswith(" lb"):
        return {"row": row, "column": column, "value": value, "verdict": "wrong", "repair": value.removesuffix(" lb")}
    return {"row": row, "column": column, "value": value, "verdict": "right"}


@pytest.fixture(scope="session")
def fields() -> pd.DataFrame:
    return harvest()


@pytest.fixture(scope="session")
def untaught(fields: pd.DataFrame) -> CellMender:
    """Fitted to the fields; tests must teach copies of it."""
    return CellMender(**SMALL).fit(fields)
