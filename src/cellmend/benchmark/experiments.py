"""The nine experiments of the paper: which runs they are, and how a run is made, measured and kept."""

from __future__ import annotations

import copy
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cellmend.benchmark.baselines import IsolationForestRows, Marginals, OneClassSVMRows, SVMAndMarginals
from cellmend.benchmark.boosting import LightGBMAndMarginals, LightGBMColumns, MissingExtraError
from cellmend.benchmark.corruption import NOISES, corrupt
from cellmend.benchmark.datasets import PAPER_TABLES, ROW_OUTLIER_TABLES, Dataset, MissingDatasetError, load_dataset
from cellmend.benchmark.metrics import cell_avprs, repair_errors, row_auc, row_avpr
from cellmend.benchmark.neural import CondPred, DeepRPCA, fit_cond_preds
from cellmend.estimator import CellMender, fit_together
from cellmend.schema import Schema
from cellmend.settings import PAPER

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.5)
ALPHAS = (0.2, 0.5, 0.8, 0.9, 0.99)
DECAYS = (0.0, 0.1, 1.0, 5.0, 10.0, 100.0)
SPARSITIES = (0.001, 0.01, 0.1, 1.0)
VALIDATION_SHARE = 0.1  # of the rows, labelled, to choose a baseline's setting; RVAE never sees labels
VALIDATION_ROWS = 6000  # a choice is made on a sample of at most this many rows
VALIDATION_LEVEL = 0.05
TOGETHER = 100  # networks trained as one on a GPU


class UnknownNameError(ValueError):
    """An experiment or method that does not exist."""


# ---------------------------------------------------------------- methods

Setting = dict[str, float]


@dataclass(frozen=True)
class Method:
    """How a detector is made, which settings a labelled part chooses from, and what is asked of it."""

    make: Callable[..., Any]  # (schema=, random_state=, device=, **setting)
    grid: tuple[Setting, ...] = ({},)
    together: Callable[[Sequence[Any], Sequence[Any]], None] | None = None  # fits many as one on a GPU
    fitted_as: str | None = None  # the method whose fit it shares: it only asks something else of it
    score: str | None = None
    repair_method: str | None = None


def _mender(*, schema: Schema, random_state: int, device: str, **setting: Any) -> CellMender:
    return CellMender(**PAPER | setting, schema=schema, random_state=random_state, device=device)


def _on_cpu(kind: Callable[..., Any], *, schema: Schema, random_state: int, device: str, **setting: Any) -> Any:
    return kind(schema=schema, random_state=random_state, **setting)


_DECAYS = tuple({"weight_decay": decay} for decay in DECAYS)
METHODS: dict[str, Method] = {
    "RVAE": Method(_mender, together=fit_together),
    "RVAE nll": Method(_mender, together=fit_together, fitted_as="RVAE", score="nll"),
    "RVAE one-stage": Method(_mender, together=fit_together, fitted_as="RVAE", repair_method="one-stage"),
    "RVAE two-stage": Method(_mender, together=fit_together, fitted_as="RVAE", repair_method="two-stage"),
    "RVAE-AVI": Method(partial(_mender, weights="amortized"), together=fit_together),
    "VAE": Method(partial(_mender, weights="none"), together=fit_together),
    "VAE-L2": Method(partial(_mender, weights="none"), grid=_DECAYS, together=fit_together),
    "CondPred": Method(CondPred, together=fit_cond_preds),
    "CondPred-L2": Method(CondPred, grid=_DECAYS, together=fit_cond_preds),
    "DeepRPCA": Method(DeepRPCA, grid=tuple({"sparsity": sparsity} for sparsity in SPARSITIES)),
    "Marginals": Method(partial(_on_cpu, Marginals)),
    "OC-SVM": Method(partial(_on_cpu, OneClassSVMRows)),
    "OC-SVM + Marginals": Method(partial(_on_cpu, SVMAndMarginals)),
    "Isolation Forest": Method(partial(_on_cpu, IsolationForestRows)),
    "LightGBM": Method(partial(_on_cpu, LightGBMColumns)),
    "LightGBM l1": Method(partial(_on_cpu, LightGBMColumns, loss="l1")),
    "LightGBM + Marginals": Method(partial(_on_cpu, LightGBMAndMarginals)),
}


# ---------------------------------------------------------------- runs


