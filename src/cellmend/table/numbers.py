"""Numbers as people type them: units, currency signs, groups of digits, decimal commas, words for what is missing.

A column in which most cells are numbers is a column of numbers; a cell of it that is no number ("4400..00") is wrong,
not a level. How a column writes its numbers is learned once, and repairs are written in the same way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.table.codes import A_FORM, hold_codes
from cellmend.table.kinds import FEW_TEXT_LEVELS, are_codes
from cellmend.table.priors import A_PART, ALIKE, BY_FAR, NEARLY_ALL, RARE, USUAL
from cellmend.table.texts import MISSING_NUMBERS, Notation, Reading, Texts, count_cells, form_of, says_missing
from cellmend.table.values import LARGEST_EXACT_WHOLE, Bools, Floats, Ints, rounded_text

MOST_NUMBERS = 0.6  # of the cells must be numbers, or the column is text
MOST_UNITS = 3  # spellings apart
SAME_SCALE = 10  # between the middles of numbers with one unit and with another
SPACES = " \u00a0\u202f"
CURRENCIES = "$¢£¤¥฿₠-⃀"  # signs that stand before a number
GROUPS = "'" + SPACES  # that may stand between groups of three digits
LONGEST = 500  # letters of a number with all that stands around it
FEWEST_FINE = 50  # numbers from which it can be told how many decimals are usual
FAR_MORE = 4  # decimals
MOST_DECIMALS = 8

_CELL = re.compile(
    rf"(?:[<>≤≥~≈]=?\s*)?(?P<sign>[+-]?)(?P<before>[{CURRENCIES}]?)\s*"
    rf"(?P<number>[+-]?[\d.,{GROUPS}]*\d[.,]*(?:[eE][+-]?\d+)?)\s*(?P<after>\D*)"
)
_SIGNS = re.compile(r"[<>≤≥~≈=]*")
_POINT = re.compile(rf"[+-]?(?:\d{{1,3}}(?:[,{GROUPS}]\d{{3}})+|\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?")
_COMMA = re.compile(rf"[+-]?(?:\d{{1,3}}(?:[.{GROUPS}]\d{{3}})+|\d*)(?:,\d*)?(?:[eE][+-]?\d+)?")
_SURELY_COMMA = re.compile(
    rf"[+-]?(?:\d+,\d{{1,2}}|\d+,\d{{4,}}|\d{{1,3}}(?:[.{GROUPS}]\d{{3}})+,\d*|\d{{1,3}}(?:\.\d{{3}}){{2,}})"
)
_CODE = re.compile(rf"0[\d{GROUPS}]+")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_AGAIN = re.compile(r"(,\s*9)(?:,\s*9)+")
_ONE_LETTER = re.compile(r"(?=.*\d)[\d.,+-]*[^\W\d_][\d.,+-]*")
_SWAPPED = str.maketrans(".,", ",.")


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
class Numbers(Notation):
    """A column of numbers: its usual units, the marks between digits, and its words for what is missing."""

    noun: ClassVar[str] = "number"
    spelled_missing: ClassVar[frozenset[str]] = MISSING_NUMBERS

    decimal: str = "."
    thousands: str = ""
    before: str = ""  # the most usual unit, as it is written
    after: str = ""
    units: tuple[str, ...] = ()  # all usual ones, spellings included; "" among them if some cells have none
    gaps: tuple[str, ...] = ()
    whole: bool = False
    decimals: int | None = None  # all numbers have, but for some with many more; None: they have any
    places: int = 0  # decimals that are written at least, as in 12.00

    def understand(self, column: pa.ChunkedArray) -> Any:
        """The numbers; of a column that holds numbers already infinite ones, and those with far too many decimals,
        become NaN."""
        if not pa.types.is_floating(column.type):
            return super().understand(column)
        numbers = column.to_numpy()
        bad = np.isinf(numbers) | too_fine(numbers, self.decimals)
        return pc.if_else(pa.array(bad), pa.scalar(np.nan, column.type), column) if bad.any() else column

    def read(self, texts: Texts) -> Reading:
        """The numbers in texts.

        >>> Numbers(units=("oz.", "oz")).read(pa.array(["12.0 oz.", "n/a", "1..0"])).values.to_pylist()
        [12.0, None, nan]
        """
        found = super().read(texts)
        is_whole = self.whole and not pc.any(pc.is_nan(found.values)).as_py()
        return Reading(found.values.cast(pa.int64(), safe=False), found.strange) if is_whole else found

    def numbers_in(self, texts: Sequence[str]) -> tuple[Floats, Bools]:
        parts = [split(text) for text in texts]
        numbers = _numbers_of(parts, self.decimal)
        numbers[too_fine(numbers, self.decimals)] = np.nan
        usual = {unit_of(unit) for unit in self.units}
        strange = [bool(part and usual and unit_of(part.unit) not in usual) for part in parts]
        return numbers, np.array(strange, dtype=bool)

    def write(self, value: Any, decimals: int | None) -> str:
        """A number as the column writes it, with so many decimals.

        >>> Numbers(decimal=",", thousands=".", after=" kg").write(1234.5, 2)
        '1.234,50 kg'
        """
        size = abs(value)
        plain = f"{size:,.15g}" if decimals is None else f"{size:,.{max(decimals, self.places)}f}"
        return f"{'-' if value < 0 else ''}{self.before}{self.with_marks(plain)}{self.after}"

    def with_marks(self, digits: str) -> str:
        """Digits in groups and with a decimal point, such as 1,234.5, with the marks of the column."""
        marks = {",": self.thousands, ".": self.decimal}
        return "".join(marks.get(letter, letter) for letter in digits)

    def in_words(self, value: Any) -> str | None:
        """A number for a sentence, where the column has a decimal comma.

        >>> Numbers(decimal=",").in_words(1843.25), Numbers().in_words(1843.25)
        ('1843,25', None)
        """
        return None if self.decimal == "." else rounded_text(value).replace(".", self.decimal)

    def is_missing(self, text: str) -> bool:
        return super().is_missing(text) or text.strip() in self.gaps

    def without_unit(self, text: str) -> str:
        """The number alone, if the column has units.

        >>> Numbers(units=("oz",)).without_unit("12.0 oz")
        '12.0'
        """
        part = split(text) if any(self.units) else None
        return part.number if part and part.unit else text

    def describe_units(self, texts: Sequence[str], counts: Ints) -> str:
        """A sentence about the column's units with the most frequent example; "" if it has none."""
        if not any(self.units):
            return ""
        parts = [split(text) for text in texts]
        at = int(np.argmax([bool(part and part.unit) * count for part, count in zip(parts, counts, strict=True)]))
        example, shown = texts[at], parts[at]
        read = f"; {example.strip()} is read as {_number(shown.number, self.decimal):.15g}" if shown else ""
        named = [unit for unit in self.units if unit]
        some = " in some cells" if "" in self.units else ""
        return f"numbers with the unit {', '.join(named)}{some}{read}"


