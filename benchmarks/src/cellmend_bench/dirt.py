"""Really dirty tables whose clean versions are known: which of their errors are found, by table and by kind of error.

A table is a folder NAME with dirty.csv.gz and clean.csv.gz, in a folder below CELLMEND_DATA/dirt; the pairs of Raha and
REIN lie in CELLMEND_DATA itself. Cells that are empty in the dirty table are left out.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from sklearn.metrics import average_precision_score, precision_recall_curve

from cellmend.estimator import CellMender
from cellmend.evaluation.vandal_numbers import number
from cellmend.findings.finding import Mended
from cellmend_bench.errors import MissingDatasetError
from cellmend_bench.metrics import scores

MOST_ROWS = 6000  # of a table; of more a fixed sample is taken
SLIPS = 3  # letters by which a typo differs from what was meant
EQUAL = 1e-6  # relative difference of equal numbers
PAIRS = ("hospital", "beers", "breast_cancer", "bike")  # of Raha and REIN


@dataclass(frozen=True)
class Pair:
    """A dirty table and its clean version, cells as text, and which cells are wrong."""

    dirty: pd.DataFrame
    clean: pd.DataFrame
    wrong: NDArray[np.bool_]  # (N, D) and not empty
    empty: NDArray[np.bool_]  # (N, D)
    kinds: NDArray[np.object_] | None = None  # (N, D) what each error is, if that is known


def pairs() -> list[str]:
    """The names of all pairs that are there, as "folder/table"."""
    data = Path(os.environ.get("CELLMEND_DATA", "."))
    found = [f"{path.parent.name}/{path.name}" for path in sorted((data / "dirt").glob("*/*")) if path.is_dir()]
    return found + [f"raha/{name}" for name in PAIRS if (data / f"pair_{name}_dirty.csv.gz").exists()]


def load_pair(name: str) -> Pair:
    """A pair by its name."""
    data, (folder, table) = Path(os.environ.get("CELLMEND_DATA", ".")), name.split("/")
    places = [
        data / f"pair_{table}_{state}.csv.gz" if folder == "raha" else data / "dirt" / name / f"{state}.csv.gz"
        for state in ("dirty", "clean")
    ]
    if not all(place.exists() for place in places):
        raise MissingDatasetError(f"There must be a dirty table {name} and its clean version; {places[0]} is missing.")
    dirty, clean = (pd.read_csv(place, dtype=str, keep_default_na=False) for place in places)
    clean.columns = dirty.columns
    if len(dirty) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(dirty), MOST_ROWS, replace=False))
        dirty, clean = (each.iloc[rows].reset_index(drop=True) for each in (dirty, clean))
    empty = np.stack([dirty[name].str.strip() == "" for name in dirty], axis=1)
    return Pair(dirty, clean, ~equal(dirty, clean) & ~empty, empty)


def equal(one: pd.DataFrame, other: pd.DataFrame) -> NDArray[np.bool_]:
    """Which cells say the same, as text or as numbers, (N, D).

    >>> equal(pd.DataFrame({"a": ["1.50", "x "]}), pd.DataFrame({"a": ["1.5", "y"]})).tolist()
    [[True], [False]]
    """
    same = []
    for name in one:
        left, right = one[name].str.strip(), other[name].str.strip()
        a, b = (pd.to_numeric(each, errors="coerce").to_numpy() for each in (left, right))
        close = np.abs(a - b) <= EQUAL * np.maximum(np.abs(b), 1e-9)  # never, where one is no number
        same.append((left == right).to_numpy() | close)
    return np.stack(same, axis=1)


def kind_of_error(seen: str, meant: str, values: set[str]) -> str:
    """What kind of error a cell is; `values` are those of the clean column.

    >>> cells = ("7", "12"), ("x7", "12"), ("Oslo", "Rome"), ("Romy", "Rome")
    >>> [kind_of_error(seen, meant, {"Rome", "Oslo"}) for seen, meant in cells]
    ['number', 'no number', 'another level', 'typo']
    """
    if number(meant) is not None:
        return "no number" if number(seen) is None else "number"
    if seen in values:
        return "another level"
    return "typo" if Levenshtein.distance(seen, meant) <= SLIPS else "other text"


def measure_pair(mender: CellMender, pair: Pair, *, fdr: float = 0.1) -> dict[str, Any]:
    """Precision, recall and F1 of what a fitted mender flags, ranking, repairs, and what is found by kind of error."""
    mended = mender.mend(pair.dirty, fdr=fdr, impute=False)
    flagged, repaired = marked(mended, pair)
    hits, right = flagged & pair.wrong, equal(repaired, pair.clean)
    precision, recall, f1 = scores(int(pair.wrong.sum()), int(flagged.sum()), int(hits.sum()))
    suspicion = np.maximum(mender.cell_scores(pair.dirty), -np.log1p(-np.minimum(mended.matrix, 1 - 1e-12)))
    return {
        "wrong": int(pair.wrong.sum()),
        "flagged": int(flagged.sum()),
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "repaired_right": float((hits & right).sum() / max(hits.sum(), 1)),
        "made_worse": int((~pair.wrong & ~pair.empty & ~right).sum()),
        **_ranking(np.where(pair.empty, 0.0, suspicion), pair.wrong),
        "found_by_kind": _by_kind(pair, hits),
    }


def marked(mended: Mended, pair: Pair) -> tuple[NDArray[np.bool_], pd.DataFrame]:
    """Which cells that are not empty are flagged, (N, D), and the table as repaired, as text."""
    places = {name: place for place, name in enumerate(pair.dirty)}
    flagged, repaired = np.zeros_like(pair.wrong), pair.dirty.astype(object)
    for finding in mended.flagged:
        flagged[finding.row, places[finding.column]] = True
        if finding.repair is not None:
            repaired.iat[finding.row, places[finding.column]] = str(finding.repair)
    return flagged & ~pair.empty, repaired.astype(str)


def _ranking(scores: NDArray[np.float64], wrong: NDArray[np.bool_]) -> dict[str, float]:
    """Average precision over all cells, and the F1 that a perfect threshold would give."""
    if not wrong.any():
        return {"ap": 0.0, "best_f1": 0.0}
    precision, recall, _ = precision_recall_curve(wrong.ravel(), scores.ravel())
    best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-9))
    return {"ap": float(average_precision_score(wrong.ravel(), scores.ravel())), "best_f1": float(best)}


def _by_kind(pair: Pair, hits: NDArray[np.bool_]) -> dict[str, list[int]]:
    """For each kind of error how many were found, and how many there are."""
    every, found = Counter[str](), Counter[str]()
    values = {name: set(pair.clean[name]) for name in pair.clean}
    for row, column in zip(*np.nonzero(pair.wrong), strict=True):
        name = pair.dirty.columns[column]
        seen, meant = pair.dirty.iat[row, column], pair.clean.iat[row, column]
        kind = kind_of_error(seen, meant, values[name]) if pair.kinds is None else pair.kinds[row, column]
        every[kind] += 1
        found[kind] += int(hits[row, column])
    return {kind: [found[kind], count] for kind, count in sorted(every.items())}
