"""From a trained network to answers: clean probability, scores, and repair by MAP, one-stage, two-stage.

Everything here works on one chunk of rows; `in_chunks` walks a table. Shapes: B rows, D columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor

from cellmend.encoding import Cells
from cellmend.network import RVAE, clean_logit, elbo, sample_latent

HIDING_ROUNDS = 6  # cells of a row that can be hidden because they look wrong
ROUNDS = 5  # T of pseudo-Gibbs, as published
CLAMP = 1e-6  # of pi in row scores, as in the authors' code
EM_ROUNDS = 40
START = (0.1, 0.2)  # of dirty rows, and of wrong cells in them
RARE_SHARE = 0.02  # of clean cells that are rare
RARE_POWER = 0.2  # how much the evidence against a rare cell counts
MOST_WRONG = 0.5  # of the cells of a dirty row
LOG_ODDS_IMPOSSIBLE = 100.0  # that a value which its column cannot hold is wrong
CHUNK_NUMBERS = 2**24  # decoded numbers held at once, about 64 MB


@dataclass(frozen=True)
class Evidence:
    """What the network says of each cell, (B, D); `decoded` has a leading M if M networks were asked."""

    log_clean: Tensor  # log p(x|z)
    logit: Tensor  # log odds that the cell is clean
    alone: Tensor  # the same with only the cell itself hidden; with methods of the paper as `logit`
    decoded: Tensor  # (B, all widths), parameters of the clean component
    drawn: Tensor  # the last x of one-stage; of no meaning with other methods


@dataclass(frozen=True)
class Reconstruction:
    """Each row as the clean component sees it."""

    values: Tensor  # (B, D), in model units
    decoded: Tensor  # (B, all widths), the clean component's parameters behind them
    kept: Tensor  # (B, D) bool, cells held at their observed value


def in_chunks(network: RVAE, cells: Cells) -> Iterator[tuple[int, Cells]]:
    """First row and cells of pieces of the table that need bounded memory, on the network's device."""
    bias = network.decoder_output.bias
    columns, most_levels = cells.values.shape[1], max(network.embeddings.most_levels, 1)
    hidden = network.decoder_hidden.weight.shape[-1] * (columns if network.masked else 1)
    networks = len(bias) if bias.dim() == 2 else 1
    rows = max(1, CHUNK_NUMBERS // (networks * (hidden + columns * most_levels)))
    for first in range(0, len(cells), rows):
        yield first, cells[first : first + rows].to(bias.device)


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
    logit = clean_logit(log_clean, network.log_corrupted(cells), alpha=alpha)
    if weights == "amortized" and method == "map":
        logit = torch.where(cells.values.isfinite(), network.weight_logits(cells), logit)
    return Evidence(log_clean, logit, logit, decoded, drawn)


def judge_hidden(network: RVAE, cells: Cells, *, alpha: float) -> Evidence:
    """Each cell by a row in which it is hidden, and so are, one after the other, the cells that look wrong.

    The worst of a row is hidden first and the rest judged anew: a gross error makes its neighbours look wrong too,
    and hiding them all at once could leave the error in the majority.
    """
    log_corrupted = network.log_corrupted(cells)
    shown = cells.observed
    decoded, log_clean = _decode_hidden(network, cells, shown)
    alone = logit = clean_logit(log_clean, log_corrupted, alpha=alpha)
    for _ in range(HIDING_ROUNDS):
        of_shown = torch.where(shown, logit, torch.inf)
        worst = F.one_hot(of_shown.argmin(-1), shown.shape[-1]).bool() & (of_shown < 0)
        rows = worst.any(-1).nonzero().squeeze(-1)  # of the others nothing new would be said
        shown = shown & ~worst
        again, log_clean[rows] = _decode_hidden(network, cells[rows], shown[rows])
        decoded[..., rows, :] = again
        logit = clean_logit(log_clean, log_corrupted, alpha=alpha)
    return Evidence(log_clean, logit, alone, decoded, cells.values)


def _decode_hidden(network: RVAE, cells: Cells, shown: Tensor) -> tuple[Tensor, Tensor]:
    """What is decoded for each cell when it is hidden, and log p of each cell by it, (B, D)."""
    values, shown = for_each_network(network, cells.values), for_each_network(network, shown)
    decoded = network.decode_hidden(Cells(values, shown))
    return decoded, over_networks(network.log_clean(Cells(values, shown), decoded))


def for_each_network(network: RVAE, cells: Tensor) -> Tensor:
    """(B, D) for each of M stacked networks, (M, B, D); for a single one as it is."""
    bias = network.decoder_output.bias
    return cells.expand(len(bias), *cells.shape) if bias.dim() == 2 else cells


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
    return elbo(network, cells, z, latent, weights=weights, alpha=alpha, kl_weight=kl_weight)


def log_hidden(evidence: Evidence, cells: Cells, *, alpha: float) -> Tensor:
    """Log probability of each row's cells, each hidden in turn, by both explanations together, (B,)."""
    log_corrupted = evidence.log_clean - evidence.logit + log_odds(alpha)
    both = torch.logaddexp(evidence.log_clean + math.log(alpha), log_corrupted + math.log1p(-alpha))
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


# ---------------------------------------------------------------- errors come in rows


@dataclass(frozen=True)
class ErrorRates:
    """A share of the rows is dirty, and in those a share of the cells is wrong; of the other cells some are rare.

    With rows = 1 and rare = 0 every cell stands for itself, as in the paper: alpha is then 1 - cells.
    """

    rows: float
    cells: float
    rare: float


def temper(ratio: Tensor, rare: float) -> Tensor:
    """ratio = log p - log p0 when a share of the clean cells is rare: for those it counts but a fifth, (B, D).

    No network knows every natural oddity. Without this, each would be an error for sure.
    """
    if not rare:
        return ratio
    return torch.logaddexp(ratio + math.log1p(-rare), RARE_POWER * ratio + math.log(rare))


def wrong_log_odds(own: Tensor, row: Tensor, observed: Tensor, rates: ErrorRates) -> Tensor:
    """Log odds that each cell is wrong, (B, D), from the tempered ratios log p - log p0 of the cells, (B, D).

    `own` speaks for the cell itself, `row` for what its neighbours say of the row: beside an obvious error a
    doubtful cell is more suspicious.
    """
    clean, wrong = math.log1p(-rates.cells), math.log(rates.cells)
    each = torch.where(observed, torch.logaddexp(torch.full_like(row, clean), wrong - row), 0.0)
    dirty = _log(rates.rows) + each.sum(-1, keepdim=True) - each  # the row is dirty, by its other cells
    return dirty + wrong - own - torch.logaddexp(dirty + clean, torch.full_like(own, _log(1 - rates.rows)))


def estimate_rates(ratio: Tensor, observed: Tensor, *, rare: float) -> ErrorRates:
    """The rates that make a table most likely, by EM; ratio = log p - log p0 and observed are (N, D).

    A dirty row has at least one wrong cell. One more dirty row is counted than is seen: in a small table none
    may be seen by chance.
    """
    rows, columns = ratio.shape
    rates = ErrorRates(*START, rare)
    ratio = temper(ratio, rare)
    for _ in range(EM_ROUNDS):
        wrong = torch.where(observed, wrong_log_odds(ratio, ratio, observed, rates).sigmoid(), 0.0).sum()
        dirty = dirty_log_odds(ratio, observed, rates).sigmoid()
        cells = (dirty * observed.sum(-1)).sum().clamp_min(1e-6)  # of dirty rows
        share_of_rows = float(dirty.sum() + 1) / (rows + 2)
        share_of_cells = min(max(float(wrong / cells), 1 / (columns + 1)), MOST_WRONG)
        rates = ErrorRates(share_of_rows, share_of_cells, rare)
    return rates


def dirty_log_odds(ratio: Tensor, observed: Tensor, rates: ErrorRates) -> Tensor:
    """Log odds that each row is dirty, (B,), from tempered ratios (B, D)."""
    clean = torch.full_like(ratio, math.log1p(-rates.cells))
    each = torch.where(observed, torch.logaddexp(clean, math.log(rates.cells) - ratio), 0.0)
    return each.sum(-1) + _log(rates.rows) - _log(1 - rates.rows)


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf


def wrong_by(evidence: Evidence, cells: Cells, *, rates: ErrorRates, alpha: float) -> Tensor:
    """Log odds that each cell is wrong, (B, D); `alpha` is what the evidence was judged with."""
    # In double precision, or a row's last digits would depend on where it stands among the others.
    own, row = (temper(logit.double() - log_odds(alpha), rates.rare) for logit in (evidence.logit, evidence.alone))
    odds = wrong_log_odds(own, row, cells.observed, rates)
    return torch.where(cells.values.isfinite(), odds, LOG_ODDS_IMPOSSIBLE)


def expected_errors(evidence: Evidence, cells: Cells, *, rates: ErrorRates, alpha: float) -> Tensor:
    """Probability that each cell is wrong when no other is hidden, (B, D): summed, the wrong cells of a row.

    To tell dirty rows it is better than the suspicion of the last round: there the cells that look wrong no
    longer witness against each other.
    """
    row = temper(evidence.alone.double() - log_odds(alpha), rates.rare)
    return wrong_log_odds(row, row, cells.observed, rates).sigmoid()


def log_odds(share: float) -> float:
    """log(share / (1 - share))."""
    return math.log(share) - math.log1p(-share)


# ---------------------------------------------------------------- which cells to flag


def fdr_cutoff(suspicion: NDArray[np.float64], fdr: float) -> float:
    """The least suspicion such that of the cells from it on at most the share `fdr` is expected to be clean.

    >>> fdr_cutoff(np.array([0.99, 0.95, 0.8, 0.3]), 0.1)
    0.8
    >>> fdr_cutoff(np.array([0.5]), 0.1)
    inf
    """
    levels, counts = np.unique(suspicion, return_counts=True)
    levels, counts = levels[::-1], counts[::-1]
    clean = np.cumsum(counts * (1 - levels)) / np.cumsum(counts)  # rises
    allowed = np.searchsorted(clean, fdr + 1e-12, side="right")
    return float(levels[allowed - 1]) if allowed else math.inf


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
