"""Many models learned as one: on a GPU many cost little more than one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from cellmend.errors import SettingError, TableError
from cellmend.model.encoding import Cells
from cellmend.model.learning import Untrained, begin, climb, finish, lesson, reviser
from cellmend.model.model import Model, as_one, draw_networks
from cellmend.model.network import stack, unstack
from cellmend.model.suspicion import Suspicions
from cellmend.settings import Settings
from cellmend.table.kinds import refuse_unmodelled
from cellmend.table.reader import TableReader
from cellmend.table.readtable import ReadTable

FREE = ("alpha", "weight_decay", "random_state", "schema")  # settings that may differ


class Mender(Protocol):
    """A CellMender, as far as it is needed here."""

    model_: Model

    def settings(self) -> Settings:
        """Its arguments, checked."""

    def read_to_fit(self, X: Any) -> tuple[TableReader, ReadTable]:
        """How to read X, and X as it was read."""


def fit_together(menders: Sequence[Mender], tables: Sequence[Any]) -> None:
    """Fit each mender to its own table, all networks trained as one.

    Settings must be equal but for alpha, weight_decay, random_state and schema, and so must rows, kinds and levels of
    the tables.
    """
    settings = [mender.settings() for mender in menders]
    if len({str(sorted((vars(each) | dict.fromkeys(FREE)).items())) for each in settings}) > 1:
        raise SettingError(f"Menders fitted together must have equal settings but for {', '.join(FREE)}.")
    read = [mender.read_to_fit(X) for mender, X in zip(menders, tables, strict=True)]
    for reader, _ in read:
        refuse_unmodelled(reader.schema)
    started = [begin(*each, own) for each, own in zip(read, settings, strict=True)]
    for mender, model in zip(menders, learn_together(started, settings), strict=True):
        mender.model_ = model


def learn_together(started: Sequence[Untrained], settings: Sequence[Settings]) -> list[Model]:
    """Models of all, their networks trained as one, each on its own cells.

    Each network starts as it would alone; the order of rows and the samples of z are drawn together.
    """
    first, device = settings[0], started[0].cells.values.device
    try:
        members = [
            [member.to(device) for member in draw_networks(start.encoder.columns, own, start.seed)]
            for start, own in zip(started, settings, strict=True)
        ]
        flat = [member for own in members for member in own]  # the networks of one mender side by side
        together = stack(flat)
        pieces = [(start.cells.values, start.cells.observed) for start in started]
        of_each = Cells(*(torch.stack(each).repeat_interleave(first.networks, 0) for each in zip(*pieces, strict=True)))
    except RuntimeError as error:
        raise TableError(f"Tables fitted together must have equal rows, kinds and levels ({error}).") from None
    decays = [own.weight_decay for own in settings for _ in range(own.networks)]
    suspicions = [Suspicions(start.room) for start in started]

    def revise() -> Tensor:
        unstack(together, flat)
        every = zip(members, started, suspicions, strict=True)
        priors = [reviser(as_one(own), start.cells, each)() for own, start, each in every]
        return torch.stack(priors).repeat_interleave(first.networks, 0)

    every = zip(suspicions, settings, strict=True)
    alphas = torch.stack([each.first_alpha(own.alpha) for each, own in every]).repeat_interleave(first.networks, 0)
    alpha = alphas[:, None, :].to(device)  # (M, 1, D)
    joint, decay = lesson(of_each, first, revise, alpha), decay_of_each(decays, device)
    history = climb(together, joint, first, started[0].seed, weight_decay=decay)
    unstack(together, flat)
    of_menders = history.view(-1, len(started), first.networks).mean(-1)  # (epochs, menders)
    return [
        finish(start, as_one(own), of_menders[:, place], each, known).model
        for place, (start, own, each, known) in enumerate(zip(started, members, settings, suspicions, strict=True))
    ]


def decay_of_each(decays: Sequence[float], device: torch.device) -> float | Tensor:
    """The weight decay of stacked networks for `maximise`: one number if they agree, else (M,)."""
    return decays[0] if len(set(decays)) == 1 else torch.tensor(decays, device=device)
