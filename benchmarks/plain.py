"""RVAE-CVI as one would first write it in PyTorch, to compare speed with: a DataLoader and a loop over the columns."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from cellmend import PAPER
from cellmend.model.columns import EncodedColumn
from cellmend.model.encoding import Cells


class PlainRVAE(nn.Module):
    """The published model: an embedding, a head and a likelihood for each column in turn."""

    def __init__(self, columns: list[EncodedColumn]) -> None:
        super().__init__()
        self.levels = [len(column.levels) for column in columns]
        size, latent, hidden = PAPER["embedding_dim"], PAPER["latent_dim"], PAPER["hidden_dim"]
        self.embeddings = nn.ModuleList(nn.Embedding(max(n, 1), size, max_norm=1.0) for n in self.levels)
        inputs = sum(size if n else 1 for n in self.levels)
        self.encoder = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
        self.mu, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(hidden, n or 1) for n in self.levels)
        self.spreads = nn.ParameterList(nn.Parameter(torch.zeros(1)) for _ in self.levels)

    def loss(self, x: Tensor, observed: Tensor) -> Tensor:
        """Minus the bound, summed over rows; x and observed are (B, D)."""
        pieces = []
        for d, n in enumerate(self.levels):
            piece = self.embeddings[d](x[:, d].long()) if n else x[:, d : d + 1]
            pieces.append(piece * observed[:, d : d + 1])
        h = self.encoder(torch.cat(pieces, dim=1))
        mu, log_variance = self.mu(h), self.log_variance(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * log_variance)
        h = self.decoder(z)
        kl = -0.5 * torch.sum(1 + log_variance - mu.pow(2) - log_variance.exp())
        prior, bound = torch.tensor(PAPER["alpha"]), torch.zeros(())
        for d, n in enumerate(self.levels):
            if n:
                clean = -F.cross_entropy(self.heads[d](h), x[:, d].long(), reduction="none")
                corrupted = torch.full_like(clean, -math.log(n))
            else:
                spread = torch.exp(0.5 * self.spreads[d].clamp(-3, 3))
                clean = torch.distributions.Normal(self.heads[d](h).squeeze(1), spread).log_prob(x[:, d])
                corrupted = torch.distributions.Normal(0.0, PAPER["outlier_scale"]).log_prob(x[:, d])
            with torch.no_grad():
                pi = torch.sigmoid(clean - corrupted + torch.log(prior / (1 - prior)))
                pi = pi.clamp(1e-6, 1 - 1e-6)
                gate = pi * torch.log(pi / prior) + (1 - pi) * torch.log((1 - pi) / (1 - prior))
            bound = bound + torch.sum((pi * clean + (1 - pi) * corrupted - gate) * observed[:, d])
        return kl - bound


def fit_plain(cells: Cells, columns: list[EncodedColumn], *, epochs: int, seed: int = 0) -> PlainRVAE:
    """Train it as published, on a table without values that its columns cannot hold."""
    torch.manual_seed(seed)
    model = PlainRVAE(columns)
    rows = DataLoader(TensorDataset(cells.values, cells.observed), batch_size=PAPER["batch_size"], shuffle=True)
    adam = torch.optim.Adam(model.parameters(), lr=PAPER["learning_rate"])
    for _ in range(epochs):
        for x, observed in rows:
            adam.zero_grad()
            model.loss(x, observed).backward()
            adam.step()
    return model
