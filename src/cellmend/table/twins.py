"""Rows that say nearly the same, so that one thing may stand in a table twice.

Two rows are compared only if they agree in one of a few groups of columns, which twins do that differ in fewer columns.
How much it says that they agree in a column is how seldom any two rows do, and two rows that agree in another column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cellmend.table.priors import LOOKED_AT, MULTIPLIER, NEARLY_ALL, RARE, TEN, TOGETHER
from cellmend.table.readtable import ReadTable
from cellmend.table.values import Bools, Floats, Ints, codes_of

MOST_COLUMNS = 30  # that are compared, the most telling ones
MOST_DIFFERENT = 0.25  # of the columns in which twins may differ
NEIGHBOURS = 4  # rows of the same group that each is compared with


class Twins(NamedTuple):
    """Two rows, and the columns in which they differ."""

    rows: tuple[int, int]
    differ: tuple[str, ...]


def find_twins(table: ReadTable) -> list[Twins]:
    """The pairs of rows that agree in nearly all columns, far beyond chance; each row with the first of its twins.

    Columns in which all rows differ, as numbers that name them, do not count. What columns have to do with each other
    is learned without the later rows of pairs, unless these are so many that it is natural to agree.
    """
    names, codes = _telling(table)
    if len(names) < TOGETHER or table.rows < TEN:
        return []
    alone = -np.log([float(((np.bincount(column) / table.rows) ** 2).sum()) for column in codes.T])
    enough = math.log(table.rows * (table.rows - 1) / 2) - math.log(RARE)
    if alone.sum() < enough:
        return []
    pairs, same = _near(codes, alone, max(1, int(MOST_DIFFERENT * len(names))))
    others = np.setdiff1d(np.arange(table.rows), pairs[:, 1])
    says = _agreement(codes[others] if len(others) >= NEARLY_ALL * table.rows else codes)
    patterns, pattern = np.unique(same, axis=0, return_inverse=True)  # far fewer than pairs
    are_twins = np.array([_told(says, each) >= enough for each in patterns], dtype=bool)[pattern]
    _, first = np.unique(pairs[are_twins, 1], return_index=True)
    found = zip(pairs[are_twins][first].tolist(), same[are_twins][first].tolist(), strict=True)
    return sorted(
        Twins((row, twin), tuple(name for name, agrees in zip(names, own, strict=True) if not agrees))
        for (row, twin), own in found
    )


def _near(codes: Ints, says: Floats, most: int) -> tuple[Ints, Bools]:
    """Pairs of rows that differ in so many columns at most, (n, 2), in order, and where they agree, (n, C)."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for pairs in _candidates(codes, says, most + 1):
        same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
        found.append(pairs[same.sum(axis=1) >= codes.shape[1] - most])
    near = np.unique(np.concatenate(found), axis=0)
    return near, codes[near[:, 0]] == codes[near[:, 1]]


def _telling(table: ReadTable) -> tuple[list[str], Ints]:
    """The columns whose values stand more than once, but hardly in all rows, the most telling ones; (N, C)."""
    found = []
    for name, column in zip(table.names, table.understood.columns, strict=True):
        if pa.types.is_nested(column.type):
            continue
        codes = codes_of(column)
        counts = np.bincount(codes)
        repeated = counts.max() > 1 and counts.max() <= NEARLY_ALL * table.rows
        found += [(float(((counts / table.rows) ** 2).sum()), name, codes)] if repeated else []
    chosen = sorted(found, key=lambda each: each[:2])[:MOST_COLUMNS]
    return [name for _, name, _ in chosen], np.stack([c for *_, c in chosen], axis=1) if chosen else np.zeros(
        (0, 0), dtype=np.int64
    )


def _agreement(codes: Ints) -> Floats:
    """How much it says that two rows agree in a column, alone on the diagonal, or if they agree in another one, (C, C):
    minus the log of the chance, from pairs of rows."""
    some = codes[:: max(1, len(codes) // LOOKED_AT)]
    columns = some.shape[1]
    pairs = np.zeros((columns, columns))
    for one in range(columns):
        for other in range(one, columns):
            joined = some[:, one] * (int(some[:, other].max()) + 1) + some[:, other]
            counts = np.unique(joined, return_counts=True)[1].astype(np.float64)
            pairs[one, other] = pairs[other, one] = (counts * (counts - 1) / 2).sum()
    every, alone = len(some) * (len(some) - 1) / 2, pairs.diagonal()
    chance = (pairs + 1 / columns) / (alone[None, :] + 1)  # that they agree in the row's column, given the other one
    chance[np.diag_indices(columns)] = (alone + 1) / (every + 1)
    return -np.log(np.minimum(chance, 1.0))


def _candidates(codes: Ints, says: Floats, groups: int) -> Iterator[Ints]:
    """Pairs of rows that agree in all columns of a group, (n, 2), for each of so many groups that say about as much."""
    members: list[list[int]] = [[] for _ in range(min(groups, codes.shape[1]))]
    for column in np.argsort(-says, kind="stable").tolist():
        min(members, key=lambda own: sum(says[each] for each in own)).append(column)
    for own in members:
        whole = np.zeros(len(codes), dtype=np.uint64)
        for column in own:
            whole = whole * np.uint64(MULTIPLIER) + codes[:, column].astype(np.uint64) + np.uint64(1)
        order = np.argsort(whole, kind="stable")
        for lag in range(1, NEIGHBOURS + 1):
            same = whole[order[lag:]] == whole[order[:-lag]]
            yield np.stack([order[:-lag][same], order[lag:][same]], axis=1)


def _told(says: Floats, agree: Sequence[bool]) -> float:
    """How much the columns in which two rows agree say together: each no more than any one before it leaves open."""
    own = np.flatnonzero(agree)
    return sum(float(min(says[column, column], *says[column, own[:at]], math.inf)) for at, column in enumerate(own))
