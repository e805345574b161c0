"""Relations that a person calls sure, as rules that every row keeps."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from cellmend.table.causes.named import RULE
from cellmend.table.readtable import ReadTable, Suspect, Violation
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.base import Relation
from cellmend.table.relations.constant import Constant
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.formulas import ORDER
from cellmend.table.relations.keys import Key
from cellmend.table.relations.stated import Compares, Decides, Stated, Unique


@dataclass(frozen=True)
class KeptFormula:
    """A formula that has no exceptions."""

    relation: Arithmetic
    by_row: ClassVar[bool] = True

    @property
    def columns(self) -> tuple[str, ...]:
        return self.relation.columns

    def words(self) -> str:
        return self.relation.words()

    def violations(self, table: ReadTable) -> list[Violation]:
        breaks, places = self.relation.breaks(table, 1.0), [table.names.index(name) for name in self.columns]
        return [
            Violation(self.words(), tuple((row, place) for place in places), breaks.say(row))
            for row in breaks.rows.tolist()
        ]


@dataclass(frozen=True)
class KeptOrder:
    """What rows around a cell, or other sources, say, without exceptions: each of the cells they speak against."""

    relation: Any  # Series or Sources
    by_row: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.relation.columns)

    def words(self) -> str:
        return str(self.relation.words())

    def violations(self, table: ReadTable) -> list[Violation]:
        found = self.relation.suspects(table)
        return [Violation(self.words(), ((s.row, s.column),), s.reason, next(iter(s.meant), None)) for s in found]


def kept_by_all(relation: Relation) -> Stated:
    """The rule that every row keeps if a relation is sure."""
    if isinstance(relation, Dependency):
        return Decides(relation.determinants, relation.dependent)
    if isinstance(relation, Key):
        return Unique(relation.columns)
    if isinstance(relation, Constant):
        return Compares(relation.column, "=", relation.written, with_column=False)
    if isinstance(relation, Arithmetic) and relation.formula.form == ORDER:
        return Compares(relation.formula.result, ">=", relation.formula.parts[0], with_column=True)
    return KeptFormula(relation) if isinstance(relation, Arithmetic) else KeptOrder(relation)


def without_sure(relations: Iterable[Relation], sure: Container[str]) -> list[Relation]:
    """The relations that are none of these rules, in plain words."""
    return [each for each in relations if kept_by_all(each).words() not in sure]


def violations_of(rules: Iterable[Stated], table: ReadTable, *, rows_alone: bool) -> tuple[Violation, ...]:
    """The cells that break rules; with `rows_alone` those that a row shows by itself, and never others."""
    asked = (rule for rule in rules if rule.by_row or not rows_alone)
    return tuple(each for rule in asked for each in rule.violations(table))


def suspects_of(violations: Iterable[Violation]) -> list[Suspect]:
    """The cells of violations as suspects, each as probably wrong as the others of its violation."""
    return [
        Suspect(row, place, 1 / len(each.cells), _meant(each, (row, place)), each.reason, RULE)
        for each in violations
        if each.cause == RULE
        for row, place in each.cells
    ]


def _meant(violation: Violation, cell: tuple[int, int]) -> tuple[str, ...]:
    return (violation.meant,) if violation.meant is not None and cell == violation.cells[-1] else ()
