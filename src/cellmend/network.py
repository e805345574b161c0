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
from cellmend.likelihoods import Likelihood, constant, make_likelihood, padded_rows

LOG_IMPOSSIBLE = -100.0  # log probability, when clean, of a value that its column cannot hold
LATENT_LOG_VARIANCE = (-15.0, 15.0)  # far beyond what training reaches; keeps samples finite
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

    def __init__(self, columns: Sequence[EncodedColumn], *, embedding_dim: int, outlier_scale: float) -> None:
        super().__init__()
        groups = [list(group) for _, group in groupby(columns, key=lambda column: column.kind)]
        likelihoods = [make_likelihood(group, outlier_scale=outlier_scale) for group in groups]
        self.likelihoods = nn.ModuleList(likelihoods)
        self.parts = _lay_out(likelihoods, [len(group) for group in groups])
        self.embeddings = Embeddings(_levels(self.parts, columns), embedding_dim)
        self.numbers = sum(part.likelihood.width for part in self.parts if not part.likelihood.coded)
        self.outputs = sum(likelihood.width for likelihood in likelihoods)

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

    def mode(self, decoded: Tensor) -> Tensor:
        """The most probable clean value of each cell, (B, D)."""
        return torch.cat([p.likelihood.mode(decoded[..., p.outputs]) for p in self.parts], dim=-1)

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

    def inputs(self, cells: Cells) -> tuple[Tensor, Tensor, Tensor]:
        """Numbers (B, numbers), 0 where unknown; level numbers (B, coded), and which are known."""
        known = cells.observed & cells.values.isfinite()
        values = torch.where(known, cells.values, 0.0)
        numbers = [
            p.likelihood.inputs(values[..., p.columns]) * known[..., p.columns]
            for p in self.parts
            if not p.likelihood.coded
        ]
        coded = [p.columns for p in self.parts if p.likelihood.coded]
        return (
            _join(numbers, values),
            _join([values[..., c] for c in coded], values).long(),
            _join([known[..., c].float() for c in coded], values),
        )


class RVAE(ColumnNetwork):
    """Robust variational autoencoder over mixed columns, one hidden layer each way.

    With `amortized` a second network gives the logits of the weights pi (RVAE-AVI).
    """

    def __init__(
        self,
        columns: Sequence[EncodedColumn],
        *,
        latent_dim: int,
        hidden_dim: int,
        embedding_dim: int,
        outlier_scale: float,
        amortized: bool,
    ) -> None:
        super().__init__(columns, embedding_dim=embedding_dim, outlier_scale=outlier_scale)
        self.encoder_input = InputLayer(self.numbers, self.embeddings, hidden_dim)
        self.encoder_output = Linear(hidden_dim, 2 * latent_dim)
        self.decoder_hidden = Linear(latent_dim, hidden_dim)
        self.decoder_output = Linear(hidden_dim, self.outputs)
        if amortized:
            self.weight_input = InputLayer(self.numbers, self.embeddings, hidden_dim)
            self.weight_output = Linear(hidden_dim, len(columns))

    def encode(self, cells: Cells) -> Latent:
        """q(z|x) of each row."""
        hidden = self.encoder_input(*self.inputs(cells), self.embeddings).relu()
        mu, log_variance = self.encoder_output(hidden).chunk(2, dim=-1)
        return Latent(mu, log_variance.clamp(*LATENT_LOG_VARIANCE))

    def decode(self, z: Tensor) -> Tensor:
        """(B, K) to the parameters of every column's clean component, (B, all widths)."""
        return self.decoder_output(self.decoder_hidden(z).relu())

    def weight_logits(self, cells: Cells) -> Tensor:
        """RVAE-AVI: logits of pi from the second network, (B, D)."""
        return self.weight_output(self.weight_input(*self.inputs(cells), self.embeddings).relu())


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

    def __init__(self, numbers: int, embeddings: Embeddings, hidden_dim: int) -> None:
        super().__init__()
        embedding_dim = embeddings.vectors.shape[1]
        self.number_weight = nn.Parameter(torch.empty(numbers, hidden_dim))
        self.level_weight = nn.Parameter(torch.empty(embeddings.columns, embedding_dim, hidden_dim))
        self.bias = nn.Parameter(torch.empty(hidden_dim))

    def initialize(self, generator: Generator) -> None:
        columns, embedding_dim, _ = self.level_weight.shape
        fan_in = self.number_weight.shape[0] + columns * embedding_dim
        _draw(fan_in, generator, self.number_weight, self.level_weight, self.bias)

    def forward(self, numbers: Tensor, levels: Tensor, known: Tensor, embeddings: Embeddings) -> Tensor:
        hidden = affine(numbers, self.number_weight, self.bias)
        if embeddings.columns == 0:
            return hidden
        if embeddings.most_levels <= levels.shape[-2]:
            return hidden + self._look_up(levels, known, embeddings)
        return hidden + self._multiply(levels, known, embeddings)

    def _look_up(self, levels: Tensor, known: Tensor, embeddings: Embeddings) -> Tensor:
        columns, most, table = embeddings.columns, embeddings.most_levels, embeddings.vectors
        vectors = table.index_select(-2, embeddings.padded.flatten())  # (D * C, E)
        vectors = vectors.view(*table.shape[:-2], columns, most, table.shape[-1])
        tables = (vectors @ self.level_weight).flatten(-3, -2)  # (D * C, H)
        rows = _in_one_table(levels + embeddings.first_padded, tables)
        flat = F.embedding_bag(
            rows.flatten(0, -2), tables.flatten(0, -2), mode="sum", per_sample_weights=known.flatten(0, -2)
        )
        return flat.reshape(*levels.shape[:-1], -1)

    def _multiply(self, levels: Tensor, known: Tensor, embeddings: Embeddings) -> Tensor:
        rows = _in_one_table(levels + embeddings.first, embeddings.vectors)
        vectors = F.embedding(rows, embeddings.vectors.flatten(0, -2)) * known[..., None]  # (B, D, E)
        return vectors.flatten(-2) @ self.level_weight.flatten(-3, -2)


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


def elbo(network: RVAE, cells: Cells, z: Tensor, latent: Latent, *, weights: str, alpha: Alpha) -> Tensor:
    """Evidence lower bound of each row at one sample z, (B,); missing cells carry nothing."""
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
    return torch.where(cells.observed, per_cell, 0.0).sum(-1) - latent_kl(latent)


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


def _join(pieces: list[Tensor], like: Tensor) -> Tensor:
    return torch.cat(pieces, dim=-1) if pieces else like[..., :0]


def _draw(fan_in: int, generator: Generator, *parameters: nn.Parameter) -> None:
    bound = 1 / math.sqrt(max(fan_in, 1))
    with torch.no_grad():
        for parameter in parameters:
            parameter.uniform_(-bound, bound, generator=generator)
