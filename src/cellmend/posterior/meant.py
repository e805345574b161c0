"""What a wrong cell may have been: hypotheses from its own text, from its column and from the columns beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property

import numpy as np
import pyarrow as pa
from rapidfuzz.distance import OSA

from cellmend.posterior import forms
from cellmend.posterior.evidence import Portrait
from cellmend.posterior.exchange import Home
from cellmend.posterior.formats import FORMATS, UNDOING
from cellmend.posterior.known import Known
from cellmend.posterior.lexicon import lexicon
from cellmend.posterior.pairs import Codes
from cellmend.posterior.priors import LETTERS_OF_A_DAY, MOST_DAYS
from cellmend.posterior.spelling import WORD, Speller, Words
from cellmend.table.values import shortened

# Where a hypothesis comes from: the text itself, its column, other columns, an expert, the network.
SOURCES = (
    "variant", "mojibake", "trimmed", "digits", "near", "word", "common", "longer", "point", "sign", "format", "day",
    "exchange", "pair", "slip", "relation", "level", "number",
)  # fmt: skip
FIGURES = (
    *SOURCES, "log_count", "log_more", "likeness", "agreeing", "pair_says", "pair_cells", "net_fit", "net_chance",
    "expert_sure", "same_outline", "own_length",
)  # fmt: skip


@dataclass(frozen=True)
class Hypothesis:
    """One thing that a cell may have been."""

    meant: str
    source: str
    because: str  # in words, to go on with after "City is denver; "
    sure: float = 0.0  # what an expert or the network says itself


class Spellings:
    """Hypotheses from the text of a cell and the other texts of its column, and look-ups by text for many cells."""

    def __init__(self, known: Known) -> None:
        self.known, self.texts = known, known.texts.to_pylist()
        self.count = dict(zip(self.texts, known.counts.tolist(), strict=True))
        self.place = {text: at for at, text in enumerate(self.texts)}
        self._outlines: dict[str, float] = {}

    def shares_of_outlines(self, texts: Iterable[str]) -> list[float]:
        """The share of cells with the same outline as each text, found out once for each different text."""
        texts = list(texts)
        if new := [text for text in dict.fromkeys(texts) if text not in self._outlines]:
            shapes = forms.shape(pa.array(new, pa.string()))
            shares = self.known.shapes.total(forms.outline, shapes) / max(self.known.cells, 1)
            self._outlines.update(zip(new, shares.tolist(), strict=True))
        return [self._outlines[text] for text in texts]

    @cached_property
    def _forms(self) -> list[dict[str, str]]:
        """By form the most frequent text that has it, without case and spaces, and letters and digits alone."""
        order = np.argsort(-self.known.counts, kind="stable")
        texts = self.known.texts.take(pa.array(order))
        found = []
        for form in (forms.folded, forms.bare):
            best: dict[str, str] = {}
            for key, text in zip(form(texts).to_pylist(), texts.to_pylist(), strict=True):
                best.setdefault(key, text)
            found.append(best)
        return found

    @cached_property
    def _most_decimals(self) -> int:
        """Of the column's numbers: a finer one would be none of it."""
        read = np.isfinite(self.known.numbers).tolist()
        return max((_decimals(text) for text, is_read in zip(self.texts, read, strict=True) if is_read), default=0)

    @cached_property
    def _speller(self) -> Speller:
        return Speller(self.texts, self.known.counts.astype(np.float64))

    @cached_property
    def _words(self) -> Speller:
        words = Words.of(self.texts)
        return Speller(words.words, words.counts(self.known.counts.astype(np.float64)))

    def of(self, text: str) -> Iterator[Hypothesis]:
        """What the text may have been, by itself and its column; never a text that is rarer."""
        own, one = self.count.get(text, 0), pa.array([text])
        for form, best in zip((forms.folded, forms.bare), self._forms, strict=True):
            key = form(one)[0].as_py()
            other = best.get(key)
            if other is not None and other != text and self.count[other] > own and key:
                yield self._said(other, "variant")
        if forms.matches(one, forms.MOJIBAKE)[0] and forms.unmixed(text) != text:
            yield Hypothesis(forms.unmixed(text), "mojibake", "its letters were read in another encoding")
        trimmed = " ".join(text.split())
        if trimmed != text and (own <= 1 or self.count.get(trimmed, 0) >= own):
            yield Hypothesis(trimmed, "trimmed", "it has needless spaces")
        yield from self._numbers(text, one)
        yield from self._in_format(text)
        yield from self._days(text)
        near = self._speller.place_of(text)
        if near >= 0 and _letters(self.texts[near]) != _letters(text):  # other digits are another number, not a slip
            yield self._said(self.texts[near], "near")
        yield from self._by_word(text)
        yield from self._by_common_word(text)
        yield from self._longer(text, own)

    def _said(self, meant: str, source: str) -> Hypothesis:
        count = self.count[meant]
        return Hypothesis(meant, source, f"probably {meant} ({count:,} row{'s' * (count != 1)})")

    def _numbers(self, text: str, one: pa.StringArray) -> Iterator[Hypothesis]:
        value = forms.numbers(one)[0]
        if np.isnan(value) and not self.known.holds_dates:
            digits = forms.as_digits(one)
            if np.isfinite(forms.numbers(digits)[0]) and any(letter.isdigit() for letter in text):
                yield Hypothesis(digits[0].as_py(), "digits", f"probably {digits[0].as_py()}, with letters for digits")
        if np.isfinite(value) and value != 0 and not self.known.holds_dates:
            for power in (-3, -2, -1, 1, 2, 3):
                if (moved := _moved(text, power)) and _decimals(moved) <= self._most_decimals:
                    yield Hypothesis(moved, "point", f"probably {moved}, with the decimal point moved")
            if turned := _turned(text):
                yield Hypothesis(turned, "sign", f"probably {turned}, with the other sign")

    def _in_format(self, text: str) -> Iterator[Hypothesis]:
        """The text with one slip undone, if that keeps the format of its column and the text does not."""
        kept, share = self.known.format
        if share <= 0.5 or FORMATS[kept](pa.array([text]))[0]:  # most cells keep none
            return
        undone = [undo(text) for undo in UNDOING]
        undone += [f"{text.removesuffix(end)}@{end}" for end in self._domains if text.endswith(end)]
        keeps = FORMATS[kept](pa.array(undone, pa.string())).tolist()
        meant = list(dict.fromkeys(each for each, good in zip(undone, keeps, strict=True) if good))
        for each in meant:
            yield Hypothesis(each, "format", f"probably {each}, as a {kept} is written", 1 / len(meant))

    @cached_property
    def _domains(self) -> list[str]:
        """What stands behind the @ of the column's texts more than once."""
        ends = Counter[str]()
        for text, count in self.count.items():
            ends[text.rpartition("@")[2] if "@" in text else ""] += count
        return [end for end, count in ends.items() if end and count > 1]

    def _days(self, text: str) -> Iterator[Hypothesis]:
        """Days that differ from a date in one digit, or in two exchanged ones, as probable as such days are in the
        column."""
        if not self.known.holds_dates:
            return
        tried = pa.array(list(dict.fromkeys(_one_digit_off(text))), pa.string())
        possible = np.isfinite(forms.days(tried)) & ~forms.impossible(tried, day_first=self.known.day_first)
        chances = np.where(possible, np.exp(self._home.fit(tried)), 0.0)
        for at in np.argsort(-chances, kind="stable")[:MOST_DAYS].tolist():
            meant, sure = tried[at].as_py(), float(chances[at] / chances.sum()) if chances[at] else 0.0
            if sure:
                yield Hypothesis(meant, "day", f"probably {meant}, with one slip of the keyboard", sure)

    @cached_property
    def _home(self) -> Home:
        return Home(self.known)

    def _by_word(self, text: str) -> Iterator[Hypothesis]:
        words = self._words
        for found in WORD.finditer(text):
            word = found[0].lower()
            near = words.place_of(word)
            if near >= 0 and words.counts[near] > 2 * words.count_of(word):
                meant = _in_case(words.known[near], found[0])
                whole = text[: found.start()] + meant + text[found.end() :]
                rows = int(words.counts[near])
                yield Hypothesis(whole, "word", f"{found[0]} is probably {meant} ({rows:,} row{'s' * (rows != 1)})")

    @staticmethod
    def _by_common_word(text: str) -> Iterator[Hypothesis]:
        common = lexicon()
        for found in WORD.finditer(text):
            near = common.near(found[0].lower())
            if near is not None:
                meant, tables = _in_case(near, found[0]), common.families[near]
                because = f"{found[0]} is probably {meant}, a word of many public tables"
                whole = text[: found.start()] + meant + text[found.end() :]
                yield Hypothesis(whole, "common", because, float(np.log1p(tables)))

    def _longer(self, text: str, own: int) -> Iterator[Hypothesis]:
        if len(text) < 3:
            return
        longer = [
            other for other, count in self.count.items() if count > own and other != text and other.startswith(text)
        ]
        if longer:
            meant = max(longer, key=self.count.__getitem__)
            share = self.count[meant] / sum(self.count[each] for each in longer)
            count = self.count[meant]
            yield Hypothesis(meant, "longer", f"cut off, probably {meant} ({count:,} row{'s' * (count != 1)})", share)


