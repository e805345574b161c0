"""`cellmend rules`: what a table shows, in words that can be edited, and as checks of other tools and back."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from cellmend.errors import RulesError, SchemaWarning
from cellmend.table.frames import read_frame
from cellmend.table.reader import Given, GivenRules, TableReader
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.keys import Key
from cellmend.table.relations.rules import Rules, read_text
from cellmend.table.relations.stated import Among, Compares, Decides, Matches, Stated, Unique
from cellmend.table.relations.sure import kept_by_all
from cellmend.table.values import as_text

PANDERA = '''\
"""Checks of a table, from the rules that it showed and that were given. A gap keeps every rule."""

import pandera.pandas as pa

schema = pa.DataFrameSchema(
    columns={{{columns}
    }},
    checks=[{checks}
    ],
)
'''
COLUMN = "\n        {!r}: pa.Column(nullable=True),"
CHECK = """
        pa.Check(
            lambda table: table[{columns!r}].isna().any(axis=1) | ({holds}),
            name={name!r},
        ),"""
SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "=", "ne": "!="}  # by their names in pandera
IN_PYTHON = {"=": "=="}
MISSING = {"ignore_row_if": "either_value_is_missing"}
OWN = "cellmend"  # where a suite holds what it has no expectation for


class Shown(NamedTuple):
    """What a table shows, and what a person says of it."""

    reader: TableReader
    table: ReadTable

    @property
    def rules(self) -> list[Stated]:
        """Of these what other tools can check: keys, dependencies, and what every row keeps."""
        shown = [
            kept_by_all(each)
            for each in self.reader.relations
            if isinstance(each, Dependency) or (isinstance(each, Key) and each.is_rule)
        ]
        known = (Among, Compares, Decides, Matches, Unique)
        asked = [*shown, *(each for each in self.reader.kept_by_all if isinstance(each, known))]
        return list({each.words(): each for each in asked}.values())


def learn_rules(table: pa.Table, schema: Given = None, rules: GivenRules = None, decimal: str | None = None) -> Shown:
    """The rules of a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        return Shown(*TableReader.fit(read_frame(table), schema, rules, decimal))


def read_rules(path: Path) -> Rules:
    """Rules from YAML, or from what was exported: a suite of Great Expectations as JSON, or a script for pandera."""
    readers = {".json": from_great_expectations, ".py": from_pandera}
    return readers.get(path.suffix.lower(), Rules.from_yaml)(read_text(path))


def as_yaml(shown: Shown) -> str:
    """The rules, for a person to edit."""
    return Rules.told_by(shown.reader.relations, shown.reader.sure).to_yaml()


# ---------------------------------------------------------------- pandera


def as_pandera(shown: Shown) -> str:
    """A script with a pandera schema."""
    columns = dict.fromkeys(name for rule in shown.rules for name in rule.columns)
    checks = [
        CHECK.format(columns=list(rule.columns), holds=_in_pandas(rule), name=rule.words()) for rule in shown.rules
    ]
    return PANDERA.format(columns="".join(map(COLUMN.format, columns)), checks="".join(checks))


def _in_pandas(rule: Stated) -> str:
    """What keeps a rule, as an expression about a DataFrame."""
    column = f"table[{rule.columns[0]!r}]"
    if isinstance(rule, Matches):
        return f"{column}.astype(str).astype(object).str.contains({rule.pattern!r})"  # with Python's expressions
    if isinstance(rule, Among):
        return f"{column}.isin({[*rule.values, *_numbers(rule.values)]!r})"
    if isinstance(rule, Unique):
        return f"~table.duplicated({list(rule.columns)!r}, keep=False)"
    if isinstance(rule, Decides):
        return f"table.groupby({list(rule.determinants)!r})[{rule.dependent!r}].transform('nunique') <= 1"
    assert isinstance(rule, Compares)  # noqa: S101
    other = f"table[{rule.other!r}]" if rule.with_column else repr(_value(rule.other))
    return f"{column} {IN_PYTHON.get(rule.sign, rule.sign)} {other}"


