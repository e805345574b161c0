"""How natural a text is in its column: which letters follow which, learned from the column's own values.

A model of letters with contexts of up to five, each context backing off to the next shorter one by Witten and Bell's
rule. A text is judged by all others of its column and not by itself. What depends on the texts alone is looked up
once; weights, which say how much each text is trusted, may then change cheaply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cellmend.table.priors import MULTIPLIER
from cellmend.table.values import Floats, Ints

CONTEXT = 5  # letters before a letter that say what it may be
START, END = "\x02", "\x03"
LIKELY_CONTEXTS = (4, 2)  # lengths of contexts by which a letter that is missing is guessed
MOST_LIKELY = 3  # letters that are tried
FULLEST, MOST_VARIED = 8, 4  # powers of two of letters after a context, and kinds beside the first, told apart
PRIOR_LETTERS = 5.0  # that Witten and Bell's rule counts for
ESCAPE_ROUNDS = 2
LEAST_SEEN = 0.05  # of a text must be trusted, or a context is unknown
ANY = 1 / 256  # chance of a letter that the column does not have
_MULTIPLIER = np.uint64(MULTIPLIER)
_FIRST_ESCAPE = np.array(
    [(1.0 + v) / (1.0 + v + max(2.0**f, 1.0 + v)) for f in range(FULLEST + 1) for v in range(MOST_VARIED + 1)]
)  # Witten and Bell's rule: as many new letters as kinds that were seen
_OWNER = np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True)
class Looked:
    """Letters of texts, looked up: for each order which letters with their contexts they are, -1 if unknown."""

    letters: Ints  # (orders, M) place among the letters with context
    contexts: Ints  # (orders, M) place among the contexts
    own: Ints  # (orders, M) how often the owner has it itself
    own_context: Ints
    owner: Ints  # (M,) text that is left out of what is known
    item: Ints  # (M,) which of the texts looked up the letter belongs to


class Letters:
    """Which letters follow which in these texts.

    >>> letters = Letters(["rome", "oslo", "roma"])
    >>> found = letters.look(["rome", "rxme"], [0, 0])
    >>> natural = letters.log_chances(found)
    >>> bool(np.bincount(found.item, natural)[0] > np.bincount(found.item, natural)[1])
    True
    """

    def __init__(self, texts: Sequence[str], weights: Floats | None = None) -> None:
        self.texts = texts
        hashes, context_hashes, owner, codes = _hashed([START * CONTEXT] * len(texts), [text + END for text in texts])
        self._owner = owner
        self._known: list[tuple[NDArray[np.uint64], NDArray[np.uint64]]] = []
        self._pairs: list[tuple[NDArray[np.uint64], Ints, NDArray[np.uint64], Ints]] = []
        self._places: list[tuple[Ints, Ints]] = []
        self._context_of: list[Ints] = []
        self._letter_of: list[list[str]] = []
        mixed = (owner.astype(np.uint64) + np.uint64(1)) * _OWNER
        for own, before in zip(hashes, context_hashes, strict=True):
            letters, first, place = np.unique(own, return_index=True, return_inverse=True)
            contexts, at = np.unique(before, return_inverse=True)
            pairs, times = np.unique(own ^ mixed, return_counts=True)
            context_pairs, context_times = np.unique(before ^ mixed, return_counts=True)
            self._known.append((letters, contexts))
            self._places.append((place, at))
            self._context_of.append(at[first])
            self._letter_of.append([chr(code) for code in codes[first].tolist()])
            self._pairs.append((pairs, times, context_pairs, context_times))
        self._escapes = [_FIRST_ESCAPE.copy() for _ in range(CONTEXT + 1)]
        self.itself = self.look(texts, range(len(texts)))
        self.trust(np.ones(len(texts)) if weights is None else weights)

    def look(self, texts: Sequence[str], owners: Sequence[int], before: Sequence[str] | None = None) -> Looked:
        """Look up whole texts, or with `before` pieces that stand after these five letters; owners are left out."""
        bodies = [text + END for text in texts] if before is None else list(texts)
        starts = [START * CONTEXT] * len(texts) if before is None else before
        hashes, context_hashes, item, _ = _hashed(starts, bodies)
        owner = np.asarray(owners, dtype=np.int64)[item]
        mixed = (owner.astype(np.uint64) + np.uint64(1)) * _OWNER
        found = []
        for order, (own, prior) in enumerate(zip(hashes, context_hashes, strict=True)):
            letters, contexts = self._known[order]
            pairs, times, context_pairs, context_times = self._pairs[order]
            of_owner = _counts_of(own ^ mixed, pairs, times), _counts_of(prior ^ mixed, context_pairs, context_times)
            found.append((_places_of(own, letters), _places_of(prior, contexts), *of_owner))
        types = (np.int32, np.int32, np.int16, np.int16)  # there are millions
        parts = [np.stack(each, dtype=type_) for each, type_ in zip(zip(*found, strict=True), types, strict=True)]
        return Looked(parts[0], parts[1], parts[2], parts[3], owner, item)

    def trust(self, weights: Floats) -> None:
        """Let each text count with this weight, (T,); and learn again how often letters are new after a context."""
        self._weights = np.append(weights, 0.0)
        of_letter = weights[self._owner]
        self._tables = []
        for order in range(CONTEXT + 1):
            place, at = self._places[order]
            counts, totals = np.bincount(place, of_letter), np.bincount(at, of_letter)
            kinds = np.bincount(self._context_of[order], np.minimum(counts, 1.0), minlength=len(totals))
            self._tables.append((np.append(counts, 0.0), np.append(totals, 0.0), np.append(kinds, 0.0)))
        levels = self._levels(self.itself)
        for _ in range(ESCAPE_ROUNDS):
            self._learn_escapes(levels, of_letter)

    def _learn_escapes(self, levels: list[tuple[Any, ...]], weights: Floats) -> None:
        """How often a letter is not among those seen after its context, by the order and fullness of the context."""
        below = [np.full(len(weights), ANY)]
        for order, (share, known, cell) in enumerate(levels):
            escape = self._escapes[order][cell]
            below.append(np.where(known, (1 - escape) * share + escape * below[-1], below[-1]))
        reached = weights.copy()
        for order in range(CONTEXT, -1, -1):
            share, known, cell = levels[order]
            escaped = np.where(known, self._escapes[order][cell] * below[order] / below[order + 1], 1.0) * reached
            size = len(self._escapes[order])
            lost, all_ = (np.bincount(cell[known], each[known], minlength=size) for each in (escaped, reached))
            self._escapes[order] = (lost + PRIOR_LETTERS * _FIRST_ESCAPE) / (all_ + PRIOR_LETTERS)
            reached = escaped

    def _levels(self, looked: Looked) -> list[tuple[Any, ...]]:
        """For each order: the share that a letter has after its context, is the context known, and how full it is."""
        own_weight, levels = self._weights[looked.owner], []
        for order, (counts, totals, kinds) in enumerate(self._tables):
            with_own = counts[looked.letters[order]]
            count = np.maximum(with_own - looked.own[order] * own_weight, 0.0)
            total = np.maximum(totals[looked.contexts[order]] - looked.own_context[order] * own_weight, 0.0)
            kind = kinds[looked.contexts[order]] - np.minimum(with_own, 1.0) + np.minimum(count, 1.0)
            known = total > LEAST_SEEN
            fullness = np.clip(np.log2(np.maximum(total, 1.0)), 0, FULLEST).astype(np.int64)
            variety = np.clip(np.round(kind) - 1, 0, MOST_VARIED).astype(np.int64)
            share = np.minimum(count / np.maximum(total, LEAST_SEEN), 1.0)
            levels.append((share, known, fullness * (MOST_VARIED + 1) + variety))
        return levels

    def log_chances(self, looked: Looked) -> Floats:
        """Log probability of each letter looked up, (M,), by the texts but its owner."""
        chance = np.full(len(looked.owner), ANY)
        for order, (share, known, cell) in enumerate(self._levels(looked)):
            escape = self._escapes[order][cell]
            chance = np.where(known, (1 - escape) * share + escape * chance, chance)
        return np.log(chance)

    def likely(self, letters: Ints) -> list[str]:
        """For each of these letters of the texts, those that most often stand in its place, as one text each."""
        found = ["" for _ in letters]
        for order in LIKELY_CONTEXTS:
            counts = self._tables[order][0][:-1]
            by_context = np.lexsort((-counts, self._context_of[order]))
            sorted_contexts = self._context_of[order][by_context]
            contexts = self.itself.contexts[order][letters]
            first = np.searchsorted(sorted_contexts, contexts)
            for at, (context, start) in enumerate(zip(contexts.tolist(), first.tolist(), strict=True)):
                end = min(start + MOST_LIKELY, len(by_context))
                for place in range(start, end):
                    if sorted_contexts[place] == context and len(found[at]) < MOST_LIKELY:
                        letter = self._letter_of[order][by_context[place]]
                        found[at] += letter if letter not in found[at] and letter != END else ""
        return found


def _hashed(
    starts: Sequence[str], bodies: Sequence[str]
) -> tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]], Ints, NDArray[np.uint32]]:
    """Hashes of every letter of the bodies with 0 to CONTEXT letters before it, and of those before it; whose it is."""
    joined = "".join(start + body for start, body in zip(starts, bodies, strict=True))
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    lengths = np.array([len(body) for body in bodies], dtype=np.int64)
    owner = np.repeat(np.arange(len(bodies)), lengths)
    position = np.arange(lengths.sum()) + CONTEXT * (owner + 1)
    mixed = (codes.astype(np.uint64) + np.uint64(1)) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(29)
    whole, hashes, contexts = mixed.copy(), [], []
    before = np.zeros(len(position), dtype=np.uint64)
    for order in range(CONTEXT + 1):
        hashes.append(whole[position])
        contexts.append(before)
        before = whole[position - 1]
        rolled = np.zeros_like(whole)
        rolled[order + 1 :] = mixed[: len(mixed) - order - 1]
        whole = (whole * _MULTIPLIER + rolled) ^ (whole >> np.uint64(31))
    return hashes, contexts, owner, codes[position]


def _places_of(wanted: NDArray[np.uint64], known: NDArray[np.uint64]) -> Ints:
    """The place of each among those that are known, sorted; -1 if it is none of them."""
    if len(wanted) > len(known):  # then a table of hashes is quicker, though it is to be made first
        return pd.Index(known).get_indexer(pd.Index(wanted))
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, place, -1)


def _counts_of(wanted: NDArray[np.uint64], known: NDArray[np.uint64], counts: Ints) -> Ints:
    place = _places_of(wanted, known)
    return np.where(place >= 0, counts[place], 0)
