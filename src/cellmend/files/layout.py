"""Where the table lies among the rows of a file: below titles, above totals, and how a user says it otherwise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cellmend.errors import FileError

MOST_TITLES, MOST_FOOTERS = 20, 10  # rows above and below a table
MOST_REMARKS = 3  # of one cell among them
TOTAL = re.compile(
    r"\s*((grand|sub)\s*-?\s*total|totals?|sum|summe|gesamt|gesamtsumme|insgesamt|total général|totale|totaal|suma|"
    r"somme|soma|итого|всего|合计|总计)\s*:?\s*",
    re.IGNORECASE,
)

Fields = Sequence[str]  # of one row; "" where nothing stands


@dataclass(frozen=True)
class Asked:
    """What a user says of a file instead of letting it be found out."""

    sheet: str | None = None  # its name or its number from 1
    header_row: int | None = None  # as the file counts, from 1
    delimiter: str | None = None
    encoding: str | None = None
    ragged: str | None = None  # what becomes of lines of CSV with more or fewer fields than the header: one of RAGGED

    def checked(self) -> Asked:
        """The same, if each entry is of its kind."""
        texts = (self.sheet, self.delimiter, self.encoding, self.ragged)
        if not all(isinstance(each, str | None) for each in texts) or type(self.header_row) not in (int, type(None)):
            raise TypeError("what is asked of a file must be texts and the number of a row")
        return self


RAGGED = ("keep", "drop")  # read them all the same, or leave them out
NOTHING_ASKED = Asked()


class Layout(NamedTuple):
    """Which rows are the table, the header first, and what was left out, in words."""

    first: int
    last: int  # the one after the last
    notes: tuple[str, ...]


def find_layout(top: Sequence[Fields], bottom: Sequence[Fields], rows: int) -> Layout:
    """The table among so many rows, of which the first and the last ones are given.

    >>> find_layout([["Sales 2024"], ["a", "b", "c"], ["1", "2", "3"]], [["1", "2", "3"], ["Total", "", "3"]], 99)
    Layout(first=1, last=98, notes=('1 title row skipped: Sales 2024', '1 row below the table skipped: Total'))
    """
    width = Counter(len(fields) for fields in (*top, *bottom)).most_common(1)[0][0]
    above = next((place for place, fields in enumerate(top[:MOST_TITLES]) if not _is_title(fields, width)), 0)
    full = sum(_filled(fields) == 1 for fields in bottom) <= MOST_REMARKS  # or single cells are the table's own
    below = next((n for n, fields in enumerate(bottom[:-MOST_FOOTERS:-1]) if not _is_footer(fields, width, full)), 0)
    if above + below >= rows - 1:
        return Layout(0, rows, ())
    notes = [
        *_said(top[:above], "title row skipped", "title rows skipped"),
        *_said(bottom[len(bottom) - below :], "row below the table skipped", "rows below the table skipped"),
    ]
    return Layout(above, rows - below, tuple(notes))


def _said(skipped: Sequence[Fields], one: str, many: str) -> list[str]:
    """What was skipped, with the first of it that is not empty."""
    example = next((cell.strip() for fields in skipped for cell in fields if cell.strip()), "")
    shown = f": {example[:60]}" if example else ""
    return [f"{len(skipped)} {one if len(skipped) == 1 else many}{shown}"] if skipped else []


def _is_title(fields: Fields, width: int) -> bool:
    """Does a row have far fewer cells than the table? That of a table of two columns must have no second one."""
    filled = _filled(fields)
    return (
        filled == 0 < width - 1 or (filled <= (width - 1) // 2 and fields[0].strip() != "") or len(fields) == 1 < width
    )


def _is_footer(fields: Fields, width: int, full: bool) -> bool:
    """Is it empty, a remark of fewer cells, or a sum of those above?

    Below rows of several cells, as `full` says, a remark may also have empty cells behind it.
    """
    filled = _filled(fields)
    alone = full and filled == 1 and fields[0].strip() != "" and not fields[0].strip()[0].isdecimal()
    is_remark = (len(fields) < width or alone) and filled <= (width - 1) // 2
    first = next((cell for cell in fields if cell.strip()), "")
    return width > 1 and (filled == 0 or is_remark or (TOTAL.fullmatch(first) is not None and filled < width))


def _filled(fields: Fields) -> int:
    return sum(bool(cell.strip()) for cell in fields)


def check_header_row(asked: int, rows: int, name: str) -> int:
    """The place of the header that was asked for, counted from 0."""
    if not 1 <= asked <= rows:
        raise FileError(f"--header-row must be a row of {name}, 1 to {rows:,}; it is {asked}.")
    return asked - 1
