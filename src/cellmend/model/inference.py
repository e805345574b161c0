"""From a trained network to answers: clean probability, scores, and repair by MAP, one-stage, two-stage.

Everything here works on one chunk of rows; `in_chunks` walks a table. Shapes: B rows, D columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from cellmend.model.encoding import Cells
from cellmend.model.network import LOG_IMPOSSIBLE, RVAE, clean_logit, elbo, rows_of, sample_latent

READINGS = 4  # ways to read a row: which of the cells that look wrong is hidden first
HIDING_ROUNDS = 6  # cells of a row that can be hidden because they look wrong
ROUNDS = 5  # T of pseudo-Gibbs, as published
CLAMP = 1e-6  # of pi in row scores, as in the authors' code
CHUNK_NUMBERS = 2**22  # held at once by a thread, about 16 MB
PER_CELL = 4 * READINGS  # numbers, beside what is decoded
CUDA_CHUNKS = 32  # times as many on a GPU, whose many cores need more to do
SWEEPS, DRAWN_ANEW = (
    20,
    0.3,
)  # of imagined rows: how often, and the share of cells; six times each is far from the start
IMAGINED_AT_ONCE = 1024  # rows
TOGETHER = 32  # rows are judged by multiples of these: processors treat the last few otherwise than the others


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

    def first(self, rows: int) -> Evidence:
        """Of the first so many rows."""
        return Evidence(
            self.log_clean[:rows],
            self.log_corrupted[:rows],
            self.logit[:rows],
            self.decoded[..., :rows, :],
            self.drawn[:rows],
            self.alone[:rows],
            self.readings[:, :rows],
            self.log_shares[:, :rows],
        )


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
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(threads)
    try:
        yield from pool.map(lambda chunk: answer(*chunk), in_chunks(network, cells))
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def filled_up(rows: Tensor) -> Tensor:
    """Row numbers (n,) with the last one again and again, to a multiple of TOGETHER.

    A row's last digits would else depend on how many others stand beside it.

    >>> len(filled_up(torch.arange(3))), len(filled_up(torch.arange(32)))
    (32, 32)
    """
    return torch.cat([rows, rows[-1:].expand(-len(rows) % TOGETHER)])


@torch.no_grad()
def judge(network: RVAE, cells: Cells, *, method: str, weights: str, alpha: float, generator: Generator) -> Evidence:
    """Is each cell clean? By the encoder's mean ("map"), the last z of one-stage, or with the cell hidden."""
    if method == "hidden":
        return judge_hidden(network, cells, alpha=alpha)
    if method == "map":
        drawn, z = cells.values, network.encode(cells).mu
    else:
        drawn, z = pseudo_gibbs(network, cells, torch.zeros_like(cells.observed), generator)
    decoded = network.decode(z)
    log_clean = network.log_clean(cells, decoded)
    log_corrupted = network.log_corrupted(cells)
    logit = clean_logit(log_clean, log_corrupted, alpha=alpha)
    if weights == "amortized" and method == "map":
        logit = torch.where(cells.values.isfinite(), network.weight_logits(network.inputs(cells)), logit)
    one, certain = logit.unsqueeze(0), logit.new_zeros(1, len(logit))
    return Evidence(log_clean, log_corrupted, logit, decoded, drawn, logit, one, certain)


def judge_hidden(network: RVAE, cells: Cells, *, alpha: float) -> Evidence:
    """Each cell by a row in which it is hidden, and so are, one after the other, the cells that look wrong.

    Of two cells that contradict each other either may be the wrong one. So a row is read in several ways: hidden
    first is the cell that looks worst, or second worst, and so on.
    """
    log_corrupted = network.log_corrupted(_exact(cells))
    decoded, log_clean = _decode_hidden(network, cells, cells.observed)
    alone = clean_logit(log_clean, log_corrupted, alpha=alpha)
    looks = torch.where(cells.observed, alone, torch.inf)
    worst_first = looks.argsort(-1)
    readings = alone.repeat(min(READINGS, looks.shape[-1]), 1, 1)
    fits = alone.new_full(readings.shape[:-1], -torch.inf)  # log probability of the row by each reading
    fits[0] = 0.0  # of rows in which nothing looks wrong: they have one reading
    for place in range(len(readings)):
        first = F.one_hot(worst_first[:, place], looks.shape[-1]).bool() & (looks < 0)
        rows = filled_up(first.any(-1).nonzero().squeeze(-1))
        if len(rows) == 0:
            break
        observed = cells.observed[rows]
        again, clean = _hide_wrong(network, cells[rows], first[rows], log_corrupted[rows], alpha=alpha)
        logit = readings[place, rows] = clean_logit(clean, log_corrupted[rows], alpha=alpha)
        # log(alpha p + (1 - alpha) p0) but for log((1 - alpha) p0), which is the same in all readings.
        fit = torch.where(observed, F.softplus(logit), 0.0).sum(-1)
        likeliest = fit > fits[:place, rows].amax(0) if place else observed.any(-1)
        decoded[..., rows[likeliest], :], log_clean[rows[likeliest]] = again[..., likeliest, :], clean[likeliest]
        same_cells = ((readings[:place, rows] < 0) == (logit < 0)) | ~observed
        fits[place, rows] = torch.where(same_cells.all(-1).any(0), -torch.inf, fit)  # the same reading counts once
    logit = clean_logit(log_clean, log_corrupted, alpha=alpha)
    return Evidence(log_clean, log_corrupted, logit, decoded, cells.values, alone, readings, fits.log_softmax(0))


