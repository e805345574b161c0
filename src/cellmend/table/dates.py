"""Dates as people type them, or in a type for dates: read as days since 1970, written as the column writes them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.table.priors import USUAL
from cellmend.table.texts import MISSING_NUMBERS, Notation, form_of, said_texts
from cellmend.table.values import Bools, Floats, Ints, as_text, shortened

MOST_FORMS = 3  # of dates in a column, beside the usual one
TOLD_FROM = 1000  # different texts from which the form of dates is told
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y",
         "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%Y-%m",
         "%Y%m%d")  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M", " %H:%M:%S.%f", "T%H:%M:%S.%f", " %I:%M %p",
         "T%H:%M:%SZ", "T%H:%M:%S.%fZ", " %H:%M:%SZ", "T%H:%M:%S+00:00", "T%H:%M:%S.%f+00:00",
         " %H:%M:%S+00:00")  # fmt: skip
LONGEST = 60  # letters of a date
EPOCH = datetime.datetime(1970, 1, 1)
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Dates(Notation):
    """A column of dates, as text of one form; or, without a form, in a type for dates."""

    noun: ClassVar[str] = "date"
    spelled_missing: ClassVar[frozenset[str]] = MISSING_NUMBERS

    form: str = ""
    also: tuple[str, ...] = ()  # forms that many other cells have
    others: tuple[str, ...] = ()  # forms that a few cells have
    padded: bool = True  # 05/01/2024, not 5/1/2024

    def understand(self, column: pa.ChunkedArray) -> Any:
        """Days since 1970, also of a column in a type for dates."""
        return days_of(column) if pa.types.is_temporal(column.type) else super().understand(column)

    def numbers_in(self, texts: Sequence[str]) -> tuple[Floats, Bools]:
        """Days since 1970, by the first form that fits.

        >>> Dates("%d.%m.%Y", others=("%Y-%m-%d",)).numbers_in(["02.01.1970", "32.01.1970", "1970-01-02"])
        (array([ 1., nan,  1.]), array([False,  True,  True]))
        """
        days, strange = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
        for form in (self.form, *self.also, *self.others):
            left = np.flatnonzero(np.isnan(days))
            days[left] = [_days(texts[place].strip(), form) for place in left.tolist()]
            strange[left] = form in self.others
        return days, strange

    def write(self, value: Any, decimals: int | None) -> Any:
        """A date as the column writes it; without a form a datetime.

        >>> Dates("%d.%m.%Y").write(1.0, 0)
        '02.01.1970'
        """
        moment = EPOCH + DAY * min(max(value, -719_162), 2_932_896)  # years 1 to 9999
        moment = (moment + datetime.timedelta(microseconds=500)).replace(microsecond=0)  # days are not that exact
        if not self.form:
            return moment
        date, time = (moment.strftime(part) for part in _date_and_time(self.form))
        return (date if self.padded else re.sub(r"\b0(\d)\b", r"\1", date)) + time

    def without_time(self) -> Dates:
        """The same for days alone."""
        return replace(self, form=_date_and_time(self.form)[0])

    def in_words(self, value: Any) -> str:
        """A date for a sentence, by the second at most."""
        return shortened(self.write(value, None))

    def bound(self, value: float) -> str:
        """A date as the column writes it.

        >>> Dates("%d.%m.%Y").bound(1.0), Dates().bound(1.0)
        ('02.01.1970', '1970-01-02')
        """
        return as_text(self.write(value, None))


def _date_and_time(form: str) -> tuple[str, str]:
    """The two parts of a form.

    >>> _date_and_time("%d.%m.%Y %H:%M")
    ('%d.%m.%Y', ' %H:%M')
    """
    time = re.search(r"[T ]%[HI].*|$", form)
    return form[: time.start()], form[time.start() :]  # type: ignore[union-attr]


def learn_dates(levels: Sequence[str], counts: Ints, *, least: float) -> Dates | None:
    """The form that most cells have, and others; of 3/4/2024 the day is first unless some cell says otherwise."""
    texts = said_texts(levels, counts)[:TOLD_FROM]
    if not any(re.search(r"\d[-/. ,]|^\d{8}$", text) for text, _ in texts[:20]):
        return None
    left, forms, fits = texts, list[str](), list[int]()
    while left and len(forms) <= MOST_FORMS:
        form, fitting = _best_form(left)
        if not fitting:
            break
        forms.append(form)
        fits.append(sum(count for text, count in left if text in fitting))
        left = [(text, count) for text, count in left if text not in fitting]
    total = sum(count for _, count in texts)
    if not forms or sum(fits) < max(least * total, 1) or 2 * fits[0] < sum(fits):
        return None
    main = [text for text, _ in texts if not np.isnan(_days(text, forms[0]))]
    loose = any(re.search(r"(?<!\d)\d[/.-]", text) for text in main) and "%b" not in forms[0].lower()
    usual = [form for form, count in zip(forms, fits, strict=True) if count >= USUAL * total]
    return Dates(forms[0], tuple(usual[1:]), tuple(form for form in forms if form not in usual), padded=not loose)


def _best_form(texts: Sequence[tuple[str, int]]) -> tuple[str, set[str]]:
    """The form that most of these have, and which have it."""
    best, most, fitting = "", 0, set[str]()
    looks = {_look(text) for text, _ in texts[:20]}
    for form in (form for look, forms in FORMS.items() if look in looks for form in forms):
        if np.isnan([_days(text, form) for text, _ in texts[:20]]).all():
            continue
        own = {text for text, _ in texts if not np.isnan(_days(text, form))}
        count = sum(times for text, times in texts if text in own)
        if count > most:
            best, most, fitting = form, count, own
    return best, fitting


def _look(text: str) -> str:
    """What a text or a form looks like: numbers as 9, words as a. Most texts look like no date, which is quickly told.

    >>> _look("3 May 2024"), _look("2024-01-02T06:00")
    ('9 a 9', '9-9-9a9:9')
    """
    if len(text) > LONGEST:
        return ""
    return re.sub(r"\s+", " ", form_of(text))


def _forms_by_look() -> dict[str, list[str]]:
    """All forms of dates, by what a date of them looks like."""
    found: dict[str, list[str]] = {}
    for form in (date + time for time in TIMES for date in DATES):
        found.setdefault(_look(datetime.datetime(2024, 5, 3, 10, 20, 30, 5).strftime(form)), []).append(form)
    return found


FORMS = _forms_by_look()


def _days(text: str, form: str) -> float:
    if len(text) > LONGEST or (form == "%Y%m%d" and len(text) != 8):
        return float("nan")
    try:
        return (datetime.datetime.strptime(text, form) - EPOCH) / DAY
    except ValueError:
        return float("nan")


def days_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a type for dates as days since 1970."""
    wall = pc.local_timestamp(column) if getattr(column.type, "tz", None) else column
    seconds = wall.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
    return pc.divide(seconds, 86_400e6)
