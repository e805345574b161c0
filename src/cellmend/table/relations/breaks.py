"""Rows that break a relation: what contradicts what, and whether the relation alone tells that one of them is wrong.

A row breaks a relation since one of its cells is wrong, or since it is an exception. Of a dependency, an order or a
copy the cells must tell which: on public tables the sum of their suspicions is the share of such rows that hold an
error. A formula of several parts that nearly all rows keep has hardly any exceptions, and its own share of broken rows
tells how probable errors are: b = r + x, errors and exceptions, with rates that are exponential where there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cellmend.table.values import Floats, Ints

ERRORS = 0.015  # of the rows break a relation by an error, on the average of tables that have any
EXCEPTIONS = 0.06  # of the rows are exceptions, on the average of relations that have any
STRICT = 0.9  # of the formulas have no exceptions: eight of eight public tables with such ones, by Laplace's rule
CLEARLY = 4.0  # times what a formula may miss by: less is the tail of rounding or noise
STEPS = 64  # in which the two rates share what is broken


class Breaks(NamedTuple):
    """The rows that break one relation."""

    rows: Ints  # (n,)
    chances: Floats  # (n,) that one of its cells is wrong, by the relation alone; 0 if it does not tell
    say: Callable[[int], str]  # what contradicts what in a row


def chance_of_error(broken: float) -> float:
    """The probability that a row that breaks a formula holds an error, from the share of rows that break it.

    >>> [round(chance_of_error(share), 2) for share in (0.001, 0.01, 0.05, 0.1)]
    [0.97, 0.95, 0.64, 0.19]
    """
    part = (np.arange(STEPS) + 0.5) / STEPS  # of the broken rows that errors break
    shared = broken * _density(part * broken, ERRORS) * _density((1 - part) * broken, EXCEPTIONS)
    # As many tables have errors as have none: nobody knows.
    only_errors, only_exceptions = STRICT * _density(broken, ERRORS), (1 - STRICT) * _density(broken, EXCEPTIONS)
    both, of_errors = ((1 - STRICT) * each.mean() for each in (shared, part * shared))
    return float((only_errors + of_errors) / (only_errors + only_exceptions + both))


def _density(rate: Floats | float, mean: float) -> Floats:
    """Of an exponential distribution with this mean."""
    return np.asarray(np.exp(-np.asarray(rate) / mean) / mean)
