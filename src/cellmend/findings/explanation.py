"""One flagged cell in the user's words: what was probably meant, how probably, and why it looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cellmend.findings.expectation import Expectation
from cellmend.findings.finding import Finding
from cellmend.findings.hypotheses import FILLED_IN
from cellmend.findings.wording import Wording, held_as
from cellmend.model.columns import EncodedColumn
from cellmend.posterior.experts import SLIP_NAMES
from cellmend.posterior.meant import Hypothesis
from cellmend.table.causes import named
from cellmend.table.readtable import Suspect
from cellmend.table.texts import Notation
from cellmend.table.values import shortened

LEAST_LIKELY = 0.05  # a level less probable than this is not named
WORTH_NAMING = 0.2  # a repair less probable than this is not named in a reason
CAUSES = {
    "variant": named.FORM,
    "mojibake": named.FORM,
    "trimmed": named.FORM,
    "digits": named.UNREADABLE,
    "near": named.SPELLING,
    "word": named.SPELLING,
    "common": named.SPELLING,
    "longer": named.TRUNCATED,
    "point": named.POINT,
    "sign": named.SIGN,
    "format": named.FORM,
    "day": named.DAY,
    "exchange": named.EXCHANGED,
    "pair": named.DEPENDENCY,
}  # of what the best hypothesis undoes
OF_FAMILIES = {
    "spelling": (named.SPELLING, "it looks misspelled"),
    "form": (named.FORM, "hardly any other cell of its column is written so"),
    "placeholder": (named.DEFAULT, "it seems to stand for a value that is missing"),
    "number": (named.NUMBER, "it does not lie where the other numbers of its column do"),
    "unreadable": (named.UNREADABLE, "it cannot be read as the others of its column can"),
    "cut": (named.TRUNCATED, "it looks cut off, or like two values in one"),
    "valid": (named.UNLIKE_ROW, "it does not go with the rest of its row"),
    "misplaced": (named.SLIPPED, "it looks like a value of another column"),
}  # cause and words, if no hypothesis tells more


@dataclass(frozen=True)
class Verdict:
    """What all evidence says of one flagged cell."""

    row: int
    place: int  # of its column in the table
    suspicion: float
    family: str
    best: Hypothesis | None  # the likeliest thing that it was
    chance: float  # that it was that
    suspects: Sequence[Suspect]  # what experts have against it
    expected: Expectation | None  # by the network


def explain(verdict: Verdict, words: Wording) -> Finding:
    """A verdict in the user's units and words, with what the cell probably was."""
    name = words.table.names[verdict.place]
    value = words.table.cell(verdict.row, name)
    expected, column = verdict.expected, None
    if expected is not None:
        column = words.encoder.columns[expected.column]
        expected = _within_reach(expected, column)
    best = verdict.best
    repair = None if best is None else held_as(words.table, verdict.place, best.meant)
    low, high = _bounds(expected, column, words)
    cause, why = _cause(verdict), _why(verdict, words, expected, column)
    if cause == named.DEFAULT and best is not None and best.source in FILLED_IN:
        repair, why = None, f"{why}. Left as it is: nobody may have known it, and gaps are filled only by impute"
    chance = round(verdict.suspicion * verdict.chance, 6)
    said = _said(name, value, why)
    return Finding(verdict.row, name, value, verdict.suspicion, repair, low, high, said, cause, chance)


def _said(name: str, value: Any, why: str) -> str:
    """Why a cell looks wrong, as a whole sentence.

    >>> _said("city", "LOUSIVILLE", "probably LOUISVILLE (975 rows)")
    'LOUSIVILLE is probably LOUISVILLE (975 rows)'
    >>> _said("city", "Ulm", "for code 53111 it is Bonn in 8 of 9 rows")
    'city is Ulm; for code 53111 it is Bonn in 8 of 9 rows'
    """
    shown, first = shortened(value), why.partition(";")[0]
    if shown.strip() and why.startswith(("probably ", "cut off, ")):
        return f"{shown} is {why}"
    return why if f"{name} is " in first or " is probably " in first else f"{name} is {shown}; {why}"


def _cause(verdict: Verdict) -> str:
    """The slip that leads to what was meant, else what the best hypothesis undoes or an expert names, else that of the
    likeliest family; a placeholder is one, whatever it stands for."""
    best, found = verdict.best, list[str]()
    if best is not None and verdict.chance >= WORTH_NAMING and verdict.family != "placeholder":
        told = [each.cause for each in verdict.suspects if best.meant in each.meant]
        slips = [cause for cause in told if cause in SLIP_NAMES]
        found = [*slips, *([CAUSES[best.source]] if best.source in CAUSES else []), *told]
    found += [each.cause for each in verdict.suspects if each.cause == named.RULE]
    expert = _speaker(verdict) if verdict.family == "valid" else None
    return found[0] if found else OF_FAMILIES[verdict.family][0] if expert is None else expert.cause


def _speaker(verdict: Verdict) -> Suspect | None:
    """The expert whose reason is given, if no hypothesis has one: the first who means what is named, if anything is."""
    best = verdict.best if verdict.chance >= WORTH_NAMING else None
    if best is not None and best.because:
        return None
    meant = () if best is None else (best.meant,)
    return next((each for each in verdict.suspects if each.meant[:1] == meant and each.cause != named.RULE), None)


