"""scikit-learn's own checks, each expected failure named and explained."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cellmend import CellMender

from .conftest import SMALL

NOTHING_TO_FIND = "the check's clusters hold no wrong cells, and a row is called an outlier only when it looks dirty"
EXPECTED_FAILURES = {
    "check_outliers_train": NOTHING_TO_FIND,
    "check_outliers_fit_predict": NOTHING_TO_FIND,
}


@pytest.mark.filterwarnings("ignore:Left out of the model")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
@parametrize_with_checks([CellMender(**SMALL)], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_accepts_the_estimator(estimator, check) -> None:
    check(estimator)
