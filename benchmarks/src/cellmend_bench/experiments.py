"""The nine experiments of the paper and ours: which runs they are, and how a run is made and measured."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from cellmend.errors import MissingExtraError, SchemaWarning
from cellmend.estimator import CellMender
from cellmend.evaluation.evaluation import cell_avprs
from cellmend.table.schema import Schema
from cellmend_bench.corruption import LAYOUTS, corrupt
from cellmend_bench.datasets import FURTHER_TABLES, LAYOUT_TABLES, PAPER_TABLES, ROW_OUTLIER_TABLES, Dataset
from cellmend_bench.decided import measure_decisions
from cellmend_bench.dirt import load_pair, measure_pair, pairs
from cellmend_bench.errors import MissingDatasetError, UnknownNameError
from cellmend_bench.log import LOG, LOG_ROWS, make_log
from cellmend_bench.methods import CEILING, METHODS, Setting, choose, dataset_of
from cellmend_bench.metrics import all_cells_ap, calibration, repair_errors, row_auc, row_avpr
from cellmend_bench.results import Outcome, Results, Run

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.5)
ALPHAS = (0.2, 0.5, 0.8, 0.9, 0.99)
TOGETHER = 100  # networks trained as one on a GPU


# ---------------------------------------------------------------- runs


@dataclass(frozen=True)
class Experiment:
    """What an experiment varies; `about` is one line for people."""

    about: str
    methods: tuple[str, ...]
    noises: tuple[str, ...] = ("gaussian",)
    settings: tuple[Setting, ...] = ({},)
    seeds: int = 3
    tables: tuple[str, ...] = PAPER_TABLES
    levels: tuple[float | None, ...] = LEVELS
    most_rows: int | None = None  # of a table; of more a fixed sample is taken


_ALL = tuple(
    name
    for name in METHODS
    if name not in ("cellmend", CEILING, "RVAE one-stage", "RVAE two-stage", "LightGBM l1", "VAE", "CondPred")
)
_REPAIRING = ("RVAE", "VAE-L2", "CondPred-L2", "DeepRPCA", "Marginals", "LightGBM", "LightGBM l1")
_RIVALS = ("cellmend", "RVAE", "LightGBM", "LightGBM + Marginals")
_THREE_LEVELS = (0.01, 0.05, 0.2)
_LAYOUT_NOISES = ("laplace4-0.5", "small", "other-row", "unit")
SHARES = {"rows": (0.0, 0.014, 0.07, 0.3), "columns": (0.0, 0.014, 0.07, 0.3), "cells": (0.0, 0.003, 0.014, 0.2)}
REAL_ERRORS = "real"  # in place of a noise: the table has its own errors
DECIDED = "decided"  # the same, and people answer questions about it


def _of_real_errors(about: str, noise: str, tables: tuple[str, ...] = ()) -> Experiment:
    """Our default on tables that have their own errors; without tables on all pairs that are there."""
    return Experiment(about, ("cellmend",), noises=(noise,), seeds=1, tables=tables, levels=(None,))


EXPERIMENTS: dict[str, Experiment] = {
    "detection": Experiment("finding rows and cells, Gaussian + uniform noise (Figs. 2 and 3)", _ALL),
    "l2": Experiment(
        "what L2 regularisation does for VAE and CondPred (Fig. 1)",
        ("RVAE", "RVAE nll", "VAE", "VAE-L2", "CondPred", "CondPred-L2"),
    ),
    "repair": Experiment("repairing cells (Figs. 4 and 5)", _REPAIRING),
    "noises": Experiment(
        "the other noise pairs (Fig. 6)",
        ("RVAE", "VAE-L2", "CondPred-L2", "DeepRPCA", "Marginals"),
        noises=("laplace4-0.5", "laplace4-0.8", "laplace8-0.8", "lognormal", "mixture"),
    ),
    "alpha": Experiment(
        "the prior probability of a clean cell (Fig. 7)", ("RVAE",), settings=tuple({"alpha": a} for a in ALPHAS)
    ),
    "weights": Experiment("coordinate against amortised weights (supplement 6)", ("RVAE", "RVAE-AVI")),
    "seeds": Experiment(
        "five corruptions: error bars and t-tests (supplement 8)", ("RVAE", "VAE-L2", "CondPred-L2"), seeds=5
    ),
    "inference": Experiment(
        "MAP, one-stage and two-stage (supplement 10)", ("RVAE", "RVAE one-stage", "RVAE two-stage", "CondPred-L2")
    ),
    "rows": Experiment(
        "row outliers on ten public sets (supplement 9)",
        ("RVAE", "RVAE nll"),
        noises=("",),
        tables=ROW_OUTLIER_TABLES,
        levels=(None,),
    ),
    "default": Experiment(
        "our default, the published model and the best peers", _RIVALS, seeds=5, levels=_THREE_LEVELS
    ),
    "unseen-noises": Experiment(
        "the same with noises that the default was not tuned on",
        _RIVALS,
        noises=("lognormal", "mixture"),
        levels=_THREE_LEVELS,
    ),
    "unseen-tables": Experiment(
        "the same on tables that the default was not tuned on", _RIVALS, tables=FURTHER_TABLES, levels=_THREE_LEVELS
    ),
    "layouts": Experiment(
        "errors in rows, in columns or scattered, from none (0) over few (1) to many (3)",
        ("cellmend", "RVAE", "LightGBM + Marginals", CEILING),
        noises=tuple(f"{layout} {noise}" for noise in _LAYOUT_NOISES for layout in LAYOUTS),
        seeds=1,
        tables=LAYOUT_TABLES,
        levels=(0.0, 1.0, 2.0, 3.0),
        most_rows=12_000,
    ),
    "log": _of_real_errors("a log of 50,000 rows with spikes, stuck sensors and shifts", REAL_ERRORS, tables=(LOG,)),
    "dirt": _of_real_errors("really dirty tables, clean versions known", REAL_ERRORS),
    "decisions": _of_real_errors(
        "the same after answers about 5, 10 and 20 rows, and about 20, 50 and 100 cells", DECIDED
    ),
}


@dataclass(frozen=True)
class Narrow:
    """What a user asks for of an experiment; None: all of it."""

    tables: Sequence[str] | None = None
    levels: Sequence[float] | None = None
    seeds: int | None = None
    methods: Sequence[str] | None = None


def plan(experiment: str, narrow: Narrow) -> list[Run]:
    """The runs of an experiment in their order."""
    if experiment not in EXPERIMENTS:
        raise UnknownNameError(f"The experiment must be one of {', '.join(EXPERIMENTS)}; it is {experiment!r}.")
    whole = EXPERIMENTS[experiment]
    unknown = [name for name in narrow.methods or () if name not in METHODS]
    if unknown:
        raise UnknownNameError(f"A method must be one of {', '.join(METHODS)}; one is {unknown[0]!r}.")
    methods = [name for name in whole.methods if narrow.methods is None or name in narrow.methods]
    tables = [name for name in whole.tables or pairs() if narrow.tables is None or name in narrow.tables]
    levels = [level for level in whole.levels if narrow.levels is None or level is None or level in narrow.levels]
    seeds = range(whole.seeds if narrow.seeds is None else narrow.seeds)
    return [
        Run(experiment, table, noise, level, seed, method, setting)
        for table, method, setting, noise, level, seed in itertools.product(
            tables, methods, whole.settings, whole.noises, levels, seeds
        )
    ]


Fit = list[Run]  # runs that one fitted detector answers


def groups(runs: list[Run], device: str) -> list[list[Fit]]:
    """Fits that are made as one: on a GPU the networks of one table and kind, elsewhere each for itself.

    Groups follow from the plan alone, not from what is finished: networks trained as one share their random draws.
    """
    fits: dict[str, dict[str, Fit]] = {}
    for run in runs:
        same_kind = fits.setdefault(f"{run.table} {_fitted(run.method)}", {})
        same_kind.setdefault(replace(run, experiment="", method=_fitted(run.method)).key, []).append(run)
    found = []
    for same_kind in fits.values():
        listed = list(same_kind.values())
        alone = device == "cpu" or METHODS[listed[0][0].method].together is None
        size = 1 if alone else TOGETHER
        found += [listed[first : first + size] for first in range(0, len(listed), size)]
    return found


def _fitted(method: str) -> str:
    """The method whose fit answers this one."""
    return METHODS[method].fitted_as or method


def _of_networks(group: list[Fit]) -> bool:
    """Whether the group's detectors can be trained on a GPU."""
    return METHODS[group[0][0].method].together is not None


