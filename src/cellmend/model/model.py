"""Model: all that is learned from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cellmend.decisions.taught import Taught
from cellmend.errors import SettingError
from cellmend.model.columns import EncodedColumn, in_words
from cellmend.model.encoding import Cells, TableEncoder
from cellmend.model.likelihoods import Distributions
from cellmend.model.network import RVAE, Shape, stack
from cellmend.model.profile import Profile
from cellmend.model.suspicion import ErrorRates
from cellmend.posterior.firstlook import FirstLook
from cellmend.posterior.tails import Tails
from cellmend.posterior.weigher import Context, Weigher
from cellmend.settings import Settings
from cellmend.table.reader import TableReader


@dataclass(frozen=True)
class Calibration:
    """What the fitted rows tell beside the weights."""

    rates: ErrorRates  # how often rows and cells are wrong
    offset: float  # minus the row score of the worst fitted rows, with which `predict` compares
    method: str  # by which they were judged


@dataclass(frozen=True)
class Weighing:
    """What it takes to weigh the evidence of tables like the one that was learned from."""

    weigher: Weigher
    first_look: FirstLook
    tails: Tails  # how odd the cells of each modelled column are by the network
    context: Context  # what the table looked like after the network was asked


@dataclass(frozen=True)
class Replay:
    """Rows that were learned from and are kept, so that updates forget less."""

    cells: Cells  # (kept, D)
    stands_for: int  # rows that were learned from


@dataclass(frozen=True)
class Model:
    """How to read a table, how to encode it, the network, and what is known of its errors."""

    reader: TableReader
    encoder: TableEncoder
    network: RVAE
    calibration: Calibration
    profile: Profile  # what the columns looked like
    replay: Replay
    seed: int
    history: list[float]  # mean bound of every epoch
    taught: Taught | None = None  # by people's decisions
    weighing: Weighing | None = None  # of all evidence; none with the methods of the paper

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.network.decoder_output.bias.device

    def texts_of(self, name: str) -> list[str]:
        """What stood in a column, without spaces around it, flagged or not; of models of before, nothing."""
        columns = self.weighing.first_look.portrait.columns if self.weighing else ()
        return [text.strip() for known in columns if known.name == name for text in known.texts.to_pylist()]

    def say(self, column: EncodedColumn, value: float) -> str:
        """A model value for a sentence about its column."""
        return in_words(column, value, self.reader.notations.get(column.name))

    def generator(self, first_row: int = 0) -> torch.Generator:
        """The source of all that is drawn from this row on."""
        return torch.Generator(self.device).manual_seed(self.seed + first_row)


def draw_networks(columns: Sequence[EncodedColumn], settings: Settings, seed: int) -> list[RVAE]:
    """Untrained networks, each drawn by its own seed."""
    how = Distributions(settings.outlier, settings.outlier_scale, settings.components, settings.binned)
    sizes = Shape(settings.latent_dim, settings.hidden_dim, settings.embedding_dim)
    shape = sizes if columns else Shape(0, 0, 0)  # of nothing but texts there is nothing to learn
    members = []
    for number in range(settings.networks if columns else 1):
        member = RVAE(columns, how, shape, amortized=settings.weights == "amortized", masked=settings.hide > 0)
        member.initialize(torch.Generator().manual_seed(seed + number))
        members.append(member)
    return members


def as_one(members: Sequence[RVAE]) -> RVAE:
    """One network, or several stacked into one."""
    return members[0] if len(members) == 1 else stack(members)


def find_device(asked: str | torch.device) -> torch.device:
    """The device that was asked for; "auto" is a GPU if there is one."""
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=asked).device
    except (RuntimeError, AssertionError):
        raise SettingError(
            f"device must be 'auto' or one that torch has here; {str(asked)!r} is none. Hint: use 'auto'."
        ) from None
