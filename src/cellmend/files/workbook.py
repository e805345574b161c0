"""Workbooks (.xlsx): a table in one of the sheets; other sheets, formulas and formats stay as they were."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from cellmend.files.packed import LEAST_BOUND, MOST_PACKED
from cellmend.files.places import first_line

FLAGGED, REPAIRED = "FFF2CC", "D9EAD3"  # colours of cells that were left as found, and of those that were changed
AUTHOR = "cellmend"
FEWEST_ROWS = 3  # of several cells, in a sheet that holds a table and is no cover
MOST_ROWS = 2**20  # of a sheet, as the format has it
FREE_CELLS, CELLS_PER_FILLED = 2**20, 100  # that a sheet may have: so many empty ones, and by what stands in it
MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]{1,3}[0-9]+:[A-Z]{1,3}[0-9]+)"')

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
        workbook = _load(self.content, values=False)
        sheet, differ = workbook.worksheets[self.sheet], differences(self.table, changed)
        for row, cells in differ.items():
            for column, new in cells.items():
                cell = sheet.cell(self.top + row, self.columns[column])
                _put(cell, None if new == "" else typed_like(cell.value, new))
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # also if it looks like a formula
        for (row, column), said in (marks or {}).items():
            colour = REPAIRED if column in differ.get(row, {}) else FLAGGED
            _mark(sheet.cell(self.top + row, self.columns[column]), colour, said)
        whole = io.BytesIO()
        workbook.save(whole)
        return whole.getvalue()


def _put(cell: Any, value: Any) -> None:
    from openpyxl.utils.exceptions import IllegalCharacterError  # type: ignore[import-untyped]

    try:
        cell.value = value
    except IllegalCharacterError:
        raise FileError(
            f"A cell of a workbook must hold text without control characters; {value!r} has some."
        ) from None


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
    used = sorted({column for row in rows for column, cell in enumerate(row) if cell is not None and _says(cell)})
    Room(name).take((end - start) * len(used), sum(len(row) - row.count(None) for row in rows))
    inner = rows[start:end]
    top, bottom = (
        [["" if (cell := _at(row, column)) is None else as_text(cell) for column in used] for row in some]
        for some in (inner[:LOOKED_AT], inner[-LAST_LOOKED_AT:])
    )
    layout = find_layout(top, bottom, len(inner))
    if header_row is not None:
        layout = Layout(max(check_header_row(header_row, len(rows), name) - start, 0), len(inner), ())
    body = inner[layout.first : layout.last]
    columns = sorted({column for row in body for column, cell in enumerate(row) if cell is not None})
    names = named(["" if (cell := _at(body[0], column)) is None else as_text(cell) for column in range(width)])
    across = [column_of([_at(row, column) for row in body[1:]]) for column in columns]
    table = pa.table(across, names=[names[column] for column in columns])
    return Grid(start + layout.first + 2, [column + 1 for column in columns], table, layout.notes)


class Room:
    """How many cells a sheet may have, by how many of them the file holds: a few bytes can claim billions."""

    def __init__(self, name: str) -> None:
        self.name, self.left = name, FREE_CELLS

    def take(self, cells: int, filled: int) -> None:
        """Count more cells, of which so many are filled."""
        self.left += CELLS_PER_FILLED * filled - cells
        if self.left < 0:
            raise FileError(
                f"{self.name} must hold cells that stand together; it stands for far more than it holds. "
                "Hint: remove cells that lie far off or are repeated without end."
            )


def _at(row: Sequence[Any], column: int) -> Any:
    """A cell of a row, which may be shorter."""
    return row[column] if column < len(row) else None


def _says(cell: Any) -> bool:
    return not isinstance(cell, str) or cell.strip() != ""


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
    _openpyxl()
    try:
        _refuse_bombs(content, name)
        return {sheet.title: _rows(sheet, name) for sheet in _load(content, values=True).worksheets}
    except FileError:
        raise
    except Exception as error:  # whatever openpyxl stumbles over
        raise FileError(f"{name} must be an .xlsx workbook; it cannot be read as one ({first_line(error)}).") from None


def _rows(sheet: Any, name: str) -> list[Sequence[Any]]:
    """The rows of a sheet, as many as there is room for, without the empty cells at their ends."""
    sheet.reset_dimensions()  # which some programs write wrong
    rows, room = list[Sequence[Any]](), Room(f"{name}, sheet {sheet.title},")
    for row in sheet.iter_rows(values_only=True):
        end = next((place for place in range(len(row), 0, -1) if row[place - 1] is not None), 0)
        rows.append(row[:end])
        room.take(end, end - row[:end].count(None))
        if len(rows) > MOST_ROWS:
            raise FileError(f"{room.name} must have at most {MOST_ROWS:,} rows; it has more.")
    return rows


def _refuse_bombs(content: bytes, name: str) -> None:
    """Stop at a workbook that unpacks to absurdly much, or that merges cells by the million."""
    bound, merged = max(LEAST_BOUND, MOST_PACKED * len(content)), 0
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        if sum(each.file_size for each in packed.infolist()) > bound:
            raise FileError(f"{name} must unpack to at most {MOST_PACKED} times its size; it is more.")
        for each in packed.namelist():
            if each.startswith("xl/worksheets/") and each.endswith(".xml"):
                merged += sum(map(_area, MERGED.findall(packed.read(each))))
    if merged > FREE_CELLS:
        raise FileError(f"{name} must merge at most {FREE_CELLS:,} cells; it merges {merged:,}.")


def _area(span: bytes) -> int:
    from openpyxl.utils import range_boundaries  # type: ignore[import-untyped]

    left, top, right, bottom = (each or 1 for each in range_boundaries(span.decode()))
    return (right - left + 1) * (bottom - top + 1)


def _load(content: bytes, *, values: bool) -> Any:
    """The workbook: with the values of formulas, to be read once; or with all that a copy must keep."""
    _openpyxl()
    from openpyxl.reader.excel import ExcelReader  # type: ignore[import-untyped]

    class Reader(ExcelReader):  # type: ignore[misc]
        def read_chartsheet(self, sheet: Any, rel: Any) -> None:
            with suppress(AttributeError):  # it has no chart, for which openpyxl is not made
                super().read_chartsheet(sheet, rel)

    reader = Reader(io.BytesIO(content), read_only=values, data_only=values, rich_text=not values)
    reader.read()
    return reader.wb


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
