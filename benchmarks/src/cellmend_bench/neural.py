"""CondPred and DeepRPCA: the paper's two neural baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

from cellmend.model.columns import EncodedColumn, LevelColumn
from cellmend.model.encoding import Cells, take_rows
from cellmend.model.layers import Linear
from cellmend.model.likelihoods import Distributions, constant
from cellmend.model.network import ColumnNetwork, stack, unstack
from cellmend.model.optimiser import Ascent, Watch, maximise
from cellmend_bench.baselines import Expected, Floats, RepairBaseline, one_hot
from cellmend_bench.together import decay_of_each

EPOCHS = 100
RATE: dict[str, Any] = {"batch_size": 150, "learning_rate": 1e-3, "schedule": "constant"}
CHUNK = 4096  # rows judged at once


@dataclass(kw_only=True, eq=False)
class CondPred(RepairBaseline):
    """One network per column from all other columns, with layers of 200 and 50 and embeddings of its own.

    The D networks are trained as one, with a leading D: each step is a few batched products. Adam works on each
    weight by itself, so that one Adam is the same as one for each network.
    """

    weight_decay: float = 0.0
    device: str = "cpu"
    network_: Predictor = field(init=False, repr=False)

    def learn(self, cells: Cells) -> None:
        """Raise every column's log-likelihood given the others."""
        _learn_together([self], [cells])

    def judge(self, cells: Cells) -> Floats:
        """-log p of each cell given the others of its row, (N, D)."""
        return -self._in_chunks(cells, lambda chunk: self._log_likelihood(chunk)[0])

    def expect(self, cells: Cells) -> Expected:
        """The most probable value and the probabilities by each column's network."""
        values = self._in_chunks(cells, lambda chunk: _own(self.network_.best(self._log_likelihood(chunk)[1]), 1)[0])
        levels = {d: len(column.levels) for d, column in enumerate(self.columns) if isinstance(column, LevelColumn)}
        own = self._in_chunks(cells, self._probabilities) if levels else np.empty((len(cells), 0, 0))
        return Expected(values, {d: own[:, place, :count] for place, (d, count) in enumerate(levels.items())})

    def _log_likelihood(self, cells: Cells) -> tuple[Tensor, Tensor]:
        """log p of each cell by its own network, (B, D); and all that was decoded, (D, B, widths)."""
        own, decoded = log_likelihood(self.network_, Cells(cells.values[None], cells.observed[None]))
        return own[0], decoded

    def _probabilities(self, cells: Cells) -> Tensor:
        """Of every level of the coded columns, each by its own network, padded to the most levels, (B, coded, C)."""
        most = self.network_.embeddings.most_levels
        found = []
        for span, probabilities in self.network_.probabilities(self._log_likelihood(cells)[1]):  # (D, B, D_k, C)
            own = probabilities[span].diagonal(dim1=0, dim2=2).movedim(-1, 1)  # (B, D_k, C)
            found.append(nn.functional.pad(own, (0, most - own.shape[-1])))
        return torch.cat(found, dim=1)

    @torch.no_grad()
    def _in_chunks(self, cells: Cells, answer: Callable[[Cells], Tensor]) -> Floats:
        device = torch.device(self.device)
        chunks = [
            answer(cells[first : first + CHUNK].to(device)).double().cpu() for first in range(0, len(cells), CHUNK)
        ]
        return torch.cat(chunks).numpy()


class Predictor(ColumnNetwork):
    """A network from a row to the clean components of its columns, with layers of 200 and 50."""

    def __init__(self, columns: list[Any], generator: Generator) -> None:
        how = Distributions(outlier="gaussian", outlier_scale=2.0, components=0, binned=False)
        super().__init__(columns, how, embedding_dim=50, masked=False)
        self.first = self.first_layer(200)
        self.second = Linear(200, 50)
        self.last = Linear(50, self.outputs)
        self.initialize(generator)

    def predict(self, cells: Cells) -> Tensor:
        """Parameters of every column's distribution, (B, all widths)."""
        hidden = self.first(self.inputs(cells), self.embeddings).relu()
        return self.last(self.second(hidden).relu())


def fit_cond_preds(predictors: Sequence[CondPred], tables: Sequence[Any]) -> None:
    """Fit several CondPreds, each to its own table, all their networks trained as one."""
    _learn_together(predictors, [predictor.start(X) for predictor, X in zip(predictors, tables, strict=True)])


