"""Known errors for any table: the noises of the paper and others, in rows, in columns or scattered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellmend.model.columns import EncodedColumn, LevelColumn
from cellmend.model.encoding import TableEncoder
from cellmend.table.readtable import read_typed
from cellmend.table.schema import Schema

CELLS = 0.2  # share of the cells of a chosen row
Rng = np.random.Generator


@dataclass(frozen=True)
class Noise:
    """What happens to a chosen cell: `draw` is added to numbers, in standard deviations of the clean column;
    a level becomes another one with probability proportional to frequency to the power `beta`.

    Or numbers become what `change` makes of them, from some (n,) and from all of the column, in the user's units.
    """

    draw: Callable[[Rng, int], NDArray[np.float64]]
    beta: float
    change: Callable[[Rng, NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]] | None = None


def _mixture(rng: Rng, size: int) -> NDArray[np.float64]:
    return rng.normal(np.where(rng.random(size) < 0.6, -0.5, 0.5), 3.0)


def _nothing(rng: Rng, size: int) -> NDArray[np.float64]:
    return np.zeros(size)


SCALES = (-3, -2, -1, 1, 2, 3)  # powers of ten between units, and of a decimal point that slipped
LAYOUTS = ("rows", "columns", "cells")  # where the errors lie
SPOILED_COLUMNS = 0.2  # of all
NOISES = {
    "gaussian": Noise(lambda rng, size: rng.normal(0, 5, size), beta=0.0),
    "laplace4-0.5": Noise(lambda rng, size: rng.laplace(0, 4, size), beta=0.5),
    "laplace4-0.8": Noise(lambda rng, size: rng.laplace(0, 4, size), beta=0.8),
    "laplace8-0.8": Noise(lambda rng, size: rng.laplace(0, 8, size), beta=0.8),
    "lognormal": Noise(lambda rng, size: rng.lognormal(0, 0.75, size), beta=0.0),
    "mixture": Noise(_mixture, beta=0.0),
    "small": Noise(lambda rng, size: rng.normal(0, 2, size), beta=0.5),
    "other-row": Noise(_nothing, beta=1.0, change=lambda rng, cells, known: rng.choice(known, len(cells))),
    "unit": Noise(_nothing, beta=0.5, change=lambda rng, cells, known: cells * 10.0 ** rng.choice(SCALES, len(cells))),
}


def corrupt(
    table: Any, schema: Schema, *, noise: str, rows: float, seed: int, layout: str = "rows"
) -> tuple[Any, NDArray[np.bool_]]:
    """The table with errors in a share of its rows, its own kind, and where they are, (rows, columns).

    In each chosen row 20 % of the modelled cells are corrupted; by another layout that share of the cells of 20 % of
    the columns, or of all cells. Numbers are rounded to the resolution of
    their column, so that too many digits give nothing away; a cell that comes out as it was is not counted.
    Missing cells stay missing.

    >>> import pandas as pd
    >>> clean = pd.DataFrame({"a": range(100), "b": [0.5] * 50 + [1.5] * 50})
    >>> schema = Schema.from_dict({"a": "real", "b": "real"})
    >>> dirty, mask = corrupt(clean, schema, noise="gaussian", rows=0.1, seed=0)
    >>> (dirty != clean).to_numpy().tolist() == mask.tolist()
    True
    """
    if noise not in NOISES:
        raise ValueError(f"noise must be one of {', '.join(NOISES)}; it is {noise!r}.")
    rng = np.random.default_rng(seed)
    source = read_typed(table)
    encoder = TableEncoder.fit(schema, source)
    cells = encoder.encode(source)
    clean, observed = cells.values.double().numpy(), cells.observed.numpy()
    chosen = _choose(rng, clean.shape, rows, layout) & observed & np.isfinite(clean)
    dirty = clean.copy()
    for d, column in enumerate(encoder.columns):
        at, known = chosen[:, d], clean[observed[:, d] & np.isfinite(clean[:, d]), d]
        dirty[at, d] = _corrupt_column(rng, column, clean[at, d], known, NOISES[noise])
    changes = {
        encoder.positions[d]: column.change(chosen[:, d], dirty[chosen[:, d], d])
        for d, column in enumerate(encoder.columns)
        if chosen[:, d].any()
    }
    written = source.frame.with_cells(changes)
    return written, encoder.spread(_changed(encoder, source, written, chosen), source)


def _choose(rng: Rng, shape: tuple[int, ...], rows: float, layout: str) -> NDArray[np.bool_]:
    """Cells (N, D): a share of the rows, and in each of them its own random 20 %; or as another layout says."""
    if layout != "rows":
        spoiled = np.ones(shape[1], dtype=bool)
        if layout == "columns":
            spoiled[rng.permutation(shape[1])[max(1, round(SPOILED_COLUMNS * shape[1])) :]] = False
        return (rng.random(shape) < rows) & spoiled
    picked = rng.permutation(shape[0])[: round(rows * shape[0])]
    order = rng.random((len(picked), shape[1])).argsort(axis=1)
    mask = np.zeros(shape, dtype=bool)
    mask[picked] = order < max(1, round(CELLS * shape[1]))
    return mask


def _corrupt_column(
    rng: Rng, column: EncodedColumn, cells: NDArray[np.float64], known: NDArray[np.float64], noise: Noise
) -> NDArray[np.float64]:
    if isinstance(column, LevelColumn):
        return _other_levels(rng, cells.astype(int), known.astype(int), len(column.levels), noise.beta)
    if noise.change is not None:
        in_units = noise.change(rng, column.decode(cells), column.decode(known))
        return in_units if column.kind == "count" else (in_units - column.mean) / column.sd
    noisy = cells + noise.draw(rng, len(cells)) * known.std()
    return np.abs(np.round(noisy)) if column.kind == "count" else noisy


def _other_levels(
    rng: Rng, cells: NDArray[np.int64], known: NDArray[np.int64], levels: int, beta: float
) -> NDArray[np.float64]:
    """Another level for each cell; one that never occurs is drawn with beta 0 only."""
    frequency = np.bincount(known, minlength=levels) / max(len(known), 1)
    chance = np.tile(frequency**beta, (len(cells), 1))
    chance[np.arange(len(cells)), cells] = 0.0
    lonely = chance.sum(axis=1) == 0  # no other level occurs: any of them will do
    chance[lonely] = 1.0
    chance[np.arange(len(cells)), cells] = 0.0
    at_most = (chance / chance.sum(axis=1, keepdims=True)).cumsum(axis=1)
    drawn = (at_most < rng.random((len(cells), 1))).sum(axis=1)
    return np.minimum(drawn, levels - 1).astype(np.float64)


def _changed(encoder: TableEncoder, source: Any, written: Any, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the chosen cells really differ after rounding."""
    before, after = encoder.encode(source).values.numpy(), encoder.encode(read_typed(written)).values.numpy()
    return chosen & (before != after)
