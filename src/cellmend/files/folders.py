"""A table in many files: Parquet and Arrow files below a folder, whose names such as region=eu may be a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSystem, FileType

from cellmend.errors import FileError
from cellmend.files.places import files_below, find, readable

KINDS = (".parquet", ".arrow", ".feather")  # of files that can be part of a table


@dataclass(frozen=True)
class Parts:
    """The files of one table, as pyarrow.dataset sees them: whole or in pieces, the same columns of the same types."""

    system: FileSystem
    files: list[FileInfo]
    fragments: list[Any]  # one for each file, in the same order
    schema: pa.Schema  # the columns of the first file, and those that only names of folders tell

    def table(self) -> pa.Table:
        """All rows of all files."""
        tables = []
        for fragment in self.fragments:
            with readable(fragment.path, part_kind(fragment.path)):
                tables.append(fragment.to_table(schema=self.schema))
        return pa.concat_tables(tables)


def part_kind(path: str) -> str:
    """How the name of a part ends; what is no Parquet file is read as an Arrow file.

    >>> part_kind("data/a.Parquet"), part_kind("data/a")
    ('.parquet', '.arrow')
    """
    return next((kind for kind in KINDS if path.lower().endswith(kind)), ".arrow")


def open_parts(place: str) -> Parts:
    """The Parquet or Arrow file at a path or URL, or all of them below a folder."""
    from pyarrow import dataset  # here: it loads pandas, which most commands can do without

    system, path, found = find(place)
    base = path if found.type == FileType.Directory else path.rpartition("/")[0]
    files = [found] if found.type == FileType.File else files_below(system, path, KINDS)
    if not files:
        raise FileError(f"{place} is a folder and must hold .parquet or .arrow files; it holds none.")
    by_format: dict[type[Any], list[str]] = {}
    for each in files:
        kind = dataset.ParquetFileFormat if part_kind(each.path) == ".parquet" else dataset.IpcFileFormat
        by_format.setdefault(kind, []).append(each.path)
    schema, fragments = pa.schema([]), list[Any]()
    for kind, paths in by_format.items():
        with readable(paths[0], part_kind(paths[0])):
            options = dataset.FileSystemFactoryOptions(partition_base_dir=base)
            options.partitioning_factory = dataset.HivePartitioning.discover()
            factory = dataset.FileSystemDatasetFactory(system, paths, kind(), options)
            schema = schema if schema.names else _table_schema(place, *factory.inspect_schemas())
            fragments += factory.finish(schema).get_fragments()
    fragments.sort(key=lambda each: each.path)
    _refuse_other_columns(place, set(schema.names), fragments)
    return Parts(system, files, fragments, schema)


def _table_schema(place: str, first: pa.Schema, *told: pa.Schema) -> pa.Schema:
    """The columns of the first file, and after them those that the names of folders tell."""
    keys = [field for each in told for field in each if field.name not in first.names]
    refuse_twins(first.names, place)
    return pa.schema([*first, *keys])


def refuse_twins(names: list[str], place: str) -> None:
    """Stop if two columns have the same name."""
    column, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise FileError(f"{place} must give every column a name of its own; {times} are named {column!r}.")


def _refuse_other_columns(place: str, names: set[str], fragments: Sequence[Any]) -> None:
    from pyarrow.dataset import get_partition_keys

    for fragment in fragments:
        with readable(fragment.path, part_kind(fragment.path)):
            own = {*fragment.physical_schema.names, *get_partition_keys(fragment.partition_expression)}
        if own != names:
            odd = sorted(own ^ names)[0]
            raise FileError(f"All files of {place} must have the same columns; {fragment.path} differs by {odd!r}.")
