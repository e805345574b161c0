"""All that people decided of tables like this one, and what follows from it for other cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellmend.decisions.decision import UNDO, WRONG, Decision, standing
from cellmend.decisions.habits import Floats
from cellmend.decisions.lesson import Example, Lesson, examples_from_json
from cellmend.decisions.portrait import Portrait, Seen
from cellmend.decisions.repairs import Given, Repairs, best_company, learn_repairs, repairs_from_json, repairs_to_json
from cellmend.decisions.sample import Sample
from cellmend.errors import DecisionError, did_you_mean
from cellmend.table.causes.named import DECIDED, TAUGHT
from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.values import shortened

REASONS = {DECIDED: "which was decided to be wrong", TAUGHT: "like cells that were decided to be wrong"}
Guesses = Mapping[tuple[int, str], str | None]  # by row and name of the column


@dataclass(frozen=True)
class Known:
    """A decision, and what its cell looked like."""

    decision: Decision
    row_print: int  # of its row, wherever that comes to stand
    example: Example | None  # None: the cell was empty

    @property
    def wrong(self) -> bool:
        """Was the cell wrong?"""
        return self.decision.verdict == WRONG


@dataclass(frozen=True)
class Taught:
    """Decisions and what they teach."""

    names: tuple[str, ...]  # of the columns
    known: tuple[Known, ...]
    lesson: Lesson
    repairs: tuple[Repairs, ...] = ()  # of each column

    @property
    def portrait(self) -> Portrait:
        """Of the table that was decided on last."""
        return self.lesson.portrait

    def revise(self, table: ReadTable, suspicion: Floats) -> Floats:
        """The suspicion of all cells, (N, D), after what was decided of some."""
        seen = self.portrait.see(table, suspicion)
        revised = self.lesson.revise(seen) if self.lesson.has_both else suspicion.copy()
        for (row, place), known in self.own(seen).items():
            revised[row, place] = float(known.wrong)
        return revised

    def doubts(self, seen: Seen) -> Floats:
        """How unsure decisions leave each cell, (N, D): p (1 - p) by them alone, or by what was suspected without."""
        before = seen.suspicion * (1 - seen.suspicion)
        learned = self.lesson.learned(seen) if self.lesson.has_both else seen.suspicion
        return np.maximum(before, learned * (1 - learned))

    def suspects(self, table: ReadTable, revised: Floats, flagged: NDArray[np.bool_]) -> dict[tuple[int, int], Suspect]:
        """What decisions say of the flagged cells (N, D): all that were decided, that have a repair by decisions, or
        that nothing else speaks against."""
        seen = self.portrait.see(table, revised)
        own, others = self.own(seen), {(each.row, each.column): each for each in table.suspects}
        found = {}
        for row, place in zip(*(each.tolist() for each in np.nonzero(flagged)), strict=True):
            cell = row, place
            suspect = self._decided(seen, own[cell], cell) if cell in own else self._alike(seen, cell, others.get(cell))
            found[cell] = replace(suspect, suspicion=float(revised[cell]))
        return found

    def _decided(self, seen: Seen, known: Known, cell: tuple[int, int]) -> Suspect:
        repair = known.decision.repair
        return self._suspect(seen, cell, DECIDED, () if repair is None else (repair,))

    def _alike(self, seen: Seen, cell: tuple[int, int], suspect: Suspect | None) -> Suspect:
        row, place = cell
        telling = self.portrait.telling[place]
        beside = seen.text(row, telling[0].telling) if telling else ""
        meant = self.repairs[place].meant(seen.text(row, place), beside, self.portrait.habits[place])
        if suspect is not None and (meant is None or suspect.meant):  # what slips or other rows tell is surer
            return suspect
        return self._suspect(seen, cell, TAUGHT, () if meant is None else (meant,))

    def _suspect(self, seen: Seen, cell: tuple[int, int], cause: str, meant: tuple[str, ...]) -> Suspect:
        row, place = cell
        reason = f"{self.names[place]} is {shortened(seen.text(row, place) or None)}, {REASONS[cause]}"
        return Suspect(row, place, 1.0, meant, reason, readable=bool(meant), cause=cause)

    def own(self, seen: Seen) -> dict[tuple[int, int], Known]:
        """The decided cells of a table: those of the rows that were decided, wherever they stand now.

        Of rows that are the same in every column and were decided otherwise each stands for its own place.
        """
        by_print: dict[int, list[Known]] = {}
        for each in self.known:
            by_print.setdefault(each.row_print, []).append(each)
        places, found = {name: place for place, name in enumerate(self.names)}, {}
        for row in np.flatnonzero(np.isin(seen.prints, np.array(list(by_print), dtype=np.uint64))).tolist():
            for each in by_print[int(seen.prints[row])]:
                cell = row, places[each.decision.column]
                if each.decision.row == row or cell not in found:
                    found[cell] = each
        return found

    def to_json(self) -> dict[str, Any]:
        """As a model file holds it."""
        known = [
            {**asdict(each), "row_print": str(each.row_print)} for each in self.known
        ]  # JSON's numbers end at 2**53
        return {
            "names": list(self.names),
            "known": known,
            "others": [asdict(each) for each in self.lesson.others],
            "portrait": self.portrait.to_json(),
            "repairs": [repairs_to_json(each) for each in self.repairs],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Taught:
        """The opposite of to_json."""
        known = tuple(
            Known(
                Decision(**e["decision"]), int(e["row_print"]), e["example"] and examples_from_json([e["example"]])[0]
            )
            for e in entry["known"]
        )
        others = examples_from_json(entry.get("others", []))  # none in files of before
        lesson = _lesson(known, Portrait.from_json(entry["portrait"]), others)
        return cls(tuple(entry["names"]), known, lesson, tuple(map(repairs_from_json, entry["repairs"])))


# ---------------------------------------------------------------- teaching


def teach(before: Taught | None, table: ReadTable, suspicion: Floats, decisions: Sequence[Decision]) -> Taught:
    """What was taught before and these decisions of a table's cells, whose suspicion (N, D) is that without any.

    Decisions are in the order in which they were taken; what a cell was decided to be before is forgotten.
    """
    portrait = Portrait.of(table, suspicion)
    seen, held = portrait.see(table, suspicion), standing(decisions)
    check_decisions(held, table)
    placed = [each for each in held if _stands(each, seen, table)]
    told = {each.cell for each in placed} | {each.cell for each in decisions if each.verdict == UNDO}
    old = [each for each in (before.known if before else ()) if each.decision.cell not in told]
    here = [each.decision for each in old if _stands(each.decision, seen, table, each.row_print)]
    old = [each for each in old if each.decision not in here]
    sample = Sample.of(seen, [(each.row, table.names.index(each.column)) for each in [*here, *placed]])
    new = _known([*here, *placed], sample, table)
    if held and not new and not old:
        raise DecisionError(
            f"Decisions must be about cells of the table; none of the {len(held):,} cells holds the value that was "
            "seen. Hint: give the table that was decided on, or a model that was taught with it."
        )
    known = tuple(old + new)
    return Taught(tuple(table.names), known, _lesson(known, portrait, sample.others()))


def with_repairs(taught: Taught, seen: Seen, guesses: Guesses) -> Taught:
    """What the given repairs teach, too, by cells with their suspicion after the decisions.

    `guesses` are the repairs that the model itself has for decided cells: what people's repairs teach must be better.
    """
    return replace(taught, repairs=tuple(_repairs(taught, seen, guesses)))


def _lesson(known: Sequence[Known], portrait: Portrait, others: Sequence[Example]) -> Lesson:
    return Lesson(portrait, [each.example for each in known if each.example is not None], others)


def check_decisions(decisions: Iterable[Decision], table: ReadTable) -> None:
    """Refuse a decision about a column that the table has not."""
    for each in decisions:
        if each.column not in table.names:
            raise DecisionError(
                f"Decisions must be about columns of the table; it has no {each.column!r}."
                f"{did_you_mean(each.column, table.names)}"
            )


def _stands(decision: Decision, seen: Seen, table: ReadTable, row_print: int | None = None) -> bool:
    """Does the cell hold what was seen, and its row too, if its print is known?"""
    if decision.row >= table.rows or row_print not in (None, int(seen.prints[decision.row])):
        return False
    return seen.text(decision.row, table.names.index(decision.column)) == (decision.value or "").strip()


def _known(decisions: Sequence[Decision], sample: Sample, table: ReadTable) -> list[Known]:
    seen, cells = sample.seen, [(each.row, table.names.index(each.column)) for each in decisions]
    held = [(cell, each) for cell, each in zip(cells, decisions, strict=True) if seen.text(*cell)]
    examples = dict(sample.examples({cell: each.verdict == WRONG for cell, each in held}))
    pairs = zip(cells, decisions, strict=True)
    return [Known(each, int(seen.prints[each.row]), examples.get(cell)) for cell, each in pairs]


def _repairs(taught: Taught, seen: Seen, guesses: Guesses) -> Iterator[Repairs]:
    """How wrong cells of each column are repaired, by the repairs that people gave."""
    for place, name in enumerate(taught.names):
        telling = taught.portrait.telling[place][:1]
        given = [
            Given(
                each.example.marks[0],
                each.decision.repair.strip(),
                each.example.marks[-1],
                guesses.get(each.decision.cell),
            )
            for each in taught.known
            if each.example is not None and each.decision.repair is not None and each.decision.column == name
        ]
        company = {}
        if telling and given:
            company = best_company(seen.columns[telling[0].telling], seen.columns[place], 1 - seen.suspicion[:, place])
        yield learn_repairs(given, company)
