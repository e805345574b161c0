"""Record batches in, record batches out: what every engine calls."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.estimator import CellMender
from cellmend.findings.finding import FINDINGS, to_arrow
from cellmend.table.frames import Change, write_arrow
from cellmend.table.reader import check_columns


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
    """One line for each cell of at least this suspicion, its row counted from `first_row`; columns as in FINDINGS.

    Contradictions are left out: whether one is flagged depends on all rows of the table.
    """
    table = conform(batch, mender, name)
    found = mender.mend(table, suspicion=least, impute=False, rows_alone=True).flagged if table.num_rows else []
    lines = sorted(found, key=lambda each: (each.row, table.column_names.index(each.column)))
    whole = to_arrow(lines, first_row=first_row).combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=FINDINGS)


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
            changes[place] = Change.to_cells(where, list(cells.values()))
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


def scores_schema(names: Sequence[str]) -> pa.Schema:
    """Of the scores of a table with these columns; the last is the score of the row, of a name that no column has.

    >>> scores_schema(["id", "row_score"]).names
    ['id', 'row_score', 'row_score_']
    """
    last = "row_score"
    while last in names:
        last += "_"
    return pa.schema([(name, pa.float64()) for name in (*names, last)])