def _one_digit_off(text: str) -> Iterator[str]:
    """The text with each digit replaced by each other one, and with each two neighbouring digits exchanged.

    >>> [each for each in _one_digit_off("1a2") if each.startswith("1")][:2]
    ['1a0', '1a1']
    """
    for at, letter in enumerate(text[:LETTERS_OF_A_DAY]):
        if letter.isdigit():
            yield from (text[:at] + digit + text[at + 1 :] for digit in "0123456789" if digit != letter)
            after = text[at + 1 : at + 2]
            if after.isdigit() and after != letter:
                yield text[:at] + after + letter + text[at + 2 :]


def _letters(text: str) -> str:
    """A text without its digits.

    >>> _letters("AB-12") == _letters("AB-13")
    True
    """
    return "".join(letter for letter in text if not letter.isdigit())


def _moved(text: str, power: int) -> str | None:
    """A plain number with its decimal point moved, None if it would end in nothing but more zeros.

    >>> _moved("31.8", -1), _moved("5", 1), _moved("1,200", 1)
    ('3.18', '50', None)
    """
    try:
        number = Decimal(text.strip()).scaleb(power)
    except InvalidOperation:
        return None
    return format(number.normalize(), "f") if number.is_finite() and abs(number.adjusted()) < 25 else None


