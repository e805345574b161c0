"""What experts say about cells, as figures that the weigher adds to the rest of the evidence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cellmend.posterior.priors import FARTHEST, LEAST_CHANCE, UNSUSPECTED
from cellmend.table.causes import SLIPS
from cellmend.table.readtable import ReadTable

Floats = NDArray[np.float64]

# Relations between columns or rows by the cause that they name; all other causes are slips of text.
RELATIONS = ("dependency", "arithmetic", "sequence", "key", "sources")
EXPERTS = (*RELATIONS, "slip", "keeps_formula", "constant")
OF_THEIR_OWN = ("sources", "constant")
NUMBERS = {name: number for number, name in enumerate(EXPERTS)}
SLIP_NAMES = frozenset(cause.name for cause in SLIPS)


def suspected(table: ReadTable, causes: Mapping[str, int]) -> tuple[NDArray[np.int64], Floats]:
    """Row, column and number of the cause, (3, n), of the suspects with one of these causes, and the log odds that each
    is wrong, (n,)."""
    own = [each for each in table.suspects if each.cause in causes]
    places = np.array([(each.row, each.column, causes[each.cause]) for each in own], dtype=np.int64).reshape(-1, 3)
    chances = np.clip([each.suspicion for each in own], LEAST_CHANCE, 1 - LEAST_CHANCE)
    return places.T, np.log(chances / (1 - chances))


def odds_of_their_own(table: ReadTable) -> Floats:
    """Log odds that each cell is wrong by experts who stand for themselves, (N, D); -inf where they say nothing.

    Several sources of one thing, and columns that hold one number by nature, stand in so few public tables that the
    weigher cannot learn what else is natural there; each of them has tested the table at hand against chance."""
    odds = np.full((table.rows, len(table.names)), -np.inf)
    (row, column, _), found = suspected(table, dict.fromkeys(OF_THEIR_OWN, 0))
    np.maximum.at(odds, (row, column), found)
    return odds


def expert_evidence(table: ReadTable) -> Floats:
    """How sure each expert is that a cell is wrong, (N, D, 8): 0 where it says nothing, else the log odds above those
    of a cell that nobody suspects."""
    figures = np.zeros((table.rows, len(table.names), len(EXPERTS)))
    place, found = suspected(table, {**NUMBERS, **dict.fromkeys(SLIP_NAMES, NUMBERS["slip"])})
    np.maximum.at(figures, tuple(place), found + UNSUSPECTED)
    for column, left in table.vouched.items():
        figures[:, column, NUMBERS["keeps_formula"]] = -np.log(np.maximum(left, LEAST_CHANCE))
    return np.clip(figures, -FARTHEST, 2 * FARTHEST)
