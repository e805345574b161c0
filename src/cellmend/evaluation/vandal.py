"""An injector to judge by: spoils cells of a table as people do, one by one and as habits of a column.

It shares nothing with what learns: kinds of error, their mix and their wording are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cellmend.evaluation.vandal_kinds import AGAINST, KINDS, NAMES, SWAPPED, Column
from cellmend.evaluation.vandal_numbers import add_noise, same
from cellmend.evaluation.vandal_pairs import decided, exchanged
from cellmend.evaluation.vandal_words import Rng, one_of

RIGHT = -1  # in place of a kind: the cell was not touched
HABIT = 0.01, 0.1  # share of a column's cells that a habit spoils, log-uniform
IN_HABITS = 0.5  # of the wrong cells
ONE_VALUE = 0.4  # of the habits spoil one value only
MOST = 0.6  # of a column's cells are spoiled
TRIES = 30  # at a kind before it is given up
FEWEST = 3  # cells of a habit, and of a shifted row
LONGEST_STUCK = 5  # rows
ALONE = ("shifted row", "other row", AGAINST)  # no habits
UNTYPED = ("shifted row", "next column", "account number")  # also of what looks like nobody types it
Cells = dict[tuple[int, int], str]
Admits = Callable[[int, str, str], bool]  # (place, meant, text): can the column hold this error?


def vandalise(
    table: pd.DataFrame,
    rng: Rng,
    *,
    share: float,
    kinds: int = len(KINDS),
    admits: Admits = lambda place, meant, text: True,
) -> tuple[pd.DataFrame, NDArray[np.int8]]:
    """A table of texts with about this share of its filled cells wrong, by the first so many kinds of error, and the
    kind of each error, or -1.

    Empty cells stay as they are, and none is made.
    """
    vandal = Vandal(table, rng, admits)
    wanted = max(1, round(vandal.filled.sum() * share))
    vandal.form_habits(round(wanted * IN_HABITS), range(kinds))
    vandal.scatter(wanted, range(kinds))
    dirty = pd.DataFrame(vandal.texts, columns=table.columns, index=table.index, dtype=object)
    return dirty, vandal.marks


def columns_of(table: pd.DataFrame) -> list[Column]:
    """The columns of a table of texts, whatever their names."""
    return [Column(str(name), tuple(table.iloc[:, place])) for place, name in enumerate(table.columns)]


class Vandal:
    """A table that is being spoiled."""

    def __init__(self, table: pd.DataFrame, rng: Rng, admits: Admits) -> None:
        self.rng, self.admits, self.columns = rng, admits, columns_of(table)
        self.clean = table.to_numpy(dtype=object)
        self.texts = self.clean.copy()
        self.filled = np.array([[bool(text.strip()) for text in row] for row in self.clean], dtype=bool)
        self.filled = self.filled.reshape(self.clean.shape)
        self.marks = np.full(self.clean.shape, RIGHT, dtype=np.int8)
        self.counts = Counter[int]()  # of the kinds so far

    @cached_property
    def partners(self) -> dict[int, int]:
        """Columns whose values people exchange with those of the column beside."""
        return exchanged(self.columns)

    @cached_property
    def decided(self) -> set[int]:
        """Columns whose value another one tells."""
        return decided(self.columns)

    @property
    def spoiled(self) -> int:
        """How many cells are wrong by now."""
        return self.counts.total()

    def form_habits(self, wanted: int, kinds: Sequence[int]) -> None:
        """Spoil cells of one column in one way, again and again, until about so many are wrong."""
        pairs = [(kind, place) for kind in kinds if NAMES[kind] not in ALONE for place in self._fitting(kind)]
        by_kind = Counter(kind for kind, _ in pairs)
        weights = np.array([1 / by_kind[kind] for kind, _ in pairs])
        while pairs and wanted - self.spoiled >= FEWEST:
            chosen = int(self.rng.choice(len(pairs), p=weights / weights.sum()))
            kind, place = pairs.pop(chosen)
            weights = np.delete(weights, chosen)
            self._form_habit(kind, place, wanted - self.spoiled)

    def scatter(self, wanted: int, kinds: Sequence[int]) -> None:
        """Spoil single cells until so many are wrong, of each kind about as many."""
        open_kinds = {kind: self._fitting(kind) for kind in kinds if self._fitting(kind)}
        while open_kinds and self.spoiled < wanted:
            fewest = min(self.counts[kind] for kind in open_kinds)
            kind = one_of([kind for kind in open_kinds if self.counts[kind] == fewest], self.rng)
            if not any(self._spoil_somewhere(kind, open_kinds[kind], wanted - self.spoiled) for _ in range(TRIES)):
                del open_kinds[kind]

    def _fitting(self, kind: int) -> list[int]:
        """Columns in which people make such errors."""
        typed = [(place, column) for place, column in enumerate(self.columns) if column.filled]
        if NAMES[kind] not in UNTYPED:
            typed = [(place, column) for place, column in typed if not column.made_by_machine]
        fitting = [place for place, column in typed if KINDS[kind].fits(column)]
        if NAMES[kind] in (SWAPPED, AGAINST):
            together = self.partners if NAMES[kind] == SWAPPED else self.decided
            return [place for place in fitting if place in together]
        return fitting

    def _form_habit(self, kind: int, place: int, left: int) -> None:
        rows = self._open_rows(place)
        size = int(len(self.columns[place].filled) * np.exp(self.rng.uniform(*np.log(HABIT))))
        size = min(size, left, len(rows))
        if size < FEWEST:
            return
        if self.rng.random() < ONE_VALUE:
            rows = self._rows_of_one_value(place, rows, size)
        flavour, known = float(self.rng.random()), dict[str, str]()
        before = self.spoiled
        for row in self.rng.permutation(rows):
            if self.spoiled - before >= size:
                break
            meant = self.clean[row, place]
            new = self._made(kind, int(row), place, flavour) if meant not in known else {(row, place): known[meant]}
            if KINDS[kind].spoil is not None and new:
                known[meant] = new[row, place]  # who errs by habit errs alike
            self._put(kind, new)

    def _rows_of_one_value(self, place: int, rows: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Rows that hold one value, if one stands often enough."""
        counts = Counter(self.clean[rows, place])
        often = [value for value, count in counts.items() if count >= size]
        if not often:
            return rows
        return rows[self.clean[rows, place] == one_of(sorted(often), self.rng)]

    def _spoil_somewhere(self, kind: int, places: list[int], left: int) -> bool:
        place = one_of(places, self.rng)
        rows = self._open_rows(place)
        if len(rows) == 0:
            return False
        new = self._made(kind, int(self.rng.choice(rows)), place, float(self.rng.random()))
        return len(new) <= max(left, 1) and self._put(kind, new)

    def _open_rows(self, place: int) -> NDArray[np.int64]:
        """Rows whose cell can still be spoiled; none where most of the column is."""
        filled, marks = self.filled[:, place], self.marks[:, place] != RIGHT
        return np.flatnonzero(filled & ~marks if marks.sum() < MOST * filled.sum() else np.zeros_like(filled))

    def _put(self, kind: int, new: Cells) -> bool:
        """Write new texts where they differ; whether any did."""
        before = self.spoiled
        for (row, place), text in new.items():
            meant = self.clean[row, place]
            differs = text != meant if NAMES[kind] == "spaces" else not same(text, meant)
            is_open = self.filled[row, place] and self.marks[row, place] == RIGHT
            if differs and text.strip() and is_open and self.admits(place, meant, text):
                self.texts[row, place], self.marks[row, place] = text, kind
                self.counts[kind] += 1
        return self.spoiled > before

    def _made(self, kind: int, row: int, place: int, flavour: float) -> Cells:
        """What an error of this kind makes of a cell, and of those that it drags along."""
        spoil, name, column = KINDS[kind].spoil, NAMES[kind], self.columns[place]
        meant = self.clean[row, place]
        if spoil is not None:
            return {(row, place): spoil(meant, self.rng, flavour)}
        if name == "outlier":
            return {(row, place): add_noise(meant, self.rng, flavour, scale=column.scale)}
        if name == SWAPPED:
            return self._swapped(row, place, self.partners[place])
        if name in ("other row", AGAINST):
            return {(row, place): one_of(column.filled, self.rng)}
        if name == "next column":
            beside = [each for each in (place - 1, place + 1) if 0 <= each < len(self.columns)]
            return {(row, place): self.clean[row, one_of(beside, self.rng)]} if beside else {}
        return self._stuck(row, place) if name == "stuck" else self._shifted(row, place)

    def _swapped(self, row: int, place: int, other: int) -> Cells:
        """Two cells in each other's place, if each column can hold the other's value."""
        one, two = self.clean[row, place], self.clean[row, other]
        is_open = self.filled[row, other] and self.marks[row, other] == RIGHT and not same(one, two)
        admitted = is_open and self.admits(place, one, two) and self.admits(other, two, one)
        return {(row, place): two, (row, other): one} if admitted else {}

    def _stuck(self, row: int, place: int) -> Cells:
        """The value above stands here too, and perhaps in some rows below."""
        if row == 0 or not self.filled[row - 1, place]:
            return {}
        last = min(row + int(self.rng.integers(1, LONGEST_STUCK + 1)), len(self.clean))
        return {(each, place): self.clean[row - 1, place] for each in range(row, last)}

    def _shifted(self, row: int, place: int) -> Cells:
        """Filled cells from here on have moved by one column; what was in the last one is lost."""
        last = place
        while last + 1 < len(self.columns) and self.filled[row, last + 1]:
            last += 1
        if last - place + 1 < FEWEST:
            return {}
        moved = self.clean[row, place:last]
        if self.rng.random() < 0.5:  # one column to the left: this cell is lost
            return {(row, place + step): self.clean[row, place + step + 1] for step in range(len(moved))}
        return {(row, place + step + 1): text for step, text in enumerate(moved)}
