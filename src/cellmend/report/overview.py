"""Findings at a glance: by column and cause, and in them lines of cells that are to be changed in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cellmend.findings.finding import Finding
from cellmend.findings.groups import Group, Line, grouped
from cellmend.report.markup import around, counted, cut, percent, whole_cell_html
from cellmend.report.rows import Rows
from cellmend.table.causes.named import MEANINGS
from cellmend.table.values import as_text

GROUPS = 200  # that are shown at most
UNFOLDED_GROUPS = 10  # of these that are seen at once
LINES = 12  # of each group that are shown at most
LONGEST_NAME = 60  # letters of a row's name

Place = tuple[int, str, str]  # of a finding: row, column and cause


class LineShown(NamedTuple):
    """Cells that are to be changed in the same way, in words."""

    number: int  # by which the page finds them again
    change: str  # HTML: what stands there, and what it becomes
    rewriting: str  # what is done to all of them; "" where all have the same value and repair
    cells: str  # how many
    sure: str  # how surely they are wrong, and the repair is right
    example: str  # one of their rows


class GroupShown(NamedTuple):
    """The findings of one column and cause, in words."""

    column: str
    place: int  # of the column in the table
    cause: str
    meaning: str  # of the cause
    said: str  # how many cells and values
    lines: list[LineShown]
    more: int  # cells that stand in none of these lines


@dataclass(frozen=True)
class Overview:
    """The groups of a table, the largest first."""

    groups: list[GroupShown]
    left_out: int  # groups
    numbers: Mapping[Place, int] = field(repr=False)  # the line of each finding that stands in one

    @property
    def first(self) -> list[GroupShown]:
        """The groups that are seen at once."""
        return self.groups[:UNFOLDED_GROUPS]

    @property
    def folded(self) -> list[GroupShown]:
        """The other groups."""
        return self.groups[UNFOLDED_GROUPS:]


def overview_of(findings: Sequence[Finding], rows: Rows) -> Overview:
    """The findings in a table with these rows, in groups."""
    groups = grouped(findings)
    places = {name: place for place, name in enumerate(rows.table.column_names)}
    lines = [line for group in groups[:GROUPS] for line in group.lines[:LINES]]
    numbers = {place_of(each): number for number, line in enumerate(lines) for each in line.cells}
    shown = [_group(group, places[group.column], numbers, rows) for group in groups[:GROUPS]]
    return Overview(shown, len(groups) - len(shown), numbers)


def place_of(finding: Finding) -> Place:
    """By what a finding is known."""
    return finding.row, finding.column, finding.cause


def _group(group: Group[Finding], place: int, numbers: Mapping[Place, int], rows: Rows) -> GroupShown:
    lines = [_line(line, numbers[place_of(line.cells[0])], rows) for line in group.lines[:LINES]]
    more = sum(len(line.cells) for line in group.lines[LINES:])
    said = counted(group.cells, "cell") + (f", {counted(group.values, 'value')}" if group.values < group.cells else "")
    return GroupShown(group.column, place, group.cause, MEANINGS.get(group.cause, ""), said, lines, more)


def _line(line: Line[Finding], number: int, rows: Rows) -> LineShown:
    first = line.cells[0]
    name = cut(rows.name(first.row), LONGEST_NAME)
    sure = f"suspicion {percent(line.suspicion)}"
    if first.repair is not None:
        sure = f"{sure}, repair {percent(line.repair_probability)} sure"
    where = rows.at(first.row) if len(line.cells) == 1 else f"first in {rows.at(first.row)}"
    example = f"{where} ({name})" if name else where
    return LineShown(number, _change(first), line.rewriting, counted(len(line.cells), "cell"), sure, example)


def _change(finding: Finding) -> str:
    """What stands in a cell and what it becomes; of long texts the part that differs."""
    missing = "<i>missing</i>"
    if finding.repair is None:
        value = missing if finding.value is None else whole_cell_html(cut(as_text(finding.value), LONGEST_NAME))
        return f'<span class="flagged">{value}</span> <i>left as found</i>'
    was, now = around(as_text(finding.value), as_text(finding.repair))
    value = missing if finding.value is None else whole_cell_html(was)
    return f'<span class="flagged">{value}</span> → <span class="repaired">{whole_cell_html(now)}</span>'
