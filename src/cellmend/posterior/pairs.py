"""What other columns say about a cell: values that go together, learned as counts of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cellmend.posterior.known import Floats
from cellmend.posterior.priors import MOST_PAIRED, PARTNERS, SAMPLED, UNSEEN

Codes = NDArray[np.int64]
NAMES = (
    "pair_worst",
    "pair_best",
    "pair_sum",
    "pair_against",
    "pair_against_second",
    "pair_against_cells",
    "pair_for",
    "pair_strength",
    "pair_rarest_partner",
    "pair_most_frequent_partner",
)


@dataclass(frozen=True)
class Pair:
    """How often each value of a column stands beside each value of its partner."""

    column: int
    partner: int
    strength: float  # mean log lift of the right value, each row judged by the others
    keys: Codes  # (P,) partner value * values of the column + value of the column, sorted
    counts: Codes  # (P,)
    top: Codes  # (V,) of each value of the partner the most frequent value of the column
    top_count: Codes  # (V,)
    next_count: Codes  # (V,) of the second most frequent


@dataclass(frozen=True)
class Pairs:
    """For each column those that tell most about it."""

    sizes: Codes  # (D,) different values of each column
    totals: tuple[Codes, ...]  # of each column, cells with each value
    pairs: tuple[Pair, ...]

    @classmethod
    def learn(cls, codes: Codes, sizes: Sequence[int]) -> Pairs:
        """From the places of all values among those of their column, (N, D), -1 for none."""
        size = np.asarray(sizes, dtype=np.int64)
        totals = tuple(
            np.bincount(c[c >= 0], minlength=s).astype(np.int64) for c, s in zip(codes.T, sizes, strict=True)
        )
        found = []
        for column, partners in _candidates(codes, size, totals).items():
            tried = [_learn_pair(codes, size, totals, column, partner) for partner in partners]
            strong = sorted((pair for pair in tried if pair.strength > 0), key=lambda pair: -pair.strength)
            found += strong[:PARTNERS]
        return cls(size, totals, tuple(found))

    def with_more(self, codes: Codes, sizes: Sequence[int]) -> Pairs:
        """With those of a newer table, (N, D), places among values of which there are `sizes` by now, the learned ones
        first. Each pair counts as in the table that has more of it."""
        size = np.asarray(sizes, dtype=np.int64)
        newer = [np.bincount(c[c >= 0], minlength=s) for c, s in zip(codes.T, sizes, strict=True)]
        totals = tuple(
            np.maximum(np.append(own, np.zeros(len(new) - len(own), np.int64)), new)
            for own, new in zip(self.totals, newer, strict=True)
        )
        return Pairs(size, totals, tuple(_grown(pair, self.sizes, codes, size) for pair in self.pairs))

    @cached_property
    def _of_column(self) -> dict[int, list[Pair]]:
        """The pairs of each column that has any."""
        found: dict[int, list[Pair]] = {}
        for pair in self.pairs:
            found.setdefault(pair.column, []).append(pair)
        return found

    def evidence(self, codes: Codes) -> Floats:
        """Figures of each cell, (N, D, names), from the places of values among the learned ones, -1 if unknown."""
        rows, columns = codes.shape
        figures = np.zeros((rows, columns, len(NAMES)))
        for column in range(columns):
            own = [self._one(pair, codes) for pair in self._of_column.get(column, ())]
            if own:
                lift, against, cells, confirmed, strength = (np.stack(each) for each in zip(*own, strict=True))
                ranked = np.sort(against, axis=0)
                worst = against.argmax(0)
                at = np.arange(rows)
                figures[:, column] = np.stack(
                    [
                        lift.min(0),
                        lift.max(0),
                        lift.sum(0),
                        ranked[-1],
                        ranked[-2] if len(ranked) > 1 else 0 * ranked[-1],
                        cells[worst, at],
                        confirmed.max(0),
                        strength[worst, at],
                        cells.min(0),
                        cells.max(0),
                    ],
                    axis=1,
                )
        return np.where((codes >= -1)[..., None], figures, 0.0)

    def _one(self, pair: Pair, codes: Codes) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Lift of each cell's value, how much likelier another one is, cells with its partner's value, how sure the
        partner is of it, and the pair's strength, (N,) each; 0 where the partner says nothing."""
        value, beside = codes[:, pair.column], codes[:, pair.partner]
        cells, joint, usual = _counts(pair, self.totals, value, beside)
        says = (beside >= 0) & (value != MISSING) & (cells > 1)
        own = (np.maximum(joint - 1, 0) + UNSEEN * usual) / (np.maximum(cells - 1, 0) + UNSEEN)
        is_top = pair.top[np.maximum(beside, 0)] == value
        other = np.where(is_top, pair.next_count[np.maximum(beside, 0)], pair.top_count[np.maximum(beside, 0)])
        likelier = (other + UNSEEN / 2) / (np.maximum(cells - 1, 0) + UNSEEN)
        lift, against = np.log(own / usual), np.log(likelier / own)
        strength = np.where(says, pair.strength, 0.0)
        log_cells = np.where(says, np.log(np.maximum(cells, 1)), 0.0)
        return np.where(says, lift, 0.0), np.where(says, against, 0.0), log_cells, np.where(says, own, 0.0), strength

    def told(self, codes: Codes, row: int, column: int) -> tuple[int, int, int, int] | None:
        """What the surest partner says the value is: its column, the value's place, rows that say so, rows in all."""
        best = None
        for pair in self._of_column.get(column, ()):
            beside = codes[row, pair.partner]
            if beside >= 0 and pair.top[beside] not in (-1, codes[row, column]):
                said, cells = int(pair.top_count[beside]), int(self.totals[pair.partner][beside])
                if best is None or said / (cells + 1) > best[2] / (best[3] + 1):
                    best = pair.partner, int(pair.top[beside]), said, cells
        return best

    def support(self, codes: Codes, row: int, column: int, value: int) -> tuple[float, int]:
        """How often the surest partner of a cell stands beside a value, as a share, and in how many rows it stands."""
        best = 0.0, 0
        for pair in self._of_column.get(column, ()) if value >= 0 else ():
            beside = int(codes[row, pair.partner])
            if beside >= 0:
                key = beside * int(self.sizes[column]) + value
                place = int(np.searchsorted(pair.keys, key))
                seen = place < len(pair.keys) and pair.keys[place] == key
                cells = int(self.totals[pair.partner][beside])
                share = (int(pair.counts[place]) if seen else 0) / (cells + 1)
                best = max(best, (share, cells))
        return best


