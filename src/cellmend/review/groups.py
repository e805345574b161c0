"""Groups of findings as the page lists them: what is still open of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cellmend.review.flagged import Flag, Flagged
from cellmend.review.ledger import Ledger
from cellmend.review.rows import Filter


@dataclass(frozen=True)
class OpenLine:
    """The cells of a line that nobody has decided yet."""

    place: int  # in its group, as long as the same cells are flagged
    rewriting: str  # see `findings.groups.Line`
    cells: Sequence[Flag]

    @property
    def values(self) -> int:
        """Different ones."""
        return len({each.value for each in self.cells}) if self.rewriting else 1


@dataclass(frozen=True)
class OpenGroup:
    """The lines of a group in which something is open."""

    place: int
    column: str
    cause: str
    lines: Sequence[OpenLine]

    @property
    def cells(self) -> list[Flag]:
        return [cell for line in self.lines for cell in line.cells]


def open_groups(flagged: Flagged, ledger: Ledger, wanted: Filter) -> list[OpenGroup]:
    """The groups with cells that are open and that a filter keeps, those with the most repairs first."""
    found = []
    for place, group in enumerate(flagged.groups):
        if wanted.column in ("", group.column) and wanted.cause in ("", group.cause):
            still = ((at, line, _open(line.cells, ledger, wanted.text)) for at, line in enumerate(group.lines))
            lines = [OpenLine(at, line.rewriting, cells) for at, line, cells in still if cells]
            lines.sort(key=lambda line: _rank(line.cells))
            found += [OpenGroup(place, group.column, group.cause, lines)] if lines else []
    return sorted(found, key=lambda group: _rank(group.cells))


def _rank(cells: Sequence[Flag]) -> tuple[int, int]:
    """What has the most repairs comes first: it is decided soonest."""
    return -sum(each.repair is not None for each in cells), -len(cells)


def _open(cells: Sequence[Flag], ledger: Ledger, text: str) -> list[Flag]:
    still = [each for each in cells if ledger.of(each.cell) is None]
    return [each for each in still if _holds(each, text)] if text else still


def _holds(flag: Flag, text: str) -> bool:
    text = text.casefold()
    return text in flag.value.casefold() or text in (flag.repair or "").casefold()
