"""What is learned of one column: its values as the network sees them, and back.

Each kind of column answers for itself: how it is encoded and written, whether a row leaves its value open, where its
bins lie, and how it is spoken of.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.errors import SchemaError, TableError
from cellmend.model.grouping import Groups, group_levels, with_more
from cellmend.model.measures import (
    KNOTS,
    are_gross,
    core_of,
    few_numbers,
    mean_and_sd,
    place_knots,
    round_to,
    usual_decimals,
)
from cellmend.table.frames import Change
from cellmend.table.schema import Column
from cellmend.table.texts import Notation
from cellmend.table.values import Level, family, level_text, plain, rounded_text, shortened

USUAL_COUNTS = 0.99  # the share of counts that mean and deviation are learned from; larger ones are cut
NEW_LEVEL = 5  # cells that must hold a value for it to become a level later on: fewer may be the same slip again
FARTHEST = 1e6  # standard deviations, or counts; further out is as far, and float32 stays finite
AT_REST = 5  # knots of KNOTS, half of which stand by rank: as many are 0 if half of the values are
NEXT_TO_NOTHING = 0.1  # of a number
ROUNDED = 1e-3  # what a model value may be off in single precision


@dataclass(frozen=True)
class ModelColumn:
    """A column as learned, and what is said of one that does not know better."""

    name: str
    kind: str

    reach = (-math.inf, math.inf)  # between these lie all values that are not gross

    @property
    def has_own_noise(self) -> bool:
        """Are its errors looked for around its usual values, and not just anywhere?"""
        return False

    def with_any_noise(self) -> Self:
        """The same, with errors anywhere."""
        return self

    @property
    def few(self) -> tuple[float, ...]:
        """All model values that it has, if these are few numbers; else none."""
        return ()

    def is_amount(self, value: float, repair: float) -> bool:
        """Is a model value one of the natural numbers above 0 of a column that is mostly 0, and its repair next to
        nothing?"""
        return False


@dataclass(frozen=True)
class NumberColumn(ModelColumn):
    """A column of numbers as learned: where its values lie and how finely they are written."""

    mean: float
    sd: float
    decimals: int | None  # None: as fine as floats are

    levels: ClassVar[tuple[Level, ...]] = ()
    unknown: ClassVar[str] = "hold what it cannot"  # its cells, where it can do nothing with them

    def decode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Model values in the user's units, at the column's resolution."""
        with np.errstate(over="ignore"):
            numbers = np.nan_to_num(self._to_units(values))
        return numbers if self.decimals is None else round_to(numbers, self.decimals)

    def decode_one(self, value: float) -> float | int:
        """One model value in the user's units."""
        number = float(self.decode(np.array([value]))[0])
        return int(number) if self.decimals == 0 else number

    def change(self, rows: NDArray[np.bool_], values: NDArray[np.float64]) -> Change:
        return Change(rows, self.decode(values), levels=None)

    def in_words(self, value: float) -> str:
        """A model value for a sentence."""
        return rounded_text(self.decode_one(value))

    def edges(self, values: NDArray[np.float32]) -> Sequence[float]:
        """Where the bins of model values (n,) meet that a profile counts."""
        if len(values) == 0:
            return (0.0,)
        return np.quantile(values, np.linspace(0.01, 0.99, KNOTS), method="lower").tolist()

    def _to_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values


@dataclass(frozen=True)
class RealColumn(NumberColumn):
    """Standardised with the mean and deviation of the table as it came, errors included; if `robust`, without those
    so gross (9999 among tens) that all other values would be the same beside them."""

    knots: tuple[float, ...]  # rising, standardised; between them lie nearly all values
    reach: tuple[float, float] = (-FARTHEST, FARTHEST)  # standardised
    middle: float = 0.0  # where usual values lie, standardised
    spread: float = 1.0  # how wide, as a deviation, standardised: errors widen it little
    one_value: bool = False  # nearly always
    numbers: tuple[float, ...] = ()  # the only ones that it has, if they are few, in the user's units

    @classmethod
    def fit(cls, column: Column, values: pa.ChunkedArray, *, robust: bool = False) -> Self:
        numbers = _known_numbers(column, values)
        gross = are_gross(numbers)
        mean, sd = mean_and_sd(numbers[~gross] if robust else numbers)
        decimals = usual_decimals(numbers, single=values.type == pa.float32())
        standardised = _standardised(numbers, mean, sd)
        usual = standardised[~gross]
        reach = (float(usual.min()), float(usual.max())) if len(usual) else (-FARTHEST, FARTHEST)
        knots, core = tuple(place_knots(standardised).tolist()), core_of(standardised) if robust else (0.0, 1.0, False)
        return cls(column.name, column.kind, mean, sd, decimals, knots, reach, *core, few_numbers(numbers))

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        return _standardised(_numbers(self.name, self.kind, values), self.mean, self.sd)

    @property
    def has_own_noise(self) -> bool:
        return (self.middle, self.spread) != (0.0, 1.0)

    def with_any_noise(self) -> Self:
        return replace(self, middle=0.0, spread=1.0, one_value=False)

    @property
    def few(self) -> tuple[float, ...]:
        return tuple(self.to_model(number) for number in self.numbers)

    def is_amount(self, value: float, repair: float) -> bool:
        nothing = self.to_model(0.0)
        at_rest = sum(knot == nothing for knot in self.knots) >= AT_REST and self.knots[0] == nothing
        small = repair - nothing < NEXT_TO_NOTHING * (value - nothing)
        return at_rest and small and nothing < value <= self.reach[1] + ROUNDED

    def to_model(self, number: float) -> float:
        """A number in the user's units as a model value."""
        return (number - self.mean) / self.sd

    def edges(self, values: NDArray[np.float32]) -> Sequence[float]:
        return self.knots

    def _to_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values * self.sd + self.mean


