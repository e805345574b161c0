"""The findings in the page: the first ones as lines of a table, and all that have room as data for its script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cellmend.findings.finding import Finding
from cellmend.report.markup import cell_html, cut, escaped
from cellmend.table.values import LARGEST_EXACT_WHOLE, as_text

FINDINGS_BYTES = 1_500_000  # of findings in the page; the rest are in findings.csv
FIRST_PAGE = 50  # findings that stand in the page itself, for paper and where scripts are off
HTML_LETTERS = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}  # as JSON may also write them
Line = tuple[int, int, float | str | None, float, float | str | None, str]


@dataclass(frozen=True)
class Listing:
    """The most suspicious findings, as many as have room."""

    names: Sequence[str]  # of all columns of the table
    columns: dict[int, str]  # place and name of those with findings
    lines: list[str]  # JSON

    @property
    def first(self) -> list[dict[str, str]]:
        """The lines that stand in the page itself: HTML by column of the findings table."""
        return [_html(json.loads(line), self.names) for line in self.lines[:FIRST_PAGE]]

    @property
    def data(self) -> str:
        """JSON for the script."""
        joined = ",\n".join(self.lines)
        return f'{{"columns":{_json([cut(name) for name in self.names])},"lines":[\n{joined}]}}'


def listing_of(findings: Sequence[Finding], names: Sequence[str]) -> Listing | None:
    """The findings in a table with columns of these names; None if there are none."""
    places = {name: place for place, name in enumerate(names)}
    columns = dict(sorted({places[finding.column]: finding.column for finding in findings}.items()))
    return Listing(names, columns, _fitting(findings, places)) if findings else None


def _fitting(findings: Iterable[Finding], places: Mapping[str, int]) -> list[str]:
    """As many findings as have room, as JSON."""
    lines, room = [], FINDINGS_BYTES
    for finding in findings:
        line = _json(_line(finding, places))
        room -= len(line.encode("utf-8", "backslashreplace")) + 2
        if room < 0:
            break
        lines.append(line)
    return lines


def _line(finding: Finding, places: Mapping[str, int]) -> Line:
    """What the page says of one finding: row, place of the column, value, suspicion, repair, reason."""
    value, repair = _cell(finding.value), _cell(finding.repair)
    return finding.row, places[finding.column], value, round(finding.suspicion, 3), repair, cut(finding.reason)


def _cell(value: Any) -> float | str | None:
    """A number that JSON and the script hold exactly, text, or None for what is not there.

    >>> _cell(0.1 + 0.2), _cell("007"), _cell(True), _cell(2**60), _cell(float("nan"))
    (0.3, '007', 'True', '1152921504606846976', 'nan')
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_EXACT_WHOLE
    return json.loads(as_text(value)) if is_number else cut(as_text(value))


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in.

    >>> print(_json("</script>"))
    "\\u003c/script\\u003e"
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(HTML_LETTERS)


def _html(line: Line, names: Sequence[str]) -> dict[str, str]:
    """One line of the table as the script would write it."""
    row, place, value, suspicion, repair, reason = line
    return {
        "row": f"{row}",
        "column": escaped(names[place]),
        "value": "<i>missing</i>" if value is None else cell_html(as_text(value)),
        "repair": "<i>left as found</i>" if repair is None else cell_html(as_text(repair)),
        "suspicion": f"{suspicion:.3f}",
        "reason": escaped(reason),
    }
