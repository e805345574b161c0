"""The kinds of error that the judging injector knows, and where each fits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from cellmend.evaluation import vandal_forms as forms
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
        return np.array([value for text in self.filled if (value := number(text)) is not None], dtype=float)

    @cached_property
    def numeric(self) -> bool:
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
        with_words = sum(count for text, count in self.counts.items() if WORD.search(text))
        return not self.numeric and not self.dated and with_words >= 0.5 * max(len(self.filled), 1)

    @cached_property
    def made_by_machine(self) -> bool:
        """Whether nobody types it: running numbers and hashes."""
        hashes = sum(count for text, count in self.counts.items() if HASHED.fullmatch(text.strip()))
        return self.running or hashes >= 0.5 * max(len(self.filled), 1)

    @cached_property
    def dated(self) -> bool:
        dates = sum(count for text, count in self.counts.items() if _is_year(text) or numbers.is_date(text))
        return bool(self.filled) and dates >= MOSTLY * len(self.filled)

    @cached_property
    def scale(self) -> float:
        """How far its numbers lie apart: half the distance of the outer tenths, or the standard deviation."""
        wide = float(np.subtract(*np.quantile(self.numbers, [0.9, 0.1]))) / 2 if len(self.numbers) else 0.0
        return wide or float(self.numbers.std() if len(self.numbers) else 0.0)


def _is_year(text: str) -> bool:
    return bool(numbers.YEAR.fullmatch(text.strip()))


# ---------------------------------------------------------------- the kinds

Spoil = Callable[[str, Rng, float], str]


@dataclass(frozen=True)
class Kind:
    """A kind of error: which columns it fits, and what it makes of a text."""

    name: str
    fits: Callable[[Column], bool]
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


def _of_form(form: re.Pattern[str], column: Column) -> bool:
    """Do its values have this form, and not each its own, as running numbers?"""
    with_form = sum(count for text, count in column.counts.items() if form.fullmatch(text.strip()))
    return with_form >= MOSTLY * len(column.filled) and not column.dated and not column.measured


_worded, _measured, _dated, _any = map(attrgetter, ("worded", "measured", "dated", "filled"))
SINGLE = (
    Kind("keyboard slip", _worded, words.slip),
    Kind("dropped letter", _worded, words.drop),
    Kind("doubled letter", _worded, words.double),
    Kind("swapped letters", _worded, words.swap),
    Kind("case", _worded, words.change_case),
    Kind("spaces", _any, words.add_spaces),
    Kind("mojibake", _worded, words.mangle),
    Kind("placeholder", _several, partial(words.say_one_of, words.PLACEHOLDERS)),
    Kind("word for nothing", _several, partial(words.say_one_of, words.MISSING_WORDS)),
    Kind("sentinel", _measured, partial(words.say_one_of, numbers.SENTINELS)),
    Kind("sign", _measured, numbers.flip_sign),
    Kind("decimal point", _measured, numbers.shift_point),
    Kind("one digit", _digits, words.wrong_digit),
    Kind("other unit", _in_units, numbers.other_unit),
    Kind("look-alike", _digits, words.look_alike),
    Kind("cut off", _long, words.cut_off),
    Kind("date", _dated, numbers.wrong_date),
    Kind("outlier", _widely),
    Kind("other row", _several),
    Kind("next column", _any),
    Kind("stuck", _widely),
    Kind("shifted row", _any),
)
"""What may happen to any cell of a column of words, numbers or dates; `cellmend bench run wild` judges by these."""

SWAPPED, AGAINST = "swapped pair", "against another column"  # need columns that belong together
KINDS = (
    *SINGLE,
    Kind("impossible date", _dated, forms.impossible_date),
    *(Kind(name, partial(_of_form, forms.FORMS[name]), spoil) for name, spoil in forms.BREAKS.items()),
    Kind(SWAPPED, _several),
    Kind(AGAINST, _several),
)
NAMES = tuple(kind.name for kind in KINDS)
