"""How one table in the wild is judged: spoiled, fitted, and what is flagged set against what is wrong."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cellmend.errors import CellmendError
from cellmend.evaluation.vandal import RIGHT, vandalise
from cellmend.evaluation.vandal_kinds import NAMES, SINGLE
from cellmend.evaluation.vandal_numbers import same
from cellmend_bench.novelty import none_of_it, recurring
from cellmend_bench.results import Keyed, Outcome

FDR = 0.1
MIXED, FOREIGN, UNSPOILED = "mixed", "tab-err", "unspoiled"
MIX = 0.003, 0.2  # shares of wrong cells, log-uniform
SHARES = (0.001, 0.01, 0.1, 0.3)
WAYS = (MIXED, *map(str, SHARES), FOREIGN, UNSPOILED)  # how a table is spoiled
BOUNDS = (0.1, 0.5, 0.9, 0.99)  # of suspicion, for calibration
SAMPLES = 8  # values of a column beside a flag


@dataclass(frozen=True)
class Task(Keyed):
    """One table, spoiled in one way."""

    table: str
    way: str
    seed: int
    most_rows: int
    most_columns: int


@dataclass(frozen=True)
class Spoiled:
    """A table before and after, which cells are wrong, and of what kind if that is known."""

    clean: pd.DataFrame
    dirty: pd.DataFrame
    wrong: NDArray[np.bool_]
    marks: NDArray[np.int8] | None = None


@dataclass(frozen=True)
class Answer:
    """What was found in a table."""

    suspicion: NDArray[np.float64]  # (N, D)
    findings: list[Outcome]  # with row and place


def judge(task: Task, folder: str) -> Outcome:
    """The outcome of a task: counts only, so that tables can be pooled; a failure is an outcome too."""
    start, outcome = time.perf_counter(), asdict(task)
    try:
        spoiled = spoil(read_table(Path(folder) / f"{task.table}.csv.gz", task), task)
        answer = ask(spoiled.dirty)
    except Exception as error:  # one table's trouble must not cost the others theirs
        plain = isinstance(error, CellmendError)
        return outcome | {"failed": str(error) if plain else f"{type(error).__name__}: {error}"}
    outcome |= measure(spoiled, answer)
    if task.way == UNSPOILED:
        outcome["listed"] = [_listed(spoiled.clean, each) for each in answer.findings]
    return outcome | {"seconds": round(time.perf_counter() - start, 1)}


def read_table(path: Path, task: Task) -> pd.DataFrame:
    """The beginning of a table, as text, with column names that differ."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False, nrows=task.most_rows)
    return table.iloc[:, : task.most_columns]


def spoil(clean: pd.DataFrame, task: Task) -> Spoiled:
    """A table spoiled as the task says; the same each time."""
    seed = hashlib.sha256(f"{task.table} {task.way} {task.seed}".encode()).digest()[:8]
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    if task.way == UNSPOILED:
        return Spoiled(clean, clean, np.zeros(clean.shape, dtype=bool))
    if task.way == FOREIGN:
        from cellmend_bench.foreign import tab_err_errors

        return Spoiled(clean, *tab_err_errors(clean, rng))
    share = mixed_share(rng) if task.way == MIXED else float(task.way)
    dirty, marks = vandalise(clean, rng, share=share, kinds=len(SINGLE))
    return Spoiled(clean, dirty, marks != RIGHT, marks)


def mixed_share(rng: np.random.Generator) -> float:
    """A share of wrong cells, log-uniform."""
    return float(np.exp(rng.uniform(*np.log(MIX))))


def ask(dirty: pd.DataFrame) -> Answer:
    """What the default finds in a table, as a user would ask it."""
    from cellmend.estimator import CellMender

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mender = CellMender(random_state=0).fit(dirty)
        findings = mender.findings(dirty, fdr=FDR)
        findings = findings[findings["contradiction"].isna()]  # what is measured is cells
        suspicion = np.asarray(mender.cell_suspicion(dirty), dtype=float)
    places = {name: place for place, name in enumerate(dirty.columns)}
    rows = findings.to_dict("records")
    return Answer(suspicion, [row | {"place": places[row["column"]]} for row in rows])


