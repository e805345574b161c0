"""Which cells to ask people about: those that stand for many others, of which the model is unsure, of all kinds."""

from __future__ import annotations

import numpy as np

from cellmend.decisions.judged import Judged
from cellmend.posterior.known import Floats
from cellmend.table.values import Bools, Ints

LEAST_UNSURE = 0.02  # p (1 - p) of a cell of which the model is sure: it may be wrong all the same
LEAST_ASKED = 0.01  # the same, for questions about single cells
SUSPICION_STEPS = (0.1, 0.5, 0.9)  # cells are alike that are right, doubtful, flagged, or surely wrong
ASKED_AGAIN = 0.25  # what another question about cells of the same kind is worth, times that of the one before
SAME_COLUMN = 0.8  # and one about other cells of the same column


def kinds_of(judged: Judged, suspicion: Floats) -> Ints:
    """The kind of each cell, (N, D): its column, its outline and about how suspicious it is, (N, D); -1 for cells of
    which nothing can be learned."""
    kinds, steps = np.full(suspicion.shape, -1), np.digitize(suspicion, SUSPICION_STEPS)
    for place, column in enumerate(judged.columns):
        rows = np.flatnonzero(judged.held[:, place])
        if len(rows):
            outlines = np.unique([each[-1] for each in judged.marks[place]], return_inverse=True)[1][column.codes[rows]]
            key = outlines * (len(SUSPICION_STEPS) + 1) + steps[rows, place]
            kinds[rows, place] = np.unique(key, return_inverse=True)[1] + kinds.max() + 1
    return kinds


def ask_cells(kinds: Ints, doubts: Floats, decided: Bools, n: int, seed: int) -> list[int]:
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


def ask_rows(doubts: Floats, decided: Bools, n: int, seed: int) -> list[int]:
    """Rows to look at whole: drawn by chance, those more often of whose cells (N, D) the model is less sure.

    By chance, because what is learned from rows that were picked for being alike does not hold for the others.
    """
    worth = np.where(decided.any(axis=1), 0.0, np.maximum(doubts, LEAST_UNSURE).sum(axis=1))
    most = min(n, int((worth > 0).sum()))
    if not most:
        return []
    return np.random.default_rng(seed).choice(len(worth), most, replace=False, p=worth / worth.sum()).tolist()
