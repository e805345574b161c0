"""The finder in the wild: tables as published, errors that it has never been shown, and the same tables left alone.

`cellmend bench run wild`, or `python -m cellmend_bench.wild` where only the package's folder is on the path.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from cellmend_bench.errors import MissingDatasetError, UnknownNameError
from cellmend_bench.families import is_kept
from cellmend_bench.judging import FOREIGN, MIXED, UNSPOILED, WAYS, Task, judge
from cellmend_bench.results import Outcome, append_line, read_lines
from cellmend_bench.wild_summary import summary, write_flags

ABOUT = "tables in the wild, spoiled as people do, and left alone"
RESULTS, FLAGS = "results.jsonl", "flags_unspoiled.csv"
TASKS_OF_A_PROCESS = 20  # after which it is replaced, so that memory is given back
ENDING = ".csv.gz"
Report = Callable[[int, int, str], None]  # (done, all, what)


@dataclass(frozen=True)
class Plan:
    """What is judged; None: all of it."""

    folder: Path  # of the tables
    tables: int | None = None  # a spread of so many of those that are kept
    ways: Sequence[str] = WAYS
    seeds: int = 1
    most_rows: int = 1000
    most_columns: int = 30

    def tasks(self) -> list[Task]:
        """The runs, table by table."""
        unknown = [way for way in self.ways if way not in (MIXED, FOREIGN, UNSPOILED) and not _is_share(way)]
        if unknown:
            known = ", ".join((MIXED, FOREIGN, UNSPOILED))
            raise UnknownNameError(f"A way to spoil must be {known} or a share such as 0.1; one is {unknown[0]!r}.")
        return [
            Task(name, way, seed, self.most_rows, self.most_columns)
            for name in kept_tables(self.folder, self.tables)
            for seed in range(self.seeds)
            for way in self.ways
            if seed == 0 or way != UNSPOILED
        ]


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def corpus_folder() -> Path:
    """Where the tables lie: the folder corpus below CELLMEND_DATA."""
    return Path(os.environ.get("CELLMEND_DATA", ".")) / "corpus"


def kept_tables(folder: Path, most: int | None = None) -> list[str]:
    """The names of the tables that are kept for judging, or a spread of them."""
    names = sorted(path.name.removesuffix(ENDING) for path in folder.glob(f"*{ENDING}"))
    kept = [name for name in names if is_kept(name)]
    if not kept:
        raise MissingDatasetError(
            f"There must be tables to judge on in {folder}. Hint: CELLMEND_DATA names its parent."
        )
    if most is None or most >= len(kept):
        return kept
    return [kept[int(place)] for place in (np.arange(most) + 0.5) * len(kept) / most]


def run_wild(plan: Plan, out: Path, *, jobs: int = 1, retry: bool = False, report: Report | None = None) -> str:
    """Judge what is not judged yet, write each outcome as it comes, and return the summary."""
    tasks, path = plan.tasks(), out / RESULTS
    out.mkdir(parents=True, exist_ok=True)
    done = {Task.of(each).key: each for each in read_lines(path) if not (retry and "failed" in each)}
    left = [task for task in tasks if task.key not in done]
    for outcome in _judged(left, plan.folder, jobs):
        append_line(path, outcome)
        done[Task.of(outcome).key] = outcome
        if report is not None:
            report(sum(task.key in done for task in tasks), len(tasks), f"{outcome['table']}, {outcome['way']}")
    outcomes = [done[task.key] for task in tasks]
    write_flags(outcomes, out / FLAGS)
    return summary(outcomes)


def _judged(tasks: list[Task], folder: Path, jobs: int) -> Iterator[Outcome]:
    """Outcomes as they are ready, here or in processes."""
    work = partial(judge, folder=str(folder))
    if jobs == 1:
        with one_thread():
            yield from map(work, tasks)
        return
    with get_context("spawn").Pool(jobs, torch.set_num_threads, (1,), maxtasksperchild=TASKS_OF_A_PROCESS) as pool:
        yield from pool.imap_unordered(work, tasks)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, so that results do not depend on how many cores there are."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


# ---------------------------------------------------------------- without the command line of cellmend


def main(arguments: Iterable[str] | None = None) -> None:
    """Judge from a plain script."""
    parser = argparse.ArgumentParser(prog="python -m cellmend_bench.wild", description=ABOUT)
    parser.add_argument("--data", type=Path, default=corpus_folder(), help="folder of the tables")
    parser.add_argument("--out", type=Path, default=Path("cellmend-bench/wild"), help="folder of the results")
    parser.add_argument("--tables", type=int, help="a spread of so many tables")
    parser.add_argument("--ways", default=",".join(WAYS), help="how to spoil, separated by commas")
    parser.add_argument("--seeds", type=int, default=1, help="how many times each is spoiled")
    parser.add_argument("--rows", type=int, default=Plan.most_rows)
    parser.add_argument("--columns", type=int, default=Plan.most_columns)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--retry", action="store_true", help="make runs again that failed")
    asked = parser.parse_args(None if arguments is None else list(arguments))
    plan = Plan(asked.data, asked.tables, asked.ways.split(","), asked.seeds, asked.rows, asked.columns)

    def report(done: int, everything: int, what: str) -> None:
        sys.stderr.write(f"{done} of {everything}: {what}\n")

    sys.stdout.write(run_wild(plan, asked.out, jobs=asked.jobs, retry=asked.retry, report=report) + "\n")


if __name__ == "__main__":
    main()
