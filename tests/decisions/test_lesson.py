"""What a lesson learns from: decided cells, cells like them, and some that nobody decided."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cellmend.decisions.judged import Judged
from cellmend.decisions.lesson import OTHERS, SPREAD, START, Example, Lesson, Tally, fit_weights, undecided
from cellmend.table.packing import pack, unpack
from cellmend.table.readtable import read_typed

ROWS = 60


@pytest.fixture
def judged() -> Judged:
    """Oats and one rye that is suspicious, and weights of which those with a unit are wrong."""
    crop, unit = ["oats"] * (ROWS - 1) + ["rye"], [" lb" if row % 3 == 0 else "" for row in range(ROWS)]
    weight = [f"{row + 10}{own}" for row, own in enumerate(unit)]
    suspicion = np.full((ROWS, 2), 0.01)
    suspicion[-1, 0] = 0.8
    return Judged(read_typed(pd.DataFrame({"crop": crop, "weight": weight})), suspicion)


def lesson(judged: Judged, cells: dict[tuple[int, int], bool]) -> Lesson:
    return Lesson([Example.of(judged, *cell, wrong=wrong) for cell, wrong in cells.items()], [])


def test_cells_written_as_wrong_ones_are_found_and_a_column_without_decisions_stays(judged: Judged) -> None:
    learned = lesson(judged, {(row, 1): row % 3 == 0 for row in range(20)})
    revised = learned.revise(judged)
    assert (revised[20:, 1] >= 0.5).tolist() == [row % 3 == 0 for row in range(20, ROWS)]
    assert np.array_equal(revised[:, 0], judged.suspicion[:, 0])


def test_a_flag_falls_only_where_a_flagged_cell_of_its_column_was_right(judged: Judged) -> None:
    usual = {(row, 0): row == 3 for row in range(20)}
    assert lesson(judged, usual).revise(judged)[-1, 0] >= 0.8
    assert lesson(judged, usual | {(ROWS - 1, 0): False}).revise(judged)[-1, 0] < 0.5


def test_a_cell_that_is_not_flagged_does_not_become_more_suspicious(judged: Judged) -> None:
    judged.suspicion[20:, 1] = 1e-6
    revised = lesson(judged, {(row, 1): row % 3 == 0 for row in range(20)}).revise(judged)
    quiet = revised[:, 1] < 0.5
    assert quiet.any()
    assert (revised[quiet, 1] <= judged.suspicion[quiet, 1]).all()


def test_of_kinds_that_nobody_decided_some_are_seen_as_the_model_has_them(judged: Judged) -> None:
    decided = np.zeros((ROWS, 2), dtype=bool)
    decided[[0, 1], 0] = True
    others = undecided(judged, decided)
    assert len(others) == 2 * OTHERS
    assert all(each.wrong == (each.marks[0] == "rye") for each in others)
    assert "oats" not in {each.marks[0] for each in others}


def test_whole_rows_are_a_fair_sample_already(judged: Judged) -> None:
    decided = np.zeros((ROWS, 2), dtype=bool)
    decided[[3, 4]] = True
    assert undecided(judged, decided) == []


def test_an_example_is_the_same_after_a_file(judged: Judged) -> None:
    example = Example.of(judged, 3, 1, wrong=True)
    assert unpack(Example, json.loads(json.dumps(pack(example)))) == example
    assert example.marks == ("13 lb", "99 aa", "9 a")


def test_a_decision_is_taken_away_again() -> None:
    wrong = Example(0, (0.0,), ("x", "a", "a"), wrong=True)
    assert Tally(1, 2).plus(wrong) == Tally(2, 2)
    assert Tally(2, 2).plus(wrong, -1) == Tally(1, 2)


# ---------------------------------------------------------------- how far trees are trusted

SIDES = np.repeat([-3.0, 3.0], 20)  # log odds


def weights(before: np.ndarray, learned: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    return fit_weights(np.stack([np.ones_like(before), before, learned], axis=1), wrong)


def test_few_decisions_leave_the_weights_nearly_where_they_start() -> None:
    assert weights(np.array([2.0]), np.array([-2.0]), np.zeros(1)).tolist() == pytest.approx(START.tolist(), abs=0.7)


def test_what_told_the_verdicts_is_trusted_and_what_did_not_is_not() -> None:
    told = weights(np.zeros(40), SIDES, (SIDES > 0).astype(float))
    guessed = weights(np.zeros(40), SIDES, np.tile([0.0, 1.0], 20))
    assert told[2] > START[2] > guessed[2]


def test_what_was_learned_never_counts_for_its_opposite() -> None:
    assert weights(np.zeros(40), SIDES, (SIDES < 0).astype(float))[2] == 0


def test_the_weights_are_where_the_verdicts_are_likeliest() -> None:
    rng = np.random.default_rng(0)
    before, learned = rng.normal(size=(2, 40))
    wrong = (before + 2 * learned + rng.normal(size=40) > 0).astype(float)
    best = weights(before, learned, wrong)

    def log_posterior(tried: np.ndarray) -> float:
        odds = tried[0] + tried[1] * before + tried[2] * learned
        return float((wrong * odds - np.logaddexp(0, odds)).sum() - (((tried - START) / SPREAD) ** 2).sum() / 2)

    for place in range(3):
        for step in (-0.01, 0.01):
            assert log_posterior(best) > log_posterior(best + step * np.eye(3)[place])
