"""What may have been meant by a text: values of its column that are like it, or the text with a cause undone."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from cellmend.table.causes import NEVER, SLIPS
from cellmend.table.causes.garbles import FEWEST_LETTERS, SHORTEST, shape_of
from cellmend.table.letters import CONTEXT, END, START, Letters
from cellmend.table.priors import ENOUGH
from cellmend.table.texts import alike_until
from cellmend.table.values import Ints

WORD_SIBLING = 0.04  # how much rarer siblings are among words: Ford and Fort
CODE_LETTERS = 3  # or fewer in a word, or digits, make it a code
GUESSED = 0.2  # how far a text is trusted to be meant that stands nowhere: the column's letters are not its language
OTHER_SIGNS = 0.1  # and if signs or spaces differ, which everybody sets in another way
CROWD = 200  # texts that are alike and compared with each other
SURPRISE, SURPRISES = 4.0, 8.0  # of a letter, and of it with the next three, from which it may be wrong
MOST_PLACES = 2  # in a text that may be wrong
FREQUENT, MOST_COMPARED = 3, 4_000_000  # cells with a value that others far off may mean, and pairs that are compared
LETTERS_PER_SLIP, MOST_SLIPS = 6, 8  # such a text may differ in
RARER = 5  # times, than the most frequent
SIGNS = "*#?!._-~$%&+=<>|\\/^'\"`"


class Pair(NamedTuple):
    """A text, one that may have been meant (-1 if the column does not have it), and what made the one of the other."""

    seen: int
    known: int
    cause: int
    chance: float  # log
    stray: int  # the letter that strayed into the text, 0 if none
    sibling: float  # log chance that both are values of one kind
    meant: str


def near_pairs(texts: Sequence[str], counts: Ints, asked: int = 0) -> set[tuple[int, int]]:
    """Pairs of texts of which the first may be the second, misspelled: they differ in little.

    The first is one of the texts from the place `asked` on.
    """
    alike: dict[str, list[int]] = defaultdict(list)
    for at, text in enumerate(texts):
        for key in _keys(text):
            alike[key].append(at)
    pairs = set()
    for group in alike.values():
        if len(group) > 1:
            ordered = sorted(group, key=lambda at: -counts[at])[:CROWD]
            both = product([one for one in ordered if one >= asked], ordered)
            pairs |= {(one, other) for one, other in both if one != other and counts[other] >= counts[one]}
    return pairs | _far_pairs(texts, counts, asked) | _garbled_pairs(texts, counts, asked)


def _keys(text: str) -> set[str]:
    """What texts that differ in little have in common: all but one letter, or all but case, spaces, signs, order."""
    without = {text[:gone] + text[gone + 1 :] for gone in range(len(text))}
    spaces = "".join(text.split())
    other = (text.casefold(), spaces, min(text, text[::-1]), text.strip(SIGNS))
    return without | {text} | {f"\0{kind}{key}" for kind, key in enumerate(other)}


def _far_pairs(texts: Sequence[str], counts: Ints, asked: int) -> set[tuple[int, int]]:
    """Rare texts and frequent ones that differ in several letters, if there are not too many that were learned."""
    learned = counts[:asked] if asked else counts
    frequent = np.flatnonzero(counts >= FREQUENT)
    is_rare = counts <= max(counts.max() // RARER, 1)
    if not len(frequent) or len(frequent) * is_rare[: len(learned)].sum() > MOST_COMPARED:
        return set()
    rare = np.flatnonzero(is_rare[asked:]) + asked
    ours, theirs = ([texts[at] for at in each.tolist()] for each in (rare, frequent))
    distance = cdist(ours, theirs, scorer=OSA.distance, score_cutoff=MOST_SLIPS, dtype=np.int32)
    lengths = np.array([len(text) for text in theirs])
    allowed = np.clip(lengths // LETTERS_PER_SLIP, 2, MOST_SLIPS)
    close = (distance > 0) & (distance <= allowed) & (lengths > 4)
    return {(int(rare[one]), int(frequent[other])) for one, other in zip(*np.nonzero(close), strict=True)}


def _garbled_pairs(texts: Sequence[str], counts: Ints, asked: int) -> set[tuple[int, int]]:
    """Texts that stand once, and usual ones of the same shape or that go on where the text ends."""
    usual = np.flatnonzero(counts >= ENOUGH)
    usual = usual[np.argsort(-counts[usual], kind="stable")][:CROWD].tolist()
    once = [at for at in range(asked, len(texts)) if counts[at] == 1]
    by_shape: dict[str, list[int]] = defaultdict(list)
    for at in usual:
        if len(texts[at]) >= FEWEST_LETTERS:
            by_shape[shape_of(texts[at])].append(at)
    pairs = {(one, other) for one in once for other in by_shape.get(shape_of(texts[one]), ())}
    starts = {texts[other][:cut]: other for other in usual[::-1] for cut in range(SHORTEST, len(texts[other]) - 1)}
    return pairs | {(one, starts[texts[one]]) for one in once if texts[one] in starts}


def known_pairs(texts: Sequence[str], near: set[tuple[int, int]]) -> Iterator[Pair]:
    """Pairs of texts that are near, with each cause that can make the one of the other."""
    for seen, known in sorted(near):
        text, meant = texts[seen], texts[known]
        for number, cause in enumerate(SLIPS):
            chance = cause.log_chance(text, meant)
            if chance > NEVER:
                stray = stray_letter(cause.name, text, meant)
                yield Pair(seen, known, number, chance, stray, _sibling(text, meant), meant)


def new_pairs(letters: Letters, near: set[tuple[int, int]], asked: int) -> Iterator[Pair]:
    """What may have been meant and is not near, by undoing each cause at the places where a text is strange."""
    place = {text: at for at, text in enumerate(letters.texts)}
    for seen, strange in _strange_places(letters, asked).items():
        text, done = letters.texts[seen], set()
        for position, likely in strange:
            for number, cause in enumerate(SLIPS):
                for meant in cause.undo(text, position, likely):
                    known = place.get(meant, -1)
                    if meant and (number, meant) not in done and (seen, known) not in near:
                        done.add((number, meant))
                        chance = cause.log_chance(text, meant) + (_trust(text, meant) if known < 0 else 0.0)
                        if chance > NEVER:
                            yield Pair(seen, known, number, chance, stray_letter(cause.name, text, meant), NEVER, meant)


def _strange_places(letters: Letters, asked: int) -> dict[int, list[tuple[int, str]]]:
    """Texts with the places where they are most surprising, and the letters that would be likely there."""
    item = letters.itself.item
    surprise = -letters.log_chances(letters.itself)
    with_next = surprise.copy()
    for step in (1, 2, 3):
        with_next[:-step] += np.where(item[step:] == item[:-step], surprise[step:], 0.0)
    strange = np.flatnonzero((surprise > SURPRISE) & (with_next > SURPRISES) & (item >= asked))
    strange = strange[np.lexsort((-with_next[strange], item[strange]))]
    first = np.searchsorted(item[strange], item[strange])
    strange = strange[np.arange(len(strange)) - first < MOST_PLACES]
    starts = np.searchsorted(item, np.arange(len(letters.texts)))
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for at, likely in zip(strange.tolist(), letters.likely(strange), strict=True):
        found[int(item[at])].append((int(at - starts[item[at]]), likely))
    return found


def window(seen: str, meant: str) -> tuple[str, str, str]:
    """Five letters before the first that differs; and from it on as far as contexts differ, as seen and as meant.

    >>> window("abcdefgxhijklmnop", "abcdefghijklmnop")
    ('cdefg', 'xhijklm', 'hijklm')
    """
    start = alike_until(seen, meant)
    end = alike_until(seen[start:][::-1], meant[start:][::-1])
    kept = CONTEXT + 1 if end > CONTEXT else end + 1
    before = (START * CONTEXT + seen[:start])[-CONTEXT:]
    cut = end + 1 - kept
    bodies = [text[start:] + END for text in (seen, meant)]
    return before, bodies[0][: len(bodies[0]) - cut], bodies[1][: len(bodies[1]) - cut]


def _trust(seen: str, meant: str) -> float:
    """Log of how much it is trusted that a text which stands nowhere was meant; less if they differ in signs."""
    signs = Counter(letter for letter in seen if not letter.isalnum())
    same = signs == Counter(letter for letter in meant if not letter.isalnum())
    return math.log(GUESSED if same else GUESSED * OTHER_SIGNS)


def stray_letter(cause: str, seen: str, meant: str) -> int:
    """The letter that strayed into a text, as a number; 0 if none did."""
    if cause not in ("inserted", "replaced", "throughout"):
        return 0
    return ord(seen[alike_until(seen, meant)])


def _sibling(one: str, other: str) -> float:
    """Log chance that a value of the kind of the one is the other: another digit or letter in one place.

    >>> _sibling("AB-1", "AB-2") > _sibling("Fort", "Ford") > _sibling("Ford", "Fords") == NEVER
    True
    """
    places = [at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    if len(one) != len(other) or len(places) != 1:
        return NEVER
    a, b = one[places[0]], other[places[0]]
    if a.isdigit() and b.isdigit():
        return -math.log(len(one) * 10)
    if not ((a.isupper() and b.isupper()) or (a.islower() and b.islower())):
        return NEVER
    word = next(found for found in re.finditer(r"[^\W_]+", one) if found.end() > places[0])[0]
    code = len(word) <= CODE_LETTERS or any(letter.isdigit() for letter in word)
    return math.log((1.0 if code else WORD_SIBLING) / (len(one) * 26))
