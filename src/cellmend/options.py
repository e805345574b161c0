"""The options of the commands, each written once, and what they mean to the jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from cellmend.console import say
from cellmend.errors import SettingError
from cellmend.settings import FDR

if TYPE_CHECKING:
    from cellmend.estimator import CellMender
    from cellmend.files.layout import Asked
    from cellmend.large_jobs import Run
    from cellmend.settings import Caution, FailIf, Threshold
    from cellmend.table.relations.rules import Rules

FAILED_IF = 3  # exit code of a run that was done and found what it was to watch for

TABLE_HELP = (
    ".csv, .tsv, .parquet, .feather, .xlsx, .ods, .json, .jsonl, .zip with one of them, a folder of Parquet files, "
    "or - for CSV on standard input"
)
TableArgument = Annotated[str, typer.Argument(help=f"{TABLE_HELP}; also s3://, gs://, abfs:// or hdfs://")]
ModelOption = Annotated[Path, typer.Option("--model", "-m", help="Model file.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="File to write; - for standard output.")]
FdrOption = Annotated[
    float | None,
    typer.Option(help=f"Flag as many cells as keep the expected share of false alarms at this. \\[default: {FDR}]"),
]
PlaceOption = Annotated[
    str,
    typer.Option("--output", "-o", help="File to write, or a folder for tables of any size; - for standard output."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Write findings and report only: nothing is changed.")]
FailIfOption = Annotated[
    list[str] | None,
    typer.Option(help="Exit with 3 if: findings>20, findings>0.5%, moved or moved:COLUMN; may be repeated."),
]
DecimalOption = Annotated[
    str | None, typer.Option(help="Mark of decimals in text, . or a comma. \\[default: found out]")
]
SchemaOption = Annotated[Path | None, typer.Option(help="YAML file with kinds of columns, see `cellmend schema`.")]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all randomness.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
TimeOption = Annotated[float | None, typer.Option(min=0.001, help="Seconds that fitting may take.")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Train no network: seconds are enough, and what only it sees is missed.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite results that are there.")]
FormatsOption = Annotated[
    bool, typer.Option("--formats", help="Also write numbers without units and missing cells empty, in every row.")
]
DecisionsOption = Annotated[
    Path | None, typer.Option(help="JSON lines of what people decided about cells; it teaches.")
]


# ---------------------------------------------------------------- options that go together


@dataclass(frozen=True)
class FileOptions:
    """What the user says of a file."""

    sheet: Annotated[str | None, typer.Option(help="Of a workbook: name or number. \\[default: the first]")] = None
    header_row: Annotated[
        int | None, typer.Option(min=1, help="Row of the file with the names. \\[default: found out]")
    ] = None
    delimiter: Annotated[str | None, typer.Option(help="Between fields of CSV. \\[default: found out]")] = None
    encoding: Annotated[str | None, typer.Option(help="Of CSV, such as cp1252. \\[default: found out]")] = None
    ragged: Annotated[
        str | None,
        typer.Option(help="Lines of CSV with more or fewer fields than the header: keep or drop. \\[default: refused]"),
    ] = None

    def asked(self) -> Asked:
        """The same, as readers of files take it."""
        from cellmend.files.layout import RAGGED, Asked

        between = None if self.delimiter is None else self.delimiter.replace("\\t", "\t")
        if between is not None and len(between.encode()) != 1:
            raise typer.BadParameter(f"--delimiter must be one plain character; it is {self.delimiter!r}.")
        if self.ragged not in (None, *RAGGED):
            raise typer.BadParameter(f"--ragged must be {' or '.join(RAGGED)}; it is {self.ragged!r}.")
        return Asked(self.sheet, self.header_row, between, self.encoding, self.ragged)


@dataclass(frozen=True)
class RuleOptions:
    """What every row keeps."""

    rules: Annotated[Path | None, typer.Option(help="File with the rules that hold, see `cellmend rules`.")] = None
    rule: Annotated[
        list[str] | None,
        typer.Option(help="A rule of your own that every row keeps, such as 'price > 0'; may be repeated."),
    ] = None

    def given(self) -> Rules | None:
        """The rules of the file and of the command line; None if there are none."""
        from cellmend.rules import read_rules
        from cellmend.table.relations.rules import Rules

        if self.rules is None and not self.rule:
            return None
        return (Rules() if self.rules is None else read_rules(self.rules)).and_own(self.rule or ())


@dataclass(frozen=True)
class ThresholdOptions:
    """Which cells are flagged."""

    fdr: FdrOption = None
    suspicion: Annotated[float | None, typer.Option(help="Flag cells of at least this suspicion, e.g. 0.9.")] = None
    top: Annotated[int | None, typer.Option(min=1, help="Flag this many cells, the most suspicious ones.")] = None

    def threshold(self) -> Threshold:
        """The one that was given, or else an expected share of false alarms."""
        from cellmend.settings import Threshold

        given = {name: value for name, value in asdict(self).items() if value is not None}
        if len(given) > 1:
            raise typer.BadParameter(f"Only one of {' and '.join(f'--{name}' for name in given)} can be given.")
        with _wrong_use():
            return Threshold(**given or {"fdr": FDR})


@dataclass(frozen=True)
class CautionOptions:
    """Which flagged cells are changed."""

    repair_from: Annotated[
        float | None,
        typer.Option(help="Change only cells whose repair is at least this probable. \\[default: 0.9, or the model's]"),
    ] = None
    protect: Annotated[
        list[str] | None, typer.Option(help="Flag cells of this column, but never change it; may be repeated.")
    ] = None

    def caution(self) -> Caution:
        """The same, checked."""
        from cellmend.settings import Caution

        with _wrong_use():
            return Caution(self.repair_from, tuple(self.protect or ()))


@dataclass(frozen=True)
class EngineOptions:
    """Where the work is done."""

    engine: Annotated[str, typer.Option(help="here, or ray for a cluster.")] = "here"
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster, such as auto. \\[default: this machine]")] = (
        None
    )
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes at once, with --engine ray. \\[default: all]"),
    ] = None

    def run(self, device: str, quiet: bool, output: str = "") -> Run:
        """How the work is done; on a cluster the output, if it is not a model, must be a folder."""
        from cellmend.files import places
        from cellmend.large_jobs import Run

        if self.engine not in ("here", "ray"):
            raise typer.BadParameter(f"--engine must be here or ray; it is {self.engine!r}.")
        if self.engine == "here" and (self.address or self.workers):
            raise typer.BadParameter("--address and --workers are for --engine ray.")
        if self.engine == "ray" and not places.names_folder(output):
            raise typer.BadParameter(f"With --engine ray results are a folder; -o is the file {output}.")
        return Run(self.engine, self.address, self.workers, device, shown=not quiet)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer: a parameter that is a dataclass stands for the options that its fields are."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        parameters += _options_of(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _options_of(group: Any) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])


# ---------------------------------------------------------------- from options to what jobs take


@contextmanager
def _wrong_use() -> Iterator[None]:
    """Turns a setting that cannot be into a wrong use of the command."""
    try:
        yield
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None


def watch_of(fail_if: list[str] | None, *, flags: bool = True, compares: bool = True) -> FailIf:
    """When a run counts as failed, of a command that `flags` cells, and `compares` its table with a learned one."""
    from cellmend.settings import FailIf

    with _wrong_use():
        return FailIf.parse(fail_if or (), flags=flags, compares=compares)


def check_watched(watch: FailIf, model: Path | None) -> None:
    """Refuse to watch columns that the model does not compare."""
    if watch.moved and model is not None:
        watch.check_columns([column.name for column in loaded(model, "cpu", quiet=True).encoder_.columns])


def fail_for(reasons: list[str]) -> None:
    """End with the exit code for what was to be watched, if there are reasons."""
    if reasons:
        say(f"Failed, as --fail-if says: {'; '.join(reasons)}.")
        raise typer.Exit(FAILED_IF)


def new_mender(
    schema: Path | None, rules: Rules | None, seed: int, device: str, time_limit: float | None, quiet: bool
) -> CellMender:
    """A model that is yet to be fitted, with the kinds of columns in a file, and rules."""
    from cellmend.estimator import CellMender
    from cellmend.table.schema import Schema

    kinds = None if schema is None else Schema.load(schema)
    return CellMender(
        schema=kinds, rules=rules, random_state=seed, device=device, time_limit=time_limit, verbose=not quiet
    )


def loaded(model: Path, device: str, quiet: bool) -> CellMender:
    """The model in a file."""
    from cellmend.estimator import load

    return load(model, device=device).set_params(verbose=not quiet)
