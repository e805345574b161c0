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
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.table.schema import LARGEST_EXACT_WHOLE, are_codes, family, readable

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null"})  # in any column, whatever the case
MISSING_NUMBERS = MISSING | {"none", "nil", "missing", "unknown", "-", "--", "?", "."}  # where numbers are expected
MOST = 0.6  # of the cells must be numbers, or the column is text
MOST_DATES = 0.8
LEAST_NUMBERS = 0.1  # of the cells, where one word, such as "empty", stands for all that are missing
MOST_UNITS = 3  # spellings apart
SAME_SCALE = 10  # between the middles of numbers with one unit and with another
A_FORM = 0.03  # of the cells look alike and are no numbers: then the column holds more than numbers
USUAL_UNIT = 0.02  # of the numbers have it, or the cell is badly written
CODE_SHARE = 0.01  # of numbers written with a leading zero: then they are codes, such as 02134
SPACES = " \u00a0\u202f"
CURRENCIES = "$¢£¤¥฿₠-⃀"  # signs that stand before a number
GROUPS = "'" + SPACES  # that may stand between groups of three digits
FEWEST_FINE = 50  # numbers from which it can be told how many decimals are usual
FAR_MORE = 4  # decimals
MOST_DECIMALS = 8
MOST_FORMS = 3  # of dates in a column, beside the usual one
LOOKED_AT = 1000  # different texts from which the form of dates is told
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y",
         "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%Y-%m",
         "%Y%m%d")  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M", " %H:%M:%S.%f", "T%H:%M:%S.%f", " %I:%M %p")
EPOCH = datetime.datetime(1970, 1, 1)
DAY = datetime.timedelta(days=1)

_CELL = re.compile(
    rf"(?:[<>≤≥~≈]=?\s*)?(?P<sign>[+-]?)(?P<before>[{CURRENCIES}]?)\s*"
    rf"(?P<number>[+-]?[\d.,{GROUPS}]*\d[.,]*(?:[eE][+-]?\d+)?)\s*(?P<after>\D*)"
)
_POINT = re.compile(rf"[+-]?(?:\d{{1,3}}(?:[,{GROUPS}]\d{{3}})+|\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?")
_COMMA = re.compile(rf"[+-]?(?:\d{{1,3}}(?:[.{GROUPS}]\d{{3}})+|\d*)(?:,\d*)?(?:[eE][+-]?\d+)?")
_SURELY_COMMA = re.compile(
    rf"[+-]?(?:\d+,\d{{1,2}}|\d+,\d{{4,}}|\d{{1,3}}(?:[.{GROUPS}]\d{{3}})+,\d*|\d{{1,3}}(?:\.\d{{3}}){{2,}})"
)
_CODE = re.compile(rf"0[\d{GROUPS}]+")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_SWAPPED = str.maketrans(".,", ",.")

Texts = Any  # pa.Array or pa.ChunkedArray of text


@dataclass(frozen=True)
class Reading:
    """A column as understood."""

    values: pa.ChunkedArray | pa.Array  # null: missing; NaN: should be a number or a date and is none
    strange: NDArray[np.bool_]  # (N,) cells that can be read, but are written as hardly any other


