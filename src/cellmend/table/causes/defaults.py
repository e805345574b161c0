"""A default, a placeholder or a sentinel in place of a value."""

from __future__ import annotations

import math

from cellmend.table.causes.base import NEVER

PLACEHOLDERS = 50  # signs or runs of a sign that stand for nothing, such as *** and ??
SENTINELS = 100  # numbers that programs leave: -1, 9999, 11111111
LONGEST_SENTINEL = 2  # digits, if they differ
MEANT = frozenset("+%=<>@&$€£°±×≤≥≠√∞†‡✓✔✗✘")  # signs that say something: tags, and marks of more, less and equal


def log_chance_of_default(text: str) -> float:
    """Log probability of a sign or a number that stands where something else was meant, whatever it was.

    >>> round(math.exp(-log_chance_of_default("***"))), round(math.exp(-log_chance_of_default("-1")))
    (50, 100)
    >>> log_chance_of_default("n. a."), log_chance_of_default("+")
    (-inf, -inf)
    """
    core = text.lstrip("-")
    if not any(letter.isalnum() for letter in text):
        return NEVER if MEANT.intersection(text) else -math.log(PLACEHOLDERS)
    if not (core.isascii() and core.isdigit()):
        return NEVER
    plain = len(core) <= LONGEST_SENTINEL or len(set(core)) == 1
    return -math.log(SENTINELS) - (0.0 if plain else len(core) * math.log(10))
