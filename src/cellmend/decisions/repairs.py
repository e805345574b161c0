"""What repairs that people gave tell of other wrong cells: ways to rewrite a text, and the value that its company has.

From one pair of a text and its repair all ways are listed that lead from the one to the other. A way is trusted as far
as it leads to the given repair wherever it can be gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cellmend.decisions.habits import Coded, Floats, Habits, form_of, number_of, shape_of
from cellmend.table.values import as_text

LEAST_TRUST = 0.6  # of a way, or it is not gone: a single example has 0.75, one of two 0.5
NO_GUESS = "\0"  # no repair is like it
MOST_SHIFTED = 9  # places by which a decimal point slips


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


def _value(text: str, old: str, new: str) -> str | None:
    return new if text == old else None


def _end(text: str, old: str, new: str) -> str | None:
    return text[: len(text) - len(old)] + new if text.endswith(old) else None


def _start(text: str, old: str, new: str) -> str | None:
    return new + text[len(old) :] if text.startswith(old) else None


def _inside(text: str, old: str, new: str) -> str | None:
    return text.replace(old, new) if old and text.count(old) == 1 else None


def _end_like(text: str, old: str, new: str) -> str | None:
    found = re.search(f"(?:{old})$", text)
    return text[: found.start()] + new if found else None


def _start_like(text: str, old: str, new: str) -> str | None:
    found = re.match(old, text)
    return new + text[found.end() :] if found else None


def _doubled(text: str, old: str, new: str) -> str | None:
    return text[::2] if text and text[::2] == text[1::2] else None


def _scaled(text: str, old: str, new: str) -> str | None:
    number = number_of(text)
    return None if np.isnan(number) else as_text(round(float(f"{number * 10.0 ** int(old):.12g}"), 9))


def _day_first(text: str, old: str, new: str) -> str | None:
    parts = re.fullmatch(r"(\d{1,2})([/.-])(\d{1,2})(\2.*)", text)
    return f"{parts[3]}{parts[2]}{parts[1]}{parts[4]}" if parts else None


WAYS: dict[str, Callable[[str, str, str], str | None]] = {
    "value": _value,
    "end": _end,
    "start": _start,
    "inside": _inside,
    "end like": _end_like,
    "start like": _start_like,
    "doubled": _doubled,
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
    start = _alike(text, repair)
    end = _alike(text[start:][::-1], repair[start:][::-1])
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


def _alike(one: str, other: str) -> int:
    """How many letters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _like(text: str) -> str:
    """A pattern of texts with letters and digits in the same places."""
    parts = re.findall(r"[^\W\d_]+|\d+|.", text, flags=re.DOTALL)
    return "".join(r"\d+" if part.isdigit() else r"[^\W\d_]+" if part.isalpha() else re.escape(part) for part in parts)


@dataclass(frozen=True)
class Repairs:
    """How wrong cells of a column are repaired."""

    ways: tuple[tuple[Way, float], ...]  # and how far each is trusted, the most trusted first
    company: dict[str, str]  # value of the column that tells this one, to the value that such rows have
    trust: float  # in company
    forms: tuple[str, ...] = ()  # of the repairs that people gave

    def meant(self, text: str, beside: str, habits: Habits | None) -> str | None:
        """What a wrong cell should hold, with what stands in the column that tells it; None if nothing says."""
        for way, trust in self.ways:
            if self.trust > trust and self.company.get(beside, text) != text:
                break
            found = way.rewrite(text)
            if found is not None and (way.name == "value" or self._is_written_so(found, habits)):
                return found
        best = self.company.get(beside, text)
        return best if best != text else None

    def _is_written_so(self, text: str, habits: Habits | None) -> bool:
        """Is a text written as given repairs, or as cells of its column are?"""
        return form_of(text) in self.forms or (habits is not None and is_usual(text, habits))


def is_usual(text: str, habits: Habits) -> bool:
    """Is a text written as others of its column are?"""
    is_number = not np.isnan(number_of(text)) and habits.numeric > 1 - habits.numeric
    return text in habits.values or shape_of(text) in habits.shapes or is_number


@dataclass(frozen=True)
class Given:
    """A repair that a person gave."""

    text: str
    repair: str
    beside: str  # what stands in the column that tells this one
    guess: str | None  # what the model would have repaired


def learn_repairs(given: Sequence[Given], company: Mapping[str, str]) -> Repairs:
    """Ways and company that lead to the given repairs more often than the model does."""
    pairs = dict.fromkeys((each.text, each.repair) for each in given)
    ways = dict.fromkeys(way for text, repair in pairs for way in ways_from(text, repair))
    least = max(LEAST_TRUST, _trust((each.guess or NO_GUESS, each.repair) for each in given))
    trusted = [(way, _trust((way.rewrite(text), repair) for text, repair in pairs)) for way in ways]
    kept = sorted(((way, trust) for way, trust in trusted if trust >= least), key=lambda pair: -pair[1])
    told = _trust((company.get(each.beside), each.repair) for each in given)
    forms = dict.fromkeys(form_of(each.repair) for each in given)
    return Repairs(tuple(kept), dict(company) if told >= least else {}, told, tuple(forms))


def _trust(answers: Iterable[tuple[str | None, str]]) -> float:
    """How far answers are trusted, by how many of them are right; None is none."""
    right = [_same(answer, repair) for answer, repair in answers if answer is not None]
    return (sum(right) + 0.5) / (len(right) + 1) if any(right) else 0.0


def _same(one: str, other: str) -> bool:
    return one == other or number_of(one) == number_of(other)


def best_company(telling: Coded, told: Coded, trust: Floats) -> dict[str, str]:
    """For each telling value the told one that stands beside it in most cells, each counted as far as trusted, (N,)."""
    both = (telling.places >= 0) & (told.places >= 0)
    width = len(told.texts) + 1
    keys, places = np.unique(telling.places[both] * width + told.places[both], return_inverse=True)
    weights = np.bincount(places, trust[both], minlength=len(keys))
    order = np.lexsort((-weights, keys // width))
    first = np.r_[True, np.diff(keys[order] // width) > 0][: len(order)]
    chosen = order[first][weights[order[first]] >= 1]  # at least one cell that is held to be right
    return {telling.texts[key // width]: told.texts[key % width] for key in keys[chosen].tolist()}


def repairs_to_json(repairs: Repairs) -> dict[str, Any]:
    """As a model file holds them."""
    return asdict(repairs)


def repairs_from_json(entry: Mapping[str, Any]) -> Repairs:
    """The opposite of repairs_to_json."""
    ways = tuple((Way(**way), trust) for way, trust in entry["ways"])
    return Repairs(ways, entry["company"], entry["trust"], tuple(entry.get("forms", ())))  # none in files of before
