"""The same thing described by several rows, one from each source: what most of them say, each as far as it is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np

from cellmend.table.clocks import clock_in
from cellmend.table.priors import ALIKE, BUT_FOR_ERRORS, BY_FAR, TEN, TOGETHER
from cellmend.table.readtable import LEAST_TOLD, ReadTable, Suspect
from cellmend.table.relations.coding import NONE, Coded, Codes, Value, codes_among
from cellmend.table.relations.groups import LEAST_AGREED, Grouped
from cellmend.table.values import Floats, shortened

FEWEST_ROWS = 50
MOST_SOURCES = 500
CROSSED = 0.3  # of all pairs of a thing and a source are there
MOST_OWN = 0.1  # that two rows of a source agree, beyond chance: else the column is about it, not about things
ROUNDS = 20  # of expectation and maximisation
PRIOR_WRONG, PRIOR_CELLS = 0.2, 5.0  # cells of a source that are wrong, as if so many had been seen
OTHERS = 10.0  # values that a wrong cell may have
OWN = 0.25  # of what a source says is its own: sources copy from each other, wrong values too
MOST_PAIRS = 50_000  # of things and values that are kept


@dataclass(frozen=True)
class Sources:
    """Rows of different sources that tell of the same thing, and what they together say of one of its columns."""

    kind: ClassVar[str] = "sources"

    thing: str  # column that names it
    source: str  # column that names who says so
    column: str
    things: tuple[Value, ...]
    values: tuple[Value, ...]
    pairs: Codes  # (P, 2) places of a thing and of a value that one of its rows has, sorted
    wrong: Floats  # (P,) that this is not so
    top: tuple[str, ...]  # of each thing what is most probable, as it is written
    support: float

    @property
    def columns(self) -> tuple[str, ...]:
        return self.thing, self.source, self.column

    def words(self) -> str:
        return f"rows with the same {self.thing} tell of the same {self.column}, each from another {self.source}"

    def suspects(self, table: ReadTable) -> list[Suspect]:
        things, values = (codes_among(table, n, v) for n, v in ((self.thing, self.things), (self.column, self.values)))
        wide = self.pairs[:, 0] * len(self.values) + self.pairs[:, 1]
        own = things * len(self.values) + values
        found = np.minimum(np.searchsorted(wide, own), len(wide) - 1)
        known = (things >= 0) & (values >= 0) & (wide[found] == own)
        place, suspects = table.names.index(self.column), []
        for row in np.flatnonzero(known & (self.wrong[found] >= LEAST_TOLD)).tolist():
            meant, thing = self.top[things[row]], f"{self.thing} {shortened(self.things[things[row]])}"
            reason = f"{table.said(place, row)}; for {thing} most that is reliable says {shortened(meant)}"
            chance = round(float(self.wrong[found[row]]), 6)
            suspects.append(Suspect(row, place, chance, (meant,), reason, self.kind))
        return suspects


def learn_sources(coded: Sequence[Coded]) -> list[Sources]:
    """What sources say of things, if the table has a column that names things and one that names sources."""
    best: list[Told] = []
    for thing, source in permutations(coded, 2):
        if _tell(thing, source):
            told = [_told(thing, source, each) for each in coded if each is not thing and each is not source]
            best = max(best, [each for each in told if each is not None], key=len)
    return _learn(best) if best else []


def _tell(thing: Coded, source: Coded) -> bool:
    """Does each row tell of a thing by a source that tells of it nowhere else?"""
    both = (thing.codes >= 0) & (source.codes >= 0)
    rows, sources = int(both.sum()), len(source.values)
    if rows < FEWEST_ROWS or not TOGETHER <= sources <= MOST_SOURCES or not isinstance(source.values[0], str):
        return False
    things = len(thing.values)
    often = rows >= TOGETHER * max(things, sources) and things >= TEN
    if not often or not CROSSED * things * sources <= rows <= things * sources / BUT_FOR_ERRORS:
        return False
    return len(np.unique(thing.codes[both] * sources + source.codes[both])) >= BUT_FOR_ERRORS * rows


@dataclass(frozen=True)
class Told:
    """What the rows of a table say of things in one column."""

    thing: Coded
    source: Coded
    column: Coded
    rows: Codes  # (n,) places of the rows that say something
    said: Codes  # (n,) what they say
    grouped: Grouped  # by thing

    @property
    def sources(self) -> Codes:
        """Of each of the rows, (n,)."""
        return self.source.codes[self.rows]


def _told(thing: Coded, source: Coded, column: Coded) -> Told | None:
    """What is said of one column, if the sources agree at all."""
    said = _what_is_said(column)
    rows = np.flatnonzero((thing.codes >= 0) & (source.codes >= 0) & (said >= 0))
    if len(rows) < FEWEST_ROWS or len(np.unique(said[rows])) < ALIKE:
        return None
    grouped, by_source = (Grouped.of(each.codes[rows], said[rows]) for each in (thing, source))
    is_told = grouped.agreement >= LEAST_AGREED and by_source.agreement <= MOST_OWN
    return Told(thing, source, column, rows, said[rows], grouped) if is_told else None


def _learn(told: Sequence[Told]) -> list[Sources]:
    """What is true in each column, and how reliable each source is in all of them."""
    errors = np.full(len(told[0].source.values), PRIOR_WRONG)
    for _ in range(ROUNDS):
        true = [_believe(each, errors) for each in told]
        wrong, rows = np.zeros((2, len(errors)))
        for each, chance in zip(told, true, strict=True):
            wrong += np.bincount(each.sources, 1 - chance[each.grouped.pair], minlength=len(errors))
            rows += np.bincount(each.sources, minlength=len(errors))
        errors = np.clip((wrong + PRIOR_WRONG * PRIOR_CELLS) / (rows + PRIOR_CELLS), 0.001, 0.95)
    return [_sources(each, chance) for each, chance in zip(told, true, strict=True)]


def _believe(told: Told, errors: Floats) -> Floats:
    """How probably each value of each thing is true, (P,), given the share of wrong cells of each source, (S,)."""
    says = (OWN * np.log((1 - errors) * OTHERS / errors))[told.sources]
    each: Floats = np.bincount(told.grouped.pair, says, minlength=len(told.grouped.group)).astype(np.float64)
    total = np.logaddexp(told.grouped.log_sums(each), 0.0)  # or none of them is true
    true: Floats = np.exp(each - total[told.grouped.group])
    return true


def _sources(told: Told, true: Floats) -> Sources:
    thing, column, grouped = told.thing, told.column, told.grouped
    written = {int(said): column.written[column.codes[row]] for row, said in zip(told.rows, told.said, strict=True)}
    top = [""] * len(thing.values)
    for name, pair in zip(grouped.names.tolist(), grouped.best(true).tolist(), strict=True):
        top[name] = written[int(grouped.value[pair])]
    wide = thing.codes[told.rows] * len(column.values) + column.codes[told.rows]
    pairs, first = (each[:MOST_PAIRS] for each in np.unique(wide, return_index=True))
    return Sources(
        thing=thing.name,
        source=told.source.name,
        column=column.name,
        things=tuple(thing.values),
        values=tuple(column.values),
        pairs=np.stack([pairs // len(column.values), pairs % len(column.values)], axis=1),
        wrong=1 - true[grouped.pair[first]],
        top=tuple(top),
        support=float(true[grouped.pair].mean()),
    )


def _what_is_said(column: Coded) -> Codes:
    """What each row says, (N,): times of day by hours and minutes, whatever stands around them."""
    if not isinstance(column.values[0], str):
        return column.codes
    clocks = [clock_in(str(value)) for value in column.values]
    if sum(clock is not None for clock in clocks) < BY_FAR * len(clocks):
        return column.codes
    said = [int(clock.minutes) if clock else value for clock, value in zip(clocks, column.values, strict=True)]
    place = {value: code for code, value in enumerate(dict.fromkeys(said))}
    return np.append(np.array([place[value] for value in said], dtype=np.int64), NONE)[column.codes]
