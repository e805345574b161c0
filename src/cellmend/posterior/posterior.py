"""Posterior: for each cell the probability that it is right, and that each family of causes made it wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from cellmend.posterior.evidence import Figures
from cellmend.posterior.known import Floats
from cellmend.posterior.priors import FARTHEST, LEARNED_ROWS, TOGETHER, WEIGHED_CELLS
from cellmend.posterior.weigher import (
    CONFIRMS,
    FAMILIES,
    IMPOSSIBLE,
    NETWORK,
    Context,
    Weigher,
    bounded_rates,
    with_one_more,
)

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


@dataclass(frozen=True)
class Weighed:
    """The cells of a table, weighed; how often things go wrong, and what the network says, remains to be asked."""

    weigher: Weigher
    ratios: NDArray[np.float32]  # (N, D, families) log of how much likelier each explains a cell than that it is right
    confirms: NDArray[np.float32]  # (N, D) by how much a number beside a cell confirms it
    observed: NDArray[np.bool_]  # (N, D)

    @torch.no_grad()
    def posterior(self, rates: torch.Tensor, network: NDArray[np.float32] | None = None) -> Posterior:
        """Of every cell, by how often each family acts in each column, (D, families), and by what the network says of
        each cell, (N, D, K), if it was asked already."""
        heard, observed = _heard(network, self.observed), torch.from_numpy(self.observed)
        ratios, confirms = (torch.from_numpy(each).double() for each in (self.ratios, self.confirms))
        logs = self.weigher.explained(ratios, observed, heard, confirms, rates).numpy()
        somewhere = self.observed if network is None else self.observed | (network[..., 0] > 0)
        return Posterior(logs, somewhere, bounded_rates(rates).numpy())


@torch.no_grad()
def weigh(weigher: Weigher, figures: Figures, context: Context) -> Weighed:
    """Weigh all cells, rows in pieces of bounded memory; what is said of a row does not depend on its piece."""
    rows, width = figures.codes.shape
    step = max(WEIGHED_CELLS // max(width, 1) // TOGETHER, 1) * TOGETHER
    beside = Context(context.columns.float(), context.table.float(), context.rates)
    ratios = np.zeros((rows, width, len(FAMILIES)), dtype=np.float32)
    confirms = np.zeros((rows, width), dtype=np.float32)
    for first in range(0, rows, step):
        own = np.arange(first, min(first + step, rows))
        padded = np.append(own, np.full(-len(own) % TOGETHER, own[-1]))
        evidence, observed = figures[padded], torch.from_numpy(figures.observed[padded])
        ratios[own] = weigher.ratios(torch.from_numpy(evidence), observed, beside)[: len(own)].numpy()
        confirms[own] = evidence[: len(own), :, CONFIRMS]
    return Weighed(weigher, ratios, confirms, figures.observed)


@dataclass(frozen=True)
class Sample:
    """Rows of a table that tell what it looks like on the whole: all, or so many, evenly chosen."""

    weigher: Weigher
    rows: NDArray[np.int64]  # (n,)
    ratios: torch.Tensor  # (n, D, families)
    columns: torch.Tensor  # (D, W) what they look like
    observed: NDArray[np.bool_]  # (n, D)

    @classmethod
    @torch.no_grad()
    def of(cls, weigher: Weigher, figures: Figures) -> Sample:
        """From the evidence of a table."""
        chosen = np.unique(np.linspace(0, len(figures) - 1, min(LEARNED_ROWS, len(figures))).astype(np.int64))
        observed = figures.observed[chosen]
        ratios, columns = weigher.sample(torch.from_numpy(figures[chosen]), torch.from_numpy(observed))
        return cls(weigher, chosen, ratios.double(), columns.double(), observed)

    @torch.no_grad()
    def context(self, network: NDArray[np.float32] | None = None) -> Context:
        """What the columns look like, and how often things go wrong in them, with what the network says of all cells of
        the table, (N, D, K)."""
        heard = _heard(None if network is None else network[self.rows], self.observed)
        return self.weigher.context_of(self.ratios, self.columns, torch.from_numpy(self.observed), heard)


def _heard(network: NDArray[np.float32] | None, observed: NDArray[np.bool_]) -> torch.Tensor:
    """What the network says of cells, (n, D, K); 0 if it was not asked."""
    if network is None:
        return torch.zeros(*observed.shape, len(NETWORK), dtype=torch.float64)
    return torch.from_numpy(network).double()
