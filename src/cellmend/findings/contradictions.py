"""Contradictions: cells of which one is wrong, and nothing tells which.

Where price × quantity is not the total one of the three is wrong; where an order number stands twice, one of the two.
If one of them is suspicious enough to be flagged, it explains the contradiction. If not, the finding is the
contradiction itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cellmend.model.violations import SUREST
from cellmend.settings import LEAST_FLAGGED, Spans
from cellmend.table.readtable import SURE, ReadTable
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.base import Relation
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.values import Floats

Cell = tuple[int, int]  # row, and place of the column in the table


@dataclass(frozen=True)
class Contradiction:
    """Cells that together break a relation or a rule, mostly of one row."""

    cells: tuple[Cell, ...]  # in the order of rows and columns
    suspicions: tuple[float, ...]  # of each cell by itself
    probability: float  # that one of them is wrong
    cause: str  # the kind of relation
    said: tuple[str, ...]  # what contradicts what; several if relations of the same cells are broken
    names: tuple[str, ...]  # of the column of each cell

    @property
    def row(self) -> int:
        """The first one."""
        return self.cells[0][0]

    @property
    def rows(self) -> int:
        """How many it lies in."""
        return len({row for row, _ in self.cells})

    def flagged_from(self, least: float) -> bool:
        """Is it probable enough, while none of its cells is suspicious enough to explain it? Of several rows all are
        named unless the others are hardly suspicious beside it."""
        worst = max(self.suspicions)
        explained = worst >= least and (self.rows == 1 or worst >= SURE * sum(self.suspicions))
        return self.probability >= least and not explained

    @property
    def reason(self) -> str:
        """In one sentence, for all of its cells."""
        rows, names = self.rows, [*dict.fromkeys(self.names)]
        which = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
        which = f"these {len(self.cells)} cells of {rows} rows" if rows > 1 else which
        sure = "" if self.probability >= SUREST else f" ({100 * self.probability:.0f} %)"
        one = "One of " if len(self.cells) > 1 else "So "
        return f"{'; '.join(self.said)}. {one}{which} is wrong{sure}"


def spans_of(contradictions: Sequence[Contradiction]) -> Spans:
    """From which suspicion on each is flagged, and from which on one of its cells is."""
    both = [(each.probability, max(each.suspicions)) for each in contradictions]
    together, explained = np.array(both, dtype=np.float64).reshape(-1, 2).T
    return together, explained


@np.errstate(all="ignore")  # the largest numbers overflow and then agree with nothing
def find_contradictions(relations: Iterable[Relation], table: ReadTable, suspicion: Floats) -> list[Contradiction]:
    """The contradictions in a table, from the suspicion of its cells, (N, D); no cell is in two of them.

    Cells that are beyond doubt, as those of which a person said that they are right, are in none. Rules that are sure
    are asked first.
    """
    of_rules = _joined(_found(_of_rules(table), table, suspicion))
    table, found = table.without_suspects, dict[tuple[Cell, ...], Contradiction]()
    known = [each for each in relations if set(each.columns) <= set(table.names)]
    clashes = (clash for relation in known for clash in _of_relation(relation, table, suspicion))
    for each in _found(clashes, table, suspicion):
        twin = found.get(each.cells, each)  # they tend to be broken together, so the surer one counts
        said = each.said if twin is each else (*twin.said, *each.said)
        found[each.cells] = replace(max(twin, each, key=lambda one: one.probability), said=said)
    return _apart([*of_rules, *found.values()])


class Clash(NamedTuple):
    """Cells that break something, and how probably one of them is wrong."""

    cells: tuple[Cell, ...]
    chance: float
    cause: str
    said: str


def _found(clashes: Iterable[Clash], table: ReadTable, suspicion: Floats) -> Iterator[Contradiction]:
    """Clashes as contradictions of the cells that are not beyond doubt."""
    for clash in clashes:
        cells = tuple(cell for cell in sorted(clash.cells) if suspicion[cell] > 0)
        if cells:
            doubts = tuple(float(suspicion[cell]) for cell in cells)
            names = tuple(table.names[place] for _, place in cells)
            yield Contradiction(cells, doubts, clash.chance, clash.cause, (clash.said,), names)


def _of_rules(table: ReadTable) -> Iterator[Clash]:
    """Of rules that are sure and of keys; a cell that breaks a rule alone is flagged by itself."""
    several = (each for each in table.violations if len(each.cells) > 1)
    return (Clash(each.cells, min(each.chance, SUREST), each.cause, each.reason) for each in several)


def _of_relation(relation: Relation, table: ReadTable, suspicion: Floats) -> Iterator[Clash]:
    """Of what breaks a relation; only one of the cells is wrong, so that their suspicions add up."""
    if isinstance(relation, Arithmetic | Dependency):
        breaks, columns = relation.breaks(table), sorted(table.names.index(name) for name in relation.columns)
        doubts = suspicion[breaks.rows][:, columns]  # (n, columns)
        chances = np.maximum(breaks.chances, doubts.sum(axis=1)).clip(max=SUREST)
        probable = (chances >= LEAST_FLAGGED) & ((doubts > 0).sum(axis=1) > 1)  # or the row is an exception
        for row, chance in zip(breaks.rows[probable].tolist(), chances[probable].tolist(), strict=True):
            yield Clash(tuple((row, place) for place in columns), chance, relation.kind, breaks.say(row))


def _joined(contradictions: Iterable[Contradiction]) -> list[Contradiction]:
    """Those of sure rules that have a cell in common as one, so that none is lost, unless a cell surely explains it."""
    found, of_cell = list[Contradiction | None](), dict[Cell, int]()
    for each in contradictions:
        one = each
        if max(each.suspicions) < SURE:
            for at in {of_cell[cell] for cell in each.cells if cell in of_cell}:
                other, found[at] = found[at], None
                one = one if other is None else _union(other, one)
            of_cell.update(dict.fromkeys(one.cells, len(found)))
        found.append(one)
    return [each for each in found if each is not None]


def _union(one: Contradiction, other: Contradiction) -> Contradiction:
    own = {
        cell: rest for each in (one, other) for cell, *rest in zip(each.cells, each.suspicions, each.names, strict=True)
    }
    cells = tuple(sorted(own))
    suspicions, names = zip(*(own[cell] for cell in cells), strict=True)
    said = tuple(dict.fromkeys([*one.said, *other.said]))
    return replace(one, cells=cells, suspicions=suspicions, names=names, said=said)


def _apart(contradictions: Iterable[Contradiction]) -> list[Contradiction]:
    """The surest, of equal ones the smallest, that have no cell in common, in the order of their rows; those that a
    suspicious cell explains come last."""
    chosen, taken = list[Contradiction](), set[Cell]()
    open_first = sorted(
        contradictions,
        key=lambda each: (max(each.suspicions) >= LEAST_FLAGGED, -each.probability, len(each.cells), each.cells),
    )
    for each in open_first:
        if taken.isdisjoint(each.cells):
            chosen.append(each)
            taken.update(each.cells)
    return sorted(chosen, key=lambda each: each.row)
