"""Natural extremes: numbers beyond nearly all others that the rest of their row bears out.

A network knows what it has seen. The dearest car of a list is also the heaviest and the most powerful, but no row
showed what lies out there, and every one of its cells looks wrong. A line goes on where a network ends: columns of
numbers, some as logarithms, are taken to follow from each other linearly, and where the line through the usual rows
leads towards an extreme number, it is natural. Of other numbers nothing is said. And a rare level that comes with far
numbers again and again, as a timeout does with slow answers, is natural beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cellmend.model.columns import EncodedColumn, NumberColumn, RealColumn
from cellmend.model.encoding import Cells

FEWEST_NUMBERS = 3  # columns, between which lines are learned
ENDS = (0.01, 0.99)  # shares of a column's cells: further out is extreme
SKEWED = 1.5  # times as far from the middle lies the upper twentieth as the lower: then logarithms are taken
CUT = 3.0  # deviations: what lies further out has no more weight when the line is learned
FARTHEST = 20.0  # deviations, as far as a line is followed
RIDGE = 0.05  # of the variance: columns that tell the same do not cancel out
LEAST_WIDTH = 0.05  # deviations: no line is exact
WIDER = 1.5  # times as wide as within the usual range
NATURAL = 0.1  # of the extreme numbers of clean rows follow such a line
MOST_COLUMNS = 500  # of numbers, between which lines are learned
LED = 0.5  # of the way from the middle to where extremes begin, at least: lines lead less far than natural extremes lie
LEADS = 2.0  # spreads from the middle, from where on the rest of a row leads to extremes
FAR_ENOUGH = 0.1  # of the way to the number, at least: a slipped point goes further
FEWEST_TOGETHER = 5  # rows of a rare level, from which it is known what it comes with
RARE = 0.05  # of the rows have a rare level at most
MOST_COMPANIES = 500  # of levels and numbers that come together
PIECE = 256  # rows at once


Scale = tuple[float, float, float | None, float, float]  # as `_scale` gives it


@dataclass(frozen=True)
class Extremes:
    """Lines between the columns of numbers of a table, R of them, as learned from its usual rows."""

    places: tuple[int, ...]  # (R,) model columns
    low: tuple[float, ...]  # (R,) beyond which a model value is extreme
    high: tuple[float, ...]
    origin: tuple[float | None, ...]  # (R,) model value of 0, from which logarithms are taken; None: they are not
    middle: tuple[float, ...]  # (R,) of the numbers or logarithms
    spread: tuple[float, ...]
    slopes: tuple[tuple[float, ...], ...]  # (R, R) of each column over the others, in spreads
    widths: tuple[float, ...]  # (R,) of what the line leaves open, in spreads
    rows: int  # that it was learned from
    companies: tuple[tuple[float, ...], ...] = ()  # column and level, column of numbers, from where on, and side

    @classmethod
    def learn(cls, columns: Sequence[EncodedColumn], cells: Cells) -> Self:
        """Lines through the usual rows of a table, (N, D)."""
        values, known = cells.values.double().cpu().numpy(), cells.observed.cpu().numpy()
        known = known & np.isfinite(values)
        numbers = [d for d, column in enumerate(columns) if isinstance(column, NumberColumn) and known[:, d].any()]
        if not 0 < len(numbers) <= MOST_COLUMNS:
            return cls((), (), (), (), (), (), (), (), len(values))
        each = [_scale(values[known[:, d], d], _zero(columns[d])) for d in numbers]
        found = _companies(columns, values, known, dict(zip(numbers, each, strict=True)))
        companies = tuple(islice(found, MOST_COMPANIES))
        if len(numbers) < FEWEST_NUMBERS:
            return cls((), (), (), (), (), (), (), (), len(values), companies)
        low, high, origin, middle, spread = zip(*each, strict=True)
        scaled = [
            np.where(known[:, d], (_straight(values[:, d], zero) - mid) / width, 0.0)
            for d, zero, mid, width in zip(numbers, origin, middle, spread, strict=True)
        ]
        usual = np.clip(np.stack(scaled, axis=1), -CUT, CUT)  # (N, R)
        slopes = _slopes(usual)
        left = np.abs(usual - usual @ slopes.T)
        widths = [max(1.4826 * float(np.median(left[known[:, d], r])), LEAST_WIDTH) for r, d in enumerate(numbers)]
        places = tuple(numbers)
        rows_of_slopes = tuple(tuple(row) for row in slopes.round(6).tolist())
        return cls(places, low, high, origin, middle, spread, rows_of_slopes, tuple(widths), len(values), companies)

    def excuse(self, cells: Cells, log_clean: Tensor) -> Tensor:
        """log p of each cell, (B, D), raised where a line leads to an extreme number."""
        if not self.places:
            return log_clean
        places = torch.tensor(self.places, device=log_clean.device)
        held, known, extreme = self._extreme(cells)
        rows = extreme.any(-1).nonzero()[:, 0]
        raised = log_clean.clone()
        for first in range(0, len(rows), PIECE):
            own = rows[first : first + PIECE]
            led, line = self._lines(held[own], known[own])
            before = log_clean[own][:, places]
            after = torch.logaddexp(before.double() + math.log1p(-NATURAL), line + math.log(NATURAL)).to(before.dtype)
            piece = raised[own]
            piece[:, places] = torch.where(extreme[own] & led, torch.maximum(before, after), before)
            raised[own] = piece
        return raised

    def borne_out(self, cells: Cells) -> Tensor:
        """Which cells, (B, D), are extreme numbers where the rest of their row leads to extremes too, near or not; or a
        rare level and a far number that come together elsewhere."""
        found = self._together(cells)
        if self.places:
            held, known, extreme = self._extreme(cells)
            _, line = self._led(held, known)
            own = self._scaled(held)
            leads = (line.abs() > LEADS) & (line.sign() == own.sign()) & (line.abs() > FAR_ENOUGH * own.abs())
            found[:, torch.tensor(self.places, device=found.device)] |= extreme & leads
        return found

    def _together(self, cells: Cells) -> Tensor:
        """Which cells, (B, D), are a rare level or a far number of the same row that come together in others."""
        columns = torch.tensor(self.companies, dtype=torch.float64, device=cells.values.device).reshape(-1, 5).T
        at, number, (level, limit, side) = columns[0].long(), columns[2].long(), columns[[1, 3, 4]]
        beyond = side * (cells.values[:, number] - limit) > 0  # (B, K)
        both = cells.observed[:, at] & cells.observed[:, number] & (cells.values[:, at] == level) & beyond
        counts = torch.zeros_like(cells.observed, dtype=torch.int32)
        return counts.index_add(1, at, both.int()).index_add(1, number, both.int()) > 0

    def _led(self, held: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Model values (B, R) in spreads from the middle, and where the lines lead."""
        scaled = torch.where(known, self._scaled(held), 0.0).clamp(-FARTHEST, FARTHEST)
        # Summed one by one: a product of matrices would take the last rows otherwise than the others.
        return scaled, (scaled.unsqueeze(-2) * self._of("slopes", held)).sum(-1)

    def _extreme(self, cells: Cells) -> tuple[Tensor, Tensor, Tensor]:
        """The numbers (B, R), 0 where there is none, which of them are known, and which are extreme."""
        places = torch.tensor(self.places, device=cells.values.device)
        values, known = cells.values[:, places].double(), (cells.observed & cells.values.isfinite())[:, places]
        held = torch.where(known, values, 0.0)
        return held, known, known & ((held < self._of("low", held)) | (held > self._of("high", held)))

    def _lines(self, held: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Whether the lines lead to extremes on the side of model values (B, R), and their log density around them."""
        zero, logs, spread = (self._of(name, held) for name in ("zero", "logs", "spread"))
        above = (held - zero).clamp_min(1e-9)
        scaled, line = self._led(held, known)
        far = 1 + scaled.square().sum(-1, keepdim=True) / self.rows
        width = WIDER * self._of("widths", held) * far.sqrt()
        steep = torch.where(logs > 0, -above.log(), 0.0) - spread.log()
        low, high = (self._scaled(self._of(name, held)) for name in ("low", "high"))
        led = torch.where(scaled < 0, line < LED * low, line > LED * high)
        return led, -0.5 * ((scaled - line) / width).square() - width.log() - 0.5 * math.log(2 * math.pi) + steep

    def _scaled(self, held: Tensor) -> Tensor:
        """Model values, (B, R) or (R,), as numbers or logarithms in spreads from their middle."""
        zero, logs, middle, spread = (self._of(name, held) for name in ("zero", "logs", "middle", "spread"))
        return (torch.where(logs > 0, (held - zero).clamp_min(1e-9).log(), held) - middle) / spread

    @cached_property
    def _arrays(self) -> dict[str, Tensor]:
        plain = {name: torch.tensor(getattr(self, name)).double() for name in ("low", "high", "middle", "spread")}
        logs = torch.tensor([zero is not None for zero in self.origin]).double()
        zero = torch.tensor([0.0 if zero is None else zero for zero in self.origin]).double()
        slopes, widths = torch.tensor(self.slopes).double(), torch.tensor(self.widths).double()
        return plain | {"logs": logs, "zero": zero, "slopes": slopes, "widths": widths}

    def _of(self, name: str, like: Tensor) -> Tensor:
        return self._arrays[name].to(like.device)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any] | None) -> Self:
        """As a model file holds it; files of before have none."""
        if entry is None:
            return cls((), (), (), (), (), (), (), (), 0)
        plain = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
        nested = {name: tuple(tuple(row) for row in entry.get(name, ())) for name in ("slopes", "companies")}
        return cls(**plain | nested)


def _companies(
    columns: Sequence[EncodedColumn], values: NDArray[np.float64], known: NDArray[np.bool_], scales: Mapping[int, Scale]
) -> Iterator[tuple[float, ...]]:
    """Rare levels of which at least half of the rows have far numbers, as `Extremes.companies`; values are (N, D)."""
    numbers = list(scales)
    origins, middles, spreads = (list(each) for each in list(zip(*scales.values(), strict=True))[2:])
    straight = [_straight(values[:, d], origin) for d, origin in zip(numbers, origins, strict=True)]
    far = (np.stack(straight, axis=1) - middles) / spreads  # (N, R)
    for at in (place for place, column in enumerate(columns) if column.levels):
        order = np.flatnonzero(known[:, at])[np.argsort(values[known[:, at], at], kind="stable")]
        levels, starts, sizes = np.unique(values[order, at], return_index=True, return_counts=True)
        rare = (sizes >= FEWEST_TOGETHER) & (sizes <= RARE * len(values))
        if not rare.any():
            continue
        there = known[order][:, numbers]
        rows = np.add.reduceat(there, starts, axis=0, dtype=np.int64)  # (levels, R)
        for side in (-1.0, 1.0):
            beyond = np.add.reduceat(there & (side * far[order] > LEADS), starts, axis=0, dtype=np.int64)
            together = rare[:, None] & (rows >= FEWEST_TOGETHER) & (2 * beyond >= rows)
            for level, r in np.argwhere(together).tolist():
                edge = middles[r] + side * LEADS * spreads[r]
                edge = edge if origins[r] is None else origins[r] + math.exp(edge)
                yield float(at), float(levels[level]), float(numbers[r]), float(edge), side


def _zero(column: EncodedColumn) -> float:
    """The model value of 0."""
    return column.to_model(0.0) if isinstance(column, RealColumn) else 0.0


def _scale(values: NDArray[np.float64], zero: float) -> Scale:
    """Where extremes begin, from where logarithms are taken, and middle and spread of what is straight."""
    low, lower, middle, upper, high = np.quantile(values, (ENDS[0], 0.05, 0.5, 0.95, ENDS[1])).tolist()
    origin = zero if low > zero and upper - middle > SKEWED * (middle - lower) else None
    least, centre, most = np.quantile(_straight(values, origin), (0.16, 0.5, 0.84)).tolist()
    return low, high, origin, centre, max((most - least) / 2, 1e-6)


def _straight(values: NDArray[np.float64], origin: float | None) -> NDArray[np.float64]:
    """Numbers, or their logarithms from the origin on."""
    return values if origin is None else np.log(np.maximum(values - origin, 1e-9))


def _slopes(usual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Slopes of each column over all others, (R, R), from scaled numbers (N, R): by the inverse of the covariance.

    >>> x = np.random.default_rng(0).normal(size=10_000)
    >>> _slopes(np.stack([x, x], axis=1)).round(1) + 0.0
    array([[0., 1.],
           [1., 0.]])
    """
    covariance = usual.T @ usual / len(usual)
    precision = np.linalg.inv(covariance + RIDGE * np.eye(len(covariance)))
    slopes = -precision / np.diag(precision)[:, None]
    np.fill_diagonal(slopes, 0.0)
    return slopes