def from_pandera(script: str) -> Rules:
    """The opposite of as_pandera; the script is read, and never run. Built-in checks of columns are rules too."""
    try:
        tree = ast.parse(script)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RulesError(f"Rules in a .py file must be a script for pandera; this cannot be read ({error}).") from None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [
        keyword.value
        for call in calls
        if _called(call) == "Check"
        for keyword in call.keywords
        if keyword.arg == "name"
    ]
    own = [each.value for each in named if isinstance(each, ast.Constant)]
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Dict)):
        for name, column in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and isinstance(column, ast.Call) and _called(column) == "Column":
                own += _of_column(str(name.value), column)
    return _some([str(each) for each in own], "checks that have a plain rule as their name")


def _called(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _of_column(name: str, column: ast.Call) -> Iterator[str]:
    """The rules of a pandera column: that it is unique, and its built-in checks."""
    if any(each.arg == "unique" and ast.unparse(each.value) == "True" for each in column.keywords):
        yield Unique((name,)).words()
    for call in (node for node in ast.walk(column) if isinstance(node, ast.Call) and node.args):
        try:
            given = ast.literal_eval(call.args[0])
        except (ValueError, TypeError):
            continue
        if _called(call) in SIGNS:
            yield Compares(name, SIGNS[_called(call)], as_text(given), with_column=False).words()
        elif _called(call) == "isin":
            yield Among(name, tuple(dict.fromkeys(map(as_text, given)))).words()
        elif _called(call) in ("str_matches", "str_contains"):
            yield Matches(name, f"^(?:{given})" if _called(call) == "str_matches" else str(given)).words()


# ---------------------------------------------------------------- Great Expectations


def as_great_expectations(shown: Shown) -> str:
    """A suite of Great Expectations as JSON."""
    expected = {rule.words(): _expectation(rule, shown) for rule in shown.rules}
    suite = {
        "name": "cellmend",
        "expectations": [
            {"type": each[0], "kwargs": each[1], "meta": {"notes": words}} for words, each in expected.items() if each
        ],
        "meta": {
            "notes": [each.words() for each in shown.reader.relations],
            OWN: [words for words, each in expected.items() if not each],
        },
    }
    return json.dumps(suite, indent=2, ensure_ascii=False) + "\n"


def _expectation(rule: Stated, shown: Shown) -> tuple[str, dict[str, Any]] | None:
    """The expectation that says a rule, and its arguments; None if there is none."""
    column = {"column": rule.columns[0]}
    if isinstance(rule, Matches):
        return "expect_column_values_to_match_regex", column | {"regex": rule.pattern}
    if isinstance(rule, Among):
        return "expect_column_values_to_be_in_set", column | {"value_set": [*rule.values, *_numbers(rule.values)]}
    if isinstance(rule, Unique):
        if len(rule.columns) == 1:
            return "expect_column_values_to_be_unique", column
        several = {"column_list": list(rule.columns), "ignore_row_if": "any_value_is_missing"}
        return "expect_compound_columns_to_be_unique", several
    if isinstance(rule, Decides):
        return _pairs(rule, shown) if len(rule.determinants) == 1 else None
    assert isinstance(rule, Compares)  # noqa: S101
    return _compared_columns(rule) if rule.with_column else _compared(rule)


def _compared(rule: Compares) -> tuple[str, dict[str, Any]]:
    column, value = {"column": rule.column}, _value(rule.other)
    if rule.sign in ("=", "!="):
        kept = "be_in_set" if rule.sign == "=" else "not_be_in_set"
        return f"expect_column_values_to_{kept}", column | {"value_set": [value]}
    side = "min" if ">" in rule.sign else "max"
    bound = {f"{side}_value": value} | ({f"strict_{side}": True} if len(rule.sign) == 1 else {})
    return "expect_column_values_to_be_between", column | bound


def _compared_columns(rule: Compares) -> tuple[str, dict[str, Any]] | None:
    pair = {"column_A": rule.column, "column_B": rule.other}
    if rule.sign == "=":
        return "expect_column_pair_values_to_be_equal", pair | MISSING
    if rule.sign == "!=":
        return None
    larger = pair if ">" in rule.sign else {"column_A": rule.other, "column_B": rule.column}
    or_equal = {"or_equal": rule.sign.endswith("=")}
    return "expect_column_pair_values_a_to_be_greater_than_b", larger | or_equal | MISSING


def _pairs(rule: Decides, shown: Shown) -> tuple[str, dict[str, Any]]:
    """Which values of two columns go together: those that stand most often, by the relation if the table shows it."""
    pairs = [list(pair) for pair in rule.pairs(shown.table)]
    given, told = rule.columns
    kwargs = {"column_A": given, "column_B": told, "value_pairs_set": pairs} | MISSING
    return "expect_column_pair_values_to_be_in_set", kwargs


def from_great_expectations(text: str) -> Rules:
    """The opposite of as_great_expectations, also of suites that were edited there."""
    try:
        suite = json.loads(text)
        expectations = suite["expectations"]
        own = [
            rule
            for each in expectations
            for rule in _told(each.get("type") or each["expectation_type"], each["kwargs"], each.get("meta") or {})
        ]
        own += [str(each) for each in (suite.get("meta") or {}).get(OWN, ())]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise RulesError(
            "Rules in a .json file must be a suite of Great Expectations, with a list of expectations; this is none."
        ) from None
    return _some(own, "expectations that are plain rules")


def _told(type_: str, kwargs: Mapping[str, Any], meta: Mapping[str, Any]) -> Iterator[str]:
    """What an expectation says, in plain words."""
    name, what = kwargs.get("column", ""), type_.removeprefix("expect_column_").removeprefix("values_to_")
    if what == "match_regex":
        yield Matches(name, kwargs["regex"]).words()
    elif what == "be_unique":
        yield Unique((name,)).words()
    elif type_ == "expect_compound_columns_to_be_unique":
        yield Unique(tuple(kwargs["column_list"])).words()
    elif what == "be_in_set":
        yield Among(name, tuple(dict.fromkeys(map(as_text, kwargs["value_set"])))).words()
    elif what == "not_be_in_set":
        yield from (Compares(name, "!=", as_text(each), with_column=False).words() for each in kwargs["value_set"])
    elif what == "be_between":
        yield from _bounds(name, kwargs)
    elif what == "pair_values_a_to_be_greater_than_b":
        sign = ">=" if kwargs.get("or_equal") else ">"
        yield Compares(kwargs["column_A"], sign, kwargs["column_B"], with_column=True).words()
    elif what == "pair_values_to_be_equal":
        yield Compares(kwargs["column_A"], "=", kwargs["column_B"], with_column=True).words()
    elif meta.get("notes"):
        yield str(meta["notes"])


def _bounds(name: str, kwargs: Mapping[str, Any]) -> Iterator[str]:
    """The ends between which a column lies."""
    for side, sign in (("min", ">"), ("max", "<")):
        if (value := kwargs.get(f"{side}_value")) is not None:
            strict = "" if kwargs.get(f"strict_{side}") else "="
            yield Compares(name, f"{sign}{strict}", as_text(value), with_column=False).words()


# ---------------------------------------------------------------- shared


def _some(own: list[str], what: str) -> Rules:
    if not own:
        raise RulesError(f"A file of rules must have some; this one has no {what}.")
    return Rules(own=tuple(dict.fromkeys(own)))


def _value(text: str) -> float | int | str:
    """What a person wrote as a number, if it is one."""
    for type_ in (int, float):
        try:
            return type_(text)
        except ValueError:
            continue
    return text


def _numbers(values: tuple[str, ...]) -> list[float | int | str]:
    return [number for each in values if not isinstance(number := _value(each), str)]


EXPORTS: dict[str, Callable[[Shown], str]] = {
    "pandera": as_pandera,
    "great-expectations": as_great_expectations,
}
