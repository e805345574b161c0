"""What the network says of cells, as figures: bounded by what its rows can tell, and by how odd others are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cellmend.model.voice import Voice
from cellmend.posterior.priors import FARTHEST
from cellmend.posterior.weigher import NETWORK


def voice(log_odds: list[float], alone: list[float]) -> Voice:
    """Of one column."""
    seen = np.ones((len(alone), 1), dtype=bool)
    odds, ratio = (np.array(each, dtype=float)[:, None] for each in (log_odds, alone))
    return Voice(odds, ratio, seen, seen)


def figure(said: np.ndarray, name: str) -> np.ndarray:
    return said[:, 0, NETWORK.index(name)]


def figures(of: Voice, rate: float, rows: int) -> np.ndarray:
    return of.figures(of.tails, [rate], rows)


def test_no_network_is_surer_than_its_rows_allow() -> None:
    """Ten cells as odd as each other, 1,000 rows: p0 / (p + 3 p0 / 1000), which nothing brings above 1,000 to three."""
    of = voice([0.0, *[20.0] * 10], [5.0, *[-20.0] * 10])
    ratio, island = figure(figures(of, rate=0.01, rows=999), "ratio")[1], of.tails.islands(np.array([[math.log(21)]]))
    p, p0 = 1.0, math.exp(20.0) / 0.01
    assert ratio == pytest.approx(math.log(p0 / (p + 3 * p0 / (1000 * math.exp(island[0, 0])))))


def test_what_the_network_expects_is_excused_as_far_as_it_says() -> None:
    said = figures(voice([-6.0, -8.0], [9.0, 3.0]), rate=0.01, rows=10**6)
    np.testing.assert_allclose(figure(said, "ratio"), np.array([-6.0, -8.0]) - math.log(0.01), rtol=1e-4)


def test_figures_are_bounded_and_silent_where_nothing_stands() -> None:
    loud = voice([500.0, 0.0], [-500.0, 0.0])
    mute = Voice(loud.log_odds, loud.alone, np.array([[True], [False]]), loud.usual)
    said = figures(mute, rate=0.0, rows=10)
    assert np.abs(said).max() <= 2 * FARTHEST
    assert not said[1].any()


def test_what_is_odd_more_often_in_a_newer_table_is_natural_there() -> None:
    """Of 100 cells none was odd; all 50 newer ones are, as where dates go on: nothing is left of the ratio but that of
    the one that lies far beyond the others."""
    older = voice([-5.0] * 100, [5.0] * 100)
    newer = voice([20.0] * 50, [*[-20.0] * 49, -(10.0**4)])
    told = figure(newer.figures(older.tails, [0.01], 100, newer=True), "ratio")
    untold = figure(newer.figures(older.tails, [0.01], 100), "ratio")
    assert told[0] < 1.5 < 6 < untold[0]
    assert told[-1] > 6


def test_the_table_that_was_learned_is_no_newer_one() -> None:
    of = voice([0.0, *[20.0] * 10], [5.0, *[-20.0] * 10])
    np.testing.assert_array_equal(of.figures(of.tails, [0.01], 11, newer=True), figures(of, rate=0.01, rows=11))
