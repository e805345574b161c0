from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cellmend.table.frames import read_frame
from cellmend.table.packing import pack, unpack
from cellmend.table.reader import TableReader
from cellmend.table.relations.order import Order
from cellmend.table.relations.sequences import Series, learn_sequences
from cellmend.table.relations.tails import Tail

ROWS = 2000


def log(rows: int = ROWS) -> pd.DataFrame:
    """A slow wave with a little noise, white noise, a counter and a state, each minute."""
    random, minutes = np.random.default_rng(0), np.arange(rows)
    return pd.DataFrame(
        {
            "time": pd.Timestamp("2024-03-01") + pd.to_timedelta(minutes, "min"),
            "oil": (70 + 5 * np.sin(minutes / 200) + random.normal(0, 0.1, rows)).round(2),
            "noise": random.normal(0, 1, rows).round(3),
            "energy": (np.cumsum(random.gamma(2, 0.5, rows)) + 100).round(2),
            "valve": np.where(minutes // 97 % 2, 100, 0),
        }
    )


def series(table: pd.DataFrame) -> tuple[list[Series], dict[str, dict[int, tuple[float, ...]]]]:
    """What was learned, and for each column the rows that are rather wrong than not, with what was meant."""
    reader, read = TableReader.fit(read_frame(table), None)
    learned = learn_sequences(read, reader.schema)
    clear = reader.read(read_frame(table), rows_alone=True)
    found = {
        each.quantity.name: {
            s.row: tuple(float(text) for text in s.meant) for s in each.suspects(clear) if s.suspicion >= 0.5
        }
        for each in learned
        if not each.quantity.is_date
    }
    return learned, found


def test_slow_signals_and_counters_are_sequences_and_noise_and_states_are_not() -> None:
    learned, found = series(log())
    assert [each.words() for each in learned] == [
        "time rises from row to row",
        "oil changes slowly from row to row",
        "energy rises from row to row",
    ]
    assert sum(len(rows) for rows in found.values()) <= 3


def test_a_spike_is_found_and_repaired_from_its_neighbours() -> None:
    table = log()
    true = table.loc[500, "oil"]
    table.loc[500, "oil"] = 78.0
    found = series(table)[1]["oil"]
    assert found[500][0] == pytest.approx(true, abs=0.5)
    assert not {498, 499, 501, 502} & set(found)


def test_a_stuck_sensor_is_found_but_for_its_first_cell_and_not_repaired() -> None:
    table = log()
    table.loc[700:760, "oil"] = table.loc[700, "oil"]
    found = series(table)[1]["oil"]
    assert set(range(701, 761)) <= set(found)
    assert 700 not in found
    assert found[730] == ()


def test_a_shifted_block_is_found_and_shifted_back() -> None:
    table = log()
    true = table["oil"].copy()
    table.loc[900:960, "oil"] += 3.0
    found = series(table)[1]["oil"]
    assert set(range(900, 961)) <= set(found)
    assert np.mean([abs(found[row][0] - true[row]) for row in range(900, 961)]) < 0.3


def test_a_counter_that_falls_back_is_found() -> None:
    table = log()
    true = table.loc[1200, "energy"]
    table.loc[1200, "energy"] -= 4.0
    found = series(table)[1]["energy"]
    assert found[1200][0] == pytest.approx(true, abs=3.0)


def test_a_counter_that_starts_anew_is_none_that_falls_back() -> None:
    table = log()
    table.loc[1000:, "energy"] -= table.loc[1000, "energy"]
    assert len(series(table)[1]["energy"]) == 0


def test_a_doubled_time_is_found() -> None:
    table = log()
    table.loc[300, "time"] = table.loc[299, "time"]
    found = [s for s in TableReader.fit(read_frame(table), None)[1].suspects if s.column == 0 and s.suspicion >= 0.5]
    assert [(s.row, s.meant) for s in found] == [(300, ("2024-03-01 05:00:00",))]


def test_of_dates_the_neighbours_are_named_as_the_column_writes_them() -> None:
    table = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=400).strftime("%Y-%m-%d"), "oil": log(400)["oil"]})
    table.loc[30, "day"] = "2026-01-31"
    _, read = TableReader.fit(read_frame(table), None)
    (found,) = (each for each in read.suspects if each.row == 30 and each.cause == Series.kind)
    assert "2024-01-30 and 2024-02-01" in found.reason


def test_rows_of_several_devices_and_shuffled_rows_are_put_in_order() -> None:
    a, b = log(1000), log(1000)
    b["oil"] += 40
    both = pd.concat([a.assign(device="a"), b.assign(device="b")]).sample(frac=1, random_state=0).reset_index(drop=True)
    learned, found = series(both)
    assert {each.order for each in learned} == {Order("time", "device")}
    assert "oil" in found


def test_shuffled_rows_without_a_time_and_sorted_rows_are_no_sequences() -> None:
    table = log().drop(columns="time")
    assert series(table.sample(frac=1, random_state=0).reset_index(drop=True))[0] == []
    assert series(table[["noise", "valve"]].sort_values("noise").reset_index(drop=True))[0] == []


def test_sequences_keep_silent_where_rows_are_judged_alone() -> None:
    table = log()
    table.loc[500, "oil"] = 78.0
    reader, read = TableReader.fit(read_frame(table), None)
    assert [s.row for s in read.suspects if s.cause == "sequence" and read.names[s.column] == "oil"] == [500]
    alone = reader.read(read_frame(table), rows_alone=True)
    assert [s for s in alone.suspects if s.cause == "sequence"] == []


def test_a_series_survives_json() -> None:
    for each in series(log())[0]:
        assert unpack(Series, json.loads(json.dumps(pack(each)))) == each


def test_values_in_a_heavy_tail_are_more_usual_than_beside_a_gaussian() -> None:
    random = np.random.default_rng(0)
    light, heavy = (Tail.of(np.abs(each)) for each in (random.normal(size=20_000), random.standard_t(2, 20_000)))
    far = np.array([12.0])
    assert light.log_beyond(far)[0] < -12
    assert heavy.log_beyond(far)[0] > -9
