"""Dataclasses as JSON holds them, and back, by the names and types of their fields.

A dataclass is an object with its fields in their order; tuples, named tuples, sets and arrays are lists. A key that is
missing, as in files of before, leaves its field at the default; one that is unknown says nothing. A class that is
written in another way has a to_json or a from_json of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

PLAIN = {  # what JSON holds as it is
    str: frozenset({str}),
    int: frozenset({int}),
    float: frozenset({float, int}),
    bool: frozenset({bool}),
    NoneType: frozenset({NoneType}),
    Any: frozenset({Any}),
}
T = TypeVar("T")
Read = Callable[[Any], Any]  # an entry of JSON to a value


def pack(value: Any) -> Any:
    """A value as JSON holds it.

    >>> from cellmend.table.schema import Column
    >>> pack({"sizes": (Column("shirt", "ordinal", ("S", "M")),), "counts": np.array([[1, 2]])})
    {'sizes': [{'name': 'shirt', 'kind': 'ordinal', 'levels': ['S', 'M'], 'reason': ''}], 'counts': [[1, 2]]}
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return {each.name: pack(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: pack(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | pa.Array):
        return value.tolist()
    return [pack(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]


def unpack(type_: type[T], entry: Any) -> T:
    """The opposite of pack, for a value of this type; an array without rows comes back with one dimension.

    >>> from cellmend.table.schema import Column
    >>> unpack(tuple[Column, ...], [{"name": "shirt", "kind": "ordinal", "levels": ["S", "M"]}])
    (Column(name='shirt', kind='ordinal', levels=('S', 'M'), reason=''),)
    """
    asked: Any = type_  # mypy takes a type[T] for one that cannot be hashed
    return _reader(asked)(entry)


def unpack_fields(cls: Any, entry: Mapping[str, Any]) -> Any:
    """The same for a dataclass, without asking its from_json, which may call this."""
    return cls(**{name: read(entry[name]) for name, read in _field_readers(cls).items() if name in entry})


@cache
def _field_readers(cls: Any) -> dict[str, Read]:
    types = get_type_hints(cls)
    return {each.name: _reader(types[each.name]) for each in fields(cls)}


@cache  # a file holds millions of values of a few types
def _reader(type_: Any) -> Read:
    """What reads values of a type."""
    origin, args = get_origin(type_) or type_, get_args(type_)
    if hasattr(origin, "from_json"):
        return origin.from_json
    if is_dataclass(origin):
        return partial(unpack_fields, origin)
    if origin is np.ndarray:
        return partial(np.array, dtype=get_args(args[1])[0])
    if origin is pa.StringArray:
        return partial(pa.array, type=pa.string())
    if origin is tuple and args[-1] is not Ellipsis:
        return partial(_read_each, tuple, [_reader(each) for each in args])
    if hasattr(origin, "_make"):
        return partial(_read_each, origin._make, [_reader(each) for each in get_type_hints(origin).values()])
    if origin in (tuple, list, frozenset):
        if plain := _plain(args[0]):
            return partial(_read_plain, origin, plain)
        own = _reader(args[0])
        return lambda entry: origin(map(own, entry))
    if origin in (dict, Mapping):
        if plain := _plain(args[1]):
            return partial(_read_plain_values, plain)
        own = _reader(args[1])
        return lambda entry: {key: own(each) for key, each in entry.items()}
    if plain := _plain(type_):
        return partial(_read_one, plain)
    if origin in (Union, UnionType):
        readers = {_reader(each) for each in args if each is not NoneType}
        if len(readers) == 1:
            own = readers.pop()
            return lambda entry: None if entry is None else own(entry)
    raise TypeError(f"JSON cannot be read as {type_}.")


def _plain(type_: Any) -> frozenset[type] | None:
    """The types of values that stand in JSON as they are, if a type asks for no others."""
    if get_origin(type_) in (Union, UnionType):
        each = [_plain(own) for own in get_args(type_)]
        return None if None in each else frozenset[type]().union(*filter(None, each))
    return PLAIN.get(type_)


def _check(entries: Collection[Any], types: frozenset[type]) -> None:
    """Refuse what is of none of these types: a file may have been edited."""
    odd = set() if Any in types else set(map(type, entries)) - types
    if odd:
        raise TypeError(f"{' or '.join(sorted(each.__name__ for each in types))} cannot be {odd.pop().__name__}")


def _read_plain(origin: Any, types: frozenset[type], entry: Any) -> Any:
    _check(entry, types)
    return origin(entry)


def _read_plain_values(types: frozenset[type], entry: Any) -> Any:
    _check(entry.values(), types)
    return dict(entry)


def _read_one(types: frozenset[type], entry: Any) -> Any:
    _check((entry,), types)
    return entry


def _read_each(make: Read, readers: list[Read], entry: Any) -> Any:
    """A tuple whose parts are of different types."""
    return make(read(each) for read, each in zip(readers, entry, strict=True))
