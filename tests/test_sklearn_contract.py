"""scikit-learn's own checks, all of them."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cellmend import CellMender
from tests.conftest import SMALL

CANNOT_HOLD = {
    "check_classifier_data_not_an_array": "few whole numbers are levels in a DataFrame, and numbers in an array"
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Left out of the model")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
@parametrize_with_checks([CellMender(**SMALL | {"epochs": 4})], expected_failed_checks=lambda estimator: CANNOT_HOLD)
def test_scikit_learn_accepts_the_estimator(estimator, check) -> None:
    check(estimator)
