"""What a column of numbers says about one of them."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from cellmend.posterior.amounts import FEWEST, Amounts
from tests.posterior.test_known import known_of

TWENTIES = [f"{value:.1f}" for value in np.linspace(20, 29, 60)]


def figures(column: list[str], text: str) -> dict[str, float]:
    return dict(zip(Amounts.names, Amounts().of(known_of(column), pa.array([text]))[0].tolist(), strict=True))


@pytest.mark.parametrize("factor", [0.001, 0.01, 0.1, 10, 100, 1000])
def test_a_number_whose_point_was_moved_would_be_at_home_with_it_moved_back(factor: float) -> None:
    moved = f"{25 * factor:.10g}"
    wrong, right = figures([*TWENTIES, moved], moved), figures([*TWENTIES, moved], "25.0")
    assert wrong["if_point_moved"] > 2
    assert right["if_point_moved"] <= 0
    assert wrong["if_point_moved"] > wrong["if_sign_changed"]


def test_a_number_with_the_other_sign_would_be_at_home_with_its_own() -> None:
    column = [*TWENTIES, "-25.0"]
    wrong, right = figures(column, "-25.0"), figures(column, "25.0")
    assert wrong["if_sign_changed"] > 2
    assert right["if_sign_changed"] < 0
    assert (wrong["negative"], right["negative"]) == (1, 0)
    assert wrong["share_negative"] == pytest.approx(math.log(0.5 / 61.5))  # no other one is below 0
    assert right["share_negative"] == pytest.approx(math.log(59.5 / 61.5))


@pytest.mark.parametrize("unit", [2.54, 1 / 2.54, 1.609344, 0.45359237, 60.0])
def test_a_number_in_another_unit_would_be_at_home_in_that_of_the_others(unit: float) -> None:
    other = repr(25 * unit)
    assert figures([*TWENTIES, other], other)["if_other_unit"] > 2


def test_a_column_of_fewer_than_eight_numbers_says_nothing() -> None:
    assert FEWEST == 8
    few, enough = [str(value) for value in range(1, 8)], [str(value) for value in range(1, 9)]
    assert not np.any(list(figures([*few, "x", "y", "z"], "7000").values()))
    assert np.any(list(figures(enough, "7000").values()))


def test_a_text_that_is_no_number_is_told_nothing() -> None:
    assert not np.any(list(figures(TWENTIES, "abc").values()))


def test_numbers_farther_out_are_farther_out_and_lonelier() -> None:
    column = [*TWENTIES, "60", "90"]
    near, far, farther = (figures(column, text) for text in ("25.0", "60", "90"))
    assert abs(near["far"]) < far["far"] < farther["far"]
    assert near["tail"] > far["tail"] > farther["tail"]
    assert near["density"] > far["density"]
    assert far["gap"] > near["gap"]
    assert figures([*TWENTIES, "-60"], "-60")["far"] < 0


def test_the_density_is_the_share_of_other_cells_nearby() -> None:
    """Middle 50, quarters 25 and 75 of 0 to 100, and 5 and 95: a width of 50 / 1.349 = 37.06 against 90 / 3.29 = 27.4,
    so that a window of a tenth holds 3.7 to each side, 7 numbers, of which 6 are others."""
    column = [str(value) for value in range(101)]
    found = figures(column, "50")
    assert found["density"] == pytest.approx(np.log(6.5 / 101.5))
    assert found["tail"] == pytest.approx(np.log(50.5 / 101.5))
    assert figures(column, "80")["far"] == pytest.approx(np.arcsinh(30 / (50 / 1.349) / 2))


def test_zeros_whole_and_round_numbers_are_seen() -> None:
    column = [*TWENTIES, "0", "0"]
    zero, thousand, nines = figures(column, "0"), figures(column, "7000"), figures(column, "999")
    assert (zero["zero"], zero["whole"], zero["round"]) == (1, 1, 0)
    assert zero["share_zero"] == pytest.approx(math.log(1.5 / 62.5))
    assert thousand["share_zero"] == pytest.approx(math.log(59.5 / 62.5))
    assert zero["if_point_moved"] == zero["if_sign_changed"] == zero["if_other_unit"] == 0
    assert (thousand["round"], nines["nines"], thousand["nines"]) == (3, 1, 0)


@pytest.mark.parametrize("column", [["5"] * 20, ["0"] * 20, ["1e-300", "2e-300"] * 10, ["1e299", "-1e299"] * 10])
def test_figures_are_finite_whatever_the_numbers(column: list[str]) -> None:
    for text in (column[0], "0", "-3", "1e299" if column[0] == "1e299" else "8", "1e400"):
        assert np.isfinite(list(figures(column, text).values())).all()


def test_a_huge_number_among_zeros_is_no_reason_to_warn() -> None:
    figures(["0"] * 20, "1e299")


def test_dates_are_numbers_too() -> None:
    column = [f"2024-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 28, 5)]
    assert figures(column, "2094-06-01")["far"] > 3 * abs(figures(column, "2024-09-01")["far"])
