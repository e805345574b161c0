from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from cellmend.table.schema import Schema
from cellmend_bench.corruption import NOISES, corrupt
from tests.conftest import mixed_table

SCHEMA = Schema.from_dict(
    {
        "height": "real",
        "income": "real",
        "city": "category",
        "smoker": "category",
        "children": "count",
        "rating": {"kind": "ordinal", "levels": [1, 2, 3, 4, 5]},
        "id": "ignore",
        "country": "ignore",
    }
)


def differs(clean: pd.DataFrame, dirty: pd.DataFrame) -> NDArray[np.bool_]:
    """Where two tables differ; two gaps are alike."""
    return ((clean != dirty) & ~(clean.isna() & dirty.isna())).to_numpy()


def reals(rows: int, columns: int) -> pd.DataFrame:
    """Numbers without a resolution, so that noise always changes them."""
    values = np.random.default_rng(0).normal(10, 3, (rows, columns))
    return pd.DataFrame(values, columns=[f"x{place}" for place in range(columns)])


def all_real(table: pd.DataFrame) -> Schema:
    return Schema.from_dict(dict.fromkeys(table.columns, "real"))


# ---------------------------------------------------------------- where


@settings(max_examples=30, deadline=None)
@given(noise=st.sampled_from(sorted(NOISES)), rows=st.floats(0, 1), seed=st.integers(0, 10_000))
def test_the_mask_is_exactly_where_the_table_differs(noise: str, rows: float, seed: int) -> None:
    clean = mixed_table(60).iloc[:, ::-1]  # not in the order of kinds, in which columns are modelled
    dirty, mask = corrupt(clean, SCHEMA, noise=noise, rows=rows, seed=seed)
    np.testing.assert_array_equal(mask, differs(clean, dirty))
    assert mask.any(axis=1).sum() <= round(rows * len(clean))


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 80), columns=st.integers(1, 25), rows=st.floats(0, 1), seed=st.integers(0, 10_000))
def test_a_share_of_the_rows_has_a_fifth_of_its_cells_corrupted(
    size: int, columns: int, rows: float, seed: int
) -> None:
    clean = reals(size + 1, columns)
    _, mask = corrupt(clean, all_real(clean), noise="gaussian", rows=rows, seed=seed)
    dirty_rows = mask.any(axis=1)
    assert dirty_rows.sum() == round(rows * len(clean))
    assert set(mask[dirty_rows].sum(axis=1)) <= {max(1, round(0.2 * columns))}


@pytest.mark.parametrize(("columns", "cells"), [(1, 1), (2, 1), (5, 1), (13, 3), (15, 3), (17, 3), (24, 5)])
def test_the_number_of_cells_in_a_row_is_that_of_the_paper(columns: int, cells: int) -> None:
    clean = reals(10, columns)
    _, mask = corrupt(clean, all_real(clean), noise="gaussian", rows=1.0, seed=0)
    assert mask.sum(axis=1).tolist() == [cells] * 10


def test_every_row_has_its_own_cells_and_every_column_its_share() -> None:
    clean = reals(3000, 10)
    _, mask = corrupt(clean, all_real(clean), noise="gaussian", rows=1.0, seed=1)
    assert len({tuple(row) for row in mask.tolist()}) == 45  # all pairs of ten columns
    assert stats.chisquare(mask.sum(axis=0)).pvalue > 0.001


def test_the_rows_are_drawn_from_the_whole_table() -> None:
    clean = reals(1000, 1)
    _, mask = corrupt(clean, all_real(clean), noise="gaussian", rows=0.2, seed=2)
    assert stats.kstest(np.flatnonzero(mask) / 1000, "uniform").pvalue > 0.001


def test_the_same_seed_gives_the_same_errors_and_another_seed_others() -> None:
    (first, mask), (again, same), (_, other) = (
        corrupt(mixed_table(), SCHEMA, noise="laplace4-0.5", rows=0.5, seed=seed) for seed in (7, 7, 8)
    )
    pd.testing.assert_frame_equal(first, again)
    np.testing.assert_array_equal(mask, same)
    assert (mask != other).any()


