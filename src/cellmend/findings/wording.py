"""Cells of a table in the user's units and words, and repairs as changes of the table."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from cellmend.errors import TableError
from cellmend.findings.finding import Finding
from cellmend.model.columns import EncodedColumn, in_words
from cellmend.model.encoding import TableEncoder
from cellmend.table.frames import Change
from cellmend.table.readtable import ReadTable
from cellmend.table.texts import Notation
from cellmend.table.values import family, shortened

MOST_WHOLE = 2.0**63  # from which on whole numbers are held as floats


@dataclass(frozen=True)
class Wording:
    """What is needed to speak of a table's cells in the user's units and words."""

    table: ReadTable
    encoder: TableEncoder

    def write(self, column: EncodedColumn, value: float) -> Any:
        """A model value as the user's column holds it."""
        decoded = column.decode_one(value)
        notation = self._notations.get(self.table.names.index(column.name))
        return decoded if notation is None else notation.write(decoded, column.decimals)

    def say(self, column: EncodedColumn, value: float) -> str:
        """A model value for a sentence."""
        return in_words(column, value, self.table.notations.get(column.name))

    def read(self, column: EncodedColumn, texts: Sequence[str]) -> list[float]:
        """Texts of a column as model values; those that it does not know are left out."""
        notation, place = self.table.notations.get(column.name), self.table.names.index(column.name)
        if family(self.table.arrow.schema.field(place).type) == "text" and notation is not None:
            values = notation.read(pa.chunked_array([pa.array(texts, pa.string())])).values
        else:
            values = pa.array([held_as(self.table, place, text) for text in texts])
            values = values if notation is None else notation.understand(pa.chunked_array([values]))
        understood = pa.chunked_array(values.chunks if isinstance(values, pa.ChunkedArray) else [values])
        try:
            return [value for value in column.encode(understood).tolist() if np.isfinite(value)]
        except TableError:  # no text is a level of a column of truth values or numbers
            return []

    def writers(self) -> dict[int, Callable[[Any], Any]]:
        """For each modelled position that holds text or dates, how a number is written there."""
        return {
            position: partial(notation.write, decimals=column.decimals)
            for column, position in zip(self.encoder.columns, self.encoder.positions, strict=True)
            if (notation := self._notations.get(position)) is not None
        }

    @cached_property
    def _notations(self) -> dict[int, Notation]:
        """By place, those of columns that hold text or dates; found out once, since every cell is looked at."""
        names, types = self.table.names, self.table.arrow.schema.types
        return {
            names.index(name): notation
            for name, notation in self.table.notations.items()
            if pa.types.is_temporal(types[names.index(name)]) or self.table.frame.holds_text(names.index(name))
        }

    def changes(self, found: Sequence[Finding]) -> dict[int, Change]:
        """The repairs of each column, by its place in the table."""
        by_column: dict[str, dict[int, Any]] = {}
        for finding in found:
            if finding.repair is not None:
                by_column.setdefault(finding.column, {})[finding.row] = finding.repair
        levels = {column.name for column in self.encoder.columns if column.levels}
        changes = {}
        for name, every in by_column.items():
            position = self.table.names.index(name)
            new = _with_gaps(every, self.table.arrow.schema.field(position).type)
            rows = np.isin(np.arange(self.table.rows), list(new))
            values = [new[row] for row in sorted(new)]
            if name in levels or any(not isinstance(value, int | float) for value in values):
                changes[position] = Change.to_cells(rows, values)
            else:
                changes[position] = Change(rows, np.array(values, dtype=np.float64), None)
        return changes

    def neighbour(self, row: int, column: int) -> str:
        """A column that matters and what stands in it: "x 5.12"."""
        name = self.encoder.columns[column].name
        return f"{name} {shortened(self.table.cell(row, name))}"


def _with_gaps(new: dict[int, Any], type_: pa.DataType) -> dict[int, Any]:
    """New cells by their rows, those that should be empty as their column holds it; whole numbers cannot be empty.

    >>> _with_gaps({3: "", 4: 2}, pa.float64()), _with_gaps({3: "", 4: 2}, pa.int64())
    ({3: nan, 4: 2}, {4: 2})
    """
    if "" not in new.values() or family(type_) == "text":
        return new
    empty = np.nan if pa.types.is_floating(type_) else None
    filled = {row: empty if value == "" else value for row, value in new.items()}
    return {row: value for row, value in filled.items() if value is not None or pa.types.is_temporal(type_)}


def held_as(table: ReadTable, place: int, text: str) -> Any:
    """A text that says what a cell should be, as its column holds it: as a number, a time or a text."""
    type_ = table.arrow.schema.field(place).type
    if pa.types.is_boolean(type_) and text.lower() in ("true", "false"):
        return text.lower() == "true"
    with suppress(ValueError):  # a person may say what no cell of the column can hold
        if pa.types.is_temporal(type_):
            return datetime.datetime.fromisoformat(text)
        if family(type_) == "number":
            number = float(text)
            return int(number) if number.is_integer() and abs(number) < MOST_WHOLE else number
    return text
