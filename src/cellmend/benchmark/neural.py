"""CondPred and DeepRPCA: the paper's two neural baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from cellmend.benchmark.baselines import Expected, Floats, RepairBaseline, one_hot
from cellmend.encoding import Cells, LevelColumn
from cellmend.network import RVAE, InputLayer, Linear, stack, unstack
from cellmend.schema import Schema
from cellmend.training import Captured

EPOCHS = 100
BATCH = 150
LEARNING_RATE = 1e-3
CHUNK = 4096  # rows judged at once


class CondPred(RepairBaseline):
    """One network per column from all other columns, with layers of 200 and 50 and embeddings of its own.

    The D networks are trained as one, with a leading D: each step is a few batched products. Adam works on each
    weight by itself, so that one Adam is the same as one for each network.
    """

    network_: Predictor

    def __init__(
        self,
        *,
        weight_decay: float = 0.0,
        device: str = "cpu",
        schema: Schema | Mapping[Any, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(schema=schema, random_state=random_state)
        self.weight_decay = weight_decay
        self.device = device

    def learn(self, cells: Cells) -> None:
        """Raise every column's log-likelihood given the others."""
        _learn_together([self], [cells])

    def judge(self, cells: Cells) -> Floats:
        """-log p of each cell given the others of its row, (N, D)."""
        return -self._in_chunks(cells, lambda chunk: self._log_likelihood(chunk)[0])

    def expect(self, cells: Cells) -> Expected:
        """The most probable value and the probabilities by each column's network."""
        values = self._in_chunks(cells, lambda chunk: _own(self.network_.mode(self._log_likelihood(chunk)[1]), 1)[0])
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


class Predictor(RVAE):
    """A network from a row to the clean components of its columns, without a latent variable."""

    def __init__(self, columns: list[Any], generator: Generator) -> None:
        super().__init__(columns, latent_dim=1, hidden_dim=1, embedding_dim=50, outlier_scale=2.0, amortized=False)
        widths = self.decoder_output.bias.shape[0]
        numbers = self.encoder_input.number_weight.shape[0]
        del self.encoder_input, self.encoder_output, self.decoder_hidden
        self.first = InputLayer(numbers, self.embeddings, 200)
        self.second = Linear(200, 50)
        self.decoder_output = Linear(50, widths)
        self.initialize(generator)

    def predict(self, cells: Cells) -> Tensor:
        """Parameters of every column's distribution, (B, all widths)."""
        hidden = self.first(*self._inputs(cells), self.embeddings).relu()
        return self.decoder_output(self.second(hidden).relu())


def fit_cond_preds(predictors: Sequence[CondPred], tables: Sequence[Any]) -> None:
    """Fit several CondPreds of equal settings, each to its own table, all their networks trained as one."""
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

    def loss(rows: Tensor) -> Tensor:
        return -log_likelihood(together, data.take(rows))[0].sum()

    _train(
        together,
        loss,
        data.values.shape[:2],
        epochs=EPOCHS,
        weight_decay=first.weight_decay,
        seed=first.random_state,
    )
    unstack(together, networks)
    for place, predictor in enumerate(predictors):
        predictor.network_ = stack(networks[place * columns : (place + 1) * columns]).to(first.device)


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
    return answers.unflatten(0, (tables, -1)).diagonal(dim1=1, dim2=3)  # type: ignore[no-untyped-call]


