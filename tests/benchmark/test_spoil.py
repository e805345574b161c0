"""What `benchmarks/prior/spoil.py` does to tables."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

CELLS = {
    "street": ["Saint Mary's Street, North-West", "Café Straße & Sons", "Old Mill Road", "University of Bonn"],
    "open": ["yes", "no", "Yes", "male"],
    "born": ["2014-03-05", "12/24/1999", "5 Mar 2001", "2021/10/07 12:30:00"],
    "price": ["12,345.60", "-0.25", "1007.50", "0.75"],
    "count": ["12", "5", "2087", "00341"],
    "mail": ["ann.lee@home.org", "bo@work.com", "c.d@home.org", "eve@work.co.uk"],
    "town": ["Rome", "Oslo", "Lima", "Bonn"],
    "country": ["Italy", "Norway", "Peru", "Germany"],
    "gap": ["x1", "", " ", "y2"],
}


@pytest.fixture
def module(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(pytestconfig.rootpath)
    return importlib.import_module("benchmarks.prior.spoil")


@pytest.fixture
def table() -> pd.DataFrame:
    order = np.random.default_rng(0).integers(0, 4, 60)
    return pd.DataFrame({name: np.array(cells, object)[order] for name, cells in CELLS.items()}, dtype=object)


def differs(a: pd.DataFrame, b: pd.DataFrame) -> np.ndarray:
    return a.to_numpy(object) != b.to_numpy(object)


def test_same_seed_same_result(module: Any, table: pd.DataFrame) -> None:
    first, second = (
        [module.spoil(table, rng) for _ in range(5)] for rng in (np.random.default_rng(3), np.random.default_rng(3))
    )
    for one, other in zip(first, second, strict=True):
        pd.testing.assert_frame_equal(one.dirty, other.dirty)
        np.testing.assert_array_equal(one.kind, other.kind)


def test_marked_cells_are_those_that_differ(module: Any, table: pd.DataFrame) -> None:
    rng, before, clean = np.random.default_rng(0), table.copy(), 0
    families = np.array([0, *(1 + module.FAMILIES.index(kind.family) for kind in module.KINDS.values())])
    for _ in range(150):
        spoiled = module.spoil(table, rng)
        wrong = differs(spoiled.dirty, table)
        np.testing.assert_array_equal(wrong, spoiled.kind > 0)
        np.testing.assert_array_equal(spoiled.family, families[spoiled.kind])
        assert spoiled.clean is table
        assert not wrong[table.apply(lambda column: column.str.strip() == "").to_numpy()].any()
        assert all(text.strip() for text in spoiled.dirty.to_numpy(object)[wrong])
        clean += not wrong.any()
    pd.testing.assert_frame_equal(table, before)
    assert 5 <= clean <= 40


@pytest.mark.slow
def test_every_kind_changes_something(module: Any, table: pd.DataFrame) -> None:
    assert len(module.KINDS) >= 60
    assert {kind.family for kind in module.KINDS.values()} == set(module.FAMILIES)
    for name in module.KINDS:
        rng = np.random.default_rng(1)
        results = [module.spoil(table, rng, without=set(module.KINDS) - {name}) for _ in range(4)]
        found = {int(mark) for spoiled in results for mark in np.unique(spoiled.kind)} - {0}
        assert found == {1 + list(module.KINDS).index(name)}, name


def test_without_is_obeyed(module: Any, table: pd.DataFrame) -> None:
    rng, names = np.random.default_rng(2), list(module.KINDS)
    for _ in range(40):
        spoiled = module.spoil(table, rng, without=("spelling", "nines"))
        assert not (spoiled.family == 1 + module.FAMILIES.index("spelling")).any()
        assert not (spoiled.kind == 1 + names.index("nines")).any()
    with pytest.raises(ValueError, match="spellling"):
        module.spoil(table, rng, without=("spellling",))


def test_some_mistakes_recur(module: Any, table: pd.DataFrame) -> None:
    """Of columns with nothing but placeholders, some have one word only, and some have more."""
    rng, alone = np.random.default_rng(4), []
    for _ in range(60):
        spoiled = module.spoil(table, rng, without=set(module.KINDS) - {"unknown"})
        for own, marks in zip(spoiled.dirty.to_numpy(object).T, spoiled.kind.T, strict=True):
            if (marks > 0).sum() > 3:
                alone.append(len(set(own[marks > 0])) == 1)
    assert 2 <= sum(alone) <= len(alone) - 2


def test_a_table_without_cells_stays(module: Any) -> None:
    rng = np.random.default_rng(0)
    for empty in (
        pd.DataFrame({"a": []}, dtype=object),
        pd.DataFrame({"a": ["", " "], "b": [None, "\t"]}, dtype=object),
    ):
        for _ in range(10):
            assert not module.spoil(empty, rng).kind.any()
