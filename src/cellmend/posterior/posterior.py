"""Posterior: for each cell the probability that it is right, and that each family of causes made it wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from cellmend.posterior.evidence import Figures
from cellmend.posterior.known import Floats
from cellmend.posterior.priors import FARTHEST, LEARNED_ROWS, TOGETHER, WEIGHED_CELLS
from cellmend.posterior.weigher import FAMILIES, IMPOSSIBLE, NETWORK, Context, Weigher, bounded_rates, with_one_more

VALID, NUMBER = "valid", "number"  # families that the network has a say in
IN_TEXT = [at for at, family in enumerate(FAMILIES) if family not in (VALID, NUMBER)]  # places of the others


@dataclass(frozen=True)
class Posterior:
    """What all evidence together says of each cell."""

    logs: Floats  # (N, D, 1 + families), log probability of right and of each family
    observed: NDArray[np.bool_]  # (N, D)
    rates: Floats  # (D, families) how often each family acts in each column, before anything is known of a cell

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
        return np.where(self.observed, np.exp(self.logs[..., 1:][..., IN_TEXT]).sum(-1), 0.0)

    @property
    def shows_in_text(self) -> NDArray[np.bool_]:
        """If a cell is wrong, does its text probably show it, (N, D)? Only if evidence speaks against the text at all:
        of a usual one nothing tells by which family it would be wrong."""
        before = np.log(self.rates) - np.log1p(-self.rates.sum(-1, keepdims=True))  # log odds, (D, families)
        told = (self.logs[..., 1:] - self.logs[..., :1] - before)[..., IN_TEXT].max(-1) > 0
        return told & np.isin(self.logs[..., 1:].argmax(-1), IN_TEXT)

    def beside(self, log_odds: Floats) -> Posterior:
        """With one more explanation of each cell, a valid value in the wrong row, from its log odds (N, D), -inf where
        it says nothing. Explanations exclude each other, so their odds add up."""
        logs = with_one_more(torch.from_numpy(self.logs), torch.from_numpy(log_odds)).numpy()
        return replace(self, logs=logs, observed=self.observed | np.isfinite(log_odds))

    def families(self, row: int, column: int) -> Floats:
        """How probable each family of causes is, if the cell is wrong, (families,)."""
        logs = np.maximum(self.logs[row, column, 1:], -IMPOSSIBLE)
        shares = np.exp(logs - logs.max())
        return shares / shares.sum()

    def log_odds(self, row: int, column: int) -> float:
        """That a cell is wrong, held within FARTHEST."""
        right = min(float(self.logs[row, column, 0]), -np.exp(-FARTHEST))
        return float(np.clip(np.log(-np.expm1(right)) - right, -FARTHEST, FARTHEST))

    def family(self, row: int, column: int) -> str:
        """The likeliest family of causes, if the cell is wrong."""
        return FAMILIES[int(self.logs[row, column, 1:].argmax())]


@torch.no_grad()
def weigh(
    weigher: Weigher, figures: Figures, context: Context, network: NDArray[np.float32] | None = None
) -> Posterior:
    """The posterior of every cell, with what the network says of each, (N, D, K), if it was asked already.

    Rows are weighed in pieces of bounded memory; a row's answer does not depend on its piece."""
    rows, width = figures.codes.shape
    step = max(WEIGHED_CELLS // max(width, 1) // TOGETHER, 1) * TOGETHER
    logs = np.zeros((rows, width, 1 + len(FAMILIES)))
    for first in range(0, rows, step):
        own = np.arange(first, min(first + step, rows))
        padded = np.append(own, np.full(-len(own) % TOGETHER, own[-1]))
        evidence = torch.from_numpy(figures[padded]).double()
        found = weigher(evidence, torch.from_numpy(figures.observed[padded]), _heard(network, padded, width), context)
        logs[own] = found[: len(own)].numpy()
    observed = figures.observed if network is None else figures.observed | (network[..., 0] > 0)
    return Posterior(logs, observed, bounded_rates(context.rates).numpy())


@torch.no_grad()
def context_of(weigher: Weigher, figures: Figures, network: NDArray[np.float32] | None = None) -> Context:
    """What the columns of a table look like, from all rows or from so many, evenly chosen."""
    chosen = np.unique(np.linspace(0, len(figures) - 1, min(LEARNED_ROWS, len(figures))).astype(np.int64))
    evidence = torch.from_numpy(figures[chosen]).double()
    heard = _heard(network, chosen, figures.codes.shape[1])
    return weigher.context(evidence, torch.from_numpy(figures.observed[chosen]), heard)


def _heard(network: NDArray[np.float32] | None, rows: NDArray[np.int64], width: int) -> torch.Tensor:
    """What the network says of the cells of some rows, (n, D, K); 0 if it was not asked."""
    if network is None:
        return torch.zeros(len(rows), width, len(NETWORK), dtype=torch.float64)
    return torch.from_numpy(network[rows]).double()
