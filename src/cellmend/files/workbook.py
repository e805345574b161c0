"""Workbooks (.xlsx): a table in one of the sheets; other sheets, formulas and formats stay as they were."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.errors import FileError, did_you_mean
from cellmend.files.cells import as_text, column_of, differences, typed_like
from cellmend.files.csvtext import LAST_LOOKED_AT, LOOKED_AT, named
from cellmend.files.layout import NOTHING_ASKED, Asked, Layout, check_header_row, find_layout
from cellmend.files.places import first_line

FLAGGED, REPAIRED = "FFF2CC", "D9EAD3"  # colours of cells that were left as found, and of those that were changed
AUTHOR = "cellmend"
FEWEST_ROWS = 3  # of several cells, in a sheet that holds a table and is no cover

Marks = Mapping[tuple[int, int], str]  # row and column of flagged cells, and what is said of them


@dataclass(frozen=True)
class Workbook:
    """An .xlsx file and where the table lies in one of its sheets."""

    content: bytes
    sheet: int  # its place among the worksheets
    top: int  # the table's first row below its header, as the sheet counts
    columns: list[int]  # (D,) likewise
    table: pa.Table
    notes: tuple[str, ...] = ()

    @property
    def line_numbers(self) -> NDArray[np.int64]:
        """The row of the sheet, as it counts them, in which each row stands, (N,)."""
        return self.top + np.arange(self.table.num_rows)

    def with_table(self, changed: pa.Table, marks: Marks | None = None) -> bytes:
        """The workbook with the cells of this table, and flagged ones coloured and commented; all else is as it was."""
        workbook = _openpyxl().load_workbook(io.BytesIO(self.content), rich_text=True)
        sheet, differ = workbook.worksheets[self.sheet], differences(self.table, changed)
        for row, cells in differ.items():
            for column, new in cells.items():
                cell = sheet.cell(self.top + row, self.columns[column])
                cell.value = None if new == "" else typed_like(cell.value, new)
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # also if it looks like a formula
        for (row, column), said in (marks or {}).items():
            colour = REPAIRED if column in differ.get(row, {}) else FLAGGED
            _mark(sheet.cell(self.top + row, self.columns[column]), colour, said)
        whole = io.BytesIO()
        workbook.save(whole)
        return whole.getvalue()


def _mark(cell: Any, colour: str, said: str) -> None:
    from openpyxl.comments import Comment  # type: ignore[import-untyped]
    from openpyxl.styles import PatternFill  # type: ignore[import-untyped]

    cell.fill = PatternFill("solid", start_color=colour)
    before = f"{cell.comment.text}\n" if cell.comment else ""
    cell.comment = Comment(before + said, AUTHOR)


def read_workbook(content: bytes, name: str, asked: Asked = NOTHING_ASKED) -> Workbook:
    """A workbook's bytes; the table is in the first sheet that has one, or in the one asked for."""
    sheets = _sheets(content, name)
    title, notes = choose_sheet(sheets, asked.sheet, name)
    found = lay_out(sheets[title], asked.header_row, f"{name}, sheet {title},")
    place = list(sheets).index(title)
    return Workbook(content, place, found.top, found.columns, found.table, (*notes, *found.notes))


class Grid(NamedTuple):
    """A table found among the cells of a sheet."""

    top: int  # its first row below the header, from 1
    columns: list[int]  # from 1
    table: pa.Table
    notes: tuple[str, ...]


def lay_out(rows: Sequence[Sequence[Any]], header_row: int | None, name: str) -> Grid:
    """The table among the rows of a sheet, some shorter than others; empty columns are no part of it."""
    filled = [place for place, row in enumerate(rows) if _is_filled(row)]
    if not filled:
        raise FileError(f"{name} must hold a table; it is empty.")
    width, start, end = max(map(len, rows)), filled[0], filled[-1] + 1
    texts = [
        ["" if cell is None else as_text(cell) for cell in (*row, *[None] * (width - len(row)))]
        for row in rows[start:end]
    ]
    used = [column for column in range(width) if any(row[column].strip() for row in texts)]
    looked = [[row[column] for column in used] for row in texts]
    layout = find_layout(looked[:LOOKED_AT], looked[-LAST_LOOKED_AT:], len(looked))
    if header_row is not None:
        layout = Layout(max(check_header_row(header_row, len(rows), name) - start, 0), len(looked), ())
    body = rows[start + layout.first : start + layout.last]
    across = [[row[column] if column < len(row) else None for row in body] for column in range(width)]
    columns = [column for column, cells in enumerate(across) if any(cell is not None for cell in cells)]
    names = named(["" if cells[0] is None else as_text(cells[0]) for cells in across])
    table = pa.table([column_of(across[column][1:]) for column in columns], names=[names[column] for column in columns])
    return Grid(start + layout.first + 2, [column + 1 for column in columns], table, layout.notes)


def _is_filled(row: Sequence[Any]) -> bool:
    return any(cell is not None for cell in row)


def choose_sheet(sheets: Mapping[str, list[Any]], asked: str | None, name: str) -> tuple[str, list[str]]:
    """The title of the sheet that was asked for, by name or number, or of the first with a table; and a note."""
    titles = list(sheets)
    used = [title for title, rows in sheets.items() if any(map(_is_filled, rows))]
    tables = [title for title in used if sum(len(row) - row.count(None) > 1 for row in sheets[title]) >= FEWEST_ROWS]
    if not titles:
        raise FileError(f"{name} must hold a sheet with a table; it has none.")
    if asked is None:
        title = (*tables, *used, *titles)[0]
        return title, [f"of {len(used)} sheets with content {title} is read (--sheet)"] if len(used) > 1 else []
    if asked in titles:
        return asked, []
    if asked.isdecimal() and 1 <= int(asked) <= len(titles):
        return titles[int(asked) - 1], []
    raise FileError(
        f"--sheet must be one of {', '.join(titles)}, or a number from 1; it is {asked!r}.{did_you_mean(asked, titles)}"
    )


def _sheets(content: bytes, name: str) -> dict[str, list[Sequence[Any]]]:
    """The rows of every sheet by its title, with the values of formulas."""
    openpyxl = _openpyxl()
    try:
        workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        for sheet in workbook.worksheets:
            sheet.reset_dimensions()  # which some programs write wrong
        return {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in workbook.worksheets}
    except Exception as error:  # whatever openpyxl stumbles over
        raise FileError(f"{name} must be an .xlsx workbook; it cannot be read as one ({first_line(error)}).") from None


def write_workbook(table: pa.Table, path: Path) -> None:
    """A new workbook of one sheet."""
    _openpyxl()
    with path.open("wb") as file:
        table.to_pandas().to_excel(file, index=False)


def _openpyxl() -> Any:
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        raise FileError("Reading .xlsx needs openpyxl. Hint: pip install 'cellmend[excel]'.") from None
    return openpyxl
