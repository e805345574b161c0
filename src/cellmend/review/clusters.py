"""Spellings of the same thing: values that differ in case, accents, signs, the order of words or a letter or two."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA
from rapidfuzz.process import cpdist

from cellmend.review.facets import Values

Ints = NDArray[np.int64]

MOST_VALUES = 50_000  # of a column, the most common ones, that are compared
SHORTEST, LONGEST = 4, 64  # letters of values that are compared letter by letter
LETTERS_PER_SLIP, MOST_SLIPS = 6, 2  # that two spellings may differ in
CROWD = 30  # values with one key that are compared with the most common of them
BLOCK = 5  # letters at the start, in the middle and at the end, of which values with two slips share some
NOT_A_LETTER = re.compile(r"[^\w\s]|_")
DIGITS = re.compile(r"\d+")
FOLDED = str.maketrans({"ß": "ss", "ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i"})


class Pair(NamedTuple):
    """A value and a more common one of which it may be another spelling, as places among the values."""

    seen: int
    known: int
    why: str


def pairs_of(values: Sequence[str]) -> list[Pair]:
    """For each value, the most common first, the most common other spelling of it, if there is one.

    >>> values = ["Köln", "New York", "Koeln", "köln", "York, New", "Bonn"]
    >>> [(values[each.seen], values[each.known], each.why) for each in pairs_of(values)]
    [('Koeln', 'Köln', 'differs in a letter or two'), ('köln', 'Köln', 'differs in case, accents, signs or order'), \
('York, New', 'New York', 'differs in case, accents, signs or order')]
    """
    values = values[:MOST_VALUES]
    plain = [folded(each) for each in values]
    found: dict[int, Pair] = {}
    for why, pairs in _ways(plain):
        for seen, known in pairs:
            if seen not in found and seen != known:
                found[seen] = Pair(seen, known, why)
    return [found[seen] for seen in sorted(found)]


def similar(values: Values) -> list[list[Pair]]:
    """Clusters of the values of a column, with their places among all values.

    >>> import pyarrow as pa
    >>> similar(Values.of(pa.chunked_array([["Bonn", "Köln", "köln", "Köln"]])))
    [[Pair(seen=2, known=1, why='differs in case, accents, signs or order')]]
    """
    listed = zip(values.common.tolist(), values.listed(values.common), strict=True)
    known = [(place, text) for place, text in listed if text is not None]
    places, texts = [place for place, _ in known], [text for _, text in known]
    return [
        [Pair(places[each.seen], places[each.known], each.why) for each in pairs]
        for pairs in clusters(len(texts), pairs_of(texts))
    ]


def _ways(plain: Sequence[str]) -> Iterator[tuple[str, Iterator[tuple[int, int]]]]:
    yield "differs in case, accents, signs or order", _same(plain, fingerprint)
    yield "differs in spaces or doubled letters", _same(plain, ngram_fingerprint)
    yield "differs in a letter or two", _near(plain)


def clusters(values: int, pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Pairs in clusters around the value that is no other's spelling, in the order of these values.

    >>> clusters(4, [Pair(1, 0, "case"), Pair(3, 1, "a letter")])
    [[Pair(seen=1, known=0, why='case'), Pair(seen=3, known=0, why='a letter')]]
    """
    centre = list(range(values))
    found: dict[int, list[Pair]] = {}
    for pair in sorted(pairs):  # a more common value comes before those that are spelled like it
        centre[pair.seen] = centre[pair.known]
        found.setdefault(centre[pair.seen], []).append(pair._replace(known=centre[pair.seen]))
    return [found[known] for known in sorted(found)]


# ---------------------------------------------------------------- keys that spellings of one thing share


def folded(text: str) -> str:
    """A text without case and accents.

    >>> folded("  Straße KÖLN ")
    'strasse koln'
    """
    plain = unicodedata.normalize("NFKD", text.strip().casefold().translate(FOLDED))
    return plain if plain.isascii() else "".join(each for each in plain if not unicodedata.combining(each))


def fingerprint(plain: str) -> str:
    """The different words of a folded text in alphabetical order, without signs.

    >>> fingerprint("york, new new")
    'new york'
    """
    return " ".join(sorted({*NOT_A_LETTER.sub(" " if "," in plain else "", plain).split()}))


def ngram_fingerprint(plain: str) -> str:
    """The different pairs of letters of a folded text in alphabetical order, without signs and spaces.

    >>> ngram_fingerprint("new-york") == ngram_fingerprint("newyork"), ngram_fingerprint("ulm")
    (True, 'lmul')
    """
    letters = "".join(NOT_A_LETTER.sub("", plain).split())
    return "".join(sorted({letters[place : place + 2] for place in range(len(letters) - 1)})) or letters


def _same(plain: Sequence[str], key_of: Callable[[str], str]) -> Iterator[tuple[int, int]]:
    """Each value with the most common one that has the same key and the same numbers."""
    first: dict[tuple[str, ...], int] = {}
    for place, text in enumerate(plain):
        if key := key_of(text):
            yield place, first.setdefault((key, *sorted(DIGITS.findall(text))), place)


def _near(plain: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Each value with the most common one that differs from it in a letter or two, but in no digit."""
    seen, known = _candidates(plain)
    if not len(seen):
        return
    texts = [[plain[place] for place in each.tolist()] for each in (seen, known)]
    slips = cpdist(*texts, scorer=OSA.distance, score_cutoff=MOST_SLIPS, dtype=np.int64)
    shorter = np.array([min(len(one), len(other)) for one, other in zip(*texts, strict=True)])
    close = np.flatnonzero((slips > 0) & (slips <= np.maximum(shorter // LETTERS_PER_SLIP, 1)) & (slips <= MOST_SLIPS))
    order = close[np.lexsort((known[close], slips[close], seen[close]))]
    for at in order.tolist():
        one, other = texts[0][at], texts[1][at]
        if DIGITS.findall(one) == DIGITS.findall(other):
            yield int(seen[at]), int(known[at])


def _candidates(plain: Sequence[str]) -> tuple[Ints, Ints]:
    """Pairs of values that share a key; the second is the more common one."""
    keys: dict[str, int] = {}
    compared = (place for place, text in enumerate(plain) if SHORTEST <= len(text) <= LONGEST)
    keyed = [(keys.setdefault(key, len(keys)), place) for place in compared for key in _keys(plain[place])]
    key, place = np.array(keyed, dtype=np.int64).reshape(-1, 2).T
    order = np.lexsort((place, key))
    key, place = key[order], place[order]
    rank = np.arange(len(key)) - np.searchsorted(key, key)  # among those with the same key
    found = []
    for step in range(1, CROWD):
        later = np.flatnonzero(rank >= step)
        found.append(place[later] * len(plain) + place[later - step])
    pairs = np.unique(np.concatenate(found)) if len(key) else np.zeros(0, dtype=np.int64)
    return pairs // max(len(plain), 1), pairs % max(len(plain), 1)


def _keys(text: str) -> set[str]:
    """What texts that differ in a letter share, and long ones that differ in two: all letters but one, or a part."""
    without = {text[:gone] + text[gone + 1 :] for gone in range(len(text))}
    is_long = len(text) >= MOST_SLIPS * LETTERS_PER_SLIP
    middle = (len(text) - BLOCK) // 2
    parts = {f"{text[:BLOCK]}\0", f"\0{text[middle : middle + BLOCK]}\0", f"\0{text[-BLOCK:]}"}
    return without | {text} | (parts if is_long else set())
