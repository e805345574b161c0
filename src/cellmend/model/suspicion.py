"""Errors come in rows: from what the network says of each cell to the probability that the cell is wrong.

A share of the rows is dirty, and in those a share of the cells is wrong: so beside an obvious error a doubtful cell
is more suspicious, and an oddity in an otherwise usual row less. Both shares are learned from the table itself.
Everything here starts from ratio = log p - log p0 of each cell with the cell itself hidden, (B, D): above 0 it looks
clean, below 0 wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from cellmend.model.encoding import Cells
from cellmend.model.evidence import Evidence

EM_ROUNDS = 40  # at most
SETTLED = 1e-4  # relative change of both shares, from which on EM is at its end
START = (0.1, 0.2)  # of dirty rows, and of wrong cells in them
MOST_WRONG = 0.5  # of the cells of a dirty row
BELIEF = 0.1  # how many rows, for each of the table, are added in thought when dirty ones are counted
BELIEVED_DIRTY = 0.01  # the share of those that is dirty
RARE_SHARE = 0.05  # of clean cells that are rare
RARE_POWER = 0.2  # how much the evidence against a rare cell counts
PRIORS = (0.02, 0.9999)  # that a cell is clean: no row is ever held to be all wrong, or beyond doubt
LOG_ODDS_IMPOSSIBLE = 100.0  # that a value which its column cannot hold is wrong


@dataclass(frozen=True)
class ErrorRates:
    """The share of dirty rows, of wrong cells in them, and of clean cells that are rare.

    With rows = 1 and rare = 0 every cell stands for itself, as in the paper: alpha is then 1 - cells.
    """

    rows: float
    cells: float
    rare: float


def estimate_rates(ratio: Tensor, observed: Tensor, *, rare: float) -> ErrorRates:
    """The rates that make a table most likely, by EM; ratio and observed are (N, D).

    Of a dirty row about one cell at least is wrong, and half of them at most. Few rows are believed to be dirty until
    they are seen to be: where p is no better than p0, as for a column of mere chance, the cells do not say. One dirty
    row is added: in a small table none may be seen by chance.
    """
    rows, columns = ratio.shape
    rates = ErrorRates(*START, rare)
    ratio = temper(ratio.double(), rare)
    believed = 1 + BELIEF * rows
    for _ in range(EM_ROUNDS):
        wrong = torch.where(observed, wrong_log_odds(ratio, ratio, observed, rates).sigmoid(), 0.0).sum()
        dirty = dirty_log_odds(ratio, observed, rates).sigmoid()
        cells = (dirty * observed.sum(-1)).sum().clamp_min(1e-6)  # of dirty rows
        share_of_rows = float(dirty.sum() + 1 + BELIEVED_DIRTY * believed) / (rows + 1 + believed)
        share_of_cells = min(max(float(wrong / cells), 1 / (columns + 1)), MOST_WRONG)
        before, rates = rates, ErrorRates(share_of_rows, share_of_cells, rare)
        moved = abs(rates.rows / before.rows - 1), abs(rates.cells / before.cells - 1)
        if max(moved) < SETTLED:
            break
    return rates


def clean_priors(ratio: Tensor, observed: Tensor, rates: ErrorRates | None = None) -> Tensor:
    """Probability that each cell is clean by what the other cells of its row look like, (N, D).

    Training takes it for alpha: an oddity in a usual row is then learned, and in a row of errors it is not. Rates are
    estimated from the rows themselves, if none are given.
    """
    ratio = ratio.double()  # of a row with a wild cell little would be left in single precision
    rates = rates or estimate_rates(ratio, observed, rare=0.0)
    return (-wrong_log_odds(torch.zeros_like(ratio), ratio, observed, rates)).sigmoid().clamp(*PRIORS)


def temper(ratio: Tensor, rare: float) -> Tensor:
    """The ratio when a share of the clean cells is rare: for those it counts but a fifth, (B, D).

    No network knows every natural oddity. Without this, each would be an error for sure.
    """
    if not rare:
        return ratio
    return torch.logaddexp(ratio + math.log1p(-rare), RARE_POWER * ratio + math.log(rare))


def wrong_log_odds(own: Tensor, row: Tensor, observed: Tensor, rates: ErrorRates) -> Tensor:
    """Log odds that each cell is wrong, (B, D), from tempered ratios, (B, D).

    `own` speaks for the cell itself, `row` for what its neighbours say of the row.
    """
    each = _log_evidence(row, observed, rates)
    clean, wrong = math.log1p(-rates.cells), math.log(rates.cells)
    dirty = _log(rates.rows) + each.sum(-1, keepdim=True) - each  # the row is dirty, by its other cells
    return dirty + wrong - own - torch.logaddexp(dirty + clean, torch.full_like(dirty, _log(1 - rates.rows)))


def dirty_log_odds(ratio: Tensor, observed: Tensor, rates: ErrorRates) -> Tensor:
    """Log odds that each row is dirty, (B,), from tempered ratios (B, D)."""
    return _log_evidence(ratio, observed, rates).sum(-1) + _log(rates.rows) - _log(1 - rates.rows)


def _log_evidence(ratio: Tensor, observed: Tensor, rates: ErrorRates) -> Tensor:
    """How much more likely each cell is in a dirty row than in a clean one, as a logarithm, (B, D)."""
    clean = torch.full_like(ratio, math.log1p(-rates.cells))
    return torch.where(observed, torch.logaddexp(clean, math.log(rates.cells) - ratio), 0.0)


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf


def suspicion_log_odds(evidence: Evidence, cells: Cells, *, rates: ErrorRates, alpha: float) -> Tensor:
    """Log odds that each cell is wrong, (B, D), by all readings of its row; `alpha` is what they were judged with."""
    # In double precision, or a row's last digits would depend on where it stands among the others.
    own, row = (temper(each.double() - log_odds(alpha), rates.rare) for each in (evidence.readings, evidence.alone))
    odds = wrong_log_odds(own, row, cells.observed, rates)  # (R, B, D)
    share = evidence.log_shares.double().unsqueeze(-1)  # (R, B, 1)
    wrong, clean = ((share + F.logsigmoid(each)).logsumexp(0) for each in (odds, -odds))
    return torch.where(cells.values.isfinite(), wrong - clean, LOG_ODDS_IMPOSSIBLE)


def expected_errors(ratio: Tensor, cells: Cells, rates: ErrorRates) -> Tensor:
    """The number of wrong cells to expect in each row, (B,), with only the judged cell hidden.

    To tell dirty rows this is better than the sum of the suspicions: cells hidden because they look wrong no longer
    witness against each other.
    """
    return torch.where(cells.observed, suspicion_alone(ratio, cells, rates), 0.0).sum(-1)


def suspicion_alone(ratio: Tensor, cells: Cells, rates: ErrorRates) -> Tensor:
    """Probability that each cell is wrong, (B, D), with only itself hidden."""
    ratio = temper(ratio.double(), rates.rare)
    wrong = wrong_log_odds(ratio, ratio, cells.observed, rates).sigmoid()
    return torch.where(cells.values.isfinite(), wrong, 1.0)  # what its column cannot hold


def log_odds(share: float) -> float:
    """log(share / (1 - share))."""
    return math.log(share) - math.log1p(-share)
