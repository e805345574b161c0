"""The one place that opens a table, whatever it is: a file, a folder, a URL or standard input.

A table comes either whole, in memory (TableFile), or in pieces (Stream).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pyarrow.fs import FileType

from cellmend.errors import FileError
from cellmend.files.csvtext import CsvText, read_csv_text
from cellmend.files.folders import KINDS
from cellmend.files.formats import TableFile, is_text, kind_of, read_file
from cellmend.files.layout import NOTHING_ASKED, Asked
from cellmend.files.places import STDIN, find, is_url, names_folder, readable, whole_file
from cellmend.files.results import check_room, only_run, telling
from cellmend.streaming import limits
from cellmend.streaming.streams import Stream, ahead, open_stream


def open_source(place: str, copies: Path, *, larger_than: int, asked: Asked = NOTHING_ASKED) -> TableFile | Stream:
    """A table in pieces if it has more rows than this, or is in Parquet or Arrow files behind a URL; else whole.

    A large CSV file is first copied into the folder `copies`, as Parquet. `asked` is what the user says of the file.
    """
    stream = _stream(place, copies, asked, smallest_csv=limits.LARGE_CSV)
    if stream is None or (stream.rows <= larger_than and not is_url(place)):
        return read_file(place, asked)
    return stream


def open_in_pieces(place: str, copies: Path, asked: Asked = NOTHING_ASKED) -> Stream:
    """A table in pieces, however small it is; a CSV file is first copied into the folder `copies`."""
    stream = _stream(place, copies, asked, smallest_csv=0)
    if stream is None and asked.ragged is not None:
        raise FileError(
            "--ragged must be for a table that is read whole. Hint: without --engine, and with a file for -o."
        )
    if stream is None:
        raise FileError(
            f"To be worked on in parts, the table must be Parquet, Arrow or CSV files; {place} is none. "
            "Hint: without --engine, and with a file for -o, it can be of other kinds."
        )
    return stream


def _stream(place: str, copies: Path, asked: Asked, *, smallest_csv: int) -> Stream | None:
    """A table in pieces; None if it can only be read whole, or is a CSV file of fewer bytes than this."""
    if place == STDIN:
        return None
    _, path, found = find(place)
    if found.type == FileType.Directory or path.lower().endswith(KINDS):
        return open_stream(place)
    if is_text(path) and found.size >= smallest_csv and asked.ragged is None:
        return open_stream(str(csv_as_parquet(place, copies, asked)))
    return None


@contextmanager
def copies_for(output: str) -> Iterator[Path]:
    """A folder for copies of CSV files: inside a local output folder, so that they are made once, or temporary.

    A local output folder is meanwhile for this run alone.
    """
    if output and names_folder(output) and not is_url(output):
        check_room(Path(output))
        with telling(output):
            Path(output).mkdir(parents=True, exist_ok=True)
        try:
            with only_run(Path(output)):
                yield Path(output) / "_source"
        finally:
            with suppress(OSError):  # there is something in it
                Path(output).rmdir()
    else:
        with TemporaryDirectory() as folder:
            yield Path(folder)


def _lines_before(text: CsvText) -> int:
    """The lines of a file above its first row."""
    first = int(text.starts[1]) if len(text.starts) > 1 else len(text.content)
    return max(text.content.count(b"\n", 0, first), 1)


def csv_as_parquet(place: str | Path, folder: Path, asked: Asked = NOTHING_ASKED) -> Path:
    """A copy of a CSV file as a Parquet file of text, made once.

    A Parquet file can be read from any row group on; a row of a CSV file is only found by reading all before it.
    """
    system, path, found = find(place)
    copy = folder / f"{found.base_name.partition('.')[0]}-{found.size}-{found.mtime_ns}.parquet"
    if copy.exists():
        return copy
    _, compression = kind_of(found.base_name)
    with readable(found.base_name, ".csv"):
        with system.open_input_stream(path, compression=compression) as start:
            head = start.read(2**20)
        text = read_csv_text(head[: head.rfind(b"\n") + 1] or head, found.base_name, asked)
        folder.mkdir(parents=True, exist_ok=True)
        with system.open_input_stream(path, compression=compression) as file, whole_file(copy) as temporary:
            reader = pa.csv.open_csv(
                file,
                read_options=pa.csv.ReadOptions(
                    column_names=text.names, skip_rows=_lines_before(text), encoding=text.encoding
                ),
                parse_options=pa.csv.ParseOptions(delimiter=text.delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(text.names, pa.string()), strings_can_be_null=False
                ),
            )
            with pa.parquet.ParquetWriter(temporary, reader.schema) as writer:
                for batch in ahead(reader):
                    writer.write_batch(batch)
    return copy
