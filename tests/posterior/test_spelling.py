"""Neighbours in spelling, against all pairs of words one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cellmend.posterior.spelling import LONGEST_KEY, Words, nearest

WORDS = st.text("abä", min_size=1, max_size=4)
VOCABULARY = st.dictionaries(WORDS, st.integers(1, 5), min_size=1, max_size=12)


def slips(a: str, b: str) -> int:
    """Optimal string alignment: letters put in, left out, replaced, or exchanged with the next one."""
    cost = [[i + j if 0 in (i, j) else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost[i][j] = min(cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if min(i, j) > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                cost[i][j] = min(cost[i][j], cost[i - 2][j - 2] + 1)
    return cost[-1][-1]


@given(VOCABULARY, st.lists(WORDS, max_size=5))
def test_neighbours_are_more_frequent_and_within_two_slips_and_none_within_one_is_missed(
    vocabulary: dict[str, int], strangers: list[str]
) -> None:
    known, counts = list(vocabulary), np.array(list(vocabulary.values()), dtype=np.float64)
    asked = [*known, *strangers]
    found = nearest(asked, known, counts)
    assert len(found.place) == len(found.distance) == len(asked)
    for text, place, distance in zip(asked, found.place.tolist(), found.distance.tolist(), strict=True):
        own = vocabulary.get(text, 0)
        better = [
            other
            for other, count in vocabulary.items()
            if count > own and slips(text, other) == 1 and min(len(text), len(other)) >= 3
        ]
        if place < 0:
            assert not better
            assert distance == 0
        else:
            assert known[place] != text
            assert vocabulary[known[place]] > own
            assert distance == slips(text, known[place])
            assert 1 <= distance <= 2
            assert vocabulary[known[place]] >= max((vocabulary[other] for other in better), default=0)


def test_a_rarer_or_equally_frequent_word_is_no_neighbour() -> None:
    assert nearest(["dover", "rover"], ["dover", "rover"], np.array([3.0, 3.0])).place.tolist() == [-1, -1]
    assert nearest(["dover", "rover"], ["dover", "rover"], np.array([3.0, 4.0])).place.tolist() == [1, -1]


def test_short_and_long_texts_have_no_neighbours() -> None:
    known = ["ab", "a" * (LONGEST_KEY + 1)]
    assert nearest(["ac", "a" * LONGEST_KEY + "b"], known, np.array([9.0, 9.0])).place.tolist() == [-1, -1]


def test_without_texts_there_are_no_neighbours() -> None:
    assert len(nearest([], ["abc"], np.ones(1)).place) == 0
    assert nearest(["abc"], [], np.zeros(0)).place.tolist() == [-1]


def test_words_are_counted_once_a_text() -> None:
    words = Words.of(["Main Street main", "Main 12 St", ""])
    assert words.words == ["main", "street"]
    assert words.counts(np.array([5.0, 2.0, 7.0])).tolist() == [7.0, 5.0]
    assert Words.of([]).counts(np.zeros(0)).tolist() == []
