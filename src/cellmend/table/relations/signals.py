"""One column in the order of time: cells that their neighbours speak against. Shapes: n cells without gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.ndimage import median_filter

from cellmend.table.priors import ALIKE, ENOUGH, FEW, NEARLY_ALL, TOGETHER, USUAL
from cellmend.table.readtable import DOUBTFUL, SURE
from cellmend.table.relations.tails import Tail
from cellmend.table.values import Bools, Floats, Ints

NEIGHBOURS = 3  # on each side that tell what a cell should be
AROUND = 51  # cells whose spread is the local one
LEAST_SPREAD = 0.3  # of that of the whole column, for the local one
FEWEST_SPREADS = 6.0  # local spreads (medians) that a spike or a shift is far
UNLIKELY = 0.2  # chance, below which a jump counts as one
LONGEST_SHIFT = 1000  # cells that may be shifted
FEWEST_JUMPS, MOST_JUMPS = 8, 0.001  # in a signal, or share of its cells: one with more jumps by nature
LEVEL = 7  # cells on each side of a jump that tell how far it goes
SAME_SIZE = 0.25  # by which the two jumps of a shift may differ, of their size
MOVED_ON = 3.0  # usual steps, that a smooth signal goes after it was stuck
RISES, MOVES = 0.97, 0.3  # of the steps of a counter do not fall, and change it

TINY = 1e-12


@dataclass(frozen=True)
class Signal:
    """What is usual of a column in the order of time."""

    straight: bool  # is it continued along a line, or as level?
    spread: float  # the median of how far cells lie from their neighbours on one side
    spikes: Tail  # of how far cells lie from those on both sides, in local spreads
    jumps: Tail  # of steps, likewise
    run: int  # a length that many runs of one value have, and how many longer ones are each time one cell longer
    longer: float
    runs: float  # share of the cells in which a run of that length begins
    rises: int  # 1 for a counter that rises, -1 if it falls, else 0


class Odd(NamedTuple):
    """A cell that its neighbours speak against."""

    cell: int
    suspicion: float
    meant: float  # NaN where nothing tells
    why: str  # the rest of a sentence that says what it is; {} are the neighbours
    beside: tuple[float, ...] = ()  # its neighbours, if they are named


def learn_signal(pieces: list[Floats], unit: float) -> Signal:
    """From the pieces of a column that each stand in order; `unit` is how finely it is written."""
    random, blur = np.random.default_rng(0), 0.0 if are_regular(pieces) else unit
    fine = [piece + blur * random.uniform(-0.5, 0.5, len(piece)) for piece in pieces]  # or distances come in steps
    beside = ([np.abs(_side_misses(x, straight=straight)).mean(axis=0) for x in fine] for straight in (False, True))
    level, line = (float(np.median(np.concatenate(misses))) for misses in beside)
    straight, spread = line < level, max(min(level, line), unit / 2, TINY)
    far = Tail.of(np.concatenate([far_from_both(piece, straight, spread) for piece in fine]))
    lengths = np.concatenate([run_lengths(piece)[1] for piece in pieces])
    run, longer = _thinning(lengths)
    runs = float((lengths >= run).sum() / lengths.sum())
    signal = Signal(straight, spread, far, far, run, longer, runs, _direction(pieces))
    calm = [_between(piece, surely(spikes(piece, signal))) for piece in fine]
    return replace(signal, jumps=Tail.of(np.concatenate([_jumps(piece, spread) for piece in calm])))


def are_regular(pieces: list[Floats]) -> bool:
    """Do nearly all steps go on by the same amount, as those of a clock?

    >>> are_regular([np.array([1.0, 3.0, 5.0, 7.0])]), are_regular([np.array([1.0, 3.0, 4.0, 9.0])])
    (True, False)
    """
    steps = np.concatenate([np.diff(piece) for piece in pieces])
    middle = np.median(steps) if len(steps) else 0.0
    return bool(middle != 0 and (np.abs(steps - middle) <= 1e-6 * abs(middle)).mean() >= NEARLY_ALL)


def surely(odd: Sequence[Odd]) -> Ints:
    """The cells that are rather wrong than not."""
    return np.array([each.cell for each in odd if each.suspicion >= DOUBTFUL], dtype=np.int64)


# ---------------------------------------------------------------- far from neighbours on both sides


def _side_misses(x: Floats, *, straight: bool) -> Floats:
    """How far each cell lies from what the cells before and after it would continue to, (2, n)."""
    return np.stack([x - _continued(x, straight), (x[::-1] - _continued(x[::-1], straight))[::-1]])


def _continued(x: Floats, straight: bool) -> Floats:
    """Each cell as the cells before it would go on, along a line or as level, (n,); the first are as they are."""
    before = np.stack([np.concatenate([x[:1].repeat(k), x[:-k]])[: len(x)] for k in range(1, NEIGHBOURS + 1)])
    on = 2 * before[0] - before[1] if straight else np.median(before, axis=0)
    on[: NEIGHBOURS if straight else 1] = x[: NEIGHBOURS if straight else 1]
    return on


def far_from_both(x: Floats, straight: bool, spread: float) -> Floats:
    """How many local spreads each cell lies from its neighbours on both sides, in one direction, (n,)."""
    sides = _side_misses(x, straight=straight)
    miss = np.where(np.sign(sides[0]) == np.sign(sides[1]), np.abs(sides).min(axis=0), 0.0)
    return miss / local_spread(np.abs(sides).mean(axis=0), spread)


def local_spread(misses: Floats, spread: float) -> Floats:
    """The median of the misses around each cell, (n,), not much less than that of the whole column."""
    return np.maximum(median_filter(misses, size=min(AROUND, len(misses)), mode="nearest"), LEAST_SPREAD * spread)


def spikes(x: Floats, signal: Signal) -> list[Odd]:
    """Cells far from those before and after them."""
    far = far_from_both(x, signal.straight, signal.spread)
    chance = signal.spikes.chance(far)
    cells = np.flatnonzero((far >= FEWEST_SPREADS) & (chance < 1))
    cells = cells[: 0 if (chance[cells] < UNLIKELY).sum() > FEW * len(x) else None]
    meant = _between(x, cells)
    return [
        Odd(cell, 1 - float(chance[cell]), float(meant[cell]), ", far from its neighbours {}", _beside(x, cell))
        for cell in cells.tolist()
    ]


def _beside(x: Floats, cell: int) -> tuple[float, ...]:
    return tuple(float(x[at]) for at in (cell - 1, cell + 1) if 0 <= at < len(x))


def _between(x: Floats, cells: Ints) -> Floats:
    """The column with a line between their neighbours in place of these cells, (n,)."""
    kept = np.ones(len(x), dtype=bool)
    kept[cells] = False
    return np.interp(np.arange(len(x)), np.flatnonzero(kept), x[kept]) if kept.any() else x


# ---------------------------------------------------------------- shifted for a while


def _jumps(x: Floats, spread: float) -> Floats:
    """Steps to each cell after which the level stays as far, in local spreads, (n,)."""
    step = np.diff(x, prepend=x[:1])
    level = np.pad(median_filter(x, size=min(LEVEL, len(x)), mode="nearest"), LEVEL, mode="edge")
    half = LEVEL // 2
    rise = level[LEVEL + half : LEVEL + half + len(x)] - level[half : half + len(x)]  # cells from here on, those before
    jump = np.where(np.sign(step) == np.sign(rise), np.minimum(np.abs(step), np.abs(rise)), 0.0)
    return jump / local_spread(np.abs(step), spread)


def shifts(x: Floats, signal: Signal, gone: Ints) -> list[Odd]:
    """Blocks of cells that lie higher or lower than those around them by one amount, without cells that are `gone`."""
    cleared = _between(x, gone)
    far = _jumps(cleared, signal.spread)
    chance = signal.jumps.chance(far)
    edges = np.flatnonzero((far >= FEWEST_SPREADS) & (chance < UNLIKELY))
    edges = edges[: 0 if len(edges) > max(FEWEST_JUMPS, MOST_JUMPS * len(x)) else None]
    blocks, found = _blocks(cleared, edges, signal.spread), list[Odd]()
    sizes = np.array([size for _, _, size in blocks])
    for start, stop, size in blocks:
        if (np.abs(sizes - size) <= USUAL * abs(size)).sum() > TOGETHER:  # a state of the signal
            continue
        side, suspicion = "higher" if size > 0 else "lower", 1 - float(max(chance[start], chance[stop]))
        why = f": {stop - start} cells lie {abs(size):.4g} {side} than those before and after them"
        found += [Odd(cell, suspicion, float(x[cell] - size), why) for cell in range(start, stop)]
    return found


def _blocks(x: Floats, edges: Ints, spread: float) -> list[tuple[int, int, float]]:
    """Where a jump comes back: first cell, the one after the last, and by how much it jumped."""
    found, last, longest = [], 0, min(LONGEST_SHIFT, int(FEW * len(x)) + NEIGHBOURS)
    for one, other in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if one >= last and NEIGHBOURS <= other - one <= longest:
            side = min(LEVEL, other - one)
            there, back = _level_change(x, one, side), -_level_change(x, other, side)
            if abs(there - back) <= SAME_SIZE * max(abs(there), abs(back)) + spread and there * back > 0:
                found.append((one, other, (there + back) / 2))
                last = other + 1
    return found


def _level_change(x: Floats, edge: int, side: int) -> float:
    """By how much so many cells from an edge on lie above those before it."""
    return float(np.median(x[edge : edge + side]) - np.median(x[max(edge - side, 0) : edge]))


# ---------------------------------------------------------------- stuck


def run_lengths(x: Floats) -> tuple[Ints, Ints]:
    """Where runs of one value begin, and how long they are.

    >>> [each.tolist() for each in run_lengths(np.array([1.0, 1.0, 2.0, 1.0]))]
    [[0, 2, 3], [2, 1, 1]]
    """
    starts = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    return starts, np.diff(np.append(starts, len(x)))


def _thinning(lengths: Ints) -> tuple[int, float]:
    """A length that many runs have, and the share of these that are one longer: the largest seen on the way."""
    enough, length, longer = max(ENOUGH, USUAL * len(lengths)), 1, 0.0
    while (reached := (lengths > length).sum()) >= enough:
        longer = max(longer, float(reached / (lengths >= length).sum()))
        length += 1
    left = (lengths >= length).sum()
    return length, max(longer, float((reached + 1) / (left + 2)) if left >= 5 * ENOUGH else 0.1)


def stuck(x: Floats, signal: Signal) -> list[Odd]:
    """Runs of one value that are far longer than chance makes them, but for their first cells."""
    starts, lengths = run_lengths(x)
    candidates = (lengths >= max(ALIKE, signal.run + 1)) & _goes_on_elsewhere(x, starts, lengths, signal)
    long = np.flatnonzero(candidates)
    expected = len(x) * signal.runs * signal.longer ** (lengths[long] - signal.run)
    as_long = np.array([(lengths >= length).sum() for length in lengths[long].tolist()])
    chance = expected / as_long
    long, chance = long[chance < 1], chance[chance < 1]
    values, often = np.unique(x[starts[long]], return_counts=True)
    states = values[often >= TOGETHER]
    found: list[Odd] = []
    for start, length, by_chance in zip(starts[long].tolist(), lengths[long].tolist(), chance.tolist(), strict=True):
        if x[start] not in states:
            why = f" in {length} rows one after the other, where it usually changes"
            found += [Odd(cell, 1 - by_chance, np.nan, why) for cell in range(start + 1, start + length)]
    return found


def _goes_on_elsewhere(x: Floats, starts: Ints, lengths: Ints, signal: Signal) -> Bools:
    """Runs after which a smooth signal has moved on: at the top of a wave it stays the same and then goes on slowly."""
    if not signal.straight:
        return np.ones(len(starts), dtype=bool)
    steps = np.abs(np.diff(x))
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    after = np.minimum(starts + lengths, len(x) - 1)
    return np.abs(x[after] - x[starts]) > MOVED_ON * usual


# ---------------------------------------------------------------- counters


def _direction(pieces: list[Floats]) -> int:
    steps = np.concatenate([np.diff(piece) for piece in pieces])
    for sign in (1, -1):
        if len(steps) and (sign * steps >= 0).mean() >= RISES and (steps != 0).mean() >= MOVES:
            return sign
    return 0


def fallen(x: Floats, signal: Signal) -> list[Odd]:
    """Cells of a counter that lie below those before them or above those after them, if it goes on afterwards."""
    up = signal.rises * x
    sides = (np.stack([np.roll(up, side * k) for k in range(1, NEIGHBOURS + 1)]) for side in (1, -1))
    before, after = (np.median(side, axis=0) for side in sides)
    inner = np.zeros(len(x), dtype=bool)
    inner[NEIGHBOURS:-NEIGHBOURS] = True
    cells = np.flatnonzero(inner & (before <= after) & ((up < before) | (up > after)))
    meant = _between(x, cells)
    return [
        Odd(cell, SURE, float(meant[cell]), " between {}, where it goes in one direction only", _beside(x, cell))
        for cell in cells.tolist()
    ]
