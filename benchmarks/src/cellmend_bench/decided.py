"""What decisions are worth: F1 and repairs on dirty tables after some answers, which the clean version gives."""

from __future__ import annotations

import copy
from typing import Any

import pandas as pd

from cellmend.estimator import CellMender
from cellmend_bench.dirt import Pair, equal, marked
from cellmend_bench.metrics import scores

ROWS = (5, 10, 20)  # whole rows that are answered, all in all
CELLS = (20, 50, 100)  # single cells


def measure_decisions(mender: CellMender, pair: Pair) -> dict[str, Any]:
    """Measures of a fitted mender before any answer, and after rows and after cells; each time on from the last."""
    measured = _measured(mender, pair, "without")
    for unit, steps in (("rows", ROWS), ("cells", CELLS)):
        taught, answered = copy.copy(mender), 0
        for step in steps:
            asked = taught.questions(pair.dirty, step - answered, whole_rows=unit == "rows")
            taught.learn(pair.dirty, answers(asked, pair))
            measured |= _measured(taught, pair, f"{step} {unit}")
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


def _measured(mender: CellMender, pair: Pair, when: str) -> dict[str, float]:
    """Precision, recall and F1 of what is flagged, and F1 of what is repaired; empty cells left out."""
    flagged, repaired = marked(mender.mend(pair.dirty, impute=False), pair)
    changed = (repaired != pair.dirty.astype(str)).to_numpy() & ~pair.empty
    right = changed & pair.wrong & equal(repaired, pair.clean)
    wrong = int(pair.wrong.sum())
    precision, recall, f1 = scores(wrong, int(flagged.sum()), int((flagged & pair.wrong).sum()))
    repair_f1 = scores(wrong, int(changed.sum()), int(right.sum()))[2]
    measures = {"precision": precision, "recall": recall, "f1": f1, "repair_f1": repair_f1}
    return {f"{name} {when}": value for name, value in measures.items()}
