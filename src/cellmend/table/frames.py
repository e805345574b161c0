"""Any table in, the same kind out: pandas, polars, pyarrow or numpy, through Arrow."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from cellmend.errors import TableError
from cellmend.table.values import LARGEST_EXACT_WHOLE, Bools, Floats, family, level_text


@dataclass(frozen=True)
class Change:
    """New cells for one column: numbers in the user's units, or numbers of levels."""

    rows: Bools  # (N,) which cells
    values: Floats  # one for each of them
    levels: tuple[Any, ...] | None  # None: the values are the numbers themselves

    @classmethod
    def to_cells(cls, rows: Bools, cells: Sequence[Any]) -> Change:
        """New cells as they are, one for each of the rows."""
        return cls(rows, np.arange(len(cells), dtype=np.float64), tuple(cells))

    @property
    def needs_text(self) -> bool:
        """Are the levels text, which a column of numbers, or of gaps only, cannot hold?"""
        return self.levels is not None and any(isinstance(level, str) for level in self.levels)

    def cells(self, convert: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        """The new cells in the type that `convert` gives; levels are converted once each."""
        if self.levels is None:
            return convert(self.values)
        return convert(self.levels)[self.values.astype(np.int64)]


@dataclass(frozen=True)
class Frame:
    """The user's table as it came, to give back the same kind, and as Arrow."""

    native: Any  # a DataFrame, or a numpy array
    arrow: pa.Table  # column names as text, NaN as null
    places: tuple[int, ...] | None = None  # where its columns stand in the user's table; None: just so

    def select(self, names: Sequence[str]) -> Frame:
        """Only these columns, in this order; what the user gets back has all, as they were.

        >>> frame = read_frame(pa.table({"a": [1], "b": [2], "c": [3]})).select(["c", "a"])
        >>> frame.arrow.column_names, frame.in_own_order(np.array([[3.0, 1.0]])).tolist()
        (['c', 'a'], [[1.0, 0.0, 3.0]])
        """
        own = self.arrow.column_names
        if own == list(names):
            return self
        return replace(self, arrow=self.arrow.select(names), places=tuple(own.index(name) for name in names))

    def in_own_order(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Numbers of these columns under those of the user's table, 0 for what was not selected."""
        if self.places is None:
            return matrix
        whole = np.zeros((len(matrix), len(_labels(self.native))), dtype=matrix.dtype)
        whole[:, self.places] = matrix
        return whole

    @property
    def is_array(self) -> bool:
        """Did it come as an array?"""
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

    def holds_text(self, position: int) -> bool:
        """Is the column text, and not numbers among which some text made it that?"""
        if family(self.arrow.schema.field(position).type) != "text":
            return False
        place = position if self.places is None else self.places[position]
        cells = self.native.iloc[:, place] if self.gives_pandas and not self.is_array else ()
        return all(isinstance(cell, str) for cell in cells if cell is not None and cell == cell)

    def frame_of(self, columns: pa.Table) -> Any:
        """A new table as a DataFrame of the user's kind."""
        return nw.from_arrow(columns, backend=self._backend).to_native()

    def matrix_of(self, matrix: NDArray[Any], labels: Sequence[Any] | None = None) -> Any:
        """A matrix with this table's rows as the user's kind, under its own columns or under `labels`."""
        if self.is_array and labels is None:
            return matrix
        own = self.arrow.column_names if self.is_array else _labels(self.native)
        matrix = self.in_own_order(matrix) if labels is None else matrix
        labels = own if labels is None else labels
        frame = self.frame_of(pa.table(list(matrix.T), names=[str(label) for label in labels]))
        if self.gives_pandas:
            frame.columns = labels
            frame.index = frame.index if self.is_array else self.native.index
        return frame

    def with_cells(self, changes: dict[int, Change]) -> Any:
        """The user's table with new cells in the columns at these positions; kind and types stay."""
        if self.places is not None:
            changes = {self.places[position]: change for position, change in changes.items()}
        if self.is_array or self.gives_pandas:
            written: Any = np.array(self.native) if self.is_array else self.native.copy()
            for position, change in changes.items():
                if self.is_array:
                    written[change.rows, position] = change.cells(lambda new: _as_numpy(new, written.dtype))
                else:
                    written.isetitem(position, _write_series(self.native.iloc[:, position], change))
            return written
        if isinstance(self.native, pa.Table):
            return write_arrow(self.native, changes)
        return self._write_frame(changes)

    def _write_frame(self, changes: dict[int, Change]) -> Any:
        frame = nw.from_native(self.native, eager_only=True)
        old = {place: column for place, column in enumerate(frame.iter_columns()) if place in changes}
        if not old:
            return frame.clone().to_native()
        arrow = pa.table({column.name: column.to_arrow() for column in old.values()})
        written = write_arrow(arrow, dict(enumerate(changes[place] for place in old)))
        new = zip(old.values(), nw.from_arrow(written, backend=self._backend).iter_columns(), strict=True)
        return frame.with_columns(*(n.cast(o.dtype) if _fits(n, o) else n for o, n in new)).to_native()


# ---------------------------------------------------------------- reading


def read_frame(X: Any) -> Frame:
    """A pandas, polars or pyarrow table, or a 2-d array, read once.

    >>> read_frame(np.eye(2)).arrow.column_names
    ['x0', 'x1']
    """
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except DuplicateError:
        name, times = Counter(_labels(X)).most_common(1)[0]
        raise TableError(
            f"Column names must differ; {name!r} stands {times} times. Hint: rename or drop one of the columns."
        ) from None
    if not isinstance(frame, nw.DataFrame):
        return _read_array(X)
    names = _column_names(X)
    if len(frame) == 0 or not names:
        raise TableError(
            f"A table must have rows and columns; this one has {len(frame) or 'no'} rows and "
            f"{len(names) or 'no'} columns."
        )
    arrow = pa.table([_to_arrow(column) for column in frame.iter_columns()], names=names)
    return Frame(X, arrow)


def _read_array(X: Any) -> Frame:
    if hasattr(X, "collect"):
        raise TableError("A table must be in memory; this one is lazy. Hint: pass table.collect().")
    if isinstance(X, pa.RecordBatch):
        raise TableError("A table must be whole; this is a RecordBatch. Hint: pyarrow.Table.from_batches([batch]).")
    unmasked = np.ma.filled(X.astype(np.float64), np.nan) if isinstance(X, np.ma.MaskedArray) else X
    numbers = check_array(unmasked, dtype="numeric", ensure_all_finite=False).astype(np.float64)
    names = [f"x{position}" for position in range(numbers.shape[1])]
    columns = [_nan_to_null(pa.chunked_array([column])) for column in numbers.T.copy()]
    arrow = pa.table(columns, names=names)
    return Frame(X if isinstance(X, np.ndarray) else numbers, arrow)


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


def _to_arrow(column: nw.Series[Any]) -> pa.ChunkedArray:
    """One column; what Arrow has no type for becomes numbers if all of it is, else text."""
    try:
        values = column.to_arrow()
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError):
        missing = column.is_null().to_list()
        cells = [None if gap else cell for gap, cell in zip(missing, column.to_list(), strict=True)]
        values = _numbers_or_texts(cells)
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    narrow = {pa.float16(): pa.float32(), pa.string_view(): pa.string()}  # Arrow cannot do all with these
    return _nan_to_null(chunked.cast(narrow.get(chunked.type, chunked.type)))


def _numbers_or_texts(cells: list[Any]) -> pa.Array:
    if any(isinstance(cell, complex) for cell in cells):  # no quantities that could be judged
        return pa.array([None if cell is None else [str(cell)] for cell in cells], pa.list_(pa.string()))
    if all(cell is None or (isinstance(cell, Real) and not isinstance(cell, bool)) for cell in cells):
        numbers = [np.nan if cell is None else float(cell) for cell in cells]
        if np.nanmedian(np.abs(numbers)) <= LARGEST_EXACT_WHOLE:  # else labels, which floats would merge
            return pa.array(numbers, pa.float64())
    texts = [None if cell is None else level_text(cell) for cell in cells]
    return pa.array([t and t.encode("utf-8", "backslashreplace").decode() for t in texts], pa.string())


def _nan_to_null(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


# ---------------------------------------------------------------- writing


def _fits(new: nw.Series[Any], old: nw.Series[Any]) -> bool:
    """Can the new cells have the old type? Not where text came into a column of numbers or gaps."""
    return old.dtype != nw.Unknown() and not (new.dtype == nw.String() and old.dtype.is_numeric())


def write_arrow(table: pa.Table, changes: dict[int, Change]) -> pa.Table:
    """The table with new cells in the columns at these positions; types stay where they can hold them."""
    for position, change in changes.items():
        field, old = table.schema.field(position), table.column(position).combine_chunks()
        room = pa.string() if change.needs_text and family(field.type) != "text" else field.type
        if pa.types.is_null(room):
            room = pa.float64()
        table = table.set_column(position, field.with_type(room), _write_arrow_column(old.cast(room), change))
    return table


def _write_arrow_column(old: pa.Array, change: Change) -> pa.Array:
    if pa.types.is_temporal(old.type):
        moments = pa.array(change.cells(_as_objects).tolist(), pa.timestamp("us"))
        zone = getattr(old.type, "tz", None)
        moments = pc.assume_timezone(moments, zone, ambiguous="earliest", nonexistent="earliest") if zone else moments
        return pc.replace_with_mask(old, pa.array(change.rows), moments.cast(old.type, safe=False))
    plain = old.cast(old.type.value_type) if pa.types.is_dictionary(old.type) else old
    cells = change.cells(lambda new: _as_arrow(new, plain.type)).tolist()
    try:
        new = pa.array(cells).cast(plain.type, safe=False)
        written = pc.replace_with_mask(plain, pa.array(change.rows), new)
    except pa.ArrowNotImplementedError:  # the smaller decimals
        wide = pa.decimal128(plain.type.precision, plain.type.scale)
        return _write_arrow_column(plain.cast(wide), change).cast(plain.type)
    return written.dictionary_encode().cast(old.type) if pa.types.is_dictionary(old.type) else written


def _write_series(old: Any, change: Change) -> Any:
    """One pandas column with its new cells, in its own type:

    categorical   its own categories, and new ones at their place among the levels
    object        its own objects, or new ones of their type
    numbers       rounded and held within the range of the type; for text levels an object column
    sparse        by way of a dense copy
    all others    text
    """
    import pandas as pd

    number = old.dtype.kind in "iufb"
    if old.dtype.kind == "M":
        written = old.copy()
        moments = pd.DatetimeIndex(change.cells(_as_objects)).as_unit(old.dt.unit)
        written.iloc[np.flatnonzero(change.rows)] = moments.tz_localize(old.dt.tz)
        return written
    categorical, sparse = isinstance(old.dtype, pd.CategoricalDtype), isinstance(old.dtype, pd.SparseDtype)
    written = old.astype(object) if sparse or (number and change.needs_text) else old.copy()
    if categorical:
        written = written.cat.set_categories(_categories(old, change))
        new = change.cells(lambda cells: _own_objects(cells, written.cat.categories))
    elif written.dtype == object:
        new = change.cells(lambda cells: _own_objects(cells, old.dropna()))
    elif number:
        new = change.cells(lambda cells: _as_numpy(cells, getattr(old.dtype, "numpy_dtype", old.dtype)))
    else:
        new = change.cells(_as_texts)
    written.iloc[np.flatnonzero(change.rows)] = new
    return written.astype(old.dtype) if sparse else written


def _categories(old: Any, change: Change) -> list[Any]:
    """The column's categories and those of the new cells; in the order of the levels, if ordered."""
    own = list(old.cat.categories)
    texts = {level_text(category) for category in own}
    needed = dict.fromkeys(change.cells(_as_objects).tolist())
    joined = own + [cell for cell in needed if level_text(cell) not in texts]
    if not old.cat.ordered or change.levels is None:
        return joined
    order = {level_text(level): place for place, level in enumerate(change.levels)}
    return sorted(joined, key=lambda category: order.get(level_text(category), len(order)))


def _as_objects(cells: Sequence[Any]) -> NDArray[Any]:
    return np.fromiter(cells, dtype=object, count=len(cells))


def _as_texts(cells: Sequence[Any]) -> NDArray[Any]:
    return _as_objects([level_text(cell) for cell in cells])


def _as_arrow(cells: Sequence[Any], type_: pa.DataType) -> NDArray[Any]:
    """Cells in numpy's nearest to an Arrow type."""
    if family(type_) == "text":
        return _as_texts(cells)
    whole = pa.types.is_integer(type_) or pa.types.is_boolean(type_)
    return _as_numpy(cells, np.dtype(type_.to_pandas_dtype() if whole else np.float64))


def _as_numpy(cells: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Cells as numbers of this type: rounded and held within its range, if it holds whole numbers."""
    if dtype.kind == "O":
        return _as_objects(cells)
    if dtype.kind not in "iu":
        return np.asarray(cells, dtype=np.float64).astype(dtype)
    limits = np.iinfo(dtype)
    if isinstance(cells, np.ndarray):
        highest = min(float(limits.max), np.nextafter(2.0**63, 0))  # float(2**63 - 1) is 2**63: too much
        return np.clip(np.rint(cells), float(limits.min), highest).astype(dtype)
    return np.array([min(max(int(cell), limits.min), limits.max) for cell in cells], dtype=dtype)


def _own_objects(cells: Sequence[Any], own: Any) -> NDArray[Any]:
    """Cells as the column's own objects; those it does not hold in the type of those it holds."""
    known = {level_text(cell): cell for cell in own}
    kinds = {type(cell) for cell in known.values()}
    make = MAKERS.get(kinds.pop(), _same) if len(kinds) == 1 else _same
    texts = (level_text(cell) for cell in cells)
    return _as_objects(
        [
            known[t] if t in known else t if isinstance(cell, str) else make(cell)
            for t, cell in zip(texts, cells, strict=True)
        ]
    )


def _same(cell: Any) -> Any:
    return cell


MAKERS: dict[type, Callable[[Any], Any]] = {
    int: lambda cell: round(float(cell)),
    float: float,
    str: level_text,
    datetime.date: lambda cell: cell.date() if isinstance(cell, datetime.datetime) else cell,
    decimal.Decimal: lambda cell: decimal.Decimal(level_text(cell)),
}
