"""What experts say about cells, as figures that the weigher adds to the rest of the evidence."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cellmend.posterior.priors import FARTHEST, UNSUSPECTED
from cellmend.table.readtable import ReadTable

Floats = NDArray[np.float64]

# Relations between columns or rows by the cause that they name; all other causes are slips of text.
RELATIONS = ("dependency", "arithmetic", "sequence", "key", "sources")
EXPERTS = (*RELATIONS, "slip", "keeps_formula")
SLIPS = frozenset(
    {
        "inserted",
        "doubled",
        "dropped",
        "replaced",
        "swapped",
        "throughout",
        "several",
        "cased",
        "spaced",
        "framed",
        "reversed",
        "scrambled",
        "truncated",
    }
)


def constant_odds(table: ReadTable) -> Floats:
    """Log odds that each cell is wrong because its column holds one number by nature, (N, D); -inf where nothing says
    so. Public tables have too few such columns to learn their weight from, so this explanation stands for itself."""
    odds = np.full((table.rows, len(table.names)), -np.inf)
    for suspect in table.suspects:
        if suspect.cause == "constant":
            chance = min(max(suspect.suspicion, 1e-9), 1 - 1e-6)
            odds[suspect.row, suspect.column] = math.log(chance / (1 - chance))
    return odds


def expert_evidence(table: ReadTable) -> Floats:
    """How sure each expert is that a cell is wrong, (N, D, 7): 0 where it says nothing, else the log odds above those
    of a cell that nobody suspects."""
    figures = np.zeros((table.rows, len(table.names), len(EXPERTS)))
    for suspect in table.suspects:
        expert = "slip" if suspect.cause in SLIPS else suspect.cause
        if expert in EXPERTS:
            chance = min(max(suspect.suspicion, 1e-9), 1 - 1e-6)
            place = suspect.row, suspect.column, EXPERTS.index(expert)
            figures[place] = max(figures[place], math.log(chance / (1 - chance)) + UNSUSPECTED)
    for column, left in table.vouched.items():
        figures[:, column, EXPERTS.index("keeps_formula")] = -np.log(np.maximum(left, 1e-6))
    return np.clip(figures, -FARTHEST, 2 * FARTHEST)
