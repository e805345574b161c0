from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.metrics import average_precision_score, brier_score_loss

from cellmend.evaluation.evaluation import cell_avprs, smse
from cellmend_bench.metrics import brier, calibration, repair_errors, row_auc, row_avpr

# Four rows, three columns; the last column has no error.
MASK = np.array([[True, False, False], [False, True, False], [False, False, False], [True, False, False]])


def test_row_avpr_by_hand() -> None:
    # By score the rows are clean, dirty, dirty, dirty: the precisions 1/2, 2/3 and 3/4, a third of the recall each.
    assert row_avpr(np.array([3.0, 2.0, 4.0, 1.0]), MASK) == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)


def test_row_avpr_of_a_perfect_order_is_one_and_of_equal_scores_the_share_of_dirty_rows() -> None:
    assert row_avpr(np.array([3.0, 2.0, 1.0, 4.0]), MASK) == 1.0
    assert row_avpr(np.zeros(4), MASK) == 0.75


def test_row_auc_by_hand() -> None:
    # Of the four pairs of an outlier and another row, three are in order.
    assert row_auc(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True])) == 0.75


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2).filter(lambda r: len({o for _, o in r}) == 2))
def test_row_auc_is_the_share_of_pairs_in_order_and_half_the_ties(rows: list[tuple[int, bool]]) -> None:
    scores, outlier = np.array([float(score) for score, _ in rows]), np.array([outlier for _, outlier in rows])
    u = stats.mannwhitneyu(scores[outlier], scores[~outlier], method="asymptotic").statistic
    assert row_auc(scores, outlier) == pytest.approx(u / (outlier.sum() * (~outlier).sum()))


def test_cell_avprs_by_hand_with_a_column_without_errors() -> None:
    scores = np.array([[0.9, 0.5, 0.1], [0.8, 0.5, 0.9], [0.2, 0.7, 0.3], [0.7, 0.1, 0.2]])
    found = cell_avprs(scores, MASK)
    # First column: dirty, clean, dirty, clean. Second: clean, then a dirty and a clean one with equal scores.
    np.testing.assert_allclose(found, [(1 + 2 / 3) / 2, 1 / 3, np.nan])
    assert np.nanmean(found) == pytest.approx((5 / 6 + 1 / 3) / 2)


def test_cell_avprs_are_scikit_learns_column_by_column() -> None:
    rng = np.random.default_rng(0)
    mask, scores = rng.random((200, 6)) < 0.1, rng.random((200, 6))
    expected = [average_precision_score(mask[:, d], scores[:, d]) for d in range(6)]
    np.testing.assert_allclose(cell_avprs(scores, mask), expected)


@pytest.mark.slow
@given(arrays(np.int64, (12, 3), elements=st.integers(-50, 50)))
def test_only_the_order_of_the_scores_counts(scores: np.ndarray) -> None:
    mask = np.arange(36).reshape(12, 3) % 5 == 0
    np.testing.assert_allclose(cell_avprs(scores * 3.0 - 7, mask), cell_avprs(scores.astype(float), mask))
    assert row_avpr(scores[:, 0] * 3.0 - 7, mask) == row_avpr(scores[:, 0].astype(float), mask)


def test_smse_by_hand() -> None:
    # Errors 1 and -2, distances from the mean 5 and 0: (1 + 4) / 25.
    assert smse(np.array([10.0, 5.0]), np.array([9.0, 7.0]), mean=5.0) == pytest.approx(0.2)


def test_smse_is_zero_for_the_truth_and_one_for_the_mean() -> None:
    clean = np.array([1.0, 4.0, 9.0])
    assert smse(clean, clean, mean=2.0) == 0.0
    assert smse(clean, np.full(3, 2.0), mean=2.0) == 1.0


def test_brier_by_hand() -> None:
    # First cell: (0.5, -0.3, -0.2) squared is 0.38; second: (-0.1, 0.9, -0.8) squared is 1.46; over 2 n = 4.
    found = brier(["a", "b"], ["a", "b", "c"], np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]))
    assert found == pytest.approx(1.84 / 4)


def test_brier_is_zero_for_certainty_in_the_truth_and_one_for_certainty_in_another_level() -> None:
    assert brier([1, 2], [1, 2], np.eye(2)) == 0.0
    assert brier([2, 1], [1, 2], np.eye(2)) == 1.0


