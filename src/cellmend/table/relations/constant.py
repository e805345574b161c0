"""Columns that hold one number all along, but for cells around it that nothing in the table explains.

A code that is 4 in six of seven rows, and 2, 3 or 5 in the others: if it really differed, something else in those rows
would differ too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import chdtrc

from cellmend.table.priors import ALIKE, ENOUGH
from cellmend.table.readtable import SURE, ReadTable, Suspect
from cellmend.table.relations.coding import Coded, Codes
from cellmend.table.relations.quantities import numbers_of
from cellmend.table.values import Bools, Floats

STEADY = 0.75  # of the cells hold the one number
LOPSIDED = 3.0  # times as many cells on one side of the number as on the other: then they are a natural tail
FEWEST_COLUMNS = 2  # that could explain them
MOST_LEVELS = 50  # of a column that rows are grouped by
GROUPS = 10  # of rows by the rank of a number, or by where they stand
BY_CHANCE = 0.01  # that any of all columns seems to explain them, though none does


@dataclass(frozen=True)
class Constant:
    """A column of one number, and what nothing explains is wrong."""

    kind: ClassVar[str] = "constant"

    column: str
    number: float
    written: str
    support: float

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def words(self) -> str:
        return f"{self.column} is always {self.written}"

    def suspects(self, table: ReadTable) -> list[Suspect]:
        numbers, place = numbers_of(table, self.column), table.names.index(self.column)
        said = partial(table.said, place)
        often = f"{self.support:.0%} of the rows, and nothing in the others says why they differ"
        return [
            Suspect(row, place, SURE, (self.written,), f"{said(row)}; it is {self.written} in {often}", self.kind)
            for row in np.flatnonzero(np.isfinite(numbers) & (numbers != self.number)).tolist()
        ]


def learn_constants(coded: Sequence[Coded], table: ReadTable) -> list[Constant]:
    """The columns of numbers that are one number, but for cells around it that nothing explains."""
    found = []
    for column in (each for each in coded if table.family_of(each.name) == "number"):
        numbers = numbers_of(table, column.name)
        usual = _usual(numbers[np.isfinite(numbers)])
        if usual is not None and not _is_explained(numbers, usual, [each for each in coded if each is not column]):
            share = float((numbers == usual).sum() / np.isfinite(numbers).sum())
            found.append(Constant(column.name, usual, column.written[int(column.counts.argmax())], share))
    return found


def _usual(numbers: Floats) -> float | None:
    """The one number that nearly all of these are, with the others around it; None if there is none. Of what is mostly
    0, such as a change, the rest is natural.

    >>> _usual(np.repeat([2.0, 3.0, 4.0, 5.0], [10, 20, 200, 15])), _usual(np.repeat([0.0, 1.0, 2.0], [1, 200, 40]))
    (4.0, None)
    """
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) < 3 or counts.max() < STEADY * len(numbers) or len(numbers) - counts.max() < ENOUGH:
        return None
    usual = float(values[counts.argmax()])
    sides = (numbers < usual).sum(), (numbers > usual).sum()
    return usual if usual and max(sides) <= LOPSIDED * min(sides) else None


def _is_explained(numbers: Floats, usual: float, others: Sequence[Coded]) -> bool:
    """Do cells differ from the usual number more often in some rows than in others, by any column, by where they
    stand or by the cell above?"""
    known = np.isfinite(numbers)
    differs = (numbers != usual)[known]
    above = np.concatenate([[0], differs[:-1].astype(np.int64)])
    groupings = [each[known] for other in others for each in _groups(other)]
    if len(groupings) < FEWEST_COLUMNS:
        return True
    groupings += [np.arange(len(differs)) * GROUPS // len(differs), above]
    chances = [_by_chance(differs, groups) for groups in groupings]
    return min(chances) * len(chances) < BY_CHANCE


def _groups(column: Coded) -> Iterator[Codes]:
    """Rows grouped by a column, (N,), -1 where it says nothing; by rank, if it has many numbers."""
    if len(column.values) <= MOST_LEVELS:
        yield column.codes
    elif not isinstance(column.values[0], str):
        rank = np.argsort(np.argsort(np.array(column.values, dtype=np.float64)))
        yield np.where(column.codes >= 0, rank[column.codes] * GROUPS // len(rank), -1)


def _by_chance(differs: Bools, groups: Codes) -> float:
    """The probability that cells which differ lie so unevenly in groups of rows, both (N,), by chance: a chi-squared
    test.

    >>> differs = np.arange(1000) % 5 == 0
    >>> _by_chance(differs, np.arange(1000) % 3) > 0.5, _by_chance(differs, np.arange(1000) // 5 % 2) > 0.5
    (True, True)
    >>> _by_chance(differs, (np.arange(1000) % 5 > 1).astype(int)) < 1e-6
    True
    """
    _, own = np.unique(groups, return_inverse=True)
    rows, found = np.bincount(own), np.bincount(own, weights=differs)
    rare = rows * differs.mean() < ALIKE
    rows, found = (np.append(each[~rare], each[rare].sum()) for each in (rows, found))
    rows, found = rows[rows > 0], found[rows > 0]
    expected = rows * differs.mean()
    statistic = ((found - expected) ** 2 / (expected * (1 - differs.mean()))).sum()
    return float(chdtrc(max(len(rows) - 1, 1), statistic))
