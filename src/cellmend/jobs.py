"""What the commands do: a file in; findings, a repaired copy, a report and a model out."""

from __future__ import annotations

import csv
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from cellmend.errors import SchemaWarning, TableError
from cellmend.estimator import CellMender
from cellmend.files.formats import COMPRESSIONS, TEXTS, TableFile, whole_file, written_in_pieces
from cellmend.findings.findings import Finding, Mended, show
from cellmend.model.columns import EncodedColumn, LevelColumn
from cellmend.model.profile import Summary
from cellmend.model.training import progress
from cellmend.report.page import Facts, write_report
from cellmend.settings import Threshold
from cellmend.streaming import (
    LEARNED,
    STREAMED,
    Stream,
    Task,
    ahead,
    check_columns,
    clear,
    conform,
    count,
    csv_as_parquet,
    cutoff,
    digest_of,
    draw,
    everywhere,
    fit_stream,
    load_once,
    open_stream,
    read_unit,
    run,
    score_batch,
    scores_schema,
    summary_of,
)
from cellmend.table.notation import describe_columns, learn_readers, tidy, understand
from cellmend.table.schema import declared_kinds

SHOWN_LEVELS = 5  # of those that an update added
FORMULA = re.compile(
    r"'*[=+\-@\t\r]"
)  # how a text begins that a spreadsheet may take for a formula, or that was marked


LARGE = 100_000  # rows, from which on a table is scored in pieces
VERY_LARGE = 1_000_000  # rows, from which on it is fitted, cleaned and repaired without being held
LARGE_CSV = 2**28  # bytes


@dataclass(frozen=True)
class Job:
    """A table, the model that judged it, and what was found."""

    source: TableFile
    mender: CellMender
    mended: Mended
    threshold: Threshold
    notes: Sequence[str]
    seconds: float
    model: str  # name of the file that the model came from; "" if it was fitted to this table

    @property
    def repaired(self) -> int:
        """How many cells have a repair."""
        return sum(finding.repair is not None for finding in self.mended.found)

    def summary(self) -> dict[str, Any]:
        """In numbers, for a program to read."""
        return {
            "table": self.source.name,
            "rows": self.source.table.num_rows,
            "columns": self.source.table.num_columns,
            "flagged": len(self.mended.found),
            "expected_false": round(self.mended.expected_false, 3),
            "repaired": self.repaired,
            "threshold": str(self.threshold),
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }

    def write_findings(self, path: Path) -> None:
        write_findings(path, self.mended.found)

    def write_repaired(self, path: Path) -> None:
        """The table in its own format; of a CSV file only the bytes of repaired cells change."""
        places = {name: place for place, name in enumerate(self.source.table.column_names)}
        changes: dict[int, dict[int, str]] = {}
        for finding in self.mended.found:
            if finding.repair is not None:
                changes.setdefault(finding.row, {})[places[finding.column]] = show(finding.repair)
        self.source.write_changed(path, self.mended.repaired, changes)

    def write_report(self, path: Path) -> None:
        readers, mender = self.mended.table.readers, self.mender
        rows, learned = self.source.table.num_rows, mender.train_rows or self.source.table.num_rows
        fitted = {"fitted on": f"{learned:,} of {rows:,} rows" if learned < rows else "all rows"}
        settings = {"threshold": str(self.threshold), "seed": str(mender.random_state)}
        settings |= {"model": self.model} if self.model else fitted
        facts = Facts(
            name=self.source.name,
            seconds=self.seconds,
            flagged=len(self.mended.found),
            expected_false=self.mended.expected_false,
            repaired=self.repaired,
            settings=settings,
            notes=self.notes,
        )
        before, after = (understand(each, readers) for each in (self.source.table, self.mended.repaired))
        write_report(path, facts, mender.schema_, before, after, self.mended.found)


