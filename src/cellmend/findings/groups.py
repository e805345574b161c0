"""Findings in groups: by column and cause, and in them lines of cells that are to be changed in the same way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from rapidfuzz.distance import Postfix, Prefix

from cellmend.table.values import as_text

LONGEST = 300  # letters of a text for which a rewriting is looked for
FEWEST_VALUES, LEAST_SHARE = 3, 1 / 3  # of the values of a group that a rewriting describes, else each is a line
SAMPLE = 300  # of the values of a group, that tell whether it has a rewriting at all


class Found(Protocol):
    """What must be known of a flagged cell; a Finding has it."""

    @property
    def column(self) -> str: ...
    @property
    def cause(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def repair(self) -> Any: ...
    @property
    def suspicion(self) -> float: ...
    @property
    def repair_probability(self) -> float: ...


F = TypeVar("F", bound=Found)


class Line(NamedTuple, Generic[F]):
    """Cells of one column and cause that are to be changed in the same way."""

    value: str  # of the first cell
    repair: str | None  # likewise; None: not known
    rewriting: str  # what is done to the values, in words; "" where all cells have this value and this repair
    values: int  # different ones
    cells: Sequence[F]  # in the order in which they were given

    @property
    def suspicion(self) -> float:
        """The mean, which is also the share of the cells that is expected to be wrong."""
        return sum(each.suspicion for each in self.cells) / len(self.cells)

    @property
    def repair_probability(self) -> float:
        """The mean, which is also the share of the cells whose repair is expected to be right."""
        return sum(each.repair_probability for each in self.cells) / len(self.cells)


class Group(NamedTuple, Generic[F]):
    """All findings of one column and cause."""

    column: str
    cause: str
    lines: Sequence[Line[F]]  # the longest first
    values: int  # different ones

    @property
    def cells(self) -> int:
        """How many there are."""
        return sum(len(line.cells) for line in self.lines)

    @property
    def words(self) -> str:
        """The group in words."""
        many = [f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in ((self.cells, "cell"), (self.values, "value"))]
        return f"{self.column} · {self.cause}: {', '.join(many)}"


def grouped(findings: Sequence[F]) -> list[Group[F]]:
    """Findings by column and cause, the largest group first.

    >>> from cellmend.findings.finding import Finding
    >>> prices = [(0, "12.0 oz.", "12.0"), (1, "16.0 oz.", "16.0"), (2, "8.4 oz.", "8.4"), (3, "8.4 oz.", "8.4")]
    >>> found = [Finding(row, "size", value, 0.9, repair, None, None, "", "form") for row, value, repair in prices]
    >>> [group] = grouped(found)
    >>> group.words, [(line.rewriting, line.values, len(line.cells)) for line in group.lines]
    ('size · form: 4 cells, 3 values', [('‘ oz.’ taken away at the end', 3, 4)])
    """
    groups: dict[tuple[str, str], dict[tuple[str, str | None], list[F]]] = {}
    for each in findings:
        repair = None if each.repair is None else as_text(each.repair)
        pairs = groups.setdefault((each.column, each.cause), {})
        pairs.setdefault((as_text(each.value), repair), []).append(each)
    made = [
        Group(*key, _lines(pairs, _rewritings([*pairs])), len({value for value, _ in pairs}))
        for key, pairs in groups.items()
    ]
    return sorted(made, key=lambda group: -group.cells)


def _lines(pairs: dict[tuple[str, str | None], list[F]], rewritings: Sequence[str]) -> list[Line[F]]:
    """The lines of one group: pairs of value and repair, those of one rewriting together."""
    lines = [
        Line(*pair, "", 1, cells) for (pair, cells), told in zip(pairs.items(), rewritings, strict=True) if not told
    ]
    joined: dict[str, list[tuple[str, str | None]]] = {}
    for pair, told in zip(pairs, rewritings, strict=True):
        if told:
            joined.setdefault(told, []).append(pair)
    for told, own in joined.items():
        cells = [each for pair in own for each in pairs[pair]]
        lines.append(Line(*own[0], told, len({value for value, _ in own}), cells))
    lines.sort(key=lambda line: -len(line.cells))
    return lines


# ---------------------------------------------------------------- one rewriting of many values


def _rewritings(pairs: Sequence[tuple[str, str | None]]) -> list[str]:
    """For each pair of value and repair of a group a rewriting, "" where none describes enough of them."""
    if not _usual(pairs[:: len(pairs) // SAMPLE + 1], FEWEST_VALUES - 1):
        return [""] * len(pairs)
    usual = _usual(pairs, FEWEST_VALUES)
    return [max(filter(usual.__contains__, own), key=usual.__getitem__, default="") for own in _described(pairs)]


def _usual(pairs: Sequence[tuple[str, str | None]], fewest: int) -> dict[str, int]:
    """The rewritings that describe enough of these pairs, each with how many."""
    counts = Counter(each for own in _described(pairs) for each in own)
    enough = max(fewest, LEAST_SHARE * len(pairs))
    return {each: count for each, count in counts.items() if count >= enough}


def _described(pairs: Sequence[tuple[str, str | None]]) -> list[tuple[str, ...]]:
    """The rewritings that turn each value into its repair, the most particular first."""
    return [() if repair is None else describe(value, repair) for value, repair in pairs]


def describe(value: str, repair: str) -> tuple[str, ...]:
    """What turns a value into its repair, if a few words say it.

    >>> describe("12.0 oz.", "12.0"), describe("hoxse", "house"), describe("ROME", "Rome")
    (('‘ oz.’ taken away at the end', 'the last word taken away'), ('‘x’ replaced by ‘u’', '‘x’ replaced'), \
('capital and small letters',))
    """
    if max(len(value), len(repair)) > LONGEST:
        return ()
    start = Prefix.similarity(value, repair)
    end = min(Postfix.similarity(value, repair), len(value) - start, len(repair) - start)
    old, new = value[start : len(value) - end], repair[start : len(repair) - end]
    if value.casefold() == repair.casefold():
        return ("capital and small letters",)
    if value.split() == repair.split() or "".join(value.split()) == "".join(repair.split()):
        return ("spaces",)
    if moved := _moved_point(value, repair):
        return (moved,)
    if len(old) == len(new) and (replaced := _replaced(old, new)):
        return replaced
    if bool(start) == bool(end):
        return ()
    where = "at the end" if start else "at the start"
    if not new:
        is_word = len(old.split()) == 1 and not old.strip().isdigit() and (old[0] if start else old[-1]).isspace()
        word = (f"the {'last' if start else 'first'} word taken away",) if is_word else ()
        return (f"‘{old}’ taken away {where}", *word)
    return (f"‘{new}’ added {where}",) if not old else (f"‘{old}’ {where} replaced by ‘{new}’",)


def _replaced(old: str, new: str) -> tuple[str, ...]:
    """One letter that stands in the place of another, wherever they differ."""
    differing = {pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]}
    strays = {stray for stray, _ in differing}
    if len(strays) != 1:
        return ()
    stray = strays.pop()
    particular = () if len(differing) > 1 else (f"‘{stray}’ replaced by ‘{differing.pop()[1]}’",)
    return (*particular, f"‘{stray}’ replaced")


def _moved_point(value: str, repair: str) -> str:
    """By how many places the decimal point of a number was moved; "" if that is not what was done.

    >>> _moved_point("1250", "12.5"), _moved_point("12.50", "12.5"), _moved_point("12 oz", "12")
    ('the decimal point moved by 2 places to the left', '', '')
    """
    digits = [text.replace(".", "", 1).strip("0") for text in (value, repair)]
    if digits[0] != digits[1] or not (digits[0].isascii() and digits[0].isdigit()):
        return ""
    places = _exponent(repair) - _exponent(value)
    if places == 0:
        return ""
    many = f"{abs(places)} place{'' if abs(places) == 1 else 's'}"
    return f"the decimal point moved by {many} to the {'right' if places > 0 else 'left'}"


def _exponent(text: str) -> int:
    """Where the decimal point of a number lies before or behind its first digit that is not 0."""
    whole, _, behind = text.partition(".")
    return len(whole.lstrip("0")) or len(behind.lstrip("0")) - len(behind)
