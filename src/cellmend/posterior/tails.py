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
    """For each column the log of the share of its cells that are at least so odd, (D, grid)."""

    logs: Floats

    @classmethod
    def learn(cls, odd: Floats, observed: NDArray[np.bool_]) -> Tails:
        """From the oddness of the cells of a table, (N, D).

        >>> odd = np.append(np.zeros(98), [3.0, 3.0])[:, None]
        >>> tails = Tails.learn(odd, np.ones((100, 1), dtype=bool))
        >>> tails.islands(np.array([[0.0], [3.0]]))[:, 0].tolist()  # two of them, and none between
        [0.0, 3.0]
        """
        seen = np.where(observed, odd, -1.0)
        cells = observed.sum(0)
        at_least = [(seen >= each).sum(0) for each in GRID]
        return cls(np.log((np.stack(at_least, axis=1) + 0.5) / (cells[:, None] + 0.5)))

    @cached_property
    def _islands(self) -> Floats:
        """How far each step of the grid lies beyond the last one with more cells, (D, grid)."""
        fewer = np.diff(self.logs, axis=1, prepend=np.inf) < 0  # than one step before
        last = np.maximum.accumulate(np.where(fewer, np.arange(len(GRID)), 0), axis=1)
        return GRID - GRID[np.maximum(last - 1, 0)]

    def islands(self, odd: Floats) -> Floats:
        """How far beyond the next odd cell of its column each cell lies, (N, D)."""
        step = np.minimum(np.searchsorted(GRID, odd, side="right") - 1, len(GRID) - 1)
        return self._islands[np.arange(odd.shape[1]), step] if odd.size else np.zeros_like(odd)
