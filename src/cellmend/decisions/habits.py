"""What is usual in a column, and how far each of its texts is from it.

Learned once, from the table that people decided on, and kept in the model: a cell of any later piece of a table then
has the same traits whatever stands beside it. A value that is not known counts as one that stands once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.table.readtable import ReadTable
from cellmend.table.texts import form_of as find_form
from cellmend.table.values import as_text, plain

MOST_KEPT = 2000  # kinds of forms, of letters and of pairs of letters, the most frequent ones
LONGEST = 80  # letters of a text that are looked at
MOSTLY = 0.3  # of the cells are numbers, or how large they are does not matter
FARTHEST = 20.0  # spreads from the middle: beyond, all is equally far
REMEMBERED = 100_000  # texts that were looked at; each is asked about several times
HALF = 0.5  # of a cell is added to what was not seen
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
TRAITS = (
    "value", "single", "value_for_column", "form", "form_for_column", "shape", "shape_for_column", "rarest_letter",
    "rarest_pair", "usual_pairs", "length", "distance_of_length", "number", "odd_type", "size", "distance", "tail",
    "decimals", "numbers_in_column", "values_in_column", "usual_value",
)  # fmt: skip
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Coded:
    """A column as its different texts, and which of them each row has, -1 for none."""

    texts: list[str]
    places: NDArray[np.int64]  # (N,)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each text stands, (texts,)."""
        return np.bincount(self.places[self.places >= 0], minlength=len(self.texts))


def coded(table: ReadTable, place: int) -> Coded:
    """A column as it came; what is empty, or only spaces, is no text."""
    column = plain(table.arrow.column(place)).combine_chunks()
    column = (column.cast(pa.string()) if pa.types.is_null(column.type) else column).dictionary_encode()
    texts = [as_text(value).strip() for value in column.dictionary.to_pylist()]
    known = {text: number for number, text in enumerate(dict.fromkeys(text for text in texts if text))}
    codes = np.array([*(known.get(text, -1) for text in texts), -1], dtype=np.int64)
    return Coded(list(known), codes[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)])


@dataclass(frozen=True)
class Habits:
    """How one column usually looks; counts are of cells."""

    rows: int  # cells that hold something
    values: dict[str, int]  # texts that stand twice or more
    forms: dict[str, int]
    shapes: dict[str, int]
    letters: dict[str, int]
    pairs: dict[str, int]  # of letters
    usual: tuple[float, float, float]  # mean logarithm of the share of a cell's value, form and shape
    lengths: tuple[float, float]  # middle and spread
    numbers: tuple[float, ...]  # percentiles; none if the column is text
    decimals: float
    numeric: float  # share of cells that are numbers
    varied: float  # different values for each cell

    @classmethod
    def of(cls, column: Coded) -> Habits:
        """The habits of a column that has at least one cell."""
        texts, counts = column.texts, column.counts
        forms, shapes = ([make(text) for text in texts] for make in (form_of, shape_of))
        rows = int(counts.sum())
        by_form, by_shape = _counted(forms, counts), _counted(shapes, counts)
        shares = (
            np.average(np.log(own / rows), weights=counts)
            for own in (counts, np.array([by_form[f] for f in forms]), np.array([by_shape[s] for s in shapes]))
        )
        lengths = np.repeat([len(text) for text in texts], counts)
        numbers = np.repeat([number_of(text) for text in texts], counts)
        numeric = float(np.isfinite(numbers).mean())
        return cls(
            rows=rows,
            values={text: int(count) for text, count in zip(texts, counts, strict=True) if count > 1},
            forms=_often(by_form),
            shapes=_often(by_shape),
            letters=_often(_contained(map(dict.fromkeys, texts), counts)),
            pairs=_often(_contained(map(_pairs, texts), counts)),
            usual=tuple(map(float, shares)),  # type: ignore[arg-type]
            lengths=_middle_and_spread(lengths),
            numbers=tuple(np.nanpercentile(numbers, range(101)).tolist()) if numeric >= MOSTLY else (),
            decimals=float(np.median(np.repeat([_decimals(text) for text in texts], counts))),
            numeric=numeric,
            varied=len(texts) / rows,
        )

    def traits(self, texts: Sequence[str]) -> Floats:
        """How each text differs from what is usual, (texts, TRAITS)."""
        counts = np.array([self.values.get(text, 1) for text in texts], dtype=np.float64)
        value = np.log(counts / self.rows)
        form, shape = (
            np.log([known.get(make(text), 1) / self.rows for text in texts])
            for known, make in ((self.forms, form_of), (self.shapes, shape_of))
        )
        rarest = [min((self.letters.get(letter, 1) for letter in text[:LONGEST]), default=self.rows) for text in texts]
        rarest_pair, usual_pairs = self._pairs(texts, counts)
        length = _from_middle(np.array([len(text) for text in texts], dtype=np.float64), self.lengths)
        numbers = np.array([number_of(text) for text in texts])
        is_number = np.isfinite(numbers)
        size, tail = self._size(numbers)
        decimals = np.array([_decimals(text) for text in texts]) - self.decimals
        columns = [
            value, counts == 1, value - self.usual[0], form, form - self.usual[1], shape, shape - self.usual[2],
            np.log(np.array(rarest) / self.rows), rarest_pair, usual_pairs,
            length, np.log1p(np.abs(length)), is_number, np.abs(is_number - self.numeric), size,
            np.log1p(np.abs(size)), tail, np.where(is_number, decimals, 0.0), np.full(len(texts), self.numeric),
            np.full(len(texts), self.varied), np.full(len(texts), self.usual[0]),
        ]  # fmt: skip
        return np.stack([np.asarray(each, dtype=np.float64) for each in columns], axis=1)

    def _pairs(self, texts: Sequence[str], counts: Floats) -> tuple[Floats, Floats]:
        """How rare the rarest pair of letters of each text is in other texts, and the mean of all its pairs."""
        pairs = [_pairs(text) for text in texts]
        sizes = np.array([len(each) for each in pairs])
        known = np.array([self.pairs.get(pair, -1) for each in pairs for pair in each], dtype=np.float64)
        own, first = np.repeat(counts, sizes), np.cumsum(sizes) - sizes
        elsewhere = np.where(known < 0, 0.0, np.maximum(known - own, 0.0))
        rare = np.log(elsewhere + HALF) - np.log(self.rows)
        return np.minimum.reduceat(rare, first), np.add.reduceat(rare, first) / sizes

    def _size(self, numbers: Floats) -> tuple[Floats, Floats]:
        """How many spreads a number lies from the middle, and how much of the column lies beyond it, as a logarithm."""
        if not self.numbers:
            return np.zeros(len(numbers)), np.zeros(len(numbers))
        known = np.array(self.numbers)
        middle = float(known[50]), max(float(known[75] - known[25]), 0.01 * abs(float(known[50])), 1e-9)
        size = np.where(np.isfinite(numbers), _from_middle(numbers, middle), 0.0)
        below, above = (np.searchsorted(known, numbers, side=side) / 101 for side in ("left", "right"))
        beyond = np.log(np.minimum(above, 1 - below) + 1 / 101)
        return size, np.where(np.isfinite(numbers), np.minimum(beyond, 0.0), 0.0)


