"""A default, a placeholder or a sentinel in place of a value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cellmend.table.causes.base import NEVER
from cellmend.table.causes.named import DEFAULT

PLACEHOLDERS = 50  # signs or runs of a sign that stand for nothing, such as *** and ??
SENTINELS = 100  # numbers that programs leave: -1, 9999, 11111111
LONGEST_SENTINEL = 2  # digits, if they differ
MEANT = frozenset("+%=<>@&$€£°±×≤≥≠√∞†‡✓✔✗✘")  # signs that say something: tags, and marks of more, less and equal


@dataclass(frozen=True)
class Default:
    """A sign or a number where something else was meant, whatever it was.

    >>> round(math.exp(-Default().log_chance("***", ""))), round(math.exp(-Default().log_chance("-1", "")))
    (50, 100)
    >>> Default().log_chance("n. a.", ""), Default().log_chance("+", "")
    (-inf, -inf)
    """

    name: str = DEFAULT

    def log_chance(self, seen: str, meant: str) -> float:
        core = seen.lstrip("-")
        if not any(letter.isalnum() for letter in seen):
            return NEVER if MEANT.intersection(seen) else -math.log(PLACEHOLDERS)
        if not (core.isascii() and core.isdigit()):
            return NEVER
        plain = len(core) <= LONGEST_SENTINEL or len(set(core)) == 1
        return -math.log(SENTINELS) - (0.0 if plain else len(core) * math.log(10))

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        return iter(())

    def words(self, seen: str, meant: str) -> str:
        return "a default or a placeholder"
