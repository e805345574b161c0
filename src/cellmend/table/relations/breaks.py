"""Rows that break a relation: what contradicts what, and whether the relation alone tells that one of them is wrong.

A row breaks a relation since one of its cells is wrong, or since it is an exception. Of a dependency, a copy or an
order of numbers the cells must tell which: on public tables the sum of their suspicions is the share of such rows that
hold an error. A formula of several parts, or an order of dates, that nearly all rows keep has hardly any exceptions,
and its own share of broken rows tells how probable errors are: b = r + x, errors and exceptions, with rates that are
exponential where there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from cellmend.table.values import Floats, Ints

ERRORS = 0.015  # of the rows break a relation by an error, on the average of tables that have any
CLEARLY = 4.0  # times what a formula may miss by: less is the tail of rounding or noise
STEPS = 64  # in which the two rates share what is broken


class Exceptions(NamedTuple):
    """How often rows break relations of one sort though nothing is wrong."""

    none: float  # share of such relations that have no exceptions
    mean: float  # share of the rows that are, on the average of those that have any


FORMULAS = Exceptions(none=0.9, mean=0.06)  # eight of eight public tables have none, by Laplace's rule
DATES = Exceptions(none=0.71, mean=0.021)  # orders of dates: three of twelve have some, and one as above in thought


class Breaks(NamedTuple):
    """The rows that break one relation."""

    rows: Ints  # (n,)
    chances: Floats  # (n,) that one of its cells is wrong, by the relation alone; 0 if it does not tell
    say: Callable[[int], str]  # what contradicts what in a row


def chance_of_error(broken: float, exceptions: Exceptions = FORMULAS) -> float:
    """The probability that a row that breaks a relation holds an error, from the share of rows that break it.

    >>> [round(chance_of_error(share), 2) for share in (0.001, 0.01, 0.05, 0.1)]
    [0.97, 0.95, 0.64, 0.19]
    """
    part, none = (np.arange(STEPS) + 0.5) / STEPS, exceptions.none  # of the broken rows that errors break
    of_errors, of_exceptions = (partial(_density, mean=mean) for mean in (ERRORS, exceptions.mean))
    shared = broken * of_errors(part * broken) * of_exceptions((1 - part) * broken)
    # As many tables have errors as have none: nobody knows.
    only_errors, only_exceptions = none * of_errors(broken), (1 - none) * of_exceptions(broken)
    both, in_both = ((1 - none) * each.mean() for each in (shared, part * shared))
    return float((only_errors + in_both) / (only_errors + only_exceptions + both))


def _density(rate: Floats | float, mean: float) -> Floats:
    """Of an exponential distribution with this mean."""
    return np.asarray(np.exp(-np.asarray(rate) / mean) / mean)
