"""What columns and rows have to do with each other, learned once from all rows and applied to any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cellmend.table.readtable import ReadTable
from cellmend.table.relations.base import Relation
from cellmend.table.relations.coding import code_column
from cellmend.table.relations.dependencies import Dependency, dependency_suspects
from cellmend.table.relations.discovery import learn_dependencies
from cellmend.table.relations.keys import Key, learn_keys
from cellmend.table.relations.sources import Sources, learn_sources
from cellmend.table.schema import IGNORE, Schema

RELATIONS: dict[str, type[Relation]] = {"dependency": Dependency, "key": Key, "sources": Sources}  # by kind


def learn_relations(table: ReadTable, schema: Schema) -> list[Relation]:
    """All relations that a table, with the suspects of its columns, shows."""
    coded = [code_column(table, column.name) for column in schema if column.kind != IGNORE or column.reason]
    coded = [column for column in coded if len(column.values) > 1]
    return [*learn_keys(coded, table), *learn_sources(coded), *learn_dependencies(coded, table)]


def relate(table: ReadTable, relations: Sequence[Relation]) -> ReadTable:
    """The table with the cells that break a relation among its suspects."""
    dependencies = [each for each in relations if isinstance(each, Dependency)]  # which are weighed together
    found = dependency_suspects(dependencies, table)
    for relation in relations:
        found += [] if isinstance(relation, Dependency) else relation.suspects(table)
    return table.with_suspects(found)


def relations_to_json(relations: Sequence[Relation]) -> list[dict[str, Any]]:
    """Relations as JSON holds them."""
    return [{"kind": relation.kind, **relation.to_json()} for relation in relations]


def relations_from_json(entries: Sequence[Mapping[str, Any]]) -> tuple[Relation, ...]:
    """The opposite of relations_to_json."""
    return tuple(RELATIONS[entry["kind"]].from_json(entry) for entry in entries)
