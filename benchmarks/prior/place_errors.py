"""Values in the wrong place: right in another row, or in another column."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from .cells import Column, Place
from .kinds import Edits, Kinds, other, spot

KINDS = Kinds()

# Valid values that belong to another row


@KINDS.add("valid")
def other_row(text: str, at: Place, dice: Random) -> str:
    return at.column.cells[at.column.filled[spot(len(at.column.filled), dice)]]


@KINDS.add("valid")
def other_level(text: str, at: Place, dice: Random) -> str:
    return other(text, at.column.levels, dice)


@KINDS.add("valid")
def neighbour_level(text: str, at: Place, dice: Random) -> str:
    place, step = at.column.places[text], 1 if dice.random() < 0.5 else -1
    return at.column.levels[(place + step) % len(at.column.levels)]


@KINDS.add("valid")
def level_nearby(text: str, at: Place, dice: Random) -> str:
    step = (2 + spot(8, dice)) * (1 if dice.random() < 0.5 else -1)
    place = at.column.places[text] + step
    return at.column.levels[max(min(place, len(at.column.levels) - 1), 0)]


@KINDS.add("valid")
def previous_row(text: str, at: Place, dice: Random) -> str:
    return at.column.cells[at.row - 1]


@KINDS.add("valid")
def next_row(text: str, at: Place, dice: Random) -> str:
    return at.column.cells[(at.row + 1) % len(at.column.cells)]


@KINDS.add("valid")
def rows_exchanged(text: str, at: Place, dice: Random) -> Edits:
    """The values of two rows, one in place of the other, or a run of them moved on by a row."""
    cells, place = at.column.cells, at.column.place
    far = dice.random() < 0.5
    row = dice.choice(at.column.filled) if far else (at.row + 1) % len(cells)
    if at.grid.kind[row, place] or not cells[row].strip():
        return []
    return [(at.row, place, cells[row]), (row, place, text)]


@KINDS.add("valid")
def dependency_broken(text: str, at: Place, dice: Random) -> str:
    """A value that the value of another column in the row rules out."""
    master = at.grid.master(at.column, dice)
    if not master:
        return text
    row = dice.choice(at.column.filled)
    return at.column.cells[row] if master.cells[row] != master.cells[at.row] else text


# Values in the wrong column


def _partner(at: Place, dice: Random) -> Column | None:
    """A column with something in this row: one beside, or any other."""
    others = at.grid.filled(at.row)
    if len(others) < 2:
        return None
    beside, step = dice.random() < 0.5, 1 if dice.random() < 0.5 else -1
    place = others.index(at.column)
    return others[(place + (step if beside else 1 + spot(len(others) - 1, dice))) % len(others)]


@KINDS.add("misplaced")
def from_beside(text: str, at: Place, dice: Random) -> str:
    others = at.grid.filled(at.row)
    return others[(others.index(at.column) + (1 if dice.random() < 0.5 else -1)) % len(others)].cells[at.row]


@KINDS.add("misplaced")
def from_column(text: str, at: Place, dice: Random) -> str:
    partner = _partner(at, dice)
    return partner.cells[at.row] if partner else text


@KINDS.add("misplaced")
def from_elsewhere(text: str, at: Place, dice: Random) -> str:
    """A value of another column and another row."""
    partner = _partner(at, dice)
    return partner.cells[dice.choice(partner.filled)] if partner else text


@KINDS.add("misplaced")
def columns_exchanged(text: str, at: Place, dice: Random) -> Edits:
    partner = _partner(at, dice)
    if not partner or at.grid.kind[at.row, partner.place]:
        return []
    return [(at.row, at.column.place, partner.cells[at.row]), (at.row, partner.place, text)]


@KINDS.add("misplaced")
def alike_exchanged(text: str, at: Place, dice: Random) -> Edits:
    """Two cells of one sort exchanged: first and last name, two dates, length and width."""
    own = next((sort for sort in ("date", "number", "words") if sort in at.column.sorts), "any")
    alike = [each for each in at.grid.filled(at.row) if own in each.sorts and each is not at.column]
    near = sorted(alike, key=lambda each: abs(each.place - at.column.place))[:3]
    partner = dice.choice(near) if near else at.column
    if partner is at.column or at.grid.kind[at.row, partner.place]:
        return []
    return [(at.row, at.column.place, partner.cells[at.row]), (at.row, partner.place, text)]


@KINDS.add("misplaced")
def shifted_right(text: str, at: Place, dice: Random) -> Edits:
    """From this column on, each filled cell of the row holds what belongs into the one before; this one is split."""
    row = [each for each in at.grid.filled(at.row) if each.place >= at.column.place]
    first, _, second = text.partition(next((sign for sign in (", ", ",", " ", "-") if sign in text.strip()), "\0"))
    texts = [first.strip() or text, second.strip() or text, *(each.cells[at.row] for each in row[1:])]
    return [(at.row, each.place, new) for each, new in zip(row, texts, strict=False)]


@KINDS.add("misplaced")
def shifted_left(text: str, at: Place, dice: Random) -> Edits:
    """From this column on, each filled cell of the row holds what belongs into the next."""
    row = [each for each in at.grid.filled(at.row) if each.place >= at.column.place]
    return [(at.row, each.place, new.cells[at.row]) for each, new in pairwise(row)]
