"""Text as people type it: which columns are numbers or dates, what the cells say, and which say nothing.

A column in which most cells are numbers is a column of numbers; a cell of it that is no number ("4400..00") is wrong,
not a level. Units ("12.0 oz."), currency signs, groups of three digits and decimal commas belong to the column, and are
written again when a cell of it is repaired. Dates are days since 1970.

A reader is learned from a column once and reads newer ones in the same way. What it reads has a null where the cell is
missing and NaN where it cannot be read, or where a number has far more decimals than those of its column ever have.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.schema import LARGEST_EXACT_WHOLE, are_codes, family, readable

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null"})  # in any column, whatever the case
MISSING_NUMBERS = MISSING | {"none", "nil", "missing", "unknown", "-", "--", "?", "."}  # where numbers are expected
MOST = 0.6  # of the cells must be numbers, or the column is text
MOST_DATES = 0.8
LEAST_NUMBERS = 0.1  # of the cells, where one word, such as "empty", stands for all that are missing
MOST_UNITS = 3  # spellings apart
USUAL_UNIT = 0.02  # of the numbers have it, or the cell is badly written
CODE_SHARE = 0.01  # of numbers written with a leading zero: then they are codes, such as 02134
SPACES = " \u00a0\u202f"
CURRENCIES = "$¢£¤¥฿₠-⃀"  # signs that stand before a number
GROUPS = "'" + SPACES  # that may stand between groups of three digits
FEWEST_FINE = 50  # numbers from which it can be told how many decimals are usual
FAR_MORE = 3  # decimals
MOST_DECIMALS = 8
LOOKED_AT = 1000  # different texts from which the form of dates is told
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y",
         "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%Y-%m")  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M", " %H:%M:%S.%f", "T%H:%M:%S.%f", " %I:%M %p")
EPOCH = datetime.datetime(1970, 1, 1)
DAY = datetime.timedelta(days=1)

_CELL = re.compile(
    rf"(?P<before>[{CURRENCIES}]?)\s*(?P<number>[+-]?[\d.,{GROUPS}]*\d[.,]*(?:[eE][+-]?\d+)?)\s*(?P<after>\D*)"
)
_POINT = re.compile(rf"[+-]?(?:\d{{1,3}}(?:[,{GROUPS}]\d{{3}})+|\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?")
_COMMA = re.compile(rf"[+-]?(?:\d{{1,3}}(?:[.{GROUPS}]\d{{3}})+|\d*)(?:,\d*)?(?:[eE][+-]?\d+)?")
_SURELY_COMMA = re.compile(
    rf"[+-]?(?:\d+,\d{{1,2}}|\d+,\d{{4,}}|\d{{1,3}}(?:[.{GROUPS}]\d{{3}})+,\d*|\d{{1,3}}(?:\.\d{{3}}){{2,}})"
)
_CODE = re.compile(r"0\d+")
_SWAPPED = str.maketrans(".,", ",.")

Texts = Any  # pa.Array or pa.ChunkedArray of text


@dataclass(frozen=True)
class Reading:
    """A column as understood."""

    values: pa.ChunkedArray | pa.Array  # null: missing; NaN: should be a number or a date and is none
    strange: NDArray[np.bool_]  # (N,) cells that can be read, but are written as hardly any other


@dataclass(frozen=True)
class Words:
    """A column of text."""

    def read(self, texts: Texts) -> Reading:
        """The texts without spaces around them, null where they say that something is missing."""
        levels, place = _levels(texts)
        cleaned = [None if _is_missing(level, MISSING) else level.strip() for level in levels]
        return Reading(pa.array(cleaned, pa.string()).take(pa.array(place)), np.zeros(len(place), dtype=bool))

    def write(self, value: Any, decimals: int | None) -> Any:
        return value


@dataclass(frozen=True)
class Numbers:
    """A column of numbers: its usual units, the marks between digits, and its words for what is missing."""

    decimal: str = "."
    thousands: str = ""
    before: str = ""  # the most usual unit, as it is written
    after: str = ""
    units: tuple[str, ...] = ()  # all usual ones, spellings included; "" among them if some cells have none
    gaps: tuple[str, ...] = ()
    whole: bool = False
    decimals: int | None = None  # all numbers have, but for some with many more; None: they have any

    def read(self, texts: Texts) -> Reading:
        """The numbers.

        >>> reader = learn_reader(pa.array(["12.0 oz.", "16 oz", "12.0 oz.", "N/A", "1..0"]))
        >>> reader.read(pa.array(["12.0 oz.", "n/a", "1..0"])).values.to_pylist(), reader.units
        ([12.0, None, nan], ('oz.', 'oz'))
        """
        levels, place = _levels(texts)
        missing = np.array([_is_missing(level, MISSING_NUMBERS) or level.strip() in self.gaps for level in levels])
        parts = [_CELL.fullmatch(level.strip()) for level in levels]
        numbers = np.array([np.nan if part is None else _number(part["number"], self.decimal) for part in parts])
        numbers[_too_fine(numbers, self.decimals)] = np.nan
        usual = {_unit(unit) for unit in self.units}
        strange = [bool(part and usual and _unit(_spelled(part)) not in usual) for part in parts]
        kind = pa.int64() if self.whole and not np.isnan(numbers[~missing]).any() else pa.float64()
        filled = pa.array(np.where(missing, 0, numbers), mask=missing).cast(kind, safe=False)
        return Reading(filled.take(pa.array(place)), (np.array(strange, dtype=bool) & ~missing)[place])

    def write(self, value: Any, decimals: int | None) -> str:
        """A number as the column writes it, with so many decimals.

        >>> Numbers(decimal=",", thousands=".", after=" kg").write(1234.5, 2)
        '1.234,50 kg'
        """
        plain = f"{value:,.{decimals}f}" if decimals is not None else f"{value:,.15g}"
        marks = {",": self.thousands, ".": self.decimal}
        return self.before + "".join(marks.get(letter, letter) for letter in plain) + self.after

    def rewrite(self, text: str) -> str:
        """A readable cell with its own digits and the column's usual unit.

        >>> Numbers(after=" patients", units=("patients",)).rewrite("619 paxienxs")
        '619 patients'
        """
        part = _CELL.fullmatch(text.strip())
        return f"{self.before}{part['number']}{self.after}" if part else text


@dataclass(frozen=True)
class Dates:
    """A column of dates, as text of one form; or, without a form, in a type for dates."""

    form: str = ""

    def read(self, texts: Texts) -> Reading:
        """Days since 1970.

        >>> Dates("%d.%m.%Y").read(pa.array(["02.01.1970", "32.01.1970", ""])).values.to_pylist()
        [1.0, nan, None]
        """
        levels, place = _levels(texts)
        missing = np.array([_is_missing(level, MISSING_NUMBERS) for level in levels], dtype=bool)
        days = np.array([_days(level.strip(), self.form) for level in levels])
        filled = pa.array(np.where(missing, 0, days), mask=missing)
        return Reading(filled.take(pa.array(place)), np.zeros(len(place), dtype=bool))

    def write(self, value: Any, decimals: int | None) -> Any:
        """A date as the column writes it; without a form a datetime.

        >>> Dates("%d.%m.%Y").write(1.0, 0)
        '02.01.1970'
        """
        moment = EPOCH + DAY * min(max(value, -719000), 2900000)  # years 1 to 9999
        moment = (moment + datetime.timedelta(microseconds=500)).replace(microsecond=0) if decimals is None else moment
        return moment.strftime(self.form) if self.form else moment


Reader = Words | Numbers | Dates
READERS: dict[str, Any] = {"words": Words, "numbers": Numbers, "dates": Dates}
Readers = Mapping[str, Reader]


def learn_readers(table: pa.Table, declared: Mapping[str, str]) -> dict[str, Reader]:
    """A reader for each column of text or dates; `declared` are kinds that the user gave."""
    columns = zip(table.column_names, table.columns, strict=True)
    learned = {name: learn_reader(values, declared.get(name)) for name, values in columns}
    return {name: reader for name, reader in learned.items() if reader is not None}


def understand(table: pa.Table, readers: Readers) -> pa.Table:
    """The table with its text as numbers or dates where it is that.

    >>> table = pa.table({"size": ["1,5 kg", "2,25 kg"], "n": [1, 2]})
    >>> understand(table, learn_readers(table, {})).to_pydict()
    {'size': [1.5, 2.25], 'n': [1, 2]}
    """
    columns = [
        _understood(each, readers.get(name)) for name, each in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _understood(column: pa.ChunkedArray, reader: Reader | None) -> Any:
    if pa.types.is_temporal(column.type) and isinstance(reader, Dates):
        return _days_of(column)
    if pa.types.is_floating(column.type) and isinstance(reader, Numbers) and reader.decimals is not None:
        fine = _too_fine(column.to_numpy(), reader.decimals)
        return pc.if_else(pa.array(fine), pa.scalar(np.nan, column.type), column) if fine.any() else column
    return reader.read(column).values if reader is not None and _is_text(column.type) else column


def strange_cells(table: pa.Table, readers: Readers) -> Iterator[tuple[str, Numbers, NDArray[np.int64]]]:
    """Columns of numbers, how they are read, and which rows have a unit there that hardly any other has."""
    for name, reader in readers.items():
        if isinstance(reader, Numbers) and reader.units and _is_text(table.schema.field(name).type):
            yield name, reader, np.flatnonzero(reader.read(table[name]).strange)


def describe_columns(table: pa.Table, readers: Readers) -> dict[str, str]:
    """What holds for a whole column and is no error of single cells: its units, its words for what is missing.

    >>> table = pa.table({"ounces": ["12.0 oz", "12.0 oz", "16.0 oz.", "N/A"]})
    >>> describe_columns(table, learn_readers(table, {}))
    {'ounces': 'numbers with the unit oz, oz.; 12.0 oz is read as 12; 1 cell says N/A, read as missing'}
    """
    described = {}
    for name, reader in readers.items():
        if not _is_text(table.schema.field(name).type):
            continue
        levels, place = _levels(table[name])
        counts = np.bincount(place, minlength=len(levels))
        said = [_unit_sentence(reader, levels, counts)] if isinstance(reader, Numbers) and reader.units else []
        spelled = MISSING if isinstance(reader, Words) else MISSING_NUMBERS
        gaps = getattr(reader, "gaps", ())
        for level, count in zip(levels, counts.tolist(), strict=True):
            text = level.strip()
            if count and text and (_is_missing(text, spelled) or text in gaps):
                said.append(f"{count:,} {'cell says' if count == 1 else 'cells say'} {text}, read as missing")
        if said:
            described[name] = "; ".join(said)
    return described


def tidy(table: pa.Table, readers: Readers) -> pa.Table:
    """The table with its numbers without units and its missing cells empty; text that is neither stays as it is.

    >>> table = pa.table({"ounces": ["12.0 oz", "16.0 oz.", "N/A", "x"] * 3})
    >>> tidy(table, learn_readers(table, {}))["ounces"].to_pylist()[:4]
    ['12.0', '16.0', '', 'x']
    """
    described = describe_columns(table, readers)
    columns = [
        _tidied(column, readers[name]) if name in described else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _tidied(column: pa.ChunkedArray, reader: Reader) -> pa.Array:
    levels, place = _levels(column)
    spelled = MISSING if isinstance(reader, Words) else MISSING_NUMBERS
    gaps = getattr(reader, "gaps", ())
    plain = []
    for level in levels:
        part = _CELL.fullmatch(level.strip()) if isinstance(reader, Numbers) and reader.units else None
        missing = _is_missing(level, spelled) or level.strip() in gaps
        plain.append("" if missing else part["number"] if part else level)
    return pa.array(plain, pa.string()).take(pa.array(place))


def _unit_sentence(reader: Numbers, levels: Sequence[str], counts: NDArray[np.int64]) -> str:
    readable_counts = [
        count * bool(_CELL.fullmatch(text.strip())) for text, count in zip(levels, counts.tolist(), strict=True)
    ]
    example = levels[int(np.argmax(readable_counts))]
    part = _CELL.fullmatch(example.strip())
    read = f"; {example.strip()} is read as {_number(part['number'], reader.decimal):.15g}" if part else ""
    named = [unit for unit in reader.units if unit]
    some = " in some cells" if "" in reader.units else ""
    return f"numbers with the unit {', '.join(named)}{some}{read}"


def readers_to_json(readers: Readers) -> dict[str, Any]:
    """Readers as JSON holds them."""
    kinds = {type_: name for name, type_ in READERS.items()}
    return {name: {"reader": kinds[type(reader)], **asdict(reader)} for name, reader in readers.items()}


def readers_from_json(entries: Mapping[str, Any]) -> dict[str, Reader]:
    """The opposite of readers_to_json."""
    return {
        name: READERS[entry["reader"]](
            **{key: tuple(v) if isinstance(v, list) else v for key, v in entry.items() if key != "reader"}
        )
        for name, entry in entries.items()
    }


# ---------------------------------------------------------------- learning


def learn_reader(values: Texts, kind: str | None = None) -> Reader | None:
    """How to read a column: None if it is no text; `kind` if the user said what it is.

    >>> learn_reader(pa.array(["3 May 2024", "12 Jun 2024"]))
    Dates(form='%d %b %Y')
    >>> learn_reader(pa.array(["02134", "10001"]))
    Words()
    """
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        return Dates() if kind in (None, "date") else None
    if pa.types.is_floating(values.type):
        decimals = usual_decimals(readable(values).to_numpy().astype(np.float64)) if kind is None else None
        return None if decimals is None else Numbers(decimals=decimals)
    if not _is_text(values.type):
        return None
    levels, place = _levels(values)
    counts = np.bincount(place, minlength=len(levels))
    if kind in (None, "date"):
        form = _tell_form(levels, counts, least=MOST_DATES if kind is None else 0.0)
        if form is not None:
            return Dates(form)
    if kind in (None, "real", "count", "ordinal"):
        numbers = _learn_numbers(levels, counts, least=MOST if kind is None else 0.0)
        if numbers is not None:
            return numbers
    return Words()


def _learn_numbers(levels: Sequence[str], counts: NDArray[np.int64], *, least: float) -> Numbers | None:
    """None if fewer than this share of the cells are numbers, if they have many units, or if they are codes."""
    known = np.array([_is_missing(level, MISSING_NUMBERS) for level in levels], dtype=bool)
    parts = [None if gap else _CELL.fullmatch(level.strip()) for level, gap in zip(levels, known, strict=True)]
    decimal = _decimal_mark([part["number"] for part in parts if part])
    numbers = np.array([np.nan if part is None else _number(part["number"], decimal) for part in parts])
    said = ~np.isnan(numbers)
    gap = _word_for_missing(levels, known | said, counts)
    gaps = np.array([level.strip() == gap for level in levels]) & ~known
    cells, found = int(counts[~known & ~gaps].sum()), int(counts[said].sum())
    if found == 0 or found < least * cells or found < LEAST_NUMBERS * counts[~known].sum():
        return None
    read = [part for part, each in zip(parts, said, strict=True) if part and each]
    if least and len(read) > 1 and len(np.unique(numbers[said])) == 1:  # it is the words around it that tell
        return None
    codes = np.array([bool(part and _CODE.fullmatch(part["number"])) for part in parts], dtype=bool)
    if least and np.median(np.abs(numbers[said])) > LARGEST_EXACT_WHOLE:  # labels, which floats would merge
        return None
    of_codes = counts[codes].sum() > CODE_SHARE * cells or are_codes(
        [part["number"] + _spelled(part) for part in read], counts[said]
    )
    if least and (of_codes or not _few_units(read, counts[said])):
        return None
    spelled = Counter[tuple[str, str]]()
    for part, count in zip(read, counts[said].tolist(), strict=True):
        spelled[part["before"], part["after"]] += count
    by_unit = Counter[str]()
    for (before, after), count in spelled.items():
        by_unit[_unit(before + after)] += count
    usual = [unit for unit, _ in spelled.most_common() if by_unit[_unit("".join(unit))] >= USUAL_UNIT * found]
    before, after = _written_unit([level for level, each in zip(levels, said, strict=True) if each], usual[0])
    written = "".join(part["number"] for part in read)
    whole = decimal not in written and bool(np.all(numbers[said] == np.round(numbers[said])))
    return Numbers(
        decimal=decimal,
        thousands=_thousands(levels, said, decimal),
        before=before,
        after=after,
        units=tuple(dict.fromkeys(("".join(unit)).strip() for unit in usual)) if any(map("".join, usual)) else (),
        gaps=(gap,) if gap else (),
        whole=whole and float(np.abs(numbers[said]).max()) < LARGEST_EXACT_WHOLE,
        decimals=None if whole else usual_decimals(np.repeat(numbers[said], counts[said])),
    )


def usual_decimals(numbers: NDArray[np.float64]) -> int | None:
    """How many decimals all numbers have but a few, if those few have many more and are all different; else None.

    Noise has as many digits as the machine that made it. A value that stands often, such as 0 in a column of amounts,
    says nothing about the others; and odd ones that come again, such as 9.5333 among tenths, are natural.

    >>> usual_decimals(np.array([0.1, 0.2, 0.5, 0.7] * 25 + [0.123456789, 0.987654321]))
    1
    """
    size = max(float(np.abs(numbers).max(initial=0.0)), 1e-300)
    if len(numbers) < FEWEST_FINE or not np.isfinite(size):
        return None
    values, counts = np.unique(numbers, return_counts=True)
    counts[counts.argmax()] = 0
    for decimals in range(MOST_DECIMALS):
        fine = _too_fine(values, decimals)
        coarse = np.isclose(values, np.round(values, decimals), rtol=1e-12, atol=0)
        if counts[coarse].sum() >= 0.8 * counts.sum():
            others = counts[~coarse]
            once = (counts[fine] == 1).sum()
            return decimals if once and once >= 0.9 * others.sum() else None
    return None


def _too_fine(numbers: NDArray[np.float64], decimals: int | None) -> NDArray[np.bool_]:
    """Numbers with far more decimals."""
    if decimals is None:
        return np.zeros(len(numbers), dtype=bool)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(numbers - np.round(numbers, decimals + FAR_MORE - 1)) > 1e-12 * np.maximum(
            np.abs(numbers), 1e-300
        )


def _word_for_missing(levels: Sequence[str], understood: NDArray[np.bool_], counts: NDArray[np.int64]) -> str:
    """The word without digits that stands in nearly all cells that are no numbers, and in many; or none."""
    others = Counter[str]()
    for level, count, each in zip(levels, counts.tolist(), understood, strict=True):
        if not each and count:
            others[level.strip()] += count
    if not others:
        return ""
    word, times = others.most_common(1)[0]
    often = times >= max(5, 0.01 * counts.sum()) and times >= 0.8 * others.total()
    return word if often and not re.search(r"\d", word) else ""


def _few_units(read: Sequence[re.Match[str]], counts: NDArray[np.int64]) -> bool:
    units = Counter[str]()
    for part, count in zip(read, counts.tolist(), strict=True):
        units[_unit(_spelled(part))] += count
    return sum(count for _, count in units.most_common(MOST_UNITS)) >= 0.9 * units.total()


def _written_unit(levels: Sequence[str], unit: tuple[str, str]) -> tuple[str, str]:
    before, after = unit
    spaced = after and any(level.strip().endswith(" " + after.strip()) for level in levels)
    return before, f" {after.strip()}" if spaced else after


def _thousands(levels: Sequence[str], readable: NDArray[np.bool_], decimal: str) -> str:
    """The mark between groups of digits, if some number has one."""
    marks = ("." if decimal == "," else ",") + GROUPS
    written = (level for level, each in zip(levels, readable, strict=True) if each)
    grouped = Counter(mark for level in written for mark in re.findall(rf"\d([{marks}])\d{{3}}(?!\d)", level))
    return grouped.most_common(1)[0][0] if grouped else ""


def _tell_form(levels: Sequence[str], counts: NDArray[np.int64], *, least: float) -> str | None:
    """The form that most cells have; of 3/4/2024 the day is first unless some cell says otherwise."""
    texts = [(level.strip(), count) for level, count in zip(levels, counts.tolist(), strict=True) if count]
    texts = [(text, count) for text, count in texts if not _is_missing(text, MISSING_NUMBERS)][:LOOKED_AT]
    if not texts or not any(re.search(r"\d[-/. ,]", text) for text, _ in texts[:20]):
        return None
    total, best, most = sum(count for _, count in texts), None, 0
    for form in (date + time for time in TIMES for date in DATES):
        if np.isnan([_days(text, form) for text, _ in texts[:20]]).all():
            continue
        fits = sum(count for text, count in texts if not np.isnan(_days(text, form)))
        if fits > most:
            best, most = form, fits
    return best if most >= max(least * total, 1) else None


# ---------------------------------------------------------------- cells


def _is_text(type_: pa.DataType) -> bool:
    return family(type_) == "text" and not pa.types.is_dictionary(type_)


def _levels(texts: Texts) -> tuple[list[str], NDArray[np.int64]]:
    """The different texts, "" the last of them, and which of them each cell is, (N,)."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    coded = whole.dictionary_encode()
    levels = [*coded.dictionary.to_pylist(), ""]
    return levels, coded.indices.fill_null(len(levels) - 1).to_numpy(zero_copy_only=False)


