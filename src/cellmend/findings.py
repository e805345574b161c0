"""The table of flagged cells: what stands there, how suspicious it is, what it probably was, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from cellmend.encoding import TableEncoder
from cellmend.inference import Reconstruction, probabilities_of
from cellmend.network import RVAE
from cellmend.tables import Table

TYPES = {
    "row": pa.int64(),
    "column": pa.string(),
    "value": pa.string(),
    "suspicion": pa.float64(),
    "repair": pa.string(),
    "low": pa.float64(),
    "high": pa.float64(),
    "reason": pa.string(),
}
MIXED = ("value", "repair")
LIKELY_LEVELS = 3  # named in a reason at most
LEAST_LIKELY = 0.05  # a level less probable than this is not named


@dataclass(frozen=True)
class Finding:
    """One flagged cell; the fields are the columns of the findings table, in order."""

    row: int  # from 0, the row's place in the table
    column: str
    value: Any
    suspicion: float  # probability that the cell is corrupted
    repair: Any
    low: float | None  # the clean component's central 90 %, where the column is ordered
    high: float | None
    reason: str


@dataclass(frozen=True)
class Expectation:
    """What the clean component expects at one flagged cell, in model units."""

    row: int
    column: int  # model column
    score: float  # -log(1 - suspicion): finer than suspicion, which is 1 for many
    suspicion: float
    repair: float
    low: float  # NaN where the column has no order, as high
    high: float
    likely: list[tuple[int, float]]  # level numbers and probabilities, best first; none for numbers


def expect(
    network: RVAE, doubt: Tensor, suspicion: Tensor, seen: Reconstruction, flagged: Tensor, first_row: int
) -> list[Expectation]:
    """Expectations for the cells `flagged` (B, D) of a chunk whose first row is `first_row`."""
    rows, columns = flagged.nonzero(as_tuple=True)
    asked, place = torch.unique(rows, return_inverse=True)  # bounds take long: of flagged rows only
    bounds = network.interval(seen.decoded[..., asked, :])
    low, high = ((bound.mean(0) if bound.dim() == 3 else bound)[place, columns] for bound in bounds)
    doubted, suspected, repair = (each[rows, columns] for each in (doubt, suspicion, seen.values))
    # The mean of a distribution with several humps can lie outside of the middle nine tenths.
    cells = torch.stack([doubted, suspected, repair, torch.minimum(low, repair), torch.maximum(high, repair)])  # (5, F)
    likely: list[list[tuple[int, float]]] = [[] for _ in rows]
    for span, probabilities in probabilities_of(network, seen.decoded):
        own = ((columns >= span.start) & (columns < span.stop)).nonzero()[:, 0]
        at_own = probabilities[rows[own], columns[own] - span.start]  # (own, C)
        best = at_own.topk(min(LIKELY_LEVELS, at_own.shape[-1]), dim=-1)
        for cell, levels, chances in zip(own.tolist(), best.indices.tolist(), best.values.tolist(), strict=True):
            likely[cell] = [pair for pair in zip(levels, chances, strict=True) if pair[1] > 0]
    places = zip((rows + first_row).tolist(), columns.tolist(), *cells.tolist(), likely, strict=True)
    return [Expectation(*place) for place in places]


def explain(expected: Expectation, table: Table, encoder: TableEncoder) -> Finding:
    """One expectation in the user's units and words."""
    column = encoder.columns[expected.column]
    value = table.arrow.column(encoder.positions[expected.column])[expected.row].as_py()
    low, high = (None if np.isnan(bound) else column.decode_one(bound) for bound in (expected.low, expected.high))
    likely = [(column.decode_one(level), chance) for level, chance in expected.likely]
    return Finding(
        row=expected.row,
        column=column.name,
        value=value,
        suspicion=expected.suspicion,
        repair=column.decode_one(expected.repair),
        low=float(low) if isinstance(low, int | float) else None,
        high=float(high) if isinstance(high, int | float) else None,
        reason=say_why(column.name, value, low, high, likely),
    )


def say_why(name: str, value: Any, low: Any, high: Any, likely: list[tuple[Any, float]]) -> str:
    """The reason in words.

    >>> say_why("z", 31.8, 3.15, 3.21, [])
    'z is 31.8; for a row like this it is usually 3.15 to 3.21'
    >>> say_why("sex", "Male", None, None, [("Female", 0.97), ("Male", 0.03)])
    'sex is Male; for a row like this it is usually Female (97 %)'
    """
    named = [f"{show(level)} ({100 * chance:.0f} %)" for level, chance in likely if chance >= LEAST_LIKELY]
    usual = " or ".join(named) if likely else f"{about(low)} to {about(high)}"
    return f"{name} is {show(value)}; for a row like this it is usually {usual}"


def about(bound: float) -> str:
    """A bound with the digits that matter.

    >>> about(3.1512345678), about(123456789.12), about(12)
    ('3.15123', '123456789', '12')
    """
    return show(bound if isinstance(bound, int) else float(f"{bound:.6g}") if abs(bound) < 1e5 else round(bound))


def show(value: Any) -> str:
    """A value as a person would write it, all digits kept that a float has for sure.

    >>> show(0.1 + 0.2), show(123456789.12), show("Ideal"), show(None)
    ('0.3', '123456789.12', 'Ideal', '')
    """
    if value is None:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def to_frame(findings: list[Finding], table: Table) -> Any:
    """The findings as a DataFrame of the user's kind; pandas for an array.

    `value` and `repair` may be text in one line and a number in the next. pandas holds them as they
    are; other kinds need one type a column, so there they are text.
    """
    cells = {name: [getattr(finding, name) for finding in findings] for name in TYPES}
    texts = {name: [show(v) for v in cells[name]] if name in MIXED else cells[name] for name in TYPES}
    frame = table.frame_of(pa.table({name: pa.array(texts[name], type_) for name, type_ in TYPES.items()}))
    if table.gives_pandas:
        for name in MIXED:
            frame[name] = np.fromiter(cells[name], dtype=object, count=len(findings))
    return frame
