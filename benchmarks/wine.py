"""RVAE as published on the wine table with 5 % of its rows corrupted, against a plain VAE.

    CELLMEND_DATA=folder python benchmarks/wine.py

The folder holds wine.csv.gz (UCI Wine Quality, red and white, with column wine_type). In each chosen
row 20 % of the cells are corrupted: numbers get Gaussian noise of 5 standard deviations, rounded to
the column's decimals; the category becomes another one. Prints cell AVPR (mean over columns), row
AVPR and the repair error (SMSE or Brier of the corrupted cells, mean over columns).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.metrics import average_precision_score

from cellmend import PAPER, CellMender

SEEDS = (0, 1, 2)
ROWS, CELLS = 0.05, 0.2  # shares of rows, and of cells in a chosen row
CATEGORY = "wine_type"
SCHEMA = {"quality": "real", CATEGORY: "category"}


def corrupt(clean: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """The dirty table and where it is dirty, (rows, columns)."""
    n, d = clean.shape
    mask = np.zeros((n, d), dtype=bool)
    for row in rng.choice(n, round(ROWS * n), replace=False):
        mask[row, rng.choice(d, round(CELLS * d), replace=False)] = True
    dirty = clean.copy()
    for place, name in enumerate(clean.columns):
        rows = np.flatnonzero(mask[:, place])
        old = clean[name].to_numpy()
        if name == CATEGORY:
            others = {level: [x for x in set(old) if x != level] for level in set(old)}
            new = np.array([rng.choice(others[level]) for level in old[rows]])
        else:
            decimals = max(len(text.partition(".")[2]) for text in old.astype(str))
            whole = np.issubdtype(old.dtype, np.integer)
            noisy = old[rows] + rng.normal(0, 5 * old.std(), len(rows))
            new = noisy.round(0 if whole else decimals).astype(old.dtype)
        dirty.iloc[rows, place] = new
    return dirty, mask


def cell_avpr(scores: NDArray[np.float64], mask: NDArray[np.bool_]) -> float:
    return float(np.mean([average_precision_score(m, s) for m, s in zip(mask.T, scores.T, strict=True) if m.any()]))


def repair_error(mender: CellMender, clean: pd.DataFrame, dirty: pd.DataFrame, mask: NDArray[np.bool_]) -> float:
    """On corrupted cells: (x - repair)² / (x - column mean)² for numbers, Brier score for categories."""
    repaired, probabilities = mender.reconstruct(dirty), mender.reconstruct_proba(dirty)
    errors = []
    for place, name in enumerate(clean.columns):
        rows = mask[:, place]
        truth = clean[name][rows]
        if name in probabilities:
            p = probabilities[name].to_numpy()[rows]
            onehot = truth.to_numpy()[:, None] == probabilities[name].columns.to_numpy()
            errors.append(((p - onehot) ** 2).sum() / (2 * rows.sum()))
        else:
            centre = dirty[name].mean()
            errors.append(((truth - repaired[name][rows]) ** 2).sum() / ((truth - centre) ** 2).sum())
    return float(np.mean(errors))


def measure(settings: dict[str, object], clean: pd.DataFrame, seed: int) -> tuple[float, float, float]:
    dirty, mask = corrupt(clean, np.random.default_rng(seed))
    mender = CellMender(**settings, schema=SCHEMA, random_state=seed).fit(dirty)  # type: ignore[arg-type]
    return (
        cell_avpr(mender.cell_scores(dirty), mask),
        float(average_precision_score(mask.any(axis=1), mender.row_scores(dirty))),
        repair_error(mender, clean, dirty, mask),
    )


def main() -> None:
    if "CELLMEND_DATA" not in os.environ:
        sys.exit("CELLMEND_DATA must name the folder that holds wine.csv.gz; it is not set.")
    clean = pd.read_csv(Path(os.environ["CELLMEND_DATA"]) / "wine.csv.gz")
    methods = {
        "RVAE-CVI (PAPER)": PAPER,
        "RVAE-AVI": PAPER | {"weights": "amortized"},
        "RVAE-CVI, one-stage": PAPER | {"repair_method": "one-stage"},
        "RVAE-CVI, two-stage": PAPER | {"repair_method": "two-stage"},
        "VAE without L2": PAPER | {"weights": "none"},
        "VAE, weight decay 10": PAPER | {"weights": "none", "weight_decay": 10.0},
    }
    shown = Table("method", "cell AVPR", "row AVPR", "repair error", "seconds", title="wine, 5 % of rows, 3 seeds")
    for name, settings in methods.items():
        start = time.perf_counter()
        figures = np.array([measure(settings, clean, seed) for seed in SEEDS])
        seconds = (time.perf_counter() - start) / len(SEEDS)
        cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(figures.mean(axis=0), figures.std(axis=0), strict=True)]
        shown.add_row(name, *cells, f"{seconds:.0f}")
    Console().print(shown)


if __name__ == "__main__":
    main()
