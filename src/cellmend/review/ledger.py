"""The ledger: what stands decided about each cell, on the disk before anybody is told that it is; and the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cellmend.decisions.decision import RIGHT, UNDO, WRONG, Decision, append_decisions, read_decisions, standing
from cellmend.errors import DecisionError
from cellmend.review.limits import Wishes

Cell = tuple[int, str]  # row and column


class ConflictError(DecisionError):
    """The cell is not as it was shown: another tab, say, has decided about it meanwhile."""


@dataclass(frozen=True)
class Step:
    """What was done at once and is undone at once: one decision, all of a kind, or what was said of a column."""

    number: int
    what: str  # for a sentence
    before: Mapping[Cell, Decision | None] = field(default_factory=dict)  # what stood for each of the cells
    wishes: Wishes | None = None  # what had been said of the columns; None: the step is about cells


class Ledger:
    """Decisions of one review, kept in a file of one line each.

    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "decisions.jsonl")
    >>> step = ledger.decide([Decision(3, "city", "Ulmm", "wrong", "Ulm")])
    >>> [each.repair for each in ledger.standing], ledger.undo(step.number), ledger.standing
    (['Ulm'], True, [])
    """

    def __init__(self, path: Path, stands: Callable[[Decision], bool] = lambda _: True) -> None:
        """`stands` says whether the cell of a decision still holds the value that was seen; else it counts no more."""
        self.path = path
        found = read_decisions(path) if path.exists() else []
        decided = [each for each in found if stands(each)]
        self.left_out = len(found) - len(decided)
        self._held = {each.cell: each for each in standing(decided)}
        self._columns: dict[int, set[str]] = {}  # in which each row has decisions
        for row, column in self._held:
            self._columns.setdefault(row, set()).add(column)
        # Of what was decided before this start each decision is a step of its own.
        self._steps = [Step(number, _named([cell]), {cell: None}) for number, cell in enumerate(self._held, 1)]
        self.version = len(self._steps)  # rises with every change
        self._changed: dict[Cell, Decision | None] = {}  # what stood for a cell before it changed

    @property
    def standing(self) -> list[Decision]:
        """What holds, in the order in which it was decided."""
        return list(self._held.values())

    @property
    def steps(self) -> Sequence[Step]:
        """All that was done and not undone, the last step at the end."""
        return tuple(self._steps)

    @property
    def last(self) -> Step | None:
        """What would be undone next."""
        return self._steps[-1] if self._steps else None

    def of(self, cell: Cell) -> Decision | None:
        """What stands for a cell."""
        return self._held.get(cell)

    def in_row(self, row: int) -> list[Cell]:
        return [(row, column) for column in self._columns.get(row, ())]

    def take_changed(self) -> Mapping[Cell, Decision | None]:
        """The cells that changed since this was last asked, and what stood for each of them then."""
        changed, self._changed = self._changed, {}
        return changed

    def decide(self, decisions: Sequence[Decision], *, seen: Decision | None = None) -> Step | None:
        """Write decisions down and let them stand, as one step; None if all of them stand already.

        `seen` is what the person saw standing for the cell: if something else stands there meanwhile, nothing is done.
        """
        new = [each for each in decisions if self._held.get(each.cell) != each]
        for each in new:
            before = self._held.get(each.cell)
            if before is not None and before != seen:
                raise _conflict(each.cell, before)
        return self._take({each.cell: each for each in new}) if new else None

    def decide_all(self, decisions: Sequence[Decision], what: str) -> Step | None:
        """As `decide`, but in place of whatever stands: the caller has looked at that. `what` names the step."""
        new = {each.cell: each for each in decisions if self._held.get(each.cell) != each}
        return self._take(new, what) if new else None

    def undo(self, number: int) -> bool:
        """Take back a step, if it is the last one; a step that was taken back already is left."""
        if self.last is None or self.last.number != number:
            return False
        step = self._steps.pop()
        self._write(step.before)
        return True

    def withdraw(self, cell: Cell, *, seen: Decision | None) -> Step | None:
        """Take back what was seen standing for one cell, as a step of its own; None if nothing stands there."""
        before = self._held.get(cell)
        if before is not None and before != seen:
            raise _conflict(cell, before)
        return self._take({cell: None}) if before else None

    def note(self, what: str, wishes: Wishes) -> Step:
        """Remember a step about columns; `wishes` is what had been said of them before."""
        self.version += 1
        self._steps.append(Step(self.version, what, wishes=wishes))
        return self._steps[-1]

    def _take(self, new: Mapping[Cell, Decision | None], what: str = "") -> Step:
        before = {cell: self._held.get(cell) for cell in new}
        self._write(new)
        step = Step(self.version, what or _named(list(new)), before)
        self._steps.append(step)
        return step

    def _write(self, new: Mapping[Cell, Decision | None]) -> None:
        """Let this stand for these cells: first in the file, then here."""
        append_decisions(self.path, self._lines(new))
        for cell, decision in new.items():
            self._changed.setdefault(cell, self._held.pop(cell, None))
            own = self._columns.setdefault(cell[0], set())
            own.discard(cell[1])
            if decision is not None:
                self._held[cell] = decision
                own.add(cell[1])
        self.version += 1

    def _lines(self, new: Mapping[Cell, Decision | None]) -> Iterable[Decision]:
        for cell, decision in new.items():
            before = self._held.get(cell)
            if before is not None:
                yield Decision(before.row, before.column, before.value, UNDO)
            if decision is not None:
                yield decision


def _named(cells: Sequence[Cell]) -> str:
    row, column = cells[0]
    return f"row {row}, {column}" if len(cells) == 1 else f"{len(cells):,} decisions"


def _conflict(cell: Cell, decision: Decision) -> ConflictError:
    return ConflictError(f"Row {cell[0]} of {cell[1]!r} was decided meanwhile: {in_words(decision)}.")


def in_words(decision: Decision) -> str:
    """A decision for a sentence.

    >>> in_words(Decision(3, "city", "Ulmm", "wrong", "Ulm")), in_words(Decision(3, "city", "Ulm", "right"))
    ("wrong, it should be 'Ulm'", 'right as it is')
    """
    if decision.verdict == RIGHT:
        return "right as it is"
    return "wrong" if decision.repair is None else f"wrong, it should be {decision.repair!r}"


def state_of(decision: Decision | None, proposed: str | None) -> str:
    """What a decision means for the cell: "open", "kept", "accepted", "edited" or "wrong" (with nothing known).

    Whether a repair was edited is what the decision says; where it does not, the repair is compared with the proposal.

    >>> state_of(Decision(3, "city", "Ulmm", "wrong", "Ulm"), "Ulm")
    'accepted'
    >>> state_of(Decision(3, "city", "Ulmm", "wrong", "Ulm", edited=True), "Ulm")
    'edited'
    """
    if decision is None:
        return "open"
    if decision.verdict != WRONG:
        return "kept"
    if decision.repair is None:
        return "wrong"
    is_edited = decision.repair != proposed if decision.edited is None else decision.edited
    return "edited" if is_edited else "accepted"