class Part(NamedTuple):
    """A cell that holds one number: what stands before it, its digits with the sign in front, what stands after it."""

    before: str
    number: str
    after: str

    @property
    def unit(self) -> str:
        """The unit as it is spelled."""
        return (self.before + self.after).strip()


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
    places: int = 0  # decimals that are written at least, as in 12.00

    def read(self, texts: Texts) -> Reading:
        """The numbers.

        >>> reader = learn_reader(pa.array(["12.0 oz.", "16 oz", "12.0 oz.", "N/A", "1..0"]))
        >>> reader.read(pa.array(["12.0 oz.", "n/a", "1..0"])).values.to_pylist(), reader.units
        ([12.0, None, nan], ('oz.', 'oz'))
        """
        levels, place = _levels(texts)
        missing = np.array([_is_missing(level, MISSING_NUMBERS) or level.strip() in self.gaps for level in levels])
        parts = [split(level) for level in levels]
        numbers = np.array([np.nan if part is None else _number(part.number, self.decimal) for part in parts])
        numbers[_too_fine(numbers, self.decimals)] = np.nan
        usual = {_unit(unit) for unit in self.units}
        strange = [bool(part and usual and _unit(part.unit) not in usual) for part in parts]
        kind = pa.int64() if self.whole and not np.isnan(numbers[~missing]).any() else pa.float64()
        filled = pa.array(np.where(missing, 0, numbers), mask=missing).cast(kind, safe=False)
        return Reading(filled.take(pa.array(place)), (np.array(strange, dtype=bool) & ~missing)[place])

    def write(self, value: Any, decimals: int | None) -> str:
        """A number as the column writes it, with so many decimals.

        >>> Numbers(decimal=",", thousands=".", after=" kg").write(1234.5, 2)
        '1.234,50 kg'
        """
        size = abs(value)
        plain = f"{size:,.15g}" if decimals is None else f"{size:,.{max(decimals, self.places)}f}"
        marks = {",": self.thousands, ".": self.decimal}
        digits = "".join(marks.get(letter, letter) for letter in plain)
        return f"{'-' if value < 0 else ''}{self.before}{digits}{self.after}"

    def rounded(self, text: str) -> float | None:
        """The number in a text, with as many decimals as those of the column; None if there is none."""
        part = split(text)
        return (
            None if part is None or self.decimals is None else round(_number(part.number, self.decimal), self.decimals)
        )

    def rewrite(self, text: str) -> str:
        """A readable cell with its own digits and the column's usual unit.

        >>> Numbers(after=" patients", units=("patients",)).rewrite("619 paxienxs")
        '619 patients'
        """
        part = split(text)
        return f"{self.before}{part.number}{self.after}" if part else text


@dataclass(frozen=True)
class Dates:
    """A column of dates, as text of one form; or, without a form, in a type for dates."""

    form: str = ""
    also: tuple[str, ...] = ()  # forms that many other cells have
    others: tuple[str, ...] = ()  # forms that a few cells have
    padded: bool = True  # 05/01/2024, not 5/1/2024

    def read(self, texts: Texts) -> Reading:
        """Days since 1970.

        >>> Dates("%d.%m.%Y").read(pa.array(["02.01.1970", "32.01.1970", ""])).values.to_pylist()
        [1.0, nan, None]
        """
        levels, place = _levels(texts)
        missing = np.array([_is_missing(level, MISSING_NUMBERS) for level in levels], dtype=bool)
        texts_only = [level.strip() for level in levels]
        days = self._first_that_fits(texts_only, (self.form, *self.also))
        strange = np.isnan(days) & ~missing
        days = np.where(strange, self._first_that_fits(texts_only, self.others), days)
        filled = pa.array(np.where(missing, 0, days), mask=missing)
        return Reading(filled.take(pa.array(place)), (strange & ~np.isnan(days))[place])

    def _first_that_fits(self, texts: Sequence[str], forms: Sequence[str]) -> NDArray[np.float64]:
        days = np.full(len(texts), np.nan)
        for form in forms:
            left = np.flatnonzero(np.isnan(days))
            days[left] = [_days(texts[place], form) for place in left.tolist()]
        return days

    def write(self, value: Any, decimals: int | None) -> Any:
        """A date as the column writes it; without a form a datetime.

        >>> Dates("%d.%m.%Y").write(1.0, 0)
        '02.01.1970'
        """
        moment = EPOCH + DAY * min(max(value, -719_162), 2_932_896)  # years 1 to 9999
        moment = (moment + datetime.timedelta(microseconds=500)).replace(microsecond=0) if decimals is None else moment
        if not self.form:
            return moment
        date, time = (moment.strftime(part) for part in re.fullmatch(r"(.*?)((?:[T ]%[HI].*)?)", self.form).groups())  # type: ignore[union-attr]
        return (date if self.padded else re.sub(r"\b0(\d)\b", r"\1", date)) + time

    def rewrite(self, text: str) -> str:
        """A date of another form in the usual one."""
        days = self.read(pa.array([text])).values[0].as_py()
        return text if days is None or days != days else str(self.write(days, 0))


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


