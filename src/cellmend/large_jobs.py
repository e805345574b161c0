"""Jobs on tables of any size, unit by unit: scores, findings and repairs as folders, here or on a cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from cellmend.errors import SettingError
from cellmend.estimator import CellMender
from cellmend.files.earlier import set_aside
from cellmend.files.formats import TableFile
from cellmend.files.origin import NAME, Origin, digest_of
from cellmend.files.places import absolute
from cellmend.files.results import MODEL, check_folder, only_run, size_of
from cellmend.jobs import Cleaning, fit_large, judge, kept_warnings
from cellmend.progress import progress
from cellmend.settings import Caution, Threshold
from cellmend.streaming import limits
from cellmend.streaming.batches import conform
from cellmend.streaming.scores import NewRows, compare
from cellmend.streaming.streams import Stream, head
from cellmend.streaming.tasks import Task, clear, count, cutoff, load_once, profile_of, run
from cellmend.table.notation import notations_to_json


@dataclass(frozen=True)
class Repaired:
    """What came of repairing a table of any size, in numbers."""

    rows: int
    cells: int
    flagged: int
    repaired: int
    notes: list[str] = field(default_factory=list)  # on the table, in sentences
    moved: list[str] = field(default_factory=list)  # columns


@dataclass(frozen=True)
class Run:
    """How the units of a table are worked on: here or on a Ray cluster, on which device, with progress or silently."""

    engine: str = "here"
    address: str | None = None
    workers: int | None = None
    device: str = "auto"
    shown: bool = False

    def work(self, task: Task, stream: Stream, what: str) -> None:
        """Do a task with all units that are still to be done, under this name of the progress."""
        with progress(what, stream.rows, shown=self.shown) as show_rows:
            if self.engine == "here":
                run(task, stream, show_rows)
            else:
                from cellmend import engines

                engines.run(task, stream, show_rows, address=self.address, workers=self.workers)

    def task(self, what: str, stream: Stream, model: Path, output: str) -> tuple[Task, dict[str, str]]:
        """A task with plain values for a worker anywhere, and which columns are written otherwise than learned.

        Refuses a table that does not fit the model.
        """
        digest = digest_of(model)
        mender = load_once(model, self.device, digest)
        adapted, otherwise = mender.adapted_to(conform(head(stream), mender, stream.name))
        task = Task(what, stream.url, stream.names, absolute(output), str(model.resolve()), digest, self.device)
        notations = {name: adapted.model_.reader.notations[name] for name in otherwise}
        return replace(task, notations=notations_to_json(notations)), otherwise


def written_of_stream(wanted: Cleaning) -> list[str]:
    """What comes of cleaning a table of any size."""
    names = ("findings", "report.html", MODEL) if wanted.dry_run else ("findings", "repaired", "report.html", MODEL)
    return [str(wanted.folder / name) for name in names]


@dataclass(frozen=True)
class Repairing:
    """What `repair` is asked for, of a table of any size."""

    output: str  # folder
    threshold: Threshold
    caution: Caution = field(default_factory=Caution)
    dry_run: bool = False  # findings only

    @property
    def written(self) -> list[str]:
        """The folders that come of it."""
        return [f"{self.output}/{name}" for name in (("findings",) if self.dry_run else ("findings", "repaired"))]


def start_anew(output: str) -> None:
    """Remove the results of an earlier run, scores or repairs, so that nothing is resumed."""
    for folder in (output, f"{output}/findings", f"{output}/repaired"):
        clear(folder)


def fit_together(stream: Stream, mender: CellMender, model: Path, how: Run) -> list[str]:
    """Learn from a table of any size by several processes on a Ray cluster, and save the model."""
    from cellmend.engines import training

    with kept_warnings() as notes:
        training.fit(mender, stream, model, workers=how.workers or training.WORKERS, address=how.address)
    return notes


def score_stream(stream: Stream, model: Path, output: str, how: Run) -> NewRows:
    """Scores as a folder of files, one for each unit of the table; what is there already is not done again.

    Returns what a person should know about the whole table.
    """
    task, otherwise = how.task("score", stream, model, output)
    how.work(task, stream, "Scoring")
    mender = load_once(model, how.device, task.digest)
    return compare(mender, stream.names, profile_of(task, stream), otherwise)


def repair_stream(stream: Stream, model: Path, wanted: Repairing, how: Run) -> Repaired:
    """Findings in the folder `findings`, and the table with its repairs in `repaired`."""
    output, threshold = wanted.output, wanted.threshold
    find, otherwise = how.task("find", stream, model, f"{output}/findings")
    find = replace(find, caution=wanted.caution, least=threshold.suspicion or find.least)
    how.work(find, stream, "Finding")
    least = cutoff(find.output, threshold)
    if not wanted.dry_run:
        repair = replace(find, what="repair", output=absolute(f"{output}/repaired"), findings=find.output, least=least)
        how.work(repair, stream, "Repairing")
    mender = load_once(model, how.device, find.digest)
    newer = compare(mender, stream.names, profile_of(find, stream), otherwise)
    cells = stream.rows * len(stream.names)
    return Repaired(stream.rows, cells, *count(find.output, least), newer.notes, list(newer.moved))


def clean_stream(stream: Stream, mender: CellMender, wanted: Cleaning, how: Run) -> tuple[Repaired, list[str]]:
    """Fit, find and repair a table of any size; the report is about the rows that were drawn to learn from.

    A run that was stopped goes on with the model that is there.
    """
    if wanted.decisions is not None or wanted.model is not None:
        raise SettingError(
            f"Decisions must be about a table of at most {limits.VERY_LARGE:,} rows; it has {stream.rows:,}. "
            "Hint: clean a part of it with --decisions, then `cellmend repair TABLE -m MODEL`."
        )
    start, folder, notes = time.perf_counter(), wanted.folder, list[str]()
    model = folder / MODEL
    check_folder(folder, size_of(stream.url))
    folder.mkdir(parents=True, exist_ok=True)
    with only_run(folder):
        origin = None  # of standard input there is a copy only for as long as it is read
        if wanted.table is not None:
            origin = Origin.of(wanted.table, stream.name, folder, wanted.threshold.given, wanted.asked)
        if wanted.force:
            notes += set_aside(folder, origin, ("findings", "repaired", MODEL, NAME))
            for each in ("findings", "repaired"):
                clear(str(folder / each))
        if wanted.force or not model.exists():
            drawn, learned = fit_large(stream, mender)
            mender.save(model)
            notes += learned
            notes.append(f"report.html is about {drawn.num_rows:,} rows drawn at random.")
            sample = TableFile(stream.name, drawn)
            judge(sample, mender, wanted.threshold, notes, start).write_report(folder / "report.html")
        if origin is not None:
            origin.save(folder)
        repairing = Repairing(str(folder), wanted.threshold, dry_run=wanted.dry_run)
        return repair_stream(stream, model, repairing, how), notes
