"""The commands `cellmend bench ...`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from cellmend_bench.experiments import Narrow
    from cellmend_bench.results import Results

talk = Console(stderr=True)
bench = typer.Typer(help="The paper's experiments, its baselines and the peers.", no_args_is_help=True)

WILD, WALK = "wild", "walk"  # experiments that are no grid of methods and noises
WALKED_SEEDS = 3  # unless asked for otherwise
RESULTS = Path("cellmend-bench/results.jsonl")
ResultsOption = Annotated[Path, typer.Option("--results", "-r", help="Results file; finished runs in it are skipped.")]
TablesOption = Annotated[str, typer.Option("--tables", help="Only these tables, separated by commas.")]
LevelsOption = Annotated[str, typer.Option("--levels", help="Only these shares of dirty rows, e.g. 0.01,0.05.")]
SeedsOption = Annotated[int | None, typer.Option("--seeds", min=1, help="How many corruptions.")]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="First seed of walk. \\[default: a new one]")]
MethodsOption = Annotated[str, typer.Option("--methods", help="Only these methods, separated by commas.")]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, or cuda: many networks are trained as one.")]
RetryOption = Annotated[bool, typer.Option("--retry", help="Make runs again that failed.")]
MostRowsOption = Annotated[int, typer.Option("--most-rows", min=10, help="Of a table in the wild.")]
MostColumnsOption = Annotated[int, typer.Option("--most-columns", min=1, help="Of a table in the wild.")]
JobsOption = Annotated[int, typer.Option("--jobs", min=1, help="Processes (cpu), or threads that measure (cuda).")]


@bench.command("run")
def bench_run(
    names: Annotated[list[str], typer.Argument(help="Names of experiments; `cellmend bench list` shows them.")],
    results: ResultsOption = RESULTS,
    tables: TablesOption = "",
    levels: LevelsOption = "",
    seeds: SeedsOption = None,
    methods: MethodsOption = "",
    device: DeviceOption = "cpu",
    jobs: JobsOption = 1,
    retry: RetryOption = False,
    most_rows: MostRowsOption = 1000,
    most_columns: MostColumnsOption = 30,
    seed: SeedOption = None,
) -> None:
    """Run experiments; stop and start them as you like.

    `wild` and `walk` stand alone, and write to a folder beside the results. Of wild --tables is how many tables, and
    --levels are shares of wrong cells; walk takes --tables, --seeds, --seed and --jobs.
    """
    for alone in {WILD, WALK}.intersection(names):
        if len(names) > 1:
            raise typer.BadParameter(f"{alone} must be run alone; asked for are {', '.join(names)}.")
    if WALK in names:
        return _run_walk(results.parent / WALK, _listed(tables), seeds or WALKED_SEEDS, seed, jobs=jobs)
    if WILD in names:
        shares = [f"{level:g}" for level in _numbers(levels) or ()] or None
        sizes = {"seeds": seeds or 1, "most_rows": most_rows, "most_columns": most_columns}
        return _run_wild(results.parent / WILD, _count(tables), shares, sizes, jobs=jobs, retry=retry)
    from cellmend_bench.experiments import Narrow
    from cellmend_bench.results import Results

    narrow = Narrow(tables=_listed(tables), levels=_numbers(levels), seeds=seeds, methods=_listed(methods))
    return _run_experiments(names, Results(results, retry=retry), narrow, device, jobs)


@bench.command("all")
def bench_all(
    results: ResultsOption = RESULTS,
    tables: TablesOption = "",
    levels: LevelsOption = "",
    seeds: SeedsOption = None,
    methods: MethodsOption = "",
    device: DeviceOption = "cpu",
    jobs: JobsOption = 1,
    retry: RetryOption = False,
) -> None:
    """Run all experiments; stop and start them as you like."""
    from cellmend_bench.experiments import EXPERIMENTS

    bench_run(list(EXPERIMENTS), results, tables, levels, seeds, methods, device, jobs, retry)


@bench.command("list")
def bench_list() -> None:
    """Show the experiments and the methods."""
    from cellmend_bench.experiments import EXPERIMENTS
    from cellmend_bench.methods import METHODS
    from cellmend_bench.walk import ABOUT as WALK_ABOUT
    from cellmend_bench.wild import ABOUT

    for name, experiment in EXPERIMENTS.items():
        typer.echo(f"{name:14} {experiment.about}")
    typer.echo(f"{WILD:14} {ABOUT}")
    typer.echo(f"{WALK:14} {WALK_ABOUT}")
    typer.echo(f"\nMethods: {', '.join(METHODS)}")


@bench.command("report")
def bench_report(
    results: ResultsOption = RESULTS,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("cellmend-bench/report"),
) -> None:
    """Draw the figures and tables of the paper from the results, and one HTML page."""
    if not results.exists():
        raise FileNotFoundError(
            f"There are no results in {results} yet. Hint: cellmend bench all, or name them with -r."
        )
    try:
        from cellmend_bench.page import write_report
    except ImportError:
        talk.print("The report needs matplotlib. Hint: pip install 'cellmend[bench]'.", style="red", markup=False)
        raise typer.Exit(1) from None
    typer.echo(str(write_report(results, output)))


def _run_experiments(names: list[str], kept: Results, narrow: Narrow, device: str, jobs: int) -> None:
    from cellmend_bench.experiments import run_experiments

    with _progress(", ".join(names)) as report:
        rows = run_experiments(names, kept, narrow, device=device, jobs=jobs, report=report)
    failed = [row for row in rows if row["status"] == "failed"]
    for error in sorted({row["error"] for row in failed}):
        talk.print(f"Not run: {error}", markup=False, highlight=False)
    talk.print(f"{len(rows) - len(failed)} runs in {kept.path}, {len(failed)} failed.", highlight=False)
    if len(failed) == len(rows):
        raise typer.Exit(1)


def _run_wild(
    out: Path, tables: int | None, shares: list[str] | None, sizes: dict[str, int], *, jobs: int, retry: bool
) -> None:
    from cellmend_bench.judging import WAYS
    from cellmend_bench.wild import Plan, corpus_folder, run_wild

    plan = Plan(corpus_folder(), tables, shares or WAYS, **sizes)
    with _progress(WILD) as report:
        said = run_wild(plan, out, jobs=jobs, retry=retry, report=report)
    typer.echo(said)


def _run_walk(out: Path, tables: list[str] | None, seeds: int, seed: int | None, *, jobs: int) -> None:
    from cellmend_bench.walk import run_walk

    first = secrets.randbelow(10**6) if seed is None else seed
    with _progress(WALK) as report:
        said = run_walk(out, tables=tables, seeds=range(first, first + seeds), jobs=jobs, report=report)
    typer.echo(said)
    talk.print(f"The same tables again: --seed {first}. All of them lie in {out}.", highlight=False)


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar, and the function to move it: (done, all, what)."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TimeRemainingColumn(), console=talk) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, all_, what: bar.update(task, completed=done, total=all_, description=what or name)


def _count(text: str) -> int | None:
    """How many tables are asked for."""
    if text and not (text.isdecimal() and int(text) > 0):
        raise typer.BadParameter(f"With {WILD}, --tables must be how many tables; it is {text!r}.")
    return int(text) if text else None


def _numbers(text: str) -> list[float] | None:
    try:
        return [float(part) for part in _listed(text) or ()] or None
    except ValueError:
        raise typer.BadParameter(f"Levels must be numbers such as 0.01,0.05; they are {text!r}.") from None


def _listed(text: str) -> list[str] | None:
    return [part.strip() for part in text.split(",") if part.strip()] or None
