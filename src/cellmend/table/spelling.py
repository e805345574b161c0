"""Misspellings, from a column's own values: a rare text that is nearly a frequent one is probably that one misspelled.

How probably, the column itself tells: where frequent values are alike too (ami-2, ami-3), being alike means little;
where many rare values are like no other, rare values are natural.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import OSA, Levenshtein
from rapidfuzz.process import cdist

from cellmend.table.texts import form_of

FREQUENT = 3  # cells at least that hold a value which others may be misspellings of
MOST_ALIKE = 5000  # frequent values of a column that are looked at, and ten times as many rare ones
TIMES_RARER = 5  # a misspelling is than what was meant
REPEATED = 0.1  # how much less likely a misspelling is for every further cell that has the very same
BROKEN = 5.0  # how much likelier, if no frequent value has letters and digits where it has them
LETTERS_PER_SLIP = 6  # one of so many letters may be wrong
SHORTEST = 4  # letters of a word that can be told to be misspelled: Iran and Iraq, yes and yet differ no more
LIKE_BY_CHANCE = 0.1  # of natural rare values are like a frequent one at least, as Iceland is like Ireland
SCHEME = 0.3  # of the rare values that are like a frequent one may differ from it in the same way, or it is a scheme
CLOSEST = 5  # values kept that may have been meant


@dataclass(frozen=True)
class Spelling:
    """The frequent values of a column of text, and how likely a rare one that is like them is a misspelling."""

    words: tuple[str, ...]  # the most frequent first
    counts: tuple[int, ...]
    odds: float  # that a rare value which is like a frequent one is misspelled
    forms: tuple[str, ...] = field(default=(), repr=False)
    schemes: tuple[str, ...] = ()  # changes that so many rare values have in common that they are no slips

    def judge(self, texts: Sequence[str], counts: Sequence[int]) -> dict[str, tuple[float, tuple[str, ...]]]:
        """For those of the texts that may be misspelled, of which a table has so many each: the chance of it, and
        what may have been meant.

        >>> spelling = Spelling(("birmingham", "florence"), (90, 80), odds=9.0)
        >>> spelling.judge(["birmxngham", "boaz"], [1, 1])
        {'birmxngham': (0.9, ('birmingham',))}
        """
        known = set(self.words)
        rare = [(text, count) for text, count in zip(texts, counts, strict=True) if text not in known][
            : 10 * MOST_ALIKE
        ]
        found = {}
        for (text, count), near in zip(rare, near_words([text for text, _ in rare], self.words), strict=True):
            meant = [word for word in near if self.counts[word] >= TIMES_RARER * count]
            if meant and _change(self.words[meant[0]], text) not in self.schemes:
                broken = bool(self.forms) and form_of(text) not in self.forms
                odds = self.odds * REPEATED ** (count - 1) * (BROKEN if broken else 1.0)
                found[text] = round(odds / (1 + odds), 6), tuple(self.words[word] for word in meant[:CLOSEST])
        return found

    def followed_by(self, new: Spelling) -> Spelling:
        """With the frequent values of newer rows too.

        >>> Spelling(("rome", "oslo"), (9, 8), odds=9.0).followed_by(Spelling(("oslo", "ulm"), (5, 4), odds=1.0))
        Spelling(words=('oslo', 'rome', 'ulm'), counts=(13, 9, 4), odds=9.0, schemes=())
        """
        counts = Counter(dict(zip(self.words, self.counts, strict=True)))
        counts.update(dict(zip(new.words, new.counts, strict=True)))
        words, often = zip(*counts.most_common(MOST_ALIKE), strict=True)
        forms, schemes = (tuple(sorted({*a, *b})) for a, b in ((self.forms, new.forms), (self.schemes, new.schemes)))
        return Spelling(words, often, self.odds, forms, schemes)


def learn_spelling(texts: pa.ChunkedArray) -> Spelling | None:
    """What is usual in a column of text; None if no value is frequent.

    >>> cities = pa.chunked_array([["birmingham"] * 60 + ["florence"] * 50 + ["boaz"] * 20 + ["birmxngham"]])
    >>> spelling = learn_spelling(cities)
    >>> spelling.words, spelling.odds > 3
    (('birmingham', 'florence', 'boaz'), True)
    """
    found = pc.value_counts(texts.drop_null().combine_chunks())
    by_count = sorted(
        zip(found.field("counts").to_pylist(), found.field("values").to_pylist(), strict=True), reverse=True
    )
    frequent = [(text, count) for count, text in by_count if count >= FREQUENT][:MOST_ALIKE]
    if not frequent:
        return None
    words, counts = zip(*frequent, strict=True)
    most = counts[0]
    # Of the frequent values themselves those count as known that are no misspellings of even more frequent ones.
    alike = sum(any(other != own for other in near) for own, near in enumerate(near_words(words, words)))
    share = max((alike + 0.5) / (len(words) + 1), LIKE_BY_CHANCE)  # of natural values that are like a frequent one
    rare = [(text, count) for count, text in by_count if count < FREQUENT and TIMES_RARER * count <= most]
    near = near_words([text for text, _ in rare[: 10 * MOST_ALIKE]], words)
    nearest = [
        (text, next((words[word] for word in each if counts[word] >= TIMES_RARER * count), None))
        for (text, count), each in zip(rare, near, strict=False)
    ]
    changes = Counter(_change(word, text) for text, word in nearest if word is not None)
    schemes = [change for change, times in changes.items() if times >= max(FREQUENT, SCHEME * changes.total())]
    like = changes.total() - sum(changes[scheme] for scheme in schemes)
    natural = (len(near) - like + 0.5) * share / (1 - share)  # rare values that are like a frequent one by chance
    odds = max(like - natural, 0.05) / natural
    return Spelling(words, counts, odds, tuple(sorted({form_of(word) for word in words})), tuple(schemes))


def near_words(texts: Sequence[str], words: Sequence[str], *, strict: bool = True) -> list[list[int]]:
    """For each text the places of those words that it may be a misspelling of, the nearest first.

    Not `strict` where it is known that the text is wrong, and only asked what it was.
    """
    near: list[list[int]] = []
    lengths = np.array([len(word) for word in words])
    for start in range(0, len(texts), 1000):
        piece = texts[start : start + 1000]
        own = np.array([len(text) for text in piece])
        longer = np.maximum(own[:, None], lengths)
        allowed = (
            np.where(longer > SHORTEST, np.maximum(1, longer // LETTERS_PER_SLIP), 0) if strict else 1 + longer // 6
        )
        folded = [text.casefold() for text in piece], [word.casefold() for word in words]
        distance = cdist(*folded, scorer=OSA.distance, score_cutoff=int(allowed.max(initial=1)), dtype=np.int32)
        for text, row, most in zip(piece, distance, allowed, strict=True):
            places = np.flatnonzero(row <= most)
            places = places[np.argsort(row[places], kind="stable")]
            near.append([place for place in places.tolist() if _differ(text, words[place])])
    return near


def _change(word: str, text: str) -> str:
    """What was done to a word.

    >>> _change("al_ami-1", "ak_ami-1") == _change("al_pn-3", "ak_pn-3")
    True
    """
    steps = Levenshtein.editops(word, text)
    return " ".join(f"{step.tag}:{step.src_pos}:{text[step.dest_pos : step.dest_pos + 1]}" for step in steps)


def _differ(text: str, word: str) -> bool:
    """In more than digits, or in a code in more than which letters: room 12 and room 13, AB-100 and AC-100 are two."""
    if re.sub(r"[\d\s]", "", text) == re.sub(r"[\d\s]", "", word) and re.search(r"\d", text):
        return False
    is_code = " " not in word and any(letter.isdigit() for letter in word)
    return not is_code or _shape(text) != _shape(word)


def _shape(code: str) -> str:
    """Letters and digits as such, one by one."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", code))
