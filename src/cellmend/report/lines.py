"""The findings as CSV: what was found, and which row of the file it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cellmend.files.guarded import write_guarded
from cellmend.findings.finding import FINDINGS, Finding
from cellmend.report.rows import Rows
from cellmend.table.values import as_text

LINE = "line"  # of the file, as an editor or a spreadsheet counts


def write_findings(path: Path, findings: Sequence[Finding], rows: Rows | None = None) -> None:
    """Findings that a spreadsheet can open without running anything in them; with `rows` also where each row is."""
    names = [*FINDINGS.names, *(_columns_of(rows) if rows else ())]
    write_guarded(path, names, (_cells(finding, rows) for finding in findings))


def _columns_of(rows: Rows) -> list[str]:
    """The line, and the columns that name a row, under other names where findings have one of theirs.

    >>> import pyarrow as pa
    >>> _columns_of(Rows(pa.table({"value": ["a"], "city": ["Ulm"]}), ["value", "city"]))
    ['line', 'value of the row', 'city']
    """
    taken = {*FINDINGS.names, LINE}
    return [LINE, *(f"{name} of the row" if name in taken else name for name in rows.names)]


def _cells(finding: Finding, rows: Rows | None) -> list[str]:
    own = [as_text(getattr(finding, name)) for name in FINDINGS.names]
    return own if rows is None else [*own, as_text(rows.line(finding.row)), *rows.named(finding.row)]
