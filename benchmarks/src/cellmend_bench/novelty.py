"""Which errors of the judging injector are of a kind that a clean column has nothing of, and which recur."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cellmend.evaluation.vandal import FEWEST, RIGHT, columns_of
from cellmend.evaluation.vandal_kinds import NAMES, Column
from cellmend.evaluation.vandal_numbers import YEAR, number
from cellmend.evaluation.vandal_words import MISSING_WORDS, PLACEHOLDERS

CAPS_LOCK = re.compile(r"\b[a-z][A-Z]{2,}")
MOJIBAKE = re.compile("[ÃÂâÅ][\u0080-\u00bf€™œ“”–‚ƒ„…†‡ˆ‰Š‹ŒŽ]|�")
HABITUAL = 0.01  # share of a column's cells from which on a kind of error recurs


def none_of_it(clean: pd.DataFrame, dirty: pd.DataFrame, marks: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which wrong cells are of a kind that the clean column has nothing of, (N, D)."""
    columns, found = [Clean(each.name, each.texts) for each in columns_of(clean)], np.zeros(marks.shape, dtype=bool)
    seen = dirty.to_numpy(dtype=object)
    known: dict[tuple[int, int, str], bool] = {}
    for row, place in zip(*np.nonzero(marks != RIGHT), strict=True):
        key = int(marks[row, place]), int(place), seen[row, place]
        if key not in known:
            known[key] = NONE[NAMES[key[0]]](columns[place], seen[row, place])
        found[row, place] = known[key]
    return found


def recurring(marks: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which wrong cells are of a kind that recurs in their column, (N, D)."""
    found = np.zeros(marks.shape, dtype=bool)
    for kind in np.unique(marks[marks != RIGHT]):
        counts = (marks == kind).sum(axis=0)
        found |= (marks == kind) & (counts >= max(FEWEST, HABITUAL * len(marks)))
    return found


class Clean(Column):
    """A clean column, and what its values look like."""

    @cached_property
    def years(self) -> set[int]:
        """The years that are named in it."""
        return {int(year) for text in self.counts for year in YEAR.findall(text)}

    @cached_property
    def shapes(self) -> set[str]:
        """The forms of its values."""
        return {shape_of(text) for text in self.counts}

    @cached_property
    def cases(self) -> set[str]:
        """The ways in which its values use capitals."""
        return {case_of(text) for text in self.counts}

    @cached_property
    def has_beginnings(self) -> bool:
        """Whether one of its values is the beginning of another."""
        ordered = sorted(self.counts)
        return any(longer.startswith(text) for text, longer in pairwise(ordered))

    @cached_property
    def folded(self) -> set[str]:
        """Its values in small letters."""
        return {text.strip().casefold() for text in self.counts}


def shape_of(text: str) -> str:
    """The form of a text.

    >>> shape_of("Oslo 0150"), shape_of("a-1")
    ('Aa 9', 'a-9')
    """
    return re.sub(r"\d+", "9", re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", text)))


def case_of(text: str) -> str:
    """How a text uses capitals: upper, lower, title, caps lock or mixed; nothing where there are no letters."""
    if not any(letter.isalpha() for letter in text):
        return ""
    if CAPS_LOCK.search(text):
        return "caps lock"
    ways = (("upper", text.upper()), ("lower", text.lower()), ("title", text.title()))
    return next((name for name, way in ways if way == text), "mixed")


# ---------------------------------------------------------------- has the clean column any of it?


def is_new(column: Clean, seen: str) -> bool:
    return seen.strip().casefold() not in column.folded


def new_case(column: Clean, seen: str) -> bool:
    return case_of(seen) not in column.cases


def no_spaces(column: Clean, seen: str) -> bool:
    form = [way(seen) for way in SPACED].index(True)
    return not any(SPACED[form](text) for text in column.counts)


def no_mojibake(column: Clean, seen: str) -> bool:
    return not any(MOJIBAKE.search(text) for text in column.counts)


def none_said(vocabulary: tuple[str, ...], column: Clean, seen: str) -> bool:
    return not column.folded & {word.casefold() for word in vocabulary}


def outside(column: Clean, seen: str) -> bool:
    value = number(seen)
    return value is None or not len(column.numbers) or not column.numbers.min() <= value <= column.numbers.max()


def outside_numbers(column: Clean, seen: str) -> bool:
    return column.numeric and number(seen) is not None and outside(column, seen)


def no_such_sign(column: Clean, seen: str) -> bool:
    return not (column.numbers < 0).any() if seen.strip().startswith("-") else not (column.numbers > 0).any()


def new_shape(column: Clean, seen: str) -> bool:
    return shape_of(seen) not in column.shapes


def no_cuts(column: Clean, seen: str) -> bool:
    return is_new(column, seen) and not column.has_beginnings


def other_years(column: Clean, seen: str) -> bool:
    years = {int(year) for year in re.findall(r"(?<!\d)\d{4}(?!\d)", seen)}
    return bool(years) and bool(column.years) and not min(column.years) <= min(years) <= max(column.years)


def never(column: Clean, seen: str) -> bool:
    return False


SPACED: tuple[Callable[[str], bool], ...] = (
    lambda text: text.startswith(" "),
    lambda text: text.endswith(" "),
    lambda text: "  " in text,
)
NONE: dict[str, Callable[[Clean, str], bool]] = {
    "keyboard slip": is_new,
    "dropped letter": is_new,
    "doubled letter": is_new,
    "swapped letters": is_new,
    "case": new_case,
    "spaces": no_spaces,
    "mojibake": no_mojibake,
    "placeholder": partial(none_said, PLACEHOLDERS),
    "word for nothing": partial(none_said, MISSING_WORDS),
    "sentinel": outside,
    "sign": no_such_sign,
    "decimal point": outside,
    "one digit": outside_numbers,
    "other unit": outside,
    "look-alike": new_shape,
    "cut off": no_cuts,
    "date": other_years,
    "outlier": outside,
    "other row": never,
    "next column": new_shape,
    "stuck": never,
    "shifted row": new_shape,
}
