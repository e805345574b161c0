"""One small class per column kind: its clean and its corrupted distribution.

Each class handles all D_k columns of its kind at once. `values` are (B, D_k), `decoded` is the
kind's slice of the decoder's output, (B, width); of stacked networks (network.py) all have a leading
M. Scores, weights, sampling and repair follow from `log_clean`, `log_corrupted`, `mode`, `sample` and
`interval`; nothing outside this module asks which kind a column is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from cellmend.encoding import CountColumn, EncodedColumn, LevelColumn, RealColumn

LOG_VARIANCE = (-3.0, 3.0)  # of a real column, as in the authors' code
LOG_RATE = (-10.0, 14.0)  # of a count; keeps exp finite and Poisson sampling fast
EDGE = 1e4  # stands for infinity in ordinal thresholds: sigmoid(EDGE) is 1
LEAST_STEP = 1e-4  # between ordinal thresholds: a level that never occurs stays possible
INTERVAL = 0.9  # share of the clean component between low and high


class Real(nn.Module):
    """Standardised numbers. Clean: Gaussian at the decoder's mean. Corrupted: a wide Gaussian at 0."""

    coded: Literal[False] = False  # enters the network as a number
    corrupted_log_variance: Tensor

    def __init__(self, columns: Sequence[RealColumn], *, outlier_scale: float) -> None:
        super().__init__()
        self.width = len(columns)
        constant(self, "corrupted_log_variance", torch.tensor(2 * math.log(outlier_scale)))
        self.log_variance = nn.Parameter(torch.zeros(len(columns)))

    def inputs(self, values: Tensor) -> Tensor:
        return values

    def log_clean(self, values: Tensor, decoded: Tensor) -> Tensor:
        return gaussian_log_density(values, decoded, self._log_variance())

    def log_corrupted(self, values: Tensor) -> Tensor:
        return gaussian_log_density(values, values.new_zeros(()), self.corrupted_log_variance)

    def mode(self, decoded: Tensor) -> Tensor:
        return decoded

    def sample(self, decoded: Tensor, generator: Generator) -> Tensor:
        noise = torch.randn(decoded.shape, generator=generator, device=decoded.device)
        return decoded + noise * (0.5 * self._log_variance()).exp()

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        reach = torch.special.ndtri(torch.tensor(0.5 + INTERVAL / 2)) * (0.5 * self._log_variance()).exp()
        return decoded - reach, decoded + reach

    def _log_variance(self) -> Tensor:
        return self.log_variance.clamp(*LOG_VARIANCE).unsqueeze(-2)  # the same for all rows


class Category(nn.Module):
    """Level numbers. Clean: softmax of the decoder's logits. Corrupted: every level alike.

    The logits of all columns lie side by side, (B, C_1 + ... + C_D).
    """

    coded: Literal[True] = True  # enters the network through an embedding of its level
    owner: Tensor
    first: Tensor
    padded: Tensor
    member: Tensor
    log_uniform: Tensor

    def __init__(self, columns: Sequence[LevelColumn], *, outlier_scale: float) -> None:
        super().__init__()
        levels = torch.tensor([len(column.levels) for column in columns])
        self.width = int(levels.sum())
        owner = torch.repeat_interleave(torch.arange(len(columns)), levels)
        first = levels.cumsum(0) - levels
        constant(self, "owner", owner)  # (width,) the column of each logit
        constant(self, "first", first)  # (D,) each column's first logit
        constant(self, "member", F.one_hot(owner, len(columns)).float())  # (width, D)
        constant(self, "padded", padded_rows(levels, beyond=self.width))  # (D, C) logit of each level
        constant(self, "log_uniform", -levels.float().log())  # (D,)

    def log_clean(self, values: Tensor, decoded: Tensor) -> Tensor:
        chosen = decoded.gather(-1, values.long() + self.first)
        return chosen - self._log_total(decoded)

    def log_corrupted(self, values: Tensor) -> Tensor:
        return self.log_uniform.expand(values.shape)

    def probabilities(self, decoded: Tensor) -> Tensor:
        """(B, D, C), 0 beyond a column's own levels."""
        none = decoded.new_full((*decoded.shape[:-1], 1), -torch.inf)
        return torch.cat([decoded, none], -1)[..., self.padded].softmax(-1)

    def mode(self, decoded: Tensor) -> Tensor:
        return self.probabilities(decoded).argmax(-1).to(decoded.dtype)

    def sample(self, decoded: Tensor, generator: Generator) -> Tensor:
        return sample_levels(self.probabilities(decoded), generator)

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        """Unordered levels have none: NaN."""
        none = decoded.new_full((*decoded.shape[:-1], len(self.first)), torch.nan)
        return none, none

    def _log_total(self, decoded: Tensor) -> Tensor:
        """log sum exp over each column's logits, (B, D); the sum is one product with `member`."""
        with torch.no_grad():
            low = decoded.new_full((*decoded.shape[:-1], len(self.first)), -torch.inf)
            largest = low.scatter_reduce(-1, self.owner.expand(decoded.shape), decoded, "amax")
        return largest + ((decoded - largest[..., self.owner]).exp() @ self.member).log()


