"""The commands and their options: what they do is in jobs, how they tell it in console."""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import cellmend
from cellmend.benchmark.commands import bench
from cellmend.console import Teller, say, say_failed
from cellmend.errors import CellmendError, SettingError

if TYPE_CHECKING:
    from cellmend.estimator import CellMender
    from cellmend.jobs import Job, Run
    from cellmend.settings import Threshold

FDR = 0.1  # share of false alarms that is allowed unless the user says otherwise

app = typer.Typer(
    help="Find the wrong cells in a table and what they should have been.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench")

TABLE_HELP = ".csv, .tsv, .parquet, .feather, .xlsx, .jsonl, a folder of Parquet files, or - for CSV on standard input"
TableArgument = Annotated[str, typer.Argument(help=f"{TABLE_HELP}; also s3://, gs://, abfs:// or hdfs://")]
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
TopOption = Annotated[int | None, typer.Option(min=1, help="Flag this many cells, the most suspicious ones.")]
SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="YAML file with kinds of columns, see `cellmend schema`.")
]
RulesOption = Annotated[
    Path | None, typer.Option("--rules", help="YAML file with the rules that hold, see `cellmend rules`.")
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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that files begun are removed
    # Before torch is loaded: threads that spin while they wait slow a busy machine down ten times.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        app()
    except KeyboardInterrupt:
        say("Stopped. Nothing was written that is not whole.")
        sys.exit(130)
    except (CellmendError, OSError, MemoryError) as error:
        say_failed(error)
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
    from cellmend import jobs
    from cellmend.files.formats import read_packed

    wanted = jobs.Cleaning(output, _threshold(None, None, None), force=force)
    source, mender = read_packed(packed, "diamonds.csv"), _mender(None, seed, device, None, quiet)
    Teller(quiet).job(*jobs.clean(source, mender, wanted))


@app.command()
def clean(
    table: TableArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to. [default: NAME-cleaned]")
    ] = None,
    fdr: FdrOption = None,
    suspicion: SuspicionOption = None,
    top: TopOption = None,
    schema: SchemaOption = None,
    rules: RulesOption = None,
    formats: FormatsOption = False,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    time_limit: TimeOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find and repair the wrong cells of a table: findings.csv, a repaired copy, report.html and model.cellmend."""
    from cellmend import jobs, streaming

    teller, threshold = Teller(quiet, as_json), _threshold(fdr, suspicion, top)
    folder = output or Path(f"{Path(table).name.split('.')[0] if table != '-' else 'stdin'}-cleaned")
    wanted = jobs.Cleaning(folder, threshold, formats, force)
    with teller.reading(table):
        source = streaming.open_source(table, folder / "_source", larger_than=streaming.limits.VERY_LARGE)
    mender = _with_rules(_mender(schema, seed, device, time_limit, quiet), rules)
    if isinstance(source, streaming.Stream):
        done, notes = jobs.clean_stream(source, mender, wanted, jobs.Run(device=device, shown=not quiet))
        teller.notes(notes)
        written = [str(folder / name) for name in ("findings", "repaired", "report.html", "model.cellmend")]
        teller.repaired(done, threshold, written)
    else:
        teller.job(*jobs.clean(source, mender, wanted))


# ---------------------------------------------------------------- one step at a time


@app.command()
def fit(
    table: TableArgument,
    model: ModelOption,
    schema: SchemaOption = None,
    rules: RulesOption = None,
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
    from cellmend import jobs, streaming
    from cellmend.files import places

    teller, run = Teller(quiet, as_json), _run(engine, address, workers, device, quiet)
    places.check_outputs([model], force=force)
    start = time.perf_counter()
    mender = _with_rules(_mender(schema, seed, device, time_limit, quiet), rules).set_params(keep_rows=keep_rows)
    with streaming.copies_for("") as copies:
        if engine == "ray":
            stream = streaming.open_in_pieces(table, copies)
            rows, notes = stream.rows, jobs.fit_together(stream, mender, model, run)
        else:
            with teller.reading(table):
                source = streaming.open_source(table, copies, larger_than=streaming.limits.VERY_LARGE)
            rows, notes = jobs.fit_and_save(source, mender, model)
    teller.model(model, rows, notes, start)


@app.command()
def update(
    table: TableArgument,
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
    from cellmend import jobs, streaming
    from cellmend.files import places

    teller, target = Teller(quiet, as_json), output or model
    places.check_outputs([target], force=force or target == model)
    start = time.perf_counter()
    mender = _load(model, device, quiet)
    allowed = mender.time_limit
    with streaming.copies_for("") as copies:
        with teller.reading(table):
            source = streaming.open_source(table, copies, larger_than=streaming.limits.VERY_LARGE)
        rows, notes = jobs.update(source, mender.set_params(time_limit=time_limit or allowed))
    mender.set_params(time_limit=allowed).save(target)
    teller.model(target, rows, notes, start)


@app.command()
def score(
    table: TableArgument,
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
    from cellmend import jobs, streaming
    from cellmend.files import places

    teller, run = Teller(quiet), _run(engine, address, workers, device, quiet, output)
    with streaming.copies_for(output) as copies:
        if places.names_folder(output):
            stream = streaming.open_in_pieces(table, copies)
            if force:
                jobs.start_anew(output)
            moved = jobs.score_stream(stream, model, output, run)
        else:
            places.check_outputs([Path(output)], force=force)
            mender = _load(model, device, quiet)
            with teller.reading(table):
                source = streaming.open_source(table, copies, larger_than=streaming.limits.LARGE)
            if isinstance(source, streaming.Stream):
                mender.set_params(verbose=False)  # one bar for all pieces, not one for each
            moved = jobs.write_scores(source, mender, Path(output), shown=not quiet)
    teller.notes(moved)


@app.command()
def repair(
    table: TableArgument,
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
    from cellmend import jobs, streaming
    from cellmend.files import places

    run, threshold = _run(engine, address, workers, device, quiet, output), _threshold(fdr, suspicion, top)
    teller = Teller(quiet, as_json)
    if places.names_folder(output):
        with streaming.copies_for(output) as copies:
            stream = streaming.open_in_pieces(table, copies)
            if force:
                jobs.start_anew(output)
            done = jobs.repair_stream(stream, model, output, threshold, run)
        teller.repaired(done, threshold, [f"{output}/findings", f"{output}/repaired"])
    else:
        places.check_outputs([Path(output)], force=force)
        job = _judge(table, _load(model, device, quiet), model, threshold, teller)
        job.write_repaired(Path(output))
        teller.job(job, [Path(output)], findings=False)


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
    from cellmend.files import places

    if output == Path("-"):
        raise typer.BadParameter("A report is a file; -o must name one.")
    places.check_outputs([output], force=force)
    teller, threshold = Teller(quiet, as_json), _threshold(fdr, suspicion, top)
    job = _judge(table, _load(model, device, quiet), model, threshold, teller)
    job.write_report(output)
    teller.job(job, [output], findings=False)


@app.command()
def schema(table: TableArgument) -> None:
    """Print the kind of every column, to be edited and given back with --schema."""
    from cellmend.files.formats import read_file
    from cellmend.table.reader import guess_schema

    typer.echo(str(guess_schema(read_file(table).table)))


@app.command()
def rules(
    table: TableArgument,
    output: Annotated[str, typer.Option("--output", "-o", help="File to write; - for standard output.")] = "-",
    export: Annotated[str | None, typer.Option(help="pandera or great-expectations, in place of YAML.")] = None,
) -> None:
    """Print keys, dependencies and other rules that the table shows, to be edited and given back with --rules."""
    from cellmend.files.formats import read_file
    from cellmend.rules import EXPORTS, as_yaml, find_relations
    from cellmend.settings import one_of

    say_it = as_yaml if export is None else EXPORTS[one_of("export", export, tuple(EXPORTS))]
    text = say_it(find_relations(read_file(table).table))
    if output == "-":
        typer.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")


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
    from cellmend.files.formats import read_file

    teller, names = Teller(quiet, as_json), [name.strip() for name in baselines.split(",") if name.strip()]
    with teller.reading(table):
        source = read_file(table)
    mender = _mender(schema, seed, device, time_limit, quiet)
    with jobs.kept_warnings() as notes:
        found = evaluate_table(
            source.table, mender=mender, share=share, seed=seed, fdr=FDR if fdr is None else fdr, baselines=names
        )
    teller.evaluation(found, notes)


# ---------------------------------------------------------------- from options to what jobs take


def _run(engine: str, address: str | None, workers: int | None, device: str, quiet: bool, output: str = "") -> Run:
    """How the work is done; on a cluster the output, if it is not a model, must be a folder."""
    from cellmend.files import places
    from cellmend.jobs import Run

    if engine not in ("here", "ray"):
        raise typer.BadParameter(f"--engine must be here or ray; it is {engine!r}.")
    if engine == "here" and (address or workers):
        raise typer.BadParameter("--address and --workers are for --engine ray.")
    if engine == "ray" and not places.names_folder(output):
        raise typer.BadParameter(f"With --engine ray results are a folder; -o is the file {output}.")
    return Run(engine, address, workers, device, shown=not quiet)


def _threshold(fdr: float | None, suspicion: float | None, top: int | None) -> Threshold:
    from cellmend.settings import Threshold

    given = {name: v for name, v in {"fdr": fdr, "suspicion": suspicion, "top": top}.items() if v is not None}
    if len(given) > 1:
        raise typer.BadParameter(f"Only one of {' and '.join(f'--{name}' for name in given)} can be given.")
    try:
        return Threshold(**given) if given else Threshold(fdr=FDR)  # type: ignore[arg-type]
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None


def _with_rules(mender: CellMender, rules: Path | None) -> CellMender:
    from cellmend.table.relations.rules import Rules

    return mender if rules is None else mender.set_params(rules=Rules.load(rules))


def _mender(schema: Path | None, seed: int, device: str, time_limit: float | None, quiet: bool) -> CellMender:
    from cellmend.estimator import CellMender
    from cellmend.table.schema import Schema

    kinds = None if schema is None else Schema.load(schema)
    return CellMender(schema=kinds, random_state=seed, device=device, time_limit=time_limit, verbose=not quiet)


def _load(model: Path, device: str, quiet: bool) -> CellMender:
    from cellmend.estimator import load

    return load(model, device=device).set_params(verbose=not quiet)


def _judge(table: str, mender: CellMender, model: Path, threshold: Threshold, teller: Teller) -> Job:
    from cellmend import jobs
    from cellmend.files.formats import read_file

    with teller.reading(table):
        source = read_file(table)
    return jobs.judge(source, mender, threshold, [], time.perf_counter(), model.name)


if __name__ == "__main__":
    main()
