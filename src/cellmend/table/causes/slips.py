"""Slips of the keyboard: one letter too many, too few, another, two exchanged; case, spaces, signs around.

Of each slip a function says the log chance of what is seen, given what was meant; another yields what may have been
meant by what is seen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from rapidfuzz.distance import OSA

from cellmend.table.causes.base import LETTERS, NEVER
from cellmend.table.texts import alike_until

JUNK_KINDS = 10  # signs, and how often they stand
OTHER_SLIP = 0.05  # that a second slip follows the first
_JUNK = re.compile(r"([^\w\s])\1*")


def inserted(seen: str, meant: str) -> float:
    """A letter too many.

    >>> round(math.exp(-inserted("KIcNGS", "KINGS")))
    360
    """
    return -math.log((len(meant) + 1) * LETTERS) if _is_without_one(seen, meant) else NEVER


def undo_inserted(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    """The letter before the place, or that at it, left out."""
    for gone in (place - 1, place):
        if 0 <= gone < len(seen):
            yield seen[:gone] + seen[gone + 1 :]


def doubled(seen: str, meant: str) -> float:
    """A letter typed twice.

    >>> round(math.exp(-doubled("KINNGS", "KINGS")))
    5
    """
    place = alike_until(seen, meant)
    is_twice = _is_without_one(seen, meant) and place and seen[place] == seen[place - 1]
    return -math.log(len(meant)) if is_twice else NEVER


def undo_doubled(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    """One of two equal letters left out."""
    if 0 < place < len(seen) and seen[place] == seen[place - 1]:
        yield seen[:place] + seen[place + 1 :]


def dropped(seen: str, meant: str) -> float:
    """A letter too few.

    >>> round(math.exp(-dropped("KNGS", "KINGS")))
    5
    """
    return -math.log(len(meant)) if _is_without_one(meant, seen) else NEVER


def undo_dropped(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    """A likely letter put in."""
    for letter in likely:
        yield seen[:place] + letter + seen[place:]


def replaced(seen: str, meant: str) -> float:
    """Another letter.

    >>> round(math.exp(-replaced("KIxGS", "KINGS")))
    300
    """
    if len(seen) != len(meant) or sum(a != b for a, b in zip(seen, meant, strict=True)) != 1:
        return NEVER
    return chance_of_replaced(len(meant))


def chance_of_replaced(length: int) -> float:
    """That of another letter in a text of this length."""
    return -math.log(length * LETTERS)


def undo_replaced(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    """A likely letter in place of the strange one."""
    for letter in likely:
        if place < len(seen) and letter != seen[place]:
            yield seen[:place] + letter + seen[place + 1 :]


def swapped(seen: str, meant: str) -> float:
    """Two neighbours exchanged.

    >>> round(math.exp(-swapped("IKNGS", "KINGS")))
    4
    """
    at = alike_until(seen, meant)
    exchanged = meant[:at] + meant[at : at + 2][::-1] + meant[at + 2 :]
    return -math.log(len(meant) - 1) if seen == exchanged != meant else NEVER


def undo_swapped(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    """The letter exchanged with that before or after it."""
    for first in (place - 1, place):
        if 0 <= first < len(seen) - 1 and seen[first] != seen[first + 1]:
            yield seen[:first] + seen[first + 1] + seen[first] + seen[first + 2 :]


def throughout(seen: str, meant: str) -> float:
    """One letter replaced by another wherever it stands.

    >>> round(math.exp(-throughout("hexrt xttxck", "heart attack")))
    480
    """
    changes = {(a, b) for a, b in zip(seen, meant, strict=False) if a != b}
    if len(seen) != len(meant) or len(changes) != 1:
        return NEVER
    new, old = next(iter(changes))
    if meant.count(old) < 2 or seen.count(old) or new in meant or len(set(meant)) == 1:
        return NEVER
    return -math.log(len(set(meant)) * LETTERS)


def undo_throughout(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    """Each of these letters replaced by a likely one."""
    if place < len(seen) and 1 < seen.count(seen[place]) < len(seen):
        for letter in likely:
            if letter not in seen:
                yield seen.replace(seen[place], letter)


def several(seen: str, meant: str) -> float:
    """Two slips or more: each as likely as a letter replaced.

    >>> several("KxxGS", "KINGS") < replaced("KIxGS", "KINGS")
    True
    """
    slips = OSA.distance(seen, meant)
    if slips < 2 or slips > most_slips(len(meant)) or has_another_word(seen, meant):
        return NEVER
    if slips >= max(len(seen), len(meant)):  # no letter is left that could tell
        return NEVER
    return chance_of_several(slips, len(meant))


def most_slips(length: int) -> int:
    """That are made in a text of this length."""
    return max(2, length // 3)


def chance_of_several(slips: int, length: int) -> float:
    """That of so many slips in a text of this length."""
    each = math.log(max(length, 1) * LETTERS)
    return -slips * each + math.lgamma(slips + 1) + (slips - 1) * math.log(OTHER_SLIP * 4)


def has_another_word(seen: str, meant: str) -> bool:
    """Is one of the words another one, in which most letters differ, and not one with slips?

    >>> has_another_word("Pale Blue", "Dark Blue"), has_another_word("Drk Bleu", "Dark Blue")
    (True, False)
    """
    own, others = seen.split(), meant.split()
    apart = (OSA.distance(one, other) > max(2, len(other) // 2) for one, other in zip(own, others, strict=False))
    return len(own) == len(others) > 1 and any(apart)


def cased(seen: str, meant: str) -> float:
    """Capitals in place of small letters or the other way round.

    >>> round(math.exp(-cased("kings", "KINGS")))
    4
    """
    if seen == meant or seen.casefold() != meant.casefold():
        return NEVER
    whole = seen in (meant.lower(), meant.upper(), meant.title(), meant.capitalize())
    return -math.log(4) if whole else -math.log(4 * len(meant))


def spaced(seen: str, meant: str) -> float:
    """A space too many or too few.

    >>> round(math.exp(-spaced("NEWYORK", "NEW YORK")))
    9
    """
    if seen == meant or "".join(seen.split()) != "".join(meant.split()):
        return NEVER
    return -math.log(len(meant) + 1) * max(1, abs(len(seen) - len(meant)))


def undo_spaced(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    """A space put in, or one left out."""
    if 0 < place < len(seen):
        yield seen[:place] + " " + seen[place:]
    for gone in (place - 1, place):
        if 0 <= gone < len(seen) and seen[gone] == " ":
            yield seen[:gone] + seen[gone + 1 :]


def framed(seen: str, meant: str) -> float:
    """Signs set before or after the text.

    >>> round(math.exp(-framed("KINGS***", "KINGS")))
    20
    """
    rest = seen.removeprefix(meant) if seen.startswith(meant) else seen.removesuffix(meant)
    if not meant or rest == seen or len(rest) < 2 or not _JUNK.fullmatch(rest):
        return NEVER
    return -math.log(2 * JUNK_KINDS)


def undo_framed(seen: str, place: int = 0, likely: Sequence[str] = "") -> Iterator[str]:
    """The text without its signs."""
    for found in _JUNK.finditer(seen):
        if len(found[0]) > 1 and (found.start() == 0) != (found.end() == len(seen)):
            yield seen[: found.start()] + seen[found.end() :]


def backwards(seen: str, meant: str) -> float:
    """The text backwards.

    >>> backwards("sgniK", "Kings")
    0.0
    """
    return 0.0 if len(seen) > 2 and seen != meant and seen == meant[::-1] else NEVER


def undo_backwards(seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
    """The text turned round."""
    if len(seen) > 2 and seen != seen[::-1]:
        yield seen[::-1]


def _is_without_one(long: str, short: str) -> bool:
    """Does the short text become of the long one by leaving out one letter?"""
    place = alike_until(long, short)
    return len(long) == len(short) + 1 and long[place + 1 :] == short[place:]
