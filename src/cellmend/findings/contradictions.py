"""Contradictions: cells of a row of which one is wrong, and nothing tells which.

Where price × quantity is not the total one of the three is wrong. If one of them is suspicious enough to be flagged, it
explains the contradiction. If not, the finding is the contradiction itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cellmend.model.judge import SUREST
from cellmend.settings import LEAST_FLAGGED, Spans
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.base import Relation
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.values import Floats


@dataclass(frozen=True)
class Contradiction:
    """Cells of one row that together break a relation."""

    row: int
    places: tuple[int, ...]  # of their columns in the table, in its order
    suspicions: tuple[float, ...]  # of each cell by itself
    probability: float  # that one of them is wrong
    cause: str  # the kind of relation
    said: tuple[str, ...]  # what contradicts what; several if relations of the same cells are broken
    names: tuple[str, ...]  # of their columns

    def flagged_from(self, least: float) -> bool:
        """Is it probable enough, while none of its cells is suspicious enough to explain it?"""
        return self.probability >= least > max(self.suspicions)

    @property
    def reason(self) -> str:
        """In one sentence, for all of its cells."""
        names = f"{', '.join(self.names[:-1])} and {self.names[-1]}"
        return f"{'; '.join(self.said)}. One of {names} is wrong ({100 * self.probability:.0f} %)"


def spans_of(contradictions: Sequence[Contradiction]) -> Spans:
    """From which suspicion on each is flagged, and from which on one of its cells is."""
    both = [(each.probability, max(each.suspicions)) for each in contradictions]
    together, explained = np.array(both, dtype=np.float64).reshape(-1, 2).T
    return together, explained


@np.errstate(all="ignore")  # the largest numbers overflow and then agree with nothing
def find_contradictions(relations: Iterable[Relation], table: ReadTable, suspicion: Floats) -> list[Contradiction]:
    """The contradictions in a table, from the suspicion of its cells, (N, D); no cell is in two of them.

    Cells that are beyond doubt, as those of which a person said that they are right, are in none.
    """
    table, by_row = table.without_suspects, dict[int, dict[tuple[int, ...], Contradiction]]()
    for relation in relations:
        if isinstance(relation, Arithmetic | Dependency) and set(relation.columns) <= set(table.names):
            for each in _broken(relation, table, suspicion):
                of_row = by_row.setdefault(each.row, {})
                twin = of_row.get(each.places, each)  # they tend to be broken together, so the surer one counts
                said = each.said if twin is each else (*twin.said, *each.said)
                of_row[each.places] = replace(max(twin, each, key=lambda one: one.probability), said=said)
    return [each for row in sorted(by_row) for each in _apart(by_row[row].values())]


def _broken(relation: Arithmetic | Dependency, table: ReadTable, suspicion: Floats) -> Iterable[Contradiction]:
    """Of the rows that break a relation; only one of their cells is wrong, so that their suspicions add up."""
    breaks, columns = relation.breaks(table), sorted(table.names.index(name) for name in relation.columns)
    doubts = suspicion[breaks.rows][:, columns]  # (n, columns)
    chances = np.maximum(breaks.chances, doubts.sum(axis=1)).clip(max=SUREST)
    probable = (chances >= LEAST_FLAGGED) & ((doubts > 0).sum(axis=1) > 1)  # or the row is an exception
    for at in np.flatnonzero(probable).tolist():
        row, own = int(breaks.rows[at]), {place: d for place, d in zip(columns, doubts[at].tolist(), strict=True) if d}
        names = tuple(table.names[place] for place in own)
        said = (breaks.say(row),)
        yield Contradiction(row, tuple(own), tuple(own.values()), float(chances[at]), relation.kind, said, names)


def _apart(contradictions: Iterable[Contradiction]) -> list[Contradiction]:
    """Of those of one row the surest, of equal ones the smallest, that have no cell in common; those that a suspicious
    cell explains come last."""
    chosen: list[Contradiction] = []
    open_first = sorted(
        contradictions,
        key=lambda each: (max(each.suspicions) >= LEAST_FLAGGED, -each.probability, len(each.places), each.places),
    )
    for each in open_first:
        if not any(set(each.places) & set(other.places) for other in chosen):
            chosen.append(each)
    return chosen
