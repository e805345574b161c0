"""Record batches in, record batches out: tables larger than memory.

A table is cut into units, some row groups of one file each. A unit is judged by itself and becomes one file of the
result, whole or not there. So a run that was stopped goes on with the units that are missing, and units can be judged
anywhere: here one after the other, or on a cluster (engines).
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem
from sklearn.utils import check_random_state

from cellmend.errors import FileError, SchemaWarning, StreamError, did_you_mean
from cellmend.estimator import CellMender, load
from cellmend.files.csvtext import read_csv_text
from cellmend.files.formats import COMPRESSIONS, whole_file
from cellmend.findings.findings import Finding, show
from cellmend.model.profile import Summary
from cellmend.settings import LEAST_FLAGGED, fdr_cutoff
from cellmend.table.checks import learn_spelling
from cellmend.table.notation import Dates, learn_readers, understand
from cellmend.table.schema import Column, Schema, declared_kinds, plain, resolve_schema

PIECE = 100_000  # rows that are held at once
UNIT = 500_000  # rows that a unit has at least, if its file has
READ_AT_ONCE = 2**20  # bytes of a column, of which a row group may have gigabytes
LEARNED = 200_000  # rows of a larger table, drawn at random, from which kinds and scales are learned
LEAST_LEVEL = 0.02  # how often a value must be expected among the drawn rows to be a level without being there
MOST_VALUES = 100_000  # of a category that are counted; of more, those of the drawn rows are its levels
STREAMED = (".parquet", ".arrow", ".feather")  # kinds of files that are read piece by piece
MANIFEST = "_manifest.json"  # readers of folders pass over what begins so
FINDINGS = pa.schema(
    [
        ("row", pa.int64()),  # from 0, in the whole table
        ("column", pa.string()),
        ("value", pa.string()),
        ("suspicion", pa.float64()),
        ("repair", pa.string()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("reason", pa.string()),
    ]
)
SUMMARY = "cellmend.summary"  # key of the metadata of a part with scores
Item = TypeVar("Item")


# ---------------------------------------------------------------- one batch, the step that every engine calls


def score_batch(mender: CellMender, batch: pa.RecordBatch | pa.Table, *, name: str = "The batch") -> pa.RecordBatch:
    """The suspicion of every cell under the names of the model's columns, and `row_score`, (B, D + 1).

    Columns are matched by name, and a row's scores are the same, bit for bit, in whatever batch it comes.
    """
    table = conform(batch, mender, name)
    if table.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=scores_schema(table.column_names))
    suspicion, rows = mender.score_rows(table)
    return pa.record_batch([*map(pa.array, suspicion.T), pa.array(rows)], schema=scores_schema(table.column_names))


def find_batch(
    mender: CellMender, batch: pa.RecordBatch, *, least: float, first_row: int = 0, name: str = "The batch"
) -> pa.RecordBatch:
    """One line for each cell of at least this suspicion, its row counted from `first_row`; columns as in FINDINGS."""
    table = conform(batch, mender, name)
    found = mender.mend(table, suspicion=least, impute=False, alone=True).found if table.num_rows else []
    lines = sorted(found, key=lambda each: (each.row, table.column_names.index(each.column)))
    columns: dict[str, list[Any]] = {
        each.name: [getattr(line, each.name) for line in lines] for each in fields(Finding)
    }
    columns["row"] = [first_row + row for row in columns["row"]]
    for text in ("value", "repair"):
        columns[text] = [None if cell is None else show(cell) for cell in columns[text]]
    return pa.record_batch([pa.array(columns[each.name], each.type) for each in FINDINGS], schema=FINDINGS)


def repair_batch(batch: pa.RecordBatch, findings: pa.Table, *, least: float, first_row: int = 0) -> pa.RecordBatch:
    """The batch with the repairs of its findings of at least this suspicion; types as they were.

    >>> batch = pa.record_batch({"a": [1, 2], "b": ["x", "y"]})
    >>> lines = {"row": [7], "column": ["a"], "suspicion": [0.9], "repair": ["5"]}
    >>> repair_batch(batch, pa.table(lines), least=0.5, first_row=6).to_pydict()
    {'a': [1, 5], 'b': ['x', 'y']}
    """
    rows = pc.subtract(findings["row"], first_row)
    chosen = pc.and_(pc.greater_equal(rows, 0), pc.less(rows, batch.num_rows))
    chosen = pc.and_(chosen, pc.and_(pc.greater_equal(findings["suspicion"], least), findings["repair"].is_valid()))
    own = findings.set_column(findings.column_names.index("row"), "row", rows).filter(chosen)
    columns = list(batch.columns)
    for place, field in enumerate(batch.schema):
        lines = own.filter(pc.equal(own["column"], field.name))
        if lines.num_rows:
            columns[place] = _with_cells(columns[place], lines["row"].to_numpy(), lines["repair"].combine_chunks())
    return pa.record_batch(columns, schema=batch.schema)


def _with_cells(column: pa.Array, rows: Any, texts: pa.Array) -> pa.Array:
    """A column with new cells, given as text, in these rows."""
    values = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    mask = np.zeros(len(values), dtype=bool)
    mask[rows] = True
    new = texts.take(pa.array(np.argsort(rows, kind="stable")))
    return pc.replace_with_mask(values, pa.array(mask), new.cast(values.type)).cast(column.type)


def conform(batch: pa.RecordBatch | pa.Table, mender: CellMender, name: str) -> pa.Table:
    """The batch with the model's columns in their order, or one sentence about the first that does not fit."""
    names = mender.names_ or []
    check_columns(batch.schema.names, names, name)
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    return table.select(names)


