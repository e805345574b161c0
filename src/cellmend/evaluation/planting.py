"""Known errors in a table of any types: the vandal's, wherever the type of the column can hold them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.errors import InjectionError, SchemaWarning
from cellmend.evaluation.vandal import RIGHT, vandalise
from cellmend.table.frames import read_frame
from cellmend.table.numbers import Numbers
from cellmend.table.reader import Given, understand_columns
from cellmend.table.schema import DATE, IGNORE
from cellmend.table.texts import Notation, Words, holds_text
from cellmend.table.values import plain

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

NUMBER_KINDS = ("real", "count", DATE)
COMMAS = str.maketrans(",.", ".,")  # between decimal commas and decimal points


@dataclass(frozen=True)
class Target:
    """A column before errors get into it, N rows."""

    name: str
    cells: pa.Array  # (N,) as the table holds them
    understood: pa.Array  # (N,) text that holds numbers or dates as those
    notation: Notation
    kind: str  # of the schema
    open: bool  # False: the user told to ignore it

    @property
    def holds_numbers(self) -> bool:
        """Is it modelled as numbers, or as dates, which are days?"""
        return self.kind in NUMBER_KINDS

    @property
    def texts(self) -> list[str]:
        """Its cells as plain text, (N,), with a decimal point and without units; "" where no error may go."""
        try:
            texts = plain_text(self.cells).to_pylist()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # lists and the like
            return [""] * len(self.cells)
        said = ~pc.is_null(self.understood, nan_is_null=True).to_numpy(zero_copy_only=False) & self.open
        return [
            self._marked(self.notation.without_unit(text)) if each else ""
            for text, each in zip(texts, said, strict=True)
        ]

    def admits(self, meant: str, text: str) -> bool:
        """Can a cell with the first plain text hold the second, and does it then say something else?"""
        if self.notation.is_missing(text):
            return False
        if not holds_text(self.cells.type):
            return self._typed(text) not in (None, self._typed(meant))
        if isinstance(self.notation, Words):
            return True
        reading = self.notation.read(pa.array([self._marked(meant), self._marked(text)]))
        (old, new), strange = reading.values.to_pylist(), reading.strange
        return new is not None and (old != new or strange[0] != strange[1])

    def with_texts(self, rows: NDArray[np.int64], texts: list[str]) -> pa.Array:
        """The whole column with new plain texts (n,) in these rows."""
        if holds_text(self.cells.type):
            written = self.cells.to_pylist()
            for row, text in zip(rows, texts, strict=True):
                written[row] = written[row].replace(self.notation.without_unit(written[row]), self._marked(text))
            return pa.array(written, self.cells.type)
        places = np.arange(len(self.cells))
        places[rows] = len(self.cells) + np.arange(len(rows))
        return pa.concat_arrays([self.cells, self._as_cells(texts)]).take(pa.array(places))

    def numbers(self, column: pa.ChunkedArray | None = None) -> Floats:
        """A column like this one, by default itself, as numbers; NaN where there is none."""
        column = pa.chunked_array([self.cells]) if column is None else column
        return np.asarray(plain(self.notation.understand(column)).cast(pa.float64(), safe=False))

    @cached_property
    def mean_and_sd(self) -> tuple[float, float]:
        known = self.numbers()
        known = known[np.isfinite(known)]
        return float(known.mean()), float(known.std()) or 1.0

    def _marked(self, number: str) -> str:
        """A number with the column's decimal mark for a point, or the other way round; any other text as it is."""
        has_commas = isinstance(self.notation, Numbers) and self.notation.decimal == ","
        return number.translate(COMMAS) if has_commas else number

    def _typed(self, text: str) -> object | None:
        """What a text is in the column's type; None where it cannot be."""
        try:
            return self._as_cells([text])[0].as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None

    def _as_cells(self, texts: list[str]) -> pa.Array:
        """Texts in the column's type; a dictionary holds its own levels only."""
        type_ = self.cells.type
        if not pa.types.is_dictionary(type_):
            return pa.array(texts).cast(type_)
        levels = self.cells.dictionary
        places = pc.index_in(pa.array(texts).cast(type_.value_type), levels).cast(type_.index_type)
        return pa.DictionaryArray.from_arrays(places, levels, ordered=type_.ordered)


def plain_text(cells: pa.Array) -> pa.Array:
    """Cells of any type as text."""
    values = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
    return values.cast(pa.string())


@dataclass(frozen=True)
class Planted:
    """A table with known errors, N rows and D columns."""

    table: pa.Table
    targets: tuple[Target, ...]  # its columns as they were
    kinds: NDArray[np.int8]  # (N, D) place of the kind in the vandal's NAMES, or RIGHT

    @property
    def mask(self) -> Mask:
        """Which cells are wrong, (N, D)."""
        return self.kinds != RIGHT


def plant(table: pa.Table, *, schema: Given, share: float, seed: int, decimal: str | None = None) -> Planted:
    """The table with errors in about this share of its filled cells, half of them as habits of a column.

    Missing cells stay missing, cells that cannot be read stay as they are, and so do columns that the user ignores.
    What a column would read as before, or its type cannot hold, is no error.

    >>> clean = pa.table({"depth": ["61.5", "59.8", "62.4", "60.7", "61.1"] * 40})
    >>> errors = plant(clean, schema={"depth": "real"}, share=0.05, seed=0)
    >>> int(errors.mask.sum()), int((errors.table["depth"].to_numpy() != clean["depth"].to_numpy()).sum())
    (10, 10)
    """
    source = read_frame(table).arrow
    targets = _targets(source, schema, decimal)
    texts = pd.DataFrame({target.name: target.texts for target in targets}, dtype=object)
    dirty, kinds = vandalise(
        texts,
        np.random.default_rng(seed),
        share=share,
        admits=lambda place, meant, text: targets[place].admits(meant, text),
    )
    if (kinds == RIGHT).all():
        raise InjectionError(
            f"Errors must be made in some cells; in {share:g} of the cells of {source.num_rows:,} rows none could be. "
            "Hint: a larger share, or columns that are neither ignored, constant nor empty."
        )
    for place in np.flatnonzero((kinds != RIGHT).any(axis=0)).tolist():
        rows = np.flatnonzero(kinds[:, place] != RIGHT)
        cells = targets[place].with_texts(rows, dirty.iloc[rows, place].tolist())
        source = source.set_column(place, source.schema.field(place), cells)
    return Planted(source, targets, kinds)


def _targets(table: pa.Table, schema: Given, decimal: str | None) -> tuple[Target, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)  # fitting says it
        read = understand_columns(table, schema, decimal=decimal)
    return tuple(
        Target(
            name=column.name,
            cells=table.column(place).combine_chunks(),
            understood=read.table.column(place).combine_chunks(),
            notation=read.notations.get(column.name, Words()),
            kind=column.kind,
            open=column.kind != IGNORE or bool(column.reason),
        )
        for place, column in enumerate(read.schema)
    )
