"""The commands and their options: what they do is in jobs, how they tell it in console."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import cellmend
from cellmend import options, settings
from cellmend.console import QuietOption, Teller, say, say_failed
from cellmend.errors import CellmendError, SettingError
from cellmend.review.commands import apply, review
from cellmend_bench.commands import bench

if TYPE_CHECKING:
    from cellmend.estimator import CellMender
    from cellmend.files.layout import Asked
    from cellmend.jobs import Job
    from cellmend.settings import FailIf, Threshold

STOPPED = 130  # exit code of what a person stopped

app = typer.Typer(
    help="Find the wrong cells in a table and what they should have been.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench")
app.command()(review)
app.command()(apply)


def main() -> None:
    """Run a command; what cellmend itself refuses is one sentence and exit code 1, not a traceback."""
    signal.signal(signal.SIGTERM, _end)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # not with nohup
        signal.signal(signal.SIGHUP, _end)
    try:
        app()
    except (KeyboardInterrupt, SystemExit) as stop:
        if isinstance(stop, SystemExit) and stop.code != STOPPED:
            raise
        say("Stopped. Nothing was written that is not whole.")
        sys.exit(STOPPED)
    except (CellmendError, OSError, MemoryError) as error:
        say_failed(error)
        sys.exit(1)


def _end(number: int, _: object) -> None:
    """Ends as a signal asks for, so that files begun are removed."""
    sys.exit(128 + number)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"cellmend {cellmend.__version__}")
        raise typer.Exit


@app.callback()
def cellmend_itself(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of cellmend itself."""


