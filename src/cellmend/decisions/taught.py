"""All that people decided of tables like this one, and what follows from it for other cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cellmend.decisions.decision import UNDO, WRONG, Decision, standing
from cellmend.decisions.judged import Judged
from cellmend.decisions.lesson import Example, Lesson, undecided
from cellmend.decisions.repairs import Given, Partner, Repairs
from cellmend.errors import DecisionError, did_you_mean
from cellmend.posterior.known import Floats
from cellmend.table.causes.named import DECIDED, TAUGHT
from cellmend.table.packing import pack, unpack
from cellmend.table.priors import BY_FAR
from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.values import Bools, shortened

REASONS = {DECIDED: "which was decided to be wrong", TAUGHT: "like cells that were decided to be wrong"}
Cell = tuple[int, int]  # row and place of the column
Guesses = Mapping[tuple[int, str], str | None]  # by row and name of the column


@dataclass(frozen=True)
class Known:
    """A decision, and what its cell looked like."""

    decision: Decision
    row_print: str | None  # of its row, wherever that comes to stand; a text, since JSON's numbers end at 2**53
    example: Example | None  # None: the cell was empty, or the model does not judge its column

    # Both are None of a cell that was never seen: then the decision is about its value alone.

    @property
    def wrong(self) -> bool:
        """Was the cell wrong?"""
        return self.decision.verdict == WRONG

    @property
    def repaired(self) -> bool:
        """Was something there, and is it known what should be?"""
        return self.decision.value is not None and self.decision.repair is not None


@dataclass(frozen=True)
class Taught:
    """Decisions and what they teach."""

    names: tuple[str, ...]  # of the columns
    known: tuple[Known, ...]
    lesson: Lesson
    repairs: tuple[Repairs, ...] = ()  # of each column

    def revise(self, judged: Judged) -> Floats:
        """The suspicion of all cells, (N, D), after what was decided of some."""
        revised = self.lesson.revise(judged) if self.lesson.speaks_of(judged) else judged.suspicion.copy()
        for cell, known in self.held(judged).items():
            revised[cell] = float(known.wrong)
        return revised

    def doubts(self, judged: Judged) -> Floats:
        """How unsure decisions leave each cell, (N, D): p (1 - p) by them alone, or by what was suspected without."""
        before = judged.suspicion
        learned = self.lesson.learned(judged) if self.lesson.speaks_of(judged) else before
        return np.maximum(before * (1 - before), learned * (1 - learned))

    def suspects(self, judged: Judged, revised: Floats, flagged: Bools) -> dict[Cell, Suspect]:
        """What decisions say that flagged cells, (N, D), were: those that were decided, and those of which only a
        repair that people gave tells what was meant."""
        told = {(each.row, each.column) for each in judged.table.suspects if each.meant}  # by slips or other rows
        found = {cell: (TAUGHT, meant) for cell, meant in self._meant(judged, flagged) if cell not in told}
        own = self.own(judged)
        for cell, known in self.held(judged).items():
            if flagged[cell]:
                found[cell] = DECIDED if cell in own else TAUGHT, known.decision.repair
        suspects = {}
        for (row, place), (cause, meant) in found.items():
            reason = f"{self.names[place]} is {shortened(judged.text(row, place) or None)}, {REASONS[cause]}"
            texts = () if meant is None else (meant,)
            suspects[row, place] = Suspect(row, place, float(revised[row, place]), texts, reason, cause)
        return suspects

    def _meant(self, judged: Judged, flagged: Bools) -> Iterator[tuple[Cell, str | None]]:
        """Flagged cells whose text is repaired in a way that people showed."""
        assert judged.portrait is not None  # noqa: S101
        for place, (repairs, known) in enumerate(zip(self.repairs, judged.portrait.columns, strict=True)):
            if repairs.outlines:  # some were given
                cells = {row: self._beside(judged, row, place) for row in np.flatnonzero(flagged[:, place]).tolist()}
                meant = repairs.meant(cells.values(), known)
                yield from (((row, place), meant[cell]) for row, cell in cells.items() if cell in meant)

    def _beside(self, judged: Judged, row: int, place: int) -> tuple[str, str]:
        """The text of a cell, and that of the column which tells it."""
        partner = self.repairs[place].partner
        return judged.text(row, place), judged.text(row, partner.place) if partner else ""

    def held(self, judged: Judged) -> dict[Cell, Known]:
        """The cells of which a decision says what they are: their own, or one about a cell that holds the same text."""
        return self.by_value(judged) | self.own(judged)

    def by_value(self, judged: Judged) -> dict[Cell, Known]:
        """Cells that hold a text which was decided in one way, if what is wrong with it shows in the text.

        A valid value that stood in the wrong row says nothing of other rows.
        """
        said, names = dict[tuple[int, str], list[Known]](), list(self.names)
        for each in self.known:
            if text := (each.decision.value or "").strip():
                said.setdefault((names.index(each.decision.column), text), []).append(each)
        found = dict[Cell, Known]()
        for (place, text), known in said.items():
            rows, meant = judged.rows_with(place, text), {each.decision.repair for each in known}
            in_one_way = len({each.wrong for each in known}) == 1 and len(meant - {None}) <= 1
            if in_one_way and judged.shows_in_text(rows, place):
                best = max(known, key=lambda each: each.repaired)
                found |= dict.fromkeys(((row, place) for row in rows.tolist()), best)
        return found

    def elsewhere(self, judged: Judged, decisions: Sequence[Decision]) -> tuple[int, int]:
        """Of how many of these decisions the cell is not there, and how many of them hold for no cell at all."""
        own = {known.decision.cell for known in self.own(judged).values()}
        held = {(known.decision.column, known.decision.value) for known in self.by_value(judged).values()}
        gone = [each for each in standing(decisions) if each.cell not in own]
        return len(gone), sum((each.column, each.value) not in held for each in gone)

    def own(self, judged: Judged) -> dict[Cell, Known]:
        """The decided cells of a table: those of the rows that were decided, wherever they stand now.

        Of rows that are the same in every column and were decided otherwise each stands for its own place.
        """
        by_print: dict[int, list[Known]] = {}
        for each in self.known:
            if each.row_print is not None:
                by_print.setdefault(int(each.row_print), []).append(each)
        places, found = {name: place for place, name in enumerate(self.names)}, dict[Cell, Known]()
        for row in np.flatnonzero(np.isin(judged.prints, np.array(list(by_print), dtype=np.uint64))).tolist():
            for each in by_print[int(judged.prints[row])]:
                cell = row, places[each.decision.column]
                if each.decision.row == row or cell not in found:
                    found[cell] = each
        return found

    def to_json(self) -> dict[str, Any]:
        """As a model file holds it."""
        own = {"names": self.names, "known": self.known, "others": self.lesson.others, "repairs": self.repairs}
        return {name: pack(each) for name, each in own.items()}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Taught:
        """The opposite of to_json."""
        known, others = unpack(tuple[Known, ...], entry["known"]), unpack(tuple[Example, ...], entry["others"])
        repairs = unpack(tuple[Repairs, ...], entry["repairs"])
        return cls(tuple(entry["names"]), known, _lesson(known, others), repairs)


# ---------------------------------------------------------------- teaching


def teach(before: Taught | None, judged: Judged, decisions: Sequence[Decision]) -> Taught:
    """What was taught before and these decisions, of a table's cells or of those of an earlier one.

    Decisions are in the order in which they were taken; what a cell was decided to be before is forgotten. Of a cell
    that does not hold what was seen, the decision is about the value alone, and so are all where most do not.
    """
    held, names = standing(decisions), judged.table.names
    check_decisions(held, judged.table)
    placed = [each for each in held if _stands(each, judged)]
    if len(placed) < BY_FAR * len(held):  # of another table some cells hold the same by chance
        placed = []
    gone = [each for each in held if each not in placed]
    told = {each.cell for each in held} | {each.cell for each in decisions if each.verdict == UNDO}
    old = [each for each in (before.known if before else ()) if each.decision.cell not in told]
    here = [each.decision for each in old if _stands(each.decision, judged, each.row_print)]
    known = [each for each in old if each.decision not in here]
    known += [_known(each, judged) for each in [*here, *placed]]
    known += [Known(each, None, None) for each in gone]
    decided = np.zeros(judged.suspicion.shape, dtype=bool)
    for each in (*here, *placed):
        decided[each.row, names.index(each.column)] = True
    return Taught(tuple(names), tuple(known), _lesson(known, undecided(judged, decided)))


def with_repairs(taught: Taught, judged: Judged, revised: Floats, guesses: Guesses) -> Taught:
    """What the given repairs teach, too, by cells with their suspicion (N, D) after the decisions.

    `guesses` are the repairs that the model itself has for decided cells: what people's repairs teach must be better.
    """
    return replace(taught, repairs=tuple(_repairs(taught, judged, revised, guesses)))


def _repairs(taught: Taught, judged: Judged, revised: Floats, guesses: Guesses) -> Iterator[Repairs]:
    """How wrong cells of each column are repaired, by the repairs that people gave."""
    pairs, columns = judged.portrait.pairs.pairs if judged.portrait else (), judged.columns
    for place, name in enumerate(taught.names):
        partners = [pair.partner for pair in pairs if pair.column == place]
        decided = (known for known in taught.known if known.decision.column == name and known.repaired)
        given = [_given(each, judged, partners, guesses) for each in decided]
        trust, tried = 1 - revised[:, place], partners if given else []
        yield Repairs.learn(given, [Partner.learn(at, columns[at], columns[place], trust) for at in tried])


def _given(known: Known, judged: Judged, partners: Iterable[int], guesses: Guesses) -> Given:
    """A repair that was given, with what stands beside its cell if the row is in this table."""
    each = known.decision
    here = partners if _stands(each, judged, known.row_print) else ()
    beside = {partner: judged.text(each.row, partner) for partner in here}
    return Given((each.value or "").strip(), (each.repair or "").strip(), guesses.get(each.cell), beside)


def check_decisions(decisions: Iterable[Decision], table: ReadTable) -> None:
    """Refuse a decision about a column that the table has not."""
    for each in decisions:
        if each.column not in table.names:
            raise DecisionError(
                f"Decisions must be about columns of the table; it has no {each.column!r}."
                f"{did_you_mean(each.column, table.names)}"
            )


def _lesson(known: Iterable[Known], others: Sequence[Example]) -> Lesson:
    return Lesson([each.example for each in known if each.example is not None], others)


def _stands(decision: Decision, judged: Judged, row_print: str | None = None) -> bool:
    """Does the cell hold what was seen, and its row too, if its print is known?"""
    if decision.row >= judged.table.rows or row_print not in (None, str(judged.prints[decision.row])):
        return False
    return judged.text(decision.row, judged.table.names.index(decision.column)) == (decision.value or "").strip()


def _known(decision: Decision, judged: Judged) -> Known:
    """A decision with the example that its cell is."""
    row, place = decision.row, judged.table.names.index(decision.column)
    wrong = decision.verdict == WRONG
    example = Example.of(judged, row, place, wrong=wrong) if judged.held[row, place] else None
    return Known(decision, str(judged.prints[row]), example)
