"""Tables in files: read as they are, written back with nothing changed but the cells that were repaired.

A CSV file is read as text, cell by cell, and kept as it was: a repaired copy has new text in the changed cells and the
old bytes everywhere else, "007", "1.50" and trailing spaces included.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet
from numpy.typing import NDArray

from cellmend.schema import did_you_mean

Changes = Mapping[int, Mapping[int, str]]  # row -> column -> new text of the cell

STDIN = Path("-")
DELIMITERS = ",;\t|"
LOOKED_AT = 200  # records from which the delimiter is told
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
QUOTE, NEWLINE, RETURN = b'"\n\r'


class FileError(ValueError):
    """A file that cannot be read or written as a table."""


# ---------------------------------------------------------------- CSV, byte for byte


@dataclass(frozen=True)
class CsvText:
    """The text of a CSV file and where its records lie in it."""

    content: bytes  # UTF-8, without a byte order mark
    mark: bytes  # the byte order mark
    encoding: str
    delimiter: str
    starts: NDArray[np.int64]  # (N + 1,) first byte of each record, the header first
    ends: NDArray[np.int64]  # (N + 1,) the byte after its last, line end not counted

    def with_cells(self, changes: Changes) -> bytes:
        """The file with new text in these cells and all other bytes as they were; rows count from 0 below the header.

        >>> csv = read_csv_text(b"id,x\\n007, 1.50 \\n", "a.csv")
        >>> csv.with_cells({0: {1: "2,5"}})
        b'id,x\\n007,"2,5"\\n'
        """
        pieces, done = [], 0
        for row in sorted(changes):
            first, last = int(self.starts[row + 1]), int(self.ends[row + 1])
            for column, (start, end) in enumerate(fields(self.content[first:last], self.delimiter)):
                if column in changes[row]:
                    old = self.content[first + start : first + end]
                    pieces += [self.content[done : first + start], _as_field(changes[row][column], old, self.delimiter)]
                    done = first + end
        whole = b"".join([*pieces, self.content[done:]])
        return self.mark + (whole if self.encoding.startswith("utf-8") else whole.decode().encode(self._plain_encoding))

    def changed(self, changes: Changes) -> CsvText:
        """The same file with new text in these cells."""
        raw = self.with_cells(changes)[len(self.mark) :]
        content = raw if self.encoding.startswith("utf-8") else raw.decode(self._plain_encoding).encode()
        return CsvText(content, self.mark, self.encoding, self.delimiter, *records(content, self.delimiter))

    @property
    def _plain_encoding(self) -> str:
        """UTF-16 in the order of its mark, which is written apart."""
        return {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(self.mark, self.encoding)

    def table(self) -> pa.Table:
        """All cells as text, (N rows); an empty cell is the empty text."""
        header = [_unquoted(self.content[self.starts[0] :][start:end]) for start, end in self._header_fields()]
        options = pa.csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False)
        return pa.csv.read_csv(
            pa.BufferReader(self.content),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=options,
        )

    def _header_fields(self) -> list[tuple[int, int]]:
        return fields(self.content[self.starts[0] : self.ends[0]], self.delimiter)


def read_csv_text(raw: bytes, name: str, delimiter: str | None = None) -> CsvText:
    """A CSV file's bytes, with encoding and delimiter found out.

    >>> read_csv_text("größe;x\\n1,5;a\\n".encode("cp1252"), "a.csv").delimiter
    ';'
    """
    mark = next((mark for mark in BYTE_ORDER_MARKS if raw.startswith(mark)), b"")
    text, encoding = _decode(raw[len(mark) :], mark)
    content = text.encode()
    if not content.strip():
        raise FileError(f"{name} must hold a table; it is empty.")
    starts, ends = records(content, delimiter)
    delimiter = delimiter or tell_delimiter([content[s:e] for s, e in zip(starts[:LOOKED_AT], ends, strict=False)])
    return CsvText(content, mark, encoding, delimiter, starts, ends)


def _decode(raw: bytes, mark: bytes) -> tuple[str, str]:
    """As the mark says, else UTF-8, else the one that Windows wrote before."""
    marked = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(mark)
    for encoding in [marked] if marked else ["utf-8", "cp1252"]:
        try:
            return raw.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1"), "latin-1"


def records(content: bytes, delimiter: str | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each record starts and ends; a line break within quotes does not end one, and empty lines are none.

    >>> starts, ends = records(b'a,b\\n"x\\ny",1\\n\\n2,3')
    >>> starts.tolist(), ends.tolist()
    ([0, 4, 13], [3, 11, 16])
    """
    data = np.frombuffer(content, dtype=np.uint8)
    newline = NEWLINE if NEWLINE in content else RETURN
    breaks = np.flatnonzero(data == newline)
    if QUOTE in content:
        breaks = _outside_quotes(content, data, breaks, delimiter or tell_delimiter(content.splitlines()[:LOOKED_AT]))
    starts = np.concatenate([[0], breaks + 1])
    ends = np.concatenate([breaks, [len(data)]])
    ends = ends - ((ends > starts) & (data[np.maximum(ends - 1, 0)] == RETURN))
    whole = ends > starts
    return starts[whole], ends[whole]


