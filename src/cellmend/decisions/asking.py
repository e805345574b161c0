"""Which cells to ask people about: those that stand for many others, of which the model is unsure, of all kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cellmend.decisions.habits import TRAITS, Floats
from cellmend.decisions.portrait import CELL_TRAITS, Seen

LEAST_UNSURE = 0.02  # p (1 - p) of a cell of which the model is sure: it may be wrong all the same
LEAST_ASKED = 0.01  # the same, for questions about single cells
STEPS = {"value_for_column": (-4.0, -2.0, -0.7), "shape_for_column": (-4.0, -2.0, -0.7), "rarest_letter": (-5.0, -3.0),
         "distance": (0.7, 1.2, 2.0), "odd_type": (0.5,)}  # fmt: skip
COMPANY_STEPS = (-2.0, -0.1, 0.7)
SUSPICION_STEPS = (0.1, 0.5, 0.9)
ASKED_AGAIN = 0.25  # what another question about cells of the same kind is worth, times that of the one before
SAME_COLUMN = 0.8  # and one about other cells of the same column


def kinds_of(seen: Seen, suspicion: Floats) -> NDArray[np.int64]:
    """Which cells are alike, (N, D): those of a column with the same number; -1 for empty cells.

    Cells are alike that are about as rare, as far out and as suspicious (N, D).
    """
    kinds = np.full(suspicion.shape, -1)
    for place, column in enumerate(seen.columns):
        rows = np.flatnonzero(column.places >= 0)
        if len(rows):
            traits = seen.traits(place, rows)
            steps = [np.digitize(traits[:, TRAITS.index(name)], edges) for name, edges in STEPS.items()]
            company = traits[:, len(TRAITS) + CELL_TRAITS.index("company")]
            steps += [np.digitize(company, COMPANY_STEPS), np.digitize(suspicion[rows, place], SUSPICION_STEPS)]
            key = np.ravel_multi_index(steps, [8] * len(steps))
            kinds[rows, place] = np.unique(key, return_inverse=True)[1] + kinds.max() + 1
    return kinds


def ask_cells(kinds: NDArray[np.int64], doubts: Floats, decided: NDArray[np.bool_], n: int, seed: int) -> list[int]:
    """Places of the best questions in the table as one line of cells, the best first; all arrays are (N, D).

    A question about a kind is worth the mean doubt, p (1 - p), times the root of how many there are.
    """
    flat, columns = kinds.ravel(), np.broadcast_to(np.arange(kinds.shape[1]), kinds.shape).ravel()
    held = flat >= 0
    count = int(flat.max()) + 1
    sizes = np.bincount(flat[held], minlength=count)
    unsure = np.bincount(flat[held], np.maximum(doubts, LEAST_ASKED).ravel()[held], minlength=count)
    known = np.bincount(flat[held & decided.ravel()], minlength=count)
    worth = unsure / np.sqrt(np.maximum(sizes, 1)) * ASKED_AGAIN**known
    column_of = np.zeros(count, dtype=np.int64)
    column_of[flat[held]] = columns[held]
    free, asked, generator = held & ~decided.ravel(), list[int](), np.random.default_rng(seed)
    while len(asked) < n and worth.max(initial=0) > 0:
        best = int(worth.argmax())
        open_ = np.flatnonzero((flat == best) & free)
        if len(open_) == 0:
            worth[best] = 0
            continue
        cell = int(generator.choice(open_))
        asked.append(cell)
        free[cell] = False
        worth[column_of == column_of[best]] *= SAME_COLUMN
        worth[best] *= ASKED_AGAIN / SAME_COLUMN
    return asked


def ask_rows(doubts: Floats, decided: NDArray[np.bool_], n: int, seed: int) -> list[int]:
    """Rows to look at whole: drawn by chance, those more often of whose cells (N, D) the model is less sure.

    By chance, because what is learned from rows that were picked for being alike does not hold for the others.
    """
    worth = np.where(decided.any(axis=1), 0.0, np.maximum(doubts, LEAST_UNSURE).sum(axis=1))
    most = min(n, int((worth > 0).sum()))
    if not most:
        return []
    return np.random.default_rng(seed).choice(len(worth), most, replace=False, p=worth / worth.sum()).tolist()
