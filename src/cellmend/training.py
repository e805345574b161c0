"""The one training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Generator, Tensor, nn

from cellmend.encoding import Cells, take_rows
from cellmend.network import RVAE, Alpha, elbo, sample_latent

REVISIONS = tuple(tenth / 10 for tenth in range(1, 10))  # when alpha is revised, as a share of the epochs


class TrainingError(RuntimeError):
    """Training that did not end in finite weights."""


def train(
    network: RVAE,
    cells: Cells,
    *,
    weights: str,
    alpha: Alpha,
    kl_weight: float,
    hide: float,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    schedule: str,
    weight_decay: float | Tensor,
    generator: Generator,
    on_epoch: Callable[[int], None],
    revise: Callable[[], Tensor] | None = None,
    time_limit: float | None = None,
) -> Tensor:
    """Raise the ELBO with Adam; returns its mean per row over each epoch, (epochs,).

    With `hide`, some cells of each row are hidden from the encoder, and the bound is about those alone. With a
    `kl_weight` of 0 nothing holds z to its prior, and it is the encoder's mean. With `revise`, alpha is but the start:
    a few times it is asked for the alpha of every cell, (N, D). With a `time_limit` in seconds, epochs are fewer.

    Stacked networks train side by side, each on its own cells (M, N, D) in its own order; the history
    is (epochs, M). Cells, network and generator are on one device and nothing leaves it.
    """

    revised = torch.zeros_like(cells.values) + alpha if revise is not None else None
    clock = Clock(epochs, time_limit)
    due = list(REVISIONS)

    def after_epoch(epoch: int) -> None:
        done = clock.done(epoch + 1)
        passed = [share for share in due if share <= done + 1e-9]
        del due[: len(passed)]
        if revised is not None and revise is not None and passed and done < 1:  # after the last nothing is learned
            revised.copy_(revise())  # in place: a captured step reads it there
        on_epoch(epoch)

    def loss(rows: Tensor) -> Tensor:
        batch = cells.take(rows)
        prior = alpha if revised is None else take_rows(revised, rows)
        seen, asked = hide_some(batch, hide, generator) if hide else (batch, batch)
        latent = network.encode(seen)
        z = sample_latent(latent, generator) if kl_weight else latent.mu
        bound = elbo(network, asked, z, latent, weights=weights, alpha=prior, kl_weight=kl_weight)
        # Summed over rows, as in the authors' code: weight_decay is relative to it.
        return -bound.sum(-1)

    history = -minimise(
        network,
        loss,
        cells.values.shape[:-1],
        clock=clock,
        batch_size=batch_size,
        learning_rate=learning_rate,
        schedule=schedule,
        weight_decay=weight_decay,
        generator=generator,
        after_step=network.embeddings.limit,
        on_epoch=after_epoch,
    )
    if not all(parameter.isfinite().all() for parameter in network.parameters()):
        raise TrainingError(
            f"Training must end in finite weights; it diverged at learning_rate={learning_rate}. "
            "Hint: lower learning_rate or weight_decay."
        )
    return history


class Clock:
    """The epochs to come: all of them, or as many as the time limit, in seconds, allows; at least one.

    >>> list(Clock(3)), Clock(4).done(1)
    ([0, 1, 2], 0.25)
    """

    def __init__(self, epochs: int, time_limit: float | None = None) -> None:
        self.epochs, self.time_limit, self.start = epochs, time_limit, time.perf_counter()

    def done(self, epoch: int) -> float:
        """The share that is done after so many epochs."""
        passed = 0.0 if self.time_limit is None else (time.perf_counter() - self.start) / self.time_limit
        return min(max(epoch / self.epochs, passed), 1.0)

    def __iter__(self) -> Iterator[int]:
        for epoch in range(self.epochs):
            if epoch and self.done(epoch) >= 1:
                return
            yield epoch


def hide_some(cells: Cells, most: float, generator: Generator) -> tuple[Cells, Cells]:
    """A random share of each row's cells is hidden, uniform between 0 and `most`: what is left, and what was hidden."""
    shape, device = cells.values.shape, cells.values.device
    share = most * torch.rand((*shape[:-1], 1), generator=generator, device=device)
    hidden = torch.rand(shape, generator=generator, device=device) < share
    return Cells(cells.values, cells.observed & ~hidden), Cells(cells.values, cells.observed & hidden)


