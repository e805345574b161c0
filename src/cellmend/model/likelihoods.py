"""One small class per column kind: its clean and its corrupted distribution.

Each class handles all D_k columns of its kind at once. `values` are (B, D_k), `decoded` is the
kind's slice of the decoder's output, (B, width); of stacked networks (network.py) all have a leading
M. Scores, weights, sampling and repair follow from `log_clean`, `log_corrupted`, `best`, `sample` and
`interval`; nothing outside this module asks which kind a column is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from cellmend.model.columns import CountColumn, EncodedColumn, LevelColumn, RealColumn
from cellmend.model.measures import KNOTS

LOG_VARIANCE = (-3.0, 3.0)  # of a real column, as in the authors' code
MIXTURE_LOG_VARIANCE = (-6.0, 3.0)  # with components; narrow ones hold values that occur again and again
LEAST_STRETCH = 1e-6  # between knots that coincide: a step
LOG_RATE = (-10.0, 14.0)  # of a count; keeps exp finite and Poisson sampling fast
EDGE = 1e4  # stands for infinity in ordinal thresholds: sigmoid(EDGE) is 1
LEAST_STEP = 1e-4  # between ordinal thresholds: a level that never occurs stays possible
COUNT_REACH = 4.0  # standard deviations above the mean: where the largest of a count's components starts
FEWEST_BELOW = 1.63  # deviations that the fewest of STRETCHES counts lies below their mean
FAR = 4.0  # widths of p0: as far out as errors of a column are looked for
STRETCHES = 12  # of p0's range, in which values are counted
HALVINGS = 24  # to find a quantile of a mixture
LARGEST_LOG_RATIO = 80.0  # of two levels' probabilities; exp of it, many times, is still finite
LOG_2_PI = math.log(2 * math.pi)
TAILS = (1 - 0.9) / 2, (1 + 0.9) / 2  # of the clean component below low and below high: 90 % lie between


@dataclass(frozen=True)
class Distributions:
    """How columns are modelled: settings of CellMender, where they are explained."""

    outlier: str
    outlier_scale: float
    components: int
    binned: bool


class Real(nn.Module):
    """Standardised numbers. Clean: a Gaussian at the decoder's mean. Corrupted: a wide Gaussian at 0, or a Cauchy
    around the column's usual values.

    With `components` the clean distribution is a mixture: that Gaussian, of a width that the decoder says too, and
    components whose places and widths are learned for the column, all weighed by the decoder. A column is then
    (mean, log variance, logits of the weights).
    """

    coded: Literal[False] = False  # enters the network as a number

    def __init__(self, columns: Sequence[RealColumn], how: Distributions) -> None:
        super().__init__()
        self.how = how
        self.columns, self.each = len(columns), 3 + how.components if how.components else 1
        self.width, self.features = self.columns * self.each, KNOTS + 1 if how.binned else 1
        knots = torch.tensor([column.knots for column in columns])  # (D, KNOTS)
        self.knots = fixed(knots)
        self.per_stretch = fixed(1 / (knots[:, 1:] - knots[:, :-1]).clamp_min(LEAST_STRETCH))
        self.ends = fixed(knots[:, [0, -1]])
        self.outwards = fixed(torch.tensor([-1.0, 1.0]))
        self.owner = fixed(torch.arange(self.columns).repeat_interleave(self.each))
        self.middle = fixed(torch.tensor([column.middle for column in columns]))
        self.spread = fixed(torch.tensor([column.spread for column in columns]))
        self.one_value = fixed(torch.tensor([column.one_value for column in columns]))
        self.log_variance = nn.Parameter(torch.zeros(self.columns))
        if how.components:
            chosen = torch.linspace(0, KNOTS - 1, how.components).round().long()
            span = (knots[:, -1:] - knots[:, :1]).clamp_min(1e-2)
            # Where a column errs by itself the outer knots are its errors: what is usual lies within two deviations.
            errs = torch.tensor([column.has_own_noise for column in columns])[:, None]
            core = self.middle[:, None] + self.spread[:, None] * torch.linspace(-2, 2, how.components)
            span = torch.where(errs, 4 * self.spread[:, None], span)
            self.places = nn.Parameter(torch.where(errs, core, knots[:, chosen]))  # (D, components)
            self.widths = nn.Parameter((span / how.components).square().log().repeat(1, how.components))

    def inputs(self, values: Tensor) -> Tensor:
        """(B, D, 1); or how far each stretch between knots is passed, from 0 to 1, and by how many deviations the
        first and the last knot are passed outwards, as a logarithm, so that no outlier shouts, (B, D, KNOTS + 1)."""
        x = values.unsqueeze(-1)
        if not self.how.binned:
            return x
        passed = (x - self.knots[..., None, :, :-1]).mul_(self.per_stretch[..., None, :, :]).clamp_(0, 1)
        beyond = ((x - self.ends[..., None, :, :]) * self.outwards).clamp_min_(0).log1p_()
        return torch.cat([passed, beyond], -1)

    def log_clean(self, values: Tensor, decoded: Tensor) -> Tensor:
        if not self.how.components:
            return GaussianLogDensity.apply(values, decoded, self.log_variance)
        return MixtureLogDensity.apply(values, self._own(decoded), self.log_variance, self.places, self.widths)

    def log_corrupted(self, values: Tensor) -> Tensor:
        scale = self.how.outlier_scale
        if self.how.outlier == "cauchy":
            width = (scale * self.spread).unsqueeze(-2)
            return -((values - self.middle.unsqueeze(-2)) / width).square().log1p() - (math.pi * width).log()
        # No tensor is made of the number: a captured CUDA graph must not copy from the host.
        return -0.5 * (values / scale).square() - math.log(scale) - 0.5 * LOG_2_PI

    def chance(self, uniform: Tensor) -> Tensor:
        """Draws from the corrupted component, as far out as errors are looked for, (B, D), by uniform draws (B, D)."""
        if self.how.outlier == "gaussian":
            return self.how.outlier_scale * torch.special.ndtri(uniform.clamp(1e-6, 1 - 1e-6))
        width = (self.how.outlier_scale * self.spread).unsqueeze(-2)
        return self.middle.unsqueeze(-2) + width * ((2 * uniform - 1) * math.atan(FAR)).tan()

    def room(self, values: Tensor, observed: Tensor) -> Tensor:
        """The largest share that the corrupted component may have of the values of each column, (D,).

        It has as much above the middle as below; and in a column of one value that is all there is to go by.
        """
        away = values - self.middle.unsqueeze(-2)
        rank = (away / (self.how.outlier_scale * self.spread).unsqueeze(-2)).atan() / math.atan(FAR)
        below, above = ((observed & side).sum(-2) for side in (away < 0, away > 0))
        both_sides = 2 * torch.minimum(below, above) / observed.sum(-2).clamp_min(1)
        return torch.where(self.one_value, both_sides, room_for_uniform((1 + rank) / 2, observed))

    def best(self, decoded: Tensor) -> Tensor:
        if not self.how.components:
            return decoded
        log_weights, means, _ = self._mixture(decoded)
        return (log_weights.exp() * means).sum(-1)

    def sample(self, decoded: Tensor, generator: Generator) -> Tensor:
        log_weights, means, log_variances = self._mixture(decoded)
        chosen = sample_levels(log_weights.exp(), generator).long().unsqueeze(-1)
        noise = torch.randn(chosen.shape, generator=generator, device=decoded.device)
        widths = (0.5 * log_variances).expand(means.shape).exp()
        drawn = means.gather(-1, chosen) + noise * widths.gather(-1, chosen)
        return drawn.squeeze(-1)

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        log_weights, means, log_variances = self._mixture(decoded)
        weights, sds = log_weights.exp(), (0.5 * log_variances).exp()
        low, high = (mixture_quantile(weights, means, sds, share) for share in TAILS)
        return low, high

    def _mixture(self, decoded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log weights, means and log variances (B, D, components + 1), the decoder's Gaussian first."""
        if not self.how.components:
            one = F.hardtanh(self.log_variance, *LOG_VARIANCE)[..., None, :, None]  # the same for all rows, (1, D, 1)
            return torch.zeros_like(decoded).unsqueeze(-1), decoded.unsqueeze(-1), one
        own = self._own(decoded)
        found = (own[2:].log_softmax(0), *gaussians(own, self.log_variance, self.places, self.widths))
        return tuple(each.movedim(0, -1) for each in found)  # type: ignore[return-value]

    def _own(self, decoded: Tensor) -> Tensor:
        """What the decoder says of each column, (3 + components, B, D)."""
        return decoded.view(*decoded.shape[:-1], self.columns, self.each).movedim(-1, 0)


