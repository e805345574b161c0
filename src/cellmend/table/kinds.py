"""What kind of values each column holds, guessed from its type and values, or as the user says."""

from __future__ import annotations

import re
import warnings
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.errors import SchemaError, SchemaWarning, did_you_mean
from cellmend.table.priors import ALIKE, BUT_FOR_ERRORS, BY_FAR, ENOUGH, MOSTLY, RARE
from cellmend.table.schema import DATE, IGNORE, Column, Schema
from cellmend.table.values import LARGEST_EXACT_WHOLE, Ints, family, plain, readable

# The rules of inference, in one place; docs/schema.md says them in words.
FEW_VALUES = 20  # whole numbers with at most this many distinct values are codes or levels
LARGEST_COUNT = 100
COUNT_DISPERSION = (1 / 3, 2.0)  # variance / mean of a count; 1 for a Poisson
FEW_TEXT_LEVELS = 10  # ... unless it has no more than this many
IDENTIFIER_NAME = re.compile(r"(^|[_\s-])(id|uuid|guid)$", re.IGNORECASE)
FEWEST_DIGITS = 5  # of codes such as zip codes, all of one length
MOST_IDENTIFIERS = 0.98  # of the values must be different, or look like one: a few may be mistakes
_CODE_WORDS = frozenset({"fips", "zip", "zips", "zipcode", "zipcodes", "postcode", "postal", "plz", "geoid"})
_CODE_ENDS = frozenset({"id", "ids", "uuid", "guid", "cd", "code", "codes", *_CODE_WORDS})
_GLUED = re.compile(r"^fips|(code|fips|geoid|objectid|userid|orderid|customerid|productid|unitid|uniqueid)$")
# A column of them holds how many codes there are, or what belongs to one.
_COUNTED = frozenset({"count", "counts", "number", "num", "total", "sum", "percent", "pct", "rate", "ratio", "avg",
                      "average", "mean", "per", "of", "by", "length", "size", "rank", "score"})  # fmt: skip
_DIGITS_SPELLED = frozenset({"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"})
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def resolve_schema(
    table: pa.Table, given: Schema | Mapping[Any, Any] | None, *, all_real: bool = False, dates: Container[str] = ()
) -> Schema:
    """The schema to fit with: inferred from the table, overruled by what the user gave.

    With `all_real`, as for arrays, every column of numbers is real; those in `dates` hold days. Columns that inference
    leaves out are named in a SchemaWarning.

    >>> resolve_schema(pa.table({"x": [0.5, 1.5, 2.5]}), {"x": "category"})["x"].kind
    'category'
    """
    asked = {column.name: column for column in Schema.of(given or {})}
    unknown = [name for name in asked if name not in table.column_names]
    if unknown:
        raise SchemaError(
            f"The schema names column {unknown[0]!r}, which the table does not have."
            f"{did_you_mean(unknown[0], table.column_names)}"
        )
    schema = Schema(
        tuple(
            asked[name] if name in asked else infer_column(name, values, all_real=all_real, is_date=name in dates)
            for name, values in zip(table.column_names, table.columns, strict=True)
        )
    )
    left_out = [c for c in schema if c.kind == IGNORE and c.name not in asked]
    if left_out:
        listed = "; ".join(f"{c.name!r} ({c.reason})" for c in left_out)
        warnings.warn(f"Left out of the model: {listed}.", SchemaWarning, stacklevel=3)
    if not any(_is_judged(column, values) for column, values in zip(schema, table.columns, strict=True)):
        raise SchemaError(
            "At least one column must hold texts, numbers or categories to judge; every column is empty, of another "
            "type or declared as ignore. Hint: declare kinds with schema={'column': 'category'}."
        )
    return schema


def _is_judged(column: Column, values: pa.ChunkedArray) -> bool:
    """Is there anything to say of its cells, by the network or by their texts alone?"""
    if column.kind != IGNORE:
        return True
    return bool(column.reason) and family(values.type) != "other" and len(readable(values)) > 0


