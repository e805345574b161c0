"""Tables in files: read as they are, written back with nothing changed but the cells that were repaired.

A CSV file is read as text, cell by cell, and kept as it was: a repaired copy has new text in the changed cells and the
old bytes everywhere else, "007", "1.50" and trailing spaces included. So are the lines of a JSON Lines file, and of a
workbook its other sheets, formulas and formats.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
from numpy.typing import NDArray

from cellmend.schema import did_you_mean

Changes = Mapping[int, Mapping[int, str]]  # row -> column -> new text of the cell

STDIN = Path("-")
DELIMITERS = ",;\t|"
UNIT_SEPARATOR = "\x1f"  # a delimiter that no text holds
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
        alone = len(self.names) == 1
        pieces, done = [], 0
        for row in sorted(changes):
            first, last = int(self.starts[row + 1]), int(self.ends[row + 1])
            for column, (start, end) in enumerate(fields(self.content[first:last], self.delimiter)):
                if column in changes[row]:
                    new = _as_field(
                        changes[row][column], self.content[first + start : first + end], self.delimiter, alone=alone
                    )
                    pieces += [self.content[done : first + start], new]
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

    @property
    def names(self) -> list[str]:
        """The columns as the header names them, by their place where it does not."""
        header = self.content[self.starts[0] : self.ends[0]]
        return _named([_unquoted(header[start:end]) for start, end in fields(header, self.delimiter)])

    def table(self) -> pa.Table:
        """All cells as text, (N rows); an empty cell is the empty text."""
        names = self.names
        if len(self.starts) == 1:
            return pa.schema([(name, pa.string()) for name in names]).empty_table()
        return pa.csv.read_csv(
            pa.BufferReader(pa.py_buffer(self.content).slice(int(self.starts[1]))),
            read_options=pa.csv.ReadOptions(column_names=names),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )


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
    first = [content[start:end] for start, end in zip(starts[:LOOKED_AT], ends, strict=False)]
    delimiter = delimiter or tell_delimiter(first, content)
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
        lines = list(islice(filter(None, content.splitlines()), LOOKED_AT))
        breaks = _outside_quotes(content, data, breaks, delimiter or tell_delimiter(lines, content))
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


def tell_delimiter(lines: list[bytes], content: bytes) -> str:
    """The delimiter that splits the header and gives most records the same number of fields, more than one.

    If there is none, the table has one column, and its delimiter is one that its content does not hold.

    >>> tell_delimiter([b"a;b;c", b"1,5;2;3", b"2,5;4;5"], b"")
    ';'
    >>> tell_delimiter([b"greeting", b"Hello, world"], b"greeting\\nHello, world")
    ';'
    """
    header = _header(lines)

    def agreement(delimiter: str) -> tuple[int, int]:
        width, times = Counter(len(fields(line, delimiter)) for line in lines).most_common(1)[0]
        return (times, width) if width > 1 and len(fields(header, delimiter)) > 1 else (0, 0)

    best = max(DELIMITERS, key=agreement)
    if agreement(best) > (0, 0):
        return best
    if len(fields(header, ",")) > 1:  # most rows are too short, which is to be said
        return ","
    return next((each for each in DELIMITERS if each.encode() not in content), UNIT_SEPARATOR)


def _header(lines: list[bytes]) -> bytes:
    """The first line, and those after it up to the one that closes its quotes."""
    quotes = np.cumsum([line.count(b'"') for line in lines])
    last = int(np.argmax(quotes % 2 == 0))
    return b"\n".join(lines[: last + 1])


def _named(header: list[str]) -> list[str]:
    """Names of columns, by their place where they have none.

    >>> _named(["id", "", "x"])
    ['id', 'column 2', 'x']
    """
    return [name if name.strip() else f"column {place}" for place, name in enumerate(header, start=1)]


def _unquoted(field: bytes) -> str:
    text = field.decode()
    return text[1:-1].replace('""', '"') if text.startswith('"') and text.endswith('"') and len(text) > 1 else text


def _as_field(text: str, old: bytes, delimiter: str, *, alone: bool) -> bytes:
    """New text in quotes if the old one was, or if it could not stand without: an empty one `alone` is no record."""
    special = any(each in text for each in (delimiter, '"', "\n", "\r"))
    quoted = old.startswith(b'"') or special or (alone and not text)
    return (f'"{text.replace(chr(34), chr(34) * 2)}"' if quoted else text).encode()


# ---------------------------------------------------------------- JSON Lines and workbooks, all but the changed cells


@dataclass(frozen=True)
class JsonLines:
    """The lines of a JSON Lines file and the table in them."""

    lines: list[bytes]  # line ends included
    places: list[int]  # (N,) the line of each row
    table: pa.Table

    def with_table(self, changed: pa.Table) -> bytes:
        """The file with the cells of this table; a line in which none differs is as it was."""
        lines, names = list(self.lines), self.table.column_names
        for row, cells in _differences(self.table, changed).items():
            place = self.places[row]
            lines[place] = _with_values(lines[place], {names[column]: cell for column, cell in cells.items()})
        return b"".join(lines)


def _read_json_lines(path: Path) -> JsonLines:
    lines = path.read_bytes().splitlines(keepends=True)
    places = [place for place, line in enumerate(lines) if line.strip()]
    rows = [_json_object(lines[place], path.name, place + 1) for place in places]
    names = dict.fromkeys(name for row in rows for name in row)
    if not names:
        raise FileError(f"{path.name} must hold a table; it is empty.")
    return JsonLines(lines, places, pa.table({name: _column([row.get(name) for row in rows]) for name in names}))


def _json_object(line: bytes, name: str, number: int) -> dict[str, Any]:
    with suppress(ValueError):
        if isinstance(found := json.loads(line), dict):
            return found
    raise FileError(f"{name} must hold a JSON object in every line; line {number} holds none.")


def _with_values(line: bytes, values: Mapping[str, Any]) -> bytes:
    """A line of JSON with new values, as wide or as narrow as it was.

    >>> _with_values(b'{"id":7,"city":"Ulm"}\\r\\n', {"city": "Köln"}).decode()
    '{"id":7,"city":"Köln"}\\r\\n'
    """
    old = json.loads(line)
    new = old | {name: _like(old.get(name), value) for name, value in values.items()}
    written = json.dumps(new, ensure_ascii=False, separators=(", ", ": ") if b'": ' in line else (",", ":"))
    mark = codecs.BOM_UTF8 if line.startswith(codecs.BOM_UTF8) else b""
    return mark + written.encode() + line[len(line.rstrip(b"\r\n")) :]


@dataclass(frozen=True)
class Workbook:
    """An .xlsx file and where the table lies in its first sheet."""

    content: bytes
    top: int  # the table's first row below its header, as the sheet counts
    columns: list[int]  # (D,) likewise
    table: pa.Table

    def with_table(self, changed: pa.Table) -> bytes:
        """The workbook with the cells of this table; those that do not differ, and all else, are as they were."""
        workbook = _openpyxl().load_workbook(io.BytesIO(self.content), rich_text=True)
        for row, cells in _differences(self.table, changed).items():
            for column, new in cells.items():
                cell = workbook.worksheets[0].cell(self.top + row, self.columns[column])
                cell.value = None if new == "" else _like(cell.value, new)
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # also if it looks like a formula
        whole = io.BytesIO()
        workbook.save(whole)
        return whole.getvalue()


def _read_workbook(path: Path) -> Workbook:
    content = path.read_bytes()
    rows = _sheet(content, path.name)
    filled = [place for place, row in enumerate(rows) if any(cell is not None for cell in row)]
    if not filled:
        raise FileError(f"{path.name} must hold a table in its first sheet; it is empty.")
    header, *body = rows[filled[0] : filled[-1] + 1]
    width = max(map(len, rows))
    across = [[row[column] if column < len(row) else None for row in (header, *body)] for column in range(width)]
    columns = [column for column, cells in enumerate(across) if any(cell is not None for cell in cells)]
    names = _named(["" if cells[0] is None else _as_text(cells[0]) for cells in across])
    table = pa.table([_column(across[column][1:]) for column in columns], names=[names[column] for column in columns])
    return Workbook(content, filled[0] + 2, [column + 1 for column in columns], table)


def _sheet(content: bytes, name: str) -> list[Sequence[Any]]:
    """The rows of the first sheet, some shorter than others, with the values of formulas."""
    openpyxl = _openpyxl()
    try:
        workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheet = workbook.worksheets[0]
        sheet.reset_dimensions()  # which some programs write wrong
        return list(sheet.iter_rows(values_only=True))
    except Exception as error:  # whatever openpyxl stumbles over
        raise FileError(f"{name} must be an .xlsx workbook; it cannot be read as one ({_said(error)}).") from None


def _openpyxl() -> Any:
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        raise FileError("Reading .xlsx needs openpyxl. Hint: pip install 'cellmend[excel]'.") from None
    return openpyxl


def _column(values: list[Any]) -> pa.Array:
    """Cells in their own type, or as text where types are mixed or nested.

    >>> _column([1, None, 2.5]).to_pylist(), _column(["07501", 7501.0, [1]]).to_pylist()
    ([1.0, None, 2.5], ['07501', '7501', '[1]'])
    """
    types = {type(value) for value in values if value is not None}
    if types <= {int, float} or (len(types) == 1 and types < {str, bool, datetime, date}):
        with suppress(pa.ArrowInvalid, OverflowError):  # whole numbers too large
            return pa.array(values)
    return pa.array([None if value is None else _as_text(value) for value in values], pa.string())


def _as_text(value: Any) -> str:
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)


def _like(old: Any, new: Any) -> Any:
    """New text of a column of mixed types as a number, where the old cell was one.

    >>> _like(7501, "89073"), _like("07501", "89073"), _like(7501, "Ulm")
    (89073, '89073', 'Ulm')
    """
    if isinstance(new, str) and not isinstance(old, str | None):
        with suppress(ValueError):
            return json.loads(new)
    return new


def _differences(before: pa.Table, after: pa.Table) -> dict[int, dict[int, Any]]:
    """The cells of `after` that differ, row -> column -> value; an empty text is as good as none.

    >>> _differences(pa.table({"a": [1, 2], "b": ["x", None]}), pa.table({"a": [1, 3], "b": ["x", ""]}))
    {1: {0: 3}}
    """
    found: dict[int, dict[int, Any]] = {}
    for column, (old, new) in enumerate(zip(before.columns, after.columns, strict=True)):
        if old.equals(new):
            continue
        for row, (was, now) in enumerate(zip(old.to_pylist(), new.to_pylist(), strict=True)):
            if was != now and (was, now) != (None, "") and (was == was or now == now):  # NaN is no change
                found.setdefault(row, {})[column] = now
    return found


# ---------------------------------------------------------------- files of all kinds


@dataclass(frozen=True)
class TableFile:
    """A table as it was read, and how to write it back."""

    name: str
    table: pa.Table  # cells of a CSV file as text, of other files in their own types
    csv: CsvText | None  # of a CSV file
    kind: str  # the suffix without compression, such as ".csv"
    compression: str | None
    kept: JsonLines | Workbook | None = None  # of a file of these kinds, as it was read

    @property
    def suffix(self) -> str:
        """How the name of a copy of the same kind ends, such as ".csv.gz"."""
        return self.kind + next((end for end, name in COMPRESSIONS.items() if name == self.compression), "")

    def write_changed(self, path: Path, changed: pa.Table, changes: Changes) -> None:
        """Write a copy of the same kind: `changes` of text into a CSV file, the cells of `changed` into others."""
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
            elif self.kept is not None:
                temporary.write_bytes(self.kept.with_table(changed))
            else:
                WRITERS[self.kind](changed, temporary)


def read_file(path: Path, delimiter: str | None = None) -> TableFile:
    """The table in a file or in a folder of Parquet files; `-` is CSV on standard input."""
    if path == STDIN:
        return _read_csv(sys.stdin.buffer.read(), "standard input", ".csv", None, delimiter)
    if not path.exists():
        near = did_you_mean(path.name, [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else [])
        raise FileError(f"{path} must be a file with a table; there is no such file.{near}")
    kind, compression = (".parquet", None) if path.is_dir() else _kind(path)
    with _readable(path.name, kind):
        if kind in TEXTS:
            with pa.input_stream(path, compression=compression) as stream:
                return _read_csv(stream.read(), path.name, kind, compression, "\t" if kind == ".tsv" else delimiter)
        kept = KEEPERS[kind](path) if kind in KEEPERS else None
        table = kept.table if kept else _read_folder(path) if path.is_dir() else READERS[kind](path)
    _refuse_twins(table.column_names, path.name)
    return TableFile(path.name, table, None, kind, None, kept)


def _kind(path: Path) -> tuple[str, str | None]:
    """What kind of table a file's name says, and how it is compressed."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    kind = (suffixes[-2] if len(suffixes) > 1 else "") if compression else (suffixes[-1] if suffixes else "")
    if kind not in TEXTS and (compression or kind not in (*READERS, *KEEPERS)):
        known = ", ".join([*TEXTS, *READERS, *KEEPERS])
        raise FileError(f"{path.name} must end in one of {known} (the first three also compressed: .gz, .zst, .bz2).")
    return kind, compression


