from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cellmend.errors import SchemaError, TableError
from cellmend.model.columns import CountColumn, LevelColumn, RealColumn
from cellmend.model.encoding import TableEncoder
from cellmend.table.readtable import read_typed
from cellmend.table.schema import Column, Schema
from tests.conftest import KNOTS_AT


def chunked(values, type_=None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, type_)])


def encoder_for(table, **kinds) -> TableEncoder:
    return TableEncoder.fit(Schema(tuple(Column(name, kind) for name, kind in kinds.items())), read_typed(table))


def test_every_kind_of_table_gives_equal_cells() -> None:
    data = {"a": [1.0, None, 3.0], "b": ["x", "y", None]}
    tables = [pd.DataFrame(data), pl.DataFrame(data), pa.table(data)]
    cells = [encoder_for(t, a="real", b="category").encode(read_typed(t)) for t in tables]
    for other in cells[1:]:
        assert torch.equal(cells[0].values, other.values)
        assert torch.equal(cells[0].observed, other.observed)
    assert cells[0].observed.tolist() == [[True, True], [False, True], [True, False]]


def test_nan_is_missing_in_polars_too() -> None:
    table = pl.DataFrame({"a": [1.0, float("nan"), 3.0]})
    assert encoder_for(table, a="real").encode(read_typed(table)).observed.tolist() == [
        [True],
        [False],
        [True],
    ]


def test_reals_are_standardised_with_the_dirty_mean_and_deviation() -> None:
    column = RealColumn.fit(Column("a", "real"), chunked([1.0, 2.0, 6.0, None]))
    assert (column.mean, column.sd) == (3.0, pytest.approx(np.std([1, 2, 6])))
    np.testing.assert_allclose(column.encode(chunked([3.0])), [0.0])


def test_reals_keep_their_decimals_and_whole_numbers_stay_whole() -> None:
    tenths = RealColumn.fit(Column("a", "real"), chunked([1.1, 2.0, 3.7]))
    whole = RealColumn.fit(Column("a", "real"), chunked([10, 20, 33]))
    fine = RealColumn.fit(Column("a", "real"), chunked(np.random.default_rng(0).normal(size=50)))
    assert (tenths.decimals, whole.decimals, fine.decimals) == (1, 0, None)
    value = np.array([0.123456])
    assert tenths.decode(value)[0] == round(float(tenths.mean + 0.123456 * tenths.sd), 1)
    assert whole.decode(value)[0] == round(float(whole.mean + 0.123456 * whole.sd))


def test_a_repair_is_never_minus_zero() -> None:
    column = RealColumn("a", "real", 0.0, 1.0, 1, KNOTS_AT)
    assert str(column.decode(np.array([-0.01]))[0]) == "0.0"


def test_single_precision_does_not_hide_the_resolution() -> None:
    values = chunked(np.array([3.18, 2.5, 61.8], dtype=np.float32))
    assert RealColumn.fit(Column("a", "real"), values).decimals == 2


def test_a_few_wrong_cells_do_not_hide_the_resolution() -> None:
    values = [1.5, 2.5] * 100 + [3.14159]
    assert RealColumn.fit(Column("a", "real"), chunked(values)).decimals == 1


def test_huge_numbers_stay_finite() -> None:
    column = RealColumn.fit(Column("a", "real"), chunked([1e308, -1e308, 0.0]))
    assert np.isfinite([column.mean, column.sd]).all()
    assert np.abs(column.encode(chunked([1e308]))).max() < 2
    assert np.isfinite(column.decode(np.array([1e6])))


def test_a_count_cannot_hold_negative_or_broken_numbers() -> None:
    column = CountColumn.fit(Column("a", "count"), chunked([0, 1, 2]))
    np.testing.assert_array_equal(column.encode(chunked([3.0, -1.0, 2.5])), [3.0, np.nan, np.nan])


@pytest.mark.parametrize(
    ("fitted", "scored", "codes"),
    [
        (["x", "y"], ["y", "new", None], [1, np.nan, np.nan]),
        ([3, 5], [5.0, 3.0, None], [1, 0, np.nan]),
        ([True, False], [False, True, True], [0, 1, 1]),
        ([0.5, 1.0], [1, 1, 1], [1, 1, 1]),
        ([-0.0, 0.0, 1.5], [0.0, 1.5, 2.5], [0, 1, np.nan]),
        ([1e10, 2e10, 1e300], [2e10, 1e10, 1e300], [1, 0, 2]),
        (np.array([2**63 + 7, 5], dtype="uint64"), np.array([5, 2**63 + 7], dtype="uint64"), [0, 1]),
    ],
)
def test_levels_are_recognised_whatever_their_type(fitted, scored, codes) -> None:
    column = LevelColumn.fit(Column("a", "category"), chunked(fitted))
    np.testing.assert_array_equal(column.encode(chunked(scored)), codes)


def test_given_levels_keep_their_order() -> None:
    column = LevelColumn.fit(Column("a", "ordinal", ("S", "M", "L")), chunked(["M", "L"]))
    np.testing.assert_array_equal(column.encode(chunked(["S", "M", "L"])), [0, 1, 2])


def test_ordinal_text_needs_its_levels() -> None:
    with pytest.raises(SchemaError, match="levels must be given in order"):
        LevelColumn.fit(Column("a", "ordinal"), chunked(["S", "M"]))


def test_an_unseen_level_is_observed_and_impossible() -> None:
    table = pd.DataFrame({"a": ["x", "y"]})
    cells = encoder_for(table, a="category").encode(read_typed(pd.DataFrame({"a": ["z", None]})))
    assert cells.observed.tolist() == [[True], [False]]
    assert cells.values[0].isnan()
    assert cells.values[1] == 0


def test_columns_stand_grouped_by_kind_and_scores_go_back_to_their_place() -> None:
    table = pd.DataFrame({"c": ["x", "y"], "left out": [1, 1], "r": [0.5, 1.5]})
    encoder = encoder_for(table, c="category", r="real")
    assert [column.name for column in encoder.columns] == ["r", "c"]
    spread = encoder.spread(np.array([[1.0, 2.0], [3.0, 4.0]]), read_typed(table))
    assert spread.tolist() == [[2.0, 0.0, 1.0], [4.0, 0.0, 3.0]]


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(numbers, min_size=2, max_size=20))
def test_any_numbers_encode_to_finite_cells_and_come_back(values: list[float]) -> None:
    column = RealColumn.fit(Column("a", "real"), chunked(values))
    encoded = column.encode(chunked(values))
    assert np.isfinite(encoded).all()
    size = max(map(abs, values))
    resolution = 0.0 if column.decimals is None else 10.0**-column.decimals
    np.testing.assert_allclose(column.decode(encoded), values, rtol=1e-9, atol=1e-9 * size + resolution)


@given(
    st.lists(st.text(max_size=5) | st.none(), min_size=2, max_size=20).filter(lambda v: any(x is not None for x in v))
)
def test_any_text_encodes_to_levels_and_comes_back(values: list[str | None]) -> None:
    column = LevelColumn.fit(Column("a", "category"), chunked(values, pa.string()))
    codes = column.encode(chunked(values, pa.string()))
    known = ~np.isnan(codes)
    assert [column.decode_one(code) for code in codes[known]] == [value for value in values if value is not None]
    assert known.tolist() == [value is not None for value in values]


def test_text_among_numbers_names_row_and_value() -> None:
    with pytest.raises(TableError, match=r"'a' is real .* row 1 holds 'n/a'. Hint: leave the cell empty"):
        RealColumn.fit(Column("a", "real"), chunked(["1", "n/a"]))