def _why(verdict: Verdict, words: Wording, expected: Expectation | None, column: EncodedColumn | None) -> str:
    """Why the cell looks wrong: the rules that it breaks, and all other evidence."""
    broken = [*dict.fromkeys(each.reason for each in verdict.suspects if each.cause == named.RULE)]
    why = _why_unruled(verdict, words, expected, column)
    is_all = broken and why in (OF_FAMILIES[verdict.family][1], *broken)
    return "; ".join(broken if is_all else [*broken, why])


def _why_unruled(verdict: Verdict, words: Wording, expected: Expectation | None, column: EncodedColumn | None) -> str:
    """Why the cell looks wrong by all but rules."""
    best = verdict.best if verdict.chance >= WORTH_NAMING else None
    if best is not None and best.because:
        return best.because
    expert = _speaker(verdict)
    if expert is not None:
        return expert.reason
    by_row = verdict.family in ("valid", "number") or best is not None
    if expected is not None and column is not None and by_row:
        given = [words.neighbour(verdict.row, other) for other in expected.matter]
        return usual_for(given, _usual(expected, column, words))
    return OF_FAMILIES[verdict.family][1]


def explain_by_network(expected: Expectation, suspicion: float, words: Wording) -> Finding:
    """A cell as the methods of the paper have it: repaired by the network, whatever else is known."""
    column = words.encoder.columns[expected.column]
    expected = _within_reach(expected, column)
    value = words.table.cell(expected.row, column.name)
    given = [words.neighbour(expected.row, other) for other in expected.matter]
    (low, high), repair = _bounds(expected, column, words), words.write(column, expected.repair)
    why = say_why(column.name, value, _usual(expected, column, words), given)
    return Finding(expected.row, column.name, value, suspicion, repair, low, high, why, named.UNLIKE_ROW, suspicion)


def explain_decided(suspect: Suspect, words: Wording) -> Finding:
    """A cell that a person decided about, or that is like decided ones."""
    name = words.table.names[suspect.column]
    value = words.table.cell(suspect.row, name)
    repair = held_as(words.table, suspect.column, suspect.meant[0]) if suspect.meant else None
    sure, chance = suspect.suspicion, suspect.suspicion if suspect.meant else 0.0
    return Finding(suspect.row, name, value, sure, repair, None, None, suspect.reason, suspect.cause, chance)


def left_as_found(finding: Finding, repair_from: float, protect: Sequence[str]) -> Finding:
    """The finding without its repair if the column is protected, or if the repair is not sure enough.

    >>> car = Finding(3, "price", 1.5e6, 0.7, 15000.0, None, None, "price is 1500000", repair_probability=0.6)
    >>> left_as_found(car, 0.9, []).reason
    'price is 1500000. Left as it is: 15000 is not sure enough (60 %)'
    """
    if finding.repair is None:
        return finding
    if finding.column in protect:
        why = f"the column is protected; it was probably {shortened(finding.repair)}"
    elif finding.repair_probability < repair_from:
        sure = f"{shortened(finding.repair)} is not sure enough ({100 * finding.repair_probability:.0f} %)"
        is_named = finding.repair_probability >= WORTH_NAMING * finding.suspicion  # probable if the cell is wrong
        why = sure if is_named else "nothing tells what was meant"
    else:
        return finding
    return replace(finding, repair=None, reason=f"{finding.reason}. Left as it is: {why}")


def _bounds(
    expected: Expectation | None, column: EncodedColumn | None, words: Wording
) -> tuple[float | str | None, float | str | None]:
    """The middle nine tenths of what the network expects, in the user's units; levels have none."""
    if expected is None or column is None:
        return None, None
    decoded = [None if np.isnan(bound) else column.decode_one(bound) for bound in (expected.low, expected.high)]
    notation = words.table.notations.get(column.name, Notation())
    low, high = (notation.bound(bound) if isinstance(bound, int | float) else None for bound in decoded)
    return low, high


def _within_reach(expected: Expectation, column: EncodedColumn) -> Expectation:
    """The interval without what the column never holds: no amounts below 0, no percentages above 100."""
    least, most = min(column.reach[0], expected.repair), max(column.reach[1], expected.repair)
    return replace(expected, low=max(expected.low, least), high=min(expected.high, most))


def _usual(expected: Expectation, column: EncodedColumn, words: Wording) -> str:
    """What is usual at a cell: likely levels with probabilities, or an interval."""
    if expected.likely:
        levels = [(words.write(column, level), chance) for level, chance in expected.likely]
        likely = [f"{shortened(level)} ({100 * chance:.0f} %)" for level, chance in levels if chance >= LEAST_LIKELY]
        return " or ".join(likely)
    return f"{words.say(column, expected.low)} to {words.say(column, expected.high)}"


def usual_for(given: Sequence[str], usual: str) -> str:
    """What is usual, given the columns that matter.

    >>> usual_for(["x 5.12", "y 5.15"], "3.15 to 3.21")
    'for x 5.12 and y 5.15 it is usually 3.15 to 3.21'
    """
    others = f"{', '.join(given[:-1])} and {given[-1]}" if len(given) > 1 else "".join(given)
    return f"for {others or 'a row like this'} it is usually {usual}"


def say_why(name: str, value: Any, usual: str, given: Sequence[str] = ()) -> str:
    """The reason in words.

    >>> say_why("z", 31.8, "3.15 to 3.21", ["x 5.12", "y 5.15", "depth 61.8"])
    'z is 31.8; for x 5.12, y 5.15 and depth 61.8 it is usually 3.15 to 3.21'
    >>> say_why("sex", "Male", "Female (97 %)")
    'sex is Male; for a row like this it is usually Female (97 %)'
    """
    return f"{name} is {shortened(value)}; {usual_for(given, usual)}"
