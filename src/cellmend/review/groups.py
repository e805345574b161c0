"""Groups of findings as the page lists them: what is still open of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from cellmend.review.flagged import Flag, Flagged
from cellmend.review.ledger import Ledger
from cellmend.review.rows import Filter


class OpenLine(NamedTuple):
    """The cells of a line that nobody has decided yet."""

    place: int  # in its group, as long as the same cells are flagged
    rewriting: str  # see `findings.groups.Line`
    cells: Sequence[Flag]

    @property
    def values(self) -> int:
        """Different ones."""
        return len({each.value for each in self.cells}) if self.rewriting else 1

    @property
    def repaired(self) -> int:
        """The cells with a repair: all or none, as the cells of a line have one repair, or one rewriting."""
        return 0 if self.cells[0].repair is None else len(self.cells)


class OpenGroup(NamedTuple):
    """The lines of a group in which something is open."""

    place: int
    column: str
    cause: str
    lines: Sequence[OpenLine]  # those with a repair first, and of them the longest
    cells: Sequence[Flag]
    repaired: int  # of the cells


def all_groups(flagged: Flagged) -> list[OpenGroup]:
    """All groups, as they are before anything is decided; their places count from here."""
    lines = (
        [OpenLine(at, line.rewriting, line.cells) for at, line in enumerate(group.lines)] for group in flagged.groups
    )
    made = zip(flagged.groups, lines, strict=True)
    return [_group(place, group.column, group.cause, own) for place, (group, own) in enumerate(made)]


def open_groups(groups: Sequence[OpenGroup], ledger: Ledger, wanted: Filter) -> list[OpenGroup]:
    """The groups with cells that are open and that a filter keeps, those with the most repairs first."""
    decided: dict[str, set[int]] = {}
    for each in ledger.standing:
        decided.setdefault(each.column, set()).add(each.row)
    kept = [each for each in groups if wanted.column in ("", each.column) and wanted.cause in ("", each.cause)]
    found = [_open(each, decided.get(each.column, set()), wanted.text.casefold()) for each in kept]
    return sorted((each for each in found if each.lines), key=lambda group: (-group.repaired, -len(group.cells)))


def _open(group: OpenGroup, decided: Collection[int], text: str) -> OpenGroup:
    """What is open of a group, and holds a text."""
    if not decided and not text:
        return group
    lines = []
    for line in group.lines:
        cells = [each for each in line.cells if each.row not in decided and (not text or _holds(each, text))]
        if cells:
            lines.append(line._replace(cells=cells))
    return _group(group.place, group.column, group.cause, lines)


def _group(place: int, column: str, cause: str, lines: list[OpenLine]) -> OpenGroup:
    lines.sort(key=lambda line: (line.cells[0].repair is None, -len(line.cells)))
    cells = [cell for line in lines for cell in line.cells]
    return OpenGroup(place, column, cause, lines, cells, sum(line.repaired for line in lines))


def _holds(flag: Flag, text: str) -> bool:
    return text in flag.value.casefold() or text in (flag.repair or "").casefold()
