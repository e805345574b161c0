"""What the rest of the row and the rows around it say about a cell, apart from pairs of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.posterior import forms
from cellmend.posterior.known import Coded, Floats, Known
from cellmend.posterior.looks import log_share

BESIDE = ("left", "right", "left_shape", "right_shape", "elsewhere", "echo")
ORDER = (
    "off_neighbours",
    "breaks_order",
    "share_ordered",
    "alone_in_run",
    "share_in_runs",
    "as_before",
    "share_as_before",
)
FEWEST_ORDERED = 20  # rows before their order says something


def beside(known: Sequence[Known], columns: Sequence[Coded], everywhere: Everywhere) -> Floats:
    """Would the text be at home in the column to the left, to the right, or in any other? Does it stand again in its
    row? (N, D, 6)."""
    rows, width = len(columns[0].codes), len(columns)
    figures = np.zeros((rows, width, len(BESIDE)))
    shapes = [forms.shape(column.texts) for column in columns]
    for at, column in enumerate(columns):
        if not len(column.texts):
            continue
        of_text = np.zeros((len(column.texts), len(BESIDE) - 1))
        own = log_share(known[at].total(None, column.texts), known[at])
        own_shape = log_share(known[at].shapes.total(None, shapes[at]), known[at])
        for place, neighbour in enumerate((at - 1, at + 1)):
            if 0 <= neighbour < width:
                other = known[neighbour]
                of_text[:, place] = log_share(other.total(None, column.texts) + 1, other) - own
                of_text[:, 2 + place] = log_share(other.shapes.total(None, shapes[at]) + 1, other) - own_shape
        own_cells = known[at].total(forms.folded, column.texts)
        of_text[:, 4] = np.log1p(np.maximum(everywhere.total(column.texts) - own_cells, 0.0))
        figures[:, at, :5] = np.append(of_text, np.zeros((1, 5)), axis=0)[column.codes]
    figures[..., 5] = _echo(columns)
    return figures


@dataclass(frozen=True)
class Everywhere:
    """How often each text stands in the whole table, without case and needless spaces."""

    texts: pa.StringArray
    cells: Floats

    @classmethod
    def of(cls, known: Sequence[Known]) -> Everywhere:
        coded = pa.chunked_array([forms.folded(each.texts) for each in known], pa.string()).combine_chunks()
        coded = coded.dictionary_encode()
        cells = np.concatenate([each.counts for each in known]).astype(np.float64)
        index = coded.indices.to_numpy(zero_copy_only=False)
        totals = np.bincount(index, cells, minlength=len(coded.dictionary)).astype(np.float64)
        return cls(coded.dictionary.cast(pa.string()), totals)

    def total(self, texts: pa.StringArray) -> Floats:
        """Cells of the table with each text, (T,)."""
        places = pc.index_in(forms.folded(texts), value_set=self.texts).fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(self.cells, 0.0)[places]


def _echo(columns: Sequence[Coded]) -> Floats:
    """Does the text stand in another column of its row, (N, D)?"""
    everything = pa.chunked_array([forms.folded(column.texts) for column in columns], pa.string()).combine_chunks()
    index = everything.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    starts = np.cumsum([0, *(len(column.texts) for column in columns)])
    codes = np.stack(
        [np.append(index[starts[at] : starts[at + 1]], -1)[column.codes] for at, column in enumerate(columns)], axis=1
    )  # equal texts have equal codes, -1 for none
    order = np.argsort(codes, axis=1, kind="stable")
    ranked = np.take_along_axis(codes, order, axis=1)
    same = (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0)
    twice = np.pad(same, ((0, 0), (1, 0))) | np.pad(same, ((0, 0), (0, 1)))
    echoed = np.zeros(codes.shape)
    np.put_along_axis(echoed, order, twice.astype(np.float64), axis=1)
    return echoed


def order(known: Sequence[Known], columns: Sequence[Coded]) -> Floats:
    """What the rows before and after say, (N, D, 7); nothing in a table of few rows."""
    rows = len(columns[0].codes)
    figures = np.zeros((rows, len(columns), len(ORDER)))
    if rows < FEWEST_ORDERED:
        return figures
    for at, (own, column) in enumerate(zip(known, columns, strict=True)):
        values = np.append(own.read(column.texts), np.nan)[column.codes]
        if np.isfinite(values).mean() > 0.5:
            figures[:, at, :3] = _number_order(values)
        figures[:, at, 3:] = _runs(column.codes)
    return figures


def _number_order(values: Floats) -> Floats:
    """How far a number lies from its neighbours against what is usual, and does it alone break an order, (N, 3)?"""
    before, after = np.append(values[:1], values[:-1]), np.append(values[1:], values[-1:])
    with np.errstate(all="ignore"):
        off = np.abs(values - (before + after) / 2)
        usual = np.nanmedian(off) + 1e-9 * (np.nanmax(np.abs(values)) + 1e-300)
        steps = np.diff(values)
        rises = np.nanmean(steps >= 0), np.nanmean(steps <= 0)
        up = rises[0] >= rises[1]
        between = (before <= after) if up else (before >= after)
        inside = ((values >= before) & (values <= after)) if up else ((values <= before) & (values >= after))
        broken = between & ~inside & np.isfinite(values + before + after)
        found = np.stack([np.log1p(off / usual), broken, np.full(len(values), max(rises))], axis=1)
    return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)


def _runs(codes: NDArray[np.int64]) -> Floats:
    """Does a value stand alone between two that are the same, and is it that of the row before, (N, 4)?"""
    before, after = np.append(-3, codes[:-1]), np.append(codes[1:], -4)
    seen = codes >= 0
    agree, stuck = (before == after) & (before >= 0), (codes == before) & seen
    share = agree.mean(), stuck.mean()
    each = agree & (codes != before) & seen, np.full(len(codes), share[0]), stuck, np.full(len(codes), share[1])
    return np.stack([np.asarray(one, dtype=np.float64) for one in each], axis=1)


def extremes(far: Floats) -> Floats:
    """How far out the other numbers of the row lie, in the mean and at most, (N, D, 2), by how far each is, (N, D)."""
    size = np.abs(far)
    known = far != 0
    others = known.sum(1, keepdims=True) - known
    mean = np.where(others > 0, (size.sum(1, keepdims=True) - size) / np.maximum(others, 1), 0.0)
    ranked = np.sort(size, axis=1)
    most = np.where(size == ranked[:, -1:], ranked[:, -2:-1] if far.shape[1] > 1 else 0.0, ranked[:, -1:])
    return np.stack([mean, most], axis=-1)


EXTREMES = ("others_far", "other_farthest")
