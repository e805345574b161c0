"""Methods that others published beside cellmend, on a table with known errors."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.errors import EvaluationError, MissingExtraError, did_you_mean
from cellmend.estimator import CellMender
from cellmend.evaluation.evaluation import as_table, cell_avprs, follow, measures
from cellmend.evaluation.planting import Floats, Mask, Planted
from cellmend.table.frames import read_frame
from cellmend.table.notation import understand
from cellmend.table.schema import Schema
from cellmend.table.texts import holds_text
from cellmend_bench.methods import CEILING, METHODS

ROWS_ONLY = ("OC-SVM", "Isolation Forest")
BASELINES = tuple(
    name for name, method in METHODS.items() if len(method.grid) == 1 and name not in ("cellmend", CEILING, *ROWS_ONLY)
)  # they judge cells, and need no labels to choose a setting


def check_baselines(baselines: Sequence[str]) -> None:
    """Refuse before the long work those that are not there."""
    for name in baselines:
        if name not in BASELINES:
            known = ", ".join(BASELINES)
            raise EvaluationError(
                f"A baseline must be one of {known}; {name!r} is none.{did_you_mean(name, BASELINES)}"
            )
        if name.startswith("LightGBM") and find_spec("lightgbm") is None:
            raise MissingExtraError(f"The baseline {name} needs LightGBM. Hint: pip install 'cellmend[bench]'.")


def compare(errors: Planted, fitted: CellMender, suspicion: Floats, names: Sequence[str], seed: int) -> pa.Table:
    """cellmend and the baselines, each asked about every cell, and what it would put into those with an error."""
    typed, unreadable = as_typed(errors.table, fitted)
    device = str(fitted.network_.decoder_output.bias.device)
    schema = Schema(tuple(column for column in fitted.schema_ if column.name in typed.column_names))
    lines = [_line("cellmend", errors, suspicion, fitted.reconstruct(errors.table).select(typed.column_names))]
    detectors: dict[str, Any] = {}
    for name in names:
        method = METHODS[name]
        shared = method.fitted_as or name
        if shared not in detectors:
            detectors[shared] = method.make(schema=schema, random_state=seed, device=device).fit(typed)
        detector = method.asked(detectors[shared])
        scores = detector.cell_scores(typed) if method.score is None else detector.cell_scores(typed, kind=method.score)
        whole = over_all_columns(scores, sorted(fitted.encoder_.positions), unreadable)
        seen = detector.reconstruct(typed) if hasattr(detector, "reconstruct") else None
        lines.append(_line(name, errors, whole, seen))
    return as_table(lines, "method", "avpr", "repaired", "repair_error")


def over_all_columns(scores: Floats, places: Sequence[int], unreadable: Mask) -> Floats:
    """Scores of the columns at some places of the table, (N, D): the lowest elsewhere, the highest if unreadable.

    >>> over_all_columns(np.array([[0.5], [2.0]]), [1], np.array([[False, True], [False, False]]))
    array([[0.5, 3. ],
           [0.5, 2. ]])
    """
    whole = np.full(unreadable.shape, scores.min())
    whole[:, places] = scores
    whole[unreadable] = scores.max() + 1
    return whole


def as_typed(table: pa.Table, fitted: CellMender) -> tuple[pa.Table, Mask]:
    """The modelled columns as understood, text as categories, and which cells of the table cannot be read, (N, D).

    As categories, texts are not looked at for misspellings: a baseline is what it was published as.
    """
    understood = understand(read_frame(table).arrow, fitted.model_.reader.notations)
    unreadable = np.zeros((table.num_rows, table.num_columns), dtype=bool)
    columns = {}
    for place in sorted(fitted.encoder_.positions):
        column = understood.column(place)
        if pa.types.is_floating(column.type):
            unreadable[:, place] = pc.is_nan(column).fill_null(False).to_numpy()
        columns[understood.column_names[place]] = column.dictionary_encode() if holds_text(column.type) else column
    return pa.table(columns), unreadable


def _line(name: str, errors: Planted, scores: Floats, seen: pa.Table | None) -> dict[str, Any]:
    """How well a method's scores (N, D) find the errors, and what it sees in the modelled columns repairs them."""
    avpr = float(np.nanmean(cell_avprs(scores, errors.mask)))
    if seen is None:
        return {"method": name, "avpr": avpr}
    every = np.ones(errors.kinds.shape, dtype=bool)
    return {"method": name, "avpr": avpr} | measures(follow(errors, every, seen, every))
