"""Learning a model from a table: begin, train, finish. Many menders or processes together take the same steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from torch import Tensor

from cellmend.model.encoding import Cells, EncodedTable, TableEncoder
from cellmend.model.evidence import for_each_network, threads
from cellmend.model.hidden import hidden_ratios
from cellmend.model.judge import Judge, published_rates, seen_of
from cellmend.model.model import Calibration, Model, Replay, Weighing, as_one, draw_networks, find_device
from cellmend.model.network import RVAE, Bound
from cellmend.model.optimiser import Ascent, Watch
from cellmend.model.profile import Profile
from cellmend.model.suspicion import RARE_SHARE, ErrorRates, Suspicions, clean_priors, standing_out
from cellmend.model.training import Lesson, train
from cellmend.posterior.firstlook import FirstLook
from cellmend.posterior.weigher import learned
from cellmend.progress import progress
from cellmend.settings import LEAST_FLAGGED, Settings
from cellmend.table.kinds import refuse_unmodelled
from cellmend.table.reader import TableReader
from cellmend.table.readtable import ReadTable
from cellmend.table.schema import DATE

FEW_ROWS = 4000  # in a small table
STEPS = (40, 16)  # an epoch of small and of other tables, unless batch_size is given: more rows do not need more steps
RATES = (0.002, 0.004)  # learning rates, unless one is given: of small batches and of those of FULL_RATE rows
FULL_RATE = 256
SMALL_BATCH = 256  # rows of a step that one thread does as fast as two


@dataclass(frozen=True)
class Untrained:
    """A table that is read and encoded, a network for it, and the rows that it will learn from."""

    reader: TableReader
    encoder: TableEncoder
    encoded: EncodedTable
    network: RVAE
    cells: Cells  # all rows, or `train_rows` of them
    seed: int
    room: Tensor  # (D,) that each column has for errors of its own; NaN if its values do not say
    first_look: FirstLook | None  # none with the methods of the paper


def learn(reader: TableReader, table: ReadTable, settings: Settings) -> tuple[Judge, EncodedTable]:
    """Who judges by a model of the table, and the table as the model sees it."""
    start = begin(reader, table, settings)
    suspicions = Suspicions(start.room)
    history = torch.zeros(0)
    if start.encoder.columns:
        task = lesson_for(start.network, start.cells, settings, suspicions)
        history = climb(start.network, task, settings, start.seed, watch=Watch(what=_seen_so_far(start.encoded)))
    return finish(start, start.network, history, settings, suspicions), start.encoded


def _seen_so_far(encoded: EncodedTable) -> str:
    """What is told beside the bar: how many cells a first look suspects."""
    if encoded.seen is None:
        return "Fitting"
    suspected = int((encoded.seen.posterior.suspicion >= LEAST_FLAGGED).sum())
    return f"Fitting ({suspected:,} cells look wrong at first sight)"


def begin(reader: TableReader, table: ReadTable, settings: Settings) -> Untrained:
    """Encoding and an untrained network, and what to train on: all but the cells that a first look finds wrong."""
    look, seen, shown = None, None, table
    if settings.repair_method == "hidden":
        TableEncoder.fit(reader.schema, table, robust=settings.binned)  # refuses what no look may hide
        look, seen = FirstLook.learn(table, learned())
        shown = seen.table
    else:
        refuse_unmodelled(reader.schema)
    encoder = TableEncoder.fit(reader.schema, shown, robust=settings.binned)
    encoder = TableEncoder([], table.names) if settings.quick else encoder  # no column is left to a network
    seed = int(check_random_state(settings.random_state).randint(2**31))
    device = find_device(settings.device)
    encoded = encoder.encode_seen(table, seen)
    cells = sample(encoded.cells, settings, seed).to(device)
    room = torch.zeros(0)
    if encoder.columns:
        room = as_one(draw_networks(encoder.columns, settings, seed)).to(device).room(cells)
        room = torch.where(room.isnan(), room, standing_out(room))
    columns = zip(encoder.columns, (room > 0).tolist(), strict=True)
    encoder = TableEncoder([column if errs else column.with_any_noise() for column, errs in columns], table.names)
    network = as_one(draw_networks(encoder.columns, settings, seed)).to(device)
    return Untrained(reader, encoder, encoded, network, cells, seed, room, look)


def sample(cells: Cells, settings: Settings, seed: int) -> Cells:
    """The rows to learn from: all, or `train_rows` of them."""
    if settings.train_rows is None or len(cells) <= settings.train_rows:
        return cells
    drawn = torch.randperm(len(cells), generator=torch.Generator().manual_seed(seed))
    return cells[drawn[: settings.train_rows].sort().values]


def lesson_for(network: RVAE, cells: Cells, settings: Settings, suspicions: Suspicions) -> Lesson:
    """What a network learns from these cells (N, D) alone; `suspicions` learn where their errors lie."""
    of_each = for_each_network(network, cells)
    revise = reviser(network, cells, suspicions)
    alpha = suspicions.first_alpha(settings.alpha) if settings.hide else None
    return lesson(of_each, settings, lambda: revise().expand(of_each.values.shape), alpha)


def reviser(
    network: RVAE, cells: Cells, suspicions: Suspicions, gather: Callable[..., Sequence[Tensor]] = lambda *own: own
) -> Callable[[], Tensor]:
    """Gives the alpha of every cell (N, D), by what the network says of them when it is called, and of those that
    `gather` puts together from several processes."""

    def revise() -> Tensor:
        ratio, by_chance = hidden_ratios(network, cells)
        return clean_priors(ratio, cells.observed, suspicions.revise(*gather(ratio, by_chance, cells.observed)))

    return revise


def lesson(cells: Cells, settings: Settings, revise: Callable[[], Tensor], alpha: Tensor | None = None) -> Lesson:
    """The training task for these cells; `revise` gives the alpha that the network would now give every cell."""
    bound = Bound(settings.weights, settings.alpha if alpha is None else alpha, settings.kl_weight)
    revised = settings.hide and settings.weights != "none"
    return Lesson(cells, bound, settings.hide, revise if revised else None)


def climb(
    network: RVAE,
    lesson: Lesson,
    settings: Settings,
    seed: int,
    *,
    weight_decay: Tensor | float | None = None,
    watch: Watch | None = None,
) -> Tensor:
    """Train one network or many; returns the mean bound of each epoch, (epochs,) or (epochs, M)."""
    watch = watch or Watch()
    rows = lesson.cells.values.shape[-2] if watch.team is None else len(watch.team.place)
    batch_size = settings.batch_size or batch_for(rows)
    ascent = Ascent(
        settings.epochs,
        batch_size,
        settings.learning_rate or rate_for(batch_size),
        settings.schedule,
        settings.weight_decay if weight_decay is None else weight_decay,
        settings.time_limit,
        settings.patience,
    )
    generator = torch.Generator(lesson.cells.values.device).manual_seed(seed)
    with threads_for(batch_size), progress(watch.what, settings.epochs, shown=settings.verbose) as show:
        return train(network, lesson, ascent, generator, replace(watch, on_epoch=lambda epoch: show(epoch + 1)))


def threads_for(batch_size: int) -> AbstractContextManager[None]:
    """One thread for small batches: several gain nothing, and on a busy machine they wait for each other."""
    return threads(1 if batch_size <= SMALL_BATCH else torch.get_num_threads())


def finish(start: Untrained, network: RVAE, history: Tensor, settings: Settings, suspicions: Suspicions) -> Judge:
    """Who judges by the model that came of it, with all that is known beside the weights."""
    rates = settled_rates(network, start.cells, settings, suspicions)
    dates = [column.name for column in start.reader.schema if column.kind == DATE]
    model = Model(
        reader=start.reader,
        encoder=start.encoder,
        network=network,
        calibration=Calibration(rates, math.nan, settings.repair_method),
        profile=Profile.learn(start.encoder.columns, start.cells, dates),
        replay=Replay(keep(settings.keep_rows, start.seed, Replay(start.cells[:0], 0), start.cells), len(start.cells)),
        seed=start.seed,
        history=mean_history(history),
    )
    judge = Judge(model, settings)
    if start.first_look is not None:
        judge = with_weighing(judge, start.first_look, start.encoded)
    offset = worst_of(judge.row_scores(start.encoded), settings.alpha)
    judge.model = replace(judge.model, calibration=replace(judge.model.calibration, offset=offset))
    return judge


def with_weighing(judge: Judge, look: FirstLook, encoded: EncodedTable) -> Judge:
    """A judge who weighs all evidence, and has judged the table already."""
    voice = judge.voice(encoded)
    said = judge.figures_of(encoded, voice, voice.tails)
    sample = seen_of(encoded).sample
    context = look.context if sample is None else sample.context(said)
    weighing = Weighing(learned(), look, voice.tails, context)
    weighs = Judge(replace(judge.model, weighing=weighing), judge.settings)
    weighs.hear(encoded, voice)
    return weighs


def settled_rates(network: RVAE, cells: Cells, settings: Settings, suspicions: Suspicions) -> ErrorRates:
    """How often rows and cells are wrong, by what the trained network says of the cells (N, D) that it learned."""
    hides = settings.hide or settings.repair_method == "hidden"
    if not hides or not cells.values.shape[1]:
        return published_rates(settings.alpha)
    return suspicions.settle(*hidden_ratios(network, cells), cells.observed, rare=RARE_SHARE)


def worst_of(rows: NDArray[np.float64], alpha: float) -> float:
    """The threshold of `predict` by row scores, (N,): as many of the rows as alpha says lie below it."""
    return float(np.quantile(-rows, 1 - alpha))


def keep(wanted: int, seed: int, replay: Replay, new: Cells) -> Cells:
    """So many rows, of those kept before and of new ones: each that was ever learned from is as likely as any other."""
    kept = replay.cells
    wanted = min(wanted, len(kept) + len(new))
    from_new = max(round(wanted * len(new) / (replay.stands_for + len(new))), wanted - len(kept))
    generator = torch.Generator().manual_seed(seed)
    chosen = [
        cells[torch.randperm(len(cells), generator=generator)[:count].sort().values.to(cells.values.device)]
        for cells, count in ((kept, wanted - from_new), (new, from_new))
    ]
    return chosen[0].above(chosen[1])


def mean_history(history: Tensor) -> list[float]:
    """Mean bound of each epoch, also of several networks, (epochs,) or (epochs, M)."""
    return (history.mean(-1) if history.dim() == 2 else history).tolist()


def batch_for(rows: int) -> int:
    """How many rows a step takes, of a table with so many.

    >>> [batch_for(rows) for rows in (100, 2000, 5000, 50_000)]
    [16, 50, 312, 1024]
    """
    return min(max(rows // STEPS[rows >= FEW_ROWS], 16), 1024)


def rate_for(batch_size: int) -> float:
    """The learning rate that suits batches of this size: small ones say less, and large steps would go astray.

    >>> [round(rate_for(rows), 4) for rows in (16, 128, 1024)]
    [0.002, 0.0028, 0.004]
    """
    low, high = RATES
    return min(max(high * math.sqrt(batch_size / FULL_RATE), low), high)