def fit(source: TableFile, mender: CellMender) -> list[str]:
    """Learn from a file; returns what a person should know of it, in sentences."""
    with kept_warnings() as notes:
        mender.fit(source.table)
    rows = source.table.num_rows
    if mender.train_rows is not None and rows > mender.train_rows:
        notes.append(f"Fitted on {mender.train_rows:,} of {rows:,} rows, drawn at random; all rows are scored.")
    if len(mender.history_) < mender.epochs:
        why = "when nothing more was learned" if mender.time_limit is None else "at the time limit"
        notes.append(f"Training stopped {why}, after {len(mender.history_)} of {mender.epochs} epochs.")
    return notes


def update(source: TableFile, mender: CellMender) -> list[str]:
    """Teach a model the rows of a file; returns what a person should know of it, in sentences."""
    _same_columns(source.name, source.table.column_names, mender)
    notes = [f"{sentence}." for sentence in mender.moved_columns(source.table).values()]
    before = {column.name: _levels(column) for column in mender.encoder_.columns}
    mender.update(source.table)
    for column in mender.encoder_.columns:
        if new := _levels(column)[len(before[column.name]) :]:
            notes.append(_said_of_levels(column.name, new))
    return notes


def drawn(stream: Stream, mender: CellMender) -> TableFile:
    """Rows of a large table to update a model with, its columns in the order of the model."""
    table = conform(draw(stream, LEARNED, mender.seed_), mender, stream.name)
    return TableFile(stream.name, table, None, ".parquet", None)


def _said_of_levels(name: str, new: Sequence[Any]) -> str:
    """What to tell of the levels that a column got.

    >>> _said_of_levels("city", ["Ulm"]), _said_of_levels("city", ["Ulm", "Bonn"])
    ('city learned a new level: Ulm.', 'city learned 2 new levels: Ulm, Bonn.')
    """
    shown = ", ".join(show(level) for level in new[:SHOWN_LEVELS]) + (", ..." if len(new) > SHOWN_LEVELS else "")
    return f"{name} learned {'a new level' if len(new) == 1 else f'{len(new):,} new levels'}: {shown}."


def _levels(column: EncodedColumn) -> Sequence[Any]:
    return column.levels if isinstance(column, LevelColumn) else ()


def _same_columns(name: str, own: Sequence[str], mender: CellMender) -> None:
    """Refuse a table whose columns are not those of the model, in their order."""
    names = mender.names_ or []
    check_columns(own, names, name)
    if list(own) != names:
        raise TableError(f"{name} must have the columns of the model in their order, {', '.join(names[:5])} ...")


def judge(
    source: TableFile, mender: CellMender, threshold: Threshold, notes: Sequence[str], start: float, model: str = ""
) -> Job:
    """Find and repair with a model, of this name if it was fitted before; `start` is by time.perf_counter."""
    _same_columns(source.name, source.table.column_names, mender)
    mended = mender.mend(source.table, fdr=threshold.fdr, suspicion=threshold.suspicion, top=threshold.top)
    said = [f"{name}: {sentence}." for name, sentence in describe_columns(source.table, mended.table.readers).items()]
    return Job(source, mender, mended, threshold, [*said, *notes], time.perf_counter() - start, model)


def tidied(source: TableFile, mender: CellMender) -> tuple[TableFile, list[str]]:
    """The file with its numbers without units and its missing cells empty, and what was done, in sentences."""
    readers = learn_readers(source.table, declared_kinds(mender.schema))
    plain = tidy(source.table, readers)
    changes: dict[int, dict[int, str]] = {}
    for place, (old, new) in enumerate(zip(source.table.columns, plain.columns, strict=True)):
        texts = new.to_pylist() if old is not new else []
        for row, (before, after) in enumerate(zip(old.to_pylist() if texts else [], texts, strict=True)):
            if before != after:
                changes.setdefault(row, {})[place] = after
    said = [f"{name}: {why}; written plainly." for name, why in describe_columns(source.table, readers).items()]
    return replace(source, table=plain, csv=None if source.csv is None else source.csv.changed(changes)), said


# ---------------------------------------------------------------- tables of any size, in pieces