def learn_numbers(levels: Sequence[str], counts: Ints, *, least: float, decimal: str | None = None) -> Numbers | None:
    """None if fewer than this share of the cells are numbers, or if they are no quantities of one scale.

    `decimal` is the mark that the user says; else it is found out.
    """
    known = np.array([says_missing(level, MISSING_NUMBERS) for level in levels], dtype=bool)
    parts = [None if gap else split(level) for level, gap in zip(levels, known, strict=True)]
    decimal = decimal or _decimal_mark([part.number for part in parts if part])
    numbers = _numbers_of(parts, decimal)
    said = ~np.isnan(numbers)
    gap = _word_for_missing(levels, known | said, counts)
    gaps = np.array([level.strip() == gap for level in levels]) & ~known
    cells, found = int(counts[~known & ~gaps].sum()), int(counts[said].sum())
    if found == 0 or found < least * cells or found < A_PART * counts[~known].sum():
        return None
    read = [part for part, each in zip(parts, said, strict=True) if part and each]
    texts = [level.strip() for level, each in zip(levels, said, strict=True) if each]
    values, times = numbers[said], counts[said]
    units = _usual_units(read, times)
    if least:
        if gap and len(read) <= FEW_TEXT_LEVELS and all(part.unit for part in read):
            return None  # 1br and 2br are levels, and so is the word beside them, studio
        others = _stripped(levels, counts, ~said & ~known & ~gaps)
        if _are_labels(read, values, times) or _is_a_form(others, cells) or _signs_tell(texts, read, times):
            return None
        if _letters_tell(texts, read, times, others, units):
            return None
        in_units = sum(times[[part.unit in units for part in read]])
        if in_units < NEARLY_ALL * found or not _one_scale(read, values, units):
            return None
    before, after = _written_unit(texts, read, times)
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


