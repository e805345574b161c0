"""Any table to numbers and back: DataFrame ⇄ Cells(values, observed)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.utils.validation import check_array
from torch import Tensor

from cellmend.schema import KINDS, Column, Level, Schema, SchemaError, family, plain

MOST_DECIMALS = 10  # a real column with more decimals than this has no resolution of its own
RESOLUTION_SHARE = 0.99  # of the values; a few wrong cells may have more decimals
FARTHEST = 1e6  # in standard deviations; further out is as far, and float32 stays finite


class TableError(ValueError):
    """A table that cannot be read, or that does not fit the model."""


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

    def to(self, device: torch.device) -> Cells:
        return Cells(self.values.to(device), self.observed.to(device))

    def __getitem__(self, rows: slice | Tensor) -> Cells:
        return Cells(self.values[rows], self.observed[rows])


@dataclass(frozen=True)
class Table:
    """The user's table twice: as it came, to give back the same kind, and as Arrow, to read."""

    native: Any  # the DataFrame as it came, or a checked numpy array
    arrow: pa.Table  # column names as text, NaN as null

    @property
    def is_array(self) -> bool:
        return isinstance(self.native, np.ndarray)

    @property
    def gives_pandas(self) -> bool:
        """Do new tables for this user come as pandas? For pandas and for arrays they do."""
        return self._backend is nw.Implementation.PANDAS

    @property
    def _backend(self) -> Any:
        if self.is_array:
            return nw.Implementation.PANDAS
        return nw.from_native(self.native, eager_only=True).implementation

    def frame_of(self, columns: pa.Table) -> Any:
        """A new table as a DataFrame of the user's kind."""
        return nw.from_arrow(columns, backend=self._backend).to_native()

    def matrix_of(self, matrix: NDArray[Any], labels: Sequence[Any] | None = None) -> Any:
        """A matrix with this table's rows as the user's kind, under its own columns or under `labels`."""
        if self.is_array and labels is None:
            return matrix
        own = self.arrow.column_names if self.is_array else _labels(self.native)
        labels = own if labels is None else labels
        frame = self.frame_of(pa.table(list(matrix.T), names=[str(label) for label in labels]))
        if self.gives_pandas:
            frame.columns = labels
            frame.index = frame.index if self.is_array else self.native.index
        return frame


# ---------------------------------------------------------------- reading


def read_table(X: Any) -> Table:
    """A pandas, polars or pyarrow table, or a 2-d array, read once.

    >>> read_table(np.eye(2)).arrow.column_names
    ['x0', 'x1']
    """
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except DuplicateError:
        raise TableError(_repeated_name(X)) from None
    if not isinstance(frame, nw.DataFrame):
        return _read_array(X)
    names = _column_names(X)
    if len(frame) == 0 or not names:
        raise TableError(
            f"A table must have rows and columns; this one has {len(frame)} sample(s) and "
            f"{len(names)} feature(s) (shape=({len(frame)}, {len(names)})) while a minimum of 1 is required."
        )
    return Table(X, pa.table([_to_arrow(column) for column in frame.iter_columns()], names=names))


def _read_array(X: Any) -> Table:
    if hasattr(X, "collect"):
        raise TableError("A table must be in memory; this one is lazy. Hint: pass table.collect().")
    array = check_array(X, dtype="numeric", ensure_all_finite=False)
    names = [f"x{position}" for position in range(array.shape[1])]
    return Table(array, pa.table([_nan_to_null(pa.chunked_array([c])) for c in array.T.copy()], names=names))


def _labels(X: Any) -> Sequence[Any]:
    return X.column_names if hasattr(X, "column_names") else X.columns


def _column_names(X: Any) -> list[str]:
    given = list(_labels(X))
    if len({isinstance(name, str) for name in given}) > 1:
        odd = next(name for name in given if not isinstance(name, str))
        raise TypeError(
            "Feature names only support names that are all strings, or none of them; "
            f"{odd!r} stands beside text. Hint: table.columns = table.columns.astype(str)."
        )
    return [str(name) for name in given]


