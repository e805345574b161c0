"""What two models say of a messy table stays as it was: scores, findings, repairs and the report.

Models of before, whose evidence was weighed otherwise, go on to load and to answer, though not in the same numbers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from cellmend import CellMender, load
from cellmend.findings.finding import FINDINGS
from cellmend.posterior.weigher import learned
from cellmend.table.causes.named import MEANINGS
from tests.golden.make import HERE, MODELS, read_messy, scores, write_answers

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


# ---------------------------------------------------------------- models of before


@pytest.fixture(params=MODELS)
def old(request: pytest.FixtureRequest) -> CellMender:
    """A model that an older cellmend wrote."""
    return load(HERE / "before" / f"{request.param}.cellmend")


def test_models_of_before_answer(old: CellMender) -> None:
    table = read_messy()
    for kind, values in scores(old, table).items():
        assert np.isfinite(values).all(), kind
    suspicion = old.cell_suspicion(table).to_numpy()
    assert suspicion.shape == table.shape
    assert ((suspicion >= 0) & (suspicion <= 1)).all()
    place = table.columns.get_loc("size")
    assert suspicion[20, place] > 0.9, "999 cm"
    mended = old.mend(table)
    assert list(mended.findings.columns) == FINDINGS.names
    assert set(mended.findings["cause"]) <= set(MEANINGS)
    assert (20, "size") in {(each.row, each.column) for each in mended.found}
    found = {(each.row, each.column) for each in mended.found if each.repair is not None}
    changed = (mended.repaired != table).to_numpy()
    assert {(int(row), table.columns[at]) for row, at in zip(*changed.nonzero(), strict=True)} <= found


def test_models_of_before_are_saved_and_loaded_again(old: CellMender, tmp_path: Path) -> None:
    table = read_messy()
    old.save(tmp_path / "again.cellmend")
    again = load(tmp_path / "again.cellmend")
    pd.testing.assert_frame_equal(again.cell_suspicion(table), old.cell_suspicion(table), check_exact=True)


def test_a_model_of_before_has_no_evidence_and_one_of_today_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(HERE / "before" / "default.cellmend").model_.weighing is None
    assert load(HERE / "paper.cellmend").model_.weighing is None
    monkeypatch.setattr("cellmend.posterior.weigher.learned", lambda: pytest.fail("the weights of the package"))
    mender = load(HERE / "default.cellmend")
    assert mender.cell_suspicion(read_messy()).notna().all(axis=None)


def test_all_weights_of_the_package_are_finite() -> None:
    assert not [name for name, each in learned().state_dict().items() if not torch.isfinite(each).all()]