class Levels(nn.Module):
    """Level numbers, which enter the network through an embedding of each. Corrupted: every level alike."""

    coded: Literal[True] = True

    def __init__(self, levels: Tensor) -> None:
        super().__init__()
        self.log_uniform = fixed(-levels.float().log())  # (D,)

    def probabilities(self, decoded: Tensor) -> Tensor:
        """(B, D, C), 0 beyond a column's own levels."""
        raise NotImplementedError

    def log_corrupted(self, values: Tensor) -> Tensor:
        return self.log_uniform.expand(values.shape)

    def room(self, values: Tensor, observed: Tensor) -> Tensor:
        """Frequencies of levels do not say: NaN, (D,)."""
        return torch.full_like(self.log_uniform, torch.nan)

    def best(self, decoded: Tensor) -> Tensor:
        return self.probabilities(decoded).argmax(-1).to(decoded.dtype)

    def sample(self, decoded: Tensor, generator: Generator) -> Tensor:
        return sample_levels(self.probabilities(decoded), generator)


class Category(Levels):
    """Unordered levels. Clean: softmax of the decoder's logits.

    The logits of all columns lie side by side, (B, W_1 + ... + W_D): one for each level, or for each group of them, in
    which the level has a share that does not depend on the row.
    """

    def __init__(self, columns: Sequence[LevelColumn], how: Distributions) -> None:
        levels = torch.tensor([len(column.levels) for column in columns])
        super().__init__(levels)
        outputs = torch.tensor([max(column.outputs, default=len(column.levels) - 1) + 1 for column in columns])
        self.width, self.shared = int(outputs.sum()), any(column.outputs for column in columns)
        owner = torch.repeat_interleave(torch.arange(len(columns)), outputs)
        self.owner = fixed(owner)  # (width,) the column of each logit
        self.first = fixed(outputs.cumsum(0) - outputs)  # (D,) each column's first logit
        self.member = fixed(F.one_hot(owner, len(columns)).float())  # (width, D)
        self.padded = fixed(padded_rows(outputs, beyond=self.width))  # (D, W) every logit
        if self.shared:
            self._share(columns, levels)

    def _share(self, columns: Sequence[LevelColumn], levels: Tensor) -> None:
        """Which logit each of all L levels has, and with what share."""
        own = [torch.tensor(column.outputs or range(len(column.levels))) for column in columns]
        shares = torch.cat([torch.tensor(column.shares or [1.0] * len(column.levels)) for column in columns])
        output = torch.cat([each + first for each, first in zip(own, self.first, strict=True)])
        level = torch.cat([torch.arange(len(each)) for each in own])
        rising = shares.argsort(stable=True)
        leader = torch.zeros(self.width, dtype=torch.long)
        leader[output[rising]] = rising  # of each logit the last one that is written: that with the largest share
        self.first_level = fixed(levels.cumsum(0) - levels)  # (D,)
        self.output = fixed(output)  # (L,)
        self.log_share = fixed(shares.log())  # (L,)
        self.leader = fixed(level[leader])  # (width,) the likeliest level of each logit, within its column
        self.log_lead = fixed(shares[leader].log())  # (width,)
        self.padded_levels = fixed(padded_rows(levels, beyond=len(output)))  # (D, C)

    def log_clean(self, values: Tensor, decoded: Tensor) -> Tensor:
        if not self.shared:
            return LogSoftmax.apply(decoded, values.long() + self.first, self.owner, self.member)
        level = values.long() + self.first_level
        return LogSoftmax.apply(decoded, self.output[level], self.owner, self.member) + self.log_share[level]

    def probabilities(self, decoded: Tensor) -> Tensor:
        of_logits = self._side_by_side(decoded).softmax(-1)
        if not self.shared:
            return of_logits
        place = F.pad(self.output, (0, 1))[self.padded_levels] - self.first[:, None]  # (D, C)
        share = F.pad(self.log_share, (0, 1), value=-torch.inf)[self.padded_levels].exp()
        return of_logits.gather(-1, place.clamp_min(0).expand(*of_logits.shape[:-1], -1)) * share

    def _side_by_side(self, decoded: Tensor) -> Tensor:
        """The logits of each column, (B, D, W), -inf beyond its own."""
        none = decoded.new_full((*decoded.shape[:-1], 1), -torch.inf)
        return torch.cat([decoded, none], -1)[..., self.padded]

    def best(self, decoded: Tensor) -> Tensor:
        if not self.shared:
            return super().best(decoded)
        chosen = self._side_by_side(decoded + self.log_lead).argmax(-1) + self.first  # (B, D)
        return self.leader[chosen].to(decoded.dtype)

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        """Unordered levels have none: NaN."""
        none = decoded.new_full((*decoded.shape[:-1], len(self.first)), torch.nan)
        return none, none


