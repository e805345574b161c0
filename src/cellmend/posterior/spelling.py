"""Neighbours in spelling: for each word or text a more frequent one that differs in a letter or two."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA
from rapidfuzz.process import cpdist

from cellmend.posterior.priors import MOST_SPELLED

Floats = NDArray[np.float64]
WORD = re.compile(r"[^\W\d_]{3,}")
LONGEST_KEY = 32  # letters of a text that is compared by spelling: longer ones differ in words


@dataclass(frozen=True)
class Neighbours:
    """For each text, (T,): the place of a more frequent one that differs in little, -1 if there is none."""

    place: NDArray[np.int64]
    distance: Floats  # in letters


def nearest(asked: Sequence[str], known: Sequence[str], counts: Floats) -> Neighbours:
    """For each text asked about the most frequent known one within two slips; texts known as often do not count.

    >>> nearest(["Lousiville"], ["Louisville", "Lousiville"], np.array([9.0, 1.0])).place.tolist()
    [0]
    """
    speller = Speller(known, counts)
    place = np.array([speller.place_of(text) for text in asked], dtype=np.int64)
    has = np.flatnonzero(place >= 0)
    distance = np.zeros(len(asked))
    if len(has):
        pairs = [asked[at] for at in has.tolist()], [known[place[at]] for at in has.tolist()]
        distance[has] = cpdist(*pairs, scorer=OSA.distance, dtype=np.float64)
    return Neighbours(place, distance)


class Speller:
    """Known texts by their spelling, for one question after the other.

    Texts that have all letters but one in common share a key, so nothing is compared pair by pair.
    """

    def __init__(self, known: Sequence[str], counts: Floats) -> None:
        self.known, self.counts = known, counts

    @cached_property
    def _best(self) -> dict[str, int]:
        """By key the most frequent text that has it."""
        best: dict[str, int] = {}
        for at in np.argsort(-np.asarray(self.counts), kind="stable")[:MOST_SPELLED].tolist():
            for key in _keys(self.known[at]):
                best.setdefault(key, at)  # the most frequent comes first
        return best

    @cached_property
    def _own(self) -> dict[str, int]:
        return {text: at for at, text in enumerate(self.known)}

    def count_of(self, text: str) -> float:
        """How often a text is known."""
        return float(self.counts[self._own[text]]) if text in self._own else 0.0

    def place_of(self, text: str) -> int:
        """The place of the most frequent known text within two slips that is more frequent, -1 if there is none."""
        often, best = self.count_of(text), self._best
        found = [best[key] for key in _keys(text) if key in best]
        found = [each for each in found if self.counts[each] > often and self.known[each] != text]
        return max(found, key=lambda each: self.counts[each]) if found else -1


def _keys(text: str) -> list[str]:
    """The text, and the text with each letter left out; in one order in every process, which a set has not."""
    if not 3 <= len(text) <= LONGEST_KEY:
        return []
    return list(dict.fromkeys([text, *(text[:gone] + text[gone + 1 :] for gone in range(len(text)))]))


@dataclass(frozen=True)
class Words:
    """The words of texts, (T,) lists flattened: which text each belongs to and which word it is."""

    words: list[str]  # different ones, (W,)
    word: NDArray[np.int64]  # (M,)
    text: NDArray[np.int64]  # (M,)

    @classmethod
    def of(cls, texts: Sequence[str]) -> Words:
        """Words of three letters and more, without case."""
        place: dict[str, int] = {}
        word, text = [], []
        for at, each in enumerate(texts):
            for found in WORD.findall(each[: 4 * LONGEST_KEY].lower()):
                word.append(place.setdefault(found, len(place)))
                text.append(at)
        return cls(list(place), np.array(word, dtype=np.int64), np.array(text, dtype=np.int64))

    def counts(self, cells: Floats) -> Floats:
        """Cells whose text has each word, (W,)."""
        pairs = np.unique(np.stack([self.word, self.text]), axis=1) if len(self.word) else np.zeros((2, 0), np.int64)
        return np.bincount(pairs[0], cells[pairs[1]], minlength=len(self.words)).astype(np.float64)
