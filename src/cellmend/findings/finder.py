"""Finder: which cells of a table are wrong, why, what they should have been, and the table repaired."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cellmend.errors import SettingError, did_you_mean
from cellmend.findings.contradictions import Contradiction, find_contradictions, spans_of
from cellmend.findings.expectation import Expectation, expect, log_fits, with_reasons
from cellmend.findings.explanation import Verdict, explain, explain_by_network, explain_decided, left_as_found
from cellmend.findings.finding import Finding, Mended, with_contradictions
from cellmend.findings.hypotheses import Asked, Hypotheses, weighed
from cellmend.findings.keeping import both_or_neither, breaking, breaking_texts, in_keeping, keeping_rules, with_arrow
from cellmend.findings.unbroken import unbroken
from cellmend.findings.wording import Wording
from cellmend.model.encoding import EncodedTable
from cellmend.model.evidence import level_probabilities
from cellmend.model.judge import Judge, seen_of
from cellmend.posterior.meant import Hypothesis
from cellmend.settings import Threshold
from cellmend.table.causes.named import DEFAULT
from cellmend.table.frames import read_frame
from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.sure import without_sure
from cellmend.table.texts import Unread
from cellmend.table.values import Bools, Floats

EXPLAINED = 10_000  # cells for which it is worked out which columns matter; the most suspicious ones


class Finder:
    """Finds and repairs by what a judge says."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.encoder = judge.model.encoder

    def mend(self, encoded: EncodedTable, threshold: Threshold, *, impute: bool) -> Mended:
        """Findings, the repaired table and the suspicion of every cell; with `impute` missing cells are filled too."""
        suspicion = self.judge.suspicion(encoded)
        contradictions = self._contradictions(encoded, suspicion)
        least = threshold.cutoff(suspicion, spans_of(contradictions))
        contradictions = [each for each in contradictions if each.flagged_from(least)]
        flagged = suspicion >= least
        for each in contradictions:  # nothing tells which of its cells is wrong
            flagged[tuple(np.array(each.cells).T)] = False
        cells = self.find(encoded, suspicion, flagged)
        found, contradictions = with_contradictions(cells, contradictions, encoded.table, threshold.top)
        repaired = self.repair(encoded, found, impute=impute)
        return Mended(encoded.table, suspicion, found, repaired, contradictions)

    def _contradictions(self, encoded: EncodedTable, suspicion: Floats) -> list[Contradiction]:
        """Cells of which one is wrong, whichever; none where the network speaks alone."""
        if not self.judge.weighs(encoded):
            return []
        reader = self.judge.model.reader
        told = without_sure(reader.relations, reader.sure)  # the others are violations
        return find_contradictions(told, encoded.table, suspicion)

    def find(self, encoded: EncodedTable, suspicion: Floats, flagged: Bools) -> list[Finding]:
        """The flagged cells (N, all columns) with reasons, the most suspicious first."""
        table, settings = encoded.table, self.judge.settings
        refuse_unknown(settings.protect, table.names)
        words = Wording(table, self.encoder)
        if not self.judge.weighs(encoded):
            every = self._expectations(encoded, suspicion, flagged)
            found = [explain_by_network(each, float(suspicion[cell]), words) for cell, each in every.items()]
            found.sort(key=lambda each: -each.suspicion)
            found = [left_as_found(each, 0.0, settings.protect) for each in found]
            return keeping_rules(found, words, self.judge.model.reader.kept_by_all)
        decided = self.judge.decided(encoded, suspicion, flagged)
        verdicts = self._verdicts(encoded, suspicion, flagged, words)
        told = [(each, decided.get((each.row, each.place))) for each in verdicts]
        found = [explain(each, words) if own is None else explain_decided(own, words) for each, own in told]
        found = [left_as_found(each, settings.repair_from, settings.protect) for each in found]
        found, reader = both_or_neither(found), self.judge.model.reader
        found = in_keeping(found, table, [each for each in reader.relations if isinstance(each, Arithmetic)])
        found = unbroken(found, table, reader.relations, reader.identifiers)
        found = keeping_rules(found, words, reader.kept_by_all)
        return sorted(found, key=lambda each: (-each.suspicion, -each.repair_probability))

    def _verdicts(self, encoded: EncodedTable, suspicion: Floats, flagged: Bools, words: Wording) -> list[Verdict]:
        """What all evidence says of the flagged cells, (N, all columns)."""
        asked, hypotheses, figures = self.hypotheses(encoded, suspicion, flagged, words)
        posterior = self.judge.posterior(encoded)
        chances = weighed(self.judge.weighing.weigher.repairs, posterior, asked, hypotheses, figures)
        found = []
        for (row, place, suspects, expected), own, chance in zip(asked, hypotheses, chances, strict=True):
            best, sure = (own[chance.argmax()], float(chance.max())) if own else (None, 0.0)
            doubt, family = float(suspicion[row, place]), posterior.family(row, place)
            found.append(Verdict(row, place, doubt, family, best, sure, suspects, expected))
        return found

    def hypotheses(
        self, encoded: EncodedTable, suspicion: Floats, flagged: Bools, words: Wording
    ) -> tuple[list[Asked], list[list[Hypothesis]], list[Floats]]:
        """The flagged cells, (N, all columns), all that each may have been, and figures about that."""
        asked = self.asked(encoded, suspicion, flagged)
        collected = Hypotheses(seen_of(encoded).portrait, seen_of(encoded).figures, words)
        found = self._keeping_rules(encoded, asked, [collected.of(cell) for cell in asked])
        fits = self.fits(encoded, asked, found, words)
        return asked, found, collected.figures_for(asked, found, fits)

    def _keeping_rules(
        self, encoded: EncodedTable, asked: Sequence[Asked], hypotheses: Sequence[list[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Of the hypotheses about each cell those that break no sure rule of its column."""
        rules, table, meant = self.judge.model.reader.kept_by_all, encoded.table, dict[int, set[str]]()
        for cell, own in zip(asked, hypotheses, strict=True) if rules else ():
            meant.setdefault(cell.place, set()).update(each.meant for each in own)
        broken = {at: breaking_texts(table, table.names[at], sorted(texts), rules) for at, texts in meant.items()}
        return [
            [each for each in own if each.meant not in broken.get(cell.place, ())]
            for cell, own in zip(asked, hypotheses, strict=True)
        ]

    def asked(self, encoded: EncodedTable, suspicion: Floats, flagged: Bools) -> list[Asked]:
        """The flagged cells, (N, all columns), with what experts and the network say of each."""
        experts: dict[tuple[int, int], list[Suspect]] = {}
        for each in encoded.table.suspects:
            if flagged[each.row, each.column]:
                experts.setdefault((each.row, each.column), []).append(each)
        expected = self._expectations(encoded, suspicion, flagged)
        cells = zip(*(each.tolist() for each in np.nonzero(flagged)), strict=True)
        return [Asked(row, place, experts.get((row, place), ()), expected.get((row, place))) for row, place in cells]

    def fits(
        self, encoded: EncodedTable, asked: Sequence[Asked], hypotheses: Sequence[list[Hypothesis]], words: Wording
    ) -> list[list[float]]:
        """How well each hypothesis about each cell fits the rest of its row, by the network; NaN if it does not say."""
        by_row: dict[int, list[int]] = {}
        for at, cell in enumerate(asked):
            if cell.expected is not None:
                by_row.setdefault(cell.row, []).append(at)
        found = [[math.nan] * len(own) for own in hypotheses]
        for examined in self.judge.examine(encoded, rows=np.array(sorted(by_row), dtype=np.int64)) if by_row else ():
            meant: dict[tuple[int, int], list[float]] = {}
            where: dict[tuple[int, int], list[tuple[int, int]]] = {}  # cell and hypothesis, of each of these values
            for place, row in enumerate(examined.rows.tolist()):
                for at in by_row.get(row, ()):
                    column = asked[at].expected.column  # type: ignore[union-attr]
                    for number, each in enumerate(hypotheses[at]):
                        for value in words.read(self.encoder.columns[column], [each.meant]):
                            meant.setdefault((place, column), []).append(value)
                            where.setdefault((place, column), []).append((at, number))
            for key, fit in log_fits(self.judge.model.network, examined.seen, meant).items():
                for (at, number), value in zip(where[key], fit, strict=True):
                    found[at][number] = value
        return found

    def repair(self, encoded: EncodedTable, found: Sequence[Finding], *, impute: bool) -> Any:
        """The user's table with repairs written in, and missing cells filled if `impute`."""
        table = encoded.table
        repaired = table.frame.with_cells(Wording(table, self.encoder).changes(found))
        if not impute:
            return repaired
        values, missing, places = [], [], {column.name: at for at, column in enumerate(self.encoder.columns)}
        for examined in self.judge.examine(encoded):
            values.append(examined.seen.values.double().cpu())
            missing.append(~examined.cells.observed.cpu())
        gaps = torch.cat(missing).numpy()
        if encoded.figures is not None:  # the model takes cells that look wrong for missing
            gaps &= ~encoded.figures.observed[:, self.encoder.positions]
        for each in found:  # what stands for nothing is a gap
            if each.cause == DEFAULT and each.repair is None and each.column in places:
                gaps[each.row, places[each.column]] = True
        unread = [name for name, notation in table.notations.items() if isinstance(notation, Unread)]
        protected = {*self.judge.settings.protect, *unread}
        gaps[:, [column.name in protected for column in self.encoder.columns]] = False
        filled = replace(table, frame=replace(table.frame, native=repaired))
        return self._filled(filled, torch.cat(values).numpy(), gaps)

    def _filled(self, table: ReadTable, values: Floats, gaps: Bools) -> Any:
        """The table with these values in the gaps, (N, D) both, but for those that would break a rule."""
        rules, writers = self.judge.model.reader.kept_by_all, Wording(table, self.encoder).writers()
        while True:
            filled = self.encoder.replace(table, values, gaps, writers)
            told = breaking(with_arrow(table, read_frame(filled).select(table.names).arrow), rules) if rules else {}
            places = {position: at for at, position in enumerate(self.encoder.positions)}
            broken = [(row, places[place]) for row, place in told if place in places and gaps[row, places[place]]]
            if not broken:
                return filled
            gaps[tuple(np.array(broken).T)] = False

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
        self, encoded: EncodedTable, suspicion: Floats, flagged: Bools
    ) -> dict[tuple[int, int], Expectation]:
        """What the network expects at each flagged cell of the model, by row and place in the table."""
        positions = self.encoder.positions
        where = flagged[:, positions]  # (N, D)
        least = np.sort(suspicion[flagged])[-EXPLAINED:][:1]  # suspicion of the last cell whose reasons are worked out
        found = {}
        for examined in self.judge.examine(encoded, rows=np.flatnonzero(where.any(axis=1))) if where.any() else ():
            rows, cells, network = examined.rows, examined.cells, self.judge.model.network
            own = torch.from_numpy(where[rows]).to(cells.values.device)
            expected = expect(network, cells, examined.seen, own)
            why = [each for each in expected if suspicion[rows[each.row], positions[each.column]] >= least]
            others = [each for each in expected if suspicion[rows[each.row], positions[each.column]] < least]
            for each in [*with_reasons(network, cells, examined.trusted, why), *others]:
                row = int(rows[each.row])
                found[row, positions[each.column]] = replace(each, row=row)
        return found


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
