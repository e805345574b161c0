"""What tells a person which row it is: the columns that name it, and the line of its file; and findings as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.files.guarded import write_guarded
from cellmend.findings.finding import FINDINGS, Finding
from cellmend.table.values import as_text

LINE = "line"  # of the file, as an editor or a spreadsheet counts
BETWEEN = " · "


@dataclass(frozen=True)
class Rows:
    """The rows of a table, as its file has them."""

    table: pa.Table
    names: Sequence[str] = ()  # columns that name a row
    lines: NDArray[np.int64] | None = None  # (N,) where each row starts; None if the file has no lines

    def line(self, row: int) -> int | None:
        """The line of the file in which a row starts."""
        return None if self.lines is None else int(self.lines[row])

    def at(self, row: int) -> str:
        """A row by its line if the file has lines, as findings say it.

        >>> Rows(pa.table({})).at(1300), Rows(pa.table({}), lines=np.arange(2, 9)).at(3)
        ('row 1300', 'line 5')
        """
        return f"row {row}" if self.lines is None else f"line {self.line(row)}"

    def where(self, first: int, last: int | None = None) -> str:
        """A row, or rows from one to another, by their lines if the file has lines.

        >>> Rows(pa.table({})).where(1300), Rows(pa.table({}), lines=np.arange(2, 9)).where(0, 3)
        ('row 1,300', 'lines 2 to 5')
        """
        what = "row" if self.lines is None else "line"
        start, end = (row if self.lines is None else self.line(row) for row in (first, first if last is None else last))
        return f"{what} {start:,}" if start == end else f"{what}s {start:,} to {end:,}"

    def named(self, row: int) -> list[str]:
        """What stands in the columns that name a row."""
        return [as_text(self.cell(row, name)) for name in self.names]

    def name(self, row: int) -> str:
        """A row by its name; "" if it has none.

        >>> Rows(pa.table({"make": ["Peugeot"], "model": ["107"], "doors": [5]}), ["make", "model"]).name(0)
        'Peugeot · 107'
        """
        return BETWEEN.join(text for text in self.named(row) if text.strip())

    def cell(self, row: int, name: str) -> Any:
        return self.table[name][row].as_py()


def write_findings(path: Path, findings: Sequence[Finding], rows: Rows | None = None) -> None:
    """Findings that a spreadsheet can open without running anything in them; with `rows` also where each row is."""
    names = [*FINDINGS.names, *(_columns_of(rows) if rows else ())]
    write_guarded(path, names, (_cells(finding, rows) for finding in findings))


def _columns_of(rows: Rows) -> list[str]:
    """The line, and the columns that name a row, under other names where findings have one of theirs.

    >>> _columns_of(Rows(pa.table({"value": ["a"], "city": ["Ulm"]}), ["value", "city"]))
    ['line', 'value of the row', 'city']
    """
    taken = {*FINDINGS.names, LINE}
    return [LINE, *(f"{name} of the row" if name in taken else name for name in rows.names)]


def _cells(finding: Finding, rows: Rows | None) -> list[str]:
    own = [as_text(getattr(finding, name)) for name in FINDINGS.names]
    return own if rows is None else [*own, as_text(rows.line(finding.row)), *rows.named(finding.row)]
