"""What people say of a whole column: its kind, and which values may stand in it; kept in columns.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.errors import FileError, RulesError, SettingError
from cellmend.files.places import whole_file
from cellmend.files.records import parsed
from cellmend.table.packing import pack
from cellmend.table.schema import EVERY_KIND
from cellmend.table.texts import Notation, holds_text
from cellmend.table.values import family, rounded_text

CAUSE = "not allowed"  # of cells that break a limit
CONFIRMED, STRUCK = "confirmed", "struck"  # what people say of a rule that was found
MOST_LEVELS = 1000  # in a set of valid values
LONGEST_PATTERN = 500

Values = Any  # pa.Array or pa.ChunkedArray


@dataclass(frozen=True)
class Limits:
    """Which values may stand in a column; what is None is not limited.

    >>> Limits(low=0, high=10).in_words(), Limits(levels=("S", "M")).in_words()
    ('0 to 10', 'one of S, M')
    >>> Limits.of({"earliest": "2024-01-31"}).in_words()
    '2024-01-31 or later'
    """

    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] | None = None
    pattern: str | None = None  # the whole text matches it
    earliest: str | None = None  # dates, such as 2024-01-31
    latest: str | None = None  # all of this day may stand there

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Limits:
        """Limits as a page or a file gives them, checked."""
        low, high = (_number(entry.get(name), name) for name in ("low", "high"))
        if low is not None and high is not None and low > high:
            raise SettingError(f"The least value must not exceed the largest; {low:g} is more than {high:g}.")
        earliest, latest = (_date(entry.get(name), name) for name in ("earliest", "latest"))
        if earliest is not None and latest is not None and earliest > latest:
            raise SettingError(f"The earliest date must not be after the latest; {earliest} is after {latest}.")
        levels, pattern = entry.get("levels") or None, entry.get("pattern") or None
        if levels is not None and not (
            isinstance(levels, list) and len(levels) <= MOST_LEVELS and all(isinstance(each, str) for each in levels)
        ):
            raise SettingError(f"Valid values must be a list of at most {MOST_LEVELS:,} texts.")
        if pattern is not None and not (isinstance(pattern, str) and len(pattern) <= LONGEST_PATTERN):
            raise SettingError(f"A pattern must be a text of at most {LONGEST_PATTERN} letters.")
        limits = cls(low, high, None if levels is None else tuple(levels), pattern, earliest, latest)
        limits.forbids(pa.array([""]), pa.array([0.0]))  # or the pattern cannot be read
        return limits

    def in_words(self) -> str:
        """What is allowed."""
        span = _span(self.low, self.high, "at least {}", "at most {}")
        days = _span(self.earliest, self.latest, "{} or later", "{} or earlier")
        some = "" if self.levels is None else f"one of {', '.join(self.levels)}"
        form = "" if self.pattern is None else f"of the form {self.pattern}"
        return " and ".join(filter(None, [span, days, some, form]))

    def forbids(self, texts: Values, numbers: Values | None) -> NDArray[np.bool_]:
        """Which of these cells must not stand in the column; empty ones may. `numbers` is what the texts say."""
        forbidden = np.zeros(len(texts), dtype=bool)
        if numbers is not None:
            values = numbers.to_numpy(zero_copy_only=False)
            for end, is_beyond in (
                (self.low, np.less),
                (self.high, np.greater),
                (_days(self.earliest), np.less),
                (_days(self.latest, 1), np.greater_equal),
            ):
                if end is not None:
                    forbidden |= is_beyond(values, end)  # what is no number is not beyond
        if self.levels is not None:
            forbidden |= ~pc.is_in(texts, pa.array(self.levels, pa.string())).to_numpy(zero_copy_only=False)
        if self.pattern is not None:
            forbidden |= ~matching(texts, rf"\A(?:{self.pattern})\z", self.pattern)
        is_empty = pc.fill_null(pc.equal(texts, ""), True).to_numpy(zero_copy_only=False)
        return forbidden & ~is_empty


def _span(low: float | str | None, high: float | str | None, from_low: str, to_high: str) -> str:
    first, last = ("" if end is None else rounded_text(end) for end in (low, high))
    if first and last:
        return f"{first} to {last}"
    return from_low.format(first) if first else to_high.format(last) if last else ""


def _days(day: str | None, more: int = 0) -> int | None:
    """The days from 1970 to a date, as `numbers_of` counts."""
    return None if day is None else (date.fromisoformat(day) - date(1970, 1, 1)).days + more


def _date(given: Any, name: str) -> str | None:
    if given in (None, ""):
        return None
    try:
        return date.fromisoformat(given).isoformat()
    except (TypeError, ValueError):
        raise SettingError(f"The {name} value must be a date such as 2024-01-31; it is {given!r}.") from None


def matching(texts: Values, searched: str, pattern: str) -> NDArray[np.bool_]:
    """Which texts a regular expression finds something in; `pattern` is what the person typed of it."""
    try:  # RE2, whose time is bounded whatever the pattern
        found = pc.match_substring_regex(texts, searched)
    except pa.ArrowInvalid:
        raise SettingError(f"A pattern must be a regular expression; {pattern!r} is none.") from None
    return pc.fill_null(found, False).to_numpy(zero_copy_only=False)


def _number(given: Any, name: str) -> float | None:
    if given in (None, ""):
        return None
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise SettingError(f"The {'least' if name == 'low' else 'largest'} value must be a number; it is {given!r}.")
    return number


def numbers_of(column: Values, notation: Notation | None) -> Values | None:
    """The numbers that a column says, times as days since 1970; None if it says none."""
    said = notation.understand(column) if notation is not None and holds_text(column.type) else column
    if pa.types.is_date(said.type) or pa.types.is_timestamp(said.type):
        seconds = said.cast(pa.timestamp("s"), safe=False).cast(pa.int64()).cast(pa.float64())
        return pc.divide(seconds, 86_400.0)
    if family(said.type) != "number" or pa.types.is_dictionary(said.type):
        return None
    return said.cast(pa.float64(), safe=False)


# ---------------------------------------------------------------- of all columns


@dataclass(frozen=True)
class Wishes:
    """What people said of the columns of one table, and of the rules found in it."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Limits] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)  # a rule in words -> CONFIRMED or STRUCK
    own: tuple[str, ...] = ()  # rules of one's own, in plain words

    def with_kind(self, column: str, kind: str | None) -> Wishes:
        """With another kind of a column, or, if None, the one that was guessed."""
        if kind is not None and kind not in EVERY_KIND:
            raise SettingError(f"The kind of a column must be one of {', '.join(EVERY_KIND)}; it is {kind!r}.")
        return replace(self, kinds=_changed(self.kinds, column, kind))

    def with_limits(self, column: str, limits: Limits) -> Wishes:
        return replace(self, limits=_changed(self.limits, column, None if limits == Limits() else limits))

    def with_rule(self, rule: str, verdict: str | None) -> Wishes:
        """With a rule confirmed or struck out; None: neither."""
        if verdict not in (None, CONFIRMED, STRUCK):
            raise SettingError(f"A rule can be confirmed or struck; it cannot be {verdict!r}.")
        return replace(self, rules=_changed(self.rules, rule, verdict))

    def with_own(self, rule: str) -> Wishes:
        """With a rule of one's own."""
        return replace(self, own=(*self.without_own(rule).own, rule))

    def without_own(self, rule: str) -> Wishes:
        return replace(self, own=tuple(each for each in self.own if each != rule))

    def save(self, path: Path) -> None:
        """Write columns.json."""
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(pack(self), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Wishes:
        """What columns.json says; nothing if it is not there."""
        if not path.exists():
            return cls()
        wishes = cls()
        try:
            entries = parsed(path.read_bytes())
            for name, kind in entries["kinds"].items():
                wishes = wishes.with_kind(name, kind)
            for name, own in entries["limits"].items():
                wishes = wishes.with_limits(name, Limits.of(own))
            for rule, verdict in entries.get("rules", {}).items():
                wishes = wishes.with_rule(rule, verdict)
            for rule in entries.get("own", []):
                wishes = wishes.with_own(_line(rule))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FileError(f"{path} must be as the review page wrote it. Hint: remove it to start anew.") from None
        return wishes

    def about(self, columns: Sequence[str], path: Path) -> Wishes:
        """The same, if all of it is about columns of the table."""
        if self.own:
            _check_rules(self.own, columns, path)
        odd = next((name for name in (*self.kinds, *self.limits) if name not in set(columns)), None)
        if odd is not None:
            raise FileError(
                f"{path} must be about columns of the table; it has no {odd!r}. Hint: remove the file to start anew."
            )
        return self


def _check_rules(rules: Sequence[str], columns: Sequence[str], path: Path) -> None:
    from cellmend.table.relations.stated import parse  # with scipy behind it, for which the first page need not wait

    try:
        for rule in rules:
            parse(rule, columns)
    except RulesError as error:
        raise FileError(f"{path} must hold rules of the table. {error}") from None


def _line(rule: Any) -> str:
    if not isinstance(rule, str):
        raise TypeError("a rule is a line of text")
    return rule


def _changed(entries: Mapping[str, Any], name: str, new: Any) -> dict[str, Any]:
    return {key: own for key, own in {**entries, name: new}.items() if own is not None}
