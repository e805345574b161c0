"""Work with the model beside the page: reading it, choosing questions, and learning from what was decided."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cellmend.decisions.decision import RIGHT, Decision
from cellmend.errors import DecisionError
from cellmend.files.results import FINDINGS, MODEL
from cellmend.review.flagged import Asked, Flag, Flagged, flag_of
from cellmend.review.ledger import Cell
from cellmend.review.limits import CONFIRMED, STRUCK, Wishes
from cellmend.review.results import Results
from cellmend.review.witnesses import Witnesses
from cellmend.table.schema import IGNORE

if TYPE_CHECKING:
    from cellmend.estimator import CellMender
    from cellmend.review.rulebook import RuleBook
    from cellmend.table.schema import Schema
    from cellmend.table.texts import Notation

QUESTIONS, CANDIDATES = 20, 60  # questions that are kept at most, of those that the model would ask
LEAST_DOUBT = 0.05  # suspicion of a cell that is worth a question
ASKED_ROWS = 20_000  # of a larger table questions come from so many rows, those with flagged cells before others
MOST_LIKELY, LEAST_LIKELY = 4, 0.01  # of likely levels so many are shown, and none below this probability
SHOWN_CHANGES = 500  # cells of which it is listed how learning changed them
Levels = list[tuple[str, float]]  # with their probabilities
STAGES = (
    "Reading the model",
    "Fitting again",
    "Learning from the decisions",
    "Judging all cells",
    "Looking at the rules",
    "Choosing questions",
)


@dataclass(frozen=True)
class Change:
    """What learning changed about a cell: "found", "dropped", or "repaired otherwise"."""

    what: str
    row: int
    column: str
    value: str
    before: str | None  # the repair that was proposed
    after: str | None


@dataclass(frozen=True)
class Changes:
    """What learning changed elsewhere, and how often."""

    counts: Mapping[str, int]
    listed: Sequence[Change]


@dataclass(frozen=True)
class Progress:
    """How far the work is."""

    is_running: bool = False
    stage: str = ""
    done: float = 0.0  # share of the stages
    seconds: float = 0.0
    error: str = ""
    runs: int = 0  # how often it was learned since the start
    undone: int = 0  # how often that was taken back
    changes: Changes | None = None  # of the last time


@dataclass(frozen=True)
class Known:
    """What the model knows about the table."""

    schema: Schema
    notations: Mapping[str, Notation]
    questions: Mapping[Cell, Asked] = field(default_factory=dict)  # the best first
    rules: RuleBook | None = None  # None: not looked at yet
    witnesses: Witnesses | None = None  # likewise
    names: Sequence[str] = ()  # columns that tell a person which row it is


class Teacher:
    """Reads the model and learns in a thread of its own.

    `take` is called with what is flagged from now on, or with None if only more is known about columns and questions.
    """

    def __init__(self, results: Results, take: Callable[[Flagged | None], None]) -> None:
        self.results, self.take = results, take
        self.known: Known | None = None
        self.progress = Progress()
        self._mender: CellMender | None = None
        self._likely: dict[int, Mapping[str, Levels]] = {}  # of each row that the model was asked about
        self._lock = threading.Lock()  # one piece of work at a time
        self._asking = threading.Lock()
        self._started = 0.0

    def read(self, flagged: Flagged) -> None:
        """Begin to read the model and to choose questions."""
        self._begin(lambda: self._read(flagged))

    def learn(self, decisions: Sequence[Decision], flagged: Flagged, wishes: Wishes) -> bool:
        """Begin to learn from decisions; False if something is being learned already."""
        return self._begin(lambda: self._learn(decisions, flagged, wishes))

    def unlearn(self) -> bool:
        """Begin to go back to what stood before the last learning; False if the model is at work."""
        return self._begin(self._unlearn)

    def likely(self, cells: Sequence[Cell], *, soon: Sequence[Cell] = ()) -> list[Levels]:
        """The levels that the rest of the row makes likely in each cell, with probabilities; none without a model.

        The model answers about many rows as fast as about one: if it must be asked, then also about those of `soon`.
        """
        with self._asking:
            mender, known = self._mender, self.known
            if mender is None or known is None:
                return [[] for _ in cells]
            if any(self._is_new(cell, known) for cell in cells):
                new = sorted({cell[0] for cell in (*cells, *soon) if self._is_new(cell, known)})
                self._likely |= zip(new, likely_levels(mender, self.results.source.table.take(new)), strict=True)
            return [self._likely.get(row, {}).get(column, []) for row, column in cells]

    def _is_new(self, cell: Cell, known: Known) -> bool:
        """Has the model something to say of this cell, and was not asked yet?"""
        return cell[0] not in self._likely and known.schema[cell[1]].kind in ("category", "ordinal")

    def _know(self, mender: CellMender, rules: RuleBook | None) -> None:
        reader = mender.model_.reader
        with self._asking:
            self._mender, self._likely = mender, {}
            new = Known(reader.schema, reader.notations, rules=rules)
            self.known = replace(new, witnesses=self.known.witnesses, names=self.known.names) if self.known else new

    # ------------------------------------------------------------ in the thread

    def _begin(self, work: Callable[[], None]) -> bool:
        if not self._lock.acquire(blocking=False):
            return False
        self._started = time.monotonic()
        self.progress = replace(self.progress, is_running=True, stage=STAGES[0], done=0.0, seconds=0.0, error="")
        threading.Thread(target=self._work, args=(work,), daemon=True, name="teacher").start()
        return True

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # told on the page: a thread has nobody else to tell
            self.progress = replace(self.progress, error=str(error) or type(error).__name__)
        finally:
            self.progress = replace(self.progress, is_running=False, stage="", seconds=time.monotonic() - self._started)
            self._lock.release()

    def _reach(self, stage: str) -> None:
        done = STAGES.index(stage) / len(STAGES)
        self.progress = replace(self.progress, stage=stage, done=done, seconds=time.monotonic() - self._started)

    def _read(self, flagged: Flagged) -> None:
        from cellmend.estimator import load

        fitted = load(self.results.model)
        last = self.results.learnings.model
        self._know(fitted if last is None else load(last), None)
        self.take(None)
        self._look_at_rules(fitted, flagged)
        self._ask(flagged)

    def _look_at_rules(self, fitted: CellMender, flagged: Flagged) -> None:
        """Read the table for the rules that it showed before people said anything of them."""
        from cellmend.review.rulebook import RuleBook
        from cellmend.table.naming import naming_columns

        self._reach("Looking at the rules")
        reader = fitted.model_.reader
        rules = RuleBook(reader, self.results.source.table)
        names = naming_columns(rules.table, reader.schema, reader.identifiers)
        witnesses = Witnesses(self.results.source.table)
        witnesses.prepare(flagged.counts)
        if self.known is not None:
            self.known = replace(self.known, rules=rules, witnesses=witnesses, names=names)
        self.take(None)

    def _ask(self, flagged: Flagged) -> None:
        """Let the model choose the cells whose answers would teach most."""
        self._reach("Choosing questions")
        table, mender = self.results.source.table, self._mender
        if mender is None or self.known is None:
            return
        rows = asked_rows(table.num_rows, flagged.rows)
        some = table if len(rows) == table.num_rows else table.take(rows)
        found = mender.questions(some, CANDIDATES).to_pylist()
        worth = [line for line in found if _is_worth_asking(line, self.known.schema)][:QUESTIONS]
        chosen = [question_of(line | {"row": rows[line["row"]]}) for line in worth]
        self.known = replace(self.known, questions={each.flag.cell: each for each in chosen})
        self.take(None)

    def _learn(self, decisions: Sequence[Decision], flagged: Flagged, wishes: Wishes) -> None:
        from cellmend.estimator import load
        from cellmend.findings.finding import to_arrow
        from cellmend.review.rulebook import RuleBook
        from cellmend.table.schema import Schema

        results, table = self.results, self.results.source.table
        mender = load(results.model).set_params(verbose=False)
        guessed = {column.name: column.kind for column in mender.schema_}
        is_refitted = any(guessed[name] != kind for name, kind in wishes.kinds.items())
        if is_refitted:
            self._reach("Fitting again")
            declared = {} if mender.schema is None else Schema.of(mender.schema).to_dict()
            mender.set_params(schema={**declared, **wishes.kinds}).fit(table)
        known = self.known.rules if self.known and not is_refitted else None
        rules = known or RuleBook(mender.model_.reader, table)
        heed(mender, wishes)
        self._reach("Learning from the decisions")
        mender.learn(table, decisions)
        self._reach("Judging all cells")
        threshold = results.threshold
        mended = mender.mend(table, fdr=threshold.fdr, suspicion=threshold.suspicion, top=threshold.top)
        found = Flagged([flag_of(line) for line in to_arrow(mended.found).to_pylist()])
        changes = changes_between(flagged, found, {each.cell for each in decisions})
        self._keep(mender, mended.found, {**learned_from(decisions, wishes), "changes": asdict(changes)})
        self._know(mender, rules)
        self.take(found)
        self.progress = replace(self.progress, changes=changes, runs=self.progress.runs + 1)
        self._ask(found)

    def _unlearn(self) -> None:
        from cellmend.estimator import load

        learnings, rules = self.results.learnings, self.known.rules if self.known else None
        if not learnings.undo():
            raise DecisionError("Nothing was learned yet.")
        found = self.results.read_flagged()
        self._know(load(learnings.model or self.results.model), rules)
        self.take(found)
        self.progress = replace(self.progress, changes=None, undone=self.progress.undone + 1)
        self._ask(found)

    def _keep(self, mender: CellMender, found: Sequence[Any], about: Mapping[str, Any]) -> None:
        """Write what was learned, so that the next review goes on with it."""
        from cellmend.report.rows import write_findings

        def write(place: Path) -> None:
            mender.save(place / MODEL)
            write_findings(place / FINDINGS, found)

        self.results.learnings.keep(about, write)


def learned_from(decisions: Sequence[Decision], wishes: Wishes) -> dict[str, int]:
    """How much there is to learn from.

    >>> learned_from([Decision(3, "city", "Ulmm", "wrong", "Ulm"), Decision(4, "city", "Rome", "right")], Wishes())
    {'decisions': 2, 'right': 1, 'wrong': 1, 'repairs': 1, 'columns': 1, 'wishes': 0}
    """
    right = sum(each.verdict == RIGHT for each in decisions)
    return {
        "decisions": len(decisions),
        "right": right,
        "wrong": len(decisions) - right,
        "repairs": sum(each.repair is not None for each in decisions),
        "columns": len({each.column for each in decisions}),
        "wishes": len(wishes.kinds) + len(wishes.rules) + len(wishes.own),
    }


def _is_worth_asking(line: Mapping[str, Any], schema: Schema) -> bool:
    """Does the answer speak for other cells, of a column that counts, and is it open?"""
    return schema[line["column"]].kind != IGNORE and line["suspicion"] >= LEAST_DOUBT and line["speaks_for"] > 0


def question_of(line: Mapping[str, Any]) -> Asked:
    """A line of what `CellMender.questions` gives."""
    value = line["value"] or ""
    reason = f"{line['column']} is {value or 'missing'}. It stands for cells of which the model knows little"
    return Asked(flag_of({**line, "value": value, "reason": reason}), int(line["speaks_for"]), is_question=True)


def likely_levels(mender: CellMender, rows: pa.Table) -> list[dict[str, Levels]]:
    """For each row the levels that the others of its cells make likely in a column, the likeliest first."""
    found: list[dict[str, Levels]] = [{} for _ in range(rows.num_rows)]
    for column, levels in mender.reconstruct_proba(rows).items():
        chances = np.column_stack([levels[name].to_numpy() for name in levels.column_names])
        best = np.argsort(-chances, axis=1, kind="stable")[:, :MOST_LIKELY]
        for own, line, order in zip(found, chances, best, strict=True):
            own[column] = [(levels.column_names[at], float(line[at])) for at in order if line[at] >= LEAST_LIKELY]
    return found


def heed(mender: CellMender, wishes: Wishes) -> None:
    """Let rules that were struck out no longer speak, and take those that were confirmed and one's own for sure."""
    from cellmend.table.relations.rules import Rules

    if not (wishes.rules or wishes.own):
        return
    reader, verdicts = mender.model_.reader, wishes.rules
    told = Rules.told_by(reader.relations, reader.sure)
    kept = (rule for rule in told.rules or () if verdicts.get(rule.rule) != STRUCK)
    own = (rule for rule in told.own if verdicts.get(rule) != STRUCK)
    rules = Rules(
        tuple(replace(rule, sure=rule.sure or verdicts.get(rule.rule) == CONFIRMED) for rule in kept),
        (*own, *wishes.own),
    )
    relations = tuple(rules.choose(reader.relations))
    sure = rules.sure(relations, [column.name for column in reader.schema])
    mender.model_ = replace(mender.model_, reader=replace(reader, relations=relations, sure=sure))


