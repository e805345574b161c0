"""What the commands do: a table in; findings, a repaired copy, a report and a model out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

import pyarrow as pa

from cellmend.decisions.decision import read_decisions
from cellmend.errors import DecisionWarning, SchemaWarning
from cellmend.estimator import CellMender
from cellmend.files.cells import differences
from cellmend.files.earlier import set_aside
from cellmend.files.formats import TableFile
from cellmend.files.layout import NOTHING_ASKED, Asked
from cellmend.files.origin import Origin
from cellmend.files.places import STDIN
from cellmend.files.results import FINDINGS, MODEL, result_folder
from cellmend.findings.finding import Finding, Mended
from cellmend.report.columns import checked_by_itself
from cellmend.report.page import Facts, write_report
from cellmend.report.portrait import Pictured
from cellmend.report.rows import Rows, write_findings
from cellmend.settings import Threshold
from cellmend.streaming import limits
from cellmend.streaming.batches import conform
from cellmend.streaming.learning import draw, fit_stream
from cellmend.streaming.scores import NewRows, compare, compare_table
from cellmend.streaming.streams import Stream
from cellmend.table.naming import naming_columns
from cellmend.table.notation import describe_columns, describe_together, learn_notations, tidy, understand
from cellmend.table.reader import check_columns
from cellmend.table.relations.ruled import Ruled, ruled_rows
from cellmend.table.schema import declared_kinds
from cellmend.table.twins import Twins, find_twins
from cellmend.table.values import Ints, as_text, shortened

TOLD = (SchemaWarning, DecisionWarning)  # what a command says in its notes
SHOWN_LEVELS = 5  # of those that an update added
SHOWN_TWINS = 8  # pairs of rows that say nearly the same


# ---------------------------------------------------------------- tables in memory


@dataclass(frozen=True)
class Job:
    """A table, the model that judged it, and what was found."""

    source: TableFile
    mender: CellMender
    mended: Mended
    threshold: Threshold
    notes: Sequence[str]
    seconds: float
    model: str = ""  # name of the file that the model came from; none if it was fitted to this table
    moved: Sequence[str] = ()  # columns, if that was asked
    folder: Path | None = None  # of the results, if people can decide about them

    def compared(self) -> Job:
        """The same, and which columns moved since the model learned."""
        newer = NewRows(moved=compare_table(self.source, self.mender).moved)
        return replace(self, notes=[*self.notes, *newer.notes], moved=list(newer.moved))

    @property
    def findings(self) -> int:
        """How many there are, each contradiction counted once."""
        return len(self.mended.flagged) + len(self.mended.contradictions)

    @property
    def cells(self) -> int:
        return self.source.table.num_rows * self.source.table.num_columns

    @property
    def repaired(self) -> int:
        return sum(finding.repair is not None for finding in self.mended.found)

    def summary(self) -> dict[str, Any]:
        """In numbers, for a program to read."""
        return {
            "table": self.source.name,
            "rows": self.source.table.num_rows,
            "columns": self.source.table.num_columns,
            "flagged": len(self.mended.flagged),
            "contradictions": len(self.mended.contradictions),
            "broken_rules": {each.rule: len(each.rows) for each in self.ruled if each.rows},
            "expected_false": round(self.mended.expected_false, 3),
            "repaired": self.repaired,
            "threshold": str(self.threshold),
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "moved": list(self.moved),
        }

    @cached_property
    def rows(self) -> Rows:
        """The rows as the file has them, with what names them."""
        reader = self.mender.model_.reader
        names = naming_columns(self.mended.table, reader.schema, reader.identifiers)
        return Rows(self.source.table.select(self.mended.table.names), names, self.source.line_numbers)

    @cached_property
    def ruled(self) -> list[Ruled]:
        """The rules of the table, and the rows that break each."""
        reader = self.mender.model_.reader
        return ruled_rows(reader.relations, reader.kept_by_all, self.mended.table)

    @property
    def broken_rows(self) -> int:
        """How many rows break a rule, though nothing in them is flagged."""
        broken = {row for each in self.ruled for row in each.rows}
        return len(broken - {finding.row for finding in self.mended.found})

    @property
    def commands(self) -> list[str]:
        """What a person types to decide about the findings; nothing where there is no way."""
        if self.folder is not None:
            return [f"cellmend review {quote(str(self.folder))}"]
        if self.model:
            return [
                f"cellmend clean {quote(self.source.name)} -m {quote(self.model)} -o FOLDER",
                "cellmend review FOLDER",
            ]
        return []

    def write_findings(self, path: Path) -> None:
        write_findings(path, self.mended.found, self.rows)

    def write_repaired(self, path: Path) -> None:
        """The table in its own format; of a CSV file only the bytes of repaired cells change."""
        places = {name: place for place, name in enumerate(self.source.table.column_names)}
        changes: dict[int, dict[int, str]] = {}
        for finding in self.mended.found:
            if finding.repair is not None:
                changes.setdefault(finding.row, {})[places[finding.column]] = as_text(finding.repair)
        marks = {(each.row, places[each.column]): _comment(each) for each in self.mended.found}
        self.source.write_changed(path, self.mended.repaired, changes, marks)

    def write_report(self, path: Path) -> None:
        notations, mender = self.mended.table.notations, self.mender
        rows, learned = self.source.table.num_rows, mender.train_rows or self.source.table.num_rows
        fitted = {"fitted on": f"{learned:,} of {rows:,} rows" if learned < rows else "all rows"}
        settings = {"threshold": str(self.threshold), "seed": str(mender.random_state)}
        settings |= {"model": self.model} if self.model else fitted
        facts = Facts(
            name=self.source.name,
            when=datetime.now().astimezone(),
            seconds=self.seconds,
            flagged=len(self.mended.flagged),
            contradictions=len(self.mended.contradictions),
            broken_rows=self.broken_rows,
            expected_false=self.mended.expected_false,
            repaired=self.repaired,
            settings=settings,
            notes=self.notes,
            commands=self.commands,
        )
        tables = (each.select(self.mended.table.names) for each in (self.source.table, self.mended.repaired))
        before, after = (understand(each, notations) for each in tables)
        reader = mender.model_.reader
        table = Pictured(mender.schema_, before, after, self.rows, notations, checked_by_itself(reader), self.ruled)
        write_report(path, facts, table, self.mended.found)


def _comment(finding: Finding) -> str:
    """What a workbook says of a flagged cell; a changed one also what stood there."""
    was = "" if finding.repair is None else f" It was {shortened(finding.value)}."
    return f"{finding.reason} (suspicion {finding.suspicion:.2f}).{was}"


@dataclass(frozen=True)
class Cleaning:
    """What `clean` is asked for."""

    folder: Path
    threshold: Threshold
    plain_formats: bool = False  # also write numbers without units, and missing cells empty
    force: bool = False  # overwrite
    dry_run: bool = False  # findings and report only
    table: str | None = None  # where the table lies; None: nowhere, so that a copy is kept
    decisions: Path | None = None  # file of what people decided about the table
    model: Path | None = None  # in place of fitting one
    asked: Asked = NOTHING_ASKED  # what was said of the table's file

    def files(self, suffix: str) -> list[str]:
        """The names of what is written of a table whose file's name ends so."""
        return [FINDINGS, "report.html", *([] if self.dry_run else [f"repaired{suffix}", MODEL])]


