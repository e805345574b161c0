"""What columns looked like when the model learned, what they look like now, and whether they moved.

A profile counts the cells of every column: in bins or by level, missing, and impossible. Profiles of pieces of a table
add up to that of the whole. Two of them are compared by the Jensen-Shannon divergence of their shares, in bits: 0 if
they are equal, 1 if they have nothing in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cellmend.model.columns import EncodedColumn, RealColumn
from cellmend.model.encoding import Cells
from cellmend.table.packing import pack, unpack_fields
from cellmend.table.priors import ENOUGH, NEARLY_ALL

LEAST_MOVED = 0.02  # bits: a Gaussian that moved by a third of its deviation, or 2 % of the cells that became 10 %
SURE = 4.5  # standard deviations of a normal that chance must be beaten by: once in 300,000 columns
LEAST_EXPECTED = 5  # cells of a bin, in the smaller table; rarer bins count as one, or chance would look like a move
REMEMBERED = 12  # tables that the model learned from, each with a profile of its own
RECENT = 2000  # rows that a profile should be about: of a smaller update the rows before it keep a part

Floats = NDArray[np.float64]
Writer = Callable[[EncodedColumn, float], str]  # a model value in the user's words


@dataclass(frozen=True)
class ColumnProfile:
    """How many cells of a column lie in each bin or have each level, are missing, or are none of these.

    >>> (ColumnProfile((), (3.0, 1.0), 1.0, 0.0) + ColumnProfile((), (1.0, 0.0), 0.0, 2.0)).counts
    (4.0, 1.0)
    """

    edges: tuple[float, ...]  # between bins of model values, an edge itself in the lower bin; none for levels
    counts: tuple[float, ...]  # one more than edges, or one a level
    missing: float
    impossible: float
    runs: int = 0  # 1 if it goes on from row to row or holds dates, -1 if it goes down: newer rows go on where it ended

    def __add__(self, other: ColumnProfile) -> ColumnProfile:
        counts = tuple(own + more for own, more in zip(self.counts, other.counts, strict=True))
        missing, impossible = self.missing + other.missing, self.impossible + other.impossible
        return replace(self, counts=counts, missing=missing, impossible=impossible)

    def of(self, values: NDArray[np.float32], observed: NDArray[np.bool_]) -> ColumnProfile:
        """Of other cells, (N,), in the same bins."""
        possible = observed & np.isfinite(values)
        known = values[possible]
        # Edges in the precision of the cells: a value that is one stays on its side.
        place = np.searchsorted(np.array(self.edges, np.float32), known) if self.edges else known.astype(np.int64)
        counts = tuple(np.bincount(place, minlength=len(self.counts)).astype(float).tolist())
        return replace(
            self, counts=counts, missing=float((~observed).sum()), impossible=float((observed & ~possible).sum())
        )

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Values (rows,) as many in each bin as the counts say, and as many observed."""
        known, all_of_them = sum(self.counts), sum(self.counts) + self.missing + self.impossible
        shares = np.array(self.counts) / known if known else np.full(len(self.counts), 1 / len(self.counts))
        place = rng.choice(len(shares), rows, p=shares)
        observed = rng.random(rows) < known / max(all_of_them, 1)
        if not self.edges:
            return place.astype(np.float32), observed
        low, high = (np.array(each)[place] for each in ((self.edges[0], *self.edges), (*self.edges, self.edges[-1])))
        return rng.uniform(low, high).astype(np.float32), observed

    def times(self, share: float) -> ColumnProfile:
        """As of this share of the rows."""
        counts = tuple(share * count for count in self.counts)
        return replace(self, counts=counts, missing=share * self.missing, impossible=share * self.impossible)

    def runs_on(self, now: ColumnProfile) -> bool:
        """Does a newer table go on where this one ended? Far more of it lies beyond the end, and no more on this side
        of any edge."""
        if not self.runs or not self.edges:
            return False
        before, after = (np.array(each.counts)[:: self.runs].cumsum() for each in (self, now))

        def moved(edge: int, sign: int) -> bool:
            both = [np.array([each[edge], each[-1] - each[edge]]) for each in (before, after)]
            shares = [each[0] / max(each.sum(), 1) for each in both]
            return sign * (shares[1] - shares[0]) > 0 and differ(*both)

        inner = range(len(self.edges))
        return moved(inner[-1], -1) and not any(moved(edge, 1) for edge in inner)


