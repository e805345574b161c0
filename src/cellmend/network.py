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

from cellmend.encoding import Cells, EncodedColumn
from cellmend.likelihoods import Distributions, Likelihood, constant, make_likelihood, padded_rows

LOG_IMPOSSIBLE = -100.0  # log probability, when clean, of a value that its column cannot hold
LATENT_LOG_VARIANCE = (-15.0, 15.0)  # far beyond what training reaches; keeps samples finite
REGISTER = 16  # numbers
LARGEST_EMBEDDING = 1.0  # norm, as in the authors' code
WORTH_A_CUT = 3  # times less padding
SMALL_TABLE = 1024  # rows, up to which a look-up's gradient is one product


Network = TypeVar("Network", bound=nn.Module)
Alpha = float | Tensor  # of stacked networks (M, 1, 1)


class Latent(NamedTuple):
    """q(z|x), both (B, K)."""

    mu: Tensor
    log_variance: Tensor


class Part(NamedTuple):
    """The columns of one kind: their likelihood, their slice of the cells and of the decoder's output."""

    likelihood: Likelihood
    columns: slice
    outputs: slice


class ColumnNetwork(nn.Module):
    """What networks over the cells of mixed columns share: inputs, and what decoded parameters say of each column.

    `columns` stand grouped by kind, as TableEncoder gives them. Call `initialize` before training.
    """

    own: Tensor
    own_place: Tensor

    def __init__(
        self, columns: Sequence[EncodedColumn], how: Distributions, *, embedding_dim: int, masked: bool
    ) -> None:
        super().__init__()
        groups = [list(group) for _, group in groupby(columns, key=lambda column: column.kind)]
        likelihoods = [make_likelihood(group, how) for group in groups]
        self.likelihoods = nn.ModuleList(likelihoods)
        self.parts = _lay_out(likelihoods, [len(group) for group in groups])
        self.embeddings = Embeddings(_levels(self.parts, columns), embedding_dim)
        self.masked = masked
        self.outputs = sum(likelihood.width for likelihood in likelihoods)
        owner = torch.cat([p.likelihood.owner + p.columns.start for p in self.parts])  # column of each output
        counts = owner.bincount()
        # Padded to whole vector registers: a row's sums then do not depend on where it stands among the others.
        own = F.pad(padded_rows(counts, beyond=0), (0, -int(counts.max()) % REGISTER))
        constant(self, "own", own)  # (D, W) the outputs of each column
        first = counts.cumsum(0) - counts
        constant(self, "own_place", owner * own.shape[1] + torch.arange(len(owner)) - first[owner])  # (all widths,)

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
        pieces = zip(self.parts, decoded.split(widths, dim=-1), strict=False)  # one gradient, where slices have many
        return _join([p.likelihood.log_clean(values[..., p.columns], own) for p, own in pieces], values)

    def log_corrupted(self, cells: Cells) -> Tensor:
        """log p0(x) of each cell, (B, D)."""
        possible = cells.values.isfinite()
        values = torch.where(possible, cells.values, 0.0)
        each = [p.likelihood.log_corrupted(values[..., p.columns]) for p in self.parts]
        return torch.where(possible, torch.cat(each, dim=-1), 0.0)

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
        known = cells.observed & cells.values.isfinite()
        return self.inputs_of(torch.where(known, cells.values, 0.0), known.to(cells.values.dtype))

    def inputs_of(self, values: Tensor, known: Tensor) -> Inputs:
        """The same from values that their columns can hold, and 1 where the network sees them, both (B, D)."""
        numbers = [
            p.likelihood.inputs(values[..., p.columns]) * known[..., p.columns, None]
            for p in self.parts
            if not p.likelihood.coded
        ]
        levels = _join([values[..., p.columns] for p in self.parts if p.likelihood.coded], values).long()
        return Inputs(numbers, levels, known)


class Inputs(NamedTuple):
    """A row for the first layer: 0 where unknown."""

    numbers: list[Tensor]  # of each kind of numbers (B, D_k, features)
    levels: Tensor  # (B, coded), of any value where unknown
    known: Tensor  # (B, D)


