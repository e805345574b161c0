"""Bad input: one clear sentence each, what must hold, what came, what to do; or a message and an answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cellmend import CellMender, SchemaError, SchemaWarning, TableError
from tests.conftest import SMALL

RNG = np.random.default_rng(0)
GOOD = pd.DataFrame({"x": RNG.normal(size=60), "city": RNG.choice(["Rome", "Oslo"], 60), "n": RNG.poisson(2, 60)})


def small() -> CellMender:
    return CellMender(**SMALL)


@pytest.fixture(scope="module")
def mender() -> CellMender:
    return small().fit(GOOD)


def with_(name, values) -> pd.DataFrame:
    return GOOD.assign(**{name: values})


def replaced(name, row, value) -> pd.DataFrame:
    column = GOOD[name].astype(object)
    column.iloc[row] = value
    return with_(name, column)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (GOOD.iloc[:0], "must have rows and columns; this one has no rows and 3 columns"),
        (GOOD[[]], "must have rows and columns"),
        (GOOD.iloc[:1], "at least 2 rows to learn from; this one has 1 row"),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), "names must differ; 'a' stands 2 times. Hint: rename"),
        (
            pl.LazyFrame({"a": [1.0, 2.0]}),
            r"must be in memory; this one is lazy. Hint: pass table.collect\(\)",
        ),
        (pd.DataFrame({"a": [None] * 9}), "every column is empty, of another type or declared as ignore. Hint"),
        (
            pd.DataFrame(np.eye(3, 1200)).add_prefix("c"),
            "at most 1,000 columns to learn from; this one has 1,200. Hint",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Left out of the model")
def test_a_table_that_cannot_be_learned_from_is_one_sentence(table, message: str) -> None:
    with pytest.raises((TableError, SchemaError), match=message) as caught:
        small().fit(table)
    assert "\n" not in str(caught.value)


def test_complex_numbers_are_left_out_and_stay() -> None:
    table = GOOD.assign(wave=np.arange(60) + 1j)
    with pytest.warns(SchemaWarning, match="'wave'"):
        mender = small().fit(table)
    pd.testing.assert_series_equal(mender.repair(table)["wave"], table["wave"])


def test_names_that_are_partly_text_are_refused() -> None:
    with pytest.raises(TypeError, match=r"only support names that are all strings.* 1 stands beside text. Hint"):
        small().fit(pd.DataFrame({"a": [1.5, 2.5], 1: [1.5, 2.5]}))


def test_names_that_are_no_text_at_all_are_fine() -> None:
    table = pd.DataFrame(RNG.normal(size=(30, 2)), columns=[2020, 2021])
    assert list(small().fit(table).repair(table).columns) == [2020, 2021]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([None] * 60, r"'extra' \(all its cells are missing\)"),
        ([4.5] * 60, r"'extra' \(constant: always 4.5\)"),
        ([10**17 + n for n in range(60)], r"'extra' \(whole numbers beyond 2\*\*53"),
        ([10**30 + n for n in range(60)], r"'extra' \(identifier or free text"),
        ([f"note {n}" for n in range(60)], r"'extra' \(identifier or free text: 60 different values"),
        ([{"n": n} for n in range(60)], r"'extra' \(values of type struct"),
    ],
    ids=["all missing", "constant", "huge", "beyond 64 bits", "free text", "records"],
)
def test_a_column_that_cannot_be_modelled_is_left_out_with_a_message(column, message: str) -> None:
    table = with_("extra", column)
    with pytest.warns(SchemaWarning, match=message):
        mender = small().fit(table)
    pd.testing.assert_frame_equal(mender.repair(table)[["extra"]], table[["extra"]])


def test_a_mixed_object_column_is_read_as_text() -> None:
    table = with_("mixed", pd.Series([1, "one", 2.5, None, True] * 12, dtype=object))
    mender = small().fit(table)
    assert mender.schema_["mixed"].kind == "category"
    repaired = mender.reconstruct(table)["mixed"]
    assert all(type(value) in (int, str, float, bool) for value in repaired)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            replaced("x", 17, "n/a"),
            "'x' is real and must hold numbers; row 17 holds 'n/a'. Hint: leave the",
        ),
        (replaced("n", 17, "n/a"), "'n' is count and must hold numbers; row 17 holds 'n/a'"),
        (with_("x", "one"), "'x' is real and must hold numbers; row 0 holds 'one'"),
        (
            with_("city", 1.5),
            "'city' was fitted as category and must hold text values such as 'Oslo'; it holds double",
        ),
    ],
)
def test_the_wrong_type_at_score_time_is_one_sentence(mender: CellMender, table, message: str) -> None:
    with pytest.raises(TableError, match=message) as caught:
        mender.cell_scores(table)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (GOOD.rename(columns={"x": "y"}), "The table must have the columns of the model; it lacks 'x'"),
        (GOOD[["x", "city"]], "it lacks 'n'"),
        (GOOD.rename(columns={"city": "citty"}), r"it lacks 'city'. Did you mean 'citty'\?"),
    ],
)
def test_other_columns_at_score_time_are_named(mender: CellMender, table, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mender.cell_scores(table)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"])
def test_columns_in_another_order_are_the_same_table_and_stay_in_it(mender: CellMender, kind) -> None:
    dirty = GOOD.assign(x=GOOD["x"].where(GOOD.index != 4, 900.0))
    other = dirty[["city", "n", "x"]]
    as_fitted, as_given = mender.mend(dirty, suspicion=0.5), mender.mend(kind(other), suspicion=0.5)
    assert as_given.found == as_fitted.found
    assert list(to_pandas(as_given.repaired).columns) == ["city", "n", "x"]
    pd.testing.assert_frame_equal(to_pandas(as_given.repaired), as_fitted.repaired[other.columns], check_dtype=False)
    pd.testing.assert_frame_equal(to_pandas(as_given.suspicion), as_fitted.suspicion[other.columns])
    np.testing.assert_array_equal(mender.cell_scores(kind(other))[:, 2], mender.cell_scores(dirty)[:, 0])
    np.testing.assert_array_equal(mender.row_scores(kind(other)), mender.row_scores(dirty))
    assert list(to_pandas(mender.reconstruct(kind(other))).columns) == ["city", "n", "x"]


def test_columns_that_the_model_does_not_know_are_left_as_they_are_with_a_message(mender: CellMender) -> None:
    more = GOOD.assign(x=GOOD["x"].where(GOOD.index != 4, 900.0)).assign(note="hello")[["note", "x", "city", "n"]]
    with pytest.warns(SchemaWarning, match="Not known to the model and left as it is: note"):
        mended = mender.mend(more, suspicion=0.5)
    assert (4, "x") in {(each.row, each.column) for each in mended.found}
    assert list(mended.repaired.columns) == list(mended.suspicion.columns) == list(more.columns)
    assert (mended.repaired["note"] == "hello").all()
    assert (mended.suspicion["note"] == 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_infinity_is_a_finding_in_numbers_as_in_texts(mender: CellMender, kind: str) -> None:
    dirty = GOOD.assign(x=GOOD["x"].round(3).where(GOOD.index != 4, np.inf))
    dirty = dirty if kind == "numbers" else dirty.astype({"x": str})
    for judge in (small().fit(dirty), mender):
        found = {(each.row, each.column): each for each in judge.mend(dirty, suspicion=0.5).found}
        assert found[4, "x"].reason.startswith("x is inf, which is no number")


def test_infinity_in_an_array_is_one_sentence() -> None:
    numbers = RNG.normal(size=(30, 2))
    numbers[3, 0] = np.inf
    with pytest.raises(TableError, match=r"must hold finite numbers; row 3 holds inf"):
        small().fit(numbers)


def to_pandas(table) -> pd.DataFrame:
    return table if isinstance(table, pd.DataFrame) else table.to_pandas()


def test_integers_may_come_back_as_floats_with_gaps(mender: CellMender) -> None:
    scores, _ = mender.score_rows(with_("n", GOOD["n"].astype(float).where(GOOD.index > 0)))
    np.testing.assert_array_equal(scores[1:, 2], mender.score_rows(GOOD)[0][1:, 2])
    assert scores[0, 2] == 0


def test_a_row_of_gaps_scores_zero_and_can_be_filled(mender: CellMender) -> None:
    table = GOOD.astype({"n": float})
    table.loc[4] = [np.nan, None, np.nan]
    assert mender.row_scores(table)[4] == 0
    assert mender.predict(table)[4] == 1
    assert mender.repair(table).loc[4].isna().all()
    assert mender.repair(table, impute=True).loc[4].notna().all()


def test_a_column_that_is_all_missing_at_score_time_scores_zero(mender: CellMender) -> None:
    for name in ("x", "city", "n"):
        assert (mender.cell_suspicion(with_(name, None))[name] == 0).all()


def test_counts_that_cannot_be_are_findings(mender: CellMender) -> None:
    suspicion = mender.cell_suspicion(replaced("n", 0, -3).astype({"n": float}))
    assert 0.5 < suspicion.loc[0, "n"] == suspicion.max(axis=None)


@pytest.mark.parametrize(
    ("X", "error"),
    [
        (np.zeros(5), ValueError),
        (np.zeros((2, 2, 2)), ValueError),
        ("table.csv", ValueError),
        (None, ValueError),
    ],
)
def test_what_is_no_table_is_refused(X, error) -> None:
    with pytest.raises(error):
        small().fit(X)


def test_two_rows_are_enough() -> None:
    table = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    assert small().fit(table).cell_suspicion(table).shape == (2, 2)
