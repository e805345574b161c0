"""Rates: how often each family of causes acts in each column, by Bayes' rule over a grid of rates.

Shapes: N rows, D columns, F families, G rates, S sorts of tables.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

GRID = torch.logspace(-5, -0.25, 20, dtype=torch.float64)  # (G,) from 1 in 100,000 to half of the cells
SORTS = 6  # of tables: clean ones, ones with a habit, ones with noise in all columns ... what they are is learned


class Rates(nn.Module):
    """Tables are of a few sorts. Each sort has its own chances that a family acts in a column at each rate of the grid;
    what the cells of the table show decides of which sort it is, and at which rate each family acts in each column."""

    grid: Tensor  # (G,)

    def __init__(self, families: int) -> None:
        super().__init__()
        self.register_buffer("grid", GRID, persistent=False)
        middles = torch.linspace(-4.5, -1.5, SORTS)  # tenth logarithms of the rates at which training begins
        far = (GRID.log10().float() - middles[:, None]).abs()
        self.chances = nn.Parameter((-2 * far)[:, None].repeat(1, families, 1))  # (S, F, G) logits
        self.sorts = nn.Parameter(torch.zeros(SORTS))  # logits
        # Cells of one column resemble one another: beyond so many, more of them say little new about its rate.
        self.log_enough = nn.Parameter(torch.full((families,), 5.0))
        self.trust = nn.Parameter(torch.zeros(()))  # logit of how much a column tells of the sort of its table

    def forward(self, ratios: Tensor, observed: Tensor) -> Tensor:
        """The expected rates, (D, F), from log likelihood ratios of families against right, (N, D, F), in the cells
        that are observed, (N, D)."""
        rates = self._expected(ratios, torch.zeros_like(ratios), observed)
        return self._expected(ratios, _others(ratios, rates), observed)

    def _expected(self, ratios: Tensor, otherwise: Tensor, observed: Tensor) -> Tensor:
        """The same where each family competes with what explains its cells otherwise: log probability of the cell
        without that family, over that of right, (N, D, F)."""
        seen = observed.unsqueeze(-1).to(ratios.dtype)  # (N, D, 1)
        telling = [
            (torch.logaddexp(otherwise + torch.log1p(-rate), ratios + rate.log()) * seen).sum(0) for rate in self.grid
        ]
        cells, enough = seen.sum(0), self.log_enough.exp()  # (D, 1), (F,)
        likelihood = torch.stack(telling, -1) * (enough / (enough + cells)).unsqueeze(-1)  # (D, F, G)
        joint = self.chances.log_softmax(-1)[:, None] + likelihood - likelihood.amax(-1, keepdim=True)  # (S, D, F, G)
        by_sort = self.trust.sigmoid() * joint.logsumexp(-1).sum((1, 2)) + self.sorts.log_softmax(0)  # (S,)
        weight = by_sort.softmax(0)[:, None, None, None] * joint.softmax(-1)
        return (weight.sum(0) * self.grid).sum(-1)


def _others(ratios: Tensor, rates: Tensor) -> Tensor:
    """Log probability of each cell if the family asked about does not act there, over that of right, (N, D, F)."""
    odds = ratios + (rates / (1 - rates.sum(-1, keepdim=True)).clamp_min(0.05)).log()  # (N, D, F)
    whole = torch.cat([torch.zeros_like(odds[..., :1]), odds], -1)  # right first
    without = torch.eye(odds.shape[-1] + 1, dtype=torch.bool)[1:].to(odds.device)  # (F, 1 + F)
    return torch.where(without, -torch.inf, whole.unsqueeze(-2)).logsumexp(-1)
