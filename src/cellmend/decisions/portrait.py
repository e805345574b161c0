"""A table as decisions see it: what is usual in its columns, and the traits and marks of each of its cells."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellmend.decisions.company import MOST_TELLING, Codes, Company, by_told, company_from_json, learn_company, numbered
from cellmend.decisions.habits import TRAITS, Coded, Floats, Habits, coded, form_of, habits_from_json, shape_of
from cellmend.table.readtable import ReadTable

SUREST = 8.0  # log odds of suspicion that are told apart
MARKS = ("value", "shape", "form", "cause", "company")  # by which a decision speaks for other cells of its column
CELL_TRAITS = ("suspicion", "elsewhere_in_row", "company", "worst_company", "all_company", "usual_suspicion")
UNNAMED = "unnamed"  # cause of a suspect that has no name
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no column is lost
WIDTH = len(TRAITS) + len(CELL_TRAITS)  # traits of a cell


@dataclass(frozen=True)
class Seen:
    """Cells of a table as decisions see them, by what is usual in a portrait."""

    portrait: Portrait
    suspicion: Floats  # (N, D) before anything was decided
    columns: Sequence[Coded]
    codes: Sequence[Codes]  # numbers of the values, by which company is known
    causes: Mapping[tuple[int, int], str]  # of suspects, by row and column

    def traits(self, place: int, rows: Codes) -> Floats:
        """Of these cells of a column, none of them empty, (n, WIDTH)."""
        own = self.suspicion[rows, place]
        ratios = np.zeros((len(rows), MOST_TELLING))
        for number, each in enumerate(self.portrait.telling[place]):
            ratios[:, number] = each.log_ratio(self.codes[each.telling][rows], self.codes[place][rows])
        by_cell = [
            log_odds(own), np.log1p(self.suspicion[rows].sum(axis=1) - own), ratios[:, 0], ratios.min(axis=1),
            ratios.sum(axis=1), np.full(len(rows), self.portrait.suspicion[place]),
        ]  # fmt: skip
        return np.concatenate(
            [self._of_texts(place)[self.columns[place].places[rows]], np.stack(by_cell, axis=1)], axis=1
        )

    def _of_texts(self, place: int) -> Floats:
        """Traits of the different texts of a column, (texts, TRAITS), worked out once."""
        if place not in self._known_texts:
            habits, texts = self.portrait.habits[place], self.columns[place].texts
            self._known_texts[place] = habits.traits(texts) if habits and texts else np.zeros((len(texts), len(TRAITS)))
        return self._known_texts[place]

    @cached_property
    def _known_texts(self) -> dict[int, Floats]:
        return {}

    def text(self, row: int, place: int) -> str:
        """What stands in a cell; "" if it is empty."""
        column = self.columns[place]
        return column.texts[column.places[row]] if column.places[row] >= 0 else ""

    def marks(self, row: int, place: int) -> tuple[str, ...]:
        """By what a cell is like others of its column, one text for each of MARKS; "" is like none."""
        text, telling = self.text(row, place), self.portrait.telling[place]
        beside = self.text(row, telling[0].telling) if telling else ""
        return text, shape_of(text), form_of(text), self.causes.get((row, place), ""), beside

    @cached_property
    def prints(self) -> NDArray[np.uint64]:
        """A number for each row by which rows that hold the same in every column are known, (N,)."""
        whole = np.zeros(len(self.suspicion), dtype=np.uint64)
        for column in self.columns:
            digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in [*column.texts, ""]]
            own = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
            whole = whole * MULTIPLIER + own[column.places]
        return whole


@dataclass(frozen=True)
class Portrait:
    """What is usual in every column, and which columns tell others."""

    habits: tuple[Habits | None, ...]  # None for a column without any cell
    company: tuple[Company, ...]
    suspicion: tuple[float, ...]  # mean of each column

    @classmethod
    def of(cls, table: ReadTable, suspicion: Floats) -> Portrait:
        """The portrait of a table with the suspicion of its cells, (N, D)."""
        columns = [coded(table, place) for place in range(len(table.names))]
        habits = [Habits.of(column) if column.texts else None for column in columns]
        known = [place for place, own in enumerate(habits) if own is not None]
        found = learn_company([columns[place] for place in known], [own for own in habits if own is not None])
        company = (Company(known[e.telling], known[e.told], e.keys, e.counts, e.sizes) for e in found)
        return cls(tuple(habits), tuple(company), tuple(suspicion.mean(axis=0).tolist()))

    def see(self, table: ReadTable, suspicion: Floats) -> Seen:
        """The cells of a table, with their suspicion (N, D)."""
        columns = [coded(table, place) for place in range(len(self.habits))]
        codes = [
            numbered(column, own) if own else np.full(table.rows, -1)
            for column, own in zip(columns, self.habits, strict=True)
        ]
        causes = {(each.row, each.column): each.cause or UNNAMED for each in table.suspects}
        return Seen(self, suspicion, columns, codes, causes)

    @cached_property
    def telling(self) -> list[list[Company]]:
        """For each column those that tell it."""
        return list(by_told(self.company, len(self.habits)))

    def to_json(self) -> dict[str, Any]:
        """As a model file holds it."""
        return {
            "habits": [own and asdict(own) for own in self.habits],
            "company": [asdict(each) for each in self.company],
            "suspicion": list(self.suspicion),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Portrait:
        """The opposite of to_json."""
        habits = tuple(own and habits_from_json(own) for own in entry["habits"])
        return cls(habits, tuple(map(company_from_json, entry["company"])), tuple(entry["suspicion"]))


def log_odds(suspicion: Floats) -> Floats:
    """Log odds of a probability, as far as they matter.

    >>> log_odds(np.array([0.5, 1.0])).tolist()
    [0.0, 8.0]
    """
    with np.errstate(divide="ignore"):
        return np.clip(np.log(suspicion) - np.log1p(-suspicion), -SUREST, SUREST)
