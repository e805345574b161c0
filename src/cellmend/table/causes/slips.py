"""Slips of the keyboard: one letter too many, too few, another, two exchanged; case, spaces, signs around."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from rapidfuzz.distance import OSA

from cellmend.table.causes.base import LETTERS, NEVER, Cause

JUNK_KINDS = 10  # signs, and how often they stand
OTHER_SLIP = 0.05  # that a second slip follows the first
_JUNK = re.compile(r"([^\w\s])\1*")


class Inserted(Cause):
    """A letter too many.

    >>> round(math.exp(-Inserted().log_chance("KIcNGS", "KINGS")))
    360
    """

    name = "inserted"
    told = "with a letter too many"

    def log_chance(self, seen: str, meant: str) -> float:
        if len(seen) != len(meant) + 1 or not _is_without_one(seen, meant):
            return NEVER
        return -math.log((len(meant) + 1) * LETTERS)

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        for gone in (place - 1, place):
            if 0 <= gone < len(seen):
                yield seen[:gone] + seen[gone + 1 :]


class Doubled(Cause):
    """A letter typed twice.

    >>> round(math.exp(-Doubled().log_chance("KINNGS", "KINGS")))
    5
    """

    name = "doubled"
    told = "with a letter typed twice"

    def log_chance(self, seen: str, meant: str) -> float:
        if len(seen) != len(meant) + 1 or not _is_without_one(seen, meant):
            return NEVER
        place = _first_difference(seen, meant)
        return -math.log(len(meant)) if place and seen[place] == seen[place - 1] else NEVER

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        if 0 < place < len(seen) and seen[place] == seen[place - 1]:
            yield seen[:place] + seen[place + 1 :]


class Dropped(Cause):
    """A letter too few.

    >>> round(math.exp(-Dropped().log_chance("KNGS", "KINGS")))
    5
    """

    name = "dropped"
    told = "with a letter left out"

    def log_chance(self, seen: str, meant: str) -> float:
        if len(meant) != len(seen) + 1 or not _is_without_one(meant, seen):
            return NEVER
        return -math.log(len(meant))

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        for letter in likely:
            yield seen[:place] + letter + seen[place:]


class Replaced(Cause):
    """Another letter.

    >>> round(math.exp(-Replaced().log_chance("KIxGS", "KINGS")))
    300
    """

    name = "replaced"
    told = "with another letter"

    def log_chance(self, seen: str, meant: str) -> float:
        if len(seen) != len(meant) or sum(a != b for a, b in zip(seen, meant, strict=True)) != 1:
            return NEVER
        return -math.log(len(meant) * LETTERS)

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        if place < len(seen):
            for letter in likely:
                if letter != seen[place]:
                    yield seen[:place] + letter + seen[place + 1 :]

    def words(self, meant: str) -> str:
        return super().words(meant) if len(meant) > 1 else "one of the others, mistyped"


class Swapped(Cause):
    """Two neighbours exchanged.

    >>> round(math.exp(-Swapped().log_chance("IKNGS", "KINGS")))
    4
    """

    name = "swapped"
    told = "with two letters exchanged"

    def log_chance(self, seen: str, meant: str) -> float:
        if len(seen) != len(meant) or seen == meant:
            return NEVER
        place = _first_difference(seen, meant)
        if seen[place : place + 2] != meant[place : place + 2][::-1] or seen[place + 2 :] != meant[place + 2 :]:
            return NEVER
        return -math.log(len(meant) - 1)

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        for first in (place - 1, place):
            if 0 <= first < len(seen) - 1 and seen[first] != seen[first + 1]:
                yield seen[:first] + seen[first + 1] + seen[first] + seen[first + 2 :]


class Throughout(Cause):
    """One letter replaced by another wherever it stands.

    >>> round(math.exp(-Throughout().log_chance("hexrt xttxck", "heart attack")))
    480
    """

    name = "throughout"
    told = "with one letter replaced throughout"

    def log_chance(self, seen: str, meant: str) -> float:
        if len(seen) != len(meant):
            return NEVER
        changes = {(a, b) for a, b in zip(seen, meant, strict=True) if a != b}
        if len(changes) != 1:
            return NEVER
        new, old = next(iter(changes))
        if meant.count(old) < 2 or seen.count(old) or new in meant or len(set(meant)) == 1:
            return NEVER
        return -math.log(len(set(meant)) * LETTERS)

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        if place < len(seen) and 1 < seen.count(seen[place]) < len(seen):
            for letter in likely:
                if letter not in seen:
                    yield seen.replace(seen[place], letter)


class Several(Cause):
    """Two slips or more: each as likely as a letter replaced.

    >>> Several().log_chance("KxxGS", "KINGS") < Replaced().log_chance("KIxGS", "KINGS")
    True
    """

    name = "several"
    told = "with several letters wrong"

    def log_chance(self, seen: str, meant: str) -> float:
        slips = OSA.distance(seen, meant)
        if slips < 2 or slips > max(2, len(meant) // 3) or _has_another_word(seen, meant):
            return NEVER
        if slips >= max(len(seen), len(meant)):  # no letter is left that could tell
            return NEVER
        each = math.log(max(len(meant), 1) * LETTERS)
        return -slips * each + math.lgamma(slips + 1) + (slips - 1) * math.log(OTHER_SLIP * 4)


def _has_another_word(seen: str, meant: str) -> bool:
    """Is one of the words another one, in which most letters differ, and not one with slips?

    >>> _has_another_word("Pale Blue", "Dark Blue"), _has_another_word("Drk Bleu", "Dark Blue")
    (True, False)
    """
    own, others = seen.split(), meant.split()
    apart = (OSA.distance(one, other) > max(2, len(other) // 2) for one, other in zip(own, others, strict=False))
    return len(own) == len(others) > 1 and any(apart)


class Cased(Cause):
    """Capitals in place of small letters or the other way round.

    >>> round(math.exp(-Cased().log_chance("kings", "KINGS")))
    4
    """

    name = "cased"
    told = "in other case"

    def log_chance(self, seen: str, meant: str) -> float:
        if seen == meant or seen.casefold() != meant.casefold():
            return NEVER
        whole = seen in (meant.lower(), meant.upper(), meant.title(), meant.capitalize())
        return -math.log(4) if whole else -math.log(4 * len(meant))


class Spaced(Cause):
    """A space too many or too few.

    >>> round(math.exp(-Spaced().log_chance("NEWYORK", "NEW YORK")))
    9
    """

    name = "spaced"
    told = "with a space wrong"

    def log_chance(self, seen: str, meant: str) -> float:
        if seen == meant or "".join(seen.split()) != "".join(meant.split()):
            return NEVER
        return -math.log(len(meant) + 1) * max(1, abs(len(seen) - len(meant)))

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        if 0 < place < len(seen):
            yield seen[:place] + " " + seen[place:]
        for gone in (place - 1, place):
            if 0 <= gone < len(seen) and seen[gone] == " ":
                yield seen[:gone] + seen[gone + 1 :]


class Framed(Cause):
    """Signs set before or after the text.

    >>> round(math.exp(-Framed().log_chance("KINGS***", "KINGS")))
    20
    """

    name = "framed"
    told = "with signs around it"

    def log_chance(self, seen: str, meant: str) -> float:
        rest = seen.removeprefix(meant) if seen.startswith(meant) else seen.removesuffix(meant)
        if not meant or rest == seen or len(rest) < 2 or not _JUNK.fullmatch(rest):
            return NEVER
        return -math.log(2 * JUNK_KINDS)

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        for found in _JUNK.finditer(seen):
            if len(found[0]) > 1 and (found.start() == 0) != (found.end() == len(seen)):
                yield seen[: found.start()] + seen[found.end() :]


class Reversed(Cause):
    """The text backwards.

    >>> Reversed().log_chance("sgniK", "Kings")
    0.0
    """

    name = "reversed"
    told = "backwards"

    def log_chance(self, seen: str, meant: str) -> float:
        return 0.0 if len(seen) > 2 and seen != meant and seen == meant[::-1] else NEVER

    def undo(self, seen: str, place: int, likely: Sequence[str]) -> Iterator[str]:
        if len(seen) > 2 and seen != seen[::-1]:
            yield seen[::-1]


def _first_difference(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_without_one(long: str, short: str) -> bool:
    """Does the short text become of the long one by leaving out one letter?"""
    place = _first_difference(long, short)
    return long[place + 1 :] == short[place:]
