"""The same code on a GPU, where there is one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch

from cellmend import PAPER, CellMender, load
from cellmend.model.optimiser import Captured, each_batch
from cellmend_bench.together import fit_together
from tests.conftest import SMALL, mixed_table

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


PUBLISHED = [
    PAPER | SMALL | {"weights": weights, "repair_method": method}
    for weights in ("coordinate", "amortized", "none")
    for method in ("map", "one-stage", "two-stage")
]


@pytest.mark.parametrize("settings", [*PUBLISHED, SMALL, SMALL | {"networks": 2}])
def test_fit_score_repair_and_save_on_a_gpu(settings, tmp_path) -> None:
    table = mixed_table().drop(columns=["id", "country"])
    mender = CellMender(**settings, device="cuda").fit(table)
    assert next(mender.network_.parameters()).is_cuda
    mender.findings(table)
    pd.testing.assert_series_equal(mender.repair(table, impute=True).dtypes, table.dtypes)
    mender.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").cell_scores(table), mender.cell_scores(table))
    again = CellMender(**settings, device="cuda").fit(table)
    np.testing.assert_array_equal(again.cell_scores(table), mender.cell_scores(table))


def test_scores_on_a_gpu_are_those_of_the_cpu() -> None:
    table = mixed_table().drop(columns=["id", "country"])
    mender = CellMender(**SMALL, device="cpu").fit(table)
    scores = mender.cell_scores(table)
    mender.network_.to("cuda")
    np.testing.assert_allclose(mender.cell_scores(table), scores, rtol=1e-3, atol=1e-4)


def test_menders_are_fitted_together_on_a_gpu() -> None:
    table = mixed_table().drop(columns=["id", "country"])
    menders = [CellMender(**SMALL, alpha=alpha, device="cuda") for alpha in (0.9, 0.95, 0.99)]
    fit_together(menders, [table] * 3)
    assert all(np.isfinite(mender.row_scores(table)).all() for mender in menders)


def test_captured_steps_train_as_plain_ones_do(monkeypatch) -> None:
    """Three batches an epoch, the last one short; the graphs take over after the first epoch."""
    table = mixed_table().drop(columns=["id", "country"])
    settings = SMALL | {"epochs": 10, "batch_size": 50, "device": "cuda"}
    captured = CellMender(**settings).fit(table)
    monkeypatch.setattr("cellmend.model.optimiser.Captured", lambda step, size, generator: each_batch(step, size))
    plain = CellMender(**settings).fit(table)
    np.testing.assert_allclose(captured.history_, plain.history_, rtol=0.02)
    assert captured.history_[-1] > captured.history_[0]


def test_every_row_is_seen_once_an_epoch_whether_steps_are_captured_or_not() -> None:
    """41 batches of 3 rows and one of 2: a graph of many steps, graphs of one, and a short last batch."""
    seen = torch.zeros(125, device="cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    epoch = Captured(lambda rows: seen.index_add_(0, rows, torch.ones(len(rows), device="cuda")), 3, generator)
    for number in range(1, 5):
        epoch(torch.randperm(125, device="cuda"))
        assert (seen == number).all()
    assert set(epoch.graphs) == {(32, 3), (1, 3), (1, 2)}  # steps, and rows of each


def test_without_memory_for_graphs_steps_run_as_they_are(monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.cuda.OutOfMemoryError

    table = mixed_table().drop(columns=["id", "country"])
    monkeypatch.setattr("torch.cuda.graph", full)
    mender = CellMender(**SMALL, device="cuda").fit(table)
    assert mender.history_[-1] > mender.history_[0]


def test_scoring_from_many_threads_is_scoring_from_one() -> None:
    table = mixed_table(2000).drop(columns=["id", "country"])
    mender = CellMender(**SMALL, device="cuda").fit(table)
    expected = mender.cell_scores(table)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: mender.cell_scores(table), range(40)):
            np.testing.assert_array_equal(found, expected)


def test_fitting_in_two_threads_is_fitting_in_one() -> None:
    table = mixed_table().drop(columns=["id", "country"])

    def history(_: int) -> list[float]:
        return CellMender(**SMALL, device="cuda").fit(table).history_

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(history, range(4)):
            np.testing.assert_allclose(found, history(0), rtol=0.02)


def test_steps_that_cannot_be_captured_run_as_they_are() -> None:
    """Asking the device for a number waits for it, which a captured step cannot."""
    seen, drawn = torch.zeros(100, device="cuda"), []
    generator = torch.Generator("cuda").manual_seed(0)

    def step(rows: torch.Tensor) -> None:
        drawn.append(float(torch.rand((), generator=generator, device="cuda")))
        seen.index_add_(0, rows, torch.ones(len(rows), device="cuda"))

    epoch = Captured(step, 10, generator)
    for number in range(1, 4):
        epoch(torch.randperm(100, device="cuda"))
        assert (seen == number).all()
    assert not epoch.possible
    assert len(set(drawn)) == 30


def test_a_last_batch_smaller_than_the_levels_is_captured_too() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 60, 205).astype(str), "b": rng.integers(0, 3, 205).astype(str)})
    settings = SMALL | {"epochs": 4, "batch_size": 100, "schema": {"a": "category", "b": "category"}}
    menders = [CellMender(**settings, device="cuda") for _ in range(40)]
    fit_together(menders, [table] * 40)
    assert np.isfinite([mender.history_ for mender in menders]).all()