class RVAE(ColumnNetwork):
    """Robust variational autoencoder over mixed columns, one hidden layer each way.

    With `amortized` a second network gives the logits of the weights pi (RVAE-AVI). With `masked` the first layer
    is told which cells it does not see.
    """

    def __init__(
        self,
        columns: Sequence[EncodedColumn],
        how: Distributions,
        *,
        latent_dim: int,
        hidden_dim: int,
        embedding_dim: int,
        amortized: bool,
        masked: bool,
    ) -> None:
        super().__init__(columns, how, embedding_dim=embedding_dim, masked=masked)
        self.encoder_input = InputLayer(self, hidden_dim)
        self.encoder_output = Linear(hidden_dim, 2 * latent_dim)
        self.decoder_hidden = Linear(latent_dim, hidden_dim)
        # Whole vector registers: products are faster, and no sum depends on where a row stands among others.
        self.decoder_output = Linear(hidden_dim, self.outputs + -self.outputs % REGISTER)
        if amortized:
            self.weight_input = InputLayer(self, hidden_dim)
            self.weight_output = Linear(hidden_dim, len(columns))

    def encode(self, cells: Cells) -> Latent:
        """q(z|x) of each row."""
        return self.encode_inputs(self.inputs(cells))

    def encode_inputs(self, inputs: Inputs) -> Latent:
        """q(z|x) of each row from what the first layer takes."""
        hidden, output = self.encoder_input(inputs, self.embeddings), self.encoder_output
        mu, log_variance = ReluAffine.apply(hidden, output.weight, output.bias).chunk(2, dim=-1)
        return Latent(mu, F.hardtanh(log_variance, *LATENT_LOG_VARIANCE))

    def encode_mean(self, inputs: Inputs) -> Tensor:
        """The mean of q(z|x) alone, (B, K)."""
        return self._mean(self.encoder_input(inputs, self.embeddings))

    def decode(self, z: Tensor) -> Tensor:
        """(B, K) to the parameters of every column's clean component, (B, all widths and padding)."""
        return ReluAffine.apply(self.decoder_hidden(z), self.decoder_output.weight, self.decoder_output.bias)

    def decode_hidden(self, cells: Cells) -> Tensor:
        """As `decode` at the encoder's mean, but each column's parameters come from a row with its own cell hidden.

        Hiding a cell takes a known vector from the first layer's sum, so that only what follows is done D times.
        """
        inputs = self.inputs(cells)
        total = self.encoder_input(inputs, self.embeddings).unsqueeze(-2)
        hidden = total - self.encoder_input.each(inputs, self.embeddings)  # (B, D, H)
        mu = self._mean(hidden.flatten(-3, -2))  # (B * D, K)
        return self.decoder_output.each(self.decoder_hidden(mu).relu().view(hidden.shape), self.own, self.own_place)

    def _mean(self, hidden: Tensor) -> Tensor:
        latent, output = self.decoder_hidden.weight.shape[-2], self.encoder_output  # K: the first half of what it says
        return ReluAffine.apply(hidden, output.weight[..., :latent], output.bias[..., :latent])

    def weight_logits(self, inputs: Inputs) -> Tensor:
        """RVAE-AVI: logits of pi from the second network, (B, D)."""
        return self.weight_output(self.weight_input(inputs, self.embeddings).relu())


class Linear(nn.Module):
    """x W + b, drawn as torch.nn.Linear draws."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def initialize(self, generator: Generator) -> None:
        _draw(self.weight.shape[0], generator, self.weight, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return affine(x, self.weight, self.bias)

    def each(self, x: Tensor, own: Tensor, place: Tensor) -> Tensor:
        """x (B, D, in) to (B, out): a column's own outputs (D, W) from its own x; `place` (out,) puts them in order."""
        answers = torch.einsum("...bdi,...idw->...bdw", x, self.weight[..., own])
        return answers.flatten(-2)[..., place] + self.bias[..., : len(place)].unsqueeze(-2)


