"""How far the oddest cells of a column lie from the others: heavy tails are natural, islands far out are not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
GRID = np.linspace(0.0, 10.0, 41)  # oddness at which shares are kept: the last is a cell 200 deviations off


def oddness(ratio: Floats) -> Floats:
    """log(1 + log p0 - log p) of cells, (N, D), from ratio = log p - log p0; 0 where they look clean."""
    return np.log1p(np.maximum(-ratio, 0.0))


@dataclass(frozen=True)
class Tails:
    """How many cells of each column are at least as odd as each step of the grid; models of before keep the logarithm
    of their share, which falls where the counts do."""

    at_least: Floats  # (D, grid)

    @classmethod
    def learn(cls, odd: Floats, observed: NDArray[np.bool_]) -> Tails:
        """From the oddness of the cells of a table, (N, D).

        >>> odd = np.append(np.zeros(98), [3.0, 3.0])[:, None]
        >>> tails = Tails.learn(odd, np.ones((100, 1), dtype=bool))
        >>> tails.islands(np.array([[0.0], [3.0]]))[:, 0].tolist()  # two of them, and none between
        [0.0, 3.0]
        """
        return cls(np.stack([((odd >= each) & observed).sum(0, dtype=float) for each in GRID], axis=1))

    def with_more(self, newer: Tails) -> Tails:
        """Of both tables together."""
        return Tails(self.at_least + newer.at_least)

    def unexpected(self, newer: Tails, odd: Floats) -> Floats:
        """How many other cells of its column in a newer table are as odd as each of its cells, (N, D), beyond the share
        that is so here."""
        cells = self.at_least[:, :1]  # 0 in models of before
        shares = np.where(cells > 0, self.at_least / np.maximum(cells, 1.0), np.exp(np.minimum(self.at_least, 0.0)))
        others = np.maximum(newer.at_least - 1 - shares * newer.at_least[:, :1], 0.0)
        return others[np.arange(odd.shape[1]), _step(odd)] if odd.size else np.zeros_like(odd)

    @cached_property
    def _islands(self) -> Floats:
        """How far each step of the grid lies beyond the last one with more cells, (D, grid)."""
        fewer = np.diff(self.at_least, axis=1, prepend=np.inf) < 0  # than one step before
        last = np.maximum.accumulate(np.where(fewer, np.arange(len(GRID)), 0), axis=1)
        return GRID - GRID[np.maximum(last - 1, 0)]

    def islands(self, odd: Floats) -> Floats:
        """How far beyond the next odd cell of its column each cell lies, (N, D)."""
        return self._islands[np.arange(odd.shape[1]), _step(odd)] if odd.size else np.zeros_like(odd)


def _step(odd: Floats) -> NDArray[np.int64]:
    """The last step of the grid that each cell reaches, (N, D)."""
    return np.minimum(np.searchsorted(GRID, odd, side="right") - 1, len(GRID) - 1)