def score_table(source: TableFile, mender: CellMender) -> pa.Table:
    """The suspicion of every cell under the table's own column names, and the row scores beside them."""
    batch = source.table.combine_chunks().to_batches()[0] if source.table.num_rows else source.table
    return pa.Table.from_batches([score_batch(mender, batch, name=source.name)])


def write_scores(stream: Stream, mender: CellMender, path: Path, *, shown: bool) -> list[str]:
    """What `score_table` gives, in one file, each piece written before the next is judged; if progress is shown,
    returns what a person should know of the whole table, in sentences."""
    summary: Summary | None = None
    schema, done = scores_schema(mender.names_ or stream.names), 0
    check_columns(stream.names, mender.names_ or [], stream.name)
    with written_in_pieces(path, schema) as write, progress("Scoring", stream.rows, shown=shown) as show:
        for unit in stream.units:
            for batch in ahead(read_unit(stream.url, unit, stream.names)):
                write(pa.Table.from_batches([score_batch(mender, batch, name=stream.name)]))
                if shown:
                    own = mender.summarise(conform(batch, mender, stream.name))
                    summary = own if summary is None else summary + own
                done += batch.num_rows
                show(done)
    return [] if summary is None else said_of_moved(mender.moved_since(summary))


def said_of_moved(moved: Mapping[str, str]) -> list[str]:
    """What to tell of columns that moved since the model learned.

    >>> said_of_moved({"city": "city moved since the model learned: Ulm is 30 % of the cells, it was 3 %"})[-1]
    'Hint: cellmend update teaches the model the new rows.'
    """
    hint = ["Hint: cellmend update teaches the model the new rows."] if moved else []
    return [*(f"{sentence}." for sentence in moved.values()), *hint]


def as_stream(table: str, spool: Path, *, larger_than: int) -> Stream | None:
    """A table to be read piece by piece: one behind a URL, or of files of more rows than this; else None.

    A large CSV file, or any if it must not be larger than anything, is first copied into the folder `spool`.
    """
    path = Path(table)
    if "://" in table:
        return open_stream(table)
    if table == "-" or not path.exists():
        return None
    kind = path.name.lower()
    if path.is_file() and kind.endswith(tuple(text + end for text in TEXTS for end in ("", *COMPRESSIONS))):
        small = larger_than and path.stat().st_size < LARGE_CSV
        stream = None if small else open_stream(str(csv_as_parquet(path, spool)))
    else:
        stream = open_stream(table) if path.is_dir() or kind.endswith(STREAMED) else None
    return stream if stream is not None and stream.rows > larger_than else None


@dataclass(frozen=True)
class Repaired:
    """What came of repairing a table of any size, in numbers."""

    rows: int
    cells: int
    flagged: int
    repaired: int


@dataclass(frozen=True)
class Run:
    """How the units of a table are worked on: here, or on a Ray cluster."""

    engine: str = "here"
    address: str | None = None
    workers: int | None = None

    def __call__(self, task: Task, stream: Stream, what: str, *, shown: bool) -> None:
        with progress(what, stream.rows, shown=shown) as show:
            if self.engine == "here":
                run(task, stream, show)
            else:
                from cellmend import engines

                engines.run(task, stream, show, address=self.address, workers=self.workers)


def fit_large(stream: Stream, mender: CellMender) -> tuple[pa.Table, list[str]]:
    """Learn from a table of any size; returns the rows that were drawn, and what a person should know of it."""
    with kept_warnings() as notes:
        drawn = fit_stream(mender, stream)
    learned = min(drawn.num_rows, mender.train_rows or drawn.num_rows)
    if learned < stream.rows:
        notes.append(f"Fitted on {learned:,} of {stream.rows:,} rows, drawn at random.")
    return drawn, notes


def fit_together(stream: Stream, mender: CellMender, model: Path, how: Run) -> list[str]:
    """Learn from a table of any size by several processes on a Ray cluster, and save the model."""
    from cellmend.engines import training

    with kept_warnings() as notes:
        training.fit(mender, stream, model, workers=how.workers or training.WORKERS, address=how.address)
    return notes


