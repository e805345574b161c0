"""Two explanations for every text of a column: it was meant, or one of the causes made it of another one.

A column is a list of different texts with counts. If a text was meant, it is one of the column's values: its letters
follow each other as in the others, and it stands as often as values of this column do. If a cause made it, something
else was meant: another value of the column, in proportion to how often it stands, or one that the column's letters make
likely. How often each cause acts, how many values there are, how often they stand and which letters follow which is
learned by expectation and maximisation, all columns of a table together, without labels.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from cellmend.errors import SchemaWarning
from cellmend.table.candidates import FREQUENT, near_pairs, new_pairs, window
from cellmend.table.causes import NEVER, SELDOM, SLIPS
from cellmend.table.causes.base import LETTERS
from cellmend.table.causes.defaults import log_chance_of_default
from cellmend.table.causes.garbles import FEWEST_LETTERS
from cellmend.table.causes.named import DEFAULT
from cellmend.table.causes.slips import undo_framed
from cellmend.table.letters import Letters, Looked
from cellmend.table.priors import A_PART, MOST_KEPT, TINY
from cellmend.table.siblings import Siblings
from cellmend.table.slippairs import Near, known_pairs
from cellmend.table.values import Floats, Ints

ROUNDS = 6  # of expectation and maximisation
USUAL_RATE = 0.002  # of a cause, before anything is seen
FIRST_RATE = 0.02  # with which the rounds begin: too many suspects at first, of which those stay that hold together
TABLE_WEIGHT = 50  # cells: how much a column's rates lean on those of the whole table
UNSURE = 0.1  # texts that were meant with a higher chance say nothing about rates, or doubts would feed themselves
HABIT = 1.5  # standard deviation of the log rate of one slip: some write recieve always
USUAL_DEFAULTS = 0.05  # in a column, before anything is seen
PLAIN = 0.01  # values of a column are natural and look like a default, where the others do not
SMOOTH = 0.1  # of the values with a power of two of cells, as many have half and twice as many
AGAIN = 0.2  # that a slip that was made is made again in the same way
SIBLINGS = 0.5  # of new values are like another one but for a number, a digit or a letter of a code, or style
STRANGERS = 50  # words that programs leave in columns of any kind
ALPHABET = 26.0  # letters, of which any may follow any other in words of another language
FOREIGN = 0.1  # of new values are such words, and as many stand in other columns too
USUAL_FRAME = 0.3  # of the texts with signs around them: then these belong to them
FRAMED_TRUST = 0.05  # in a text with signs around it, at first
MOST_LETTERS = 1_000_000  # of all texts of a column that are learned from: more is prose
LONGEST = 200  # letters of a text that is looked at
QUICK = 1000  # texts that are looked at in a fraction of a second, whatever the time limit
LEAST_SUSPICION = 0.05  # that is told
LEAST_SHARE = 0.02  # of the explanations of a text, for what is told to be meant
ONCE = np.array([1 / SELDOM.get(cause.name, 1.0) for cause in SLIPS])  # in 1 / USUAL_RATE cells, before any is seen


class Verdict(NamedTuple):
    """What is thought of a suspicious text."""

    suspicion: float
    meant: tuple[str, ...]
    cause: str
    reason: str


@dataclass(frozen=True)
class Rates:
    """How often each cause acts in a column and in its table, and which letters stray into texts."""

    column: Floats  # (C,) cells of the column that each cause spoiled
    table: Floats  # (C,) cells of the table
    cells: int
    table_cells: int
    letters: Mapping[int, float]  # how many cells have this letter too many or in place of another
    defaults: float = USUAL_DEFAULTS  # that a column of the table is expected to have

    def without(self, own: Floats, cause: Ints) -> Floats:
        """The rate of these causes by all cells but `own` of them, (P,)."""
        whole = (np.maximum(self.table[cause] - own, 0.0) + ONCE[cause]) / (self.table_cells + 1 / USUAL_RATE)
        return (np.maximum(self.column[cause] - own, 0.0) + TABLE_WEIGHT * whole) / (self.cells + TABLE_WEIGHT)

    def strays(self, letters: Ints) -> Floats:
        """How much likelier than any other letter each of these strays, as a log, (P,); 0 for none."""
        total = sum(self.letters.values())
        often = np.zeros(int(letters.max(initial=0)) + 1)
        strayed = [letter for letter in self.letters if letter < len(often)]
        often[strayed] = [self.letters[letter] for letter in strayed]
        likelier = np.log((often + 1.0) / (total + LETTERS) * LETTERS)
        likelier[0] = 0.0
        return likelier[letters]

    def to_json(self) -> dict[str, Any]:
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        own |= {name: np.round(own[name], 3).tolist() for name in ("column", "table")}
        own["letters"] = {chr(letter): round(often, 3) for letter, often in self.letters.items()}
        return own | {"defaults": round(self.defaults, 4)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Rates:
        letters = {ord(letter): often for letter, often in entry["letters"].items()}
        counts = {of: np.pad(entry[of], (0, len(SLIPS) - len(entry[of]))) for of in ("column", "table")}
        return cls(**{**entry, **counts, "letters": letters})


class Column:
    """A column of different texts while it is weighed which were meant.

    `elsewhere` (T,) says how often each text stands in other columns; `strangers` are texts that stand where numbers
    should; `clean` (K,) how probably the first K texts were meant, if that is known already: then only the others are
    asked about.
    """

    def __init__(
        self,
        texts: list[str],
        counts: Ints,
        elsewhere: Floats,
        strangers: Collection[str] = (),
        clean: Floats | None = None,
    ) -> None:
        self.texts, self.counts, self.elsewhere = texts, counts, elsewhere
        asked = 0 if clean is None else len(clean)
        near = near_pairs(texts, counts, asked)
        if clean is None:
            self.clean = _first_guess(near, counts) * _unframed(texts)
        else:
            self.clean = np.pad(clean, (0, len(texts) - asked))  # new texts do not vouch for each other
        self.letters, self.siblings = Letters(texts, self.clean), Siblings.of(texts)
        new = list(new_pairs(self.letters, near, asked))
        pairs = known_pairs(texts, near).followed_by([pair[:-1] for pair in new])
        self.seen, self.known, self.cause, self.chance, self.stray, self.sibling = pairs
        self._meant = [pair.meant for pair in new]  # of the last pairs
        self.any_word = _any_word(texts)  # (T,) chance of each as a word: few values do not tell a column's language
        self.share = np.zeros(len(self.seen))  # (P,) how probably each pair is what happened
        self.default = default_chances(texts, counts, strangers)  # (T,) log chance of each text as a default
        self.is_default = np.zeros(len(texts), dtype=bool)  # (T,) is that likelier than a slip?
        # Letters that differ between texts and what is not known and may have been meant.
        new = [pair for pair in new if pair.known < 0]
        windows = [(pair.seen, *window(self.texts[pair.seen], pair.meant)) for pair in new]
        self._as_meant = Windows.of(self.letters, [(owner, before, meant) for owner, before, _, meant in windows])
        self._as_seen = Windows.of(self.letters, [(owner, before, seen) for owner, before, seen, _ in windows])

    def meant(self, pair: int) -> str:
        """What a pair says was meant."""
        known = int(self.known[pair])
        return self.texts[known] if known >= 0 else self._meant[pair - len(self.seen)]

    @property
    def cells(self) -> int:
        return int(self.counts.sum())

    def weigh(self, rates: Rates) -> None:
        """The E step: how probable each explanation of each text is, given how often each cause acts."""
        self.letters.trust(self.clean)
        natural = np.zeros(len(self.texts))
        np.add.at(natural, self.letters.itself.item, self.letters.log_chances(self.letters.itself))
        by_count = CountChances.of(self.counts, self.clean)
        each = np.log(rates.without(self._own(), self.cause)) + rates.strays(self.stray) + self.chance
        each += self._sources(natural, by_count)
        by_known, by_new = np.full((2, len(self.texts)), -np.inf)
        known = self.known >= 0
        np.logaddexp.at(by_known, self.seen[known], each[known])
        np.logaddexp.at(by_new, self.seen[~known], each[~known])
        again = np.where(self.counts < FREQUENT, by_new + (self.counts - 1) * math.log(AGAIN), -np.inf)
        slipped = np.logaddexp(_log_times(self.counts, by_known), again)
        # The expected number of placeholders with this text and count.
        default = (
            self.default + math.log(rates.defaults / (_power(rates.cells) + 1)) - _power(self.counts) * math.log(2)
        )
        odds = np.logaddexp(slipped, default) - self._log_meant(natural, by_count)
        self.clean = 1 / (1 + np.exp(np.clip(odds, -700, 700)))
        self.is_default = default > slipped
        total = np.logaddexp(by_known, by_new)
        self.share = np.exp(each - np.maximum(total, -1e6)[self.seen]) * (1 - self.clean[self.seen])
        self.share[self.is_default[self.seen]] = 0.0

    def _log_meant(self, natural: Floats, by_count: CountChances) -> Floats:
        """Log of how many values that are this text and stand so often the column is expected to have, (T,)."""
        values = self.clean.sum() + TINY
        sibling = self.siblings.expected(self.clean)
        known = self.known >= 0
        np.add.at(sibling, self.seen[known], np.exp(self.sibling[known]) * self.clean[self.known[known]])
        shared = self.elsewhere / max(self.elsewhere.sum(), 1.0)
        likely = values * ((1 - SIBLINGS) * np.exp(natural) + self.any_word + FOREIGN * shared) + SIBLINGS * sibling
        plain = PLAIN * np.exp(self.default)
        return np.log(by_count(self.counts)) + np.log(likely + plain + TINY)

    def _sources(self, natural: Floats, by_count: CountChances) -> Floats:
        """Log of in how many cells what a pair says was meant, (P,)."""
        known = self.known >= 0
        source = np.log((self.counts * self.clean)[self.known] + TINY)
        # Of two texts that could each be the other, the rarer is the slip, or else the less natural.
        often = self.counts + np.minimum(self.elsewhere, self.counts)
        as_often = often[self.known] == often[self.seen]
        later = (often[self.known] < often[self.seen]) | (as_often & (natural[self.known] <= natural[self.seen]))
        source[known & later] = -np.inf
        if not known.all():
            change = self._as_meant.natural(self.letters) - self._as_seen.natural(self.letters)
            once = by_count(np.ones(1, dtype=np.int64))[0]
            source[~known] = np.log(self.clean.sum() * once + TINY) + natural[self.seen[~known]] + change
        return source

    def caused(self) -> Floats:
        """Cells that each pair explains and that are surely wrong, (P,)."""
        return np.where(self.clean[self.seen] < UNSURE, self.share * self.counts[self.seen], 0.0)

    def _own(self) -> Floats:
        """Cells that each pair's text adds to the count of the pair's cause, (P,)."""
        key = self.seen * len(SLIPS) + self.cause
        return np.bincount(key, self.caused(), minlength=1)[key] if len(key) else np.zeros(0)

    def verdicts(self) -> dict[str, Verdict]:
        """Of the texts that are suspicious."""
        found: dict[str, Verdict] = {}
        best: dict[int, list[int]] = defaultdict(list)
        for pair in np.flatnonzero(self.share > LEAST_SHARE * (1 - self.clean[self.seen])).tolist():
            best[int(self.seen[pair])].append(pair)
        for text in np.flatnonzero(self.clean < 1 - LEAST_SUSPICION).tolist():
            seen, suspicion = self.texts[text], round(float(1 - self.clean[text]), 6)
            order = sorted(best[text], key=lambda pair: -self.share[pair])
            if self.is_default[text]:
                found[seen] = Verdict(suspicion, (), DEFAULT, "a default or a placeholder")
            elif order:
                cause, meant = SLIPS[self.cause[order[0]]], tuple(dict.fromkeys(map(self.meant, order)))
                told = () if len(seen) == len(meant[0]) == 1 else meant  # one letter in place of another tells nothing
                found[seen] = Verdict(suspicion, told, cause.name, cause.words(meant[0]))
        return found


@dataclass(frozen=True)
class Windows:
    """Pieces of texts, each looked up once however many pairs it stands in."""

    looked: Looked | None  # None: there are no pieces
    place: Ints  # (P,) the piece of each pair

    @classmethod
    def of(cls, letters: Letters, pieces: Sequence[tuple[int, str, str]]) -> Windows:
        """Of texts, what stands before the pieces, and the pieces."""
        places: dict[tuple[int, str, str], int] = {}
        place = np.array([places.setdefault(piece, len(places)) for piece in pieces], dtype=np.int64)
        if not places:
            return cls(None, place)
        owners, before, bodies = zip(*places, strict=True)
        return cls(letters.look(bodies, owners, before), place)

    def natural(self, letters: Letters) -> Floats:
        """Log chance of each pair's piece, (P,)."""
        if self.looked is None:
            return np.zeros(0)
        chances = np.bincount(self.looked.item, letters.log_chances(self.looked))
        return np.asarray(chances[self.place], dtype=np.float64)


