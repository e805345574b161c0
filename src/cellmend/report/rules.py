"""What the page says of rules: those that rows break, with the rows, and those that all rows keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from cellmend.findings.finding import Finding
from cellmend.report.markup import counted, cut
from cellmend.report.rows import Rows
from cellmend.table.relations.ruled import Ruled
from cellmend.table.values import shortened

RULES = 100  # of each sort that are listed at most
UNFOLDED_RULES = 6  # of each sort that are seen at once
BROKEN_ROWS = 20  # of each rule that are shown with their cells
NUMBERED_ROWS = 500  # and as many more by their lines alone
LONGEST_NAME = 60  # letters of a row's name

Found = Mapping[tuple[int, str], Finding]  # by row and column


class RuleShown(NamedTuple):
    """A rule and the rows that break it, in words."""

    rule: str
    said: str  # how many rows keep it and how many break it, or who says that all keep it
    rows: list[str]  # HTML: where each is, and what stands in the columns of the rule
    others: str  # where more of them are
    more: int  # rows that are not listed


class RulesShown(NamedTuple):
    """What the page lists, and how many more there are."""

    broken: list[RuleShown]
    more_broken: int
    kept: list[RuleShown]
    more_kept: int


def rules_shown(ruled: Sequence[Ruled], rows: Rows, findings: Sequence[Finding]) -> RulesShown:
    """The rules of a table with these rows; a person's own first, then those that rows without a finding break."""
    found = {(each.row, each.column): each for each in findings}
    flagged = {each.row for each in findings}
    broken, kept = [each for each in ruled if each.rows], [each for each in ruled if not each.rows]
    broken.sort(key=lambda each: (not each.sure, flagged.issuperset(each.rows)))
    listed = ([_shown(each, rows, found, flagged) for each in some[:RULES]] for some in (broken, kept))
    return RulesShown(next(listed), max(0, len(broken) - RULES), next(listed), max(0, len(kept) - RULES))


def _shown(each: Ruled, rows: Rows, found: Found, flagged: set[int]) -> RuleShown:
    """A rule and its rows, first those without a finding, which stand nowhere else."""
    broken = sorted(each.rows, key=lambda row: (row in flagged, row))
    first, others = broken[:BROKEN_ROWS], sorted(broken[BROKEN_ROWS:][:NUMBERED_ROWS])
    return RuleShown(
        cut(each.rule),
        _said(each, rows.table.num_rows, len(flagged & {*broken})),
        [_line(each, row, rows, found) for row in first],
        ", ".join(str(row if rows.lines is None else rows.line(row)) for row in others),
        len(broken) - len(first) - len(others),
    )


def _said(each: Ruled, rows: int, flagged: int) -> str:
    """How many of these rows keep a rule and break it, and in how many that break it something is flagged.

    >>> _said(Ruled("zip decides city", ("zip", "city"), (3, 7, 9)), 1000, 2)
    '997 of 1,000 rows keep it; 3 rows break it, 2 of them with a finding'
    >>> _said(Ruled("price > 0", ("price",), (), sure=True), 1000, 0)
    'all 1,000 rows keep it, as you say they do'
    """
    broken = len(each.rows)
    if not broken:
        return f"all {rows:,} rows keep it{', as you say they do' if each.sure else ''}"
    of_them = "none of them" if not flagged else "all of them" if flagged == broken else f"{flagged:,} of them"
    found = f"{of_them} with a finding" if broken > 1 else f"{'with' if flagged else 'without'} a finding"
    sure = ", and you say that all keep it" if each.sure else ""
    kept = f"{rows - broken:,} of {rows:,} rows keep it{sure}"
    return f"{kept}; {counted(broken, 'row')} break{'s' * (broken == 1)} it, {found}"


def _line(each: Ruled, row: int, rows: Rows, found: Found) -> str:
    """Where a row is, and what stands in the columns of the rule or why that breaks it: "line 17: zip is 1234"."""
    name = cut(rows.name(row), LONGEST_NAME)
    where = f"{rows.at(row)}{f' ({escape(name)})' if name else ''}"
    if each.say is not None and not any((row, column) in found for column in each.columns):
        return f"{where}: {escape(each.say(row))}"
    return f"{where}: {', '.join(_cell(row, column, rows, found) for column in each.columns)}"


def _cell(row: int, column: str, rows: Rows, found: Found) -> str:
    """What stands in a cell, and what was found there."""
    value, finding = escape(shortened(rows.cell(row, column))), found.get((row, column))
    if finding is None:
        return f"{escape(column)} is {value}"
    repair = "" if finding.repair is None else f' → <span class="repaired">{escape(shortened(finding.repair))}</span>'
    return f'{escape(column)} is <span class="flagged">{value}</span>{repair}'