@dataclass(frozen=True)
class Profile:
    """Of every modelled column of a table, in the order of its cells."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    learned: tuple[Profile, ...] = ()  # of each table by itself, if several were learned from, the newest last

    @classmethod
    def learn(cls, columns: Sequence[EncodedColumn], cells: Cells, dates: Container[str] = ()) -> Profile:
        """Bins that suit these cells, (N, D), and their counts; `dates` are the names of columns that hold such."""
        values, observed = cells.values.cpu().numpy().T, cells.observed.cpu().numpy().T
        each = zip(columns, values, observed, strict=True)
        return cls(0, tuple(_bins(column, own[seen], column.name in dates) for column, own, seen in each)).of(cells)

    def of(self, cells: Cells) -> Profile:
        """Of other cells, (N, D), in the same bins."""
        values, observed = cells.values.cpu().numpy().T, cells.observed.cpu().numpy().T
        each = zip(self.columns, values, observed, strict=True)
        return Profile(len(cells), tuple(own.of(value, seen) for own, value, seen in each))

    def gone_on(self, cells: Cells) -> NDArray[np.bool_]:
        """Which cells of a newer table, (N, D), lie beyond the end of a column that goes on there."""
        beyond, values = np.zeros(cells.values.shape, dtype=bool), cells.values.cpu().numpy()
        for place, (own, now) in enumerate(zip(self.columns, self.of(cells).columns, strict=True)):
            if own.runs_on(now):
                beyond[:, place] = own.runs * values[:, place] > own.runs * own.edges[:: own.runs][-1]
        return beyond

    def __add__(self, other: Profile) -> Profile:
        each = zip(self.columns, other.columns, strict=True)
        return Profile(self.rows + other.rows, tuple(own + more for own, more in each))

    def grown(self, columns: Sequence[EncodedColumn]) -> Profile:
        """With room for the levels that these columns have at their ends by now."""
        own = tuple(_grown(own, column) for own, column in zip(self.columns, columns, strict=True))
        return replace(self, columns=own, learned=tuple(each.grown(columns) for each in self.learned))

    def followed_by(self, new: Profile) -> Profile:
        """The newer one; if it is about few rows, with a part of this one to make up RECENT rows."""
        share = min(max(RECENT - new.rows, 0) / max(self.rows, 1), 1.0)
        kept = Profile(round(share * self.rows), tuple(column.times(share) for column in self.columns))
        before = self.learned or (replace(self, learned=()),)
        return replace(kept + new, learned=(*before, new)[-REMEMBERED:])

    def draw(self, rows: int, rng: np.random.Generator) -> Cells:
        """Cells (rows, D) with every column as it was by itself, and nothing to do with the others."""
        drawn = [column.draw(rows, rng) for column in self.columns]
        values, observed = (torch.from_numpy(np.stack(each, axis=1)) for each in zip(*drawn, strict=True))
        return Cells(values, observed)

    def to_json(self) -> dict[str, Any]:
        """As a model file holds it."""
        own = {"rows": self.rows, "columns": pack(self.columns)}
        return own | ({"learned": pack(self.learned)} if self.learned else {})

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Profile:
        """The opposite of to_json."""
        return unpack_fields(cls, entry)


def _bins(column: EncodedColumn, values: NDArray[np.float32], is_date: bool) -> ColumnProfile:
    """An empty profile with the bins of a column that holds these values, (N,), in the order of rows."""
    at = column.edges(values[np.isfinite(values)])
    runs = _direction(values) or int(is_date)
    if runs and isinstance(column, RealColumn):
        at = np.clip(at, *column.reach).tolist()  # it ends where usual values do, however far out an error lies
    edges = np.unique(np.array(at, np.float32)).astype(float).tolist()
    counts = (0.0,) * (len(column.levels) or len(edges) + 1)
    return ColumnProfile(tuple(edges), counts, 0.0, 0.0, runs)


def _direction(values: NDArray[np.float32]) -> int:
    """1 if values rise from row to row, -1 if they fall, 0 if neither.

    >>> _direction(np.arange(30)), _direction(-np.arange(30)), _direction(np.arange(30) % 7)
    (1, -1, 0)
    """
    steps = np.diff(values[np.isfinite(values)])
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    if up + down < ENOUGH or max(up, down) < NEARLY_ALL * (up + down):
        return 0
    return 1 if up > down else -1


def _grown(profile: ColumnProfile, column: EncodedColumn) -> ColumnProfile:
    more = max(len(column.levels) - len(profile.counts), 0)
    return replace(profile, counts=profile.counts + (0.0,) * more)


# ---------------------------------------------------------------- two profiles compared


def moved(columns: Sequence[EncodedColumn], then: Profile, now: Profile, write: Writer) -> dict[str, str]:
    """Columns that are as in none of the tables learned from, and how they moved, in a sentence each."""
    found = {}
    for place, (column, after) in enumerate(zip(columns, now.columns, strict=True)):
        tables = [list(_moves(column, each.columns[place], after, write)) for each in (then, *then.learned)]
        if all(tables):
            said = tables[0]
            found[column.name] = f"{column.name} moved since the model learned: {'; '.join(said)}"
    return found


def _moves(column: EncodedColumn, then: ColumnProfile, now: ColumnProfile, write: Writer) -> Iterator[str]:
    known = [sum(each.counts) for each in (then, now)]
    told = [count + each.impossible for count, each in zip(known, (then, now), strict=True)]
    # Each question by itself: that many more cells are missing does not say that the others moved.
    if differ(np.array([then.missing, told[0]]), np.array([now.missing, told[1]])):
        gaps = [each.missing / max(each.missing + count, 1) for each, count in zip((then, now), told, strict=True)]
        yield f"it is missing in {percent(gaps[1])} of the rows, it was in {percent(gaps[0])}"
    if differ(np.array([then.impossible, known[0]]), np.array([now.impossible, known[1]])):
        unknown = [each.impossible / max(count, 1) for each, count in zip((then, now), told, strict=True)]
        yield f"{percent(unknown[1])} of its cells {column.unknown}, {percent(unknown[0])} did then"
    if differ(np.array(then.counts), np.array(now.counts)) and not then.runs_on(now):
        shares = [np.array(each.counts) / count for each, count in zip((then, now), known, strict=True)]
        say = _of_numbers if then.edges else _of_levels
        yield say(column, then.edges, shares[0], shares[1], write)


def differ(then: Floats, now: Floats) -> bool:
    """Do counts (bins,) of two samples tell that they have different distributions, by enough to matter?

    >>> differ(np.array([90.0, 10.0]), np.array([88.0, 12.0])), differ(np.array([90.0, 10.0]), np.array([50.0, 50.0]))
    (False, True)
    """
    sizes = then.sum(), now.sum()
    if min(sizes) == 0:
        return False
    then, now = _without_rare(then, now)
    spare = len(then) - 1
    if spare == 0:
        return False
    # By chance alone the divergence of two samples is about this.
    by_chance = spare * (1 / sizes[0] + 1 / sizes[1]) / (8 * math.log(2))
    enough = divergence(then / sizes[0], now / sizes[1], 0.5) - by_chance >= LEAST_MOVED
    share = sizes[0] / sum(sizes)
    statistic = 2 * math.log(2) * sum(sizes) * divergence(then / sizes[0], now / sizes[1], share)
    return bool(enough and _deviations(statistic, spare) >= SURE)


def divergence(then: Floats, now: Floats, share: float) -> float:
    """Jensen-Shannon divergence of two distributions (bins,), of which the first makes up a share, in bits.

    >>> divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.5), divergence(np.array([1.0]), np.array([1.0]), 0.5)
    (1.0, 0.0)
    """
    mixed = share * then + (1 - share) * now
    return max(_bits(mixed) - share * _bits(then) - (1 - share) * _bits(now), 0.0)


def _bits(shares: Floats) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log2(some)).sum())


def _without_rare(then: Floats, now: Floats) -> tuple[Floats, Floats]:
    """Counts (bins,) with all bins as one that are rare in the smaller sample."""
    expected = (then / then.sum() + now / now.sum()) / 2 * min(then.sum(), now.sum())
    rare = expected < LEAST_EXPECTED
    both = [np.append(each[~rare], each[rare].sum()) for each in (then, now)]
    keep = (both[0] + both[1]) > 0
    return both[0][keep], both[1][keep]


def _deviations(statistic: float, freedom: int) -> float:
    """How far beyond chance a chi-squared statistic is, in deviations of a normal (Wilson and Hilferty).

    >>> round(_deviations(3.84, 1), 1), round(_deviations(27.6, 17), 1)
    (1.7, 1.6)
    """
    spread = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


def _of_levels(column: EncodedColumn, _: Sequence[float], then: Floats, now: Floats, write: Writer) -> str:
    level = int(np.abs(now - then).argmax())
    return f"{write(column, level)} is {percent(now[level])} of the cells, it was {percent(then[level])}"


def _of_numbers(column: EncodedColumn, edges: Sequence[float], then: Floats, now: Floats, write: Writer) -> str:
    """By the edge that most cells have passed, or by the bin that gained the most, if that says more."""
    below_then, below_now = then.cumsum()[:-1], now.cumsum()[:-1]
    edge, gained = int(np.abs(below_now - below_then).argmax()), int((now - then).argmax())
    passed = float(below_then[edge] - below_now[edge])
    if 0 < gained < len(edges) and now[gained] - then[gained] > abs(passed):
        between = f"between {write(column, edges[gained - 1])} and {write(column, edges[gained])}"
        return f"{percent(now[gained])} of its cells lie {between}, {percent(then[gained])} did then"
    if passed > 0:
        above = percent(1 - below_now[edge]), percent(1 - below_then[edge])
        return f"{above[0]} of its cells lie above {write(column, edges[edge])}, {above[1]} did then"
    up_to = percent(below_now[edge]), percent(below_then[edge])
    return f"{up_to[0]} of its cells are at most {write(column, edges[edge])}, {up_to[1]} were then"


def percent(share: float) -> str:
    """A share for a sentence.

    >>> percent(0.123), percent(0.004), percent(-2e-16), percent(0.9999)
    ('12 %', '0.4 %', '0 %', '100 %')
    """
    return f"{abs(100 * share):.0f} %" if share < 1e-9 or share >= 0.01 else f"{100 * share:.1g} %"