class DeepRPCA(RepairBaseline):
    """X = R + S: R what an autoencoder (400, 20, 400) can say of a one-hot row, S row-sparse errors.

    Twenty rounds, alternating: ten epochs of the autoencoder on X - S, then S by the proximal step of the l2,1 norm
    over rows. A row's S is its residual shortened as a whole, so that X - S mixes the row with its reconstruction and
    one-hot blocks stay probabilities, which cross-entropy needs.
    """

    ROUNDS = 20
    ROUND_EPOCHS = 10

    def __init__(
        self,
        *,
        sparsity: float = 0.01,
        device: str = "cpu",
        schema: Schema | Mapping[Any, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(schema=schema, random_state=random_state)
        self.sparsity = sparsity
        self.device = device

    def learn(self, cells: Cells) -> None:
        """Alternate between the autoencoder and the sparse part."""
        X = torch.tensor(one_hot(cells, self.columns), dtype=torch.float32, device=self.device)
        self.owner_ = torch.tensor(
            [d for d, c in enumerate(self.columns) for _ in range(len(c.levels) if isinstance(c, LevelColumn) else 1)],
            device=self.device,
        )
        self.coded_ = torch.tensor([isinstance(c, LevelColumn) for c in self.columns], device=self.device)
        self.network_ = Autoencoder(X.shape[1], torch.Generator().manual_seed(self.random_state)).to(self.device)
        S = torch.zeros_like(X)
        for number in range(self.ROUNDS):
            target = X - S
            _train(
                self.network_,
                lambda rows, target=target: self._loss(target[rows]),  # type: ignore[misc]
                (len(X),),
                epochs=self.ROUND_EPOCHS,
                weight_decay=0.0,
                seed=self.random_state + number,
            )
            S = shorten_rows(X - self._low_rank(target), self.sparsity)

    def judge(self, cells: Cells) -> Floats:
        """s² of each cell, summed over the one-hot block of a level, (N, D)."""
        squares = self._sparse(cells).square()
        total = torch.zeros(len(squares), len(self.columns), device=squares.device)
        return total.index_add(1, self.owner_, squares).double().cpu().numpy()

    def judge_rows(self, cells: Cells) -> Floats:
        """The Euclidean norm of the row's S, (N,)."""
        return self._sparse(cells).norm(dim=1).double().cpu().numpy()

    def expect(self, cells: Cells) -> Expected:
        """R: the autoencoder's answer to the row."""
        X = torch.tensor(one_hot(cells, self.columns), dtype=torch.float32, device=self.device)
        R = self._low_rank(X).double().cpu().numpy()
        owner = self.owner_.cpu().numpy()
        values = np.empty((len(R), len(self.columns)))
        probabilities = {}
        for d, column in enumerate(self.columns):
            block = R[:, owner == d]
            coded = isinstance(column, LevelColumn)
            values[:, d] = block.argmax(axis=1) if coded else block[:, 0]
            if coded:
                probabilities[d] = block
        return Expected(values, probabilities)

    def _sparse(self, cells: Cells) -> Tensor:
        X = torch.tensor(one_hot(cells, self.columns), dtype=torch.float32, device=self.device)
        return shorten_rows(X - self._low_rank(X), self.sparsity)

    @torch.no_grad()
    def _low_rank(self, X: Tensor) -> Tensor:
        """The autoencoder's numbers, and its probabilities in the blocks of levels, (N, P)."""
        raw = self.network_(X)
        return torch.where(self.coded_[self.owner_], self._log_probabilities(raw).exp(), raw)

    def _loss(self, target: Tensor) -> Tensor:
        """Squared error of numbers, cross-entropy of blocks, summed over the batch."""
        raw = self.network_(target)
        coded = self.coded_[self.owner_]
        return torch.where(coded, -target * self._log_probabilities(raw), (raw - target).square()).sum()

    def _log_probabilities(self, raw: Tensor) -> Tensor:
        """Log softmax within each column's block, (B, P)."""
        columns = len(self.columns)
        largest = raw.detach().new_full((len(raw), columns), -torch.inf)
        largest = largest.scatter_reduce(1, self.owner_.expand(raw.shape), raw.detach(), "amax")
        shifted = raw - largest[:, self.owner_]
        total = shifted.new_zeros(len(raw), columns).index_add(1, self.owner_, shifted.exp())
        return shifted - total.log()[:, self.owner_]


class Autoencoder(nn.Module):
    """P to 400 to 20 to 400 to P, ReLU between."""

    def __init__(self, width: int, generator: Generator) -> None:
        super().__init__()
        sizes = [width, 400, 20, 400, width]
        self.layers = nn.ModuleList(Linear(a, b) for a, b in pairwise(sizes))
        for layer in self.layers:
            layer.initialize(generator)  # type: ignore[operator]

    def forward(self, x: Tensor) -> Tensor:
        """(B, P) to (B, P)."""
        first, code, second, last = self.layers
        return last(second(code(first(x).relu()).relu()).relu())


def shorten_rows(residual: Tensor, sparsity: float) -> Tensor:
    """The proximal step of the l2,1 norm: every row shortened by `sparsity`, to nothing if it is shorter.

    >>> shorten_rows(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    tensor([[2.4000, 3.2000],
            [0.0000, 0.0000]])
    """
    norm = residual.norm(dim=1, keepdim=True)
    return residual * (1 - sparsity / norm.clamp_min(1e-12)).clamp_min(0)


def _train(
    network: nn.Module,
    loss: Callable[[Tensor], Tensor],
    every_row: Sequence[int],
    *,
    epochs: int,
    weight_decay: float,
    seed: int,
) -> None:
    """Lower a loss over batches of rows with Adam; `every_row` is (N,), or (M, N) for M tables side by side."""
    device = next(network.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    on_gpu = device.type == "cuda"
    adam = torch.optim.Adam(
        network.parameters(), lr=LEARNING_RATE, weight_decay=weight_decay, fused=True, capturable=on_gpu
    )

    def step(rows: Tensor) -> None:
        adam.zero_grad()
        loss(rows).backward()  # type: ignore[no-untyped-call]
        adam.step()
        if isinstance(network, RVAE):
            network.embeddings.limit()

    run = Captured(step, generator) if on_gpu else step
    for _ in range(epochs):
        order = torch.rand(tuple(every_row), generator=generator, device=device).argsort(-1)
        for rows in torch.split(order, BATCH, dim=-1):
            run(rows)