class Count(nn.Module):
    """Whole numbers from 0. Clean: Poisson at the decoder's rate. Corrupted: Poisson of a large rate, or half a Cauchy.

    With `components` the clean distribution is a mixture: that Poisson, and others whose rates are learned for the
    column, all weighed by the decoder. A column is then (log rate, logits of the weights).
    """

    coded: Literal[False] = False

    def __init__(self, columns: Sequence[CountColumn], how: Distributions) -> None:
        super().__init__()
        self.how, self.features = how, 1
        self.columns, self.each = len(columns), 2 + how.components if how.components else 1
        self.width = self.columns * self.each
        self.owner = fixed(torch.arange(self.columns).repeat_interleave(self.each))
        mean = torch.tensor([column.mean for column in columns]).clamp_min(1e-3)
        sd = torch.tensor([column.sd for column in columns])
        self.log_mean = fixed(mean.log())  # the decoder says how far to move from it
        self.corrupted_rate = fixed(mean + how.outlier_scale * sd.clamp_min(1.0))
        if how.components:
            reach = torch.linspace(0.1, 1 + COUNT_REACH, how.components)  # rates from near 0 to far above the mean
            self.log_rates = nn.Parameter((mean[:, None] * reach.clamp_max(1) + sd[:, None] * (reach - 1).relu()).log())

    def inputs(self, values: Tensor) -> Tensor:
        return (values.log1p() - self.log_mean.exp().log1p().unsqueeze(-2)).unsqueeze(-1)

    def log_clean(self, values: Tensor, decoded: Tensor) -> Tensor:
        log_weights, log_rates = self._mixture(decoded)
        return (log_weights + poisson_log_probability(values.unsqueeze(-1), log_rates)).logsumexp(-1)

    def log_corrupted(self, values: Tensor) -> Tensor:
        rate = self.corrupted_rate.unsqueeze(-2)
        if self.how.outlier == "cauchy":
            # What half a Cauchy has between k and k + 1, as one arctangent: the difference of two would cancel.
            return (2 / math.pi * (rate / (rate.square() + values * (values + 1))).atan()).log()
        return poisson_log_probability(values, rate.log())

    def chance(self, uniform: Tensor) -> Tensor:
        """Draws from half a Cauchy, cut at FAR times its rate, (B, D), by uniform draws (B, D)."""
        return (self.corrupted_rate.unsqueeze(-2) * (uniform * math.atan(FAR)).tan()).floor()

    def room(self, values: Tensor, observed: Tensor) -> Tensor:
        """The largest share that the corrupted component may have of the values of each column, (D,)."""
        rank = ((values + 0.5) / self.corrupted_rate.unsqueeze(-2)).atan() / math.atan(FAR)
        return room_for_uniform(rank, observed)

    def best(self, decoded: Tensor) -> Tensor:
        log_weights, log_rates = self._mixture(decoded)
        mean = (log_weights + log_rates).exp().sum(-1)
        return mean.round() if self.how.components else mean.floor()  # of a single Poisson the likeliest count

    def sample(self, decoded: Tensor, generator: Generator) -> Tensor:
        log_weights, log_rates = self._mixture(decoded)
        chosen = sample_levels(log_weights.exp(), generator).long().unsqueeze(-1)
        return torch.poisson(log_rates.gather(-1, chosen).squeeze(-1).exp(), generator=generator)

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        log_weights, log_rates = self._mixture(decoded)
        low, high = (poisson_quantile(log_weights.exp(), log_rates.exp(), share) for share in TAILS)
        return low, high

    def _mixture(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        """Log weights and log rates (B, D, components + 1), the decoder's Poisson first."""
        own = decoded.view(*decoded.shape[:-1], self.columns, self.each)
        log_rates = own[..., :1] + self.log_mean[..., None, :, None]
        if not self.how.components:
            return torch.zeros_like(log_rates), log_rates.clamp(*LOG_RATE)
        shared = self.log_rates.unsqueeze(-3).expand(*own.shape[:-1], self.how.components)
        return own[..., 1:].log_softmax(-1), torch.cat([log_rates, shared], -1).clamp(*LOG_RATE)


class Ordinal(Levels):
    """Ordered levels. Clean: ordinal logit around the decoder's place.

    P(level <= k) = sigmoid(threshold_k - place), with rising thresholds learned for each column.
    """

    def __init__(self, columns: Sequence[LevelColumn], how: Distributions) -> None:
        levels = torch.tensor([len(column.levels) for column in columns])
        super().__init__(levels)
        self.width = len(columns)
        self.owner = fixed(torch.arange(self.width))
        most = int(levels.max())
        # Thresholds start evenly over -2 to 2, a single one at 0; a step is softplus(raw step).
        step = (4 / (levels.float() - 2).clamp_min(1)).expm1().log()
        self.lowest = nn.Parameter(torch.where(levels > 2, -2.0, 0.0)[:, None])
        self.raw_steps = nn.Parameter(step[:, None].repeat(1, max(most - 2, 0)))
        self.inner = fixed(torch.arange(most - 1) < levels[:, None] - 1)  # (D, C - 1)

    def log_clean(self, values: Tensor, decoded: Tensor) -> Tensor:
        bounds = self._bounds().expand(*values.shape, -1)  # (B, D, C + 1)
        level = values.long().unsqueeze(-1)
        below, above = bounds.gather(-1, level), bounds.gather(-1, level + 1)
        return log_sigmoid_difference(below.squeeze(-1) - decoded, above.squeeze(-1) - decoded)

    def probabilities(self, decoded: Tensor) -> Tensor:
        bounds = self._bounds() - decoded[..., None]
        return bounds[..., 1:].sigmoid() - bounds[..., :-1].sigmoid()

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        at_most = self.probabilities(decoded).cumsum(-1)
        low = (at_most < TAILS[0]).sum(-1)
        high = (at_most < TAILS[1] - 1e-6).sum(-1)  # sums are rounded
        return low.to(decoded.dtype), high.to(decoded.dtype)

    def _bounds(self) -> Tensor:
        """Thresholds between an edge far below and an edge far above, the same for all rows, (1, D, C + 1)."""
        inner = torch.cat([self.lowest, F.softplus(self.raw_steps) + LEAST_STEP], -1).cumsum(-1)
        inner = torch.where(self.inner, inner, EDGE)
        edge = inner.new_full((*inner.shape[:-1], 1), EDGE)
        return torch.cat([-edge, inner, edge], -1).unsqueeze(-3)


# ---------------------------------------------------------------- densities; those in every step with their gradients


class GaussianLogDensity(torch.autograd.Function):
    """log N(values | mean, exp(log_variance)), (B, D); log_variance (D,) is kept within LOG_VARIANCE."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
        kept = log_variance.clamp(*LOG_VARIANCE).unsqueeze(-2)
        away = values - mean
        scaled = away * (-kept).exp_()
        far = away * scaled
        ctx.save_for_backward(scaled, far, log_variance)
        return (far + kept).add_(LOG_2_PI).mul_(-0.5)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor]:
        scaled, far, log_variance = ctx.saved_tensors
        of_variance = (far - 1).mul_(gradient).sum(-2).mul_(0.5)
        of_variance = torch.ops.aten.hardtanh_backward(of_variance, log_variance, *LOG_VARIANCE)
        return None, gradient * scaled, of_variance


class MixtureLogDensity(torch.autograd.Function):
    """log density of values (B, D) by the Gaussians of `gaussians`, weighed by the logits own[2:]; (B, D).

    Components come first: sums over a short last dimension are slow.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, own: Tensor, log_variance: Tensor, places: Tensor, widths: Tensor) -> Tensor:
        means, log_variances = gaussians(own, log_variance, places, widths)
        away, logits = values - means, own[2:]
        scaled = away * (-log_variances).exp_()
        joint = torch.add(logits, log_variances, alpha=-0.5).addcmul_(away, scaled, value=-0.5)
        posterior, prior = joint.log_softmax(0), logits.log_softmax(0)
        ctx.save_for_backward(away, scaled, posterior, prior, log_variances)
        return joint[0] - posterior[0] - logits[0] + prior[0] - 0.5 * LOG_2_PI

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor, Tensor, Tensor]:
        away, scaled, posterior, prior, log_variances = ctx.saved_tensors
        posterior, prior = posterior.exp() * gradient, prior.exp() * gradient
        of_means = posterior * scaled
        of_variances = torch.addcmul(-0.5 * posterior, away, of_means, value=0.5)
        of_variances = torch.ops.aten.hardtanh_backward(of_variances, log_variances, *MIXTURE_LOG_VARIANCE)
        of_own = torch.cat([of_means[:1], of_variances[:1], posterior - prior])
        of_means, of_variances = of_means.sum(-2).movedim(0, -1), of_variances.sum(-2).movedim(0, -1)
        return None, of_own, of_variances[..., 0], of_means[..., 1:], of_variances[..., 1:]


