"""What is measured of a column of numbers: where they lie, how wide, how finely written, and which are gross."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_DECIMALS = 10  # a real column with more decimals than this has no resolution of its own
RESOLUTION_SHARE = 0.95  # of the values; a few wrong cells may have more decimals
GROSS = 50  # times the width of the middle half of a column's values
TENTHS = 2.563  # deviations of a Gaussian between its lowest and its highest tenth
OFTEN, MOST_NUMBERS, NEARLY_ALL = 5, 30, 0.7  # cells of each of so few numbers, and the share of all that they have
ONE_VALUE = 0.6  # of the cells of a column that nearly always holds the same
LEAST_SPREAD = 0.1  # standardised
KNOTS = 17  # of a real column, where the network's bounded input and the mixture's components lie


def mean_and_sd(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and deviation, also of numbers whose squares overflow."""
    size = max(float(np.abs(numbers).max(initial=0.0)), float(np.finfo(np.float64).tiny))
    if len(numbers) == 0:
        return 0.0, 1.0
    mean, sd = float((numbers / size).mean()) * size, float((numbers / size).std()) * size
    return mean, sd if sd > 0 else 1.0


def few_numbers(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    """The numbers that nearly all cells have, if they are few.

    >>> few_numbers(np.array([31.7, 39.6, 55.5] * 40 + [12.1, 80.3]))
    (31.7, 39.6, 55.5)
    """
    values, counts = np.unique(numbers, return_counts=True)
    often = counts >= OFTEN
    all_told = 1 < often.sum() <= MOST_NUMBERS and counts[often].sum() >= NEARLY_ALL * len(numbers)
    return tuple(values[often].tolist()) if all_told else ()


def are_gross(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers are farther from the middle than GROSS times the width of the middle half.

    >>> are_gross(np.array([9.0, 10.0, 10.0, 11.0, 9999.0])).tolist()
    [False, False, False, False, True]
    """
    if len(numbers) == 0:
        return np.zeros(0, dtype=bool)
    low, middle, high = np.quantile(numbers, (0.25, 0.5, 0.75))
    with np.errstate(over="ignore"):
        return (np.abs(numbers - middle) > GROSS * (high - low)) & (high > low)


def core_of(standardised: NDArray[np.float64]) -> tuple[float, float, bool]:
    """Where the usual values of a column lie, how wide, and whether they nearly always are one and the same.

    Width is the deviation if the middle of the values were Gaussian, within LEAST_SPREAD and 1: errors widen it little.
    A column of one value has no width of its own: it is that of the values that deviate.

    >>> middle, spread, one_value = core_of(np.random.default_rng(0).normal(0, 1, 10_000))
    >>> abs(middle) < 0.05, round(spread, 1), one_value
    (True, 1.0, False)
    >>> core_of(np.array([0.5] * 80 + [-1.5, 2.5] * 10))
    (0.5, 1.0, True)
    """
    if len(standardised) == 0:
        return 0.0, 1.0, False
    values, counts = np.unique(standardised, return_counts=True)
    usual = float(values[counts.argmax()])
    away = np.abs(standardised[standardised != usual] - usual)
    if 0 < len(away) <= (1 - ONE_VALUE) * len(standardised):
        return usual, float(np.median(away)) / 2, True
    low, middle, high = np.quantile(standardised, (0.1, 0.5, 0.9))
    spread = (high - low) / TENTHS if high > low else 1.0
    return float(middle), float(np.clip(spread, LEAST_SPREAD, 1.0)), False


def place_knots(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """KNOTS places from the 1st to the 99th percentile, half of them by rank and half by distance.

    By rank alone, a column that is mostly 0 would have all its knots there.

    >>> place_knots(np.array([0.0] * 90 + [16.0] * 10))[[0, 7, 8, 9, 15, 16]]
    array([ 0.,  0.,  1.,  3., 15., 16.])
    """
    if len(numbers) == 0:
        return np.zeros(KNOTS)
    by_rank = np.quantile(numbers, np.linspace(0.01, 0.99, KNOTS))
    by_distance = np.linspace(by_rank[0], by_rank[-1], KNOTS)
    return np.sort(np.concatenate([by_rank[::2], by_distance[1::2]]))


def usual_decimals(numbers: NDArray[np.float64], *, single: bool) -> int | None:
    """How many decimals the column's values have, nearly all of them; `single`: they came as float32."""
    precision = np.float32 if single else np.float64
    for decimals in range(MOST_DECIMALS + 1):
        rounded = round_to(numbers, decimals).astype(precision)
        if len(numbers) and np.mean(rounded == numbers.astype(precision)) >= RESOLUTION_SHARE:
            return decimals
    return None


def round_to(numbers: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """np.round, also where its multiplication overflows: numbers that large have no decimals."""
    with np.errstate(over="ignore"):
        rounded = np.round(numbers, decimals)
    return np.where(np.isfinite(rounded), rounded, numbers) + 0.0  # and -0 is 0
