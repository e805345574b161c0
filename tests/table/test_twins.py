"""Rows that say nearly the same."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from cellmend.table.readtable import read_typed
from cellmend.table.twins import Twins, find_twins

CITIES = np.array(["Ulm", "Bonn", "Graz", "Bern", "Lyon", "Oslo"])


def people(rows: int = 500) -> pd.DataFrame:
    random = np.random.default_rng(0)
    city = random.integers(0, 6, rows)
    return pd.DataFrame(
        {
            "nr": np.arange(rows),
            "first": random.choice([f"first{each}" for each in range(40)], rows),
            "last": random.choice([f"last{each}" for each in range(120)], rows),
            "city": CITIES[city],
            "code": 100 + city,  # which says no more than the city
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(random.integers(0, 20_000, rows), "D"),
            "salary": random.integers(2000, 9000, rows),
        }
    )


def test_people_who_stand_twice_are_told_with_what_differs() -> None:
    table = people()
    again = table.iloc[[7, 80, 300]].assign(nr=[500, 501, 502])
    again.iloc[0, 1] = "fisrt7"
    again.iloc[1, 6] = 1
    found = find_twins(read_typed(pd.concat([table, again], ignore_index=True)))
    assert found == [Twins((7, 500), ("first",)), Twins((80, 501), ("salary",)), Twins((300, 502), ())]


def test_of_three_alike_rows_each_is_told_once() -> None:
    table = people()
    found = find_twins(read_typed(pd.concat([table, table.iloc[[7, 7]]], ignore_index=True)))
    assert [each.rows for each in found] == [(7, 500), (7, 501)]


def test_rows_that_are_alike_by_nature_are_not_told() -> None:
    assert find_twins(read_typed(people())) == []
    few = people()[["nr", "city", "code"]].assign(kind=np.arange(500) % 3, size=np.arange(500) % 2)
    assert find_twins(read_typed(few)) == []
    of_one = people().drop(columns=["born", "salary"]).loc[np.repeat(np.arange(100), 5)].reset_index(drop=True)
    measured = of_one.assign(nr=np.arange(500), measure=np.tile(np.arange(5), 100))  # five measures of each person
    assert find_twins(read_typed(measured)) == []


def test_columns_of_lists_are_passed_over() -> None:
    table = people()
    table.loc[300, table.columns[1:]] = table.loc[7, table.columns[1:]]
    assert (
        find_twins(read_typed(table.assign(tags=[[nr] for nr in table["nr"]]))) == find_twins(read_typed(table)) != []
    )


def test_tables_without_columns_that_tell_have_none() -> None:
    assert find_twins(read_typed(pd.DataFrame({"a": range(30), "b": [1] * 30}))) == []


def test_the_work_grows_with_the_rows_and_not_with_their_pairs() -> None:
    table = read_typed(people(40_000))
    start = time.perf_counter()
    find_twins(table)
    assert time.perf_counter() - start < 5
