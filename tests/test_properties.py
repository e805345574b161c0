"""Random small tables of all kinds: nothing crashes, and shape, types and unflagged cells survive."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cellmend import CellMender, SchemaError, SchemaWarning, load
from cellmend.settings import LEAST_FLAGGED
from tests.conftest import SMALL

cell_kinds = st.sampled_from(
    [
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(-10, 10).map(lambda value: round(value, 2)),
        st.integers(-(2**63), 2**63 - 1),
        st.integers(0, 6),
        st.integers(1, 4),
        st.booleans(),
        st.sampled_from(["red", "green", "blue", ""]),
        st.text(max_size=4),
        st.sampled_from([1, "one", 2.5]),
    ]
)


@st.composite
def tables(draw) -> pd.DataFrame:
    rows = draw(st.integers(2, 25))
    columns = {}
    for number in range(draw(st.integers(1, 5))):
        cells = draw(cell_kinds)
        optional = cells | st.none() if draw(st.booleans()) else cells
        columns[f"column {number}"] = draw(st.lists(optional, min_size=rows, max_size=rows))
    return pd.DataFrame(columns)


def converted(table: pd.DataFrame, kind: str):
    """Other kinds of table cannot hold mixed columns: those go as text."""
    if kind == "pandas":
        return table
    plain = {}
    for name, column in table.items():
        try:
            plain[name] = pa.array(column, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            plain[name] = pa.array([None if pd.isna(value) else str(value) for value in column])
    return pa.table(plain) if kind == "pyarrow" else pl.DataFrame(pa.table(plain))


def as_rows(table) -> list[list[object]]:
    frame = table if isinstance(table, pd.DataFrame) else pa.table(table).to_pandas()
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.itertuples(index=False)]


def types_of(table) -> list[object]:
    return list(table.dtypes) if isinstance(table, pd.DataFrame) else list(pa.table(table).schema.types)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    table=tables(),
    kind=st.sampled_from(["pandas", "polars", "pyarrow"]),
    weights=st.sampled_from(["coordinate", "amortized", "none"]),
    method=st.sampled_from(["map", "one-stage", "two-stage", "hidden"]),
    networks=st.sampled_from([1, 3]),
)
def test_any_table_survives(
    table: pd.DataFrame, kind: str, weights: str, method: str, networks: int, tmp_path_factory
) -> None:
    given_table = converted(table, kind)
    ours = {"hide": 0.0 if weights == "amortized" else 0.5, "networks": networks if method == "hidden" else 1}
    ours |= {"kl_weight": 1.0 if method in ("one-stage", "two-stage") else 0.0}
    mender = CellMender(**SMALL | {"epochs": 1, "weights": weights, "repair_method": method} | ours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        try:
            mender.fit(given_table)
        except SchemaError as error:
            if "every column is" not in str(error):
                raise
            return
    before = as_rows(given_table)
    missing = np.array([[cell is None for cell in row] for row in before])

    suspicion = np.array(as_rows(mender.cell_suspicion(given_table)), dtype=float)
    assert suspicion.shape == missing.shape
    assert ((suspicion >= 0) & (suspicion <= 1)).all()
    assert (suspicion[missing] == 0).all()
    assert np.isfinite(mender.cell_scores(given_table)).all()
    assert np.isfinite(mender.row_scores(given_table)).all()

    repaired = mender.repair(given_table)
    assert types_of(repaired) == types_of(given_table)
    after = as_rows(repaired)
    for row, scores in enumerate(suspicion):
        for column, score in enumerate(scores):
            if score < LEAST_FLAGGED:
                assert after[row][column] == before[row][column]
    assert as_rows(given_table) == before

    findings = mender.findings(given_table, suspicion=LEAST_FLAGGED)
    assert len(findings) == (suspicion >= LEAST_FLAGGED).sum()

    path = tmp_path_factory.mktemp("property") / "m.cellmend"
    mender.save(path)
    np.testing.assert_array_equal(load(path).cell_scores(given_table), mender.cell_scores(given_table))
