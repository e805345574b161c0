"""A small picture of a column, as numbers: how its values are spread, and where one cell and its repair lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.review.limits import numbers_of
from cellmend.table.texts import Notation
from cellmend.table.values import level_text, readable

if TYPE_CHECKING:
    from cellmend.report.axis import Axis

DRAWN_ROWS = 100_000  # of a longer table every second, third ... row is counted
LEVELS = 8  # the most common ones, which get a bar each
TELLING = 0.5  # of the cells hold one of them, or the bars say nothing: of identifiers, names, prose


@dataclass(frozen=True)
class Place:
    """Where a value lies in a picture."""

    text: str
    bar: int | None  # None: in none of those that are drawn
    count: int | None = None  # cells that hold it, of levels


@dataclass(frozen=True)
class Picture:
    """Bars from left to right, or from the most common level on; the value and the repair have their places."""

    kind: str  # "numbers", "levels" or "none"
    counts: list[int]
    labels: list[str]  # of each bar
    ticks: list[str]  # below the bars of numbers
    value: Place | None
    repair: Place | None
    others: int = 0  # levels that are not drawn


@dataclass(frozen=True)
class Sketch:
    """What is drawn of a column whatever the cell: kept, since many cells of a column are looked at."""

    notation: Notation | None
    axis: Axis | None  # of numbers
    counts: list[int]
    levels: dict[str, int]  # cells for each level, the most common first

    def picture(self, value: str | None, repair: str | None) -> Picture:
        """With the places of a value and of a repair."""
        place = self._on_axis if self.axis is not None else self._among_levels
        value_place, repair_place = (None if text is None else place(text) for text in (value, repair))
        if self.axis is not None:
            labels = [self.axis.describe(bar) for bar in range(len(self.counts))]
            return Picture("numbers", self.counts, labels, self.axis.ticks(), value_place, repair_place)
        shown = list(self.levels)[:LEVELS]
        if sum(self.levels[level] for level in shown) < TELLING * sum(self.levels.values()):
            return Picture("none", [], [], [], value_place, repair_place, len(self.levels))
        counts = [self.levels[level] for level in shown]
        return Picture("levels", counts, shown, [], value_place, repair_place, len(self.levels) - len(shown))

    def _on_axis(self, text: str) -> Place:
        assert self.axis is not None  # noqa: S101 - only asked where there is one
        said = numbers_of(pa.array([text], pa.string()), self.notation)
        number = None if said is None else said[0].as_py()
        number = _plain_number(text) if number is None or math.isnan(number) else number
        if number is None or not math.isfinite(number):
            return Place(text, None)
        return Place(text, int(np.searchsorted(self.axis.edges, number, side="right")))

    def _among_levels(self, text: str) -> Place:
        shown = list(self.levels)[:LEVELS]
        return Place(text, shown.index(text) if text in shown else None, self.levels.get(text, 0))


def sketch(column: pa.ChunkedArray, notation: Notation | None, *, is_category: bool) -> Sketch:
    """The spread of a column; numbers that are categories are drawn as levels."""
    from cellmend.report.axis import axis_of  # with scikit-learn behind it, for which the first page need not wait

    step = -(-len(column) // DRAWN_ROWS)
    drawn = column if step <= 1 else column.take(pa.array(np.arange(0, len(column), step)))
    numbers = None if is_category else numbers_of(drawn, notation)
    if numbers is not None:
        values = numbers.to_numpy(zero_copy_only=False) if isinstance(numbers, pa.Array) else numbers.to_numpy()
        finite = values[np.isfinite(values)]
        if len(finite):
            holds_days = pa.types.is_temporal(drawn.type) or (notation is not None and notation.noun == "date")
            axis = axis_of(finite, "D" if holds_days else "", notation)
            return Sketch(notation, axis, axis.count(finite).tolist(), {})
    found = pc.value_counts(readable(drawn))
    order = np.argsort(-found.field("counts").to_numpy(), kind="stable").tolist()
    names, counts = found.field("values").to_pylist(), found.field("counts").to_pylist()
    return Sketch(notation, None, [], {level_text(names[place]): counts[place] for place in order})


def _plain_number(text: str) -> float | None:
    """The number that a text is, or the days since 1970 of a date.

    >>> _plain_number("2.5"), _plain_number("1970-01-03"), _plain_number("two")
    (2.5, 2.0, None)
    """
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(np.datetime64(text).astype("datetime64[s]").astype(np.int64)) / 86_400
    except ValueError:
        return None
