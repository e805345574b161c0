"""The flagged cells of a review: which they are, what is said of each, and which are alike."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellmend.errors import FileError
from cellmend.files.folders import open_parts
from cellmend.files.guarded import read_guarded
from cellmend.files.results import FINDINGS
from cellmend.findings.groups import Group, grouped
from cellmend.review.ledger import Cell
from cellmend.table.causes.named import UNLIKE_ROW

LIKENESSES = ("value", "cause")
Likeness = tuple[str | None, ...]  # the column, with a value and its repair, or with a cause


@dataclass(frozen=True, slots=True)
class Flag:
    """One flagged cell, all values as text."""

    row: int
    column: str
    value: str
    suspicion: float
    repair: str | None
    low: float | str | None  # of dates text
    high: float | str | None
    reason: str
    cause: str
    repair_probability: float = 0.0

    @property
    def cell(self) -> Cell:
        return self.row, self.column


@dataclass(frozen=True)
class Asked:
    """A cell that is asked about, flagged or not."""

    flag: Flag  # what is said of it
    speaks_for: int  # cells that are alike; 0: not counted
    is_question: bool  # was it chosen because the answer would teach much?


@dataclass(frozen=True)
class Flagged:
    """All flagged cells, the most suspicious first."""

    flags: Sequence[Flag]

    @cached_property
    def by_cell(self) -> Mapping[Cell, Flag]:
        return {flag.cell: flag for flag in self.flags}

    @cached_property
    def by_row(self) -> Mapping[int, list[Flag]]:
        """Those of each row that has any."""
        found: dict[int, list[Flag]] = {}
        for flag in self.flags:
            found.setdefault(flag.row, []).append(flag)
        return found

    @cached_property
    def causes(self) -> list[str]:
        """The causes that occur, the most common first."""
        return [cause for cause, _ in Counter(flag.cause for flag in self.flags).most_common()]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many are flagged in each column."""
        return Counter(flag.column for flag in self.flags)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """(F,) the row of each."""
        return np.array([flag.row for flag in self.flags], dtype=np.int64)

    @cached_property
    def groups(self) -> Sequence[Group[Flag]]:
        """By column and cause, the largest first."""
        return grouped(self.flags)

    @cached_property
    def proposals(self) -> Mapping[str, Mapping[str, str]]:
        """For each column, the repair that is proposed most often for each value."""
        counts = Counter((flag.column, flag.value, flag.repair) for flag in self.flags if flag.repair is not None)
        found: dict[str, dict[str, str]] = {}
        for column, value, repair in sorted(counts, key=lambda own: -counts[own]):
            found.setdefault(column, {}).setdefault(value, repair)
        return found

    def get(self, cell: Cell) -> Flag | None:
        """What is said of a cell, if it is flagged."""
        return self.by_cell.get(cell)

    def alike(self, flag: Flag, by: str) -> list[Flag]:
        """Those of its column with the same value and repair (by "value"), or of the same cause (by "cause")."""
        return self.kinds.get(likeness(flag, by), [])

    @cached_property
    def kinds(self) -> Mapping[Likeness, list[Flag]]:
        """Those that are alike, by what they have in common."""
        found: dict[Likeness, list[Flag]] = {}
        for flag in self.flags:
            for by in LIKENESSES:
                found.setdefault(likeness(flag, by), []).append(flag)
        return found

    @cached_property
    def repairs(self) -> Mapping[Likeness, int]:
        """How many of those that are alike have a repair."""
        return {kind: sum(flag.repair is not None for flag in own) for kind, own in self.kinds.items()}

    def merged(self, others: Iterable[Flag]) -> Flagged:
        """With others, which take the place of what was said of the same cells; the most suspicious first."""
        joined = {**self.by_cell, **{each.cell: each for each in others}}
        return Flagged(sorted(joined.values(), key=lambda flag: -flag.suspicion))


def likeness(flag: Flag, by: str) -> Likeness:
    """What cells like this one have in common."""
    return (flag.column, flag.value, flag.repair) if by == "value" else (flag.column, flag.cause)


# ---------------------------------------------------------------- from files


def read_flagged(folder: Path) -> Flagged:
    """The findings in a folder of results: findings.csv, or the folder findings of a large table."""
    file, pieces = folder / FINDINGS, folder / "findings"
    try:
        if file.is_file():
            return Flagged([flag_of(line) for line in read_guarded(file)])
        if pieces.is_dir():
            lines = open_parts(str(pieces)).table().to_pylist()
            return Flagged(sorted(map(flag_of, lines), key=lambda flag: -flag.suspicion))
    except (ValueError, LookupError, TypeError, AttributeError, csv.Error) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"The findings in {folder} must be as cellmend clean wrote them; they are not. Hint: run it again."
        ) from None
    raise FileError(f"{folder} must be a folder that cellmend clean wrote; it holds no findings.csv.")


def flag_of(line: Mapping[str, Any]) -> Flag:
    """A line of the findings table.

    >>> flag_of({"row": "3", "column": "x", "value": "9", "suspicion": "1", "repair": "", "low": "", "reason": "?"}).low
    """
    return Flag(
        row=int(line["row"]),
        column=str(line["column"]),
        value=str(line["value"]),
        suspicion=float(line["suspicion"]),
        repair=line["repair"] or None,
        low=_end(line.get("low")),
        high=_end(line.get("high")),
        reason=line["reason"],
        cause=line.get("cause") or UNLIKE_ROW,  # none in findings of before
        repair_probability=float(line.get("repair_probability") or 0),
    )


def _end(given: Any) -> float | str | None:
    """An end of an interval: a number, or a date as it stands.

    >>> _end("9.7"), _end("2024-01-17"), _end("")
    (9.7, '2024-01-17', None)
    """
    if given in (None, ""):
        return None
    try:
        return float(given)
    except ValueError:
        date.fromisoformat(given[:10])  # or this is a ValueError too
        return str(given)
