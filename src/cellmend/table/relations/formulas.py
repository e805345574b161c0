"""Formulas between columns: sums, products and quotients, and what must not be less than what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cellmend.table.relations.quantities import EXACT
from cellmend.table.values import Bools, Floats, as_text

SUM, PRODUCT, ORDER = "sum", "product", "order"
FLOATS = 1e-11  # of the largest number in a sum, that its last digits may be wrong by

Columns = Mapping[str, Floats]  # numbers of some rows, (n,) each; NaN where missing


@dataclass(frozen=True)
class Formula:
    """One column as others tell it: a sum of parts times weights, or a product of parts with powers times a factor.

    In an order the column is at least as large as its only part.

    >>> total = Formula(PRODUCT, "total", ("count", "price"), (1.0, 1.0), tolerance=0.005)
    >>> print(total, "|", Formula(SUM, "net", ("gross", "tax"), (1.0, -1.0)))
    total = count × price | net = gross - tax
    """

    form: str
    result: str
    parts: tuple[str, ...]
    weights: tuple[float, ...]
    factor: float = 1.0
    tolerance: float = 0.0  # by which the result may differ: it is rounded

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.result, *self.parts)

    def expected(self, values: Columns) -> Floats:
        """The result as the parts tell it, (n,); of an order its least."""
        if self.form == PRODUCT:
            return np.asarray(self.factor * math.prod(_power(values[part], weight) for part, weight in self._weighed))
        return np.asarray(sum(weight * values[part] for part, weight in self._weighed))

    def misses(self, values: Columns) -> Floats:
        """By how much the result misses what the parts tell, (n,); of an order 0 where it is kept."""
        missed = values[self.result] - self.expected(values)
        return np.maximum(-missed, 0.0) if self.form == ORDER else np.abs(missed)

    def slack(self, values: Columns) -> Floats:
        """By how much the result may miss it, (n,)."""
        largest = np.max([np.abs(values[name]) for name in self.columns], axis=0)
        size = np.abs(values[self.result]) * EXACT if self.form == PRODUCT else largest * FLOATS
        return self.tolerance * (1 + EXACT) + size

    def broken(self, values: Columns) -> Bools:
        """The rows that break it, (n,); not those in which a number is missing."""
        return self.misses(values) > self.slack(values)

    def solved(self, name: str, values: Columns) -> Floats:
        """One of its columns as the others tell it, (n,); of an order its bound."""
        if name == self.result:
            return self.expected(values)
        weight = self.weights[self.parts.index(name)]
        others = [(values[part], other) for part, other in self._weighed if part != name]
        if self.form == PRODUCT:
            rest = math.prod((_power(value, other) for value, other in others), start=self.factor)
            return _power(values[self.result] / np.where(rest == 0, np.nan, rest), weight)
        return (values[self.result] - sum(other * value for value, other in others)) / weight

    def solved_slack(self, name: str, values: Columns) -> Floats:
        """How far off that may be, since the result is rounded, (n,)."""
        if name == self.result:
            return np.full(len(values[name]), self.tolerance)
        ends = [values[self.result] + side * self.tolerance for side in (-1, 1)]
        low, high = (self.solved(name, {**values, self.result: end}) for end in ends)
        return np.abs(high - low) / 2

    @property
    def _weighed(self) -> list[tuple[str, float]]:
        return list(zip(self.parts, self.weights, strict=True))

    def __str__(self) -> str:
        return f"{self.result} = {self.told}"

    @property
    def told(self) -> str:
        """The parts in words."""
        if self.form == PRODUCT:
            factor = [] if self.factor == 1 else [f"{self.factor:.6g}"]
            above = [part for part, weight in self._weighed if weight > 0]
            below = [part for part, weight in self._weighed if weight < 0]
            return " / ".join([" × ".join([*above, *factor]) or "1", *below])
        sizes = ["" if abs(w) == 1 else f"{as_text(float(f'{abs(w):.6g}'))} × " for w in self.weights]
        signs = ["-" if w < 0 else "+" for w in self.weights]
        terms = (f"{sign} {size}{part}" for sign, size, part in zip(signs, sizes, self.parts, strict=True))
        return " ".join(terms).removeprefix("+ ")


def _power(numbers: Floats, power: float) -> Floats:
    """Numbers, or one divided by them; NaN for one divided by 0."""
    return numbers if power == 1 else 1 / np.where(numbers == 0, np.nan, numbers)
