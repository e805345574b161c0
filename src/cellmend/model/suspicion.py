"""Errors come in rows and in columns: from what the network says of each cell to the probability that it is wrong.

A share of the rows is dirty, and in those a share of the cells is wrong: so beside an obvious error a doubtful cell
is more suspicious, and an oddity in an otherwise usual row less. A column may err by itself, whatever its rows are. All
shares are learned from the table itself.
Everything here starts from ratio = log p - log p0 of each cell with the cell itself hidden, (B, D): above 0 it looks
clean, below 0 wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from cellmend.model.encoding import Cells
from cellmend.model.evidence import Evidence
from cellmend.model.network import LOG_IMPOSSIBLE, Alpha

EM_ROUNDS = 40  # at most
SETTLED = 1e-4  # relative change of both shares, from which on EM is at its end
START = (0.1, 0.2)  # of dirty rows, and of wrong cells in them
MOST_WRONG = 0.5  # of the cells of a dirty row, or of a column
STANDS_OUT = 3.0  # times as much room as most columns have: less may be that of errors which come in rows
ALL_OVER = 0.1  # of a column: more than errors that come in rows would leave
LEAST_RATE = 0.02  # of a column that errs by itself: less may be by chance
FIRST_LOOK = 3  # the revision from which on cells are compared with chance: by then networks know what follows
LOWEST = (0.1, 0.2, 0.3)  # shares of the values drawn by chance, those that fit their rows least
FROM_NOTHING = 0.04  # of a column that is seen to err: the tails of natural ones hold less
FOLLOWS = 0.3  # of the other cells may at most be like the lower half of chance, or rows tell too little of the column
FEWEST_CELLS = 10  # of a column that are like chance, before it is seen to err: fewer may be so by chance
FEWEST_COLUMNS = 3  # that err, before all are held to
TRUST_IN_LOOKS = 1.25  # times as many errors as are seen may be there
DISTRUST = 2.0  # times as many cells of a column as look wrong are held to be while training
BELIEF = 0.1  # how many rows, for each of the table, are added in thought when dirty ones are counted
BELIEVED_DIRTY = 0.01  # the share of those that is dirty
RARE_SHARE = 0.05  # of clean cells that are rare
RARE_POWER = 0.2  # how much the evidence against a rare cell counts
PRIORS = (0.02, 0.9999)  # that a cell is clean: no row is ever held to be all wrong, or beyond doubt


@dataclass(frozen=True)
class ErrorRates:
    """The share of dirty rows, of wrong cells in them, of clean cells that are rare, and for each column that of cells
    which are wrong whatever their row is; no columns: 0 for all.

    With rows = 1 and rare = 0 every cell stands for itself, as in the paper: alpha is then 1 - cells.
    """

    rows: float
    cells: float
    rare: float
    columns: tuple[float, ...] = ()

    def by_column(self, count: int) -> tuple[float, ...]:
        """The share of wrong cells in each of so many columns, whether the row or the column did it.

        >>> ErrorRates(0.5, 0.2, 0.0, (0.0, 0.05)).by_column(2)
        (0.1, 0.15000000000000002)
        """
        return tuple(self.rows * self.cells + own for own in self.columns or (0.0,) * count)


def rates_between(old: ErrorRates, new: ErrorRates, share: float) -> ErrorRates:
    """Rates of which the new ones make up a share.

    >>> rates_between(ErrorRates(0.2, 0.2, 0.0, (0.0,)), ErrorRates(0.4, 0.2, 0.0, (0.5,)), 0.5).columns
    (0.25,)
    """
    rows, cells, rare = (
        (1 - share) * before + share * own
        for before, own in ((old.rows, new.rows), (old.cells, new.cells), (old.rare, new.rare))
    )
    before = old.columns or (0.0,) * len(new.columns)  # as of models of the methods of the paper
    columns = tuple((1 - share) * b + share * own for b, own in zip(before, new.columns, strict=True))
    return ErrorRates(rows, cells, rare, columns)


def estimate_rates(ratio: Tensor, observed: Tensor, *, rare: float, columns: Sequence[float] = ()) -> ErrorRates:
    """The rates that make a table most likely, by EM; ratio and observed are (N, D).

    Those of columns start from `columns`: one that starts at 0 stays there. Of a dirty row about one cell at least is
    wrong, and half of them at most. Few rows are believed to be dirty until they are seen to be: where p is no better
    than p0, as for a column of mere chance, the cells do not say. One dirty row is added: in a small table none may be
    seen by chance.
    """
    rates = ErrorRates(*START, rare, tuple(columns))
    ratio = temper(ratio.double(), rare)
    believed = 1 + BELIEF * len(ratio)
    for _ in range(EM_ROUNDS):
        dirty, by_row, by_column = who_did_it(ratio, observed, rates)
        cells = (dirty * observed.sum(-1)).sum().clamp_min(1e-6)  # of dirty rows
        share_of_rows = float(dirty.sum() + 1 + BELIEVED_DIRTY * believed) / (len(ratio) + 1 + believed)
        share_of_cells = min(max(float(by_row.sum() / cells), 1 / (ratio.shape[-1] + 1)), MOST_WRONG)
        of_columns = (by_column.sum(0) / observed.sum(0).clamp_min(1)).clamp_max(MOST_WRONG).tolist()
        before, rates = rates, ErrorRates(share_of_rows, share_of_cells, rare, tuple(of_columns) if columns else ())
        moved = abs(rates.rows / before.rows - 1), abs(rates.cells / before.cells - 1)
        if max(moved) < SETTLED:
            break
    return rates


def who_did_it(ratio: Tensor, observed: Tensor, rates: ErrorRates) -> tuple[Tensor, Tensor, Tensor]:
    """Probability that each row is dirty, (N,), and that each cell is wrong because of its row, and of its column,
    (N, D), from tempered ratios (N, D)."""
    dirty, shares = dirty_log_odds(ratio, observed, rates).sigmoid(), wrong_shares(rates, ratio)
    odds = (share.log() - ratio - torch.log1p(-share) for share in shares)
    usual, in_dirty = (torch.where(observed, each.sigmoid(), 0.0) for each in odds)
    in_dirty = in_dirty * dirty.unsqueeze(-1) / shares[1]
    return dirty, in_dirty * rates.cells, (1 - dirty).unsqueeze(-1) * usual + in_dirty * shares[0]


class Suspicions:
    """What training learns, revision by revision, of where the errors of a table lie.

    `room` is the largest share of each column that p0 may have by all values of the column, (D,), or NaN if they do not
    say, as of categories; 0 for columns that do not stand out.
    """

    def __init__(self, room: Tensor) -> None:
        self.room, self.revisions = room.nan_to_num().double(), 0
        self.most = DISTRUST * self.room  # more is held to be natural
        self.erring = torch.zeros_like(room, dtype=torch.bool)  # columns that were seen to err
        self.everywhere, self.untold = False, torch.zeros_like(self.erring)  # columns held to err as the others do
        self.rates = ErrorRates(*START, 0.0, tuple([0.0] * len(room)))

    def state(self) -> dict[str, Tensor]:
        """All that was learned, to go on with after an interruption."""
        rates = self.rates.rows, self.rates.cells, self.rates.rare, *self.rates.columns
        return {
            "revisions": torch.tensor([self.revisions, self.everywhere]),
            "columns": torch.stack([self.most, self.erring.double(), self.untold.double()]),
            "rates": torch.tensor(rates, dtype=torch.float64),
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        self.revisions, self.everywhere = int(state["revisions"][0]), bool(state["revisions"][1])
        self.most, erring, untold = state["columns"].to(self.room.device)
        self.erring, self.untold = erring.bool(), untold.bool()
        rows, cells, rare, *columns = state["rates"].tolist()
        self.rates = ErrorRates(rows, cells, rare, tuple(columns))

    def first_alpha(self, alpha: float) -> Tensor:
        """The alpha of each column to begin with, (D,): lower where its values leave room for errors."""
        return (1 - DISTRUST * self.room).clamp(1 - MOST_WRONG, alpha).float()

    def revise(self, ratio: Tensor, by_chance: Tensor, observed: Tensor) -> ErrorRates:
        """The rates to train on with, by what is seen now and by those before; ratio and observed are (N, D).

        `by_chance` is the ratio of values drawn by chance in place of the cells', (N, D). The rates of columns are
        raised (DISTRUST): a clean component that was given too few errors away would keep the rest of them.
        """
        self.revisions += 1
        found = self._estimate(ratio, observed, rare=0.0)
        self.rates = self._kept(found, self.room) if self.revisions == 1 else found
        self._look(ratio, by_chance, observed)
        raised = (DISTRUST * self._columns(self.rates)).clamp_max(MOST_WRONG)
        return replace(self.rates, columns=tuple(raised.tolist()))

    def settle(self, ratio: Tensor, by_chance: Tensor, observed: Tensor, *, rare: float) -> ErrorRates:
        """The rates in the end, as `revise` is asked."""
        self._look(ratio, by_chance, observed)
        return self._estimate(ratio, observed, rare=rare)

    def _estimate(self, ratio: Tensor, observed: Tensor, *, rare: float) -> ErrorRates:
        """The rates that make the table most likely, (N, D), from the last ones on."""
        found = estimate_rates(ratio, observed, rare=rare, columns=self.rates.columns)
        return self._kept(found, self._columns(found))

    def _look(self, ratio: Tensor, by_chance: Tensor, observed: Tensor) -> None:
        """Compare cells with chance.

        Which columns err is seen once, by a network that still trusted them: one that does not would find ever more.
        """
        if self.revisions < FIRST_LOOK:
            return
        shares = like_chance(ratio, by_chance, in_usual_rows(ratio, observed))
        if self.revisions == FIRST_LOOK:
            enough = LOWEST[-1] * shares[-2] * observed.sum(0) >= FEWEST_CELLS
            self._tell_apart(torch.where(enough, shares[:-1].amin(0), 0.0), shares[-1])
        own, seen, said_by_values = self._columns(self.rates), torch.where(self.erring, shares[-2], 0.0), self.room > 0
        columns = torch.where(said_by_values & (own > 0), own, own.maximum(seen))
        self.most = self.most.maximum(TRUST_IN_LOOKS * seen)
        if self.everywhere:
            told = columns[~self.untold & (columns > LEAST_RATE)]
            usual = told.median() if len(told) else columns.new_zeros(())  # by now all may be held to be natural
            columns, self.most = torch.where(self.untold, usual, columns), torch.where(said_by_values, self.most, usual)
        self.rates = self._kept(self.rates, columns)

    def _tell_apart(self, lowest: Tensor, half: Tensor) -> None:
        """Split columns into erring and clean ones by how chance-like they are: shares of `like_chance`, (D,).

        If more err than are seen to be clean, errors lie everywhere: then a column that rows tell too little of is held
        to err as often as the others do, and none much more often.
        """
        follows = (half - lowest) / (1 - lowest).clamp_min(SETTLED) < FOLLOWS
        self.erring = (lowest > FROM_NOTHING) & (standing_out(lowest) > 0) & follows
        erring = self.erring | (self._columns(self.rates) > LEAST_RATE)
        clean = ~erring & (lowest <= FROM_NOTHING)
        self.everywhere = bool(erring.sum() > clean.sum().clamp_min(FEWEST_COLUMNS - 1))
        self.untold = ~erring & self.everywhere

    def _columns(self, rates: ErrorRates) -> Tensor:
        return self.room.new_tensor(rates.columns)

    def _kept(self, rates: ErrorRates, columns: Tensor) -> ErrorRates:
        """With these rates of columns, (D,), capped; a rate of one half or more is natural and becomes 0."""
        within = torch.where(columns < MOST_WRONG - SETTLED, columns, 0.0).minimum(self.most)
        return replace(rates, columns=tuple(within.tolist()))


def standing_out(shares: Tensor) -> Tensor:
    """Shares of columns, (D,), where one is far above most others or above ALL_OVER, and 0 elsewhere, also where
    nothing is said (NaN).

    Errors that come in rows leave all columns the same little room: then rows tell better. What would be mostly error
    is a column that is natural and spread evenly, as dates are.

    >>> standing_out(torch.tensor([0.02, 0.03, 0.3, torch.nan, 0.0]))
    tensor([0.0000, 0.0000, 0.3000, 0.0000, 0.0000])
    """
    said = shares.nan_to_num()
    usual = shares[~shares.isnan()].median() if (~shares.isnan()).any() else said.sum()
    stands_out = (said > STANDS_OUT * usual + LEAST_RATE) | (said > ALL_OVER)
    return torch.where(stands_out & (said < MOST_WRONG), said, 0.0)


def in_usual_rows(ratio: Tensor, observed: Tensor) -> Tensor:
    """Probability that each cell's row is clean by its other cells, (N, D); 0 where nothing is observed.

    Errors that come in rows betray each other; those of a column stand in rows that are otherwise usual.
    """
    rates = estimate_rates(ratio, observed, rare=0.0)
    each = _log_evidence(ratio.double(), observed, rates)
    dirty = each.sum(-1, keepdim=True) - each + _log(rates.rows) - _log(1 - rates.rows)
    return torch.where(observed, (-dirty).sigmoid(), 0.0)


def like_chance(ratio: Tensor, by_chance: Tensor, weight: Tensor) -> Tensor:
    """The share of each column's cells that looks drawn by chance, (4, D), as seen below the tenth, the fifth, three
    tenths and the half of chance that fits least; cells have a weight, all (N, D).

    Whatever an error is, if it has nothing to do with its row it is as often among the least fitting tenth as chance
    is. So the errors are at most the share of cells there, divided by a tenth. Natural cells are hardly ever found
    there, if the row tells of them at all.

    >>> by_chance = torch.linspace(0, 1, 1000)[:, None]
    >>> cells = torch.cat([torch.ones(700, 1) + 0.1, by_chance[:300] / 0.3])  # 3 in 10 are drawn by chance
    >>> like_chance(cells, by_chance, torch.ones_like(cells)).flatten().round(decimals=2)
    tensor([0.3000, 0.3000, 0.3000, 0.3000], dtype=torch.float64)
    """
    shares = torch.tensor([*LOWEST, 0.5], dtype=torch.float64, device=ratio.device)
    limits = by_chance.double().quantile(shares, dim=0)  # (4, D)
    below = torch.stack([(weight * (ratio < limit)).sum(0) for limit in limits])
    return below.double() / weight.sum(0).clamp_min(1) / shares[:, None]


def clean_priors(ratio: Tensor, observed: Tensor, rates: ErrorRates) -> Tensor:
    """Probability that each cell is clean by what the other cells of its row look like, (N, D).

    Training takes it for alpha: an oddity in a usual row is then learned, and in a row of errors it is not.
    """
    ratio = ratio.double()  # of a row with a wild cell little would be left in single precision
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
    each, (usual, in_dirty) = _log_evidence(row, observed, rates), wrong_shares(rates, row)
    dirty_row, clean_row = _log(rates.rows) + each.sum(-1, keepdim=True) - each, _log(1 - rates.rows)  # by other cells
    clean = torch.logaddexp(dirty_row + torch.log1p(-in_dirty), clean_row + torch.log1p(-usual))
    wrong = torch.logaddexp(dirty_row + in_dirty.log(), clean_row + usual.log())
    return wrong - own - clean


def dirty_log_odds(ratio: Tensor, observed: Tensor, rates: ErrorRates) -> Tensor:
    """Log odds that each row is dirty, (B,), from tempered ratios (B, D)."""
    return _log_evidence(ratio, observed, rates).sum(-1) + _log(rates.rows) - _log(1 - rates.rows)


def _log_evidence(ratio: Tensor, observed: Tensor, rates: ErrorRates) -> Tensor:
    """How much more likely each cell is in a dirty row than in a clean one, as a logarithm, (B, D)."""
    shares = wrong_shares(rates, ratio)
    usual, dirty = (torch.logaddexp(torch.log1p(-each).expand_as(ratio), each.log() - ratio) for each in shares)
    return torch.where(observed, dirty - usual, 0.0)


def wrong_shares(rates: ErrorRates, like: Tensor) -> tuple[Tensor, Tensor]:
    """The share of wrong cells of each column, (D,): in clean rows, where only the column errs, and in dirty ones."""
    columns = torch.tensor(rates.columns or (0.0,), dtype=like.dtype, device=like.device)
    return columns, columns + rates.cells - columns * rates.cells


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf


def hiding_alpha(rates: ErrorRates, alpha: float, like: Tensor) -> Alpha:
    """The probability that a cell is clean by which cells are hidden when judging: alpha, or less in a column that errs
    more often, (D,)."""
    return (1 - wrong_shares(rates, like.double())[0]).clamp_max(alpha) if rates.columns else alpha


def suspicion_log_odds(evidence: Evidence, cells: Cells, *, rates: ErrorRates, alpha: Alpha) -> Tensor:
    """Log odds that each cell is wrong, (B, D), by all readings of its row; `alpha` is what they were judged with."""
    # In double precision, or a row's last digits would depend on where it stands among the others.
    own, row = (temper(each.double() - log_odds(alpha), rates.rare) for each in (evidence.readings, evidence.alone))
    odds = wrong_log_odds(own, row, cells.observed, rates)  # (R, B, D)
    share = evidence.log_shares.double().unsqueeze(-1)  # (R, B, 1)
    wrong, clean = ((share + F.logsigmoid(each)).logsumexp(0) for each in (odds, -odds))
    return torch.where(cells.values.isfinite(), wrong - clean, -LOG_IMPOSSIBLE)


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


def log_odds(share: Alpha) -> Alpha:
    """log(share / (1 - share))."""
    return share.logit() if isinstance(share, Tensor) else math.log(share) - math.log1p(-share)
