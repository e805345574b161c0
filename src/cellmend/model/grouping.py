"""Levels that share an output: a column of thousands of levels must not cost rows times levels.

The most frequent levels have an output of their own. The others, which hardly a row tells apart, share: neighbours by
their names, so that codes with the same first digits stay together. A level's probability is that of its group, which
the row says, times its share of the group, which is the same for every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

AFFORDABLE = 20_000_000  # cells times levels, up to which every level has an output
OWN, SHARED = 48, 16  # outputs for the most frequent levels, and for groups of others


class Groups(NamedTuple):
    """Of every level: its output among those of its column, and its share of it; both empty if none is shared."""

    outputs: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()


def group_levels(counts: NDArray[np.int64]) -> Groups:
    """Groups of levels in the order of their names, from how many cells have each.

    >>> group_levels(np.array([5, 3, 2]))
    Groups(outputs=(), shares=())
    >>> many = group_levels(np.full(40_000, 2))
    >>> len(set(many.outputs)), many.outputs[48:50], round(sum(many.shares))
    (64, (48, 48), 64)
    """
    if len(counts) <= OWN + SHARED or len(counts) * counts.sum() <= AFFORDABLE:
        return Groups()
    seen = counts + 1.0  # a level that is known and does not stand here stays possible
    often = np.argsort(-counts, kind="stable")[:OWN]
    rest = np.setdiff1d(np.arange(len(counts)), often)
    outputs = np.empty(len(counts), dtype=np.int64)
    outputs[often] = np.arange(OWN)
    before = np.cumsum(seen[rest]) - seen[rest]
    outputs[rest] = OWN + np.minimum(before / seen[rest].sum() * SHARED, SHARED - 1).astype(np.int64)
    _, outputs = np.unique(outputs, return_inverse=True)  # a level more frequent than a whole group leaves one empty
    shares = seen / np.bincount(outputs, seen)[outputs]
    return Groups(tuple(outputs.tolist()), tuple(shares.tolist()))


def with_more(groups: Groups, names: Sequence[str], new: Sequence[str]) -> Groups:
    """The groups with new levels, each in that of its neighbour by name, as rare as the rarest there.

    >>> with_more(Groups((0, 1, 1), (1.0, 0.6, 0.4)), ["a", "b", "c"], ["d"])
    Groups(outputs=(0, 1, 1, 1), shares=(1.0, 0.6, 0.4, 0.4))
    """
    if not groups.outputs or not new:
        return groups
    shared = [place for place, share in enumerate(groups.shares) if share < 1]
    shared.sort(key=lambda place: names[place])
    after = np.searchsorted([names[place] for place in shared], list(new), side="right")
    chosen = [groups.outputs[shared[max(place - 1, 0)]] for place in after.tolist()]
    rarest = dict[int, float]()
    for place in shared:
        rarest[groups.outputs[place]] = min(groups.shares[place], rarest.get(groups.outputs[place], 1.0))
    return Groups((*groups.outputs, *chosen), (*groups.shares, *(rarest[output] for output in chosen)))
