"""One flagged cell in the user's words: what was probably meant, and why it looks wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cellmend.findings.expectation import Expectation
from cellmend.findings.finding import Finding
from cellmend.findings.wording import Wording, held_as
from cellmend.model.columns import EncodedColumn
from cellmend.table.causes import named
from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.values import shortened

IDENTIFIERS = (named.KEY, named.REPEATED)  # a guess would be that of another row
LEAST_LIKELY = 0.05  # a level less probable than this is not named


def explain(
    expected: Expectation, suspicion: float, suspect: Suspect | None, words: Wording, *, abstain: bool
) -> Finding:
    """One expectation in the user's units and words; `suspect` is what the column itself has against the cell.

    With `abstain` there is no repair where the row leaves the value open.
    """
    column = words.encoder.columns[expected.column]
    expected = _within_reach(expected, column)
    if expected.borne_out and words.stands_again(expected.row, column.name):
        expected = replace(expected, borne_out=False)
    value = words.value(expected.row, column.name)
    low, high = (None if np.isnan(bound) else column.decode_one(bound) for bound in (expected.low, expected.high))
    given = [words.neighbour(expected.row, other) for other in expected.matter]
    usual = _usual(expected, column, words)
    if suspect is not None and suspect.related and not abstain:
        suspect = None  # the methods of the paper repair by the network
    cause = named.UNLIKE_ROW if suspect is None else suspect.cause
    if suspect is not None and (suspect.related or suspect.is_told):
        repair, why = held_as(words.table, words.table.names.index(column.name), suspect.meant[0]), suspect.reason
    elif suspect is not None:
        # What is left of an unreadable number says more than the row does.
        room = expected.high - expected.low if cause == named.UNREADABLE else 0.0
        fits = column.fits(expected.meant, expected.low - room, expected.high + room)
        # Of few numbers the one that the row makes likeliest, whatever the suspect says.
        if suspect.meant and not column.few and (fits or np.isnan(expected.meant)):
            repair, why = words.spelled(column, suspect, expected.meant), suspect.reason
        else:
            rounded = words.rounded(column, value, expected)
            repair = _repair(expected, column, words, abstain) if rounded is None else rounded
            why = f"{suspect.reason}; {usual_for(given, usual)}"
            if abstain and cause == named.DEFAULT:
                repair = None  # a guess would fill a gap
            if abstain and cause in IDENTIFIERS:
                repair, why = None, suspect.reason
    else:
        repair, why = _repair(expected, column, words, abstain), say_why(column.name, value, usual, given)
        slip = slipped_point(expected, column, words) if abstain else None
        if slip is not None:
            repair, why = slip, f"{why}; {shortened(slip)} with the decimal point moved"
            cause = named.POINT
    amount = suspect is None and column.is_amount(expected.value, expected.repair)
    if abstain and (amount or (expected.borne_out and not (suspect is not None and suspect.is_told))):
        repair = None
    if repair is None:
        natural = "others of its column are above 0 too, and nothing tells which"
        why = f"{why}. Abstained: {natural if amount else _no_repair(expected, column, words, cause)}"
    return Finding(
        row=expected.row,
        column=column.name,
        value=value,
        suspicion=suspicion,
        repair=repair,
        low=_bound(low, words, column),
        high=_bound(high, words, column),
        reason=why,
        cause=cause,
    )


def _within_reach(expected: Expectation, column: EncodedColumn) -> Expectation:
    """The interval without what the column never holds: no amounts below 0, no percentages above 100."""
    least, most = min(column.reach[0], expected.repair), max(column.reach[1], expected.repair)
    return replace(expected, low=max(expected.low, least), high=min(expected.high, most))


def explain_suspect(suspect: Suspect, table: ReadTable) -> Finding:
    """A cell of a column that is not modelled, from what the column itself has against it."""
    name = table.names[suspect.column]
    value = table.arrow.column(suspect.column)[suspect.row].as_py()
    repair = held_as(table, suspect.column, suspect.meant[0]) if suspect.meant else None
    why = suspect.reason if suspect.meant else f"{suspect.reason}. Abstained: nothing tells what was meant"
    return Finding(suspect.row, name, value, suspect.suspicion, repair, None, None, why, suspect.cause)


def _reached(expected: Expectation, column: EncodedColumn) -> bool:
    """Does the repair lie where the column's own values lie?"""
    return column.reach[0] <= expected.repair <= column.reach[1]