@dataclass(frozen=True)
class CountChances:
    """How often values of a column stand: shares by powers of two, learned with one value of prior."""

    share: Floats

    @classmethod
    def of(cls, counts: Ints, clean: Floats) -> CountChances:
        """From counts and how probably each is that of a value.

        >>> CountChances.of(np.array([1, 4, 5, 6]), np.array([0.0, 1.0, 1.0, 1.0])).share.round(3)
        array([0.05 , 0.125, 0.65 , 0.125, 0.05 ])
        """
        found = np.bincount(_power(counts), clean, minlength=int(_power(counts[clean > 0].sum() + 1)) + 1)
        own = (found + 1 / len(found)) / (found.sum() + 1)
        beside = np.pad(own, 1, mode="edge")
        return cls((1 - 2 * SMOOTH) * own + SMOOTH * (beside[:-2] + beside[2:]))

    def __call__(self, counts: Ints) -> Floats:
        """The chance of each count."""
        power = np.minimum(_power(counts), len(self.share) - 1)
        return self.share[power] / 2.0**power


def _power(counts: Any) -> Any:
    return np.log2(counts).astype(np.int64)


def default_chances(texts: Sequence[str], counts: Ints, strangers: Collection[str]) -> Floats:
    """Log chance of each text as a default, (T,); in a column where many texts look so, none is one.

    >>> default_chances(["Ulm", "Bonn", "-1"], np.array([5, 5, 2]), ["Bonn"]).round(1).tolist()
    [-inf, -inf, -inf]
    >>> default_chances(["Ulm", "Bonn", "-1"], np.array([9, 1, 1]), ["Bonn"]).round(1).tolist()
    [-inf, -3.9, -4.6]
    """
    chances = np.array([-math.log(STRANGERS) if t in strangers else log_chance_of_default(t) for t in texts])
    return np.full(len(texts), NEVER) if counts[chances > NEVER].sum() > USUAL_FRAME * counts.sum() else chances


