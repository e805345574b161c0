"""The order in which rows follow each other in time: as they stand, or by a column of time; all, or by groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cellmend.table.priors import BY_FAR, ENOUGH, MOSTLY, NEARLY_ALL, TOGETHER
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.quantities import numbers_of
from cellmend.table.schema import DATE, IGNORE, Column, Schema
from cellmend.table.values import Floats, Ints, codes_of

FEWEST_ROWS = 100  # from which it is asked whether they have an order
MOST_GROUPS = 200
MOST_ORDERS = 12  # that are tried
CLEARLY = 0.5  # of what is left when rows are shuffled may be left by neighbours
FAR_CLEARER = 0.2  # and where no column says that rows are ordered in time
TIME_NAME = re.compile(r"(^|[_\s-])(time|timestamp|epoch|seconds?|minutes?|t|ts)($|[_\s-])", re.IGNORECASE)


@dataclass(frozen=True)
class Order:
    """By which column of time rows are sorted, "" for as they stand; and which column says whose row it is, or ""."""

    time: str = ""
    group: str = ""

    def pieces(self, table: ReadTable) -> list[Ints]:
        """Row numbers of each group in the order of time."""
        rows = np.arange(table.rows)
        if self.time:
            times = numbers_of(table, self.time)
            rows = np.argsort(times, kind="stable")[: int(np.isfinite(times).sum())]
        if not self.group:
            return [rows]
        codes = codes_of(table.understood[self.group])[rows]
        ranked = rows[np.argsort(codes, kind="stable")]
        cuts = np.flatnonzero(np.diff(np.sort(codes))) + 1
        return [piece for piece in np.split(ranked, cuts) if len(piece)]

    def words(self) -> str:
        """For a sentence.

        >>> Order("time", "device").words(), Order().words()
        ('by time for each device', 'from row to row')
        """
        by = f"by {self.time}" if self.time else "from row to row"
        return f"{by} for each {self.group}" if self.group else by


def learn_order(table: ReadTable, schema: Schema, columns: Mapping[str, Floats]) -> tuple[Order, list[str]]:
    """The order in which neighbours tell most, and the columns of which they clearly tell something.

    Rows without a time may be sorted or grouped for another reason, mostly by codes: there neighbours must tell several
    measurements, and far more clearly.
    """
    if table.rows < FEWEST_ROWS or not columns:
        return Order(), []
    plain_order, timed = Order(), _timed_orders(table, schema)[:MOST_ORDERS]
    left = {order: _left(order.pieces(table), columns) for order in (plain_order, *timed)}
    best = min(timed, key=lambda order: left[order].mean(), default=plain_order)
    if left[best].mean() > BY_FAR * left[plain_order].mean() and plain_order in timed:  # a special order must tell more
        best = plain_order
    shuffled = _left([np.random.default_rng(0).permutation(piece) for piece in best.pieces(table)], columns)
    told = left[best] < (CLEARLY if timed else FAR_CLEARER) * shuffled
    if not timed:
        known = (numbers[np.isfinite(numbers)] for numbers in columns.values())
        told &= ~np.array([(own == np.round(own)).mean() > NEARLY_ALL for own in known])  # whole numbers
        told &= told.sum() >= TOGETHER
    return best, [name for name, each in zip(columns, told.tolist(), strict=True) if each]


def _timed_orders(table: ReadTable, schema: Schema) -> list[Order]:
    """Orders in which a column of time goes on: as rows stand, or sorted by it; all rows, or those of each group."""
    groups = [column.name for column in schema if column.kind != IGNORE and _may_group(table, column.name)]
    times = {column.name: numbers_of(table, column.name) for column in schema if _is_time(table, column)}
    found = []
    for group in ("", *groups):
        pieces = Order("", group).pieces(table)
        for name, numbers in times.items():
            known = [own[np.isfinite(own)] for own in (numbers[piece] for piece in pieces)]
            different = sum(len(np.unique(own)) for own in known)
            steps = np.concatenate([np.diff(own) for own in known])
            if len(steps) and different >= MOSTLY * sum(len(own) for own in known):
                found.append(Order("" if (steps >= 0).mean() >= NEARLY_ALL else name, group))
    return list(dict.fromkeys(found))


def _is_time(table: ReadTable, column: Column) -> bool:
    is_number = table.family_of(column.name) == "number"
    return column.kind == DATE or bool(is_number and TIME_NAME.search(column.name))


def _may_group(table: ReadTable, name: str) -> bool:
    if table.family_of(name) != "text":
        return False
    sizes = np.bincount(codes_of(table.understood[name]))
    return 1 < len(sizes) <= MOST_GROUPS and float(np.median(sizes)) >= ENOUGH


def _left(pieces: Sequence[Ints], columns: Mapping[str, Floats]) -> Floats:
    """Of each column the share of its spread that is left when neighbours are known, (C,); 1 at most."""
    return np.array([_left_of([values[piece] for piece in pieces], values) for values in columns.values()])


def _left_of(pieces: Sequence[Floats], values: Floats) -> float:
    known = values[np.isfinite(values)]
    spread = float(np.median(np.abs(known - np.median(known)))) if len(known) else 0.0
    misses = []
    for piece in pieces:
        x = piece[np.isfinite(piece)]
        if len(x) > 4:
            beside = np.median(np.stack([x[:-4], x[1:-3], x[3:-1], x[4:]]), axis=0)
            misses.append(np.abs(x[2:-2] - beside))
    if not misses or spread == 0:
        return 1.0
    return min(float(np.median(np.concatenate(misses))) / spread, 1.0)
