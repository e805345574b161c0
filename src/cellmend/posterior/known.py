"""What a column is known to hold: its different texts and how often each stands there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.posterior import forms
from cellmend.posterior.formats import FORMATS
from cellmend.posterior.priors import MOST_TEXTS
from cellmend.table.values import plain

Floats = NDArray[np.float64]


def texts_of(column: pa.ChunkedArray) -> pa.StringArray:
    """The cells of a column as texts; null where nothing stands.

    >>> texts_of(pa.chunked_array([pa.array([5.0, None])])).to_pylist()
    ['5', None]
    """
    values = plain(column)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    of_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_null)
    nested = pa.types.is_nested(values.type) or any(is_one(values.type) for is_one in of_bytes)
    texts = pa.array([None if v is None else str(v) for v in values.to_pylist()], pa.string()) if nested else None
    texts = pc.cast(values, pa.string()) if texts is None else texts
    texts = pc.utf8_capitalize(texts) if pa.types.is_boolean(values.type) else texts  # True, as files have it
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(whole), ""), pa.scalar(None, pa.string()), whole)


def log_share_of_others(cells: Floats | float, total: float) -> Floats:
    """Log of a share of some cells, the judged cell itself left out and half a cell in thought added.

    >>> float(np.exp(log_share_of_others(3.0, 9.5)))
    0.25
    """
    return np.asarray(np.log((np.maximum(np.subtract(cells, 1), 0) + 0.5) / (total + 0.5)))


@dataclass(frozen=True)
class Coded:
    """A column to be judged: its different texts, (T,), and which of them each row has, (N,), -1 for none."""

    texts: pa.StringArray
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Coded:
        coded = texts_of(column).dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return cls(coded.dictionary.cast(pa.string()), codes)

    @property
    def silent(self) -> Coded:
        """The same with nothing in any row."""
        return Coded(self.texts, np.full_like(self.codes, -1))

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows that hold each text, (T,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))


@dataclass(frozen=True)
class Known:
    """A column that was learned from: different texts, (U,), cells that hold each, and how many cells there are."""

    name: str
    texts: pa.StringArray
    counts: NDArray[np.int64]
    cells: int  # that hold something, those of texts left out included
    rows: int

    @classmethod
    def of(cls, name: str, column: Coded) -> Known:
        """The column as learned; of very many texts the most frequent."""
        counts, texts = column.counts, column.texts
        cells = int(counts.sum())
        if len(texts) > MOST_TEXTS:
            kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_TEXTS])
            counts, texts = counts[kept], texts.take(pa.array(kept))
        return cls(name, texts, counts, cells, len(column.codes))

    def with_more(self, column: Coded) -> Known:
        """With what the column holds in a newer table, known texts keeping their places.

        Each text counts as in the table that has more of it: a newer table may hold older rows once more.
        """
        both = pa.chunked_array([self.texts, column.texts], pa.string()).combine_chunks()
        coded, newer = both.dictionary_encode(), column.counts
        place = coded.indices.to_numpy(zero_copy_only=False)
        counts = np.zeros(len(coded.dictionary), dtype=np.int64)
        counts[place[: len(self.texts)]] = self.counts
        np.maximum.at(counts, place[len(self.texts) :], newer)
        new = len(self.texts) + np.argsort(-counts[len(self.texts) :], kind="stable")
        new = new[counts[new] > 0][: max(MOST_TEXTS - len(self.texts), 0)]
        kept = np.append(np.arange(len(self.texts)), np.sort(new))
        cells = int(counts.sum()) + self.cells - int(self.counts.sum())  # those of texts that were left out, too
        gaps = max(self.rows - self.cells, len(column.codes) - int(newer.sum()))
        return Known(
            self.name, coded.dictionary.cast(pa.string()).take(pa.array(kept)), counts[kept], cells, cells + gaps
        )

    def count_of(self, texts: pa.StringArray) -> Floats:
        """Cells that hold each text, (T,), and 1 at least: a cell that is judged is one of them."""
        return np.maximum(self.total(None, texts), 1.0)

    def total(self, form: forms.Form | None, texts: pa.StringArray) -> Floats:
        """Cells whose text has the same form, (T,); with no form, cells with the same text."""
        keys, totals, _ = self._table(form)
        return _looked_up(keys, totals, texts if form is None else form(texts))

    def most(self, form: forms.Form, texts: pa.StringArray) -> Floats:
        """Cells with the most frequent text of the same form, (T,)."""
        keys, _, most = self._table(form)
        return _looked_up(keys, most, form(texts))

    @cached_property
    def _forms(self) -> dict[forms.Form | None, tuple[pa.Array, Floats, Floats]]:
        """What was worked out of some forms."""
        return {}

    def _table(self, form: forms.Form | None) -> tuple[pa.Array, Floats, Floats]:
        """Different forms, and of each how many cells have it and how many its most frequent text."""
        known = self._forms  # asked for once: of two threads each may get one of its own at first
        if form not in known:
            values = self.texts if form is None else form(self.texts)
            coded = values.dictionary_encode()
            index = coded.indices.to_numpy(zero_copy_only=False)
            totals = np.bincount(index, self.counts, minlength=len(coded.dictionary)).astype(np.float64)
            most = np.zeros(len(coded.dictionary))
            np.maximum.at(most, index, self.counts)
            known[form] = coded.dictionary, totals, most
        return known[form]

    @cached_property
    def shapes(self) -> Known:
        """The shapes of the texts, as if they were a column."""
        coded = forms.shape(self.texts).dictionary_encode()
        counts = np.bincount(coded.indices.to_numpy(zero_copy_only=False), self.counts, minlength=len(coded.dictionary))
        return Known(self.name, coded.dictionary.cast(pa.string()), counts.astype(np.int64), self.cells, self.rows)

    @cached_property
    def numbers(self) -> Floats:
        """What the texts say as numbers, or as days if most are dates, (U,)."""
        return self.read(self.texts)

    @cached_property
    def holds_dates(self) -> bool:
        """Do more cells hold dates than numbers?"""
        are_days, are_numbers = (np.isfinite(found) for found in (forms.days(self.texts), forms.numbers(self.texts)))
        return bool(self.counts[are_days].sum() > self.counts[are_numbers].sum())

    @cached_property
    def day_first(self) -> bool:
        """Does the day come before the month, where the year comes last?"""
        return bool((forms.has_day_first(self.texts) * self.counts).sum() > 0)

    def read(self, texts: pa.StringArray) -> Floats:
        """Texts as this column's numbers, (T,); NaN where they are none."""
        return forms.days(texts, day_first=self.day_first) if self.holds_dates else forms.numbers(texts)

    @cached_property
    def format(self) -> tuple[str, float]:
        """The format that most cells keep, and the share of those that do."""
        shares = {name: self.share(keeps(self.texts)) for name, keeps in FORMATS.items()}
        best = max(shares, key=shares.__getitem__)
        return best, shares[best]

    def share(self, which: NDArray[np.bool_]) -> float:
        """The share of cells with these texts, (U,)."""
        return float(self.counts[which].sum() / max(self.counts.sum(), 1))


def _looked_up(keys: pa.Array, values: Floats, asked: pa.Array) -> Floats:
    places = pc.index_in(asked, value_set=keys).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(values, 0.0)[places]