def _repeated_name(X: Any) -> str:
    name, times = Counter(_labels(X)).most_common(1)[0]
    return f"Column names must differ; {name!r} stands {times} times. Hint: rename or drop one of the columns."


def _to_arrow(column: nw.Series[Any]) -> pa.ChunkedArray:
    """One column; what Arrow has no type for (text and numbers mixed, huge integers) becomes text."""
    try:
        values = column.to_arrow()
    except (pa.ArrowException, OverflowError, TypeError):
        missing = column.is_null().to_list()
        texts = [None if gap else str(v) for gap, v in zip(missing, column.to_list(), strict=True)]
        values = pa.array(texts, pa.string())
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return _nan_to_null(chunked)


def _nan_to_null(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


# ---------------------------------------------------------------- columns


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers as learned: where its values lie and how finely they are written."""

    name: str
    kind: str
    mean: float
    sd: float
    decimals: int | None  # None: as fine as floats are

    @classmethod
    def fit(cls, column: Column, values: pa.ChunkedArray) -> Self:
        numbers = _numbers(column.name, column.kind, values)
        numbers = numbers[~np.isnan(numbers)]
        mean, sd = _mean_and_sd(numbers)
        return cls(column.name, column.kind, mean, sd, _decimals(numbers))

    def decode(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Model values in the user's units, at the column's resolution."""
        with np.errstate(over="ignore"):
            numbers = np.nan_to_num(self._to_units(values))
        return numbers if self.decimals is None else _round(numbers, self.decimals)

    def decode_one(self, value: float) -> float | int:
        number: float = self.decode(np.array([value])).item()
        return int(number) if self.decimals == 0 else number

    def _to_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values


class RealColumn(NumberColumn):
    """Standardised with the mean and deviation of the table as it came, errors included."""

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        standardised = (_numbers(self.name, self.kind, values) - self.mean) / self.sd
        return np.clip(standardised, -FARTHEST, FARTHEST)

    def _to_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values * self.sd + self.mean


class CountColumn(NumberColumn):
    """Left as it is; negative and broken numbers are what a count cannot hold."""

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        numbers = _numbers(self.name, self.kind, values)
        possible = (numbers >= 0) & (numbers == np.round(numbers))
        return np.where(possible, np.minimum(numbers, FARTHEST), np.nan)


@dataclass(frozen=True)
class LevelColumn:
    """A column of categories or ordered levels as learned: its levels; a cell is their number."""

    name: str
    kind: str
    levels: tuple[Level, ...]

    @classmethod
    def fit(cls, column: Column, values: pa.ChunkedArray) -> Self:
        return cls(column.name, column.kind, tuple(column.levels or _learn_levels(column, values)))

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        known = _texts(pa.chunked_array([pa.array(list(self.levels))]))
        codes = pc.index_in(_texts(values), value_set=known.combine_chunks())
        numbers = codes.cast(pa.float64()).to_numpy(zero_copy_only=False)
        self._refuse_another_type(values, numbers)
        return numbers

    def decode(self, values: NDArray[np.float64]) -> NDArray[Any]:
        levels = np.empty(len(self.levels), dtype=object)
        levels[:] = self.levels
        return levels[values.astype(np.int64)]

    def decode_one(self, value: float) -> Level:
        return self.levels[int(value)]

    def _refuse_another_type(self, values: pa.ChunkedArray, codes: NDArray[np.float64]) -> None:
        fitted = family(pa.array(list(self.levels)).type)
        if family(values.type) == fitted or np.isfinite(codes).any() or values.null_count == len(values):
            return
        raise TableError(
            f"Column {self.name!r} was fitted as {self.kind} and must hold {fitted} values such as "
            f"{self.levels[0]!r}; it holds {values.type}. Hint: convert the column as it was when fitted."
        )


EncodedColumn = RealColumn | CountColumn | LevelColumn
ENCODED: dict[str, type[EncodedColumn]] = {
    "real": RealColumn,
    "category": LevelColumn,
    "count": CountColumn,
    "ordinal": LevelColumn,
}


def _numbers(name: str, kind: str, values: pa.ChunkedArray) -> NDArray[np.float64]:
    """The column as float64, NaN where missing."""
    must = f"Column {name!r} is {kind} and must hold finite numbers"
    hint = f"Hint: leave the cell empty if it is unknown, or declare {name!r} as category in the schema."
    if values.null_count == len(values):
        return np.full(len(values), np.nan)
    if family(values.type) not in ("number", "boolean"):
        row = values.is_valid().to_pylist().index(True)
        text = next((r for r, v in enumerate(values.to_pylist()) if not _is_number(v)), row)
        raise TableError(f"{must}; row {text} holds {values[text].as_py()!r}. {hint}")
    numbers = plain(values).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax())
        raise TableError(f"{must}; row {row} holds {numbers[row]} (infinity). {hint}")
    return numbers


