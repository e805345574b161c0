"""Spoil a published table the way tables are spoiled, and say where and how, for a network to learn from.

One call is one scenario: how much is wrong, how it is spread, and which kinds of errors there are are all drawn anew.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import place_errors, text_errors, value_errors
from .cells import Column, Grid
from .kinds import FAMILIES, Kind

__all__ = ["FAMILIES", "KINDS", "Kind", "Spoiled", "spoil"]

_ALL = text_errors.KINDS | value_errors.KINDS | place_errors.KINDS
KINDS: dict[str, Kind] = {name: kind for family in FAMILIES for name, kind in _ALL.items() if kind.family == family}
_FAMILY_OF = np.array([0, *(1 + FAMILIES.index(kind.family) for kind in KINDS.values())], np.int8)
_LEAST, _MOST = 0.0005, 0.35  # share of wrong cells
_MANY = 0.03  # wrong cells at least in a table that has many
_DENSE = 0.45  # of calls with many
_CLEAN = 0.15  # of calls


@dataclass(frozen=True)
class Spoiled:
    """A table before and after, and for each cell what was done to it: 0 if nothing, else 1 + index into the names."""

    dirty: pd.DataFrame
    family: NDArray[np.int8]  # of FAMILIES
    kind: NDArray[np.int16]  # of list(KINDS)
    clean: pd.DataFrame


def spoil(table: pd.DataFrame, rng: np.random.Generator, *, without: Collection[str] = ()) -> Spoiled:
    """A table of text, spoiled in a way drawn at random, without the kinds or whole families that are named."""
    if unknown := set(without) - set(KINDS) - set(FAMILIES):
        raise ValueError(f"no kinds or families of errors: {', '.join(sorted(unknown))}")
    dice = Random(int(rng.integers(2**63)))  # noqa: S311
    grid = Grid(table, KINDS)
    kinds = [kind for kind in KINDS.values() if kind.name not in without and kind.family not in without]
    if dice.random() >= _CLEAN and grid.usable and kinds:
        share = dice.uniform(_MANY, _MOST) if dice.random() < _DENSE else _LEAST * (_MOST / _LEAST) ** dice.random()
        wanted = max(round(share * sum(len(column.filled) for column in grid.usable)), 1)
        _Scenario(grid, kinds, dice).play(wanted)
    dtype = table.dtypes.iloc[0] if table.dtypes.nunique() == 1 else object
    dirty = pd.DataFrame(grid.dirty, index=table.index, columns=table.columns, dtype=dtype)
    return Spoiled(dirty, _FAMILY_OF[grid.kind], grid.kind, table)


class _Scenario:
    """The errors of one table: a palette of kinds, and how they are laid over it."""

    def __init__(self, grid: Grid, kinds: list[Kind], dice: Random) -> None:
        self.grid, self.dice = grid, dice
        weights = self._palette(kinds)
        self.kinds_of = {
            column.place: [kind for kind in weights if kind.sort in column.sorts] for column in grid.usable
        }
        self.weights_of = {}
        for place, mine in self.kinds_of.items():
            sizes = Counter(kind.family for kind in mine)
            self.weights_of[place] = [weights[kind] / sizes[kind.family] for kind in mine]
        self.columns = [column for column in grid.usable if self.kinds_of[column.place]]
        self.sizes = [len(column.filled) for column in self.columns]

    def play(self, wanted: int) -> None:
        """Spoil about so many cells, at least one if any can be."""
        layouts: list[Callable[[int], int]] = [
            self._scattered, self._habits, self._rows, self._by_column, self._throughout
        ]  # fmt: skip
        chosen = self.dice.choices([*layouts, None], (3, 4, 1, 2, 4, 2))[0] if self.columns else self._scattered
        if chosen:
            chosen(wanted)
        else:
            parts = self.dice.sample(layouts, self.dice.randint(2, len(layouts)))
            shares = [self.dice.expovariate(1) for _ in parts]
            for layout, share in zip(parts, shares, strict=True):
                layout(max(round(wanted * share / sum(shares)), 1))
        if not self.grid.kind.any():
            self._anywhere()

    def _palette(self, kinds: list[Kind]) -> dict[Kind, float]:
        """The kinds of this table, with weights: one, a few or many, of families that are as likely as each other."""
        sorts = frozenset[str]().union(*(column.sorts for column in self.grid.usable))
        groups: dict[str, dict[str, list[Kind]]] = {}
        for kind in kinds:
            if kind.sort in sorts:
                groups.setdefault(kind.family, {}).setdefault(kind.sort, []).append(kind)
        if not groups:
            return {}
        dice, families = self.dice, list(groups)
        count = dice.choices((1, dice.randint(2, 4), dice.randint(5, 30), len(KINDS)), (25, 35, 20, 20))[0]
        if count == len(KINDS):
            weight = {family: dice.expovariate(1) for family in families}
            return {kind: weight[kind.family] for kind in kinds if kind.sort in sorts}
        chosen: dict[Kind, float] = {}
        for _ in range(5 * count):
            group = groups[dice.choice(families)]
            kind = dice.choice(group[dice.choice(list(group))])
            if len(chosen) < count and kind not in chosen and self._holds(kind):
                chosen[kind] = 0.2 + dice.expovariate(1)
        return chosen or {kind: 1.0 for kind in kinds if kind.sort in sorts}

    def _holds(self, kind: Kind) -> bool:
        """Whether a kind spoils one of some cells, of a copy that is thrown away."""
        dice, marks, dirty = self.dice, self.grid.kind, self.grid.dirty
        self.grid.kind, self.grid.dirty = marks.copy(), dirty.copy()
        columns = [column for column in self.grid.usable if kind.sort in column.sorts]
        try:
            return any(
                kind.spoil(self.grid, column, dice.sample(column.filled, min(10, len(column.filled))), dice)
                for column in dice.sample(columns, len(columns))
            )
        finally:
            self.grid.kind, self.grid.dirty = marks, dirty

    def _draw(self, column: Column) -> Kind:
        return self.dice.choices(self.kinds_of[column.place], self.weights_of[column.place])[0]

    def _scattered(self, wanted: int) -> int:
        """Single cells all over the table."""
        done = 0
        for column in self.dice.choices(self.columns, self.sizes, k=4 * wanted + 20) if self.columns else ():
            if done >= wanted:
                break
            done += self._draw(column).spoil(self.grid, column, [self.dice.choice(column.filled)], self.dice)
        return done

    def _habit(self, column: Column, kind: Kind, most: int, recurring: bool) -> int:
        """One kind in one column; where it recurs, perhaps with one of its values only, or in one stretch of rows."""
        dice, rows = self.dice, list(column.filled)
        form = dice.random()
        if recurring and form < 0.4 and 1 < len(column.counts) <= len(rows) / 2:
            text = column.cells[dice.choice(rows)]
            rows = [row for row in rows if column.cells[row] == text]
        start = dice.randrange(len(rows))
        if form > 0.85:
            rows = rows[start:] + rows[:start]
        else:
            dice.shuffle(rows)
        return kind.spoil(self.grid, column, rows, dice, most=most, recurring=recurring)

    def _habits(self, wanted: int) -> int:
        """One kind in one column at a time, in 1 to 30 % of its cells; half the time the same mistake recurs."""
        done, recurring = 0, self.dice.random() < 0.5
        for _ in range(60):
            if done >= wanted:
                break
            column = self.dice.choice(self.columns)
            most = max(int(len(column.filled) * self.dice.uniform(0.01, 0.3)), 1)
            least = max(len(column.filled) // 100, 1)
            done += self._habit(column, self._draw(column), max(min(most, wanted - done), least), recurring)
        return done

    def _by_column(self, wanted: int) -> int:
        """Some columns, each with a few kinds and a rate of its own."""
        dice, done = self.dice, 0
        columns = dice.sample(self.columns, dice.randint(min(2, len(self.columns)), len(self.columns)))
        shares = [dice.expovariate(1) for _ in columns]
        for column, share in zip(columns, shares, strict=True):
            kinds = [self._draw(column) for _ in range(dice.randint(1, 3))]
            most = min(wanted * share / sum(shares), 0.6 * len(column.filled))
            for kind in kinds:
                done += self._habit(column, kind, max(round(most / len(kinds)), 1), dice.random() < 0.5)
        return done

    def _throughout(self, wanted: int) -> int:
        """All columns, or most, alike: each has the same share of wrong cells, by one kind or a few."""
        dice, done = self.dice, 0
        part = dice.uniform(0.3, 1.2)
        columns = [column for column in self.columns if dice.random() < part] or self.columns[:1]
        share, several = wanted / sum(len(column.filled) for column in columns), dice.random() < 0.3
        for column in columns:
            kinds = [self._draw(column) for _ in range(1 + 2 * several)]
            most = min(share, 0.5) * len(column.filled) / len(kinds)
            for kind in kinds:
                rows = dice.sample(column.filled, len(column.filled))
                done += kind.spoil(self.grid, column, rows, dice, most=max(round(most), 1))
        return done

    def _rows(self, wanted: int) -> int:
        """Rows of which much is wrong, now and then all by the same kind."""
        dice, done, rows = self.dice, 0, len(self.grid.kind)
        part, same = dice.uniform(0.3, 1), dice.random() < 0.3
        for row in dice.sample(range(rows), rows):
            if done >= wanted:
                break
            here = [column for column in self.grid.filled(row) if self.kinds_of[column.place]]
            kind = self._draw(dice.choice(here)) if here and same else None
            for column in dice.sample(here, math.ceil(part * len(here))):
                mine = kind if kind and kind.sort in column.sorts else self._draw(column)
                done += mine.spoil(self.grid, column, [row], dice)
        return done

    def _anywhere(self) -> None:
        """One cell, wherever one of the kinds can be."""
        for column in self.dice.sample(self.columns, len(self.columns)):
            rows = self.dice.sample(column.filled, len(column.filled))
            for kind in self.kinds_of[column.place]:
                if kind.spoil(self.grid, column, rows, self.dice, patience=len(rows)):
                    return
