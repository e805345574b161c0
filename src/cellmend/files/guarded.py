"""CSV files that a spreadsheet can open without running anything in them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from cellmend.files.places import whole_file

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # how a text begins that may be taken for a formula, or that was marked
NUMBER = re.compile(r"-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def write_guarded(path: Path, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A new file with these columns and rows, all cells as text."""
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([guarded(name) for name in names])
        writer.writerows([guarded(cell) for cell in row] for row in rows)


def read_guarded(path: Path) -> list[dict[str, str]]:
    """The lines of such a file, as text, with the marks against formulas taken away."""
    csv.field_size_limit(max(csv.field_size_limit(), path.stat().st_size))  # a cell may be as long as a book
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        names = [unguarded(name) for name in next(lines, [])]
        return [dict(zip(names, map(unguarded, line), strict=False)) for line in lines if line]


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe comes before what may be one.

    >>> guarded("=1+1"), guarded("-5"), guarded("'=x"), guarded("it's")
    ("'=1+1", '-5', "''=x", "it's")
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The opposite of `guarded`."""
    return text[1:] if text[:1] == "'" and FORMULA.match(text) else text
