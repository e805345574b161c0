"""The face that every cause has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

LETTERS = 60  # keys that a stray letter may come from: letters of both cases and some digits or signs
NEVER = -math.inf


class Cause(Protocol):
    """One way in which a cell goes wrong: a channel from what was meant to what stands there."""

    @property
    def name(self) -> str:
        """One word."""

    def log_chance(self, seen: str, meant: str) -> float:
        """Log probability of what is seen, given what was meant and that this cause acted; -inf if it cannot be."""

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        """What may have been meant, if the text is strange at this place, where the column has `likely` letters."""

    def words(self, seen: str, meant: str) -> str:
        """The reason in words."""
