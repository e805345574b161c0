"""scikit-learn's own checks, all of them: no failure is expected."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cellmend import CellMender

from .conftest import SMALL


@pytest.mark.filterwarnings("ignore:Left out of the model")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
@parametrize_with_checks([CellMender(**SMALL)])
def test_scikit_learn_accepts_the_estimator(estimator, check) -> None:
    check(estimator)
