"""What each column is, for a person to read and to edit: its kind, its levels, why it is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from cellmend.errors import SchemaError, did_you_mean
from cellmend.table.packing import pack
from cellmend.table.values import Level, level_text

KINDS = ("real", "category", "count", "ordinal")
DATE = "date"  # modelled as a real number: the days since 1970
IGNORE = "ignore"
# What PyYAML raises of texts that are no YAML, of a 13th month, of a tag that does not fit, and of nesting without end.
YAML_TROUBLES = (yaml.YAMLError, ValueError, KeyError, AttributeError, TypeError, OverflowError, RecursionError)
EVERY_KIND = (*KINDS, DATE, IGNORE)


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
        entries = pack(self.to_dict()).items()
        return "".join(_dump({name: each if len(each) > 1 else each["kind"]}) for name, each in entries) or "{}\n"

    @classmethod
    def from_yaml(cls, text: str) -> Schema:
        """A schema from YAML: `name: kind`, or `name: {kind: ..., levels: [...]}`."""
        try:
            entries = yaml.safe_load(text)
        except YAML_TROUBLES as error:
            why = " ".join(str(error).partition("\n")[0].split())
            raise SchemaError(f"A schema must be YAML of the form 'column: kind'; it cannot be read: {why}.") from None
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
            f"Column {name!r} may have kind, levels and reason in the schema; it has {min(map(str, surplus))!r} too."
        )
    levels = entry.get("levels")
    if levels is not None:
        if isinstance(levels, str | Mapping | Set) or not isinstance(levels, Iterable):
            raise SchemaError(f"The levels of column {name!r} must be a list in order; they are {levels!r}.")
        levels = tuple(level.item() if hasattr(level, "item") else level for level in levels)  # numpy's as Python's
    return Column(name, str(entry["kind"]), levels=levels, reason=str(entry.get("reason", "")))


def _check_levels(name: str, levels: tuple[Level, ...]) -> None:
    texts = [level_text(level) for level in levels if isinstance(level, str | int | float) and level == level]
    if len(set(texts)) < max(len(levels), 2):
        raise SchemaError(
            f"The levels of column {name!r} must be two or more different texts, numbers or booleans; "
            f"they are {list(levels)!r}."
        )


class _Dumper(yaml.SafeDumper):
    """Writes levels, the only lists, on one line."""


_Dumper.add_representer(
    list, lambda dumper, levels: dumper.represent_sequence("tag:yaml.org,2002:seq", levels, flow_style=True)
)


def _dump(entry: dict[str, Any]) -> str:
    text = yaml.dump(entry, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    if yaml.safe_load(text) == entry:
        return text
    # Some control characters only survive escaped.
    return yaml.dump(entry, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=10_000)