# ---------------------------------------------------------------- one command for all


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("cellmend-demo"),
    seed: options.SeedOption = 0,
    device: options.DeviceOption = "auto",
    force: options.ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find real typing errors in the built-in diamonds table, in under a minute."""
    from cellmend import jobs
    from cellmend.files.formats import read_bytes

    packed = (files("cellmend") / "data" / "diamonds.csv.gz").read_bytes()
    source = replace(read_bytes(packed, "diamonds.csv.gz"), name="diamonds.csv")
    wanted = jobs.Cleaning(output, options.ThresholdOptions().threshold(), force=force)
    mender = options.new_mender(None, None, seed, device, None, quiet)
    Teller(quiet).job(*jobs.clean(source, mender, wanted))


@app.command()
@options.with_groups
def clean(
    table: options.TableArgument,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to. \\[default: NAME-cleaned]")
    ] = None,
    flags: options.ThresholdOptions,
    cautious: options.CautionOptions,
    dry_run: options.DryRunOption = False,
    schema: options.SchemaOption = None,
    ruled: options.RuleOptions,
    formats: options.FormatsOption = False,
    seed: options.SeedOption = 0,
    fail_if: options.FailIfOption = None,
    file: options.FileOptions,
    decimal: options.DecimalOption = None,
    device: options.DeviceOption = "auto",
    time_limit: options.TimeOption = None,
    quick: options.QuickOption = False,
    decisions: options.DecisionsOption = None,
    model: Annotated[Path | None, typer.Option("--model", "-m", help="Model file, in place of fitting one.")] = None,
    force: options.ForceOption = False,
    teller: Teller,
) -> None:
    """Find and repair the wrong cells of a table: findings.csv, a repaired copy, report.html and model.cellmend."""
    from cellmend import jobs, large_jobs, streaming

    asked, threshold = file.asked(), flags.threshold()
    if quick and model is not None:
        raise SettingError("--quick is for fitting a model, and --model names one; give one of the two.")
    folder = output or Path(f"{Path(table).name.split('.')[0] if table != '-' else 'stdin'}-cleaned")
    place = None if table == "-" else table
    wanted = jobs.Cleaning(folder, threshold, formats, force, dry_run, place, decisions, model, asked)
    caution, watch = cautious.caution(), options.watch_of(fail_if, compares=model is not None)
    options.check_watched(watch, model)
    with teller.reading(table):
        source = streaming.open_source(table, folder / "_source", larger_than=streaming.limits.VERY_LARGE, asked=asked)
    fresh = options.new_mender(schema, ruled.given(), seed, device, time_limit, teller.quiet)
    fresh.set_params(decimal=decimal, quick=quick)
    mender = fresh if model is None else options.loaded(model, device, teller.quiet)
    mender.set_params(**caution.settings())
    if isinstance(source, streaming.Stream):
        run = large_jobs.Run(device=device, shown=not teller.quiet)
        done, notes = large_jobs.clean_stream(source, mender, wanted, run)
        teller.notes(notes)
        teller.repaired(done, threshold, large_jobs.written_of_stream(wanted), copied=not dry_run)
        options.fail_for(watch.reasons(findings=done.flagged, cells=done.cells))
    else:
        job, written = jobs.clean(source, mender, wanted)
        job = job if watch.moved is None else job.compared()
        teller.job(job, written, copied=not dry_run)
        options.fail_for(watch.reasons(findings=job.findings, cells=job.cells, moved=job.moved))


# ---------------------------------------------------------------- one step at a time


@app.command()
@options.with_groups
def fit(
    table: options.TableArgument,
    model: options.ModelOption,
    *,
    schema: options.SchemaOption = None,
    ruled: options.RuleOptions,
    engine: options.EngineOptions,
    seed: options.SeedOption = 0,
    file: options.FileOptions,
    decimal: options.DecimalOption = None,
    device: options.DeviceOption = "auto",
    time_limit: options.TimeOption = None,
    quick: options.QuickOption = False,
    keep_rows: Annotated[
        int, typer.Option("--keep-rows", min=0, help="Rows kept in the model, so that updates forget less.")
    ] = 0,
    force: options.ForceOption = False,
    teller: Teller,
) -> None:
    """Learn what clean rows look like and keep it as a model, for newer data."""
    from cellmend import jobs, large_jobs, streaming
    from cellmend.files import results

    asked, run = file.asked(), engine.run(device, teller.quiet)
    results.check_outputs([model], force=force)
    start = time.perf_counter()
    mender = options.new_mender(schema, ruled.given(), seed, device, time_limit, teller.quiet)
    mender.set_params(decimal=decimal, keep_rows=keep_rows, quick=quick)
    with streaming.copies_for("") as copies:
        if run.engine == "ray":
            stream = streaming.open_in_pieces(table, copies, asked)
            rows, notes = stream.rows, large_jobs.fit_together(stream, mender, model, run)
        else:
            with teller.reading(table):
                source = streaming.open_source(table, copies, larger_than=streaming.limits.VERY_LARGE, asked=asked)
            rows, notes = jobs.fit_and_save(source, mender, model)
    teller.model(model, rows, notes, start)


@app.command()
@options.with_groups
def update(
    table: options.TableArgument,
    model: options.ModelOption,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Updated model. \\[default: the model file is replaced]")
    ] = None,
    file: options.FileOptions,
    device: options.DeviceOption = "auto",
    time_limit: options.TimeOption = None,
    force: options.ForceOption = False,
    teller: Teller,
) -> None:
    """Teach a model new rows, and new levels of categories, without forgetting the old ones."""
    from cellmend import jobs, streaming
    from cellmend.files import results

    asked, target = file.asked(), output or model
    results.check_outputs([target], force=force or target == model)
    start = time.perf_counter()
    mender = options.loaded(model, device, teller.quiet)
    allowed = mender.time_limit
    with streaming.copies_for("") as copies:
        with teller.reading(table):
            source = streaming.open_source(table, copies, larger_than=streaming.limits.VERY_LARGE, asked=asked)
        rows, notes = jobs.update(source, mender.set_params(time_limit=time_limit or allowed))
    mender.set_params(time_limit=allowed).save(target)
    teller.model(target, rows, notes, start)


@app.command()
@options.with_groups
def score(
    table: options.TableArgument,
    model: options.ModelOption,
    output: options.PlaceOption,
    *,
    engine: options.EngineOptions,
    fail_if: options.FailIfOption = None,
    file: options.FileOptions,
    device: options.DeviceOption = "auto",
    force: options.ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the suspicion of every cell, and a score for every row, by a model; of large tables in pieces.

    Into a folder, a file for each part of the table: a run that was stopped goes on where it was.
    """
    from cellmend import large_jobs, streaming
    from cellmend.files import places, results
    from cellmend.streaming.scores import write_scores

    asked, run = file.asked(), engine.run(device, quiet, output)
    teller, watch = Teller(quiet), options.watch_of(fail_if, flags=False)
    options.check_watched(watch, model)
    with streaming.copies_for(output) as copies:
        if places.names_folder(output):
            stream = streaming.open_in_pieces(table, copies, asked)
            if force:
                large_jobs.start_anew(output)
            found = large_jobs.score_stream(stream, model, output, run)
        else:
            results.check_outputs([Path(output)], force=force)
            mender = options.loaded(model, device, quiet)
            with teller.reading(table):
                source = streaming.open_source(table, copies, larger_than=streaming.limits.LARGE, asked=asked)
            if isinstance(source, streaming.Stream):
                mender.set_params(verbose=False)  # one bar for all pieces, not one for each
            compared = watch.moved is not None or not quiet
            found = write_scores(source, mender, Path(output), shown=not quiet, compared=compared)
    teller.notes(found.notes)
    options.fail_for(watch.reasons(moved=found.moved))


