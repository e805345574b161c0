"""The options of the commands, each written once, and what they mean to the jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cellmend.console import say
from cellmend.errors import SettingError

if TYPE_CHECKING:
    from cellmend.estimator import CellMender
    from cellmend.files.layout import Asked
    from cellmend.large_jobs import Run
    from cellmend.settings import Caution, FailIf, Threshold

FAILED_IF = 3  # exit code of a run that was done and found what it was to watch for
FDR = 0.1  # share of false alarms that is allowed unless the user says otherwise

TABLE_HELP = (
    ".csv, .tsv, .parquet, .feather, .xlsx, .ods, .json, .jsonl, .zip with one of them, a folder of Parquet files, "
    "or - for CSV on standard input"
)
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
RepairFromOption = Annotated[
    float | None,
    typer.Option(
        "--repair-from", help="Change only cells whose repair is at least this probable. [default: 0.9, or the model's]"
    ),
]
ProtectOption = Annotated[
    list[str] | None, typer.Option("--protect", help="Flag cells of this column, but never change it; may be repeated.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Write findings and report only: nothing is changed.")]
FailIfOption = Annotated[
    list[str] | None,
    typer.Option("--fail-if", help="Exit with 3 if: findings>20; or of score: moved."),
]
SheetOption = Annotated[str | None, typer.Option("--sheet", help="Of a workbook: name or number. [default: the first]")]
HeaderRowOption = Annotated[
    int | None, typer.Option("--header-row", min=1, help="Row of the file with the names. [default: found out]")
]
DelimiterOption = Annotated[str | None, typer.Option("--delimiter", help="Between fields of CSV. [default: found out]")]
EncodingOption = Annotated[str | None, typer.Option("--encoding", help="Of CSV, such as cp1252. [default: found out]")]
DecimalOption = Annotated[
    str | None, typer.Option("--decimal", help="Mark of decimals in text, . or a comma. [default: found out]")
]
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
RulesOption = Annotated[
    Path | None, typer.Option("--rules", help="YAML file with the rules that hold, see `cellmend rules`.")
]
DecisionsOption = Annotated[
    Path | None, typer.Option("--decisions", help="JSON lines of what people decided about cells; it teaches.")
]


# ---------------------------------------------------------------- from options to what jobs take


def file_options(sheet: str | None, header_row: int | None, delimiter: str | None, encoding: str | None) -> Asked:
    """What the user says of a file."""
    from cellmend.files.layout import Asked

    between = None if delimiter is None else delimiter.replace("\\t", "\t")
    if between is not None and len(between.encode()) != 1:
        raise typer.BadParameter(f"--delimiter must be one plain character; it is {delimiter!r}.")
    return Asked(sheet, header_row, between, encoding)


def run_options(
    engine: str, address: str | None, workers: int | None, device: str, quiet: bool, output: str = ""
) -> Run:
    """How the work is done; on a cluster the output, if it is not a model, must be a folder."""
    from cellmend.files import places
    from cellmend.large_jobs import Run

    if engine not in ("here", "ray"):
        raise typer.BadParameter(f"--engine must be here or ray; it is {engine!r}.")
    if engine == "here" and (address or workers):
        raise typer.BadParameter("--address and --workers are for --engine ray.")
    if engine == "ray" and not places.names_folder(output):
        raise typer.BadParameter(f"With --engine ray results are a folder; -o is the file {output}.")
    return Run(engine, address, workers, device, shown=not quiet)


def threshold_of(fdr: float | None, suspicion: float | None, top: int | None) -> Threshold:
    """Which cells are flagged."""
    from cellmend.settings import Threshold

    given = {name: v for name, v in {"fdr": fdr, "suspicion": suspicion, "top": top}.items() if v is not None}
    if len(given) > 1:
        raise typer.BadParameter(f"Only one of {' and '.join(f'--{name}' for name in given)} can be given.")
    try:
        return Threshold(**given) if given else Threshold(fdr=FDR)  # type: ignore[arg-type]
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None


def watch_of(fail_if: list[str] | None) -> FailIf:
    """When a run counts as failed."""
    from cellmend.settings import FailIf

    try:
        return FailIf.parse(fail_if or ())
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None


def fail_for(reasons: list[str]) -> None:
    """End with the exit code for what was to be watched, if there are reasons."""
    if reasons:
        say(f"Failed, as --fail-if says: {'; '.join(reasons)}.")
        raise typer.Exit(FAILED_IF)


def caution_of(repair_from: float | None, protect: list[str] | None) -> Caution:
    """Which flagged cells are changed."""
    from cellmend.settings import Caution

    try:
        return Caution(repair_from, tuple(protect or ()))
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None


def new_mender(schema: Path | None, seed: int, device: str, time_limit: float | None, quiet: bool) -> CellMender:
    """A model that is yet to be fitted."""
    from cellmend.estimator import CellMender
    from cellmend.table.schema import Schema

    kinds = None if schema is None else Schema.load(schema)
    return CellMender(schema=kinds, random_state=seed, device=device, time_limit=time_limit, verbose=not quiet)


def with_rules(mender: CellMender, rules: Path | None) -> CellMender:
    """The model, which is to keep to the rules in a file."""
    from cellmend.table.relations.rules import Rules

    return mender if rules is None else mender.set_params(rules=Rules.load(rules))


def loaded(model: Path, device: str, quiet: bool) -> CellMender:
    """The model in a file."""
    from cellmend.estimator import load

    return load(model, device=device).set_params(verbose=not quiet)
