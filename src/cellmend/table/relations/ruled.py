"""The rules of a table, and the rows that break each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cellmend.table.causes.named import RULE
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.base import Relation
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.keys import Key
from cellmend.table.relations.stated import Stated
from cellmend.table.relations.sure import without_sure


@dataclass(frozen=True)
class Ruled:
    """A rule, and the rows that break it, in order."""

    rule: str
    columns: tuple[str, ...]
    rows: tuple[int, ...]
    sure: bool = False  # does a person say so?
    say: Callable[[int], str] | None = None  # what contradicts what in a row that breaks it, if that can be told


@np.errstate(all="ignore")  # the largest numbers overflow and then agree with nothing
def ruled_rows(relations: Sequence[Relation], sure: Sequence[Stated], table: ReadTable) -> list[Ruled]:
    """The rules that a person calls sure, and the relations that a table shows, each with the rows that break it."""
    by_rule: dict[str, set[int]] = {each.words(): set() for each in sure}
    for violation in (each for each in table.violations if each.cause == RULE):
        by_rule[violation.rule] |= {row for row, _ in violation.cells}
    own = [Ruled(e.words(), e.columns, tuple(sorted(by_rule[e.words()])), sure=True) for e in sure]
    shown = [each for each in without_sure(relations, by_rule) if set(each.columns) <= set(table.names)]
    shown = [each for each in shown if not isinstance(each, Key) or each.is_rule]
    return own + [_shown(each, table) for each in shown]


def _shown(relation: Relation, table: ReadTable) -> Ruled:
    """A relation, and the rows that break it as they stand, misspelled or not."""
    as_it_stands, columns = replace(table, suspects=()), tuple(relation.columns)
    if isinstance(relation, Arithmetic | Dependency):
        breaks = relation.breaks(as_it_stands)
        return Ruled(relation.words(), columns, tuple(breaks.rows.tolist()), say=breaks.say)
    if isinstance(relation, Key):
        rows = {row for copies in relation.copies(as_it_stands) for row in copies.tolist()}
    else:
        places = {table.names.index(name) for name in columns}
        rows = {each.row for each in table.suspects if each.cause == relation.kind and each.column in places}
    return Ruled(relation.words(), columns, tuple(sorted(rows)))
