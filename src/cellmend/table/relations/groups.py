"""Rows in groups, and whether each group has one true value in a column.

A group is the rows that share something, such as a code. Three explanations for the values of a group are weighed: it
has one true value, and cells that differ from it are wrong; it has several values of its own; or it has nothing to do
with the column, and its values are those of any rows. How many groups are of which sort, and how often a cell is wrong
where a group has one true value, is learned by expectation and maximisation from all groups of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln

from cellmend.table.relations.coding import Codes
from cellmend.table.values import Floats

ROUNDS = 12  # of expectation and maximisation
FIRST_ONE = 0.6  # of the groups have one true value, with which they begin
PRIOR_ERRORS, PRIOR_CELLS = 0.05, 20.0  # cells that are wrong, as if so many had been seen; they begin so, too
SPREAD = 2.0  # concentration of the values that a group with several has
WRONG_SPREAD = 20.0  # of its wrong values: more like those of other groups
ERROR_SPREAD = 10.0  # concentration of the share of wrong cells: groups are about as alike as that of ten cells
LEAST_AGREED = 0.3  # that two rows of a group agree, beyond chance, or it is not looked at closely
TINY = 1e-9


@dataclass(frozen=True)
class Grouped:
    """How the rows of a table lie in groups: which value how often in which, pairs (P,) in the order of groups."""

    group: Codes  # (P,) place among the groups
    value: Codes  # (P,)
    pair: Codes  # (n,) of each row the place of its pair
    start: Codes  # (G,) first pair of each group
    names: Codes  # (G,) code of each group
    usual: Floats  # (V,) share of each value among all rows
    slipped: Floats  # (V,) share of each value among cells that are wrong

    @classmethod
    def of(cls, groups: Codes, values: Codes) -> Grouped:
        """From the group and the value of each row, (n,), all of which say something."""
        often = np.bincount(values).astype(np.float64)
        pairs, pair = np.unique(groups * len(often) + values, return_inverse=True)
        names, start = np.unique(pairs // len(often), return_index=True)
        group = np.repeat(np.arange(len(names)), np.diff(np.append(start, len(pairs))))
        usual = often / often.sum()
        return cls(group, pairs % len(often), pair, start, names, usual, wrong_shares(usual))

    @property
    def counts(self) -> Floats:
        """Rows of each pair, (P,)."""
        return np.bincount(self.pair, minlength=len(self.group)).astype(np.float64)

    @property
    def sizes(self) -> Floats:
        """Rows of each group, (G,)."""
        return np.add.reduceat(self.counts, self.start)

    @property
    def agreement(self) -> float:
        """How much more than by chance two rows of a group agree."""
        return beyond_chance(agreeing(self.counts, self.sizes), float((self.usual**2).sum()))

    def log_sums(self, each: Floats) -> Floats:
        """Log of the sum over the values of each group, (P,) to (G,)."""
        most = np.maximum.reduceat(each, self.start)
        return most + np.log(np.add.reduceat(np.exp(each - most[self.group]), self.start))

    def best(self, score: Floats) -> Codes:
        """The pair of each group with the highest score, (P,) to (G,)."""
        order = np.lexsort((self.value, -score, self.group))
        return order[np.unique(self.group[order], return_index=True)[1]]


def agreeing(counts: Floats | Codes, sizes: Floats | Codes) -> float:
    """The share of the pairs of rows in one group, (G,), that hold the same value, (P,)."""
    pairs = float((sizes * (sizes - 1.0)).sum())
    return float((counts * (counts - 1.0)).sum()) / pairs if pairs else 0.0


def beyond_chance(agree: float, chance: float) -> float:
    """How far agreement lies between chance, 0, and that of all, 1."""
    return (agree - chance) / (1 - chance) if chance < 1 else 0.0


def wrong_shares(usual: Floats) -> Floats:
    """How often each value stands where it is wrong: as often as where it is right, or all values alike, (V,).

    >>> wrong_shares(np.array([0.9, 0.1, 0.0]))
    array([0.7, 0.3, 0. ])
    """
    held = usual > 0
    return np.where(held, (usual + 1 / max(held.sum(), 1)) / 2, 0.0)


@dataclass(frozen=True)
class OneValue:
    """What was learned of groups that should have one true value each."""

    share: float  # of the groups that have one
    errors: float  # cells that are wrong in them
    pair: Codes  # (G,) that holds the likeliest true value of each group
    sure: Floats  # (G,) that the group has one true value, and that it is this one
    gain: float  # log of how much better groups explain the values than columns without a relation do


def learn_one_value(grouped: Grouped) -> OneValue:
    """Weigh the three explanations for all groups."""
    counts, sizes = grouped.counts, grouped.sizes
    by_chance = np.add.reduceat(counts * np.log(grouped.usual[grouped.value]), grouped.start)  # (G,)
    several, wrong_values = _log_several(grouped), _log_wrong_values(grouped)
    errors, shares = PRIOR_ERRORS, np.array([FIRST_ONE, (1 - FIRST_ONE) / 2, (1 - FIRST_ONE) / 2])
    for _ in range(ROUNDS):
        each = np.log(grouped.usual[grouped.value]) + wrong_values  # (P,) if the pair's value is the true one
        each += _log_errors(sizes[grouped.group] - counts, counts, errors)
        one = grouped.log_sums(each)
        weighed = np.log(shares)[:, None] + np.stack([one, several, by_chance])
        total = np.logaddexp.reduce(weighed)
        is_one = np.exp(weighed[0] - total)  # (G,)
        true = np.exp(each - one[grouped.group]) * is_one[grouped.group]  # (P,)
        held = float((is_one * sizes).sum())
        broken = held - float((true * counts).sum())
        errors = (broken + PRIOR_ERRORS * PRIOR_CELLS) / (held + PRIOR_CELLS)
        shares = (np.exp(weighed - total).sum(axis=1) + 1) / (len(one) + 3)
    best = grouped.best(true)
    return OneValue(float(shares[0]), errors, best, true[best], float((total - by_chance).sum()))


def _log_errors(wrong: Floats, right: Floats, errors: float) -> Floats:
    """Log chance of so many wrong and right cells, if groups differ somewhat in how often cells are wrong, (P,)."""
    often, seldom = ERROR_SPREAD * errors, ERROR_SPREAD * (1 - errors)
    return betaln(often + wrong, seldom + right) - betaln(often, seldom)


def _log_wrong_values(grouped: Grouped) -> Floats:
    """Log chance of the other values of a group, if that of the pair is the true one, (P,).

    Wrong cells may all have the same few values.
    """
    own = WRONG_SPREAD * grouped.slipped[grouped.value]
    each, others = gammaln(own + grouped.counts) - gammaln(own), np.maximum(WRONG_SPREAD - own, TINY)
    wrong = grouped.sizes[grouped.group] - grouped.counts
    return np.add.reduceat(each, grouped.start)[grouped.group] - each + gammaln(others) - gammaln(others + wrong)


def _log_several(grouped: Grouped) -> Floats:
    """Log chance of the values of each group if it has several, in shares of its own, (G,)."""
    own = SPREAD * grouped.usual[grouped.value]
    each = np.add.reduceat(gammaln(own + grouped.counts) - gammaln(own), grouped.start)
    return each + gammaln(SPREAD) - gammaln(SPREAD + grouped.sizes)
