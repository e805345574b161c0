"""Words that stand in many public tables: a word that no table has, a letter away from one that many have, is a slip.

The list was made by `python -m benchmarks.prior.learn words` from the tables that the weigher was learned from.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import numpy as np
import pyarrow as pa

from cellmend.posterior.known import Floats, Known
from cellmend.posterior.spelling import Speller, Words

LEAST_FAMILIES = 2  # of tables that have a word, for it to be a word: what one alone has may be its own slip


@dataclass(frozen=True)
class Lexicon:
    """Words, and how many families of public tables have each."""

    families: dict[str, int]

    @classmethod
    def from_bytes(cls, packed: bytes) -> Lexicon:
        lines = gzip.decompress(packed).decode().splitlines()
        return cls({word: int(count) for word, count in (line.split("\t") for line in lines)})

    def to_bytes(self) -> bytes:
        lines = [f"{word}\t{count}\n" for word, count in sorted(self.families.items()) if count >= LEAST_FAMILIES]
        return gzip.compress("".join(lines).encode(), mtime=0)

    def without(self, words: Collection[str]) -> Lexicon:
        """As it would be if one family fewer had these words."""
        own = set(words)
        left = {word: count - (word in own) for word, count in self.families.items()}
        return Lexicon({word: count for word, count in left.items() if count >= LEAST_FAMILIES})

    @cached_property
    def speller(self) -> Speller:
        return Speller(list(self.families), np.array(list(self.families.values()), dtype=np.float64))

    def near(self, word: str) -> str | None:
        """The commonest word within two slips of one that is none.

        >>> Lexicon({"louisville": 9, "nashville": 7}).near("lousiville")
        'louisville'
        """
        if word in self.families:
            return None
        place = self.speller.place_of(word)
        return None if place < 0 else self.speller.known[place]


_current: list[Lexicon] = []  # the one in use, once it was read


def lexicon() -> Lexicon:
    """The words that the package brings along."""
    if not _current:
        _current.append(Lexicon.from_bytes(resources.files("cellmend.posterior").joinpath("words.gz").read_bytes()))
    return _current[0]


@contextmanager
def never_seen(words: Collection[str]) -> Iterator[None]:
    """Meanwhile the lexicon is as if it had not been made from the table that has these words: to learn from it."""
    before = lexicon()
    _current[:] = [before.without(words)]
    try:
        yield
    finally:
        _current[:] = [before]


class CommonWords:
    """Are its words found in public tables, or nearly?"""

    names = ("words_unknown", "least_common_word", "meant_common", "meant_length")

    def of(self, known: Known, texts: pa.StringArray) -> Floats:
        here, common = Words.of(texts.to_pylist()), lexicon()
        figures = np.zeros((len(texts), 4))
        if not here.words:
            return figures
        often = np.array([common.families.get(word, 0) for word in here.words], dtype=np.float64)  # (W,)
        near = [None if count else common.near(word) for word, count in zip(here.words, often.tolist(), strict=True)]
        meant = np.log1p([0 if word is None else common.families[word] for word in near])
        words = np.bincount(here.text, minlength=len(texts))
        unknown = np.bincount(here.text, weights=often[here.word] == 0, minlength=len(texts))
        figures[:, 0] = unknown / np.maximum(words, 1)
        least = np.full(len(texts), np.inf)
        np.minimum.at(least, here.text, np.log1p(often)[here.word])
        figures[:, 1] = np.where(words > 0, least, 0.0)
        np.maximum.at(figures[:, 2], here.text, meant[here.word])
        is_best = (meant[here.word] == figures[here.text, 2]) & (meant[here.word] > 0)
        lengths = np.log([len(word) for word in here.words])
        figures[here.text[is_best], 3] = lengths[here.word[is_best]]
        return figures