@dataclass(frozen=True)
class Run:
    """One line of the results: what was corrupted how, and who looked at it."""

    experiment: str
    table: str
    noise: str
    level: float | None
    seed: int
    method: str
    setting: Setting = field(default_factory=dict)

    @property
    def fitted(self) -> str:
        """The method whose fit answers this run."""
        return METHODS[self.method].fitted_as or self.method

    @property
    def key(self) -> str:
        """The run as text, to find it in the results."""
        return json.dumps(asdict(self), sort_keys=True)


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


_ALL = tuple(
    name for name in METHODS if name not in ("RVAE one-stage", "RVAE two-stage", "LightGBM l1", "VAE", "CondPred")
)
_REPAIRING = ("RVAE", "VAE-L2", "CondPred-L2", "DeepRPCA", "Marginals", "LightGBM", "LightGBM l1")
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
        noises=tuple(name for name in NOISES if name != "gaussian"),
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
    tables = [name for name in whole.tables if narrow.tables is None or name in narrow.tables]
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
        same_kind = fits.setdefault(f"{run.table} {run.fitted}", {})
        same_kind.setdefault(replace(run, experiment="", method=run.fitted).key, []).append(run)
    found = []
    for same_kind in fits.values():
        listed = list(same_kind.values())
        alone = device == "cpu" or METHODS[listed[0][0].method].together is None
        size = 1 if alone else TOGETHER
        found += [listed[first : first + size] for first in range(0, len(listed), size)]
    return found


# ---------------------------------------------------------------- results