def _is_number(value: Any) -> bool:
    try:
        return value is None or math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _mean_and_sd(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and deviation, also of numbers whose squares overflow."""
    size = max(float(np.abs(numbers).max(initial=0.0)), np.finfo(np.float64).tiny)
    mean, sd = float((numbers / size).mean()) * size, float((numbers / size).std()) * size
    return mean, sd if sd > 0 else 1.0


def _decimals(numbers: NDArray[np.float64]) -> int | None:
    """How many decimals the column's values have, nearly all of them."""
    for decimals in range(MOST_DECIMALS + 1):
        if np.mean(_round(numbers, decimals) == numbers) >= RESOLUTION_SHARE:
            return decimals
    return None


def _round(numbers: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """np.round, also where its multiplication overflows: numbers that large have no decimals."""
    with np.errstate(over="ignore"):
        rounded = np.round(numbers, decimals)
    return np.where(np.isfinite(rounded), rounded, numbers)


def _learn_levels(column: Column, values: pa.ChunkedArray) -> Iterable[Level]:
    if column.kind == "ordinal" and family(values.type) == "text":
        raise SchemaError(
            f"Column {column.name!r} is ordinal and holds text, so its levels must be given in order; "
            f"there are none. Hint: schema={{{column.name!r}: {{'kind': 'ordinal', 'levels': [...]}}}}."
        )
    distinct = pc.unique(plain(values).drop_null())
    if len(distinct) == 0:
        raise SchemaError(
            f"Column {column.name!r} is {column.kind} and must hold values; all its cells are missing. "
            f"Hint: declare it as ignore."
        )
    return sorted(int(v) if isinstance(v, float) and v.is_integer() else v for v in distinct.to_pylist())


def _texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as text, whole floats as whole numbers: 5.0, 5 and '5' are one level."""
    values = plain(values)
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # -0.0 is 0.0
    return values.cast(pa.string())


# ---------------------------------------------------------------- encoding


class TableEncoder:
    """Tables to cells and cells to tables, by what `fit` learned of each modelled column.

    `columns` stand grouped by kind, so that the network handles a kind as one slice;
    `positions[d]` is the place of model column d in the user's table.

    >>> table = read_table(np.array([[1.0], [3.0]]))
    >>> encoder = TableEncoder.fit(Schema((Column("x0", "real"),)), table)
    >>> encoder.encode(table).values.tolist()
    [[-1.0], [1.0]]
    """

    def __init__(self, columns: Iterable[EncodedColumn], names: list[str]) -> None:
        self.columns = sorted(columns, key=lambda c: KINDS.index(c.kind))
        self.positions = [names.index(column.name) for column in self.columns]

    @classmethod
    def fit(cls, schema: Schema, table: Table) -> TableEncoder:
        columns = [
            ENCODED[column.kind].fit(column, table.arrow[column.name]) for column in schema if column.kind in ENCODED
        ]
        return cls(columns, table.arrow.column_names)

    def encode(self, table: Table) -> Cells:
        """Cells of the modelled columns, (N, D), grouped by kind."""
        sources = [table.arrow.column(position) for position in self.positions]
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

    def replace(self, table: Table, values: NDArray[np.float64], where: NDArray[np.bool_]) -> Any:
        """The user's table, its own kind, with the cells `where` (N, D) holding `values` (N, D)."""
        changes = {
            position: (where[:, d], column.decode(values[where[:, d], d]))
            for d, (column, position) in enumerate(zip(self.columns, self.positions, strict=True))
            if where[:, d].any()
        }
        return _replace_in_array(table, changes) if table.is_array else _replace_in_frame(table, changes)

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, columns: list[dict[str, Any]], names: list[str]) -> TableEncoder:
        return cls([_column_from_json(entry) for entry in columns], names)


def _column_from_json(entry: dict[str, Any]) -> EncodedColumn:
    if "levels" in entry:
        entry = entry | {"levels": tuple(entry["levels"])}
    return ENCODED[entry["kind"]](**entry)


# ---------------------------------------------------------------- giving back

Changes = dict[int, tuple[NDArray[np.bool_], NDArray[Any]]]  # position: (which rows, new values)


def _replace_in_array(table: Table, changes: Changes) -> NDArray[Any]:
    array: NDArray[Any] = table.native.copy()
    for position, (rows, new) in changes.items():
        array[rows, position] = new.astype(array.dtype)
    return array


def _replace_in_frame(table: Table, changes: Changes) -> Any:
    if table.gives_pandas:
        return _replace_in_pandas(table, changes)
    if isinstance(table.native, pa.Table):
        return _replace_in_arrow(table.native, changes)
    frame = nw.from_native(table.native, eager_only=True)
    columns = list(frame.iter_columns())
    changed = _replace_in_arrow(pa.table({columns[p].name: columns[p].to_arrow() for p in changes}),
                                dict(enumerate(changes.values())))  # fmt: skip
    fresh = nw.from_arrow(changed, backend=table._backend).iter_columns()
    return frame.with_columns(
        *(new.cast(columns[place].dtype) for place, new in zip(changes, fresh, strict=True))
    ).to_native()


def _replace_in_arrow(arrow: pa.Table, changes: Changes) -> pa.Table:
    for position, (rows, new) in changes.items():
        field, old = arrow.schema.field(position), arrow.column(position).combine_chunks()
        type_ = old.type.value_type if pa.types.is_dictionary(old.type) else old.type
        fresh = pa.array(new.tolist()).cast(type_, safe=False)
        replaced = pc.replace_with_mask(old.cast(type_), pa.array(rows), fresh)
        if pa.types.is_dictionary(old.type):
            replaced = replaced.dictionary_encode().cast(old.type)
        arrow = arrow.set_column(position, field, replaced)
    return arrow


def _replace_in_pandas(table: Table, changes: Changes) -> Any:
    frame = table.native.copy()
    for position, (rows, new) in changes.items():
        old = frame.iloc[:, position]
        changed = old.copy()
        if hasattr(old, "cat"):
            changed = changed.cat.add_categories([v for v in dict.fromkeys(new) if v not in old.cat.categories])
        changed.iloc[np.flatnonzero(rows)] = _in_kind(new, old)
        frame.isetitem(position, changed)
    return frame


def _in_kind(new: NDArray[Any], old: Any) -> Any:
    """New values in the type of the pandas column; in an object column, as its own objects."""
    if old.dtype == object:
        own = {str(value): value for value in old}
        return [own.get(str(value), value) for value in new]
    if hasattr(old, "cat"):
        return new.tolist()
    return np.asarray(new.tolist()).astype(old.dtype.type if old.dtype.kind in "iufb" else object)
