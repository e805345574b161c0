"""Kill commands that write, and see what is left: python benchmarks/kills.py [--kills 200] [--seed 0] [--steps]

`clean`, `fit` and `score` to a folder run again and again in one place, killed (SIGKILL) at a moment drawn from their
whole span, until a run is faster than its killer. After every kill: the table is as it was, and all that can be seen is
whole and of one run. After a run that ended: the results of an undisturbed run, and nothing else. With `--steps` they
are killed before each of their file operations instead, one after the other: moments too short to be met at random.
Each run is a fork of this process, which has the libraries loaded.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from rich.console import Console

import cellmend.jobs  # noqa: F401 - forks have the libraries then
from cellmend.cli import main as main_of_cellmend

ROWS = 60
INPUTS = ("table.csv", "tables", "given.cellmend")
DATED = "report.html"  # says when it was made
OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}  # audit events of Python
KILLED = -signal.SIGKILL
say = Console(highlight=False, soft_wrap=True).print
Contents = dict[str, str]  # digest of each file below a folder, by its path there


@dataclass(frozen=True)
class Case:
    """A command that writes, in a place that holds its inputs."""

    name: str
    words: tuple[str, ...]
    older: tuple[str, ...] = ()  # options of an earlier run, whose results are there already
    resumes: bool = False  # whole parts may be there before the end


CLEAN = ("clean", "table.csv", "-o", "out", "--force", "--quiet")
FIT = ("fit", "table.csv", "-m", "m.cellmend", "--force", "--quiet")
SCORE = ("score", "tables", "-m", "given.cellmend", "-o", "scores", "--quiet")
CASES = (
    Case("clean", CLEAN),
    Case("clean over older results", CLEAN, older=("--seed", "1", "--top", "9")),
    Case("fit", FIT),
    Case("fit over an older model", FIT, older=("--seed", "1")),
    Case("score to a folder", SCORE, resumes=True),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", action="store_true", help="before each file operation, not at random")
    parser.add_argument("--case", choices=[case.name for case in CASES], help="only this one")
    asked = parser.parse_args()
    cases = [case for case in CASES if asked.case in (None, case.name)]
    lost = 0
    torch.set_num_threads(1)
    for number, case in enumerate(cases):
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(case, Path(folder))
            if asked.steps:
                trial.kill_at_each_step()
            else:
                trial.kill_at_random(asked.kills // len(cases), np.random.default_rng([asked.seed, number]))
        say(f"{case.name} ({trial.span:.1f} s): {', '.join(f'{count} {what}' for what, count in trial.seen.items())}")
        lost += trial.seen.total() - trial.seen["kills"] - trial.seen["runs that ended"]
    sys.exit(lost > 0)


class Trial:
    """Runs of one command in one place, and what was seen there."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.place, self.prepared = case, folder / "place", folder / "prepared"
        self.seen: Counter[str] = Counter()
        prepare(self.prepared, case)
        self.begin_anew()
        self.before = contents(self.place)
        started = time.perf_counter()
        if ended(run(self.place, case.words)):
            sys.exit(f"{case.name} must work undisturbed; it does not.")
        self.span = time.perf_counter() - started
        self.after = contents(self.place)

    def kill_at_random(self, kills: int, rng: np.random.Generator) -> None:
        """As many kills as are wanted, and then a run to the end."""
        self.begin_anew()
        while self.seen["kills"] < kills:
            process = run(self.place, self.case.words)
            process.join(rng.uniform(0, 1.15 * self.span))
            process.kill()
            self.check(ended(process))
        self.check(ended(run(self.place, self.case.words)))

    def kill_at_each_step(self) -> None:
        """Killed before its first file operation and run once more, then before its second, and so on."""
        self.begin_anew()
        while self.check(ended(run(self.place, self.case.words, self.seen["kills"] + 1))) == KILLED:
            self.check(ended(run(self.place, self.case.words)))

    def begin_anew(self) -> None:
        """The place as it was before the first run; the same one, since results may say where they lie."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.prepared, self.place)

    # ------------------------------------------------ what is left

    def check(self, code: int) -> int:
        """What a run left that was killed or ended with this exit code, which is returned."""
        if code == KILLED:
            self.check_killed()
        else:
            self.check_ended(code)
        return code

    def check_killed(self) -> None:
        """The inputs are as they were, and what can be seen is whole and of one run."""
        self.seen["kills"] += 1
        now = contents(self.place)
        seen = {name: own for name, own in now.items() if not any(part.startswith(".") for part in Path(name).parts)}
        inputs, results = parted(seen)
        self.expect(inputs == parted(self.before)[0], "changed inputs", inputs)
        old, new = parted(self.before)[1], parted(self.after)[1]
        whole = all(own in (old.get(name), new.get(name)) for name, own in results.items())
        self.expect(whole, "half-written files", results)
        self.expect(self.case.resumes or results in (old, new), "mixtures of two runs", results)

    def check_ended(self, code: int) -> None:
        """The results of an undisturbed run, and nothing else; the next run finds the place as it was."""
        self.seen["runs that ended"] += 1
        self.expect(code == 0, "later runs that failed", code)
        now = contents(self.place)
        self.expect(now == self.after, "other results or left-overs", now.items() ^ self.after.items())
        self.begin_anew()

    def expect(self, holds: bool, otherwise: str, shown: object) -> None:
        if not holds:
            self.seen[otherwise] += 1
            say(f"{self.case.name}: {otherwise}: {shown}")


def contents(place: Path) -> Contents:
    """All files of a place, hidden ones too; of a page that says when it was made, only whether it is whole."""
    found = {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    whole = {name: b"whole" for name, own in found.items() if name.endswith(DATED) and own.endswith(b"</html>\n")}
    return {name: hashlib.sha256(own).hexdigest() for name, own in (found | whole).items()}


def parted(seen: Contents) -> tuple[Contents, Contents]:
    """The inputs, and the results."""
    inputs = {name: own for name, own in seen.items() if name.startswith(INPUTS)}
    return inputs, {name: own for name, own in seen.items() if name not in inputs}


# ---------------------------------------------------------------- places and processes


def prepare(place: Path, case: Case) -> None:
    """A table, the same in three parts, and, if the case has them, a model and older results."""
    rng = np.random.default_rng(0)
    width = rng.normal(10, 1, ROWS).round(1)
    table = pd.DataFrame({"width": width, "length": (2 * width).round(1), "city": rng.choice(["Rome", "Oslo"], ROWS)})
    (place / "tables").mkdir(parents=True)
    table.to_csv(place / "table.csv", index=False)
    table.to_parquet(place / "tables" / "parts.parquet", row_group_size=ROWS // 3)
    if case.older:
        ended(run(place, (*case.words, *case.older)))
    if case.resumes:
        ended(run(place, FIT))
        (place / "m.cellmend").rename(place / "given.cellmend")


def run(place: Path, words: tuple[str, ...], step: int = 0) -> BaseProcess:
    """A command of cellmend at work in a place; with a step it is killed before its file operation of this number."""
    process = multiprocessing.get_context("fork").Process(target=command, args=(place, words, step))
    process.start()
    return process


def ended(process: BaseProcess) -> int:
    """The exit code of a process, once it has ended."""
    process.join()
    return process.exitcode or 0


def command(place: Path, words: tuple[str, ...], step: int) -> None:
    """Runs in the fork."""
    os.chdir(place)
    sys.argv = ["cellmend", *words]
    if step:
        sys.addaudithook(killer(place, step))
    main_of_cellmend()


def killer(place: Path, step: int) -> Callable[[str, tuple[object, ...]], None]:
    """Counts the file operations below a place, and kills its process before the one of this number."""
    left = step

    def count(event: str, given: tuple[object, ...]) -> None:
        nonlocal left
        if event in OPERATIONS and str(given[0]).startswith(str(place)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return count


if __name__ == "__main__":
    main()
