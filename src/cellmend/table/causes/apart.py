"""Numbers far off all others of their column: a quantity of 300 among 1 to 10, 2 among 0 and 1, 118 %, -9999, 10^30."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

FAR_OFF = 0.95  # suspicion, that so many such numbers are no better explained otherwise
FEWEST = 30  # numbers from which it is known where they lie
FEW_LEVELS, EACH = 30, 5  # different numbers of a column with few, and cells that each of them has on average
MOST_APART = 0.01  # of the cells of a column, or it is a natural part; one cell may always be
MOST_GROSS = 0.1  # the same, so far off that nothing natural is
ABRUPT = 5  # times as many cells has the outermost level as all numbers far off: a natural tail thins out
ABRUPT_SWITCH = 20  # the same, of a column of 0 and 1
WIDTHS = 2.0  # of all others, between them and a number that is far off, if there are few levels
GROSS_WIDTHS = 1000.0  # the same in any column
SENTINELS = frozenset(float(sign * nines) for nines in (99, 999, 9999, 99999, 999999) for sign in (-1, 1))
MOST_SENTINELS = 0.3  # of the cells
PILE = 2.0  # times as many cells at 100 as at the numbers below it: there a scale ends
BELOW_PILE = 90.0


@dataclass(frozen=True)
class Apart:
    """A column whose numbers lie between two bounds, but for a few far off."""

    low: float
    high: float  # of the usual numbers
    name: str = "far off"
    readable: ClassVar[bool] = True  # the model still sees it, and the rest of its row does

    def judge(self, numbers: NDArray[np.float64]) -> dict[float, tuple[float, tuple[float, ...]]]:
        """Suspicion of the numbers beyond the bounds; what was meant the rest of the row tells.

        >>> Apart(9.95, 39.95).judge(np.array([9.95, 3995.0]))
        {3995.0: (0.95, ())}
        """
        beyond = numbers[(numbers < self.low) | (numbers > self.high)]
        return dict.fromkeys(beyond.tolist(), (FAR_OFF, ()))

    def words(self, number: str) -> str:
        return f"{number}, far off all others, which are {self.low:.15g} to {self.high:.15g}"


def learn_apart(values: NDArray[np.float64], counts: NDArray[np.int64]) -> Apart | None:
    """Where the usual numbers end, of different numbers in rising order and how often each stands; None if none is
    far off.

    >>> learn_apart(np.array([0.0, 5.0, 10.0, 500.0]), np.array([200, 100, 99, 1]))
    Apart(low=0.0, high=10.0, name='far off')
    """
    if counts.sum() < FEWEST or len(values) < 3:
        return None
    above = _usual(values, counts)
    below = above - _usual(-values[:above][::-1], counts[:above][::-1])
    above = below + _usual(values[below:], counts[below:])
    if (below, above) == (0, len(values)):
        return None
    return Apart(float(values[below]), float(values[above - 1]))


def _usual(values: NDArray[np.float64], counts: NDArray[np.int64]) -> int:
    """How many of the different numbers, in rising order, are usual; those beyond are far off."""
    cells, gaps, widths = counts.cumsum(), values[1:] - values[:-1], values[:-1] - values[0]
    for last in np.flatnonzero(gaps > widths).tolist():
        if last and _ends(values, counts, cells, last):
            return last + 1
    full = int(np.searchsorted(values, 100.0))
    is_full = full < len(values) - 1 and values[full] == 100 and values[0] >= 0
    return full + 1 if is_full and _is_end_of_scale(values, counts, full) else len(values)


def _ends(values: NDArray[np.float64], counts: NDArray[np.int64], cells: NDArray[np.int64], last: int) -> bool:
    """Do the usual numbers end here, before a gap wider than all of them?"""
    gap, width = values[last + 1] - values[last], values[last] - values[0]
    beyond, within = int(cells[-1] - cells[last]), int(cells[last])
    if within < FEWEST or width <= 0:
        return False
    few = last + 1 <= FEW_LEVELS and within >= EACH * (last + 1)
    alone = beyond <= max(1, MOST_APART * cells[-1])
    if few and alone and gap > WIDTHS * width and counts[last] >= ABRUPT * beyond:
        return True
    if gap > WIDTHS * width and last + 2 == len(values) and abs(values[-1]) in SENTINELS:
        return beyond <= MOST_SENTINELS * cells[-1]
    return bool(gap > GROSS_WIDTHS * width and beyond <= max(1, MOST_GROSS * cells[-1]))


def _is_end_of_scale(values: NDArray[np.float64], counts: NDArray[np.int64], last: int) -> bool:
    """Is 100 where percentages end? Then more cells have it than the numbers just below, and hardly any more."""
    near = counts[:last][values[:last] > BELOW_PILE]
    beyond = counts[last + 1 :].sum()
    piled = len(near) > 0 and counts[last] >= PILE * near.mean()
    return bool(piled and beyond <= max(1, MOST_APART * counts.sum()) and counts.sum() >= FEWEST)


def learn_switch(values: NDArray[np.float64], counts: NDArray[np.int64]) -> Apart | None:
    """A column of 0 and 1, both standing often, in which another number stands hardly ever.

    >>> learn_switch(np.array([0.0, 1.0, 2.0]), np.array([300, 250, 1]))
    Apart(low=0.0, high=1.0, name='far off')
    """
    is_switch = np.isin(values, (0.0, 1.0))
    if is_switch.sum() < 2 or is_switch.all():
        return None
    beyond, rarer = counts[~is_switch].sum(), counts[is_switch].min()
    rare = beyond <= max(1, MOST_APART * counts.sum()) and rarer >= ABRUPT_SWITCH * beyond
    return Apart(0.0, 1.0) if rare and values.min() == np.floor(values.min()) else None
