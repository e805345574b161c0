"""The options of the commands, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
        "--repair-from", help="Change only flagged cells of at least this suspicion. [default: 0.9, or the model's]"
    ),
]
ProtectOption = Annotated[
    list[str] | None, typer.Option("--protect", help="Flag cells of this column, but never change it; may be repeated.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Write findings and report only: nothing is changed.")]
SheetOption = Annotated[str | None, typer.Option("--sheet", help="Of a workbook: name or number. [default: the first]")]
HeaderRowOption = Annotated[
    int | None, typer.Option("--header-row", min=1, help="Row of the file with the names. [default: found out]")
]
DelimiterOption = Annotated[str | None, typer.Option("--delimiter", help="Between fields of CSV. [default: found out]")]
EncodingOption = Annotated[str | None, typer.Option("--encoding", help="Of CSV, such as cp1252. [default: found out]")]
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
DecisionsOption = Annotated[
    Path | None, typer.Option("--decisions", help="JSON lines of what people decided about cells; it teaches.")
]
