"""All evidence of a table, worked out once: what was learned of its columns, and figures of each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.posterior import curves, exchange, pairs, rows
from cellmend.posterior.amounts import Amounts
from cellmend.posterior.curves import Curves
from cellmend.posterior.exchange import Exchanges, Home
from cellmend.posterior.known import Coded, Floats, Known
from cellmend.posterior.lexicon import CommonWords
from cellmend.posterior.looks import (
    Beginnings,
    Cases,
    Evidence,
    Formats,
    Forms,
    Frequency,
    Letters,
    Lookalikes,
    Signs,
    Spelling,
    Variants,
    Whole,
    bounded,
)
from cellmend.posterior.pairs import MISSING, Codes, Pairs
from cellmend.table.layoutslips import header_rows, shifted_rows

OF_TEXTS: tuple[Evidence, ...] = (
    Frequency(),
    Forms(),
    Variants(),
    Lookalikes(),
    Signs(),
    Cases(),
    Letters(),
    Spelling(),
    CommonWords(),
    Beginnings(),
    Amounts(),
    Formats(),
    Whole(),
)
TEXT_NAMES = tuple(name for sort in OF_TEXTS for name in sort.names)
LAYOUT = ("in_header_row", "in_shifted_row")
NAMES = (*TEXT_NAMES, *pairs.NAMES, *curves.NAMES, *rows.BESIDE, *rows.EXTREMES, *exchange.NAMES, *rows.ORDER, *LAYOUT)
FAR = NAMES.index("far")


@dataclass(frozen=True)
class Figures:
    """Evidence of all cells of a table; what the texts say is kept once for each different text."""

    of_texts: tuple[NDArray[np.float32], ...]  # of each column, (T + 1, sorts), the last for gaps
    texts: tuple[pa.StringArray, ...]  # of each column, (T,)
    codes: Codes  # (N, D) which of them each cell has; -1 for gaps
    rest: NDArray[np.float32]  # (N, D, other sorts)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """In which cells something stands, (N, D)."""
        return self.codes >= 0

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | Codes) -> NDArray[np.float32]:
        """All figures of these rows, (n, D, sorts); 0 where nothing stands."""
        texts = np.stack([of[codes] for of, codes in zip(self.of_texts, self.codes[rows].T, strict=True)], axis=1)
        whole = np.concatenate([texts, self.rest[rows]], axis=-1)
        return np.where(self.observed[rows][..., None], whole, np.float32(0.0))

    def of(self, name: str, row: int, column: int) -> float:
        """One figure of one cell, of those that are not of its text alone."""
        return float(self.rest[row, column, NAMES.index(name) - len(TEXT_NAMES)])

    def with_more(self, more: Floats) -> Figures:
        """With further sorts of evidence, (N, D, k)."""
        return replace(self, rest=np.concatenate([self.rest, more.astype(np.float32)], axis=-1))


@dataclass(frozen=True)
class Portrait:
    """What was learned of a table: what each column holds, and which values go together."""

    columns: tuple[Known, ...]
    pairs: Pairs
    curves: Curves
    exchanges: Exchanges

    @classmethod
    def learn(cls, table: pa.Table) -> tuple[Portrait, list[Coded]]:
        """From a table, with its columns coded."""
        coded = [Coded.of(column) for column in table.columns]
        known = tuple(Known.of(name, column) for name, column in zip(table.column_names, coded, strict=True))
        codes = places_of(known, coded)
        learned = Pairs.learn(codes, [len(each.texts) for each in known]), Curves.learn(numbers_of(known, coded), codes)
        return cls(known, *learned, Exchanges.learn([Home(each) for each in known], coded)), coded

    def with_more(self, columns: Sequence[Coded]) -> Portrait:
        """With what a newer table holds: a value that is usual there is a usual one."""
        known = tuple(own.with_more(column) for own, column in zip(self.columns, columns, strict=True))
        pairs = self.pairs.with_more(places_of(known, columns), [len(each.texts) for each in known])
        return Portrait(known, pairs, self.curves, self.exchanges)

    @cached_property
    def everywhere(self) -> rows.Everywhere:
        """How often each text stands in the whole table."""
        return rows.Everywhere.of(self.columns)

    @cached_property
    def homes(self) -> list[Home]:
        """The columns as places where texts may be at home."""
        return [Home(each) for each in self.columns]

    def figures(self, columns: Sequence[Coded], *, rows_alone: bool = False) -> Figures:
        """Evidence of each cell. With `rows_alone` no row is compared with others of the same table."""
        of_texts = tuple(_of_texts(known, column.texts) for known, column in zip(self.columns, columns, strict=True))
        codes = np.stack([column.codes for column in columns], axis=1)
        far = np.stack([of[column.codes, FAR] for of, column in zip(of_texts, columns, strict=True)], axis=1)
        places = places_of(self.columns, columns)
        rest = [
            self.pairs.evidence(places),
            self.curves.evidence(numbers_of(self.columns, columns), places),
            rows.beside(self.columns, columns, self.everywhere),
            rows.extremes(far.astype(np.float64)),
            self.exchanges.evidence(self.homes, columns),
        ]
        if rows_alone:
            rest.append(np.zeros((*codes.shape, len(rows.ORDER) + len(LAYOUT))))
        else:
            rest += [rows.order(self.columns, columns), _layout(self.columns, columns)]
        return Figures(
            of_texts,
            tuple(column.texts for column in columns),
            codes,
            bounded(np.concatenate(rest, axis=-1)).astype(np.float32),
        )


def _of_texts(known: Known, texts: pa.StringArray) -> NDArray[np.float32]:
    """Figures of each text, and a line of 0 for gaps, (T + 1, sorts)."""
    figures = np.zeros((len(texts) + 1, len(TEXT_NAMES)), dtype=np.float32)
    if len(texts) and len(known.texts):
        figures[:-1] = bounded(np.concatenate([sort.of(known, texts) for sort in OF_TEXTS], axis=1))
    return figures


def _layout(known: Sequence[Known], columns: Sequence[Coded]) -> Floats:
    """Rows that repeat the header, and cells that were shifted into another column, (N, D, 2)."""
    texts = [column.texts.take(pa.array(column.codes, mask=column.codes < 0)) for column in columns]
    table = pa.table(texts, names=[each.name for each in known])
    shifts = shifted_rows(table)
    place = np.arange(len(columns))
    moved = (place >= shifts.first[:, None]) & (place <= shifts.last[:, None]) & (shifts.by != 0)[:, None]
    header = np.repeat(header_rows(table)[:, None], len(columns), axis=1)
    return np.stack([header, moved], axis=-1).astype(np.float64)


def places_of(known: Sequence[Known], columns: Sequence[Coded]) -> Codes:
    """The place of each cell's text among the known ones, (N, D): -1 if it is unknown, MISSING if nothing stands."""
    found = []
    for own, column in zip(known, columns, strict=True):
        place = pc.index_in(column.texts, value_set=own.texts).fill_null(-1).to_numpy(zero_copy_only=False)
        found.append(np.append(place.astype(np.int64), MISSING)[column.codes])
    return np.stack(found, axis=1)


def numbers_of(known: Sequence[Known], columns: Sequence[Coded]) -> Floats:
    """What the cells say as numbers, (N, D); NaN where they are none."""
    each = [np.append(own.read(c.texts), np.nan)[c.codes] for own, c in zip(known, columns, strict=True)]
    return np.stack(each, axis=1)
