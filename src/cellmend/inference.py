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

METHODS = ("map", "one-stage", "two-stage")
ROUNDS = 5  # T of pseudo-Gibbs, as published
CLAMP = 1e-6  # of pi in row scores, as in the authors' code
CHUNK_NUMBERS = 2**24  # decoded numbers held at once, about 64 MB


@dataclass(frozen=True)
class Evidence:
    """What the network says of each cell, both (B, D)."""

    log_clean: Tensor  # log p(x|z)
    logit: Tensor  # log odds that the cell is clean


@dataclass(frozen=True)
class Reconstruction:
    """Each row as the clean component sees it."""

    values: Tensor  # (B, D), in model units
    decoded: Tensor  # (B, all widths), the clean component's parameters behind them
    kept: Tensor  # (B, D) bool, cells held at their observed value


def in_chunks(network: RVAE, cells: Cells) -> Iterator[Cells]:
    """Rows of the table in pieces of bounded memory, on the network's device."""
    device = network.decoder_output.bias.device
    most_levels = max(network.embeddings.most_levels, 1)
    width = network.decoder_hidden.weight.shape[1] + cells.values.shape[1] * most_levels
    rows = max(1, CHUNK_NUMBERS // width)
    for start in range(0, len(cells), rows):
        yield cells[start : start + rows].to(device)


@torch.no_grad()
def judge(network: RVAE, cells: Cells, *, method: str, weights: str, alpha: float, generator: Generator) -> Evidence:
    """Is each cell clean? With method "map" z is the encoder's mean, else the last z of one-stage."""
    if method == "map":
        z = network.encode(cells).mu
    else:
        _, z = pseudo_gibbs(network, cells, torch.zeros_like(cells.observed), generator)
    log_clean = network.log_clean(cells, network.decode(z))
    logit = clean_logit(log_clean, network.log_corrupted(cells), alpha=alpha)
    if weights == "amortized" and method == "map":
        logit = torch.where(cells.values.isfinite(), network.weight_logits(cells), logit)
    return Evidence(log_clean, logit)


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
    """-log pi, (B, D), from the logits so that nothing is cut off.

    >>> cell_pi(Evidence(torch.zeros(1, 1), torch.tensor([[-50.0]])))
    tensor([[50.]])
    """
    return F.softplus(-evidence.logit)


def cell_pi_clamped(evidence: Evidence) -> Tensor:
    """-log pi with pi held within [1e-6, 1 - 1e-6], so that one cell cannot outweigh its row; (B, D).

    >>> cell_pi_clamped(Evidence(torch.zeros(1, 1), torch.tensor([[-50.0]])))
    tensor([[13.8155]])
    """
    furthest = math.log((1 - CLAMP) / CLAMP)
    return F.softplus(-evidence.logit.clamp(-furthest, furthest))


@torch.no_grad()
def reconstruct(network: RVAE, cells: Cells, *, method: str, alpha: float, generator: Generator) -> Reconstruction:
    """Each row as the clean component sees it, by one of METHODS."""
    if method == "two-stage":
        return _two_stage(network, cells, alpha=alpha, generator=generator)
    nothing = torch.zeros_like(cells.observed)
    if method == "one-stage":
        values, z = pseudo_gibbs(network, cells, nothing, generator)
        return Reconstruction(values, network.decode(z), nothing)
    decoded = network.decode(network.encode(cells).mu)
    return Reconstruction(network.mode(decoded), decoded, nothing)


def _two_stage(network: RVAE, cells: Cells, *, alpha: float, generator: Generator) -> Reconstruction:
    """Draw which cells are clean by one-stage's pi, hold those, pseudo-Gibbs over the rest."""
    logit = judge(network, cells, method="one-stage", weights="coordinate", alpha=alpha, generator=generator).logit
    draw = torch.rand(logit.shape, generator=generator, device=logit.device)
    kept = cells.observed & (draw < logit.sigmoid())
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
def level_probabilities(network: RVAE, seen: Reconstruction) -> Iterator[tuple[int, Tensor]]:
    """Each coded column and the probability of its levels, (B, C); certainty where a cell was kept."""
    for span, probabilities in network.probabilities(seen.decoded):
        kept, levels = seen.kept[:, span, None], seen.values[:, span].long()
        certain = F.one_hot(levels, probabilities.shape[-1]).to(probabilities.dtype)
        yield from zip(
            range(span.start, span.stop), torch.where(kept, certain, probabilities).unbind(dim=1), strict=True
        )
