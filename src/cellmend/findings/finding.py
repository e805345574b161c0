"""The Finding, the only schema of its table, and all that came of mending one."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from cellmend.findings.contradictions import Contradiction
from cellmend.table.causes.named import UNLIKE_ROW
from cellmend.table.frames import Frame
from cellmend.table.readtable import ReadTable
from cellmend.table.values import Floats, as_text

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
        ("contradiction", pa.int64()),  # cells of one number contradict each other; none for others
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
    contradiction: int | None = None  # from 1: one of the cells with this number is wrong, and nothing tells which


@dataclass(frozen=True, repr=False)
class Mended:
    """All that was found in a table, and the table repaired."""

    table: ReadTable
    matrix: Floats  # (rows, columns) suspicion of every cell
    found: Sequence[Finding]
    repaired: Any  # of the user's kind
    contradictions: Sequence[Contradiction] = ()  # that are among what was found, in the order of their numbers

    @property
    def findings(self) -> Any:
        """One line per flagged cell, or cell of a contradiction; a DataFrame of the user's kind."""
        return to_frame(self.found, self.table.frame)

    @property
    def suspicion(self) -> Any:
        """The suspicion of every cell, kind and shape of the user's table."""
        return self.table.frame.matrix_of(self.matrix)

    def __repr__(self) -> str:
        number = len(self.contradictions)
        together = f" {number:,} {'contradiction' if number == 1 else 'contradictions'}," if number else ""
        repaired = sum(finding.repair is not None for finding in self.found)
        return (
            f"Mended: {len(self.flagged):,} of {self.matrix.size:,} cells flagged,{together} {repaired:,} repaired; "
            "see .findings, .repaired, .suspicion"
        )

    def _repr_html_(self) -> str:
        return to_html(self.found)

    @property
    def flagged(self) -> list[Finding]:
        """The cells that look wrong by themselves."""
        return [finding for finding in self.found if finding.contradiction is None]

    @property
    def expected_false(self) -> float:
        """How many of the flagged cells are expected to be right, and of the contradictions to be none."""
        sure = [*(finding.suspicion for finding in self.flagged), *(each.probability for each in self.contradictions)]
        return float(sum(1 - probability for probability in sure))


def say_contradictions(number: int) -> str:
    """How often one of several cells is wrong and nothing tells which.

    >>> say_contradictions(40)
    'In 40 places cells contradict each other: one of them is wrong.'
    """
    return f"In {number:,} {'place' if number == 1 else 'places'} cells contradict each other: one of them is wrong."


def say_broken(rows: int) -> str:
    """In how many rows a rule is broken, and that is all that is known.

    >>> say_broken(40)
    'In 40 rows without a finding a rule is broken: exceptions, or errors that nothing else tells of.'
    """
    where = f"In {rows:,} {'row' if rows == 1 else 'rows'} without a finding"
    return f"{where} a rule is broken: exceptions, or errors that nothing else tells of."


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


def with_contradictions(
    cells: Sequence[Finding], contradictions: Sequence[Contradiction], table: ReadTable, top: int | None = None
) -> tuple[list[Finding], list[Contradiction]]:
    """Flagged cells and contradictions in one list, the most probable first, and the contradictions by their numbers.

    With `top` so many, each contradiction counted once.
    """
    each: list[tuple[float, list[Finding], Contradiction | None]] = [(cell.suspicion, [cell], None) for cell in cells]
    each += [(one.probability, _lines(one, table), one) for one in contradictions]
    chosen = sorted(each, key=lambda entry: -entry[0])[:top]
    kept = [one for _, _, one in chosen if one is not None]
    numbers = {id(one): number for number, one in enumerate(kept, start=1)}
    return [replace(line, contradiction=numbers.get(id(one))) for _, lines, one in chosen for line in lines], kept


def _lines(contradiction: Contradiction, table: ReadTable) -> list[Finding]:
    """One for each cell of a contradiction; none has a repair."""
    each, reason = contradiction, contradiction.reason
    return [
        Finding(row, name, table.cell(row, name), own, None, None, None, reason, each.cause)
        for (row, _), name, own in zip(each.cells, each.names, each.suspicions, strict=True)
    ]


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
        written["contradiction"] = written["contradiction"].astype("Int64")  # whole numbers, of which some are missing
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
    cells = ([getattr(each, name) for name in FINDINGS.names] for each in shown)
    texts = ([f"{cell:.6g}" if isinstance(cell, float) else as_text(cell) for cell in row] for row in cells)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in texts)
    more = f"<p>{len(findings) - len(shown):,} more</p>" if len(findings) > len(shown) else ""
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>{more}"
