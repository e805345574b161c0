"""TableReader: what a table is like, learned once, and every table like it read in the same way."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cellmend.errors import SchemaWarning, TableError, did_you_mean
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
from cellmend.table.otherwise import written_otherwise
from cellmend.table.packing import pack
from cellmend.table.readtable import ReadTable
from cellmend.table.relations import learn_relations, relate, relations_from_json, relations_to_json
from cellmend.table.relations.base import Relation
from cellmend.table.relations.rules import Rules, refuse_unfit
from cellmend.table.relations.stated import Stated, parse
from cellmend.table.relations.sure import kept_by_all
from cellmend.table.schema import DATE, IGNORE, Column, Schema, declared_kinds
from cellmend.table.texts import Notation

MOST_COLUMNS = 1000  # that are learned from

Given = Schema | Mapping[Any, Any] | None  # what a user says of the columns
GivenRules = Rules | Mapping[str, Any] | Sequence[Any] | None  # and of how they belong together


class Understood(NamedTuple):
    """What the columns of a table are and say."""

    notations: dict[str, Notation]
    table: pa.Table
    schema: Schema


def understand_columns(
    table: pa.Table, given: Given, *, are_numbers: bool = False, decimal: str | None = None
) -> Understood:
    """How each column is written, what it says, and of what kind it is; the columns of an array are all numbers.

    `decimal` is the mark of all numbers, if the user says it.

    >>> understand_columns(pa.table({"size": ["1,5 kg", "2,25 kg", "3 kg"]}), None).schema["size"].kind
    'real'
    """
    declared = declared_kinds(given)
    _refuse_too_many(table.num_columns - sum(kind == IGNORE for kind in declared.values()))
    notations = {} if are_numbers else learn_notations(table, declared, decimal)
    understood = understand(table, notations)
    schema = resolve_schema(understood, given, all_real=are_numbers, dates=_dates(notations))
    return Understood(notations, understood, schema)


def _refuse_too_many(columns: int) -> None:
    """Stop before hours of work: every cell is judged by all others of its row."""
    if columns > MOST_COLUMNS:
        raise TableError(
            f"A table must have at most {MOST_COLUMNS:,} columns to learn from; this one has {columns:,}. "
            "Hint: select those that belong together, or declare others as ignore in the schema."
        )


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
    sure: tuple[str, ...] = ()  # rules that every row keeps, as a person says, in plain words
    adapted: tuple[str, ...] = ()  # columns that are read in another notation than the one learned

    @classmethod
    def fit(
        cls,
        frame: Frame,
        given: Given,
        rules: GivenRules = None,
        decimal: str | None = None,
        until: float = math.inf,
    ) -> tuple[TableReader, ReadTable]:
        """A reader learned from a table, and that table as it reads it; `given` is what the user says of columns,
        `rules` what of relations, and `decimal` the mark of their numbers. Slips are looked for `until` then, by
        time.perf_counter."""
        if frame.arrow.num_rows < 2:
            one = "1 sample" if frame.is_array else "1 row"  # scikit-learn has its own word
            raise TableError(f"A table must have at least 2 rows to learn from; this one has {one}.")
        found = understand_columns(frame.arrow, given, are_numbers=frame.is_array, decimal=decimal)
        table = ReadTable(frame, found.table, found.notations)
        names = None if frame.is_array else frame.arrow.column_names
        given_rules = Rules() if rules is None else Rules.of(rules)
        refuse_unfit(given_rules, table)
        checks = learn_checks(table, found.schema, until)
        checked = check(table, checks)
        relations = tuple(given_rules.choose(learn_relations(checked, found.schema)))
        sure = given_rules.sure(relations, table.names)
        reader = cls(names, found.schema, found.notations, checks, relations, sure)
        return reader, relate(checked, relations, reader.kept_by_all)

    def read(self, frame: Frame, *, rows_alone: bool = False) -> ReadTable:
        """A table as this reader understands it.

        With `rows_alone` no row is compared with others, so that the table may be any piece of a larger one.
        """
        if self.names is not None and not frame.is_array:
            check_columns(frame.arrow.column_names, self.names, "The table")
            if extra := others(frame.arrow.column_names, self.names):
                warnings.warn(f"{about_others(extra)}.", SchemaWarning, stacklevel=5)
            frame = frame.select(self.names)
        reader, otherwise = (self, {}) if rows_alone or frame.is_array else self.adapted_to(frame.arrow)
        notations = reader._notations_for(frame, rows_alone=rows_alone)
        understood = understand(frame.arrow, notations)
        adapted = frozenset(reader.adapted)
        table = ReadTable(frame, understood, notations, otherwise=otherwise, adapted=adapted, rows_alone=rows_alone)
        checked = check(table, reader.checks, rows_alone=rows_alone)
        return relate(checked, self.relations, self.kept_by_all, rows_alone=rows_alone)

    @cached_property
    def kept_by_all(self) -> tuple[Stated, ...]:
        """The rules that every row keeps, as a person says."""
        kept, columns = map(kept_by_all, self.relations), [column.name for column in self.schema]
        shown = {each.words(): each for each in kept}
        return tuple(shown[each] if each in shown else parse(each, columns) for each in self.sure)

    def adapted_to(self, table: pa.Table) -> tuple[TableReader, dict[str, str]]:
        """Adapt the reader to the notation of a table; return it, and a sentence about each changed column."""
        found = written_otherwise(table, self.notations)
        reader = self.with_notations({name: each.notation for name, each in found.items()})
        return reader, {name: each.sentence for name, each in found.items()}

    @property
    def identifiers(self) -> list[str]:
        """Columns that were left out because they name the rows."""
        return [
            column.name for column in self.schema if column.kind == IGNORE and column.reason.startswith("identifier")
        ]

    def with_notations(self, notations: Notations) -> TableReader:
        """The reader of columns that are written so; texts that it knows of them tell nothing."""
        if not notations:
            return self
        known, adapted = {**self.notations, **notations}, (*self.adapted, *notations)
        return replace(self, notations=known, checks=self.checks.without(notations), adapted=adapted)

    def followed_by(self, table: ReadTable) -> TableReader:
        """The reader that also knows what is usual in newer rows."""
        return replace(self, checks=self.checks.followed_by(learn_checks(table, self.schema)))

    def to_json(self) -> dict[str, Any]:
        """As a model file holds it."""
        return {
            "schema": self.schema.to_dict(),
            "readers": notations_to_json(self.notations),
            "checks": pack(self.checks),
            "names": self.names,
            "relations": relations_to_json(self.relations),
            "sure": list(self.sure),
        }

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> TableReader:
        """The opposite of to_json."""
        schema, checks = Schema.from_dict(entries["schema"]), Checks.from_json(entries["checks"])
        relations = relations_from_json(entries.get("relations", ()))  # models of before have none
        notations, sure = notations_from_json(entries["readers"]), tuple(entries.get("sure", ()))
        return cls(entries["names"], schema, notations, checks, relations, sure)

    def _notations_for(self, frame: Frame, *, rows_alone: bool) -> dict[str, Notation]:
        """As learned; a column that had a type of its own and comes as text is read as its kind says."""
        notations = dict(self.notations)
        for place, column in enumerate(self.schema):
            had_type = notations.get(column.name) in (None, Dates())
            if had_type and _holds_numbers(column) and not frame.is_array and frame.holds_text(place):
                plainly = rows_alone and column.kind != DATE  # else this piece's way to write numbers would be learned
                found = Numbers() if plainly else learn_notation(frame.arrow.column(place), column.kind)
                notations |= {column.name: found} if found is not None else {}
            elif column.name not in notations and not frame.is_array and _holds_infinity(frame.arrow.column(place)):
                notations[column.name] = Numbers()
        return notations


def _holds_infinity(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_inf(values)).as_py())


def _holds_numbers(column: Column) -> bool:
    return column.kind not in ("category", IGNORE) and not any(isinstance(level, str) for level in column.levels or ())


def others(own: Sequence[str], names: Sequence[str]) -> list[str]:
    """Columns of a table that a model does not know."""
    return [each for each in own if each not in set(names)]


def about_others(extra: Sequence[str]) -> str:
    """What becomes of columns that the model does not know.

    >>> about_others(["note"])
    'Not known to the model and left as it is: note'
    """
    some = ", ".join(extra[:5]) + (", ..." if len(extra) > 5 else "")
    return f"Not known to the model and left as {'it is' if len(extra) == 1 else 'they are'}: {some}"


def check_columns(own: Sequence[str], names: Sequence[str], table: str, *, only: bool = False) -> None:
    """Refuse a table that has not the columns of the model, each once, in any order; or that has others, if `only`.

    >>> check_columns(["b", "a", "more"], ["a", "b"], "The batch")
    >>> check_columns(["b", "ages"], ["age", "b"], "The batch")
    Traceback (most recent call last):
    cellmend.errors.TableError: The batch must have the columns of the model; it lacks 'age'. Did you mean 'ages'? \
Hint: fit a model to this table.
    """
    for what, strange, near in (
        ("lacks", [each for each in names if each not in own], own),
        ("also has", others(own, names) if only else [], names),
        ("has twice", [each for each in own if own.count(each) > 1], ()),
    ):
        if strange:
            raise TableError(
                f"{table} must have the columns of the model; it {what} {strange[0]!r}."
                f"{did_you_mean(strange[0], near)} Hint: fit a model to this table."
            )