def _any_word(texts: Sequence[str]) -> Floats:
    """The chance of each text as a word of any language, (T,); what has few letters is a number or a code."""
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    letters = np.array([sum(letter.isalpha() for letter in text) for text in texts])
    return np.where(letters >= FEWEST_LETTERS, FOREIGN * ALPHABET**-lengths, 0.0)


def _log_times(counts: Ints, expected: Floats) -> Floats:
    """Log chance that a slip expected so often, as a log, is made so many times.

    It is made once and at times again; or it is a habit, and its own rate differs from that of its cause.
    """
    again = expected + (counts - 1) * math.log(AGAIN)
    spread = np.log(counts) - np.maximum(expected, -700.0)
    habit = -0.5 * (spread / HABIT) ** 2 - np.log(HABIT * math.sqrt(2 * math.pi) * counts)
    return np.where((counts > 1) & (expected > -np.inf), np.logaddexp(again, habit), again)


def _first_guess(near: Near, counts: Ints) -> Floats:
    """How probably each text was meant, by how often it stands and how often others that are like it do, (T,)."""
    most = np.ones(len(counts))
    np.maximum.at(most, near.seen, counts[near.known])
    return counts / (counts + most)


def _unframed(texts: Sequence[str]) -> Floats:
    """Less trust at first in texts with signs around them, unless it is the column's way, (T,)."""
    framed = np.array([any(undo_framed(text)) for text in texts])
    return np.where(framed & (framed.mean() < USUAL_FRAME), FRAMED_TRUST, 1.0)


