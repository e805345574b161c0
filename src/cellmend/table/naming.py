"""Which columns tell a person which row it is: "Peugeot 107", not row 198."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.table.dates import Dates
from cellmend.table.kinds import IDENTIFIER_NAME, MOST_IDENTIFIERS
from cellmend.table.priors import LOOKED_AT, MOSTLY
from cellmend.table.readtable import ReadTable
from cellmend.table.schema import DATE, Schema
from cellmend.table.values import Ints, codes_of, family, plain

MOST_NAMES = 3  # columns that name a row
LONGEST_NAME = 40  # letters on average; longer texts are prose
GAIN = 1.1  # times as many rows told apart, or a column does not help
AS_GOOD = 0.95  # of the rows told apart: then a column is not needed

Codes = Ints


def naming_columns(table: ReadTable, schema: Schema, identifiers: Collection[str]) -> list[str]:
    """Up to three columns that name a row, in the table's order; none if nothing tells the rows apart.

    An identifier, and the words that tell most rows apart: the first column of words, for there people write what a row
    is about, and those further right that add most to it; dates only where words are not enough.
    """
    if not table.rows:
        return []
    identifiers = [name for name in identifiers if _are_identifiers(name, table.understood[name])]
    step = max(1, table.rows // LOOKED_AT)
    rows = pa.array(np.arange(0, table.rows, step))
    words = {name: codes_of(table.arrow[name].take(rows)) for name in table.names if _is_name(table, name, identifiers)}
    dates = [each.name for each in schema if each.kind == DATE or isinstance(table.notations.get(each.name), Dates)]
    chosen = _telling(words | {name: codes_of(table.arrow[name].take(rows)) for name in dates}, len(rows))
    numbered = [name for name in table.names if name in identifiers and (not chosen or table.family_of(name) == "text")]
    return sorted([*numbered[:1], *chosen][:MOST_NAMES], key=table.names.index)


def _telling(columns: Mapping[str, Codes], rows: int) -> list[str]:
    """The first column, and those that tell more rows apart together with it, without what is not needed for that."""
    chosen: list[str] = []
    for name in columns:
        if _apart(columns, [*chosen, name]) >= GAIN * _apart(columns, chosen):
            chosen.append(name)
    for name in chosen[:0:-1]:
        others = [each for each in chosen if each != name]
        if _apart(columns, others) >= AS_GOOD * _apart(columns, chosen):
            chosen = others
    return chosen[:MOST_NAMES] if _apart(columns, chosen[:MOST_NAMES]) >= MOSTLY * rows else []


def _apart(columns: Mapping[str, Codes], names: Sequence[str]) -> int:
    """How many different rows there are by these columns alone."""
    together = np.zeros(1, dtype=np.int64)
    for name in names:
        _, together = np.unique(together * (columns[name].max() + 1) + columns[name], return_inverse=True)
    return int(together.max()) + 1


def _is_name(table: ReadTable, name: str, identifiers: Collection[str]) -> bool:
    """Does the column hold words that are no prose, no codes and no identifiers?"""
    if name in identifiers or table.family_of(name) != "text":
        return False
    texts = pc.unique(plain(table.arrow[name]).drop_null())
    if len(texts) < 2 or pc.mean(pc.utf8_length(texts)).as_py() > LONGEST_NAME:
        return False
    return bool(pc.mean(pc.match_substring_regex(texts, r"\pL").cast(pa.float64())).as_py() >= MOSTLY)


def _are_identifiers(name: str, values: pa.ChunkedArray) -> bool:
    """All different but for a few, and numbered, called an id, or with digits and without spaces; not times or mail."""
    observed = plain(values).drop_null()
    if len(observed) < 2 or pc.count_distinct(observed).as_py() < MOST_IDENTIFIERS * len(observed):
        return False
    if family(observed.type) != "text" or IDENTIFIER_NAME.search(name):
        return True
    like = pc.match_substring_regex(observed, r"^[^\s@:]*\d[^\s@:]*$")
    return float(pc.mean(like.cast(pa.float64())).as_py()) >= MOST_IDENTIFIERS
