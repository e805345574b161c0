"""RVAE: encode a row, decode every column, and the lower bound that training raises.

Shapes: B rows, D columns, K latent size, H hidden units; of M networks stacked into one, all with a
leading M.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from cellmend.encoding import Cells, EncodedColumn
from cellmend.likelihoods import Distributions, Likelihood, constant, make_likelihood, padded_rows

LOG_IMPOSSIBLE = -100.0  # log probability, when clean, of a value that its column cannot hold
LATENT_LOG_VARIANCE = (-15.0, 15.0)  # far beyond what training reaches; keeps samples finite
REGISTER = 16  # numbers
LARGEST_EMBEDDING = 1.0  # norm, as in the authors' code


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
        each = [p.likelihood.log_clean(values[..., p.columns], decoded[..., p.outputs]) for p in self.parts]
        return torch.where(possible, torch.cat(each, dim=-1), LOG_IMPOSSIBLE)

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
        values = torch.where(known, cells.values, 0.0)
        return Inputs(
            [
                p.likelihood.inputs(values[..., p.columns]) * known[..., p.columns, None]
                for p in self.parts
                if not p.likelihood.coded
            ],
            _join([values[..., p.columns] for p in self.parts if p.likelihood.coded], values).long(),
            known.to(values.dtype),
        )


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
        self.decoder_output = Linear(hidden_dim, self.outputs)
        if amortized:
            self.weight_input = InputLayer(self, hidden_dim)
            self.weight_output = Linear(hidden_dim, len(columns))

    def encode(self, cells: Cells) -> Latent:
        """q(z|x) of each row."""
        hidden = self.encoder_input(self.inputs(cells), self.embeddings).relu()
        mu, log_variance = self.encoder_output(hidden).chunk(2, dim=-1)
        return Latent(mu, log_variance.clamp(*LATENT_LOG_VARIANCE))

    def decode(self, z: Tensor) -> Tensor:
        """(B, K) to the parameters of every column's clean component, (B, all widths)."""
        return self.decoder_output(self.decoder_hidden(z).relu())

    def decode_hidden(self, cells: Cells) -> Tensor:
        """As `decode` at the encoder's mean, but each column's parameters come from a row with its own cell hidden.

        Hiding a cell takes a known vector from the first layer's sum, so that only what follows is done D times.
        """
        inputs = self.inputs(cells)
        total = self.encoder_input(inputs, self.embeddings).unsqueeze(-2)
        hidden = (total - self.encoder_input.each(inputs, self.embeddings)).relu()  # (B, D, H)
        latent = self.decoder_hidden.weight.shape[-2]  # K: of what the encoder says only the mean is needed
        weight, bias = self.encoder_output.weight[..., :latent], self.encoder_output.bias[..., :latent]
        mu = affine(hidden.flatten(-3, -2), weight, bias)  # (B * D, K)
        return self.decoder_output.each(self.decoder_hidden(mu).relu().view(hidden.shape), self.own, self.own_place)

    def weight_logits(self, cells: Cells) -> Tensor:
        """RVAE-AVI: logits of pi from the second network, (B, D)."""
        return self.weight_output(self.weight_input(self.inputs(cells), self.embeddings).relu())


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
        return answers.flatten(-2)[..., place] + self.bias.unsqueeze(-2)