def strange_cells(table: pa.Table, readers: Readers) -> Iterator[tuple[str, Numbers | Dates, NDArray[np.int64]]]:
    """Columns of numbers or dates, how they are read, and which rows are written there as hardly any other is."""
    for name, reader in readers.items():
        if not isinstance(reader, Words) and _is_text(table.schema.field(name).type):
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
        said = [_unit_sentence(reader, levels, counts)] if isinstance(reader, Numbers) and any(reader.units) else []
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
        part = split(level) if isinstance(reader, Numbers) and any(reader.units) else None
        missing = _is_missing(level, spelled) or level.strip() in gaps
        plain.append("" if missing else part.number if part and part.unit else level)
    return pa.array(plain, pa.string()).take(pa.array(place))


def _unit_sentence(reader: Numbers, levels: Sequence[str], counts: NDArray[np.int64]) -> str:
    readable_counts = [
        count * bool((part := split(text)) and part.unit) for text, count in zip(levels, counts.tolist(), strict=True)
    ]
    example = levels[int(np.argmax(readable_counts))]
    shown = split(example)
    read = f"; {example.strip()} is read as {_number(shown.number, reader.decimal):.15g}" if shown else ""
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
    Dates(form='%d %b %Y', also=(), others=(), padded=True)
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
        dates = _learn_dates(levels, counts, least=MOST_DATES if kind is None else 0.0)
        if dates is not None:
            return dates
    if kind in (None, "real", "count", "ordinal"):
        numbers = _learn_numbers(levels, counts, least=MOST if kind is None else 0.0)
        if numbers is not None:
            return numbers
    return Words()


def _learn_numbers(levels: Sequence[str], counts: NDArray[np.int64], *, least: float) -> Numbers | None:
    """None if fewer than this share of the cells are numbers, or if they are no quantities of one scale."""
    known = np.array([_is_missing(level, MISSING_NUMBERS) for level in levels], dtype=bool)
    parts = [None if gap else split(level) for level, gap in zip(levels, known, strict=True)]
    decimal = _decimal_mark([part.number for part in parts if part])
    numbers = np.array([np.nan if part is None else _number(part.number, decimal) for part in parts])
    said = ~np.isnan(numbers)
    gap = _word_for_missing(levels, known | said, counts)
    gaps = np.array([level.strip() == gap for level in levels]) & ~known
    cells, found = int(counts[~known & ~gaps].sum()), int(counts[said].sum())
    if found == 0 or found < least * cells or found < LEAST_NUMBERS * counts[~known].sum():
        return None
    read = [part for part, each in zip(parts, said, strict=True) if part and each]
    values, times = numbers[said], counts[said]
    units = _usual_units(read, times)
    if least:
        others = ~said & ~known & ~gaps
        if _are_labels(read, values, times) or _is_a_form(
            [t for t, o in zip(levels, others, strict=True) if o], counts[others], cells
        ):
            return None
        if sum(times[[part.unit in units for part in read]]) < 0.9 * found or not _one_scale(read, values, units):
            return None
    before, after = _written_unit([level for level, each in zip(levels, said, strict=True) if each], read, times)
    whole = not any(decimal in part.number for part in read) and bool(np.all(values == np.round(values)))
    return Numbers(
        decimal=decimal,
        thousands=_thousands(read, values, times, decimal),
        before=before,
        after=after,
        units=tuple(units),
        gaps=(gap,) if gap else (),
        whole=whole and float(np.abs(values).max()) < LARGEST_EXACT_WHOLE,
        decimals=None if whole else usual_decimals(np.repeat(values, times)),
        places=_places(read, times, decimal),
    )


def _usual_units(read: Sequence[Part], times: NDArray[np.int64]) -> list[str]:
    """Spellings of the units that are not rare, the most frequent first; "" for none."""
    spelled, by_unit = Counter[str](), Counter[str]()
    for part, count in zip(read, times.tolist(), strict=True):
        spelled[part.unit] += count
        by_unit[_unit(part.unit)] += count
    return [unit for unit, _ in spelled.most_common() if by_unit[_unit(unit)] >= USUAL_UNIT * times.sum()]