def refuse_unmodelled(schema: Schema) -> None:
    """Stop if no column can be modelled: a network alone has nothing to learn from then.

    >>> refuse_unmodelled(Schema((Column("note", IGNORE, reason="free text"),)))
    Traceback (most recent call last):
    cellmend.errors.SchemaError: At least one column must vary and hold numbers or categories; every column is \
left out. Hint: declare kinds with schema={'column': 'category'}.
    """
    if all(column.kind == IGNORE for column in schema):
        raise SchemaError(
            "At least one column must vary and hold numbers or categories; every column is "
            "left out. Hint: declare kinds with schema={'column': 'category'}."
        )


def infer_schema(table: pa.Table, dates: Container[str] = ()) -> Schema:
    """The kind of every column, from its type and values; those in `dates` hold days.

    >>> print(infer_schema(pa.table({"smoker": [True, False, True], "bmi": [21.5, 30.1, 24.9]})))
    smoker: category
    bmi: real
    """
    columns = zip(table.column_names, table.columns, strict=True)
    return Schema(tuple(infer_column(name, values, is_date=name in dates) for name, values in columns))


def infer_column(name: str, values: pa.ChunkedArray, *, all_real: bool = False, is_date: bool = False) -> Column:
    """The kind of one column; the first rule that holds decides."""
    observed = readable(values)
    kind_of_values = family(values.type)
    if len(observed) == 0:
        return Column(name, IGNORE, reason="all its cells are missing")
    if kind_of_values == "other":
        return Column(name, IGNORE, reason=f"values of type {values.type} are not modelled")
    distinct = pc.unique(plain(observed))
    if len(distinct) == 1:
        return Column(name, IGNORE, reason=f"constant: always {distinct[0].as_py()!r}")
    if all_real or is_date:
        return Column(name, "real" if all_real else DATE)
    if pa.types.is_dictionary(values.type) and values.type.ordered:
        return Column(name, "ordinal", levels=tuple(values.combine_chunks().dictionary.to_pylist()))
    if kind_of_values == "boolean":
        return Column(name, "category")
    if kind_of_values == "text" or pa.types.is_dictionary(values.type):
        return _infer_text(name, len(distinct), len(observed))
    if _are_whole(distinct):
        return _infer_whole(name, plain(observed), distinct)
    return Column(name, "real")


def _infer_text(name: str, distinct: int, rows: int) -> Column:
    if distinct > max(FEW_TEXT_LEVELS, MOSTLY * rows):
        return Column(name, IGNORE, reason=f"identifier or free text: {distinct} different values")
    return Column(name, "category")


def names_a_code(name: str) -> bool:
    """Does the name of a column say that its numbers are codes: of places, of the post, of things in another table?

    >>> [names_a_code(name) for name in ("stateFIPS", "zip_code", "GEOID10", "order_id", "agency cd")]
    [True, True, True, True, True]
    >>> [names_a_code(name) for name in ("paid", "lines_of_code", "zip_count", "cd4", "width")]
    [False, False, False, False, False]
    """
    parts = [part.lower() for part in _NAME_PARTS.findall(name)]
    if not parts or _COUNTED.intersection(parts):
        return False
    parts = [part for part in parts if part not in _DIGITS_SPELLED]
    if not parts or (len(parts) == 1 and parts[0] == "cd"):  # CD4 is a cell of the blood
        return False
    return parts[-1] in _CODE_ENDS or any(part in _CODE_WORDS or _GLUED.search(part) for part in parts)


def are_codes(written: Sequence[str], counts: Ints) -> bool:
    """Are whole numbers, as written, codes? They have five digits or more, all as many, and stand in many cells each.

    Prices and incomes come in many lengths, or are rounded and end in zeros.

    >>> are_codes(["35233", "36049"], np.array([30, 20])), are_codes(["35000", "36000"], np.array([30, 20]))
    (True, False)
    """
    if len(written) < 2 or ALIKE * len(written) > counts.sum():
        return False
    lengths = np.array([len(number) if number.isdecimal() else 0 for number in written])
    usual = np.bincount(lengths, weights=counts).argmax()
    of_usual = lengths == usual
    rounded = np.mean([number.endswith("00") for number, own in zip(written, of_usual, strict=True) if own])
    return bool(usual >= FEWEST_DIGITS and counts[of_usual].sum() >= BUT_FOR_ERRORS * counts.sum() and rounded < BY_FAR)


