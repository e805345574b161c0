"""The decided cells as a sample of the table: for how many cells each of them stands, and which nobody stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cellmend.decisions.asking import kinds_of
from cellmend.decisions.lesson import SIDES, Example
from cellmend.decisions.portrait import Seen

OTHERS = 2  # cells of kinds that nobody decided, for each decided one, that a lesson sees


@dataclass(frozen=True)
class Sample:
    """Decided cells of a table.

    A cell of a row that was decided as a whole stands for that column of its share of all rows, any other for its share
    of the cells that are alike.
    """

    seen: Seen
    kinds: NDArray[np.int64]  # (N, D) cells of the same number are alike; -1 for empty ones
    whole: frozenset[int]  # rows that were decided as a whole
    asked: Mapping[int, int]  # how many other cells of each kind were decided

    @classmethod
    def of(cls, seen: Seen, cells: Sequence[tuple[int, int]]) -> Sample:
        """These cells by row and place of the column."""
        kinds = kinds_of(seen, seen.suspicion)
        held = [cell for cell in cells if kinds[cell] >= 0]
        decided = Counter(row for row, _ in held)
        whole = frozenset(row for row, count in decided.items() if count == (kinds[row] >= 0).sum())
        return cls(seen, kinds, whole, Counter(int(kinds[cell]) for cell in held if cell[0] not in whole))

    def examples(self, wrong: Mapping[tuple[int, int], bool]) -> Iterator[tuple[tuple[int, int], Example]]:
        """Cells with their verdicts as examples, column by column."""
        sizes = np.bincount(self.kinds[self.kinds >= 0])
        for place in sorted({place for _, place in wrong}):
            rows = [row for row, own in wrong if own == place]
            for row, traits in zip(rows, self.seen.traits(place, np.array(rows)).tolist(), strict=True):
                kind = int(self.kinds[row, place])
                share = float(sizes[kind] / self.asked.get(kind, 1))
                weight = len(self.kinds) / len(self.whole) if row in self.whole else share
                marks = self.seen.marks(row, place)
                yield (row, place), Example(place, tuple(traits), marks, wrong[row, place], weight)

    def others(self) -> list[Example]:
        """Some cells of kinds of which none was decided, as examples with the verdict of the model.

        None if rows were decided as a whole: these are a fair sample of all kinds.
        """
        free = np.flatnonzero((self.kinds >= 0) & ~np.isin(self.kinds, list(self.asked)))
        count = 0 if self.whole else min(len(free), OTHERS * sum(self.asked.values()))
        drawn = np.random.default_rng(0).choice(free, count, replace=False).tolist() if count else []
        suspicion, columns = self.seen.suspicion, self.kinds.shape[1]
        verdicts = {divmod(cell, columns): bool(suspicion.flat[cell] >= SIDES) for cell in sorted(drawn)}
        return [example for _, example in self.examples(verdicts)]
