"""Climbing: a gain over rows is raised with Adam, epoch by epoch, on a processor, a GPU, or by several processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import torch
from torch import Generator, Tensor, nn

from cellmend.model.layers import SIDES, Side, rejoin

CAPTURING = Lock()
PIECE = {"cpu": 2**30, "cuda": 2**14}  # weights that Adam updates as one; on a GPU by one block of threads


@dataclass(frozen=True)
class Ascent:
    """How long and how fast to climb: all epochs, or as many as the time limit allows, at least one.

    With patience it also ends once the gain of the last so many epochs is nowhere above what it was before.

    >>> ascent = Ascent(8, 16, 0.001, "constant", 0.0, patience=2)
    >>> ascent.done(2), ascent.stalled(torch.tensor([1.0, 3.0, 2.0, 2.9]))
    (0.25, True)
    """

    epochs: int
    batch_size: int
    learning_rate: float
    schedule: str  # the rate stays ("constant") or falls to 0 ("cosine")
    weight_decay: float | Tensor  # of M stacked networks may be (M,)
    time_limit: float | None = None  # seconds
    patience: int | None = None  # epochs
    start: float = field(default_factory=time.perf_counter)

    def done(self, epochs: int) -> float:
        """The share that is done after so many epochs."""
        passed = 0.0 if self.time_limit is None else (time.perf_counter() - self.start) / self.time_limit
        return min(max(epochs / self.epochs, passed), 1.0)

    def stalled(self, gains: Tensor) -> bool:
        """Did the last of these epochs, (epochs,), bring nothing, to any of the networks?"""
        if self.patience is None or len(gains) <= self.patience:
            return False
        return bool((gains[-self.patience :].amax(0) <= gains[: -self.patience].amax(0)).all())

    def rate_after(self, epochs: int) -> float:
        """The learning rate after so many epochs."""
        return self.learning_rate * (rate_share(self.done(epochs)) if self.schedule == "cosine" else 1.0)


class Team(Protocol):
    """Processes that train one network together, each on its own rows."""

    place: Tensor  # (N,) of every row of the whole, among this process's own; -1 if it is another's

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each by its sum over all processes."""


class Keeper(Protocol):
    """Keeps what training needs to go on."""

    def restore(self, state: Mapping[str, Tensor]) -> int:
        """Fill in what was kept last, and say after how many epochs that was."""

    def keep(self, epochs: int, state: Mapping[str, Tensor]) -> None:
        """Keep the state after so many epochs."""


def nothing(*_: object) -> None:
    """What is done after a step or an epoch, if nothing is."""


@dataclass(frozen=True)
class Watch:
    """Who looks on while a network climbs: after each step and epoch, and the other processes of a team."""

    what: str = "Fitting"  # said beside the bar
    after_step: Callable[[], None] = nothing
    on_epoch: Callable[[int], None] = nothing
    team: Team | None = None
    keeper: Keeper | None = None
    also_kept: Mapping[str, Tensor] = field(default_factory=dict)


def maximise(
    network: nn.Module,
    gain: Callable[[Tensor], Tensor],
    every_row: Sequence[int],
    ascent: Ascent,
    generator: Generator,
    watch: Watch,
) -> Tensor:
    """Raise a gain, summed over a batch of rows, with Adam; returns its mean per row over each epoch, (epochs,).

    `every_row` is (N,), or (M, N) for M stacked networks: `gain` then gets rows (M, B) and gives (M,), and
    the weight decay may be (M,).
    """
    device, team, keeper = generator.device, watch.team, watch.keeper
    rate = torch.tensor(ascent.learning_rate, device=device)  # a tensor, so that a captured step sees it change
    adam = Adam(network, rate, ascent.weight_decay, team)
    total = torch.zeros(tuple(every_row[:-1]), device=device)

    def step(rows: Tensor) -> None:
        each = gain(rows)
        adam.step(each.sum() if each.dim() else each)
        watch.after_step()
        total.add_(each.detach())

    run = Captured(step, ascent.batch_size, generator) if device.type == "cuda" else each_batch(step, ascent.batch_size)
    history = torch.zeros(ascent.epochs, *total.shape, device=device)
    state = adam.state | {"history": history, "generator": generator.get_state(), **watch.also_kept}
    done = keeper.restore(state) if keeper else 0
    if done:
        generator.set_state(state["generator"])
    for epoch in range(done, ascent.epochs):
        if epoch and ascent.done(epoch) >= 1:
            break
        total.zero_()
        rate.fill_(ascent.rate_after(epoch))
        with tensor_cores(device):
            run(torch.rand(tuple(every_row), generator=generator, device=device).argsort(-1))
        if team:
            team.add_up([total])
        history[epoch] = total / every_row[-1]
        done = epoch + 1
        if ascent.time_limit is not None and device.type == "cuda":
            torch.cuda.synchronize(device)  # it runs behind what it was told
        watch.on_epoch(epoch)
        if keeper:
            keeper.keep(done, state | {"generator": generator.get_state()})
        if ascent.stalled(history[:done]):
            break
    return history[:done]


def each_batch(step: Callable[[Tensor], None], batch_size: int) -> Callable[[Tensor], None]:
    """An epoch: a step for each batch of the order of rows, (N,)."""

    def epoch(order: Tensor) -> None:
        for rows in torch.split(order, batch_size, dim=-1):
            step(rows)

    return epoch


def rate_share(done: float) -> float:
    """The share of the learning rate when this share of the epochs is done: up in a twentieth, then down as a cosine.

    >>> [round(rate_share(done), 2) for done in (0.0, 0.05, 0.5, 0.99)]
    [0.2, 0.99, 0.5, 0.0]
    """
    return min(0.2 + 16 * done, 0.5 + 0.5 * math.cos(math.pi * done))


