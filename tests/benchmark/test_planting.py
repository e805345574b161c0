from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cellmend.errors import InjectionError
from cellmend.evaluation.planting import Planted, plant
from cellmend.evaluation.vandal_kinds import NAMES
from cellmend.table.notation import learn_notations, understand
from cellmend_bench.novelty import recurring
from tests.benchmark.conftest import SCHEMA, people

SEEDS = st.integers(0, 2**32 - 1)
PEOPLE = people()
MISSING = [(3, "height"), (4, "city"), (5, "weight"), (6, "born")]


def errors_in(table: pa.Table = PEOPLE, *, share: float = 0.2, seed: int = 0, schema: Any = None) -> Planted:
    return plant(table, schema=SCHEMA if schema is None else schema, share=share, seed=seed)


def differs(one: pa.Table, other: pa.Table) -> NDArray[np.bool_]:
    """Which cells of two tables differ, (N, D)."""
    columns = zip(one.columns, other.columns, strict=True)
    return np.array([[a != b for a, b in zip(x.to_pylist(), y.to_pylist(), strict=True)] for x, y in columns]).T


def made_in(errors: Planted, column: str, clean: pa.Table = PEOPLE) -> list[tuple[str, Any, Any]]:
    """Kind, old and new cell of each error in a column."""
    place = clean.column_names.index(column)
    rows = np.flatnonzero(errors.mask[:, place]).tolist()
    kinds = [NAMES[errors.kinds[row, place]] for row in rows]
    return [
        (kind, clean[column][row].as_py(), errors.table[column][row].as_py())
        for kind, row in zip(kinds, rows, strict=True)
    ]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(share=st.floats(0.01, 0.4), seed=SEEDS)
def test_exactly_the_changed_cells_are_marked(share: float, seed: int) -> None:
    errors = errors_in(share=share, seed=seed)
    np.testing.assert_array_equal(errors.mask, differs(PEOPLE, errors.table))


@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_missing_cells_and_columns_that_the_user_ignores_stay_as_they_are(seed: int) -> None:
    errors = errors_in(seed=seed)
    for row, name in MISSING:
        assert errors.table[name][row] == PEOPLE[name][row]
    assert errors.table["secret"].equals(PEOPLE["secret"])


@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_no_cell_becomes_missing(seed: int) -> None:
    errors = errors_in(seed=seed)
    readers = learn_notations(PEOPLE, {})
    before, after = understand(PEOPLE, readers), understand(errors.table, readers)
    for name in PEOPLE.column_names:
        assert after[name].is_null().to_pylist() == before[name].is_null().to_pylist()


def test_the_same_seed_makes_the_same_errors_and_another_seed_others() -> None:
    first, again, other = (errors_in(seed=seed) for seed in (7, 7, 8))
    assert first.table.equals(again.table)
    np.testing.assert_array_equal(first.kinds, again.kinds)
    assert not first.table.equals(other.table)


def test_types_and_the_users_table_stay() -> None:
    table, before = people(), people()
    assert errors_in(table).table.schema.equals(table.schema)
    assert table.equals(before)


def test_about_the_share_asked_for_is_wrong_in_many_ways_and_half_of_it_in_habits() -> None:
    table = people(1000)
    errors = errors_in(table, share=0.05)
    filled = (table.num_columns - 1) * table.num_rows  # all but `secret`
    assert errors.mask.sum() == pytest.approx(0.05 * filled, rel=0.05)
    assert len(np.unique(errors.kinds)) > 15
    assert recurring(errors.kinds).sum() > 0.3 * errors.mask.sum()


def test_typed_columns_get_errors_that_they_can_hold() -> None:
    errors = errors_in(people(600), share=0.1)
    clean = people(600)
    for column in ("income", "score", "rank", "seen", "size", "smoker"):
        assert made_in(errors, column, clean) or column == "smoker"
    assert {new for _, _, new in made_in(errors, "size", clean)} <= {"S", "M", "L"}
    assert all(isinstance(new, int) for _, _, new in made_in(errors, "income", clean))
    assert all(str(new.tzinfo) == "Europe/Rome" for _, _, new in made_in(errors, "seen", clean))


def test_a_dictionary_keeps_its_order() -> None:
    grades = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 20, pa.int8()), ["low", "mid", "high"], ordered=True)
    errors = errors_in(pa.table({"grade": grades}), schema={})
    assert errors.table.schema.types == [grades.type]
    assert errors.table["grade"].combine_chunks().dictionary.to_pylist() == ["low", "mid", "high"]
    assert {kind for kind, _, _ in made_in(errors, "grade", pa.table({"grade": grades}))} == {"other row"}


def test_a_small_type_gets_no_number_that_it_cannot_hold() -> None:
    table = pa.table({"x": pa.array(np.arange(-120, 120, 2) % 97, pa.int8())})
    made = made_in(errors_in(table, schema={"x": "real"}), "x", table)
    assert made
    assert all(-128 <= new <= 127 for _, _, new in made)


def test_numbers_with_units_and_decimal_commas_get_the_errors_of_numbers() -> None:
    values = np.random.default_rng(0).normal(1200, 300, 300)
    table = pa.table({"price": [f"{each:.2f} €".replace(".", ",") for each in values]})
    made = {kind: (old, new) for kind, old, new in made_in(errors_in(table, schema={}), "price", table)}
    assert {"sign", "decimal point", "other unit", "outlier"} <= set(made)
    old, new = made["sign"]
    assert new == f"-{old}"
    old, new = made["decimal point"]
    assert new.endswith(" €")
    assert set(old.removesuffix(" €").strip("0").replace(",", "")) >= set(new.removesuffix(" €").replace(",", "")) - {
        "0"
    }


def test_what_reads_as_before_is_no_error() -> None:
    table = pa.table({"x": [f"{each / 100:.2f}" for each in np.random.default_rng(0).integers(1000, 9999, 300)]})
    assert "spaces" not in {kind for kind, _, _ in made_in(errors_in(table, schema={"x": "real"}), "x", table)}


def test_what_cannot_be_read_already_is_no_cell_for_an_error() -> None:
    table = pa.table({"x": [f"{7 * each % 59}.5" for each in range(1, 60)] + ["4400..00"]})
    for seed in range(5):
        assert errors_in(table, seed=seed, schema={}).table["x"][59].as_py() == "4400..00"


def test_columns_of_lists_are_left_alone() -> None:
    table = people().append_column("tags", pa.array([["a"]] * 90))
    assert errors_in(table).table["tags"].equals(table["tags"])


def test_a_table_without_room_for_an_error_is_refused() -> None:
    with pytest.raises(InjectionError, match="neither ignored, constant nor empty"):
        errors_in(pa.table({"x": [True, True, True]}), schema={"x": "category"})
