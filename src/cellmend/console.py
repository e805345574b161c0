"""How results are told: JSON and tables on standard output, sentences and progress on standard error."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Shown
from rich.text import Text

from cellmend.errors import CellmendError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cellmend.evaluation.evaluation import Evaluation
    from cellmend.findings.finding import Finding
    from cellmend.jobs import Job
    from cellmend.large_jobs import Repaired
    from cellmend.patch import Applied
    from cellmend.settings import Threshold

SHOWN = 25  # findings printed
WIDE = 10_000  # letters of a line that any table fits into
CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
SHOWN_CONTROLS = {code: f"\\x{code:02x}" for code in CONTROLS if chr(code) not in "\n\t"}
LABELS = ("kind", "column", "method", "cause", "columns")  # columns of text, among columns of numbers

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]

stderr = Console(stderr=True)


def say(*sentences: str) -> None:
    """Tell a person, on standard error."""
    for sentence in sentences:
        stderr.print(harmless(sentence), markup=False, highlight=False, soft_wrap=True)


def harmless(text: str) -> str:
    """Text of a table or a file for a terminal, to which control characters are orders.

    >>> harmless("na\\x1b[2Jme\\r")
    'na\\\\x1b[2Jme\\\\x0d'
    """
    return text.translate(SHOWN_CONTROLS)


def say_failed(error: CellmendError | OSError | MemoryError) -> None:
    """One sentence about why a command stopped."""
    said = harmless(f"cellmend: {_sentence(error)}")
    stderr.print(said, style="red", markup=False, highlight=False, soft_wrap=True)


def _sentence(error: CellmendError | OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table. Hint: with a folder for -o it is worked on in parts."
    if isinstance(error, CellmendError):
        return str(error)
    from cellmend.files.results import reason_of

    where = f"{error.filename} cannot be read or written" if error.filename else "Something cannot be read or written"
    return f"{where}: {reason_of(error)}."


@dataclass(frozen=True)
class Teller:
    """Tells what came of a command, as the user wants to hear it; its fields are options."""

    quiet: QuietOption = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")] = False

    @contextmanager
    def reading(self, table: str) -> Iterator[None]:
        """Shows that a table is being read, on a terminal."""
        if self.quiet or not stderr.is_terminal:
            yield
        else:
            with stderr.status(Text(harmless(f"Reading {table}"))):
                yield

    def notes(self, sentences: Sequence[str]) -> None:
        """What a person should know, unless nothing is to be said."""
        if not self.quiet:
            say(*sentences)

    def json(self, result: dict[str, Any]) -> None:
        """What a program should know, if asked for."""
        if self.as_json:
            typer.echo(json.dumps(result))

    def job(self, job: Job, written: Sequence[Path], *, findings: bool = True, copied: bool = True) -> None:
        """What came of finding and repairing: JSON, or the worst findings, and a summary beside it.

        `copied`: was a repaired copy written?
        """
        if Path("-") not in written:
            self.json(job.summary() | {"written": [str(path) for path in written]})
        if findings and job.mended.found and not self.quiet and not self.as_json:
            Console().print(findings_table(job.mended.found[:SHOWN], job.source.name, job.source.line_numbers))
        from cellmend.findings.finding import say_broken, say_contradictions, say_sure

        flagged, rows, contradictions = len(job.mended.flagged), job.source.table.num_rows, job.mended.contradictions
        broken = [say_broken(job.broken_rows)] if job.broken_rows else []
        cells, by_itself = rows * job.source.table.num_columns, " by itself" if contradictions or broken else ""
        found = say_flagged(flagged, cells, str(job.threshold), by_itself)
        sure = f"; {say_sure(job.mended.expected_false, rows)}" if flagged else ""
        made = [say_repaired(job.repaired, flagged - job.repaired, copied=copied)] if flagged else []
        told = [
            f"{found}{sure}.",
            *made,
            *([say_contradictions(len(contradictions))] if contradictions else []),
            *broken,
        ]
        self.notes([*told, *job.notes, f"Written: {', '.join(map(str, written))}. {job.seconds:.0f} s."])

    def repaired(self, done: Repaired, threshold: Threshold, written: Sequence[str], *, copied: bool) -> None:
        """What came of repairing a table of any size."""
        self.json(asdict(done) | {"threshold": str(threshold), "written": list(written)})
        found = say_flagged(done.flagged, done.cells, str(threshold))
        left = [say_repaired(done.repaired, done.flagged - done.repaired, copied=copied)] if done.flagged else []
        self.notes([f"{found}.", *left, *done.notes, f"Written: {', '.join(written)}."])

    def model(self, model: Path, rows: int, notes: Sequence[str], start: float) -> None:
        """What came of fitting or updating; `start` is by time.perf_counter."""
        seconds = time.perf_counter() - start
        self.json({"model": str(model), "rows": rows, "seconds": seconds, "notes": list(notes)})
        self.notes([*notes, f"Written: {model}, {seconds:.0f} s."])

    def applied(self, applied: Applied) -> None:
        """What came of putting a patch on a table."""
        refused = [str(refusal) for refusal in applied.refused]
        self.json(
            {"written": None if applied.path is None else str(applied.path), "made": applied.made, "refused": refused}
        )
        said = [f"Refused: {each}." for each in refused[:SHOWN]]
        if len(refused) > SHOWN:
            said.append(f"Refused: {len(refused) - SHOWN:,} more; --json lists all.")
        cells = "cell is" if applied.made == 1 else "cells are"
        counts = f"{applied.made:,} {cells} repaired, {len(refused):,} refused."
        self.notes([*said, counts, "Nothing is written." if applied.path is None else f"Written: {applied.path}."])

    def evaluation(self, found: Evaluation, notes: Sequence[str]) -> None:
        """How well errors that were put in were found and repaired."""
        if self.as_json:
            self.json(found.to_json() | {"notes": list(notes)})
            return
        tables = {"By kind of error": found.by_kind, "By column": found.by_column}
        tables |= {"By cause that was named": found.by_cause, "Compared": found.baselines}
        for title, each in tables.items():
            if each is not None:
                _print_whole(_numbers_table(title, each))
        own = "Errors that the table had before count as false alarms, and as right cells, here."
        self.notes([*notes, *say_evaluated(found.overall), own])


def say_evaluated(overall: dict[str, float]) -> list[str]:
    """How well errors that were put in were found, and whether repairs helped or harmed.

    >>> figures = {"precision": 0.87, "recall": 0.69, "closer": 0.973, "right_changed": 4}
    >>> print(*say_evaluated(figures | {"right_changed_share": 0.0001}), sep="\\n")
    Of the flagged cells 87 % are errors that were put in, and 69 % of those were flagged.
    Of their repairs 97 % come closer to the truth than the error was (median of the columns).
    4 right cells were changed, 0.010 % of all cells.
    """
    flagged, wrong, closer = (
        "none" if math.isnan(overall[name]) else f"{100 * overall[name]:.0f} %"
        for name in ("precision", "recall", "closer")
    )
    changed, share = int(overall["right_changed"]), 100 * overall["right_changed_share"]
    return [
        f"Of the flagged cells {flagged} are errors that were put in, and {wrong} of those were flagged.",
        f"Of their repairs {closer} come closer to the truth than the error was (median of the columns).",
        f"{changed:,} right {'cell was' if changed == 1 else 'cells were'} changed, {share:.3f} % of all cells.",
    ]


def say_flagged(flagged: int, cells: int, threshold: str, by_itself: str = "") -> str:
    """How many cells look wrong.

    >>> say_flagged(1, 1200, "the 1 most suspicious"), say_flagged(0, 99, "the 1 most suspicious")
    ('1 of 1,200 cells looks wrong (the 1 most suspicious)', 'None of 99 cells looks wrong (the 1 most suspicious)')
    """
    many = f"{flagged:,} of {cells:,} cells {'looks' if flagged == 1 else 'look'} wrong"
    return f"{many if flagged else f'None of {cells:,} cells looks wrong{by_itself}'} ({threshold})"


def say_repaired(repaired: int, left: int, *, copied: bool) -> str:
    """What became of the flagged cells, or would, if no copy was written.

    >>> say_repaired(1, 3, copied=True), say_repaired(2, 0, copied=False)
    ('1 is repaired; 3 are left as they are, and the findings say why.', '2 have a repair, in no copy yet.')
    """
    if not copied:
        return f"{repaired:,} {'has' if repaired == 1 else 'have'} a repair, in no copy yet."
    made = f"{repaired:,} {'is' if repaired == 1 else 'are'} repaired"
    stay = "1 is left as it is" if left == 1 else f"{left:,} are left as they are"
    return f"{made}; {stay}, and the findings say why." if left else f"{made}."


def _numbers_table(title: str, table: Any) -> Shown:
    """A table of labels, counts and measures; cells with nothing to measure are empty."""
    shown = Shown(title=Text(harmless(title)))
    for name in table.column_names:
        justify: Any = "left" if name in LABELS else "right"
        shown.add_column(Text(harmless(name.replace("_", " "))), justify=justify, overflow="fold")
    for line in table.to_pylist():
        shown.add_row(*(Text(harmless(_as_number(cell))) for cell in line.values()))
    return shown


def _print_whole(shown: Shown) -> None:
    """Print a table of which nothing is cut: where there is little room it stands without spaces, in more lines."""
    console = Console()
    if console.measure(shown, options=console.options.update(width=WIDE)).maximum > console.width:
        shown.padding = 0
    console.print(shown)


def _as_number(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def findings_table(findings: Sequence[Finding], name: str, lines: NDArray[np.int64] | None) -> Shown:
    """The findings of a table, by the lines of its file, or by rows from 0 if it has none."""
    from cellmend.table.values import rounded_text, shortened

    shown = Shown(title=Text(harmless(f"Most suspicious cells of {name}")))
    numbered = any(line.contradiction for line in findings)
    counted = "row" if lines is None else "line"
    titles = (counted, "column", "value", "suspicion", "repair", "expected", *(["contradiction"] if numbered else []))
    for title in titles:
        shown.add_column(title, justify="left" if title == "column" else "right")
    for line in findings:
        expected = (
            "" if line.low is None or line.high is None else f"{rounded_text(line.low)} to {rounded_text(line.high)}"
        )
        repair = "" if line.repair is None else shortened(line.repair)
        where = line.row if lines is None else lines[line.row]
        cells = (where, line.column, shortened(line.value), f"{line.suspicion:.3f}", repair, expected)
        number = [line.contradiction or ""] if numbered else []
        shown.add_row(
            *(Text(harmless(str(cell))) for cell in (*cells, *number))
        )  # Text: nothing in it is taken for markup
    return shown
