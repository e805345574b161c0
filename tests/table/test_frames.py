"""Any table in, the same kind out, with types, labels and untouched cells as they were."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cellmend.errors import TableError
from cellmend.model.encoding import TableEncoder
from cellmend.table.frames import Change, read_frame
from cellmend.table.readtable import read_typed
from cellmend.table.schema import Column, Schema


def encoder_for(table, **kinds) -> TableEncoder:
    return TableEncoder.fit(Schema(tuple(Column(name, kind) for name, kind in kinds.items())), read_typed(table))


def written(frame, values, rows, levels=None):
    """Column 0 of the table with new cells in these rows."""
    mask = np.isin(np.arange(len(frame)), rows)
    return read_frame(frame).with_cells({0: Change(mask, np.asarray(values, dtype=float), levels)})


PANDAS = {
    "int8": pd.Series([1, 2, 3, 9], dtype="int8"),
    "uint64": pd.Series([1, 2, 3, 9], dtype="uint64"),
    "Int64": pd.Series([1, 2, 3, None], dtype="Int64"),
    "float32": pd.Series([1.5, 2.5, 3.5, None], dtype="float32"),
    "Float64": pd.Series([1.5, 2.5, 3.5, None], dtype="Float64"),
    "bool": pd.Series([True, False, True, True]),
    "boolean": pd.Series([True, False, True, None], dtype="boolean"),
    "str": pd.Series(["x", "y", "x", None]),
    "object": pd.Series(["x", 7, "x", None], dtype=object),
    "category": pd.Series(["x", "y", "x", None], dtype="category"),
    "int category": pd.Series([1, 2, 1, 2], dtype="category"),
    "arrow": pd.Series([1, 2, 3, None], dtype="int64[pyarrow]"),
}
POLARS = {
    "Int16": pl.Series([1, 2, 3, None], dtype=pl.Int16),
    "Float32": pl.Series([1.5, 2.5, 3.5, None], dtype=pl.Float32),
    "Boolean": pl.Series([True, False, True, None]),
    "String": pl.Series(["x", "y", "x", None]),
    "Categorical": pl.Series(["x", "y", "x", None], dtype=pl.Categorical),
    "Enum": pl.Series(["x", "y", "x", None], dtype=pl.Enum(["x", "y"])),
    "Decimal": pl.Series([decimal.Decimal("1.50"), decimal.Decimal("2.25"), None, None]),
}
ARROW = {
    "int32": pa.array([1, 2, 3, None], pa.int32()),
    "large_string": pa.array(["x", "y", "x", None], pa.large_string()),
    "dictionary": pa.array(["x", "y", "x", None]).dictionary_encode(),
    "decimal": pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.25"), None, None]),
    "chunked": pa.chunked_array([[1.5, 2.5], [3.5, None]]),
}
FRAMES = (
    [(f"pandas {name}", pd.DataFrame({"a": column})) for name, column in PANDAS.items()]
    + [(f"polars {name}", pl.DataFrame({"a": column})) for name, column in POLARS.items()]
    + [(f"pyarrow {name}", pa.table({"a": column})) for name, column in ARROW.items()]
)


def type_of(frame):
    return frame.schema.field("a").type if isinstance(frame, pa.Table) else frame["a"].dtype


def cells_of(frame) -> list:
    values = frame["a"].to_pylist() if isinstance(frame, pa.Table) else frame["a"].to_list()
    return [None if pd.isna(value) else value for value in values]


@pytest.mark.parametrize("frame", [f for _, f in FRAMES], ids=[name for name, _ in FRAMES])
def test_replaced_cells_have_the_columns_type_and_the_rest_stays(frame) -> None:
    """Cell 1 and the last cell, which may be missing, take the value of cell 0."""
    table = read_typed(frame)
    numeric = pa.types.is_floating(table.arrow["a"].type) or pa.types.is_integer(table.arrow["a"].type)
    numeric |= pa.types.is_decimal(table.arrow["a"].type)
    encoder = encoder_for(frame, a="real" if numeric else "category")
    values = encoder.encode(table).values.double().numpy()
    where = np.array([[False], [True], [False], [True]])
    changed = encoder.replace(table, np.repeat(values[:1], 4, axis=0), where)
    before, after = cells_of(frame), cells_of(changed)
    assert type(changed) is type(frame)
    assert type_of(changed) == type_of(frame)
    assert after == [before[0], before[0], before[2], before[0]]
    assert cells_of(frame) == before


def test_a_mixed_object_column_gets_its_own_objects_back() -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", 7, "x", 7], dtype=object)})
    table, encoder = read_typed(frame), encoder_for(frame, a="category")
    seven = encoder.encode(table).values.double().numpy()[1, 0]
    changed = encoder.replace(table, np.full((4, 1), seven), np.array([[True], [False], [False], [False]]))
    assert changed["a"].tolist() == [7, 7, "x", 7]


def test_index_order_and_labels_of_pandas_survive() -> None:
    frame = pd.DataFrame({"b": [1.5, 2.5], "a": ["x", "y"]}, index=pd.Index(["r", "r"], name="key"))
    table, encoder = read_typed(frame), encoder_for(frame, b="real", a="category")
    changed = encoder.replace(table, np.zeros((2, 2)), np.ones((2, 2), dtype=bool))
    assert changed.index.equals(frame.index)
    assert changed.index.name == "key"
    assert list(changed.columns) == ["b", "a"]
    matrix = table.frame.matrix_of(np.zeros((2, 2)))
    assert matrix.index.equals(frame.index)
    assert list(matrix.columns) == ["b", "a"]


def test_integer_column_names_of_pandas_survive() -> None:
    frame = pd.DataFrame(np.eye(3))
    table = read_frame(frame)
    assert table.arrow.column_names == ["0", "1", "2"]
    assert list(table.matrix_of(np.eye(3)).columns) == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "UInt8", "uint8[pyarrow]"])
def test_numbers_are_held_within_the_range_of_their_type(dtype: str) -> None:
    frame = pd.DataFrame({"a": pd.Series([1, 2, 3, 4], dtype=dtype)})
    changed = written(frame, [-300.0, 300.0, 2.6], rows=[0, 1, 2])["a"]
    limits = (0, 255) if "uint" in dtype.lower() else (-128, 127)
    assert changed.dtype == frame["a"].dtype
    assert changed.tolist() == [*limits, 3, 4]


def test_the_largest_integers_do_not_wrap() -> None:
    array = written(np.array([[1], [2]], dtype=np.int64), [1e300, -1e300], rows=[0, 1])
    assert array[0, 0] > 2**62
    assert array[1, 0] < -(2**62)


@pytest.mark.parametrize(
    "gaps",
    [
        pd.DataFrame({"a": [np.nan] * 3}),
        pd.DataFrame({"a": [None] * 3}),
        pl.DataFrame({"a": [None] * 3}),
        pa.table({"a": pa.nulls(3)}),
    ],
    ids=["pandas float", "pandas object", "polars", "pyarrow"],
)
def test_text_can_be_written_into_a_column_of_gaps(gaps) -> None:
    changed = written(gaps, [1, 0], rows=[0, 2], levels=("x", "y"))
    assert cells_of(changed) == ["y", None, "x"]
    numbers = written(gaps, [1.5], rows=[0])
    assert cells_of(numbers) == [1.5, None, None]


def test_levels_are_written_in_the_type_of_the_batch() -> None:
    """Fitted on integers, scored as text; or text with numbers in it, scored as numbers."""
    texts = written(pd.DataFrame({"a": ["9", "1"]}), [2], rows=[0], levels=(0, 1, 2))
    assert texts["a"].tolist() == ["2", "1"]
    mixed = written(pd.DataFrame({"a": [9.0, 1.0]}), [1], rows=[0], levels=("1", "many"))
    assert mixed["a"].tolist() == ["many", 1.0]
    arrow = written(pa.table({"a": [9.0, 1.5]}), [1], rows=[0], levels=("1.5", "many"))
    assert arrow["a"].to_pylist() == ["many", "1.5"]


def test_a_new_category_takes_its_place_in_the_order() -> None:
    column = pd.Categorical(["S", "L", "S"], categories=["S", "L"], ordered=True)
    changed = written(pd.DataFrame({"a": column}), [1], rows=[0], levels=("S", "M", "L"))
    assert changed["a"].tolist() == ["M", "L", "S"]
    assert list(changed["a"].cat.categories) == ["S", "M", "L"]


def test_categories_that_are_numbers_stay_numbers() -> None:
    frame = pd.DataFrame({"a": pd.Categorical([1, 2, 1])})
    changed = written(frame, [1], rows=[0], levels=(1, 2))
    assert changed["a"].dtype == frame["a"].dtype
    assert changed["a"].tolist() == [2, 2, 1]


def test_objects_get_objects_of_their_own_type() -> None:
    money = pd.DataFrame({"a": pd.Series([decimal.Decimal("1.25"), decimal.Decimal("9.50")], dtype=object)})
    assert written(money, [2.5], rows=[0])["a"].tolist() == [decimal.Decimal("2.5"), decimal.Decimal("9.50")]
    whole = written(pd.DataFrame({"a": pd.Series([1, None, 0], dtype=object)}), [7.0], rows=[1])["a"].tolist()
    assert whole == [1, 7, 0]
    assert type(whole[1]) is int


def test_sparse_columns_stay_sparse() -> None:
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.5, 0.0])})
    changed = written(frame, [2.5], rows=[0])
    assert changed["a"].dtype == frame["a"].dtype
    assert changed["a"].tolist() == [2.5, 1.5, 0.0]


def test_masked_cells_of_an_array_are_missing() -> None:
    masked = np.ma.masked_greater(np.array([[1.0], [9999.0]]), 100)
    assert read_frame(masked).arrow.column(0).to_pylist() == [1.0, None]


def test_half_and_long_floats_are_read() -> None:
    half = read_frame(pd.DataFrame({"a": np.array([1.5, 2.5], dtype=np.float16)}))
    assert half.arrow.column(0).to_pylist() == [1.5, 2.5]
    assert read_frame(np.array([[1.5]], dtype=np.longdouble)).arrow.column(0).to_pylist() == [1.5]


def test_one_huge_integer_does_not_make_numbers_text() -> None:
    ages = read_frame(pd.DataFrame({"a": pd.Series([30, 40, 10**20], dtype=object)}))
    assert ages.arrow.column(0).to_pylist() == [30.0, 40.0, 1e20]


def test_text_that_is_no_unicode_is_read() -> None:
    odd = read_frame(pd.DataFrame({"a": pd.Series(["fine", "\ud800"], dtype=object)}))
    assert odd.arrow.column(0).to_pylist() == ["fine", "\\ud800"]


def test_a_record_batch_is_refused_with_a_hint() -> None:
    with pytest.raises(TableError, match=r"Hint: pyarrow\.Table\.from_batches"):
        read_frame(pa.record_batch({"a": [1.5]}))
