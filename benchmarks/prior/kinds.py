"""A kind of error: a small function from a right text to a wrong one.

All chance comes from the dice that a function is handed. Where a mistake is to recur, it is handed dice that fall the
same way for each cell: then it takes the same constant, the same rule, the same unit each time. For this, functions
choose a rule first and then see where it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from .cells import SORTS, Column, Grid, Place

FAMILIES = ("spelling", "form", "placeholder", "number", "unreadable", "cut", "valid", "misplaced")

Edits = list[tuple[int, int, str]]  # row, column and text of each cell
Change = Callable[[str, Place, Random], "str | Edits"]
Plain = Callable[[str, Random], str]
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Kind:
    """One way to spoil a cell, and the sort of cells (a name in `SORTS`) that it is for."""

    name: str
    family: str
    sort: str
    change: Change

    def spoil(
        self,
        grid: Grid,
        column: Column,
        rows: Iterable[int],
        dice: Random,
        *,
        most: int = 1,
        recurring: bool = False,
        patience: int = 100,
    ) -> int:
        """Spoil cells of a column, `most` of these rows, in the order given; how many cells of the grid it spoiled.

        Rows where it makes no sense, or would change nothing, are passed over; after so many of them it gives up.
        """
        mark, seed, done = grid.marks[self.name], dice.getrandbits(32), 0
        left = patience
        for row in rows:
            if done >= most or not left:
                break
            text = column.cells[row]
            left -= 1
            if grid.kind[row, column.place] or not SORTS[self.sort](text):
                continue
            if recurring:
                dice = Random(seed)  # noqa: S311
            new = self.change(text, Place(grid, column, row), dice)
            edits = [(row, column.place, new)] if isinstance(new, str) else new
            if wrong := sum(grid.put(*edit, mark) for edit in edits):
                done, left = done + wrong, patience
        return done


class Kinds(dict[str, Kind]):
    """Kinds by their names."""

    def add(self, family: str, sort: str = "any") -> Callable[[Change], Change]:
        """Enter a function under its own name."""

        def enter(change: Change) -> Change:
            self[change.__name__] = Kind(change.__name__, family, sort, change)
            return change

        return enter

    def plain(self, family: str, sort: str, **changes: Plain) -> None:
        """Enter functions that ask only for the text."""
        for name, change in changes.items():
            self[name] = Kind(name, family, sort, _placeless(change))


def _placeless(change: Plain) -> Change:
    return lambda text, at, dice: change(text, dice)


def spot(count: int, dice: Random) -> int:
    return int(dice.random() * count)


def one(items: Sequence[str], dice: Random) -> str:
    return items[spot(len(items), dice)]


def other(text: str, items: Sequence[str], dice: Random) -> str:
    """One of the items that the text is not."""
    first = spot(len(items), dice)
    return items[first] if items[first] != text else items[(first + 1) % len(items)]


def by_rule(text: str, rules: Pairs, dice: Random, everywhere: float = 0.0) -> str:
    """The text with one rule of those that hold applied, once or, with that chance, wherever it holds."""
    first, all_of_them, start = spot(len(rules), dice), dice.random() < everywhere, dice.random()
    for place in range(len(rules)):
        old, new = rules[(first + place) % len(rules)]
        if old in text:
            if all_of_them:
                return text.replace(old, new)
            at = text.find(old, int(start * len(text)))
            at = text.find(old) if at < 0 else at
            return text[:at] + new + text[at + len(old) :]
    return text


def change_one(pattern: str, text: str, dice: Random, new: Callable[[str], str]) -> str:
    """The text with one match of a pattern replaced."""
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = found[spot(len(found), dice)]
    return text[: match.start()] + new(match[0]) + text[match.end() :]
