"""What a column holds: its different values and the cells that hold each; edited cells count with their new text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.table.texts import holds_text
from cellmend.table.values import as_text

Ints = NDArray[np.int64]

FEW = 20


@dataclass(frozen=True)
class Values:
    """The different values of a column as text, and which of them each row holds.

    >>> towns = Values.of(pa.chunked_array([["Ulm", "Köln", "Koeln", "Köln", None]])).edited({2: "Köln"})
    >>> [(value, int(towns.counts[place])) for place, value in zip(towns.common, towns.listed(towns.common))]
    [('Köln', 3), ('Ulm', 1), (None, 1)]
    >>> towns.rows(["Köln"]).tolist()
    [1, 2, 3]
    """

    texts: pa.StringArray  # (V,) None: a missing cell
    places: NDArray[np.int32]  # (N,) of the value of each row

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Values:
        """The values of a column of any type."""
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        coded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
        coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
        return cls(_texts(coded.dictionary), coded.indices.to_numpy(zero_copy_only=False).astype(np.int32))

    def edited(self, edits: Mapping[int, str]) -> Values:
        """With other texts in some rows."""
        if not edits:
            return self
        new = list(dict.fromkeys(edits.values()))
        known = self.find(new)
        unknown = [text for text, place in zip(new, known.tolist(), strict=True) if place < 0]
        known[known < 0] = len(self.texts) + np.arange(len(unknown))
        where = dict(zip(new, known.tolist(), strict=True))
        places = self.places.copy()
        places[np.fromiter(edits, dtype=np.int64)] = [where[text] for text in edits.values()]
        return replace(self, texts=pa.concat_arrays([self.texts, pa.array(unknown, pa.string())]), places=places)

    @cached_property
    def counts(self) -> Ints:
        """(V,) cells with each value."""
        return np.bincount(self.places, minlength=len(self.texts))

    @cached_property
    def common(self) -> Ints:
        """The places of the values that stand in any cell, the most common first."""
        order = np.argsort(-self.counts, kind="stable")
        return order[: int((self.counts > 0).sum())]

    def holding(self, text: str) -> Ints:
        """As `common`, but only the values with this text in them, whatever the case."""
        if text == "":
            return self.common
        has = pc.fill_null(pc.match_substring(self.texts, text, ignore_case=True), False)
        return self.common[has.to_numpy(zero_copy_only=False)[self.common]]

    def listed(self, places: Ints) -> list[str | None]:
        """The texts of some values."""
        return self.texts.take(pa.array(places)).to_pylist()

    def find(self, texts: Sequence[str | None]) -> Ints:
        """The place of each of these values, -1 for one that the column does not have."""
        if len(texts) <= FEW:  # to look through all of them is faster than to make an index
            return np.array([self._find(each) for each in texts], dtype=np.int64)
        found = pc.fill_null(pc.index_in(pa.array(texts, pa.string()), self.texts), -1)
        return found.to_numpy(zero_copy_only=False).astype(np.int64)

    def _find(self, text: str | None) -> int:
        if text is None:
            missing = np.flatnonzero(self.texts.is_null().to_numpy(zero_copy_only=False))
            return int(missing[0]) if len(missing) else -1
        return int(pc.index(self.texts, text).as_py())

    def rows(self, texts: Sequence[str | None]) -> Ints:
        """The rows that hold one of these values."""
        wanted = np.zeros(len(self.texts) + 1, dtype=bool)
        wanted[self.find(texts)] = True
        return np.flatnonzero(wanted[:-1][self.places])


def _texts(values: pa.Array) -> pa.StringArray:
    """Values as they are shown everywhere."""
    if holds_text(values.type) or pa.types.is_integer(values.type):
        return values.cast(pa.string())
    return pa.array([None if each is None else as_text(each) for each in values.to_pylist()], pa.string())
