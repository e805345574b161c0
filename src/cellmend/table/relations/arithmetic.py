"""Arithmetic between columns of numbers and dates, as a relation: what breaks it, and what a cell should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from cellmend.table.priors import TINY
from cellmend.table.readtable import MOST, ReadTable, Suspect
from cellmend.table.relations.blame import Blame, blame
from cellmend.table.relations.breaks import CLEARLY, DATES, Breaks, chance_of_error
from cellmend.table.relations.formulas import ORDER, Columns, Formula
from cellmend.table.relations.quantities import Quantity, learn_quantities, numbers_of, writer
from cellmend.table.relations.search import find_formulas, find_orders
from cellmend.table.schema import Schema
from cellmend.table.values import Floats, shortened

LEAST_TOLD = 0.1  # suspicion
EXCEPTIONS = 0.5  # times the share of rows that break a formula, in doubt that they are errors
PLAIN_EXCEPTIONS = 2.0  # and of a copy or an order
LEAST_KEPT = 0.02  # of the suspicion of a cell is left where a formula is kept


@dataclass(frozen=True)
class Arithmetic:
    """A formula between columns, and what is usual in each of them."""

    kind: ClassVar[str] = "arithmetic"

    formula: Formula
    support: float
    quantities: tuple[Quantity, ...]  # of the formula's columns, in their order

    @property
    def columns(self) -> tuple[str, ...]:
        return self.formula.columns

    def breaks(self, table: ReadTable, times: float = CLEARLY) -> Breaks:
        """The rows that clearly break it, or miss it by so many times what it allows."""
        values = {name: numbers_of(table, name) for name in self.columns}
        rows = np.flatnonzero(self.formula.misses(values) > times * self.formula.slack(values))
        return Breaks(rows, np.full(len(rows), self._chance), partial(self._say, table, values))

    @property
    def _chance(self) -> float:
        """That a row that breaks it holds an error, by the share of such rows alone; 0 if that does not tell."""
        if len(self.formula.parts) > 1:
            return chance_of_error(1 - self.support)
        is_timed = self.formula.form == ORDER and self.quantities[0].is_date
        return chance_of_error(1 - self.support, DATES) if is_timed else 0.0

    def _say(self, table: ReadTable, values: Columns, row: int) -> str:
        """What a row has, and what the formula says."""
        formula, seen = self.formula, {name: shortened(table.cell(row, name)) for name in self.columns}
        result, first = formula.result, formula.parts[0]
        if formula.form == ORDER:
            return f"{result} {seen[result]} is {self._less} {first} {seen[first]}"
        told = replace(formula, parts=tuple(f"{name} {seen[name]}" for name in formula.parts)).told
        if told == f"{first} {seen[first]}":
            return f"{first} is {seen[first]}, but {result} is {seen[result]}"
        own = {name: column[row : row + 1] for name, column in values.items()}
        says = writer(table, self.quantities[0])(float(formula.expected(own)[0]))
        return f"{told} is {says}, but {result} is {seen[result]}"

    def words(self) -> str:
        """The formula.

        >>> order = Formula(ORDER, "delivery", ("order",), (1.0,))
        >>> Arithmetic(order, 0.99, (Quantity("delivery", 1.0, (0.0, 9.0), True),) * 2).words()
        'delivery is not before order'
        """
        formula = self.formula
        return f"{formula.result} is not {self._less} {formula.told}" if formula.form == ORDER else str(formula)

    @property
    def _less(self) -> str:
        return "before" if self.quantities[0].is_date else "less than"

    @property
    def doubt(self) -> float:
        """How probably a row that breaks it is an exception and no error: copies and orders have more of them."""
        plain = len(self.formula.parts) == 1 and self.formula.factor == 1
        return min((PLAIN_EXCEPTIONS if plain else EXCEPTIONS) * (1 - self.support), 1.0)

    def left(self, values: Columns) -> Floats:
        """How much of a cell's suspicion is left in rows (n,) that keep the formula: as much as chance may keep it."""
        result = self.quantities[0]
        quarter = len(result.knots) // 4
        middle = max(result.knots[-1 - quarter] - result.knots[quarter], result.unit, TINY)
        by_chance = min(LEAST_KEPT + (2 * self.formula.tolerance + result.unit) / middle, 1.0)
        kept = self.formula.misses(values) <= self.formula.slack(values)
        tells = kept & np.all([values[part] != 0 for part in self.formula.parts], axis=0)
        return np.where(tells & (self.formula.form != ORDER), by_chance, 1.0)


def learn_arithmetic(table: ReadTable, schema: Schema) -> list[Arithmetic]:
    """The formulas that a table shows, exact ones and orders."""
    quantities = learn_quantities(table, schema)
    values = {name: numbers_of(table, name) for name in quantities}
    found = find_formulas(values, quantities)
    found += find_orders(values, quantities, found)
    return [
        Arithmetic(formula, support, tuple(quantities[name] for name in formula.columns)) for formula, support in found
    ]


def arithmetic_suspects(rules: Sequence[Arithmetic], table: ReadTable) -> list[Suspect]:
    """The cells that break formulas: in each row all formulas together say which cell is the wrong one."""
    quantities = {quantity.name: quantity for rule in rules for quantity in rule.quantities}
    values = {name: numbers_of(table, name) for name in quantities}
    formulas = [rule.formula for rule in rules]
    broken = np.array([formula.broken(values) for formula in formulas]).reshape(len(rules), table.rows)
    rows = np.flatnonzero(broken.any(axis=0))
    if not len(rows):
        return []
    own = {name: column[rows] for name, column in values.items()}
    errors = np.array([min(1 - rule.doubt, MOST) for rule in rules])
    wrong = np.max(np.where(broken[:, rows], errors[:, None], 0.0), axis=0)  # (n,)
    blamed = blame(formulas, [rule.support for rule in rules], own, quantities)
    return [found for each in blamed for found in _told(each, wrong * each.share, rows, rules, table)]


def vouched_cells(rules: Sequence[Arithmetic], table: ReadTable) -> dict[int, Floats]:
    """By place of a column, how much of what is suspicious of its cells (N,) is left where they keep a formula."""
    left: dict[int, Floats] = {}
    for rule in rules:
        own = rule.left({name: numbers_of(table, name) for name in rule.columns})
        for place in (table.names.index(name) for name in rule.columns):
            left[place] = np.minimum(left.get(place, 1.0), own)
    return left


def _told(blamed: Blame, suspicion: Floats, rows: Any, rules: Sequence[Arithmetic], table: ReadTable) -> list[Suspect]:
    """The suspicious cells of one column."""
    place = table.names.index(blamed.column)
    quantity = next(each for rule in rules for each in rule.quantities if each.name == blamed.column)
    write, found = writer(table, quantity), []
    for at in np.flatnonzero(suspicion >= LEAST_TOLD).tolist():
        row, chance, rule = int(rows[at]), round(float(suspicion[at]), 6), rules[blamed.by[at]]
        meant = () if np.isnan(blamed.meant[at]) else (write(float(blamed.meant[at])),)
        told = f"{table.said(place, row)}, but {rule.words()}" + (f": {meant[0]}" if meant else "")
        found.append(Suspect(row, place, chance, meant, told, rule.kind))
    return found
