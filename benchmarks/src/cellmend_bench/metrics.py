"""How well errors are found and repaired, as the paper and the experiments measure it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from cellmend.evaluation.evaluation import smse
from cellmend.evaluation.planting import Floats, Mask
from cellmend.settings import fdr_cutoff
from cellmend.table.values import level_text

RELIABILITY_BINS = 15


def row_avpr(scores: Floats, mask: Mask) -> float:
    """Average precision of the row scores (N,), a row being dirty if any of its cells (N, D) is.

    >>> row_avpr(np.array([0.9, 0.1]), np.array([[True, False], [False, False]]))
    1.0
    """
    return float(average_precision_score(mask.any(axis=1), scores))


def row_auc(scores: Floats, outlier: Mask) -> float:
    """Area under the ROC curve of the row scores (N,), labels (N,)."""
    return float(roc_auc_score(outlier, scores))


def brier(clean: Sequence[Any], levels: Sequence[Any], probabilities: Floats) -> float:
    """Half the mean squared distance of the probabilities (n, C) from certainty in the clean level.

    >>> brier(["a"], ["a", "b"], np.array([[0.75, 0.25]]))
    0.0625
    """
    texts = [level_text(level) for level in levels]
    certain = np.array([[level_text(cell) == text for text in texts] for cell in clean], dtype=np.float64)
    return float(np.square(certain - probabilities).sum() / (2 * len(clean)))


def repair_errors(clean: Any, dirty: Any, mask: Mask, repaired: Any, probabilities: Mapping[str, Any]) -> Floats:
    """SMSE of each column of numbers, Brier score of each column of levels, (D,), on dirty cells; tables are pandas.

    The mean is that of the dirty column, which standardising has put to 0; NaN for a column without a dirty cell.
    """
    errors = np.full(mask.shape[1], np.nan)
    for place, name in enumerate(clean.columns):
        rows = mask[:, place]
        if not rows.any():
            continue
        truth = clean[name].to_numpy()[rows]
        if str(name) in probabilities:
            table = probabilities[str(name)]
            errors[place] = brier(truth.tolist(), list(table.columns), table.to_numpy()[rows])
        else:
            errors[place] = smse(
                truth.astype(np.float64), repaired[name].to_numpy()[rows].astype(np.float64), dirty[name].mean()
            )
    return errors


def all_cells_ap(scores: Floats, mask: Mask) -> float:
    """Average precision over all cells (N, D) as one list: a score must mean the same in every column.

    >>> all_cells_ap(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[True, False], [False, True]]))
    1.0
    """
    return float(average_precision_score(mask.ravel(), scores.ravel()))


def calibration(suspicion: Floats, mask: Mask, *, fdr: float = 0.1) -> dict[str, Any]:
    """Is suspicion (N, D) the probability of being wrong? Reliability in bins, and what flagging at `fdr` gives.

    >>> found = calibration(np.array([[0.9, 0.95, 0.1, 0.05]]), np.array([[True, True, False, False]]))
    >>> found["false_share"], found["found_share"], round(found["calibration_error"], 4)
    (0.0, 1.0, 0.075)
    """
    place = np.minimum((suspicion * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1).ravel()
    cells, wrong = (np.bincount(place, each, RELIABILITY_BINS) for each in (None, mask.ravel()))
    predicted = np.bincount(place, suspicion.ravel(), RELIABILITY_BINS)
    flagged = suspicion >= fdr_cutoff(suspicion, fdr)
    return {
        "calibration_error": float(np.abs(predicted - wrong).sum() / mask.size),
        "false_share": float(1 - mask[flagged].mean()) if flagged.any() else 0.0,
        "flagged_share": float(flagged.mean()),
        "found_share": float(mask[flagged].sum() / max(mask.sum(), 1)),
        "reliability": np.stack([cells, predicted, wrong], 1).round(3).tolist(),
    }


def scores(wrong: int, flagged: int, found: int) -> tuple[float, float, float]:
    """Precision, recall and F1 from counts of cells.

    >>> scores(wrong=4, flagged=2, found=1)
    (0.5, 0.25, 0.3333333333333333)
    """
    return found / max(flagged, 1), found / max(wrong, 1), 2 * found / max(flagged + wrong, 1)
