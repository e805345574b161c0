"""Columns that belong together: those whose values people exchange, and those that another column decides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cellmend.evaluation.vandal_kinds import CODE, Column

LOOKED_AT = 2000  # rows in which it is looked for what decides what
KEPT = 0.98  # of the rows hold the value that is the usual one for what decides it
FEW = 3  # values of a column at least, and rows that a value is told by
USUAL = 0.9  # of the rows at most hold one value


def exchanged(columns: Sequence[Column]) -> dict[int, int]:
    """Columns beside each other whose values look alike but are not the same: dates, names of one word, coordinates."""
    found: dict[int, int] = {}
    for (one, left), (other, right) in pairwise(enumerate(columns)):
        if one not in found and _look_alike(left, right) and _differ(left, right):
            found |= {one: other, other: one}
    return found


def _look_alike(one: Column, other: Column) -> bool:
    if one.dated or other.dated:
        return one.dated and other.dated
    if one.measured and other.measured:
        return _decimals(one) == _decimals(other) > 0
    return one.worded and other.worded and _are_names(one) and _are_names(other)


def _decimals(column: Column) -> int:
    """The most common number of digits after the point."""
    counts = [len(text.strip().partition(".")[2]) for text in column.filled]
    return max(set(counts), key=counts.count)


def _are_names(column: Column) -> bool:
    """Are most of its values one capitalised word each, and many?"""
    words = sum(count for text, count in column.counts.items() if re.fullmatch(r"[^\W\d_a-z][^\W\d_]+", text))
    return words > USUAL * len(column.filled) and len(column.counts) > 10 * FEW


def _differ(one: Column, other: Column) -> bool:
    return float(np.mean([a != b for a, b in zip(one.texts, other.texts, strict=True)])) > USUAL


def decided(columns: Sequence[Column]) -> set[int]:
    """Columns of names and codes whose value another column tells, as a customer tells the city."""
    codes = [np.unique(column.texts[:LOOKED_AT], return_inverse=True)[1] for column in columns]
    told = [place for place, column in enumerate(columns) if _is_told(column)]
    return {place for place in told if any(_decides(codes[by], codes[place]) for by in _others(columns, place))}


def _is_told(column: Column) -> bool:
    """Is it a name or a code that stands often, and not nearly always the same?"""
    named = column.worded or bool(CODE.search(column.name.lower().strip()))
    most = max(column.counts.values(), default=0)
    return named and FEW <= len(column.counts) < len(column.filled) / FEW and most < USUAL * len(column.filled)


def _others(columns: Sequence[Column], place: int) -> list[int]:
    """Columns that may decide this one: not measured, not running, with values that stand again."""
    return [
        by
        for by, column in enumerate(columns)
        if by != place and not column.measured and not column.dated and len(column.counts) < len(column.filled) / FEW
    ]


def _decides(by: NDArray[np.int64], column: NDArray[np.int64]) -> bool:
    """In groups of rows with one value, does the column nearly always hold the same, and more surely than by chance?"""
    pairs, counts = np.unique(by * (column.max() + 1) + column, return_counts=True)
    group = pairs // (column.max() + 1)
    sizes, usual = np.bincount(group, counts), np.zeros(group.max() + 1)
    np.maximum.at(usual, group, counts)
    large = sizes >= FEW
    chance = np.bincount(column).max() / len(column)
    kept = usual[large].sum() / max(sizes[large].sum(), 1)
    return bool(sizes[large].sum() > len(column) / 2 and kept >= KEPT and chance < USUAL)