def _hide_wrong(
    network: RVAE, cells: Cells, first: Tensor, log_corrupted: Tensor, *, alpha: float
) -> tuple[Tensor, Tensor]:
    """Hide the cells `first` (B, D), then the worst of each row again and again while one looks wrong.

    One after the other: a gross error makes its neighbours look wrong too, and hiding them all at once could leave
    the error in the majority. Returns what is decoded for each cell, and log p of each cell by it.
    """
    shown = cells.observed & ~first
    decoded, log_clean = _decode_hidden(network, cells, shown)
    for _ in range(HIDING_ROUNDS - 1):
        of_shown = torch.where(shown, clean_logit(log_clean, log_corrupted, alpha=alpha), torch.inf)
        worst = F.one_hot(of_shown.argmin(-1), shown.shape[-1]).bool() & (of_shown < 0)
        rows = filled_up(worst.any(-1).nonzero().squeeze(-1))  # of the others nothing new would be said
        if len(rows) == 0:
            break
        shown = shown & ~worst
        decoded[..., rows, :], log_clean[rows] = _decode_hidden(network, cells[rows], shown[rows])
    return decoded, log_clean


def hidden_ratio(network: RVAE, cells: Cells) -> Tensor:
    """log p - log p0 of each cell with only itself hidden, (N, D), of several networks by their mean p."""

    def ratio(first: int, piece: Cells) -> Tensor:
        return _decode_hidden(network, piece, piece.observed)[1] - network.log_corrupted(_exact(piece))

    return torch.cat(list(each_chunk(network, cells, ratio)))


@torch.no_grad()
def imagine(network: RVAE, start: Tensor, generator: Generator) -> Tensor:
    """Rows such as the network knows them, (N, D), from rows of values that have nothing to do with each other.

    Again and again some cells are drawn anew, each by what the rest of its row says (Gibbs sampling). Of several
    networks one after the other is asked.
    """
    rows, everywhere = start.clone(), torch.ones_like(start, dtype=torch.bool)
    for sweep in range(SWEEPS):
        for first in range(0, len(rows), IMAGINED_AT_ONCE):
            piece = slice(first, first + IMAGINED_AT_ONCE)
            shown = for_each_network(network, Cells(rows[piece], everywhere[piece]))
            drawn = network.sample(network.decode_hidden(shown), generator)
            drawn = drawn if drawn.dim() == 2 else drawn[sweep % len(drawn)]
            anew = torch.rand(drawn.shape, generator=generator, device=drawn.device) < DRAWN_ANEW
            rows[piece] = torch.where(anew, drawn, rows[piece])
    return rows


@torch.no_grad()
def _decode_hidden(network: RVAE, cells: Cells, shown: Tensor) -> tuple[Tensor, Tensor]:
    """What is decoded for each cell when it is hidden, and log p of each cell by it, (B, D)."""
    asked = for_each_network(network, Cells(cells.values, shown))
    decoded = network.decode_hidden(asked)
    return decoded, over_networks(network.log_clean(_exact(asked), decoded.double()))


def _exact(cells: Cells) -> Cells:
    """In double precision: of single numbers torch takes the last few of a tensor otherwise than the rest, and a row's
    last digits would depend on where it stands among the others."""
    return Cells(cells.values.double(), cells.observed)


def how_many(network: RVAE) -> int:
    """Networks that are stacked in this one."""
    bias = network.decoder_output.bias
    return len(bias) if bias.dim() == 2 else 1


