"""Text as people type it: which columns are numbers, what the numbers are, and which cells are none.

A column in which most cells are numbers is a column of numbers; a cell of it that is no number ("4400..00") is wrong,
not a level. Units ("12.0 oz."), currency signs, groups of three digits and decimal commas belong to the column, and are
written again when a cell of it is repaired.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.schema import family

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null"})  # in any column, whatever the case
MISSING_NUMBERS = MISSING | {"none", "nil", "missing", "unknown", "-", "--", "?", "."}  # where numbers are expected
MOST = 0.5  # of the cells must be numbers, or the column is text
MOST_UNITS = 3  # spellings apart
CODE_SHARE = 0.01  # of numbers written with a leading zero: then they are codes, such as 02134
SPACES = " \u00a0\u202f"
GROUPS = "'" + SPACES  # that may stand between groups of three digits

_CELL = re.compile(
    rf"(?P<before>[^\w+\-.,()]*)\s*(?P<number>[+-]?[\d.,{GROUPS}]*\d[.,]*(?:[eE][+-]?\d+)?)\s*(?P<after>\D*)"
)
_POINT = re.compile(rf"[+-]?(?:\d{{1,3}}(?:[,{GROUPS}]\d{{3}})+|\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?")
_COMMA = re.compile(rf"[+-]?(?:\d{{1,3}}(?:[.{GROUPS}]\d{{3}})+|\d*)(?:,\d*)?(?:[eE][+-]?\d+)?")
_SURELY_COMMA = re.compile(
    rf"[+-]?(?:\d+,\d{{1,2}}|\d+,\d{{4,}}|\d{{1,3}}(?:[.{GROUPS}]\d{{3}})+,\d*|\d{{1,3}}(?:\.\d{{3}}){{2,}})"
)
_CODE = re.compile(r"0\d+")


@dataclass(frozen=True)
class NumberStyle:
    """How a column writes its numbers: the usual unit, and the marks between digits."""

    decimal: str
    thousands: str
    before: str
    after: str

    def write(self, value: float, decimals: int | None) -> str:
        """A number as the column writes it, with so many decimals.

        >>> NumberStyle(",", ".", "", " kg").write(1234.5, 2)
        '1.234,50 kg'
        """
        plain = f"{value:,.{decimals}f}" if decimals is not None else f"{value:,.15g}"
        marks = {",": self.thousands, ".": self.decimal}
        return self.before + "".join(marks.get(letter, letter) for letter in plain) + self.after


@dataclass(frozen=True)
class Reading:
    """A column of text as understood."""

    values: pa.ChunkedArray | pa.Array  # numbers, null where missing or unreadable; or the text itself
    style: NumberStyle | None  # None: the column is text
    unreadable: NDArray[np.bool_]  # (N,) cells that should be numbers and are none
    units: tuple[str, ...]  # spellings of the unit, the most common first


def read_column(texts: pa.ChunkedArray | pa.Array) -> Reading:
    """What a column of text holds.

    >>> reading = read_column(pa.array(["12.0 oz.", "16 oz", "12.0 oz.", "N/A", "1..0"]))
    >>> reading.values.to_pylist(), reading.unreadable.tolist(), reading.units
    ([12.0, 16.0, 12.0, None, None], [False, False, False, False, True], ('oz.', 'oz'))
    """
    coded = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    coded = coded.dictionary_encode()
    levels = [level or "" for level in coded.dictionary.to_pylist()]
    place = coded.indices.fill_null(len(levels)).to_numpy(zero_copy_only=False)  # (N,); a null is one more level
    levels.append("")
    counts = np.bincount(place, minlength=len(levels))
    known = np.array([_is_missing(level, MISSING_NUMBERS) for level in levels])
    parts = [None if missing else _CELL.fullmatch(level.strip()) for level, missing in zip(levels, known, strict=True)]
    decimal = _decimal_mark([part["number"] for part in parts if part])
    numbers = np.array([np.nan if part is None else _number(part["number"], decimal) for part in parts])
    readable = ~np.isnan(numbers)
    if not _are_numbers(levels, parts, readable, known, counts):
        missing = np.array([_is_missing(level, MISSING) for level in levels])[place]
        return Reading(
            pa.array(np.array(levels, dtype=object)[place], pa.string(), mask=missing), None, _none(place), ()
        )
    units = _by_frequency([(part["before"], part["after"]) if part else None for part in parts], counts * readable)
    style = _style([level for level, each in zip(levels, readable, strict=True) if each], decimal, units)
    values = numbers[place]
    whole = bool(np.all(values[readable[place]] == np.round(values[readable[place]])))
    written = "".join(part["number"] for part in parts if part)
    kind = (
        pa.int64()
        if whole and decimal not in written and np.nanmax(np.abs(values), initial=0) < 2**53
        else pa.float64()
    )
    filled = pa.array(np.where(np.isnan(values), 0, values), mask=np.isnan(values)).cast(kind)
    spelled = tuple(dict.fromkeys((before + after).strip() for before, after in units if (before + after).strip()))
    return Reading(filled, style, (~readable & ~known)[place], spelled)


def read_texts(table: pa.Table) -> pa.Table:
    """The table with its columns of text as understood.

    >>> read_texts(pa.table({"size": ["1,5 kg", "2,25 kg"], "n": [1, 2]})).to_pydict()
    {'size': [1.5, 2.25], 'n': [1, 2]}
    """
    columns = (read_column(each).values if family(each.type) == "text" else each for each in table.columns)
    return pa.table(list(columns), names=table.column_names)


def _is_missing(text: str, spellings: frozenset[str]) -> bool:
    return text.strip().lower() in spellings


def _none(place: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.zeros(len(place), dtype=bool)


def _decimal_mark(numbers: Sequence[str]) -> str:
    """A comma if some number can only be meant so and none only with a point.

    >>> _decimal_mark(["1,5", "1.200,50"]), _decimal_mark(["1,200", "3.5"]), _decimal_mark(["1,200"])
    (',', '.', '.')
    """
    comma = sum(bool(_SURELY_COMMA.fullmatch(number)) for number in numbers)
    point = sum(bool(_SURELY_COMMA.fullmatch(number.translate(_SWAPPED))) for number in numbers)
    return "," if comma > point else "."


_SWAPPED = str.maketrans(".,", ",.")


def _number(text: str, decimal: str) -> float:
    """The number that a text says, NaN if it says none.

    >>> _number("1,200.5", "."), _number("1.200,5", ","), _number("4400..00", "."), _number("12,00,0", ".")
    (1200.5, 1200.5, nan, nan)
    """
    if not (_POINT if decimal == "." else _COMMA).fullmatch(text):
        return float("nan")
    plain = text.translate(_SWAPPED) if decimal == "," else text
    return float(re.sub(rf"[,{GROUPS}]", "", plain))


def _are_numbers(
    levels: Sequence[str],
    parts: Sequence[re.Match[str] | None],
    readable: NDArray[np.bool_],
    known: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> bool:
    """Are most cells numbers, of few units, and not codes?"""
    cells = int(counts[~known].sum())
    if cells == 0 or counts[readable].sum() < MOST * cells:
        return False
    codes = [bool(part and _CODE.fullmatch(part["number"])) for part in parts]
    if counts[np.array(codes)].sum() > CODE_SHARE * cells:
        return False
    units = Counter[str]()
    for part, count, each in zip(parts, counts.tolist(), readable, strict=True):
        if part and each:
            units[_unit(part["before"] + part["after"])] += count
    return sum(count for _, count in units.most_common(MOST_UNITS)) >= 0.9 * sum(units.values())


def _unit(text: str) -> str:
    """A unit but for its spelling: oz, OZ and oz. are one."""
    return re.sub(r"[\W_]+", "", text.lower()) or text.strip()


def _by_frequency(units: Sequence[tuple[str, str] | None], counts: NDArray[np.int64]) -> list[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for unit, count in zip(units, counts.tolist(), strict=True):
        if unit is not None and count:
            found[unit] += count
    return [unit for unit, _ in found.most_common()]


def _style(levels: Sequence[str], decimal: str, units: Sequence[tuple[str, str]]) -> NumberStyle:
    """As most of the column is written; digits are grouped if some number is."""
    marks = ("." if decimal == "," else ",") + GROUPS
    grouped = Counter(mark for level in levels for mark in re.findall(rf"\d([{marks}])\d{{3}}(?!\d)", level))
    before, after = units[0] if units else ("", "")
    spaced = next((level for level in levels if after and level.strip().endswith(" " + after.strip())), None)
    after = f" {after.strip()}" if spaced is not None else after
    return NumberStyle(decimal, grouped.most_common(1)[0][0] if grouped else "", before, after)