def score_stream(stream: Stream, model: Path, output: str, device: str, run_units: Run, *, shown: bool) -> list[str]:
    """Scores as a folder of files, one for each unit of the table; what is there already is not done again.

    Returns what a person should know of the whole table, in sentences, if progress is shown.
    """
    task = _task("score", stream, model, output, device)
    run_units(task, stream, "Scoring", shown=shown)
    return said_of_moved(load_once(model, device, task.digest).moved_since(summary_of(task, stream))) if shown else []


def repair_stream(
    stream: Stream, model: Path, output: str, threshold: Threshold, device: str, run_units: Run, *, shown: bool
) -> Repaired:
    """Findings in the folder `findings`, and the table with its repairs in `repaired`."""
    find = _task("find", stream, model, f"{output}/findings", device)
    find = find if threshold.suspicion is None else replace(find, least=threshold.suspicion)
    run_units(find, stream, "Finding", shown=shown)
    least = threshold.suspicion
    if least is None:
        least = cutoff(find.output, fdr=threshold.fdr, top=threshold.top)
    repair = replace(find, what="repair", output=everywhere(f"{output}/repaired"), findings=find.output, least=least)
    run_units(repair, stream, "Repairing", shown=shown)
    return Repaired(stream.rows, stream.rows * len(stream.names), *count(find.output, least))


def clean_stream(
    stream: Stream, mender: CellMender, folder: Path, threshold: Threshold, device: str, *, force: bool, shown: bool
) -> tuple[Repaired, list[str]]:
    """Fit, find and repair a table of any size; the report is about the rows that were drawn to learn from.

    A run that was stopped goes on with the model that is there.
    """
    start, model, notes = time.perf_counter(), folder / "model.cellmend", list[str]()
    for each in ("findings", "repaired") if force else ():
        clear(str(folder / each))
    folder.mkdir(parents=True, exist_ok=True)
    if force or not model.exists():
        drawn, notes = fit_large(stream, mender)
        mender.save(model)
        source = TableFile(stream.name, drawn, None, ".parquet", None)
        notes.append(f"report.html is about {drawn.num_rows:,} rows drawn at random.")
        judge(source, mender, threshold, notes, start).write_report(folder / "report.html")
    return repair_stream(stream, model, str(folder), threshold, device, Run(), shown=shown), notes


def _task(what: str, stream: Stream, model: Path, output: str, device: str) -> Task:
    check_columns(stream.names, load_once(model, device, digest_of(model)).names_ or [], stream.name)
    place = everywhere(output)
    return Task(what, stream.url, stream.names, place, str(model.resolve()), digest_of(model), device)


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """What cellmend warns of meanwhile, as sentences."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SchemaWarning)
        yield notes
    for warning in caught:
        if isinstance(warning.message, SchemaWarning):
            notes.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


# ---------------------------------------------------------------- findings in a file


def write_findings(path: Path, findings: Sequence[Finding]) -> None:
    """Findings as CSV that a spreadsheet can open without running anything in it."""
    names = [field.name for field in fields(Finding)]
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for finding in findings:
            writer.writerow([_written(getattr(finding, name)) for name in names])


def read_findings(path: Path) -> list[dict[str, str]]:
    """The lines of a findings file, as text, with the marks against formulas taken away."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: unguarded(cell) for name, cell in line.items()} for line in csv.DictReader(file)]


def _written(value: Any) -> Any:
    return show(value) if isinstance(value, float) else guarded(show(value))


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe comes before what may be one.

    >>> guarded("=1+1"), guarded("-5"), guarded("'=x"), guarded("it's")
    ("'=1+1", '-5', "''=x", "it's")
    """
    return f"'{text}" if FORMULA.match(text) and not _is_number(text) else text


def unguarded(text: str) -> str:
    """The opposite of `guarded`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", text) is not None
