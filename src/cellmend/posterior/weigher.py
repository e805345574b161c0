"""The weigher: from the evidence of a cell, its column, its row and its table to the odds of each family of causes.

Its weights were learned once, from public tables spoiled in many ways (benchmarks/prior), and are part of the package.
Shapes: N rows, D columns, E sorts of evidence, F families, W width, K figures of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import load
from torch import Tensor, nn

from cellmend.posterior.evidence import NAMES
from cellmend.posterior.experts import EXPERTS
from cellmend.posterior.priors import LOWEST_RATE, MOST_WRONG, ROUNDS

FAMILIES = ("spelling", "form", "placeholder", "number", "unreadable", "cut", "valid", "misplaced")
# What the network says of a cell that is hidden from it: that it says anything, the log of the column's share of wrong
# cells, and the log likelihood ratio that the cell is wrong, bounded by what so many rows can tell.
NETWORK = ("says", "log_rate", "ratio")
CONFIRMS = NAMES.index("curve_confirms")  # a log likelihood ratio: the number lies where one beside it says
# Families by which a cell becomes what other cells are by nature. They are excused where the network expects what
# stands there. The others leave texts of their own; where such a text recurs, the network has learned it.
EXPECTED = ("number", "cut", "valid", "misplaced")
# What an expert's word is about. It is taken at its face value until training says otherwise: public tables show some
# experts too seldom to learn their weight from nothing.
ABOUT = {
    "dependency": "valid",
    "arithmetic": "number",
    "sequence": "number",
    "key": "valid",
    "sources": "valid",
    "slip": "spelling",
    "constant": "number",
}
OF_REPAIRS = 32  # width of the layer for repairs
OF_CELL = 1 + len(FAMILIES)  # figures of its cell that a hypothesis is weighed with
IMPOSSIBLE = 700.0  # natural logarithms: nearly the least number above 0
WIDTH, WHOLE = 128, 8  # of layers; figures are filled up to multiples of the second
DROPPED = 0.2  # of the figures of a layer, in each step of training


@dataclass(frozen=True)
class Context:
    """What a table looked like when it was learned from, so that any piece of it is judged as the whole is."""

    columns: Tensor  # (D, W) mean of its cells
    table: Tensor  # (W,) mean of the columns
    rates: Tensor  # (D, F) how often each family of causes acts in each column

    def followed_by(self, newer: Context, share: float) -> Context:
        """This table and a newer one, which has this share of all rows."""
        both = zip(vars(self).items(), vars(newer).values(), strict=True)
        return Context(**{name: own + share * (new - own) for (name, own), new in both})

    def to_json(self) -> dict[str, Any]:
        return {name: value.tolist() for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Context:
        return cls(**{name: torch.tensor(value, dtype=torch.float64) for name, value in entry.items()})


class Weigher(nn.Module):
    """Weighs evidence; one small network for all tables."""

    middle: Tensor  # (E,) of each sort of evidence
    spread: Tensor  # (E,)
    expected: Tensor  # (F,) 1 for families that are excused, else 0

    def __init__(self, evidence: int, repair_figures: int, width: int = WIDTH) -> None:
        super().__init__()
        families = len(FAMILIES)
        self.repairs = RepairWeigher(repair_figures)
        self.register_buffer("middle", torch.zeros(evidence))
        self.register_buffer("spread", torch.ones(evidence))
        self.first, self.second = nn.Linear(evidence, 2 * width), nn.Linear(2 * width, width)
        self.of_cell, self.of_column = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width, bias=False)
        self.of_row = nn.Linear(2 * width, 2 * width, bias=False)
        self.of_table = nn.Linear(width, 2 * width, bias=False)
        expected = torch.tensor([float(family in EXPECTED) for family in FAMILIES])
        self.register_buffer("expected", expected, persistent=False)
        self.by_experts = nn.Linear(len(EXPERTS), families, bias=False)
        self.inner, self.odds = nn.Linear(2 * width, width), nn.Linear(width, families)
        self._take_at_face_value()
        self.log_prior = nn.Parameter(torch.full((families,), -6.0))  # rate of a family in a column of a usual table
        self.log_belief = nn.Parameter(torch.full((families,), 2.0))  # cells in thought that hold to the prior
        self.log_sharing = nn.Parameter(torch.full((families,), 2.0))  # and those that hold to the rest of the table
        self.dropout = nn.Dropout(DROPPED)  # while training: no few of the figures of a layer must decide alone

    @torch.no_grad()
    def _take_at_face_value(self) -> None:
        """Let the log odds of experts count as they are."""
        self.by_experts.weight.zero_()
        for expert, family in ABOUT.items():
            self.by_experts.weight[FAMILIES.index(family), EXPERTS.index(expert)] = 1.0

    def look(self, evidence: Tensor) -> Tensor:
        """Each cell by itself, (N, D, W)."""
        x = (evidence - self.middle) / self.spread
        more = -x.shape[-1] % WHOLE  # else products are rounded otherwise for other numbers of rows
        first = F.linear(F.pad(x, (0, more)), F.pad(self.first.weight, (0, more)), self.first.bias)
        return F.gelu(self.second(self.dropout(F.gelu(first))))

    def context(self, evidence: Tensor, observed: Tensor, network: Tensor) -> Context:
        """What the columns and the table look like, and how often each family acts in each column."""
        ratios, columns = self.sample(evidence, observed)
        return self.context_of(ratios, columns, observed, network)

    def sample(self, evidence: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
        """The ratios of these cells beside each other, (N, D, F), and what their columns look like, (D, W)."""
        cells = self.look(evidence)
        columns = _mean(cells, observed, 0)
        beside = Context(columns, columns.mean(0), torch.empty(0))
        return self._ratios(self._in_context(cells, observed, beside), evidence), columns

    def context_of(self, ratios: Tensor, columns: Tensor, observed: Tensor, network: Tensor) -> Context:
        """The context that a sample of cells gives, with what the network says of them, (N, D, K)."""
        return Context(columns, columns.mean(0), self.rates(self.excused(ratios, network), observed))

    def forward(self, evidence: Tensor, observed: Tensor, network: Tensor, context: Context) -> Tensor:
        """Log probability of right, and of each family, (N, D, 1 + F), from all evidence, (N, D, E), and what the
        network says, (N, D, K), 0 where it is silent."""
        ratios = self.ratios(evidence, observed, context)
        return self.explained(ratios, observed, network, evidence[..., CONFIRMS], context.rates)

    def ratios(self, evidence: Tensor, observed: Tensor, context: Context) -> Tensor:
        """Log of how much likelier each family explains a cell than that it is right, (N, D, F), the network silent."""
        return self._ratios(self._in_context(self.look(evidence), observed, context), evidence)

    def excused(self, ratios: Tensor, network: Tensor) -> Tensor:
        """Ratios (N, D, F), less where the network expects the cell."""
        return ratios + network[..., 2:].clamp_max(0.0) * self.expected

    def explained(self, ratios: Tensor, observed: Tensor, network: Tensor, confirms: Tensor, rates: Tensor) -> Tensor:
        """Log probability of right, and of each family, (N, D, 1 + F), from ratios, what the network says, and by how
        much a number beside a cell confirms it, (N, D).

        The network's word is an explanation of its own, at face value: weights for it that were learned from public
        tables, most of them small and of few numbers, do not carry over to others."""
        known = torch.where(observed.unsqueeze(-1), self.excused(ratios, network), -IMPOSSIBLE)
        logs = posterior(known, rates)  # of the others the network speaks alone
        says, rate, ratio = network.unbind(-1)
        return with_one_more(logs, torch.where(says > 0, rate + ratio - confirms, -torch.inf))

    def _in_context(self, cells: Tensor, observed: Tensor, context: Context) -> Tensor:
        """Each cell beside its column, its row and its table, (N, D, W)."""
        rows = self.of_row(torch.cat([_mean(cells, observed, 1), _most(cells, observed)], -1))
        mixed = self.of_cell(cells) + self.of_column(context.columns) + rows.unsqueeze(1) + self.of_table(context.table)
        return F.gelu(self.inner(self.dropout(F.gelu(mixed))))

    def _ratios(self, cells: Tensor, evidence: Tensor) -> Tensor:
        """Of cells beside their column, row and table, (N, D, W), by all figures and by what experts add by themselves,
        (N, D, F)."""
        # One after the other: a product of matrices is rounded otherwise for other numbers of rows.
        experts = evidence[..., -len(EXPERTS) :]
        each = (experts[..., at, None] * self.by_experts.weight[:, at] for at in range(len(EXPERTS)))
        return sum(each, start=self.odds(cells))

    def rates(self, ratios: Tensor, observed: Tensor) -> Tensor:
        """How often each family acts in each column, (D, F): a few rounds of EM from a learned prior, columns of one
        table believing in each other."""
        seen = observed.unsqueeze(-1).to(ratios.dtype)  # (N, D, 1)
        cells = seen.sum(0)  # (D, 1)
        prior, belief, sharing = self.log_prior.exp(), self.log_belief.exp(), self.log_sharing.exp()
        rates = prior.expand(len(cells), -1)
        for _ in range(ROUNDS):
            caused = (posterior(ratios, rates)[..., 1:].exp() * seen).sum(0)  # (D, F)
            shared = (prior * belief + caused.sum(0)) / (belief + cells.sum(0))
            rates = (prior * belief + shared * sharing + caused) / (belief + sharing + cells)
        return rates


class RepairWeigher(nn.Module):
    """How probably a cell was meant to say something else, from figures about that, the log odds that the cell is wrong
    and the families of causes."""

    middle: Tensor  # (figures + 1 + F,)
    spread: Tensor  # (figures + 1 + F,)

    def __init__(self, figures: int) -> None:
        super().__init__()
        whole = figures + OF_CELL
        self.register_buffer("middle", torch.zeros(whole))
        self.register_buffer("spread", torch.ones(whole))
        self.first, self.second = nn.Linear(whole, OF_REPAIRS), nn.Linear(OF_REPAIRS, 1)

    def forward(self, figures: Tensor) -> Tensor:
        """Log odds that each hypothesis is right, (H,)."""
        return self.second(F.gelu(self.first((figures - self.middle) / self.spread)))[:, 0]

    @torch.no_grad()
    def chances(self, figures: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each hypothesis, (H,), each worked out by itself."""
        found: NDArray[np.float64] = self(torch.from_numpy(figures).double()).sigmoid().numpy()
        return found


