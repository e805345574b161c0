"""What decided cells say of others: a forest over the evidence of cells, and over what was decided of their like.

How far a decision carries is learned too: of each decided cell the forest sees what the other decisions say of cells
with its text, its shape or its outline, and whether that was so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from sklearn.ensemble import ExtraTreesClassifier

from cellmend.decisions.asking import kinds_of
from cellmend.decisions.judged import Judged, Marks, log_odds
from cellmend.posterior.known import Floats
from cellmend.table.readtable import DOUBTFUL, MOST
from cellmend.table.values import Bools

TREES = 100  # more say the same
TRIED = 0.4  # of all traits at each branch: many say nothing of this table
OTHERS = 2  # cells that nobody decided, for each single cell that somebody did, with the model's own verdict: decisions
# about some odd cells do not hold for the many usual ones
UNDECIDED = 0.1  # of a decision, that such a verdict counts for
DOUBT = 0.5  # decisions in thought beside those that are counted
NOTHING_AGAINST = -1.0  # least log odds of before: what the model does not know it cannot speak for
# Of the odds after: a constant, the weight of the odds before, and that of the trees. A handful of decisions moves them
# from START by about SPREAD; the suspicion of before is calibrated already.
START, SPREAD = np.array([0.0, 1.0, 0.5]), np.array([1.0, 0.25, 1.0])
DIGITS = 4  # of a trait that are kept, so that model files stay small
PIECE = 10_000  # rows that are looked at at once: a few hundred MB


@dataclass(frozen=True)
class Example:
    """A cell as it looked when it was decided."""

    column: int
    traits: tuple[float, ...]
    marks: Marks
    wrong: bool

    @property
    def flagged(self) -> bool:
        """Did the model hold the cell to be wrong?"""
        return self.traits[0] >= 0  # log odds of suspicion

    @classmethod
    def of(cls, judged: Judged, row: int, place: int, *, wrong: bool) -> Example:
        """A cell of a table with its verdict."""
        traits = np.round(judged.traits(np.array([row]))[0, place].astype(np.float64), DIGITS)
        marks = judged.marks[place][judged.columns[place].codes[row]]
        return cls(place, tuple(traits.tolist()), marks, wrong)


def undecided(judged: Judged, decided: Bools) -> list[Example]:
    """Some cells of kinds of which none was decided, with the verdict of the model.

    None if only whole rows were decided, which are a fair sample already.
    """
    kinds = kinds_of(judged, judged.suspicion)
    free = np.flatnonzero(judged.held & ~np.isin(kinds, kinds[decided]))
    single = decided[(judged.held & ~decided).any(axis=1)]
    drawn = np.random.default_rng(0).choice(free, min(len(free), OTHERS * int(single.sum())), replace=False)
    cells = (divmod(cell, decided.shape[1]) for cell in sorted(drawn.tolist()))
    return [Example.of(judged, *cell, wrong=bool(judged.suspicion[cell] >= DOUBTFUL)) for cell in cells]


@dataclass(frozen=True)
class Tally:
    """Decisions that were counted: of wrong cells, and of right ones."""

    wrong: int = 0
    right: int = 0

    def plus(self, example: Example, times: int = 1) -> Tally:
        """With one more decision, or with one less."""
        return Tally(self.wrong + times * example.wrong, self.right + times * (not example.wrong))

    @property
    def says(self) -> float:
        """What the decisions say, from -1 (right) to 1 (wrong).

        >>> Tally().says, Tally(1, 0).says, Tally(3, 3).says
        (0.0, 0.6666666666666666, 0.0)
        """
        return (self.wrong - self.right) / (self.wrong + self.right + DOUBT)


Key = tuple[int, int, str]  # column, number of the mark, mark
NOTHING = Tally()
NO_MARKS: Marks = ("", "", "")  # of a gap


class Lesson:
    """What examples of decided cells teach; `others` are cells that nobody decided, as the model has them."""

    def __init__(self, examples: Sequence[Example], others: Sequence[Example]) -> None:
        self.examples, self.others = examples, others

    def speaks_of(self, judged: Judged) -> bool:
        """Are there examples of right and of wrong cells, with as much evidence as the cells that are judged have?"""
        traits = judged.traits(np.zeros(0, dtype=np.int64)).shape[-1]  # fewer where the network speaks alone
        return len({each.wrong for each in self.examples}) == 2 and len(self.examples[0].traits) == traits

    def learned(self, judged: Judged) -> Floats:
        """The share of trees by which each cell is wrong, (N, D); 0 where there is nothing to be learned."""
        learned = np.zeros_like(judged.suspicion)
        of_texts = ([self._said_of(at, each) for each in [*own, NO_MARKS]] for at, own in enumerate(judged.marks))
        columns = zip(judged.columns, of_texts, strict=True)
        said = np.stack([np.array(of_text)[column.codes] for column, of_text in columns], axis=1)  # (N, D, marks)
        for start in range(0, len(learned), PIECE):
            rows = np.arange(start, min(start + PIECE, len(learned)))
            held = judged.held[rows]
            if held.any():
                traits = np.concatenate([judged.traits(rows), said[rows]], axis=-1)[held]
                learned[start : start + PIECE][held] = self._forest.predict_proba(traits)[:, 1]
        return learned

    def revise(self, judged: Judged) -> Floats:
        """The suspicion of all cells, (N, D), after what was decided of some.

        A column without decisions stays as it was. A flag falls only in a column of which a flagged cell was decided to
        be right. A cell that was not flagged does not become more suspicious without being flagged.
        """
        before, places = judged.suspicion, np.arange(judged.suspicion.shape[1])
        odds = (_parts(log_odds(before), self.learned(judged)) * self._weights).sum(axis=-1)  # of each cell by itself
        revised = 1 / (1 + np.exp(-odds))
        decided = np.isin(places, [each.column for each in self.examples])
        excused = np.isin(places, [each.column for each in self.examples if each.flagged and not each.wrong])
        revised = np.where((before >= DOUBTFUL) & ~excused, np.maximum(revised, before), revised)
        revised = np.where((before < DOUBTFUL) & (revised < DOUBTFUL), np.minimum(revised, before), revised)
        return np.where(judged.held & decided, revised, before)

    @cached_property
    def _weights(self) -> Floats:
        """Weights of a constant, the odds before and those by trees, (3,), by which the verdicts are likeliest, each
        judged by trees that have not seen it."""
        usual = sum(each.wrong for each in self.examples) / len(self.examples)
        unseen = np.nan_to_num(self._forest.oob_decision_function_[: len(self.examples), 1], nan=usual)
        parts = _parts(np.array([each.traits[0] for each in self.examples]), unseen)
        return fit_weights(parts, np.array([each.wrong for each in self.examples], dtype=np.float64))

    @cached_property
    def _forest(self) -> ExtraTreesClassifier:
        every = [*self.examples, *self.others]
        traits = [[*each.traits, *self._said_of(each.column, each.marks, each)] for each in self.examples]
        traits += [[*each.traits, *self._said_of(each.column, each.marks)] for each in self.others]
        weights = np.repeat([1.0, UNDECIDED], [len(self.examples), len(self.others)])
        forest = ExtraTreesClassifier(TREES, max_features=TRIED, bootstrap=True, oob_score=True, random_state=0)
        return forest.fit(np.array(traits), [each.wrong for each in every], weights)

    # ------------------------------------------------------------ what was decided of cells that are alike

    @cached_property
    def _tallies(self) -> dict[Key, Tally]:
        """What was decided of cells with each mark."""
        found: dict[Key, Tally] = {}
        for each in self.examples:
            for key in _keys(each.column, each.marks):
                found[key] = found.get(key, NOTHING).plus(each)
        return found

    def _said_of(self, column: int, marks: Marks, but: Example | None = None) -> list[float]:
        """What decisions, but for one, say of cells with each mark."""
        tallies = [self._tallies.get(key, NOTHING) for key in _keys(column, marks)]
        return [(tally if but is None else tally.plus(but, -1)).says for tally in tallies]


def _keys(column: int, marks: Marks) -> list[Key]:
    """Under which decisions about a cell are counted."""
    return [(column, number, mark) for number, mark in enumerate(marks)]


def _parts(before: Floats, learned: Floats) -> Floats:
    """What the odds that a cell is wrong are made of, (..., 3)."""
    trees = log_odds(np.clip(learned, 1 - MOST, MOST))  # they saw a few hundred others at most
    return np.stack([np.ones_like(before), np.maximum(before, NOTHING_AGAINST), trees], axis=-1)


def fit_weights(parts: Floats, wrong: Floats) -> Floats:
    """The weights, (3,), by which verdicts (n,) are likeliest, given what their odds are made of, (n, 3)."""

    def loss(weights: Floats) -> float:
        odds = parts @ weights
        return float((np.logaddexp(0, odds) - wrong * odds).sum() + (((weights - START) / SPREAD) ** 2).sum() / 2)

    bounds = [(None, None), (0, None), (0, None)]  # neither ever speaks for its opposite
    found: Floats = minimize(loss, START, bounds=bounds).x
    return found