def left_as_found(finding: Finding, repair_from: float, protect: Sequence[str]) -> Finding:
    """The finding without its repair if the column is protected, or if the cell may well be right.

    >>> car = Finding(3, "price", 1.5e6, 0.7, 15000.0, None, None, "price is 1500000")
    >>> left_as_found(car, 0.9, []).reason
    'price is 1500000. Left as it is: it may be right; if not, it was probably 15000'
    """
    if finding.repair is None:
        return finding
    if finding.column in protect:
        why = "the column is protected; it was probably"
    elif finding.suspicion < repair_from:
        why = "it may be right; if not, it was probably"
    else:
        return finding
    said = f"{finding.reason}. Left as it is: {why} {shortened(finding.repair)}"
    return replace(finding, repair=None, reason=said)


def _repair(expected: Expectation, column: EncodedColumn, words: Wording, abstain: bool) -> Any:
    chance = expected.likely[0][1] if expected.likely else 0.0
    is_open = column.is_open(expected.low, expected.high, chance) or expected.outside or not _reached(expected, column)
    best = expected.meant if column.few else expected.repair  # of few numbers one that the column has
    is_open = is_open or (bool(column.few) and not column.fits(best, expected.low, expected.high))
    return None if abstain and is_open else words.write(column, best)


def slipped_point(expected: Expectation, column: EncodedColumn, words: Wording) -> Any:
    """The cell's own digits with the decimal point where they fit; None if they fit nowhere, or by chance."""
    meant = column.moved_point(expected.value, expected.low, expected.high)
    return None if meant is None else words.write(column, meant)


def _no_repair(expected: Expectation, column: EncodedColumn, words: Wording, cause: str) -> str:
    if expected.borne_out:
        return "it may be natural, since the rest of its row leads there too"
    if cause == named.DEFAULT:
        return "what stands for nothing is left like a gap"
    if cause in IDENTIFIERS:
        return "an identifier follows from nothing else"
    if not column.levels:
        return "the rest of the row does not tell the value"
    likely = [shortened(words.write(column, level)) for level, chance in expected.likely if chance >= LEAST_LIKELY]
    if len(likely) > 1:
        return f"{_listed(likely)} are all possible"
    return f"{likely[0]} is likely, but not sure enough" if likely else "no value is likely"


def _bound(bound: Any, words: Wording, column: EncodedColumn) -> float | str | None:
    """A bound as a number, or a date as its column writes it; levels have none."""
    if not isinstance(bound, int | float):
        return None
    notation = words.table.notations.get(column.name)
    return float(bound) if notation is None else notation.bound(bound)


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
    return f"for {_listed(given)} it is usually {usual}" if given else f"for a row like this it is usually {usual}"


def say_why(name: str, value: Any, usual: str, given: Sequence[str] = ()) -> str:
    """The reason in words.

    >>> say_why("z", 31.8, "3.15 to 3.21", ["x 5.12", "y 5.15", "depth 61.8"])
    'z is 31.8; for x 5.12, y 5.15 and depth 61.8 it is usually 3.15 to 3.21'
    >>> say_why("sex", "Male", "Female (97 %)")
    'sex is Male; for a row like this it is usually Female (97 %)'
    """
    return f"{name} is {shortened(value)}; {usual_for(given, usual)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def swapped(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with another reason where two numbers of a row lie each where the other is expected.

    What a person decided stays.

    >>> x = Finding(3, "x", 9.0, 0.9, 4.0, 3.9, 4.1, "x is 9")
    >>> y = Finding(3, "y", 4.0, 0.9, 9.1, 8.9, 9.2, "y is 4")
    >>> [finding.reason for finding in swapped([x, y])]
    ['x is 9; it looks swapped with y', 'y is 4; it looks swapped with x']
    """
    by_row: dict[int, list[int]] = {}
    for place, finding in enumerate(findings):
        if finding.cause == named.DECIDED or finding.repair is None:
            continue
        if isinstance(finding.low, float) and not np.isnan(_number(finding)):
            by_row.setdefault(finding.row, []).append(place)
    changed = list(findings)
    for places in by_row.values():
        for one in places:
            for other in places:
                if one < other and _fits(findings[one], findings[other]) and _fits(findings[other], findings[one]):
                    changed[one], changed[other] = (
                        _swap(findings[one], findings[other]),
                        _swap(findings[other], findings[one]),
                    )
    return changed


def _fits(one: Finding, other: Finding) -> bool:
    if not isinstance(other.low, float) or not isinstance(other.high, float):
        return False
    return other.low <= _number(one) <= other.high and _number(one) != _number(other)


def _number(finding: Finding) -> float:
    try:
        return float(finding.value)
    except (TypeError, ValueError):
        return math.nan


def _swap(one: Finding, other: Finding) -> Finding:
    reason = f"{one.column} is {shortened(one.value)}; it looks swapped with {other.column}"
    return replace(one, repair=other.value, reason=reason, cause=named.EXCHANGED)
