"""Workbooks (.xlsx): the table in the first sheet; other sheets, formulas and formats stay as they were."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.errors import FileError
from cellmend.files.cells import as_text, column_of, differences, typed_like
from cellmend.files.csvtext import named
from cellmend.files.places import first_line


@dataclass(frozen=True)
class Workbook:
    """An .xlsx file and where the table lies in its first sheet."""

    content: bytes
    top: int  # the table's first row below its header, as the sheet counts
    columns: list[int]  # (D,) likewise
    table: pa.Table

    @property
    def line_numbers(self) -> NDArray[np.int64]:
        """The row of the sheet, as it counts them, in which each row stands, (N,)."""
        return self.top + np.arange(self.table.num_rows)

    def with_table(self, changed: pa.Table) -> bytes:
        """The workbook with the cells of this table; those that do not differ, and all else, are as they were."""
        workbook = _openpyxl().load_workbook(io.BytesIO(self.content), rich_text=True)
        for row, cells in differences(self.table, changed).items():
            for column, new in cells.items():
                cell = workbook.worksheets[0].cell(self.top + row, self.columns[column])
                cell.value = None if new == "" else typed_like(cell.value, new)
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # also if it looks like a formula
        whole = io.BytesIO()
        workbook.save(whole)
        return whole.getvalue()


def read_workbook(content: bytes, name: str) -> Workbook:
    """A workbook's bytes; the first row with a filled cell is the header."""
    rows = _sheet(content, name)
    filled = [place for place, row in enumerate(rows) if any(cell is not None for cell in row)]
    if not filled:
        raise FileError(f"{name} must hold a table in its first sheet; it is empty.")
    header, *body = rows[filled[0] : filled[-1] + 1]
    width = max(map(len, rows))
    across = [[row[column] if column < len(row) else None for row in (header, *body)] for column in range(width)]
    columns = [column for column, cells in enumerate(across) if any(cell is not None for cell in cells)]
    names = named(["" if cells[0] is None else as_text(cells[0]) for cells in across])
    table = pa.table([column_of(across[column][1:]) for column in columns], names=[names[column] for column in columns])
    return Workbook(content, filled[0] + 2, [column + 1 for column in columns], table)


def _sheet(content: bytes, name: str) -> list[Sequence[Any]]:
    """The rows of the first sheet, some shorter than others, with the values of formulas."""
    openpyxl = _openpyxl()
    try:
        workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheet = workbook.worksheets[0]
        sheet.reset_dimensions()  # which some programs write wrong
        return list(sheet.iter_rows(values_only=True))
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