def habits_from_json(entry: dict[str, Any]) -> Habits:
    """The opposite of dataclasses.asdict."""
    sequences = {name: tuple(entry[name]) for name in ("usual", "lengths", "numbers")}
    return Habits(**entry | sequences)


# ---------------------------------------------------------------- what texts are like

form_of = lru_cache(REMEMBERED)(find_form)


class _Classes(dict[int, str]):
    """The class of each sign by its number, found out once."""

    def __missing__(self, number: int) -> str:
        sign = chr(number)
        if sign.isdigit():
            sign = "9"
        elif sign.isalpha():
            sign = "A" if sign.isupper() else "a"
        self[number] = sign
        return sign


CLASSES = _Classes()


def shape_of(text: str) -> str:
    """Each letter as a or A, each digit as 9, other signs as they are.

    >>> shape_of("Ab-12")
    'Aa-99'
    """
    return text[:LONGEST].translate(CLASSES)


@lru_cache(REMEMBERED)
def number_of(text: str) -> float:
    """The number that a text is; NaN if it is none.

    >>> number_of("1.5"), number_of("1,200"), number_of("9 oz")
    (1.5, 1200.0, nan)
    """
    plainly = THOUSANDS.sub("", text) if "," in text else text
    return float(plainly) if NUMBER.fullmatch(plainly) else np.nan


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _pairs(text: str) -> list[str]:
    """Neighbouring letters, the ends of the text included; each once, in their order, by which sums are rounded."""
    cut = f"\x02{text[:LONGEST]}\x03"
    return list(dict.fromkeys(cut[place : place + 2] for place in range(len(cut) - 1)))


def _counted(keys: Iterable[str], counts: Iterable[int]) -> Counter[str]:
    found = Counter[str]()
    for key, count in zip(keys, counts, strict=True):
        found[key] += int(count)
    return found


def _contained(parts: Iterable[Iterable[str]], counts: Iterable[int]) -> Counter[str]:
    """How many cells hold each part."""
    found = Counter[str]()
    for own, count in zip(parts, counts, strict=True):
        found.update(dict.fromkeys(own, int(count)))
    return found


def _often(found: Counter[str]) -> dict[str, int]:
    """The most frequent ones of those that stand twice or more; what is not known counts as once."""
    return {key: count for key, count in found.most_common(MOST_KEPT) if count > 1}


def _middle_and_spread(numbers: NDArray[Any]) -> tuple[float, float]:
    low, middle, high = np.percentile(numbers, [25, 50, 75])
    return float(middle), float(max(high - low, 0.01 * abs(middle), 1e-9))


def _from_middle(numbers: Floats, middle: tuple[float, float]) -> Floats:
    return np.clip((numbers - middle[0]) / middle[1], -FARTHEST, FARTHEST)
