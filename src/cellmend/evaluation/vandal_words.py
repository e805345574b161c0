"""What people do to a word when they get it wrong: each function spoils a text, or gives it back as it was.

`flavour` in [0, 1) chooses among the ways to err, so that a habit can err in the same way again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

Rng = np.random.Generator
T = TypeVar("T")

BESIDE = {
    "q": "wa", "w": "qes", "e": "wrd", "r": "etf", "t": "ryg", "y": "tuh", "u": "yij", "i": "uok", "o": "ipl",
    "p": "ol", "a": "qsz", "s": "adwx", "d": "sfec", "f": "dgrv", "g": "fhtb", "h": "gjyn", "j": "hkum", "k": "jlio",
    "l": "kop", "z": "xas", "x": "zcsd", "c": "xvdf", "v": "cbfg", "b": "vngh", "n": "bmhj", "m": "njk",
}  # fmt: skip
PLACEHOLDERS = ("TBD", "xxx", "?", "test", "to be determined", "XXXX", "???", "see notes", "dummy", "asdf", "pending")
MISSING_WORDS = ("unknown", "n/a", "N/A", "-", "NULL", "none", "not available", "--", "NaN", "Unknown", ".")
ACCENTS = {"a": "á", "e": "é", "i": "í", "o": "ö", "u": "ü", "n": "ñ", "c": "ç", "A": "Ä", "E": "É", "O": "Ö", "U": "Ü"}
LOOK_ALIKES = ({"0": "O", "1": "l"}, {"0": "o", "1": "I"}, {"5": "S", "0": "O"}, {"8": "B", "1": "l"})


def pick(options: Sequence[T], flavour: float) -> T:
    """The option that a flavour stands for."""
    return options[int(flavour * len(options))]


def one_of(options: Sequence[T], rng: Rng) -> T:
    """Any of the options."""
    return options[int(rng.integers(len(options)))]


def letters(text: str) -> list[int]:
    """Where plain letters stand, without the first one, at which people look."""
    return [place for place, letter in enumerate(text) if letter.isascii() and letter.isalpha()][1:]


def slip(text: str, rng: Rng, flavour: float) -> str:
    """The key beside the right one."""
    places = letters(text)
    if not places:
        return text
    place = one_of(places, rng)
    key = pick(BESIDE[text[place].lower()], flavour)
    return text[:place] + (key.upper() if text[place].isupper() else key) + text[place + 1 :]


def drop(text: str, rng: Rng, flavour: float) -> str:
    """A letter left out."""
    places = letters(text)
    place = one_of(places, rng) if places else len(text)
    return text[:place] + text[place + 1 :]


def double(text: str, rng: Rng, flavour: float) -> str:
    """A letter struck twice."""
    places = letters(text)
    place = one_of(places, rng) if places else len(text)
    return text[:place] + text[place : place + 1] + text[place:]


def swap(text: str, rng: Rng, flavour: float) -> str:
    """Two letters in the wrong order."""
    pairs = [(a, b) for a, b in pairwise(letters(text)) if b == a + 1]
    pairs = [(a, b) for a, b in pairs if text[a].lower() != text[b].lower() and text[a].isupper() == text[b].isupper()]
    if not pairs:
        return text
    a, b = one_of(pairs, rng)
    return text[:a] + text[b] + text[a] + text[b + 1 :]


def change_case(text: str, rng: Rng, flavour: float) -> str:
    """Small letters for capitals, capitals for small ones, or the caps-lock key."""
    ways = [str.lower, str.upper, str.swapcase, str.title, str.lower]
    start = int(flavour * len(ways))
    return next((way(text) for way in ways[start:] + ways[:start] if way(text) != text), text)


def add_spaces(text: str, rng: Rng, flavour: float) -> str:
    """A space before or after, or two between words."""
    where = [place for place, letter in enumerate(text) if letter == " "]
    if flavour < 1 / 3 and where:
        place = one_of(where, rng)
        return text[:place] + " " + text[place:]
    return f" {text}" if flavour < 0.6 else f"{text} " if flavour < 0.9 else f"  {text}"


def mangle(text: str, rng: Rng, flavour: float) -> str:
    """UTF-8 read as Latin-1, of an accent that is there or was typed."""
    if text.isascii():
        places = [place for place, letter in enumerate(text) if letter in ACCENTS]
        if not places:
            return text
        place = one_of(places, rng)
        text = text[:place] + ACCENTS[text[place]] + text[place + 1 :]
    if flavour < 0.2:
        return "".join("�" if ord(letter) > 127 else letter for letter in text)
    return text.encode("utf-8").decode("cp1252", errors="replace")


def say_one_of(words: Sequence[str], text: str, rng: Rng, flavour: float) -> str:
    """One of these words, whatever was known."""
    return pick(words, flavour)


def look_alike(text: str, rng: Rng, flavour: float) -> str:
    """A letter that looks like a digit."""
    letters_for = pick(LOOK_ALIKES, flavour)
    places = [place for place, digit in enumerate(text) if digit in letters_for]
    if not places:
        return text
    place = one_of(places, rng)
    return text[:place] + letters_for[text[place]] + text[place + 1 :]


def wrong_digit(text: str, rng: Rng, flavour: float) -> str:
    """One of the leading digits is another one."""
    places = [place for place, digit in enumerate(text) if digit.isascii() and digit.isdigit()][:6]
    if not places:
        return text
    place = one_of(places, rng)
    lead = place == places[0] and len(places) > 1
    digit = one_of([each for each in "0123456789"[lead:] if each != text[place]], rng)
    return text[:place] + digit + text[place + 1 :]


def cut_off(text: str, rng: Rng, flavour: float) -> str:
    """The end is missing."""
    length = max(2, int(len(text) * (0.4 + 0.45 * rng.random())))
    return text[:length].rstrip()
