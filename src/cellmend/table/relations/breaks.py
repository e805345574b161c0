"""Rows that break a relation: how probably one of their cells is wrong, and what contradicts what.

A row breaks a relation since one of its cells is wrong, or since it is an exception. The relation's own share of broken
rows tells which: b = r + x, errors and exceptions. Some tables have no errors, and some relations no exceptions; where
there are any, their rates are taken to be exponential. The figures below were measured on 82 public tables, as
published and with 1 or 3 % of their cells spoiled. Where dependencies are broken in groups that surely have one value,
.93 of the rows hold an error if .4 % of all rows break the dependency, .77 if 1.8 % do, and .35 if more than 5 % do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WITHOUT_ERRORS = 0.5  # of the tables: nobody knows, so even odds
ERRORS = 0.015  # of the rows break a relation by an error, on the average of tables that have any
EXCEPTIONS = 0.06  # of the rows are exceptions, on the average of relations that have any
STRICT = 0.8  # of the relations have no exceptions
STRICT_FORMULAS = 0.9  # and of the formulas of several parts: eight of eight tables with such ones, by Laplace's rule
STRICT_ORDERS = 0.6  # and of the orders, of which many hold only because one column is mostly far above the other
CLEARLY = 4.0  # times what a formula may miss by: less is the tail of rounding or noise
STEPS = 64  # in which the two rates share what is broken


class Breaks(NamedTuple):
    """The rows that break one relation."""

    rows: NDArray[np.int64]  # (n,)
    chances: NDArray[np.float64]  # (n,) that one of its cells is wrong
    say: Callable[[int], str]  # what contradicts what in a row


def chance_of_error(broken: float, strict: float) -> float:
    """The probability that a row that breaks a relation holds an error, from the share of rows that break it.

    >>> [round(chance_of_error(share, STRICT), 2) for share in (0.001, 0.01, 0.05, 0.1)]
    [0.94, 0.89, 0.48, 0.15]
    """
    part = (np.arange(STEPS) + 0.5) / STEPS  # of the broken rows that errors break
    shared = broken * _density(part * broken, ERRORS) * _density((1 - part) * broken, EXCEPTIONS)
    only_errors = (1 - WITHOUT_ERRORS) * strict * _density(broken, ERRORS)
    only_exceptions = WITHOUT_ERRORS * (1 - strict) * _density(broken, EXCEPTIONS)
    both, of_errors = ((1 - WITHOUT_ERRORS) * (1 - strict) * each.mean() for each in (shared, part * shared))
    return float((only_errors + of_errors) / (only_errors + only_exceptions + both))


def _density(rate: NDArray[np.float64] | float, mean: float) -> NDArray[np.float64]:
    """Of an exponential distribution with this mean."""
    return np.asarray(np.exp(-np.asarray(rate) / mean) / mean)