# ---------------------------------------------------------------- making a run


Report = Callable[[int, int, str], None]  # (done, all, what) after each group
Made = tuple[list[Fit], list[Outcome], float]  # a group, the outcome of each of its runs, seconds


def run_experiments(
    experiments: Sequence[str], results: Results, narrow: Narrow, *, device: str, jobs: int, report: Report
) -> list[Outcome]:
    """Make all runs of these experiments that are not there yet; what they share is fitted once.

    Returns the lines of all of them.
    """
    if device != "cpu" and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise UnknownNameError(f"device must be cpu, or cuda where there is one; it is {device!r}.")
    runs = [run for experiment in experiments for run in plan(experiment, narrow)]
    if not runs:
        raise UnknownNameError("There must be something to run; no table, level and method asked for go together.")
    for run in runs:
        known = results.known(run, within=[name for name in EXPERIMENTS if name not in experiments])
        if known is not None:
            results.add(run, known, 0.0)
    planned = groups(runs, device)
    left = [group for group in planned if any(run.key not in results.rows for fit in group for run in fit)]
    done = len(planned) - len(left)
    report(done, len(planned), "")
    for group, outcomes, seconds in _made(left, results, device, jobs):
        for run, outcome in zip(itertools.chain(*group), outcomes, strict=True):
            results.add(run, outcome, seconds / len(outcomes))
        done += 1
        report(done, len(planned), f"{group[-1][-1].table}, {group[-1][-1].method}")
    results.arrange()
    return [results.rows[run.key] for run in runs]