def asked_rows(rows: int, flagged: Any) -> Any:
    """The rows from which questions are chosen, sorted: all, or those with flagged cells and some others.

    >>> len(asked_rows(100_000, np.array([5, 70_000]))), len(asked_rows(10, np.array([3])))
    (20000, 10)
    """
    if rows <= ASKED_ROWS:
        return np.arange(rows)
    marked = np.unique(flagged)
    spread = np.linspace(0, rows - 1, ASKED_ROWS).astype(np.int64)
    kept = marked[np.linspace(0, len(marked) - 1, min(len(marked), ASKED_ROWS // 2)).astype(np.int64)]
    others = np.setdiff1d(spread, kept)
    return np.sort(np.concatenate([kept, others[np.linspace(0, len(others) - 1, ASKED_ROWS - len(kept)).astype(int)]]))


def changes_between(before: Flagged, after: Flagged, decided: set[Cell]) -> Changes:
    """Cells that are flagged now and were not, no longer are, or have another repair; not those that were decided."""
    found: dict[str, list[Change]] = {"found": [], "dropped": [], "repaired otherwise": []}

    def note(what: str, flag: Flag, old: str | None, new: str | None) -> None:
        found[what].append(Change(what, flag.row, flag.column, flag.value, old, new))

    for flag in after.flags:
        known = before.get(flag.cell)
        if flag.cell in decided:
            continue
        if known is None:
            note("found", flag, None, flag.repair)
        elif known.repair != flag.repair:
            note("repaired otherwise", flag, known.repair, flag.repair)
    for flag in before.flags:
        if flag.cell not in decided and after.get(flag.cell) is None:
            note("dropped", flag, flag.repair, None)
    listed = [change for own in found.values() for change in own[:SHOWN_CHANGES]]
    return Changes({what: len(own) for what, own in found.items()}, listed)