def _outside_quotes(
    content: bytes, data: NDArray[np.uint8], breaks: NDArray[np.int64], delimiter: str
) -> NDArray[np.int64]:
    """The line breaks that end a record.

    Quotes are in pairs where they open and close fields: a break with an even number before it is outside. Where a
    quote stands elsewhere (5" pipe), lines are gone through one by one.
    """
    edges = list(b"\n\r" + delimiter.encode())
    opening = (data == QUOTE) & np.isin(np.concatenate([[NEWLINE], data[:-1]]), edges)
    closing = (data == QUOTE) & np.isin(np.concatenate([data[1:], [NEWLINE]]), edges)
    if ((data == QUOTE) & ~opening & ~closing).any() or np.count_nonzero(data == QUOTE) % 2:
        return _outside_quotes_slowly(content, breaks, delimiter)
    return breaks[np.cumsum(data == QUOTE)[breaks] % 2 == 0]


def _outside_quotes_slowly(content: bytes, breaks: NDArray[np.int64], delimiter: str) -> NDArray[np.int64]:
    outside, start = [], 0
    for end in breaks.tolist():
        if not split(content[start:end], delimiter)[1]:
            outside.append(end)
            start = end + 1
    return np.array(outside, dtype=np.int64)


def fields(record: bytes, delimiter: str) -> list[tuple[int, int]]:
    """Where each field of a record starts and ends, quotes included.

    >>> fields(b'a,"b,c",', ",")
    [(0, 1), (2, 7), (8, 8)]
    """
    return split(record, delimiter)[0]


def split(record: bytes, delimiter: str) -> tuple[list[tuple[int, int]], bool]:
    """The fields of a record, and whether the last one opens a quote that nothing closes.

    A quote opens only at the start of a field, and two of them within are one that is meant.
    """
    between, start = delimiter.encode(), 0
    found: list[tuple[int, int]] = []
    while True:
        close = start
        if record[start : start + 1] == b'"':
            close = record.find(b'"', start + 1)
            while close >= 0 and record[close + 1 : close + 2] == b'"':
                close = record.find(b'"', close + 2)
            if close < 0:
                return [*found, (start, len(record))], True
        end = record.find(between, close)
        found.append((start, len(record) if end < 0 else end))
        if end < 0:
            return found, False
        start = end + len(between)


def tell_delimiter(lines: list[bytes]) -> str:
    """The delimiter that splits most records into the same number of fields, more than one; a comma if none does.

    >>> tell_delimiter([b"a;b;c", b"1,5;2;3", b"2,5;4;5"])
    ';'
    """

    def agreement(delimiter: str) -> tuple[int, int]:
        width, times = Counter(len(fields(line, delimiter)) for line in lines).most_common(1)[0]
        return (times, width) if width > 1 else (0, 0)

    best = max(DELIMITERS, key=agreement)
    return best if agreement(best) > (0, 0) else ","


def _unquoted(field: bytes) -> str:
    text = field.decode()
    return text[1:-1].replace('""', '"') if text.startswith('"') and text.endswith('"') and len(text) > 1 else text


def _as_field(text: str, old: bytes, delimiter: str) -> bytes:
    """New text in quotes if the old one was, or if it could not stand without."""
    quoted = old.startswith(b'"') or any(special in text for special in (delimiter, '"', "\n", "\r"))
    return (f'"{text.replace(chr(34), chr(34) * 2)}"' if quoted else text).encode()


# ---------------------------------------------------------------- files of all kinds


@dataclass(frozen=True)
class TableFile:
    """A table as it was read, and how to write it back."""

    name: str
    table: pa.Table  # cells of a CSV file as text, of other files in their own types
    csv: CsvText | None  # of a CSV file
    kind: str  # the suffix without compression, such as ".csv"
    compression: str | None

    @property
    def suffix(self) -> str:
        """How the name of a copy of the same kind ends, such as ".csv.gz"."""
        return self.kind + next((end for end, name in COMPRESSIONS.items() if name == self.compression), "")

    def write_changed(self, path: Path, changed: pa.Table, changes: Changes) -> None:
        """Write a copy of the same kind: `changes` of text into a CSV file, `changed` as a whole into others."""
        if path == STDIN:
            if self.csv is None:
                raise FileError(f"Only CSV can be written to standard output; {self.name} is {self.kind}.")
            sys.stdout.buffer.write(self.csv.with_cells(changes))
            return
        if not path.name.lower().endswith(self.suffix):
            raise FileError(f"A repaired copy has the format of its table: {path.name} must end in {self.suffix}.")
        with whole_file(path) as temporary:
            if self.csv is not None:
                _write_bytes(temporary, self.csv.with_cells(changes), self.compression)
            else:
                WRITERS[self.kind](changed, temporary)


