"""Learning from a table of any size: from rows drawn at random, and from all values of its categories."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from cellmend.errors import SchemaWarning
from cellmend.estimator import CellMender
from cellmend.settings import LEAST_FLAGGED
from cellmend.streaming import limits
from cellmend.streaming.streams import Stream, Unit, ahead, read_unit
from cellmend.table.explained import learn_texts
from cellmend.table.notation import Notations, understand
from cellmend.table.reader import understand_columns
from cellmend.table.schema import Column, Schema
from cellmend.table.values import plain


def draw(stream: Stream, rows: int, seed: int) -> pa.Table:
    """This many rows of a table, each as likely as any other, in their order; all rows if it has no more."""
    return read_rows(stream, stream.units, chosen_rows(stream.rows, rows, seed))


def chosen_rows(among: int, rows: int | None, seed: int) -> NDArray[np.int64]:
    """The places of rows drawn at random, in order; all places if no more rows are there.

    >>> chosen_rows(5, 9, seed=0).tolist(), len(set(chosen_rows(10**12, 100, seed=0).tolist()))
    ([0, 1, 2, 3, 4], 100)
    """
    if rows is None or among <= rows:
        return np.arange(among)
    return np.sort(np.random.default_rng(seed).choice(among, rows, replace=False, shuffle=False))


def read_rows(stream: Stream, units: Sequence[Unit], chosen: NDArray[np.int64]) -> pa.Table:
    """Those of the chosen rows of a table that are in these units."""
    drawn: list[pa.RecordBatch] = []
    for unit in units:
        first = unit.first_row
        if np.searchsorted(chosen, first) == np.searchsorted(chosen, first + unit.rows):
            continue
        for batch in ahead(read_unit(stream.url, unit, stream.names)):
            own = chosen[np.searchsorted(chosen, first) : np.searchsorted(chosen, first + batch.num_rows)] - first
            drawn.append(batch.take(pa.array(own)))
            first += batch.num_rows
    return pa.Table.from_batches(drawn)


def vocabulary(stream: Stream, notations: Notations, names: Sequence[str]) -> dict[str, Counter[Any]]:
    """How often each value of these columns occurs in the whole table; columns with very many values are left out."""
    found: dict[str, Counter[Any]] = {name: Counter() for name in names}
    for unit in stream.units:
        if not found:
            break
        for batch in ahead(read_unit(stream.url, unit, [name for name in stream.names if name in found])):
            table = understand(pa.Table.from_batches([batch]), notations)
            for name in list(found):
                found[name].update(_counts(plain(table[name])))
                if len(found[name]) > limits.MOST_VALUES:
                    del found[name]
    return found


def fit_stream(mender: CellMender, stream: Stream, rows: int | None = None) -> pa.Table:
    """Learn from rows drawn from the whole table, and the values of categories from all of it; returns those rows.

    Kinds, scales and quantiles are those of the drawn rows. A value that none of them has becomes a level all the same,
    unless it is rare in the whole table too, or looks like a misspelling.
    """
    table = draw(stream, rows or limits.LEARNED, int(check_random_state(mender.random_state).randint(2**31)))
    if table.num_rows < stream.rows:
        schema = _with_all_levels(mender, stream, table)
        mender.set_params(schema=schema if schema.columns else None)
    mender.fit(table)
    return table


def _with_all_levels(mender: CellMender, stream: Stream, table: pa.Table) -> Schema:
    """What the user declared, and the categories with the levels that they have in the whole table."""
    declared = {} if mender.schema is None else {column.name: column for column in Schema.of(mender.schema)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)  # said when fitting
        notations, understood, schema = understand_columns(table, mender.schema, decimal=mender.decimal)
    free = [column.name for column in schema if column.kind == "category" and not column.levels]
    for name, counts in vocabulary(stream, notations, free).items():
        values = plain(understood[name])
        drawn = set(pc.unique(values.drop_null()).to_pylist())
        least = limits.LEAST_LEVEL * stream.rows / table.num_rows
        new = sorted({value for value, count in counts.items() if count >= least} - drawn, key=str)
        slips = _slips(values, new) if new and isinstance(new[0], str) else set()
        if kept := [value for value in new if value not in slips]:
            declared[name] = Column(name, "category", tuple(sorted([*drawn, *kept])))
    return Schema(tuple(declared.values()))


def _slips(values: pa.ChunkedArray, new: list[str]) -> set[str]:
    """Those of the new texts that are probably slips, by the values of the drawn rows."""
    judged = learn_texts({"": _counts(values)})[""].judge(dict.fromkeys(new, 1))
    return {text for text, verdict in judged.items() if verdict.suspicion >= LEAST_FLAGGED}


def _counts(values: pa.ChunkedArray) -> dict[Any, int]:
    """How often each value occurs."""
    found = pc.value_counts(values.drop_null())
    return dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))