class Results:
    """A JSONL file, one line a run, written at once; a half last line of a killed run is dropped.

    How long runs took stands in a file beside it, so that results are the same whenever they are made.
    """

    def __init__(self, path: Path, *, retry: bool = False) -> None:
        """With `retry` runs that failed are forgotten, so that they are made again."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows: dict[str, dict[str, Any]] = {}
        if path.exists():
            whole = path.read_bytes().rpartition(b"\n")[0]
            with path.open("rb+") as file:
                file.truncate(len(whole) + 1 if whole else 0)
            for line in whole.decode().splitlines():
                row = json.loads(line)
                self.rows[_key_of(row)] = row
        if retry:
            self._forget_failures()

    def _forget_failures(self) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row["status"] == "ok"}
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        temporary.write_text("".join(json.dumps(row) + "\n" for row in self.rows.values()), encoding="utf-8")
        temporary.replace(self.path)

    def add(self, run: Run, outcome: dict[str, Any], seconds: float) -> None:
        """Append one run, unless it is there."""
        if run.key in self.rows:
            return
        row = asdict(run) | outcome
        self.rows[run.key] = row
        _append(self.path, row)
        _append(self.path.with_suffix(".timings.jsonl"), asdict(run) | {"seconds": round(seconds, 3)})

    def known(self, run: Run, *, outside: Sequence[str]) -> dict[str, Any] | None:
        """The outcome of the same run under an experiment other than these."""
        for name in EXPERIMENTS:
            row = self.rows.get(replace(run, experiment=name).key)
            if row is not None and name not in outside and row["status"] == "ok":
                return {key: value for key, value in row.items() if key not in asdict(run)}
        return None


def _key_of(row: dict[str, Any]) -> str:
    names = ("experiment", "table", "noise", "level", "seed", "method", "setting")
    return Run(**{name: row[name] for name in names}).key


def _append(path: Path, row: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


# ---------------------------------------------------------------- making a run


Report = Callable[[int, int, str], None]  # (done, all, what) after each group
Outcome = dict[str, Any]


def run_experiments(
    experiments: Sequence[str], results: Results, narrow: Narrow, *, device: str, jobs: int, report: Report
) -> None:
    """Make all runs of these experiments that are not there yet; what they share is fitted once."""
    if device != "cpu" and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise UnknownNameError(f"device must be cpu, or cuda where there is one; it is {device!r}.")
    runs = [run for experiment in experiments for run in plan(experiment, narrow)]
    if not runs:
        raise UnknownNameError("There must be something to run; no table, level and method asked for go together.")
    for run in runs:
        known = results.known(run, outside=experiments)
        if known is not None:
            results.add(run, known, 0.0)
    planned = groups(runs, device)
    left = [group for group in planned if any(run.key not in results.rows for fit in group for run in fit)]
    done = len(planned) - len(left)
    report(done, len(planned), "")
    made = _in_processes(left, jobs) if device == "cpu" and jobs > 1 else (make(g, device, jobs) for g in left)
    for group, (outcomes, seconds) in zip(left, made, strict=True):
        for run, outcome in zip(itertools.chain(*group), outcomes, strict=True):
            results.add(run, outcome, seconds / len(outcomes))
        done += 1
        report(done, len(planned), f"{group[-1][-1].table}, {group[-1][-1].method}")


def _in_processes(left: list[list[Fit]], jobs: int) -> Iterator[tuple[list[Outcome], float]]:
    """In the order of the plan, so that the results file does not depend on who was faster."""
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(make, left, itertools.repeat("cpu"), itertools.repeat(1))


def make(group: list[Fit], device: str, jobs: int) -> tuple[list[Outcome], float]:
    """The outcome of every run of a group, and how long it took; a failure is an outcome too and stops nothing."""
    start = time.perf_counter()
    threads = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)  # sums, and so results, must not depend on how many cores there are
    try:
        outcomes = _make(group, device, jobs)
    except Exception as error:  # one method's trouble must not cost the others their runs
        plain = isinstance(error, MissingDatasetError | MissingExtraError)
        what = str(error) if plain else f"{type(error).__name__}: {error}"
        outcomes = [{"status": "failed", "error": what} for _ in itertools.chain(*group)]
    finally:
        torch.set_num_threads(threads)
    return outcomes, time.perf_counter() - start


def _make(group: list[Fit], device: str, jobs: int) -> list[Outcome]:
    first = group[0][0]
    dataset, method = load_dataset(first.table), METHODS[first.method]
    choice = choose(first.table, first.fitted, device)
    make_one = partial(method.make, schema=dataset.schema, device=device)
    detectors = [make_one(random_state=fit[0].seed, **choice | fit[0].setting) for fit in group]
    with ThreadPoolExecutor(jobs) as pool:
        dirty = list(pool.map(partial(_dirty, dataset), (fit[0] for fit in group)))
        if method.together is not None and len(group) > 1:
            method.together(detectors, [table for table, _ in dirty])
        else:
            detectors[0].fit(dirty[0][0])
        measured = list(pool.map(partial(_measure_fit, dataset), group, detectors, dirty))
    return [{"status": "ok", "choice": choice} | outcome for outcome in itertools.chain(*measured)]


def _measure_fit(dataset: Dataset, fit: Fit, detector: Any, dirty: tuple[Any, Any]) -> list[Outcome]:
    """The measures of all runs that one fitted detector answers; each method is asked once."""
    found: dict[str, Outcome] = {}
    for name in dict.fromkeys(run.method for run in fit):
        method = METHODS[name]
        if method.repair_method is not None:
            asked = copy.copy(detector).set_params(repair_method=method.repair_method)
        else:
            asked = detector
        found[name] = measure(dataset, method.score, asked, dirty)
    return [found[run.method] for run in fit]


def _dirty(dataset: Dataset, run: Run) -> tuple[Any, Any]:
    if run.level is None:
        return dataset.frame, None
    return corrupt(dataset.frame, dataset.schema, noise=run.noise, rows=run.level, seed=run.seed)


def measure(dataset: Dataset, score: str | None, detector: Any, dirty: tuple[Any, Any]) -> dict[str, float | None]:
    """All measures that the detector can be measured by."""
    table, mask = dirty
    asked = {} if score is None else {"kind": score}
    rows = detector.row_scores(table, **asked)
    if mask is None:
        return {"row_auc": row_auc(rows, dataset.outlier)}  # type: ignore[arg-type]
    found: dict[str, float | None] = {"row_avpr": row_avpr(rows, mask), "row_auc": row_auc(rows, mask.any(axis=1))}
    if hasattr(detector, "cell_scores"):
        found |= _by_kind("cell_avpr", cell_avprs(detector.cell_scores(table, **asked), mask), dataset.schema)
    if hasattr(detector, "repair"):
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


@cache
def choose(table: str, name: str, device: str) -> Setting:
    """The setting of the grid with the best cell AVPR on a labelled tenth of the rows, the rest being learned from."""
    method = METHODS[name]
    if len(method.grid) == 1:
        return method.grid[0]
    dataset = load_dataset(table)
    sample = dataset.frame.sample(min(VALIDATION_ROWS, len(dataset.frame)), random_state=0).reset_index(drop=True)
    dirty, mask = corrupt(sample, dataset.schema, noise="gaussian", rows=VALIDATION_LEVEL, seed=0)
    labelled = round(VALIDATION_SHARE * len(sample))

    def quality(setting: Setting) -> float:
        detector = method.make(schema=dataset.schema, random_state=0, device=device, **setting)
        scores = detector.fit(dirty.iloc[labelled:]).cell_scores(dirty.iloc[:labelled])
        return float(np.nanmean(cell_avprs(scores, mask[:labelled])))

    return max(method.grid, key=quality)