def clean(source: TableFile, mender: CellMender, wanted: Cleaning) -> tuple[Job, list[Path]]:
    """Fit, find and repair; returns what was found and the files that were written."""
    start, folder = time.perf_counter(), wanted.folder
    names = wanted.files(source.suffix)
    with result_folder(folder, names, force=wanted.force, size=2 * source.table.nbytes) as partial:
        source, notes = written_plainly(source, mender) if wanted.plain_formats else (source, [])
        job = clean_by(source, mender, wanted, notes, start)
        job = replace(job, folder=None if wanted.dry_run else folder)
        writers = (job.write_findings, job.write_report, job.write_repaired, mender.save)
        for name, write in zip(names, writers, strict=False):  # the first two if it is a dry run
            write(partial / name)
        origin = write_origin(source, wanted, partial)
        aside = set_aside(folder, origin, {each.name for each in partial.iterdir()})
    return replace(job, notes=[*job.notes, *aside]), [folder / name for name in names]


def write_origin(source: TableFile, wanted: Cleaning, partial: Path) -> Origin | None:
    """Note in the folder that is made which table the results are about; one that is no file is kept beside them."""
    if wanted.table is None or wanted.plain_formats:
        if wanted.dry_run:
            return None
        copy = partial / f"original{source.suffix}"
        source.write_changed(copy, source.table, {})
        origin = Origin.of(str(copy), source.name, partial, wanted.threshold.given)
    else:
        origin = Origin.of(wanted.table, source.name, wanted.folder, wanted.threshold.given, wanted.asked)
    if not wanted.dry_run:
        origin.save(partial)
    return origin


def clean_by(source: TableFile, mender: CellMender, wanted: Cleaning, notes: Sequence[str], start: float) -> Job:
    """Find and repair by a model fitted to the table, or by the one that is wanted, and by what people decided."""
    if wanted.decisions is None and wanted.model is None:
        return fit_and_judge(source, mender, wanted.threshold, notes, start)
    if wanted.model is None:
        notes = [*notes, *fit(source, mender)]
    else:
        check_columns(source.table.column_names, mender.names_ or [], source.name)
    if wanted.decisions is not None:
        decisions = read_decisions(wanted.decisions)
        with kept_warnings() as warned:
            mender.learn(source.table, decisions)
        notes = [*notes, *warned, _about_learned(len(decisions), mender.learned_)]
    return judge(source, mender, wanted.threshold, notes, start, "" if wanted.model is None else wanted.model.name)


