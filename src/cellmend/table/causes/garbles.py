"""Texts of which much is gone: typed at random over what was meant, or cut off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from cellmend.table.causes.base import NEVER
from cellmend.table.priors import TOGETHER

KEPT = 0.25  # of the letters of a text that is typed at random
FEWEST_LETTERS = 6  # of a word; of a shorter one, such as a code, nothing is left that tells it
SHORTEST = 4  # letters that are left of a text that is cut off
CUT = 2  # letters at least that are gone, or it is a slip


def scrambled(seen: str, meant: str) -> float:
    """Letters replaced at random, each by one of its case; signs, spaces and digits stay.

    >>> [scrambled(seen, "United States") > -36 for seen in ("Mnlreb Ahcnes", "Mnlrxb Ahcnxq")]
    [True, False]
    >>> scrambled("United Stated", "United States")
    -inf
    """
    if shape_of(seen) != shape_of(meant):
        return NEVER
    letters = sum(letter.isalpha() for letter in meant)
    changed = sum(a != b for a, b in zip(seen, meant, strict=True))
    if changed < TOGETHER or letters < FEWEST_LETTERS:
        return NEVER
    return chance_of_scrambled(letters, changed)


def chance_of_scrambled(letters: int, changed: int) -> float:
    """That of so many letters of a text changed."""
    return (letters - changed) * math.log(KEPT) + changed * math.log((1 - KEPT) / 25)


def truncated(seen: str, meant: str) -> float:
    """The end of a text cut off within a word; whole words are left out by people who mean it.

    >>> round(math.exp(-truncated("Rockingham Cou", "Rockingham County")))
    17
    >>> truncated("Rockingham", "Rockingham County")
    -inf
    """
    gone = len(meant) - len(seen)
    if gone < CUT or len(seen) < SHORTEST or not meant.startswith(seen):
        return NEVER
    within = seen[-1].isalpha() and meant[len(seen)].isalpha() and seen[-1].isupper() <= meant[len(seen)].isupper()
    return -math.log(len(meant)) if within else NEVER


def told_by_rest(text: str, values: Sequence[str]) -> tuple[str, ...]:
    """The one value that has all signs of a garbled text in their order, however often each was typed; none if there is
    another.

    >>> told_by_rest("33..66", ["31.7", "39.6", "55.5"]), told_by_rest("33..", ["31.7", "39.6", "55.5"])
    (('39.6',), ())
    """
    left = [sign for sign, _ in groupby(text)]
    rests = ((value, iter(value)) for value in values if len(left) >= TOGETHER)
    fitting = [value for value, rest in rests if all(sign in rest for sign in left)]
    return tuple(fitting) if len(fitting) == 1 else ()


def shape_of(text: str) -> str:
    """A text with its letters as such, and all else as it is.

    >>> shape_of("B3-Main st")
    'A3-Aaaa aa'
    """
    return "".join("A" if letter.isupper() else "a" if letter.isalpha() else letter for letter in text)
