"""Scores of a table in one file, and what a person should know of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cellmend.estimator import CellMender
from cellmend.files.formats import TableFile, write_table, written_in_pieces
from cellmend.model.profile import Profile
from cellmend.progress import progress
from cellmend.streaming.batches import conform, score_batch, scores_schema
from cellmend.streaming.newer import NewRows, compare
from cellmend.streaming.streams import Stream, ahead, head, read_unit


def score_table(source: TableFile, mender: CellMender) -> pa.Table:
    """The suspicion of every cell under the table's own column names, and the row scores beside them."""
    batch = source.table.combine_chunks().to_batches()[0] if source.table.num_rows else source.table
    return pa.Table.from_batches([score_batch(mender, batch, name=source.name)])


def write_scores(
    source: TableFile | Stream, mender: CellMender, path: Path, *, shown: bool, compared: bool | None = None
) -> NewRows:
    """Scores of a table in one file, with progress if `shown`; if it is `compared`, as what is shown is, returns what
    a person should know about the table."""
    compared = shown if compared is None else compared
    if isinstance(source, Stream):
        return _write_scores_in_pieces(source, mender, path, shown=shown, compared=compared)
    table = conform(source.table, mender, source.name)
    mender, otherwise = mender.adapted_to(table)
    write_table(path, score_table(source, mender))
    return compare(mender, source.table.column_names, mender.profile(table), otherwise) if compared else NewRows()


def _write_scores_in_pieces(stream: Stream, mender: CellMender, path: Path, *, shown: bool, compared: bool) -> NewRows:
    """What `score_table` gives, each piece written before the next is judged."""
    profile: Profile | None = None
    schema, done = scores_schema(mender.names_ or stream.names), 0
    mender, otherwise = mender.adapted_to(conform(head(stream), mender, stream.name))
    with written_in_pieces(path, schema) as write, progress("Scoring", stream.rows, shown=shown) as show_rows:
        for unit in stream.units:
            for batch in ahead(read_unit(stream.url, unit, stream.names)):
                write(pa.Table.from_batches([score_batch(mender, batch, name=stream.name)]))
                if compared:
                    own = mender.profile(conform(batch, mender, stream.name))
                    profile = own if profile is None else profile + own
                done += batch.num_rows
                show_rows(done)
    return NewRows() if profile is None else compare(mender, stream.names, profile, otherwise)