def gaussians(own: Tensor, log_variance: Tensor, places: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
    """Means and log variances (K + 1, B, D): the decoder's own[:2] (2, B, D), then the K of the columns (D, K)."""
    shape = places.shape[-1], *own.shape[1:]
    of_columns = [each.movedim(-1, 0).unsqueeze(-2).expand(shape) for each in (places, widths)]
    means = torch.cat([own[:1], of_columns[0]])
    log_variances = torch.cat([own[1:2] + log_variance.unsqueeze(-2), of_columns[1]])
    return means, F.hardtanh_(log_variances, *MIXTURE_LOG_VARIANCE)


class LogSoftmax(torch.autograd.Function):
    """Log probability of the chosen logits (B, D) among those of their column, (B, D).

    Logits of all columns lie side by side, (B, W); `owner` (W,) is the column of each, `member` (W, D) the same as
    ones and zeros. All are compared with the chosen one: -log p is the log of the sum of exp(logit - chosen).
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, chosen: Tensor, owner: Tensor, member: Tensor) -> Tensor:
        own = logits.gather(-1, chosen)
        shares = (logits - own.index_select(-1, owner)).clamp_max_(LARGEST_LOG_RATIO).exp_()
        total = shares @ member.to(shares.dtype)
        ctx.save_for_backward(shares, total, chosen, owner)
        return -total.log()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        shares, total, chosen, owner = ctx.saved_tensors
        of_logits = shares * (-gradient / total).index_select(-1, owner)  # its probability; and 1 for the chosen
        return of_logits.scatter_add_(-1, chosen, gradient), None, None, None


Likelihood = Real | Category | Count | Ordinal
LIKELIHOODS: dict[str, type[Likelihood]] = {"real": Real, "category": Category, "count": Count, "ordinal": Ordinal}


def make_likelihood(columns: Sequence[EncodedColumn], how: Distributions) -> Likelihood:
    """The likelihood of columns that are all of one kind."""
    return LIKELIHOODS[columns[0].kind](columns, how)  # type: ignore[arg-type]


def mixture_quantile(weights: Tensor, means: Tensor, sds: Tensor, share: float) -> Tensor:
    """Below it lies this share of a mixture of Gaussians, all (..., K); found by halving.

    >>> mixture_quantile(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([1.0]), 0.975)
    tensor(3.9600)
    """
    low, high = (means - 6 * sds).amin(-1), (means + 6 * sds).amax(-1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = (weights * torch.special.ndtr((middle.unsqueeze(-1) - means) / sds)).sum(-1) < share
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2


def poisson_log_probability(values: Tensor, log_rate: Tensor) -> Tensor:
    """log Poisson(values | exp(log_rate)).

    >>> poisson_log_probability(torch.tensor([0.0]), torch.tensor([0.0]))
    tensor([-1.])
    """
    return values * log_rate - log_rate.exp() - torch.lgamma(values + 1)


def poisson_quantile(weights: Tensor, rates: Tensor, share: float) -> Tensor:
    """The smallest count that at least this share of a mixture of Poissons does not exceed, all (..., K); by halving.

    >>> poisson_quantile(torch.ones(2, 1), torch.tensor([[0.1], [4.0]]), 0.95)
    tensor([1., 8.])
    """
    far = 6 * rates.sqrt() + 6
    low, high = (rates - far).amin(-1).floor().clamp_min(-1), (rates + far).amax(-1).ceil()  # too small, large enough
    for _ in range(HALVINGS):
        middle = ((low + high) / 2).floor()
        at_most = torch.special.gammaincc(middle.clamp_min(0).unsqueeze(-1) + 1, rates)
        short = ((weights * at_most).sum(-1) < share) | (middle < 0)
        low, high = torch.where(short, middle, low), torch.where(short, high, middle)
    return high


def log_sigmoid_difference(below: Tensor, above: Tensor) -> Tensor:
    """log(sigmoid(above) - sigmoid(below)) for above > below, without cancellation.

    >>> log_sigmoid_difference(torch.tensor([-30.0]), torch.tensor([-29.0]))
    tensor([-29.4587])
    """
    return F.logsigmoid(above) + F.logsigmoid(-below) + (-(below - above).exp()).log1p()


def room_for_uniform(ranks: Tensor, observed: Tensor) -> Tensor:
    """The largest share of each column's ranks, (N, D), that can be uniform in 0 to 1, (D,): by the stretch that
    holds the fewest, of which there would be a little more but for chance.

    >>> ranks = torch.linspace(0, 1, 1200, dtype=torch.float64)[:, None]
    >>> room_for_uniform(ranks, ranks >= 0), room_for_uniform(ranks / 3, ranks >= 0)
    (tensor([1.], dtype=torch.float64), tensor([0.], dtype=torch.float64))
    """
    within = observed & (ranks >= 0) & (ranks < 1)
    stretch = (ranks.clamp(0, 1) * STRETCHES).long().clamp_max(STRETCHES - 1)
    held = F.one_hot(torch.where(within, stretch, STRETCHES), STRETCHES + 1)[..., :STRETCHES].sum(-3)  # (D, STRETCHES)
    fewest = held.amin(-1)
    fewest = fewest + FEWEST_BELOW * fewest.sqrt()
    return (STRETCHES * fewest / observed.sum(-2).clamp_min(1)).to(ranks.dtype).clamp_max(1.0)


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


def fixed(value: Tensor) -> Tensor:
    """A tensor of a module that moves with it but is neither learned nor saved."""
    return nn.Buffer(value, persistent=False)


def constant(module: nn.Module, name: str, value: Tensor) -> None:
    """The same under a name that is made up."""
    setattr(module, name, fixed(value))
