"""`cellmend rules`: what a table shows, in words that can be edited, and as checks for other tools."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from cellmend.errors import SchemaWarning
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from cellmend.table.relations.base import Relation
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.keys import Key
from cellmend.table.relations.rules import Rules

PANDERA = '''\
"""Checks of a table, from the rules that it showed."""

import pandera.pandas as pa

schema = pa.DataFrameSchema(
    columns={{{columns}
    }},
    checks=[{checks}
    ],
)
'''
UNIQUE = "\n        {column!r}: pa.Column(unique=True),"
DECIDES = """
        pa.Check(
            lambda table: table.groupby({given!r})[{column!r}].transform("nunique") <= 1,
            name={name!r},
        ),"""


def find_relations(table: pa.Table) -> tuple[Relation, ...]:
    """The relations that a table shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        return TableReader.fit(read_frame(table), None)[0].relations


def as_yaml(relations: Sequence[Relation]) -> str:
    """The rules, for a person to edit."""
    return Rules.told_by(relations).to_yaml()


def as_pandera(relations: Sequence[Relation]) -> str:
    """A script with a pandera schema that checks keys and dependencies."""
    keys = [UNIQUE.format(column=each.column) for each in relations if isinstance(each, Key)]
    checks = [
        DECIDES.format(given=list(each.determinants), column=each.dependent, name=each.words())
        for each in relations
        if isinstance(each, Dependency)
    ]
    return PANDERA.format(columns="".join(keys), checks="".join(checks))


def as_great_expectations(relations: Sequence[Relation]) -> str:
    """A suite of Great Expectations as JSON, that checks keys and which values of two columns go together."""
    expected = [_expectation(each) for each in relations]
    suite = {
        "name": "cellmend",
        "expectations": [each for each in expected if each is not None],
        "meta": {"notes": [each.words() for each in relations]},
    }
    return json.dumps(suite, indent=2, ensure_ascii=False) + "\n"


def _expectation(relation: Relation) -> dict[str, Any] | None:
    if isinstance(relation, Key):
        return {"type": "expect_column_values_to_be_unique", "kwargs": {"column": relation.column}}
    if not isinstance(relation, Dependency) or len(relation.determinants) != 1:
        return None
    together = [
        [relation.known[0][given], relation.values[says]]
        for given, says in zip(relation.groups[:, 0].tolist(), relation.top.tolist(), strict=True)
    ]
    given, told = relation.columns
    return {
        "type": "expect_column_pair_values_to_be_in_set",
        "kwargs": {
            "column_A": given,
            "column_B": told,
            "value_pairs_set": together,
            "ignore_row_if": "either_value_is_missing",
        },
        "meta": {"notes": relation.words()},
    }


EXPORTS: dict[str, Callable[[Sequence[Relation]], str]] = {
    "pandera": as_pandera,
    "great-expectations": as_great_expectations,
}
