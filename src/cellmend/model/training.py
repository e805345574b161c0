"""Training: the bound of rows with some cells hidden is raised, and alpha is revised on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from cellmend.errors import TrainingError
from cellmend.model.encoding import Cells, take_rows
from cellmend.model.network import RVAE, Bound, Rows, elbo, gates, log_share, rows_of
from cellmend.model.optimiser import Ascent, Watch, maximise

REVISIONS = (0.1, 0.2, 0.35, 0.5, 0.7)  # when alpha is revised, as a share of the epochs


@dataclass(frozen=True)
class Lesson:
    """What is learned from: cells (N, D), the bound that is raised over them, and the share of cells hidden meanwhile.

    With `hide`, some cells of each row are hidden from the encoder, and the bound is about those alone. With `revise`,
    alpha is but the start: a few times it is asked for the alpha of every cell, (N, D). Of stacked networks each has
    its own cells, (M, N, D).
    """

    cells: Cells
    bound: Bound
    hide: float = 0.0
    revise: Callable[[], Tensor] | None = None


def train(network: RVAE, lesson: Lesson, ascent: Ascent, generator: Generator, watch: Watch) -> Tensor:
    """Raise the ELBO with Adam; returns its mean per row over each epoch, (epochs,).

    Stacked networks train side by side, each in its own order of rows; the history is then (epochs, M). Cells, network
    and generator are on one device and nothing leaves it. In a team the cells are this process's own, and all
    processes together learn what one would from all rows.
    """
    bound, team = lesson.bound, watch.team
    learned = rows_of(network, lesson.cells, alpha=bound.alpha)
    log_corrupted = learned.floor - log_share(1 - bound.alpha)
    packed = torch.stack([learned.values, learned.known, learned.favour, learned.floor])  # one look-up a step
    before: float | None = None  # the share of the epochs that was done when last asked

    def after_epoch(epoch: int) -> None:
        nonlocal before
        start, before = epoch / ascent.epochs if before is None else before, ascent.done(epoch + 1)
        due = any(start + 1e-9 < share <= before + 1e-9 for share in REVISIONS)
        if lesson.revise is not None and due and before < 1:  # after the last nothing is learned
            torch.stack(gates(log_corrupted, alpha=lesson.revise()), out=packed[2:])  # a captured step reads it there
        watch.on_epoch(epoch)

    def gain(rows: Tensor) -> Tensor:
        own = rows if team is None else team.place[rows]
        mine = ... if team is None else own >= 0  # of the batch; what is drawn for it is the same in all processes
        values, known, favour, floor = take_rows(packed, own[mine]).unbind(0)
        seen, asked = hide_some(known, lesson.hide, generator, rows.shape, mine) if lesson.hide else (known, known)
        inputs = network.inputs_of(values, seen)
        latent = network.encode_inputs(inputs) if bound.kl_weight else None
        z = network.encode_mean(inputs) if latent is None else latent.at(latent.noise(rows.shape, generator)[mine])
        # Summed over rows, as in the authors' code: weight_decay is relative to it.
        return elbo(network, Rows(values, seen, asked, favour, floor), z, latent, bound).sum(-1)

    every_row = lesson.cells.values.shape[:-1] if team is None else team.place.shape
    kept = {"gates": packed[2:]}
    watched = replace(watch, after_step=network.embeddings.limit, on_epoch=after_epoch, also_kept=kept)
    history = maximise(network, gain, every_row, ascent, generator, watched)
    if not all(parameter.isfinite().all() for parameter in network.parameters()):
        raise TrainingError(
            f"Training must end in finite weights; it diverged at learning_rate={ascent.learning_rate}. "
            "Hint: lower learning_rate or weight_decay."
        )
    return history


def hide_some(
    known: Tensor, most: float, generator: Generator, batch: Sequence[int], mine: Any = ...
) -> tuple[Tensor, Tensor]:
    """A random share of each row's known cells is hidden, uniform between 0 and `most`: what is left, and what was
    hidden; all (B, D), 1 or 0. The rows are those of a batch (B,), or some of them."""
    share = most * torch.rand((*batch, 1), generator=generator, device=known.device)
    shown = torch.rand((*batch, known.shape[-1]), generator=generator, device=known.device) >= share
    left = known * shown[mine]
    return left, known - left
