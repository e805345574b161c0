"""Rows that slipped as a whole: a header read as data, and cells that an unquoted comma pushed into other columns.

Both are told from the table's own columns, before any cell is judged by itself: a row that slipped is one mistake, not
a dozen. Texts are compared by their shapes, which Arrow works out for all different texts of a column at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.table.priors import A_PART, BUT_FOR_ERRORS, ENOUGH, FEW, MOSTLY, NEARLY_ALL, TOGETHER
from cellmend.table.texts import MISSING_NUMBERS, holds_text
from cellmend.table.values import Bools, Floats, Ints, family

FEWEST_NAMED = 2  # cells that are the name of their own column, in a header
DIFFERENT = 2 / 3  # of the words of such a row differ: a word for what is missing is the same everywhere
OFFSETS = (1, -1, 2, -2)  # columns that cells may have moved by; to the right is positive
FAR_BETTER = 2.0  # a log ratio
AGAINST = -1.5  # the same; a cell like that belongs where it is
MOST_OF_ONE = 5.0  # log ratio that one cell adds at most
SURE = 12.0  # log ratio of all cells together, to set against how seldom rows are shifted and where they may be so
_NUMBER = r"^\s*[<>~≤≥]?\s*[(+-]?[$€£]?\s*[\d.,' ]*\d[\d.,]*(?:[eE][+-]?\d+)?\s*[%)]?\s*$"
# Capitals and digits up to four as many as there are, decimals and small letters as one, words as two.
_SHAPES = (
    (r"\p{Lu}{4,}", "AAAA"),
    (r"\p{Lu}", "A"),
    (r"[\p{Ll}\p{Lo}\p{Lt}\p{Lm}]+", "a"),
    (r"\.\d+", ".9"),
    (r"\d{5,}", "99999"),
    (r"\d", "9"),
    (r"[Aa]+(?:[\s,.;:'’&/()-]+[Aa]+)+[.)]?", "a a"),
    (r"^.{20}.*$", "long"),
)


def header_rows(table: pa.Table) -> Bools:
    """Rows that are a header read as data, (N,): the names of their columns again, or words above columns of numbers.

    >>> header_rows(pa.table({"city": ["Rome", "City", "Oslo"], "size": ["2.8", "size", "0.7"]})).tolist()
    [False, True, False]
    """
    rows = table.num_rows
    named, worded, numeric, filled = (np.zeros(rows, dtype=np.int64) for _ in range(4))
    words: list[Ints] = []
    known = pa.array(sorted(MISSING_NUMBERS))
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not holds_text(column.type) or rows == 0:
            continue
        texts, place = _coded(column)
        said = np.asarray(pc.invert(pc.is_in(pc.utf8_lower(texts), known)))[place]
        filled += said
        plain = pc.replace_substring_regex(pc.utf8_lower(texts), r"[^\p{L}\p{N}]+", "")  # letters and digits alone
        own = np.asarray(pc.equal(plain, re.sub(r"[\W_]+", "", name.lower())))[place] & said
        if re.search(r"[^\W\d_]", name) and own.sum() <= max(1, A_PART * rows):
            named += own
        number = np.asarray(pc.match_substring_regex(texts, _NUMBER))[place]
        if said.any() and number.sum() >= NEARLY_ALL * said.sum():
            word = np.asarray(pc.match_substring_regex(texts, r"\p{L}\p{L}"))[place] & said & ~number
            numeric += said
            worded += word
            words.append(np.where(word, np.asarray(texts.to_numpy(zero_copy_only=False), dtype=object)[place], ""))
    says_names = (named >= FEWEST_NAMED) & (named >= MOSTLY * filled)
    above = np.flatnonzero((worded >= TOGETHER) & (worded == numeric) & ~says_names)
    different = np.array([len({each[row] for each in words} - {""}) for row in above.tolist()], dtype=np.int64)
    says_names[above[different >= DIFFERENT * worded[above]]] = True
    return says_names


class Shifts(NamedTuple):
    """Which cells of which rows stand in a column that is not theirs."""

    by: Ints  # (N,) columns that the cells moved by, to the right if positive; 0: none moved
    first: Ints  # (N,) the first column whose cell moved, -1 for none
    last: Ints  # (N,) the last one
    log_odds: Floats  # (N,) how much better the cells fit where they come from


def shifted_rows(table: pa.Table) -> Shifts:
    """Rows in which a run of cells fits the columns beside their own, in shape and value, and not their own.

    >>> rows = [["Main St", "Rome", "IT", "1870", "00118"], ["High St", "Oslo", "NO", "1907", "01507"]] * 20
    >>> rows.append(["Low St", "Block A", "Rome", "IT", "1990"])
    >>> found = shifted_rows(pa.table([*zip(*rows)], names=["street", "city", "land", "built", "zip"]))
    >>> np.flatnonzero(found.by).tolist(), int(found.by[40]), int(found.first[40]), int(found.last[40])
    ([40], 1, 1, 4)
    """
    columns = [_Seen.of(column) for column in table.columns]
    none = np.full(table.num_rows, -1)
    best = Shifts(np.zeros_like(none), none, none, np.zeros(table.num_rows))
    if table.num_rows < ENOUGH:
        return best
    for offset in OFFSETS:
        found = _runs(columns, offset, table.num_rows)
        better = found.log_odds > best.log_odds
        best = Shifts(*(np.where(better, new, old) for new, old in zip(found, best, strict=True)))
    return best


def _runs(columns: list[_Seen | None], offset: int, rows: int) -> Shifts:
    """In each row the run of columns whose cells together fit best where they would come from."""
    first, last, start = (np.full(rows, -1) for _ in range(3))
    score, here, moved = np.zeros(rows), np.zeros(rows), np.zeros(rows, dtype=np.int64)
    for place, own in enumerate(columns):
        origin = place - offset
        other = columns[origin] if 0 <= origin < len(columns) else None
        if own is None or other is None:
            here[:], moved[:] = 0.0, 0
            continue
        ratio = own.log_ratio(other)
        begins = (here <= 0) | (ratio < AGAINST)
        here = np.where(ratio < AGAINST, 0.0, np.maximum(here, 0.0) + ratio)
        moved = np.where(begins, 0, moved) + (ratio >= FAR_BETTER)
        start = np.where(begins, place, start)
        better = (here > score) & (here >= SURE) & (moved >= TOGETHER)
        score, first = np.where(better, here, score), np.where(better, start, first)
        last = np.where(better, place, last)
    return Shifts(np.where(first >= 0, offset, 0), first, last, score)


@dataclass(frozen=True)
class _Seen:
    """A column as its different texts and their shapes."""

    texts: pa.Array  # different ones
    place: Ints  # (N,) which of them each cell has
    counts: Ints  # cells of each text
    shapes: pa.Array  # different ones
    shape_of: Ints  # for each text
    alike: Ints  # cells of each shape
    once: Ints  # texts of each shape that stand in one cell
    different: Ints  # texts of each shape
    empty: Bools  # for each text
    number: Bools  # for each text
    numbers: int  # cells that hold one, 0 if most cells hold none
    quantities: bool  # are its cells numbers of many lengths?

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Seen | None:
        """None if the column holds no texts or numbers."""
        if family(column.type) not in ("text", "number"):
            return None
        values, place = _coded(column)
        counts = np.bincount(place, minlength=len(values))
        shaped = values
        for pattern, by in _SHAPES:
            shaped = pc.replace_substring_regex(shaped, pattern, by)
        coded = shaped.dictionary_encode()
        shape_of = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        size = len(coded.dictionary)
        number = np.asarray(pc.match_substring_regex(values, _NUMBER))
        lengths = np.bincount(shape_of[number], counts[number], minlength=size)
        mostly = 2 * lengths.sum() > counts.sum() - counts[np.asarray(pc.equal(values, ""))].sum()
        return cls(
            values,
            place,
            counts,
            coded.dictionary,
            shape_of,
            np.bincount(shape_of, counts, minlength=size).astype(np.int64),
            np.bincount(shape_of[counts == 1], minlength=size),
            np.bincount(shape_of, minlength=size),
            np.asarray(pc.equal(values, "")),
            number,
            int(lengths.sum()) if mostly else 0,
            mostly and bool(lengths.max() < BUT_FOR_ERRORS * lengths.sum()),
        )

    def log_ratio(self, other: _Seen) -> Floats:
        """How much better each cell fits the other column than this one, (N,).

        A cell does not count for itself in its own column. An empty cell never speaks for another column, and neither
        does a number for one of quantities: whole rows are large or small, and still where they belong.
        """
        if self.quantities and other.quantities and (self.number | self.empty).all():
            return np.zeros(len(self.place))
        cells, shape_of = len(self.place), self.shape_of
        at = _places(self.shapes, other.shapes)[shape_of]
        alike, once, different = (np.append(of, 0)[at] for of in (other.alike, other.once, other.different))
        different = np.maximum(self.different[shape_of], different)
        same = np.append(other.counts, 0)[_places(self.texts, other.texts)]
        own_once, own_alike = self.once[shape_of] - (self.counts == 1), self.alike[shape_of] - 1
        there = _log_new_or_known(same, alike, once, different)
        here = _log_new_or_known(self.counts - 1, own_alike, own_once, different)
        alike = np.where(self.number & other.quantities, other.numbers, alike)
        own_alike = np.where(self.number & self.quantities, self.numbers - 1, own_alike)
        ratio = np.log((alike + 0.5) / (cells + 1.0)) - np.log((own_alike + 0.5) / cells)
        ratio += np.where(self.number, 0.0, there - here)  # the same number stands in many columns
        silent = self.empty | (alike < FEW * cells)
        if self.numbers and other.numbers and (self.quantities or other.quantities):
            silent |= self.number
        ratio = np.where(silent, np.minimum(ratio, 0.0), ratio)
        return np.clip(ratio, -MOST_OF_ONE, MOST_OF_ONE)[self.place]


def _log_new_or_known(same: Ints, alike: Ints, once: Ints, different: Ints) -> Floats:
    """The log chance of a text among those of its shape, where `same` of `alike` cells have it.

    A text is new as often as those of its shape stand in one cell only (Good and Turing); then it is any of so many.
    """
    new = (once + 1.0) / (alike + 2.0)
    return np.log((1 - new) * same / np.maximum(alike, 1) + new / np.maximum(different, 1))


def _places(values: pa.Array, known: pa.Array) -> Ints:
    """Where each of these values stands among those known, the last place, -1, if nowhere."""
    return pc.index_in(values, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False)


def _coded(column: pa.ChunkedArray) -> tuple[pa.Array, Ints]:
    """The different texts of a column without spaces around them, missing ones as "", and which each cell has."""
    type_ = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    texts = pc.fill_null(column.cast(type_).cast(pa.string()), "")
    coded = pc.utf8_trim_whitespace(texts.combine_chunks()).dictionary_encode()
    return coded.dictionary, coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
