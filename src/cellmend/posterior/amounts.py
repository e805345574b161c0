"""What a column of numbers or dates says about one of them: how far out it lies, and where it would lie at home."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.posterior.known import Floats, Known, log_share_of_others

UNITS = (
    2.54,
    1.609344,
    3.28084,
    0.45359237,
    60.0,
    0.7457,
    4.184,
)  # inch, mile, foot, pound, hour, horse power, calorie
POWERS_OF_TEN = tuple(10.0**k for k in (-3, -2, -1, 1, 2, 3))  # by which points are moved
WIDTH = 0.1  # of the window in which numbers are counted, in deviations
FEWEST = 8  # numbers of a column before it is said where they lie


class Amounts:
    """How far out a number lies on the plain and the logarithmic scale, how lonely it is, and whether it would be at
    home with its point moved, its sign changed or in another unit."""

    names = (
        "far",
        "far_log",
        "tail",
        "gap",
        "density",
        "density_log",
        "if_point_moved",
        "if_sign_changed",
        "if_other_unit",
        "negative",
        "share_negative",
        "zero",
        "share_zero",
        "share_whole",
        "whole",
        "neighbours_differ",
        "round",
        "nines",
    )

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        values = known.read(texts)
        numbers, weights = sorted_numbers(known)
        figures = np.zeros((len(texts), len(self.names)))
        readable = np.isfinite(values) & (np.abs(values) < 1e300)
        if weights.sum() < FEWEST or not readable.any():
            return figures
        x, scale = values[readable], Scale(numbers, weights)
        logs = Scale(*_resorted(signed_log(numbers), weights))
        density_log = logs.density(signed_log(x))
        moved = _best_gain(logs, x, POWERS_OF_TEN, density_log)
        unit = _best_gain(logs, x, [f for u in UNITS for f in (u, 1 / u)], density_log)
        sign = logs.density(signed_log(-x)) - density_log

        def alike(here: NDArray[np.bool_], there: NDArray[np.bool_]) -> Floats:
            """Log of the share of other numbers of which a test says the same."""
            return log_share_of_others(np.where(here, weights[there].sum(), weights[~there].sum()), scale.total)

        figures[readable] = np.stack(
            [
                signed_log(scale.deviations(x)),
                signed_log(logs.deviations(signed_log(x))),
                scale.tail(x),
                scale.gap(x),
                scale.density(x),
                density_log,
                moved,
                np.where(x == 0, 0.0, sign),
                unit,
                x < 0,
                alike(x < 0, numbers < 0),
                x == 0,
                alike(x == 0, numbers == 0),
                alike(x == np.round(x), numbers == np.round(numbers)),
                x == np.round(x),
                scale.lonely(x),
                _trailing_zeros(x),
                np.isin(np.abs(x), [9.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 99.99, 999.9]),
            ],
            axis=1,
        )
        return figures


class Scale:
    """Known numbers on one scale: middle, width, and how many lie near a place."""

    def __init__(self, numbers: Floats, weights: Floats) -> None:
        self.numbers, self.before = numbers, np.append(0.0, weights.cumsum())
        self.total = self.before[-1]
        low, self.middle, high = (
            float(numbers[min(np.searchsorted(self.before[1:], q * self.total), len(numbers) - 1)])
            for q in (0.25, 0.5, 0.75)
        )
        wide = [
            float(numbers[min(np.searchsorted(self.before[1:], q * self.total), len(numbers) - 1)])
            for q in (0.05, 0.95)
        ]
        self.width = max((high - low) / 1.349, (wide[1] - wide[0]) / 3.29, 1e-9 * max(abs(self.middle), 1e-9))

    def deviations(self, x: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return (x - self.middle) / self.width

    def within(self, low: Floats, high: Floats) -> Floats:
        """Cells from low to high, both included."""
        return (
            self.before[np.searchsorted(self.numbers, high, side="right")]
            - self.before[np.searchsorted(self.numbers, low)]
        )

    def density(self, x: Floats) -> Floats:
        """Log of the share of other cells in a window around each place."""
        near = self.within(x - WIDTH * self.width, x + WIDTH * self.width)
        own = self.within(x, x) > 0
        return np.log((np.maximum(near - own, 0) + 0.5) / (self.total + 0.5))

    def tail(self, x: Floats) -> Floats:
        """Log of the share of other cells as far out or farther, on the side where fewer lie."""
        below, above = self.within(np.full_like(x, -np.inf), x), self.within(x, np.full_like(x, np.inf))
        return np.log((np.maximum(np.minimum(below, above) - 1, 0) + 0.5) / (self.total + 0.5))

    def gap(self, x: Floats) -> Floats:
        """Log of the distance, in deviations, to the next number towards the middle."""
        at = np.searchsorted(self.numbers, x)
        right = x >= self.middle
        last = len(self.numbers) - 1
        towards = np.where(
            right,
            self.numbers[np.clip(at - 1, 0, last)],
            self.numbers[np.clip(np.searchsorted(self.numbers, x, side="right"), 0, last)],
        )
        distance = np.where(right, x - towards, towards - x)
        with np.errstate(over="ignore"):
            return np.log1p(np.maximum(distance, 0.0) / self.width)

    def lonely(self, x: Floats) -> Floats:
        """Log of the distance to the nearest other number against the usual one."""
        at = np.clip(np.searchsorted(self.numbers, x), 1, max(len(self.numbers) - 2, 1))
        if len(self.numbers) < 3:
            return np.zeros(len(x))
        own = self.numbers[at] == x
        before, after = self.numbers[at - 1], self.numbers[np.where(own, np.minimum(at + 1, len(self.numbers) - 1), at)]
        distance = np.minimum(np.abs(x - before), np.abs(after - x))
        usual = np.median(np.diff(self.numbers)) + 1e-9 * self.width
        return np.clip(np.log((distance + 1e-9 * self.width) / usual), -6, 12)


def sorted_numbers(known: Known) -> tuple[Floats, Floats]:
    """A column's different numbers in order, and cells of each."""
    numbers = known.numbers
    kept = np.isfinite(numbers) & (np.abs(numbers) < 1e300)
    return _resorted(numbers[kept], known.counts[kept].astype(np.float64))


def _resorted(numbers: Floats, weights: Floats) -> tuple[Floats, Floats]:
    different, index = np.unique(numbers, return_inverse=True)
    return different, np.bincount(index, weights, minlength=len(different)).astype(np.float64)


def signed_log(x: Floats) -> Floats:
    """The logarithm of the size with the sign of the number, smooth through 0."""
    return np.arcsinh(np.clip(x, -1e300, 1e300) / 2)


def _best_gain(logs: Scale, x: Floats, factors: Sequence[float], here: Floats) -> Floats:
    """How much denser the column is where the number would lie, times the best of some factors, as a logarithm."""
    with np.errstate(over="ignore"):
        found = [logs.density(signed_log(x * factor)) for factor in factors]
    return np.where(x == 0, 0.0, np.max(found, axis=0) - here)


def _trailing_zeros(x: Floats) -> NDArray[np.float64]:
    """How many powers of ten divide a whole number, up to 3."""
    with np.errstate(invalid="ignore"):
        return np.sum([(x != 0) & (np.fmod(x, 10.0**k) == 0) for k in (1, 2, 3)], axis=0, dtype=np.float64)
