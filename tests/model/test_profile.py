from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cellmend import CellMender, load
from cellmend.model.encoding import TableEncoder
from cellmend.model.profile import Profile, differ, divergence
from cellmend.table.readtable import read_typed
from cellmend.table.schema import Column, Schema
from tests.conftest import SMALL

KINDS = {"price": "real", "calls": "count", "city": "category", "grade": "ordinal", "gain": "real"}
CITIES = ["Ulm", "Bonn", "Jena", "Kiel", "Trier", "Goslar"]


def orders(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "price": np.round(np.exp(rng.normal(8, 0.7, rows)), 2),
            "calls": rng.poisson(3, rows),
            "city": rng.choice(CITIES, rows, p=[0.03, 0.3, 0.3, 0.3, 0.05, 0.02]),
            "grade": rng.integers(1, 6, rows),
            "gain": np.where(rng.random(rows) < 0.9, 0.0, rng.normal(5000, 900, rows).round()),
        }
    )
    table["price"] = table["price"].mask(rng.random(rows) < 0.02)
    return table


def learned(rows: int = 2000, seed: int = 0) -> tuple[TableEncoder, Profile]:
    table = read_typed(orders(rows, seed))
    encoder = TableEncoder.fit(Schema(tuple(Column(name, kind) for name, kind in KINDS.items())), table)
    return encoder, Profile.learn(encoder.columns, encoder.encode(table))


@pytest.fixture(scope="module")
def mender() -> CellMender:
    return CellMender(**(SMALL | {"epochs": 1}), schema=KINDS).fit(orders(2000, 0))


@pytest.mark.parametrize("rows", [30, 300, 3000])
def test_rows_of_the_same_kind_have_not_moved(mender: CellMender, rows: int) -> None:
    assert [mender.moved_columns(orders(rows, seed)) for seed in range(1, 41)] == [{}] * 40


def test_small_tables_of_the_same_kind_differ_by_chance_only() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(30))
    alarms = [
        differ(*(rng.multinomial(size, shares).astype(float) for size in sizes))
        for sizes in ((20, 20), (50, 5000), (300, 300), (5000, 40))
        for _ in range(500)
    ]
    assert sum(alarms) == 0


def changed(seed: int = 1, rows: int = 300, **columns) -> pd.DataFrame:
    return orders(rows, seed).assign(**columns)


@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("price", lambda t: t["price"] * 2, r"of its cells lie above \d+"),
        ("price", lambda t: t["price"] / 2, r"of its cells are at most \d+"),
        ("price", lambda t: t["price"].mask(np.arange(len(t)) % 5 < 2), r"missing in 4\d % of the rows, it was in 2 %"),
        ("calls", lambda t: t["calls"] * 2, r"of its cells lie above \d+, \d+ % did then"),
        ("calls", lambda t: t["calls"] - 3, r"of its cells hold what it cannot, 0 % did then"),
        ("city", lambda t: t["city"].where(np.arange(len(t)) % 3 > 0, "Ulm"), r"Ulm is 3\d % of the cells, it was 3 %"),
        ("city", lambda t: t["city"].replace("Bonn", "Bern"), r"hold a value that it did not know, 0 % did then"),
        ("grade", lambda t: t["grade"].clip(upper=3), r"3 is \d+ % of the cells, it was \d+ %"),
        (
            "gain",
            lambda t: t["gain"].where(t["gain"] > 0, np.arange(len(t)) % 2 * 4000.0),
            r"lie above \d+, \d+ % did then",
        ),
        ("gain", lambda t: t["gain"].where(np.arange(len(t)) % 2 > 0), r"missing in 50 % of the rows, it was in 0 %"),
    ],
)
def test_a_column_that_moved_is_told_of(mender: CellMender, column: str, change, said: str) -> None:
    table = orders(300, 1)
    found = mender.moved_columns(table.assign(**{column: change(table)}))
    assert list(found) == [column]
    assert found[column].startswith(f"{column} moved since the model learned: ")
    assert pd.Series(found[column]).str.contains(said).all(), found[column]


def test_a_new_hump_is_told_of_by_its_place() -> None:
    middle = np.random.default_rng(0).uniform(0, 100, 2000)
    mender = CellMender(**(SMALL | {"epochs": 1})).fit(pd.DataFrame({"a": middle, "b": middle}))
    found = mender.moved_columns(pd.DataFrame({"a": np.where(middle < 50, 53.0, middle), "b": np.r_[middle]}))
    assert list(found) == ["a"]
    assert "of its cells" in found["a"]