@contextmanager
def _readable(name: str, kind: str) -> Iterator[None]:
    """What the readers say of a file that is broken, in one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise FileError(f"{name} must be a {kind} file; it cannot be read as one ({_said(error)}).") from None


def _said(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _read_folder(path: Path) -> pa.Table:
    """All Parquet files below a folder as one table; names such as region=eu on the way to them are a column."""
    found = [
        each
        for each in sorted(path.rglob("*.parquet"))
        if each.is_file() and not any(part.startswith((".", "_")) for part in each.relative_to(path).parts)
    ]
    if not found:
        raise FileError(f"{path} is a folder and must hold .parquet files; it holds none.")
    return pa.dataset.dataset(found, partitioning="hive", partition_base_dir=str(path)).to_table()


def _refuse_twins(names: list[str], name: str) -> None:
    """Stop if a column's name is also that of another."""
    column, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise FileError(f"{name} must give every column a name of its own; {times} are named {column!r}.")


def read_packed(packed: bytes, name: str) -> TableFile:
    """A CSV table from the bytes of a gzip file; a copy of it is not packed."""
    return _read_csv(pa.input_stream(pa.BufferReader(packed), compression="gzip").read(), name, ".csv", None, None)


def _read_csv(raw: bytes, name: str, kind: str, compression: str | None, delimiter: str | None) -> TableFile:
    text = read_csv_text(raw, name, delimiter)
    _refuse_twins(text.names, name)
    try:
        table = text.table()
    except pa.ArrowInvalid as error:
        raise FileError(_misfit(text, name, _said(error))) from None
    last = text.content[text.starts[-1] : text.ends[-1]]
    if table.num_rows != len(text.starts) - 1 or split(last, text.delimiter)[1]:
        raise FileError(_misfit(text, name, "some line does not"))
    return TableFile(name, table, text, kind, compression)