MISSING = -2  # the place of a cell in which nothing stands; -1 is a value that was never learned


def _counts(pair: Pair, totals: tuple[Codes, ...], value: Codes, beside: Codes) -> tuple[Floats, Floats, Floats]:
    """Cells with the partner's value, cells with both values, and the share of cells with the value, (N,) each."""
    own, other = totals[pair.column], totals[pair.partner]
    cells = np.append(other, 0)[beside].astype(np.float64) if len(other) else np.zeros(len(value))
    key = np.maximum(beside, 0) * len(own) + np.maximum(value, 0)
    place = np.minimum(np.searchsorted(pair.keys, key), max(len(pair.keys) - 1, 0))
    seen = (value >= 0) & (beside >= 0) & (pair.keys[place] == key)
    joint = np.where(seen, pair.counts[place], 0).astype(np.float64)
    usual = (np.maximum(np.append(own, 1)[value] - 1, 0) + 0.5) / (own.sum() + 0.5)
    return cells, joint, usual


def _candidates(codes: Codes, sizes: Codes, totals: Sequence[Codes]) -> dict[int, list[int]]:
    """For each column those that may tell about it: columns whose values repeat; of very many, chosen by a sample."""
    repeats = [bool((each > 1).sum() and each[each > 1].sum() > 0.2 * max(each.sum(), 1)) for each in totals]
    able = [at for at, does in enumerate(repeats) if does and sizes[at] > 1]
    if len(able) <= MOST_PAIRED:
        return {column: [at for at in able if at != column] for column in range(codes.shape[1]) if sizes[column] > 1}
    some = codes[np.linspace(0, len(codes) - 1, min(SAMPLED, len(codes))).astype(np.int64)]
    chosen = {}
    for column in range(codes.shape[1]):
        if sizes[column] > 1:
            lifts = [_learn_pair(some, sizes, totals, column, at).strength if at != column else -1.0 for at in able]
            chosen[column] = [able[at] for at in np.argsort(lifts)[::-1][: 2 * PARTNERS].tolist()]
    return chosen


def _learn_pair(codes: Codes, sizes: Codes, totals: Sequence[Codes], column: int, partner: int) -> Pair:
    value, beside = codes[:, column], codes[:, partner]
    both = (value >= 0) & (beside >= 0)
    keys, index, counts = np.unique(beside[both] * sizes[column] + value[both], return_inverse=True, return_counts=True)
    group = np.bincount(beside[both], minlength=sizes[partner])[beside[both]]
    usual = np.bincount(value[both], minlength=sizes[column])[value[both]] / max(both.sum(), 1)
    own = (counts[index.reshape(-1)] - 1 + UNSEEN * usual) / (group - 1 + UNSEEN)
    strength = float(np.log(own / usual).mean()) if both.any() else 0.0
    return _pair(column, partner, strength, keys, counts, sizes)


def _pair(column: int, partner: int, strength: float, keys: Codes, counts: Codes, sizes: Codes) -> Pair:
    """A pair from its sorted keys and their counts."""
    owner = keys // sizes[column]
    order = np.lexsort((-counts, owner))
    first = np.searchsorted(owner[order], np.arange(sizes[partner]))
    padded_owner, padded = np.append(owner[order], [-1, -1]), np.append(counts[order], [0, 0])
    values = np.append(keys[order] % sizes[column], [-1, -1])
    here = np.arange(sizes[partner])
    top, top_count, next_count = (
        np.where(padded_owner[first + step] == here, what[first + step], empty)
        for step, what, empty in ((0, values, -1), (0, padded, 0), (1, padded, 0))
    )
    return Pair(column, partner, strength, keys, counts, top, top_count, next_count)


def _grown(pair: Pair, before: Codes, codes: Codes, sizes: Codes) -> Pair:
    """A pair with the rows of a newer table, as strong as it was."""
    value, beside = codes[:, pair.column], codes[:, pair.partner]
    both, wide = (value >= 0) & (beside >= 0), sizes[pair.column]
    known = pair.keys // before[pair.column] * wide + pair.keys % before[pair.column]
    new, often = np.unique(beside[both] * wide + value[both], return_counts=True)
    keys = np.union1d(known, new)
    counts = np.zeros(len(keys), dtype=np.int64)
    counts[np.searchsorted(keys, known)] = pair.counts
    np.maximum.at(counts, np.searchsorted(keys, new), often)
    return _pair(pair.column, pair.partner, pair.strength, keys, counts, sizes)
