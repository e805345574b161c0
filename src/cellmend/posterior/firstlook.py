"""The first look at a table, before any network: evidence from its columns and rows, and the cells to hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cellmend.posterior.evidence import Figures, Portrait
from cellmend.posterior.experts import expert_evidence
from cellmend.posterior.known import Coded
from cellmend.posterior.posterior import Posterior, Sample, Weighed, weigh
from cellmend.posterior.weigher import Context, Weigher
from cellmend.table.readtable import DOUBTFUL, ReadTable
from cellmend.table.texts import Unread


class Seen(NamedTuple):
    """What a first look sees of a table."""

    table: ReadTable  # without the cells that their text shows to be wrong: the network must not take them for true
    figures: Figures  # evidence of all cells
    posterior: Posterior  # of all cells, before the network speaks
    portrait: Portrait  # what is known of the columns, by this table too if it is judged as a whole
    weighed: Weighed  # all cells, for when the network has spoken
    sample: Sample | None  # likewise what the table looks like; none if rows are judged by themselves


@dataclass(frozen=True)
class FirstLook:
    """What was learned of a table without a network."""

    portrait: Portrait
    context: Context  # what its columns look like on the whole

    @classmethod
    def learn(cls, table: ReadTable, weigher: Weigher) -> tuple[FirstLook, Seen]:
        """From a table; with it what is seen of that table."""
        portrait, coded = Portrait.learn(table.arrow)
        figures = portrait.figures(coded, rows_alone=table.frame.is_array).with_more(expert_evidence(table))
        sample = Sample.of(weigher, figures)
        look = cls(portrait, sample.context())
        weighed = weigh(weigher, figures, look.context)
        posterior = weighed.posterior(look.context.rates)
        doubtful = posterior.of_text >= DOUBTFUL
        says = figures.observed & table.says_something
        doubtful &= 2 * (doubtful & says).sum(axis=0) < says.sum(axis=0)  # a column must keep something to learn
        return look, Seen(table.without(doubtful), figures, posterior, portrait, weighed, sample)

    def look(self, table: ReadTable, weigher: Weigher) -> Seen:
        """What is seen of a table like the one that was learned from.

        A whole table is judged as if its rows had stood there, too: what is new to the model may be usual in it.
        """
        coded = [Coded.of(column) for column in table.arrow.columns]
        for place, name in enumerate(table.names):  # of columns that are written otherwise than learned nothing is said
            if name in table.adapted or isinstance(table.notations.get(name), Unread):
                coded[place] = coded[place].silent
        portrait = self.portrait if table.by_rows else self.portrait.with_more(coded)
        figures = portrait.figures(coded, rows_alone=table.by_rows).with_more(expert_evidence(table))
        sample = None if table.by_rows or not table.rows else Sample.of(weigher, figures)
        context = self.context_with(self.context, table.rows, sample)
        weighed = weigh(weigher, figures, context)
        posterior = weighed.posterior(context.rates)
        return Seen(table.without(posterior.of_text >= DOUBTFUL), figures, posterior, portrait, weighed, sample)

    def context_with(
        self, context: Context, rows: int, sample: Sample | None, network: NDArray[np.float32] | None = None
    ) -> Context:
        """What the table learned from and one with so many rows look like together; `context` is the former."""
        if sample is None:
            return context
        share = rows / (rows + self.portrait.columns[0].rows)
        return context.followed_by(sample.context(network), share)
