"""Cells of files that give each cell its own type, JSON Lines and workbooks: as columns, and back."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from cellmend.errors import FileError
from cellmend.files.csvtext import named


def column_of(values: list[Any]) -> pa.Array:
    """Cells in their own type, or as text where types are mixed or nested.

    >>> column_of([1, None, 2.5]).to_pylist(), column_of(["07501", 7501.0, [1]]).to_pylist()
    ([1.0, None, 2.5], ['07501', '7501', '[1]'])
    """
    types = {type(value) for value in values if value is not None}
    if not types:
        return pa.nulls(len(values), pa.string())
    if types <= {int, float} or (len(types) == 1 and types < {str, bool, datetime, date}):
        with suppress(pa.ArrowInvalid, OverflowError):  # whole numbers too large
            return pa.array(values)
    return pa.array([None if value is None else as_text(value) for value in values], pa.string())


def table_of(rows: list[dict[str, Any]], name: str) -> pa.Table:
    """The table in the objects of a file; columns are all names that occur, in the order in which they do."""
    keys = keys_of(rows)
    if not keys:
        raise FileError(f"{name} must hold a table; it is empty.")
    return pa.table([column_of([row.get(key) for row in rows]) for key in keys], names=named(keys))


def keys_of(rows: list[dict[str, Any]]) -> list[str]:
    """All names that occur in the objects of a file, in the order in which they do."""
    return list(dict.fromkeys(key for row in rows for key in row))


def as_text(value: Any) -> str:
    """A cell as text.

    >>> as_text(7501.0), as_text([1, "ä"]), as_text(datetime(2020, 1, 2))
    ('7501', '[1, "ä"]', '2020-01-02')
    """
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)


def typed_like(old: Any, new: Any) -> Any:
    """New text of a column of mixed types as a number, where the old cell was one.

    >>> typed_like(7501, "89073"), typed_like("07501", "89073"), typed_like(7501, "Ulm")
    (89073, '89073', 'Ulm')
    """
    if isinstance(new, str) and not isinstance(old, str | None):
        with suppress(ValueError):
            return json.loads(new)
    return new


def differences(before: pa.Table, after: pa.Table) -> dict[int, dict[int, Any]]:
    """The cells of `after` that differ, row -> column -> value; an empty text is as good as none.

    >>> differences(pa.table({"a": [1, 2], "b": ["x", None]}), pa.table({"a": [1, 3], "b": ["x", ""]}))
    {1: {0: 3}}
    """
    found: dict[int, dict[int, Any]] = {}
    for column, (old, new) in enumerate(zip(before.columns, after.columns, strict=True)):
        if old.equals(new):
            continue
        for row, (was, now) in enumerate(zip(old.to_pylist(), new.to_pylist(), strict=True)):
            if was != now and (was, now) != (None, "") and (was == was or now == now):  # NaN is no change
                found.setdefault(row, {})[column] = now
    return found
