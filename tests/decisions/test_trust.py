"""How far decisions are trusted."""

from __future__ import annotations

import numpy as np
import pytest

from cellmend.decisions.trust import START, weigh

FORTY = np.ones(40)
SIDES = np.repeat([-3.0, 3.0], 20)  # log odds


def test_few_decisions_leave_the_suspicion_nearly_as_it_was() -> None:
    trust = weigh(np.array([2.0]), np.array([-2.0]), np.zeros(1), np.ones(1))
    assert [trust.constant, trust.before, trust.learned] == pytest.approx(START.tolist(), abs=0.7)


def test_what_told_the_verdicts_is_trusted_and_what_did_not_is_not() -> None:
    wrong = (SIDES > 0).astype(float)
    told = weigh(np.zeros(40), SIDES, wrong, FORTY)
    guessed = weigh(np.zeros(40), SIDES, np.tile([0.0, 1.0], 20), FORTY)
    assert told.learned > START[2] > guessed.learned


def test_what_was_learned_never_counts_for_its_opposite() -> None:
    trust = weigh(np.zeros(40), SIDES, (SIDES < 0).astype(float), FORTY)
    assert trust.learned == 0


def test_a_cell_counts_for_as_many_as_it_stands_for() -> None:
    wrong = np.repeat([0.0, 1.0], 20)
    few_wrong = weigh(np.zeros(40), np.zeros(40), wrong, np.repeat([100.0, 1.0], 20))
    assert few_wrong.constant < -1


def test_the_weights_are_where_the_verdicts_are_likeliest() -> None:
    rng = np.random.default_rng(0)
    before, learned = rng.normal(size=(2, 40))
    wrong = (before + 2 * learned + rng.normal(size=40) > 0).astype(float)
    found = weigh(before, learned, wrong, FORTY)
    best = np.array([found.constant, found.before, found.learned])

    def log_posterior(weights: np.ndarray) -> float:
        odds = weights[0] + weights[1] * before + weights[2] * learned
        prior = ((weights - START) ** 2 / np.array([1.0, 0.25, 1.0]) ** 2).sum() / 2
        return float((wrong * odds - np.logaddexp(0, odds)).sum() - prior)

    for place in range(3):
        for step in (-0.01, 0.01):
            assert log_posterior(best) > log_posterior(best + step * np.eye(3)[place])
