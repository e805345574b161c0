"""Columns of text: their different values, the words that say that something is missing, and the forms of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from cellmend.table.values import Bools, Floats, Ints, family

# In any column, whatever the case: abbreviations that mean nothing else, such as k.A. (keine Angabe) and s/o (sans
# objet). Plain words are no gaps there: "unknown" may be a category, and ND is North Dakota.
MISSING = frozenset({"", "na", "n/a", "#n/a", "n.a.", "n. a.", "nan", "null", "<na>", "k.a.", "k. a.", "n/d", "n.d.",
                     "s/o", "s/d", "b/d", "n/b", "n.v.t.", "н/д"})  # fmt: skip
MISSING_WORDS = frozenset({
    "none", "nil", "missing", "unknown", "not available", "not applicable", "no data", "tbd", "tba",
    "keine", "keine angabe", "keine angaben", "unbekannt", "entfällt", "fehlt",
    "nd", "so", "nc", "inconnu", "inconnue", "non disponible", "non renseigné", "sans objet", "vide",
    "desconocido", "sin dato", "sin datos", "no disponible", "vacío", "sconosciuto", "non noto", "desconhecido",
    "não disponível", "sem dados", "onbekend", "geen", "brak", "brak danych", "ukendt", "okänd", "ukjent", "saknas",
    "нет", "нет данных", "неизвестно", "不明", "未知", "无", "暂无", "なし", "없음",
})  # fmt: skip
MISSING_NUMBERS = MISSING | MISSING_WORDS | {"-", "--", "---", "?", ".", "–", "—"}  # where numbers are expected

Texts = Any  # pa.Array or pa.ChunkedArray of text
Key = TypeVar("Key")


@dataclass(frozen=True)
class Reading:
    """A column as understood."""

    values: pa.ChunkedArray | pa.Array  # null: missing; NaN: should be a number or a date and is none
    strange: Bools  # (N,) cells that can be read, but are written as hardly any other


@dataclass(frozen=True)
class Notation:
    """How a column writes its values: what all ways have in common."""

    noun: ClassVar[str] = "text"
    spelled_missing: ClassVar[frozenset[str]] = MISSING

    def understand(self, column: pa.ChunkedArray) -> Any:
        """The column as the model sees it."""
        return self.read(column).values if holds_text(column.type) else column

    def read(self, texts: Texts) -> Reading:
        """What the texts say, (N,), as numbers."""
        levels, place = distinct_texts(texts)
        missing = np.array([self.is_missing(level) for level in levels], dtype=bool)
        numbers, strange = self.numbers_in(levels)
        filled = pa.array(np.where(missing, 0, numbers), mask=missing)
        return Reading(filled.take(pa.array(place)), (strange & ~missing & ~np.isnan(numbers))[place])

    def numbers_in(self, texts: Sequence[str]) -> tuple[Floats, Bools]:
        """The number that each text says, NaN for none, and which texts are written as hardly any other, (T,)."""
        raise TypeError(f"A column must have a notation of its own; {type(self).__name__} is none.")

    def write(self, value: Any, decimals: int | None) -> Any:
        """A value as the column writes it."""
        return value

    def in_words(self, value: Any) -> str | None:
        """A value for a sentence, if it is said otherwise than the column's numbers or levels are."""
        return None

    def bound(self, value: float) -> float | str:
        """An end of an interval, as findings hold it."""
        return float(value)

    def is_missing(self, text: str) -> bool:
        """Does the text say that there is no value?"""
        return says_missing(text, self.spelled_missing)

    def without_unit(self, text: str) -> str:
        """The text without what stands around its value."""
        return text

    def describe_units(self, texts: Sequence[str], counts: Ints) -> str:
        """A sentence about the column's units, from its different texts and how often each stands; "" for none."""
        return ""


@dataclass(frozen=True)
class Words(Notation):
    """A column of text."""

    def read(self, texts: Texts) -> Reading:
        """The texts without spaces around them, null where they say that something is missing."""
        levels, place = distinct_texts(texts)
        cleaned = [None if self.is_missing(level) else level.strip() for level in levels]
        return Reading(pa.array(cleaned, pa.string()).take(pa.array(place)), np.zeros(len(place), dtype=bool))


@dataclass(frozen=True)
class Unread(Notation):
    """A column that nobody knows how to read: it is neither judged nor changed."""

    def read(self, texts: Texts) -> Reading:
        """Nothing at all."""
        return Reading(pa.nulls(len(texts), pa.float64()), np.zeros(len(texts), dtype=bool))

    def is_missing(self, text: str) -> bool:
        """What nobody reads does not say that there is no value."""
        return False


def holds_text(type_: pa.DataType) -> bool:
    """Is a column of this type plain text?"""
    return family(type_) == "text" and not pa.types.is_dictionary(type_)


def distinct_texts(texts: Texts) -> tuple[list[str], Ints]:
    """The different texts, "" the last of them, and which of them each cell is, (N,)."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    coded = whole.dictionary_encode()
    levels = [*coded.dictionary.to_pylist(), ""]
    return levels, coded.indices.fill_null(len(levels) - 1).to_numpy(zero_copy_only=False)


def counted_texts(texts: Texts) -> tuple[list[str], Ints]:
    """The different texts, "" the last of them, and how many cells have each."""
    levels, place = distinct_texts(texts)
    return levels, np.bincount(place, minlength=len(levels))


def count_cells(keys: Iterable[Key], counts: Iterable[int]) -> Counter[Key]:
    """How many cells have each key, from keys that may come again and the cells of each."""
    found = Counter[Key]()
    for key, count in zip(keys, counts, strict=True):
        found[key] += count
    return found


def said_texts(levels: Sequence[str], counts: Ints) -> list[tuple[str, int]]:
    """Texts without spaces around them and the cells of each, but for words for what is missing."""
    held = [(level.strip(), count) for level, count in zip(levels, counts.tolist(), strict=True) if count]
    return [(text, count) for text, count in held if not says_missing(text, MISSING_NUMBERS)]


def says_missing(text: str, spellings: frozenset[str]) -> bool:
    """Is the text one of the words for what is missing?"""
    return text.strip().lower() in spellings


def form_of(text: str) -> str:
    """The form of a text: each run of letters as one a, each run of digits as one 9.

    >>> form_of("AB-123")
    'a-9'
    """
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text))


def alike_until(one: str, other: str) -> int:
    """How many letters two texts begin with alike.

    >>> alike_until("KIcNGS", "KINGS")
    2
    """
    shortest = min(len(one), len(other))
    if one[:shortest] == other[:shortest]:
        return shortest
    return next(at for at in range(shortest) if one[at] != other[at])
