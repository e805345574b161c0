"""Columns as whole numbers, so that rows that hold the same are found fast, in a whole table as in a piece of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.table.readtable import ReadTable
from cellmend.table.values import Ints, family, level_text, plain

Value = str | float
Codes = Ints
NONE, UNKNOWN = -1, -2  # the codes of a cell that says nothing, and of one that says something unknown


@dataclass(frozen=True)
class Coded:
    """A column's different values, as they are written, and which of them each row holds, (N,)."""

    name: str
    values: list[Value]
    written: list[str]
    codes: Codes

    @property
    def counts(self) -> Codes:
        """How often each value stands."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))


def code_column(table: ReadTable, name: str) -> Coded:
    """A column by its values; a cell that is probably a slip counts for what was meant."""
    cells = _mended(table, name)
    coded = cells.dictionary_encode()
    values, codes = coded.dictionary.to_pylist(), coded.indices.fill_null(NONE).to_numpy(zero_copy_only=False)
    return Coded(name, values, _written(table, name, values, codes), codes.astype(np.int64))


def codes_among(table: ReadTable, name: str, values: Sequence[Value]) -> Codes:
    """Which of these values each row holds, (N,); nothing is said of a column that comes in another type."""
    cells = _mended(table, name)
    if values and isinstance(values[0], str) != pa.types.is_string(cells.type):  # all values are of one type
        return np.full(len(cells), NONE, dtype=np.int64)
    known = pa.array(values, cells.type)
    found = pc.fill_null(pc.index_in(cells, value_set=known, skip_nulls=True), UNKNOWN)
    return np.where(cells.is_null(), NONE, found.to_numpy(zero_copy_only=False)).astype(np.int64)


def _mended(table: ReadTable, name: str) -> pa.Array:
    """A column as text or as numbers, null where it says nothing, with what was meant in place of slips.

    A slip by which several values may have been meant says nothing: taken for one of them, it would speak for another
    thing against all cells of its row.
    """
    cells = _comparable(plain(table.understood[name])).combine_chunks()
    place = table.names.index(name)
    slips = [each for each in table.suspects if each.column == place and each.hidden and each.meant]
    meant = {each.row: each.meant[0] if len(each.meant) == 1 else None for each in slips}
    if not meant or not pa.types.is_string(cells.type):
        return cells
    rows = np.zeros(len(cells), dtype=bool)
    rows[list(meant)] = True
    return pc.replace_with_mask(cells, pa.array(rows), pa.array([meant[row] for row in sorted(meant)], pa.string()))


def _comparable(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    if family(cells.type) == "number":
        numbers = cells.cast(pa.float64(), safe=False)
        return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))
    texts = cells.cast(pa.string())
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def _written(table: ReadTable, name: str, values: list[Any], codes: Codes) -> list[str]:
    """Each value as the first cell that holds it writes it."""
    cells = table.arrow[name]
    if not values or isinstance(values[0], str) or family(cells.type) != "text":
        return [level_text(value) for value in values]
    held, first = np.unique(codes, return_index=True)
    rows = first[held >= 0]
    return [str(text).strip() for text in cells.take(pa.array(rows)).to_pylist()]
