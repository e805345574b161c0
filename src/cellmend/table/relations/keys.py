"""Keys: identifiers that should stand once, and those that were copied into other rows."""

from __future__ import annotations

import hashlib
import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import zeta
from scipy.stats import poisson

from cellmend.table.dates import Dates
from cellmend.table.priors import BY_FAR, ENOUGH, FEW, MOST_KEPT, NEARLY_ALL, RARE, USUAL
from cellmend.table.readtable import LEAST_TOLD, SURE, ReadTable, Suspect, Violation
from cellmend.table.relations.breaks import chance_of_error
from cellmend.table.relations.coding import Coded, Codes, Value, code_column, codes_among
from cellmend.table.relations.groups import agreeing, beyond_chance
from cellmend.table.values import Bools, Floats, Ints, as_text

LEAST_UNIQUE = 0.4  # of the rows have a value of their own
STEEPNESS = 3.0  # exponent by which fewer values of a key stand more often
SAME_THING = 0.25  # that rows with the same value agree elsewhere, beyond chance: then they describe the same thing
NEIGHBOURS = 5  # rows before, and as many after, that tell where a count was
SORTED_AGAIN = 0.75  # of the rows that are out of order follow each other in order all the same
TELLING = 0.01  # chance that two rows have the same value in a column that tells rows apart
FIRST = 18 / 19  # of first columns of codes name rows: 17 of 17 public tables that are not counted, by Laplace's rule


@dataclass(frozen=True)
class Key:
    """A column in which nearly every value stands once, and some were copied into other rows."""

    kind: ClassVar[str] = "key"

    column: str
    values: tuple[Value, ...]  # (R,) that stand more than once
    counts: Codes  # (R,) rows with each
    copied: Floats  # (R,) chance that all but one of these rows have it by mistake
    owners: frozenset[str]  # digests of rows that one of them belongs to, where the order of rows tells
    support: float
    counted: Mapping[str, str] = field(default_factory=dict)  # what was meant, by digests of rows, if rows are counted
    by_design: float = 0.0  # chance that values name rows, so that none stands twice by chance or by right

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def words(self) -> str:
        return f"{self.column} is different in every row"

    @property
    def is_rule(self) -> bool:
        """Is it more than numbers that hardly ever come twice?"""
        return bool(self.by_design or self.values)

    def copies(self, table: ReadTable) -> list[Ints]:
        """The rows of this table with each of the values that stand more than once.

        Neighbours that are the same in a sorted column are ties, and no copies.
        """
        column = code_column(table, self.column)
        rows, is_sorted = np.flatnonzero(column.codes >= 0), _in_order(column) is not None
        order = rows[np.argsort(column.codes[rows], kind="stable")]
        groups = np.split(order, np.flatnonzero(np.diff(column.codes[order])) + 1)
        return [each for each in groups if len(each) > 1 and not (is_sorted and (np.diff(each) == 1).all())]

    def violations(self, table: ReadTable) -> list[Violation]:
        """Of each value that stands more than once, if values name rows, the rows out of order, or all: one at least
        has it by mistake."""
        copies, place = self.copies(table) if self.by_design else [], table.names.index(self.column)
        chance = self.by_design * chance_of_error(sum(len(rows) - 1 for rows in copies) / table.rows) if copies else 0.0
        ordered = _in_order(code_column(table, self.column)) if copies else None
        found = []
        for rows in copies:
            said = f"{table.said(place, int(rows[0]))} in {len(rows)} rows; nearly all of its values stand once"
            alone = (
                [] if ordered is None or not ordered[rows].any() else [[row] for row in rows[~ordered[rows]].tolist()]
            )
            for wrong in alone or [rows.tolist()]:
                cells = tuple((row, place) for row in wrong)
                found.append(Violation(self.words(), cells, said, chance=chance, cause=self.kind))
        return found

    def suspects(self, table: ReadTable) -> list[Suspect]:
        codes = codes_among(table, self.column, self.values)
        rows, place = np.flatnonzero(codes >= 0), table.names.index(self.column)
        found = []
        for row, code, digest in zip(rows.tolist(), codes[rows].tolist(), row_digests(table, rows), strict=True):
            if digest not in self.owners:
                count = int(self.counts[code])
                share = 1.0 if self.owners else (count - 1) / count
                reason = f"{table.said(place, row)} in {count} rows; nearly all of its values stand once"
                chance, meant = round(float(self.copied[code]) * share, 6), self.counted.get(digest)
                found.append(Suspect(row, place, chance, () if meant is None else (meant,), reason, self.kind))
        return [each for each in found if each.suspicion >= LEAST_TOLD]