class Count(nn.Module):
    """Whole numbers from 0. Clean: Poisson at the decoder's rate. Corrupted: Poisson of a large rate."""

    coded: Literal[False] = False
    log_mean: Tensor
    corrupted_rate: Tensor

    def __init__(self, columns: Sequence[CountColumn], *, outlier_scale: float) -> None:
        super().__init__()
        self.width = len(columns)
        mean = torch.tensor([column.mean for column in columns]).clamp_min(1e-3)
        sd = torch.tensor([column.sd for column in columns])
        constant(self, "log_mean", mean.log())  # the decoder says how far to move from it
        constant(self, "corrupted_rate", mean + outlier_scale * sd.clamp_min(1.0))

    def inputs(self, values: Tensor) -> Tensor:
        return values.log1p() - self.log_mean.exp().log1p().unsqueeze(-2)

    def log_clean(self, values: Tensor, decoded: Tensor) -> Tensor:
        return poisson_log_probability(values, self._log_rate(decoded))

    def log_corrupted(self, values: Tensor) -> Tensor:
        return poisson_log_probability(values, self.corrupted_rate.log().unsqueeze(-2))

    def mode(self, decoded: Tensor) -> Tensor:
        return self._log_rate(decoded).exp().floor()

    def sample(self, decoded: Tensor, generator: Generator) -> Tensor:
        return torch.poisson(self._log_rate(decoded).exp(), generator=generator)

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        rate = self._log_rate(decoded).exp()
        return poisson_quantile(rate, (1 - INTERVAL) / 2), poisson_quantile(rate, (1 + INTERVAL) / 2)

    def _log_rate(self, decoded: Tensor) -> Tensor:
        return (decoded + self.log_mean.unsqueeze(-2)).clamp(*LOG_RATE)


class Ordinal(nn.Module):
    """Level numbers. Clean: ordinal logit around the decoder's place. Corrupted: every level alike.

    P(level <= k) = sigmoid(threshold_k - place), with rising thresholds learned for each column.
    """

    coded: Literal[True] = True
    inner: Tensor
    log_uniform: Tensor

    def __init__(self, columns: Sequence[LevelColumn], *, outlier_scale: float) -> None:
        super().__init__()
        levels = torch.tensor([len(column.levels) for column in columns])
        self.width = len(columns)
        most = int(levels.max())
        # Thresholds start evenly over -2 to 2, a single one at 0; a step is softplus(raw step).
        step = (4 / (levels.float() - 2).clamp_min(1)).expm1().log()
        self.lowest = nn.Parameter(torch.where(levels > 2, -2.0, 0.0)[:, None])
        self.raw_steps = nn.Parameter(step[:, None].repeat(1, max(most - 2, 0)))
        constant(self, "inner", torch.arange(most - 1) < levels[:, None] - 1)  # (D, C - 1)
        constant(self, "log_uniform", -levels.float().log())

    def log_clean(self, values: Tensor, decoded: Tensor) -> Tensor:
        bounds = self._bounds().expand(*values.shape, -1)  # (B, D, C + 1)
        level = values.long().unsqueeze(-1)
        below, above = bounds.gather(-1, level), bounds.gather(-1, level + 1)
        return log_sigmoid_difference(below.squeeze(-1) - decoded, above.squeeze(-1) - decoded)

    def log_corrupted(self, values: Tensor) -> Tensor:
        return self.log_uniform.expand(values.shape)

    def probabilities(self, decoded: Tensor) -> Tensor:
        """(B, D, C), 0 beyond a column's own levels."""
        bounds = self._bounds() - decoded[..., None]
        return bounds[..., 1:].sigmoid() - bounds[..., :-1].sigmoid()

    def mode(self, decoded: Tensor) -> Tensor:
        return self.probabilities(decoded).argmax(-1).to(decoded.dtype)

    def sample(self, decoded: Tensor, generator: Generator) -> Tensor:
        return sample_levels(self.probabilities(decoded), generator)

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        at_most = self.probabilities(decoded).cumsum(-1)
        low = (at_most < (1 - INTERVAL) / 2).sum(-1)
        high = (at_most < (1 + INTERVAL) / 2 - 1e-6).sum(-1)
        return low.to(decoded.dtype), high.to(decoded.dtype)

    def _bounds(self) -> Tensor:
        """Thresholds between an edge far below and an edge far above, the same for all rows, (1, D, C + 1)."""
        inner = torch.cat([self.lowest, F.softplus(self.raw_steps) + LEAST_STEP], -1).cumsum(-1)
        inner = torch.where(self.inner, inner, EDGE)
        edge = inner.new_full((*inner.shape[:-1], 1), EDGE)
        return torch.cat([-edge, inner, edge], -1).unsqueeze(-3)


