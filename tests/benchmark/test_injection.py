from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rapidfuzz.distance import OSA, Levenshtein

from cellmend.benchmark.injection import AS_IT_WAS, NAMES, Injected, inject, misspelled, shifted
from cellmend.errors import InjectionError
from cellmend.table.notation import learn_notations, understand
from tests.benchmark.conftest import SCHEMA, people

NUMBERS = ("height", "weight", "reach", "income", "score", "rank")
SEEDS = st.integers(0, 2**32 - 1)
SHARES = st.floats(0.01, 1.0)


PEOPLE = people()
MISSING = [(3, "height"), (4, "city"), (5, "weight"), (6, "born")]


def errors_in(table: pa.Table = PEOPLE, *, share: float = 1.0, seed: int = 0, schema: Any = None) -> Injected:
    return inject(table, schema=SCHEMA if schema is None else schema, share=share, seed=seed)


def differs(one: pa.Table, other: pa.Table) -> NDArray[np.bool_]:
    """Which cells of two tables differ, (N, D)."""
    columns = zip(one.columns, other.columns, strict=True)
    return np.array([[a != b for a, b in zip(x.to_pylist(), y.to_pylist(), strict=True)] for x, y in columns]).T


def of_kind(errors: Injected, name: str, clean: pa.Table = PEOPLE) -> list[tuple[int, str, Any, Any]]:
    """Row, column, old and new cell of each error of a kind."""
    found = []
    for row, place in np.argwhere(errors.kinds == NAMES.index(name)).tolist():
        cells = (table.column(place)[row].as_py() for table in (clean, errors.table))
        found.append((row, clean.column_names[place], *cells))
    assert found
    return found


def as_number(cell: Any) -> float:
    return float(cell.removesuffix(" kg")) if isinstance(cell, str) else float(cell)


# ---------------------------------------------------------------- where errors get in


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(share=SHARES, seed=SEEDS)
def test_exactly_the_changed_cells_are_marked(share: float, seed: int) -> None:
    errors = errors_in(share=share, seed=seed)
    np.testing.assert_array_equal(errors.mask, differs(PEOPLE, errors.table))
    assert 1 <= errors.mask.any(axis=1).sum() <= max(1, round(share * PEOPLE.num_rows))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_missing_cells_and_columns_that_the_user_ignores_stay_as_they_are(seed: int) -> None:
    errors = errors_in(seed=seed)
    for row, name in MISSING:
        assert errors.table[name][row] == PEOPLE[name][row]
    assert errors.table["secret"].equals(PEOPLE["secret"])


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
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
    errors = errors_in(table)
    assert errors.table.schema.equals(table.schema)
    assert table.equals(before)


def test_a_dictionary_keeps_its_order() -> None:
    grades = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 20, pa.int8()), ["low", "mid", "high"], ordered=True)
    errors = errors_in(pa.table({"grade": grades}), schema={})
    assert errors.table.schema.types == [grades.type]
    assert errors.table["grade"].combine_chunks().dictionary.to_pylist() == ["low", "mid", "high"]
    assert {name for name in NAMES if (errors.kinds == NAMES.index(name)).any()} == {"level", "copied"}


def test_errors_are_spread_evenly_over_kinds_and_all_rows_get_theirs() -> None:
    errors = errors_in(people(2000), share=0.5)
    assert errors.mask.any(axis=1).sum() == 1000
    counts = np.array([(errors.kinds == number).sum() for number in range(len(NAMES))])
    np.testing.assert_allclose(counts / counts.mean(), 1.0, atol=0.1)
    in_rows = errors.mask.sum(axis=1)
    assert set(in_rows[in_rows > 0]) >= {1, 2, 3}
    assert in_rows.max() <= 6  # three swaps