@given(arrays(np.float64, 10, elements=st.floats(0, 1)))
def test_brier_of_two_levels_is_scikit_learns(probability: np.ndarray) -> None:
    truth = [0, 1] * 5
    ours = brier(truth, [0, 1], np.stack([1 - probability, probability], axis=1))
    assert ours == pytest.approx(brier_score_loss(truth, probability))


def test_repair_errors_of_a_tiny_table_by_hand() -> None:
    clean = pd.DataFrame({"x": [1.0, 2.0, 3.0, 6.0], "c": ["a", "b", "a", "b"], "y": [1, 2, 3, 4]})
    dirty = pd.DataFrame({"x": [9.0, 2.0, 3.0, -6.0], "c": ["a", "a", "a", "b"], "y": [1, 2, 3, 4]})
    repaired = pd.DataFrame({"x": [2.0, 0.0, 0.0, 4.0], "c": ["b", "b", "b", "b"], "y": [0, 0, 0, 0]})
    probabilities = {"c": pd.DataFrame({"a": [1.0, 0.4, 0.0, 1.0], "b": [0.0, 0.6, 1.0, 0.0]})}
    mask = (dirty != clean).to_numpy()
    # x: the dirty mean is 2; errors 1 and 2, distances 1 and 4: 5 / 17. c: one cell, (0.4² + 0.4²) / 2. y: no error.
    found = repair_errors(clean, dirty, mask, repaired, probabilities)
    np.testing.assert_allclose(found, [5 / 17, 0.16, np.nan])


def test_repair_errors_take_rows_by_place_and_the_dirty_mean_without_gaps() -> None:
    index = [30, 10, 20]
    clean = pd.DataFrame({"x": [1, 5, None], "c": [True, False, True]}, index=index)
    dirty = pd.DataFrame({"x": [1, 11, None], "c": [False, False, True]}, index=index)
    repaired = pd.DataFrame({"x": [1, 3, 0], "c": [True, True, True]}, index=index)
    probabilities = {"c": pd.DataFrame({False: [0.5, 1.0, 1.0], True: [0.5, 0.0, 0.0]}, index=index)}
    mask = np.array([[False, True], [True, False], [False, False]])
    # x: (5 - 3)² / (5 - 6)²; c: (0.5² + 0.5²) / 2.
    found = repair_errors(clean, dirty, mask, repaired, probabilities)
    np.testing.assert_allclose(found, [4.0, 0.25])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_calibration_compares_suspicion_with_what_is_wrong(cells: list[tuple[float, bool]]) -> None:
    """Each bin by a plain loop."""
    suspicion = np.array([[each for each, _ in cells]])
    mask = np.array([[wrong for _, wrong in cells]])
    found = calibration(suspicion, mask, fdr=0.2)
    error = 0.0
    for place in range(15):
        inside = [(s, w) for s, w in cells if min(int(s * 15), 14) == place]
        error += abs(sum(s for s, _ in inside) - sum(w for _, w in inside)) / len(cells)
        assert found["reliability"][place] == pytest.approx(
            [len(inside), sum(s for s, _ in inside), sum(w for _, w in inside)], abs=1e-3
        )
    assert found["calibration_error"] == pytest.approx(error)
    ordered = sorted(cells, key=lambda cell: -cell[0])
    clean = [sum(1 - each for each, _ in ordered[:k]) / k for k in range(1, len(ordered) + 1)]
    cutoffs = [s for share, (s, _) in zip(clean, ordered, strict=True) if share <= 0.2 + 1e-12 and s >= 0.5]
    flagged = [wrong for s, wrong in cells if cutoffs and s >= min(cutoffs)]
    if len({s for s, _ in cells}) == len(cells):  # with ties a cutoff takes all or none of them
        assert found["false_share"] == pytest.approx(1 - np.mean(flagged) if flagged else 0.0)
        assert found["found_share"] == pytest.approx(sum(flagged) / max(mask.sum(), 1))


def test_scores_must_have_the_columns_of_the_mask() -> None:
    with pytest.raises(ValueError, match="zip"):
        cell_avprs(np.zeros((4, 2)), MASK)
