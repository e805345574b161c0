"""Pairs of texts that are near, and each cause that can make the one of the other, worked out for all pairs at once.

A column of identifiers has a hundred pairs for each text. Most are one letter replaced, or several slips, and their
chances depend on a few numbers. The other causes are asked pair by pair, where the letters leave it open that they
acted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA
from rapidfuzz.process import cpdist

from cellmend.table.causes import NEVER, SLIPS
from cellmend.table.causes.garbles import CUT, FEWEST_LETTERS, chance_of_scrambled, shape_of
from cellmend.table.causes.slips import chance_of_replaced, chance_of_several, has_another_word, most_slips
from cellmend.table.priors import TOGETHER
from cellmend.table.texts import alike_until
from cellmend.table.values import Bools, Floats, Ints

WORD_SIBLING = 0.04  # how much rarer siblings are among words: Ford and Fort
CODE_LETTERS = 3  # or fewer in a word, or digits, make it a code
STRAYING = ("inserted", "replaced", "throughout")  # causes by which a letter strays into a text
AT_ONCE = 2**22  # letters of pairs that are held
_FRAMED = re.compile(r"([^\w\s])\1.*|.*([^\w\s])\2", re.DOTALL)


class Near:
    """Pairs of texts of which the first may be the second, misspelled; sorted, each once."""

    def __init__(self, seen: Ints, known: Ints, texts: int) -> None:
        self._texts = max(texts, 1)
        codes = np.sort(seen * self._texts + known)  # np.unique takes ten times as long
        self._codes = codes[np.diff(codes, prepend=-1) > 0]

    @property
    def seen(self) -> Ints:
        return self._codes // self._texts

    @property
    def known(self) -> Ints:
        return self._codes % self._texts

    def __len__(self) -> int:
        return len(self._codes)

    def __contains__(self, pair: tuple[int, int]) -> bool:
        code = pair[0] * self._texts + pair[1]
        place = int(np.searchsorted(self._codes, code))
        return pair[1] >= 0 and place < len(self._codes) and int(self._codes[place]) == code


class SlipPairs(NamedTuple):
    """Pairs and causes, (P,) each: a text, one that may have been meant (-1 if the column does not have it), and what
    made the one of the other."""

    seen: Ints
    known: Ints
    cause: Ints
    chance: Floats  # log
    stray: Ints  # the letter that strayed into the text, 0 if none
    sibling: Floats  # log chance that both are values of one kind

    def followed_by(self, pairs: Sequence[tuple[int, int, int, float, int, float]]) -> SlipPairs:
        """With more of them, one by one."""
        more = zip(*pairs, strict=True) if pairs else [()] * len(self)
        return SlipPairs(*(np.append(own, np.array(each, own.dtype)) for own, each in zip(self, more, strict=True)))


class Spelled:
    """Texts as numbers, so that many pairs of them are compared at once."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.lengths = np.array([len(text) for text in texts], dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        joined = "".join(texts).encode("utf-32-le", "surrogatepass")
        self.codes = np.frombuffer(joined, dtype=np.uint32)

    def same(self, key: Callable[[str], str], seen: Ints, known: Ints) -> Bools:
        """Of which pairs both have the same key?"""
        places: dict[str, int] = {}
        own = np.array([places.setdefault(key(text), len(places)) for text in self.texts], dtype=np.int64)
        return own[seen] == own[known]

    def are(self, condition: Callable[[str], object]) -> Bools:
        """Which texts fulfil a condition?"""
        return np.array([bool(condition(text)) for text in self.texts], dtype=bool)


