"""A table to numbers and back: Table ⇄ Cells(values, observed)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from cellmend.errors import SchemaError, TableError
from cellmend.table.frames import Change, Table
from cellmend.table.schema import DATE, IGNORE, KINDS, Column, Level, Schema, family, level_text, plain

MOST_DECIMALS = 10  # a real column with more decimals than this has no resolution of its own
RESOLUTION_SHARE = 0.95  # of the values; a few wrong cells may have more decimals
KNOTS = 17  # of a real column, where the network's bounded input and the mixture's components lie
GROSS = 50  # times the width of the middle half of a column's values
USUAL_COUNTS = 0.99  # the share of counts that mean and deviation are learned from; larger ones are cut
NEW_LEVEL = 5  # cells that must hold a value for it to become a level later on: fewer may be the same slip again
FARTHEST = 1e6  # standard deviations, or counts; further out is as far, and float32 stays finite


@dataclass(frozen=True)
class Cells:
    """A table as the network sees it; a cell that its column cannot hold is NaN.

    values (N, D) float32: standardised reals, counts, level numbers; 0 where missing.
    observed (N, D) bool.
    """

    values: Tensor
    observed: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | Tensor) -> Cells:
        return Cells(self.values[rows], self.observed[rows])

    def take(self, rows: Tensor) -> Cells:
        """These rows, (B,); or of cells stacked (M, N, D), for each of them its own, (M, B)."""
        return Cells(take_rows(self.values, rows), take_rows(self.observed, rows))

    def to(self, device: torch.device) -> Cells:
        return Cells(self.values.to(device), self.observed.to(device))


def take_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Rows (B,) of tables (..., N, D); or of stacked tables (..., M, N, D), of each its own (M, B)."""
    if rows.dim() == 1:
        return table.index_select(-2, rows)
    return table.gather(-2, rows.unsqueeze(-1).expand(*table.shape[:-2], rows.shape[-1], table.shape[-1]))


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers as learned: where its values lie and how finely they are written."""

    name: str
    kind: str
    mean: float
    sd: float
    decimals: int | None  # None: as fine as floats are

    def decode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Model values in the user's units, at the column's resolution."""
        with np.errstate(over="ignore"):
            numbers = np.nan_to_num(self._to_units(values))
        return numbers if self.decimals is None else _round(numbers, self.decimals)

    def decode_one(self, value: float) -> float | int:
        number = float(self.decode(np.array([value]))[0])
        return int(number) if self.decimals == 0 else number

    def change(self, rows: NDArray[np.bool_], values: NDArray[np.float64]) -> Change:
        return Change(rows, self.decode(values), levels=None)

    def _to_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values


@dataclass(frozen=True)
class RealColumn(NumberColumn):
    """Standardised with the mean and deviation of the table as it came, errors included; if `robust`, without those
    so gross (9999 among tens) that all other values would be the same beside them."""

    knots: tuple[float, ...]  # rising, standardised; between them lie nearly all values
    reach: tuple[float, float] = (
        -FARTHEST,
        FARTHEST,
    )  # the least and the greatest value that is not gross, standardised

    @classmethod
    def fit(cls, column: Column, values: pa.ChunkedArray, *, robust: bool = False) -> Self:
        numbers = _numbers(column.name, column.kind, values)
        numbers = numbers[~np.isnan(numbers)]  # neither gaps nor what cannot be read
        mean, sd = _mean_and_sd(numbers[~_gross(numbers)] if robust else numbers)
        decimals = _decimals(numbers, single=values.type == pa.float32())
        with np.errstate(over="ignore"):
            standardised = np.clip((numbers - mean) / sd, -FARTHEST, FARTHEST)
        usual = standardised[~_gross(numbers)]
        reach = (float(usual.min()), float(usual.max())) if len(usual) else (-FARTHEST, FARTHEST)
        return cls(column.name, column.kind, mean, sd, decimals, tuple(_knots(standardised).tolist()), reach)

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            standardised = (_numbers(self.name, self.kind, values) - self.mean) / self.sd
        return np.clip(standardised, -FARTHEST, FARTHEST)

    def in_units(self, value: float) -> float:
        """A model value in the user's units, not rounded."""
        return value * self.sd + self.mean

    def to_model(self, number: float) -> float:
        """A number in the user's units as a model value."""
        return (number - self.mean) / self.sd

    def _to_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values * self.sd + self.mean