def check_columns(own: Sequence[str], names: Sequence[str], name: str) -> None:
    """Refuse a table whose columns are not those of the model, each once, in any order.

    >>> check_columns(["b", "a"], ["a", "b"], "The batch")
    >>> check_columns(["b", "ages"], ["age", "b"], "The batch")
    Traceback (most recent call last):
    cellmend.errors.StreamError: The batch must have the columns of the model; it lacks 'age'. Did you mean 'ages'? \
Hint: fit a model to this table.
    """
    for what, odd, near in (
        ("lacks", [each for each in names if each not in own], own),
        ("also has", [each for each in own if each not in names], names),
        ("has twice", [each for each in own if own.count(each) > 1], ()),
    ):
        if odd:
            raise StreamError(
                f"{name} must have the columns of the model; it {what} {odd[0]!r}.{did_you_mean(odd[0], near)} "
                "Hint: fit a model to this table."
            )


def scores_schema(names: Sequence[str]) -> pa.Schema:
    """Of the scores of a table with these columns; the last is the score of the row, of a name that no column has.

    >>> scores_schema(["id", "row_score"]).names
    ['id', 'row_score', 'row_score_']
    """
    last = "row_score"
    while last in names:
        last += "_"
    return pa.schema([(name, pa.float64()) for name in (*names, last)])


# ---------------------------------------------------------------- a table as units of work


@dataclass(frozen=True)
class Unit:
    """Some row groups of a Parquet file, or record batches of an Arrow file; what a worker does at a time."""

    number: int
    file: str
    groups: tuple[int, int]  # from, to
    first_row: int  # in the whole table
    rows: int
    keys: Mapping[str, Any]  # columns that only the names of folders tell, region=eu


@dataclass(frozen=True)
class Stream:
    """A table of any size: Parquet or Arrow files, here or on a remote filesystem."""

    url: str
    names: list[str]
    units: list[Unit]
    files: list[tuple[str, int, int]]  # path, bytes and when it was changed, to know it again

    @property
    def rows(self) -> int:
        """Of all units."""
        return sum(unit.rows for unit in self.units)

    @property
    def name(self) -> str:
        """The last part of the path, to speak of it."""
        return self.url.rstrip("/").rpartition("/")[2]


