"""What every cause is: a small channel from what was meant to what stands there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

LETTERS = 60  # keys that a stray letter may come from: letters of both cases and some digits or signs
NEVER = -math.inf


def _only_values_tell(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    return iter(())


class Cause(NamedTuple):
    """One way in which a cell goes wrong."""

    name: str
    told: str  # what it did to what was meant, for a sentence
    # Log probability of what is seen, given what was meant and that this cause acted; -inf if it cannot be.
    log_chance: Callable[[str, str], float]
    # What may have been meant by what is seen, if that is strange at this place, where the column has `likely` letters.
    undo: Callable[[str, int, Sequence[str]], Iterator[str]] = _only_values_tell

    def words(self, meant: str) -> str:
        """The reason in words; which letter was meant by a single one nobody can tell."""
        return "one of the others, mistyped" if self.name == "replaced" and len(meant) == 1 else f"{meant}, {self.told}"
