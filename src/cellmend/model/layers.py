"""The layers of the networks: cells in, and each column's own outputs out.

Shapes: B rows, D columns, L levels of all coded columns, E embedding size, H hidden units; of M networks stacked into
one, all with a leading M.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from cellmend.model.likelihoods import Likelihood, constant, fixed, padded_rows

REGISTER = 16  # numbers
LARGEST_EMBEDDING = 1.0  # norm, as in the authors' code
WORTH_A_CUT = 3  # times less padding
SMALL_TABLE = 1024  # levels of all columns, whose products are made for every batch, however small
FEW_LEVELS = {"cpu": 16, "cuda": 128}  # per column: to learn, one product is then faster than looking up


class Part(NamedTuple):
    """The columns of one kind: their likelihood, their slice of the cells and of the decoder's output."""

    likelihood: Likelihood
    columns: slice
    outputs: slice


class Inputs(NamedTuple):
    """A row for the first layer: 0 where unknown."""

    numbers: list[Tensor]  # of each kind of numbers (B, D_k, features)
    levels: Tensor  # (B, coded), of any value where unknown
    known: Tensor  # (B, D)
    known_levels: Tensor  # (B, coded)

    def rows(self, chosen: slice) -> Inputs:
        """Of these rows."""
        numbers = [each[..., chosen, :, :] for each in self.numbers]
        return Inputs(numbers, *(each[..., chosen, :] for each in self[1:]))


class Linear(nn.Module):
    """x W + b, drawn as torch.nn.Linear draws."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def initialize(self, generator: Generator) -> None:
        _draw(self.weight.shape[0], generator, self.weight, self.bias)

    def forward(self, x: Tensor, *, relu: bool = False, outputs: int | None = None) -> Tensor:
        """The first `outputs` of them, or all; of relu(x) if asked, which x then becomes."""
        return Affine.apply(x, self.weight, self.bias, relu, outputs or self.weight.shape[-1])


class OwnOutputs(nn.Module):
    """Of a layer's outputs those of each column, from that column's own inputs.

    Columns of a group are padded to the same number of outputs, whole vector registers, and multiplied as one batch: a
    row's sums then do not depend on where it stands among the others.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__()
        owners = [p.likelihood.owner + p.columns.start for p in parts]
        counts = join(owners, torch.zeros(0, dtype=torch.long)).bincount()
        self.groups, first = _alike(counts.tolist()), 0
        for number, group in enumerate(self.groups):
            own = padded_rows(counts[group], beyond=0) + first
            own = F.pad(own, (0, -own.shape[1] % REGISTER), value=first)
            inside = torch.arange(own.shape[1]) < counts[group][:, None]
            constant(self, f"own{number}", own)  # (n, W) outputs of each column
            constant(self, f"place{number}", inside.flatten().nonzero().squeeze(-1))  # of each output among the padded
            first += int(counts[group].sum())

    def weights(self, layer: Linear) -> list[Tensor]:
        """For each group (n, H, W)."""
        every = [self.get_buffer(f"own{number}") for number in range(len(self.groups))]
        return [layer.weight[..., own].movedim(-2, -3).contiguous() for own in every]

    def forward(self, x: Tensor, weights: list[Tensor]) -> Tensor:
        """x (D, B, H) to the outputs of all columns (B, all widths)."""
        answers = []
        for number, (group, weight) in enumerate(zip(self.groups, weights, strict=True)):
            own = (x[..., group, :, :] @ weight).movedim(-3, -2).flatten(-2)  # (B, n * W)
            answers.append(own.index_select(-1, self.get_buffer(f"place{number}")))
        return torch.cat(answers, dim=-1)