def row_digests(table: ReadTable, rows: Codes) -> Iterator[str]:
    """A short text for each of these rows that hardly any other row has."""
    for row in table.arrow.take(rows).to_pylist():
        yield hashlib.blake2b("\x1f".join(map(as_text, row.values())).encode(), digest_size=8).hexdigest()


def learn_keys(coded: Sequence[Coded], table: ReadTable) -> list[Key]:
    """The columns in which values stand once but for copies."""
    return [key for each in coded if (key := _learn(each, coded, table)) is not None]


def _learn(column: Coded, coded: Sequence[Coded], table: ReadTable) -> Key | None:
    counts, codes = column.counts, column.codes
    held, repeated = int(counts.sum()), np.flatnonzero(counts > 1)
    if held < ENOUGH or np.count_nonzero(counts == 1) < LEAST_UNIQUE * held:
        return None
    copied, ordered = _copied(counts), _in_order(column)
    if ordered is not None:
        copied = np.where(np.bincount(codes[(codes >= 0) & ~ordered], minlength=len(counts)) > 0, SURE, copied)
    copied, by_design = copied[repeated], _by_design(column, names_rows=_may_name_rows(column.name, table))
    twice = repeated if by_design else repeated[copied > 0]
    if len(twice) and _agree_elsewhere(column, coded, twice) > SAME_THING:
        copied, by_design = np.zeros(len(repeated)), 0.0
    if not (copied > 0).any() and not by_design and len(repeated) > USUAL * len(counts):
        return None
    kept = np.argsort(-copied, kind="stable")[:MOST_KEPT]
    kept = kept[copied[kept] > 0]
    owners, rows, meant = np.zeros(len(codes), dtype=bool), np.zeros(0, dtype=np.int64), list[str]()
    if ordered is not None:
        owners, (rows, meant) = ordered & np.isin(codes, repeated[kept]), _counted(column, ordered)
    return Key(
        column.name,
        tuple(column.values[code] for code in repeated[kept].tolist()),
        counts[repeated[kept]],
        copied[kept],
        frozenset(row_digests(table, np.flatnonzero(owners))),
        float(len(counts) / counts.sum()),
        dict(zip(row_digests(table, rows), meant, strict=True)),
        by_design,
    )


def _may_name_rows(name: str, table: ReadTable) -> bool:
    """Is it the first column? But days may come twice there."""
    return name == table.names[0] and not isinstance(table.notations.get(name), Dates)


def _by_design(column: Coded, *, names_rows: bool = False) -> float:
    """Chance that the values of a column name rows, so that each should stand once.

    Drawn at random from the numbers between the least and the largest, some would stand twice. If far fewer do, it is
    no chance that they differ: they are counted off. Where codes mostly name rows (`names_rows`) they may be drawn.
    Texts count if all are the same but for their digits; 0 if that cannot be told.

    >>> def ids(numbers: list[int]) -> Coded:
    ...     values, codes = np.unique(numbers, return_inverse=True)
    ...     return Coded("id", [f"A-{value:05d}" for value in values], [], codes)
    >>> round(_by_design(ids([*range(500), 17])), 6), _by_design(ids([*range(0, 50_000, 100), 500]))
    (1.0, 0.0)
    """
    numbers = _numbers_of(column.values)
    if len(numbers) < ENOUGH:
        return 0.0
    span, rows = max(numbers) - min(numbers) + 1, int(column.counts.sum())
    by_chance = rows + span * math.expm1(rows * math.log1p(-1 / span))  # rows with a number that stood before
    chance = float(poisson.cdf(rows - len(numbers), by_chance))
    return max(1 - chance if chance < RARE else 0.0, FIRST if names_rows else 0.0)


def _numbers_of(values: Sequence[Value]) -> list[int]:
    """Whole numbers, or the digits of texts that are the same but for these; none if some are otherwise."""
    if isinstance(values[0], str):
        texts = [str(value) for value in values]
        same = (
            len({re.sub(r"\d", "0", text) for text in texts}) == 1
            or len({re.sub(r"\d+", "0", text) for text in texts}) == 1
        )
        return [int("".join(filter(str.isdecimal, text)) or 0) for text in texts] if same else []
    return [int(value) for value in values] if all(float(value).is_integer() for value in values) else []


