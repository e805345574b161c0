"""What decided cells say of others: a forest over traits, and over what was decided of cells that are alike.

How far a decision carries is learned too: of each decided cell the forest sees what the other decisions say of cells
with its value, its form or its cause, and whether that was so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier

from cellmend.decisions.habits import TRAITS, Floats, form_of, shape_of
from cellmend.decisions.portrait import CELL_TRAITS, MARKS, Portrait, Seen, log_odds
from cellmend.decisions.trust import Trust, weigh

TREES = 100
TRIED = 0.4  # of all traits, at each branch of a tree
SUSPICION = len(TRAITS) + CELL_TRAITS.index("suspicion")  # its place among the traits
PIECE = 100_000  # cells that are looked at at once
CAUSE, COMPANY = MARKS.index("cause"), MARKS.index("company")
UNDECIDED = 0.1  # of a decision, that the model's own verdict of a cell counts for: so decisions about some odd cells
# are not taken for what holds of the many that nobody was asked about
FEW = 0.5  # decisions that are added where decisions are counted
PRIOR = 2.0  # decisions by which the rate of a column is drawn to that of all
SIDES = 0.5  # suspicion from which the model holds a cell to be wrong
SURER = 0.6  # what decisions must make of a cell that the model holds to be right, or it stays so
NOTHING_AGAINST = -1.0  # log odds of a cell that nothing speaks against: what the model does not know it cannot say
SUREST = 0.99  # what decisions about other cells can make of a cell


@dataclass(frozen=True)
class Example:
    """A decided cell as it looked when it was decided."""

    column: int
    traits: tuple[float, ...]
    marks: tuple[str, ...]  # one for each of MARKS
    wrong: bool
    weight: float  # of how many cells that are alike it is one


class Lesson:
    """Learned from examples of both, right and wrong cells."""

    def __init__(self, portrait: Portrait, examples: Sequence[Example], others: Sequence[Example]) -> None:
        self.portrait, self.examples = portrait, examples
        self.others = others  # cells that nobody decided, as the model has them

    @cached_property
    def _forest(self) -> ExtraTreesClassifier:
        traits = [[*each.traits, *self._said_of(number)] for number, each in enumerate(self.examples)]
        traits += [[*each.traits, *self._said_of_other(each)] for each in self.others]
        forest = ExtraTreesClassifier(TREES, max_features=TRIED, bootstrap=True, oob_score=True, random_state=0)
        weights = np.repeat([1.0, UNDECIDED], [len(self.examples), len(self.others)])
        return forest.fit(np.array(traits), [each.wrong for each in (*self.examples, *self.others)], weights)

    @cached_property
    def _tallies(self) -> list[list[dict[str, tuple[int, int]]]]:
        """For each column and mark, how many cells were decided wrong and right."""
        tallies: list[list[dict[str, tuple[int, int]]]] = [[{} for _ in MARKS] for _ in self.portrait.habits]
        for each in self.examples:
            for tally, key in zip(tallies[each.column], self._keys(each), strict=True):
                wrong, right = tally.get(key, (0, 0))
                tally[key] = (wrong + 1, right) if each.wrong else (wrong, right + 1)
        return tallies

    def _keys(self, each: Example) -> list[str]:
        """Marks as keys; company is a value beside another one."""
        return [*each.marks[:COMPANY], company_key(each.marks[COMPANY], each.marks[0])]

    def _said_of(self, number: int) -> list[float]:
        """What the other decisions say of an example: of cells with its marks, and of its column."""
        each = self.examples[number]
        own = (1, 0) if each.wrong else (0, 1)
        said = [
            net(wrong - own[0], right - own[1]) if key and (wrong or right) else 0.0
            for tally, key in zip(self._tallies[each.column], self._keys(each), strict=True)
            for wrong, right in [tally.get(key, own)]
        ]
        wrong, count = self._of_columns[each.column]
        return [*said, self._rate(wrong - own[0], count - sum(own))]

    def _said_of_other(self, each: Example) -> list[float]:
        """What decisions say of a cell that is none of them."""
        tallies = zip(self._tallies[each.column], self._keys(each), strict=True)
        said = [net(*tally.get(key, (0, 0))) if key else 0.0 for tally, key in tallies]
        return [*said, self._rate(*self._of_columns[each.column])]

    @cached_property
    def _of_columns(self) -> list[tuple[int, int]]:
        """For each column how many cells were decided wrong, and how many were decided."""
        counts = [[0, 0] for _ in self.portrait.habits]
        for each in self.examples:
            counts[each.column][0] += each.wrong
            counts[each.column][1] += 1
        return [(wrong, count) for wrong, count in counts]

    def _rate(self, wrong: int, count: int) -> float:
        return (wrong + PRIOR * self._usual) / (count + PRIOR)

    # ------------------------------------------------------------ what it says of other cells

    @property
    def has_both(self) -> bool:
        """Are there examples of right and of wrong cells?"""
        return len({each.wrong for each in self.examples}) == 2

    def learned(self, seen: Seen) -> Floats:
        """The probability that each cell is wrong by decisions alone, (N, D); 0 for empty cells."""
        learned = np.zeros_like(seen.suspicion)
        for place, column in enumerate(seen.columns):
            held = np.flatnonzero(column.places >= 0)
            for start in range(0, len(held), PIECE):
                rows = held[start : start + PIECE]
                traits = np.concatenate([seen.traits(place, rows), self._said(seen, place)[rows]], axis=1)
                learned[rows, place] = self._forest.predict_proba(traits)[:, 1]
        return learned

    def revise(self, seen: Seen) -> Floats:
        """The suspicion of all cells after what was decided of some, (N, D); that of empty cells stays.

        It falls only where flagged cells were decided to be right, and not where decisions speak against a cell. A cell
        that was not suspicious must be surer than others.
        """
        learned, before = self.learned(seen), seen.suspicion
        odds = self._trust.odds(_told_apart(before), _bounded(learned))
        revised: Floats = 1 / (1 + np.exp(-odds))
        borne_out = (learned > self._usual) | ((before >= SIDES) & ~self._may_fall(seen))
        revised = np.where(borne_out, np.maximum(revised, before), revised)
        unmoved = (revised < SURER) & (before < SIDES)
        revised[unmoved] = np.minimum(revised, before)[unmoved]
        present = np.stack([column.places >= 0 for column in seen.columns], axis=1)
        return np.where(present, revised, before)

    @property
    def _usual(self) -> float:
        """The share of wrong cells among the decided ones."""
        return sum(each.wrong for each in self.examples) / len(self.examples)

    @cached_property
    def _trust(self) -> Trust:
        """By what trees say of decided cells that they have not seen."""
        unseen = np.nan_to_num(self._forest.oob_decision_function_[: len(self.examples), 1], nan=self._usual)
        of_each = [(each.traits[SUSPICION], each.wrong, each.weight) for each in self.examples]
        before, wrong, shares = np.array(of_each, dtype=np.float64).T
        return weigh(np.maximum(before, NOTHING_AGAINST), _bounded(unseen), wrong, shares)

    def _may_fall(self, seen: Seen) -> NDArray[np.bool_]:
        """Cells of a column or of a cause of which a flagged cell was decided to be right, (N, D)."""
        excused = [each for each in self.examples if each.traits[SUSPICION] >= 0 and not each.wrong]
        columns, causes = {each.column for each in excused}, {each.marks[CAUSE] for each in excused}
        may_fall = np.full(seen.suspicion.shape, "" in causes)
        if seen.causes:
            rows, places = np.array(list(seen.causes)).T
            may_fall[rows, places] = [cause in causes for cause in seen.causes.values()]
        may_fall[:, sorted(columns)] = True
        return may_fall

    def _said(self, seen: Seen, place: int) -> Floats:
        """What decisions say of the cells of a column, (N, MARKS + 1): by each mark, and of the column."""
        column, tallies = seen.columns[place], self._tallies[place]
        said = np.zeros((len(column.places), len(MARKS) + 1))
        for number, made in enumerate((column.texts, map(shape_of, column.texts), map(form_of, column.texts))):
            by_text = [net(*tallies[number].get(key, (0, 0))) for key in made]
            said[:, number] = np.array([*by_text, 0.0])[column.places]
        for (row, own), cause in seen.causes.items():
            if own == place:
                said[row, CAUSE] = net(*tallies[CAUSE].get(cause, (0, 0)))
        if telling := self.portrait.telling[place]:
            said[:, COMPANY] = _beside(seen, telling[0].telling, place, tallies[COMPANY])
        said[:, -1] = self._rate(*self._of_columns[place])
        return said


def _told_apart(suspicion: Floats) -> Floats:
    """Log odds; all cells that nothing speaks against have the same."""
    return np.maximum(log_odds(suspicion), NOTHING_AGAINST)


def _bounded(learned: Floats) -> Floats:
    """Log odds of what trees say, which is never sure."""
    return log_odds(np.clip(learned, 1 - SUREST, SUREST))


def _beside(seen: Seen, telling: int, told: int, tally: Mapping[str, tuple[int, int]]) -> Floats:
    """What decisions say of cells with the same value beside the same other value, (N,)."""
    one, other = seen.columns[telling], seen.columns[told]
    codes = [{text: code for code, text in enumerate(each.texts)} for each in (one, other)]
    said = np.zeros(len(other.places))
    for key, counts in tally.items():
        beside, _, text = key.partition("\x1f")
        if key and beside in codes[0] and text in codes[1]:
            said[(one.places == codes[0][beside]) & (other.places == codes[1][text])] = net(*counts)
    return said


def company_key(beside: str, text: str) -> str:
    """A value beside another one; "" if one of them is missing."""
    return f"{beside}\x1f{text}" if beside and text else ""


def net(wrong: int, right: int) -> float:
    """What so many decisions say, from -1 (right) to 1 (wrong).

    >>> net(0, 0), net(1, 0), net(3, 3)
    (0.0, 0.6666666666666666, 0.0)
    """
    return (wrong - right) / (wrong + right + FEW)


def examples_from_json(entries: Sequence[dict[str, Any]]) -> list[Example]:
    """The opposite of dataclasses.asdict, of each."""
    return [Example(**e | {"traits": tuple(e["traits"]), "marks": tuple(e["marks"])}) for e in entries]
