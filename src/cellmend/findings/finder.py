"""Finder: which cells of a table are wrong, why, what they should have been, and the table repaired."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from cellmend.errors import SettingError, did_you_mean
from cellmend.findings.expectation import Expectation, expect, with_reasons
from cellmend.findings.explanation import explain, explain_suspect, left_as_found, swapped
from cellmend.findings.finding import Finding, Mended
from cellmend.findings.keeping import in_keeping
from cellmend.findings.wording import Wording
from cellmend.model.encoding import EncodedTable
from cellmend.model.evidence import level_probabilities
from cellmend.model.judge import Judge
from cellmend.settings import Threshold
from cellmend.table.readtable import Suspect
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.texts import Unread

EXPLAINED = 10_000  # cells for which it is worked out which columns matter; the most suspicious ones


class Finder:
    """Finds and repairs by what a judge says."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.encoder = judge.model.encoder
        self.abstains = judge.hides  # the methods of the paper always have an answer

    def mend(self, encoded: EncodedTable, threshold: Threshold, *, impute: bool) -> Mended:
        """Findings, the repaired table and the suspicion of every cell; with `impute` missing cells are filled too."""
        suspicion = self.judge.suspicion(encoded)
        found = self.find(encoded, suspicion, threshold.flag(suspicion))[: threshold.top]
        return Mended(encoded.table, suspicion, found, self.repair(encoded, found, impute=impute))

    def find(self, encoded: EncodedTable, suspicion: NDArray[np.float64], flagged: NDArray[np.bool_]) -> list[Finding]:
        """The flagged cells (N, all columns) with reasons, the most suspicious first."""
        table, settings = encoded.table, self.judge.settings
        refuse_unknown(settings.protect, table.names)
        words = Wording(table, self.encoder)
        suspects = self.judge.suspects(table, suspicion, flagged)
        modelled = set(self.encoder.positions)
        ranked = [
            (_exact(each.suspicion), explain_suspect(each, table))
            for each in suspects.values()
            if each.column not in modelled and flagged[each.row, each.column]
        ]
        for rank, expected in self._expectations(encoded, words, suspects, suspicion, flagged):
            cell = expected.row, self.encoder.positions[expected.column]
            finding = explain(expected, float(suspicion[cell]), suspects.get(cell), words, abstain=self.abstains)
            ranked.append((max(rank, _exact(finding.suspicion)), finding))
        ranked.sort(key=lambda pair: -pair[0])
        least = settings.repair_from if self.abstains else 0.0  # the methods of the paper repair all that is flagged
        found = [finding for _, finding in ranked]
        if self.abstains:
            rules = [each for each in self.judge.model.reader.relations if isinstance(each, Arithmetic)]
            found = in_keeping(swapped(found), table, rules)
        return [left_as_found(each, least, settings.protect) for each in found]

    def repair(self, encoded: EncodedTable, found: Sequence[Finding], *, impute: bool) -> Any:
        """The user's table with repairs written in, and missing cells filled if `impute`."""
        table = encoded.table
        repaired = table.frame.with_cells(Wording(table, self.encoder).changes(found))
        if not impute:
            return repaired
        values, missing = [], []
        for examined in self.judge.examine(encoded):
            values.append(examined.seen.values.double().cpu())
            missing.append(~examined.cells.observed.cpu())
        gaps = torch.cat(missing).numpy()
        places = {position: d for d, position in enumerate(self.encoder.positions)}
        for each in table.suspects:  # the model takes some of them for missing
            if each.column in places:
                gaps[each.row, places[each.column]] = False
        unread = [name for name, notation in table.notations.items() if isinstance(notation, Unread)]
        protected = {*self.judge.settings.protect, *unread}
        gaps[:, [column.name in protected for column in self.encoder.columns]] = False
        filled = replace(table, frame=replace(table.frame, native=repaired))
        writers = Wording(table, self.encoder).writers()
        return self.encoder.replace(filled, torch.cat(values).numpy(), gaps, writers)

    def reconstruct(self, encoded: EncodedTable) -> Any:
        """The user's table with every modelled cell as the clean component sees it."""
        values = torch.cat([examined.seen.values for examined in self.judge.examine(encoded)]).double().cpu().numpy()
        everywhere = np.ones(values.shape, dtype=bool)
        writers = Wording(encoded.table, self.encoder).writers()
        return self.encoder.replace(encoded.table, values, everywhere, writers)

    def level_probabilities(self, encoded: EncodedTable) -> dict[str, Any]:
        """For each column of levels, a table rows × levels of probabilities, of the user's kind."""
        parts: dict[int, list[Tensor]] = {}
        for examined in self.judge.examine(encoded):
            for d, probabilities in level_probabilities(self.judge.model.network, examined.seen):
                parts.setdefault(d, []).append(probabilities.cpu())
        frame = encoded.table.frame
        return {
            column.name: frame.matrix_of(torch.cat(parts[d])[:, : len(column.levels)].numpy(), column.levels)
            for d, column in enumerate(self.encoder.columns)
            if column.levels
        }

    def _expectations(
        self,
        encoded: EncodedTable,
        words: Wording,
        suspects: Mapping[tuple[int, int], Suspect],
        suspicion: NDArray[np.float64],
        flagged: NDArray[np.bool_],
    ) -> Iterator[tuple[float, Expectation]]:
        """What is expected at each flagged cell of the model, with a rank that is finer than suspicion."""
        positions = self.encoder.positions
        where = flagged[:, positions]  # (N, D)
        least = np.sort(suspicion[flagged])[-EXPLAINED:][:1]  # suspicion of the last cell whose reasons are worked out
        for examined in self.judge.examine(encoded, rows=np.flatnonzero(where.any(axis=1))):
            rows, cells, network = examined.rows, examined.cells, self.judge.model.network
            own = torch.from_numpy(where[rows]).to(cells.values.device)
            expected = expect(network, cells, examined.seen, own, words.meant(rows, suspects, where[rows]))
            why = [each for each in expected if suspicion[rows[each.row], positions[each.column]] >= least]
            others = [each for each in expected if suspicion[rows[each.row], positions[each.column]] < least]
            ranks = softplus(examined.log_odds).tolist()  # -log(1 - suspicion)
            borne_out = self.judge.model.extremes.borne_out(cells).tolist()
            for each in [*with_reasons(network, cells, examined.trusted, why), *others]:
                natural = borne_out[each.row][each.column]
                yield ranks[each.row][each.column], replace(each, row=int(rows[each.row]), borne_out=natural)


def refuse_unknown(protected: Sequence[str], names: Sequence[str]) -> None:
    """Stop if a column to protect is not there: it would be changed.

    >>> refuse_unknown(["prize"], ["price"])
    Traceback (most recent call last):
    cellmend.errors.SettingError: protect must name columns of the table; 'prize' is none. Did you mean 'price'?
    """
    for name in protected:
        if name not in names:
            hint = did_you_mean(str(name), names)
            raise SettingError(f"protect must name columns of the table; {name!r} is none.{hint}")


def _exact(suspicion: float) -> float:
    """-log(1 - suspicion), finite.

    >>> round(_exact(0.5), 3)
    0.693
    """
    return -math.log1p(-min(suspicion, 1 - 1e-9))
