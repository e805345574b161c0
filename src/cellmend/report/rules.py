"""What the page says of rules: those that rows break, with the rows, and those that all rows keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cellmend.report.markup import counted, cut
from cellmend.report.rows import Rows
from cellmend.table.relations.ruled import Ruled
from cellmend.table.values import shortened

RULES = 30  # of each sort that are listed at most
BROKEN_ROWS = 40  # of each rule that are listed at most
LONGEST_NAME = 60  # letters of a row's name


class BrokenRule(NamedTuple):
    """A rule and some of the rows that break it, in words."""

    rule: str
    said: str  # how many rows, and who says so
    rows: list[str]
    more: int  # rows that are not listed


class RulesShown(NamedTuple):
    """What the page lists, and how many more there are."""

    broken: list[BrokenRule]
    more_broken: int
    kept: list[str]
    more_kept: int


def rules_shown(ruled: Sequence[Ruled], rows: Rows) -> RulesShown:
    """The rules of a table with these rows."""
    broken, kept = [each for each in ruled if each.rows], [cut(each.rule) for each in ruled if not each.rows]
    listed = [_broken(each, rows) for each in broken[:RULES]]
    return RulesShown(listed, max(0, len(broken) - RULES), kept[:RULES], max(0, len(kept) - RULES))


def _broken(each: Ruled, rows: Rows) -> BrokenRule:
    said = f"{counted(len(each.rows), 'row')}{', and you say that all keep it' if each.sure else ''}"
    return BrokenRule(cut(each.rule), said, list(_lines(each, rows)), max(0, len(each.rows) - BROKEN_ROWS))


def _lines(each: Ruled, rows: Rows) -> Iterator[str]:
    """Where each row is and what stands in the columns of the rule: "line 17: zip is 1234"."""
    for row in each.rows[:BROKEN_ROWS]:
        where = f"row {row}" if rows.line(row) is None else f"line {rows.line(row)}"
        name = cut(rows.name(row), LONGEST_NAME)
        cells = ", ".join(f"{column} is {shortened(rows.cell(row, column))}" for column in each.columns)
        yield f"{where}{f' ({name})' if name else ''}: {cells}"
