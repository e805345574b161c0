"""What flagged cells may have been: all hypotheses side by side, and how probable each is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cellmend.findings.expectation import Expectation
from cellmend.findings.wording import Wording
from cellmend.model.columns import NumberColumn
from cellmend.posterior import forms
from cellmend.posterior.evidence import Figures, Portrait, places_of
from cellmend.posterior.experts import RELATIONS
from cellmend.posterior.known import Coded
from cellmend.posterior.meant import FIGURES, Hypothesis, Spellings, exchanged, figures_of, told_by_pairs
from cellmend.posterior.posterior import Posterior
from cellmend.posterior.weigher import OF_CELL, RepairWeigher
from cellmend.table.causes.named import RULE
from cellmend.table.readtable import Suspect
from cellmend.table.values import Floats, Ints, as_text

NINE_TENTHS = 3.29  # deviations of a Gaussian that hold nine tenths of it
INSIDE = -1.353  # log density of a Gaussian at the ends of its middle nine tenths, against its top
FILLED_IN = ("level", "number", "pair")  # sources that look at the rest of the row: what is usual, and not what must be
MOST_SPELLED = 2_000  # different texts of a table for which other spellings are looked up


class Asked(NamedTuple):
    """One cell, what experts have against it, and what the network expects there."""

    row: int
    place: int  # of its column in the table
    suspects: Sequence[Suspect]
    expected: Expectation | None  # None if the column is not modelled


class Hypotheses:
    """Collects hypotheses about cells of one table."""

    def __init__(self, portrait: Portrait, figures: Figures, words: Wording) -> None:
        self.portrait, self.figures, self.words = portrait, figures, words
        self.spelled: dict[tuple[int, str], list[Hypothesis]] = {}
        self._placeholders: dict[str, bool] = {}

    @cached_property
    def codes(self) -> Ints:
        """The place of each cell's text among the learned ones, (N, D)."""
        columns = [Coded(texts, codes) for texts, codes in zip(self.figures.texts, self.figures.codes.T, strict=True)]
        return places_of(self.portrait.columns, columns)

    def _texts_of(self, row: int) -> list[str]:
        """All texts of a row, "" for gaps."""
        each = zip(self.figures.texts, self.figures.codes[row].tolist(), strict=True)
        return ["" if code < 0 else str(texts[code].as_py()) for texts, code in each]

    @cached_property
    def spellings(self) -> list[Spellings]:
        return [Spellings(known) for known in self.portrait.columns]

    def text(self, cell: Asked) -> str:
        """What stands in the cell."""
        code = int(self.figures.codes[cell.row, cell.place])
        return "" if code < 0 else str(self.figures.texts[cell.place][code].as_py())

    def of(self, cell: Asked) -> list[Hypothesis]:
        """All that the cell may have been, each meaning once for each source; a placeholder only if the cell is written
        nearly so, and never the same without a question mark, which says that somebody was in doubt."""
        text = self.text(cell)
        found = [*self._of_text(cell.place, text), *self._of_experts(cell), *self._of_network(cell)]
        told = told_by_pairs(self.portrait, self.codes, cell.row, cell.place)
        found += [] if told is None else [told]
        if self.figures.of("exchange_gain", cell.row, cell.place) > 0:
            confused = exchanged(self.portrait, self._texts_of(cell.row), cell.place)
            found += [] if confused is None else [confused]
        ruled_out = "", text, text.replace("?", "").strip() if "?" in text else text
        kept = {(each.source, each.meant): each for each in found if each.meant not in ruled_out}
        placeholders = self._are_placeholders([each.meant for each in kept.values()])
        each_is_one = zip(kept.values(), placeholders, strict=True)
        return [each for each, is_one in each_is_one if not (is_one and each.source in FILLED_IN)]

    def _are_placeholders(self, texts: Sequence[str]) -> list[bool]:
        """Does each text stand for nothing? Found out once for each different text."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._placeholders]:
            matches = forms.matches(pa.array(new, pa.string()), forms.PLACEHOLDER)
            self._placeholders.update(zip(new, matches.tolist(), strict=True))
        return [self._placeholders[text] for text in texts]

    def _of_text(self, place: int, text: str) -> list[Hypothesis]:
        key = place, text
        if key not in self.spelled:
            many = len(self.spelled) >= MOST_SPELLED
            self.spelled[key] = [] if many or not text else list(self.spellings[place].of(text))
        return self.spelled[key]

    @staticmethod
    def _of_experts(cell: Asked) -> Iterator[Hypothesis]:
        for suspect in cell.suspects:
            source = "relation" if suspect.cause in (*RELATIONS, RULE) else "slip"
            for meant in suspect.meant[:3]:
                because = suspect.reason if meant == suspect.meant[0] else f"probably {meant}"
                yield Hypothesis(meant, source, because, suspect.suspicion)

    def _of_network(self, cell: Asked) -> Iterator[Hypothesis]:
        if cell.expected is None:
            return
        column = self.words.encoder.columns[cell.expected.column]
        if cell.expected.likely:
            for level, chance in cell.expected.likely[:2]:
                yield Hypothesis(as_text(self.words.write(column, level)), "level", "", chance)
        elif self.portrait.columns[cell.place].holds_dates:
            return  # of days the network knows about when, and not which
        elif not cell.expected.outside and not column.is_amount(cell.expected.value, cell.expected.repair):
            unit = column.sd if isinstance(column, NumberColumn) and column.kind != "real" else 1.0
            sure = float(np.exp(-(cell.expected.high - cell.expected.low) / unit))
            repair = cell.expected.repair
            repair = min(column.few, key=lambda value: abs(value - repair)) if column.few else repair
            yield Hypothesis(as_text(self.words.write(column, repair)), "number", "", sure)

    def figures_for(
        self, cells: Sequence[Asked], hypotheses: Sequence[list[Hypothesis]], fits: Sequence[list[float]]
    ) -> list[Floats]:
        """Figures of each hypothesis about each cell."""
        meant: dict[int, list[str]] = {}
        for cell, own in zip(cells, hypotheses, strict=True):
            meant.setdefault(cell.place, []).extend(each.meant for each in own)
        for place, texts in meant.items():
            self.spellings[place].shares_of_outlines(texts)  # of all at once, which is faster than of one cell each
        return [self._figures(*each) for each in zip(cells, hypotheses, fits, strict=True)]

    def _figures(self, cell: Asked, hypotheses: list[Hypothesis], fits: list[float]) -> Floats:
        """Figures of each hypothesis about a cell."""
        column, pairs = self.spellings[cell.place], self.portrait.pairs
        places = [column.place.get(each.meant, -1) for each in hypotheses]
        supports = [pairs.support(self.codes, cell.row, cell.place, place) for place in places]
        return figures_of(self.text(cell), hypotheses, column, supports, fits)


def weighed(
    weigher: RepairWeigher, posterior: Posterior, cells: Sequence[Asked], figures: Sequence[Floats]
) -> list[Floats]:
    """How probable each hypothesis about each cell is, if the cell is wrong."""
    if not figures:
        return []
    sizes = np.cumsum([len(each) for each in figures])[:-1]
    meant = np.split(weigher.chances(joined(posterior, cells, figures)), sizes)  # of each cell, (H,)
    suspicion = posterior.suspicion  # of the whole table: worked out once
    learned = [own / np.maximum(own, suspicion[c.row, c.place]) for own, c in zip(meant, cells, strict=True)]
    return [np.maximum(each, told_by_interval(own)) for each, own in zip(learned, figures, strict=True)]


def told_by_interval(figures: Floats) -> Floats:
    """How much of the column's range the network rules out, for hypotheses about one cell, (H,), that were typed so but
    for a slip and lie in its interval; 0 for others. What the network works out itself has digits that nobody typed."""
    number, sure, fit, says = (FIGURES.index(name) for name in ("number", "expert_sure", "net_fit", "net_chance"))
    intervals = figures[figures[:, number] > 0, sure]  # e to the minus width, in deviations
    if not len(intervals):
        return np.zeros(len(figures))
    ruled_out = max(1 + np.log(max(intervals[0], 1e-9)) / NINE_TENTHS, 0.0)
    typed = figures[:, [FIGURES.index(name) for name in ("digits", "point", "slip", "relation")]]
    return np.where((figures[:, says] > 0) & (figures[:, fit] >= INSIDE) & typed.any(axis=1), ruled_out, 0.0)


def joined(posterior: Posterior, cells: Sequence[Asked], figures: Sequence[Floats]) -> Floats:
    """Figures of all hypotheses about some cells, with the log odds that each cell is wrong and its families of causes
    beside them, (H, k)."""
    each = []
    for cell, own in zip(cells, figures, strict=True):
        place = cell.row, cell.place
        of_cell = np.append(posterior.log_odds(*place), posterior.families(*place))
        each.append(np.concatenate([own, np.tile(of_cell, (len(own), 1))], axis=1))
    return np.concatenate(each) if each else np.zeros((0, len(FIGURES) + OF_CELL))