def open_stream(url: str) -> Stream:
    """The table in a file, or in all Parquet and Arrow files below a folder, cut into units."""
    url = everywhere(url)
    system, path = filesystem(url)
    found = system.get_file_info(path)
    if found.type == FileType.NotFound:
        raise FileError(f"{url} must be a file or a folder with a table; there is none.")
    files = [found] if found.type == FileType.File else _files_below(system, path)
    if not files:
        raise FileError(f"{url} is a folder and must hold .parquet or .arrow files; it holds none.")
    units: list[Unit] = []
    names: list[str] = []
    for file in [each.path for each in files]:
        keys = {} if file == path else _keys(file.removeprefix(path))
        own, counts = _groups(system, file)
        own = [*own, *(key for key in keys if key not in own)]
        if names and set(own) != set(names):
            odd = sorted(set(own) ^ set(names))[0]
            raise FileError(f"All files of {url} must have the same columns; {file} differs by {odd!r}.")
        twin = next((name for name in own if own.count(name) > 1), None)
        if twin is not None:
            raise FileError(f"{url} must give every column a name of its own; {own.count(twin)} are named {twin!r}.")
        names = names or own
        first = 0
        for last in range(1, len(counts) + 1):
            rows = sum(counts[first:last])
            if rows and (rows >= UNIT or last == len(counts)):
                before = units[-1].first_row + units[-1].rows if units else 0
                units.append(Unit(len(units), file, (first, last), before, rows, keys))
                first = last
    if not units:
        raise FileError(f"{url} must hold a table with rows; it has none.")
    return Stream(url, names, units, [(each.path, each.size, each.mtime_ns or 0) for each in files])