def _learn_together(predictors: Sequence[CondPred], cells: Sequence[Cells]) -> None:
    """M tables (M, N, D), and for each of their columns a network: M * D networks as one."""
    first, columns = predictors[0], len(predictors[0].columns)
    networks = [
        Predictor(predictor.columns, torch.Generator().manual_seed(predictor.random_state))
        for predictor in predictors
        for _ in range(columns)
    ]
    together = stack(networks).to(first.device)
    data = Cells(torch.stack([c.values for c in cells]), torch.stack([c.observed for c in cells]))
    data = data.to(torch.device(first.device))

    decays = decay_of_each([p.weight_decay for p in predictors for _ in range(columns)], data.values.device)
    maximise(
        together,
        lambda rows: log_likelihood(together, _rows(data, rows))[0].sum((-2, -1)),
        data.values.shape[:2],
        Ascent(EPOCHS, weight_decay=decays, **RATE),
        torch.Generator(first.device).manual_seed(first.random_state),
        Watch(after_step=together.embeddings.limit),
    )
    unstack(together, networks)
    for place, predictor in enumerate(predictors):
        predictor.network_ = stack(networks[place * columns : (place + 1) * columns]).to(first.device)


def _rows(cells: Cells, rows: Tensor) -> Cells:
    """Of cells stacked (M, N, D) for each its own rows, (M, B)."""
    return Cells(take_rows(cells.values, rows), take_rows(cells.observed, rows))


def log_likelihood(networks: Predictor, cells: Cells) -> tuple[Tensor, Tensor]:
    """log p of each cell by its own network, 0 where missing, (M, B, D); and what was decoded, (M * D, B, widths)."""
    tables, rows, columns = cells.values.shape
    others = ~torch.eye(columns, dtype=torch.bool, device=cells.values.device)[:, None, :]  # (D, 1, D)
    everywhere = (tables, columns, rows, columns)
    seen = Cells(
        cells.values[:, None].expand(everywhere).flatten(0, 1),
        (cells.observed[:, None] & others).flatten(0, 1),  # network d does not see column d
    )
    decoded = networks.predict(seen)
    own = _own(networks.log_clean(seen, decoded), tables)
    return torch.where(cells.observed, own, 0.0), decoded


def _own(answers: Tensor, tables: int) -> Tensor:
    """From every network's answers for all columns (M * D, B, D) those for its own column, (M, B, D)."""
    return answers.unflatten(0, (tables, -1)).diagonal(dim1=1, dim2=3)


@dataclass(kw_only=True, eq=False)
class DeepRPCA(RepairBaseline):
    """X = R + S: R what an autoencoder (400, 20, 400) can say of a one-hot row, S row-sparse errors.

    Twenty rounds, alternating: ten epochs of the autoencoder on X - S, then S by the proximal step of the l2,1 norm
    over rows. A row's S is its residual shortened as a whole, so that X - S mixes the row with its reconstruction and
    one-hot blocks stay probabilities, which cross-entropy needs. A table is judged by the same alternation, with the
    trained autoencoder.
    """

    ROUNDS: ClassVar[int] = 20
    ROUND_EPOCHS: ClassVar[int] = 10
    sparsity: float = 0.01
    device: str = "cpu"
    network_: Autoencoder = field(init=False, repr=False)

    def learn(self, cells: Cells) -> None:
        """Alternate between the autoencoder and the sparse part."""
        _split_together([self], [cells])

    def judge(self, cells: Cells) -> Floats:
        """s² of each cell, summed over the one-hot block of a level, (N, D)."""
        squares = self.split(cells)[1].square()
        total = torch.zeros(len(squares), len(self.columns), device=squares.device)
        return total.index_add(1, self.network_.owner, squares).double().cpu().numpy()

    def judge_rows(self, cells: Cells) -> Floats:
        """The Euclidean norm of the row's S, (N,)."""
        return self.split(cells)[1].norm(dim=1).double().cpu().numpy()

    def expect(self, cells: Cells) -> Expected:
        """R: the autoencoder's answer to the row."""
        R, owner = self.split(cells)[0].double().cpu().numpy(), self.network_.owner.cpu().numpy()
        values = np.empty((len(R), len(self.columns)))
        probabilities = {}
        for d, column in enumerate(self.columns):
            block = R[:, owner == d]
            coded = isinstance(column, LevelColumn)
            values[:, d] = block.argmax(axis=1) if coded else block[:, 0]
            if coded:
                probabilities[d] = block
        return Expected(values, probabilities)

    def split(self, cells: Cells) -> tuple[Tensor, Tensor]:
        """R and S of each row, both (N, P)."""
        X = self.rows(cells)
        S = torch.zeros_like(X)
        for _ in range(self.ROUNDS):
            R = self.network_.low_rank(X - S)
            S = shorten_rows(X - R, self.sparsity)
        return R, S

    def rows(self, cells: Cells) -> Tensor:
        """One-hot rows on the device, (N, P)."""
        return torch.tensor(one_hot(cells, self.columns), dtype=torch.float32, device=self.device)