def _stripped(levels: Sequence[str], counts: Ints, chosen: Bools) -> Counter[str]:
    """How many cells have each of the chosen texts, without spaces around them."""
    return count_cells(
        (level.strip() for level, each in zip(levels, chosen, strict=True) if each), counts[chosen].tolist()
    )


def _usual_units(read: Sequence[Part], times: Ints) -> list[str]:
    """Spellings of the units that are not rare, the most frequent first; "" for none."""
    spelled = count_cells((part.unit for part in read), times.tolist())
    by_unit = count_cells(map(unit_of, spelled), spelled.values())
    return [unit for unit, _ in spelled.most_common() if by_unit[unit_of(unit)] >= USUAL * times.sum()]


def _one_scale(read: Sequence[Part], values: Floats, units: Sequence[str]) -> bool:
    """Do numbers with each unit lie about where the others do? Grams and kilograms do not."""
    kinds = {unit_of(unit) for unit in units}
    of_each = (values[[unit_of(part.unit) == kind for part in read]] for kind in kinds)
    sizes = [size for own in of_each if (size := float(np.median(np.abs(own)))) > 0]
    return len(kinds) <= MOST_UNITS and (not sizes or max(sizes) <= SAME_SCALE * min(sizes))


def _are_labels(read: Sequence[Part], values: Floats, times: Ints) -> bool:
    """Are they codes, addresses or telephone numbers, or is it the words around a single number that tell?"""
    if len(read) > 1 and len(np.unique(values)) == 1:
        return True
    if np.median(np.abs(values)) > LARGEST_EXACT_WHOLE:  # which floats would merge
        return True
    written = [part.number for part in read]
    codes, addresses = (np.array([bool(each.fullmatch(n)) for n in written]) for each in (_CODE, _ADDRESS))
    spaced = [re.sub(rf"[{SPACES}]", "", number) if number.isascii() else "" for number in written]
    phones = any(" " in number for number in written) and {len(number) for number in spaced} <= {9, 10, 11}
    phones = phones and all(number.isdigit() for number in spaced)
    share = max(times[codes].sum(), times[addresses].sum()) / times.sum()
    padded = codes.sum() > 1 and len({len(number) for number in written}) == 1  # 001 to 420: as long as the longest
    return share > RARE or padded or phones or are_codes([part.number + part.unit for part in read], times)


def _signs_tell(texts: Sequence[str], read: Sequence[Part], times: Ints) -> bool:
    """Do most cells say a number that stands with different signs, such as <=50K and >50K? Then they are levels."""
    signs: dict[str, set[str]] = {}
    for text, part, count in zip(texts, read, times.tolist(), strict=True):
        if count >= USUAL * times.sum():
            signs.setdefault(part.number + part.unit, set()).add(_SIGNS.match(text)[0])  # type: ignore[index]
    told = [len(signs.get(part.number + part.unit, ())) > 1 for part in read]
    return bool(2 * times[told].sum() > times.sum())


def _letters_tell(
    texts: Sequence[str], read: Sequence[Part], times: Ints, others: Mapping[str, int], units: Sequence[str]
) -> bool:
    """Are some cells codes with letters, such as 4325B among 4325 and 4326, so that all of them are?"""
    odd, numbers = Counter(others), Counter[str]()
    for text, part, count in zip(texts, read, times.tolist(), strict=True):
        if part.unit in units:
            numbers[part.number] += count
        else:
            odd[text] += count
    return hold_codes(odd, numbers)


