"""A table to numbers and back: ReadTable ⇄ Cells(values, observed)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cellmend.model.columns import ENCODED, EncodedColumn, LevelColumn
from cellmend.posterior.evidence import Figures
from cellmend.posterior.firstlook import Seen
from cellmend.table.frames import Change
from cellmend.table.readtable import ReadTable
from cellmend.table.schema import DATE, IGNORE, KINDS, Column, Schema


@dataclass(frozen=True)
class Cells:
    """A table as the network sees it; a cell that its column cannot hold is NaN.

    values (N, D) float32: standardised reals, counts, level numbers; 0 where missing.
    observed (N, D) bool.
    """

    values: Tensor
    observed: Tensor

    @property
    def known(self) -> Tensor:
        """Cells that are there and that their columns can hold, (N, D)."""
        return self.observed & self.values.isfinite()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | Tensor) -> Cells:
        return Cells(self.values[rows], self.observed[rows])

    def above(self, others: Cells) -> Cells:
        """These rows, then the others."""
        return Cells(torch.cat([self.values, others.values]), torch.cat([self.observed, others.observed]))

    def to(self, device: torch.device) -> Cells:
        return Cells(self.values.to(device), self.observed.to(device))


def take_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Rows (B,) of tables (..., N, D); or of stacked tables (..., M, N, D), of each its own (M, B)."""
    if rows.dim() == 1:
        return table.index_select(-2, rows)
    return table.gather(-2, rows.unsqueeze(-1).expand(*table.shape[:-2], rows.shape[-1], table.shape[-1]))


@dataclass(frozen=True)
class EncodedTable:
    """A table and its cells, so that it is encoded once."""

    table: ReadTable
    cells: Cells  # (N, D)
    whole: Cells  # with the cells that a first look took for missing
    seen: Seen | None = None  # by a first look; none with the methods of the paper

    @property
    def figures(self) -> Figures | None:
        """Evidence of all cells but for the network's."""
        return None if self.seen is None else self.seen.figures


Writers = Mapping[int, Callable[[Any], Any]]  # by position, how a number is written in the user's column
NO_WRITERS: Writers = {}


class TableEncoder:
    """Tables to cells and cells to tables, by what `fit` learned of each modelled column.

    `columns` stand grouped by kind, so that the network handles a kind as one slice, those of few levels first when
    fitted; `positions[d]` is the place of model column d in the user's table.

    >>> from cellmend.table.frames import read_frame
    >>> from cellmend.table.reader import TableReader
    >>> reader, table = TableReader.fit(read_frame(np.array([[1.0], [3.0]])), None)
    >>> encoder = TableEncoder.fit(reader.schema, table)
    >>> encoder.encode(table).values.tolist()
    [[-1.0], [1.0]]
    """

    def __init__(self, columns: Iterable[EncodedColumn], names: list[str]) -> None:
        self.columns = list(columns)
        self.positions = [names.index(column.name) for column in self.columns]

    @classmethod
    def fit(cls, schema: Schema, table: ReadTable, *, robust: bool = False) -> TableEncoder:
        modelled = (_as_modelled(column) for column in schema if column.kind != IGNORE)
        columns = [ENCODED[each.kind].fit(each, table.understood[each.name], robust=robust) for each in modelled]
        return cls(sorted(columns, key=_place), table.names)

    def grown(self, table: ReadTable, doubtful: Mapping[str, Collection[Any]]) -> TableEncoder:
        """With the values of a new table that some columns of levels had not; columns keep their places.

        `doubtful` has these columns, and for each of them values that shall not become levels.
        """
        columns = [
            column.grown(table.understood[column.name], doubtful[column.name])
            if isinstance(column, LevelColumn) and column.name in doubtful
            else column
            for column in self.columns
        ]
        return TableEncoder(columns, table.names)

    def encode(self, table: ReadTable) -> Cells:
        """Cells of the modelled columns, (N, D), grouped by kind."""
        if not self.columns:
            return Cells(torch.zeros(table.rows, 0), torch.zeros(table.rows, 0, dtype=torch.bool))
        sources = [table.understood.column(position) for position in self.positions]
        values = np.stack([c.encode(s) for c, s in zip(self.columns, sources, strict=True)], axis=1)
        observed = np.stack([s.is_valid().to_numpy() for s in sources], axis=1)
        return Cells(torch.from_numpy(np.where(observed, values, 0.0).astype(np.float32)), torch.from_numpy(observed))

    def encode_seen(self, table: ReadTable, seen: Seen | None) -> EncodedTable:
        """A table and its cells, without those that a first look hid, if there was one."""
        whole = self.encode(table)
        if seen is None:
            return EncodedTable(table, whole, whole)
        left = [seen.table.understood.column(position).is_valid().to_numpy() for position in self.positions]
        observed = torch.from_numpy(np.stack(left, axis=1)) if left else whole.observed
        return EncodedTable(table, Cells(torch.where(observed, whole.values, 0.0), observed), whole, seen)

    def spread(self, cell_values: NDArray[Any], table: ReadTable) -> NDArray[Any]:
        """(N, D) of the modelled columns to (N, all columns) in table order, 0 elsewhere."""
        whole = np.zeros((len(cell_values), len(table.names)), dtype=cell_values.dtype)
        whole[:, self.positions] = cell_values
        return whole

    def replace(
        self, table: ReadTable, values: NDArray[np.float64], where: NDArray[np.bool_], writers: Writers = NO_WRITERS
    ) -> Any:
        """The user's table, its own kind, with the cells `where` (N, D) holding `values` (N, D).

        `writers` of some positions make what the user's column holds from a number.
        """
        changes = {
            position: _written(column, where[:, d], values[where[:, d], d], writers.get(position))
            for d, (column, position) in enumerate(zip(self.columns, self.positions, strict=True))
            if where[:, d].any()
        }
        return table.frame.with_cells(changes)


def _as_modelled(column: Column) -> Column:
    """Dates are days, which are real numbers."""
    return Column(column.name, "real") if column.kind == DATE else column


def _place(column: EncodedColumn) -> tuple[int, int]:
    """By kind, and within a kind by the number of levels."""
    return KINDS.index(column.kind), len(column.levels)


def _written(
    column: EncodedColumn, rows: NDArray[np.bool_], values: NDArray[np.float64], write: Callable[[Any], Any] | None
) -> Change:
    change = column.change(rows, values)
    if write is None:
        return change
    if change.levels is not None:
        return Change(rows, values, tuple(write(level) for level in change.levels))
    return Change.to_cells(rows, [write(value) for value in change.values.tolist()])
