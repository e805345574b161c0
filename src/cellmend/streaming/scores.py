"""Scores of a table in one file, and what a person should know of newer rows beside what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from cellmend.estimator import CellMender
from cellmend.files.formats import TableFile, write_table, written_in_pieces
from cellmend.model.profile import Profile
from cellmend.progress import progress
from cellmend.streaming.batches import conform, score_batch, scores_schema
from cellmend.streaming.streams import Stream, ahead, head, read_unit
from cellmend.table.reader import about_others, others


@dataclass(frozen=True)
class NewRows:
    """What a person should know of a newer table."""

    otherwise: Mapping[str, str] = field(default_factory=dict)  # column to how it is written otherwise than learned
    moved: Mapping[str, str] = field(default_factory=dict)  # column to a sentence
    extra: tuple[str, ...] = ()  # columns that the model does not know

    @property
    def notes(self) -> list[str]:
        """The same in sentences.

        >>> NewRows(moved={"city": "city moved since the model learned: Ulm is 30 %, it was 3 %"}).notes[-1]
        'Hint: cellmend update teaches the model the new rows.'
        """
        hint = ["Hint: cellmend update teaches the model the new rows."] if self.moved else []
        extra = [f"{about_others(self.extra)}."] if self.extra else []
        otherwise = [f"{name}: {sentence}." for name, sentence in self.otherwise.items()]
        return [*extra, *otherwise, *(f"{sentence}." for sentence in self.moved.values()), *hint]


def compare(mender: CellMender, names: list[str], profile: Profile, otherwise: Mapping[str, str]) -> NewRows:
    """A newer table with these columns and this profile beside what the model learned."""
    moved = {name: said for name, said in mender.moved_since(profile).items() if name not in otherwise}
    return NewRows(otherwise, moved, tuple(others(names, mender.names_ or [])))


def compare_table(source: TableFile, mender: CellMender) -> NewRows:
    """A newer table beside what the model learned."""
    table = conform(source.table, mender, source.name)
    adapted, otherwise = mender.adapted_to(table)
    return compare(adapted, source.table.column_names, adapted.profile(table), otherwise)


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
    write_table(path, score_table(source, mender.adapted_to(conform(source.table, mender, source.name))[0]))
    return compare_table(source, mender) if compared else NewRows()


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
