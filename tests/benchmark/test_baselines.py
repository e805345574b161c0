"""One contract for every detector, and what is particular to each baseline."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from scipy.optimize import minimize
from sklearn.mixture import GaussianMixture

from cellmend.table.readtable import read_typed
from cellmend.table.schema import Schema
from cellmend_bench import neural
from cellmend_bench.baselines import Frequencies, Marginals, Mixture, OneClassSVMRows, SVMAndMarginals, one_hot
from cellmend_bench.boosting import LightGBMAndMarginals, LightGBMColumns, rank_tail
from cellmend_bench.methods import METHODS
from cellmend_bench.neural import CondPred, DeepRPCA, fit_cond_preds, fit_deep_rpcas, shorten_rows

RNG = np.random.default_rng(0)
ROWS_ONLY = {"OC-SVM", "Isolation Forest"}
# By one far point: a mixture gives it a component of its own, an autoencoder learns it, a head needs more epochs.
FOOLED = {"Marginals", "DeepRPCA", "RVAE-AVI"}
NO_REPAIR = ROWS_ONLY | {"OC-SVM + Marginals", "LightGBM + Marginals"}


def mixed(rows: int = 300) -> pd.DataFrame:
    """Two numbers and a category that follow one another, with gaps."""
    x = np.random.default_rng(0).normal(size=rows)
    table = pd.DataFrame({"a": x, "sign": np.where(x > 0, "plus", "minus"), "b": 2 * x}).round(3)
    table.loc[0, "a"] = np.nan
    table.loc[1, "sign"] = None
    return table


SCHEMA = Schema.from_dict({"a": "real", "sign": {"kind": "category", "levels": ["minus", "plus"]}, "b": "real"})


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(neural, "EPOCHS", 30)
    monkeypatch.setattr(DeepRPCA, "ROUNDS", 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_detector_keeps_the_contract(name: str) -> None:
    setting = {"epochs": 5, "hidden_dim": 16} if name.startswith(("RVAE", "VAE")) else {}
    dirty = mixed()
    dirty.loc[7, "b"] = 60.0
    before = dirty.copy(deep=True)
    method = METHODS[name]
    detector = method.asked(method.make(schema=SCHEMA, random_state=0, device="cpu", **setting).fit(dirty))
    rows = detector.row_scores(dirty)
    assert rows.shape == (len(dirty),)
    assert np.isfinite(rows).all()
    assert hasattr(detector, "cell_scores") == (name not in ROWS_ONLY)
    assert hasattr(detector, "reconstruct") == (name not in NO_REPAIR)
    if name not in FOOLED:
        assert rows[7] > np.quantile(rows, 0.9)
    if hasattr(detector, "cell_scores"):
        cells = detector.cell_scores(dirty)
        assert cells.shape == dirty.shape
        assert np.isfinite(cells).all()
        assert cells[0, 0] == cells[1, 1] == 0
    if hasattr(detector, "reconstruct"):
        expected = detector.reconstruct(dirty)
        pd.testing.assert_series_equal(expected.dtypes, dirty.dtypes)
        assert expected.shape == dirty.shape
        probabilities = detector.reconstruct_proba(dirty)["sign"]
        assert list(probabilities.columns) == ["minus", "plus"]
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-4)
    pd.testing.assert_frame_equal(dirty, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name not in ROWS_ONLY])
def test_counts_ordinals_and_impossible_values_are_no_trouble(name: str) -> None:
    setting = {"epochs": 2, "hidden_dim": 16} if name.startswith(("RVAE", "VAE")) else {}
    table = mixed(120).assign(k=RNG.poisson(2.0, 120).astype(float), o=RNG.integers(1, 5, 120))
    table.loc[4, "k"] = -2.5
    schema = Schema.from_dict(SCHEMA.to_dict() | {"k": "count", "o": "ordinal"})
    detector = METHODS[name].make(schema=schema, random_state=0, device="cpu", **setting).fit(table)
    scores = detector.cell_scores(table)
    assert np.isfinite(scores).all()
    assert scores[4, 3] == scores[:, 3].max()
    if hasattr(detector, "reconstruct"):
        assert detector.reconstruct(table).shape == table.shape
        assert detector.reconstruct_proba(table)["o"].shape == (120, 4)


def test_weight_decay_holds_cond_pred_to_the_mean() -> None:
    table = mixed()
    held = CondPred(schema=SCHEMA, weight_decay=1000.0).fit(table).reconstruct(table)
    assert held["b"].std() < 0.3 * table["b"].std()


def test_one_hot_rows_are_zero_where_a_cell_is_unknown() -> None:
    detector = Marginals(schema=SCHEMA)
    rows = one_hot(detector.start(mixed()), detector.columns)
    assert rows.shape == (300, 4)
    assert rows[1, 2:].tolist() == [0, 0]
    assert rows[2, 2:].sum() == 1


def test_a_mixture_of_one_is_the_gaussian_of_the_column() -> None:
    values = np.sort(RNG.normal(3.0, 2.0, 400))
    mixture = Mixture._fit(values, np.ones(400), components=1)
    expected = stats.norm.logpdf(values, values.mean(), values.std())
    np.testing.assert_allclose(mixture.log_density(values), expected, rtol=1e-6)


def test_components_are_chosen_by_bic_and_as_good_as_those_of_scikit_learn() -> None:
    values = np.concatenate([RNG.normal(-5, 0.5, 500), RNG.normal(0, 1.0, 500), RNG.normal(6, 0.3, 500)])
    mixture = Mixture.fit(values)
    assert len(mixture.weights) == 3
    other = GaussianMixture(3, random_state=0).fit(values[:, None]).score(values[:, None])
    assert mixture.log_density(values).mean() == pytest.approx(other, abs=0.02)


def test_marginals_expect_the_nearest_component_and_the_frequencies() -> None:
    mixture = Mixture(np.array([0.9, 0.1]), np.array([-5.0, 5.0]), np.array([9.0, 0.1]))
    assert mixture.expect(np.array([-4.0, 9.0])).tolist() == [-5.0, 5.0]  # nearest, not most probable
    frequencies = Frequencies.fit(np.array([0.0, 0.0, 1.0]), 2)
    np.testing.assert_allclose(frequencies.shares, [2 / 3, 1 / 3], atol=1e-3)


def test_svm_and_marginals_add_log_probabilities() -> None:
    table = mixed()
    both = SVMAndMarginals(schema=SCHEMA).fit(table)
    cells = both.encoder_.encode(read_typed(table))
    inside = both.svm_.log_inside(cells)
    assert (inside < 0).all()
    np.testing.assert_allclose(both.judge(cells), both.marginals_.judge(cells) - inside[:, None])
    alone = OneClassSVMRows(schema=SCHEMA).fit(table)
    assert stats.spearmanr(alone.row_scores(table), -inside).statistic > 0.99


def test_the_proximal_step_minimises_what_it_should() -> None:
    """min over s of  sparsity |s| + |x - s|² / 2, numerically."""
    x = RNG.normal(size=3)
    found = minimize(lambda s: 0.7 * np.linalg.norm(s) + 0.5 * np.square(x - s).sum(), x, method="Nelder-Mead").x
    np.testing.assert_allclose(shorten_rows(torch.tensor(x)[None], 0.7)[0], found, atol=1e-3)


def test_deep_rpca_splits_a_row_into_its_parts() -> None:
    table = mixed()
    model = DeepRPCA(schema=SCHEMA, sparsity=0.1).fit(table)
    cells = model.encoder_.encode(read_typed(table))
    low_rank, sparse = model.split(cells)
    residual = one_hot(cells, model.columns) - low_rank.numpy()
    np.testing.assert_allclose(sparse, shorten_rows(torch.tensor(residual), 0.1), atol=1e-5)
    np.testing.assert_allclose(model.judge_rows(cells), sparse.norm(dim=1), rtol=1e-5)
    np.testing.assert_allclose(model.judge(cells).sum(axis=1), sparse.square().sum(dim=1), rtol=1e-5)


def test_cond_pred_does_not_look_at_the_cell_it_predicts() -> None:
    table = mixed()
    model = CondPred(schema=SCHEMA).fit(table)
    other = table.copy()
    other.loc[5, "b"] = 77.0
    before, after = model.reconstruct(table), model.reconstruct(other)
    assert before.loc[5, "b"] == after.loc[5, "b"]
    assert before.loc[5, "a"] != after.loc[5, "a"]


def test_cond_pred_learns_each_column_from_the_others() -> None:
    table = mixed()
    expected = CondPred(schema=SCHEMA).fit(table).reconstruct(table)
    assert np.corrcoef(expected["b"], table["b"])[0, 1] > 0.95
    assert (expected["sign"] == table["sign"]).mean() > 0.9


def test_cond_preds_fitted_together_learn_what_each_would_alone() -> None:
    tables = [mixed(), mixed().assign(b=lambda t: -t["b"])]
    models = [CondPred(schema=SCHEMA), CondPred(schema=SCHEMA, random_state=1)]
    fit_cond_preds(models, tables)
    for model, table in zip(models, tables, strict=True):
        assert np.corrcoef(model.reconstruct(table)["b"], table["b"])[0, 1] > 0.9


def test_deep_rpcas_fitted_together_split_as_each_would_alone() -> None:
    tables = [mixed(150), mixed(150).assign(b=lambda t: -t["b"])]
    alone = [DeepRPCA(schema=SCHEMA, sparsity=s).fit(table) for s, table in zip((0.01, 0.1), tables, strict=True)]
    together = [DeepRPCA(schema=SCHEMA, sparsity=s) for s in (0.01, 0.1)]
    fit_deep_rpcas(together, tables)
    for one, other, table in zip(alone, together, tables, strict=True):
        agreement = np.corrcoef(one.row_scores(table), other.row_scores(table))[0, 1]
        assert agreement > 0.9


def test_boosting_predicts_out_of_fold() -> None:
    """Pure noise cannot be predicted by trees that did not see it."""
    table = pd.DataFrame(RNG.normal(size=(400, 3)), columns=["x", "y", "z"])
    model = LightGBMColumns(schema={"x": "real", "y": "real", "z": "real"}).fit(table)
    assert abs(np.corrcoef(model.reconstruct(table)["x"], table["x"])[0, 1]) < 0.2
    assert model.reconstruct(table.iloc[:10]).shape == (10, 3)


def test_rank_tails_are_summed_and_a_row_is_its_worst_cell() -> None:
    table = mixed()
    model = LightGBMAndMarginals(schema=SCHEMA).fit(table)
    cells = model.encoder_.encode(read_typed(table))
    marginals = rank_tail(model.marginals_.judge_known(cells)) * [1, 1, 0]  # of numbers; the level stands last
    expected = rank_tail(model.trees_.judge_known(cells)) + marginals
    np.testing.assert_allclose(model.judge(cells), expected)
    observed = cells.observed.numpy()
    np.testing.assert_allclose(model.row_scores(table), np.where(observed, expected, 0).max(axis=1))
