"""Repairs in keeping with the arithmetic of their rows, and with what a person says that all rows keep: no order is
repaired to a day after its delivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cellmend.findings.finding import Finding
from cellmend.findings.wording import Wording, held_as
from cellmend.table.causes.named import DECIDED, EXCHANGED
from cellmend.table.frames import write_arrow
from cellmend.table.notation import understand
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.formulas import ORDER
from cellmend.table.relations.quantities import Quantity, numbers_of, writer
from cellmend.table.relations.stated import Stated
from cellmend.table.relations.sure import violations_of
from cellmend.table.values import as_text, family, shortened

Repaired = dict[tuple[int, str], int]  # by row and column, the place of a finding that has a repair


def in_keeping(found: Sequence[Finding], table: ReadTable, rules: Sequence[Arithmetic]) -> list[Finding]:
    """The findings, with repairs that would break a formula replaced by what it says, or left out if that is open.

    Repairs that a person gave stay.
    """
    changed = list(found)
    quantities = {quantity.name: quantity for rule in rules for quantity in rule.quantities}
    repaired = {
        (each.row, each.column): at
        for at, each in enumerate(found)
        if each.repair is not None and each.column in quantities
    }
    if not repaired:
        return changed
    rows = np.unique([row for row, _ in repaired])
    values = _repaired_values(found, repaired, table, quantities, rows)
    for rule in rules:
        for at in np.flatnonzero(rule.formula.broken(values)).tolist():
            of_row = [(int(rows[at]), name) for name in rule.columns if (int(rows[at]), name) in repaired]
            own = [cell for cell in of_row if found[repaired[cell]].cause != DECIDED]
            for cell in own:
                told, place = _solved(rule, cell[1], values, at) if len(own) == 1 else None, repaired[cell]
                changed[place] = _as_told(changed[place], rule, told, table, quantities[cell[1]])
    return changed


def both_or_neither(found: Sequence[Finding]) -> list[Finding]:
    """The findings, of two cells that were exchanged both repaired or none: else one value would stand twice."""
    made = {
        (each.row, as_text(each.value), as_text(each.repair))
        for each in found
        if each.cause == EXCHANGED and each.repair is not None
    }
    return [
        replace(each, repair=None, reason=f"{each.reason}. Left as it is: the other cell is not sure enough")
        if each.cause == EXCHANGED
        and each.repair is not None
        and (each.row, as_text(each.repair), as_text(each.value)) not in made
        else each
        for each in found
    ]


def keeping_rules(found: Sequence[Finding], words: Wording, rules: Sequence[Stated]) -> list[Finding]:
    """The findings without repairs of cells that would break a rule which every row keeps, alone or with others.

    Repairs that a person gave stay.
    """
    kept, table, broken = list(found), words.table, {0: ""}
    while rules and broken:
        places = {
            (each.row, table.names.index(each.column)): at
            for at, each in enumerate(kept)
            if each.repair is not None and each.cause != DECIDED
        }
        after = with_arrow(table, write_arrow(table.arrow, words.changes(kept))) if places else table
        told = breaking(after, rules) if places else {}
        broken = {at: told[cell] for cell, at in places.items() if cell in told}
        for at, rule in broken.items():
            each = kept[at]
            reason = f"{each.reason}. Abstained: {shortened(each.repair)} would break the rule {rule}"
            kept[at] = replace(each, repair=None, reason=reason)
    return kept


def breaking(table: ReadTable, rules: Sequence[Stated]) -> dict[tuple[int, int], str]:
    """The cells of a table that break a rule, alone or with others, and which."""
    violations = violations_of(rules, table, rows_alone=table.rows_alone)
    return {cell: each.rule for each in violations for cell in each.cells}


def breaking_texts(table: ReadTable, name: str, texts: Sequence[str], rules: Sequence[Stated]) -> set[str]:
    """Which texts would break a rule of their column alone if they stood in it."""
    rules, type_ = (
        [each for each in rules if each.by_row and each.columns == (name,)],
        table.arrow.schema.field(name).type,
    )
    if not rules or family(type_) not in ("text", "number"):
        return set()
    held = [held_as(table, table.names.index(name), text) for text in texts]
    if family(type_) == "number":
        held = [float(each) if isinstance(each, int | float) else None for each in held]
    arrow = pa.table({name: pa.array(held)})
    notations = {name: table.notations[name]} if name in table.notations else {}
    tried = ReadTable(replace(table.frame, arrow=arrow), understand(arrow, notations), notations)
    return {texts[row] for rule in rules for each in rule.violations(tried) for row, _ in each.cells}


def with_arrow(table: ReadTable, arrow: pa.Table) -> ReadTable:
    """The table with other cells."""
    frame = replace(table.frame, arrow=arrow)
    return ReadTable(frame, understand(arrow, table.notations), table.notations, rows_alone=table.rows_alone)


def _repaired_values(
    found: Sequence[Finding], repaired: Repaired, table: ReadTable, quantities: Mapping[str, Quantity], rows: Any
) -> dict[str, Any]:
    """The numbers of these rows, (n,) each, with all repairs made."""
    values = {name: numbers_of(table, name)[rows] for name in quantities}
    places = {row: at for at, row in enumerate(rows.tolist())}
    for (row, name), at in repaired.items():
        values[name][places[row]] = _number(table, name, found[at].repair)
    return values


def _number(table: ReadTable, name: str, repair: Any) -> float:
    """A repair as the number that it says."""
    notation = table.notations.get(name)
    held = pa.chunked_array([pa.array([repair])])
    number = (held if notation is None else notation.understand(held))[0].as_py()
    return float(number) if isinstance(number, int | float) else np.nan


def _solved(rule: Arithmetic, name: str, values: Mapping[str, Any], at: int) -> float | None:
    """What a formula says in place of a repair, if it says one thing."""
    row = {column: values[column][at : at + 1] for column in rule.columns}
    solved = float(rule.formula.solved(name, row)[0])
    return solved if rule.formula.form != ORDER and np.isfinite(solved) else None


def _as_told(finding: Finding, rule: Arithmetic, told: float | None, table: ReadTable, quantity: Quantity) -> Finding:
    if told is None:
        reason = f"{finding.reason}. Abstained: {shortened(finding.repair)} would break that {rule.words()}"
        return replace(finding, repair=None, reason=reason)
    repair = held_as(table, table.names.index(finding.column), writer(table, quantity)(told))
    if repair == finding.value:
        return replace(finding, repair=None, reason=f"{finding.reason}. Left as it is: {rule.words()} confirms it")
    return replace(finding, repair=repair, reason=f"{finding.reason}; {rule.words()} says {shortened(repair)}")
