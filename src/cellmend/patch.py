"""A patch: accepted repairs of cells, to be put on this table or on a newer copy of it, and nothing else changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.decisions.decision import WRONG, Decision
from cellmend.errors import PatchError
from cellmend.files.formats import TableFile
from cellmend.files.places import whole_file
from cellmend.files.records import Records
from cellmend.table.kinds import IDENTIFIER_NAME
from cellmend.table.values import as_text, family

RECORDS = Records("fix", '{"row": 3, "column": "city", "old": "Ulmm", "new": "Ulm"}', PatchError)
LOOKED_AT = 1000  # rows that show that a column is no key, before all are looked at
NOUNS = {"number": "numbers", "boolean": "true or false"}  # of the families of types


@dataclass(frozen=True)
class Fix:
    """One cell with its old and its new text; the row is found by its key, if the table has one."""

    row: int  # from 0, as the table was when it was reviewed
    column: str
    old: str | None  # None or "": the cell was empty
    new: str  # "": the cell should be empty
    key: tuple[str, str] | None = None  # a column in which every value is different, and the row's value there

    def __str__(self) -> str:
        where = f"row {self.row}" if self.key is None else f"{self.key[0]} {self.key[1]}"
        return f"{self.column} of {where}"


@dataclass(frozen=True)
class Refusal:
    """A fix that was not made, and why."""

    fix: Fix
    why: str

    def __str__(self) -> str:
        return f"{self.fix}: {self.why}"


# ---------------------------------------------------------------- made from decisions


def fixes_of(decisions: Iterable[Decision], table: pa.Table) -> list[Fix]:
    """The repairs that were accepted or typed in, each with the key of its row.

    >>> table = pa.table({"id": ["a", "b"], "city": ["Ulmm", "Bonn"]})
    >>> print(*fixes_of([Decision(0, "city", "Ulmm", "wrong", "Ulm"), Decision(1, "city", "Bonn", "right")], table))
    city of id a
    """
    made = [each for each in decisions if each.verdict == WRONG and each.repair is not None]
    key = key_of(table, besides={each.column for each in made})
    keys = [None if key is None else (key, as_text(table[key][each.row].as_py())) for each in made]
    return [
        Fix(each.row, each.column, each.value, each.repair or "", own) for each, own in zip(made, keys, strict=True)
    ]


def key_of(table: pa.Table, *, besides: Iterable[str] = ()) -> str | None:
    """The first column that tells rows apart, one named as identifiers are before others; None if there is none.

    >>> key_of(pa.table({"name": ["x", "y"], "order_id": [7, 8]}))
    'order_id'
    """
    names = [name for name in table.column_names if name not in set(besides)]
    names.sort(key=lambda name: IDENTIFIER_NAME.search(name) is None)
    return next((name for name in names if _tells_apart(table[name])), None)


def _tells_apart(values: pa.ChunkedArray) -> bool:
    whole = family(values.type) == "text" or pa.types.is_integer(values.type)
    return whole and all(
        not some.null_count and pc.count_distinct(some).as_py() == len(some) for some in (values[:LOOKED_AT], values)
    )


# ---------------------------------------------------------------- as a file


def write_patch(path: Path, fixes: Iterable[Fix]) -> None:
    """One JSON object a line, for each fix."""
    lines = (json.dumps({k: v for k, v in asdict(fix).items() if v is not None}, ensure_ascii=False) for fix in fixes)
    with whole_file(path) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_patch(path: Path) -> list[Fix]:
    """The fixes of a file that `write_patch` wrote."""
    return [_fix(entry, where) for where, entry in RECORDS.read(path.read_bytes(), path.name)]


def _fix(entry: dict[str, Any], where: str) -> Fix:
    try:
        key = entry.pop("key", None)
        fix = Fix(old=entry.pop("old", None), key=None if key is None else (str(key[0]), str(key[1])), **entry)
        texts = (fix.column, fix.new, fix.old or "")
        if type(fix.row) is int and fix.row >= 0 and all(isinstance(each, str) for each in texts):
            return fix
    except (TypeError, LookupError):
        pass
    raise RECORDS.refusal(where)


# ---------------------------------------------------------------- put on a table


@dataclass(frozen=True)
class Applied:
    """What came of putting a patch on a table."""

    path: Path | None  # None: no cell fits, so that there is no copy
    made: int
    refused: Sequence[Refusal]


def apply_patch(patch: Path, source: TableFile, path: Path) -> Applied:
    """Write a copy of a table with the fixes of a patch whose cells still hold the old values, if there are any."""
    fixes, refused = fitting(read_patch(patch), source.table)
    if refused and not fixes:
        return Applied(None, 0, refused)
    write_fixed(source, path, fixes)
    return Applied(path, len(fixes), refused)


def fitting(fixes: Sequence[Fix], table: pa.Table) -> tuple[list[Fix], list[Refusal]]:
    """The fixes whose cells still hold the old values, with the rows they are in now, and those that are refused."""
    wanted = {fix.key[0] for fix in fixes if fix.key} & {*table.column_names}
    keys = {key: _places(table, key, fixes) for key in wanted}
    fit, refused = list[Fix](), list[Refusal]()
    for fix in fixes:
        row = _row(fix, table, keys)
        if isinstance(row, str):
            refused.append(Refusal(fix, row))
            continue
        held = as_text(table[fix.column][row].as_py())
        try:
            typed(fix.new, table.schema.field(fix.column))
        except PatchError as error:
            refused.append(Refusal(fix, str(error)))
            continue
        if held == (fix.old or ""):
            fit.append(Fix(row, fix.column, fix.old, fix.new, fix.key))
        elif held != fix.new:
            refused.append(Refusal(fix, f"it should hold {fix.old or ''!r} and holds {held!r}"))
    return fit, refused


def _places(table: pa.Table, key: str, fixes: Sequence[Fix]) -> dict[str, list[int]]:
    """The rows in which each wanted value of a key stands."""
    wanted = {fix.key[1] for fix in fixes if fix.key and fix.key[0] == key}
    texts = table[key].cast(pa.string())
    places = np.flatnonzero(pc.is_in(texts, pa.array(sorted(wanted), pa.string())).to_numpy())
    found: dict[str, list[int]] = {}
    for place in places.tolist():
        found.setdefault(texts[place].as_py(), []).append(place)
    return found


def _row(fix: Fix, table: pa.Table, keys: dict[str, dict[str, list[int]]]) -> int | str:
    """The row of a fix, or why it has none."""
    if fix.column not in table.column_names:
        return "the table has no such column"
    if fix.key is None or fix.key[0] not in keys:
        return fix.row if fix.row < table.num_rows else f"the table has {table.num_rows:,} rows only"
    places = keys[fix.key[0]].get(fix.key[1], [])
    if len(places) == 1:
        return places[0]
    return f"{fix.key[0]} {fix.key[1]} stands {len(places)} times" if places else "the table has no such row"


def typed(text: str, field: pa.Field) -> Any:
    """New text of a cell in the type of its column; None for an empty one that is not text.

    >>> typed("5", pa.field("x", pa.int64())), typed("", pa.field("x", pa.float64()))
    (5, None)
    >>> typed("five", pa.field("x", pa.int64()))
    Traceback (most recent call last):
    cellmend.errors.PatchError: Column 'x' holds numbers (int64); 'five' cannot stand there.
    """
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if family(type_) == "text":
        return text
    if text == "":
        return None
    try:
        zone = getattr(type_, "tz", None)
        plain = pa.array([text]).cast(pa.timestamp(type_.unit) if zone else type_)
        return (pc.assume_timezone(plain, zone, ambiguous="earliest") if zone else plain)[0].as_py()
    except (pa.ArrowException, ValueError):
        noun = NOUNS.get(family(type_), "dates or times" if pa.types.is_temporal(type_) else "other values")
        raise PatchError(f"Column {field.name!r} holds {noun} ({type_}); {text!r} cannot stand there.") from None


def write_fixed(source: TableFile, path: Path, fixes: Sequence[Fix]) -> None:
    """A copy of a table in its own format with these cells new; of a CSV file all other bytes are as they were."""
    twice = [cell for cell, times in Counter((fix.row, fix.column) for fix in fixes).items() if times > 1]
    if twice:
        raise PatchError(f"A patch must change a cell once; it changes row {twice[0][0]} of {twice[0][1]!r} twice.")
    places = {name: place for place, name in enumerate(source.table.column_names)}
    texts: dict[int, dict[int, str]] = {}
    for fix in fixes:
        texts.setdefault(fix.row, {})[places[fix.column]] = fix.new
    source.write_changed(path, source.table if source.csv else with_fixes(source.table, fixes), texts)


def with_fixes(table: pa.Table, fixes: Sequence[Fix]) -> pa.Table:
    """The table with these cells new, in the types of their columns.

    >>> with_fixes(pa.table({"x": [1, 2]}), [Fix(1, "x", "2", "5")])["x"].to_pylist()
    [1, 5]
    """
    for name in {fix.column: None for fix in fixes}:
        field, own = table.schema.field(name), sorted((fix for fix in fixes if fix.column == name), key=lambda f: f.row)
        mask = np.zeros(table.num_rows, dtype=bool)
        mask[[fix.row for fix in own]] = True
        old, coded = table[name].combine_chunks(), pa.types.is_dictionary(field.type)
        plain = old.cast(field.type.value_type) if coded else old
        new = pa.array([typed(fix.new, field) for fix in own], plain.type)
        written = pc.replace_with_mask(plain, pa.array(mask), new)
        written = written.dictionary_encode().cast(field.type) if coded else written
        table = table.set_column(table.schema.get_field_index(name), field, written)
    return table