def read_file(path: Path, delimiter: str | None = None) -> TableFile:
    """The table in a file or in a folder of Parquet files; `-` is CSV on standard input."""
    if path == STDIN:
        return _read_csv(sys.stdin.buffer.read(), "standard input", ".csv", None, delimiter)
    if not path.exists():
        near = did_you_mean(path.name, [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else [])
        raise FileError(f"{path} must be a file with a table; there is no such file.{near}")
    if path.is_dir():
        found = sorted(path.rglob("*.parquet"))
        if not found:
            raise FileError(f"{path} is a folder and must hold .parquet files; it holds none.")
        return TableFile(path.name, pa.dataset.dataset(found).to_table(), None, ".parquet", None)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    kind = (suffixes[-2] if len(suffixes) > 1 else "") if compression else (suffixes[-1] if suffixes else "")
    if kind in (".csv", ".tsv", ".txt"):
        with pa.input_stream(path, compression=compression) as stream:
            return _read_csv(stream.read(), path.name, kind, compression, "\t" if kind == ".tsv" else delimiter)
    if kind not in READERS or compression:
        known = ", ".join([".csv", ".tsv", ".txt", *READERS])
        raise FileError(f"{path.name} must end in one of {known} (the first three also compressed: .gz, .zst, .bz2).")
    try:
        return TableFile(path.name, READERS[kind](path), None, kind, None)
    except pa.ArrowInvalid as error:
        raise FileError(f"{path.name} must be a {kind} file; it cannot be read as one ({error}).") from None


def read_packed(packed: bytes, name: str) -> TableFile:
    """A CSV table from the bytes of a gzip file; a copy of it is not packed."""
    return _read_csv(pa.input_stream(pa.BufferReader(packed), compression="gzip").read(), name, ".csv", None, None)


def _read_csv(raw: bytes, name: str, kind: str, compression: str | None, delimiter: str | None) -> TableFile:
    text = read_csv_text(raw, name, delimiter)
    try:
        table = text.table()
    except pa.ArrowInvalid as error:
        raise FileError(f"{name} must have as many fields in every row as in its header; {error}.") from None
    last = text.content[text.starts[-1] : text.ends[-1]]
    if table.num_rows != len(text.starts) - 1 or split(last, text.delimiter)[1]:
        raise FileError(f"{name} must have its quotes in pairs; some field opens a quote that nothing closes.")
    return TableFile(name, table, text, kind, compression)


def _read_excel(path: Path) -> pa.Table:
    try:
        import pandas as pd

        return pa.Table.from_pandas(pd.read_excel(path), preserve_index=False)
    except ImportError:
        raise FileError("Reading .xlsx needs openpyxl. Hint: pip install 'cellmend[excel]'.") from None


def _write_excel(table: pa.Table, path: Path) -> None:
    with path.open("wb") as file:
        table.to_pandas().to_excel(file, index=False)


def _write_jsonl(table: pa.Table, path: Path) -> None:
    lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in table.to_pylist())
    path.write_text("".join(lines), encoding="utf-8")


READERS: dict[str, Callable[[Path], pa.Table]] = {
    ".parquet": pa.parquet.read_table,
    ".feather": pa.feather.read_table,
    ".arrow": pa.feather.read_table,
    ".jsonl": pa.json.read_json,
    ".ndjson": pa.json.read_json,
    ".xlsx": _read_excel,
}
WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    ".parquet": pa.parquet.write_table,
    ".feather": pa.feather.write_feather,
    ".arrow": pa.feather.write_feather,
    ".jsonl": _write_jsonl,
    ".ndjson": _write_jsonl,
    ".xlsx": _write_excel,
}


def write_table(path: Path, table: pa.Table) -> None:
    """A new table as a file of the kind that its name says; `-` is CSV on standard output."""
    if path == STDIN:
        pa.csv.write_csv(table, sys.stdout.buffer)
        return
    if path.suffix.lower() not in (".csv", *WRITERS):
        raise FileError(f"{path.name} must end in one of .csv, {', '.join(WRITERS)}.")
    with whole_file(path) as temporary:
        if path.suffix.lower() == ".csv":
            pa.csv.write_csv(table, temporary)
        else:
            WRITERS[path.suffix.lower()](table, temporary)


def _write_bytes(path: Path, content: bytes, compression: str | None) -> None:
    with pa.output_stream(path, compression=compression) as stream:
        stream.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name to write under, renamed to `path` at the end: the file is whole or not there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def refuse_to_overwrite(paths: Iterable[Path], *, force: bool) -> None:
    """Stop before anything is done if one of these is there already."""
    for path in paths:
        if path.exists() and not force:
            raise FileError(f"{path} is there already. Hint: choose another place with -o, or add --force.")