def _one_scale(read: Sequence[Part], values: NDArray[np.float64], units: Sequence[str]) -> bool:
    """Do numbers with each unit lie about where the others do? Grams and kilograms do not."""
    kinds = {_unit(unit) for unit in units}
    of_each = (values[[_unit(part.unit) == kind for part in read]] for kind in kinds)
    sizes = [size for own in of_each if (size := float(np.median(np.abs(own)))) > 0]
    return len(kinds) <= MOST_UNITS and (not sizes or max(sizes) <= SAME_SCALE * min(sizes))


def _are_labels(read: Sequence[Part], values: NDArray[np.float64], times: NDArray[np.int64]) -> bool:
    """Are they codes, addresses or telephone numbers, or is it the words around a single number that tell?"""
    if len(read) > 1 and len(np.unique(values)) == 1:
        return True
    if np.median(np.abs(values)) > LARGEST_EXACT_WHOLE:  # which floats would merge
        return True
    written = [part.number for part in read]
    codes = np.array([bool(_CODE.fullmatch(number)) for number in written])
    addresses = np.array([bool(_ADDRESS.fullmatch(number)) for number in written])
    spaced = [re.sub(rf"[{SPACES}]", "", number) if number.isascii() else "" for number in written]
    phones = any(" " in number for number in written) and {len(number) for number in spaced} <= {9, 10, 11}
    share = max(times[codes].sum(), times[addresses].sum()) / times.sum()
    return share > CODE_SHARE or phones or are_codes([part.number + part.unit for part in read], times)


def _is_a_form(others: Sequence[str], counts: NDArray[np.int64], cells: int) -> bool:
    """Do so many cells that are no numbers look alike that it is the column's way to write, such as 1.3.4?"""
    forms = Counter[str]()
    for text, count in zip(others, counts.tolist(), strict=True):
        forms[form_of(text.strip())] += count
    return any(count >= max(5, A_FORM * cells) for count in forms.values())


def _places(read: Sequence[Part], times: NDArray[np.int64], decimal: str) -> int:
    """How many decimals most numbers are written with; 0 if they differ."""
    found = Counter[int]()
    for part, count in zip(read, times.tolist(), strict=True):
        found[len(part.number.partition(decimal)[2])] += count
    places, count = found.most_common(1)[0]
    return places if count >= 0.9 * times.sum() else 0


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


def _written_unit(levels: Sequence[str], read: Sequence[Part], times: NDArray[np.int64]) -> tuple[str, str]:
    """What most cells have before and after the number."""
    found = Counter[tuple[str, str]]()
    for part, count in zip(read, times.tolist(), strict=True):
        found[part.before, part.after.strip()] += count
    before, after = found.most_common(1)[0][0]
    spaced = bool(after) and any(level.strip().endswith(" " + after) for level in levels)
    return before, f" {after}" if spaced else after


def _thousands(read: Sequence[Part], values: NDArray[np.float64], times: NDArray[np.int64], decimal: str) -> str:
    """The mark between groups of digits, if most numbers that could have one do."""
    marks = ("." if decimal == "," else ",") + GROUPS
    found, large = Counter[str](), 0
    for part, value, count in zip(read, values.tolist(), times.tolist(), strict=True):
        if abs(value) >= 1000:
            large += count
            grouped = re.search(rf"\d([{marks}])\d{{3}}", part.number)
            found[grouped[1] if grouped else ""] += count
    mark, times_found = found.most_common(1)[0] if found else ("", 0)
    return mark if 2 * times_found > large else ""