@dataclass(frozen=True)
class CountColumn(NumberColumn):
    """Left as it is; negative and broken numbers are what a count cannot hold."""

    @classmethod
    def fit(cls, column: Column, values: pa.ChunkedArray, *, robust: bool = False) -> Self:
        numbers = _numbers(column.name, column.kind, values)
        numbers = numbers[~np.isnan(numbers)]
        # Without the largest: one gross error would make the usual counts look impossible.
        usual = np.minimum(numbers, np.quantile(numbers, USUAL_COUNTS)) if len(numbers) else numbers
        learned = cls(column.name, column.kind, *_mean_and_sd(usual), _decimals(numbers, single=False))
        if learned.mean > FARTHEST:
            raise SchemaError(
                f"Column {column.name!r} is count and must hold whole numbers up to {FARTHEST:,.0f}; "
                f"their mean is {learned.mean:,.0f}. Hint: declare it as real."
            )
        return learned

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        numbers = _numbers(self.name, self.kind, values)
        possible = (numbers >= 0) & (numbers == np.round(numbers))
        return np.where(possible, np.minimum(numbers, FARTHEST), np.nan)


@dataclass(frozen=True)
class LevelColumn:
    """A column of categories as learned: its levels; a cell is their number."""

    name: str
    kind: str
    levels: tuple[Level, ...]

    @classmethod
    def fit(cls, column: Column, values: pa.ChunkedArray, *, robust: bool = False) -> Self:
        learned = cls(column.name, column.kind, tuple(column.levels or cls._learn_levels(column, values)))
        if values.null_count < len(values) and not np.isfinite(learned._codes(values)).any():
            raise SchemaError(
                f"The levels of column {column.name!r} must be among its values; of {list(learned.levels)} none is."
            )
        return learned

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        codes = self._codes(values)
        of_levels = {_family_of(level) for level in self.levels}
        if family(values.type) in of_levels or np.isfinite(codes).any() or values.null_count == len(values):
            return codes
        raise TableError(
            f"Column {self.name!r} was fitted as {self.kind} and must hold {min(of_levels)} values such as "
            f"{self.levels[0]!r}; it holds {values.type}. Hint: convert the column as it was when fitted."
        )

    def grown(self, values: pa.ChunkedArray, doubtful: Collection[Any]) -> Self:
        """With the values at its end that it does not know and that several of these cells hold; not doubtful ones.

        >>> column = LevelColumn("city", "category", ("Rome", "Oslo"))
        >>> column.grown(pa.chunked_array([["Ulm"] * 5 + ["Oslo"] * 5 + ["Olso"]]), {"Roma"}).levels
        ('Rome', 'Oslo', 'Ulm')
        """
        if family(values.type) not in {_family_of(level) for level in self.levels}:
            return self
        known = {level_text(level) for level in (*self.levels, *doubtful)}
        found = pc.value_counts(plain(values).drop_null())
        often = found.field("values").filter(pc.greater_equal(found.field("counts"), NEW_LEVEL)).to_pylist()
        new = sorted(_as_level(value) for value in often if value == value and level_text(value) not in known)
        return replace(self, levels=(*self.levels, *new))

    def decode_one(self, value: float) -> Level:
        return self.levels[int(value)]

    def change(self, rows: NDArray[np.bool_], values: NDArray[np.float64]) -> Change:
        return Change(rows, values, levels=self.levels)

    @classmethod
    def _learn_levels(cls, column: Column, values: pa.ChunkedArray) -> list[Level]:
        if family(values.type) == "other" or values.null_count == len(values):
            came = values.type if values.null_count < len(values) else "nothing but gaps"
            raise SchemaError(
                f"Column {column.name!r} is {column.kind} and must hold text, numbers or booleans; it holds {came}. "
                "Hint: declare it as ignore."
            )
        distinct = pc.unique(plain(values).drop_null()).to_pylist()
        by_text = {level_text(value): _as_level(value) for value in distinct}
        return sorted(by_text.values())

    def _codes(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        """The level's number for each cell, NaN where missing or unseen; texts are compared once a value."""
        known = {level_text(level): float(number) for number, level in enumerate(self.levels)}
        distinct = plain(values).combine_chunks().dictionary_encode()
        number_of = [known.get(level_text(value), np.nan) for value in distinct.dictionary.to_pylist()]
        indices = distinct.indices.fill_null(len(number_of)).to_numpy(zero_copy_only=False)
        return np.array([*number_of, np.nan])[indices]


class OrdinalColumn(LevelColumn):
    """A column of ordered levels; numbers have their order, that of text must be given."""

    @classmethod
    def _learn_levels(cls, column: Column, values: pa.ChunkedArray) -> list[Level]:
        if family(values.type) == "text":
            raise SchemaError(
                f"Column {column.name!r} is ordinal and holds text, so its levels must be given in order; "
                f"there are none. Hint: schema={{{column.name!r}: {{'kind': 'ordinal', 'levels': [...]}}}}."
            )
        return super()._learn_levels(column, values)


EncodedColumn = RealColumn | CountColumn | LevelColumn
ENCODED: dict[str, type[EncodedColumn]] = {
    "real": RealColumn,
    "category": LevelColumn,
    "count": CountColumn,
    "ordinal": OrdinalColumn,
}


def _as_modelled(column: Column) -> Column:
    """Dates are days, which are real numbers."""
    return Column(column.name, "real") if column.kind == DATE else column


Writers = Mapping[int, Callable[[Any], Any]]
NO_WRITERS: Writers = {}


class TableEncoder:
    """Tables to cells and cells to tables, by what `fit` learned of each modelled column.

    `columns` stand grouped by kind, so that the network handles a kind as one slice, those of few levels first when
    fitted; `positions[d]` is the place of model column d in the user's table.

    >>> from cellmend.table.frames import read_table
    >>> table = read_table(np.array([[1.0], [3.0]]))
    >>> encoder = TableEncoder.fit(Schema((Column("x0", "real"),)), table)
    >>> encoder.encode(table).values.tolist()
    [[-1.0], [1.0]]
    """

    def __init__(self, columns: Iterable[EncodedColumn], names: list[str]) -> None:
        self.columns = list(columns)
        self.positions = [names.index(column.name) for column in self.columns]

    @classmethod
    def fit(cls, schema: Schema, table: Table, *, robust: bool = False) -> TableEncoder:
        columns = [
            ENCODED[_as_modelled(column).kind].fit(_as_modelled(column), table.understood[column.name], robust=robust)
            for column in schema
            if column.kind != IGNORE
        ]
        return cls(sorted(columns, key=_place), table.arrow.column_names)

    def grown(self, table: Table, doubtful: Mapping[str, Collection[Any]]) -> TableEncoder:
        """With the values of a new table that some columns of levels had not; columns keep their places.

        `doubtful` has these columns, and for each of them values that shall not become levels.
        """
        columns = [
            column.grown(table.understood[column.name], doubtful[column.name])
            if isinstance(column, LevelColumn) and column.name in doubtful
            else column
            for column in self.columns
        ]
        return TableEncoder(columns, table.arrow.column_names)

    def encode(self, table: Table) -> Cells:
        """Cells of the modelled columns, (N, D), grouped by kind."""
        sources = [table.understood.column(position) for position in self.positions]
        values = np.stack([c.encode(s) for c, s in zip(self.columns, sources, strict=True)], axis=1)
        observed = np.stack([s.is_valid().to_numpy() for s in sources], axis=1)
        return Cells(
            torch.from_numpy(np.where(observed, values, 0.0).astype(np.float32)),
            torch.from_numpy(observed),
        )

    def spread(self, cell_values: NDArray[Any], table: Table) -> NDArray[Any]:
        """(N, D) of the modelled columns to (N, all columns) in table order, 0 elsewhere."""
        whole = np.zeros((len(cell_values), table.arrow.num_columns), dtype=cell_values.dtype)
        whole[:, self.positions] = cell_values
        return whole

    def replace(
        self, table: Table, values: NDArray[np.float64], where: NDArray[np.bool_], writers: Writers = NO_WRITERS
    ) -> Any:
        """The user's table, its own kind, with the cells `where` (N, D) holding `values` (N, D).

        `writers` of some positions make what the user's column holds from a number.
        """
        changes = {
            position: _written(column, where[:, d], values[where[:, d], d], writers.get(position))
            for d, (column, position) in enumerate(zip(self.columns, self.positions, strict=True))
            if where[:, d].any()
        }
        return table.with_cells(changes)

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, columns: list[dict[str, Any]], names: list[str]) -> TableEncoder:
        return cls([_column_from_json(entry) for entry in columns], names)