class Embeddings(nn.Module):
    """One vector per level of every coded column, all in one table (C_1 + ... + C_D, E)."""

    first: Tensor
    first_padded: Tensor
    padded: Tensor

    def __init__(self, levels: list[int], embedding_dim: int) -> None:
        super().__init__()
        self.columns = len(levels)
        self.most_levels = max(levels, default=0)
        counts = torch.tensor(levels, dtype=torch.long)
        constant(self, "first", counts.cumsum(0) - counts)  # (D,) row of each column's first level
        constant(self, "padded", padded_rows(counts, beyond=0))  # (D, C); nobody looks up what is beyond
        constant(self, "first_padded", torch.arange(len(levels)) * self.most_levels)
        self.vectors = nn.Parameter(torch.empty(sum(levels), embedding_dim))

    def initialize(self, generator: Generator) -> None:
        with torch.no_grad():
            self.vectors.normal_(generator=generator)
        self.limit()

    @torch.no_grad()
    def limit(self) -> None:
        """Keep every vector to norm at most 1; training calls it after each step."""
        norm = self.vectors.norm(dim=-1, keepdim=True)
        self.vectors.mul_(LARGEST_EMBEDDING / norm.clamp_min(LARGEST_EMBEDDING))


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
        self.number_weight = nn.Parameter(torch.empty(features, hidden_dim))
        self.level_weight = nn.Parameter(torch.empty(embeddings.columns, embeddings.vectors.shape[1], hidden_dim))
        self.known_weight = nn.Parameter(torch.empty(known, hidden_dim))
        self.bias = nn.Parameter(torch.empty(hidden_dim))

    def initialize(self, generator: Generator) -> None:
        columns, embedding_dim, _ = self.level_weight.shape
        fan_in = len(self.number_weight) + columns * embedding_dim + len(self.known_weight)
        _draw(fan_in, generator, self.number_weight, self.level_weight, self.bias, self.known_weight)

    def forward(self, inputs: Inputs, embeddings: Embeddings) -> Tensor:
        numbers = [each.flatten(-2) for each in inputs.numbers]
        if self.known_weight.shape[-2]:
            weight = torch.cat([self.number_weight, self.known_weight], -2)
            hidden = affine(_join([*numbers, inputs.known], inputs.known), weight, self.bias)
        else:
            hidden = affine(_join(numbers, inputs.known), self.number_weight, self.bias)
        if embeddings.columns == 0:
            return hidden
        known = self._level_known(inputs)
        if embeddings.most_levels <= inputs.levels.shape[-2]:
            rows, tables = self._tables(inputs.levels, embeddings)
            flat = F.embedding_bag(rows.flatten(0, -2), tables, mode="sum", per_sample_weights=known.flatten(0, -2))
            return hidden + flat.reshape(hidden.shape)
        rows = _in_one_table(inputs.levels + embeddings.first, embeddings.vectors)
        vectors = F.embedding(rows, embeddings.vectors.flatten(0, -2)) * known[..., None]  # (B, coded, E)
        return hidden + vectors.flatten(-2) @ self.level_weight.flatten(-3, -2)

    def each(self, inputs: Inputs, embeddings: Embeddings) -> Tensor:
        """What each column adds to the pre-activations, (B, D, H)."""
        pieces, numbers, feature, level = [], iter(inputs.numbers), 0, 0
        if embeddings.columns:
            rows, tables = self._tables(inputs.levels, embeddings)
            levels = F.embedding(rows, tables) * self._level_known(inputs)[..., None]  # (B, coded, H)
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
        if self.known_weight.shape[-2]:
            found = found + inputs.known[..., None] * self.known_weight.unsqueeze(-3)
        return found

    def _tables(self, levels: Tensor, embeddings: Embeddings) -> tuple[Tensor, Tensor]:
        """Every level's embedding times its column's weights, (coded * C, H), and the row of each cell, (B, coded)."""
        table = embeddings.vectors
        vectors = table.index_select(-2, embeddings.padded.flatten())  # (coded * C, E)
        vectors = vectors.view(*table.shape[:-2], embeddings.columns, embeddings.most_levels, table.shape[-1])
        tables = (vectors @ self.level_weight).flatten(-3, -2)
        return _in_one_table(levels + embeddings.first_padded, tables), tables.flatten(0, -2)

    def _level_known(self, inputs: Inputs) -> Tensor:
        """Which levels are known, (B, coded)."""
        return torch.cat([inputs.known[..., p.columns] for p in self.parts if p.likelihood.coded], -1)


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b, (B, in) by (in, out); or of stacked networks, all with a leading M."""
    product = torch.addmm if weight.dim() == 2 else torch.baddbmm
    return product(bias.unsqueeze(-2), x, weight)


def _in_one_table(rows: Tensor, tables: Tensor) -> Tensor:
    """Row numbers for the tables (M, R, H) of stacked networks laid one below the other."""
    if tables.dim() == 2:
        return rows
    return rows + torch.arange(0, tables.shape[0] * tables.shape[1], tables.shape[1], device=rows.device)[:, None, None]


# ---------------------------------------------------------------- the formulas


def sample_latent(latent: Latent, generator: Generator) -> Tensor:
    """z ~ q(z|x), (B, K)."""
    noise = torch.randn(latent.mu.shape, generator=generator, device=latent.mu.device)
    return latent.mu + noise * (0.5 * latent.log_variance).exp()


def clean_logit(log_clean: Tensor, log_corrupted: Tensor, *, alpha: Alpha) -> Tensor:
    """Log odds that each cell is clean, Bayes' rule; all (B, D).

    >>> clean_logit(torch.zeros(1), torch.zeros(1), alpha=0.5)
    tensor([0.])
    """
    return log_clean - log_corrupted + _log(alpha) - _log(1 - alpha)


def latent_kl(latent: Latent) -> Tensor:
    """KL(q(z|x) || N(0, I)) of each row, (B,).

    >>> latent_kl(Latent(torch.ones(1, 2), torch.zeros(1, 2)))
    tensor([1.])
    """
    mu, log_variance = latent
    return 0.5 * (mu.square() + log_variance.exp() - 1 - log_variance).sum(-1)


def gate_kl(logit: Tensor, *, alpha: Alpha) -> Tensor:
    """KL(Bernoulli(pi) || Bernoulli(alpha)) of each cell from the logits of pi, (B, D).

    >>> gate_kl(torch.zeros(1), alpha=0.5).abs()
    tensor([0.])
    """
    pi = logit.sigmoid()
    log_pi, log_rest = F.logsigmoid(logit), F.logsigmoid(-logit)
    return pi * (log_pi - _log(alpha)) + (1 - pi) * (log_rest - _log(1 - alpha))


def elbo(
    network: RVAE, cells: Cells, z: Tensor, latent: Latent, *, weights: str, alpha: Alpha, kl_weight: float
) -> Tensor:
    """Evidence lower bound of each row at one sample z, (B,); missing cells carry nothing.

    With `kl_weight` other than 1 it is the bound of beta-VAE.
    """
    log_clean = network.log_clean(cells, network.decode(z))
    if weights == "none":
        per_cell = log_clean
    else:
        log_corrupted = network.log_corrupted(cells)
        if weights == "amortized":
            logit = network.weight_logits(cells)
        else:
            # pi is constant here. At the best pi its gradient is 0 anyway: detaching saves the work.
            logit = clean_logit(log_clean, log_corrupted, alpha=alpha).detach()
        pi = logit.sigmoid()
        per_cell = pi * log_clean + (1 - pi) * log_corrupted - gate_kl(logit, alpha=alpha)
    return torch.where(cells.observed, per_cell, 0.0).sum(-1) - kl_weight * latent_kl(latent)


def _log(share: Alpha) -> Alpha:
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
    return torch.cat(pieces, dim=-1) if pieces else like[..., :0]


def _draw(fan_in: int, generator: Generator, *parameters: nn.Parameter) -> None:
    bound = 1 / math.sqrt(max(fan_in, 1))
    with torch.no_grad():
        for parameter in parameters:
            parameter.uniform_(-bound, bound, generator=generator)