def _copied(counts: Codes) -> Floats:
    """Chance that a value stands so often only because it was copied, (V,).

    Values of a key that stand more than once by right do so twice, thrice and more often less and less, by a power law
    of exponent 3 or more. Those beyond it are copies; none if many stand twice, since then the column is no key.

    >>> _copied(np.array([1] * 50 + [7, 7, 8])).round(2)[-3:]
    array([0.75, 0.75, 0.75])
    >>> _copied(np.array([1] * 50 + [2] * 12 + [3] * 5 + [4] * 3)).any()
    np.False_
    """
    often = np.bincount(counts).astype(np.float64)  # values by how often they stand
    twice = often[2] if len(often) > 2 else 0.0
    if twice > USUAL * often[1]:
        return np.zeros(len(counts))
    beyond = np.cumsum(often[:0:-1])[::-1]  # values that stand so often or more, from 1 on
    expected = twice * 2**STEEPNESS * zeta(STEEPNESS, np.arange(1, len(often)))
    chance = np.maximum(1 - (expected + 1) / (beyond + 1), 0.0)
    chance[:2] = 0.0
    return np.maximum.accumulate(chance)[counts - 1]


def _in_order(column: Coded) -> Bools | None:
    """Which rows do not stand out of order, (N,), if the column is sorted; None if it is not."""
    rank = np.argsort(np.argsort(np.array(column.values, dtype=object if isinstance(column.values[0], str) else float)))
    held = np.flatnonzero(column.codes >= 0)
    places, single = rank[column.codes[held]], column.counts[column.codes[held]] == 1
    ordered = np.zeros(len(column.codes), dtype=bool)
    if (np.diff(places) == 0).mean() > FEW:
        return None
    for each in (places, -places):
        rising = _longest_rise(each)
        if rising[single].mean() >= NEARLY_ALL:
            ordered[held] = rising
            again = np.diff(each[~rising]) > 0  # sorted once more, where a table stands below another
            return ordered if not len(again) or again.mean() < SORTED_AGAIN else None
    return None


def _counted(column: Coded, ordered: Bools) -> tuple[Codes, list[str]]:
    """Rows out of order, and what was meant there, as the column writes it, if it counts the rows one by one.

    >>> ids = Coded("id", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], list("123456"), np.array([0, 1, 0, 3, 4, 5]))
    >>> _counted(ids, np.array([True, True, False, True, True, True]))
    (array([2]), ['3'])
    """
    rows, wrong = np.flatnonzero(ordered), np.flatnonzero(~ordered & (column.codes >= 0))
    if isinstance(column.values[0], str) or len(rows) < NEIGHBOURS or not len(wrong):
        return wrong[:0], []
    numbers = np.array(column.values, dtype=np.float64)[column.codes[rows]]
    step = 1.0 if numbers[-1] > numbers[0] else -1.0
    offsets = numbers - step * rows  # the same where rows are counted
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(offsets, NEIGHBOURS, mode="edge"), NEIGHBOURS)
    usual, after = np.median(windows, axis=1), np.searchsorted(rows, wrong)
    known = usual[after] == usual[after + NEIGHBOURS]  # those before agree with those after
    if (offsets == usual[: len(rows)]).mean() < BY_FAR:
        return wrong[:0], []
    wrong, meant = wrong[known], (usual[after] + step * wrong)[known]
    places = len(column.written[column.codes[rows[0]]].partition(".")[2])
    return wrong, [f"{number:.{places}f}" for number in meant.tolist()]


def _longest_rise(numbers: Codes) -> Bools:
    """Which numbers make up the longest run, with gaps, in which each is greater than the one before.

    >>> _longest_rise(np.array([1, 2, 9, 3, 3, 1, 4])).tolist()
    [True, True, False, False, True, False, True]
    """
    ends: list[int] = []  # the least last number of a run of each length
    places: list[int] = []
    before = np.full(len(numbers), -1)
    for place, number in enumerate(numbers.tolist()):
        length = bisect_left(ends, number)
        before[place] = places[length - 1] if length else -1
        ends[length : length + 1], places[length : length + 1] = [number], [place]
    rising, place = np.zeros(len(numbers), dtype=bool), places[-1] if places else -1
    while place >= 0:
        rising[place], place = True, int(before[place])
    return rising


def _agree_elsewhere(column: Coded, coded: Sequence[Coded], repeated: Codes) -> float:
    """How much more than by chance two rows with the same repeated value agree in the column that tells most.

    Columns of many values tell more than others: errors that lie close together agree in what changes seldom.
    """
    rows = np.flatnonzero(np.isin(column.codes, repeated))
    found: dict[bool, list[float]] = {True: [0.0], False: [0.0]}
    for other in coded:
        own = rows[other.codes[rows] >= 0]
        sizes = np.bincount(column.codes[own])
        if other is not column and (sizes > 1).any():
            _, counts = np.unique(column.codes[own] * len(other.values) + other.codes[own], return_counts=True)
            chance = float(((other.counts / other.counts.sum()) ** 2).sum())
            found[chance <= TELLING].append(beyond_chance(agreeing(counts, sizes), chance))
    return max(found[True]) if len(found[True]) > 1 else float(np.mean(found[False]))
