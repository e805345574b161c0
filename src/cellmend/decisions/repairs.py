"""What repairs that people gave tell of other wrong cells: ways to rewrite a text, and the column that tells the value.

From one pair of a text and its repair all ways are listed that lead from the one to the other. A way is trusted as far
as it leads to the given repair wherever it can be gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cellmend.posterior import forms
from cellmend.posterior.known import Coded, Floats, Known
from cellmend.table.priors import MOSTLY
from cellmend.table.texts import alike_until
from cellmend.table.values import as_text

LEAST_TRUST = 0.6  # of a way, or it is not gone: a single example has 0.75, one of two 0.5
NO_GUESS = "\0"  # no repair is like it
MOST_SHIFTED = 9  # places by which a decimal point slips
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


@dataclass(frozen=True)
class Way:
    """A way to rewrite texts: its name, and what it replaces by what.

    >>> Way("end", " oz", "").rewrite("12 oz"), Way("reversed").rewrite("eurt")
    ('12', 'true')
    """

    name: str
    old: str = ""
    new: str = ""

    def rewrite(self, text: str) -> str | None:
        """The text rewritten; None if the way cannot be gone from it."""
        found = WAYS[self.name](text, self.old, self.new)
        return None if found == text else found


def _scaled(text: str, old: str, new: str) -> str | None:
    number = number_of(text)
    return None if np.isnan(number) else as_text(round(float(f"{number * 10.0 ** int(old):.12g}"), 9))


def _day_first(text: str, old: str, new: str) -> str | None:
    parts = re.fullmatch(r"(\d{1,2})([/.-])(\d{1,2})(\2.*)", text)
    return f"{parts[3]}{parts[2]}{parts[1]}{parts[4]}" if parts else None


WAYS: dict[str, Callable[[str, str, str], str | None]] = {
    "value": lambda text, old, new: new if text == old else None,
    "end": lambda text, old, new: text.removesuffix(old) + new if text.endswith(old) else None,
    "start": lambda text, old, new: new + text.removeprefix(old) if text.startswith(old) else None,
    "inside": lambda text, old, new: text.replace(old, new) if old and text.count(old) == 1 else None,
    "end like": lambda text, old, new: text[: at.start()] + new if (at := re.search(f"(?:{old})$", text)) else None,
    "start like": lambda text, old, new: new + text[at.end() :] if (at := re.match(old, text)) else None,
    "doubled": lambda text, old, new: text[::2] if text and text[::2] == text[1::2] else None,
    "reversed": lambda text, old, new: text[::-1],
    "lower": lambda text, old, new: text.lower(),
    "upper": lambda text, old, new: text.upper(),
    "title": lambda text, old, new: text.title(),
    "day first": _day_first,
    "scaled": _scaled,
}


def ways_from(text: str, repair: str) -> Iterator[Way]:
    """All ways from a text to its repair, the most particular last.

    >>> [way.name for way in ways_from("12 oz", "12")]
    ['end', 'inside', 'end like', 'value']
    """
    plain = (Way(name) for name in ("doubled", "reversed", "lower", "upper", "title", "day first"))
    shifted = (Way("scaled", str(power)) for power in range(-MOST_SHIFTED, MOST_SHIFTED + 1) if power)
    for way in (*plain, *shifted, *_edits(text, repair), Way("value", text, repair)):
        found = way.rewrite(text)
        if found == repair or (way.name == "scaled" and found is not None and number_of(found) == number_of(repair)):
            yield way


def _edits(text: str, repair: str) -> Iterator[Way]:
    """What stands at the end, at the start or inside, and what stands there instead.

    None where words or numbers are cut: that 12 should be 622 says nothing of 14.
    """
    start = alike_until(text, repair)
    end = alike_until(text[start:][::-1], repair[start:][::-1])
    old, new = text[start : len(text) - end], repair[start : len(repair) - end]
    edges = ((each, edge) for each in (text, repair) for edge in (start, len(each) - end))
    if old != text and not any(_is_inside(each, edge) for each, edge in edges):
        yield from (Way(name, old, new) for name in ("end", "start", "inside"))
        if re.search(r"\w", old):
            yield from (Way(name, _like(old), new) for name in ("end like", "start like"))


def _is_inside(text: str, edge: int) -> bool:
    """Does an edge lie between two digits or two letters?"""
    around = text[max(edge - 1, 0) : edge + 1]
    return 0 < edge < len(text) and (around.isdigit() or around.isalpha())


def _like(text: str) -> str:
    """A pattern of texts with letters and digits in the same places."""
    parts = re.findall(r"[^\W\d_]+|\d+|.", text, flags=re.DOTALL)
    return "".join(r"\d+" if part.isdigit() else r"[^\W\d_]+" if part.isalpha() else re.escape(part) for part in parts)


@dataclass(frozen=True)
class Given:
    """A repair that a person gave."""

    text: str
    repair: str
    guess: str | None  # what the model would have repaired
    row: Mapping[int, str]  # what stands in the partners of the column, by place; nothing if the row is not here


@dataclass(frozen=True)
class Partner:
    """Another column that tells what wrong cells should hold."""

    place: int
    tells: Mapping[str, str]  # by its text, the value that most rows with it have

    @classmethod
    def learn(cls, place: int, partner: Coded, column: Coded, trust: Floats) -> Partner:
        """By rows that are trusted so far, (N,); a value must have a whole row for it."""
        both = (partner.codes >= 0) & (column.codes >= 0)
        width = len(column.texts) + 1
        keys, index = np.unique(partner.codes[both] * width + column.codes[both], return_inverse=True)
        rows = np.bincount(index, trust[both], minlength=len(keys))
        rising = [int(key) for key in keys[np.argsort(rows, kind="stable")[(rows < 1).sum() :]]]  # the last one holds
        texts, values = partner.texts.to_pylist(), column.texts.to_pylist()
        return cls(place, {texts[key // width].strip(): values[key % width].strip() for key in rising})


@dataclass(frozen=True)
class Repairs:
    """How wrong cells of a column are repaired."""

    ways: tuple[Way, ...] = ()  # the most trusted first
    outlines: tuple[str, ...] = ()  # of the repairs that people gave
    partner: Partner | None = None
    surer: int = 0  # ways that are trusted more than the partner

    @classmethod
    def learn(cls, given: Sequence[Given], partners: Iterable[Partner]) -> Repairs:
        """Ways, and a partner, that lead to the given repairs more often than the model does."""
        pairs = dict.fromkeys((each.text, each.repair) for each in given)
        ways = dict.fromkeys(way for text, repair in pairs for way in ways_from(text, repair))
        least = max(LEAST_TRUST, _trust((each.guess or NO_GUESS, each.repair) for each in given))
        trust = {way: _trust((way.rewrite(text), repair) for text, repair in pairs) for way in ways}
        kept = sorted((way for way in ways if trust[way] >= least), key=lambda way: -trust[way])
        outlines = tuple(dict.fromkeys(outlines_of([each.repair for each in given])))
        best, told = None, least
        for partner in partners:
            own = _trust((partner.tells.get(each.row.get(partner.place, "")), each.repair) for each in given)
            if own > told or (own == told and best is None):
                best, told = partner, own
        return cls(tuple(kept), outlines, best, sum(trust[way] >= told for way in kept))

    def meant(self, cells: Iterable[tuple[str, str]], known: Known) -> dict[tuple[str, str], str]:
        """What wrong cells should hold, by their text and that of the partner; only those of which something tells."""
        open_, found = dict.fromkeys(cells), dict[tuple[str, str], str]()
        tells = self.partner.tells if self.partner else {}
        for step in (*self.ways[: self.surer], self.partner, *self.ways[self.surer :]):
            if isinstance(step, Way):
                told = self._by_way(step, open_, known)
            else:
                told = {cell: tells[cell[1]] for cell in open_ if tells.get(cell[1], cell[0]) != cell[0]}
            found |= told
            open_ = {cell: None for cell in open_ if cell not in told}
        return found

    def _by_way(self, way: Way, cells: Iterable[tuple[str, str]], known: Known) -> dict[tuple[str, str], str]:
        told = {cell: new for cell in cells if (new := way.rewrite(cell[0])) is not None}
        fits = [True] * len(told) if way.name == "value" else self._fits(list(told.values()), known)
        return {cell: new for (cell, new), fit in zip(told.items(), fits, strict=True) if fit}

    def _fits(self, texts: list[str], known: Known) -> list[bool]:
        """Are texts written as given repairs, or as other cells of the column are?"""
        array = pa.array(texts, pa.string())
        number = np.isfinite(forms.numbers(array)) & (known.share(np.isfinite(forms.numbers(known.texts))) > MOSTLY)
        usual = (known.shapes.total(None, forms.shape(array)) > 1) | number
        given = [outline in self.outlines for outline in outlines_of(texts)]
        return (usual | np.array(given, dtype=bool)).tolist()


def outlines_of(texts: Sequence[str]) -> list[str]:
    """The outline of each text."""
    found: list[str] = forms.outline(forms.shape(pa.array(texts, pa.string()))).to_pylist()
    return found


def _trust(answers: Iterable[tuple[str | None, str]]) -> float:
    """How far answers are trusted, by how many of them are right; None is none."""
    given = [(answer, repair) for answer, repair in answers if answer is not None]
    right = [answer == repair or number_of(answer) == number_of(repair) for answer, repair in given]
    return (sum(right) + 0.5) / (len(right) + 1) if any(right) else 0.0


def number_of(text: str) -> float:
    """The number that a text is; NaN if it is none.

    >>> number_of("1.5"), number_of("1,200"), number_of("9 oz")
    (1.5, 1200.0, nan)
    """
    plain = THOUSANDS.sub("", text) if "," in text else text
    return float(plain) if NUMBER.fullmatch(plain) else np.nan