def _made(left: list[list[Fit]], results: Results, device: str, jobs: int) -> Iterator[Made]:
    """Each group when it is ready: networks on a GPU here, one after the other, all else in `jobs` processes."""
    here = [group for group in left if jobs == 1 or (device != "cpu" and _of_networks(group))]
    elsewhere = [group for group in left if group not in here]
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,))
    try:
        choices = _choices(elsewhere, results, pool)
        waiting = {pool.submit(make, group, choices[_name(group)], "cpu", 1): group for group in elsewhere}
        for group in here:
            yield make(group, results.choice(*_name(group)), device, jobs)
            yield from _ready(waiting, [future for future in waiting if future.done()])
        yield from _ready(waiting, as_completed(list(waiting)))
    finally:
        pool.shutdown(cancel_futures=True)


def _ready(waiting: dict[Future[Made], list[Fit]], futures: Any) -> Iterator[Made]:
    for future in futures:
        del waiting[future]
        yield future.result()


def _name(group: list[Fit]) -> tuple[str, str]:
    return group[0][0].table, _fitted(group[0][0].method)


def _choices(groups: list[list[Fit]], results: Results, pool: ProcessPoolExecutor) -> dict[Any, Setting | None]:
    """The setting of each table and method, chosen once for all processes; None if that fails."""
    known = {_name(group): results.choice(*_name(group)) for group in groups}
    asked = {name: pool.submit(choose, *name, "cpu") for name, choice in known.items() if choice is None}
    return known | {name: None if future.exception() else future.result() for name, future in asked.items()}


def make(group: list[Fit], choice: Setting | None, device: str, jobs: int) -> Made:
    """The outcome of every run of a group, and how long it took; a failure is an outcome too and stops nothing."""
    start = time.perf_counter()
    threads = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)  # sums, and so results, must not depend on how many cores there are
    try:
        outcomes = _make(group, choice, device, jobs)
    except Exception as error:  # one method's trouble must not cost the others their runs
        plain = isinstance(error, MissingDatasetError | MissingExtraError)
        what = str(error) if plain else f"{type(error).__name__}: {error}"
        outcomes = [{"status": "failed", "error": what} for _ in itertools.chain(*group)]
    finally:
        torch.set_num_threads(threads)
    return group, outcomes, time.perf_counter() - start