class Embeddings(nn.Module):
    """One vector per level of every coded column, all in one table (L, E), L = C_1 + ... + C_D."""

    first: Tensor
    padded: Tensor
    place: Tensor

    def __init__(self, levels: list[int], embedding_dim: int) -> None:
        super().__init__()
        self.columns = len(levels)
        self.most_levels = max(levels, default=0)
        groups = _alike(levels)
        self.counts = [_count(group) for group in groups]  # columns of each group
        self.rows = [_count(group) * max(levels[group]) for group in groups]  # when padded to the most levels
        counts = torch.tensor(levels, dtype=torch.long)
        first = counts.cumsum(0) - counts
        constant(self, "first", first)  # (D,) row of each column's first level
        most = torch.tensor([max(levels[group]) for group in groups for _ in levels[group]], dtype=torch.long)
        level = torch.arange(int(most.sum())) - (most.cumsum(0) - most).repeat_interleave(most)  # within its column
        owner = torch.arange(len(levels)).repeat_interleave(most)
        # Columns of a group are padded to the same number of levels; nobody looks up what is beyond.
        constant(self, "padded", first[owner] + torch.where(level < counts[owner], level, 0))
        constant(self, "place", (level < counts[owner]).nonzero().squeeze(-1))  # (L,) of each level among the padded
        self.vectors = nn.Parameter(torch.empty(sum(levels), embedding_dim))

    def initialize(self, generator: Generator) -> None:
        with torch.no_grad():
            self.vectors.normal_(generator=generator)
        self.limit()

    def times(self, weight: Tensor) -> Tensor:
        """Every level's embedding times its column's weights (D, E, H), (L, H).

        Columns of a group are padded to the same number of levels and multiplied as one batch.
        """
        padded = self.vectors.detach().index_select(-2, self.padded)
        products = weight.new_empty(*padded.shape[:-1], weight.shape[-1])
        for own, product, each in self._grouped(padded, products, weight.detach()):
            torch.matmul(own, each, out=product)
        return products.index_select(-2, self.place)

    def times_backward(self, weight: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the vectors (L, E) and of the weights (D, E, H) from that of `times` (L, H)."""
        padded = self.vectors.index_select(-2, self.padded)
        spread = gradient.new_zeros(*padded.shape[:-1], gradient.shape[-1]).index_copy_(-2, self.place, gradient)
        of_padded, of_weight = torch.empty_like(padded), torch.empty_like(weight)
        groups = zip(self._grouped(padded, spread, weight), self._grouped(of_padded, spread, of_weight), strict=True)
        for (own, down, each), (of_own, _, of_each) in groups:
            torch.matmul(down, each.mT, out=of_own)
            torch.matmul(own.mT, down, out=of_each)
        return of_padded.index_select(-2, self.place), of_weight

    def _grouped(self, padded: Tensor, products: Tensor, weight: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """For each group of n columns with c levels: views (n, c, E), (n, c, H) and (n, E, H)."""
        pieces = padded.split(self.rows, -2), products.split(self.rows, -2), weight.split(self.counts, -3)
        for own, product, each in zip(*pieces, strict=True):
            shape = each.shape[-3], -1
            yield own.unflatten(-2, shape), product.unflatten(-2, shape), each

    @torch.no_grad()
    def limit(self) -> None:
        """Keep every vector to norm at most 1; training calls it after each step."""
        self.vectors.flatten(0, -2).renorm_(2, 0, LARGEST_EMBEDDING)


def _alike(levels: list[int]) -> list[slice]:
    """Columns as one group, or in two if much less is then padded when the columns of a group are made equal.

    >>> _alike([2, 3, 3, 40]), _alike([2, 3, 4])
    ([slice(0, 3, None), slice(3, 4, None)], [slice(0, 3, None)])
    """

    def padded(cut: int) -> int:
        return sum(len(part) * max(part, default=0) for part in (levels[:cut], levels[cut:]))

    cut = min(range(len(levels)), key=padded, default=0)
    cut = cut if padded(cut) * WORTH_A_CUT < padded(0) else 0
    return [part for part in (slice(0, cut), slice(cut, len(levels))) if part.stop > part.start]


class FirstLayer(torch.autograd.Function):
    """Numbers times weights, and the products of the levels that a row has, added up; (B, H).

    Looking levels up is adding rows of a table (L, H) of products. Backward, which rows were added is a matrix (B, L),
    and the table's gradient one product with it: several times faster than adding up again, while L is small.
    """

    @staticmethod
    def forward(
        ctx: Any,
        numbers: Tensor,  # (B, F)
        number_weight: Tensor,
        bias: Tensor,
        vectors: Tensor,
        level_weight: Tensor,
        rows: Tensor,  # (B, coded), in the table
        known: Tensor,  # (B, coded)
        embeddings: Embeddings,
    ) -> Tensor:
        ctx.save_for_backward(numbers, level_weight, rows, known)
        ctx.embeddings = embeddings
        hidden = affine(numbers, number_weight, bias)
        table, times = embeddings.times(level_weight), known.flatten(0, -2)
        flat = _in_one_table(rows, table).flatten(0, -2)
        looked_up = F.embedding_bag(flat, table.flatten(0, -2), mode="sum", per_sample_weights=times)
        return hidden.add_(looked_up.view(hidden.shape))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        numbers, level_weight, rows, known = ctx.saved_tensors
        levels = ctx.embeddings.vectors.shape[-2]
        if levels <= SMALL_TABLE:
            added = gradient.new_zeros(*rows.shape[:-1], levels).scatter_(-1, rows, known)
            of_table = added.mT @ gradient
        else:
            of_table = gradient.new_zeros(*gradient.shape[:-2], levels, gradient.shape[-1])
            each = (gradient.unsqueeze(-2) * known.unsqueeze(-1)).flatten(0, -2)  # (B * coded, H)
            of_table.flatten(0, -2).index_add_(0, _in_one_table(rows, of_table).flatten(), each)
        of_vectors, of_weight = ctx.embeddings.times_backward(level_weight, of_table)
        return None, numbers.mT @ gradient, gradient.sum(-2), of_vectors, of_weight, None, None, None


class ReluAffine(torch.autograd.Function):
    """relu(x) W + b, (B, in) to (B, out), as one step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        hidden = x.relu()
        ctx.save_for_backward(hidden, weight)
        return affine(hidden, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden, weight = ctx.saved_tensors
        of_hidden = torch.ops.aten.threshold_backward(gradient @ weight.mT, hidden, 0)
        return of_hidden, hidden.mT @ gradient, gradient.sum(-2)


class InputLayer(nn.Module):
    """Cells to hidden pre-activations (B, H): numbers and embeddings of levels, times weights.

    A level's embedding times its column's weights is the same for every row. When a batch has more
    rows than a column has levels, these products are made once per level and looked up.
    """

    def __init__(self, network: ColumnNetwork, hidden_dim: int) -> None:
        super().__init__()
        embeddings, self.parts = network.embeddings, network.parts
        features = sum(_count(p.columns) * p.likelihood.features for p in self.parts if not p.likelihood.coded)
        known = sum(_count(p.columns) for p in self.parts) if network.masked else 0
        self.features, self.masked = features, network.masked
        self.number_weight = nn.Parameter(torch.empty(features + known, hidden_dim))  # and of which cells are known
        self.level_weight = nn.Parameter(torch.empty(embeddings.columns, embeddings.vectors.shape[1], hidden_dim))
        self.bias = nn.Parameter(torch.empty(hidden_dim))

    def initialize(self, generator: Generator) -> None:
        columns, embedding_dim, _ = self.level_weight.shape
        fan_in = len(self.number_weight) + columns * embedding_dim
        _draw(fan_in, generator, self.number_weight, self.level_weight, self.bias)

    def forward(self, inputs: Inputs, embeddings: Embeddings) -> Tensor:
        pieces = [each.flatten(-2) for each in inputs.numbers] + ([inputs.known] if self.masked else [])
        numbers = _join(pieces, inputs.known)
        if embeddings.columns == 0:
            return affine(numbers, self.number_weight, self.bias)
        known, rows, vectors = self._level_known(inputs), inputs.levels + embeddings.first, embeddings.vectors
        if embeddings.most_levels <= rows.shape[-2]:
            return FirstLayer.apply(
                numbers, self.number_weight, self.bias, vectors, self.level_weight, rows, known, embeddings
            )
        looked_up = F.embedding(_in_one_table(rows, vectors), vectors.flatten(0, -2)) * known[..., None]
        hidden = affine(numbers, self.number_weight, self.bias)
        return hidden + looked_up.flatten(-2) @ self.level_weight.flatten(-3, -2)

    def each(self, inputs: Inputs, embeddings: Embeddings) -> Tensor:
        """What each column adds to the pre-activations, (B, D, H)."""
        pieces, numbers, feature, level = [], iter(inputs.numbers), 0, 0
        if embeddings.columns:
            table = embeddings.times(self.level_weight)
            rows = _in_one_table(inputs.levels + embeddings.first, table)
            levels = F.embedding(rows, table.flatten(0, -2)) * self._level_known(inputs)[..., None]  # (B, coded, H)
        for part in self.parts:
            columns = _count(part.columns)
            if part.likelihood.coded:
                pieces.append(levels[..., level : level + columns, :])
                level += columns
            else:
                used = columns * part.likelihood.features
                weight = self.number_weight[..., feature : feature + used, :]
                weight = weight.view(*weight.shape[:-2], columns, part.likelihood.features, weight.shape[-1])
                pieces.append(torch.einsum("...bdf,...dfh->...bdh", next(numbers), weight))
                feature += used
        found = torch.cat(pieces, -2)
        if self.masked:
            found = found + inputs.known[..., None] * self.number_weight[..., self.features :, :].unsqueeze(-3)
        return found

    def _level_known(self, inputs: Inputs) -> Tensor:
        """Which levels are known, (B, coded)."""
        return _join([inputs.known[..., p.columns] for p in self.parts if p.likelihood.coded], inputs.known)


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b, (B, in) by (in, out); or of stacked networks, all with a leading M."""
    return torch.addmm(bias, x, weight) if weight.dim() == 2 else torch.baddbmm(bias.unsqueeze(-2), x, weight)


def _in_one_table(rows: Tensor, tables: Tensor) -> Tensor:
    """Row numbers for the tables (M, R, H) of stacked networks laid one below the other."""
    if tables.dim() == 2:
        return rows
    return rows + torch.arange(0, tables.shape[0] * tables.shape[1], tables.shape[1], device=rows.device)[:, None, None]


# ---------------------------------------------------------------- the formulas


def sample_latent(latent: Latent, generator: Generator) -> Tensor:
    """z ~ q(z|x), (B, K)."""
    noise = torch.randn(latent.mu.shape, generator=generator, device=latent.mu.device)
    return torch.addcmul(latent.mu, noise, (0.5 * latent.log_variance).exp())


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
    possible = cells.observed & cells.values.isfinite()
    values, known = torch.where(possible, cells.values, 0.0), possible.to(cells.values.dtype)
    return Rows(values, known, known, *gates(network.log_corrupted(Cells(values, possible)), alpha=alpha))


def gates(log_corrupted: Tensor, *, alpha: Alpha) -> tuple[Tensor, Tensor]:
    """`favour` and `floor` of Rows, both (B, D)."""
    return log_share(alpha) - log_share(1 - alpha) - log_corrupted, log_corrupted + log_share(1 - alpha)


def elbo(
    network: RVAE, rows: Rows, z: Tensor, latent: Latent | None, *, weights: str, alpha: Alpha, kl_weight: float
) -> Tensor:
    """Evidence lower bound of each row at one sample z, (B,); `alpha` as in `rows`.

    With `kl_weight` other than 1 it is the bound of beta-VAE; with 0 `latent` is not needed.
    """
    log_clean = network.log_clean_of(rows.values, network.decode(z))
    if weights == "none":
        bound = (log_clean * rows.asked).sum(-1)
    elif weights == "coordinate":
        bound = MixtureBound.apply(log_clean, rows.favour, rows.floor, rows.asked)
    else:
        logit = network.weight_logits(network.inputs_of(rows.values, rows.known))
        pi, log_corrupted = logit.sigmoid(), rows.floor - log_share(1 - alpha)
        per_cell = pi * log_clean + (1 - pi) * log_corrupted - gate_kl(logit, alpha=alpha)
        bound = (per_cell * rows.asked).sum(-1)
    return bound - kl_weight * latent_kl(latent) if latent is not None and kl_weight else bound


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


# ---------------------------------------------------------------- set-up


def _lay_out(likelihoods: list[Likelihood], counts: list[int]) -> list[Part]:
    parts, column, output = [], 0, 0
    for likelihood, count in zip(likelihoods, counts, strict=True):
        outputs = slice(output, output + likelihood.width)
        parts.append(Part(likelihood, slice(column, column + count), outputs))
        column, output = column + count, output + likelihood.width
    return parts


def _levels(parts: list[Part], columns: Sequence[EncodedColumn]) -> list[int]:
    """How many levels each coded column has."""
    return [len(c.levels) for p in parts if p.likelihood.coded for c in columns[p.columns]]  # type: ignore[union-attr]


def _count(columns: slice) -> int:
    return int(columns.stop - columns.start)


def _join(pieces: list[Tensor], like: Tensor) -> Tensor:
    if len(pieces) == 1:
        return pieces[0]
    return torch.cat(pieces, dim=-1) if pieces else like[..., :0]


def _draw(fan_in: int, generator: Generator, *parameters: nn.Parameter) -> None:
    bound = 1 / math.sqrt(max(fan_in, 1))
    with torch.no_grad():
        for parameter in parameters:
            parameter.uniform_(-bound, bound, generator=generator)
