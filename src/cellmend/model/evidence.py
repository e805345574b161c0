"""What a network says of the cells of some rows, and a table walked through in pieces of bounded memory.

Of several networks stacked into one the mean probability counts. Shapes: B rows, D columns, M networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from cellmend.model.encoding import Cells
from cellmend.model.network import RVAE
from cellmend.posterior.priors import TOGETHER

CHUNK_NUMBERS = 2**22  # held at once by a thread, about 16 MB
PER_CELL = 16  # numbers, beside what is decoded
CUDA_CHUNKS = 32  # times as many on a GPU, whose many cores need more to do

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Evidence:
    """What the network says of each cell, (B, D); `decoded` has a leading M if M networks were asked."""

    log_clean: Tensor  # log p(x|z)
    log_corrupted: Tensor  # log p0(x)
    logit: Tensor  # log odds that the cell is clean, by the likeliest reading of the row
    decoded: Tensor  # (B, all widths), parameters of the clean component
    drawn: Tensor  # the last x of one-stage; of no meaning with other methods
    alone: Tensor  # log odds with only the cell itself hidden; with methods of the paper as `logit`
    readings: Tensor  # (R, B, D), log odds by each reading of the row; with methods of the paper one
    log_shares: Tensor  # (R, B), log probability of each reading; -inf where a row has fewer


@dataclass(frozen=True)
class Reconstruction:
    """Each row as the clean component sees it."""

    values: Tensor  # (B, D), in model units
    decoded: Tensor  # (B, all widths), the clean component's parameters behind them
    kept: Tensor  # (B, D) bool, cells held at their observed value

    def first(self, rows: int) -> Reconstruction:
        """Of the first so many rows."""
        return Reconstruction(self.values[:rows], self.decoded[..., :rows, :], self.kept[:rows])


def in_chunks(network: RVAE, cells: Cells) -> Iterator[tuple[int, Cells]]:
    """First row and cells of pieces of the table that need bounded memory, on the network's device.

    All pieces have whole multiples of TOGETHER rows, if the table has.
    """
    bias = network.decoder_output.bias
    columns, most_levels = cells.values.shape[1], max(network.embeddings.most_levels, 1)
    numbers = network.decoder_hidden.weight.shape[-1] + columns * (most_levels + PER_CELL)
    most = CHUNK_NUMBERS * (CUDA_CHUNKS if bias.device.type == "cuda" else 1)
    rows = max(1, most // (how_many(network) * numbers) // TOGETHER) * TOGETHER
    for first in range(0, len(cells), rows):
        yield first, cells[first : first + rows].to(bias.device)


def each_chunk(network: RVAE, cells: Cells, answer: Callable[[int, Cells], Answer]) -> Iterator[Answer]:
    """What `answer` says of each chunk of the table, by its first row and its cells, in their order.

    On a processor every chunk has a thread to itself: so nothing waits for anything, and a row's last digits do not
    depend on how many threads there are.
    """
    if network.decoder_output.bias.device.type != "cpu":
        yield from (answer(first, chunk) for first, chunk in in_chunks(network, cells))
        return
    pool = ThreadPoolExecutor(torch.get_num_threads())
    with threads(1):
        try:
            yield from pool.map(lambda chunk: answer(*chunk), in_chunks(network, cells))
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Work with so many threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def filled_up(rows: Tensor) -> Tensor:
    """Row numbers (n,) with the last one again and again, to a multiple of TOGETHER.

    A row's last digits would else depend on how many others stand beside it.

    >>> len(filled_up(torch.arange(3))), len(filled_up(torch.arange(32)))
    (32, 32)
    """
    return torch.cat([rows, rows[-1:].expand(-len(rows) % TOGETHER)])


# ---------------------------------------------------------------- several networks as one


def how_many(network: RVAE) -> int:
    """Networks that are stacked in this one."""
    bias = network.decoder_output.bias
    return len(bias) if bias.dim() == 2 else 1


def for_each_network(network: RVAE, cells: Cells) -> Cells:
    """Cells (B, D) for each of M stacked networks, (M, B, D); as they are if the network is a single one."""
    if network.decoder_output.bias.dim() == 1:
        return cells
    return Cells(*(each.expand(how_many(network), *each.shape) for each in (cells.values, cells.observed)))


def over_networks(log_probability: Tensor) -> Tensor:
    """Log of the mean probability by M networks, (M, B, D) to (B, D); of a single one (B, D) as it is."""
    if log_probability.dim() == 2:
        return log_probability
    return log_probability.logsumexp(0) - math.log(len(log_probability))


def best(network: RVAE, decoded: Tensor) -> Tensor:
    """The best single value of each cell, (B, D): of several networks the mean, or the level of the most."""
    if decoded.dim() == 2:
        return network.best(decoded)
    values = network.best(decoded).mean(0)
    for span, probabilities in network.probabilities(decoded):
        values[:, span] = probabilities.mean(0).argmax(-1).to(values.dtype)
    return values


def probabilities_of(network: RVAE, decoded: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """For each coded kind its columns and the probability of every level, (B, D_k, C), mean of the networks."""
    for span, probabilities in network.probabilities(decoded):
        yield span, probabilities.mean(0) if probabilities.dim() == 4 else probabilities


@torch.no_grad()
def level_probabilities(network: RVAE, seen: Reconstruction) -> Iterator[tuple[int, Tensor]]:
    """Each coded column and the probability of its levels, (B, C); certainty where a cell was kept."""
    for span, probabilities in probabilities_of(network, seen.decoded):
        kept, levels = seen.kept[:, span, None], seen.values[:, span].long()
        certain = F.one_hot(levels, probabilities.shape[-1]).to(probabilities.dtype)
        yield from zip(
            range(span.start, span.stop), torch.where(kept, certain, probabilities).unbind(dim=1), strict=True
        )
