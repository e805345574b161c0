"""Tables in files: read as they are, written back with nothing changed but the cells that were repaired.

A repaired copy keeps every byte of a CSV file outside the changed cells, the lines of a JSON Lines file in which no
cell was changed, and the other sheets, formulas and formats of a workbook. A new format goes into the tables READERS
or ORIGINALS, and WRITERS.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from numpy.typing import NDArray
from pyarrow.fs import FileSystem, FileType

from cellmend.errors import FileError
from cellmend.files.csvtext import Changes, CsvText, check_quotes, misfit, read_csv_text
from cellmend.files.folders import open_parts, refuse_twins
from cellmend.files.jsonlines import JsonLines, read_json_lines, write_json_lines
from cellmend.files.jsontable import JsonTable, read_json_table
from cellmend.files.layout import NOTHING_ASKED, Asked
from cellmend.files.opendocument import read_ods
from cellmend.files.packed import only_table, read_bounded
from cellmend.files.places import STDIN, find, first_line, readable, whole_file
from cellmend.files.workbook import Marks, Workbook, read_workbook, write_workbook

TEXTS = (".csv", ".tsv", ".txt")
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}  # of texts
TEXT_ENDINGS = tuple(text + end for text in TEXTS for end in ("", *COMPRESSIONS))
READERS: dict[str, Callable[[Any], pa.Table]] = {
    ".parquet": pa.parquet.read_table,
    ".feather": pa.feather.read_table,
    ".arrow": pa.feather.read_table,
}
Original = JsonLines | JsonTable | Workbook  # kept, so that a copy differs little
ORIGINALS: dict[str, Callable[[bytes, str, Asked], Original]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_table,
    ".xlsx": read_workbook,
}
ODS, ZIP = ".ods", ".zip"
WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    ".parquet": pa.parquet.write_table,
    ".feather": pa.feather.write_feather,
    ".arrow": pa.feather.write_feather,
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".xlsx": write_workbook,
}


@dataclass(frozen=True)
class TableFile:
    """A table as it was read, and how to write it back."""

    name: str
    table: pa.Table  # cells of a CSV file as text, of other files in their own types
    kind: str = ".parquet"  # the suffix without compression
    compression: str | None = None
    csv: CsvText | None = None  # of a CSV file
    original: Original | None = None  # of a file of these kinds
    told: tuple[str, ...] = ()  # notes on a file of another kind

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found out of the file and a person should know, in words."""
        own = self.csv or self.original
        return self.told if own is None else own.notes

    @property
    def suffix(self) -> str:
        """How the name of a copy of the same kind ends, such as ".csv.gz"."""
        return self.kind + next((end for end, name in COMPRESSIONS.items() if name == self.compression), "")

    @property
    def line_numbers(self) -> NDArray[np.int64] | None:
        """Where each row starts, as an editor or a spreadsheet counts the lines of the file; None if it has none."""
        original = self.csv or self.original
        return None if original is None else original.line_numbers

    def write_changed(self, path: Path, changed: pa.Table, changes: Changes, marks: Marks | None = None) -> None:
        """Write a copy of the same kind: `changes` of text into a CSV file, the cells of `changed` into others.

        In a workbook the cells in `marks` are coloured and commented.
        """
        if str(path) == STDIN:
            if self.csv is None:
                raise FileError(f"Only CSV can be written to standard output; {self.name} is {self.kind}.")
            sys.stdout.buffer.write(self.csv.with_cells(changes))
            return
        if not path.name.lower().endswith(self.suffix):
            raise FileError(f"A repaired copy has the format of its table: {path.name} must end in {self.suffix}.")
        with whole_file(path) as temporary:
            if self.csv is not None:
                write_bytes(temporary, self.csv.with_cells(changes), self.compression)
            elif isinstance(self.original, Workbook):
                write_bytes(temporary, self.original.with_table(changed, marks))
            elif self.original is not None:
                write_bytes(temporary, self.original.with_table(changed))
            else:
                WRITERS[self.kind](changed, temporary)


# ---------------------------------------------------------------- reading


def read_file(place: str | Path, asked: Asked = NOTHING_ASKED) -> TableFile:
    """The table in a file or a folder of Parquet files, at a path or a URL; `-` is CSV on standard input.

    `asked` is what the user says of the file.
    """
    if str(place) == STDIN:
        return _read_csv(sys.stdin.buffer.read(), "standard input", asked)
    system, path, found = find(place)
    name = found.base_name
    if found.type == FileType.Directory:
        return TableFile(name, open_parts(str(place)).table())
    if name.lower().endswith(ZIP):
        content, inside = only_table(_content(system, path, name), name, (*TEXT_ENDINGS, *READERS, *ORIGINALS, ODS))
        return read_bytes(content, inside, asked)
    kind, compression = kind_of(name)
    with readable(name, kind):
        if kind in READERS:
            with system.open_input_file(path) as file:
                return _distinct(TableFile(name, READERS[kind](file), kind))
        content = _content(system, path, name, compression)
    return _read_content(content, name, asked, kind, compression)


