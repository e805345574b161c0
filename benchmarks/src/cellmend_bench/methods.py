"""The methods that are compared: how each is made, what is asked of it, and how labels choose its setting."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellmend.estimator import CellMender
from cellmend.evaluation.evaluation import cell_avprs
from cellmend.model.suspicion import ErrorRates
from cellmend.settings import PAPER
from cellmend.table.schema import Schema
from cellmend_bench.baselines import IsolationForestRows, Marginals, OneClassSVMRows, SVMAndMarginals
from cellmend_bench.boosting import LightGBMAndMarginals, LightGBMColumns
from cellmend_bench.corruption import corrupt
from cellmend_bench.datasets import Dataset, load_dataset
from cellmend_bench.neural import CondPred, DeepRPCA, fit_cond_preds, fit_deep_rpcas
from cellmend_bench.together import fit_together

DECAYS = (0.0, 0.1, 1.0, 5.0, 10.0, 100.0)
SPARSITIES = (0.001, 0.01, 0.1, 1.0)
VALIDATION_SHARE = 0.1  # of the rows, labelled, to choose a baseline's setting; RVAE never sees labels
VALIDATION_ROWS = 8000  # that a candidate learns from at most, the labelled ones among them
VALIDATION_LEVEL = 0.05
VALIDATION_SEED = 2020  # a corruption that no experiment uses

Setting = dict[str, float]


@dataclass(frozen=True)
class Method:
    """How a detector is made, which settings a labelled part chooses from, and what is asked of it."""

    make: Callable[..., Any]  # (schema=, random_state=, device=, **setting)
    grid: tuple[Setting, ...] = ({},)
    together: Callable[[Sequence[Any], Sequence[Any]], None] | None = None  # fits many as one on a GPU
    fitted_as: str | None = None  # the method whose fit it shares: it only asks something else of it
    score: str | None = None
    asked: Callable[[Any], Any] = lambda detector: detector  # what of the fitted detector answers
    fit: Callable[[Any, Any, Any, Any], None] = lambda detector, clean, dirty, wrong: detector.fit(dirty)


def _ours(*, schema: Schema, random_state: int, device: str, **setting: Any) -> CellMender:
    return CellMender(**setting, schema=schema, random_state=random_state, device=device)


def _mender(*, schema: Schema, random_state: int, device: str, **setting: Any) -> CellMender:
    return CellMender(**PAPER | setting, schema=schema, random_state=random_state, device=device)


def _on_cpu(kind: Callable[..., Any], *, schema: Schema, random_state: int, device: str, **setting: Any) -> Any:
    return kind(schema=schema, random_state=random_state, **setting)


def _repairing(method: str) -> Callable[[CellMender], CellMender]:
    return lambda mender: copy.copy(mender).set_params(repair_method=method)


def _tell_the_truth(mender: CellMender, clean: Any, dirty: Any, wrong: NDArray[np.bool_]) -> None:
    """What our network could do at best: it learns the clean table, and is told how often rows and columns err."""
    model = mender.fit(clean).model_
    own = wrong[:, model.encoder.positions]
    rates = true_rates(own, rare=model.calibration.rates.rare)
    mender.model_ = replace(model, calibration=replace(model.calibration, rates=rates))


def true_rates(wrong: NDArray[np.bool_], *, rare: float) -> ErrorRates:
    """The rates of errors (N, D) that lie in rows, or in columns, whichever explains better why rows differ.

    >>> true_rates(np.eye(4, dtype=bool)[[0, 0, 1, 1]], rare=0.0).columns
    (0.5, 0.5, 0.0, 0.0)
    """
    dirty = wrong.any(axis=1)
    in_dirty = float(wrong[dirty].mean()) if dirty.any() else 0.0
    by_chance = 1 - float(np.prod(1 - wrong.mean(axis=0)))  # rows that would have an error, if only columns erred
    if dirty.mean() < 0.8 * by_chance:
        return ErrorRates(float(dirty.mean()), max(in_dirty, 1e-3), rare, (0.0,) * wrong.shape[1])
    return ErrorRates(1e-4, 0.2, rare, tuple(wrong.mean(axis=0).tolist()))


_DECAYS = tuple({"weight_decay": decay} for decay in DECAYS)
_TREES = partial(_on_cpu, LightGBMAndMarginals)
CEILING = "cellmend, told the truth"
METHODS: dict[str, Method] = {
    "cellmend": Method(_ours, together=fit_together),
    CEILING: Method(_ours, fit=_tell_the_truth),
    "RVAE": Method(_mender, together=fit_together),
    "RVAE nll": Method(_mender, together=fit_together, fitted_as="RVAE", score="nll"),
    "RVAE one-stage": Method(_mender, together=fit_together, fitted_as="RVAE", asked=_repairing("one-stage")),
    "RVAE two-stage": Method(_mender, together=fit_together, fitted_as="RVAE", asked=_repairing("two-stage")),
    "RVAE-AVI": Method(partial(_mender, weights="amortized"), together=fit_together),
    "VAE": Method(partial(_mender, weights="none"), together=fit_together),
    "VAE-L2": Method(partial(_mender, weights="none"), grid=_DECAYS, together=fit_together),
    "CondPred": Method(CondPred, together=fit_cond_preds),
    "CondPred-L2": Method(CondPred, grid=_DECAYS, together=fit_cond_preds),
    "DeepRPCA": Method(DeepRPCA, grid=tuple({"sparsity": s} for s in SPARSITIES), together=fit_deep_rpcas),
    "Marginals": Method(partial(_on_cpu, Marginals)),
    "OC-SVM": Method(partial(_on_cpu, OneClassSVMRows)),
    "OC-SVM + Marginals": Method(partial(_on_cpu, SVMAndMarginals)),
    "Isolation Forest": Method(partial(_on_cpu, IsolationForestRows)),
    "LightGBM + Marginals": Method(_TREES),
    "LightGBM": Method(_TREES, fitted_as="LightGBM + Marginals", asked=lambda detector: detector.trees_),
    "LightGBM l1": Method(partial(_on_cpu, LightGBMColumns, loss="l1")),
}


@cache
def dataset_of(table: str, most_rows: int | None = None) -> Dataset:
    """The table, read once; of more rows than these a fixed sample."""
    whole = load_dataset(table)
    if most_rows is None or len(whole.frame) <= most_rows:
        return whole
    rows = np.sort(np.random.default_rng(0).choice(len(whole.frame), most_rows, replace=False))
    return replace(whole, frame=whole.frame.iloc[rows].reset_index(drop=True), outlier=None)


@cache
def choose(table: str, name: str, device: str) -> Setting:
    """The setting of the grid with the best cell AVPR on a labelled tenth of the rows.

    As when a method is measured, it learns from the rows that it is asked about, without their labels.
    """
    method = METHODS[name]
    if len(method.grid) == 1:
        return method.grid[0]
    dataset = dataset_of(table)
    dirty, mask = corrupt(dataset.frame, dataset.schema, noise="gaussian", rows=VALIDATION_LEVEL, seed=VALIDATION_SEED)
    order = np.random.default_rng(VALIDATION_SEED).permutation(len(dirty))
    labelled, learned = order[: round(VALIDATION_SHARE * len(dirty))], dirty.iloc[order[:VALIDATION_ROWS]]
    detectors = [method.make(schema=dataset.schema, random_state=0, device=device, **each) for each in method.grid]
    if device != "cpu" and method.together is not None:
        method.together(detectors, [learned] * len(detectors))
    else:
        for detector in detectors:
            detector.fit(learned)

    def quality(detector: Any) -> float:
        scores = detector.cell_scores(dirty.iloc[labelled])
        return float(np.nanmean(cell_avprs(scores, mask[labelled]))) if np.isfinite(scores).all() else -np.inf

    return method.grid[int(np.argmax([quality(detector) for detector in detectors]))]
