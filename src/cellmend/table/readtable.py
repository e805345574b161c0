"""A table as it was read: the user's own, what its columns say, and the cells that their own columns speak against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.table.causes.named import RULE
from cellmend.table.frames import Frame, read_frame
from cellmend.table.texts import Notation
from cellmend.table.values import Bools, Floats, as_text, family, plain, shortened

DOUBTFUL = 0.5  # suspicion from which a value was probably not meant
LEAST_TOLD = 0.3  # suspicion from which other rows speak against a cell
SURE = 0.95  # suspicion of a cell that breaks a plain rule: one in twenty may have a reason
MOST = 0.99  # suspicion by numbers alone: something may really have happened


@dataclass(frozen=True)
class Suspect:
    """One cell that its column's own values speak against, whatever the rest of the row says."""

    row: int
    column: int  # place in the table
    suspicion: float
    meant: tuple[str, ...]  # what may have been meant, the nearest first; none if nobody knows
    reason: str
    cause: str  # what made it wrong, one of causes.named.MEANINGS
    readable: bool = True  # does the cell say something that a model can learn from?

    @property
    def hidden(self) -> bool:
        """Is the cell taken for missing by the model?"""
        return not self.readable and self.suspicion >= DOUBTFUL


@dataclass(frozen=True)
class Violation:
    """Cells that together break what every row keeps: one of them at least is wrong, however little each looks so."""

    rule: str  # in plain words
    cells: tuple[tuple[int, int], ...]  # row, and place of the column
    said: str  # what stands there
    meant: str | None = None  # what the rule says in place of the last cell
    chance: float = 1.0  # that one of them is wrong; less where a table shows the rule, and nobody says that it is sure
    cause: str = RULE

    @property
    def reason(self) -> str:
        return f"{self.said}; the rule is {self.rule}" if self.cause == RULE else self.said


@dataclass(frozen=True)
class ReadTable:
    """The user's table, and the same with text as the numbers or dates that it says."""

    frame: Frame
    understood: pa.Table  # NaN where a number or a date should stand and does not; null where nothing does
    notations: Mapping[str, Notation]  # how columns of text and dates were understood
    suspects: tuple[Suspect, ...] = ()
    violations: tuple[Violation, ...] = ()  # of rules that a person calls sure, and of keys
    vouched: Mapping[int, Floats] = field(default_factory=dict)  # by column, of the suspicion is left (N,)
    otherwise: Mapping[str, str] = field(default_factory=dict)  # columns written otherwise than learned, and how
    adapted: frozenset[str] = frozenset()  # columns that are read in another notation than the one learned
    rows_alone: bool = False  # is each row judged by itself, whatever others stand beside it?

    @property
    def arrow(self) -> pa.Table:
        """The cells as they came."""
        return self.frame.arrow

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.frame.arrow.num_rows

    @cached_property
    def names(self) -> list[str]:
        """Of the columns, in their order."""
        return self.frame.arrow.column_names

    def family_of(self, name: str) -> str:
        """Of what a column says: 'boolean', 'text', 'number' or 'other'."""
        return family(self.understood.schema.field(name).type)

    def cell(self, row: int, column: int | str) -> Any:
        """What stands in a cell, as the user's table has it."""
        return self.arrow.column(column)[row].as_py()

    def text(self, row: int, column: int | str) -> str | None:
        """The same as a person writes it; None for a gap."""
        cell = self.cell(row, column)
        return None if cell is None else as_text(cell)

    def said(self, place: int, row: int) -> str:
        """The same for a sentence: "size is 5"."""
        return f"{self.names[place]} is {shortened(self.cell(row, place))}"

    @property
    def by_rows(self) -> bool:
        """Is each row judged by itself? So are those of an array, which have no order."""
        return self.rows_alone or self.frame.is_array

    @property
    def says_something(self) -> Bools:
        """Which cells were understood as anything but a gap, (N, all columns)."""
        each = [pc.is_valid(plain(column)).to_numpy(zero_copy_only=False) for column in self.understood.columns]
        return np.stack(each, axis=1)

    def without(self, cells: Bools) -> ReadTable:
        """The table with these cells (N, all columns) taken for missing, so that nothing is learned from them."""
        understood = self.understood
        for place in np.flatnonzero(cells.any(axis=0)).tolist():
            held = plain(understood.column(place))
            column = pc.if_else(pa.array(cells[:, place]), pa.scalar(None, held.type), held)
            understood = understood.set_column(place, understood.column_names[place], column)
        return replace(self, understood=understood)

    def with_suspects(self, found: Iterable[Suspect]) -> ReadTable:
        """The table with these suspects too; several experts may speak of one cell, each with its own voice."""
        suspects = sorted([*self.suspects, *found], key=lambda each: (each.row, each.column, -each.suspicion))
        return replace(self, suspects=tuple(suspects))

    @property
    def without_suspects(self) -> ReadTable:
        """The table with what is probably misspelled or unreadable taken for missing."""
        hidden = np.zeros((self.rows, len(self.names)), dtype=bool)
        for each in self.suspects:
            hidden[each.row, each.column] |= each.hidden
        return self.without(hidden)


def read_typed(X: Any) -> ReadTable:
    """A table whose columns all have the type of what they hold, taken as it is."""
    frame = read_frame(X)
    return ReadTable(frame, frame.arrow, {})
