"""Columns that a newer table writes otherwise than the one learned from: another notation is not an error.

A column that is certain to be read in its new notation is read so; one that is not is left alone. Either is one
sentence for the column, and never a finding for each of its cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cellmend.table.dates import Dates, learn_dates
from cellmend.table.notation import Notations, describe_columns
from cellmend.table.numbers import MOST_NUMBERS, Numbers, learn_numbers, unit_of
from cellmend.table.priors import A_PART, ALIKE, BY_FAR, USUAL
from cellmend.table.readtable import ReadTable
from cellmend.table.texts import Notation, Unread, counted_texts, holds_text
from cellmend.table.values import Bools, Ints

GROUP = 3  # digits between marks, and decimals that look like such a group
SHOWN_DAY = 19_722.0  # 2023-12-31, which says what is the day and what the month
MARKS = {".": "point", ",": "comma"}


class Otherwise(NamedTuple):
    """How a column is to be read, and what is to be said of it."""

    notation: Notation
    sentence: str


@dataclass(frozen=True)
class Texts:
    """The different texts of a column and how many cells have each."""

    levels: list[str]
    counts: Ints

    def read_by(self, notation: Notation) -> Bools:
        """Which texts the notation reads as usual ones of it, gaps included, (T,)."""
        found = notation.read(pa.array(self.levels, pa.string()))
        values = np.array(found.values.to_pylist(), dtype=np.float64)  # a gap is NaN here, too
        missing = np.array([notation.is_missing(level) for level in self.levels], dtype=bool)
        return missing | (~np.isnan(values) & ~found.strange)

    def cells(self, chosen: Bools) -> int:
        """How many cells have one of these texts, (T,)."""
        return int(self.counts[chosen].sum())


def written_otherwise(table: pa.Table, learned: Notations) -> dict[str, Otherwise]:
    """The columns that are written otherwise than learned, and how to read them.

    >>> table = pa.table({"size": [f"{n},5" for n in range(10)]})
    >>> print(written_otherwise(table, {"size": Numbers()})["size"].sentence)
    written with a decimal comma, with a decimal point when the model learned; it is read as it stands
    """
    found: dict[str, Otherwise] = {}
    for name, notation in learned.items():
        if isinstance(notation, Numbers | Dates) and holds_text(table.schema.field(name).type):
            other = _otherwise(Texts(*counted_texts(table[name])), notation)
            found |= {name: other} if other is not None else {}
    return found


def describe_table(table: ReadTable) -> dict[str, str]:
    """What holds for whole columns, in words: how they are written otherwise, their units, their words for gaps."""
    plain = describe_columns(table.arrow, table.notations)
    said = {name: [each[name] for each in (table.otherwise, plain) if name in each] for name in table.names}
    return {name: "; ".join(sentences) for name, sentences in said.items() if sentences}


def _otherwise(texts: Texts, old: Numbers | Dates) -> Otherwise | None:
    """None if the column is written as learned, but for errors."""
    by_old, missing = texts.read_by(old), np.array([old.is_missing(level) for level in texts.levels], dtype=bool)
    cells, unread = texts.cells(~missing), texts.cells(~by_old)
    if isinstance(old, Dates):
        new: Numbers | Dates | None = learn_dates(texts.levels, texts.counts, least=BY_FAR)
    else:
        new = learn_numbers(texts.levels, texts.counts, least=MOST_NUMBERS)
    if isinstance(old, Numbers) and isinstance(new, Numbers) and _may_be_groups(old, new):
        return _left_alone(texts, by_old)
    if unread < max(ALIKE, A_PART * cells):
        return None
    by_new = np.zeros_like(by_old) if new is None else texts.read_by(new)
    gained, lost = texts.cells(by_new & ~by_old), texts.cells(by_old & ~by_new)
    if new is None or gained < max(ALIKE, A_PART * cells):
        return _left_alone(texts, by_old) if 2 * unread > cells else None
    if gained <= lost:
        return None
    differ = list(_differences(old, new))
    if lost > USUAL * cells or not differ or not _comparable(old, new):
        return _left_alone(texts, by_old)
    now, then = (" and ".join(each) for each in zip(*differ, strict=True))
    return Otherwise(new, f"written {now}, {then} when the model learned; it is read as it stands")


def _may_be_groups(old: Numbers, new: Numbers) -> bool:
    """Is 1,234 perhaps the 1.234 of before? Then nothing tells whether it is a thousand times larger."""
    return old.places == GROUP and not old.thousands and new.thousands in MARKS and new.thousands != old.decimal


def _comparable(old: Numbers | Dates, new: Numbers | Dates) -> bool:
    """Do numbers mean the same? Those with another unit do not; those without any probably do."""
    if isinstance(old, Dates) or isinstance(new, Dates):
        return True
    before, now = _units(old), _units(new)
    return not before or not now or bool(before & now)


def _units(numbers: Numbers) -> set[str]:
    return {unit_of(unit) for unit in numbers.units} - {""}


def _differences(old: Numbers | Dates, new: Numbers | Dates) -> Iterator[tuple[str, str]]:
    """In what two notations differ, in words: the new one, and the old one."""
    if isinstance(old, Dates) and isinstance(new, Dates) and old.form != new.form:
        yield f"as {new.write(SHOWN_DAY, 0)}", f"as {old.write(SHOWN_DAY, 0)}"
    if isinstance(old, Dates) or isinstance(new, Dates):
        return
    if old.decimal != new.decimal:
        yield f"with a decimal {MARKS[new.decimal]}", f"with a decimal {MARKS[old.decimal]}"
    if _units(old) != _units(new):
        yield _unit_in_words(new), _unit_in_words(old)
    if new.gaps and new.gaps != old.gaps:
        yield f"with {new.gaps[0]} where a value is missing", "without such a word"


def _unit_in_words(numbers: Numbers) -> str:
    named = [unit for unit in numbers.units if unit]
    return f"with the unit {named[0]}" if named else "without a unit"


def _left_alone(texts: Texts, by_old: Bools) -> Otherwise:
    odd = np.where(by_old, 0, texts.counts) if not by_old.all() else texts.counts
    example = texts.levels[int(np.argmax(odd))].strip()
    why = f"written otherwise than when the model learned, such as {example}, and nothing tells for sure how to read it"
    return Otherwise(Unread(), f"{why}; it is neither judged nor changed")