def read_bytes(content: bytes, name: str, asked: Asked = NOTHING_ASKED) -> TableFile:
    """The table in a file of this name that has this content; a copy of it is not compressed."""
    kind, compression = kind_of(name)
    with readable(name, kind):
        if kind in READERS:
            return _distinct(TableFile(name, READERS[kind](pa.BufferReader(content)), kind))
        if compression:
            content = read_bounded(pa.input_stream(pa.BufferReader(content), compression), len(content), name)
    return _read_content(content, name, asked, kind, None)


def _read_content(content: bytes, name: str, asked: Asked, kind: str, compression: str | None) -> TableFile:
    if kind in TEXTS:
        return _read_csv(content, name, asked, kind, compression)
    if kind == ODS:
        table, notes = read_ods(content, name, asked)
        return _distinct(TableFile(name, table, ".xlsx", told=notes))
    with readable(name, kind):
        original = ORIGINALS[kind](content, name, asked)
    return _distinct(TableFile(name, original.table, kind, original=original))


def kind_of(name: str) -> tuple[str, str | None]:
    """What kind of table a file's name says, and how it is compressed.

    >>> kind_of("orders.csv.gz"), kind_of("orders.Parquet")
    (('.csv', 'gzip'), ('.parquet', None))
    """
    suffixes = ["", *(suffix.lower() for suffix in PurePosixPath(name).suffixes)]
    compression = COMPRESSIONS.get(suffixes[-1])
    kind = suffixes[-2] if compression else suffixes[-1]
    if kind == ".xls":
        raise FileError(f"{name} is a workbook of before 2007. Hint: save it as .xlsx, which can be read.")
    if kind not in TEXTS and (compression or kind not in (*READERS, *ORIGINALS, ODS)):
        known = ", ".join([*TEXTS, *READERS, *ORIGINALS, ODS, ZIP])
        raise FileError(f"{name} must end in one of {known} (the first three also compressed: .gz, .zst, .bz2).")
    return kind, compression


def is_text(name: str) -> bool:
    """Does a file's name say that it is CSV, compressed or not?

    >>> is_text("orders.CSV"), is_text("orders.tsv.gz"), is_text("orders.parquet")
    (True, True, False)
    """
    return name.lower().endswith(TEXT_ENDINGS)


def _content(system: FileSystem, path: str, name: str, compression: str | None = None) -> bytes:
    with system.open_input_stream(path, compression=compression) as stream:
        if compression is None:
            return bytes(stream.read())
        return read_bounded(stream, system.get_file_info(path).size or 0, name)


def _distinct(file: TableFile) -> TableFile:
    """A file that was read, if no two of its columns have the same name."""
    refuse_twins(file.table.column_names, file.name)
    return file


def _read_csv(raw: bytes, name: str, asked: Asked, kind: str = ".csv", compression: str | None = None) -> TableFile:
    tabs = kind == ".tsv" and asked.delimiter is None
    text = read_csv_text(raw, name, replace(asked, delimiter="\t") if tabs else asked)
    refuse_twins(text.names, name)
    check_quotes(text, name)
    if asked.ragged is not None:
        text = text.with_ragged(asked.ragged)
    try:
        table = text.table()
    except pa.ArrowInvalid as error:
        raise FileError(misfit(text, name, first_line(error))) from None
    if table.num_rows != len(text.starts) - 1:
        raise FileError(misfit(text, name, "some line does not"))
    return TableFile(name, table, kind, compression, csv=text)


# ---------------------------------------------------------------- writing


def write_table(path: Path, table: pa.Table) -> None:
    """A new table as a file of the kind that its name says; `-` is CSV on standard output."""
    with written_in_pieces(path, table.schema) as write:
        write(table)


@contextmanager
def written_in_pieces(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], Any]]:
    """Adds rows to a new file of the kind that its name says; `-` is CSV on standard output."""
    if str(path) == STDIN:
        with pa.csv.CSVWriter(sys.stdout.buffer, schema) as writer:
            yield writer.write_table
        return
    kind = path.suffix.lower()
    if kind not in (".csv", *WRITERS):
        raise FileError(f"{path.name} must end in one of .csv, {', '.join(WRITERS)}.")
    with whole_file(path) as temporary:
        if kind in PIECE_WRITERS:
            with PIECE_WRITERS[kind](str(temporary), schema) as writer:
                yield writer.write_table
        else:  # kinds that nobody has so large
            held: list[pa.Table] = []
            yield held.append
            WRITERS[kind](pa.concat_tables(held), temporary)


def _arrow_writer(path: str, schema: pa.Schema) -> pa.RecordBatchFileWriter:
    return pa.ipc.new_file(path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))


PIECE_WRITERS: dict[str, Callable[[str, pa.Schema], Any]] = {
    ".csv": pa.csv.CSVWriter,
    ".parquet": pa.parquet.ParquetWriter,
    ".feather": _arrow_writer,
    ".arrow": _arrow_writer,
}


def write_bytes(path: Path, content: bytes, compression: str | None = None) -> None:
    """A file with this content, compressed if asked for."""
    with pa.output_stream(path, compression=compression) as stream:
        stream.write(content)