def _about_learned(decisions: int, changed: pa.Table) -> str:
    """A sentence about what decisions changed elsewhere.

    >>> _about_learned(20, pa.table({"change": ["found", "found", "dropped"]}))
    'By 20 decisions 2 other cells are flagged and 1 no longer.'
    """
    kinds = changed["change"].to_pylist()
    found, dropped = kinds.count("found"), kinds.count("dropped")
    return f"By {decisions:,} decisions {found:,} other cells are flagged and {dropped:,} no longer."


def fit_and_judge(
    source: TableFile, mender: CellMender, threshold: Threshold, notes: Sequence[str], start: float
) -> Job:
    """Learn from a table, then find and repair in it; `start` is by time.perf_counter."""
    with kept_warnings() as warned:
        mended = mender.fit_mend(source.table, fdr=threshold.fdr, suspicion=threshold.suspicion, top=threshold.top)
    learned = [*notes, *warned, *_training_notes(mender, source.table.num_rows), *_file_notes(source)]
    learned += _twin_notes(source, mended)
    return Job(source, mender, mended, threshold, [*_column_notes(mended), *learned], time.perf_counter() - start)


def fit(source: TableFile, mender: CellMender) -> list[str]:
    """Learn from a table; returns what a person should know about it, in sentences."""
    with kept_warnings() as notes:
        mender.fit(source.table)
    return [*notes, *_training_notes(mender, source.table.num_rows), *_file_notes(source)]


def fit_and_save(source: TableFile | Stream, mender: CellMender, model: Path) -> tuple[int, list[str]]:
    """Learn from a table of any size and save the model; returns how many rows it has, and notes on the fit."""
    if isinstance(source, Stream):
        rows, notes = source.rows, fit_large(source, mender)[1]
    else:
        rows, notes = source.table.num_rows, fit(source, mender)
    mender.save(model)
    return rows, notes


def _training_notes(mender: CellMender, rows: int) -> Iterator[str]:
    """What a person should know about how a model was trained on a table of this many rows."""
    if mender.train_rows is not None and rows > mender.train_rows:
        yield f"Fitted on {mender.train_rows:,} of {rows:,} rows, drawn at random; all rows are scored."
    if mender.quick:
        yield "No network was trained, as asked for: errors that only a network sees are missed."
    elif not mender.encoder_.columns:
        yield "No column varies and holds numbers or categories: no network was trained, texts alone were judged."
    elif len(mender.history_) < mender.epochs:
        why = "when nothing more was learned" if mender.time_limit is None else "at the time limit"
        yield f"Training stopped {why}, after {len(mender.history_)} of {mender.epochs} epochs."


def judge(
    source: TableFile, mender: CellMender, threshold: Threshold, notes: Sequence[str], start: float, model: str = ""
) -> Job:
    """Find and repair with a model; `model` names its file if it was fitted before, `start` is by time.perf_counter."""
    check_columns(source.table.column_names, mender.names_ or [], source.name)
    with kept_warnings() as warned:
        mended = mender.mend(source.table, fdr=threshold.fdr, suspicion=threshold.suspicion, top=threshold.top)
    newer = new_levels(mender, mended) if model else {}
    news = [_about_new_levels(name, "has", new) for name, new in newer.items()]
    notes = [*_column_notes(mended), *news, *notes, *warned, *_file_notes(source), *_twin_notes(source, mended)]
    return Job(source, mender, mended, threshold, notes, time.perf_counter() - start, model)


def new_levels(mender: CellMender, mended: Mended) -> dict[str, list[str]]:
    """Values that are not flagged and that stood nowhere in a column of levels when the model learned, in their order.

    Where a schema declares the levels there are no others.
    """
    found, table = dict[str, list[str]](), mended.table
    flagged = {(each.row, each.column) for each in mended.found}
    for column in mender.encoder_.columns:
        if column.levels and mender.schema_[column.name].levels is None:
            known = {*map(as_text, column.levels), *mender.model_.texts_of(column.name)}
            cells = enumerate(table.understood[column.name].to_pylist())
            texts = (as_text(cell) for row, cell in cells if cell is not None and (row, column.name) not in flagged)
            new = [text for text in dict.fromkeys(texts) if text not in known]
            found |= {column.name: new} if new else {}
    return found


def files_of_repair(output: Path, *, dry_run: bool) -> dict[Path, Callable[[Job, Path], None]]:
    """What `repair` writes into single files, and how: the repaired copy, and the findings beside it.

    >>> list(map(str, files_of_repair(Path("new.csv.gz"), dry_run=False)))
    ['new.csv.gz', 'new.findings.csv']
    """
    copy: dict[Path, Callable[[Job, Path], None]] = {} if dry_run else {output: Job.write_repaired}
    name = output.name.partition(".")[0]
    return copy if output == Path(STDIN) else copy | {output.with_name(f"{name}.findings.csv"): Job.write_findings}