def _place(column: EncodedColumn) -> tuple[int, int]:
    """By kind, and within a kind by the number of levels."""
    return KINDS.index(column.kind), len(column.levels) if isinstance(column, LevelColumn) else 0


def _written(
    column: EncodedColumn, rows: NDArray[np.bool_], values: NDArray[np.float64], write: Callable[[Any], Any] | None
) -> Change:
    change = column.change(rows, values)
    if write is None:
        return change
    if change.levels is not None:
        return Change(rows, values, tuple(write(level) for level in change.levels))
    return Change(
        rows, np.arange(len(values), dtype=np.float64), tuple(write(value) for value in change.values.tolist())
    )


def _column_from_json(entry: dict[str, Any]) -> EncodedColumn:
    entry = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return ENCODED[entry["kind"]](**entry)


def _numbers(name: str, kind: str, values: pa.ChunkedArray) -> NDArray[np.float64]:
    """The column as float64, NaN where missing."""
    if values.null_count == len(values):
        return np.full(len(values), np.nan)
    if family(values.type) not in ("number", "boolean"):
        _refuse_text(name, kind, values)
    numbers = plain(values).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax())
        raise TableError(
            f"Column {name!r} is {kind} and must hold finite numbers; row {row} holds {numbers[row]} (infinity). "
            "Hint: leave the cell empty if it is unknown."
        )
    return numbers


