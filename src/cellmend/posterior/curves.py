"""What the rest of a row says about a number: where it lies beside such numbers, and among rows of such a level.

All of it is worked out on a logarithmic scale that keeps signs, on which a fixed ratio is a straight line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cellmend.posterior.amounts import POWERS_OF_TEN, signed_log
from cellmend.posterior.known import Floats
from cellmend.posterior.priors import LEARNED_ROWS

Codes = NDArray[np.int64]
NAMES = (
    "curve_off",
    "curve_off_most",
    "curve_tells",
    "curve_confirms",
    "curve_if_moved",
    "curve_if_sign_changed",
    "group_off",
    "group_tells",
)
FEWEST = 30  # rows that have both, before one is said to tell about the other
IN_BIN = 8  # rows of a knot at least: their medians bear two or three errors
MOST_KNOTS = 64  # of a curve: finer ones follow the noise
FEWEST_KNOTS = 3  # of a curve
TRIED = 4  # columns of numbers whose ranks go with the column's most
KEPT = 2  # of them are asked: where both say the same, the cell is wrong and not the partner
IN_GROUP = 5  # rows of a level at least, so that their median is not the judged cell itself
LEAST_WIDTH = 1e-4  # of the column's, where a formula leaves nothing
TELLS = 0.3  # natural logarithms by which the rest of the row must narrow a number down


@dataclass(frozen=True)
class Curve:
    """Where a column's numbers lie beside those of another column."""

    column: int
    partner: int
    beside: Floats  # (K,) numbers of the partner
    middle: Floats  # (K,) of the column
    width: float  # of what is left
    tells: float  # log of how much narrower that is than the column

    def off(self, own: Floats, beside: Floats) -> Floats:
        """How many widths the column's numbers lie off the curve, (n,)."""
        return (own - self.at(beside)) / self.width

    def at(self, beside: Floats) -> Floats:
        """Where the column's numbers lie beside such numbers, (n,): beyond the knots the curve goes straight on."""
        x, y = self.beside, self.middle
        inner = (len(x) - 1) // 4 + 1  # knots inwards, so that one of them does not give the direction
        low, high = ((y[a] - y[b]) / (x[a] - x[b]) for a, b in ((0, inner), (-1, -1 - inner)))
        beyond = low * np.minimum(beside - x[0], 0) + high * np.maximum(beside - x[-1], 0)
        return np.interp(beside, x, y) + beyond


@dataclass(frozen=True)
class Group:
    """Where a column's numbers lie in rows with each value of another column."""

    column: int
    partner: int
    levels: Codes  # (L,) places of the partner's values that stand in enough rows, in order
    middle: Floats  # (L,)
    width: float
    tells: float

    def off(self, own: Floats, level: Codes) -> Floats:
        """How many widths the column's numbers lie off the middle of their level, (n,); NaN for other levels."""
        at = np.minimum(np.searchsorted(self.levels, level), len(self.levels) - 1)
        return np.where(self.levels[at] == level, (own - self.middle[at]) / self.width, np.nan)


T = TypeVar("T", Curve, Group)


@dataclass(frozen=True)
class Curves:
    """What is known of each column of numbers by others."""

    curves: tuple[Curve, ...] = ()
    groups: tuple[Group, ...] = ()

    @classmethod
    def learn(cls, values: Floats, codes: Codes) -> Curves:
        """From the numbers of a table, (N, D), NaN for none, and the places of its values, -1 for none."""
        some = np.linspace(0, len(values) - 1, min(LEARNED_ROWS, len(values))).astype(np.int64)
        scaled, codes = signed_log(values[some]), codes[some]
        numbers = [at for at in range(scaled.shape[1]) if _varies(scaled[:, at])]
        alike, levels = _alikeness(scaled, numbers), _levels(codes)
        curves, groups = list[Curve](), list[Group]()
        for at, own in zip(numbers, alike, strict=True):
            tried = [numbers[other] for other in np.argsort(-own, kind="stable")[:TRIED].tolist() if own[other] > 0]
            curves += _most_telling([_curve(scaled, at, partner) for partner in tried])[:KEPT]
            groups += _most_telling([_group(scaled, codes, at, level) for level in levels if level != at])[:1]
        return cls(tuple(curves), tuple(groups))

    def evidence(self, values: Floats, codes: Codes) -> Floats:
        """Figures of each cell, (N, D, names), 0 where nothing is said."""
        scaled, figures = signed_log(values), np.zeros((*values.shape, len(NAMES)))
        by_column: dict[int, list[Curve]] = {}
        for curve in self.curves:
            by_column.setdefault(curve.column, []).append(curve)
        for column, own in by_column.items():
            figures[:, column, : len(NAMES) - 2] = _by_curves(own, values[:, column], scaled)
        for group in self.groups:
            off = group.off(scaled[:, group.column], codes[:, group.partner])
            said = np.stack([_soft(off), np.full(len(off), group.tells)], axis=1)
            figures[:, group.column, -2:] = np.where(np.isfinite(off)[:, None], said, 0.0)
        return figures


