"""Our default and RVAE as published on the wine table with 5 % of its rows corrupted: a first look in minutes.

    CELLMEND_DATA=folder python benchmarks/wine.py

Without CELLMEND_DATA the table is downloaded. Prints cell AVPR (mean over columns), row AVPR and the repair error
(SMSE or Brier score of the corrupted cells, mean over columns): mean and deviation of 3 corruptions.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from cellmend import PAPER, CellMender
from cellmend_bench.corruption import corrupt
from cellmend_bench.datasets import Dataset, load_dataset
from cellmend_bench.experiments import measure

SEEDS = (0, 1, 2)
METHODS: dict[str, dict[str, object]] = {
    "cellmend (default)": {},
    "RVAE-CVI (PAPER)": PAPER,
    "RVAE-AVI": PAPER | {"weights": "amortized"},
    "RVAE-CVI, one-stage": PAPER | {"repair_method": "one-stage"},
    "RVAE-CVI, two-stage": PAPER | {"repair_method": "two-stage"},
    "VAE without L2": PAPER | {"weights": "none"},
    "VAE, weight decay 10": PAPER | {"weights": "none", "weight_decay": 10.0},
}


def figures(wine: Dataset, settings: dict[str, object], seed: int) -> list[float]:
    dirty = corrupt(wine.frame, wine.schema, noise="gaussian", rows=0.05, seed=seed)
    mender = CellMender(**settings, schema=wine.schema, random_state=seed).fit(dirty[0])  # type: ignore[arg-type]
    found = measure(wine, None, mender, dirty)
    return [found[name] or 0.0 for name in ("cell_avpr", "row_avpr", "repair")]


def main() -> None:
    wine = load_dataset("wine")
    shown = Table("method", "cell AVPR", "row AVPR", "repair error", "seconds", title="wine, 5 % of rows, 3 seeds")
    for name, settings in METHODS.items():
        start = time.perf_counter()
        each = np.array([figures(wine, settings, seed) for seed in SEEDS])
        seconds = (time.perf_counter() - start) / len(SEEDS)
        cells = [f"{mean:.3f} ± {sd:.3f}" for mean, sd in zip(each.mean(axis=0), each.std(axis=0), strict=True)]
        shown.add_row(name, *cells, f"{seconds:.0f}")
    Console(width=100).print(shown)


if __name__ == "__main__":
    main()
