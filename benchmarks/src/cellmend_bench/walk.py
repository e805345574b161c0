"""A walk through tables as people have them: what is found of their errors, repaired, and changed that was right.

`cellmend bench run walk`. Every run makes new tables, unless `--seed` asks for those of another run.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from cellmend_bench.errors import UnknownNameError
from cellmend_bench.walk_errors import Cell, Draft
from cellmend_bench.walk_tables import TABLES, Walked
from cellmend_bench.wild import one_thread

ABOUT = "new tables of orders, staff, sensors, a European export and reviews, by kind of error"
FDR = 0.1
NEAR = 0.01  # a repaired amount may be off by this share
CELLS = "cells.csv"  # every wrong, flagged or changed cell
RUNS = {"stuck sensor", "outage"}  # whose many cells would drown all others
FALSE, RIGHT = "false flag", "right"  # in place of a kind of error
Report = Callable[[int, int, str], None]  # (done, all, what)


@dataclass(frozen=True)
class Task:
    """One table of one seed, and where its files go."""

    table: str
    seed: int
    folder: Path

    def file(self, ending: str) -> Path:
        """Its file with this ending, such as .dirty.csv."""
        return self.folder / f"{self.table}-{self.seed}{ending}"


@dataclass(frozen=True)
class Answer:
    """What was said of a table; a contradiction is a set of cells."""

    flagged: set[Cell]
    contradictions: Sequence[set[Cell]]
    words: dict[Cell, tuple[str, str]]  # cause and reason
    repaired: pd.DataFrame


@dataclass
class Outcome:
    """Counts of one table, and the cells to look at."""

    table: str
    seed: int
    cells: int
    planted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)  # flagged, or among cells that contradict each other
    repaired_right: Counter[str] = field(default_factory=Counter)
    repaired_wrong: Counter[str] = field(default_factory=Counter)
    flags: int = 0  # each contradiction counted once
    false_flags: int = 0
    right_changed: int = 0
    lines: list[dict[str, object]] = field(default_factory=list)
    seconds: float = 0.0


def run_walk(
    out: Path, *, tables: Sequence[str] | None = None, seeds: Sequence[int], jobs: int = 1, report: Report | None = None
) -> str:
    """Make the tables, judge them, write them with all that was said of them, and return the summary."""
    unknown = sorted(set(tables or ()) - set(TABLES))
    if unknown:
        raise UnknownNameError(f"A table of walk must be one of {', '.join(TABLES)}; one is {unknown[0]!r}.")
    out.mkdir(parents=True, exist_ok=True)
    tasks = [Task(name, seed, out) for seed in seeds for name in tables or TABLES]
    outcomes = []
    for outcome in _judged(tasks, jobs):
        outcomes.append(outcome)
        if report is not None:
            report(len(outcomes), len(tasks), f"{outcome.table}, seed {outcome.seed}")
    outcomes.sort(key=lambda each: (each.seed, list(TABLES).index(each.table)))
    _write_lines(out / CELLS, [line for each in outcomes for line in each.lines])
    return summary(outcomes)


def _judged(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """Outcomes as they are ready, here or in processes."""
    if jobs == 1:
        with one_thread():
            yield from map(judge, tasks)
        return
    with get_context("spawn").Pool(jobs, torch.set_num_threads, (1,), maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(judge, tasks)


def judge(task: Task) -> Outcome:
    """Make a table, write it as a file, ask as a user would, and count."""
    start, walked = time.perf_counter(), TABLES[task.table]
    draft = draw(task.table, task.seed)
    for name, table in (("clean", draft.clean), ("dirty", draft.dirty)):
        table.to_csv(task.file(f".{name}.csv"), sep=walked.delimiter, index=False)
    answer = ask(task.file(".dirty.csv"), walked.delimiter)
    outcome = count(task, draft, answer, walked)
    outcome.seconds = time.perf_counter() - start
    return outcome


def draw(table: str, seed: int) -> Draft:
    """A table with its errors; the same each time."""
    walked = TABLES[table]
    return walked.make(np.random.default_rng([seed, list(TABLES).index(table)]), walked.rows)


def ask(path: Path, delimiter: str) -> Answer:
    """What the default says of a table in a file, through what users call."""
    from cellmend import CellMender

    dirty = pd.read_csv(path, sep=delimiter, dtype=str, keep_default_na=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mended = CellMender(random_state=0).fit_mend(dirty, fdr=FDR)
    lines = mended.findings.to_dict("records")
    together: dict[int, set[Cell]] = {}
    for line in lines:
        if not pd.isna(line["contradiction"]):
            together.setdefault(int(line["contradiction"]), set()).add((line["row"], line["column"]))
    return Answer(
        {(line["row"], line["column"]) for line in lines if pd.isna(line["contradiction"])},
        list(together.values()),
        {(line["row"], line["column"]): (line["cause"], line["reason"]) for line in lines},
        mended.repaired,
    )


# ---------------------------------------------------------------- counting


def count(task: Task, draft: Draft, answer: Answer, walked: Walked) -> Outcome:
    """Set what was said of a table against what is wrong in it."""
    outcome = Outcome(task.table, task.seed, draft.clean.size)
    named = answer.flagged | {cell for cells in answer.contradictions for cell in cells}
    about = set(draft.kinds) | draft.involved
    false = answer.flagged - about
    outcome.flags = len(answer.flagged) + len(answer.contradictions)
    outcome.false_flags = len(false) + sum(cells.isdisjoint(about) for cells in answer.contradictions)
    outcome.planted.update(draft.kinds.values())
    changed = _changed(draft.dirty, answer.repaired)
    for cell, kind in draft.kinds.items():
        outcome.found[kind] += cell in named
        if cell in changed:
            is_right = _is_right(changed[cell], draft.clean.at[cell], cell[1] in walked.amounts, walked.decimal)
            (outcome.repaired_right if is_right else outcome.repaired_wrong)[kind] += 1
    outcome.right_changed = len(set(changed) - set(draft.kinds))
    kinds = dict.fromkeys(named, RIGHT) | dict.fromkeys(false, FALSE) | dict.fromkeys(changed, FALSE) | draft.kinds
    for (row, column), kind in sorted(kinds.items(), key=lambda each: (each[1], each[0])):
        cause, reason = answer.words.get((row, column), ("", ""))
        outcome.lines.append(
            {
                "table": task.table,
                "seed": task.seed,
                "kind": kind,
                "row": row,
                "column": column,
                "clean": draft.clean.at[row, column],
                "dirty": draft.dirty.at[row, column],
                "repaired": changed.get((row, column), ""),
                "found": (row, column) in named,
                "cause": cause,
                "reason": reason,
            }
        )
    return outcome


def _changed(dirty: pd.DataFrame, repaired: pd.DataFrame) -> dict[Cell, str]:
    """What stands in the cells that were changed."""
    texts = repaired.fillna("").astype(str)
    rows, places = np.nonzero(texts.to_numpy() != dirty.to_numpy())
    return {(int(row), dirty.columns[place]): texts.iat[row, place] for row, place in zip(rows, places, strict=True)}


def _is_right(repair: str, clean: str, is_amount: bool, decimal: str) -> bool:
    """Whether a repair says what stood there.

    >>> _is_right("12,50", "12,5", True, ","), _is_right("12,70", "12,5", True, ",")
    (True, False)
    >>> _is_right("0123", "123", False, ".")
    False
    """
    if not is_amount:
        return repair == clean
    meant = float(clean.replace(decimal, "."))
    try:
        made = float(repair.replace(decimal, "."))
    except ValueError:
        return False
    return abs(made - meant) <= NEAR * abs(meant)


def _write_lines(path: Path, lines: Sequence[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]) if lines else ["table"])
        writer.writeheader()
        writer.writerows(lines)


# ---------------------------------------------------------------- words


def summary(outcomes: Sequence[Outcome]) -> str:
    """By kind of error and by table, as lines of text."""
    lines = [f"{'kind of error':20} planted  found        repaired right  wrong"]
    kinds = sum((each.planted for each in outcomes), Counter[str]())
    lines += [f"{kind:20} {_line_of(outcomes, [kind])}" for kind in sorted(kinds)]
    single = kinds.keys() - RUNS
    lines += [f"{'all':20} {_line_of(outcomes, kinds)}", f"{'without runs':20} {_line_of(outcomes, single)}", ""]
    lines += [f"{'table, seed':20} planted  found        repaired right  wrong   flags  false  right cells changed"]
    for each in outcomes:
        flags = f"{each.flags:7} {each.false_flags:6} {each.right_changed:20}"
        lines.append(f"{f'{each.table}, {each.seed}':20} {_line_of([each], kinds)}{flags}{each.seconds:6.0f} s")
    flags, false, changed = (sum(getattr(each, name) for each in outcomes) for name in _SUMMED)
    flags -= _sum(outcomes, "found", RUNS)
    made, right = (sum(_sum(outcomes, name, kinds) for name in names) for names in _MADE)
    found = [100 * _sum(outcomes, "found", own) / max(_sum(outcomes, "planted", own), 1) for own in (kinds, single)]
    lines += [
        "",
        f"found {found[0]:.1f} % of all errors, {found[1]:.1f} % without stuck sensors and outages (wanted: 85)",
        f"false flags {100 * false / max(flags, 1):.1f} % of {flags} flags outside of those (wanted: at most 5)",
        f"repairs right {100 * right / max(made, 1):.1f} % of {made} made (wanted: 95)",
        f"right cells changed {changed} of {sum(each.cells for each in outcomes)} cells (wanted: 0)",
    ]
    return "\n".join(lines)


_SUMMED = "flags", "false_flags", "right_changed"
_MADE = ("repaired_right", "repaired_wrong"), ("repaired_right",)


def _sum(outcomes: Sequence[Outcome], name: str, kinds: Iterable[str]) -> int:
    return sum(getattr(each, name)[kind] for each in outcomes for kind in kinds)


def _line_of(outcomes: Sequence[Outcome], kinds: Iterable[str]) -> str:
    """Planted, found with its share, repaired right and wrong, of these kinds."""
    planted, found, right, wrong = (
        _sum(outcomes, name, kinds) for name in ("planted", "found", "repaired_right", "repaired_wrong")
    )
    return f"{planted:7} {found:6} {100 * found / max(planted, 1):4.0f} % {right:15} {wrong:6}"