def _make(group: list[Fit], choice: Setting | None, device: str, jobs: int) -> list[Outcome]:
    first = group[0][0]
    if first.noise in (REAL_ERRORS, DECIDED):
        return [_on_real_errors(fit[0], device) for fit in group for _ in fit]
    dataset, method = dataset_of(first.table, EXPERIMENTS[first.experiment].most_rows), METHODS[first.method]
    setting = choose(first.table, _fitted(first.method), device) if choice is None else choice
    make_one = partial(method.make, schema=dataset.schema, device=device)
    detectors = [make_one(random_state=fit[0].seed, **setting | fit[0].setting) for fit in group]
    with ThreadPoolExecutor(jobs) as pool:
        dirty = list(pool.map(partial(_dirty, dataset), (fit[0] for fit in group)))
        if method.together is not None and len(group) > 1:
            method.together(detectors, [table for table, _ in dirty])
        else:
            method.fit(detectors[0], dataset.frame, *dirty[0])
        measured = list(pool.map(partial(_measure_fit, dataset), group, detectors, dirty))
    return [{"status": "ok", "choice": setting} | outcome for outcome in itertools.chain(*measured)]


def _on_real_errors(run: Run, device: str) -> Outcome:
    """A table with its own errors, as a user would give it: nothing is said of its columns."""
    pair = make_log(LOG_ROWS, run.seed) if run.table == LOG else load_pair(run.table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        mender = CellMender(random_state=run.seed, device=device).fit(pair.dirty)
    measured = measure_pair(mender, pair) if run.noise == REAL_ERRORS else measure_decisions(mender, pair)
    return {"status": "ok", "choice": {}} | measured


def _measure_fit(dataset: Dataset, fit: Fit, detector: Any, dirty: tuple[Any, Any]) -> list[Outcome]:
    """The measures of all runs that one fitted detector answers; each method is asked once."""
    asked = {name: METHODS[name] for name in dict.fromkeys(run.method for run in fit)}
    found = {name: measure(dataset, method.score, method.asked(detector), dirty) for name, method in asked.items()}
    return [found[run.method] for run in fit]


def _dirty(dataset: Dataset, run: Run) -> tuple[Any, Any]:
    if run.level is None:
        return dataset.frame, None
    layout, _, noise = run.noise.rpartition(" ")
    share = SHARES[layout][int(run.level)] if layout else run.level
    return corrupt(dataset.frame, dataset.schema, noise=noise, rows=share, seed=run.seed, layout=layout or LAYOUTS[0])


def measure(dataset: Dataset, score: str | None, detector: Any, dirty: tuple[Any, Any]) -> Outcome:
    """All measures that the detector can be measured by."""
    table, mask = dirty
    asked = {} if score is None else {"kind": score}
    rows = detector.row_scores(table, **asked)
    if mask is None:
        return {"row_auc": row_auc(rows, dataset.outlier)}  # type: ignore[arg-type]
    if not mask.any():  # a clean table: all that is flagged is a false alarm
        if not hasattr(detector, "cell_suspicion"):
            return {}
        return calibration(np.asarray(detector.cell_suspicion(table), dtype=float), mask)
    found: Outcome = {"row_avpr": row_avpr(rows, mask), "row_auc": row_auc(rows, mask.any(axis=1))}
    if hasattr(detector, "cell_scores"):
        found["all_cells_ap"] = all_cells_ap(detector.cell_scores(table, **asked), mask)
        found |= _by_kind("cell_avpr", cell_avprs(detector.cell_scores(table, **asked), mask), dataset.schema)
    if hasattr(detector, "cell_suspicion"):
        found |= calibration(np.asarray(detector.cell_suspicion(table), dtype=float), mask)
    if hasattr(detector, "reconstruct"):
        answers = detector.reconstruct(table), detector.reconstruct_proba(table)
        found |= _by_kind("repair", repair_errors(dataset.frame, table, mask, *answers), dataset.schema)
    return found


def _by_kind(name: str, each: Any, schema: Schema) -> dict[str, float | None]:
    """Mean over all columns, over the real ones and over the categories; None where there are none."""
    kinds = np.array([column.kind for column in schema])

    def mean(chosen: Any) -> float | None:
        values = each[chosen & ~np.isnan(each)]
        return float(values.mean()) if len(values) else None

    return {name: mean(kinds != "")} | {f"{name}_{kind}": mean(kinds == kind) for kind in ("real", "category")}
