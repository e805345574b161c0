"""One review: what the page asks and says, in the terms of the table; the server only carries it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial, reduce
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cellmend.decisions.decision import RIGHT, WRONG, Decision
from cellmend.errors import DecisionError, PatchError
from cellmend.patch import Fix, fixes_of, recipe_of, typed, write_fixed, write_patch
from cellmend.review.clusters import Pair, similar
from cellmend.review.facets import Values
from cellmend.review.flagged import LIKENESSES, Asked, Flag, Flagged, Likeness, likeness
from cellmend.review.groups import OpenGroup, all_groups, open_groups
from cellmend.review.ledger import Cell, ConflictError, Ledger, Step, state_of
from cellmend.review.limits import CAUSE, Limits, Wishes, numbers_of
from cellmend.review.pictures import Picture, Sketch, sketch
from cellmend.review.results import Results
from cellmend.review.rows import Filter, Rows, matching_cells, rows_holding, text_of
from cellmend.review.teaching import Levels, Teacher
from cellmend.review.witnesses import Witness
from cellmend.table.texts import Notation
from cellmend.table.values import family

if TYPE_CHECKING:
    from cellmend.review.rulebook import RuleBook

KEPT_FILTERS = 8  # whose rows are remembered
BETWEEN = " · "  # what names a row
KEPT_COLUMNS = 4  # whose values after edits are remembered
STATES = ("open", "kept", "accepted", "edited", "wrong")


class UnusualError(DecisionError):
    """A value that could stand in the column but never did: the person may insist."""


class Review:
    """The table, what is flagged in it, and what people decided; every method may be called from any thread."""

    def __init__(self, results: Results) -> None:
        self.results, self.table = results, results.source.table
        self.ledger = Ledger(results.decisions, self._stands)
        self.wishes = Wishes.load(results.columns).about(self.table.column_names, results.columns)
        self.teacher = Teacher(results, self._take)
        self.skipped: dict[Cell, None] = {}
        self.lock = threading.RLock()
        self._changes = 0  # of flagged cells and columns
        self.listing = 0  # rises when other cells are flagged, or with other repairs
        self._found = results.read_flagged()
        self.flagged = self._found
        self._sketches: dict[str, Sketch] = {}
        self._tally: dict[str, int] = {}  # none: not counted yet
        self._grouped: tuple[Flagged, list[OpenGroup]] = Flagged([]), []  # what is flagged, and its groups
        self._decided: Counter[Likeness] = Counter()  # flagged cells of each kind; counted with the tally
        self._decided_repairs: Counter[Likeness] = Counter()  # those of them with a repair
        self._flag_again()
        self._with_cells = lru_cache(KEPT_FILTERS)(self._rows_with_cells)
        self._open_groups = lru_cache(KEPT_FILTERS)(self._groups_now)
        self._original = lru_cache(self.table.num_columns)(lambda name: Values.of(self.table[name]))
        self._similar = lru_cache(self.table.num_columns)(lambda name: similar(self.original(name)))
        self._values = lru_cache(KEPT_COLUMNS)(self._values_now)
        self._holding = lru_cache(KEPT_FILTERS)(partial(rows_holding, self.table))  # searched without the lock

    @property
    def version(self) -> int:
        """Rises with everything that a page must show anew."""
        return self.ledger.version + self._changes

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.table.column_names)}

    def start(self) -> None:
        """Begin to read the model."""
        self.teacher.read(self.flagged)

    def _take(self, found: Flagged | None) -> None:
        """Show what was found anew; None: what was found is the same, but more is known about the columns."""
        with self.lock:
            self._found = self._found if found is None else found
            self._flag_again()

    def _flag_again(self) -> None:
        """What the model found, what rules say by now, and what people do not allow."""
        rules = self.rules
        self._heeded = found = self._found if rules is None else rules.heeding(self._found, self.wishes)
        forbidden = [flag for name, limits in self.wishes.limits.items() for flag in self._forbidden(name, limits)]
        before, self.flagged = self.flagged, found.merged(forbidden) if forbidden else found
        self.listing += before.flags != self.flagged.flags
        self._sketches.clear()
        self._tally = {}
        self._changes += 1

    # ------------------------------------------------------------ what is asked

    def queue(self, most: int, wanted: Filter, *, of_questions: bool = False) -> list[Asked]:
        """The next cells to decide, flagged ones or questions; those that were skipped come last."""
        with self.lock:
            cells = self.questions if of_questions else self.flagged.by_cell
            first = (cell for cell in cells if cell not in self.skipped)
            again = (cell for cell in self.skipped if not of_questions or cell in cells)
            ordered = map(self._asked, chain(first, again))
            still_open = (
                each
                for each in ordered
                if self.ledger.of(each.flag.cell) is None and wanted.keeps(each.flag.column, "open", each.flag)
            )
            return list(islice(still_open, most))

    @property
    def questions(self) -> Mapping[Cell, Asked]:
        """The cells whose answers would teach most, the best first; none until the model has chosen them."""
        return self.teacher.known.questions if self.teacher.known else {}

    @property
    def rules(self) -> RuleBook | None:
        """The rules of the table; None until they were looked at."""
        return self.teacher.known.rules if self.teacher.known else None

    @property
    def rulebook(self) -> RuleBook:
        """The same, or a sentence if nobody has looked at them yet."""
        if self.rules is None:
            raise DecisionError("The rules of the table are still being read; try again in a moment.")
        return self.rules

    def _asked(self, cell: Cell) -> Asked:
        """What is said of a cell, which need not be flagged."""
        flag, question = self.flagged.get(cell), self.questions.get(cell)
        if question is not None:
            return replace(question, flag=flag or question.flag)
        text, reason = self.text(cell) or "", "Nothing speaks against it."
        return Asked(flag or Flag(*cell, text, 0.0, None, None, None, reason, "not flagged"), 0, is_question=False)

    def describe(self, cell: Cell) -> Asked:
        """What is known of one cell, flagged or not."""
        self._check(cell)
        with self.lock:
            return self._asked(cell)

    def count_alike(self, flag: Flag) -> Mapping[str, Mapping[str, int]]:
        """How many cells a bulk decision of each likeness and verdict would decide."""
        with self.lock:
            self.tally()
            return {by: self._count_open(likeness(flag, by)) for by in LIKENESSES}

    def _count_open(self, kind: Likeness) -> Mapping[str, int]:
        cells, repairs = len(self.flagged.kinds.get(kind, ())), self.flagged.repairs.get(kind, 0)
        return {RIGHT: cells - self._decided[kind], WRONG: repairs - self._decided_repairs[kind]}

    def likely(self, cells: Sequence[Cell], *, soon: Sequence[Cell] = ()) -> list[Levels]:
        """The levels that the rest of the row makes likely in each cell; `soon` are cells that are asked for next."""
        return self.teacher.likely(cells, soon=soon)

    def skip(self, cell: Cell) -> None:
        """Ask about a cell again only after all others."""
        self._check(cell)
        with self.lock:
            self.skipped.pop(cell, None)
            self.skipped[cell] = None
            self._changes += 1

    def open_alike(self, flag: Flag, by: str) -> list[Flag]:
        """Flagged cells like this one that nobody has decided yet, itself among them."""
        return [each for each in self.flagged.alike(flag, by) if self.ledger.of(each.cell) is None]

    def groups(self, wanted: Filter) -> list[OpenGroup]:
        """The open cells by column and cause, those that a filter keeps."""
        with self.lock:
            return self._open_groups(wanted, self.version)

    def _groups_now(self, wanted: Filter, version: int) -> list[OpenGroup]:
        if self._grouped[0] is not self.flagged:
            self._grouped = self.flagged, all_groups(self.flagged)
        return open_groups(self._grouped[1], self.ledger, wanted)

    def original(self, name: str) -> Values:
        """What a column held at first."""
        self.check_column(name)
        return self._original(name)

    def similar(self, name: str) -> Sequence[Sequence[Pair]]:
        """What may be spellings of the same thing in a column of text, as it was at first."""
        self.check_column(name)
        return self._similar(name) if family(self.table[name].type) == "text" else []

    def values(self, name: str) -> Values:
        """What a column holds now, repairs that were accepted or typed among it."""
        self.original(name)  # worked out without the lock
        with self.lock:
            return self._values(name, self.ledger.version)

    def _values_now(self, name: str, version: int) -> Values:
        made = (each for each in self.ledger.standing if each.column == name and each.repair is not None)
        return self._original(name).edited({each.row: each.repair or "" for each in made})

    def text(self, cell: Cell) -> str | None:
        return text_of(self.table, *cell)

    def _stands(self, decision: Decision) -> bool:
        """Does the cell of a decision hold the value that was seen?"""
        row, column = decision.cell
        is_there = column in self.places and row < self.table.num_rows
        return is_there and self._holds(decision.cell, decision.value)

    def _holds(self, cell: Cell, value: str | None) -> bool:
        return (self.text(cell) or "").strip() == (value or "").strip()

    def check_shown(self, cell: Cell, value: str | None) -> None:
        """Refuse what is said of a cell that was shown with another value than it holds."""
        self._check(cell)
        if not self._holds(cell, value):
            row, column = cell
            raise ConflictError(f"Row {row} of {column!r} holds {self.text(cell)!r}; {value!r} was shown.")

    def _check(self, cell: Cell) -> None:
        row, column = cell
        if column not in self.places or not 0 <= row < self.table.num_rows:
            raise DecisionError(f"The table has no row {row} of {column!r}.")

    def check_column(self, name: str) -> None:
        """Refuse what is no column of the table."""
        if name not in self.places:
            raise DecisionError(f"The table has no column {name!r}.")

    # ------------------------------------------------------------ what is decided

    def accept(
        self,
        cell: Cell,
        repair: str | None,
        *,
        seen: Decision | None,
        insist: bool = False,
        edited: bool | None = None,
    ) -> Step | None:
        """The cell is wrong and should be `repair`; None: it is not known what it should be.

        `edited` says whether that differs from what was proposed to the person; None: compare it with today's proposal.
        """
        self._check(cell)
        if repair is None:
            return self._decide(Decision(*cell, self.text(cell), WRONG), seen)
        if edited is None:
            flag = self.flagged.get(cell)
            edited = flag is None or flag.repair != repair
        self.check_edit(cell, repair, insist=insist or not edited)
        return self._decide(Decision(*cell, self.text(cell), WRONG, repair, edited), seen)

    def keep(self, cell: Cell, *, seen: Decision | None) -> Step | None:
        """The value is right as it is."""
        self._check(cell)
        return self._decide(Decision(*cell, self.text(cell), RIGHT), seen)

    def _decide(self, decision: Decision, seen: Decision | None) -> Step | None:
        with self.lock:
            step = self.ledger.decide([decision], seen=seen)
            self.skipped.pop(decision.cell, None)
            return step

    def decide_alike(self, cell: Cell, by: str, verdict: str, count: int) -> Step | None:
        """Accept all repairs, or keep all values, of the open cells like this one; `count` is how many were shown."""
        with self.lock:
            flag = self.flagged.get(cell)
            cells = [] if flag is None else self.bulk(flag, by, verdict)
            if len(cells) != count:
                raise DecisionError(f"{count:,} cells were shown and {len(cells):,} are open now; look at them again.")
            proposed = [(each.repair, False) if verdict == WRONG else (None, None) for each in cells]
            return self.ledger.decide(
                [
                    Decision(*each.cell, self.text(each.cell), verdict, repair, edited)
                    for each, (repair, edited) in zip(cells, proposed, strict=True)
                ]
            )

    def bulk(self, flag: Flag, by: str, verdict: str) -> list[Flag]:
        """The cells that `decide_alike` decides: without a repair nothing can be accepted."""
        return [each for each in self.open_alike(flag, by) if verdict == RIGHT or each.repair is not None]

    def undo(self, number: int) -> bool:
        """Take back the last step, if it is this one."""
        with self.lock:
            last = self.ledger.last
            if last is not None and last.number == number and last.wishes is not None:
                self._put(last.wishes)
            return self.ledger.undo(number)

    def go_back(self, number: int, last: int) -> int:
        """Undo all steps after this one, 0: all, and return how many; `last` is the last one that was shown."""
        with self.lock:
            later = [step.number for step in self.ledger.steps if step.number > number]
            if later[-1:] != [last]:
                raise ConflictError("Something else was done meanwhile; nothing is undone. Look at the steps again.")
            for each in reversed(later):
                self.undo(each)
            return len(later)

    def withdraw(self, cell: Cell, *, seen: Decision | None) -> Step | None:
        """Take back what was decided about one cell."""
        with self.lock:
            return self.ledger.withdraw(cell, seen=seen)

    def check_edit(self, cell: Cell, text: str, *, insist: bool) -> None:
        """Refuse a text that cannot stand in its column, and, unless the person insists, one that never did."""
        flag = self.flagged.get(cell)
        if flag is None or text != flag.repair:
            self.check_text(cell[1], text, insist=insist)
            if text == "" and not insist and self.text(cell):
                raise UnusualError(f"Nothing is typed. Save {cell[1]} of row {cell[0]} as empty?")

    def check_text(self, name: str, text: str, *, insist: bool) -> None:
        """Refuse a text that cannot stand in a column, and, unless the person insists, one that never did."""
        typed(text, self.table.schema.field(name))
        if text == "":
            return
        self._check_reading(name, text)
        limits = self.wishes.limits.get(name)
        if limits is not None and limits.forbids(pa.array([text]), self._numbers(name, text)).any():
            raise PatchError(f"{name} must be {limits.in_words()}; {text!r} is not.")
        if not insist and self._is_new_level(name, text):
            raise UnusualError(f"{text!r} does not stand in {name} so far. Save it all the same?")

    def _check_reading(self, name: str, text: str) -> None:
        known, notation = self.teacher.known, self.notation(name)
        if known is None or notation is None or known.schema[name].kind in ("category", "ignore"):
            return
        numbers = self._numbers(name, text)
        if numbers is not None and np.isnan(numbers.to_numpy(zero_copy_only=False)).any():
            raise PatchError(f"{name} holds {notation.noun}s; {text!r} cannot be read as one.")

    def _numbers(self, name: str, text: str) -> pa.Array | None:
        field = self.table.schema.field(name)
        return numbers_of(pa.array([typed(text, field)], field.type), self.notation(name))

    def notation(self, name: str) -> Notation | None:
        """How a column writes its values, once the model is read."""
        return self.teacher.known.notations.get(name) if self.teacher.known else None

    def _is_new_level(self, name: str, text: str) -> bool:
        drawn = self.sketch(name)
        return drawn is not None and drawn.axis is None and bool(drawn.levels) and text not in drawn.levels

    # ------------------------------------------------------------ what is shown

    def rows(self, wanted: Filter) -> Rows | None:
        """The rows that a filter keeps; None: all."""
        if wanted == Filter():
            return None
        found = [self._holding(wanted.text)] if wanted.text else []
        if wanted.rule:
            found.append(self.rulebook.broken_by(wanted.rule, self.wishes))
        if wanted.within:
            found.append(self.values(wanted.within).rows([wanted.holds] if wanted.holds else ["", None]))
        if wanted.asks_for_cells:
            with self.lock:
                about_cells = replace(wanted, text="", rule="", within="", holds="")
                found.append(self._with_cells(about_cells, self.version))
        return reduce(np.intersect1d, found)

    def _rows_with_cells(self, wanted: Filter, version: int) -> Rows:
        """Those with a cell that is asked for; `version` is there so that what is kept holds for it only."""
        cells = matching_cells(wanted, self.flagged, self.ledger)
        return np.unique(np.array([row for row, _ in cells], dtype=np.int64))

    def next_cell(self, cell: Cell, wanted: Filter, *, backwards: bool) -> Cell | None:
        """The flagged or decided cell after, or before, another one, in the order of the table."""
        with self.lock:
            ordered = [(row, self.places[name]) for row, name in matching_cells(wanted, self.flagged, self.ledger)]
        within = Filter(text=wanted.text, rule=wanted.rule, within=wanted.within, holds=wanted.holds)
        rows = self.rows(within)
        kept = None if rows is None else set(rows.tolist())
        here = cell[0], self.places.get(cell[1], -1)
        beyond = [each for each in ordered if (each < here if backwards else each > here)]
        beyond = beyond if kept is None else [each for each in beyond if each[0] in kept]
        if not beyond:
            return None
        row, place = max(beyond) if backwards else min(beyond)
        return row, self.table.column_names[place]

    def sketch(self, name: str) -> Sketch | None:
        """The spread of a column; None until the model says how the column is read."""
        known = self.teacher.known
        if known is None:
            return None
        if name not in self._sketches:
            kind = self.wishes.kinds.get(name, known.schema[name].kind)
            self._sketches[name] = sketch(self.table[name], self.notation(name), is_category=kind == "category")
        return self._sketches[name]

    def picture(self, cell: Cell, repair: str | None) -> Picture | None:
        """The picture of a cell's column with its value and a repair; None until it can be drawn."""
        self._check(cell)
        drawn = self.sketch(cell[1])
        return None if drawn is None else drawn.picture(self.text(cell) or None, repair)

    def witnesses(self, flag: Flag) -> list[Witness] | None:
        """What other rows and rules say of a cell; None until the rules were looked at."""
        known = self.teacher.known
        return known.witnesses.of(flag, known.rules, self.wishes) if known and known.witnesses else None

    @cached_property
    def lines(self) -> Rows | None:
        """The line of the file in which each row starts; None if it has no lines."""
        return self.results.source.line_numbers

    def name(self, row: int) -> str:
        """A row by the columns that tell a person which it is; "" until they are known."""
        names = self.teacher.known.names if self.teacher.known else ()
        return BETWEEN.join(text for name in names if (text := (self.text((row, name)) or "").strip()))

    def tally(self) -> dict[str, int]:
        """How many flagged or decided cells are in each state."""
        with self.lock:
            changed = self.ledger.take_changed()
            if not self._tally:
                self._tally = dict.fromkeys(STATES, 0) | {"open": len(self.flagged.flags)}
                self._decided, self._decided_repairs = Counter(), Counter()
                changed = {each.cell: None for each in self.ledger.standing}
            for cell, before in changed.items():
                self._count(cell, before, -1)
                self._count(cell, self.ledger.of(cell), 1)
            return dict(self._tally)

    def _count(self, cell: Cell, decision: Decision | None, times: int) -> None:
        """Add to the tally what a cell with this decision is."""
        flag = self.flagged.get(cell)
        if decision is not None or flag is not None:
            self._tally[state_of(decision, flag.repair if flag else None)] += times
        if decision is not None and flag is not None:
            for by in LIKENESSES:
                self._decided[likeness(flag, by)] += times
                self._decided_repairs[likeness(flag, by)] += times * (flag.repair is not None)

    # ------------------------------------------------------------ whole columns

    def set_kind(self, name: str, kind: str | None) -> Step | None:
        """Take a column for another kind, from the next learning on."""
        return self._set(name, lambda before: before.with_kind(name, kind), f"the kind of {name}")

    def set_limits(self, name: str, limits: Limits) -> Step | None:
        """Allow only such values in a column; others are flagged at once."""
        return self._set(name, lambda before: before.with_limits(name, limits), f"the valid values of {name}")

    def _set(self, name: str, change: Callable[[Wishes], Wishes], what: str) -> Step | None:
        self.check_column(name)
        return self.wish(change, what)

    def wish(self, change: Callable[[Wishes], Wishes], what: str) -> Step | None:
        """Change what is said of columns, as one step; None if that is said already."""
        with self.lock:
            before = self.wishes
            after = change(before)
            if after == before:
                return None
            self._put(after)
            return self.ledger.note(what, before)

    def _put(self, wishes: Wishes) -> None:
        wishes.save(self.results.columns)
        self.wishes = wishes
        self._flag_again()

    def _forbidden(self, name: str, limits: Limits) -> Iterator[Flag]:
        """The cells of a column that may not stand there."""
        column = self.table[name]
        numbers = numbers_of(column, self.notation(name))
        texts = column.cast(pa.string(), safe=False)
        for row in np.flatnonzero(limits.forbids(texts, numbers)).tolist():
            before = self._found.get((row, name))
            value, repair = self.text((row, name)) or "", before.repair if before else None
            reason = f"{name} is {value}; you said that it must be {limits.in_words()}"
            yield Flag(row, name, value, 1.0, repair, None, None, reason, CAUSE)

    def learn(self) -> bool:
        """Begin to learn from all that was decided; False if that is going on already."""
        with self.lock:
            return self.teacher.learn(self.ledger.standing, self._heeded, self.wishes)

    # ------------------------------------------------------------ what comes out

    def export(self) -> Sequence[Fix]:
        """Write the table with accepted repairs only, the patch and the recipe; the decisions are there already."""
        with self.lock:
            fixes = fixes_of(self.ledger.standing, self.table)
        write_fixed(self.results.source, self.results.reviewed, fixes)
        write_patch(self.results.patch, fixes)
        replaced, single = recipe_of(fixes, self.table)
        write_patch(self.results.recipe, [*replaced, *single])
        return fixes
