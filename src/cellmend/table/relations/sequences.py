"""Sequences: columns of a log or a table of measurements, in which neighbouring rows tell what a cell should be.

Neighbours are needed, so where rows are judged alone, as in pieces of a large table, sequences keep silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cellmend.table.priors import ENOUGH, MOSTLY, NEARLY_ALL, TEN
from cellmend.table.readtable import LEAST_TOLD, MOST, ReadTable, Suspect
from cellmend.table.relations.order import Order, learn_order
from cellmend.table.relations.quantities import Quantity, learn_quantity, numbers_of, writer
from cellmend.table.relations.signals import (
    Odd,
    Signal,
    are_regular,
    fallen,
    learn_signal,
    shifts,
    spikes,
    stuck,
    surely,
)
from cellmend.table.schema import DATE, IGNORE, Column, Schema
from cellmend.table.values import Floats


@dataclass(frozen=True)
class Series:
    """A column that changes slowly in an order of rows."""

    kind: ClassVar[str] = "sequence"

    order: Order
    quantity: Quantity
    signal: Signal
    support: float

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in (self.quantity.name, self.order.time, self.order.group) if name)

    def suspects(self, table: ReadTable) -> list[Suspect]:
        """Spikes, stuck and shifted cells, and cells of a counter that fall back; the most suspicious of each cell."""
        name = self.quantity.name
        place, write, numbers = table.names.index(name), writer(table, self.quantity), numbers_of(table, name)
        found = []
        for rows in self.order.pieces(table):
            held, known = numbers[rows], np.isfinite(numbers[rows])
            if known.sum() >= max(TEN, MOSTLY * len(rows)):
                # Gaps are bridged, or neighbours far apart would be taken for the next ones.
                whole = np.interp(np.arange(len(rows)), np.flatnonzero(known), held[known])
                for odd in odd_cells(whole, self.signal, self.quantity.unit):
                    if known[odd.cell]:
                        row, texts = int(rows[odd.cell]), () if np.isnan(odd.meant) else (write(odd.meant),)
                        why = odd.why.format(" and ".join(map(write, odd.beside)))
                        said = f"{table.said(place, row)}{why}"
                        found.append(Suspect(row, place, odd.suspicion, texts, said, self.kind))
        return found

    def words(self) -> str:
        name = self.quantity.name
        if self.signal.rises:
            return f"{name} {'rises' if self.signal.rises > 0 else 'falls'} {self.order.words()}"
        return f"{name} changes slowly {self.order.words()}"


def odd_cells(x: Floats, signal: Signal, unit: float) -> list[Odd]:
    """Cells that their neighbours speak against; of several reasons the surest."""
    spiky, still = spikes(x, signal), stuck(x, signal)
    gone = np.concatenate([surely(spiky), surely(still)])
    others = fallen(x, signal) if signal.rises else [*still, *shifts(x, signal, gone)]
    best: dict[int, Odd] = {}
    for odd in (*others, *spiky):
        chance = round(min(odd.suspicion, MOST), 6)
        same = abs(odd.meant - x[odd.cell]) <= unit / 2  # it is what it should be
        if chance >= LEAST_TOLD and not same and (odd.cell not in best or chance > best[odd.cell].suspicion):
            best[odd.cell] = odd._replace(suspicion=chance)
    return [best[cell] for cell in sorted(best)]


def learn_sequences(table: ReadTable, schema: Schema) -> list[Series]:
    """The columns in which neighbouring rows tell clearly more than any others, in the order that shows it best."""
    columns = {}
    for column in schema:
        number = table.family_of(column.name) == "number"
        if number and (column.kind != IGNORE or column.reason) and column.kind != "category":
            numbers = numbers_of(table, column.name)
            if len(np.unique(numbers[np.isfinite(numbers)])) >= ENOUGH:
                columns[column.name] = numbers
    order, names = learn_order(table, schema, columns)
    found = [_learned(order, columns[name], schema[name], order.pieces(table)) for name in names if name != order.time]
    return [each for each in found if each is not None]


def _learned(order: Order, numbers: Floats, column: Column, pieces: list[Any]) -> Series | None:
    """What is usual of a column in its order; None for times and identifiers whose steps are not all the same."""
    known = [own[np.isfinite(own)] for own in (numbers[rows] for rows in pieces)]
    known = [own for own in known if len(own) >= TEN]
    if not known or (column.kind in (DATE, IGNORE) and not are_regular(known)):
        return None
    quantity = learn_quantity(column.name, np.concatenate(known), is_date=column.kind == DATE)
    signal = learn_signal(known, quantity.unit)
    numbers = np.concatenate(known)
    are_whole, different = (numbers == np.round(numbers)).all(), len(np.unique(numbers))
    if not signal.rises and are_whole and different > NEARLY_ALL * len(numbers):  # identifiers
        return None
    odd = sum(len(odd_cells(own, signal, quantity.unit)) for own in known)
    return Series(order, quantity, signal, 1 - odd / max(sum(len(own) for own in known), 1))
