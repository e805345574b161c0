"""A patch: accepted repairs of cells, to be put on this table or on a newer copy of it, and nothing else changed.

A recipe is a patch that may also replace values wherever they stand in a column.
"""

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
class Replacement:
    """All cells of a column that hold one text shall hold another one."""

    column: str
    old: str  # "": the cells are empty
    new: str


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


def recipe_of(fixes: Sequence[Fix], table: pa.Table) -> tuple[list[Replacement], list[Fix]]:
    """What was done to values, and what to single cells: a value was replaced if it stood in several cells and all of
    them were repaired alike.

    >>> table = pa.table({"city": ["Koeln", "Koeln", "Bonn", "Bonn"]})
    >>> fixes = [Fix(0, "city", "Koeln", "Köln"), Fix(1, "city", "Koeln", "Köln"), Fix(2, "city", "Bonn", "Ulm")]
    >>> replaced, single = recipe_of(fixes, table)
    >>> replaced, [fix.row for fix in single]
    ([Replacement(column='city', old='Koeln', new='Köln')], [2])
    """
    meant: dict[tuple[str, str], set[str]] = {}
    repaired = Counter((fix.column, fix.old or "") for fix in fixes)
    for fix in fixes:
        meant.setdefault((fix.column, fix.old or ""), set()).add(fix.new)
    standing = {name: _counts(table[name], {old for own, old in repaired if own == name}) for name, _ in repaired}
    replaced = {
        (name, old)
        for (name, old), count in repaired.items()
        if count > 1 and count == standing[name][old] and len(meant[name, old]) == 1
    }
    single = [fix for fix in fixes if (fix.column, fix.old or "") not in replaced]
    return [Replacement(name, old, min(meant[name, old])) for name, old in repaired if (name, old) in replaced], single


def _counts(column: pa.ChunkedArray, wanted: set[str]) -> Counter[str]:
    """In how many cells each of these texts stands."""
    found = pc.value_counts(column)
    texts = zip(map(as_text, found.field("values").to_pylist()), found.field("counts").to_pylist(), strict=True)
    counts = Counter[str]()
    for text, count in texts:
        if text in wanted:
            counts[text] += count
    return counts


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


def write_patch(path: Path, fixes: Iterable[Fix | Replacement]) -> None:
    """One JSON object a line, for each fix; those without a row replace a value wherever it stands."""
    lines = (json.dumps({k: v for k, v in asdict(fix).items() if v is not None}, ensure_ascii=False) for fix in fixes)
    with whole_file(path) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_patch(path: Path) -> list[Fix | Replacement]:
    """What stands in a file that `write_patch` wrote."""
    return [_fix(entry, where) for where, entry in RECORDS.read(path.read_bytes(), path.name)]


def _fix(entry: dict[str, Any], where: str) -> Fix | Replacement:
    try:
        if entry.keys() == {"column", "old", "new"} and all(isinstance(each, str) for each in entry.values()):
            return Replacement(**entry)
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
    read = read_patch(patch)
    fixes, refused = fitting([each for each in read if isinstance(each, Fix)], source.table)
    taken = {(fix.row, fix.column) for fix in fixes}
    wherever = replacing([each for each in read if isinstance(each, Replacement)], source.table)
    fixes += [fix for fix in wherever if (fix.row, fix.column) not in taken]  # what was said of a cell goes first
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


def replacing(replacements: Sequence[Replacement], table: pa.Table) -> list[Fix]:
    """The cells that hold a text which is to be replaced; none of a column that the table does not have.

    >>> replacing([Replacement("city", "Koeln", "Köln")], pa.table({"city": ["Bonn", "Koeln"]}))
    [Fix(row=1, column='city', old='Koeln', new='Köln', key=None)]
    """
    meant: dict[str, dict[str, str]] = {}
    for each in replacements:
        if each.column in table.column_names:
            typed(each.new, table.schema.field(each.column))
            meant.setdefault(each.column, {})[each.old] = each.new
    return [fix for name, own in meant.items() for fix in _replaced_in(table[name], name, own)]


def _replaced_in(column: pa.ChunkedArray, name: str, meant: dict[str, str]) -> list[Fix]:
    coded = pc.dictionary_encode(column, null_encoding="encode") if not pa.types.is_dictionary(column.type) else column
    whole = coded.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    texts = [as_text(each) for each in whole.dictionary.to_pylist()]
    places = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    is_old = np.array([text in meant for text in texts] + ["" in meant])  # the last: missing, in a coded column
    rows = np.flatnonzero(is_old[places])
    olds = ["" if places[row] < 0 else texts[places[row]] for row in rows.tolist()]
    return [Fix(row, name, old, meant[old]) for row, old in zip(rows.tolist(), olds, strict=True)]


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
