"""The findings in the page: the first ones as lines of a table, and all that have room, with their rows, as data for
its script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cellmend.findings.finding import Finding
from cellmend.report.markup import cut, escaped, whole_cell_html
from cellmend.report.overview import Overview, place_of
from cellmend.report.rows import Rows
from cellmend.table.values import LARGEST_EXACT_WHOLE, as_text

FINDINGS_BYTES = 1_500_000  # of findings in the page; the rest are in findings.csv
ROWS_BYTES = 700_000  # of rows that can be opened
FIRST_PAGE = 50  # findings that stand in the page itself, for paper and where scripts are off
LONGEST_NAME, LONGEST_CELL = 80, 120  # letters of a row's name, and of a cell of an opened row
OPENED_COLUMNS = 60  # of an opened row
HTML_LETTERS = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}  # as JSON may also write them
Cell = float | str | None


class Line(NamedTuple):
    """What the page says of one finding; the script knows these fields by their order."""

    row: int
    place: int  # of the column in the table
    value: Cell
    suspicion: float
    repair: Cell
    reason: str
    cause: str
    line: int | None  # of the file
    name: str  # of the row
    alike: int | None  # number of the line of the overview that it stands in


@dataclass(frozen=True)
class Listing:
    """The most suspicious findings, as many as have room."""

    names: Sequence[str]  # of all columns of the table
    columns: dict[int, str]  # place and name of those with findings
    causes: list[str]  # of them
    lines: list[str]  # JSON
    opened: list[int]  # places of the columns that an opened row shows
    rows: list[str]  # JSON of opened rows: the row, then its cells

    @property
    def first(self) -> list[dict[str, str]]:
        """The lines that stand in the page itself: HTML by column of the findings table."""
        return [_html(Line(*json.loads(line)), self.names) for line in self.lines[:FIRST_PAGE]]

    @property
    def data(self) -> str:
        """JSON for the script."""
        names = _json([cut(name) for name in self.names])
        lines, rows = (",\n".join(each) for each in (self.lines, self.rows))
        return f'{{"columns":{names},"opened":{_json(self.opened)},"lines":[\n{lines}],"rows":[\n{rows}]}}'


def listing_of(findings: Sequence[Finding], overview: Overview, rows: Rows) -> Listing | None:
    """The findings in a table with these rows; None if there are none."""
    if not findings:
        return None
    names = rows.table.column_names
    places = {name: place for place, name in enumerate(names)}
    columns = dict(sorted({places[finding.column]: finding.column for finding in findings}.items()))
    causes = sorted({finding.cause for finding in findings})
    lines = _fitting((_line(finding, places, overview, rows) for finding in findings), FINDINGS_BYTES)
    first = [*(places[name] for name in rows.names), *columns, *range(len(names))]
    opened = sorted([*dict.fromkeys(first)][:OPENED_COLUMNS])
    flagged = dict.fromkeys(finding.row for finding in findings[: len(lines)])
    cells = ([row, *(_short(rows.cell(row, names[place])) for place in opened)] for row in flagged)
    return Listing(names, columns, causes, lines, opened, _fitting(cells, ROWS_BYTES))


def _fitting(values: Iterable[Any], room: int) -> list[str]:
    """As many values as have room, as JSON."""
    lines = []
    for value in values:
        line = _json(value)
        room -= len(line.encode("utf-8", "backslashreplace")) + 2
        if room < 0:
            break
        lines.append(line)
    return lines


def _line(finding: Finding, places: Mapping[str, int], overview: Overview, rows: Rows) -> Line:
    return Line(
        row=finding.row,
        place=places[finding.column],
        value=_cell(finding.value),
        suspicion=round(finding.suspicion, 3),
        repair=_cell(finding.repair),
        reason=cut(finding.reason),
        cause=finding.cause,
        line=rows.line(finding.row),
        name=cut(rows.name(finding.row), LONGEST_NAME),
        alike=overview.numbers.get(place_of(finding)),
    )


def _cell(value: Any) -> Cell:
    """A number that JSON and the script hold exactly, text, or None for what is not there.

    >>> _cell(0.1 + 0.2), _cell("007"), _cell(True), _cell(2**60), _cell(float("nan"))
    (0.3, '007', 'True', '1152921504606846976', 'nan')
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_EXACT_WHOLE
    return json.loads(as_text(value)) if is_number else cut(as_text(value))


def _short(value: Any) -> str | None:
    return None if value is None else cut(as_text(value), LONGEST_CELL)


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in.

    >>> print(_json("</script>"))
    "\\u003c/script\\u003e"
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(HTML_LETTERS)


def _html(line: Line, names: Sequence[str]) -> dict[str, str]:
    """One line of the table as the script would write it."""
    where = f"row {line.row}" if line.line is None else f"line {line.line}"
    return {
        "row": f"<b>{escaped(line.name)}</b><span>{where}</span>" if line.name else f"<span>{where}</span>",
        "column": whole_cell_html(names[line.place]),
        "value": "<i>missing</i>" if line.value is None else whole_cell_html(as_text(line.value)),
        "repair": "<i>left as found</i>" if line.repair is None else whole_cell_html(as_text(line.repair)),
        "suspicion": f"{line.suspicion:.3f}",
        "reason": escaped(line.reason),
    }