def _is_missing(text: str, spellings: frozenset[str]) -> bool:
    return text.strip().lower() in spellings


def _days(text: str, form: str) -> float:
    try:
        return (datetime.datetime.strptime(text, form) - EPOCH) / DAY
    except ValueError:
        return float("nan")


def _days_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a type for dates as days since 1970."""
    wall = pc.local_timestamp(column) if getattr(column.type, "tz", None) else column
    seconds = wall.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64(), safe=False)
    return pc.divide(seconds, 86_400e6)


def _decimal_mark(numbers: Sequence[str]) -> str:
    """A comma if some number can only be meant so and none only with a point.

    >>> _decimal_mark(["1,5", "1.200,50"]), _decimal_mark(["1,200", "3.5"]), _decimal_mark(["1,200"])
    (',', '.', '.')
    """
    comma = sum(bool(_SURELY_COMMA.fullmatch(number)) for number in numbers)
    point = sum(bool(_SURELY_COMMA.fullmatch(number.translate(_SWAPPED))) for number in numbers)
    return "," if comma > point else "."


def _number(text: str, decimal: str) -> float:
    """The number that a text says, NaN if it says none.

    >>> _number("1,200.5", "."), _number("1.200,5", ","), _number("4400..00", "."), _number("12,00,0", ".")
    (1200.5, 1200.5, nan, nan)
    """
    if not (_POINT if decimal == "." else _COMMA).fullmatch(text):
        return float("nan")
    plain = text.translate(_SWAPPED) if decimal == "," else text
    return float(re.sub(rf"[,{GROUPS}]", "", plain))


def _spelled(part: re.Match[str]) -> str:
    return str(part["before"] + part["after"]).strip()


def _unit(text: str) -> str:
    """A unit but for its spelling: oz, OZ and oz. are one."""
    return re.sub(r"[\W_]+", "", text.lower()) or text.strip()
