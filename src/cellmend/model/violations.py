"""What broken rules add to the suspicion of cells: of those that together break one, one at least is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cellmend.posterior.posterior import Posterior
from cellmend.table.readtable import Violation
from cellmend.table.values import Floats

SUREST = 1 - 1e-9  # suspicion that has a finite score
UNHEARD = 1e-9  # suspicion of a cell of which no evidence is heard, such as those of columns that are ignored


def given_violations(suspicion: Floats, violations: Sequence[Violation], *, least: float = UNHEARD) -> Floats:
    """The suspicion of all cells (N, D), given how probably one at least of the cells of each violation is wrong.

    By Bayes' rule, P(this one | any) = P(this one) / P(any), for cells that err independently. Cells that are beyond
    doubt, if `least` is 0, stay so. Of a cell in several violations the surest counts.

    >>> doubts = np.array([[0.03, 0.01, 0.2]])
    >>> given_violations(doubts, [Violation("a > b", ((0, 0), (0, 1)), "")]).round(2).tolist()
    [[0.76, 0.25, 0.2]]
    >>> given_violations(doubts, [Violation("a > 0", ((0, 0),), "")]).round(2).tolist()
    [[1.0, 0.01, 0.2]]
    """
    found = suspicion.copy()
    for each in violations:
        cells = tuple(np.array(each.cells).T)
        own = np.clip(suspicion[cells], least, SUREST)
        any_wrong = -np.expm1(np.log1p(-own).sum())
        if any_wrong > 0:
            given = max(each.chance, any_wrong) * own / any_wrong
            found[cells] = np.maximum(found[cells], np.minimum(given, SUREST))
    return found


def after_violations(found: Posterior, violations: Sequence[Violation]) -> Posterior:
    """The posterior of all cells given their violations; how probable each family of causes is, if a cell is wrong,
    stays."""
    before = found.suspicion
    suspicion = given_violations(before, violations)
    raised = suspicion > before
    if not raised.any():
        return found
    logs, heard = found.logs.copy(), raised & (before > 0)
    logs[raised, 0] = np.log1p(-suspicion[raised])
    logs[heard, 1:] += np.log(suspicion[heard] / before[heard])[:, None]
    unheard = raised & ~heard
    logs[unheard, 1:] = np.log(suspicion[unheard] / (logs.shape[-1] - 1))[:, None]
    return replace(found, logs=logs, observed=found.observed | raised)
