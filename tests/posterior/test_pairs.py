"""Values that go together, against counting rows one by one; evidence of several partners adds up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellmend.posterior.pairs import MISSING, NAMES, Pairs
from cellmend.posterior.priors import PARTNERS, UNSEEN
from cellmend.table.packing import pack, unpack

CODES = st.lists(st.tuples(*[st.sampled_from([MISSING, 0, 1, 2])] * 3), min_size=1, max_size=15)


def decided(rows: int, deciders: int, others: int = 0, groups: int = 8) -> np.ndarray:
    """A first column that each of the next ones decides, and further ones that have nothing to do with it."""
    group = np.arange(rows) % groups
    rng = np.random.default_rng(0)
    return np.stack(
        [group, *[group] * deciders, *(rng.integers(0, groups, rows) for _ in range(others))], axis=1
    ).astype(np.int64)


def figures(codes: np.ndarray, row: int, groups: int = 8) -> dict[str, float]:
    found = Pairs.learn(codes, [groups] * codes.shape[1]).evidence(codes)[row, 0]
    return dict(zip(NAMES, found.tolist(), strict=True))


def test_a_cell_that_contradicts_three_columns_is_worse_than_one_that_contradicts_one() -> None:
    three, one = decided(400, 3), decided(400, 1, 2)
    three[5, 0] = one[5, 0] = 0
    against_three, against_one = figures(three, 5), figures(one, 5)
    assert against_three["pair_sum"] < 2 * against_one["pair_sum"] < 0
    assert against_three["pair_against_second"] > 1 > against_one["pair_against_second"]
    assert against_three["pair_against"] == pytest.approx(against_one["pair_against"])
    right = figures(three, 6)
    assert right["pair_sum"] > 0 > right["pair_against"]


def test_evidence_of_a_cell_by_hand() -> None:
    """Ten rows of a beside x, one b beside x, four b beside y. The b beside x, itself left out: none of the ten other
    rows with x have b, and 4 of the others in 15 do; a stands there ten times."""
    codes = np.array([[0, 0]] * 10 + [[1, 0]] + [[1, 1]] * 4)
    usual = (5 - 1 + 0.5) / (15 + 0.5)
    own = (0 + UNSEEN * usual) / (10 + UNSEEN)
    found = figures(codes, 10, 2)
    assert found["pair_worst"] == found["pair_best"] == found["pair_sum"] == pytest.approx(math.log(own / usual))
    assert found["pair_against"] == pytest.approx(math.log((10 + UNSEEN / 2) / (10 + UNSEEN) / own))
    assert found["pair_against_second"] == 0
    assert found["pair_for"] == pytest.approx(own)
    assert found["pair_rarest_partner"] == found["pair_most_frequent_partner"] == pytest.approx(math.log(11))


@given(CODES)
@settings(max_examples=30)
def test_pairs_are_counted_as_by_hand(rows: list[tuple[int, int, int]]) -> None:
    codes = np.array(rows, dtype=np.int64)
    pairs = Pairs.learn(codes, [3, 3, 3])
    assert np.isfinite(pairs.evidence(codes)).all()
    for pair in pairs.pairs:
        both = [(row[pair.partner], row[pair.column]) for row in rows if min(row[pair.partner], row[pair.column]) >= 0]
        assert dict(zip(pair.keys.tolist(), pair.counts.tolist(), strict=True)) == {
            beside * 3 + value: both.count((beside, value)) for beside, value in both
        }
        for beside in range(3):
            counts = sorted((both.count((beside, value)) for value in range(3)), reverse=True)
            assert (pair.top_count[beside], pair.next_count[beside]) == (counts[0], counts[1])
            if counts[0]:
                assert both.count((beside, int(pair.top[beside]))) == counts[0]
            else:
                assert pair.top[beside] == -1
        lifts = []
        for beside, value in both:
            usual = sum(other == value for _, other in both) / len(both)
            group = sum(other == beside for other, _ in both)
            own = (both.count((beside, value)) - 1 + UNSEEN * usual) / (group - 1 + UNSEEN)
            lifts.append(math.log(own / usual))
        assert pair.strength == pytest.approx(sum(lifts) / len(lifts))
        assert pair.strength > 0


@given(CODES)
@settings(max_examples=20)
def test_pairs_survive_json(rows: list[tuple[int, int, int]]) -> None:
    codes = np.array(rows, dtype=np.int64)
    pairs = Pairs.learn(codes, [3, 3, 3])
    again = unpack(Pairs, pack(pairs))
    assert pack(again) == pack(pairs)
    np.testing.assert_array_equal(again.evidence(codes), pairs.evidence(codes))


def test_a_cell_in_which_nothing_stands_and_one_beside_a_stranger_are_told_nothing() -> None:
    codes = decided(80, 1)
    pairs = Pairs.learn(codes, [8, 8])
    asked = np.array([[MISSING, 3], [3, MISSING], [3, -1], [-1, 3]])
    found = pairs.evidence(asked)[:, 0]
    assert not found[:3].any()
    assert found[3, NAMES.index("pair_against")] > 1  # a value never seen beside one that is


def test_each_column_has_the_partners_that_tell_most() -> None:
    pairs = Pairs.learn(decided(400, PARTNERS + 1, 3), [8] * (PARTNERS + 5))
    own = [pair for pair in pairs.pairs if pair.column == 0]
    assert len(own) == PARTNERS
    assert {pair.partner for pair in own} <= set(range(1, PARTNERS + 2))
    assert all(pair.column != pair.partner for pair in pairs.pairs)


def test_of_very_many_columns_those_are_tried_that_tell_most_in_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellmend.posterior.pairs.MOST_PAIRED", 5)
    pairs = Pairs.learn(decided(400, 2, 20), [8] * 23)
    assert [pair.partner for pair in pairs.pairs if pair.column == 0][:2] in ([1, 2], [2, 1])


def test_a_column_of_different_values_is_no_partner() -> None:
    codes = np.stack([np.arange(100) % 2, np.arange(100)], axis=1)
    assert all(pair.partner == 0 for pair in Pairs.learn(codes, [2, 100]).pairs)


def test_the_surest_partner_tells_the_value_and_supports_it() -> None:
    codes = decided(80, 1)
    codes[5, 0] = 0
    pairs = Pairs.learn(codes, [8, 8])
    assert pairs.told(codes, 5, 0) == (1, 5, 9, 10)
    assert pairs.told(codes, 6, 0) is None
    assert pairs.support(codes, 5, 0, 5) == (9 / 11, 10)
    assert pairs.support(codes, 5, 0, 0) == (1 / 11, 10)
    assert pairs.support(codes, 5, 0, -1) == (0.0, 0)


def test_a_partner_whose_value_never_stood_beside_any_tells_nothing() -> None:
    codes = np.array([[0, 0], [0, 0], [1, 1], [1, 1]] * 10 + [[MISSING, 2]] * 5)
    pairs = Pairs.learn(codes, [2, 3])
    told = pairs.told(np.array([[0, 2]]), 0, 0)
    assert told is None or told[1] >= 0


def test_values_that_go_together_in_a_newer_table_do_so_from_then_on() -> None:
    """A third city that the newer table has six times with its own land is no contradiction; alone it is unknown."""
    older = np.array([[0, 0]] * 10 + [[1, 1]] * 10)
    newer = np.array([[0, 0]] * 5 + [[2, 2]] * 6)
    own = Pairs.learn(older, [2, 2])
    both = own.with_more(newer, [3, 3])
    found = dict(zip(NAMES, both.evidence(newer)[-1, 0].tolist(), strict=True))
    assert found["pair_for"] > 0.9
    assert found["pair_against"] < 0
    assert [totals.tolist() for totals in both.totals] == [[10, 10, 6], [10, 10, 6]]
    assert own.evidence(np.array([[-1, -1]]))[0, 0, NAMES.index("pair_for")] == 0


@given(CODES)
@settings(max_examples=30)
def test_the_same_table_once_more_changes_no_pair(rows: list[tuple[int, int, int]]) -> None:
    codes = np.array(rows)
    own = Pairs.learn(codes, [3, 3, 3])
    assert pack(own.with_more(codes, [3, 3, 3])) == pack(own)