class Embeddings(nn.Module):
    """One vector per level of every coded column, all in one table (L, E), L = C_1 + ... + C_D."""

    def __init__(self, levels: list[int], embedding_dim: int) -> None:
        super().__init__()
        self.columns = len(levels)
        self.most_levels = max(levels, default=0)
        groups = _alike(levels)
        self.counts = [size(group) for group in groups]  # columns of each group
        self.rows = [size(group) * max(levels[group]) for group in groups]  # when padded to the most levels
        counts = torch.tensor(levels, dtype=torch.long)
        first = counts.cumsum(0) - counts
        self.first = fixed(first)  # (D,) row of each column's first level
        self.owner = fixed(torch.arange(len(levels)).repeat_interleave(counts))  # (L,) column of each row
        most = torch.tensor([max(levels[group]) for group in groups for _ in levels[group]], dtype=torch.long)
        level = torch.arange(int(most.sum())) - (most.cumsum(0) - most).repeat_interleave(most)  # within its column
        owner = torch.arange(len(levels)).repeat_interleave(most)
        # Columns of a group are padded to the same number of levels; nobody looks up what is beyond.
        self.padded = fixed(first[owner] + torch.where(level < counts[owner], level, 0))
        self.place = fixed((level < counts[owner]).nonzero().squeeze(-1))  # (L,) of each level among the padded
        self.any_padding = len(self.padded) > sum(levels)
        self.vectors = nn.Parameter(torch.empty(sum(levels), embedding_dim))

    def initialize(self, generator: Generator) -> None:
        with torch.no_grad():
            self.vectors.normal_(generator=generator)
        self.limit()

    def times(self, weight: Tensor) -> Tensor:
        """Every level's embedding times its column's weights (D, E, H), (L, H).

        Columns of a group are padded to the same number of levels and multiplied as one batch.
        """
        padded = self._padded()
        products = weight.new_empty(*padded.shape[:-1], weight.shape[-1])
        for own, product, each in self._grouped(padded, products, weight.detach()):
            torch.matmul(own, each, out=product)
        return products.index_select(-2, self.place) if self.any_padding else products

    def times_backward(self, weight: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the vectors (L, E) and of the weights (D, E, H) from that of `times` (L, H)."""
        padded, spread = self._padded(), gradient
        if self.any_padding:
            spread = gradient.new_zeros(*padded.shape[:-1], gradient.shape[-1]).index_copy_(-2, self.place, gradient)
        of_padded, of_weight = torch.empty_like(padded), torch.empty_like(weight)
        groups = zip(self._grouped(padded, spread, weight), self._grouped(of_padded, spread, of_weight), strict=True)
        for (own, down, each), (of_own, _, of_each) in groups:
            with aside(own, down, of_each):
                torch.matmul(own.mT, down, out=of_each)
            torch.matmul(down, each.mT, out=of_own)
        return of_padded.index_select(-2, self.place) if self.any_padding else of_padded, of_weight

    def _padded(self) -> Tensor:
        vectors = self.vectors.detach()
        return vectors.index_select(-2, self.padded) if self.any_padding else vectors

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

    Looking levels up is adding rows of a table (L, H) of products. While there are few levels, to learn is faster with
    one product: of numbers and levels as ones and zeros (B, F + L) by the weights and the table.
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
        ctx.embeddings, ctx.features = embeddings, numbers.shape[-1]
        features, levels = ctx.features, vectors.shape[-2]
        if ctx.needs_input_grad[3] and levels <= FEW_LEVELS[rows.device.type] * rows.shape[-1]:
            with aside(numbers, rows, known):
                every = numbers.new_zeros(*numbers.shape[:-1], features + levels)
                every[..., :features] = numbers
                every[..., features:].scatter_(-1, rows, known)
            ctx.save_for_backward(every, level_weight, rows, known)
            weight = torch.cat([number_weight, embeddings.times(level_weight)], -2)
            rejoin(numbers.device)
            return affine(every, weight, bias)
        ctx.save_for_backward(numbers, level_weight, rows, known)
        with aside(rows, known):
            table = embeddings.times(level_weight)
        hidden, times = affine(numbers, number_weight, bias), known.flatten(0, -2)
        flat = in_one_table(rows, table).flatten(0, -2)
        rejoin(numbers.device)
        looked_up = F.embedding_bag(flat, table.flatten(0, -2), mode="sum", per_sample_weights=times)
        return hidden.add_(looked_up.view(hidden.shape))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, level_weight, rows, known = ctx.saved_tensors
        features, levels = ctx.features, ctx.embeddings.vectors.shape[-2]
        with aside(inputs, gradient):
            of_bias = gradient.sum(-2)
        product = inputs.mT @ gradient
        of_numbers, of_table = product[..., :features, :], product[..., features:, :]
        if of_table.shape[-2] == 0:
            of_table = gradient.new_zeros(*gradient.shape[:-2], levels, gradient.shape[-1])
            each = (gradient.unsqueeze(-2) * known.unsqueeze(-1)).flatten(0, -2)  # (B * coded, H)
            add_rows(of_table.flatten(0, -2), in_one_table(rows, of_table).flatten(), each)
        of_vectors, of_weight = ctx.embeddings.times_backward(level_weight, of_table)
        return None, of_numbers, of_bias, of_vectors, of_weight, None, None, None


class Affine(torch.autograd.Function):
    """x W + b, or relu(x) W + b, (B, in) to (B, out), as one step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, relu: bool, outputs: int) -> Tensor:
        x = x.relu_() if relu else x
        ctx.save_for_backward(x, weight)
        ctx.relu, ctx.outputs = relu, outputs
        return affine(x, weight[..., :outputs], bias[..., :outputs])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        with aside(x, gradient):
            of_weight, of_bias = x.mT @ gradient, gradient.sum(-2)
            if ctx.outputs < weight.shape[-1]:
                of_weight, of_bias = (F.pad(e, (0, weight.shape[-1] - ctx.outputs)) for e in (of_weight, of_bias))
        of_x = gradient @ weight[..., : ctx.outputs].mT
        if ctx.relu:
            torch.ops.aten.threshold_backward.grad_input(of_x, x, 0, grad_input=of_x)
        return of_x, of_weight, of_bias, None, None


