"""What may have been meant by a text: values of its column that are like it, or the text with a cause undone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from cellmend.table.causes import NEVER, SLIPS
from cellmend.table.causes.garbles import FEWEST_LETTERS, SHORTEST, shape_of
from cellmend.table.letters import CONTEXT, END, START, Letters
from cellmend.table.priors import ENOUGH
from cellmend.table.slippairs import Near, stray_letter
from cellmend.table.texts import alike_until
from cellmend.table.values import Ints

GUESSED = 0.2  # how far a text is trusted to be meant that stands nowhere: the column's letters are not its language
OTHER_SIGNS = 0.1  # and if signs or spaces differ, which everybody sets in another way
CROWD = 200  # texts that are alike and compared with each other
SURPRISE, SURPRISES = 4.0, 8.0  # of a letter, and of it with the next three, from which it may be wrong
MOST_PLACES = 2  # in a text that may be wrong
FREQUENT, MOST_COMPARED = 3, 4_000_000  # cells with a value that others far off may mean, and pairs that are compared
LETTERS_PER_SLIP, MOST_SLIPS = 6, 8  # such a text may differ in
RARER = 5  # times, than the most frequent
AT_ONCE = 2**22  # pairs that are held before it is seen which there are twice
NO_PAIRS = np.zeros((2, 0), dtype=np.int64)
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


def near_pairs(texts: Sequence[str], counts: Ints, asked: int = 0) -> Near:
    """Pairs of texts of which the first may be the second, misspelled: they differ in little.

    The first is one of the texts from the place `asked` on.
    """
    groups: dict[str, int] = {}
    keyed = [(groups.setdefault(key, len(groups)), at) for at, text in enumerate(texts) for key in _keys(text)]
    group, member = np.array(keyed, dtype=np.int64).reshape(-1, 2).T
    order = np.lexsort((member, -counts[member], group))
    group, member = group[order], member[order]
    in_crowd = np.arange(len(group)) - np.searchsorted(group, group) < CROWD
    group, member = group[in_crowd], member[in_crowd]
    first, size = np.searchsorted(group, group), np.bincount(group, minlength=1)[group]
    found = [_far_pairs(texts, counts, asked), _garbled_pairs(texts, counts, asked)]
    asking = np.flatnonzero((member >= asked) & (size > 1))
    for some in np.array_split(asking, int(size[asking].sum()) // AT_ONCE + 1):
        one = np.repeat(member[some], size[some])
        step = np.arange(len(one)) - np.repeat(np.cumsum(size[some]) - size[some], size[some])
        other = member[np.repeat(first[some], size[some]) + step]
        kept = (one != other) & (counts[other] >= counts[one])
        found.append(np.stack([one[kept], other[kept]]))
    seen, known = np.concatenate(found, axis=1)
    return Near(seen, known, len(texts))


def _keys(text: str) -> set[str]:
    """What texts that differ in little have in common: all but one letter, or all but case, spaces, signs, order."""
    without = {text[:gone] + text[gone + 1 :] for gone in range(len(text))}
    spaces = "".join(text.split())
    other = (text.casefold(), spaces, min(text, text[::-1]), text.strip(SIGNS))
    return without | {text} | {f"\0{kind}{key}" for kind, key in enumerate(other)}


def _far_pairs(texts: Sequence[str], counts: Ints, asked: int) -> Ints:
    """Rare texts and frequent ones that differ in several letters, if there are not too many that were learned."""
    learned = counts[:asked] if asked else counts
    frequent = np.flatnonzero(counts >= FREQUENT)
    is_rare = counts <= max(counts.max() // RARER, 1)
    if not len(frequent) or len(frequent) * is_rare[: len(learned)].sum() > MOST_COMPARED:
        return NO_PAIRS
    rare = np.flatnonzero(is_rare[asked:]) + asked
    ours, theirs = ([texts[at] for at in each.tolist()] for each in (rare, frequent))
    distance = cdist(ours, theirs, scorer=OSA.distance, score_cutoff=MOST_SLIPS, dtype=np.int32)
    lengths = np.array([len(text) for text in theirs])
    allowed = np.clip(lengths // LETTERS_PER_SLIP, 2, MOST_SLIPS)
    close = (distance > 0) & (distance <= allowed) & (lengths > 4)
    one, other = np.nonzero(close)
    return np.stack([rare[one], frequent[other]])


def _garbled_pairs(texts: Sequence[str], counts: Ints, asked: int) -> Ints:
    """Texts that stand once, and usual ones of the same shape or that go on where the text ends."""
    usual = np.flatnonzero(counts >= ENOUGH)
    usual = usual[np.argsort(-counts[usual], kind="stable")][:CROWD].tolist()
    once = [at for at in range(asked, len(texts)) if counts[at] == 1]
    by_shape: dict[str, list[int]] = defaultdict(list)
    for at in usual:
        if len(texts[at]) >= FEWEST_LETTERS:
            by_shape[shape_of(texts[at])].append(at)
    pairs = [(one, other) for one in once for other in by_shape.get(shape_of(texts[one]), ())]
    starts = {texts[other][:cut]: other for other in usual[::-1] for cut in range(SHORTEST, len(texts[other]) - 1)}
    pairs += [(one, starts[texts[one]]) for one in once if texts[one] in starts]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def new_pairs(letters: Letters, near: Near, asked: int) -> Iterator[Pair]:
    """What may have been meant and is not near, by undoing each cause at the places where a text is strange."""
    place = {text: at for at, text in enumerate(letters.texts)}
    for seen, strange in _strange_places(letters, asked).items():
        text, done = letters.texts[seen], set()
        signs = _signs(text)
        for position, likely in strange:
            for number, cause in enumerate(SLIPS):
                for meant in cause.undo(text, position, likely):
                    known = place.get(meant, -1)
                    if meant and (number, meant) not in done and (known < 0 or (seen, known) not in near):
                        done.add((number, meant))
                        chance = cause.log_chance(text, meant) + (_trust(signs, meant) if known < 0 else 0.0)
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


def _trust(signs: list[str], meant: str) -> float:
    """Log of how much it is trusted that a text which stands nowhere was meant; less if these signs are not its own."""
    return math.log(GUESSED if signs == _signs(meant) else GUESSED * OTHER_SIGNS)


def _signs(text: str) -> list[str]:
    return sorted(letter for letter in text if not letter.isalnum())
