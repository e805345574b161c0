"""From a trained network to answers: clean probability, scores, and repair by MAP, one-stage, two-stage.

Everything here works on one chunk of rows; `in_chunks` walks a table. Shapes: B rows, D columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from cellmend.encoding import Cells
from cellmend.network import RVAE, clean_logit, elbo, sample_latent

ROUNDS = 5  # T of pseudo-Gibbs, as published
CLAMP = 1e-6  # of pi in row scores, as in the authors' code
CHUNK_NUMBERS = 2**24  # decoded numbers held at once, about 64 MB


@dataclass(frozen=True)
class Evidence:
    """What the network says of each cell, (B, D)."""

    log_clean: Tensor  # log p(x|z)
    logit: Tensor  # log odds that the cell is clean
    decoded: Tensor  # (B, all widths), parameters of the clean component
    drawn: Tensor  # the last x of one-stage; of no meaning with method "map"


@dataclass(frozen=True)
class Reconstruction:
    """Each row as the clean component sees it."""

    values: Tensor  # (B, D), in model units
    decoded: Tensor  # (B, all widths), the clean component's parameters behind them
    kept: Tensor  # (B, D) bool, cells held at their observed value


def in_chunks(network: RVAE, cells: Cells) -> Iterator[tuple[int, Cells]]:
    """First row and cells of pieces of the table that need bounded memory, on the network's device."""
    device = network.decoder_output.bias.device
    most_levels = max(network.embeddings.most_levels, 1)
    width = network.decoder_hidden.weight.shape[1] + cells.values.shape[1] * most_levels
    rows = max(1, CHUNK_NUMBERS // width)
    for first in range(0, len(cells), rows):
        yield first, cells[first : first + rows].to(device)


@torch.no_grad()
def judge(network: RVAE, cells: Cells, *, method: str, weights: str, alpha: float, generator: Generator) -> Evidence:
    """Is each cell clean? With method "map" z is the encoder's mean, else the last z of one-stage."""
    if method == "map":
        drawn, z = cells.values, network.encode(cells).mu
    else:
        drawn, z = pseudo_gibbs(network, cells, torch.zeros_like(cells.observed), generator)
    decoded = network.decode(z)
    log_clean = network.log_clean(cells, decoded)
    logit = clean_logit(log_clean, network.log_corrupted(cells), alpha=alpha)
    if weights == "amortized" and method == "map":
        logit = torch.where(cells.values.isfinite(), network.weight_logits(cells), logit)
    return Evidence(log_clean, logit, decoded, drawn)


@torch.no_grad()
def reconstruct(
    network: RVAE, cells: Cells, evidence: Evidence, *, method: str, generator: Generator
) -> Reconstruction:
    """Each row as the clean component sees it, from what `judge` said by the same method."""
    nothing = torch.zeros_like(cells.observed)
    if method == "map":
        return Reconstruction(network.mode(evidence.decoded), evidence.decoded, nothing)
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


@torch.no_grad()
def lower_bound(network: RVAE, cells: Cells, *, weights: str, alpha: float, generator: Generator) -> Tensor:
    """ELBO of each row at one sample of z, (B,)."""
    latent = network.encode(cells)
    z = sample_latent(latent, generator)
    return elbo(network, cells, z, latent, weights=weights, alpha=alpha)


def cell_nll(evidence: Evidence) -> Tensor:
    """-log p(x|z), (B, D)."""
    return -evidence.log_clean


def cell_pi(evidence: Evidence) -> Tensor:
    """-log pi, (B, D), from the logits so that nothing is cut off: a logit of -50 scores 50."""
    return F.softplus(-evidence.logit)


def cell_pi_clamped(evidence: Evidence) -> Tensor:
    """-log pi with pi held within [1e-6, 1 - 1e-6], so that one cell cannot outweigh its row, (B, D)."""
    furthest = math.log((1 - CLAMP) / CLAMP)
    return F.softplus(-evidence.logit.clamp(-furthest, furthest))


def suspicion(evidence: Evidence) -> Tensor:
    """1 - pi, (B, D)."""
    return (-evidence.logit).sigmoid()


@torch.no_grad()
def level_probabilities(network: RVAE, seen: Reconstruction) -> Iterator[tuple[int, Tensor]]:
    """Each coded column and the probability of its levels, (B, C); certainty where a cell was kept."""
    for span, probabilities in network.probabilities(seen.decoded):
        kept, levels = seen.kept[:, span, None], seen.values[:, span].long()
        certain = F.one_hot(levels, probabilities.shape[-1]).to(probabilities.dtype)
        yield from zip(
            range(span.start, span.stop), torch.where(kept, certain, probabilities).unbind(dim=1), strict=True
        )