def _by_curves(curves: list[Curve], values: Floats, scaled: Floats) -> Floats:
    """Figures of one column's cells by what its partners say, (N, 6)."""
    beside = [scaled[:, curve.partner] for curve in curves]

    def least(numbers: Floats) -> tuple[Floats, Floats]:
        """How far off each number is by the partner it suits best, and by the other, with signs."""
        off = np.stack([c.off(signed_log(numbers), b) for c, b in zip(curves, beside, strict=True)])
        off = np.where(np.isfinite(off), off, np.inf)  # a partner that is empty says nothing
        best = np.abs(off).argmin(0)
        others = np.where(np.isfinite(off), off, 0.0)
        most = np.take_along_axis(others, np.abs(others).argmax(0)[None], 0)[0]
        return np.take_along_axis(off, best[None], 0)[0], most

    off, most = least(values)
    moved = np.min([np.abs(least(values * factor)[0]) for factor in POWERS_OF_TEN], axis=0)
    turned = np.abs(least(-values)[0])
    with np.errstate(invalid="ignore"):
        gains = [np.log1p(np.abs(off)) - np.log1p(each) for each in (moved, turned)]
    tells = curves[0].tells
    with np.errstate(over="ignore"):
        # How much likelier such a number is beside its partner than anywhere in the column, in heavy tails.
        confirms = np.maximum(tells - np.log1p(off**2), 0.0)
    found = np.stack([_soft(off), _soft(most), np.full(len(off), tells), confirms, *gains], axis=1)
    return np.where(np.isfinite(off)[:, None], found, 0.0)


def _soft(off: Floats) -> Floats:
    return np.sign(off) * np.log1p(np.abs(off))


def _width(x: Floats) -> float:
    """How far numbers lie apart, whatever a tenth of them at either end does."""
    low, q1, q3, high = np.quantile(x, (0.1, 0.25, 0.75, 0.9))
    return max(float(q3 - q1) / 1.349, float(high - low) / 2.563)


def _varies(x: Floats) -> bool:
    seen = x[np.isfinite(x)]
    return len(seen) >= FEWEST and len(seen) > len(x) / 2 and _width(seen) > 0


def _alikeness(scaled: Floats, numbers: list[int]) -> Floats:
    """How well the ranks of each two columns go together, either way, (d, d); 0 with itself."""
    x = scaled[:, numbers]
    seen = np.isfinite(x)
    ranks = np.where(seen, x, np.inf).argsort(0, kind="stable").argsort(0, kind="stable") / np.maximum(seen.sum(0), 1)
    centred = np.where(seen, ranks - 0.5, 0.0)
    size = np.sqrt((centred**2).sum(0)).clip(1e-9)
    alike: Floats = np.abs(centred.T @ centred) / size / size[:, None]
    np.fill_diagonal(alike, 0.0)
    return alike


def _levels(codes: Codes) -> list[int]:
    """Columns by whose values rows can be grouped."""
    found = []
    for at, own in enumerate(codes.T):
        counts = np.bincount(own[own >= 0])
        if (counts >= IN_GROUP).sum() > 1 and counts[counts >= IN_GROUP].sum() > len(own) / 2:
            found.append(at)
    return found


def _curve(scaled: Floats, column: int, partner: int) -> Curve | None:
    """The medians of a column in rows that are neighbours by another."""
    both = np.isfinite(scaled[:, column]) & np.isfinite(scaled[:, partner])
    own, beside = scaled[both, column], scaled[both, partner]
    if len(own) < FEWEST:
        return None
    order = np.argsort(beside, kind="stable")
    bins = np.array_split(order, min(MOST_KNOTS, len(own) // IN_BIN))
    places, back = np.unique([np.median(beside[each]) for each in bins], return_inverse=True)
    middles = np.array([np.median(own[each]) for each in bins])
    middle = np.bincount(back, middles) / np.bincount(back)
    if len(places) < FEWEST_KNOTS:
        return None
    curve = Curve(column, partner, places, middle, 1.0, 0.0)
    width, tells = _narrowed(own, curve.off(own, beside))
    return replace(curve, width=width, tells=tells) if tells > TELLS else None


def _group(scaled: Floats, codes: Codes, column: int, partner: int) -> Group | None:
    """The medians of a column in rows with the same value of another."""
    own, level = scaled[:, column], codes[:, partner]
    both = np.isfinite(own) & (level >= 0)
    own, level = own[both], level[both]
    counts = np.bincount(level, minlength=1)
    starts, levels = np.cumsum(counts) - counts, np.flatnonzero(counts >= IN_GROUP)
    ordered, size = own[np.lexsort((own, level))], counts[levels]
    middle = (ordered[starts[levels] + (size - 1) // 2] + ordered[starts[levels] + size // 2]) / 2
    grouped = Group(column, partner, levels, middle, 1.0, 0.0)
    left = grouped.off(own, level) if len(levels) else np.empty(0)
    told = np.isfinite(left)
    if told.sum() < FEWEST:
        return None
    width, tells = _narrowed(own[told], left[told])
    return replace(grouped, width=width, tells=tells) if tells > TELLS else None


def _narrowed(own: Floats, left: Floats) -> tuple[float, float]:
    """How wide what is left lies, and the log of how much narrower that is."""
    whole = _width(own)
    width = max(_width(left), LEAST_WIDTH * whole)
    return width, float(np.log(whole / width)) if whole > 0 else 0.0


def _most_telling(found: Sequence[T | None]) -> list[T]:
    """Those that tell anything, the most telling first."""
    return sorted((each for each in found if each is not None), key=lambda each: -each.tells)
