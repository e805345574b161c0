"""The axis of a histogram: where its bins lie, and how its numbers and dates are written."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cellmend.table.dates import Dates
from cellmend.table.numbers import Numbers as NumberNotation
from cellmend.table.texts import Notation

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]

BINS = 30  # of a histogram at most, without the two for gross values
TAIL = 0.005  # of the values at either end, and one at least, may be gross and must not squash the rest
FEW = 10  # of fewer values none can be told to be gross
ON_GRID = 0.9  # of the values are multiples of a width: they are rounded, and a finer bin would be empty
FEW_BINS, FEW_LETTERS = 8, 40  # so few can have a number each, if all of them together are that short
UNITS = {"D": 86_400, "h": 3_600, "m": 60, "s": 1}  # of an axis of times, in seconds


@dataclass(frozen=True)
class Axis:
    """Where the bins of a histogram lie; before the first and after the last edge are two more, for gross values."""

    edges: Numbers
    unit: str  # what 1 is: "D", "h", "m" or "s" since 1970 of times, nothing of numbers
    is_centred: bool  # do values lie in the middle of their bins, as rounded ones do?
    notation: Notation | None = None  # how the column writes its values

    @property
    def middles(self) -> Numbers:
        return self.edges[:-1] / 2 + self.edges[1:] / 2

    def count(self, values: Numbers) -> Counts:
        """How many values lie before the first edge, in each bin, and from the last edge on."""
        places = np.searchsorted(self.edges, values[~np.isnan(values)], side="right")
        return np.bincount(places, minlength=len(self.edges) + 1)

    def say(self, number: float) -> str:
        """A number on this axis as the column would write it.

        >>> Axis(np.zeros(2), "D", False).say(18262), Axis(np.zeros(2), "", False).say(1150000.5)
        ('2020-01-01', '1,150,000')
        >>> Axis(np.zeros(2), "D", False, Dates("%d.%m.%Y")).say(18262)
        '01.01.2020'
        """
        if self.unit:
            return self._moment(number)
        digits = f"{float(f'{number:.6g}'):,.15g}"
        has_comma = isinstance(self.notation, NumberNotation) and self.notation.decimal == ","
        return self.notation.with_marks(digits) if has_comma else digits  # type: ignore[union-attr]

    def _moment(self, number: float) -> str:
        if isinstance(self.notation, Dates) and self.notation.form:
            days = math.floor(number) * UNITS[self.unit] / UNITS["D"]
            return str((self.notation.without_time() if self.unit == "D" else self.notation).write(days, None))
        time = np.int64(math.floor(number)).astype(f"datetime64[{self.unit}]")
        return str(time.astype("datetime64[m]") if self.unit == "h" else time).replace("T", " ")

    def describe(self, place: int) -> str:
        """What the numbers are like that `count` counts at a place."""
        if place == 0:
            return f"{'before' if self.unit else 'below'} {self.say(self.edges[0])}"
        if place == len(self.edges):
            return f"{self.say(self.edges[-1])} or {'later' if self.unit else 'more'}"
        if self.is_centred:
            return f"about {self.say(self.middles[place - 1])}"
        return f"{self.say(self.edges[place - 1])} to {self.say(self.edges[place])}"

    def ticks(self) -> list[str]:
        """The middle of every bin if they are few, else the ends of the axis and, where there is one, its middle."""
        ends = self.middles if self.is_centred else self.edges
        if self.is_centred and len(ends) <= (2 if self.unit else FEW_BINS):
            each = [self.say(tick) for tick in ends]
            if len("".join(each)) <= FEW_LETTERS:
                return each
        has_middle = len(ends) % 2 or not self.is_centred
        return [self.say(tick) for tick in [ends[0], *[ends[0] / 2 + ends[-1] / 2] * has_middle, ends[-1]]]


def axis_of(values: Numbers, unit: str, notation: Notation | None = None, usual: Numbers | None = None) -> Axis:
    """About 30 bins of a round width at most, over the middle 99 % of the values, or over all if none is far out.

    `usual` are the values that nothing speaks against, where that is known: none of the others may squash them.

    >>> axis = axis_of(np.append(np.linspace(0, 9.9, 1000), 1e9), "")  # one gross value
    >>> axis.edges[[0, 1, -1]].tolist(), axis.count(np.array([-3.0, 0.2, 1e9]))[[0, 1, -1]].tolist()
    ([0.0, 0.5, 10.0], [1, 1, 1])
    """
    low, high = middle(values if usual is None or not len(usual) else usual)
    least, most, reach = float(values.min()), float(values.max()), high / 4 - low / 4
    low, high = (least if least >= low - reach else low), (most if most <= high + reach else high)
    width, is_on_grid = bin_width(values[(values >= low) & (values <= high)])
    shift = width / 2 if is_on_grid else 0.0
    places = range(math.floor((low + shift) / width), math.floor((high + shift) / width) + 2)
    # With 15 digits the edge after 0.2 is 0.3, and the value 0.3 does not lie before it.
    edges = np.array([float(f"{place * width - shift:.15g}") for place in places])
    return Axis(np.nan_to_num(edges), unit, is_on_grid, notation)  # an edge past the largest float is that float


def middle(values: Numbers) -> tuple[float, float]:
    """The least and the largest value without those at the ends that may be gross.

    >>> middle(np.append(np.arange(9.0), 1e6)), middle(np.array([3.0]))
    ((1.0, 8.0), (3.0, 3.0))
    """
    aside = max(1, round(TAIL * len(values))) if len(values) >= FEW else 0
    ordered = np.partition(values, [aside, len(values) - 1 - aside])
    return float(ordered[aside]), float(ordered[-1 - aside])


def bin_width(values: Numbers) -> tuple[float, bool]:
    """1, 2 or 5 times a power of ten, and whether the values are multiples of it, as rounded ones may be.

    >>> bin_width(np.array([1.0, 2.0, 5.0])), bin_width(np.linspace(0, 100, 999))
    ((1.0, True), (5.0, False))
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        return (1.0, True) if low.is_integer() else (10.0 ** math.floor(math.log10(abs(low))), False)
    # Floats next to each other leave no room for bins between them.
    least = max(high / BINS - low / BINS, 16 * math.ulp(max(abs(low), abs(high))))
    power = 10.0 ** math.floor(math.log10(least))
    width = next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))
    coarser = 10.0 ** math.ceil(math.log10(width) - 1e-9)
    while coarser <= high - low and _are_multiples(values, coarser):
        width, coarser = coarser, 10 * coarser
    return width, _are_multiples(values, width)


def _are_multiples(values: Numbers, width: float) -> bool:
    steps = values / width
    return bool(np.mean(np.abs(steps - np.round(steps)) < 1e-6) >= ON_GRID)