@dataclass(frozen=True)
class Side:
    """A stream of a GPU beside another, and what is used there: memory that must not be given away meanwhile."""

    stream: torch.cuda.Stream
    used: list[Tensor]


NOTHING_ASIDE = nullcontext()
SIDES: dict[torch.cuda.Stream, Side] = {}  # of streams that training runs on; elsewhere nothing is done aside


def aside(*used: Tensor) -> AbstractContextManager[None]:
    """While training on a GPU, work with these beside what follows: small kernels leave most of it idle. `rejoin`
    before the results are used."""
    side = _side(used[0].device)
    return NOTHING_ASIDE if side is None else _aside(side, used)


@contextmanager
def _aside(side: Side, used: tuple[Tensor, ...]) -> Iterator[None]:
    side.used.extend(used)
    side.stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side.stream):
        yield


def rejoin(device: torch.device) -> None:
    """Wait for what was done aside."""
    side = _side(device)
    if side is not None:
        torch.cuda.current_stream().wait_stream(side.stream)
        side.used.clear()


def _side(device: torch.device) -> Side | None:
    return SIDES.get(torch.cuda.current_stream()) if SIDES and device.type == "cuda" else None


class InputLayer(nn.Module):
    """Cells to hidden pre-activations (B, H): numbers and embeddings of levels, times weights.

    A level's embedding times its column's weights is the same for every row: these products are made once per level and
    looked up, unless there are many levels and fewer rows than that in the batch.
    """

    def __init__(self, parts: list[Part], embeddings: Embeddings, hidden_dim: int, *, masked: bool) -> None:
        super().__init__()
        self.parts, self.masked = parts, masked
        features = sum(size(p.columns) * p.likelihood.features for p in self.parts if not p.likelihood.coded)
        known = sum(size(p.columns) for p in self.parts) if masked else 0
        self.features = features
        self.number_weight = nn.Parameter(torch.empty(features + known, hidden_dim))  # and of which cells are known
        self.level_weight = nn.Parameter(torch.empty(embeddings.columns, embeddings.vectors.shape[1], hidden_dim))
        self.bias = nn.Parameter(torch.empty(hidden_dim))

    def initialize(self, generator: Generator) -> None:
        columns, embedding_dim, _ = self.level_weight.shape
        fan_in = len(self.number_weight) + columns * embedding_dim
        _draw(fan_in, generator, self.number_weight, self.level_weight, self.bias)

    def forward(self, inputs: Inputs, embeddings: Embeddings) -> Tensor:
        pieces = [each.flatten(-2) for each in inputs.numbers] + ([inputs.known] if self.masked else [])
        numbers = join(pieces, inputs.known)
        if embeddings.columns == 0:
            return affine(numbers, self.number_weight, self.bias)
        known, rows, vectors = inputs.known_levels, inputs.levels + embeddings.first, embeddings.vectors
        if len(embeddings.owner) <= SMALL_TABLE or embeddings.most_levels <= rows.shape[-2]:
            return FirstLayer.apply(
                numbers, self.number_weight, self.bias, vectors, self.level_weight, rows, known, embeddings
            )
        looked_up = vectors.flatten(0, -2)[in_one_table(rows, vectors)] * known[..., None]
        hidden = affine(numbers, self.number_weight, self.bias)
        return hidden + looked_up.flatten(-2) @ self.level_weight.flatten(-3, -2)


