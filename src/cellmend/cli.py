"""The commands. Data goes to standard output, talk to standard error."""

from __future__ import annotations

import os
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Shown

import cellmend

SHOWN = 25  # findings printed

app = typer.Typer(
    help="Find the wrong cells in a table and what they should have been.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
talk = Console(stderr=True)


def main() -> None:
    """Run a command; what cellmend itself refuses is one sentence and exit code 1, not a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        talk.print("Stopped.")
        sys.exit(130)
    except Exception as error:
        if not (type(error).__module__.startswith("cellmend.") or isinstance(error, OSError)):
            raise
        talk.print(f"cellmend: {error}", style="red", markup=False, highlight=False)
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


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("cellmend-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all randomness.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Overwrite results in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> None:
    """Find real typing errors in the built-in diamonds table, in under a minute."""
    results = [output / "findings.csv", output / "repaired.csv"]
    _refuse_to_overwrite(results, force=force)
    import pandas as pd

    from cellmend.estimator import CellMender

    with (files("cellmend") / "data" / "diamonds.csv.gz").open("rb") as file:
        table = pd.read_csv(file, compression="gzip")
    start = time.perf_counter()
    mender = CellMender(device=device, random_state=seed, verbose=not quiet).fit(table)
    findings, repaired = mender.findings(table), mender.repair(table)
    output.mkdir(parents=True, exist_ok=True)
    for path, frame in zip(results, (findings, repaired), strict=True):
        _write_csv(path, frame)
    Console().print(_findings_table(findings.head(SHOWN)))
    if not quiet:
        talk.print(
            f"{len(findings)} of {table.size:,} cells look wrong; the {SHOWN} most suspicious are shown. "
            f"{time.perf_counter() - start:.0f} s.\nWritten: {results[0]}, {results[1]}",
            highlight=False,
        )


def _findings_table(findings: Any) -> Shown:
    from cellmend.findings import about, show

    shown = Shown(title="Most suspicious cells of the diamonds table")
    for name in ("row", "column", "value", "suspicion", "repair", "expected"):
        shown.add_column(name, justify="left" if name == "column" else "right")
    for line in findings.itertuples():
        expected = f"{about(line.low)} to {about(line.high)}" if line.low == line.low else ""
        shown.add_row(
            str(line.row), line.column, show(line.value), f"{line.suspicion:.3f}", show(line.repair), expected
        )
    return shown


def _refuse_to_overwrite(paths: list[Path], *, force: bool) -> None:
    for path in paths:
        if path.exists() and not force:
            raise FileExistsError(f"{path} is there already. Hint: choose another folder with -o, or add --force.")


def _write_csv(path: Path, frame: Any) -> None:
    """Under a temporary name, then renamed: the file is whole or not there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        frame.to_csv(temporary, index=False)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