def _file_notes(source: TableFile) -> list[str]:
    """What was found out of a file, in sentences."""
    return [f"{source.name}: {note}." for note in source.notes]


def _twin_notes(source: TableFile, mended: Mended) -> list[str]:
    """Rows that say nearly the same, in a sentence."""
    twins = find_twins(mended.table)
    return [about_twins(twins, source.line_numbers)] if twins else []


def about_twins(twins: Sequence[Twins], lines: Ints | None) -> str:
    """Which rows say nearly the same, by the lines of their file if it has any.

    >>> about_twins([Twins((3, 9), ("name",)), Twins((4, 7), ())], None)
    '2 rows may tell of a thing that another row tells of: rows 3 and 9 (but for name), 4 and 7.'
    """
    shown = []
    for rows, differ in twins[:SHOWN_TWINS]:
        one, other = rows if lines is None else (int(lines[row]) for row in rows)
        but_for = f" (but for {', '.join(differ)})" if differ else ""
        shown.append(f"{one} and {other}{but_for}")
    more = ", ..." if len(twins) > SHOWN_TWINS else ""
    many = "1 row" if len(twins) == 1 else f"{len(twins):,} rows"
    where = f"{'rows' if lines is None else 'lines'} {', '.join(shown)}{more}"
    return f"{many} may tell of a thing that another row tells of: {where}."


def _column_notes(mended: Mended) -> list[str]:
    """What holds for whole columns, in sentences."""
    written = [f"{name}: {sentence}." for name, sentence in mended.table.otherwise.items()]
    return [*written, *describe_together(mended.table.arrow, mended.table.notations)]


def written_plainly(source: TableFile, mender: CellMender) -> tuple[TableFile, list[str]]:
    """The file with its numbers without units and its missing cells empty, and what was done, in sentences."""
    notations = learn_notations(source.table, declared_kinds(mender.schema), mender.decimal)
    plain = tidy(source.table, notations)
    csv = source.csv and source.csv.changed(differences(source.table, plain))
    said = [f"{name}: {why}; written plainly." for name, why in describe_columns(source.table, notations).items()]
    return replace(source, table=plain, csv=csv), said


def update(source: TableFile | Stream, mender: CellMender) -> tuple[int, list[str]]:
    """Teach a model the rows of a table, or rows drawn from a large one.

    Returns how many rows that were, and what a person should know about it, in sentences.
    """
    if isinstance(source, Stream):
        table = conform(draw(source, limits.LEARNED, mender.model_.seed), mender, source.name)
    else:
        table = conform(source.table, mender, source.name)
    adapted, otherwise = mender.adapted_to(table)
    names = source.names if isinstance(source, Stream) else source.table.column_names
    found = compare(adapted, names, adapted.profile(table), otherwise)
    notes = replace(found, moved={}).notes + [f"{sentence}." for sentence in found.moved.values()]
    before = {column.name: column.levels for column in mender.encoder_.columns}
    mender.update(table)
    for column in mender.encoder_.columns:
        if new := column.levels[len(before[column.name]) :]:
            notes.append(_about_new_levels(column.name, "learned", new))
    return table.num_rows, notes


def _about_new_levels(name: str, verb: str, new: Sequence[Any]) -> str:
    """A sentence about levels that a column got, or has in a newer table.

    >>> _about_new_levels("city", "learned", ["Ulm"]), _about_new_levels("city", "has", ["Ulm", "Bonn"])
    ('city learned a new level: Ulm.', 'city has 2 new levels: Ulm, Bonn.')
    """
    shown = ", ".join(as_text(level) for level in new[:SHOWN_LEVELS]) + (", ..." if len(new) > SHOWN_LEVELS else "")
    return f"{name} {verb} {'a new level' if len(new) == 1 else f'{len(new):,} new levels'}: {shown}."


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Collects what cellmend warns of meanwhile, as sentences."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        for kind in TOLD:
            warnings.simplefilter("always", kind)
        yield notes
    for warning in caught:
        if isinstance(warning.message, TOLD):
            notes.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def fit_large(stream: Stream, mender: CellMender) -> tuple[pa.Table, list[str]]:
    """Learn from a table of any size; returns the rows that were drawn, and what a person should know about it."""
    with kept_warnings() as notes:
        drawn = fit_stream(mender, stream)
    learned = min(drawn.num_rows, mender.train_rows or drawn.num_rows)
    if learned < stream.rows:
        notes.append(f"Fitted on {learned:,} of {stream.rows:,} rows, drawn at random.")
    return drawn, notes