@app.command()
@options.with_groups
def repair(
    table: options.TableArgument,
    model: options.ModelOption,
    output: options.PlaceOption,
    *,
    flags: options.ThresholdOptions,
    cautious: options.CautionOptions,
    dry_run: options.DryRunOption = False,
    engine: options.EngineOptions,
    fail_if: options.FailIfOption = None,
    file: options.FileOptions,
    device: options.DeviceOption = "auto",
    force: options.ForceOption = False,
    teller: Teller,
) -> None:
    """Write a repaired copy of a table, in its own format, by a model; into a folder of any size, with the findings."""
    from cellmend import jobs, large_jobs, streaming
    from cellmend.files import places, results

    asked, run = file.asked(), engine.run(device, teller.quiet, output)
    threshold, caution, watch = flags.threshold(), cautious.caution(), options.watch_of(fail_if)
    options.check_watched(watch, model)
    if places.names_folder(output):
        wanted = large_jobs.Repairing(output, threshold, caution, dry_run)
        with streaming.copies_for(output) as copies:
            stream = streaming.open_in_pieces(table, copies, asked)
            if force:
                large_jobs.start_anew(output)
            done = large_jobs.repair_stream(stream, model, wanted, run)
        teller.repaired(done, threshold, wanted.written, copied=not dry_run)
        options.fail_for(watch.reasons(findings=done.flagged, cells=done.cells, moved=done.moved))
    else:
        written = jobs.files_of_repair(Path(output), dry_run=dry_run)
        results.check_outputs(list(written), force=force)
        mender = options.loaded(model, device, teller.quiet).set_params(**caution.settings())
        job = _judge(table, asked, mender, model, threshold, teller)
        for path, write in written.items():
            write(job, path)
        _tell_and_fail(job, list(written), watch, teller, copied=not dry_run)


@app.command()
@options.with_groups
def report(
    table: options.TableArgument,
    model: options.ModelOption,
    *,
    output: options.OutputOption = Path("report.html"),
    flags: options.ThresholdOptions,
    fail_if: options.FailIfOption = None,
    file: options.FileOptions,
    device: options.DeviceOption = "auto",
    force: options.ForceOption = False,
    teller: Teller,
) -> None:
    """Write one HTML page about a table, by a model."""
    from cellmend.files import results

    if output == Path("-"):
        raise typer.BadParameter("A report is a file; -o must name one.")
    results.check_outputs([output], force=force)
    asked, threshold, watch = file.asked(), flags.threshold(), options.watch_of(fail_if)
    options.check_watched(watch, model)
    job = _judge(table, asked, options.loaded(model, device, teller.quiet), model, threshold, teller)
    job.write_report(output)
    _tell_and_fail(job, [output], watch, teller, copied=False)


