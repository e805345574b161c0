"""Columns of numbers and dates as relations see them: their values, how finely they are written, what is usual."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cellmend.table.dates import Dates
from cellmend.table.numbers import MOST_DECIMALS, Numbers
from cellmend.table.priors import BUT_FOR_ERRORS
from cellmend.table.readtable import ReadTable
from cellmend.table.schema import DATE, IGNORE, Schema
from cellmend.table.values import Floats, as_text, level_text, plain

KNOTS = 33  # quantiles by which it is known where the numbers of a column lie
ENDS = 0.005  # of the numbers lie beyond the outermost knots
TOLD_FROM = 20_000  # numbers from which the unit is told
MOMENTS = (1.0, 1 / 24, 1 / 1440, 1 / 86_400)  # days, hours, minutes, seconds: units of dates, in days
EXACT = 1e-9  # of a number, within which floats are equal
FINEST = 1e-4  # of the column's width: finer units do not make a number less likely by chance
OFF_UNIT = 1e-3  # how much less likely a number is that is finer than its column


@dataclass(frozen=True)
class Quantity:
    """What is usual in one column of numbers or dates; dates are days since 1970."""

    name: str
    unit: float  # all numbers are multiples of it; 0 if they are as fine as floats
    knots: tuple[float, ...]  # quantiles, rising
    is_date: bool = False

    @property
    def width(self) -> float:
        """Of the range in which nearly all numbers lie."""
        return max(self.knots[-1] - self.knots[0], self.unit, EXACT)

    @property
    def cell(self) -> float:
        """The width of a number, as far as it is known."""
        return max(self.unit, FINEST * self.width)

    def rounded(self, numbers: Floats) -> Floats:
        """The nearest numbers that the column could hold."""
        if not self.unit:
            return numbers
        steps = np.round(numbers / self.unit)
        per_one = round(1 / self.unit)
        return steps / per_one if self.unit < 1 and per_one else steps * self.unit

    def log_natural(self, numbers: Floats) -> Floats:
        """Log chance of these numbers in the column, (n,): of the room between two quantiles, by its width.

        >>> even = Quantity("x", 1.0, tuple(np.linspace(0, 320, KNOTS).tolist()))
        >>> np.exp(even.log_natural(np.array([15.0, 3000.0]))).round(6).tolist()
        [0.003094, 0.0]
        """
        knots = np.array(self.knots)
        place = np.clip(np.searchsorted(knots, numbers, side="right") - 1, 0, len(knots) - 2)
        room = np.maximum(knots[place + 1] - knots[place], self.cell)
        inside = (1 - 2 * ENDS) / (len(knots) - 1) * self.cell / room
        beyond = np.maximum(np.maximum(knots[0] - numbers, numbers - knots[-1]), 0.0) / self.width
        outside = ENDS * self.cell / self.width / (1 + beyond) ** 3
        return np.log(np.where(beyond > 0, outside, np.maximum(inside, outside)))

    def log_anything(self) -> float:
        """Log chance of a number that is wrong in no special way: anything in about the range of the column."""
        return math.log(self.cell / (3 * self.width))

    def log_at_unit(self, numbers: Floats, slack: Floats) -> Floats:
        """Log of how much less likely numbers are, known but for `slack`, that are finer than the column, (n,)."""
        off = np.abs(numbers - self.rounded(numbers)) > slack + EXACT * np.abs(numbers)
        return np.where(off, math.log(OFF_UNIT), 0.0) if self.unit else np.zeros(len(numbers))


def learn_quantities(table: ReadTable, schema: Schema) -> dict[str, Quantity]:
    """Of the columns of numbers and dates that vary, and that the user did not tell to ignore."""
    found = {}
    for column in schema:
        if column.kind == IGNORE or table.family_of(column.name) != "number":
            continue
        numbers = numbers_of(table, column.name)
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers) and numbers.min() < numbers.max():
            found[column.name] = learn_quantity(column.name, numbers, is_date=column.kind == DATE)
    return found


def learn_quantity(name: str, numbers: Floats, *, is_date: bool = False) -> Quantity:
    """From the finite numbers of a column.

    >>> learn_quantity("price", np.array([1.25, 2.5, 39.95, 7.0])).unit
    0.01
    """
    looked_at = numbers[:: max(1, len(numbers) // TOLD_FROM)]
    units = MOMENTS if is_date else tuple(10.0**-d for d in range(MOST_DECIMALS))
    unit = next((unit for unit in units if _are_multiples(looked_at, unit)), 0.0)
    knots = np.quantile(numbers, np.linspace(ENDS, 1 - ENDS, KNOTS), method="nearest")
    return Quantity(name, unit, tuple(knots.tolist()), is_date)


def _are_multiples(numbers: Floats, unit: float) -> bool:
    steps = numbers / unit
    close = np.abs(steps - np.round(steps)) <= np.maximum(1e-4, EXACT * np.abs(steps))
    return bool(close.mean() >= BUT_FOR_ERRORS and np.abs(steps).max() < 2**52)


def numbers_of(table: ReadTable, name: str) -> Floats:
    """A column as numbers, (N,); NaN for what is missing, cannot be read or was probably not meant."""
    held = plain(table.understood[name]).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(held), held, np.nan)


def writer(table: ReadTable, quantity: Quantity) -> Callable[[float], str]:
    """How a number or date is written in its column."""
    notation = table.notations.get(quantity.name)
    if isinstance(notation, Dates):
        return lambda number: as_text(notation.write(float(quantity.rounded(np.array([number]))[0]), None))
    if isinstance(notation, Numbers) and table.frame.holds_text(table.names.index(quantity.name)):
        return lambda number: notation.write(_one(quantity, number), notation.places or None)
    return lambda number: level_text(_one(quantity, number))


def _one(quantity: Quantity, number: float) -> float:
    return float(f"{quantity.rounded(np.array([number]))[0]:.12g}")
