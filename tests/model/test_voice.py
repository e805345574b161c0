"""What the network says of cells, as figures: bounded by what its rows can tell, and by how odd others are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cellmend.model.columns import EncodedColumn
from cellmend.model.voice import Voice
from cellmend.posterior.priors import FARTHEST
from cellmend.posterior.weigher import FIGURE_UNIT, NETWORK


class Plain:
    """A column of numbers."""

    levels = ()


def voice(log_odds: list[float], alone: list[float]) -> Voice:
    """Of one column."""
    seen = np.ones((len(alone), 1), dtype=bool)
    odds, ratio = (np.array(each, dtype=float)[:, None] for each in (log_odds, alone))
    return Voice(odds, ratio, np.zeros_like(odds), seen, seen)


def figure(said: np.ndarray, name: str) -> np.ndarray:
    return FIGURE_UNIT * said[:, 0, NETWORK.index(name)]


def figures(of: Voice, rate: float, rows: int) -> np.ndarray:
    column: EncodedColumn = Plain()  # type: ignore[assignment]
    return of.figures(of.tails, [column], [rate], rows)


def test_no_network_is_surer_than_its_rows_allow() -> None:
    """Ten cells as odd as each other, none an island: 1,000 rows tell no more than 1,000 to one, however odd."""
    said = figures(voice([0.0, *[20.0] * 10], [5.0, *[-20.0] * 10]), rate=0.01, rows=999)
    ratio = figure(said, "ratio")[1:]
    island = figure(said, "island")[1:]
    assert (ratio < math.log(1000) + island).all()
    assert figure(said, "log_odds")[1] == pytest.approx(20.0)


def test_what_the_network_expects_is_excused_as_far_as_it_says() -> None:
    said = figures(voice([-6.0, -8.0], [9.0, 3.0]), rate=0.01, rows=100)
    np.testing.assert_allclose(figure(said, "ratio"), np.array([-6.0, -8.0]) - math.log(0.01), rtol=1e-6)


def test_figures_are_bounded_and_silent_where_nothing_stands() -> None:
    loud = voice([500.0, 0.0], [-500.0, 0.0])
    mute = Voice(loud.log_odds, loud.alone, loud.log_clean, np.array([[True], [False]]), loud.usual)
    said = figures(mute, rate=0.0, rows=10)
    assert np.abs(said).max() <= 2 * FARTHEST
    assert not said[1].any()