def posterior(ratios: Tensor, rates: Tensor) -> Tensor:
    """Log probability of right and of each family, (N, D, 1 + F), by Bayes' rule from log likelihood ratios (N, D, F)
    and rates (D, F)."""
    rates = bounded_rates(rates)
    right = torch.log1p(-rates.sum(-1)).expand(ratios.shape[:-1]).unsqueeze(-1)
    return torch.cat([right, ratios + rates.log()], -1).log_softmax(-1)


def bounded_rates(rates: Tensor) -> Tensor:
    """Rates (D, F) of which none is 0, and which leave something right in each column."""
    rates = rates.clamp_min(LOWEST_RATE)
    return rates * (MOST_WRONG / rates.sum(-1, keepdim=True)).clamp_max(1.0)


def with_one_more(logs: Tensor, odds: Tensor) -> Tensor:
    """Log probabilities (N, D, 1 + F) with one more explanation, of log odds (N, D) against being right: a valid value
    in the wrong row. Explanations exclude each other, so their odds add up."""
    valid = F.one_hot(torch.tensor(1 + FAMILIES.index("valid")), logs.shape[-1]).to(logs).log()  # 0 there, else -inf
    return torch.logaddexp(logs, logs[..., :1] + odds[..., None] + valid).log_softmax(-1)


def _mean(cells: Tensor, observed: Tensor, axis: int) -> Tensor:
    """Mean over observed cells along an axis."""
    seen = observed.unsqueeze(-1).to(cells.dtype)
    return (cells * seen).sum(axis) / seen.sum(axis).clamp_min(1)


def _most(cells: Tensor, observed: Tensor) -> Tensor:
    """The highest of each row's observed cells, (N, W)."""
    return torch.where(observed.unsqueeze(-1), cells, -1.0).amax(1)


@cache
def learned() -> Weigher:
    """The weigher that the package brings along."""
    return weigher_of(load(resources.files("cellmend.posterior").joinpath("weigher.safetensors").read_bytes()))


def weigher_of(tensors: Mapping[str, Tensor]) -> Weigher:
    """A weigher with these weights."""
    with torch.random.fork_rng(devices=[]):  # first weights are drawn, and thrown away
        width = len(tensors["second.bias"])
        weigher = Weigher(len(tensors["middle"]), len(tensors["repairs.middle"]) - OF_CELL, width)
    weigher.load_state_dict({key: value.float() for key, value in tensors.items()})
    weigher.repairs.double()  # of few cells
    return weigher.eval().requires_grad_(False)