def _infer_whole(name: str, observed: pa.ChunkedArray, distinct: pa.Array) -> Column:
    low, high = (float(bound) for bound in pc.min_max(observed).as_py().values())
    if pc.approximate_median(pc.abs(observed.cast(pa.float64(), safe=False))).as_py() > LARGEST_EXACT_WHOLE:
        return Column(name, IGNORE, reason="whole numbers beyond 2**53 are labels, not quantities")
    if _is_identifier(name, observed, distinct, span=high - low + 1):
        return Column(name, IGNORE, reason="identifier: a different whole number in every row")
    if len(distinct) == 2:
        return Column(name, "category")
    if ALIKE * len(distinct) <= len(observed) and _are_whole_codes(observed):
        return Column(name, "category")
    if len(observed) >= ENOUGH and names_a_code(name) and _are_positive(observed):
        return _infer_text(name, len(distinct), len(observed))
    if _is_count(observed, low, high):
        return Column(name, "count")
    if len(distinct) <= min(FEW_VALUES, len(observed) / ALIKE):
        levels = tuple(int(level) for level in sorted(distinct.to_pylist()))
        if high - low + 1 == len(distinct):
            return Column(name, "ordinal", levels=levels)
        return Column(name, "real" if _has_strays(observed) else "category")
    return Column(name, "real")


def _has_strays(observed: pa.ChunkedArray) -> bool:
    """Are there gaps only because of a few cells, such as 22 and 33 among ratings from 1 to 10?"""
    found = pc.value_counts(observed)
    usual = found.field("values").filter(pc.greater_equal(found.field("counts"), RARE * len(observed)))
    span = pc.subtract(pc.max(usual), pc.min(usual)).as_py()
    return len(usual) >= ALIKE and span is not None and span + 1 == len(usual)


def _are_whole_codes(observed: pa.ChunkedArray) -> bool:
    found = pc.value_counts(observed)
    written = [str(int(number)) for number in found.field("values").to_pylist()]
    return are_codes(written, found.field("counts").to_numpy())


def _is_count(observed: pa.ChunkedArray, low: float, high: float) -> bool:
    (least, most), mean, variance = COUNT_DISPERSION, pc.mean(observed).as_py(), pc.variance(observed).as_py()
    return low == 0 and high <= LARGEST_COUNT and least * mean <= variance <= most * mean


def _is_identifier(name: str, observed: pa.ChunkedArray, distinct: pa.Array, *, span: float) -> bool:
    """All distinct but for a few, and numbered without gaps, in row order, or called an id."""
    if len(distinct) < MOST_IDENTIFIERS * len(observed) or len(observed) < ENOUGH:
        return False
    steps = pc.pairwise_diff(observed.cast(pa.float64(), safe=False).combine_chunks()).drop_null()
    sorted_rows = pc.min(steps).as_py() >= 0 or pc.max(steps).as_py() <= 0
    named = IDENTIFIER_NAME.search(name) is not None or (names_a_code(name) and _are_positive(observed))
    return len(distinct) <= span <= len(observed) or sorted_rows or named


def _are_positive(observed: pa.ChunkedArray) -> bool:
    """No code is negative, but -1 or -99 may stand where there is none."""
    return float(pc.mean(pc.greater_equal(observed, 0).cast(pa.float64())).as_py()) >= BUT_FOR_ERRORS


def _are_whole(distinct: pa.Array) -> bool:
    if not pa.types.is_floating(distinct.type):
        return True
    whole = pc.and_(pc.is_finite(distinct), pc.equal(distinct, pc.round(distinct)))
    return bool(pc.all(whole).as_py())
