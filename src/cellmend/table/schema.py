"""What kind of values each column holds: real, category, count, ordinal or date."""

from __future__ import annotations

import re
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from numpy.typing import NDArray

from cellmend.errors import SchemaError, SchemaWarning, did_you_mean

Level = str | int | float | bool

KINDS = ("real", "category", "count", "ordinal")
DATE = "date"  # modelled as a real number: the days since 1970
IGNORE = "ignore"
EVERY_KIND = (*KINDS, DATE, IGNORE)

# The rules of inference, in one place; docs/schema.md says them in words.
FEW_VALUES = 20  # whole numbers with at most this many distinct values are codes or levels
LARGEST_COUNT = 100
COUNT_DISPERSION = (1 / 3, 2.0)  # variance / mean of a count; 1 for a Poisson
MOST_TEXT_LEVELS = 0.5  # text with more distinct values than this share of its rows is free text
FEW_TEXT_LEVELS = 10  # ... unless it has no more than this many
IDENTIFIER_NAME = re.compile(r"(^|[_\s-])(id|uuid|guid)$", re.IGNORECASE)
FEWEST_IDENTIFIERS = 20  # in a shorter table, all values distinct is no sign of an identifier
USUAL_LEVEL = 0.01  # of the cells have a level, or it may be a slip
FEWEST_USUAL = 5  # levels without gaps that tell a scale
FEWEST_DIGITS = 5  # of codes such as zip codes, all of one length
CODE_REPEATS = 5  # cells for each code; less, and the numbers may be quantities
MOST_IDENTIFIERS = 0.98  # of the values must be different: an identifier may stand twice by mistake
LARGEST_EXACT_WHOLE = 2**53  # beyond it neighbouring whole numbers are equal as floats


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind, the levels it may hold (in order), why it is left out.

    >>> Column("size", "ordinal", levels=("S", "M", "L")).kind
    'ordinal'
    """

    name: str
    kind: str
    levels: tuple[Level, ...] | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.kind not in EVERY_KIND:
            raise SchemaError(
                f"The kind of column {self.name!r} must be one of {', '.join(EVERY_KIND)}; "
                f"it is {self.kind!r}.{did_you_mean(self.kind, EVERY_KIND)}"
            )
        if self.levels is not None:
            _check_levels(self.name, self.levels)


@dataclass(frozen=True)
class Schema:
    """The columns of a table in order.

    >>> schema = Schema((Column("age", "count"), Column("size", "ordinal", ("S", "M"))))
    >>> print(schema)
    age: count
    size:
      kind: ordinal
      levels: [S, M]
    >>> Schema.from_yaml(str(schema)) == schema
    True
    """

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def __str__(self) -> str:
        return self.to_yaml().rstrip("\n")

    def to_yaml(self) -> str:
        """The schema as YAML, one entry a column, for a person to edit."""
        return "".join(_entry_as_yaml(name, entry) for name, entry in self.to_dict().items()) or "{}\n"

    @classmethod
    def from_yaml(cls, text: str) -> Schema:
        """A schema from YAML: `name: kind`, or `name: {kind: ..., levels: [...]}`."""
        try:
            entries = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise SchemaError(f"A schema must be YAML of the form 'column: kind'; it cannot be read: {error}") from None
        if not isinstance(entries, Mapping):
            raise SchemaError("A schema must be YAML of the form 'column: kind', one a line.")
        return cls.from_dict(entries)

    @classmethod
    def from_dict(cls, entries: Mapping[Any, Any]) -> Schema:
        """A schema from a mapping of column to kind, or to a mapping with kind and levels.

        >>> Schema.from_dict({"age": "count"})["age"].kind
        'count'
        """
        return cls(tuple(_column_from_entry(str(name), entry) for name, entry in entries.items()))

    @classmethod
    def of(cls, given: Schema | Mapping[Any, Any]) -> Schema:
        """What a user gives as `schema=`, as a Schema."""
        if isinstance(given, Schema):
            return given
        if not isinstance(given, Mapping):
            raise SchemaError(
                f"schema must be a Schema or a mapping of column to kind; it is a {type(given).__name__}."
            )
        return cls.from_dict(given)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The opposite of from_dict, in plain values."""
        return {c.name: {k: v for k, v in asdict(c).items() if v and k != "name"} for c in self.columns}

    def save(self, path: str | Path) -> None:
        """Write the schema as a YAML file."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a YAML file."""
        try:
            return cls.from_yaml(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise SchemaError(f"A schema must be a YAML file; {Path(path).name} is no text.") from None


def declared_kinds(given: Schema | Mapping[Any, Any] | None) -> dict[str, str]:
    """Column to kind, as the user gave them; ordered texts are read as those of a category are.

    >>> declared_kinds({"size": {"kind": "ordinal", "levels": ["1 star", "2 stars"]}, "age": "count"})
    {'size': 'category', 'age': 'count'}
    """
    columns = Schema.of(given or {})
    texts = {column.name: any(isinstance(level, str) for level in column.levels or ()) for column in columns}
    return {column.name: "category" if texts[column.name] else column.kind for column in columns}


def resolve_schema(
    table: pa.Table,
    given: Schema | Mapping[Any, Any] | None,
    *,
    all_real: bool = False,
    dates: Container[str] = (),
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
    if all(column.kind == IGNORE for column in schema):
        raise SchemaError(
            "At least one column must vary and hold numbers or categories; every column is "
            "left out. Hint: declare kinds with schema={'column': 'category'}."
        )
    return schema


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
        return Column(name, "ordinal", levels=_declared_levels(values))
    if kind_of_values == "boolean":
        return Column(name, "category")
    if kind_of_values == "text" or pa.types.is_dictionary(values.type):
        return _infer_text(name, len(distinct), len(observed))
    if _are_whole(distinct):
        return _infer_whole(name, plain(observed), distinct)
    return Column(name, "real")


def _infer_text(name: str, distinct: int, rows: int) -> Column:
    if distinct > max(FEW_TEXT_LEVELS, MOST_TEXT_LEVELS * rows):
        return Column(name, IGNORE, reason=f"identifier or free text: {distinct} different values")
    return Column(name, "category")


def readable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells that say something: neither missing nor, in a column of numbers, without one."""
    observed = values.drop_null()
    return observed.filter(pc.invert(pc.is_nan(observed))) if pa.types.is_floating(observed.type) else observed


def are_codes(written: Sequence[str], counts: NDArray[np.int64]) -> bool:
    """Are whole numbers, as written, codes? They have five digits or more, all as many, and stand in many cells each.

    Prices and incomes come in many lengths, or are rounded and end in zeros.

    >>> are_codes(["35233", "36049"], np.array([30, 20])), are_codes(["35000", "36000"], np.array([30, 20]))
    (True, False)
    """
    if len(written) < 2 or CODE_REPEATS * len(written) > counts.sum():
        return False
    lengths = np.array([len(number) if number.isdecimal() else 0 for number in written])
    usual = np.bincount(lengths, weights=counts).argmax()
    of_usual = lengths == usual
    rounded = np.mean([number.endswith("00") for number, own in zip(written, of_usual, strict=True) if own])
    return bool(usual >= FEWEST_DIGITS and counts[of_usual].sum() >= 0.95 * counts.sum() and rounded < 0.8)


def _infer_whole(name: str, observed: pa.ChunkedArray, distinct: pa.Array) -> Column:
    low, high = (float(bound) for bound in pc.min_max(observed).as_py().values())
    if pc.approximate_median(pc.abs(observed.cast(pa.float64(), safe=False))).as_py() > LARGEST_EXACT_WHOLE:
        return Column(name, IGNORE, reason="whole numbers beyond 2**53 are labels, not quantities")
    if _is_identifier(name, observed, distinct, span=high - low + 1):
        return Column(name, IGNORE, reason="identifier: a different whole number in every row")
    if len(distinct) == 2:
        return Column(name, "category")
    if CODE_REPEATS * len(distinct) <= len(observed) and _are_whole_codes(observed):
        return Column(name, "category")
    if _is_count(observed, low, high):
        return Column(name, "count")
    if len(distinct) <= min(FEW_VALUES, len(observed) / 5):
        levels = tuple(int(level) for level in sorted(distinct.to_pylist()))
        if high - low + 1 == len(distinct):
            return Column(name, "ordinal", levels=levels)
        return Column(name, "real" if _has_strays(observed) else "category")
    return Column(name, "real")


def _has_strays(observed: pa.ChunkedArray) -> bool:
    """Are there gaps only because of a few cells, such as 22 and 33 among ratings from 1 to 10?"""
    found = pc.value_counts(observed)
    usual = found.field("values").filter(pc.greater_equal(found.field("counts"), USUAL_LEVEL * len(observed)))
    span = pc.subtract(pc.max(usual), pc.min(usual)).as_py()
    return len(usual) >= FEWEST_USUAL and span is not None and span + 1 == len(usual)


def _are_whole_codes(observed: pa.ChunkedArray) -> bool:
    found = pc.value_counts(observed)
    written = [str(int(number)) for number in found.field("values").to_pylist()]
    return are_codes(written, found.field("counts").to_numpy())


def _is_count(observed: pa.ChunkedArray, low: float, high: float) -> bool:
    mean, variance = pc.mean(observed).as_py(), pc.variance(observed).as_py()
    least, most = COUNT_DISPERSION
    return low == 0 and high <= LARGEST_COUNT and least * mean <= variance <= most * mean


def _is_identifier(name: str, observed: pa.ChunkedArray, distinct: pa.Array, *, span: float) -> bool:
    """All distinct but for a few, and numbered without gaps, in row order, or called an id."""
    if len(distinct) < MOST_IDENTIFIERS * len(observed) or len(observed) < FEWEST_IDENTIFIERS:
        return False
    steps = pc.pairwise_diff(observed.cast(pa.float64(), safe=False).combine_chunks()).drop_null()
    sorted_rows = pc.min(steps).as_py() >= 0 or pc.max(steps).as_py() <= 0
    return len(distinct) <= span <= len(observed) or sorted_rows or bool(IDENTIFIER_NAME.search(name))


def _are_whole(distinct: pa.Array) -> bool:
    if not pa.types.is_floating(distinct.type):
        return True
    whole = pc.and_(pc.is_finite(distinct), pc.equal(distinct, pc.round(distinct)))
    return bool(pc.all(whole).as_py())


def family(type_: pa.DataType) -> str:
    """'boolean', 'text', 'number', or 'other' for what no kind can hold."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "text"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "number"
    return "other"


def plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionary columns as their values, decimals as floats."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not pa.types.is_decimal(values.type):
        return values
    return pc.round(values.cast(pa.float64()), ndigits=values.type.scale)  # the cast itself is not exact


def level_text(value: Any) -> str:
    """A level as text, the same for 5, 5.0 and '5'.

    >>> level_text(5.0), level_text(-0.0), level_text(0.5), level_text(True)
    ('5', '0', '0.5', 'True')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _declared_levels(values: pa.ChunkedArray) -> tuple[Level, ...]:
    return tuple(values.combine_chunks().dictionary.to_pylist())


def _column_from_entry(name: str, entry: Any) -> Column:
    if isinstance(entry, Column):
        return entry
    if isinstance(entry, str):
        return Column(name, entry)
    if not isinstance(entry, Mapping) or "kind" not in entry:
        raise SchemaError(f"Column {name!r} must have a kind in the schema; it has {entry!r}.")
    surplus = set(entry) - {"kind", "levels", "reason"}
    if surplus:
        raise SchemaError(
            f"Column {name!r} may have kind, levels and reason in the schema; it has {min(surplus)!r} too."
        )
    levels = entry.get("levels")
    if levels is not None:
        if isinstance(levels, str | Mapping | Set) or not isinstance(levels, Iterable):
            raise SchemaError(f"The levels of column {name!r} must be a list in order; they are {levels!r}.")
        levels = tuple(_plain_value(level) for level in levels)
    return Column(name, str(entry["kind"]), levels=levels, reason=str(entry.get("reason", "")))


def _check_levels(name: str, levels: tuple[Level, ...]) -> None:
    texts = [level_text(level) for level in levels if isinstance(level, str | int | float) and level == level]
    if len(set(texts)) < max(len(levels), 2):
        raise SchemaError(
            f"The levels of column {name!r} must be two or more different texts, numbers or booleans; "
            f"they are {list(levels)!r}."
        )


def _plain_value(value: Any) -> Any:
    """numpy's numbers as Python's, which JSON and YAML can hold."""
    return value.item() if hasattr(value, "item") else value


def _entry_as_yaml(name: str, entry: dict[str, Any]) -> str:
    if "levels" in entry:
        entry["levels"] = _OneLine(entry["levels"])
    return _dump({name: entry if len(entry) > 1 else entry["kind"]})


class _OneLine(list[Level]):
    """A list that YAML writes on one line."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _OneLine,
    lambda dumper, levels: dumper.represent_sequence("tag:yaml.org,2002:seq", levels, flow_style=True),
)


def _dump(entry: dict[str, Any]) -> str:
    text = yaml.dump(entry, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    if yaml.safe_load(text) == entry:
        return text
    # Some control characters only survive escaped.
    return yaml.dump(entry, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=10_000)
