"""A table of any size as units of work: some row groups of one file each, read in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from pyarrow.dataset import ParquetFileFragment, get_partition_keys

from cellmend.errors import FileError
from cellmend.files.folders import Parts, open_parts, part_kind
from cellmend.files.places import absolute, filesystem, readable
from cellmend.streaming import limits

Item = TypeVar("Item")


@dataclass(frozen=True)
class Unit:
    """Some row groups of a Parquet file, or record batches of an Arrow file; what a worker does at a time."""

    number: int
    file: str
    groups: tuple[int, int]  # from, to
    first_row: int  # in the whole table
    rows: int
    keys: Mapping[str, Any]  # columns that the names of folders tell, region=eu
    schema: pa.Schema  # of the whole table; single files may have other types


@dataclass(frozen=True)
class Stream:
    """A table of any size: Parquet or Arrow files, here or on a remote filesystem."""

    url: str
    names: list[str]
    units: list[Unit]
    files: list[tuple[str, int, int]]  # path, bytes and when it was changed, to know it again

    @property
    def rows(self) -> int:
        return sum(unit.rows for unit in self.units)

    @property
    def name(self) -> str:
        """The last part of the path, to speak of it."""
        return self.url.rstrip("/").rpartition("/")[2]


def open_stream(url: str) -> Stream:
    """The table in a file, or in all Parquet and Arrow files below a folder, cut into units."""
    url = absolute(url)
    parts = open_parts(url)
    units: list[Unit] = []
    for fragment in parts.fragments:
        keys, counts = get_partition_keys(fragment.partition_expression), _group_sizes(parts, fragment)
        first = 0
        for last in range(1, len(counts) + 1):
            rows = sum(counts[first:last])
            if rows and (rows >= limits.UNIT or last == len(counts)):
                before = units[-1].first_row + units[-1].rows if units else 0
                units.append(Unit(len(units), fragment.path, (first, last), before, rows, keys, parts.schema))
                first = last
    if not units:
        raise FileError(f"{url} must hold a table with rows; it has none.")
    return Stream(url, parts.schema.names, units, [(each.path, each.size, each.mtime_ns or 0) for each in parts.files])


def _group_sizes(parts: Parts, fragment: Any) -> list[int]:
    """The rows of each row group of a Parquet file, or of each record batch of an Arrow file."""
    with readable(fragment.path, part_kind(fragment.path)):
        if isinstance(fragment, ParquetFileFragment):
            return [group.num_rows for group in fragment.row_groups]
        with parts.system.open_input_file(fragment.path) as file, pa.ipc.open_file(file) as reader:
            return [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]


def read_unit(url: str, unit: Unit, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a unit in batches of bounded size, with these columns in the types of the whole table."""
    system, _ = filesystem(url)
    schema = pa.schema([unit.schema.field(name) for name in names])
    with readable(unit.file, part_kind(unit.file)), system.open_input_file(unit.file) as file:
        for batch in _batches(file, unit, [name for name in names if name not in unit.keys]):
            for start in range(0, batch.num_rows, limits.PIECE):
                piece = batch.slice(start, limits.PIECE)
                told = {key: pa.scalar(value, unit.schema.field(key).type) for key, value in unit.keys.items()}
                columns = [
                    pa.repeat(told[field.name], piece.num_rows)
                    if field.name in told
                    else piece[field.name].cast(field.type)
                    for field in schema
                ]
                yield pa.record_batch(columns, schema=schema)


def head(stream: Stream) -> pa.RecordBatch:
    """The first rows of a table, as many as are held at once."""
    return next(iter(read_unit(stream.url, stream.units[0], stream.names)))


def _batches(file: Any, unit: Unit, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if part_kind(unit.file) == ".parquet":
        # Not by pyarrow.dataset, which decodes row groups as a whole, and not buffered ahead: what is, pyarrow keeps
        # until the end of the file, apache/arrow#39808.
        found = pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=limits.READ_AT_ONCE)
        yield from found.iter_batches(limits.PIECE, row_groups=list(range(*unit.groups)), columns=list(names))
    else:
        reader = pa.ipc.open_file(file)
        yield from (reader.get_batch(number) for number in range(*unit.groups))


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items; the next is made while this one is used.

    >>> list(ahead([1, 2, 3]))
    [1, 2, 3]
    """
    rest, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, rest, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, rest, end)
            yield item  # type: ignore[misc]
