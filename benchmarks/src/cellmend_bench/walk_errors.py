"""What goes wrong in the tables of `walk`: slips of one text, and errors that need other cells.

Nothing here is shared with what learns (`benchmarks/prior`) or with the injector of `evaluate` and `wild`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

Rng = np.random.Generator
Cell = tuple[int, str]  # (row, column)
Slip = Callable[[str, Rng], str]  # a text that went wrong, or the text itself where it cannot

EACH = 3  # errors of each kind in a table
TRIES = 200  # rows that are tried for one error

# ---------------------------------------------------------------- slips of one text


def misspell(text: str, rng: Rng) -> str:
    """A letter dropped, struck twice, exchanged with the next one, or another one."""
    places = [place for place in range(1, len(text) - 1) if text[place : place + 2].isalpha()]
    if len(text) < 5 or not places:
        return text
    at = int(rng.choice(places))
    head, one, two, tail = text[:at], text[at], text[at + 1], text[at + 2 :]
    other = "aeiounrstlm"[int(rng.integers(11))]
    options = (head + two + tail, head + one + one + two + tail, head + two + one + tail, head + other + two + tail)
    return options[int(rng.integers(len(options)))]


def other_case(text: str, rng: Rng) -> str:
    """All capitals, or none."""
    return (text.upper(), text.lower())[int(rng.integers(2))]


def stray_space(text: str, rng: Rng) -> str:
    """A space before, after, or doubled within."""
    options = [f" {text}", f"{text} ", f"{text}  ", *([text.replace(" ", "  ", 1)] if " " in text else [])]
    return options[int(rng.integers(len(options)))]


def moved_point(text: str, rng: Rng) -> str:
    """The decimal mark one or two places off; zeros where there are no digits."""
    mark = "," if "," in text else "."
    whole, _, part = text.partition(mark)
    if not part or not (whole + part).strip("0-"):
        return text
    steps = int(rng.choice([-2, -1, 1, 2]))
    digits = whole.lstrip("-").rjust(3, "0") + part.ljust(3, "0")
    at = max(len(whole.lstrip("-")), 3) + steps
    moved = digits[:at].lstrip("0") or "0"
    rest = digits[at:].rstrip("0")
    return ("-" if whole.startswith("-") else "") + (f"{moved}{mark}{rest}" if rest else moved)


def minus(text: str, rng: Rng) -> str:
    """A minus before a number."""
    return text if text.startswith("-") or not text.strip("0.,") else f"-{text}"


def letters_for_digits(text: str, rng: Rng) -> str:
    """A letter in place of a digit that looks like it."""
    alike = {"0": "O", "1": "l", "5": "S"}
    places = [place for place, letter in enumerate(text) if letter in alike]
    if not places:
        return text
    at = int(rng.choice(places))
    return text[:at] + alike[text[at]] + text[at + 1 :]


def other_mark(text: str, rng: Rng) -> str:
    """A decimal comma for a point, or the other way round."""
    return text.translate(str.maketrans(".,", ",.")) if re.fullmatch(r"-?\d+[.,]\d+", text) else text


def impossible_date(text: str, rng: Rng) -> str:
    """A month above 12, a day above 31, or both; dates are yyyy-mm-dd or dd.mm.yyyy."""
    month, day = int(rng.integers(13, 20)), int(rng.integers(32, 100))
    way = int(rng.integers(3))
    year_first = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(.*)", text)
    day_first = re.fullmatch(r"(\d\d)\.(\d\d)\.(\d{4})(.*)", text)
    if year_first:
        year, old_month, old_day, rest = year_first.groups()
    elif day_first:
        old_day, old_month, year, rest = day_first.groups()
    else:
        return text
    written_month, written_day = (old_month if way == 0 else str(month)), (old_day if way == 1 else str(day))
    if year_first:
        return f"{year}-{written_month}-{written_day}{rest}"
    return f"{written_day}.{written_month}.{year}{rest}"


def mistyped_year(text: str, rng: Rng) -> str:
    """One of the first two digits of the year is another one, so that nobody can mean it: 2922 for 2022."""
    found = re.search(r"\d{4}", text)
    if found is None:
        return text
    at, digit = found.start() + int(rng.integers(2)), str(rng.integers(1, 10))
    return text[:at] + digit + text[at + 1 :]


def broken_telephone(text: str, rng: Rng) -> str:
    """A letter for a digit, a digit too few, or no hyphen."""
    options = (letters_for_digits(text, rng), text[:-1], text.replace("-", "", 1))
    return options[int(rng.integers(len(options)))]


def broken_mail(text: str, rng: Rng) -> str:
    """No @, a comma for a point, two @, or a space."""
    options = (
        text.replace("@", ""),
        ",".join(text.rsplit(".", 1)),
        text.replace("@", "@@"),
        text.replace("@", " "),
    )
    return options[int(rng.integers(len(options)))]


def broken_iban(text: str, rng: Rng) -> str:
    """A letter for a digit, a digit lost, or two different neighbours exchanged, which the check digits tell."""
    at = int(rng.integers(6, len(text) - 2))
    turned = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    options = (text[:4] + letters_for_digits(text[4:], rng), text[:at] + text[at + 1 :], turned)
    return options[int(rng.integers(len(options)))]


def broken_postcode(text: str, rng: Rng) -> str:
    """A letter for a digit, a digit too few, or one too many."""
    options = (letters_for_digits(text, rng), text[:-1], text + text[-1])
    return options[int(rng.integers(len(options)))]


def broken_url(text: str, rng: Rng) -> str:
    """A scheme with a letter or a slash too few, or a comma for a point."""
    options = (
        text.replace("https", "htps", 1),
        text.replace("://", ":/", 1),
        text.replace("://", "//", 1),
        text.replace(".", ",", 1),
    )
    return options[int(rng.integers(len(options)))]


def broken_time(text: str, rng: Rng) -> str:
    """An hour or a minute that no clock shows, no colon, or a letter for a digit."""
    hour, minute = text.split(":")
    options = (
        f"{int(rng.integers(25, 60))}:{minute}",
        f"{hour}:{int(rng.integers(61, 100))}",
        hour + minute,
        letters_for_digits(text, rng),
    )
    return options[int(rng.integers(len(options)))]


def one_of(*texts: str) -> Slip:
    """A slip that writes one of these texts."""
    return lambda text, rng: texts[int(rng.integers(len(texts)))]


# ---------------------------------------------------------------- a table that goes wrong


@dataclass
class Draft:
    """A table of texts that goes wrong, at most one error a row, so that each can be told from the rest of its row."""

    clean: pd.DataFrame
    rng: Rng
    dirty: pd.DataFrame = field(init=False)
    kinds: dict[Cell, str] = field(default_factory=dict)  # of the wrong cells
    involved: set[Cell] = field(default_factory=set)  # right ones that may be named with a wrong one
    _rows: set[int] = field(default_factory=set)  # that have an error, or belong to one

    def __post_init__(self) -> None:
        self.dirty = self.clean.copy()

    def slip(self, kind: str, columns: Sequence[str], how: Slip) -> None:
        """Errors of one text in any of these columns."""
        for _ in range(EACH):
            for _ in range(TRIES):
                row, column = self.open_row(), columns[int(self.rng.integers(len(columns)))]
                text = how(self.clean.at[row, column], self.rng)
                if self.put(kind, {(row, column): text}):
                    break

    def exchange(self, kind: str, one: str, other: str) -> None:
        """The values of two columns stand in each other's place."""
        for _ in range(EACH):
            for _ in range(TRIES):
                row = self.open_row()
                values = self.clean.at[row, one], self.clean.at[row, other]
                if values[0] != values[1] and self.put(kind, {(row, one): values[1], (row, other): values[0]}):
                    break

    def take_next(self, columns: Sequence[str]) -> None:
        """A cell holds the value of the column to its right."""
        names = list(self.clean.columns)
        for column in self.rng.choice(columns, EACH):
            row = self.open_row()
            self.put("next column", {(row, str(column)): self.clean.at[row, names[names.index(column) + 1]]})

    def take_other(self, kind: str, column: str) -> None:
        """A value that the column has, but not that of this row."""
        for _ in range(EACH):
            for _ in range(TRIES):
                row = self.open_row()
                if self.put(kind, {(row, column): str(self.rng.choice(self.clean[column]))}):
                    break

    def repeat_key(self, column: str) -> None:
        """The key of another row; nothing tells which of the two is wrong."""
        for _ in range(EACH):
            row, other = self.open_row(), self.open_row()
            if row != other and self.put("duplicate key", {(row, column): self.clean.at[other, column]}):
                self.involved.add((other, column))
                self._rows.add(other)

    def run(self, kind: str, rows: Sequence[int], columns: Sequence[str], text: str | None = None) -> None:
        """A value that stands again in all of these rows: a text, or that of the first row, which is right."""
        for column in columns:
            first = self.clean.at[rows[0], column]
            for row in rows:
                self.involved.add((row, column))
                self.put(kind, {(row, column): first if text is None else text}, alone=False)
        self._rows.update(rows)

    def open_row(self) -> int:
        """A row without an error."""
        while (row := int(self.rng.integers(len(self.clean)))) in self._rows:
            pass
        return row

    def put(self, kind: str, new: dict[Cell, str], *, alone: bool = True) -> bool:
        """Write these texts, if each is another one than before; whether that was so."""
        wrong = {(row, column): text for (row, column), text in new.items() if text != self.clean.at[row, column]}
        if len(wrong) < len(new) or not all(wrong.values()):
            return False
        for (row, column), text in wrong.items():
            self.dirty.at[row, column] = text
            self.kinds[row, column] = kind
        self._rows.update({row for row, _ in wrong} if alone else ())
        return True
