"""The one training loop."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator

from cellmend.encoding import Cells
from cellmend.network import RVAE, elbo, sample_latent


class TrainingError(RuntimeError):
    """Training that did not end in finite weights."""


def train(
    network: RVAE,
    cells: Cells,
    *,
    weights: str,
    alpha: float,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
    generator: Generator,
    on_epoch: Callable[[int, float], None],
) -> list[float]:
    """Raise the ELBO with Adam; returns its mean per row after each epoch.

    Cells, network and generator are on one device; nothing leaves it within an epoch.
    """
    adam = torch.optim.Adam(network.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
    history: list[float] = []
    for epoch in range(epochs):
        total = torch.zeros((), device=cells.values.device)
        order = torch.randperm(len(cells), generator=generator, device=cells.values.device)
        for rows in torch.split(order, batch_size):
            batch = cells[rows]
            latent = network.encode(batch)
            z = sample_latent(latent, generator)
            bound = elbo(network, batch, z, latent, weights=weights, alpha=alpha)
            adam.zero_grad()
            (-bound.mean()).backward()  # type: ignore[no-untyped-call]
            adam.step()
            network.embeddings.limit()
            total += bound.detach().sum()
        history.append(float(total) / len(cells))
        on_epoch(epoch, history[-1])
    if not all(parameter.isfinite().all() for parameter in network.parameters()):
        raise TrainingError(
            f"Training must end in finite weights; it diverged at learning_rate={learning_rate}. "
            "Hint: lower learning_rate or weight_decay."
        )
    return history
