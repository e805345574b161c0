"""Judge: what a model says of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn.functional import softplus

from cellmend.decisions.judged import Judged
from cellmend.errors import SettingError
from cellmend.model.encoding import Cells, EncodedTable
from cellmend.model.evidence import Evidence, Reconstruction, each_chunk, filled_up, in_chunks
from cellmend.model.hidden import judge_hidden, log_hidden
from cellmend.model.model import Model, Weighing
from cellmend.model.network import Alpha, Bound
from cellmend.model.published import cell_nll, cell_pi, cell_pi_clamped, judge_whole_rows, lower_bound, reconstruct
from cellmend.model.suspicion import ErrorRates, hiding_alpha, log_odds, suspicion_alone, suspicion_log_odds
from cellmend.model.violations import SUREST, after_violations, given_violations
from cellmend.model.voice import Voice
from cellmend.posterior.experts import odds_of_their_own
from cellmend.posterior.firstlook import Seen
from cellmend.posterior.posterior import Posterior
from cellmend.posterior.tails import Tails
from cellmend.posterior.weigher import NETWORK
from cellmend.progress import progress
from cellmend.settings import SCORES, Settings, one_of
from cellmend.table.kinds import refuse_unmodelled
from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.schema import IGNORE

Floats = NDArray[np.float64]
Score = Callable[[Evidence, Cells], Tensor]  # of each cell, (B, D)


@dataclass(frozen=True)
class Examined:
    """Some rows of a table, all that was found out about them, and what they should be like."""

    rows: NDArray[np.int64]  # (n,) places in the table
    cells: Cells  # (n, D)
    trusted: Tensor  # (n, D) cells that speak for the others: observed, and not probably wrong themselves
    seen: Reconstruction  # the rows as the clean component sees them


def seen_of(encoded: EncodedTable) -> Seen:
    """What a first look saw of a table; to be asked for only where evidence is weighed."""
    assert encoded.seen is not None  # noqa: S101
    return encoded.seen


class Judge:
    """Answers about tables by a model, by the method of the settings or by another one."""

    def __init__(self, model: Model, settings: Settings, method: str | None = None) -> None:
        self.model, self.settings = model, settings
        self._last: tuple[EncodedTable, Judged] | None = None  # findings ask for what suspicion asked for
        self.method = settings.check_method(method)
        self.hides = settings.repair_method == "hidden"
        # As estimated when fitting; with the methods of the paper, which may be asked for later, as alpha says.
        self.rates = model.calibration.rates if self.hides else published_rates(settings.alpha)

    def encode(self, table: ReadTable) -> EncodedTable:
        """The table as the network sees it, without the cells that a first look finds wrong, and its evidence."""
        weighing, seen = self.model.weighing, None
        if self.hides and weighing is not None:
            seen = weighing.first_look.look(table, weighing.weigher)
        else:
            refuse_unmodelled(self.model.reader.schema)
        return self.model.encoder.encode_seen(table, seen)

    # ------------------------------------------------------------ of cells

    def suspicion(self, encoded: EncodedTable) -> Floats:
        """Probability that each cell is wrong, (N, all columns), by the model, by its column and by what was taught."""
        return self._as_taught(self.untaught(encoded))

    def untaught(self, encoded: EncodedTable) -> Judged:
        """What is said of each cell as if nothing had been decided by people."""
        if self._last is not None and self._last[0] is encoded:
            return self._last[1]
        if self.weighs(encoded):
            return self.hear(encoded, self.voice(encoded))
        suspicion = self._score(encoded, self._suspicion)[0]
        judged = Judged(encoded.table, self.model.encoder.spread(suspicion, encoded.table))
        self._last = encoded, judged
        return judged

    def hear(self, encoded: EncodedTable, voice: Voice) -> Judged:
        """The same by what the network said already; remembered."""
        weighing, seen, table = self.weighing, seen_of(encoded), encoded.table
        said = self.figures_of(encoded, voice, weighing.tails)
        context = weighing.first_look.context_with(weighing.context, table.rows, seen.sample, said)
        found = seen.weighed.posterior(context.rates, said).beside(odds_of_their_own(table))
        asked = [column.kind != IGNORE or bool(column.reason) for column in self.model.reader.schema]
        found = replace(found, observed=found.observed & np.array(asked))  # never what the user told to ignore
        found = after_violations(found, table.violations)
        judged = Judged(table, found.suspicion, seen.figures, found, seen.portrait)
        self._last = encoded, judged
        return judged

    def weighs(self, encoded: EncodedTable) -> bool:
        """Is all evidence weighed, as by the default, or does the network speak alone, as in the paper?"""
        return self.hides and self.model.weighing is not None and encoded.figures is not None

    def posterior(self, encoded: EncodedTable) -> Posterior:
        """What all evidence together says of each cell; to be asked for only where it is weighed."""
        found = self.untaught(encoded).posterior
        assert found is not None  # noqa: S101
        return found

    def voice(self, encoded: EncodedTable) -> Voice:
        """What the network says of each modelled cell; of those that a first look hid too, hidden like any other.

        Of cells by which a column of dates or a counter goes on in a newer table it can say nothing.
        """
        cells, said = encoded.whole, self._said(encoded)
        hidden = (cells.observed & ~encoded.cells.observed).cpu().numpy()
        rows = np.flatnonzero(hidden.any(axis=1))
        if len(rows):
            shown = self._said(replace(encoded, cells=cells[torch.from_numpy(rows)]))
            said[:, rows] = np.where(hidden[rows], shown, said[:, rows])
        told = np.ones_like(hidden) if encoded.table.by_rows else ~self.model.profile.gone_on(cells)
        known, usual = cells.known.cpu().numpy(), encoded.cells.observed.cpu().numpy()
        return Voice(said[0], said[1], known & told, usual & told)

    def _said(self, encoded: EncodedTable) -> Floats:
        """Log odds by all readings, and the ratio with nothing else hidden, (2, N, D)."""
        return np.stack(self._score(encoded, self._log_odds, self._alone))

    def figures_of(self, encoded: EncodedTable, voice: Voice, tails: Tails) -> NDArray[np.float32]:
        """What the network says of each cell as figures, (N, all columns, figures of NETWORK)."""
        columns, rows = self.model.encoder.columns, self.model.replay.stands_for
        said = np.zeros((encoded.table.rows, len(encoded.table.names), len(NETWORK)), dtype=np.float32)
        rates, newer = self.rates.by_column(len(columns)), not encoded.table.by_rows
        said[:, self.model.encoder.positions] = voice.figures(tails, rates, rows, newer=newer)
        return said

    @property
    def weighing(self) -> Weighing:
        """What it takes to weigh evidence; to be asked for only where evidence is weighed."""
        assert self.model.weighing is not None  # noqa: S101
        return self.model.weighing

    def decided(
        self, encoded: EncodedTable, suspicion: Floats, flagged: NDArray[np.bool_]
    ) -> dict[tuple[int, int], Suspect]:
        """Flagged cells, (N, all columns), of which people's decisions tell what they were, by row and column."""
        taught = self.model.taught
        return {} if taught is None else taught.suspects(self.untaught(encoded), suspicion, flagged)

    def cell_scores(self, encoded: EncodedTable, kind: str | None) -> Floats:
        """How bad each cell is, (N, all columns): -log(1 - suspicion), or the paper's scores."""
        kind = self._score_kind(kind)
        if kind == "suspicion" and self.model.taught is not None:
            return -np.log1p(-np.minimum(self.suspicion(encoded), SUREST))
        if kind == "suspicion" and self.weighs(encoded):
            return self.posterior(encoded).scores
        score = {"pi": cell_pi, "nll": cell_nll, "suspicion": self._exact_suspicion}[kind]
        return self.model.encoder.spread(self._score(encoded, score)[0], encoded.table)

    # ------------------------------------------------------------ of rows

    def row_scores(self, encoded: EncodedTable, kind: str | None = None) -> Floats:
        """How bad each row is, (N,): its expected number of wrong cells, or the paper's sums."""
        kind = self._score_kind(kind)
        if kind == "suspicion" and self.weighs(encoded):
            return self.suspicion(encoded).sum(axis=1)
        return self._score(encoded, self._of_row(kind))[0].sum(axis=1)

    def suspicion_and_row_scores(self, encoded: EncodedTable) -> tuple[Floats, Floats]:
        """Both at once, (N, all columns) and (N,), each row judged by itself."""
        if self.settings.repair_method in ("one-stage", "two-stage"):
            raise SettingError(
                "To judge rows by themselves repair_method must be 'hidden' or 'map'; "
                f"{self.settings.repair_method!r} draws for all rows together. "
                "Hint: set_params(repair_method='map')."
            )
        if self.weighs(encoded):
            whole = self.suspicion(encoded)
            return whole, whole.sum(axis=1)
        cells, rows = self._score(encoded, self._suspicion, self._of_row(self._score_kind(None)))
        judged = Judged(encoded.table, self.model.encoder.spread(cells, encoded.table))
        return self._as_taught(judged), rows.sum(axis=1)

    def log_likelihood(self, encoded: EncodedTable) -> float:
        """Mean log probability of a row, its cells hidden in turn; with the methods of the paper the mean ELBO."""
        settings, network = self.settings, self.model.network
        if not self.model.encoder.columns:
            return 0.0
        bound, found = Bound(settings.weights, settings.alpha, settings.kl_weight), []
        for first, cells in in_chunks(network, encoded.cells):
            if self.method == "hidden":
                evidence = judge_hidden(network, cells, alpha=self._alpha(cells))
                found.append(log_hidden(evidence, cells, alpha=settings.alpha))
            else:
                found.append(lower_bound(network, cells, bound, self.model.generator(first)))
        return float(torch.cat(found).double().mean())

    # ------------------------------------------------------------ of what they should have been

    def examine(self, encoded: EncodedTable, rows: NDArray[np.int64] | None = None) -> Iterator[Examined]:
        """These rows, or all, in chunks, with the cells to be trusted and what they should be like."""
        if rows is None or self.method in ("one-stage", "two-stage"):  # what is drawn for a row depends on its chunk
            rows = np.arange(len(encoded.cells))
        if not self.model.encoder.columns:
            nothing = encoded.cells[torch.from_numpy(rows)]
            seen = Reconstruction(nothing.values, nothing.values, nothing.observed)
            yield Examined(rows, nothing, nothing.observed, seen)
            return
        padded = encoded.cells[filled_up(torch.from_numpy(rows))]

        def examined(first: int, cells: Cells) -> Examined:
            evidence, generator = self._judge(first, cells)
            seen = reconstruct(self.model.network, cells, evidence, method=self.method, generator=generator)
            own = rows[first : first + len(cells)]
            trusted = cells.observed & (self._log_odds(evidence, cells) < 0)
            return Examined(own, cells[: len(own)], trusted[: len(own)], seen.first(len(own)))

        yield from each_chunk(self.model.network, padded, examined)

    # ------------------------------------------------------------ steps shared by the above

    def _judge(self, first: int, cells: Cells) -> tuple[Evidence, Generator]:
        """What the network says of cells (B, D) whose rows begin at `first`, and what is left to draw from."""
        generator, alpha, network = self.model.generator(first), self.settings.alpha, self.model.network
        if self.method == "hidden":
            return judge_hidden(network, cells, alpha=self._alpha(cells)), generator
        weights = self.settings.weights
        return judge_whole_rows(network, cells, self.method, generator, weights=weights, alpha=alpha), generator

    def _score(self, encoded: EncodedTable, *scores: Score) -> list[Floats]:
        """Each score of every modelled cell, (N, D); 0 where missing."""
        rows = len(encoded.cells)
        if not self.model.encoder.columns:
            return [np.zeros((rows, 0)) for _ in scores]

        @torch.no_grad()
        def scored(first: int, cells: Cells) -> list[Floats]:
            evidence, _ = self._judge(first, cells)
            each = [torch.where(cells.observed, score(evidence, cells), 0.0).double() for score in scores]
            return [found.contiguous().cpu().numpy() for found in each]

        parts = []
        with progress("Scoring", rows, shown=self.settings.verbose) as show:
            for part in each_chunk(self.model.network, encoded.cells[filled_up(torch.arange(rows))], scored):
                parts.append(part)
                show(min(sum(len(each[0]) for each in parts), rows))
        return [np.concatenate(each)[:rows] for each in zip(*parts, strict=True)]

    def _log_odds(self, evidence: Evidence, cells: Cells) -> Tensor:
        return suspicion_log_odds(evidence, cells, rates=self.rates, alpha=self._alpha(cells))

    def _alone(self, evidence: Evidence, cells: Cells) -> Tensor:
        """Log odds that each cell is clean by p and p0 alone, with nothing else hidden, (B, D)."""
        return evidence.alone - log_odds(self._alpha(cells))

    def _alpha(self, cells: Cells) -> Alpha:
        """That cells are clean, by which they are hidden and readings weighed."""
        return hiding_alpha(self.rates, self.settings.alpha, cells.values)

    def _suspicion(self, evidence: Evidence, cells: Cells) -> Tensor:
        return self._log_odds(evidence, cells).sigmoid()

    def _exact_suspicion(self, evidence: Evidence, cells: Cells) -> Tensor:
        """-log(1 - suspicion), from the log odds so that nothing is cut off."""
        return softplus(self._log_odds(evidence, cells))

    def _of_row(self, kind: str) -> Score:
        """What each cell adds to the score of its row."""
        suspicion = self._suspicion_alone if self.hides else self._suspicion
        return {"pi": cell_pi_clamped, "nll": cell_nll, "suspicion": suspicion}[kind]

    def _suspicion_alone(self, evidence: Evidence, cells: Cells) -> Tensor:
        return suspicion_alone(self._alone(evidence, cells), cells, self.rates)

    def _score_kind(self, kind: str | None) -> str:
        if kind == "pi" and self.settings.weights == "none":
            raise SettingError('Score "pi" needs weights; with weights="none" only kind="nll" can be had.')
        best = "suspicion" if self.hides else "nll" if self.settings.weights == "none" else "pi"
        return one_of("kind", kind or best, SCORES)

    def _as_taught(self, judged: Judged) -> Floats:
        """The suspicion (N, all columns) after people's decisions, if there are any."""
        if self.model.taught is None:
            return judged.suspicion
        revised = self.model.taught.revise(judged)
        return revised if judged.posterior is None else given_violations(revised, judged.table.violations, least=0.0)


def published_rates(alpha: float) -> ErrorRates:
    """Every cell stands for itself, as in the paper."""
    return ErrorRates(rows=1.0, cells=1 - alpha, rare=0.0)
