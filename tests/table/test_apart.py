"""Numbers far off all others of their column."""

from __future__ import annotations

import numpy as np
import pytest

from cellmend.table.causes.apart import Apart, learn_apart
from cellmend.table.causes.numbers import learn_number_causes


def far_off(numbers: np.ndarray) -> list[float]:
    found = [cause for cause in learn_number_causes(np.asarray(numbers, float)) if isinstance(cause, Apart)]
    return sorted(number for cause in found for number in cause.judge(np.unique(np.asarray(numbers, float))))


def few(levels: list[float], rows: int = 300) -> np.ndarray:
    return np.random.default_rng(0).choice(levels, rows)


@pytest.mark.parametrize(
    ("levels", "odd"),
    [
        (list(range(1, 11)), [300.0]),
        ([0.0, 5.0, 10.0], [500.0]),
        ([0.0, 1.0], [2.0]),
        ([5.0, 6.0, 7.0], [-9999.0]),
        ([1.5, 2.5], [-40.0, 90.0]),
    ],
)
def test_a_number_far_off_few_levels_is_found(levels: list[float], odd: list[float]) -> None:
    assert far_off(np.append(few(levels), odd)) == odd
    assert far_off(few(levels)) == []


def test_more_than_everything_is_found_where_percentages_end() -> None:
    rates = np.clip(np.random.default_rng(1).normal(75, 18, 700), 5, 100).round()
    assert far_off(np.append(rates, 118.0)) == [118.0]
    assert far_off(np.append(np.random.default_rng(1).normal(75, 12, 700).round(), 118.0)) == []


def test_numbers_of_another_world_are_found_in_any_column() -> None:
    numbers = np.random.default_rng(2).uniform(1, 100, 80)
    assert far_off([*numbers, 1e30, 2.0**63]) == [2.0**63, 1e30]


def test_a_sentinel_is_found_however_often_it_stands() -> None:
    numbers = np.random.default_rng(3).normal(20, 5, 300).round(1)
    assert far_off([*numbers, *[-9999.0] * 40]) == [-9999.0]


@pytest.mark.parametrize("seed", range(5))
def test_natural_tails_are_not_far_off(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for numbers in (
        rng.lognormal(0, 2, 500),
        rng.geometric(0.3, 500),
        rng.zipf(2.0, 500),
        rng.pareto(1.0, 500),
        rng.standard_t(2, 500),
        rng.integers(0, 3, 500),
    ):
        assert far_off(numbers) == []


def test_few_numbers_do_not_tell_where_a_column_ends() -> None:
    assert learn_apart(np.array([1.0, 2.0, 300.0]), np.array([5, 5, 1])) is None
