"""Judging with each cell hidden: what the rest of its row expects of a cell, cells that look wrong hidden as well."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from cellmend.model.encoding import Cells
from cellmend.model.evidence import Evidence, each_chunk, filled_up, for_each_network, over_networks
from cellmend.model.network import RVAE, Alpha, clean_logit

READINGS = 4  # ways to read a row: which of the cells that look wrong is hidden first
HIDING_ROUNDS = 6  # cells of a row that can be hidden because they look wrong
SWEEPS = 20  # over imagined rows
DRAWN_ANEW = 0.3  # of their cells in a sweep: after six times each, rows are far from the start
CHANCE_POWER = 0.75  # of the frequency of levels drawn by chance; 0 all alike, 1 as frequent as they are
IMAGINED_AT_ONCE = 1024  # rows


def judge_hidden(network: RVAE, cells: Cells, *, alpha: Alpha) -> Evidence:
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
    network: RVAE, cells: Cells, first: Tensor, log_corrupted: Tensor, *, alpha: Alpha
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


def hidden_ratios(network: RVAE, cells: Cells) -> tuple[Tensor, Tensor]:
    """log p - log p0 of each cell with only itself hidden, and of a value drawn by chance in its place, both (N, D).

    Of several networks the mean p counts. A number is drawn from p0, a level as `levels_by_chance` draws it."""
    generator = torch.Generator().manual_seed(0)
    uniform = torch.rand(cells.values.shape, generator=generator, dtype=torch.float64).to(cells.values.device)
    coded = network.coded.nonzero().squeeze(-1).to(cells.values.device)
    known = cells.known[:, coded]
    levels = levels_by_chance(cells.values[:, coded].nan_to_num().long(), known, uniform[:, coded])

    @torch.no_grad()
    def ratios(first: int, piece: Cells) -> tuple[Tensor, Tensor]:
        decoded, log_clean = _decode_hidden(network, piece, piece.observed)
        rows = slice(first, first + len(piece))
        values = network.chance(uniform[rows])
        values[:, coded] = levels[rows].double()
        drawn = Cells(values, torch.ones_like(piece.observed))
        by_chance = over_networks(network.log_clean(for_each_network(network, drawn), decoded.double()))
        return log_clean - network.log_corrupted(_exact(piece)), by_chance - network.log_corrupted(drawn)

    own, by_chance = zip(*each_chunk(network, cells, ratios), strict=True)
    return torch.cat(own), torch.cat(by_chance)


def levels_by_chance(levels: Tensor, known: Tensor, uniform: Tensor) -> Tensor:
    """Levels drawn from those of each column, both (N, D), by uniform draws (B, D): the power CHANCE_POWER of how
    frequent they are says how often, for wrong levels are neither all alike nor as frequent as right ones.

    >>> levels = torch.tensor([[0], [0], [0], [0], [1]])
    >>> drawn = levels_by_chance(levels, levels >= 0, torch.linspace(0, 0.9999, 3000).double()[:, None])
    >>> drawn.float().mean().round(decimals=2)  # 4 to that power, and 1
    tensor(0.2600)
    """
    if not levels.numel():
        return levels
    counts = uniform.new_zeros(levels.shape[1], int(levels.max()) + 1)  # (D, C)
    counts.scatter_add_(1, levels.T, known.T.to(counts.dtype))
    weights = known.T / counts.gather(1, levels.T).clamp_min(1) ** (1 - CHANCE_POWER)  # (D, N)
    at_most = weights.cumsum(1)
    chosen = torch.searchsorted(at_most, (uniform.T * at_most[:, -1:]).contiguous(), right=True)
    return levels.T.gather(1, chosen.clamp_max(len(levels) - 1)).T


def log_hidden(evidence: Evidence, cells: Cells, *, alpha: float) -> Tensor:
    """Log probability of each row's cells, each hidden in turn, by both explanations together, (B,)."""
    both = torch.logaddexp(evidence.log_clean + math.log(alpha), evidence.log_corrupted + math.log1p(-alpha))
    return torch.where(cells.observed, both, 0.0).sum(-1)


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