def test_columns_left_out_and_missing_cells_stay_as_they_are() -> None:
    clean = mixed_table()
    clean.loc[20:70, ["height", "rating", "city"]] = None
    dirty, mask = corrupt(clean, SCHEMA, noise="gaussian", rows=1.0, seed=0)
    np.testing.assert_array_equal(dirty.isna(), clean.isna())
    assert not mask[clean.isna().to_numpy()].any()
    assert not mask[:, [clean.columns.get_loc("id"), clean.columns.get_loc("country")]].any()
    assert mask.any(axis=0).sum() == 6


# ---------------------------------------------------------------- numbers

MIXTURE = (stats.norm(-0.5, 3), stats.norm(0.5, 3))


@pytest.mark.parametrize(
    ("noise", "expected", "mean", "deviation"),
    [
        ("gaussian", stats.norm(0, 5).cdf, 0.0, 5.0),
        ("laplace4-0.5", stats.laplace(0, 4).cdf, 0.0, 4 * 2**0.5),
        ("laplace4-0.8", stats.laplace(0, 4).cdf, 0.0, 4 * 2**0.5),
        ("laplace8-0.8", stats.laplace(0, 8).cdf, 0.0, 8 * 2**0.5),
        ("lognormal", stats.lognorm(0.75).cdf, 1.3248, 1.1512),  # exp(0.75² / 2), that times sqrt(exp(0.75²) - 1)
        ("mixture", lambda x: 0.6 * MIXTURE[0].cdf(x) + 0.4 * MIXTURE[1].cdf(x), -0.1, 9.24**0.5),  # 9 + 0.6 0.4 1²
    ],
)
def test_the_noise_is_that_of_the_paper_in_deviations_of_the_clean_column(
    noise: str, expected: Any, mean: float, deviation: float
) -> None:
    clean = reals(20_000, 1) * 40
    dirty, mask = corrupt(clean, all_real(clean), noise=noise, rows=1.0, seed=3)
    drawn = ((dirty - clean)["x0"] / clean["x0"].std(ddof=0)).to_numpy()
    assert mask.all()
    assert drawn.mean() == pytest.approx(mean, abs=3 * deviation / len(drawn) ** 0.5)
    assert drawn.std() == pytest.approx(deviation, rel=0.03)
    assert stats.kstest(drawn, expected).pvalue > 0.001


def test_there_are_the_six_pairs_of_noises_of_the_paper_and_three_more() -> None:
    ours = {"small", "other-row", "unit"}
    assert ours <= set(NOISES)
    assert {name: noise.beta for name, noise in NOISES.items() if name not in ours} == {
        "gaussian": 0.0,
        "laplace4-0.5": 0.5,
        "laplace4-0.8": 0.8,
        "laplace8-0.8": 0.8,
        "lognormal": 0.0,
        "mixture": 0.0,
    }


@settings(max_examples=20, deadline=None)
@given(noise=st.sampled_from(sorted(NOISES)), decimals=st.integers(0, 5), seed=st.integers(0, 10_000))
def test_numbers_keep_the_decimals_of_their_column(noise: str, decimals: int, seed: int) -> None:
    clean = reals(100, 1).round(decimals)
    dirty, _ = corrupt(clean, all_real(clean), noise=noise, rows=1.0, seed=seed)
    np.testing.assert_array_equal(dirty, dirty.round(decimals))


def test_whole_numbers_stay_whole_in_their_type() -> None:
    clean = pd.DataFrame({"small": np.arange(100, dtype=np.int16), "whole": np.arange(100, dtype=np.float64)})
    dirty, mask = corrupt(clean, all_real(clean), noise="gaussian", rows=1.0, seed=0)
    pd.testing.assert_series_equal(dirty.dtypes, clean.dtypes)
    np.testing.assert_array_equal(dirty["whole"], dirty["whole"].round())
    assert mask.any(axis=0).all()