class Compared:
    """Pairs compared letter by letter; (P,) each."""

    def __init__(self, spelled: Spelled, seen: Ints, known: Ints) -> None:
        self.spelled, self.seen, self.known = spelled, seen, known
        self.length, self.meant_length = spelled.lengths[seen], spelled.lengths[known]
        self.changed = np.full(len(seen), -1)  # letters, of texts of the same length
        self.place = np.zeros(len(seen), dtype=np.int64)  # of the first one
        self.throughout = np.zeros(len(seen), dtype=bool)  # is it one letter for another, wherever it changed?
        same = np.flatnonzero(self.length == self.meant_length)
        for length in np.unique(self.length[same]).tolist():
            pairs = same[self.length[same] == length]
            for own in np.array_split(pairs, len(pairs) * length // AT_ONCE + 1):
                self._compare(own, length)

    def _compare(self, pairs: Ints, length: int) -> None:
        """Those of this length."""
        letters = np.arange(length)
        one, other = (
            self.spelled.codes[self.spelled.starts[each[pairs]][:, None] + letters] for each in (self.seen, self.known)
        )
        differ = one != other
        place, row = differ.argmax(axis=1), np.arange(len(pairs))
        alike = (one == one[row, place][:, None]) & (other == other[row, place][:, None])
        self.changed[pairs], self.place[pairs] = differ.sum(axis=1), place
        self.throughout[pairs] = (alike | ~differ).all(axis=1)

    @cached_property
    def letters(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The first letter that changed, as seen and as meant."""
        starts, codes = self.spelled.starts, self.spelled.codes
        return codes[starts[self.seen] + self.place], codes[starts[self.known] + self.place]

    @cached_property
    def slips(self) -> Ints:
        """How many slips lie between them."""
        found = np.ones(len(self.seen), dtype=np.int64)
        open_ = np.flatnonzero(self.changed != 1)
        texts = self.spelled.texts
        for own in np.array_split(open_, len(open_) // AT_ONCE + 1):
            ours, theirs = ([texts[at] for at in each[own].tolist()] for each in (self.seen, self.known))
            found[own] = cpdist(ours, theirs, scorer=OSA.distance, dtype=np.int32) if len(own) else 0
        return found

    def may_be(self, cause: str) -> Bools:
        """Where do the letters leave it open that a cause acted? Of one that is not known here, everywhere."""
        longer, spelled, pair = self.length - self.meant_length, self.spelled, (self.seen, self.known)
        if cause in ("inserted", "doubled"):
            return longer == 1
        if cause == "dropped":
            return longer == -1
        if cause == "swapped":
            return (self.changed == 2) & (self.slips == 1)
        if cause == "throughout":
            return (self.changed > 1) & self.throughout
        if cause == "cased":
            return spelled.same(str.casefold, *pair)
        if cause == "spaced":
            return spelled.same(lambda text: "".join(text.split()), *pair)
        if cause == "framed":
            return spelled.are(_FRAMED.fullmatch)[self.seen] & (longer > 1)
        if cause == "reversed":
            place = {text: at for at, text in enumerate(spelled.texts)}
            return np.array([place.get(text[::-1], -1) for text in spelled.texts])[self.seen] == self.known
        return longer <= -CUT if cause == "truncated" else np.ones(len(self.seen), dtype=bool)

    def chances_of(self, cause: str) -> Floats | None:
        """Log chance of each pair, of a cause for which that depends on a few numbers; else None."""
        if cause == "replaced":
            return np.where(self.changed == 1, _of_numbers(chance_of_replaced, self.meant_length), NEVER)
        if cause == "several":
            return self._several()
        if cause == "scrambled":
            letters = np.array([sum(letter.isalpha() for letter in text) for text in self.spelled.texts])[self.known]
            possible = (self.changed >= TOGETHER) & (letters >= FEWEST_LETTERS)
            possible[possible] = self.spelled.same(shape_of, self.seen[possible], self.known[possible])
            return np.where(possible, _of_numbers(chance_of_scrambled, letters, np.maximum(self.changed, 0)), NEVER)
        return None

    def _several(self) -> Floats:
        most = _of_numbers(most_slips, self.meant_length)
        possible = (self.slips > 1) & (self.slips <= most) & (self.slips < np.maximum(self.length, self.meant_length))
        words = self.spelled.are(lambda text: len(text.split()) > 1)
        for at in np.flatnonzero(possible & words[self.seen] & words[self.known]).tolist():
            possible[at] = not has_another_word(*self.texts(at))
        return np.where(possible, _of_numbers(chance_of_several, np.maximum(self.slips, 1), self.meant_length), NEVER)

    def texts(self, pair: int) -> tuple[str, str]:
        """As seen and as meant."""
        return self.spelled.texts[int(self.seen[pair])], self.spelled.texts[int(self.known[pair])]

    @cached_property
    def siblings(self) -> Floats:
        """Log chance that the one is a value of the kind of the other."""
        found = np.full(len(self.seen), NEVER)
        alone = np.flatnonzero(self.changed == 1)
        alphabet, kind = np.unique(self.spelled.codes, return_inverse=True)
        is_digit = np.array([chr(code).isdigit() for code in alphabet.tolist()], dtype=bool)
        starts = self.spelled.starts
        digits = is_digit[kind[starts[self.seen[alone]] + self.place[alone]]]
        digits &= is_digit[kind[starts[self.known[alone]] + self.place[alone]]]
        found[alone[digits]] = _of_numbers(_chance_of_digit, self.length[alone[digits]])
        for at in alone[~digits].tolist():
            found[at] = sibling(*self.texts(at))
        return found


def known_pairs(texts: Sequence[str], near: Near) -> SlipPairs:
    """Pairs of texts that are near, with each cause that can make the one of the other."""
    compared = Compared(Spelled(texts), near.seen, near.known)
    found = []
    for number, cause in enumerate(SLIPS):
        chances = compared.chances_of(cause.name)
        if chances is None:
            open_ = np.flatnonzero(compared.may_be(cause.name))
            own = np.array([cause.log_chance(*compared.texts(at)) for at in open_.tolist()], dtype=np.float64)
            pairs, chances = open_[own > NEVER], own[own > NEVER]
        else:
            pairs = np.flatnonzero(chances > NEVER)
            chances = chances[pairs]
        found.append((pairs, np.full(len(pairs), number), chances, _strays(cause.name, compared, pairs)))
    pair, cause_of, chance, stray = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((cause_of, pair))
    pair = pair[order]
    return SlipPairs(
        compared.seen[pair], compared.known[pair], cause_of[order], chance[order], stray[order], compared.siblings[pair]
    )


def _strays(cause: str, compared: Compared, pairs: Ints) -> Ints:
    if cause == "replaced":
        return compared.letters[0][pairs].astype(np.int64)
    if cause not in STRAYING:
        return np.zeros(len(pairs), dtype=np.int64)
    return np.array([stray_letter(cause, *compared.texts(at)) for at in pairs.tolist()], dtype=np.int64)


def _of_numbers(formula: Callable[..., float], *numbers: Ints) -> Floats:
    """A formula of whole numbers, worked out once for each that occur together."""
    sizes = tuple(int(each.max(initial=0)) + 1 for each in numbers)
    code = np.ravel_multi_index(numbers, sizes)
    occur = np.flatnonzero(np.bincount(code))
    found = np.zeros(math.prod(sizes))
    found[occur] = [formula(*map(int, each)) for each in zip(*np.unravel_index(occur, sizes), strict=True)]
    return found[code]


def _chance_of_digit(length: int) -> float:
    return -math.log(length * 10)


def stray_letter(cause: str, seen: str, meant: str) -> int:
    """The letter that strayed into a text, as a number; 0 if none did."""
    if cause not in STRAYING:
        return 0
    return ord(seen[alike_until(seen, meant)])


def sibling(one: str, other: str) -> float:
    """Log chance that a value of the kind of the one is the other: another digit or letter in one place.

    >>> sibling("AB-1", "AB-2") > sibling("Fort", "Ford") > sibling("Ford", "Fords") == NEVER
    True
    """
    places = [at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    if len(one) != len(other) or len(places) != 1:
        return NEVER
    a, b = one[places[0]], other[places[0]]
    if a.isdigit() and b.isdigit():
        return _chance_of_digit(len(one))
    if not ((a.isupper() and b.isupper()) or (a.islower() and b.islower())):
        return NEVER
    word = next(found for found in re.finditer(r"[^\W_]+", one) if found.end() > places[0])[0]
    code = len(word) <= CODE_LETTERS or any(letter.isdigit() for letter in word)
    return math.log((1.0 if code else WORD_SIBLING) / (len(one) * 26))