def fit_deep_rpcas(models: Sequence[DeepRPCA], tables: Sequence[Any]) -> None:
    """Fit several DeepRPCAs, each to its own table, all autoencoders trained as one."""
    _split_together(models, [model.start(X) for model, X in zip(models, tables, strict=True)])


def _split_together(models: Sequence[DeepRPCA], cells: Sequence[Cells]) -> None:
    """The alternation for M tables, their one-hot rows (M, N, P)."""
    first = models[0]
    X = torch.stack([model.rows(each) for model, each in zip(models, cells, strict=True)])
    for model in models:
        model.network_ = Autoencoder(model.columns, torch.Generator().manual_seed(model.random_state))
    networks = [model.network_.to(first.device) for model in models]
    together = stack(networks)
    generator = torch.Generator(first.device).manual_seed(first.random_state)
    every_table = torch.arange(len(models), device=X.device)[:, None]
    sparsity = torch.tensor([model.sparsity for model in models], device=X.device)[:, None, None]
    S = torch.zeros_like(X)
    for _ in range(first.ROUNDS):
        target = X - S
        maximise(
            together,
            lambda rows, target=target: -together.loss(target[every_table, rows]),  # type: ignore[misc]
            X.shape[:2],
            Ascent(first.ROUND_EPOCHS, weight_decay=0.0, **RATE),
            generator,
            Watch(),
        )
        S = shorten_rows(X - together.low_rank(target), sparsity)
    unstack(together, networks)


class Autoencoder(nn.Module):
    """P to 400 to 20 to 400 to P, ReLU between; P is one for a number and one for each level."""

    owner: Tensor
    coded: Tensor

    def __init__(self, columns: Sequence[EncodedColumn], generator: Generator) -> None:
        super().__init__()
        widths = [len(column.levels) or 1 for column in columns]
        owner = torch.repeat_interleave(torch.arange(len(columns)), torch.tensor(widths))
        constant(self, "owner", owner)  # (P,) the column that each output belongs to
        constant(self, "coded", torch.tensor([bool(column.levels) for column in columns])[owner])
        self.columns = len(columns)
        self.layers = nn.ModuleList(Linear(a, b) for a, b in pairwise([len(owner), 400, 20, 400, len(owner)]))
        for layer in self.layers:
            layer.initialize(generator)  # type: ignore[operator]

    def forward(self, x: Tensor) -> Tensor:
        """(B, P) to raw (B, P)."""
        first, code, second, last = self.layers
        return last(second(code(first(x).relu()).relu()).relu())

    def loss(self, target: Tensor) -> Tensor:
        """Squared error of numbers, cross-entropy of blocks, summed over the batch."""
        raw = self(target)
        each = torch.where(self.coded, -target * self._log_probabilities(raw), (raw - target).square())
        return each.sum((-2, -1))

    @torch.no_grad()
    def low_rank(self, X: Tensor) -> Tensor:
        """Numbers, and probabilities in the blocks of levels, (N, P)."""
        answers = []
        for chunk in torch.split(X, CHUNK, dim=-2):
            raw = self(chunk)
            answers.append(torch.where(self.coded, self._log_probabilities(raw).exp(), raw))
        return torch.cat(answers, dim=-2)

    def _log_probabilities(self, raw: Tensor) -> Tensor:
        """Log softmax within each column's block, (B, P)."""
        least = raw.detach().new_full((*raw.shape[:-1], self.columns), -torch.inf)
        largest = least.scatter_reduce(-1, self.owner.expand(raw.shape), raw.detach(), "amax")
        shifted = raw - largest[..., self.owner]
        total = torch.zeros_like(largest).index_add(-1, self.owner, shifted.exp())
        return shifted - total.log()[..., self.owner]


def shorten_rows(residual: Tensor, sparsity: float | Tensor) -> Tensor:
    """The proximal step of the l2,1 norm: every row shortened by `sparsity`, to nothing if it is shorter.

    >>> shorten_rows(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    tensor([[2.4000, 3.2000],
            [0.0000, 0.0000]])
    """
    norm = residual.norm(dim=-1, keepdim=True)
    return residual * (1 - sparsity / norm.clamp_min(1e-12)).clamp_min(0)