@dataclass(frozen=True)
class CountColumn(NumberColumn):
    """Left as it is; negative and broken numbers are what a count cannot hold."""

    @classmethod
    def fit(cls, column: Column, values: pa.ChunkedArray, *, robust: bool = False) -> Self:
        numbers = _known_numbers(column, values)
        # Without the largest: one gross error would make the usual counts look impossible.
        usual = np.minimum(numbers, np.quantile(numbers, USUAL_COUNTS)) if len(numbers) else numbers
        learned = cls(column.name, column.kind, *mean_and_sd(usual), usual_decimals(numbers, single=False))
        if learned.mean > FARTHEST:
            raise SchemaError(
                f"Column {column.name!r} is count and must hold whole numbers up to {FARTHEST:,.0f}; "
                f"their mean is {learned.mean:,.0f}. Hint: declare it as real."
            )
        return learned

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        numbers = _numbers(self.name, self.kind, values)
        possible = (numbers >= 0) & (numbers == np.round(numbers))
        return np.where(possible, np.minimum(numbers, FARTHEST), np.nan)


@dataclass(frozen=True)
class LevelColumn(ModelColumn):
    """A column of categories or ordered levels as learned: its levels; a cell is their number.

    Where there are thousands, some share an output (grouping.py): which, and with what share of it, is empty elsewhere.
    """

    levels: tuple[Level, ...]
    outputs: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()

    decimals: ClassVar[None] = None
    unknown: ClassVar[str] = "hold a value that it did not know"

    @classmethod
    def fit(cls, column: Column, values: pa.ChunkedArray, *, robust: bool = False) -> Self:
        learned = cls(column.name, column.kind, tuple(column.levels or cls._learn_levels(column, values)))
        if values.null_count < len(values) and not np.isfinite(learned._codes(values)).any():
            raise SchemaError(
                f"The levels of column {column.name!r} must be among its values; of {list(learned.levels)} none is."
            )
        return learned._grouped(values) if robust and column.kind == "category" else learned

    def _grouped(self, values: pa.ChunkedArray) -> Self:
        codes = self._codes(values)
        counts = np.bincount(codes[np.isfinite(codes)].astype(np.int64), minlength=len(self.levels))
        return replace(self, **group_levels(counts)._asdict())

    def encode(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        codes, of_levels = self._codes(values), self._families
        if family(values.type) in of_levels or np.isfinite(codes).any() or values.null_count == len(values):
            return codes
        raise TableError(
            f"Column {self.name!r} was fitted as {self.kind} and must hold {min(of_levels)} values such as "
            f"{self.levels[0]!r}; it holds {values.type}. Hint: convert the column as it was when fitted."
        )

    def grown(self, values: pa.ChunkedArray, doubtful: Collection[Any]) -> Self:
        """With the values at its end that it does not know and that several of these cells hold; not doubtful ones.

        >>> column = LevelColumn("city", "category", ("Rome", "Oslo"))
        >>> column.grown(pa.chunked_array([["Ulm"] * 5 + ["Oslo"] * 5 + ["Olso"]]), {"Roma"}).levels
        ('Rome', 'Oslo', 'Ulm')
        """
        if family(values.type) not in self._families:
            return self
        known = {level_text(level) for level in (*self.levels, *doubtful)}
        found = pc.value_counts(plain(values).drop_null())
        often = found.field("values").filter(pc.greater_equal(found.field("counts"), NEW_LEVEL)).to_pylist()
        new = sorted(_as_level(value) for value in often if value == value and level_text(value) not in known)
        names = [level_text(level) for level in self.levels]
        groups = with_more(Groups(self.outputs, self.shares), names, [level_text(level) for level in new])
        return replace(self, levels=(*self.levels, *new), **groups._asdict())

    def decode_one(self, value: float) -> Level:
        """The level of this number."""
        return self.levels[int(value)]

    def in_words(self, value: float) -> str:
        """A level for a sentence."""
        return shortened(self.decode_one(value))

    def edges(self, values: NDArray[np.float32]) -> Sequence[float]:
        """Each level is a bin of its own."""
        return ()

    def change(self, rows: NDArray[np.bool_], values: NDArray[np.float64]) -> Change:
        return Change(rows, values, levels=self.levels)

    @staticmethod
    def _learn_levels(column: Column, values: pa.ChunkedArray) -> list[Level]:
        if column.kind == "ordinal" and family(values.type) == "text":  # numbers have their order
            raise SchemaError(
                f"Column {column.name!r} is ordinal and holds text, so its levels must be given in order; "
                f"there are none. Hint: schema={{{column.name!r}: {{'kind': 'ordinal', 'levels': [...]}}}}."
            )
        if family(values.type) == "other" or values.null_count == len(values):
            came = values.type if values.null_count < len(values) else "nothing but gaps"
            raise SchemaError(
                f"Column {column.name!r} is {column.kind} and must hold text, numbers or booleans; it holds {came}. "
                "Hint: declare it as ignore."
            )
        distinct = pc.unique(plain(values).drop_null()).to_pylist()
        by_text = {level_text(value): _as_level(value) for value in distinct}
        return sorted(by_text.values())

    @cached_property
    def _numbers(self) -> dict[str, float]:
        """The number of each level, by its text; found out once, since cells are asked about one by one too."""
        return {level_text(level): float(number) for number, level in enumerate(self.levels)}

    @cached_property
    def _families(self) -> set[str]:
        return {_family_of(level) for level in self.levels}

    def _codes(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        """The level's number for each cell, NaN where missing or unseen; texts are compared once a value."""
        known = self._numbers
        distinct = plain(values).combine_chunks().dictionary_encode()
        number_of = [known.get(level_text(value), np.nan) for value in distinct.dictionary.to_pylist()]
        indices = distinct.indices.fill_null(len(number_of)).to_numpy(zero_copy_only=False)
        return np.array([*number_of, np.nan])[indices]


EncodedColumn = RealColumn | CountColumn | LevelColumn
ENCODED: dict[str, type[EncodedColumn]] = {
    "real": RealColumn,
    "category": LevelColumn,
    "count": CountColumn,
    "ordinal": LevelColumn,
}


def in_words(column: EncodedColumn, value: float, notation: Notation | None) -> str:
    """A model value for a sentence about a column that is written so."""
    said = None if notation is None else notation.in_words(column.decode_one(value))
    return column.in_words(value) if said is None else said


def _numbers(name: str, kind: str, values: pa.ChunkedArray) -> NDArray[np.float64]:
    """The column as float64, NaN where missing."""
    if values.null_count == len(values):
        return np.full(len(values), np.nan)
    if family(values.type) not in ("number", "boolean"):
        _refuse_text(name, kind, values)
    numbers = plain(values).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax())
        raise TableError(
            f"Column {name!r} is {kind} and must hold finite numbers; row {row} holds {numbers[row]} (infinity). "
            "Hint: leave the cell empty if it is unknown."
        )
    return numbers


def _standardised(numbers: NDArray[np.float64], mean: float, sd: float) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.clip((numbers - mean) / sd, -FARTHEST, FARTHEST)


def _known_numbers(column: Column, values: pa.ChunkedArray) -> NDArray[np.float64]:
    """Without gaps and what cannot be read."""
    numbers = _numbers(column.name, column.kind, values)
    return numbers[~np.isnan(numbers)]


def _refuse_text(name: str, kind: str, values: pa.ChunkedArray) -> None:
    cells = values.to_pylist()
    row = next((row for row, cell in enumerate(cells) if not _is_number(cell)), None)
    hint = f"leave the cell empty if it is unknown, or declare {name!r} as category in the schema"
    if row is None:
        row, hint = next(row for row, cell in enumerate(cells) if cell is not None), "convert the column to numbers"
    raise TableError(f"Column {name!r} is {kind} and must hold numbers; row {row} holds {cells[row]!r}. Hint: {hint}.")


def _is_number(cell: Any) -> bool:
    try:
        return cell is None or math.isfinite(float(cell))
    except (TypeError, ValueError):
        return False


def _as_level(value: Any) -> Any:
    """Whole numbers as such, however the column holds them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _family_of(level: Level) -> str:
    return "text" if isinstance(level, str) else "boolean" if isinstance(level, bool) else "number"