class Shares:
    """What each value of a column adds to the first layer's sums, worked out once, to leave it out of them.

    Columns come first, (D, B, H): each has its own weights.
    """

    def __init__(self, layer: InputLayer, embeddings: Embeddings) -> None:
        self.parts, self.first = layer.parts, embeddings.first
        weight = layer.number_weight.detach()
        known = weight[..., layer.features :, :] if layer.masked else None
        self.numbers, feature = [], 0  # of each kind of numbers (D_k, features and whether it is known, H)
        for part in self.parts:
            if not part.likelihood.coded:
                count, each = size(part.columns), part.likelihood.features
                own = [weight[..., feature : feature + count * each, :].unflatten(-2, (count, each))]
                own += [] if known is None else [known[..., part.columns, :].unsqueeze(-2)]
                self.numbers.append(torch.cat(own, -2))
                feature += count * each
        products = embeddings.times(layer.level_weight)  # (L, H)
        if known is not None and embeddings.columns:
            of_coded = torch.cat([known[..., p.columns, :] for p in self.parts if p.likelihood.coded], -2)
            products += of_coded.index_select(-2, embeddings.owner)
        self.table = F.pad(products, (0, 0, 0, 1))  # the last row is that of unknown levels

    def left_out(self, inputs: Inputs, total: Tensor) -> Tensor:
        """The sums (B, H) as they would be with each column hidden in turn, (D, B, H)."""
        total, levels = total.unsqueeze(-3), self.table.shape[-2] - 1
        rows = torch.where(inputs.known_levels > 0, inputs.levels + self.first, levels)
        rows = in_one_table(rows, self.table).transpose(-1, -2)  # (coded, B)
        left = total.new_empty(*total.shape[:-3], inputs.known.shape[-1], *total.shape[-2:])
        numbers, coded = iter(zip(inputs.numbers, self.numbers, strict=True)), 0
        for part in self.parts:
            if part.likelihood.coded:
                own = F.embedding(rows[..., coded : coded + size(part.columns), :], self.table.flatten(0, -2))
                coded += size(part.columns)
            else:
                each, weight = next(numbers)
                if weight.shape[-2] > each.shape[-1]:
                    each = torch.cat([each, inputs.known[..., part.columns, None]], -1)
                own = each.transpose(-2, -3) @ weight
            torch.sub(total, own, out=left[..., part.columns, :, :])
        return left


def add_rows(table: Tensor, rows: Tensor, each: Tensor) -> None:
    """Add vectors (n, H) to rows (n,) of a table (L, H); on a GPU, too, in the same order every time."""
    if table.device.type == "cuda":
        table.index_put_((rows,), each, accumulate=True)
    else:
        table.index_add_(0, rows, each)


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b, (B, in) by (in, out); or of stacked networks, all with a leading M."""
    return torch.addmm(bias, x, weight) if weight.dim() == 2 else torch.baddbmm(bias.unsqueeze(-2), x, weight)


def in_one_table(rows: Tensor, tables: Tensor) -> Tensor:
    """Row numbers for the tables (M, R, H) of stacked networks laid one below the other."""
    if tables.dim() == 2:
        return rows
    return rows + torch.arange(0, tables.shape[0] * tables.shape[1], tables.shape[1], device=rows.device)[:, None, None]


def size(columns: slice) -> int:
    """How many columns."""
    return int(columns.stop - columns.start)


def join(pieces: list[Tensor], like: Tensor) -> Tensor:
    """Side by side; nothing, if there are none."""
    if len(pieces) == 1:
        return pieces[0]
    return torch.cat(pieces, dim=-1) if pieces else like[..., :0]


def _draw(fan_in: int, generator: Generator, *parameters: nn.Parameter) -> None:
    bound = 1 / math.sqrt(max(fan_in, 1))
    with torch.no_grad():
        for parameter in parameters:
            parameter.uniform_(-bound, bound, generator=generator)
