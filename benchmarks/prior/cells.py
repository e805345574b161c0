"""Tables of text as they are spoiled: columns, the numbers and dates that cells read as, and what was changed."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_NUMBER = re.compile(
    r"\s*[$€£]?(?P<body>[+-]?(?=\.?\d)(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.(?P<decimals>\d*))?(?P<power>[eE][+-]?\d+)?)\s*%?\s*"
)
_MONTH = r"(?P<m>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)"
_DATES = tuple(
    re.compile(r"\s*" + each + r"(?![\d.])", re.IGNORECASE)
    for each in (
        r"(?P<y>[12]\d{3})(?P<sep>[-/.])(?P<m>0?[1-9]|1[0-2])(?P=sep)(?P<d>0?[1-9]|[12]\d|3[01])",
        r"(?P<m>\d{1,2})(?P<sep>[-/.])(?P<d>\d{1,2})(?P=sep)(?P<y>[12]\d{3})",
        r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{2})",
        r"(?P<d>\d{1,2})[- ]" + _MONTH + r"[- ,]+(?P<y>[12]\d{3}|\d{2})",
        _MONTH + r"\.? (?P<d>\d{1,2}),? (?P<y>[12]\d{3})",
    )
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_WORDS = re.compile(r"[^\W\d_]{2}.*\s.*\w", re.DOTALL)


@lru_cache(maxsize=1 << 14)
def number_in(text: str) -> re.Match[str] | None:
    """The match of a text that reads as one number, perhaps with a currency or a percent sign."""
    return _NUMBER.fullmatch(text)


def value_of(number: re.Match[str]) -> float:
    """The number that was read."""
    return float(number["body"].replace(",", ""))


def rewritten(number: re.Match[str], value: float) -> str:
    """Another number, written as this one is: as many decimals, commas, leading zeros, and the same signs around it."""
    body, decimals = number["body"], len(number["decimals"] or "")
    if not math.isfinite(value) or abs(value) > 1e30:
        return number.string
    decimals = min(decimals, max(15 - len(str(int(abs(value)))), 0))  # what is behind them would be noise
    if number["power"]:
        new = f"{value:.{decimals}e}"
    else:
        new = f"{value:{',' if ',' in body else ''}.{decimals}f}"
        if body[0] == "0" and len(body) > 1 and body[1].isdigit():
            new = new.zfill(len(body))
    return put_in(number, "body", new[1:] if new[0] == "-" and not new.strip("-0.") else new)


def put_in(match: re.Match[str], group: str, new: str) -> str:
    """The text of a match with something else in place of a group."""
    return match.string[: match.start(group)] + new + match.string[match.end(group) :]


@lru_cache(maxsize=1 << 14)
def date_in(text: str) -> re.Match[str] | None:
    """The match of a text that begins with a date, with groups y, m and d; American order where both are possible."""
    if sum(map(str.isdigit, text[:20])) < 3:
        return None
    return next((match for each in _DATES if (match := each.match(text))), None)


def day_of(date: re.Match[str]) -> datetime.date | None:
    """The day that was read, if there is one."""
    year, month, day = date["y"], date["m"], int(date["d"])
    number = int(month) if month.isdigit() else "janfebmaraprmayjunjulaugsepoctnovdec".index(month[:3].lower()) // 3 + 1
    if number > 12:
        number, day = day, number
    try:
        return datetime.date(int(year) + (2000 if len(year) == 2 else 0), number, day)
    except ValueError:
        return None


def _mostly_digits(text: str) -> bool:
    return 3 * sum(map(str.isdigit, text)) >= 2 * len(text.strip()) > 0


SORTS = {
    "any": lambda text: True,
    "letters": lambda text: _LETTERS.search(text) is not None,
    "words": lambda text: _WORDS.search(text) is not None,
    "number": lambda text: number_in(text) is not None,
    "digits": _mostly_digits,
    "date": lambda text: date_in(text) is not None,
}


class Column:
    """A column as it was published, and what the ways to spoil it ask of it."""

    def __init__(self, name: str, place: int, cells: list[str]) -> None:
        self.name, self.place, self.cells = name, place, cells
        self.filled = [row for row, text in enumerate(cells) if text.strip()]

    @cached_property
    def sample(self) -> list[str]:
        """Some of its filled cells, from all over it."""
        return [self.cells[row] for row in self.filled[:: max(len(self.filled) // 40, 1)]]

    @cached_property
    def sorts(self) -> frozenset[str]:
        """The sorts of cells it has."""
        return frozenset(name for name, holds in SORTS.items() if any(map(holds, self.sample)))

    @cached_property
    def counts(self) -> Counter[str]:
        """How often it has each of its values."""
        return Counter(self.cells[row] for row in self.filled)

    @cached_property
    def levels(self) -> list[str]:
        """Its values, in the order of numbers or of the alphabet."""
        numbers = {text: number_in(text) for text in self.counts}
        return sorted(self.counts, key=lambda text: (value_of(m) if (m := numbers[text]) else math.inf, text))

    @cached_property
    def numbers(self) -> list[str]:
        """Those of its values that are numbers, in their order."""
        return [text for text in self.levels if number_in(text)]

    @cached_property
    def commonest(self) -> str:
        """The value it has most often."""
        return self.counts.most_common(1)[0][0]

    @cached_property
    def places(self) -> dict[str, int]:
        """Where in `levels` each value stands."""
        return {text: place for place, text in enumerate(self.levels)}

    @cached_property
    def spread(self) -> float:
        """The standard deviation of its numbers, without their most extreme tenth; some number above 0 at least."""
        values = (value_of(match) for text in self.counts if (match := number_in(text)))
        numbers = sorted(value for value in values if abs(value) < 1e30)
        cut = len(numbers) // 20
        inner = numbers[cut : len(numbers) - cut]
        sd = float(np.std(inner)) if inner else 0.0
        return sd if sd > 0 else max(0.3 * abs(numbers[0]), 1.0) if numbers else 1.0


@dataclass(frozen=True)
class Place:
    """A cell of a grid."""

    grid: Grid
    column: Column
    row: int


class Grid:
    """A table that is being spoiled. A cell is spoiled once at most; empty cells stay, and none becomes empty."""

    def __init__(self, table: pd.DataFrame, kinds: Iterable[str]) -> None:
        self.marks = {name: place for place, name in enumerate(kinds, 1)}
        self.dirty: NDArray[np.object_] = table.to_numpy(dtype=object, copy=True)
        self.kind: NDArray[np.int16] = np.zeros(table.shape, np.int16)
        self.columns = [
            Column(str(name), place, [text if isinstance(text, str) else "" for text in self.dirty[:, place]])
            for place, name in enumerate(table.columns)
        ]
        self.usable = [column for column in self.columns if column.filled]
        self.masters: dict[int, Column | None] = {}

    def filled(self, row: int) -> list[Column]:
        """The columns that a row has something in."""
        return [each for each in self.usable if each.cells[row].strip()]

    def put(self, row: int, place: int, text: str, mark: int) -> bool:
        """Write a text into a cell, if that spoils a cell that was right; whether it did."""
        old = self.columns[place].cells[row]
        if self.kind[row, place] or text == old or not text.strip() or not old.strip():
            return False
        self.dirty[row, place], self.kind[row, place] = text, mark
        return True

    def master(self, column: Column, dice: Random) -> Column | None:
        """A column whose value says what the value in this one is, if one is found among some rows."""
        if column.place not in self.masters:
            self.masters[column.place] = None
            rows = column.filled[:: max(len(column.filled) // 300, 1)]
            mine = [column.cells[row] for row in rows]
            commonest = Counter(mine).most_common(1)[0][1]
            for other in dice.sample(self.usable, len(self.usable)):
                theirs = [other.cells[row] for row in rows]
                said = Counter(dict.fromkeys(theirs, 0))
                if other is column or not 2 <= len(said) <= len(rows) // 2 or commonest > 0.9 * len(rows):
                    continue
                for (value, _), times in Counter(zip(theirs, mine, strict=True)).items():
                    said[value] = max(said[value], times)
                if said.total() >= 0.97 * len(rows):
                    self.masters[column.place] = other
                    break
        return self.masters[column.place]
