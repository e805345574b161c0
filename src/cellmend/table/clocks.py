"""Times of day as people type them: read as minutes since midnight, written as the column writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cellmend.table.priors import BY_FAR, MOSTLY
from cellmend.table.texts import MISSING_NUMBERS, Notation, count_cells, said_texts
from cellmend.table.values import Bools, Floats, Ints

NOON, DAY = 720, 1440  # minutes
MORNING, EVENING = str.maketrans("pP", "aA"), str.maketrans("aA", "pP")
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
    r"(?:(?P<space>\s*)(?P<half>[ap](?:\.?m\.?)?)(?![b-z]))?",
    re.IGNORECASE,
)


class Clock(NamedTuple):
    """What a text shows."""

    minutes: float  # since midnight
    alone: bool  # is there nothing else in the text?
    half: str  # how it says which half of the day it is, such as " a.m."; "" if it does not
    short: bool  # has the hour one digit only?
    seconds: bool  # does it show them?


@dataclass(frozen=True)
class Clocks(Notation):
    """A column of times of day."""

    noun: ClassVar[str] = "time of day"
    spelled_missing: ClassVar[frozenset[str]] = MISSING_NUMBERS

    morning: str = ""  # what is written after the clock before noon, such as " a.m."; "" for 24 hours
    padded: bool = True  # 07:10, not 7:10
    seconds: bool = False

    def numbers_in(self, texts: Sequence[str]) -> tuple[Floats, Bools]:
        """Minutes since midnight; a clock among other words is read, but strange.

        >>> minutes, strange = Clocks(" a.m.").numbers_in(["7:10 p.m.", "12/02/2011 6:55 a.m.", "late"])
        >>> minutes.tolist(), strange.tolist()
        ([1150.0, 415.0, nan], [False, True, False])
        """
        shown = [clock_in(text) for text in texts]
        minutes = np.array([np.nan if clock is None else clock.minutes for clock in shown])
        return minutes, np.array([clock is not None and not clock.alone for clock in shown], dtype=bool)

    def write(self, value: Any, decimals: int | None) -> str:
        """A time of day as the column writes it.

        >>> Clocks(" a.m.", padded=False).write(1150.0, 0), Clocks(seconds=True).write(430.5, None)
        ('7:10 p.m.', '07:10:30')
        """
        second = round(value * 60) if self.seconds else round(value) * 60
        minute, second = divmod(second % (DAY * 60), 60)
        hour, rest = divmod(minute, 60)
        shown = (hour - 1) % 12 + 1 if self.morning else hour
        digits = f"{shown:02d}" if self.padded else f"{shown}"
        end = f":{second:02d}" if self.seconds else ""
        return f"{digits}:{rest:02d}{end}{self.morning if minute < NOON else self.morning.translate(EVENING)}"

    def in_words(self, value: Any) -> str:
        return self.write(value, None)


def clock_in(text: str) -> Clock | None:
    """The time of day in a text; None if there is none, or more than one.

    >>> clock_in("8:19aDec 1").minutes, clock_in("19:10").minutes, clock_in("25:10"), clock_in("1:00 to 2:00")
    (499.0, 1150.0, None, None)
    """
    clocks = list(_CLOCK.finditer(text))
    found = next((each for each in clocks if each["half"]), clocks[0] if len(clocks) == 1 else None)
    if found is None or sum(bool(each["half"]) for each in clocks) > 1:
        return None
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if hour > (12 if half else 23) or (half and not hour):
        return None
    hour = hour % 12 + 12 * half.startswith("p") if half else hour
    return Clock(
        minutes=hour * 60 + int(found["minute"]) + int(found["second"] or 0) / 60,
        alone=found[0].strip() == text.strip(),
        half=f"{found['space'] or ''}{found['half'] or ''}",
        short=len(found["hour"]) == 1,
        seconds=found["second"] is not None,
    )


def learn_clocks(levels: Sequence[str], counts: Ints) -> Clocks | None:
    """How a column writes times of day; None if it does not."""
    texts = said_texts(levels, counts)
    if not any(":" in text for text, _ in texts[:20]):
        return None
    shown = [(clock, count) for text, count in texts if (clock := clock_in(text)) is not None]
    alone = [(clock, count) for clock, count in shown if clock.alone]
    found, total = sum(count for _, count in shown), sum(count for _, count in texts)
    if found < BY_FAR * total or sum(count for _, count in alone) < max(MOSTLY * found, 1):
        return None
    halves = count_cells((clock.half.translate(MORNING) for clock, _ in alone), (count for _, count in alone))
    seconds = sum(count for clock, count in alone if clock.seconds)
    return Clocks(
        halves.most_common(1)[0][0],
        padded=not any(clock.short for clock, _ in alone),
        seconds=2 * seconds > sum(count for _, count in alone),
    )