def test_every_column_gets_errors_that_can_be_made_in_it() -> None:
    errors = errors_in(people(600))
    made = {
        name: {PEOPLE.column_names[d] for d in np.argwhere(errors.kinds == n)[:, 1]} for n, name in enumerate(NAMES)
    }
    texts = {"height", "weight", "reach", "city", "town", "born"}
    assert made == {
        "gaussian": {*NUMBERS, "born", "seen"},
        "level": {"city", "town", "size", "smoker"},
        "swap": {"height", "reach", "city", "town"},
        "unit": set(NUMBERS),
        "decimal": {"height", "weight", "reach", "score"},
        "typo": texts,
        "copied": set(PEOPLE.column_names) - {"secret"},
    }


def test_a_kind_that_cannot_be_made_is_left_out() -> None:
    whole = pa.table({"x": np.random.default_rng(0).integers(0, 1000, 300)})
    errors = errors_in(whole, schema={})
    assert {NAMES[number] for number in np.unique(errors.kinds) if number != AS_IT_WAS} == {
        "gaussian",
        "unit",
        "copied",
    }


def test_what_cannot_be_read_already_is_no_cell_for_an_error() -> None:
    table = pa.table({"x": [f"{each}.5" for each in range(1, 60)] + ["4400..00"]})
    for seed in range(20):
        assert errors_in(table, seed=seed, schema={}).table["x"][59].as_py() == "4400..00"


def test_a_table_without_room_for_an_error_is_refused() -> None:
    with pytest.raises(InjectionError, match="neither ignored, constant nor empty"):
        errors_in(pa.table({"x": [1, 1, 1]}), schema={"x": "category"})


def test_what_baselines_see_is_read_as_the_column_was() -> None:
    table = pa.table({"x": ["1,5 kg", "2,5 kg"] * 20, "size": pa.array(["NA", "M"] * 20).dictionary_encode()})
    weight, size = inject(table, schema={"x": "real"}, share=0.1, seed=0).targets
    for cells in (pa.array([2.5]), pa.array(["2,5 kg"]), pa.array(["2,5"]).dictionary_encode()):
        assert weight.read(cells).to_pylist() == [2.5]
    assert size.read(pa.array(["NA"])).to_pylist() == ["NA"]  # a level, since nobody read it as text


# ---------------------------------------------------------------- what they are


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_unit_errors_are_tens_or_thousands_exactly(seed: int) -> None:
    for _, _, old, new in of_kind(errors_in(seed=seed), "unit"):
        assert any(as_number(new) == pytest.approx(as_number(old) * f, rel=1e-12) for f in (10, 1000, 0.1, 0.001))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_a_shifted_point_keeps_the_digits(seed: int) -> None:
    for _, _, old, new in of_kind(errors_in(seed=seed), "decimal"):
        before, after = (f"{as_number(cell):.2f}".replace(".", "").strip("0") for cell in (old, new))
        assert before == after
        assert as_number(old) != as_number(new)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_a_swap_exchanges_two_cells_of_a_row(seed: int) -> None:
    by_row: dict[int, dict[str, tuple[Any, Any]]] = {}
    for row, column, old, new in of_kind(errors_in(seed=seed), "swap"):
        by_row.setdefault(row, {})[column] = old, new
    pairs = [{"height", "reach"}, {"city", "town"}]
    for cells in by_row.values():
        for column, (old, new) in cells.items():
            (other,) = next(pair for pair in pairs if column in pair) - {column}
            assert cells[other] == (new, old)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_a_typo_is_one_slip(seed: int) -> None:
    for _, _, old, new in of_kind(errors_in(seed=seed), "typo"):
        assert OSA.distance(old, new) == 1
        assert Levenshtein.distance(old, new) <= 2


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_a_copied_cell_is_that_of_the_row_above(seed: int) -> None:
    for row, column, _, new in of_kind(errors_in(seed=seed), "copied"):
        assert new == PEOPLE[column][row - 1].as_py()
        assert row > 0


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_a_level_becomes_another_of_its_column(seed: int) -> None:
    for _, column, _, new in of_kind(errors_in(seed=seed), "level"):
        assert new in PEOPLE[column].to_pylist()