def read_unit(url: str, unit: Unit, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a unit in batches of bounded size, with these columns."""
    system, _ = filesystem(url)
    with _readable(unit.file), system.open_input_file(unit.file) as file:
        for batch in _batches(file, unit):
            for start in range(0, batch.num_rows, PIECE):
                piece = batch.slice(start, PIECE)
                known = dict(zip(piece.schema.names, piece.columns, strict=True))
                told = {key: pa.repeat(value, piece.num_rows) for key, value in unit.keys.items() if key not in known}
                yield pa.record_batch([(known | told)[name] for name in names], names=list(names))


def _batches(file: Any, unit: Unit) -> Iterator[pa.RecordBatch]:
    if unit.file.endswith(".parquet"):
        # What pyarrow buffers ahead it keeps until the end of the file, apache/arrow#39808.
        found = pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=READ_AT_ONCE)
        yield from found.iter_batches(PIECE, row_groups=list(range(*unit.groups)))
    else:
        reader = pa.ipc.open_file(file)
        yield from (reader.get_batch(number) for number in range(*unit.groups))


def _groups(system: FileSystem, path: str) -> tuple[list[str], list[int]]:
    """Columns of a file, and the rows of each of its row groups or record batches."""
    with _readable(path), system.open_input_file(path) as file:
        if path.endswith(".parquet"):
            found = pa.parquet.ParquetFile(file)
            groups = found.metadata
            return found.schema_arrow.names, [groups.row_group(g).num_rows for g in range(groups.num_row_groups)]
        reader = pa.ipc.open_file(file)
        return reader.schema.names, [reader.get_batch(g).num_rows for g in range(reader.num_record_batches)]


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """What the readers say of a file that is broken, in one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        why = str(error).partition("\n")[0].rstrip(".")
        name = path.rpartition("/")[2]
        raise FileError(f"{name} must be a Parquet or Arrow file; it cannot be read as one ({why}).") from None


def _files_below(system: FileSystem, folder: str) -> list[FileInfo]:
    """Files of tables below a folder, without those whose names, or folders' names, begin with a dot or _."""
    found = [
        each
        for each in system.get_file_info(FileSelector(folder, recursive=True))
        if each.type == FileType.File
        and each.path.endswith(STREAMED)
        and not any(part.startswith((".", "_")) for part in each.path.removeprefix(folder).split("/"))
    ]
    return sorted(found, key=lambda each: each.path)


def _keys(path: str) -> dict[str, Any]:
    """What the names of folders say of a file, numbers as numbers.

    >>> _keys("/region=eu/year=2024/part-0.parquet")
    {'region': 'eu', 'year': 2024}
    """
    pairs = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return {key: int(value) if value.isdigit() else value for key, _, value in pairs}


def csv_as_parquet(path: Path, folder: Path) -> Path:
    """A CSV file as a Parquet file of text in this folder, made once and read bit by bit, since rows of a CSV file
    cannot be found without reading all before them."""
    about = path.stat()
    copy = folder / f"{path.name.partition('.')[0]}-{about.st_size}-{about.st_mtime_ns}.parquet"
    if copy.exists():
        return copy
    compression = COMPRESSIONS.get(path.suffix.lower())
    with pa.input_stream(path, compression=compression) as start:
        head = start.read(2**20)
    text = read_csv_text(head[: head.rfind(b"\n") + 1] or head, path.name)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with pa.input_stream(path, compression=compression) as file, whole_file(copy) as temporary:
            reader = pa.csv.open_csv(
                file,
                read_options=pa.csv.ReadOptions(column_names=text.names, skip_rows=1, encoding=text.encoding),
                parse_options=pa.csv.ParseOptions(delimiter=text.delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(text.names, pa.string()), strings_can_be_null=False
                ),
            )
            with pa.parquet.ParquetWriter(temporary, reader.schema) as writer:
                for batch in ahead(reader):
                    writer.write_batch(batch)
    except pa.ArrowInvalid as error:
        raise FileError(f"{path.name} must be a CSV file; it cannot be read as one ({error}).") from None
    return copy


def everywhere(url: str) -> str:
    """The same place for a worker that runs in another folder.

    >>> everywhere("s3://tables/orders"), everywhere("orders") == str(Path.cwd() / "orders")
    ('s3://tables/orders', True)
    """
    return url if "://" in url else str(Path(url).absolute())


def filesystem(url: str) -> tuple[FileSystem, str]:
    """Where a path lies: on this machine, or by s3://, gs://, abfs://, hdfs:// on another, or as fsspec knows."""
    if "://" not in url:
        return LocalFileSystem(), os.path.abspath(url)  # noqa: PTH100 - a path object would lose what a URL has
    try:
        system, path = FileSystem.from_uri(url)
    except pa.ArrowInvalid:
        system, path = _by_fsspec(url)
    except OSError as error:  # no Java for HDFS, or no network
        raise FileError(f"{url} must be on a filesystem that can be reached; it is not ({_line(error)}).") from None
    return system, path.rstrip("/")


def _by_fsspec(url: str) -> tuple[FileSystem, str]:
    """Where a path lies that pyarrow alone does not know."""
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise FileError(
            f"{url} must begin with s3://, gs://, abfs://, hdfs:// or another that fsspec knows; "
            f"this one cannot be used ({_line(error)}). Hint: pip install what fsspec needs for it."
        ) from None
    return PyFileSystem(FSSpecHandler(system)), path


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


# ---------------------------------------------------------------- learning from it


def draw(stream: Stream, rows: int, seed: int) -> pa.Table:
    """So many rows of a table, each as likely as any other, in their order; all, if there are no more."""
    return read_rows(stream, stream.units, chosen_rows(stream.rows, rows, seed))


def chosen_rows(among: int, rows: int | None, seed: int) -> NDArray[np.int64]:
    """The places of so many rows, rising; of all, if there are no more.

    >>> chosen_rows(5, 9, seed=0).tolist(), len(set(chosen_rows(10**12, 100, seed=0).tolist()))
    ([0, 1, 2, 3, 4], 100)
    """
    if rows is None or among <= rows:
        return np.arange(among)
    return np.sort(np.random.default_rng(seed).choice(among, rows, replace=False, shuffle=False))


def read_rows(stream: Stream, units: Sequence[Unit], chosen: NDArray[np.int64]) -> pa.Table:
    """Those of the chosen rows of a table that are in these units."""
    drawn: list[pa.RecordBatch] = []
    for unit in units:
        first = unit.first_row
        if np.searchsorted(chosen, first) == np.searchsorted(chosen, first + unit.rows):
            continue
        for batch in ahead(read_unit(stream.url, unit, stream.names)):
            own = chosen[np.searchsorted(chosen, first) : np.searchsorted(chosen, first + batch.num_rows)] - first
            drawn.append(batch.take(pa.array(own)))
            first += batch.num_rows
    return pa.Table.from_batches(drawn)


def vocabulary(stream: Stream, readers: Mapping[str, Any], names: Sequence[str]) -> dict[str, Counter[Any]]:
    """How often each value of these columns occurs in the whole table; of a column with very many none."""
    found: dict[str, Counter[Any]] = {name: Counter() for name in names}
    for unit in stream.units if names else []:
        for batch in ahead(read_unit(stream.url, unit, [name for name in stream.names if name in found])):
            table = understand(pa.Table.from_batches([batch]), readers)
            for name in list(found):
                each = pc.value_counts(plain(table[name]).drop_null())
                found[name].update(
                    dict(zip(each.field("values").to_pylist(), each.field("counts").to_pylist(), strict=True))
                )
                if len(found[name]) > MOST_VALUES:
                    del found[name]
    return found


def fit_stream(mender: CellMender, stream: Stream, rows: int | None = None) -> pa.Table:
    """Learn from rows drawn from the whole table, and the values of categories from all of it; returns those rows.

    Kinds, scales and quantiles are those of the drawn rows. A value that none of them has becomes a level all the same,
    unless it is rare in the whole table too, or looks like a misspelling.
    """
    table = draw(stream, rows or LEARNED, int(check_random_state(mender.random_state).randint(2**31)))
    if table.num_rows < stream.rows:
        schema = _with_all_levels(mender, stream, table)
        mender.set_params(schema=schema if schema.columns else None)
    mender.fit(table)
    return table


def _with_all_levels(mender: CellMender, stream: Stream, table: pa.Table) -> Schema:
    """What the user declared, and the categories with the levels that they have in the whole table."""
    readers = learn_readers(table, declared_kinds(mender.schema))
    dates = [name for name, reader in readers.items() if isinstance(reader, Dates)]
    understood = understand(table, readers)
    declared = {} if mender.schema is None else {column.name: column for column in Schema.of(mender.schema)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)  # said when fitting
        schema = resolve_schema(understood, mender.schema, dates=dates)
    free = [column.name for column in schema if column.kind == "category" and not column.levels]
    for name, counts in vocabulary(stream, readers, free).items():
        values = plain(understood[name])
        drawn = set(pc.unique(values.drop_null()).to_pylist())
        least = LEAST_LEVEL * stream.rows / table.num_rows
        new = sorted({value for value, count in counts.items() if count >= least} - drawn, key=str)
        spelling = learn_spelling(values) if new and isinstance(new[0], str) else None
        slips = spelling.judge(new, [1] * len(new)) if spelling else {}
        if kept := [value for value in new if value not in slips]:
            declared[name] = Column(name, "category", tuple(sorted([*drawn, *kept])))
    return Schema(tuple(declared.values()))


# ---------------------------------------------------------------- a run over all units, to be taken up again


@dataclass(frozen=True)
class Task:
    """What is done with each unit of a table, and where it is written; plain values, so that it can travel."""

    what: str  # "score", "find" or "repair"
    source: str
    names: list[str]
    output: str
    model: str
    digest: str  # of the model file
    device: str = "cpu"
    least: float = LEAST_FLAGGED  # suspicion of a finding, or of a repair
    findings: str = ""  # folder with findings, of "repair"

    def part(self, unit: Unit) -> str:
        """The file that a unit becomes."""
        return f"part-{unit.number:05d}.parquet"


def pending(task: Task, stream: Stream) -> list[Unit]:
    """The units that are still to be done; what was done by the same task before is not done again."""
    system, folder = filesystem(task.output)
    units = [asdict(unit) for unit in stream.units]
    plan = json.dumps({"task": asdict(task) | {"device": ""}, "files": stream.files, "units": units})
    names = [each.base_name for each in _listed(system, folder)]
    there = {name for name in names if name == MANIFEST or not name.startswith((".", "_"))}
    if MANIFEST in there:
        with system.open_input_stream(f"{folder}/{MANIFEST}") as file:
            if file.read().decode() != plan:
                raise StreamError(
                    f"{task.output} holds the results of another run, by another model, table or threshold. "
                    "Hint: choose another folder, or add --force."
                )
    elif there:
        raise StreamError(f"{task.output} must be a new folder; it holds {sorted(there)[0]}. Hint: choose another.")
    else:
        system.create_dir(folder, recursive=True)
        with whole(system, f"{folder}/{MANIFEST}") as file:
            file.write(plan.encode())
    return [unit for unit in stream.units if task.part(unit) not in there]


def do_unit(task: Task, unit: Unit) -> int:
    """Do a task with one unit and write its part, whole or not at all; returns how many rows it had."""
    judge = _step(task, unit)
    system, folder = filesystem(task.output)
    first, batches = unit.first_row, ahead(read_unit(task.source, unit, task.names))
    part = f"{folder}/{task.part(unit)}"
    with whole(system, part) as file, ExitStack() as opened, ThreadPoolExecutor(1) as pool:
        writer: pa.parquet.ParquetWriter | None = None
        written: Future[None] | None = None
        for batch in batches:
            answer = judge(batch, first)
            first += batch.num_rows
            if written is not None:
                written.result()
            if writer is None:
                writer = opened.enter_context(_part_writer(file, answer.schema))
                if task.what == "score":  # the first batch tells enough of what moved
                    writer.add_key_value_metadata({SUMMARY: _summary(task, batch)})
            written = pool.submit(writer.write_batch, answer)  # while the next is judged
        if written is not None:
            written.result()
    return unit.rows


def _summary(task: Task, batch: pa.RecordBatch) -> str:
    mender = load_once(task.model, task.device, task.digest)
    return json.dumps(mender.summarise(conform(batch, mender, "The batch")).to_json())


def summary_of(task: Task, stream: Stream) -> Summary:
    """How many cells of each column lie where, of the first rows of every unit, by what is kept with the scores."""
    system, folder = filesystem(task.output)
    found = []
    for unit in stream.units:
        with system.open_input_file(f"{folder}/{task.part(unit)}") as file:
            found.append(Summary.from_json(json.loads(pa.parquet.read_metadata(file).metadata[SUMMARY.encode()])))
    total = found[0]
    for each in found[1:]:
        total = total + each
    return total


def _part_writer(file: Any, schema: pa.Schema) -> pa.parquet.ParquetWriter:
    # Numbers that hardly ever repeat gain nothing by a dictionary, and to find that out takes most of the time.
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return pa.parquet.ParquetWriter(file, schema, use_dictionary=repeated or False)


def _step(task: Task, unit: Unit) -> Callable[[pa.RecordBatch, int], pa.RecordBatch]:
    """What is done with a batch, given the number of its first row."""
    if task.what == "repair":
        system, folder = filesystem(task.findings)
        lines = pa.parquet.read_table(f"{folder}/{task.part(unit)}", filesystem=system)
        return lambda batch, first: repair_batch(batch, lines, least=task.least, first_row=first)
    model = load_once(task.model, task.device, task.digest)
    name = unit.file.rpartition("/")[2]
    if task.what == "find":
        return lambda batch, first: find_batch(model, batch, least=task.least, first_row=first, name=name)
    return lambda batch, first: score_batch(model, batch, name=name)


LOADING = threading.Lock()


def digest_of(model: str | Path) -> str:
    """What tells one model file from another, so that workers load one again that was written anew."""
    return hashlib.sha256(Path(model).read_bytes()).hexdigest()


def load_once(model: str | Path, device: str = "cpu", digest: str = "") -> CellMender:
    """The model in a file; a process loads it once, however many threads it has."""
    with LOADING:
        return _loaded(str(model), device, digest)


@lru_cache(maxsize=2)
def _loaded(model: str, device: str, digest: str) -> CellMender:
    return load(model, device=device).set_params(verbose=False)


def run(task: Task, stream: Stream, on_rows: Callable[[int], None]) -> None:
    """Do a task with all units that are still to be done, here, one after the other on all cores."""
    todo = pending(task, stream)
    done = stream.rows - sum(unit.rows for unit in todo)
    for unit in todo:
        on_rows(done)
        done += do_unit(task, unit)
    finish(task)
    on_rows(done)


def finish(task: Task) -> None:
    """Take away what killed workers left half-written."""
    system, folder = filesystem(task.output)
    for each in _listed(system, folder):
        if each.base_name.startswith((".part-", f".{MANIFEST}.")):
            system.delete_file(each.path)


def cutoff(findings: str, *, fdr: float | None, top: int | None) -> float:
    """The least suspicion that is flagged, from all findings in a folder."""
    system, folder = filesystem(findings)
    files = [each.path for each in _listed(system, folder) if each.path.endswith(".parquet")]
    parts = [pa.parquet.read_table(each, columns=["suspicion"], filesystem=system)["suspicion"] for each in files]
    suspicion = np.concatenate([part.to_numpy() for part in parts])
    if fdr is not None:
        return fdr_cutoff(suspicion, fdr)
    most = min(top or 0, len(suspicion))
    return float(np.partition(suspicion, len(suspicion) - most)[-most]) if most else 1.0


def count(findings: str, least: float) -> tuple[int, int]:
    """How many cells of at least this suspicion are in a folder of findings, and how many of them have a repair."""
    system, folder = filesystem(findings)
    flagged = repaired = 0
    for each in _listed(system, folder):
        if each.path.endswith(".parquet"):
            lines = pa.parquet.read_table(each.path, columns=["suspicion", "repair"], filesystem=system)
            lines = lines.filter(pc.greater_equal(lines["suspicion"], least))
            flagged += lines.num_rows
            repaired += lines.num_rows - lines["repair"].null_count
    return flagged, repaired


def clear(output: str) -> None:
    """Take the results of an earlier run out of a folder, and nothing else."""
    system, folder = filesystem(output)
    for each in _listed(system, folder):
        if each.type == FileType.File and (
            each.base_name == MANIFEST or each.base_name.startswith(("part-", ".part-"))
        ):
            system.delete_file(each.path)


def _listed(system: FileSystem, folder: str) -> list[Any]:
    return list(system.get_file_info(FileSelector(folder, allow_not_found=True)))


@contextmanager
def whole(system: FileSystem, path: str) -> Iterator[Any]:
    """A stream to a file that gets its name when it is complete; a run that is killed leaves at most a hidden one."""
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.{os.getpid()}-{threading.get_ident()}"
    try:
        with system.open_output_stream(temporary) as stream:
            yield stream
        system.move(temporary, path)
    except BaseException:
        if system.get_file_info(temporary).type == FileType.File:
            system.delete_file(temporary)
        raise


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
