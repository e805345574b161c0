"""Which columns tell the values of another, and how a cell fits the company that it is in.

Rows with the same flight should have the same time of departure. A column tells another if rows that agree in it agree
in the other far more often than any two rows do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cellmend.decisions.habits import HALF, Coded, Floats, Habits

MOST_TELLING = 3  # columns for each
LEAST_TOLD = 0.15  # of what is not known without the other column
LEAST_SHARED = 0.1  # of the rows share their value of the other column with another row
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Company:
    """How often values of one column stand beside values of another; both are numbered as their habits have them."""

    telling: int  # place of the column that tells
    told: int
    keys: tuple[
        int, ...
    ]  # of pairs that stand twice or more, rising: number of the telling value times `width` + other
    counts: tuple[int, ...]
    sizes: tuple[int, ...]  # rows of each telling value in which the other column holds something

    @property
    def width(self) -> int:
        """More than any number of a value in the told column."""
        return 2**31

    @cached_property
    def _best(self) -> tuple[Codes, Codes]:
        """How often the most frequent, and the next, value stands beside each telling value."""
        sizes, owners, counts = np.array(self.sizes), np.array(self.keys) // self.width, np.array(self.counts)
        order = np.lexsort((-counts, owners))
        owners, counts = owners[order], counts[order]
        first = np.r_[True, owners[1:] != owners[:-1]][: len(owners)]
        next_ = np.r_[False, first[:-1]] & ~first if len(first) else first
        best, second = np.ones_like(sizes), np.ones_like(sizes)
        best[owners[first]] = counts[first]
        second[owners[next_]] = counts[next_]
        return best, np.where(sizes > best, second, 0)

    def log_ratio(self, telling: Codes, told: Codes) -> Floats:
        """How much more often a cell's value stands in such rows than the best other one, as a logarithm, (N,).

        The row itself does not count; 0 where nothing is known. Numbers are -1 for values that stand once.
        """
        best, second = self._best
        known = (telling >= 0) & (len(best) > 0)
        safe = np.where(known, telling, 0)
        own = np.where(told >= 0, self._counted(safe * self.width + np.maximum(told, 0)), 1)
        other = np.where(own == best[safe], second[safe], best[safe]) if len(best) else own
        return np.where(known, np.log((own - HALF) / (other + HALF)), 0.0)

    def _counted(self, keys: Codes) -> Codes:
        """How often each pair stands; 1 if it is not known."""
        if not self.keys:
            return np.ones_like(keys)
        known = np.array(self.keys)
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[place] == keys, np.array(self.counts)[place], 1)


def numbered(column: Coded, habits: Habits) -> Codes:
    """The number of each cell's value among those that stand twice or more, (N,), -1 for others."""
    numbers = {text: number for number, text in enumerate(habits.values)}
    codes = np.array([*(numbers.get(text, -1) for text in column.texts), -1], dtype=np.int64)
    return codes[column.places]


def learn_company(columns: Sequence[Coded], habits: Sequence[Habits]) -> list[Company]:
    """For each column the others that tell most of it."""
    codes = [numbered(column, own) for column, own in zip(columns, habits, strict=True)]  # (N,) each
    found = []
    for told, own in enumerate(habits):
        alike = sum((count / own.rows) ** 2 for count in own.values.values())  # chance that two rows agree
        if alike > 1 - LEAST_TOLD / 10:
            continue
        ranked = []
        for telling, other in enumerate(habits):
            if telling != told and sum(other.values.values()) >= LEAST_SHARED * other.rows:
                held = np.where(columns[told].places >= 0, codes[telling], -1)
                pair = _together(telling, told, held, codes[told], len(other.values))
                ranked.append((_tells(pair, held, alike), -telling, pair))
        ranked.sort(key=lambda each: each[:2], reverse=True)
        found += [pair for gain, _, pair in ranked[:MOST_TELLING] if gain > LEAST_TOLD]
    return found


def _together(telling: int, told: int, codes: Codes, others: Codes, values: int) -> Company:
    """From the numbers of the telling and of the told values of each row, (N,)."""
    both = (codes >= 0) & (others >= 0)
    keys, counts = np.unique(codes[both] * 2**31 + others[both], return_counts=True)
    often, sizes = counts > 1, np.bincount(codes[codes >= 0], minlength=values)
    return Company(telling, told, tuple(keys[often].tolist()), tuple(counts[often].tolist()), tuple(sizes.tolist()))


def _tells(pair: Company, codes: Codes, alike: float) -> float:
    """The share of what chance leaves open that the telling column tells, in all rows."""
    sizes, counts = np.array(pair.sizes), np.array(pair.counts)
    shared = sizes[codes[codes >= 0]] > 1
    own = sizes[np.array(pair.keys, dtype=np.int64) // pair.width]
    agree = float((counts * (counts - 1) / (own - 1)).sum() / max(shared.sum(), 1))
    return (agree - alike) / (1 - alike) * float(shared.sum() / max(len(codes), 1))


def by_told(pairs: Sequence[Company], columns: int) -> Iterator[list[Company]]:
    """For each column those that tell it, the best first."""
    for told in range(columns):
        yield [each for each in pairs if each.told == told]


def company_from_json(entry: Mapping[str, object]) -> Company:
    """The opposite of dataclasses.asdict."""
    return Company(**{name: tuple(each) if isinstance(each, list) else each for name, each in entry.items()})  # type: ignore[arg-type]
