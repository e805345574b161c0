"""Would a cell and another one of its row be at home in each other's place, and do the two break an order?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from cellmend.posterior import forms
from cellmend.posterior.amounts import FEWEST, Scale, signed_log, sorted_numbers
from cellmend.posterior.known import Coded, Floats, Known, log_share_of_others
from cellmend.posterior.looks import log_share
from cellmend.posterior.priors import REACH

NAMES = ("exchange_gain", "exchange_gain_least", "crosses", "share_crossing")


class Home:
    """A column in which texts may be at home."""

    def __init__(self, known: Known) -> None:
        self.known = known

    @cached_property
    def sort(self) -> str:
        """Of dates, of numbers or of texts."""
        readable = np.isfinite(self.known.numbers)
        if self.known.counts[readable].sum() < max(FEWEST, self.known.cells / 2):
            return "texts"
        return "dates" if self.known.holds_dates else "numbers"

    @cached_property
    def scale(self) -> Scale:
        """Its numbers, on the logarithmic scale; dates as days."""
        numbers, weights = sorted_numbers(self.known)
        return Scale(self._scaled(numbers), weights)

    def _scaled(self, numbers: Floats) -> Floats:
        return numbers if self.known.holds_dates else signed_log(numbers)

    def fit(self, texts: pa.StringArray) -> Floats:
        """How usual such texts are here, as the logarithm of a share, (T,)."""
        if self.sort == "texts":
            shapes = self.known.shapes.total(None, forms.shape(texts))
            whole = self.known.total(None, texts)
            return np.asarray(log_share(whole + 1, self.known) + log_share(shapes + 1, self.known))
        values = self.known.read(texts)
        return np.where(np.isfinite(values), self.scale.density(self._scaled(np.nan_to_num(values))), 0.0)


@dataclass(frozen=True)
class Near:
    """Two columns of one sort that stand near each other, and in how many rows one is above the other."""

    first: int
    second: int
    above: int = 0  # rows in which the first is greater; of numbers and dates
    below: int = 0

    def crosses(self, a: Floats, b: Floats) -> Floats:
        """Log of the share of other rows that have the order of this one, (N,), 0 where it is no order."""
        above, below = (log_share_of_others(rows, self.above + self.below) for rows in (self.above, self.below))
        return np.where(a > b, above, np.where(a < b, below, 0.0))

    @property
    def rarer(self) -> float:
        """Log of the share of rows in the rarer order."""
        return float(log_share_of_others(min(self.above, self.below), self.above + self.below))


@dataclass(frozen=True)
class Exchanges:
    """The pairs of columns whose cells may have been confused."""

    pairs: tuple[Near, ...] = ()

    @classmethod
    def learn(cls, homes: Sequence[Home], columns: Sequence[Coded]) -> Exchanges:
        """From the columns of a table."""
        return cls(tuple(_near(homes, columns, *pair) for pair in _partners([home.sort for home in homes])))

    def likeliest(self, homes: Sequence[Home], texts: Sequence[str], column: int) -> tuple[int, float] | None:
        """The column with which this one was most probably exchanged, from the texts of a row, "" for a gap, and how
        much more at home both cells would be; None if they would not."""
        best = None
        for near in self.pairs:
            pair = near.first, near.second
            if column in pair and all(texts[at] for at in pair):
                one = [pa.array([texts[at]]) for at in pair]
                own, there = ([float(homes[at].fit(text)[0]) for at, text in zip(order, one, strict=True)]
                              for order in (pair, pair[::-1]))  # fmt: skip
                gain = sum(there) - sum(own)
                if gain > (best[1] if best else 0.0):
                    best = pair[1 - pair.index(column)], gain
        return best

    def evidence(self, homes: Sequence[Home], columns: Sequence[Coded]) -> Floats:
        """Figures of each cell, (N, D, names): how much more at home two cells would be in each other's place, both
        together and the one that gains less, and how rare it is that two columns are in the order of this row."""
        figures = np.zeros((len(columns[0].codes), len(columns), len(NAMES)))
        at_home = [home.fit(column.texts) for home, column in zip(homes, columns, strict=True)]
        for near in self.pairs:
            pair = a, b = near.first, near.second
            gains = [
                np.append(homes[there].fit(columns[here].texts) - at_home[here], 0.0)[columns[here].codes]
                for here, there in (pair, pair[::-1])
            ]
            both = (columns[a].codes >= 0) & (columns[b].codes >= 0)
            in_order = near.above + near.below > 0  # of texts it is not asked
            crosses = near.crosses(*(_values(homes[at].known, columns[at]) for at in pair)) if in_order else 0.0
            for at in pair:
                better = both & (gains[0] + gains[1] > figures[:, at, 0])
                figures[better, at, :2] = np.stack([gains[0] + gains[1], np.minimum(*gains)], axis=1)[better]
                figures[:, at, 2] = np.minimum(figures[:, at, 2], crosses)
                figures[:, at, 3] = np.minimum(figures[:, at, 3], near.rarer if in_order else 0.0)
        return figures


def _values(known: Known, column: Coded) -> Floats:
    return np.append(known.read(column.texts), np.nan)[column.codes]


def _near(homes: Sequence[Home], columns: Sequence[Coded], a: int, b: int) -> Near:
    if homes[a].sort == "texts":
        return Near(a, b)
    first, second = (_values(homes[at].known, columns[at]) for at in (a, b))
    return Near(a, b, int((first > second).sum()), int((first < second).sum()))


def _partners(sorts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of columns of one sort that stand near each other among those."""
    for sort in ("texts", "numbers", "dates"):
        places = [at for at, own in enumerate(sorts) if own == sort]
        for step in range(1, REACH + 1):
            yield from zip(places, places[step:], strict=False)