# ---------------------------------------------------------------- counting


def measure(spoiled: Spoiled, answer: Answer) -> Outcome:
    """Counts of cells: wrong, flagged, found, repaired, by kind of error and by suspicion."""
    wrong, flagged = spoiled.wrong, np.zeros_like(spoiled.wrong)
    for each in answer.findings:
        flagged[each["row"], each["place"]] = True
    filled = np.array([[bool(text.strip()) for text in row] for row in spoiled.dirty.to_numpy(dtype=object)])
    flagged &= filled.reshape(flagged.shape)
    return {
        "shape": list(wrong.shape),
        "cells": int(filled.sum()),
        "wrong": int(wrong.sum()),
        "flagged": int(flagged.sum()),
        "found": int((wrong & flagged).sum()),
        **_repairs(spoiled, answer.findings),
        "by_suspicion": _by_suspicion(np.where(filled.reshape(flagged.shape), answer.suspicion, 0.0), wrong),
        "by_kind": {} if spoiled.marks is None else _by_kind(spoiled, spoiled.marks, flagged),
    }


def _repairs(spoiled: Spoiled, findings: list[Outcome]) -> dict[str, int]:
    """Repairs of wrong cells that are right and that are not, and right cells that were changed."""
    counts = Counter[str](repaired_right=0, repaired_wrong=0, right_cells_changed=0)
    for each in findings:
        repair, (row, place) = each["repair"], (each["row"], each["place"])
        if repair is None or repair != repair or str(repair) == "":
            continue
        clean, right = spoiled.clean.iat[row, place], same(str(repair), spoiled.clean.iat[row, place])
        if spoiled.wrong[row, place]:
            counts["repaired_right" if right else "repaired_wrong"] += 1
        elif str(repair) != clean:
            counts["right_cells_changed"] += 1
    return dict(counts)


def _by_suspicion(suspicion: NDArray[np.float64], wrong: NDArray[np.bool_]) -> list[list[float]]:
    """For each bound: cells of at least this suspicion, how many are wrong, and their summed suspicion."""
    above = [suspicion >= bound for bound in BOUNDS]
    return [[int(each.sum()), int(wrong[each].sum()), round(float(suspicion[each].sum()), 3)] for each in above]


def _by_kind(spoiled: Spoiled, marks: NDArray[np.int8], flagged: NDArray[np.bool_]) -> dict[str, list[int]]:
    """For each kind of error: cells, found, cells where the clean column has none of it, found, recurring, found."""
    none, often = none_of_it(spoiled.clean, spoiled.dirty, marks), recurring(marks)
    counts = {}
    for kind in np.unique(marks[marks != RIGHT]):
        own = marks == kind
        groups = own, own & none, own & often
        counts[NAMES[kind]] = [int(each.sum()) for group in groups for each in (group, group & flagged)]
    return counts


def _listed(table: pd.DataFrame, finding: Outcome) -> Outcome:
    """A flag with all that a person needs to judge it."""
    values = [text for text in dict.fromkeys(table.iloc[:, finding["place"]]) if text.strip()]
    spread = np.unique(np.linspace(0, len(values) - 1, SAMPLES).astype(int))
    repair = finding["repair"]
    return {
        "row": int(finding["row"]),
        "column": finding["column"],
        "value": table.iat[finding["row"], finding["place"]],
        "suspicion": round(float(finding["suspicion"]), 4),
        "cause": finding["cause"],
        "repair": None if repair is None or repair != repair else str(repair),
        "reason": finding["reason"],
        "whole_row": json.dumps(dict(table.iloc[finding["row"]]), ensure_ascii=False),
        "samples": json.dumps([values[place] for place in spread], ensure_ascii=False),
    }
