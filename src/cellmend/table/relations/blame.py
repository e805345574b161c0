"""Which cell is wrong where formulas are broken: the one that explains most, replaced by what the others say.

In a row that breaks a formula one of its cells is taken to be wrong. Each cell is tried: with what the formula says in
its place, how many formulas are kept, how natural is that value in its column, and how likely would the column's
errors, slips of the keyboard among them, make of it what stands there? Shapes: n rows, T trials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import OSA

from cellmend.table.readtable import MOST
from cellmend.table.relations.formulas import ORDER, Columns, Formula
from cellmend.table.relations.quantities import EXACT, Quantity
from cellmend.table.values import Bools, Floats, as_text

SLIPS = 0.3  # of the errors are slips of a digit, of two, of the sign or the decimal point
WAYS_TO_SLIP = 30  # in a number
FACTORS = (-1.0, 0.01, 0.1, 10.0, 100.0, 1000.0, 0.001)  # of another sign, or of a decimal point that slipped


@dataclass(frozen=True)
class Blame:
    """What is thought of one column in some rows: how probably it is the wrong one, and what it should be."""

    column: str
    share: Floats  # (n,)
    meant: Floats  # (n,) NaN where nothing tells
    by: Sequence[int]  # (n,) the number of the formula that tells


@dataclass(frozen=True)
class _Trial:
    """A column taken to be wrong, and the formula that says what it should be."""

    column: str
    formula: int
    meant: Floats  # (n,)
    score: Floats  # (n,) log; -inf where the formula is kept


def blame(
    formulas: Sequence[Formula], supports: Sequence[float], values: Columns, quantities: Mapping[str, Quantity]
) -> list[Blame]:
    """Every column that may be wrong in rows (n,) that each break a formula at least."""
    broken = np.array([formula.broken(values) for formula in formulas])  # (F, n)
    weights = np.array([math.log(s / (1 - s)) for s in np.minimum(supports, MOST)])
    trials = [
        _tried(column, number, formulas, weights, values, quantities)
        for number, formula in enumerate(formulas)
        if broken[number].any()
        for column in formula.columns
    ]
    scores = np.array([np.where(broken[trial.formula], trial.score, -np.inf) for trial in trials])  # (T, n)
    scores -= scores.max(axis=0)
    chances = np.exp(scores)
    chances /= chances.sum(axis=0)
    return [_of_column(name, trials, chances) for name in dict.fromkeys(trial.column for trial in trials)]


def _of_column(name: str, trials: Sequence[_Trial], chances: Floats) -> Blame:
    own = [place for place, trial in enumerate(trials) if trial.column == name]
    best = np.array(own)[chances[own].argmax(axis=0)]  # (n,)
    meant = np.array([trial.meant for trial in trials])[best, np.arange(chances.shape[1])]
    return Blame(name, chances[own].sum(axis=0), meant, [trials[place].formula for place in best.tolist()])


def _tried(
    column: str,
    number: int,
    formulas: Sequence[Formula],
    weights: Floats,
    values: Columns,
    quantities: Mapping[str, Quantity],
) -> _Trial:
    """The score of a column as the wrong one: log chance of the row, up to what all trials share."""
    formula, quantity = formulas[number], quantities[column]
    seen = values[column]
    if formula.form == ORDER:  # what it should be is open, but for the bound
        score = quantity.log_anything() - quantity.log_natural(seen)
        meant = np.full(len(seen), np.nan)
        after = {**values, column: formula.solved(column, values)}
    else:
        exact, slack = formula.solved(column, values), formula.solved_slack(column, values)
        meant = np.where(np.isfinite(exact), quantity.rounded(exact), np.nan)
        anything, slip = math.log(1 - SLIPS) + quantity.log_anything(), math.log(SLIPS / WAYS_TO_SLIP)
        score = np.where(is_slip(seen, meant), np.logaddexp(anything, slip), anything)
        if column != formula.result:
            score = score + quantity.log_natural(meant) - quantity.log_natural(seen)
        score = score + quantity.log_at_unit(np.nan_to_num(exact), slack)
        after = {**values, column: meant}
        meant = np.where(slack <= quantity.cell, meant, np.nan)  # or the formula does not tell it finely enough
    for other, weight in zip(formulas, weights.tolist(), strict=True):
        score = score - weight * other.broken(after if column in other.columns else values)
    return _Trial(column, number, meant, np.where(np.isfinite(after[column]), score, -1e6))


def is_slip(seen: Floats, meant: Floats) -> Bools:
    """Do two numbers differ in a digit, in two that are swapped, in the sign or in where the decimal point is?

    >>> is_slip(np.array([135.38, 20.22, -7.5, 202.2, 3.0]), np.array([135.88, 22.02, 7.5, 20.22, 8.0])).tolist()
    [True, False, True, True, False]
    """
    found = np.zeros(len(seen), dtype=bool)
    for factor in FACTORS:
        found |= np.abs(seen - factor * meant) <= EXACT * np.abs(seen)
    for row in np.flatnonzero(~found & np.isfinite(meant) & (seen != meant)).tolist():
        one, other = as_text(float(seen[row])), as_text(float(meant[row]))
        found[row] = min(len(one), len(other)) > 1 and OSA.distance(one, other, score_cutoff=1) <= 1
    return found