class Adam:
    """Adam with torch's fused kernel; torch.optim loads a compiler first, which takes longer than many a fit.

    `weight_decay` is a number, or for each of M stacked networks its own, (M,).
    """

    BETAS = (0.9, 0.999)
    EPSILON = 1e-8

    def __init__(
        self, network: nn.Module, rate: Tensor, weight_decay: float | Tensor, team: Team | None = None
    ) -> None:
        self.team = team
        self.weights: list[Tensor] = [each for each in network.parameters() if each.numel()]
        self.rate, self.weight_decay = rate, weight_decay
        self.pieces = self._pieces([each.detach() for each in self.weights])
        self.means, self.squares = ([torch.zeros_like(each) for each in self.pieces] for _ in range(2))
        self.done = torch.zeros((), device=rate.device)  # steps

    @property
    def state(self) -> dict[str, Tensor]:
        """All that it needs to go on, the weights included."""
        kept = {"weight": self.pieces, "mean": self.means, "square": self.squares}
        return {f"{name}.{n}": each for name, tensors in kept.items() for n, each in enumerate(tensors)} | {
            "done": self.done
        }

    def step(self, gain: Tensor) -> None:
        """One step up."""
        # The kernel takes gradients to lie in memory as the weights do.
        gradients = [each.contiguous() for each in torch.autograd.grad(gain, self.weights)]
        rejoin(gain.device)
        if self.team:
            self.team.add_up(gradients)
        with torch.no_grad():
            if isinstance(self.weight_decay, Tensor):
                for gradient, weight in zip(gradients, self.weights, strict=True):
                    gradient.addcmul_(weight, self.weight_decay.view(-1, *[1] * (weight.dim() - 1)), value=-1)
            self.done.add_(1)
            torch._fused_adam_(
                self.pieces,
                self._pieces(gradients),
                self.means,
                self.squares,
                [],
                [self.done] * len(self.pieces),
                lr=self.rate,
                beta1=self.BETAS[0],
                beta2=self.BETAS[1],
                weight_decay=0.0 if isinstance(self.weight_decay, Tensor) else self.weight_decay,
                eps=self.EPSILON,
                amsgrad=False,
                maximize=True,
            )

    def _pieces(self, tensors: list[Tensor]) -> list[Tensor]:
        return [piece for each in tensors for piece in each.view(-1).split(PIECE[self.rate.device.type])]


class Captured:
    """Epochs on a GPU, where many steps are one CUDA graph: their small kernels start at once, not one by one.

    A graph finds its batches where they were when it was captured, so they are copied there. The first steps run as
    they are, to warm up; so do all, if they cannot be captured.
    """

    WARM_UP = 3  # steps
    TOGETHER = 32  # steps in a graph

    def __init__(self, step: Callable[[Tensor], None], batch_size: int, generator: Generator) -> None:
        self.step, self.batch_size, self.generator = step, batch_size, generator
        self.stream, self.side = torch.cuda.Stream(), torch.cuda.Stream()
        self.graphs: dict[tuple[int, ...], tuple[torch.cuda.CUDAGraph, Tensor]] = {}  # by steps and shape of a batch
        self.warm: set[int] = set()  # batch sizes that ran as they are
        self.possible = True

    def __call__(self, order: Tensor) -> None:
        SIDES[self.stream] = Side(self.side, [])
        try:
            self._epoch(order)
        finally:
            del SIDES[self.stream]

    def _epoch(self, order: Tensor) -> None:
        batches = torch.split(order, self.batch_size, dim=-1)
        whole = [batch for batch in batches if batch.shape == batches[0].shape]
        for alike in (whole, batches[len(whole) :]):
            cold = self.WARM_UP if alike and alike[0].shape[-1] not in self.warm else 0
            self.warm.update(batch.shape[-1] for batch in alike)
            self._plainly(alike[:cold])
            alike = alike[cold:]
            many = len(alike) // self.TOGETHER * self.TOGETHER
            for first in range(0, many, self.TOGETHER):
                self._replay(alike[first : first + self.TOGETHER])
            for batch in alike[many:]:
                self._replay([batch])

    def _replay(self, batches: Sequence[Tensor]) -> None:
        rows = torch.stack(list(batches))
        if self.possible and rows.shape not in self.graphs:
            self._capture(rows.clone())
        if not self.possible:
            return self._plainly(batches)
        graph, place = self.graphs[rows.shape]
        place.copy_(rows)
        return graph.replay()

    def _capture(self, place: Tensor) -> None:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        pool = next(iter(self.graphs.values()))[0].pool() if self.graphs else None
        try:
            # One at a time, and other threads may go on using the device.
            with CAPTURING, torch.cuda.graph(graph, pool, self.stream, capture_error_mode="thread_local"):
                for rows in place.unbind(0):
                    self.step(rows)
            self.graphs[place.shape] = graph, place
        except RuntimeError:  # no memory left, or something in a step that cannot be captured
            self.possible = False
            for waiting in (self.generator, torch.cuda.default_generators[torch.cuda.current_device()]):
                fresh = torch.Generator(waiting.device).manual_seed(waiting.initial_seed() + 1)
                waiting.graphsafe_set_state(fresh.graphsafe_get_state())  # else it waits for the capture's end

    def _plainly(self, batches: Sequence[Tensor]) -> None:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for rows in batches:
                self.step(rows)
        torch.cuda.current_stream().wait_stream(self.stream)


@contextmanager
def tensor_cores(device: torch.device) -> Iterator[None]:
    """On a GPU, products of float32 in TF32 meanwhile: 10 bits of each factor, which is enough to learn."""
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
