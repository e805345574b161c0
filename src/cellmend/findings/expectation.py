"""What the clean component expects at flagged cells, and which other cells of the row matter to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cellmend.model.encoding import Cells
from cellmend.model.evidence import Reconstruction, best, for_each_network, over_networks, probabilities_of
from cellmend.model.network import RVAE
from cellmend.table.priors import BY_FAR

MOST_NAMED = 3  # levels, or columns, in a reason
REMOVED_COLUMNS = 6  # to see whether they matter: several may tell the same
NO_INFLUENCE = 0.05  # log density, or probability: then nothing in the row matters
LONGEST_CHUNK = 8192  # rows decoded at once for that

Meant = dict[tuple[int, int], list[float]]  # for cells of some rows, by row and model column, values to choose from


@dataclass(frozen=True)
class Expectation:
    """What the clean component expects at one flagged cell, in model units."""

    row: int
    column: int  # model column
    value: float
    repair: float
    low: float  # NaN where the column has no order, as high
    high: float
    likely: list[tuple[int, float]]  # level numbers and probabilities, best first; none for numbers
    outside: bool = False  # does the repair itself lie outside of the middle nine tenths, as between two humps?
    matter: tuple[int, ...] = ()  # columns that matter most to the expectation; model columns


@torch.no_grad()
def expect(network: RVAE, cells: Cells, seen: Reconstruction, flagged: Tensor) -> list[Expectation]:
    """Expectations for the cells `flagged` (B, D) of some rows."""
    rows, columns = flagged.nonzero(as_tuple=True)
    asked, place = torch.unique(rows, return_inverse=True)  # bounds take long: of flagged rows only
    bounds = network.interval(seen.decoded[..., asked, :])
    low, high = ((bound.mean(0) if bound.dim() == 3 else bound)[place, columns] for bound in bounds)
    repair = seen.values[rows, columns]
    # The mean of a distribution with several humps can lie outside of the middle nine tenths.
    held = cells.values[rows, columns]
    outside = (repair < low) | (repair > high)  # False where there are no bounds
    numbers = torch.stack([held, repair, torch.minimum(low, repair), torch.maximum(high, repair)])  # (4, F)
    likely: list[list[tuple[int, float]]] = [[] for _ in rows]
    for span, probabilities in probabilities_of(network, seen.decoded):
        own = ((columns >= span.start) & (columns < span.stop)).nonzero()[:, 0]
        at_own = probabilities[rows[own], columns[own] - span.start]  # (own, C)
        top = at_own.topk(min(MOST_NAMED, at_own.shape[-1]), dim=-1)
        for cell, levels, chances in zip(own.tolist(), top.indices.tolist(), top.values.tolist(), strict=True):
            likely[cell] = [pair for pair in zip(levels, chances, strict=True) if pair[1] > 0]
    found = zip(rows.tolist(), columns.tolist(), *numbers.tolist(), likely, outside.tolist(), strict=True)
    return [Expectation(*each) for each in found]


@torch.no_grad()
def log_fits(network: RVAE, seen: Reconstruction, meant: Meant) -> dict[tuple[int, int], list[float]]:
    """How well values that may have been meant fit the rest of their row: log p of each against that of the best."""
    asked = [(row, column, value) for (row, column), values in meant.items() for value in values]
    if not asked:
        return {}
    rows, columns, values = (torch.tensor(each) for each in zip(*asked, strict=True))
    decoded, every = seen.decoded[..., rows.to(seen.decoded.device), :], torch.arange(len(rows))
    best_values = best(network, decoded)
    tried = best_values.clone()
    tried[every, columns] = values.to(tried)
    whole = [Cells(each, torch.ones_like(each, dtype=torch.bool)) for each in (tried, best_values)]
    logs = [over_networks(network.log_clean(for_each_network(network, each), decoded)) for each in whole]
    fits: list[float] = (logs[0] - logs[1])[every, columns].tolist()
    found: dict[tuple[int, int], list[float]] = {}
    for (row, column, _), fit in zip(asked, fits, strict=True):
        found.setdefault((row, column), []).append(fit)
    return found


@torch.no_grad()
def with_reasons(network: RVAE, cells: Cells, shown: Tensor, expected: Sequence[Expectation]) -> list[Expectation]:
    """The expectations with the columns whose removal changes them most, rows counted within `cells`.

    `shown` (B, D) are the cells that speak for the others: observed, and not wrong themselves.
    """
    each_time = max(1, LONGEST_CHUNK // (cells.values.shape[1] + 1))
    pieces = (expected[start : start + each_time] for start in range(0, len(expected), each_time))
    return [explained for piece in pieces for explained in _explained(network, cells, shown, piece)]


def _explained(network: RVAE, cells: Cells, shown: Tensor, piece: Sequence[Expectation]) -> Iterator[Expectation]:
    """Columns are removed one after the other, each time the one that changes the expectation most.

    One by one would not do: of x, y and carat, each of which tells z, the removal of a single one changes nothing.
    """
    rows = torch.tensor([each.row for each in piece], device=shown.device)
    own = torch.tensor([each.column for each in piece], device=shown.device)
    every = torch.arange(len(piece), device=shown.device)
    left = shown[rows]  # (F, D)
    left[every, own] = False
    values, whole, rounds = cells.values[rows], left.clone(), []
    for _ in range(min(REMOVED_COLUMNS, left.shape[1])):
        change = torch.where(left, _changes(network, values, whole, left, own), -1.0)  # (F, D)
        most, column = change.max(-1)
        rounds.append((most, column))
        left[every, column] = False
    changes, columns = (torch.stack(each, -1) for each in zip(*rounds, strict=True))  # (F, rounds)
    for each, change, order in zip(piece, changes.tolist(), columns.tolist(), strict=True):
        wanted = max(BY_FAR * max(change), NO_INFLUENCE)
        enough = next((place for place, reached in enumerate(change, 1) if reached >= wanted), 0)
        yield replace(each, matter=tuple(order[: min(enough, MOST_NAMED)]))


def _changes(network: RVAE, values: Tensor, whole: Tensor, left: Tensor, own: Tensor) -> Tensor:
    """How far the expectation of each cell's own column is from that by the `whole` row, when of what is `left` of it
    each other column is removed too, (F, D): of levels the total variation, of numbers how much less likely the value
    expected before becomes, as a logarithm, since an expectation may also become vague.
    """
    cells, columns = values.shape
    shown = left.unsqueeze(1).repeat(1, columns + 1, 1)  # (F, D + 1, D), the last with nothing removed
    inner = torch.arange(columns, device=left.device)
    shown[:, inner, inner] = False
    shown[:, -1] = whole
    asked = Cells(values.unsqueeze(1).expand(shown.shape).flatten(0, 1), shown.flatten(0, 1))
    decoded = network.decode(network.encode(for_each_network(network, asked)).mu)
    every = torch.arange(cells, device=own.device)
    expected = best(network, decoded).view(cells, columns + 1, columns)[:, -1]  # (F, D)
    tried = Cells(expected.repeat_interleave(columns + 1, 0), torch.ones_like(asked.observed))
    likely = over_networks(network.log_clean(for_each_network(network, tried), decoded))
    likely = likely.view(cells, columns + 1, columns)[every, :, own]  # (F, D + 1)
    change = (likely[:, -1:] - likely[:, :-1]).clamp_min(0)
    for span, probabilities in probabilities_of(network, decoded):
        coded = ((own >= span.start) & (own < span.stop)).nonzero()[:, 0]
        if len(coded):
            of_all = probabilities.view(cells, columns + 1, *probabilities.shape[1:])
            each = of_all[coded, :, own[coded] - span.start]  # (f, D + 1, C)
            change[coded] = (each[:, :-1] - each[:, -1:]).abs().sum(-1) / 2
    return change
