"""The first look at a table, before any network: evidence from its columns and rows, and the cells to hide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cellmend.posterior.evidence import Figures, Portrait
from cellmend.posterior.experts import expert_evidence
from cellmend.posterior.known import Coded
from cellmend.posterior.posterior import Posterior, context_of, weigh
from cellmend.posterior.weigher import Context, Weigher
from cellmend.table.readtable import DOUBTFUL, ReadTable
from cellmend.table.texts import Unread


@dataclass(frozen=True)
class FirstLook:
    """What was learned of a table without a network."""

    portrait: Portrait
    context: Context  # what its columns look like on the whole

    @classmethod
    def learn(cls, table: ReadTable, weigher: Weigher) -> tuple[FirstLook, ReadTable, Figures]:
        """From a table; with it the table without the cells that are probably wrong, and the evidence of all cells."""
        portrait, coded = Portrait.learn(table.arrow)
        figures = portrait.figures(coded, rows_alone=table.frame.is_array).with_more(expert_evidence(table))
        look = cls(portrait, context_of(weigher, figures))
        doubtful = look.posterior(figures, weigher).of_text >= DOUBTFUL
        doubtful &= 2 * doubtful.sum(axis=0) < figures.observed.sum(axis=0)  # a column must keep something to learn
        return look, table.without(doubtful), figures

    def look(self, table: ReadTable, weigher: Weigher) -> tuple[ReadTable, Figures]:
        """A table without the cells that are probably wrong, so that the network does not take them for true, and the
        evidence of all cells."""
        coded = [Coded.of(column) for column in table.arrow.columns]
        for place, name in enumerate(table.names):  # of columns that are written otherwise than learned nothing is said
            if name in table.adapted or isinstance(table.notations.get(name), Unread):
                coded[place] = coded[place].silent
        alone = table.rows_alone or table.frame.is_array  # the rows of an array have no order
        figures = self.portrait.figures(coded, rows_alone=alone).with_more(expert_evidence(table))
        return self.without_doubtful(table, figures, weigher), figures

    def without_doubtful(self, table: ReadTable, figures: Figures, weigher: Weigher) -> ReadTable:
        """The table with the cells that are wrong by their text, more probably than not, taken for missing."""
        return table.without(self.posterior(figures, weigher).of_text >= DOUBTFUL)

    def posterior(self, figures: Figures, weigher: Weigher) -> Posterior:
        """What the evidence says of each cell before the network speaks."""
        return weigh(weigher, figures, self.context)

    def to_json(self) -> dict[str, Any]:
        return {"portrait": self.portrait.to_json(), "context": self.context.to_json()}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> FirstLook:
        return cls(Portrait.from_json(entry["portrait"]), Context.from_json(entry["context"]))
