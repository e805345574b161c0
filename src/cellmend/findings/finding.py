"""The Finding, the only schema of its table, and all that came of mending one."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.table.causes.named import UNLIKE_ROW
from cellmend.table.frames import Frame
from cellmend.table.readtable import ReadTable
from cellmend.table.values import as_text

FINDINGS = pa.schema(
    [
        ("row", pa.int64()),  # from 0, in the whole table
        ("column", pa.string()),
        ("value", pa.string()),
        ("suspicion", pa.float64()),
        ("repair", pa.string()),
        ("low", pa.float64()),  # of dates none, where a column must have one type
        ("high", pa.float64()),
        ("reason", pa.string()),
        ("cause", pa.string()),
        ("repair_probability", pa.float64()),  # also of a repair that is not sure enough to be made
    ]
)
MIXED = ("value", "repair")  # of any type, written as text where a column must have one
BOUNDS = ("low", "high")  # numbers, and of dates text
SHOWN_IN_NOTEBOOKS = 50
FEW_ROWS = 1000  # of which error rates are a rough guess


@dataclass(frozen=True)
class Finding:
    """One flagged cell; the fields are the columns of the findings table, in order."""

    row: int  # from 0, the row's place in the table
    column: str
    value: Any
    suspicion: float  # probability that the cell is corrupted
    repair: Any  # None: no value is likely enough
    low: float | str | None  # the clean component's central 90 %, where the column is ordered; text of dates
    high: float | str | None
    reason: str
    cause: str = UNLIKE_ROW  # one of causes.named.MEANINGS
    repair_probability: float = 0.0  # that the cell is wrong and was the repair, also if that is not made


@dataclass(frozen=True)
class Mended:
    """All that was found in a table, and the table repaired."""

    table: ReadTable
    matrix: NDArray[np.float64]  # (rows, columns) suspicion of every cell
    found: Sequence[Finding]
    repaired: Any  # of the user's kind

    @property
    def findings(self) -> Any:
        """One line per flagged cell, a DataFrame of the user's kind."""
        return to_frame(self.found, self.table.frame)

    @property
    def suspicion(self) -> Any:
        """The suspicion of every cell, kind and shape of the user's table."""
        return self.table.frame.matrix_of(self.matrix)

    def _repr_html_(self) -> str:
        return to_html(self.found)

    @property
    def expected_false(self) -> float:
        """How many of the flagged cells are expected to be right."""
        return float(sum(1 - finding.suspicion for finding in self.found))


def say_sure(expected_false: float, rows: int) -> str:
    """How many of the flagged cells may be right, and how far that can be told.

    >>> say_sure(8.7, 10_000), say_sure(0.2, 198)
    ('about 9 of them may be right', 'how many of them are right is hard to tell in 198 rows')
    """
    if rows < FEW_ROWS:
        return f"how many of them are right is hard to tell in {rows:,} {'row' if rows == 1 else 'rows'}"
    if expected_false < 0.5:
        return "what is rare and right may be among them"
    return f"about {expected_false:,.0f} of them may be right"


def to_arrow(findings: Sequence[Finding], *, first_row: int = 0) -> pa.Table:
    """The findings as an Arrow table, values and repairs as text; rows are counted from `first_row`."""
    cells = {name: [getattr(finding, name) for finding in findings] for name in FINDINGS.names}
    cells["row"] = [first_row + row for row in cells["row"]]
    for name in MIXED:
        cells[name] = [None if cell is None else as_text(cell) for cell in cells[name]]
    for name in BOUNDS:
        cells[name] = [None if isinstance(cell, str) else cell for cell in cells[name]]
    return pa.table([pa.array(cells[each.name], each.type) for each in FINDINGS], schema=FINDINGS)


def to_frame(findings: Sequence[Finding], frame: Frame) -> Any:
    """The findings as a DataFrame of the user's kind, pandas for an array.

    `value` and `repair` may be text in one line and a number in the next. pandas holds them as they are; other kinds
    need one type a column, so there they are text. `low` and `high` of dates only pandas has, as text.
    """
    written = frame.frame_of(to_arrow(findings))
    if frame.gives_pandas:
        has_dates = any(isinstance(finding.low, str) for finding in findings)
        for name in (*MIXED, *BOUNDS) if has_dates else MIXED:
            cells = (getattr(finding, name) for finding in findings)
            written[name] = np.fromiter(cells, dtype=object, count=len(findings))
    return written


def to_html(findings: Sequence[Finding]) -> str:
    """Findings as HTML for a notebook, with whole sentences; nothing in them is taken for markup.

    >>> finding = Finding(3, "x", "<b>", 0.9, None, None, None, "x is <b>")
    >>> "<td>&lt;b&gt;</td>" in to_html([finding])
    True
    """
    titles = "".join(f"<th>{name}</th>" for name in FINDINGS.names)
    shown = findings[:SHOWN_IN_NOTEBOOKS]
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_in_table(getattr(each, name)))}</td>" for name in FINDINGS.names) + "</tr>"
        for each in shown
    )
    more = f"<p>{len(findings) - len(shown):,} more</p>" if len(findings) > len(shown) else ""
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>{more}"


def _in_table(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else as_text(cell)
