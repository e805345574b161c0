"""How well models learn new rows without forgetting the old ones, on tables whose new rows are of another kind.

    CELLMEND_DATA=folder python benchmarks/updating.py [TABLE ...]

4,000 old rows are fitted, then 1,500 new ones learned: red wine after white, people with a degree after those without,
the letters S to Z after A to R. Errors are in 10 % of the rows. Prints cell AVPR (mean over columns) on old and on new
rows, mean of 2 seeds, and seconds.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor

from cellmend import CellMender
from cellmend.evaluation.evaluation import cell_avprs
from cellmend.model.encoding import Cells
from cellmend.model.network import RVAE, Bound, Rows, elbo, rows_of
from cellmend.model.training import hide_some
from cellmend_bench.corruption import corrupt
from cellmend_bench.datasets import load_dataset

SEEDS = (0, 1)
OLD_ROWS, NEW_ROWS, DIRTY, EPOCHS = 4000, 1500, 0.1, 30
DEGREES = ("Bachelors", "Masters", "Prof-school", "Doctorate")
IS_NEW: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "wine": ("wine_type", lambda kind: int(kind) == 1),
    "adult": ("education", lambda education: education in DEGREES),
    "letter": ("letter", lambda letter: letter >= "S"),
}
Part = tuple[pd.DataFrame, NDArray[np.bool_]]


def parts(name: str, seed: int) -> tuple[dict[str, str], Part, Part]:
    """Kinds of the columns, and the old and the new rows with where their errors are."""
    data, (column, test) = load_dataset(name), IS_NEW[name]
    new, rng = data.frame[column].map(test).to_numpy(bool), np.random.default_rng(seed)
    old_rows, new_rows = rng.permutation(np.flatnonzero(~new))[:OLD_ROWS], rng.permutation(np.flatnonzero(new))
    chosen = data.frame.iloc[[*old_rows, *new_rows[:NEW_ROWS]]].reset_index(drop=True)
    dirty, wrong = corrupt(chosen, data.schema, noise="gaussian", rows=DIRTY, seed=seed)
    count = len(old_rows)
    later = dirty.iloc[count:].reset_index(drop=True)
    return {c.name: c.kind for c in data.schema}, (dirty.iloc[:count], wrong[:count]), (later, wrong[count:])


@contextmanager
def nothing_remembered() -> Iterator[None]:
    """An update meanwhile learns the new rows alone."""
    with patch("cellmend.model.update.REMEMBERED", (0, 0)):
        yield


@contextmanager
def pulled(strength: float, old: Cells | None) -> Iterator[None]:
    """The same, with weights pulled back to where they were; with old cells by how much those depend on each."""
    start: list[Tensor] = []
    force: list[Tensor] = []

    def bound(network: RVAE, rows: Rows, z: Tensor, *others: Any, **settings: Any) -> Tensor:
        if not start:
            start.extend(weight.detach().clone() for weight in network.parameters())
            force.extend(_fisher(network, old) if old is not None else map(torch.ones_like, start))
        triples = zip(force, network.parameters(), start, strict=True)
        away = torch.stack([(f * (weight - w).square()).sum() for f, weight, w in triples]).sum()
        return elbo(network, rows, z, *others, **settings) - 0.5 * strength * away / NEW_ROWS

    with nothing_remembered(), patch("cellmend.model.training.elbo", bound):
        yield


def _fisher(network: RVAE, cells: Cells) -> list[Tensor]:
    """The diagonal of the Fisher information of all these rows, from batches of them."""
    generator = torch.Generator().manual_seed(0)
    learned, weights = rows_of(network, cells, alpha=0.95), list(network.parameters())
    total = [torch.zeros_like(weight) for weight in weights]
    for batch in torch.randperm(len(cells), generator=generator).split(32):
        rows = Rows(*(each[batch] for each in learned))
        seen, asked = hide_some(rows.known, 0.5, generator, batch.shape)
        z = network.encode_mean(network.inputs_of(rows.values, seen))
        rows = rows._replace(known=seen, asked=asked)
        gain = elbo(network, rows, z, None, Bound("coordinate", 0.95, 0.0)).sum()
        for own, gradient in zip(total, torch.autograd.grad(gain, weights, allow_unused=True), strict=True):
            own.add_(0 if gradient is None else gradient.square())
    return total


def quality(mender: CellMender, part: Part) -> float:
    return float(np.nanmean(cell_avprs(mender.cell_scores(part[0]), part[1])))


def figures(name: str, seed: int) -> Iterator[tuple[str, list[float]]]:
    """For each way its name, cell AVPR on old and on new rows, and seconds."""
    kinds, old, new = parts(name, seed)

    def fitted(rows: pd.DataFrame, keep_rows: int = 0) -> CellMender:
        return CellMender(schema=kinds, epochs=EPOCHS, keep_rows=keep_rows, random_state=seed).fit(rows)

    def measured(make: Callable[[], CellMender]) -> list[float]:
        begin = time.perf_counter()
        mender = make()
        return [quality(mender, old), quality(mender, new), time.perf_counter() - begin]

    both = pd.concat([old[0], new[0]], ignore_index=True)
    first = fitted(old[0])
    cells = first.encoder_.encode(first._read(old[0]))
    yield "fitted to the old rows", measured(lambda: fitted(old[0]))
    yield "fitted to all rows", measured(lambda: fitted(both))
    for title, how in (
        ("new rows alone", nothing_remembered()),
        ("new rows, weights pulled back", pulled(1000.0, None)),
        ("new rows, pulled by Fisher information", pulled(10.0, cells)),
    ):
        mender = fitted(old[0])
        with how:
            yield title, measured(lambda mender=mender: mender.update(new[0]))  # type: ignore[misc]
    for keep_rows in (0, 500, 2000):
        mender = fitted(old[0], keep_rows)
        title = f"update, keep_rows={keep_rows}"
        yield title, measured(lambda mender=mender: mender.update(new[0]))  # type: ignore[misc]


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # columns of the old rows that have one value
    for name in sys.argv[1:] or IS_NEW:
        found: dict[str, list[list[float]]] = {}
        for seed in SEEDS:
            for way, each in figures(name, seed):
                found.setdefault(way, []).append(each)
        shown = Table("way", "old rows", "new rows", "seconds", title=f"{name}, cell AVPR")
        for way, each_seed in found.items():
            old, new, seconds = np.mean(each_seed, axis=0)
            shown.add_row(way, f"{old:.3f}", f"{new:.3f}", f"{seconds:.0f}")
        Console(width=100).print(shown)


if __name__ == "__main__":
    main()
