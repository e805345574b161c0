"""What the network says of cells, as figures for the weigher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cellmend.model.columns import EncodedColumn
from cellmend.posterior.priors import FARTHEST, LEAST_CHANCE
from cellmend.posterior.tails import Tails, oddness
from cellmend.posterior.weigher import FIGURE_UNIT, NETWORK

FIGURE_UNITS = np.where(np.isin(NETWORK, ("says", "is_level")), 1.0, FIGURE_UNIT)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Voice:
    """What the network says of each modelled cell, hidden from it, (N, D)."""

    log_odds: Floats  # that it is wrong, by all readings of its row
    alone: Floats  # log p - log p0 with nothing else hidden
    log_clean: Floats  # log p(x|z)
    known: NDArray[np.bool_]  # does it say anything?
    usual: NDArray[np.bool_]  # is the cell one that a first look left to it?

    @property
    def tails(self) -> Tails:
        """How odd the cells of each column are."""
        return Tails.learn(oddness(self.alone), self.usual)

    def figures(self, tails: Tails, columns: Sequence[EncodedColumn], rates: Sequence[float], rows: int) -> Floats:
        """The figures of NETWORK, (N, D, figures), 0 where it is silent. `rates` are the shares of wrong cells of the
        columns, `rows` how many rows it learned from.

        Of N rows one natural cell may be as odd as this one, and a heavy tail goes on beyond the oddest. So the ratio
        is no surer than N to one, but for as much as the cell lies beyond the next odd one."""
        rate = np.log(np.maximum(rates, LEAST_CHANCE))
        tail, ones = tails.of(oddness(self.alone)), np.ones_like(self.log_odds)
        ratio, most = self.log_odds - rate, np.log(rows + 1.0) + tail[..., 2]
        bounded = np.where(ratio > 0, -most * np.expm1(-np.maximum(ratio, 0.0) / most), ratio)
        levels = ones * [bool(column.levels) for column in columns]
        each = (
            ones,
            self.log_odds,
            self.alone,
            self.log_clean,
            levels,
            ones * rate,
            *np.moveaxis(tail, -1, 0),
            bounded,
        )
        whole = np.clip(np.stack(each, axis=-1), -2 * FARTHEST, 2 * FARTHEST) / FIGURE_UNITS
        return np.where(self.known[..., None], whole, 0.0)
