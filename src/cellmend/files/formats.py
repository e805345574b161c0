"""Tables in files: read as they are, written back with nothing changed but the cells that were repaired.

A repaired copy keeps of a CSV file every byte outside the changed cells, of a JSON Lines file the lines in which no
cell was changed, and of a workbook its other sheets, formulas and formats.
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
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

from cellmend.errors import FileError, did_you_mean
from cellmend.files.csvtext import Changes, CsvText, misfit, named, read_csv_text, split

STDIN = Path("-")
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

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
    names = named(["" if cells[0] is None else _as_text(cells[0]) for cells in across])
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
        table = kept.table if kept else _folder(path).to_table() if path.is_dir() else READERS[kind](path)
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


def _folder(path: Path) -> pa.dataset.Dataset:
    """All Parquet files below a folder as one table; names such as region=eu on the way to them are a column."""
    found = [
        each
        for each in sorted(path.rglob("*.parquet"))
        if each.is_file() and not any(part.startswith((".", "_")) for part in each.relative_to(path).parts)
    ]
    if not found:
        raise FileError(f"{path} is a folder and must hold .parquet files; it holds none.")
    return pa.dataset.dataset(found, partitioning="hive", partition_base_dir=str(path))


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
        raise FileError(misfit(text, name, _said(error))) from None
    last = text.content[text.starts[-1] : text.ends[-1]]
    if table.num_rows != len(text.starts) - 1 or split(last, text.delimiter)[1]:
        raise FileError(misfit(text, name, "some line does not"))
    return TableFile(name, table, text, kind, compression)


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
    with written_in_pieces(path, table.schema) as write:
        write(table)


@contextmanager
def written_in_pieces(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], Any]]:
    """Adds rows to a new file of the kind that its name says; `-` is CSV on standard output."""
    if path == STDIN:
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


# ---------------------------------------------------------------- files that are whole


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
