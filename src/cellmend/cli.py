"""The commands. Data goes to standard output, talk to standard error."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Shown

import cellmend
from cellmend.benchmark.commands import bench
from cellmend.errors import CellmendError, FileError, SettingError

if TYPE_CHECKING:
    from cellmend.estimator import CellMender
    from cellmend.files.formats import TableFile
    from cellmend.findings.findings import Finding
    from cellmend.jobs import Job, Repaired, Run
    from cellmend.settings import Threshold
    from cellmend.streaming import Stream

SHOWN = 25  # findings printed
FDR = 0.1  # share of false alarms that is allowed unless the user says otherwise

app = typer.Typer(
    help="Find the wrong cells in a table and what they should have been.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench")
talk = Console(stderr=True)

TABLE_HELP = ".csv, .tsv, .parquet, .feather, .xlsx, .jsonl, a folder of Parquet files, or - for CSV on standard input"
TableArgument = Annotated[Path, typer.Argument(help=TABLE_HELP)]
AnyTableArgument = Annotated[str, typer.Argument(help=f"{TABLE_HELP}; also s3://, gs://, abfs:// or hdfs://")]
ModelOption = Annotated[Path, typer.Option("--model", "-m", help="Model file.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="File to write; - for standard output.")]
PlaceOption = Annotated[
    str,
    typer.Option("--output", "-o", help="File to write, or a folder for tables of any size; - for standard output."),
]
EngineOption = Annotated[str, typer.Option(help="here, or ray for a cluster.")]
AddressOption = Annotated[str | None, typer.Option(help="Of a Ray cluster, such as auto. [default: this machine]")]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Processes at once, with --engine ray. [default: all]")]
FdrOption = Annotated[
    float | None,
    typer.Option(help=f"Flag as many cells as keep the expected share of false alarms at this. [default: {FDR}]"),
]
SuspicionOption = Annotated[float | None, typer.Option(help="Flag cells of at least this suspicion, e.g. 0.9.")]
TopOption = Annotated[int | None, typer.Option(min=1, help="Flag so many cells, the most suspicious.")]
SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="YAML file with kinds of columns, see `cellmend schema`.")
]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all randomness.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
TimeOption = Annotated[float | None, typer.Option("--time-limit", min=0.001, help="Seconds that fitting may take.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite results that are there.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
FormatsOption = Annotated[
    bool, typer.Option("--formats", help="Also write numbers without units and missing cells empty, in every row.")
]


def main() -> None:
    """Run a command; what cellmend itself refuses is one sentence and exit code 1, not a traceback."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that files begun are taken away
    # Before torch is loaded: threads that spin while they wait slow a busy machine down ten times.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        app()
    except KeyboardInterrupt:
        talk.print("Stopped. Nothing was written that is not whole.")
        sys.exit(130)
    except (CellmendError, OSError, MemoryError) as error:
        said = f"cellmend: {error or type(error).__name__}"
        talk.print(said, style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"cellmend {cellmend.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of cellmend itself."""


# ---------------------------------------------------------------- one command for all


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("cellmend-demo"),
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find real typing errors in the built-in diamonds table, in under a minute."""
    with (files("cellmend") / "data" / "diamonds.csv.gz").open("rb") as file:
        packed = file.read()
    from cellmend.files.formats import read_packed

    source = read_packed(packed, "diamonds.csv")
    _clean(source, output, _threshold(None, None, None), None, seed, device, None, False, force, quiet, False)


@app.command()
def clean(
    table: AnyTableArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to. [default: NAME-cleaned]")
    ] = None,
    fdr: FdrOption = None,
    suspicion: SuspicionOption = None,
    top: TopOption = None,
    schema: SchemaOption = None,
    formats: FormatsOption = False,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    time_limit: TimeOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find and repair the wrong cells of a table: findings.csv, a repaired copy, report.html and model.cellmend."""
    from cellmend import jobs

    threshold = _threshold(fdr, suspicion, top)
    folder = output or Path(f"{Path(table).name.split('.')[0] if table != '-' else 'stdin'}-cleaned")
    stream = jobs.as_stream(table, folder / "_source", larger_than=jobs.VERY_LARGE)
    if stream is None:
        source = _read(Path(table), quiet)
        _clean(source, folder, threshold, schema, seed, device, time_limit, formats, force, quiet, as_json)
        return
    mender = _mender(schema, seed, device, time_limit, quiet)
    done, notes = jobs.clean_stream(stream, mender, folder, threshold, device, force=force, shown=not quiet)
    written = [str(folder / name) for name in ("findings", "repaired", "report.html", "model.cellmend")]
    if not quiet:
        _say(notes)
    _tell_large(done, threshold, written, quiet=quiet, as_json=as_json)


def _clean(
    source: TableFile,
    folder: Path,
    threshold: Threshold,
    schema: Path | None,
    seed: int,
    device: str,
    time_limit: float | None,
    formats: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    from cellmend import jobs

    start = time.perf_counter()
    written = [folder / name for name in ("findings.csv", f"repaired{source.suffix}", "report.html", "model.cellmend")]
    with _room(folder, written, force):
        mender = _mender(schema, seed, device, time_limit, quiet)
        source, said = jobs.tidied(source, mender) if formats else (source, [])
        job = jobs.judge(source, mender, threshold, [*said, *jobs.fit(source, mender)], start)
        for path, write in zip(
            written, (job.write_findings, job.write_repaired, job.write_report, mender.save), strict=True
        ):
            write(path)
    _tell(job, written, quiet=quiet, as_json=as_json)


# ---------------------------------------------------------------- one step at a time


@app.command()
def fit(
    table: AnyTableArgument,
    model: ModelOption,
    schema: SchemaOption = None,
    engine: EngineOption = "here",
    address: AddressOption = None,
    workers: WorkersOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    time_limit: TimeOption = None,
    keep_rows: Annotated[
        int, typer.Option("--keep-rows", min=0, help="Rows kept in the model, so that updates forget less.")
    ] = 0,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Learn what clean rows look like and keep it as a model, for newer data."""
    from cellmend import jobs

    run = _run(engine, address, workers)
    _refuse([model], force)
    start = time.perf_counter()
    mender = _mender(schema, seed, device, time_limit, quiet).set_params(keep_rows=keep_rows)
    with TemporaryDirectory() as spool:
        stream = jobs.as_stream(table, Path(spool), larger_than=0 if engine == "ray" else jobs.VERY_LARGE)
        if engine == "ray":
            stream = _in_units(stream, table)
            rows, notes = stream.rows, jobs.fit_together(stream, mender, model, run)
        elif stream is not None:
            rows, notes = stream.rows, jobs.fit_large(stream, mender)[1]
            mender.save(model)
        else:
            source = _read(Path(table), quiet)
            rows, notes = source.table.num_rows, jobs.fit(source, mender)
            mender.save(model)
    _tell_of_model(model, rows, notes, start, quiet=quiet, as_json=as_json)


@app.command()
def update(
    table: AnyTableArgument,
    model: ModelOption,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Updated model. [default: the model file is replaced]")
    ] = None,
    device: DeviceOption = "auto",
    time_limit: TimeOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Teach a model new rows, and new levels of categories, without forgetting the old ones."""
    from cellmend import jobs

    target = output or model
    _refuse([target], force or target == model)
    start = time.perf_counter()
    mender = _load(model, device, quiet)
    allowed = mender.time_limit
    with TemporaryDirectory() as spool:
        stream = jobs.as_stream(table, Path(spool), larger_than=jobs.VERY_LARGE)
        source = _read(Path(table), quiet) if stream is None else jobs.drawn(stream, mender)
    notes = jobs.update(source, mender.set_params(time_limit=time_limit or allowed))
    mender.set_params(time_limit=allowed).save(target)
    _tell_of_model(target, source.table.num_rows, notes, start, quiet=quiet, as_json=as_json)


@app.command()
def score(
    table: AnyTableArgument,
    model: ModelOption,
    output: PlaceOption,
    engine: EngineOption = "here",
    address: AddressOption = None,
    workers: WorkersOption = None,
    device: DeviceOption = "auto",
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the suspicion of every cell, and a score for every row, by a model; of large tables in pieces.

    Into a folder, a file for each part of the table: a run that was stopped goes on where it was.
    """
    from cellmend import jobs
    from cellmend.files.formats import write_table

    run, folder = _run(engine, address, workers, output), _names_folder(output)
    if not folder:
        _refuse([Path(output)], force)
    with _spool(output) as spool:
        stream = jobs.as_stream(table, spool, larger_than=0 if folder else jobs.LARGE)
        if folder:
            stream = _in_units(stream, table)
            _take_up(output, force)
            moved = jobs.score_stream(stream, model, output, device, run, shown=not quiet)
        elif stream is None:
            mender, source = _load(model, device, quiet), _read(Path(table), quiet)
            write_table(Path(output), jobs.score_table(source, mender))
            moved = [] if quiet else jobs.said_of_moved(mender.moved_columns(source.table.select(mender.names_)))
        else:
            mender = _load(model, device, quiet=True)  # one bar for all pieces, not one for each
            moved = jobs.write_scores(stream, mender, Path(output), shown=not quiet)
    _say(moved)


@app.command()
def repair(
    table: AnyTableArgument,
    model: ModelOption,
    output: PlaceOption,
    fdr: FdrOption = None,
    suspicion: SuspicionOption = None,
    top: TopOption = None,
    engine: EngineOption = "here",
    address: AddressOption = None,
    workers: WorkersOption = None,
    device: DeviceOption = "auto",
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a repaired copy of a table, in its own format, by a model; into a folder of any size, with the findings."""
    from cellmend import jobs

    run, threshold = _run(engine, address, workers, output), _threshold(fdr, suspicion, top)
    if _names_folder(output):
        with _spool(output) as spool:
            stream = _in_units(jobs.as_stream(table, spool, larger_than=0), table)
            _take_up(output, force)
            done = jobs.repair_stream(stream, model, output, threshold, device, run, shown=not quiet)
        _tell_large(done, threshold, [f"{output}/findings", f"{output}/repaired"], quiet=quiet, as_json=as_json)
        return
    _refuse([Path(output)], force)
    job = _judged(Path(table), model, threshold, device, quiet)
    job.write_repaired(Path(output))
    _tell(job, [Path(output)], quiet=quiet, as_json=as_json, findings=False)


@app.command()
def report(
    table: TableArgument,
    model: ModelOption,
    output: OutputOption = Path("report.html"),
    fdr: FdrOption = None,
    suspicion: SuspicionOption = None,
    top: TopOption = None,
    device: DeviceOption = "auto",
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one HTML page about a table, by a model."""
    if output == Path("-"):
        raise typer.BadParameter("A report is a file; -o must name one.")
    _refuse([output], force)
    job = _judged(table, model, _threshold(fdr, suspicion, top), device, quiet)
    job.write_report(output)
    _tell(job, [output], quiet=quiet, as_json=as_json, findings=False)


@app.command()
def schema(table: TableArgument) -> None:
    """Print the kind of every column, to be edited and given back with --schema."""
    from cellmend.files.formats import read_file
    from cellmend.table.notation import Dates, learn_readers, understand
    from cellmend.table.schema import infer_schema

    found = read_file(table).table
    readers = learn_readers(found, {})
    dates = [name for name, reader in readers.items() if isinstance(reader, Dates)]
    typer.echo(str(infer_schema(understand(found, readers), dates)))


@app.command()
def evaluate(
    table: TableArgument,
    share: Annotated[float, typer.Option(help="Share of the rows that get errors.")] = 0.05,
    fdr: FdrOption = None,
    baselines: Annotated[
        str, typer.Option("--baselines", help='Other methods to compare with, such as "Marginals,LightGBM,RVAE".')
    ] = "",
    schema: SchemaOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    time_limit: TimeOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put known errors into your own table, and show how well they are found and repaired; the file is not changed."""
    from cellmend import jobs
    from cellmend.benchmark.evaluation import evaluate as evaluate_table

    source, names = _read(table, quiet), [name.strip() for name in baselines.split(",") if name.strip()]
    mender = _mender(schema, seed, device, time_limit, quiet)
    with jobs.kept_warnings() as notes:
        found = evaluate_table(
            source.table, mender=mender, share=share, seed=seed, fdr=FDR if fdr is None else fdr, baselines=names
        )
    if as_json:
        typer.echo(json.dumps(found.to_json() | {"notes": notes}))
        return
    tables = {"By kind of error": found.by_kind, "By column": found.by_column, "Compared": found.baselines}
    for title, each in tables.items():
        if each is not None:
            Console().print(_figures(title, each))
    if not quiet:
        flagged, wrong = (f"{100 * found.overall[name]:.0f} %" for name in ("precision", "recall"))
        said = f"Of the flagged cells {flagged} are errors that were put in, and {wrong} of those were flagged."
        _say([*notes, said, "Errors that the table had before count as false alarms here."])


# ---------------------------------------------------------------- tables of any size


def _names_folder(output: str) -> bool:
    """Is it a folder that results are asked for in? Files end in their kind."""
    return output != "-" and not Path(output).suffix


def _run(engine: str, address: str | None, workers: int | None, output: str = "") -> Run:
    """How the work is done; on a cluster the output, if it is not a model, must be a folder."""
    from cellmend.jobs import Run

    if engine not in ("here", "ray"):
        raise typer.BadParameter(f"--engine must be here or ray; it is {engine!r}.")
    if engine == "here" and (address or workers):
        raise typer.BadParameter("--address and --workers are for --engine ray.")
    if engine == "ray" and not _names_folder(output):
        raise typer.BadParameter(f"With --engine ray results are a folder; -o is the file {output}.")
    return Run(engine, address, workers)


@contextmanager
def _spool(output: str) -> Iterator[Path]:
    """A folder for copies of what cannot be read piece by piece; beside the results, so that they are made once."""
    if _names_folder(output) and "://" not in output:
        yield Path(output) / "_source"
    else:
        with TemporaryDirectory() as folder:
            yield Path(folder)


def _in_units(stream: Stream | None, table: str) -> Stream:
    if stream is None:
        raise FileError(
            f"To be worked on in parts, the table must be Parquet, Arrow or CSV files; {table} is none. "
            "Hint: without --engine, and with a file for -o, it can be of other kinds."
        )
    return stream


def _take_up(output: str, force: bool) -> None:
    """With --force begin anew, else go on with what is there."""
    from cellmend.streaming import clear

    for folder in (output, f"{output}/findings", f"{output}/repaired") if force else ():
        clear(folder)


def _tell_large(done: Repaired, threshold: Threshold, written: Sequence[str], *, quiet: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(done) | {"threshold": str(threshold), "written": list(written)}))
    if not quiet:
        _say(
            [
                f"{done.flagged:,} of {done.cells:,} cells look wrong ({threshold}); {done.repaired:,} are repaired.",
                f"Written: {', '.join(written)}.",
            ]
        )


# ---------------------------------------------------------------- steps shared by the above


def _refuse(paths: Sequence[Path], force: bool) -> None:
    """Before the work: nothing is overwritten, and there is a folder for every file or room for one."""
    from cellmend.files.formats import STDIN, refuse_to_overwrite

    files_only = [path for path in paths if path != STDIN]
    refuse_to_overwrite(files_only, force=force)
    for path in files_only:
        if not path.parent.is_dir():
            raise FileError(f"{path} must be in a folder that is there; {path.parent} is none.")


@contextmanager
def _room(folder: Path, paths: Sequence[Path], force: bool) -> Iterator[None]:
    """The folder, made before the work so that it is known to be writable; gone again if nothing came of it."""
    from cellmend.files.formats import refuse_to_overwrite

    refuse_to_overwrite(paths, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


def _threshold(fdr: float | None, suspicion: float | None, top: int | None) -> Threshold:
    from cellmend.settings import Threshold, check_number

    given = {name: v for name, v in {"fdr": fdr, "suspicion": suspicion, "top": top}.items() if v is not None}
    if len(given) > 1:
        raise typer.BadParameter(f"Only one of {' and '.join(f'--{name}' for name in given)} can be given.")
    try:
        for name, value in given.items():
            check_number(name, value)
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None
    return Threshold(**given) if given else Threshold(fdr=FDR)  # type: ignore[arg-type]


def _read(table: Path, quiet: bool) -> TableFile:
    from cellmend.files.formats import read_file

    if quiet or not talk.is_terminal:
        return read_file(table)
    with talk.status(f"Reading {table}"):
        return read_file(table)


def _mender(schema: Path | None, seed: int, device: str, time_limit: float | None, quiet: bool) -> CellMender:
    from cellmend.estimator import CellMender
    from cellmend.table.schema import Schema

    kinds = None if schema is None else Schema.load(schema)
    return CellMender(schema=kinds, random_state=seed, device=device, time_limit=time_limit, verbose=not quiet)


def _load(model: Path, device: str, quiet: bool) -> CellMender:
    from cellmend.estimator import load

    return load(model, device=device).set_params(verbose=not quiet)


def _judged(table: Path, model: Path, threshold: Threshold, device: str, quiet: bool) -> Job:
    from cellmend import jobs

    mender = _load(model, device, quiet)
    source = _read(table, quiet)
    return jobs.judge(source, mender, threshold, [], time.perf_counter(), model.name)


def _tell(job: Job, written: Sequence[Path], *, quiet: bool, as_json: bool, findings: bool = True) -> None:
    """What came of it: JSON, or the worst findings on standard output and a summary beside it."""
    to_screen = Path("-") in written
    if as_json and not to_screen:
        typer.echo(json.dumps(job.summary() | {"written": [str(path) for path in written]}))
    elif findings and job.mended.found and not quiet:
        Console().print(_findings_table(job.mended.found[:SHOWN], job.source.name))
    if quiet:
        return
    flagged, abstained = len(job.mended.found), len(job.mended.found) - job.repaired
    cells = job.source.table.num_rows * job.source.table.num_columns
    false = f"about {job.mended.expected_false:.0f} of them may be right"
    _say(
        [
            f"{flagged:,} of {cells:,} cells look wrong ({job.threshold}); {false}.",
            f"{job.repaired:,} are repaired; {abstained:,} are left as they are, because nothing tells what they were.",
            *job.notes,
            f"Written: {', '.join(map(str, written))}. {job.seconds:.0f} s.",
        ]
    )


def _tell_of_model(model: Path, rows: int, notes: Sequence[str], start: float, *, quiet: bool, as_json: bool) -> None:
    """What came of fitting or updating; `start` is by time.perf_counter."""
    seconds = time.perf_counter() - start
    if as_json:
        typer.echo(json.dumps({"model": str(model), "rows": rows, "seconds": seconds, "notes": list(notes)}))
    if not quiet:
        _say([*notes, f"Written: {model}, {seconds:.0f} s."])


def _say(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        talk.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _figures(title: str, figures: Any) -> Shown:
    """A table of names, counts and figures, "" where there is nothing to measure."""
    shown = Shown(title=title)
    for name in figures.column_names:
        shown.add_column(
            name.replace("_", " "), justify="right" if name not in ("kind", "column", "method") else "left"
        )
    for line in figures.to_pylist():
        shown.add_row(*(_plain(_figure(cell)) for cell in line.values()))
    return shown


def _figure(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def _findings_table(findings: Sequence[Finding], name: str) -> Shown:
    from cellmend.findings.findings import about, short

    shown = Shown(title=f"Most suspicious cells of {name}")
    for title in ("row", "column", "value", "suspicion", "repair", "expected"):
        shown.add_column(title, justify="left" if title == "column" else "right")
    for line in findings:
        expected = "" if line.low is None or line.high is None else f"{about(line.low)} to {about(line.high)}"
        cells: list[Any] = [line.row, line.column, short(line.value), f"{line.suspicion:.3f}"]
        repair = "" if line.repair is None else short(line.repair)
        shown.add_row(*(_plain(cell) for cell in (*cells, repair, expected)))
    return shown


def _plain(cell: Any) -> Any:
    """Text in which nothing is taken for markup."""
    from rich.text import Text

    return Text(str(cell))


if __name__ == "__main__":
    main()
