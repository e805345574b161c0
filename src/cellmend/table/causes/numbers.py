"""Ways in which numbers go wrong that the column by itself tells: noise among few levels, another unit, a lost sign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cellmend.table.causes.apart import Apart, learn_apart, learn_switch

FEWEST_STRAYS = 8  # different numbers beside the levels, from which it can be told that they are noise
MOST_SHARE = 0.25  # of the cells that may be noise
CLEARLY = 2.0  # times as often stands the rarest level as the most frequent number that is noise
SURELY_LEVELS = 3  # that no end of a range explains
EVEN = (0.35, 0.65)  # where the median of noise lies in its range
FEWEST_TOGETHER, TOGETHER = 3, 3.0  # rows in which two columns leave their levels, and times as many as by chance
BEYOND = 0.3  # of the noise lies outside of the range of the levels: percentages between 0 and 100 do not
LEAST_LEVEL = 0.02  # of the cells has each of several levels
SPREAD = 2.0  # variance over mean of the counts of noise, at most: how often natural rare numbers stand differs more
ODD = 3.0  # deviations by which one side of a level may have more numbers than noise would
NOISE, OTHER_UNIT, LOST_SIGN = 0.95, 0.95, 0.9  # suspicion, that so many such columns are no better explained otherwise
LEAST_TOLD = 0.5  # suspicion: where both are as likely, the rest of the row says more
FEWEST_NUMBERS = 50  # from which the range of a column is known
SCALES = (1000.0, 100.0, 0.001, 0.01)  # of units that are mixed up, and of a decimal point that is lost
FEWEST_OTHERS = 3  # different numbers in another unit
MOST_OTHERS = 0.1  # of the cells in another unit, or it is a natural part
APART = 5.0  # times as large as all of the others is the least of the rest
WIDEST = 100.0  # times as large the large numbers of a column may be as the small ones, for units to be told apart


@dataclass(frozen=True)
class Strays:
    """A column with few levels, each standing in many cells, and noise between and around them."""

    levels: tuple[float, ...]
    below: float = NOISE  # suspicion of the numbers below the lowest level, and above the highest
    above: float = NOISE
    name: str = "noise"
    readable: ClassVar[bool] = False

    def judge(self, numbers: NDArray[np.float64]) -> dict[float, tuple[float, tuple[float, ...]]]:
        """Suspicion of the numbers that are no level, and what was meant, if that is plain."""
        meant, known = self.levels if len(self.levels) == 1 else (), set(self.levels)
        found = {number: self._suspicion(number) for number in numbers.tolist() if number not in known}
        return {number: (suspicion, meant) for number, suspicion in found.items() if suspicion >= LEAST_TOLD}

    def _suspicion(self, number: float) -> float:
        return self.below if number < self.levels[0] else self.above if number > self.levels[-1] else NOISE

    def words(self, number: str) -> str:
        few = f"always {self.levels[0]:.15g}" if len(self.levels) == 1 else f"one of {len(self.levels)} numbers"
        return f"{number}, where nearly all cells have {few}"


@dataclass(frozen=True)
class OtherUnit:
    """A column in whose range some numbers only come times 1000, 100 or their inverse."""

    scale: float
    low: float
    high: float  # of the usual numbers
    edge: float  # beyond which the numbers in another unit lie
    name: str = "unit"
    readable: ClassVar[bool] = False

    def judge(self, numbers: NDArray[np.float64]) -> dict[float, tuple[float, tuple[float, ...]]]:
        """Suspicion of the numbers in another unit, and what they are in the usual one.

        >>> OtherUnit(1000.0, 400.0, 4000.0, 10.0).judge(np.array([1.428, 900.0]))
        {1.428: (0.95, (1428.0,))}
        """
        beyond = np.abs(numbers) <= self.edge if self.scale > 1 else np.abs(numbers) >= self.edge
        inside = (np.abs(numbers) * self.scale >= self.low) & (np.abs(numbers) * self.scale <= self.high)
        return {each: (OTHER_UNIT, (round(each * self.scale, 9),)) for each in numbers[beyond & inside].tolist()}

    def words(self, number: str) -> str:
        return f"{number}, which is in the range of the others times {self.scale:g}: another unit or a decimal point"


@dataclass(frozen=True)
class LostSign:
    """A column of numbers of one sign, far from zero, in which a few have the other."""

    sign: float
    low: float
    high: float
    name: str = "sign"
    readable: ClassVar[bool] = False

    def judge(self, numbers: NDArray[np.float64]) -> dict[float, tuple[float, tuple[float, ...]]]:
        """Suspicion of the numbers with the other sign.

        >>> LostSign(-1.0, 80.0, 120.0).judge(np.array([98.01, -97.0]))
        {98.01: (0.9, (-98.01,))}
        """
        wrong = (np.sign(numbers) == -self.sign) & (np.abs(numbers) >= self.low) & (np.abs(numbers) <= self.high)
        return {each: (LOST_SIGN, (-each,)) for each in numbers[wrong].tolist()}

    def words(self, number: str) -> str:
        return f"{number}, where the others are {'positive' if self.sign > 0 else 'negative'}"


NumberCause = Strays | OtherUnit | LostSign | Apart
NUMBER_CAUSES: dict[str, Any] = {"noise": Strays, "unit": OtherUnit, "sign": LostSign, "far off": Apart}


def learn_number_causes(numbers: NDArray[np.float64]) -> tuple[NumberCause, ...]:
    """Which of the causes act in a column, of the numbers that could be read, (N,).

    >>> learn_number_causes(np.array([695.0] * 80 + [1.0, 700.0, 30.0, 912.0, 401.0, 600.0, 555.0, 802.0]))
    (Strays(levels=(695.0,), below=0.95, above=0.95, name='noise'),)
    """
    values, counts = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
    if len(values) < 2:
        return ()
    apart = learn_switch(values, counts) or learn_apart(values, counts)
    found = (_learn_strays(values, counts), *_learn_units(values, counts), _learn_sign(values, counts), apart)
    return tuple(each for each in found if each is not None)


def _learn_strays(values: NDArray[np.float64], counts: NDArray[np.int64]) -> Strays | None:
    """Levels stand clearly more often than all other numbers, and these all about equally often, as noise does.

    One or two levels at the end of the range, such as 0 among amounts, are natural.
    """
    order = np.argsort(-counts, kind="stable")
    often, cells = counts[order], counts.sum()
    for most in np.flatnonzero(often[:-1] >= CLEARLY * np.maximum(often[1:], 1)).tolist():
        rest = often[most + 1 :]
        if len(rest) < max(FEWEST_STRAYS, 2 * (most + 1)) or rest.sum() > MOST_SHARE * cells:
            continue
        levels = np.sort(values[order[: most + 1]])
        strays = values[order[most + 1 :]]
        inner = len(levels) < SURELY_LEVELS and values[0] < values[order[0]] < values[-1]
        rare = most > 0 and often[most] < LEAST_LEVEL * cells
        if not rare and rest.var() <= SPREAD * rest.mean() and (inner or _all_over(levels, strays, rest)):
            return Strays(tuple(levels.tolist()), *_by_side(levels, strays, rest))
    return None


def _by_side(
    levels: NDArray[np.float64], strays: NDArray[np.float64], counts: NDArray[np.int64]
) -> tuple[float, float]:
    """Suspicion of the numbers below and above all levels: noise lies evenly over its range, and where one side has far
    more, such as amounts above a usual 0, the rest of them is natural."""
    below, above = (float(counts[side].sum()) for side in (strays < levels[0], strays > levels[-1]))
    low, high = levels[0] - min(strays.min(), levels[0]), max(strays.max(), levels[-1]) - levels[-1]
    cells, share = below + above, low / max(low + high, 1e-300)
    suspicion = []
    for found, expected in ((below, share), (above, 1 - share)):
        by_chance = cells * expected
        natural = found > by_chance + ODD * np.sqrt(max(by_chance * (1 - expected), 1.0))
        other = cells - found  # of which all are noise: so many, as its range is wide, are noise on this side too
        noise = other * expected / max(1 - expected, 1e-9)
        suspicion.append(float(NOISE * min(1.0, noise / found)) if natural else NOISE)
    return suspicion[0], suspicion[1]


def _all_over(levels: NDArray[np.float64], strays: NDArray[np.float64], counts: NDArray[np.int64]) -> bool:
    """Do the strays lie evenly over a range that is wider than that of several levels? A natural tail thins out."""
    beyond = counts[(strays < levels[0]) | (strays > levels[-1])].sum() >= BEYOND * counts.sum()
    middle = (np.median(strays) - strays.min()) / max(float(np.ptp(strays)), 1e-300)
    return bool(len(levels) >= SURELY_LEVELS and beyond and EVEN[0] <= middle <= EVEN[1])


def stray_together(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    """Do two columns leave their levels in the same rows, far more often than by chance? Then there is a reason.

    >>> rows = np.arange(100)
    >>> stray_together(rows < 20, rows < 18), stray_together(rows < 20, rows % 5 < 1)
    (True, False)
    """
    both, by_chance = int((one & other).sum()), one.sum() * other.sum() / len(one)
    return bool(both > FEWEST_TOGETHER + TOGETHER * by_chance)


def _learn_units(values: NDArray[np.float64], counts: NDArray[np.int64]) -> list[OtherUnit]:
    """Numbers apart from the rest that lie in its range when they are multiplied."""
    size, order = np.abs(values), np.argsort(np.abs(values))
    size, often = size[order], counts[order]
    size, often = size[size > 0], often[size > 0]
    if often.sum() < FEWEST_NUMBERS or len(size) < 2:
        return []
    found = []
    ratio = size[1:] / size[:-1]
    for cut in np.flatnonzero(ratio >= APART).tolist():
        below, above = often[: cut + 1].sum(), often[cut + 1 :].sum()
        small = below < above
        rest, few = (size[cut + 1 :], size[: cut + 1]) if small else (size[: cut + 1], size[cut + 1 :])
        if min(below, above) > MOST_OTHERS * often.sum() or rest[-1] > WIDEST * rest[0] or len(few) < FEWEST_OTHERS:
            continue
        for scale in SCALES:
            if (scale > 1) == small and np.all((few * scale >= rest[0]) & (few * scale <= rest[-1])):
                found.append(OtherUnit(scale, float(rest[0]), float(rest[-1]), float(few[-1] if small else few[0])))
                break
    return found[:1]


def _learn_sign(values: NDArray[np.float64], counts: NDArray[np.int64]) -> LostSign | None:
    positive, cells = counts[values > 0].sum(), counts.sum()
    sign = 1.0 if 2 * positive > cells else -1.0
    own = np.sign(values) == sign
    if cells < FEWEST_NUMBERS or counts[own].sum() < (1 - MOST_OTHERS / 5) * cells or own.all():
        return None
    low, high = (float(each) for each in (np.abs(values[own]).min(), np.abs(values[own]).max()))
    return LostSign(sign, low, high) if high <= APART * low else None


def causes_to_json(causes: tuple[NumberCause, ...]) -> list[dict[str, Any]]:
    """Causes as JSON holds them."""
    return [asdict(cause) for cause in causes]


def causes_from_json(entries: list[Mapping[str, Any]]) -> tuple[NumberCause, ...]:
    """The opposite of causes_to_json."""
    plain = [{key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()} for entry in entries]
    return tuple(NUMBER_CAUSES[str(entry["name"])](**entry) for entry in plain)
