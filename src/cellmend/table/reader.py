"""TableReader: what a table is like, learned once, and every table like it read in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from cellmend.errors import TableError, did_you_mean
from cellmend.table.checks import Checks, check, learn_checks
from cellmend.table.dates import Dates
from cellmend.table.frames import Frame
from cellmend.table.kinds import infer_schema, resolve_schema
from cellmend.table.notation import (
    Notations,
    learn_notation,
    learn_notations,
    notations_from_json,
    notations_to_json,
    understand,
)
from cellmend.table.numbers import Numbers
from cellmend.table.readtable import ReadTable
from cellmend.table.relations import learn_relations, relate, relations_from_json, relations_to_json
from cellmend.table.relations.base import Relation
from cellmend.table.relations.rules import Rules
from cellmend.table.schema import DATE, IGNORE, Column, Schema, declared_kinds
from cellmend.table.texts import Notation

Given = Schema | Mapping[Any, Any] | None  # what a user says of the columns
GivenRules = Rules | Sequence[Mapping[str, Any]] | None  # and of how they belong together


class Understood(NamedTuple):
    """What the columns of a table are and say."""

    notations: dict[str, Notation]
    table: pa.Table
    schema: Schema


def understand_columns(table: pa.Table, given: Given, *, are_numbers: bool = False) -> Understood:
    """How each column is written, what it says, and of what kind it is; the columns of an array are all numbers.

    >>> understand_columns(pa.table({"size": ["1,5 kg", "2,25 kg", "3 kg"]}), None).schema["size"].kind
    'real'
    """
    notations = {} if are_numbers else learn_notations(table, declared_kinds(given))
    understood = understand(table, notations)
    schema = resolve_schema(understood, given, all_real=are_numbers, dates=_dates(notations))
    return Understood(notations, understood, schema)


def guess_schema(table: pa.Table) -> Schema:
    """The kind of every column, also of a table that nothing can be learned from."""
    notations = learn_notations(table, {})
    return infer_schema(understand(table, notations), _dates(notations))


def _dates(notations: Notations) -> list[str]:
    return [name for name, notation in notations.items() if isinstance(notation, Dates)]


@dataclass(frozen=True)
class TableReader:
    """How to read tables like the one that it was learned from."""

    names: list[str] | None  # of its columns; None for an array
    schema: Schema
    notations: Notations
    checks: Checks
    relations: tuple[Relation, ...] = ()

    @classmethod
    def fit(cls, frame: Frame, given: Given, rules: GivenRules = None) -> tuple[TableReader, ReadTable]:
        """A reader learned from a table, and that table as it reads it; what the user says of columns and relations."""
        if frame.arrow.num_rows < 2:
            raise TableError("A table must have at least 2 rows to learn from; this one has 1 sample.")
        found = understand_columns(frame.arrow, given, are_numbers=frame.is_array)
        table = ReadTable(frame, found.table, found.notations)
        names = None if frame.is_array else frame.arrow.column_names
        checks = learn_checks(table, found.schema)
        checked = check(table, checks)
        learned = learn_relations(checked, found.schema)
        relations = tuple(learned if rules is None else Rules.of(rules).choose(learned))
        return cls(names, found.schema, found.notations, checks, relations), relate(checked, relations)

    def read(self, frame: Frame, *, rows_alone: bool = False) -> ReadTable:
        """A table as this reader understands it.

        With `rows_alone` no row is compared with others, so that the table may be any piece of a larger one.
        """
        if self.names is not None and not frame.is_array:
            check_columns(frame.arrow.column_names, self.names, "The table", in_order=True)
        notations = self._notations_for(frame, rows_alone=rows_alone)
        table = ReadTable(frame, understand(frame.arrow, notations), notations)
        return relate(check(table, self.checks, rows_alone=rows_alone), self.relations, rows_alone=rows_alone)

    def followed_by(self, table: ReadTable) -> TableReader:
        """The reader that also knows what is usual in newer rows."""
        return replace(self, checks=self.checks.followed_by(learn_checks(table, self.schema)))

    def to_json(self) -> dict[str, Any]:
        """As a model file holds it."""
        return {
            "schema": self.schema.to_dict(),
            "readers": notations_to_json(self.notations),
            "checks": self.checks.to_json(),
            "names": self.names,
            "relations": relations_to_json(self.relations),
        }

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> TableReader:
        """The opposite of to_json."""
        schema, checks = Schema.from_dict(entries["schema"]), Checks.from_json(entries["checks"])
        relations = relations_from_json(entries.get("relations", ()))  # models of before have none
        return cls(entries["names"], schema, notations_from_json(entries["readers"]), checks, relations)

    def _notations_for(self, frame: Frame, *, rows_alone: bool) -> dict[str, Notation]:
        """As learned; a column that had a type of its own and comes as text is read as its kind says."""
        notations = dict(self.notations)
        for place, column in enumerate(self.schema):
            had_type = notations.get(column.name) in (None, Dates())
            if had_type and _holds_numbers(column) and not frame.is_array and frame.holds_text(place):
                plainly = rows_alone and column.kind != DATE  # else this piece's way to write numbers would be learned
                found = Numbers() if plainly else learn_notation(frame.arrow.column(place), column.kind)
                notations |= {column.name: found} if found is not None else {}
        return notations


def _holds_numbers(column: Column) -> bool:
    return column.kind not in ("category", IGNORE) and not any(isinstance(level, str) for level in column.levels or ())


def check_columns(own: Sequence[str], names: Sequence[str], table: str, *, in_order: bool = False) -> None:
    """Refuse a table whose columns are not those of the model, each once, in any order or in theirs.

    >>> check_columns(["b", "a"], ["a", "b"], "The batch")
    >>> check_columns(["b", "ages"], ["age", "b"], "The batch")
    Traceback (most recent call last):
    cellmend.errors.TableError: The batch must have the columns of the model; it lacks 'age'. Did you mean 'ages'? \
Hint: fit a model to this table.
    """
    for what, strange, near in (
        ("lacks", [each for each in names if each not in own], own),
        ("also has", [each for each in own if each not in names], names),
        ("has twice", [each for each in own if own.count(each) > 1], ()),
    ):
        if strange:
            raise TableError(
                f"{table} must have the columns of the model; it {what} {strange[0]!r}."
                f"{did_you_mean(strange[0], near)} Hint: fit a model to this table."
            )
    if in_order and list(own) != list(names):
        raise TableError(
            f"{table} must have the columns of the model in their order, {_some(names)}; it has {_some(own)}. "
            "Hint: select them in that order."
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
