"""What two old models say of a messy table stays as it was: scores, findings, repairs and the report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.golden.make import HERE, MODELS, write_answers

DECIMAL = re.compile(r"-?\d+\.\d+")
ROUNDING = 1e-4  # other machines add up in another order
SHOWN_ROUNDING = 2e-3  # of numbers that were rounded to be shown


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the answers of today; those of then lie in this one."""
    folder = tmp_path_factory.mktemp("now")
    for name in MODELS:
        (folder / name).mkdir()
        write_answers(name, folder / name)
    return folder


@pytest.mark.parametrize("model", MODELS)
def test_scores_stay(now: Path, model: str) -> None:
    old, new = (json.loads((folder / model / "scores.json").read_text(encoding="utf-8")) for folder in (HERE, now))
    assert old.keys() == new.keys()
    for kind, values in old.items():
        np.testing.assert_allclose(new[kind], values, rtol=0, atol=ROUNDING, err_msg=kind)


@pytest.mark.parametrize("name", ["default/findings.csv", "default/scores.csv", "paper/findings.csv"])
def test_tables_stay(now: Path, name: str) -> None:
    old, new = (read(folder / name) for folder in (HERE, now))
    pd.testing.assert_frame_equal(new, old, rtol=0, atol=ROUNDING)


def read(path: Path) -> pd.DataFrame:
    """A table, its bounds as numbers, and those that are dates beside them."""
    table = pd.read_csv(path)
    for name in table.columns.intersection(["low", "high"]):
        numbers = pd.to_numeric(table[name], errors="coerce")
        table[f"{name} date"] = table[name].where(numbers.isna())
        table[name] = numbers
    return table


@pytest.mark.parametrize("name", ["default/repaired.csv", "paper/repaired.csv", "default/report.html"])
def test_texts_stay(now: Path, name: str) -> None:
    old, new = ((folder / name).read_bytes().decode() for folder in (HERE, now))
    assert DECIMAL.split(new) == DECIMAL.split(old)
    numbers = [np.array([float(number) for number in DECIMAL.findall(text)]) for text in (new, old)]
    np.testing.assert_allclose(*numbers, rtol=0, atol=SHOWN_ROUNDING)