def _decimals(text: str) -> int:
    """Digits behind the point.

    >>> _decimals("3.18"), _decimals("50")
    (2, 0)
    """
    return len(text.strip().partition(".")[2])


def _turned(text: str) -> str | None:
    """A number with the other sign."""
    bare = text.strip()
    return bare[1:] if bare.startswith("-") else f"-{bare}" if bare[:1].isdigit() or bare.startswith(".") else None


def _in_case(word: str, like: str) -> str:
    """A word in the case of another one."""
    if like.isupper():
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word


def exchanged(portrait: Portrait, texts: Sequence[str], column: int) -> Hypothesis | None:
    """What stands in the column that this cell was most probably exchanged with, from the texts of its row."""
    near = portrait.exchanges.likeliest(portrait.homes, texts, column)
    if near is None:
        return None
    partner, gain = near
    name = portrait.columns[partner].name
    return Hypothesis(texts[partner], "exchange", f"probably exchanged with {name}, {shortened(texts[partner])}", gain)


def told_by_pairs(portrait: Portrait, codes: Codes, row: int, column: int) -> Hypothesis | None:
    """What the column that goes most surely with this one says the value was."""
    told = portrait.pairs.told(codes, row, column)
    if told is None:
        return None
    partner, value, said, cells = told
    beside = portrait.columns[partner].texts[int(codes[row, partner])].as_py()
    meant = portrait.columns[column].texts[value].as_py()
    because = (
        f"for {portrait.columns[partner].name} {shortened(beside)} it is {shortened(meant)} in {said} of {cells} rows"
    )
    return Hypothesis(meant, "pair", because, said / (cells + 1))


def figures_of(
    text: str,
    hypotheses: Sequence[Hypothesis],
    column: Spellings,
    supports: Sequence[tuple[float, int]],
    fits: Sequence[float],
) -> np.ndarray:
    """Figures of each hypothesis about one cell, (H, FIGURES); `supports` is what the cell's partners say of each, and
    `fits` how well the row fits each, log p against the best, NaN if the network does not say."""
    own = max(column.count.get(text, 0), 1)
    agreeing = Counter(each.meant for each in hypotheses)
    usual = column.shares_of_outlines(each.meant for each in hypotheses)
    figures = np.zeros((len(hypotheses), len(FIGURES)))
    for at, (each, (says, cells), fit) in enumerate(zip(hypotheses, supports, fits, strict=True)):
        longest, count = max(len(text), len(each.meant), 1), column.count.get(each.meant, 0)
        figures[at, SOURCES.index(each.source)] = 1.0
        figures[at, len(SOURCES) :] = (
            np.log1p(count),
            np.log((count + 0.5) / own),
            1 - OSA.distance(text[: forms.LONGEST], each.meant[: forms.LONGEST]) / longest,
            agreeing[each.meant] - 1,
            says,
            np.log1p(cells),
            0.0 if np.isnan(fit) else min(max(fit, -12.0), 0.0),
            float(not np.isnan(fit)),
            each.sure,
            usual[at],
            np.log1p(len(text)),
        )
    return figures
