"""Judging and repairing as published: by MAP, one-stage or two-stage, from whole rows."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from cellmend.model.encoding import Cells
from cellmend.model.evidence import Evidence, Reconstruction, best
from cellmend.model.network import LOG_IMPOSSIBLE, RVAE, Bound, clean_logit, elbo, log_share, rows_of, sample_latent

ROUNDS = 5  # T of pseudo-Gibbs, as published
CLAMP = 1e-6  # of pi in row scores, as in the authors' code


@torch.no_grad()
def judge_whole_rows(
    network: RVAE, cells: Cells, method: str, generator: Generator, *, weights: str, alpha: float
) -> Evidence:
    """Is each cell clean? By the encoder's mean ("map"), or by the last z of one-stage."""
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


@torch.no_grad()
def reconstruct(
    network: RVAE, cells: Cells, evidence: Evidence, *, method: str, generator: Generator
) -> Reconstruction:
    """Each row as the clean component sees it, from what was judged by the same method."""
    nothing = torch.zeros_like(cells.observed)
    if method in ("map", "hidden"):
        return Reconstruction(best(network, evidence.decoded), evidence.decoded, nothing)
    if method == "one-stage":
        return Reconstruction(evidence.drawn, evidence.decoded, nothing)
    # Two-stage: draw which cells are clean, hold those, and go over the rest again.
    draw = torch.rand(evidence.logit.shape, generator=generator, device=evidence.logit.device)
    kept = cells.known & (draw < evidence.logit.sigmoid())
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
def lower_bound(network: RVAE, cells: Cells, bound: Bound, generator: Generator) -> Tensor:
    """ELBO of each row at one sample of z, (B,)."""
    latent = network.encode(cells)
    z = sample_latent(latent, generator) if bound.kl_weight else latent.mu  # as in training
    rows = rows_of(network, cells, alpha=bound.alpha)
    impossible = (cells.observed & ~cells.values.isfinite()).sum(-1)
    each = LOG_IMPOSSIBLE if bound.weights == "none" else log_share(1 - bound.alpha)
    return elbo(network, rows, z, latent, bound) + impossible * each


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
