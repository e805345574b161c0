"""The face that every cause has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

LETTERS = 60  # keys that a stray letter may come from: letters of both cases and some digits or signs
NEVER = -math.inf


class Cause:
    """One way in which a cell goes wrong: a channel from what was meant to what stands there."""

    name: ClassVar[str]
    told: ClassVar[str]  # what it did to what was meant, for a sentence

    def log_chance(self, seen: str, meant: str) -> float:
        """Log probability of what is seen, given what was meant and that this cause acted; -inf if it cannot be."""
        raise TypeError(f"A cause must have a chance of its own; {type(self).__name__} has none.")

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        """What may have been meant, if the text is strange at this place, where the column has `likely` letters; none
        where only values of the column can tell."""
        return iter(())

    def words(self, meant: str) -> str:
        """The reason in words."""
        return f"{meant} {self.told}"