Likelihood = Real | Category | Count | Ordinal
LIKELIHOODS: dict[str, type[Likelihood]] = {
    "real": Real,
    "category": Category,
    "count": Count,
    "ordinal": Ordinal,
}


def make_likelihood(columns: Sequence[EncodedColumn], *, outlier_scale: float) -> Likelihood:
    """The likelihood of columns that are all of one kind."""
    kind = LIKELIHOODS[columns[0].kind]
    return kind(columns, outlier_scale=outlier_scale)  # type: ignore[arg-type]


def gaussian_log_density(values: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """log N(values | mean, exp(log_variance)).

    >>> gaussian_log_density(torch.zeros(1), torch.zeros(1), torch.zeros(1))
    tensor([-0.9189])
    """
    return -0.5 * ((values - mean).square() * (-log_variance).exp() + log_variance + math.log(2 * math.pi))


def poisson_log_probability(values: Tensor, log_rate: Tensor) -> Tensor:
    """log Poisson(values | exp(log_rate)).

    >>> poisson_log_probability(torch.tensor([0.0]), torch.tensor([0.0]))
    tensor([-1.])
    """
    return values * log_rate - log_rate.exp() - torch.lgamma(values + 1)


def poisson_quantile(rate: Tensor, share: float) -> Tensor:
    """The smallest count that at least this share of Poisson(rate) does not exceed.

    >>> poisson_quantile(torch.tensor([0.1, 4.0]), 0.95)
    tensor([1., 8.])
    """
    # The normal approximation with its skewness term is right to within 2; look at its neighbours.
    reach = torch.special.ndtri(torch.tensor(share))
    guess = (rate + reach * rate.sqrt() + (reach**2 - 1) / 6).round()
    near = guess[..., None] + torch.arange(-3, 3, device=rate.device)  # candidates
    at_most = torch.special.gammaincc(near.clamp_min(0) + 1, rate[..., None].expand(near.shape))
    short = (at_most < share) | (near < 0)
    return guess - 3 + short.sum(-1)


def log_sigmoid_difference(below: Tensor, above: Tensor) -> Tensor:
    """log(sigmoid(above) - sigmoid(below)) for above > below, without cancellation.

    >>> log_sigmoid_difference(torch.tensor([-30.0]), torch.tensor([-29.0]))
    tensor([-29.4587])
    """
    return F.logsigmoid(above) + F.logsigmoid(-below) + (-(below - above).exp()).log1p()


def sample_levels(probabilities: Tensor, generator: Generator) -> Tensor:
    """One level per column, (B, D), from (B, D, C)."""
    uniform = torch.rand(probabilities.shape[:-1], generator=generator, device=probabilities.device)
    at_most = probabilities.cumsum(-1)
    # Scaled to the total, so that rounding cannot reach beyond the last level.
    return (at_most < (uniform * at_most[..., -1])[..., None]).sum(-1).to(probabilities.dtype)


def padded_rows(levels: Tensor, *, beyond: int) -> Tensor:
    """Where the levels of each column lie when all columns' levels stand in one row, (D, C).

    >>> padded_rows(torch.tensor([2, 3]), beyond=9).tolist()
    [[0, 1, 9], [2, 3, 4]]
    """
    level = torch.arange(int(levels.max()) if len(levels) else 0)
    first = levels.cumsum(0) - levels
    return torch.where(level < levels[:, None], first[:, None] + level, beyond)


def constant(module: nn.Module, name: str, value: Tensor) -> None:
    """A tensor that moves with the module but is neither learned nor saved."""
    module.register_buffer(name, value, persistent=False)