def test_a_number_that_comes_out_as_it_was_is_no_error() -> None:
    clean = pd.DataFrame({"x": [0.0] * 500 + [1.0] * 500})
    dirty, mask = corrupt(clean, all_real(clean), noise="lognormal", rows=1.0, seed=0)
    unchanged = (dirty["x"] == clean["x"]).to_numpy()
    # A step of 0.5 times a log-normal draw is rounded away where the draw is below 1: in half of the cells.
    assert unchanged.mean() == pytest.approx(0.5, abs=0.05)
    np.testing.assert_array_equal(mask[:, 0], ~unchanged)


@pytest.mark.parametrize("noise", sorted(NOISES))
def test_counts_stay_whole_and_never_below_zero(noise: str) -> None:
    clean = pd.DataFrame({"k": np.random.default_rng(0).poisson(2.0, 2000)})
    dirty, mask = corrupt(clean, Schema.from_dict({"k": "count"}), noise=noise, rows=1.0, seed=0)
    assert dirty["k"].dtype == clean["k"].dtype
    assert dirty["k"].min() >= 0
    assert mask.mean() > 0.5


def test_counts_get_noise_in_deviations_of_the_clean_column() -> None:
    clean = pd.DataFrame({"k": np.random.default_rng(0).poisson(900.0, 5000)})
    dirty, _ = corrupt(clean, Schema.from_dict({"k": "count"}), noise="gaussian", rows=1.0, seed=0)
    assert (dirty - clean)["k"].std() == pytest.approx(5 * 30, rel=0.05)


# ---------------------------------------------------------------- levels


def levels_table(**frequency: int) -> tuple[pd.DataFrame, Schema]:
    """A column with these levels, each so many times, and a level 'never' that does not occur."""
    cells = [level for level, times in frequency.items() for _ in range(times)]
    schema = Schema.from_dict({"c": {"kind": "category", "levels": [*frequency, "never"]}})
    return pd.DataFrame({"c": cells}), schema


@pytest.mark.parametrize("noise", ["laplace4-0.5", "laplace8-0.8"])
def test_a_level_becomes_another_by_its_frequency_to_the_power_beta(noise: str) -> None:
    frequency = {"a": 6000, "b": 3000, "c": 900, "d": 100}
    clean, schema = levels_table(**frequency)
    dirty, mask = corrupt(clean, schema, noise=noise, rows=1.0, seed=0)
    assert mask.all()
    for level in ("a", "b", "c"):
        others = [other for other in frequency if other != level]
        drawn = dirty["c"][clean["c"] == level].value_counts()
        assert set(drawn.index) <= set(others)
        weights = np.array([frequency[other] for other in others]) ** NOISES[noise].beta
        expected = weights / weights.sum() * frequency[level]
        assert stats.chisquare(drawn.reindex(others, fill_value=0), expected).pvalue > 0.001


def test_with_beta_zero_all_other_levels_are_alike_seen_or_not() -> None:
    clean, schema = levels_table(a=6000, b=300, c=30)
    dirty, mask = corrupt(clean, schema, noise="gaussian", rows=1.0, seed=0)
    assert mask.all()
    drawn = dirty["c"][clean["c"] == "a"].value_counts()
    assert set(drawn.index) == {"b", "c", "never"}
    assert stats.chisquare(drawn).pvalue > 0.001


@settings(max_examples=30, deadline=None)
@given(
    cells=st.lists(st.sampled_from("abcde"), min_size=2, max_size=60).filter(lambda cells: len(set(cells)) > 1),
    noise=st.sampled_from(sorted(NOISES)),
    seed=st.integers(0, 10_000),
)
def test_a_level_never_becomes_itself_nor_with_beta_one_that_does_not_occur(
    cells: list[str], noise: str, seed: int
) -> None:
    schema = Schema.from_dict({"c": {"kind": "category", "levels": list("abcde")}})
    dirty, mask = corrupt(pd.DataFrame({"c": cells}), schema, noise=noise, rows=1.0, seed=seed)
    assert mask.all()
    if NOISES[noise].beta > 0:
        assert set(dirty["c"]) <= set(cells)


