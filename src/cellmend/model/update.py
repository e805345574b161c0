"""Learning more: new rows and new levels, without forgetting what was learned before."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from cellmend.errors import SettingError
from cellmend.model.encoding import Cells
from cellmend.model.hidden import imagine
from cellmend.model.judge import Judge
from cellmend.model.learning import climb, keep, lesson_for, mean_history, sample, settled_rates, worst_of
from cellmend.model.model import Calibration, Model, Replay, as_one, draw_networks, find_device
from cellmend.model.network import grow
from cellmend.model.profile import RECENT
from cellmend.model.suspicion import Suspicions, rates_between
from cellmend.settings import Settings
from cellmend.table.readtable import ReadTable

REMEMBERED = (RECENT, 10_000)  # rows, as many as are new within these: an update learns them again beside the new ones


def learn_more(model: Model, table: ReadTable, settings: Settings) -> Model:
    """The model with new levels, and with weights that know the new rows too; of texts no network learns."""
    grown = _with_new_levels(model, table, settings) if model.encoder.columns else model
    encoded = Judge(grown, settings).encode(table)
    new = sample(encoded.cells, settings, model.seed).to(grown.device)
    rates, history = model.calibration.rates, torch.zeros(0)
    if model.encoder.columns:
        both = new.above(remember(grown, len(new)))
        suspicions = Suspicions(known_room(grown, both))
        history = climb(grown.network, lesson_for(grown.network, both, settings, suspicions), settings, model.seed)
        rates = settled_rates(grown.network, new, settings, suspicions)
    found = Calibration(rates, math.nan, settings.repair_method)
    rows = Judge(replace(grown, calibration=found), settings).row_scores(encoded)
    found = replace(found, offset=worst_of(rows, settings.alpha))
    kept = replace(model.replay, cells=model.replay.cells.to(grown.device))
    return replace(
        grown,
        reader=model.reader.followed_by(table),
        calibration=_followed_by(model.calibration, found, len(new)),
        history=[*model.history, *mean_history(history)],
        profile=grown.profile.followed_by(grown.profile.of(new)),
        replay=Replay(keep(settings.keep_rows, model.seed, kept, new), kept.stands_for + len(new)),
    )


def known_room(model: Model, cells: Cells) -> Tensor:
    """The room for errors of their own, (D,), of the columns that were seen to have them; NaN if values do not say."""
    room = model.network.room(cells)
    errs = room.new_tensor([column.has_own_noise for column in model.encoder.columns], dtype=torch.bool)
    return torch.where(errs | room.isnan(), room, 0.0)


def _with_new_levels(model: Model, table: ReadTable, settings: Settings) -> Model:
    """A copy with room for the values that several new rows hold and that look like no misspelling."""
    reader = model.reader
    free = [column.name for column in reader.schema if column.kind == "category" and not column.levels]
    doubtful = {name: reader.checks.doubtful(table.understood, name) for name in free}
    encoder = model.encoder.grown(table, doubtful)
    network = as_one(draw_networks(encoder.columns, settings, model.seed)).to(find_device(settings.device))
    try:
        grow(model.network, network)
    except (RuntimeError, AttributeError) as error:
        raise SettingError(
            f"To update, the sizes of the network must be as they were when fitted; they are not ({error}). "
            "Hint: fit again."
        ) from None
    return replace(model, encoder=encoder, network=network, profile=model.profile.grown(encoder.columns))


def remember(model: Model, rows: int) -> Cells:
    """Rows to learn again beside this many new ones: those that were kept, and imagined ones to make up enough."""
    kept, (least, most) = model.replay.cells.to(model.device), REMEMBERED
    more = max(min(max(rows, least), most) - len(kept), 0)
    start = model.profile.draw(more, np.random.default_rng(model.seed)).to(model.device)
    return kept.above(Cells(imagine(model.network, start.values, model.generator()), start.observed))


def _followed_by(old: Calibration, new: Calibration, rows: int) -> Calibration:
    """The newer one; of few new rows figures keep a part of what they were."""
    share = min(rows / RECENT, 1.0) if old.method == new.method else 1.0
    offset = (1 - share) * old.offset + share * new.offset
    return Calibration(rates_between(old.rates, new.rates, share), offset, new.method)
