"""What experts say, as figures."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from cellmend.posterior.experts import EXPERTS, expert_evidence
from cellmend.posterior.priors import UNSUSPECTED
from cellmend.table.readtable import ReadTable, Suspect, read_typed


def table_with(*suspects: Suspect, **more: object) -> ReadTable:
    read = read_typed(pa.table({"a": ["x", "y", "z"], "b": ["1", "2", "3"]}))
    return ReadTable(read.frame, read.understood, {}, suspects, **more)  # type: ignore[arg-type]


def suspect(row: int, column: int, suspicion: float, cause: str) -> Suspect:
    return Suspect(row, column, suspicion, (), "", cause)


def test_an_expert_adds_its_log_odds_above_those_of_any_cell() -> None:
    found = expert_evidence(table_with(suspect(1, 0, 0.8, "dependency"), suspect(2, 1, 0.5, "swapped")))
    assert found.shape == (3, 2, len(EXPERTS))
    assert found[1, 0, EXPERTS.index("dependency")] == pytest.approx(math.log(4) + UNSUSPECTED)
    assert found[2, 1, EXPERTS.index("slip")] == pytest.approx(UNSUSPECTED)
    assert np.count_nonzero(found) == 2


def test_the_surest_of_several_counts_and_causes_without_expert_do_not() -> None:
    found = expert_evidence(
        table_with(suspect(0, 0, 0.3, "swapped"), suspect(0, 0, 0.9, "doubled"), suspect(1, 1, 0.9, "taught"))
    )
    assert found[0, 0, EXPERTS.index("slip")] == pytest.approx(math.log(9) + UNSUSPECTED)
    assert np.count_nonzero(found) == 1


@pytest.mark.parametrize("suspicion", [0.0, 1.0])
def test_an_expert_that_is_quite_sure_says_something_finite(suspicion: float) -> None:
    assert np.isfinite(expert_evidence(table_with(suspect(0, 0, suspicion, "key")))).all()


def test_a_formula_that_a_cell_keeps_is_a_figure_of_its_own() -> None:
    found = expert_evidence(table_with(vouched={1: np.array([1.0, 0.5, 0.0])}))[:, 1, EXPERTS.index("keeps_formula")]
    np.testing.assert_allclose(found, [0, math.log(2), -math.log(1e-6)])
