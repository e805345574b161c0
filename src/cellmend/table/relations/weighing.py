"""Which cell of a broken dependency is the wrong one: what all dependencies of a row say together.

Each dependency links the cells of a row that it speaks of. Where it is broken one of them is wrong, or the row is an
exception; where it holds they vouch for each other. Belief propagation weighs this for all cells of a row at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from cellmend.table.relations.coding import Codes
from cellmend.table.values import Bools, Floats

EXCEPTIONS = 0.005  # of the rows break a dependency although nothing is wrong
ROUNDS = 6  # in which cells tell each other
DAMPING = 0.5  # of what was said before stays


@dataclass(frozen=True)
class Link:
    """One dependency in the rows of a table."""

    columns: tuple[int, ...]  # places of the determinants, and last of the dependent
    holds: Bools  # (N,)
    broken: Bools  # (N,) neither if it says nothing of a row
    exception: Floats  # (N,) chance that what it says is not so
    usual: Floats  # (N,) share of rows that have what it says, so that it would hold by chance
    top: Codes  # (N,) what it says
    group: Codes  # (N,) of whose rows

    def of(self, rows: Codes) -> Link:
        """Of some of the rows."""
        return Link(self.columns, *(getattr(self, each.name)[rows] for each in fields(self)[1:]))

    def rarer(self, times: Floats) -> Link:
        """With exceptions so many times as often, (N,)."""
        return replace(self, exception=np.minimum(np.maximum(self.exception, EXCEPTIONS) * np.maximum(times, 1.0), 1.0))

    def as_broken(self, others_right: Floats) -> Floats:
        """Log chance that it is broken, (N,), if a cell is right, and all others with this chance; 0 if it is not."""
        return np.where(self.broken, np.log(1 - others_right * (1 - self.exception)), 0.0)

    def as_held(self, others_right: Floats) -> Floats:
        """Log odds that a cell is wrong where the dependency holds, (N,); 0 where it does not."""
        agrees = others_right / self.usual + 1 - others_right
        return np.where(self.holds, -np.log(agrees), 0.0)


def weigh(links: Sequence[Link], prior: Floats) -> Floats:
    """Log odds that each cell is wrong, (N, columns), from those before the links are looked at.

    What links say of a cell is not added up, since they tend to hold or to be broken together: a row is an exception to
    all of them, or some of their cells are wrong; and a wrong value that goes with one of them goes with the others.
    """
    heard = [prior[:, link.columns] for link in links]  # of each cell what all links but this one say
    for _ in range(ROUNDS):
        told = [_tell(link, own) for link, own in zip(links, heard, strict=True)]
        for place, link in enumerate(links):
            for cell, column in enumerate(link.columns):
                others = [each for each in range(len(links)) if each != place and column in links[each].columns]
                new = prior[:, column] + _together(links, told, column, others)
                heard[place][:, cell] += (1 - DAMPING) * (new - heard[place][:, cell])
    told, total = [_tell(link, own) for link, own in zip(links, heard, strict=True)], prior.copy()
    for column in range(prior.shape[1]):
        own = [each for each in range(len(links)) if column in links[each].columns]
        total[:, column] += _together(links, told, column, own)
    return total


def chance_of(log_odds: Floats) -> Floats:
    """The probability that has these log odds."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -50, 50)))


Told = list[tuple[Floats, Floats]]  # what a link says of each of its cells where it is broken and where it holds, (N,)


def _tell(link: Link, heard: Floats) -> Told:
    right = chance_of(-heard)
    others = (np.delete(right, cell, axis=1).prod(axis=1) for cell in range(right.shape[1]))
    return [(link.as_broken(each), link.as_held(each)) for each in others]


def _together(links: Sequence[Link], told: Sequence[Told], column: int, own: Sequence[int]) -> Floats:
    """Log odds that the cells of a column are wrong, (N,), by these links."""
    wrong, held, exception = np.zeros_like(links[0].usual), np.zeros_like(links[0].usual), np.ones_like(links[0].usual)
    for link, says in ((links[each], told[each]) for each in own):
        if_broken, if_held = says[link.columns.index(column)]
        wrong, held = wrong + if_broken, np.minimum(held, if_held)
        exception = np.minimum(exception, np.where(link.broken, link.exception, 1.0))
    return held - np.log(np.maximum(exception * (exception < 1), np.exp(wrong)))
