"""How the cost of the default grows with rows, columns and levels: draws docs/figures/growth.svg.

    python benchmarks/growth.py [FILE]

A table is made for each point. Seconds of a fit of four epochs, with all that comes before and after them, and of
scoring every cell: the better of two.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch
from rich.console import Console

from cellmend import CellMender

mpl.use("svg")
ROWS, COLUMNS, LEVELS = 10_000, 12, 10  # where the other two stay
GROWING = {
    "rows": (2_500, 5_000, 10_000, 20_000, 40_000),
    "columns": (6, 12, 24, 48),
    "levels": (2, 10, 50, 250),
}
EPOCHS = 4
say = Console(highlight=False).print


def table(rows: int, columns: int, levels: int) -> pd.DataFrame:
    """Half numbers, half categories, that follow three hidden factors."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(rows, 3))
    made = {}
    for d in range(columns):
        value = factors @ rng.normal(size=3) + 0.3 * rng.normal(size=rows)
        made[f"c{d}"] = value if d % 2 else (value.argsort().argsort() * levels // rows).astype(str)
    return pd.DataFrame(made)


def cost(rows: int, columns: int, levels: int) -> tuple[float, float]:
    """Seconds of a fit of a few epochs, and of scoring."""
    frame = table(rows, columns, levels)
    kinds = {name: "real" if d % 2 else "category" for d, name in enumerate(frame)}
    fits, scores = [], []
    for _ in range(2):
        mender = CellMender(epochs=EPOCHS, schema=kinds, random_state=0, device="cpu")
        start = time.perf_counter()
        mender.fit(frame)
        fits.append(time.perf_counter() - start)
        start = time.perf_counter()
        mender.cell_scores(frame)
        scores.append(time.perf_counter() - start)
    return min(fits), min(scores)


def draw(found: dict[str, list[tuple[float, float]]], path: Path) -> None:
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for panel, (what, values) in zip(panels, GROWING.items(), strict=True):
        for place, name in enumerate(("four epochs of training", "scoring every cell")):
            panel.loglog(values, [point[place] for point in found[what]], marker="o", label=name)
        start = found[what][0][0]
        panel.loglog(
            values, [start * value / values[0] for value in values], ls=":", color="gray", label="proportional"
        )
        panel.set(xlabel=what, ylabel="seconds" if what == "rows" else "", xticks=values, xticklabels=values)
        panel.minorticks_off()
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path)


def main() -> None:
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    found: dict[str, list[tuple[float, float]]] = {}
    usual = {"rows": ROWS, "columns": COLUMNS, "levels": LEVELS}
    for what, values in GROWING.items():
        found[what] = [cost(**(usual | {what: value})) for value in values]
        for value, (fit, score) in zip(values, found[what], strict=True):
            say(f"{what} {value:,}: {fit:.2f} s for {EPOCHS} epochs, {score:.2f} s scored")
    draw(found, Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/figures/growth.svg"))


if __name__ == "__main__":
    main()