def _misfit(text: CsvText, name: str, otherwise: str) -> str:
    """What is wrong with the first record that does not fit the header."""
    width, must = len(text.names), f"{name} must have as many fields in every row as in its header"
    newline = b"\n" if b"\n" in text.content else b"\r"
    for start, end in zip(text.starts.tolist(), text.ends.tolist(), strict=True):
        found, is_open = split(text.content[start:end], text.delimiter)
        if is_open or len(found) != width:
            line = text.content.count(newline, 0, start) + 1
            if is_open:
                return f"{name} must have its quotes in pairs; line {line} opens one that nothing closes."
            return f"{must}; line {line} has {len(found)} and the header {width}."
    return f"{must}; {otherwise}."


def _write_excel(table: pa.Table, path: Path) -> None:
    _openpyxl()
    with path.open("wb") as file:
        table.to_pandas().to_excel(file, index=False)


def _write_jsonl(table: pa.Table, path: Path) -> None:
    lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in table.to_pylist())
    path.write_text("".join(lines), encoding="utf-8")


TEXTS = (".csv", ".tsv", ".txt")
READERS: dict[str, Callable[[Path], pa.Table]] = {
    ".parquet": pa.parquet.read_table,
    ".feather": pa.feather.read_table,
    ".arrow": pa.feather.read_table,
}
KEEPERS: dict[str, Callable[[Path], JsonLines | Workbook]] = {
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".xlsx": _read_workbook,
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
