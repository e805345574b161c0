"""A task on a folder, and what came of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cellmend import streaming as s


def task_for(folder: Path, model: Path, output: Path, what: str = "score") -> tuple[s.Task, s.Stream]:
    stream = s.open_stream(str(folder))
    return s.Task(what, stream.url, stream.names, str(output), str(model), "digest"), stream


def result(output: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(part) for part in sorted(output.glob("part-*.parquet"))])


def nothing(rows: int) -> None:
    """Told how far it is, and silent."""