def minimise(
    network: nn.Module,
    loss: Callable[[Tensor], Tensor],
    every_row: Sequence[int],
    *,
    clock: Clock,
    batch_size: int,
    learning_rate: float,
    schedule: str,
    weight_decay: float | Tensor,
    generator: Generator,
    after_step: Callable[[], None],
    on_epoch: Callable[[int], None],
) -> Tensor:
    """Lower a loss over batches of rows with Adam; returns its mean per row over each epoch, (epochs,).

    `every_row` is (N,), or (M, N) for M stacked networks: `loss` then gets rows (M, B) and gives (M,), and
    `weight_decay` may be (M,).
    """
    device = generator.device
    rate = torch.tensor(learning_rate, device=device)  # a tensor, so that a captured step sees it change
    adam = torch.optim.Adam(
        network.parameters(),
        lr=rate,
        weight_decay=0.0 if isinstance(weight_decay, Tensor) else weight_decay,
        fused=True,
        capturable=device.type == "cuda",
    )
    total = torch.zeros(tuple(every_row[:-1]), device=device)

    def step(rows: Tensor) -> None:
        each = loss(rows)
        adam.zero_grad()
        each.sum().backward()  # type: ignore[no-untyped-call]
        if isinstance(weight_decay, Tensor):
            _decay(network, weight_decay)
        adam.step()
        after_step()
        total.add_(each.detach())

    run = Captured(step, generator) if device.type == "cuda" else step
    history = []
    for epoch in clock:
        total.zero_()
        rate.fill_(learning_rate * (rate_share(clock.done(epoch)) if schedule == "cosine" else 1.0))
        order = torch.rand(tuple(every_row), generator=generator, device=device).argsort(-1)
        for rows in torch.split(order, batch_size, dim=-1):
            run(rows)
        history.append(total / every_row[-1])
        on_epoch(epoch)
    return torch.stack(history)


def rate_share(done: float) -> float:
    """The share of the learning rate when this share of the epochs is done: up in a twentieth, then down as a cosine.

    >>> [round(rate_share(done), 2) for done in (0.0, 0.05, 0.5, 0.99)]
    [0.2, 0.99, 0.5, 0.0]
    """
    return min(0.2 + 16 * done, 0.5 + 0.5 * math.cos(math.pi * done))


def decay_of_each(decays: Sequence[float], device: torch.device) -> float | Tensor:
    """The weight decay of stacked networks for `minimise`: one number if they agree, else (M,)."""
    return decays[0] if len(set(decays)) == 1 else torch.tensor(decays, device=device)


@torch.no_grad()
def _decay(network: nn.Module, weight_decay: Tensor) -> None:
    """Adam's weight decay, but of each stacked network its own (M,)."""
    for weights in network.parameters():
        if weights.grad is not None:
            weights.grad.addcmul_(weights, weight_decay.view(-1, *[1] * (weights.dim() - 1)))


class Captured:
    """A training step as a CUDA graph: its many small kernels start at once, not one by one from Python.

    The first steps run as they are, to warm up. Then batches of that size replay the graph; the short last
    batch of an epoch still runs as it is.
    """

    WARM_UP = 3

    def __init__(self, step: Callable[[Tensor], None], generator: Generator) -> None:
        self.step = step
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(generator)
        self.rows = torch.empty(0)  # the graph reads its batch from here
        self.steps = 0  # of the usual size

    def __call__(self, rows: Tensor) -> None:
        if self.steps == 0:
            self.rows = rows.clone()
        usual = rows.shape == self.rows.shape
        self.steps += usual
        if usual and self.steps == self.WARM_UP + 1:
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.step(self.rows)
        if usual and self.steps > self.WARM_UP:
            self.rows.copy_(rows)
            self.graph.replay()
        else:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.step(rows)
            torch.cuda.current_stream().wait_stream(self.stream)


@contextmanager
def progress(what: str, total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar on standard error with the time left, moved on by calling it with how much is done."""
    if not shown:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
