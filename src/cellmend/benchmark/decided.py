"""What decisions are worth: F1 and repairs on dirty tables after some answers, which the clean version gives."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cellmend.benchmark.dirt import Pair, equal
from cellmend.estimator import CellMender

ROWS = (5, 10, 20)  # whole rows that are answered, all in all
CELLS = (20, 50, 100)  # single cells


def measure_decisions(mender: CellMender, pair: Pair) -> dict[str, Any]:
    """Measures of a fitted mender before any answer, and after rows and after cells; each time on from the last."""
    measured = _named("without", _measured(mender, pair))
    for unit, steps in (("rows", ROWS), ("cells", CELLS)):
        taught, answered = copy.copy(mender), 0
        for step in steps:
            asked = taught.questions(pair.dirty, step - answered, whole_rows=unit == "rows")
            taught.learn(pair.dirty, answers(asked, pair))
            measured |= _named(f"{step} {unit}", _measured(taught, pair))
            answered = step
    return measured


def answers(asked: pd.DataFrame, pair: Pair) -> list[dict[str, Any]]:
    """Decisions about cells as one takes them who knows the clean table."""
    places = {name: place for place, name in enumerate(pair.dirty)}
    decisions = []
    for row, column, value in zip(asked["row"], asked["column"], asked["value"], strict=True):
        wrong = bool(pair.wrong[row, places[column]])
        decision = {"row": int(row), "column": column, "value": value, "verdict": "wrong" if wrong else "right"}
        decisions.append(decision | {"repair": pair.clean.iat[row, places[column]]} if wrong else decision)
    return decisions


def _measured(mender: CellMender, pair: Pair) -> dict[str, float]:
    """Precision, recall and F1 of what is flagged, and F1 of what is repaired; empty cells left out."""
    places = {name: place for place, name in enumerate(pair.dirty)}
    flagged, repaired = np.zeros_like(pair.wrong), pair.dirty.astype(object)
    for finding in mender.mend(pair.dirty, impute=False).found:
        flagged[finding.row, places[finding.column]] = True
        if finding.repair is not None:
            repaired.iat[finding.row, places[finding.column]] = str(finding.repair)
    changed = (repaired != pair.dirty).to_numpy() & ~pair.empty
    right = changed & pair.wrong & equal(repaired.astype(str), pair.clean)
    precision, recall, f1 = _agreement(flagged & ~pair.empty, flagged & pair.wrong, pair.wrong)
    return {"precision": precision, "recall": recall, "f1": f1, "repair_f1": _agreement(changed, right, pair.wrong)[2]}


def _agreement(
    said: NDArray[np.bool_], right: NDArray[np.bool_], wanted: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Precision, recall and F1 of what was said, of which some is right, and of what should have been said."""
    hits = float(right.sum())
    return hits / max(said.sum(), 1), hits / max(wanted.sum(), 1), 2 * hits / max(said.sum() + wanted.sum(), 1)


def _named(when: str, measures: dict[str, float]) -> dict[str, float]:
    return {f"{name} {when}": value for name, value in measures.items()}
