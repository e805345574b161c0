"""RVAE: encode a row, decode every column, and the lower bound that training raises.

Shapes: B rows, D columns, K latent size, H hidden units; of M networks stacked into one, all with a
leading M.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from cellmend.model.columns import EncodedColumn
from cellmend.model.encoding import Cells
from cellmend.model.layers import (
    NOTHING_ASIDE,
    REGISTER,
    Embeddings,
    InputLayer,
    Inputs,
    Linear,
    OwnOutputs,
    Part,
    Shares,
    aside,
    join,
    rejoin,
)
from cellmend.model.likelihoods import Distributions, Likelihood, make_likelihood

LOG_IMPOSSIBLE = -100.0  # log probability, when clean, of a value that its column cannot hold
LATENT_LOG_VARIANCE = (-15.0, 15.0)  # far beyond what training reaches; keeps samples finite
CACHED = {"cpu": 2**21, "cuda": 2**27}  # numbers of a layer at once; on a processor they stay in its cache


Network = TypeVar("Network", bound=nn.Module)
Alpha = float | Tensor  # of stacked networks (M, 1, 1)


class Latent(NamedTuple):
    """q(z|x), both (B, K)."""

    mu: Tensor
    log_variance: Tensor

    def noise(self, rows: Sequence[int], generator: Generator) -> Tensor:
        """Standard normal, (B, K), for a batch of rows (B,)."""
        return torch.randn((*rows, self.mu.shape[-1]), generator=generator, device=self.mu.device)

    def at(self, noise: Tensor) -> Tensor:
        """z at this noise, (B, K)."""
        return torch.addcmul(self.mu, noise, (0.5 * self.log_variance).exp())


class ColumnNetwork(nn.Module):
    """What networks over the cells of mixed columns share: inputs, and what decoded parameters say of each column.

    `columns` stand grouped by kind, as TableEncoder gives them. Call `initialize` before training.
    """

    def __init__(
        self, columns: Sequence[EncodedColumn], how: Distributions, *, embedding_dim: int, masked: bool
    ) -> None:
        super().__init__()
        groups = [list(group) for _, group in groupby(columns, key=lambda column: column.kind)]
        likelihoods = [make_likelihood(group, how) for group in groups]
        self.likelihoods = nn.ModuleList(likelihoods)
        self.parts = _lay_out(likelihoods, [len(group) for group in groups])
        levels = [len(c.levels) for p in self.parts if p.likelihood.coded for c in columns[p.columns]]
        self.embeddings = Embeddings(levels, embedding_dim)
        self.masked = masked
        self.outputs = sum(likelihood.width for likelihood in likelihoods)

    def first_layer(self, hidden_dim: int) -> InputLayer:
        """A first layer over the cells."""
        return InputLayer(self.parts, self.embeddings, hidden_dim, masked=self.masked)

    def initialize(self, generator: Generator) -> None:
        """Draw all weights."""
        for module in self.modules():
            if isinstance(module, Linear | InputLayer | Embeddings):
                module.initialize(generator)

    def log_clean(self, cells: Cells, decoded: Tensor) -> Tensor:
        """log p(x|z) of each cell, (B, D)."""
        possible = cells.values.isfinite()
        values = torch.where(possible, cells.values, 0.0)
        return torch.where(possible, self.log_clean_of(values, decoded), LOG_IMPOSSIBLE)

    def log_clean_of(self, values: Tensor, decoded: Tensor) -> Tensor:
        """log p(x|z) of values that their columns can hold, (B, D)."""
        widths = [*(p.likelihood.width for p in self.parts), decoded.shape[-1] - self.outputs]
        found = []
        for part, own in zip(self.parts, decoded.split(widths, dim=-1), strict=False):  # slices have a gradient each
            with NOTHING_ASIDE if part is self.parts[-1] else aside(values, own):
                found.append(part.likelihood.log_clean(values[..., part.columns], own))
        rejoin(values.device)
        return join(found, values)

    def log_corrupted(self, cells: Cells) -> Tensor:
        """log p0(x) of each cell, (B, D)."""
        possible = cells.values.isfinite()
        values = torch.where(possible, cells.values, 0.0)
        each = [p.likelihood.log_corrupted(values[..., p.columns]) for p in self.parts]
        return torch.where(possible, torch.cat(each, dim=-1), 0.0)

    def chance(self, uniform: Tensor) -> Tensor:
        """Numbers drawn from p0 by uniform draws, both (B, D); columns of levels keep the draws."""
        own = [(p, uniform[..., p.columns]) for p in self.parts]
        return torch.cat([draws if p.likelihood.coded else p.likelihood.chance(draws) for p, draws in own], dim=-1)

    @property
    def coded(self) -> Tensor:
        """Which columns have levels, (D,)."""
        return torch.cat([torch.full((p.columns.stop - p.columns.start,), p.likelihood.coded) for p in self.parts])

    def room(self, cells: Cells) -> Tensor:
        """The largest share of each column's cells, (B, D), that p0 may have, (D,); NaN where they do not say."""
        known, values = cells.known, torch.where(cells.known, cells.values, 0.0)
        return torch.cat([p.likelihood.room(values[..., p.columns], known[..., p.columns]) for p in self.parts], dim=-1)

    def best(self, decoded: Tensor) -> Tensor:
        """The best single clean value of each cell: a mean, or the most probable level, (B, D)."""
        return torch.cat([p.likelihood.best(decoded[..., p.outputs]) for p in self.parts], dim=-1)

    def sample(self, decoded: Tensor, generator: Generator) -> Tensor:
        """A draw from the clean component of each cell, (B, D)."""
        each = [p.likelihood.sample(decoded[..., p.outputs], generator) for p in self.parts]
        return torch.cat(each, dim=-1)

    def interval(self, decoded: Tensor) -> tuple[Tensor, Tensor]:
        """Low and high, both (B, D), with 90 % of the clean component between; NaN for categories."""
        lows, highs = zip(*(p.likelihood.interval(decoded[..., p.outputs]) for p in self.parts), strict=True)
        return torch.cat(lows, dim=-1), torch.cat(highs, dim=-1)

    def probabilities(self, decoded: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """For each coded kind: its columns, and the probability of every level, (B, D_k, C)."""
        for part in self.parts:
            if part.likelihood.coded:
                yield part.columns, part.likelihood.probabilities(decoded[..., part.outputs])

    def inputs(self, cells: Cells) -> Inputs:
        """What the first layer takes of each column."""
        return self.inputs_of(torch.where(cells.known, cells.values, 0.0), cells.known.to(cells.values.dtype))

    def inputs_of(self, values: Tensor, known: Tensor) -> Inputs:
        """The same from values that their columns can hold, and 1 where the network sees them, both (B, D)."""
        numbers = [
            p.likelihood.inputs(values[..., p.columns]) * known[..., p.columns, None]
            for p in self.parts
            if not p.likelihood.coded
        ]
        levels, known_levels = (
            join([each[..., p.columns] for p in self.parts if p.likelihood.coded], each) for each in (values, known)
        )
        return Inputs(numbers, levels.long(), known, known_levels)


class Shape(NamedTuple):
    """The sizes of a network."""

    latent: int
    hidden: int
    embedding: int


class RVAE(ColumnNetwork):
    """Robust variational autoencoder over mixed columns, one hidden layer each way.

    With `amortized` a second network gives the logits of the weights pi (RVAE-AVI). With `masked` the first layer
    is told which cells it does not see.
    """

    def __init__(
        self, columns: Sequence[EncodedColumn], how: Distributions, shape: Shape, *, amortized: bool, masked: bool
    ) -> None:
        super().__init__(columns, how, embedding_dim=shape.embedding, masked=masked)
        latent_dim, hidden_dim = shape.latent, shape.hidden
        self.encoder_input = self.first_layer(hidden_dim)
        self.encoder_output = Linear(hidden_dim, 2 * latent_dim)
        self.decoder_hidden = Linear(latent_dim, hidden_dim)
        # Whole vector registers: products are faster, and no sum depends on where a row stands among others.
        self.decoder_output = Linear(hidden_dim, self.outputs + -self.outputs % REGISTER)
        self.own = OwnOutputs(self.parts)
        if amortized:
            self.weight_input = self.first_layer(hidden_dim)
            self.weight_output = Linear(hidden_dim, len(columns))

    def encode(self, cells: Cells) -> Latent:
        """q(z|x) of each row."""
        return self.encode_inputs(self.inputs(cells))

    def encode_inputs(self, inputs: Inputs) -> Latent:
        """q(z|x) of each row from what the first layer takes."""
        hidden = self.encoder_input(inputs, self.embeddings)
        mu, log_variance = self.encoder_output(hidden, relu=True).chunk(2, dim=-1)
        return Latent(mu, F.hardtanh(log_variance, *LATENT_LOG_VARIANCE))

    def encode_mean(self, inputs: Inputs) -> Tensor:
        """The mean of q(z|x) alone, (B, K)."""
        return self._mean(self.encoder_input(inputs, self.embeddings))

    def decode(self, z: Tensor) -> Tensor:
        """(B, K) to the parameters of every column's clean component, (B, all widths and padding)."""
        return self.decoder_output(self.decoder_hidden(z), relu=True)

    @torch.no_grad()
    def decode_hidden(self, cells: Cells) -> Tensor:
        """As `decode` at the encoder's mean, but each column's parameters come from a row with its own cell hidden.

        Hiding a cell takes a known vector from the first layer's sum, so that only what follows is done D times; so
        few rows at a time that they stay in the processor's cache.
        """
        inputs, layer, own = self.inputs(cells), self.encoder_input, self.own.weights(self.decoder_output)
        shares, hidden_dim = Shares(layer, self.embeddings), self.decoder_hidden.bias.shape[-1]
        rows = max(1, CACHED[cells.values.device.type] // (cells.values.shape[-1] * hidden_dim * REGISTER)) * REGISTER
        pieces = []
        for first in range(0, cells.values.shape[-2], rows):
            piece = inputs.rows(slice(first, first + rows))
            hidden = shares.left_out(piece, layer(piece, self.embeddings))  # (D, B, H)
            mu = self._mean(hidden.flatten(-3, -2))  # (D * B, K)
            pieces.append(self.own(self.decoder_hidden(mu).relu_().view(hidden.shape), own))
        return torch.cat(pieces, dim=-2) + self.decoder_output.bias[..., : self.outputs].unsqueeze(-2)

    def _mean(self, hidden: Tensor) -> Tensor:
        return self.encoder_output(hidden, relu=True, outputs=self.decoder_hidden.weight.shape[-2])

    def weight_logits(self, inputs: Inputs) -> Tensor:
        """RVAE-AVI: logits of pi from the second network, (B, D)."""
        return self.weight_output(self.weight_input(inputs, self.embeddings), relu=True)


# ---------------------------------------------------------------- the formulas


def sample_latent(latent: Latent, generator: Generator) -> Tensor:
    """z ~ q(z|x), (B, K)."""
    return latent.at(latent.noise(latent.mu.shape[:-1], generator))


def clean_logit(log_clean: Tensor, log_corrupted: Tensor, *, alpha: Alpha) -> Tensor:
    """Log odds that each cell is clean, Bayes' rule; all (B, D).

    >>> clean_logit(torch.zeros(1), torch.zeros(1), alpha=0.5)
    tensor([0.])
    """
    return log_clean - log_corrupted + log_share(alpha) - log_share(1 - alpha)


def latent_kl(latent: Latent) -> Tensor:
    """KL(q(z|x) || N(0, I)) of each row, (B,).

    >>> latent_kl(Latent(torch.ones(1, 2), torch.zeros(1, 2)))
    tensor([1.])
    """
    return LatentKL.apply(*latent)


class LatentKL(torch.autograd.Function):
    """`latent_kl`, with its gradient in closed form."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, log_variance: Tensor) -> Tensor:
        beyond = log_variance.expm1()
        ctx.save_for_backward(mu, beyond)
        return 0.5 * torch.addcmul(beyond - log_variance, mu, mu).sum(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        mu, beyond = ctx.saved_tensors
        gradient = gradient.unsqueeze(-1)
        return gradient * mu, (0.5 * gradient) * beyond


def gate_kl(logit: Tensor, *, alpha: Alpha) -> Tensor:
    """KL(Bernoulli(pi) || Bernoulli(alpha)) of each cell from the logits of pi, (B, D).

    >>> gate_kl(torch.zeros(1), alpha=0.5).abs()
    tensor([0.])
    """
    pi = logit.sigmoid()
    log_pi, log_rest = F.logsigmoid(logit), F.logsigmoid(-logit)
    return pi * (log_pi - log_share(alpha)) + (1 - pi) * (log_rest - log_share(1 - alpha))


class Bound(NamedTuple):
    """Which bound: how pi is found, the prior that a cell is clean, and how much the latent variable's KL counts.

    With a `kl_weight` other than 1 it is the bound of beta-VAE; with 0 z is not random, and no KL is needed.
    """

    weights: str  # "coordinate", "amortized" or "none"
    alpha: Alpha
    kl_weight: float


class Rows(NamedTuple):
    """Rows to learn from, all (B, D) and finite; `known` and `asked` are 1 or 0.

    A cell that its column cannot hold is neither known nor asked for.
    """

    values: Tensor
    known: Tensor  # the network sees it
    asked: Tensor  # the bound is about it
    favour: Tensor  # log odds of alpha - log p0(x): with log p(x|z) the log odds that the cell is clean
    floor: Tensor  # log p0(x) + log(1 - alpha)


def rows_of(network: ColumnNetwork, cells: Cells, *, alpha: Alpha) -> Rows:
    """Cells with all that does not change while the network learns."""
    values, known = torch.where(cells.known, cells.values, 0.0), cells.known.to(cells.values.dtype)
    return Rows(values, known, known, *gates(network.log_corrupted(Cells(values, cells.known)), alpha=alpha))


def gates(log_corrupted: Tensor, *, alpha: Alpha) -> tuple[Tensor, Tensor]:
    """`favour` and `floor` of Rows, both (B, D)."""
    return log_share(alpha) - log_share(1 - alpha) - log_corrupted, log_corrupted + log_share(1 - alpha)


def elbo(network: RVAE, rows: Rows, z: Tensor, latent: Latent | None, bound: Bound) -> Tensor:
    """Evidence lower bound of each row at one sample z, (B,); alpha as in `rows`."""
    kl = None
    if latent is not None and bound.kl_weight:
        with aside(z):
            kl = latent_kl(latent) if bound.kl_weight == 1 else bound.kl_weight * latent_kl(latent)
    log_clean = network.log_clean_of(rows.values, network.decode(z))
    if bound.weights == "none":
        raised = (log_clean * rows.asked).sum(-1)
    elif bound.weights == "coordinate":
        raised = MixtureBound.apply(log_clean, rows.favour, rows.floor, rows.asked)
    else:
        logit = network.weight_logits(network.inputs_of(rows.values, rows.known))
        pi, log_corrupted = logit.sigmoid(), rows.floor - log_share(1 - bound.alpha)
        per_cell = pi * log_clean + (1 - pi) * log_corrupted - gate_kl(logit, alpha=bound.alpha)
        raised = (per_cell * rows.asked).sum(-1)
    return raised if kl is None else raised - kl


class MixtureBound(torch.autograd.Function):
    """The bound of each row at the best pi, (B,): of a cell that is log(alpha p + (1 - alpha) p0).

    Its gradient is pi times that of log p: equation 7 of the paper.
    """

    @staticmethod
    def forward(ctx: Any, log_clean: Tensor, favour: Tensor, floor: Tensor, asked: Tensor) -> Tensor:
        logit = log_clean + favour
        ctx.save_for_backward(logit, asked)
        return F.softplus(logit).add_(floor).mul_(asked).sum(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        logit, asked = ctx.saved_tensors
        return logit.sigmoid().mul_(asked).mul_(gradient.unsqueeze(-1)), None, None, None


def log_share(share: Alpha) -> Alpha:
    """log, of a number or a tensor."""
    return share.log() if isinstance(share, Tensor) else math.log(share)


# ---------------------------------------------------------------- many networks as one


def stack(networks: Sequence[Network]) -> Network:
    """M networks of one shape as one network whose weights, cells and answers have a leading M."""
    together = copy.deepcopy(networks[0])
    for name, _ in list(together.named_parameters()):
        each = torch.stack([network.get_parameter(name).detach() for network in networks])
        _put(together, name, nn.Parameter(each))
    for name, _ in list(together.named_buffers()):
        each = torch.stack([network.get_buffer(name) for network in networks])
        if not (each == each[0]).all():  # the scales of counts; where things lie is the same for all
            _put(together, name, each)
    return together


def unstack(together: nn.Module, networks: Sequence[nn.Module]) -> None:
    """Write the weights of a stacked network back into the networks that it was made of."""
    for place, network in enumerate(networks):
        network.load_state_dict({name: each[place] for name, each in together.state_dict().items()})


def _put(network: nn.Module, name: str, tensor: Tensor) -> None:
    home, _, own = name.rpartition(".")
    setattr(network.get_submodule(home), own, tensor)


# ---------------------------------------------------------------- more levels


@torch.no_grad()
def grow(small: RVAE, large: RVAE) -> None:
    """Write the weights of a network into one whose columns have more levels at their ends, for the rest alike.

    A new level starts as the mean of its column's others. What is said of the others stays the same, but for the
    probability that it takes.
    """
    moved = {"embeddings.vectors", "decoder_output.weight", "decoder_output.bias"}
    for name, weight in small.named_parameters():
        if name not in moved:
            large.get_parameter(name).copy_(weight)
    vectors = _spread(small.embeddings.vectors.mT, small.embeddings.owner, large.embeddings.owner)
    large.embeddings.vectors.copy_(vectors.mT)
    for name in ("decoder_output.weight", "decoder_output.bias"):
        outputs = _spread(small.get_parameter(name)[..., : small.outputs], _owner(small), _owner(large))
        target = large.get_parameter(name)
        target.copy_(F.pad(outputs, (0, target.shape[-1] - large.outputs)))


def _spread(old: Tensor, owner: Tensor, new_owner: Tensor) -> Tensor:
    """What each column has, side by side (..., n), where columns have more (..., m): first its own, then their mean.

    >>> _spread(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 1]), torch.tensor([0, 0, 0, 1]))
    tensor([1., 3., 2., 5.])
    """
    if len(new_owner) == 0:
        return old
    counts, new_counts = owner.bincount(), new_owner.bincount()
    sums = old.new_zeros(*old.shape[:-1], len(counts)).index_add(-1, owner, old)
    first, new_first = counts.cumsum(0) - counts, new_counts.cumsum(0) - new_counts
    places = torch.arange(len(owner), device=owner.device) - first[owner] + new_first[owner]
    return (sums / counts)[..., new_owner].index_copy(-1, places, old)


def _owner(network: RVAE) -> Tensor:
    """The column of each of the decoder's outputs, (outputs,)."""
    return torch.cat([part.likelihood.owner + part.columns.start for part in network.parts])


# ---------------------------------------------------------------- set-up


def _lay_out(likelihoods: list[Likelihood], counts: list[int]) -> list[Part]:
    parts, column, output = [], 0, 0
    for likelihood, count in zip(likelihoods, counts, strict=True):
        outputs = slice(output, output + likelihood.width)
        parts.append(Part(likelihood, slice(column, column + count), outputs))
        column, output = column + count, output + likelihood.width
    return parts