def for_each_network(network: RVAE, cells: Cells) -> Cells:
    """Cells (B, D) for each of M stacked networks, (M, B, D); as they are if the network is a single one."""
    networks = how_many(network)
    if networks == 1 and network.decoder_output.bias.dim() == 1:
        return cells
    return Cells(*(each.expand(networks, *each.shape) for each in (cells.values, cells.observed)))


def over_networks(log_probability: Tensor) -> Tensor:
    """Log of the mean probability by M networks, (M, B, D) to (B, D); of a single one (B, D) as it is."""
    if log_probability.dim() == 2:
        return log_probability
    return log_probability.logsumexp(0) - math.log(len(log_probability))


@torch.no_grad()
def reconstruct(
    network: RVAE, cells: Cells, evidence: Evidence, *, method: str, generator: Generator
) -> Reconstruction:
    """Each row as the clean component sees it, from what `judge` said by the same method."""
    nothing = torch.zeros_like(cells.observed)
    if method in ("map", "hidden"):
        return Reconstruction(best(network, evidence.decoded), evidence.decoded, nothing)
    if method == "one-stage":
        return Reconstruction(evidence.drawn, evidence.decoded, nothing)
    # Two-stage: draw which cells are clean, hold those, and go over the rest again.
    draw = torch.rand(evidence.logit.shape, generator=generator, device=evidence.logit.device)
    kept = cells.observed & cells.values.isfinite() & (draw < evidence.logit.sigmoid())
    start = Cells(cells.values, kept)  # a cell not kept enters as the column's average
    values, z = pseudo_gibbs(network, start, kept, generator)
    return Reconstruction(values, network.decode(z), kept)


def pseudo_gibbs(network: RVAE, cells: Cells, kept: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """z ~ q(z|x), x ~ p(x|z), ROUNDS times, with the cells `kept` (B, D) held.

    Returns the last x (B, D) and the last z (B, K).
    """
    state = cells
    for _ in range(ROUNDS):
        z = sample_latent(network.encode(state), generator)
        sampled = network.sample(network.decode(z), generator)
        state = Cells(torch.where(kept, cells.values, sampled), torch.ones_like(kept))
    return state.values, z


def best(network: RVAE, decoded: Tensor) -> Tensor:
    """The best single value of each cell, (B, D): of several networks the mean, or the level of the most."""
    if decoded.dim() == 2:
        return network.best(decoded)
    values = network.best(decoded).mean(0)
    for span, probabilities in network.probabilities(decoded):
        values[:, span] = probabilities.mean(0).argmax(-1).to(values.dtype)
    return values


@torch.no_grad()
def lower_bound(
    network: RVAE, cells: Cells, *, weights: str, alpha: float, kl_weight: float, generator: Generator
) -> Tensor:
    """ELBO of each row at one sample of z, (B,)."""
    latent = network.encode(cells)
    z = sample_latent(latent, generator) if kl_weight else latent.mu  # as in training
    rows = rows_of(network, cells, alpha=alpha)
    bound = elbo(network, rows, z, latent, weights=weights, alpha=alpha, kl_weight=kl_weight)
    impossible = (cells.observed & ~cells.values.isfinite()).sum(-1)
    return bound + impossible * (LOG_IMPOSSIBLE if weights == "none" else math.log1p(-alpha))


def log_hidden(evidence: Evidence, cells: Cells, *, alpha: float) -> Tensor:
    """Log probability of each row's cells, each hidden in turn, by both explanations together, (B,)."""
    both = torch.logaddexp(evidence.log_clean + math.log(alpha), evidence.log_corrupted + math.log1p(-alpha))
    return torch.where(cells.observed, both, 0.0).sum(-1)


def cell_nll(evidence: Evidence, cells: Cells) -> Tensor:
    """-log p(x|z), (B, D)."""
    return -evidence.log_clean


def cell_pi(evidence: Evidence, cells: Cells) -> Tensor:
    """-log pi, (B, D), from the logits so that nothing is cut off: a logit of -50 scores 50."""
    return F.softplus(-evidence.logit)


def cell_pi_clamped(evidence: Evidence, cells: Cells) -> Tensor:
    """-log pi with pi held within [1e-6, 1 - 1e-6], so that one cell cannot outweigh its row, (B, D)."""
    furthest = math.log((1 - CLAMP) / CLAMP)
    return F.softplus(-evidence.logit.clamp(-furthest, furthest))


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