@pytest.mark.parametrize("noise", sorted(NOISES))
def test_ordered_levels_stay_within_their_levels(noise: str) -> None:
    clean = pd.DataFrame({"rating": [1, 2, 3, 4, 5] * 40})
    schema = Schema.from_dict({"rating": {"kind": "ordinal", "levels": [1, 2, 3, 4, 5]}})
    dirty, mask = corrupt(clean, schema, noise=noise, rows=1.0, seed=0)
    assert set(dirty["rating"]) <= {1, 2, 3, 4, 5}
    assert dirty["rating"].dtype == clean["rating"].dtype
    assert mask.all()


# ---------------------------------------------------------------- the user's table


def test_the_users_table_is_not_modified() -> None:
    table, before = mixed_table(), mixed_table()
    corrupt(table, SCHEMA, noise="gaussian", rows=1.0, seed=0)
    pd.testing.assert_frame_equal(table, before)


def test_index_types_and_column_order_survive() -> None:
    clean = mixed_table().set_index(pd.Index(range(1000, 1120)))
    clean["city"] = clean["city"].astype("category")
    dirty, _ = corrupt(clean, SCHEMA, noise="laplace4-0.8", rows=0.3, seed=0)
    pd.testing.assert_series_equal(dirty.dtypes, clean.dtypes)
    pd.testing.assert_index_equal(dirty.index, clean.index)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_other_tables_come_back_as_themselves_with_the_same_errors(convert: Any) -> None:
    clean = mixed_table()
    expected, mask = corrupt(clean, SCHEMA, noise="mixture", rows=0.4, seed=0)
    table = convert(clean)
    dirty, same = corrupt(table, SCHEMA, noise="mixture", rows=0.4, seed=0)
    assert type(dirty) is type(table)
    assert dirty.schema == table.schema
    np.testing.assert_array_equal(same, mask)
    assert dirty.equals(convert(expected))
    assert table.equals(convert(clean))


def test_an_array_comes_back_as_an_array() -> None:
    clean = reals(50, 5)
    dirty, mask = corrupt(clean.to_numpy(), all_real(clean), noise="gaussian", rows=0.5, seed=0)
    expected, same = corrupt(clean, all_real(clean), noise="gaussian", rows=0.5, seed=0)
    np.testing.assert_array_equal(dirty, expected)
    np.testing.assert_array_equal(mask, same)


@pytest.mark.parametrize(("layout", "share", "columns"), [("columns", 0.3, 2), ("cells", 0.1, 10)])
def test_errors_lie_where_the_layout_says(layout: str, share: float, columns: int) -> None:
    clean = reals(2000, 10)
    _, mask = corrupt(clean, all_real(clean), noise="laplace4-0.5", rows=share, seed=0, layout=layout)
    assert (mask.mean(axis=0) > 0).sum() == columns
    assert mask.mean(axis=0).max() == pytest.approx(share, abs=0.04)


def test_another_row_s_value_is_one_of_the_column_and_a_unit_is_a_power_of_ten() -> None:
    clean = (1000 * (reals(500, 2).abs() + 1)).round(2)  # at a resolution, as the cells of a table are
    other, wrong = corrupt(clean, all_real(clean), noise="other-row", rows=0.5, seed=0, layout="cells")
    assert np.isin(other.to_numpy()[:, 0].round(9), clean.to_numpy()[:, 0].round(9)).all()
    unit, wrong = corrupt(clean, all_real(clean), noise="unit", rows=0.5, seed=0, layout="cells")
    powers = np.log10((unit / clean).to_numpy()[wrong])
    np.testing.assert_allclose(powers, powers.round(), atol=2e-3)  # a thousandth of them is rounded too
