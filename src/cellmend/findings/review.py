"""People decide: the cells to ask them about, and what their decisions change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cellmend.decisions.asking import ask_cells, ask_rows, kinds_of
from cellmend.decisions.decision import Decision
from cellmend.decisions.taught import teach, with_repairs
from cellmend.findings.finder import Finder
from cellmend.model.encoding import EncodedTable
from cellmend.model.judge import Judge
from cellmend.model.model import Model
from cellmend.settings import Threshold
from cellmend.table.values import Floats, as_text

QUESTIONS = pa.schema(
    [
        ("row", pa.int64()),  # from 0, in the whole table
        ("column", pa.string()),
        ("value", pa.string()),
        ("suspicion", pa.float64()),
        ("repair", pa.string()),
        ("cause", pa.string()),
        ("speaks_for", pa.int64()),  # other cells that are alike
    ]
)
CHANGES = pa.schema(
    [
        ("row", pa.int64()),
        ("column", pa.string()),
        ("value", pa.string()),
        ("before", pa.float64()),  # suspicion
        ("after", pa.float64()),
        ("change", pa.string()),  # found, or dropped
    ]
)


def ask(finder: Finder, encoded: EncodedTable, n: int, *, whole_rows: bool) -> pa.Table:
    """The best `n` questions about a table, or the cells of the best `n` rows, as QUESTIONS has them."""
    table, judge = encoded.table, finder.judge
    judged, taught = judge.untaught(encoded), judge.model.taught
    suspicion = judge.suspicion(encoded)
    decided = np.zeros(suspicion.shape, dtype=bool)
    for cell in () if taught is None else taught.own(judged):
        decided[cell] = True
    kinds = kinds_of(judged, suspicion)
    doubts = suspicion * (1 - suspicion) if taught is None else taught.doubts(judged)
    sizes = np.bincount(kinds[(kinds >= 0) & ~decided], minlength=int(kinds.max()) + 1)
    if whole_rows:
        rows = ask_rows(doubts, decided, n, judge.model.seed + int(decided.sum()))
        cells = [(row, place) for row in rows for place in np.flatnonzero(kinds[row] >= 0).tolist()]
    else:
        asked = ask_cells(kinds, doubts, decided, n, judge.model.seed + int(decided.sum()))
        cells = [divmod(place, kinds.shape[1]) for place in asked]
    found = _found(finder, encoded, suspicion, cells)
    causes = {(each.row, each.column): each.cause for each in reversed(table.suspects)}  # of several the likeliest
    lines = [
        (row, table.names[place], table.text(row, place), float(suspicion[row, place]), found.get((row, place)),
         causes.get((row, place), ""), int(sizes[kinds[row, place]]) - 1)
        for row, place in cells
    ]  # fmt: skip
    return _as_table(QUESTIONS, lines)


def _found(
    finder: Finder, encoded: EncodedTable, suspicion: Floats, cells: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], str | None]:
    """What these cells should be, if they are wrong."""
    flagged = np.zeros(suspicion.shape, dtype=bool)
    for cell in cells:
        flagged[cell] = True
    places = {name: place for place, name in enumerate(encoded.table.names)}
    found = finder.find(encoded, suspicion, flagged)
    return {(e.row, places[e.column]): None if e.repair is None else as_text(e.repair) for e in found}


def learn_decisions(
    judge: Judge, encoded: EncodedTable, decisions: Sequence[Decision], threshold: Threshold
) -> tuple[Model, pa.Table, str]:
    """The model that was taught these decisions too, the other cells that it now flags or no longer flags, and a
    sentence if decisions are about cells that are not there."""
    judged, before = judge.untaught(encoded), judge.suspicion(encoded)
    taught = teach(judge.model.taught, judged, decisions)
    after = taught.revise(judged)
    taught = with_repairs(taught, judged, after, _guesses(judge, encoded, judged.suspicion, decisions))
    now = after >= threshold.cutoff(after)
    moved = (before >= threshold.cutoff(before)) != now
    for cell, known in taught.own(judged).items():
        moved[cell] &= known.decision.row != cell[0]
    lines = [
        (row, encoded.table.names[place], encoded.table.text(row, place), float(before[row, place]),
         float(after[row, place]), "found" if now[row, place] else "dropped")
        for row, place in zip(*(each.tolist() for each in np.nonzero(moved)), strict=True)
    ]  # fmt: skip
    told = _about_others(len(decisions), *taught.elsewhere(judged, decisions))
    return replace(judge.model, taught=taught if taught.known else None), _as_table(CHANGES, lines), told


def _about_others(decisions: int, gone: int, left: int) -> str:
    """What becomes of decisions about cells that are not there.

    >>> _about_others(20, 0, 0), _about_others(20, 7, 5)
    ('', '7 of 20 decisions are about cells that are not in this table: 2 hold for their values, 5 are not applicable')
    """
    here = f"{gone - left:,} hold{'s' * (gone - left == 1)} for {'its value' if gone - left == 1 else 'their values'}"
    away = f"{left:,} {'is' if left == 1 else 'are'} not applicable"
    about = "is about a cell that is" if gone == 1 else "are about cells that are"
    return f"{gone:,} of {decisions:,} decisions {about} not in this table: {here}, {away}" if gone else ""


def _guesses(
    judge: Judge, encoded: EncodedTable, suspicion: Floats, decisions: Sequence[Decision]
) -> dict[tuple[int, str], str | None]:
    """The repairs that the model had for the decided cells before anything was taught."""
    places = {name: place for place, name in enumerate(encoded.table.names)}
    rows = encoded.table.rows
    cells = [(each.row, places[each.column]) for each in decisions if each.row < rows and each.column in places]
    finder = Finder(Judge(replace(judge.model, taught=None), judge.settings))
    found = _found(finder, encoded, suspicion, cells)
    return {(row, encoded.table.names[place]): repair for (row, place), repair in found.items()}


def _as_table(schema: pa.Schema, lines: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*lines, strict=True)) if lines else [()] * len(schema)
    return pa.table([pa.array(cells, each.type) for cells, each in zip(columns, schema, strict=True)], schema=schema)