def _learn_dates(levels: Sequence[str], counts: NDArray[np.int64], *, least: float) -> Dates | None:
    """The form that most cells have, and others; of 3/4/2024 the day is first unless some cell says otherwise."""
    texts = [(level.strip(), count) for level, count in zip(levels, counts.tolist(), strict=True) if count]
    texts = [(text, count) for text, count in texts if not _is_missing(text, MISSING_NUMBERS)][:LOOKED_AT]
    if not any(re.search(r"\d[-/. ,]|^\d{8}$", text) for text, _ in texts[:20]):
        return None
    left, forms, fits = texts, list[str](), list[int]()
    while left and len(forms) <= MOST_FORMS:
        form, fitting = _best_form(left)
        if not fitting:
            break
        forms.append(form)
        fits.append(sum(count for text, count in left if text in fitting))
        left = [(text, count) for text, count in left if text not in fitting]
    total = sum(count for _, count in texts)
    if not forms or sum(fits) < max(least * total, 1) or 2 * fits[0] < sum(fits):
        return None
    main = [text for text, _ in texts if not np.isnan(_days(text, forms[0]))]
    loose = any(re.search(r"(?<!\d)\d[/.-]", text) for text in main) and "%b" not in forms[0].lower()
    usual = [form for form, count in zip(forms, fits, strict=True) if count >= USUAL_UNIT * total]
    return Dates(forms[0], tuple(usual[1:]), tuple(form for form in forms if form not in usual), padded=not loose)


def _best_form(texts: Sequence[tuple[str, int]]) -> tuple[str, set[str]]:
    """The form that most of these have, and which have it."""
    best, most, fitting = "", 0, set[str]()
    for form in (date + time for time in TIMES for date in DATES):
        if np.isnan([_days(text, form) for text, _ in texts[:20]]).all():
            continue
        own = {text for text, _ in texts if not np.isnan(_days(text, form))}
        count = sum(times for text, times in texts if text in own)
        if count > most:
            best, most, fitting = form, count, own
    return best, fitting


# ---------------------------------------------------------------- cells


def _is_text(type_: pa.DataType) -> bool:
    return family(type_) == "text" and not pa.types.is_dictionary(type_)


def _levels(texts: Texts) -> tuple[list[str], NDArray[np.int64]]:
    """The different texts, "" the last of them, and which of them each cell is, (N,)."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    coded = whole.dictionary_encode()
    levels = [*coded.dictionary.to_pylist(), ""]
    return levels, coded.indices.fill_null(len(levels) - 1).to_numpy(zero_copy_only=False)


def split(text: str) -> Part | None:
    """The number in a cell and what stands around it; None if it is no single number.

    >>> split("$1,200"), split("(59.14)").number, split("84-").number, split("-$8").number, split("1 h 13 min")
    (Part(before='$', number='1,200', after=''), '-59.14', '-84', '-8', None)
    """
    text = text.strip().replace("−", "-")
    bracketed = text.startswith("(") and text.endswith(")")
    found = _CELL.fullmatch(text[1:-1] if bracketed else text)
    if found is None or (found["sign"] and found["number"][0] in "+-"):
        return None
    negative = bracketed or found["sign"] == "-" or found["after"].strip() == "-"
    if negative and found["number"][0] in "+-":
        return None
    after = "" if found["after"].strip() == "-" else found["after"]
    return Part(found["before"], ("-" if negative else "") + found["number"], after)


def form_of(text: str) -> str:
    """Letters and digits as such, runs as one.

    >>> form_of("AB-123")
    'a-9'
    """
    return re.sub(r"9+", "9", re.sub(r"\d", "9", re.sub(r"[^\W\d_]+", "a", text)))


def _is_missing(text: str, spellings: frozenset[str]) -> bool:
    return text.strip().lower() in spellings


def _days(text: str, form: str) -> float:
    if form == "%Y%m%d" and len(text) != 8:
        return float("nan")
    try:
        return (datetime.datetime.strptime(text, form) - EPOCH) / DAY
    except ValueError:
        return float("nan")


def _days_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a type for dates as days since 1970."""
    wall = pc.local_timestamp(column) if getattr(column.type, "tz", None) else column
    seconds = wall.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
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
    number = float(re.sub(rf"[,{GROUPS}]", "", plain))
    return number if np.isfinite(number) else float("nan")


def _unit(text: str) -> str:
    """A unit but for its spelling: oz, OZ and oz. are one."""
    return re.sub(r"[\W_]+", "", text.lower()) or text.strip()