@app.command()
@options.with_groups
def schema(table: options.TableArgument, *, file: options.FileOptions) -> None:
    """Print the kind of every column, to be edited and given back with --schema."""
    from cellmend.files.formats import read_file
    from cellmend.table.reader import guess_schema

    typer.echo(str(guess_schema(read_file(table, file.asked()).table)))


@app.command()
@options.with_groups
def rules(
    table: options.TableArgument,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="File to write; - for standard output.")] = "-",
    export: Annotated[str | None, typer.Option(help="pandera or great-expectations, in place of YAML.")] = None,
    schema: options.SchemaOption = None,
    ruled: options.RuleOptions,
    file: options.FileOptions,
    decimal: options.DecimalOption = None,
) -> None:
    """Print keys, dependencies and other rules that the table shows, to be edited and given back with --rules."""
    from cellmend.files.formats import read_file
    from cellmend.files.places import whole_file
    from cellmend.rules import EXPORTS, as_yaml, learn_rules
    from cellmend.settings import one_of
    from cellmend.table.schema import Schema

    say_it = as_yaml if export is None else EXPORTS[one_of("export", export, tuple(EXPORTS))]
    kinds, given = None if schema is None else Schema.load(schema), ruled.given()
    text = say_it(learn_rules(read_file(table, file.asked()).table, kinds, given, decimal))
    if output == "-":
        typer.echo(text, nl=False)
    else:
        with whole_file(Path(output)) as temporary:
            temporary.write_text(text, encoding="utf-8")


@app.command()
@options.with_groups
def evaluate(
    table: options.TableArgument,
    *,
    share: Annotated[float, typer.Option(help="Share of the cells that get errors.")] = 0.02,
    fdr: options.FdrOption = None,
    baselines: Annotated[
        str, typer.Option("--baselines", help='Other methods to compare with, such as "Marginals,LightGBM,RVAE".')
    ] = "",
    schema: options.SchemaOption = None,
    seed: options.SeedOption = 0,
    file: options.FileOptions,
    decimal: options.DecimalOption = None,
    device: options.DeviceOption = "auto",
    time_limit: options.TimeOption = None,
    quick: options.QuickOption = False,
    teller: Teller,
) -> None:
    """Put known errors into your own table, and show how well they are found and repaired; the file is not changed."""
    from cellmend import jobs
    from cellmend.evaluation.evaluation import evaluate as evaluate_table
    from cellmend.files.formats import read_file

    names = [name.strip() for name in baselines.split(",") if name.strip()]
    asked = file.asked()
    with teller.reading(table):
        source = read_file(table, asked)
    mender = options.new_mender(schema, None, seed, device, time_limit, teller.quiet)
    mender.set_params(decimal=decimal, quick=quick)
    with jobs.kept_warnings() as notes:
        allowed = settings.FDR if fdr is None else fdr
        found = evaluate_table(source.table, mender=mender, share=share, seed=seed, fdr=allowed, baselines=names)
    teller.evaluation(found, notes)


def _tell_and_fail(job: Job, written: list[Path], watch: FailIf, teller: Teller, *, copied: bool) -> None:
    """Say what came of a run by a model, and end as failed if it counts as such."""
    job = job if watch.moved is None else job.compared()
    teller.job(job, written, findings=False, copied=copied)
    options.fail_for(watch.reasons(findings=job.findings, cells=job.cells, moved=job.moved))


def _judge(table: str, asked: Asked, mender: CellMender, model: Path, threshold: Threshold, teller: Teller) -> Job:
    from cellmend import jobs
    from cellmend.files.formats import read_file

    with teller.reading(table):
        source = read_file(table, asked)
    return jobs.judge(source, mender, threshold, [], time.perf_counter(), model.name)


if __name__ == "__main__":
    main()
