"""The one training loop."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from cellmend.encoding import Cells
from cellmend.network import RVAE, Alpha, elbo, sample_latent


class TrainingError(RuntimeError):
    """Training that did not end in finite weights."""


def train(
    network: RVAE,
    cells: Cells,
    *,
    weights: str,
    alpha: Alpha,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
    generator: Generator,
    on_epoch: Callable[[int], None],
) -> Tensor:
    """Raise the ELBO with Adam; returns its mean per row over each epoch, (epochs,).

    Stacked networks train side by side, each on its own cells (M, N, D) in its own order; the history
    is (epochs, M). Cells, network and generator are on one device and nothing leaves it.
    """
    adam = torch.optim.Adam(network.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
    every_row = cells.values.shape[:-1]  # (N,) or (M, N)
    history = []
    for epoch in range(epochs):
        order = torch.rand(every_row, generator=generator, device=cells.values.device).argsort(-1)
        total = torch.zeros(every_row[:-1], device=cells.values.device)
        for rows in torch.split(order, batch_size, dim=-1):
            batch = cells.take(rows)
            latent = network.encode(batch)
            z = sample_latent(latent, generator)
            bound = elbo(network, batch, z, latent, weights=weights, alpha=alpha)
            adam.zero_grad()
            # Summed over rows, as in the authors' code: weight_decay is relative to it.
            (-bound.sum()).backward()  # type: ignore[no-untyped-call]
            adam.step()
            network.embeddings.limit()
            total += bound.detach().sum(-1)
        history.append(total / every_row[-1])
        on_epoch(epoch)
    if not all(parameter.isfinite().all() for parameter in network.parameters()):
        raise TrainingError(
            f"Training must end in finite weights; it diverged at learning_rate={learning_rate}. "
            "Hint: lower learning_rate or weight_decay."
        )
    return torch.stack(history)