def test_noise_has_five_standard_deviations() -> None:
    clean = pa.table({"x": np.random.default_rng(0).normal(10, 2, 20_000)})
    made = np.array([new - old for _, _, old, new in of_kind(errors_in(clean, schema={}), "gaussian", clean)])
    assert made.std() == pytest.approx(10, rel=0.05)
    assert made.mean() == pytest.approx(0, abs=0.5)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_numbers_keep_the_resolution_and_the_writing_of_their_column(seed: int) -> None:
    errors = errors_in(seed=seed)
    decimals = {"height": 1, "weight": 2, "reach": 1, "income": 0, "score": 2, "rank": 0}
    for name in ("gaussian", "unit", "decimal"):
        for _, column, _, new in of_kind(errors, name):
            if column in decimals:
                assert as_number(new) == round(as_number(new), decimals[column])
                assert str(new).endswith(" kg") == (column == "weight")
            if column == "rank":
                assert new >= 0


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_a_typo_in_a_number_leaves_no_more_decimals_than_its_column_has(seed: int) -> None:
    numbers = pa.table({"x": [f"{each / 100:.2f}" for each in range(100, 300)]})
    for _, _, _, new in of_kind(errors_in(numbers, seed=seed, schema={"x": "real"}), "typo", numbers):
        try:
            assert float(new) == round(float(new), 2)
        except ValueError:
            continue  # no number any more


def test_dates_with_noise_have_the_same_form_zone_and_time_of_day() -> None:
    for _, column, old, new in of_kind(errors_in(people(600)), "gaussian", people(600)):
        if column == "born":
            assert datetime.datetime.strptime(new, "%d.%m.%Y")
        if column == "seen":
            assert str(new.tzinfo) == "Europe/Rome"
            assert (new.time(), new.date() != old.date()) == (old.time(), True)


def test_a_small_type_gets_no_number_that_it_cannot_hold() -> None:
    table = pa.table({"x": pa.array(np.arange(-120, 120, 2) % 97, pa.int8())})
    for _, _, old, new in of_kind(errors_in(table, schema={"x": "real"}), "unit", table):
        assert new in (10 * old, old / 10)


@pytest.mark.parametrize(
    ("text", "how", "where", "what", "expected"),
    [
        ("Rome", 0.0, 0.0, 0.0, "Aome"),  # changed, and still large
        ("Rome", 0.1, 0.99, 0.99, "Romz"),
        ("Rome", 0.3, 0.0, 0.0, "ome"),  # dropped
        ("Rome", 0.6, 0.5, 0.0, "Romme"),  # doubled
        ("Rome", 0.9, 0.0, 0.0, "oRme"),  # exchanged with the next
        ("3.18", 0.6, 0.25, 0.0, "3..18"),
        ("3.18", 0.0, 0.0, 0.99, "x.18"),  # a letter for a digit
    ],
)
def test_misspellings_by_hand(text: str, how: float, where: float, what: float, expected: str) -> None:
    assert misspelled(text, how, where, what) == expected


@pytest.mark.slow
@given(text=st.text(min_size=1, max_size=12), draws=st.tuples(*[st.floats(0, 1, exclude_max=True)] * 3))
def test_any_text_can_be_misspelled(text: str, draws: tuple[float, float, float]) -> None:
    assert OSA.distance(text, misspelled(text, *draws)) <= 1


def test_shifts_by_hand() -> None:
    numbers = np.array([3.18, 3.1, 0.0, 250.0, np.nan])
    # To the left only 3.10 and 250.00 keep two decimals; nothing can be done with 0.
    np.testing.assert_array_equal(
        shifted(np.random.default_rng(0), numbers, (-1,), 2), [np.nan, 0.31, np.nan, 25.0, np.nan]
    )
    np.testing.assert_array_equal(
        shifted(np.random.default_rng(0), numbers, (3,), 2), [3180.0, 3100.0, np.nan, 250_000.0, np.nan]
    )
