"""The table as the page scrolls through it: some rows at a time, of all rows or of those that a filter keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.review.flagged import Flag, Flagged
from cellmend.review.ledger import Cell, Ledger, state_of
from cellmend.table.values import as_text, family

MOST_ROWS = 200  # sent at once
LONGEST = 200  # letters of a cell that are sent

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Filter:
    """Which rows are shown: those with a flagged or decided cell of this kind, and with this text in any cell."""

    column: str = ""
    cause: str = ""
    least: float = 0.0  # suspicion
    state: str = ""  # see `state_of`; "decided" for all but "open"
    text: str = ""
    rule: str = ""  # that the row breaks
    within: str = ""  # a column that holds the text `holds` and nothing else
    holds: str = ""

    @property
    def asks_for_cells(self) -> bool:
        """Must a row have a flagged or decided cell?"""
        return bool(self.column or self.cause or self.least or self.state)

    def keeps(self, column: str, state: str, flag: Flag | None) -> bool:
        """Is a cell with this state one of those that are asked for?"""
        return (
            self.column in ("", column)
            and (self.cause == "" or (flag is not None and flag.cause == self.cause))
            and (self.least == 0 or (flag is not None and flag.suspicion >= self.least))
            and (self.state in ("", state) or (self.state == "decided" and state != "open"))
        )


@dataclass(frozen=True)
class Mark:
    """A flagged or decided cell among the rows that are shown."""

    row: int
    column: int  # its place
    suspicion: float | None  # None: not flagged
    state: str
    repair: str | None  # what was decided, or else what is proposed


def text_of(table: pa.Table, row: int, name: str) -> str | None:
    """The text of a cell; None if it is missing."""
    value = table[name][row].as_py()
    return None if value is None else as_text(value)


def texts_of(table: pa.Table, cells: Sequence[Cell]) -> list[str | None]:
    """The whole texts of many cells; None for those that are missing.

    >>> texts_of(pa.table({"n": [1, None], "city": ["Ulm", "Bonn"]}), [(1, "city"), (0, "n"), (1, "n")])
    ['Bonn', '1', None]
    """
    by_column: dict[str, list[int]] = {}
    for row, name in cells:
        by_column.setdefault(name, []).append(row)
    held = {name: iter(table[name].take(pa.array(rows)).to_pylist()) for name, rows in by_column.items()}
    found = (next(held[name]) for _, name in cells)
    return [None if value is None else as_text(value) for value in found]


def texts(table: pa.Table, rows: Rows) -> list[list[str | None]]:
    """The texts of some rows, long ones cut; a list a row."""
    across = [[column[row].as_py() for row in rows.tolist()] for column in table.columns]
    return [[None if cell is None else as_text(cell)[:LONGEST] for cell in row] for row in zip(*across, strict=True)]


def marks(rows: Rows, table: pa.Table, flagged: Flagged, ledger: Ledger) -> list[Mark]:
    """The flagged and decided cells of some rows."""
    places = {name: place for place, name in enumerate(table.column_names)}
    found = []
    for row in rows.tolist():
        for cell in {*(flag.cell for flag in flagged.by_row.get(row, ())), *ledger.in_row(row)}:
            flag, decision = flagged.get(cell), ledger.of(cell)
            proposed = flag.repair if flag else None
            repair, state = decision.repair if decision else proposed, state_of(decision, proposed)
            found.append(Mark(row, places[cell[1]], flag.suspicion if flag else None, state, repair))
    return found


def matching_cells(wanted: Filter, flagged: Flagged, ledger: Ledger) -> Iterator[Cell]:
    """The flagged or decided cells that a filter keeps."""
    for cell in {**flagged.by_cell, **{each.cell: None for each in ledger.standing}}:
        flag = flagged.get(cell)
        if wanted.keeps(cell[1], state_of(ledger.of(cell), flag.repair if flag else None), flag):
            yield cell


def rows_holding(table: pa.Table, text: str) -> Rows:
    """The rows with this text in any cell, whatever the case.

    >>> rows_holding(pa.table({"city": ["Ulm", "Bonn"], "n": [1, 2]}), "ULM").tolist()
    [0]
    """
    columns = [each for each in table.columns if any(map(str.isdigit, text)) or family(each.type) != "number"]
    nowhere = np.zeros(table.num_rows, dtype=bool)
    return np.flatnonzero(reduce(np.logical_or, (_holds(column, text) for column in columns), nowhere))


def _holds(column: pa.ChunkedArray, text: str) -> NDArray[np.bool_]:
    """Which cells hold this text, whatever the case."""
    words = column if family(column.type) == "text" else column.cast(pa.string(), safe=False)
    words = words.cast(pa.string()) if pa.types.is_dictionary(words.type) else words
    return pc.fill_null(pc.match_substring(words, text, ignore_case=True), False).to_numpy()
