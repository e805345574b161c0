"""Record batches in, record batches out: what every engine calls."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.errors import TableError, did_you_mean
from cellmend.estimator import CellMender
from cellmend.findings.findings import MIXED, TYPES, show
from cellmend.table.frames import Change, write_arrow

FINDINGS = pa.schema(list(TYPES.items()))  # rows count from 0 in the whole table


def score_batch(mender: CellMender, batch: pa.RecordBatch | pa.Table, *, name: str = "The batch") -> pa.RecordBatch:
    """The suspicion of every cell under the names of the model's columns, and `row_score`, (B, D + 1).

    Columns are matched by name, and a row's scores are the same, bit for bit, in whatever batch it comes.
    """
    table = conform(batch, mender, name)
    if table.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=scores_schema(table.column_names))
    suspicion, rows = mender.score_rows(table)
    return pa.record_batch([*map(pa.array, suspicion.T), pa.array(rows)], schema=scores_schema(table.column_names))


def find_batch(
    mender: CellMender, batch: pa.RecordBatch, *, least: float, first_row: int = 0, name: str = "The batch"
) -> pa.RecordBatch:
    """One line for each cell of at least this suspicion, its row counted from `first_row`; columns as in FINDINGS."""
    table = conform(batch, mender, name)
    found = mender.mend(table, suspicion=least, impute=False, alone=True).found if table.num_rows else []
    lines = sorted(found, key=lambda each: (each.row, table.column_names.index(each.column)))
    columns: dict[str, list[Any]] = {name: [getattr(line, name) for line in lines] for name in FINDINGS.names}
    columns["row"] = [first_row + row for row in columns["row"]]
    for text in MIXED:
        columns[text] = [None if cell is None else show(cell) for cell in columns[text]]
    return pa.record_batch([pa.array(columns[each.name], each.type) for each in FINDINGS], schema=FINDINGS)


def repair_batch(batch: pa.RecordBatch, findings: pa.Table, *, least: float, first_row: int = 0) -> pa.RecordBatch:
    """The batch with the repairs of its findings of at least this suspicion; types as they were.

    >>> batch = pa.record_batch({"a": [1, 2], "b": ["x", "y"]})
    >>> lines = {"row": [7], "column": ["a"], "suspicion": [0.9], "repair": ["5"]}
    >>> repair_batch(batch, pa.table(lines), least=0.5, first_row=6).to_pydict()
    {'a': [1, 5], 'b': ['x', 'y']}
    """
    rows = pc.subtract(findings["row"], first_row)
    chosen = pc.and_(pc.greater_equal(rows, 0), pc.less(rows, batch.num_rows))
    chosen = pc.and_(chosen, pc.and_(pc.greater_equal(findings["suspicion"], least), findings["repair"].is_valid()))
    own = findings.set_column(findings.column_names.index("row"), "row", rows).filter(chosen)
    changes = {}
    for place, field in enumerate(batch.schema):
        lines = own.filter(pc.equal(own["column"], field.name))
        repairs = dict(zip(lines["row"].to_pylist(), lines["repair"].to_pylist(), strict=True))
        cells = {row: cell for row in sorted(repairs) if (cell := _cell(repairs[row], field.type)) is not None}
        if cells:
            where = np.zeros(batch.num_rows, dtype=bool)
            where[list(cells)] = True
            changes[place] = Change(where, np.arange(len(cells), dtype=np.float64), tuple(cells.values()))
    if not changes:
        return batch
    return write_arrow(pa.Table.from_batches([batch]), changes).combine_chunks().to_batches()[0]


def _cell(text: str, type_: pa.DataType) -> Any:
    """What the text of a repair says in a column of this type; None if the column cannot hold it.

    >>> _cell("2.6", pa.int64()), _cell("2.6", pa.float32()), _cell("2.6", pa.string()), _cell("oak", pa.int64())
    (3, 2.6, '2.6', None)
    >>> _cell("2024-05-03", pa.timestamp("s", "Europe/Oslo")), _cell("False", pa.bool_())
    (datetime.datetime(2024, 5, 3, 0, 0), False)
    """
    if pa.types.is_dictionary(type_):
        return _cell(text, type_.value_type)
    with suppress(ValueError):
        if pa.types.is_temporal(type_):
            return datetime.datetime.fromisoformat(text)
        if pa.types.is_boolean(type_):
            return pa.scalar(text).cast(type_).as_py()
        if pa.types.is_integer(type_):
            return int(text) if text.lstrip("-").isdigit() else round(float(text))
        return float(text) if pa.types.is_floating(type_) or pa.types.is_decimal(type_) else text
    return None


def conform(batch: pa.RecordBatch | pa.Table, mender: CellMender, name: str) -> pa.Table:
    """The batch with the model's columns in their order, or one sentence about the first that does not fit."""
    names = mender.names_ or []
    check_columns(batch.schema.names, names, name)
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    return table.select(names)


def check_columns(own: Sequence[str], names: Sequence[str], name: str, *, in_order: bool = False) -> None:
    """Refuse a table whose columns are not those of the model, each once, in any order unless one is asked for.

    >>> check_columns(["b", "a"], ["a", "b"], "The batch")
    >>> check_columns(["b", "ages"], ["age", "b"], "The batch")
    Traceback (most recent call last):
    cellmend.errors.TableError: The batch must have the columns of the model; it lacks 'age'. Did you mean 'ages'? \
Hint: fit a model to this table.
    """
    for what, odd, near in (
        ("lacks", [each for each in names if each not in own], own),
        ("also has", [each for each in own if each not in names], names),
        ("has twice", [each for each in own if own.count(each) > 1], ()),
    ):
        if odd:
            raise TableError(
                f"{name} must have the columns of the model; it {what} {odd[0]!r}.{did_you_mean(odd[0], near)} "
                "Hint: fit a model to this table."
            )
    if in_order and list(own) != list(names):
        raise TableError(f"{name} must have the columns of the model in their order, {', '.join(names[:5])} ...")


def scores_schema(names: Sequence[str]) -> pa.Schema:
    """Of the scores of a table with these columns; the last is the score of the row, of a name that no column has.

    >>> scores_schema(["id", "row_score"]).names
    ['id', 'row_score', 'row_score_']
    """
    last = "row_score"
    while last in names:
        last += "_"
    return pa.schema([(name, pa.float64()) for name in (*names, last)])
