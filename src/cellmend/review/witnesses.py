"""Witnesses of a cell: the rows that say otherwise, or the same, counted in the table as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.review.flagged import Flag
from cellmend.review.limits import Wishes
from cellmend.table.values import Ints, as_text, plain, shortened

if TYPE_CHECKING:
    from cellmend.review.rulebook import RuleBook
    from cellmend.table.relations.dependencies import Dependency
    from cellmend.table.relations.keys import Key

MOST = 3  # witnesses that are heard of one cell
SHOWN_ROWS = 3  # of each witness
LEAST_ROWS = 2  # that agree, or they witness nothing
NONE = -1  # the code of a gap


@dataclass(frozen=True)
class Row:
    """A row that a witness shows: where it is, and what stands there."""

    row: int
    text: str | None


@dataclass(frozen=True)
class Witness:
    """What other rows, or a rule, say of a cell."""

    words: str  # one sentence
    says: str | None  # what they hold in its place; None: they do not say
    count: int  # rows that say so
    rows: Sequence[Row]  # some of them


class Held:
    """Which rows hold which value of a column, found without looking at all of them again.

    >>> held = Held(pa.chunked_array([["Ulm", "Bonn", None, "Ulm"]]))
    >>> held.rows(held.codes[0]).tolist(), held.rows(held.find("Bonn")).tolist(), held.text(0)
    ([0, 3], [1], 'Ulm')
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        cells = plain(column).combine_chunks()
        coded = (cells.cast(pa.string()) if pa.types.is_null(cells.type) else cells).dictionary_encode()
        self.values = coded.dictionary
        self.codes: NDArray[np.int32] = coded.indices.fill_null(NONE).to_numpy(zero_copy_only=False)
        self.counts = np.bincount(self.codes + 1, minlength=len(self.values) + 1)  # of gaps, and of each value
        self._ends = np.cumsum(self.counts)

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(self.codes, kind="stable")

    def count(self, code: int) -> int:
        """How many rows hold a value; NONE: how many nothing."""
        return int(self.counts[code + 1])

    def rows(self, code: int) -> Ints:
        """The rows with this value, sorted; none for a gap."""
        return self._order[self._ends[code] : self._ends[code + 1]] if code != NONE else self._order[:0]

    def first_rows(self, code: int, count: int) -> Ints:
        """The first rows with this value, for which they need not be in order."""
        return np.flatnonzero(self.codes == code)[:count]

    def text(self, code: int) -> str:
        return as_text(self.values[code].as_py())

    def find(self, text: str) -> int:
        """The code of a value, as a text; NONE if no row holds it."""
        try:
            return int(pc.index(self.values, pa.scalar(text).cast(self.values.type)).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return NONE


class Witnesses:
    """What the rows of one table say of its cells; the rules between its columns say which rows to ask."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._held = lru_cache(None)(lambda name: Held(table[name]))

    def prepare(self, columns: Iterable[str]) -> None:
        """Read columns before somebody waits for what they say."""
        for name in columns:
            self._held(name)

    def of(self, flag: Flag, rules: RuleBook | None, wishes: Wishes) -> list[Witness]:
        """What speaks about a cell: rows that agree in what decides it, formulas, copies, and its own column."""
        found = list(islice(self._heard(flag, rules, wishes), MOST))
        told = [each.says for each in found]
        return [each if each.says not in told[:at] else replace(each, rows=()) for at, each in enumerate(found)]

    def _heard(self, flag: Flag, rules: RuleBook | None, wishes: Wishes) -> Iterator[Witness]:
        if rules is not None:
            speaking = rules.speaking(flag.column, wishes)
            dependencies = (self._by_dependency(each, flag) for each in speaking.dependencies)
            yield from (found for found in dependencies if found is not None)
            yield from _by_formulas([each.words() for each in speaking.formulas], flag, rules)
            for key in speaking.keys:
                yield from self._by_key(key, flag)
        yield from self._by_column(flag)

    def _by_dependency(self, each: Dependency, flag: Flag) -> Witness | None:
        """What rows that agree in the determinants hold in the dependent column, if most of them differ from this."""
        names, dependent = each.determinants, self._held(each.dependent)
        own = dependent.codes[flag.row]
        rows = reduce(np.intersect1d, (held.rows(held.codes[flag.row]) for held in map(self._held, names)))
        codes = dependent.codes[rows]
        counts = np.bincount(codes[codes != NONE], minlength=1)
        top, most = int(counts.argmax()), int(counts.max())
        if own in (NONE, top) or most < LEAST_ROWS or 2 * most <= int(counts.sum()):
            return None
        given = " and ".join(f"{name} {_quoted(self._text(flag.row, name))}" for name in names)
        says, here = dependent.text(top), int(counts[own])
        agree = "1 says this" if here == 1 else f"{here:,} say this"
        if flag.column == each.dependent:
            words = f"{most:,} rows with {given} say {_quoted(says)}, {agree}"
            return Witness(words, says, most, self._some(rows[codes == top], each.dependent))
        stands = _quoted(self._text(flag.row, each.dependent))
        words = f"{most:,} rows with {given} have {each.dependent} {_quoted(says)}; this one has {stands}"
        return Witness(words, None, most, self._some(rows[codes == top], each.dependent))

    def _by_key(self, each: Key, flag: Flag) -> Iterator[Witness]:
        held = self._held(each.column)
        rows = held.rows(held.codes[flag.row])
        others = rows[rows != flag.row]
        if len(others):
            where = "Another row holds" if len(others) == 1 else f"{len(others):,} other rows hold"
            words = f"{where} {_quoted(flag.value)} too; {each.words()} but for copies"
            yield Witness(words, None, len(others), self._some(others, each.column))

    # ------------------------------------------------------------ by the column itself

    def _by_column(self, flag: Flag) -> Iterator[Witness]:
        """How often the value stands, and the repair."""
        held = self._held(flag.column)
        code, meant = int(held.codes[flag.row]), held.find(flag.repair) if flag.repair else NONE
        own, proposed = held.count(code), 0 if meant == NONE else held.count(meant)
        if not proposed and own < LEAST_ROWS:
            return  # a value of its own, as those of identifiers are
        here = "Nothing" if code == NONE else _quoted(flag.value)
        stands = f"{here} stands in {own:,} of {self.table.num_rows:,} rows"
        if not proposed:
            yield Witness(stands, None, 0, ())
        else:
            rows = self._some(held.first_rows(meant, SHOWN_ROWS), flag.column)
            yield Witness(f"{stands}, {_quoted(flag.repair)} in {proposed:,}", flag.repair, proposed, rows)

    def _some(self, rows: Ints, column: str) -> list[Row]:
        return [Row(row, self._text(row, column)) for row in rows[:SHOWN_ROWS].tolist()]

    def _text(self, row: int, name: str) -> str | None:
        value = self.table[name][row].as_py()
        return None if value is None else as_text(value)


def _quoted(text: str | None) -> str:
    return f"“{shortened(text)}”"


def _by_formulas(formulas: Sequence[str], flag: Flag, rules: RuleBook) -> Iterator[Witness]:
    for words in formulas:
        said = rules.said(words, flag.row)
        if said is not None:
            kept = rules.table.rows - len(rules.rows(words, is_sure=False))
            yield Witness(f"{said}; {kept:,} rows keep {words}", None, kept, ())
