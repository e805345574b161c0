"""What the network says of cells, as figures for the weigher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cellmend.posterior.priors import FARTHEST, LEAST_CHANCE, LIKE_WRONG
from cellmend.posterior.tails import Tails, oddness

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Voice:
    """What the network says of each modelled cell, hidden from it, (N, D)."""

    log_odds: Floats  # that it is wrong, by all readings of its row
    alone: Floats  # log p - log p0 with nothing else hidden
    known: NDArray[np.bool_]  # does it say anything?
    usual: NDArray[np.bool_]  # is the cell one that a first look left to it?

    @cached_property
    def tails(self) -> Tails:
        """How odd the cells of each column are."""
        return Tails.learn(oddness(self.alone), self.usual)

    def figures(self, tails: Tails, rates: Sequence[float], rows: int, *, newer: bool = False) -> Floats:
        """The figures of NETWORK, (N, D, 3), 0 where it is silent. `rates` are the shares of wrong cells of columns,
        `rows` how many rows it learned from.

        Of N rows a few natural cells may be like wrong ones, whatever the network thinks: p becomes p + 3 p0 / N. So
        the ratio is no surer than N to three, but for as much as the cell lies beyond the next odd one. In a `newer`
        table cells that are odd more often than they were are natural, too: the network has not learned them."""
        rate = np.log(np.maximum(rates, LEAST_CHANCE))
        odd = oddness(self.alone)
        natural = np.full_like(odd, LIKE_WRONG)
        if newer:
            natural += tails.unexpected(self.tails, odd)
            tails, rows = tails.with_more(self.tails), max(rows, len(odd))
        most = np.log((rows + 1.0) / natural) + LIKE_WRONG / natural * tails.islands(odd)  # many are no island
        bounded = -np.logaddexp(rate - self.log_odds, -most)
        ones = np.ones_like(bounded)
        whole = np.stack([ones, ones * rate, np.clip(bounded, -2 * FARTHEST, 2 * FARTHEST)], axis=-1)
        return np.where(self.known[..., None], whole, 0.0)
