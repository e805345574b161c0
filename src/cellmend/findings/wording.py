"""Cells of a table in the user's units and words, and repairs as changes of the table."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.findings.expectation import Expectation, Meant
from cellmend.findings.finding import Finding
from cellmend.model.columns import EncodedColumn, in_words
from cellmend.model.encoding import TableEncoder
from cellmend.table.frames import Change
from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.texts import Notation
from cellmend.table.values import as_text, family, shortened


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
        return [value for value in column.encode(understood).tolist() if np.isfinite(value)]

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

    def meant(
        self, rows: NDArray[np.int64], suspects: Mapping[tuple[int, int], Suspect], flagged: NDArray[np.bool_]
    ) -> Meant:
        """Of cells `flagged` (n, D) of these rows the model values that may have been meant, by place in `rows` and
        model column: those that a suspect names, of a column that has few numbers among these, or else all of them."""
        places = {row: place for place, row in enumerate(rows.tolist())}
        columns = {position: d for d, position in enumerate(self.encoder.positions)}
        few = {
            (place, d): list(column.few)
            for d, column in enumerate(self.encoder.columns)
            if column.few
            for place in np.flatnonzero(flagged[:, d]).tolist()
        }
        told = {
            (places[row], columns[position]): self.read(self.encoder.columns[columns[position]], suspect.meant)
            for (row, position), suspect in suspects.items()
            if row in places and position in columns and suspect.meant and not suspect.is_told
        }
        both = {cell: [value for value in told[cell] if value in few[cell]] for cell in told.keys() & few.keys()}
        return told | few | {cell: values for cell, values in both.items() if values}

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
            ordered = sorted(new)
            rows = np.zeros(self.table.rows, dtype=bool)
            rows[ordered] = True
            values = [new[row] for row in ordered]
            if name in levels or any(not isinstance(value, int | float) for value in values):
                changes[position] = Change.to_cells(rows, values)
            else:
                changes[position] = Change(rows, np.array(values, dtype=np.float64), None)
        return changes

    def spelled(self, column: EncodedColumn, suspect: Suspect, meant: float) -> Any:
        """The text that may have been meant and says this model value; the nearest if the model knows none."""
        texts = [text for text in suspect.meant if self.read(column, [text]) == [meant]]
        text = texts[0] if texts else suspect.meant[0]
        position = self.table.names.index(column.name)
        if position in self._notations or np.isnan(meant):
            return held_as(self.table, position, text)
        return column.decode_one(meant)

    def rounded(self, column: EncodedColumn, value: Any, expected: Expectation) -> Any:
        """A number that only has too many decimals, without those; None if it lies where it is not expected."""
        notation = self.table.notations.get(column.name)
        number = None if notation is None else notation.rounded(as_text(value))
        meant = None if number is None else column.within(number, expected.low, expected.high)
        return None if meant is None else self.write(column, meant)

    def value(self, row: int, name: str) -> Any:
        """What stands in a cell, as the user's table has it."""
        return self.table.arrow[name][row].as_py()

    def stands_again(self, row: int, name: str) -> bool:
        """Does another column of the row hold the same? Then it is no extreme by nature: 0, 0 and 0, or 999."""
        return any(
            self.value(row, each.name) == self.value(row, name) for each in self.encoder.columns if each.name != name
        )

    def neighbour(self, row: int, column: int) -> str:
        """A column that matters and what stands in it: "x 5.12"."""
        name = self.encoder.columns[column].name
        return f"{name} {shortened(self.value(row, name))}"


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
    with suppress(ValueError):  # a person may say what no cell of the column can hold
        if pa.types.is_temporal(type_):
            return datetime.datetime.fromisoformat(text)
        if family(type_) == "number":
            number = float(text)
            return int(number) if number.is_integer() else number
    return text
