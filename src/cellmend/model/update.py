"""Learning more: new rows and new levels, without forgetting what was learned before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from cellmend.errors import SettingError
from cellmend.model.encoding import Cells, EncodedTable
from cellmend.model.hidden import imagine
from cellmend.model.judge import Judge
from cellmend.model.learning import calibrate, climb, keep, lesson_for, mean_history, sample
from cellmend.model.model import Calibration, Model, Replay, as_one, draw_networks, find_device
from cellmend.model.network import RVAE, grow
from cellmend.model.profile import RECENT
from cellmend.model.suspicion import Suspicions, rates_between
from cellmend.settings import Settings
from cellmend.table.readtable import ReadTable

REMEMBERED = (RECENT, 10_000)  # rows, as many as are new within these: an update learns them again beside the new ones


def learn_more(model: Model, table: ReadTable, settings: Settings) -> Model:
    """The model with new levels, and with weights that know the new rows too."""
    if not model.encoder.columns:
        return _followed_by_texts(model, table, settings)
    grown = _with_new_levels(model, table, settings)
    encoded = Judge(grown, settings).encode(table)
    new = sample(encoded.cells, settings, model.seed).to(grown.device)
    both = new.above(remember(grown, len(new)))
    suspicions = Suspicions(known_room(grown, both))
    history = climb(grown.network, lesson_for(grown.network, both, settings, suspicions), settings, model.seed)
    found = calibrate(grown, encoded, new, settings, suspicions)
    if grown.weighing is not None:  # rows are then scored by all evidence
        found = replace(found, offset=offset_of(Judge(replace(grown, calibration=found), settings), encoded))
    kept = replace(model.replay, cells=model.replay.cells.to(grown.device))
    return replace(
        grown,
        reader=model.reader.followed_by(table),
        calibration=_followed_by(model.calibration, found, len(new)),
        history=[*model.history, *mean_history(history)],
        profile=grown.profile.followed_by(grown.profile.of(new)),
        replay=Replay(keep(settings.keep_rows, model.seed, kept, new), kept.stands_for + len(new)),
    )


def _followed_by_texts(model: Model, table: ReadTable, settings: Settings) -> Model:
    """The same for a table of nothing but texts, of which no network learns."""
    judge = Judge(model, settings)
    offset = offset_of(judge, judge.encode(table))
    return replace(
        model,
        reader=model.reader.followed_by(table),
        calibration=_followed_by(model.calibration, replace(model.calibration, offset=offset), table.rows),
        replay=replace(model.replay, stands_for=model.replay.stands_for + table.rows),
    )


def offset_of(judge: Judge, encoded: EncodedTable) -> float:
    """The threshold of `predict` by a table: as many of its rows as alpha says lie below it."""
    return float(np.quantile(-judge.row_scores(encoded), 1 - judge.settings.alpha))


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
    _grow(model.network, network)
    return replace(model, encoder=encoder, network=network, profile=model.profile.grown(encoder.columns))


def _grow(small: RVAE, large: RVAE) -> None:
    try:
        grow(small, large)
    except (RuntimeError, AttributeError) as error:
        raise SettingError(
            f"To update, the sizes of the network must be as they were when fitted; they are not ({error}). "
            "Hint: fit again."
        ) from None


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