def _is_a_form(others: Mapping[str, int], cells: int) -> bool:
    """True if the cells that are no numbers share a second notation, such as 1.3.4.

    Lists of numbers look alike, however long: 26, 30 and 12, 13, 17. Numbers with one letter are asked about apart,
    because most slips make such.
    """
    odd = {text: count for text, count in others.items() if not _ONE_LETTER.fullmatch(text)}
    forms = count_cells((_AGAIN.sub(r"\1", form_of(text)) for text in odd), odd.values())
    return any(count >= max(ALIKE, A_FORM * cells) for count in forms.values())


def _places(read: Sequence[Part], times: Ints, decimal: str) -> int:
    """How many decimals most numbers are written with; 0 if they differ."""
    found = count_cells((len(part.number.partition(decimal)[2]) for part in read), times.tolist())
    places, count = found.most_common(1)[0]
    return places if count >= NEARLY_ALL * times.sum() else 0


def usual_decimals(numbers: Floats) -> int | None:
    """How many decimals all numbers have but a few, if those few have many more and are all different; else None.

    Noise has as many digits as the machine that made it. A value that stands often, such as 0 in a column of amounts,
    says nothing about the others; and odd ones that come again, such as 9.5333 among tenths, are natural.

    >>> usual_decimals(np.array([0.1, 0.2, 0.5, 0.7] * 25 + [0.123456789, 0.987654321]))
    1
    """
    if len(numbers) < FEWEST_FINE or not np.isfinite(numbers).all():
        return None
    values, counts = np.unique(numbers, return_counts=True)
    counts[counts.argmax()] = 0
    for decimals in range(MOST_DECIMALS):
        fine = too_fine(values, decimals)
        coarse = np.isclose(values, np.round(values, decimals), rtol=1e-12, atol=0)
        if counts[coarse].sum() >= BY_FAR * counts.sum():
            others = counts[~coarse]
            once = (counts[fine] == 1).sum()
            return decimals if once and once >= NEARLY_ALL * others.sum() else None
    return None


def too_fine(numbers: Floats, decimals: int | None) -> Bools:
    """Numbers with far more decimals."""
    if decimals is None:
        return np.zeros(len(numbers), dtype=bool)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(numbers - np.round(numbers, decimals + FAR_MORE - 1)) > 1e-12 * np.abs(numbers)


def _word_for_missing(levels: Sequence[str], understood: Bools, counts: Ints) -> str:
    """The word without digits that stands in nearly all cells that are no numbers, and in many; or none."""
    others = _stripped(levels, counts, ~understood & (counts > 0))
    if not others:
        return ""
    word, times = others.most_common(1)[0]
    often = times >= max(ALIKE, RARE * counts.sum()) and times >= BY_FAR * others.total()
    return word if often and not re.search(r"\d", word) else ""


def _written_unit(texts: Sequence[str], read: Sequence[Part], times: Ints) -> tuple[str, str]:
    """What most cells have before and after the number."""
    found = count_cells(((part.before, part.after.strip()) for part in read), times.tolist())
    before, after = found.most_common(1)[0][0]
    behind = {text.partition(before)[2][:1] for text in texts if before and before in text}
    spaced = bool(after) and any(text.endswith(" " + after) for text in texts)
    return before + " " * (behind == {" "}), f" {after}" if spaced else after


def _thousands(read: Sequence[Part], values: Floats, times: Ints, decimal: str) -> str:
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


def split(text: str) -> Part | None:
    """The number in a cell and what stands around it; None if it is no single number.

    >>> split("$1,200"), split("(59.14)").number, split("84-").number, split("-$8").number, split("1 h 13 min")
    (Part(before='$', number='1,200', after=''), '-59.14', '-84', '-8', None)
    """
    if len(text) > LONGEST:
        return None
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


def _numbers_of(parts: Sequence[Part | None], decimal: str) -> Floats:
    return np.array([np.nan if part is None else _number(part.number, decimal) for part in parts])


@lru_cache(maxsize=4096)
def unit_of(text: str) -> str:
    """A unit but for its spelling: oz, OZ and oz. are one."""
    return re.sub(r"[\W_]+", "", text.lower()) or text.strip()
