"""Posterior: for each cell the probability that it is right, and that each family of causes made it wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from cellmend.posterior.evidence import Figures
from cellmend.posterior.known import Floats
from cellmend.posterior.priors import EXCUSED, LEARNED_ROWS, TOGETHER, WEIGHED_CELLS
from cellmend.posterior.weigher import FAMILIES, Context, Weigher

VALID, NUMBER = "valid", "number"  # families that the network has a say in


@dataclass(frozen=True)
class Posterior:
    """What all evidence together says of each cell."""

    logs: Floats  # (N, D, 1 + families), log probability of right and of each family
    observed: NDArray[np.bool_]  # (N, D)

    @property
    def suspicion(self) -> Floats:
        """Probability that each cell is wrong, (N, D); 0 where nothing stands."""
        return np.where(self.observed, -np.expm1(self.logs[..., 0]), 0.0)

    @property
    def scores(self) -> Floats:
        """-log(1 - suspicion), (N, D), exact where suspicion is next to 1."""
        return np.where(self.observed, -self.logs[..., 0], 0.0)

    @property
    def of_text(self) -> Floats:
        """Probability that each cell is wrong in a way that its text shows, (N, D): whether a number or a value of the
        column stands in the right row is left to the network."""
        kept = [1 + at for at, family in enumerate(FAMILIES) if family not in (VALID, NUMBER)]
        return np.where(self.observed, np.exp(self.logs[..., kept]).sum(-1), 0.0)

    def beside_network(self, log_odds: Floats) -> Posterior:
        """With the network's corrupted component as one more explanation, from its log odds (N, D), -inf where it is
        silent. It is the family of valid values in the wrong row, and it excuses numbers that it expects."""
        against, speaks = self._against, np.isfinite(log_odds)
        against[..., 1 + FAMILIES.index(VALID)][speaks] = -np.inf
        against[..., 1 + FAMILIES.index(NUMBER)][speaks] += np.minimum(log_odds[speaks] + EXCUSED, 0.0)
        return replace(self, logs=_normalised(against)).beside(log_odds)

    def beside(self, log_odds: Floats) -> Posterior:
        """With one more explanation of each cell, from its log odds (N, D), -inf where it says nothing."""
        logs = _normalised(np.concatenate([self._against, log_odds[..., None]], axis=-1))
        return Posterior(logs, self.observed | np.isfinite(log_odds))

    @property
    def _against(self) -> Floats:
        """Log odds of each explanation against right, (N, D, explanations), right itself with 0; -inf where nothing
        stands."""
        silent = np.where(np.arange(self.logs.shape[-1]) == 0, 0.0, -np.inf)
        return np.where(self.observed[..., None], self.logs - self.logs[..., :1], silent)

    def families(self, row: int, column: int) -> Floats:
        """How probable each family of causes is, if the cell is wrong, (families,)."""
        logs = np.maximum(self.logs[row, column, 1 : 1 + len(FAMILIES)], -700.0)
        shares = np.exp(logs - logs.max())
        return shares / shares.sum()

    def family(self, row: int, column: int) -> str:
        """The likeliest family of causes, if the cell is wrong."""
        at = int(self.logs[row, column, 1:].argmax())
        return FAMILIES[at] if at < len(FAMILIES) else VALID


def _normalised(against: Floats) -> Floats:
    """Log probabilities from log odds against right, (N, D, explanations)."""
    return against - np.logaddexp.reduce(against, axis=-1, keepdims=True)


@torch.no_grad()
def weigh(weigher: Weigher, figures: Figures, context: Context) -> Posterior:
    """The posterior of every cell, rows in pieces of bounded memory; a row's answer does not depend on its piece."""
    rows, width = figures.codes.shape
    step = max(WEIGHED_CELLS // max(width, 1) // TOGETHER, 1) * TOGETHER
    logs = np.zeros((rows, width, 1 + len(FAMILIES)))
    for first in range(0, rows, step):
        own = np.arange(first, min(first + step, rows))
        padded = np.append(own, np.full(-len(own) % TOGETHER, own[-1]))
        evidence = torch.from_numpy(figures[padded]).double()
        found = weigher(evidence, torch.from_numpy(figures.observed[padded]), context)
        logs[own] = found[: len(own)].numpy()
    return Posterior(logs, figures.observed)


@torch.no_grad()
def context_of(weigher: Weigher, figures: Figures) -> Context:
    """What the columns of a table look like, from all rows or from so many, evenly chosen."""
    chosen = np.unique(np.linspace(0, len(figures) - 1, min(LEARNED_ROWS, len(figures))).astype(np.int64))
    evidence = torch.from_numpy(figures[chosen]).double()
    return weigher.context(evidence, torch.from_numpy(figures.observed[chosen]))