def _refuse_text(name: str, kind: str, values: pa.ChunkedArray) -> None:
    cells = values.to_pylist()
    odd = next((row for row, cell in enumerate(cells) if not _is_number(cell)), None)
    row = odd if odd is not None else next(row for row, cell in enumerate(cells) if cell is not None)
    hint = (
        "convert the column to numbers"
        if odd is None
        else f"leave the cell empty if it is unknown, or declare {name!r} as category in the schema"
    )
    raise TableError(f"Column {name!r} is {kind} and must hold numbers; row {row} holds {cells[row]!r}. Hint: {hint}.")


def _is_number(cell: Any) -> bool:
    try:
        return cell is None or math.isfinite(float(cell))
    except (TypeError, ValueError):
        return False


def _mean_and_sd(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and deviation, also of numbers whose squares overflow."""
    size = max(float(np.abs(numbers).max(initial=0.0)), float(np.finfo(np.float64).tiny))
    if len(numbers) == 0:
        return 0.0, 1.0
    mean, sd = float((numbers / size).mean()) * size, float((numbers / size).std()) * size
    return mean, sd if sd > 0 else 1.0


def _gross(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers are farther from the middle than GROSS times the width of the middle half.

    >>> _gross(np.array([9.0, 10.0, 10.0, 11.0, 9999.0])).tolist()
    [False, False, False, False, True]
    """
    if len(numbers) == 0:
        return np.zeros(0, dtype=bool)
    low, middle, high = np.quantile(numbers, (0.25, 0.5, 0.75))
    with np.errstate(over="ignore"):
        return (np.abs(numbers - middle) > GROSS * (high - low)) & (high > low)


def _knots(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """KNOTS places from the 1st to the 99th percentile, half of them by rank and half by distance.

    By rank alone, a column that is mostly 0 would have all its knots there.

    >>> _knots(np.array([0.0] * 90 + [16.0] * 10))[[0, 7, 8, 9, 15, 16]]
    array([ 0.,  0.,  1.,  3., 15., 16.])
    """
    if len(numbers) == 0:
        return np.zeros(KNOTS)
    by_rank = np.quantile(numbers, np.linspace(0.01, 0.99, KNOTS))
    by_distance = np.linspace(by_rank[0], by_rank[-1], KNOTS)
    return np.sort(np.concatenate([by_rank[::2], by_distance[1::2]]))


def _decimals(numbers: NDArray[np.float64], *, single: bool) -> int | None:
    """How many decimals the column's values have, nearly all of them; `single`: they came as float32."""
    precision = np.float32 if single else np.float64
    for decimals in range(MOST_DECIMALS + 1):
        rounded = _round(numbers, decimals).astype(precision)
        if len(numbers) and np.mean(rounded == numbers.astype(precision)) >= RESOLUTION_SHARE:
            return decimals
    return None


def _round(numbers: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """np.round, also where its multiplication overflows: numbers that large have no decimals."""
    with np.errstate(over="ignore"):
        rounded = np.round(numbers, decimals)
    return np.where(np.isfinite(rounded), rounded, numbers) + 0.0  # and -0 is 0


def _as_level(value: Any) -> Any:
    """Whole numbers as such, however the column holds them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _family_of(level: Level) -> str:
    return "text" if isinstance(level, str) else "boolean" if isinstance(level, bool) else "number"