def test_dates_are_told_of_as_dates() -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=400, freq="D"))
    table = pd.DataFrame({"day": days, "size": np.random.default_rng(0).normal(size=400)})
    mender = CellMender(**(SMALL | {"epochs": 1})).fit(table)
    found = mender.moved_columns(table.assign(day=days - pd.Timedelta(days=300)))
    assert list(found) == ["day"]
    assert "are at most 2024-" in found["day"]


def test_summaries_of_pieces_add_up_to_that_of_the_whole() -> None:
    encoder, summary = learned()
    cells = encoder.encode(read_typed(orders(500, 3)))
    pieces = [summary.of(cells[rows]) for rows in (slice(0, 100), slice(100, 101), slice(101, 500))]
    assert pieces[0] + pieces[1] + pieces[2] == summary.of(cells)
    assert summary.rows == 2000
    assert all(sum(c.counts) + c.missing + c.impossible == 2000 for c in summary.columns)


def test_a_summary_survives_json_and_the_model_file(mender: CellMender, tmp_path) -> None:
    _, summary = learned()
    assert Profile.from_json(json.loads(json.dumps(summary.to_json()))) == summary
    mender.save(tmp_path / "m")
    assert load(tmp_path / "m").model_.profile == mender.model_.profile
    moved = orders(300, 1).assign(price=1.0)
    assert load(tmp_path / "m").moved_columns(moved) == mender.moved_columns(moved) != {}


def test_few_new_rows_do_not_replace_a_summary_and_many_do() -> None:
    encoder, summary = learned()
    few = summary.followed_by(summary.of(encoder.encode(read_typed(orders(500, 3)))))
    many = summary.of(encoder.encode(read_typed(orders(2500, 3))))
    assert few.rows == 2000
    assert summary.followed_by(many).columns == many.columns


def test_divergence_is_symmetric_and_between_0_and_1() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.dirichlet(np.full(5, 0.3)), rng.dirichlet(np.full(5, 0.3))
        assert 0 <= divergence(one, other, 0.5) <= 1
        assert divergence(one, other, 0.5) == pytest.approx(divergence(other, one, 0.5))


def test_columns_of_gaps_alone_can_be_summed_up() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [None, None, None, None], "c": [1, 2, 3, 4]})
    mender = CellMender(**(SMALL | {"epochs": 1}), schema={"b": "real", "c": "count"}).fit(table)
    assert mender.moved_columns(table) == {}
    assert mender.moved_columns(table.assign(c=None)) == {}


def readings(first: int, rows: int, seed: int) -> pd.DataFrame:
    """Days in any order, a counter that rises, a gauge that falls, and a price."""
    rng = np.random.default_rng(seed)
    at = np.arange(first, first + rows)
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(at) // 20, unit="D")
    return pd.DataFrame(
        {
            "day": days.strftime("%Y-%m-%d"),
            "meter": 1000 + 3 * at // 2,
            "left": 9000.5 - 2 * at,
            "price": rng.normal(20, 4, rows).round(2),
        }
    )


@pytest.fixture(scope="module")
def meter() -> CellMender:
    return CellMender(**(SMALL | {"epochs": 1}), schema={"meter": "real"}).fit(readings(0, 600, 0))


def test_dates_and_counters_that_go_on_have_not_moved(meter: CellMender) -> None:
    assert meter.moved_columns(readings(600, 600, 1)) == {}
    assert meter.moved_columns(readings(300, 600, 2)) == {}  # an export of the last days
    assert meter.moved_columns(readings(6000, 300, 3)) == {}


def test_errors_far_out_do_not_hide_that_a_column_goes_on() -> None:
    first, newer = readings(0, 600, 0), readings(600, 600, 1)
    for table in (first, newer):
        table.loc[[5, 77, 300, 401, 402, 403, 404], "day"] = "2206-01-05"
    mender = CellMender(**(SMALL | {"epochs": 1}), schema={"meter": "real"}).fit(first)
    assert mender.moved_columns(newer) == {}


def test_dates_and_counters_that_fall_back_have_moved(meter: CellMender) -> None:
    assert set(meter.moved_columns(readings(-900, 600, 4))) == {"day", "meter", "left"}


def test_a_price_that_lies_beyond_all_others_has_moved(meter: CellMender) -> None:
    newer = readings(600, 600, 5)
    assert set(meter.moved_columns(newer.assign(price=100 * newer["price"]))) == {"price"}


def test_columns_that_run_on_are_known_in_the_model_file(meter: CellMender, tmp_path) -> None:
    meter.save(tmp_path / "m")
    assert load(tmp_path / "m").moved_columns(readings(600, 600, 1)) == {}