@dataclass(frozen=True)
class LearnedTexts:
    """A column of text as learned: its texts, how probably each was meant, and what is thought of the others."""

    counts: Mapping[str, int]
    clean: tuple[float, ...]
    rates: Rates
    verdicts: Mapping[str, Verdict]

    def judge(self, counts: Mapping[str, int]) -> dict[str, Verdict]:
        """Verdicts for suspicious texts, given with their counts; new texts do not vouch for each other."""
        new = {text: count for text, count in counts.items() if text not in self.counts and len(text) <= LONGEST}
        found = {text: self.verdicts[text] for text in counts if text in self.verdicts}
        if new:
            texts, many = [*self.counts, *new], np.array([*self.counts.values(), *new.values()])
            column = Column(texts, many, np.zeros(len(texts)), clean=np.array(self.clean))
            column.weigh(self.rates)
            found |= {text: verdict for text, verdict in column.verdicts().items() if text in new}
        return found


def learn_texts(
    tables: Mapping[str, Mapping[str, int]], strangers: Collection[str] = (), until: float = math.inf
) -> dict[str, LearnedTexts]:
    """What is known of columns of text, each given as its different texts with counts, all learned together.

    `strangers` are texts that stand in columns of numbers, where they mean nothing. Columns with very many texts that
    could not be begun `until` then, by time.perf_counter, are left out, with a warning.

    >>> states = {"Alabama": 40, "Alaska": 30, "Alabma": 1}
    >>> learn_texts({"state": states})["state"].verdicts["Alabma"].meant
    ('Alabama',)
    """
    kept = {name: _most_frequent(counts) for name, counts in tables.items()}
    everywhere = Counter[str]()
    for counts in kept.values():
        everywhere.update(counts)
    begun: dict[str, Column] = {}
    for name in sorted(kept, key=lambda name: len(kept[name])):
        if kept[name] and (len(kept[name]) <= QUICK or time.perf_counter() < until):
            begun[name] = _column(name, kept, everywhere, strangers)
    if late := [name for name, counts in kept.items() if counts and name not in begun]:
        said = ", ".join(map(repr, late))
        warnings.warn(f"The time limit ended before slips were looked for in {said}.", SchemaWarning, stacklevel=2)
    columns = {name: begun[name] for name in kept if name in begun}
    cells = sum(column.cells for column in columns.values())
    guess = FIRST_RATE * ONCE
    rates = {name: Rates(guess * own.cells, guess * cells, own.cells, cells, {}) for name, own in columns.items()}
    for _ in range(ROUNDS):
        for name, column in columns.items():
            column.weigh(rates[name])
        rates = _learn_rates(columns)
    return {
        name: LearnedTexts(kept[name], tuple(np.round(column.clean, 4).tolist()), rates[name], column.verdicts())
        for name, column in columns.items()
    }


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    """The texts that are learned from; none of a column of prose, in which no text is written twice."""
    short = Counter({text: count for text, count in counts.items() if text and len(text) <= LONGEST})
    kept = dict(short.most_common(MOST_KEPT))
    return kept if sum(map(len, kept)) <= MOST_LETTERS else {}


