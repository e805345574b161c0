"""What other columns of numbers, and levels, say about a number."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cellmend.posterior.curves import NAMES, Curves

ROWS = 400
OFF, MOST, TELLS, CONFIRMS, MOVED, TURNED, GROUP_OFF, GROUP_TELLS = range(len(NAMES))


def table(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Acres, the same in square metres, noise, a number that follows a level, and that level, which is no number."""
    rng = np.random.default_rng(seed)
    acres = np.exp(rng.normal(4, 1.5, ROWS))
    level = rng.integers(0, 10, ROWS)
    numbers = [acres, acres * 4046.86 * (1 + rng.normal(0, 1e-3, ROWS)), rng.normal(size=ROWS), np.exp(level / 3)]
    numbers[3] = numbers[3] * (1 + rng.normal(0, 0.02, ROWS))
    values = np.column_stack([*numbers, np.full(ROWS, np.nan)])
    return values, np.column_stack([*(np.arange(ROWS) for _ in range(4)), level])


def test_numbers_that_go_together_tell_of_each_other_and_noise_tells_nothing() -> None:
    learned = Curves.learn(*table())
    assert {(each.column, each.partner) for each in learned.curves} == {(0, 1), (1, 0)}
    assert {(each.column, each.partner) for each in learned.groups} == {(3, 4)}


def test_what_is_left_of_a_column_is_as_wide_as_the_noise_between_two() -> None:
    found = Curves.learn(*table()).curves[0]
    assert found.width == pytest.approx(1e-3, rel=0.4)  # on a logarithmic scale a thousandth is .001
    values = np.log(table()[0][:, found.column])
    assert found.tells == pytest.approx(np.log(values.std() / found.width), abs=0.2)


@pytest.mark.parametrize(("factor", "gain"), [(10.0, MOVED), (0.01, MOVED), (-1.0, TURNED)])
def test_a_number_that_was_changed_is_far_off_and_at_home_once_that_is_undone(factor: float, gain: int) -> None:
    values, codes = table()
    values[7, 0] *= factor
    figures = Curves.learn(values, codes).evidence(values, codes)
    other = MOVED + TURNED - gain
    assert abs(figures[7, 0, OFF]) > np.log1p(1000)
    assert figures[7, 0, gain] > 5 > figures[7, 0, other]
    assert abs(figures[8, 0, OFF]) < 2


def test_a_number_of_another_level_is_off() -> None:
    values, codes = table()
    values[9, 3] *= 5
    figures = Curves.learn(values, codes).evidence(values, codes)
    assert figures[9, 3, GROUP_OFF] == pytest.approx(np.log1p(np.log(5) / 0.02), abs=0.6)
    assert figures[9, 3, GROUP_TELLS] > 2


def test_the_rest_of_the_row_says_nothing_of_cells_without_numbers() -> None:
    values, codes = table()
    learned = Curves.learn(values, codes)
    values[3, 1], codes[4, 4] = np.nan, -1
    figures = learned.evidence(values, codes)
    assert not figures[3, :2].any()  # the number itself, and the one that it would tell about
    assert not figures[4, 3].any()
    assert not figures[:, [2, 4]].any()


def test_few_rows_tell_nothing() -> None:
    values, codes = table()
    assert Curves.learn(values[:20], codes[:20]) == Curves()


def test_of_two_partners_the_one_that_was_changed_blames_nobody() -> None:
    values, codes = table()
    values[:, 2] = values[:, 0] * 0.4047
    values[5, 1] *= 100
    figures = Curves.learn(values, codes).evidence(values, codes)
    assert abs(figures[5, 0, OFF]) < 2 < abs(figures[5, 0, MOST])  # the third column bears it out
    assert abs(figures[5, 1, OFF]) > 5


def test_an_extreme_row_is_confirmed_where_all_of_its_numbers_are_large() -> None:
    values, codes = table()
    values[5, :2] *= 1e4
    values[6, 0] *= 1e4
    figures = Curves.learn(values, codes).evidence(values, codes)
    assert abs(figures[5, 0, OFF]) < np.log1p(6)  # beyond all knots the curve goes straight on
    assert figures[5, 0, CONFIRMS] > 3
    assert figures[6, 0, CONFIRMS] == 0


def test_what_confirms_is_how_much_likelier_the_number_is_beside_its_partner() -> None:
    values, codes = table()
    learned = Curves.learn(values, codes)
    figures = learned.evidence(values, codes)
    off = np.expm1(np.abs(figures[:, 0, OFF]))
    expected = np.log((1 / (1 + off**2)) * np.exp(figures[:, 0, TELLS]))
    np.testing.assert_allclose(figures[:, 0, CONFIRMS], np.maximum(expected, 0), atol=1e-9)
