"""What columns and rows have to do with each other, learned once from all rows and applied to any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cellmend.table.packing import pack, unpack
from cellmend.table.readtable import DOUBTFUL, ReadTable, Suspect
from cellmend.table.relations.arithmetic import Arithmetic, arithmetic_suspects, learn_arithmetic, vouched_cells
from cellmend.table.relations.base import Relation
from cellmend.table.relations.coding import code_column
from cellmend.table.relations.constant import Constant, learn_constants
from cellmend.table.relations.dependencies import Dependency, dependency_suspects
from cellmend.table.relations.discovery import learn_dependencies
from cellmend.table.relations.keys import Key, learn_keys
from cellmend.table.relations.sequences import Series, learn_sequences
from cellmend.table.relations.sources import Sources, learn_sources
from cellmend.table.relations.stated import Stated
from cellmend.table.relations.sure import suspects_of, violations_of, without_sure
from cellmend.table.schema import IGNORE, Schema

SORTS: tuple[type[Any], ...] = (Arithmetic, Constant, Dependency, Key, Series, Sources)
RELATIONS: dict[str, type[Relation]] = {each.kind: each for each in SORTS}


@np.errstate(all="ignore")  # the largest numbers overflow and then agree with nothing
def learn_relations(table: ReadTable, schema: Schema) -> list[Relation]:
    """All relations that a table, with the suspects of its columns, shows."""
    table = table.without_suspects
    told = [column.name for column in schema if column.kind != IGNORE or column.reason]
    plain = [name for name in told if table.family_of(name) != "other"]
    coded = [code_column(table, name) for name in plain]
    coded = [column for column in coded if len(column.values) > 1]
    of_values: list[Relation] = [*learn_keys(coded, table), *learn_sources(coded), *learn_dependencies(coded, table)]
    of_numbers: list[Relation] = [*learn_constants(coded, table), *learn_arithmetic(table, schema)]
    return [*of_values, *of_numbers, *learn_sequences(table, schema)]


@np.errstate(all="ignore")
def relate(
    table: ReadTable, relations: Sequence[Relation], sure: Sequence[Stated] = (), *, rows_alone: bool = False
) -> ReadTable:
    """The table with the cells that break a relation among its suspects, and with those that break a rule that every
    row keeps.

    With `rows_alone` sequences keep silent: they compare a row with its neighbours, which may lie in another piece; so
    do rules that compare rows.
    """
    violations = violations_of(sure, table, rows_alone=rows_alone)
    whole, table = table, table.without_suspects
    relations = [each for each in relations if set(each.columns) <= set(table.names)]  # an array has no names
    dependencies = [each for each in relations if isinstance(each, Dependency)]  # which are weighed together
    formulas = [each for each in relations if isinstance(each, Arithmetic)]  # likewise
    found = [*dependency_suspects(dependencies, table), *arithmetic_suspects(formulas, table)]
    for relation in without_sure(relations, {each.words() for each in sure}) if not rows_alone else ():
        violations += tuple(relation.violations(table)) if isinstance(relation, Key) else ()
    for relation in relations:
        if isinstance(relation, Constant | Key | Sources) or (isinstance(relation, Series) and not rows_alone):
            found += relation.suspects(table)
    suspected = whole.with_suspects([*_without_twins(found, table), *suspects_of(violations)])
    return replace(suspected, violations=violations, vouched=vouched_cells(formulas, table))


def _without_twins(found: Sequence[Suspect], table: ReadTable) -> list[Suspect]:
    """Suspects but for cells of a key whose twin is known to be the wrong one, by the order of rows."""
    by_order = [each for each in found if each.cause == Series.kind]
    named = {(each.row, each.column) for each in by_order}
    known = {(each.column, table.cell(each.row, each.column)) for each in by_order if each.suspicion >= DOUBTFUL}
    return [
        each
        for each in found
        if each.cause != Key.kind
        or (each.row, each.column) in named
        or (each.column, table.cell(each.row, each.column)) not in known
    ]


def relations_to_json(relations: Sequence[Relation]) -> list[dict[str, Any]]:
    """Relations as JSON holds them."""
    return [{"kind": relation.kind, **pack(relation)} for relation in relations]


def relations_from_json(entries: Sequence[Mapping[str, Any]]) -> tuple[Relation, ...]:
    """The opposite of relations_to_json."""
    return tuple(unpack(RELATIONS[entry["kind"]], entry) for entry in entries if entry["kind"] in RELATIONS)