def _column(
    name: str, tables: Mapping[str, Mapping[str, int]], everywhere: Mapping[str, int], strangers: Collection[str]
) -> Column:
    texts, own = list(tables[name]), np.array(list(tables[name].values()))
    elsewhere = np.array([everywhere[text] for text in texts], dtype=float) - own
    # A default that a program left in several columns is no value of any: only columns with the same values vouch.
    looks_default = np.flatnonzero((default_chances(texts, own, strangers) > NEVER) & (elsewhere > 0))
    if len(looks_default):
        alike = [other for key, other in tables.items() if key != name and _share_values(tables[name], other)]
        elsewhere[looks_default] = [sum(other.get(texts[at], 0) for other in alike) for at in looks_default.tolist()]
    return Column(texts, own, elsewhere, strangers)


def _share_values(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Do many cells of the one have a text that the other has too, and that looks like no default?"""
    shared = [text for text in one.keys() & other.keys() if log_chance_of_default(text) == NEVER]
    return sum(one[text] for text in shared) > A_PART * sum(one.values())


def _learn_rates(columns: Mapping[str, Column]) -> dict[str, Rates]:
    """The M step: how often each cause acted in each column."""
    by_cause, letters = {}, Counter[int]()
    for name, column in columns.items():
        spoiled = column.caused()
        by_cause[name] = np.bincount(column.cause, spoiled, minlength=len(SLIPS)).astype(np.float64)
        strayed = (column.stray > 0) & (spoiled > 0)
        for letter, often in zip(column.stray[strayed].tolist(), spoiled[strayed].tolist(), strict=True):
            letters[letter] += often
    table = np.sum(list(by_cause.values()), axis=0)
    cells = sum(column.cells for column in columns.values())
    defaults = sum(bool((column.is_default & (column.clean < UNSURE)).any()) for column in columns.values())
    share = (defaults + 1) / (len(columns) + 1 / USUAL_DEFAULTS)
    return {name: Rates(by_cause[name], table, own.cells, cells, letters, share) for name, own in columns.items()}
