"""The kinds of error that the judging injector knows: where each fits, and whether the clean column has any of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from cellmend.evaluation import vandal_numbers as numbers
from cellmend.evaluation import vandal_words as words
from cellmend.evaluation.vandal_numbers import number
from cellmend.evaluation.vandal_words import Rng

MOSTLY = 0.9  # share of a column's cells from which on it is of a kind
SOME_VALUES, MANY_VALUES = 5, 10  # distinct ones
LONG = 8  # letters of a text of which the end can be missing
CODE = re.compile(r"(id|zip\w*|fips\w*|code\w*|_cd|phone|fax|tract|block\w*|_no|number|type|class|status|sort|order)$")
UNITLESS = re.compile(
    r"(lat|lon|long|latitude|longitude|year|month|day|hour|week|rate|percent|pct|share|rank|level|^x|^y)$"
)
HASHED = re.compile(r"\{?[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F-]{8,}\}?|[0-9a-f]{24,}")
WORD = re.compile(r"[^\W\d_]{4,}")
CAPS_LOCK = re.compile(r"\b[a-z][A-Z]{2,}")


@dataclass(frozen=True)
class Column:
    """A clean column and what it looks like."""

    name: str
    texts: tuple[str, ...]

    @cached_property
    def filled(self) -> list[str]:
        """Cells that are not empty."""
        return [text for text in self.texts if text.strip()]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each value stands in it."""
        return Counter(self.filled)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The numbers in it."""
        return np.array([value for text in self.filled if (value := number(text)) is not None], dtype=float)

    @cached_property
    def numeric(self) -> bool:
        """Whether it holds numbers."""
        return bool(self.filled) and len(self.numbers) >= MOSTLY * len(self.filled)

    @cached_property
    def measured(self) -> bool:
        """Whether its numbers are amounts, not names of things."""
        coded = CODE.search(self.name.lower().strip()) or any(re.match(r"0\d", text.strip()) for text in self.counts)
        return self.numeric and not coded and len(self.counts) >= SOME_VALUES and not self.dated

    @cached_property
    def running(self) -> bool:
        """Whether its numbers count the rows."""
        return len(self.numbers) > 2 and bool((np.abs(np.diff(self.numbers)) == 1).mean() > MOSTLY)

    @cached_property
    def worded(self) -> bool:
        """Whether it holds words."""
        with_words = sum(count for text, count in self.counts.items() if WORD.search(text))
        return not self.numeric and not self.dated and with_words >= 0.5 * max(len(self.filled), 1)

    @cached_property
    def made_by_machine(self) -> bool:
        """Whether nobody types it: running numbers and hashes."""
        hashes = sum(count for text, count in self.counts.items() if HASHED.fullmatch(text.strip()))
        return self.running or hashes >= 0.5 * max(len(self.filled), 1)

    @cached_property
    def dated(self) -> bool:
        """Whether it holds dates or years."""
        dates = sum(count for text, count in self.counts.items() if _is_year(text) or numbers.is_date(text))
        return bool(self.filled) and dates >= MOSTLY * len(self.filled)

    @cached_property
    def scale(self) -> float:
        """How far its numbers lie apart: half the distance of the outer tenths, or the standard deviation."""
        wide = float(np.subtract(*np.quantile(self.numbers, [0.9, 0.1]))) / 2 if len(self.numbers) else 0.0
        return wide or float(self.numbers.std() if len(self.numbers) else 0.0)

    @cached_property
    def years(self) -> set[int]:
        """The years that are named in it."""
        return {int(year) for text in self.counts for year in numbers.YEAR.findall(text)}

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


def _is_year(text: str) -> bool:
    return bool(numbers.YEAR.fullmatch(text.strip()))


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


def _new(column: Column, seen: str) -> bool:
    return seen.strip().casefold() not in column.folded


def _new_case(column: Column, seen: str) -> bool:
    return case_of(seen) not in column.cases


def _no_spaces(column: Column, seen: str) -> bool:
    form = [way(seen) for way in _SPACED].index(True)
    return not any(_SPACED[form](text) for text in column.counts)


def _no_mojibake(column: Column, seen: str) -> bool:
    return not any(words.MOJIBAKE.search(text) for text in column.counts)


def _none_said(vocabulary: tuple[str, ...], column: Column, seen: str) -> bool:
    return not column.folded & {word.casefold() for word in vocabulary}


def _outside(column: Column, seen: str) -> bool:
    value = number(seen)
    return value is None or not len(column.numbers) or not column.numbers.min() <= value <= column.numbers.max()


def _outside_numbers(column: Column, seen: str) -> bool:
    return column.numeric and number(seen) is not None and _outside(column, seen)


def _no_such_sign(column: Column, seen: str) -> bool:
    return not (column.numbers < 0).any() if seen.strip().startswith("-") else not (column.numbers > 0).any()


def _new_shape(column: Column, seen: str) -> bool:
    return shape_of(seen) not in column.shapes


def _no_cuts(column: Column, seen: str) -> bool:
    return _new(column, seen) and not column.has_beginnings


def _other_years(column: Column, seen: str) -> bool:
    years = {int(year) for year in re.findall(r"(?<!\d)\d{4}(?!\d)", seen)}
    return bool(years) and bool(column.years) and not min(column.years) <= min(years) <= max(column.years)


def _never(column: Column, seen: str) -> bool:
    return False


_SPACED: tuple[Callable[[str], bool], ...] = (
    lambda text: text.startswith(" "),
    lambda text: text.endswith(" "),
    lambda text: "  " in text,
)

# ---------------------------------------------------------------- the kinds


Spoil = Callable[[str, Rng, float], str]


@dataclass(frozen=True)
class Kind:
    """A kind of error: which columns it fits, what it makes of a text, and whether a clean column has none of it."""

    name: str
    fits: Callable[[Column], bool]
    none: Callable[[Column, str], bool]
    spoil: Spoil | None = None  # None: it needs the cells around it


def _widely(column: Column) -> bool:
    return column.measured and len(column.counts) >= MANY_VALUES and column.scale > 0


def _in_units(column: Column) -> bool:
    return _widely(column) and not UNITLESS.search(column.name.lower().strip())


def _digits(column: Column) -> bool:
    with_digits = sum(any(letter.isdigit() for letter in text) for text in column.counts)
    return column.numeric or column.dated or with_digits > len(column.counts) / 2


def _long(column: Column) -> bool:
    return column.worded and sum(len(text) >= LONG for text in column.counts) >= len(column.counts) / 2


def _several(column: Column) -> bool:
    return len(column.counts) > 1


_worded, _measured, _dated, _any = map(attrgetter, ("worded", "measured", "dated", "filled"))
KINDS = (
    Kind("keyboard slip", _worded, _new, words.slip),
    Kind("dropped letter", _worded, _new, words.drop),
    Kind("doubled letter", _worded, _new, words.double),
    Kind("swapped letters", _worded, _new, words.swap),
    Kind("case", _worded, _new_case, words.change_case),
    Kind("spaces", _any, _no_spaces, words.add_spaces),
    Kind("mojibake", _worded, _no_mojibake, words.mangle),
    Kind("placeholder", _several, partial(_none_said, words.PLACEHOLDERS), words.say_placeholder),
    Kind("word for nothing", _several, partial(_none_said, words.MISSING_WORDS), words.say_missing),
    Kind("sentinel", _measured, _outside, numbers.say_sentinel),
    Kind("sign", _measured, _no_such_sign, numbers.flip_sign),
    Kind("decimal point", _measured, _outside, numbers.shift_point),
    Kind("one digit", _digits, _outside_numbers, words.wrong_digit),
    Kind("other unit", _in_units, _outside, numbers.other_unit),
    Kind("look-alike", _digits, _new_shape, words.look_alike),
    Kind("cut off", _long, _no_cuts, words.cut_off),
    Kind("date", _dated, _other_years, numbers.wrong_date),
    Kind("outlier", _widely, _outside),
    Kind("other row", _several, _never),
    Kind("next column", _any, _new_shape),
    Kind("stuck", _widely, _never),
    Kind("shifted row", _any, _new_shape),
)
NAMES = tuple(kind.name for kind in KINDS)
