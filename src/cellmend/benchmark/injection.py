"""Known errors of the kinds that people make, put into any table.

An error is made in the cells as the table holds them, text included. Every kind says what a cell of some rows would
become in each column; in each row one column is drawn among those where that differs from what stood there.
"""

from __future__ import annotations

import string
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.benchmark.corruption import NOISES, Rng
from cellmend.benchmark.metrics import Floats, Mask
from cellmend.errors import InjectionError, SchemaWarning
from cellmend.model.columns import EncodedColumn, LevelColumn, NumberColumn
from cellmend.model.encoding import TableEncoder
from cellmend.table.dates import Dates
from cellmend.table.frames import Frame, read_frame
from cellmend.table.notation import MOMENTS
from cellmend.table.reader import Given, understand_columns
from cellmend.table.readtable import ReadTable
from cellmend.table.schema import IGNORE
from cellmend.table.texts import Notation, Words
from cellmend.table.values import family, plain

Ints = NDArray[np.int64]

MOST_ERRORS = 3  # in a row, and in no more than a third of its cells; a swap counts for one
AS_IT_WAS = -1  # in place of a kind's number
UNITS, SHIFTS = (1, 3, -1, -3), (1, 2, -1, -2)  # powers of ten
DIGITS = string.digits + "oOlISx"  # that are typed for one another


# ---------------------------------------------------------------- columns that errors get into


@dataclass(frozen=True)
class Target:
    """A column of the table that errors get into; N rows."""

    name: str
    place: int  # in the table
    cells: pa.Array  # (N,) as the table holds them; of a dictionary column the indices
    dictionary: pa.DictionaryArray | None  # the column itself, if it is one
    understood: pa.Array  # (N,) text that holds numbers or dates as those
    notation: Notation  # of text and dates
    modelled: EncodedColumn | None  # None: left out, so that only its own values speak against a cell
    like: tuple[Target, ...] = ()  # that it may be taken for

    @property
    def holds_text(self) -> bool:
        """Is it text that may be anything? A dictionary holds its own levels only."""
        return self.dictionary is None and family(self.cells.type) == "text"

    @property
    def holds_numbers(self) -> bool:
        """Is it modelled as numbers, or as dates, which are days?"""
        return isinstance(self.modelled, NumberColumn)

    @property
    def decimals(self) -> int | None:
        """As many as nearly all its numbers have; None if they have any."""
        return self.modelled.decimals if isinstance(self.modelled, NumberColumn) else None

    @property
    def mean_and_sd(self) -> tuple[float, float]:
        """Of its numbers."""
        return (self.modelled.mean, self.modelled.sd) if isinstance(self.modelled, NumberColumn) else (0.0, 1.0)

    @property
    def kind(self) -> str:
        """As it is modelled."""
        return IGNORE if self.modelled is None else self.modelled.kind

    @property
    def observed(self) -> Mask:
        """Which cells say something, (N,): neither missing nor a text where a number should be."""
        return ~pc.is_null(self.understood, nan_is_null=True).to_numpy(zero_copy_only=False)

    @property
    def style(self) -> tuple[Any, ...]:
        """What columns must have in common to be taken for one another."""
        known = None if self.dictionary is None else tuple(self.dictionary.dictionary.to_pylist())
        marks = tuple(getattr(self.notation, mark, "") for mark in ("decimal", "before", "after", "form"))
        return self.kind, self.cells.type, self.decimals, type(self.notation), marks, known

    def numbers(self, rows: Ints) -> Floats:
        """These cells as numbers, (n,); NaN where there is none."""
        return as_numbers(self.understood.take(pa.array(rows)))

    def write(self, numbers: Floats) -> pa.Array:
        """Numbers as the column holds them, at its resolution; null where it cannot hold them."""
        rounded = numbers if self.decimals is None else np.round(numbers, self.decimals) + 0.0  # -0 is 0
        finite = np.isfinite(rounded)
        if self.holds_text or isinstance(self.notation, Dates):
            places = zip(rounded.tolist(), finite.tolist(), strict=True)
            written = [self.notation.write(each, self.decimals) if is_finite else None for each, is_finite in places]
            return pa.array(written, self.cells.type) if self.holds_text else _as_dates(written, self.cells.type)
        held = pa.array(np.where(finite, rounded, 0.0)).cast(self.cells.type, safe=False)
        exact = finite & np.isclose(as_numbers(held), rounded, rtol=1e-6, atol=0.0)  # a small type overflows
        return pc.if_else(pa.array(exact), held, None)

    def read(self, cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Cells of this column, repaired or as a method sees them, as numbers, days or levels."""
        if isinstance(self.notation, Dates) and pa.types.is_temporal(cells.type):
            return self.notation.understand(cells)
        cells = plain(cells)
        is_text = self.dictionary is None and family(cells.type) == "text"
        return self.notation.read(cells).values if is_text else cells

    def differs(self, rows: Ints, cells: pa.Array) -> Mask:
        """Which of the new cells (n,) of these rows say something, and not what the old ones said."""
        if not self.holds_text:
            changed = pc.not_equal(cells, self.cells.take(pa.array(rows)))
            return changed.fill_null(False).to_numpy(zero_copy_only=False) & self.observed[rows]
        reading = self.notation.read(cells)
        changed = pc.not_equal(reading.values, self.understood.take(pa.array(rows))).fill_null(False)
        said = reading.values.is_valid().to_numpy(zero_copy_only=False)
        return (changed.to_numpy(zero_copy_only=False) | (reading.strange & said)) & self.observed[rows]

    def with_cells(self, rows: Ints, cells: pa.Array) -> pa.Array:
        """The whole column with new cells (n,) in these rows."""
        places = np.arange(len(self.cells))
        places[rows] = len(self.cells) + np.arange(len(rows))
        written = pa.concat_arrays([self.cells, cells]).take(pa.array(places))
        if self.dictionary is None:
            return written
        whole = self.dictionary
        return pa.DictionaryArray.from_arrays(written, whole.dictionary, ordered=whole.type.ordered)


def _targets(frame: Frame, given: Given) -> list[Target]:
    """Every column but those that the user told to ignore, and those that nobody can compare."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)  # fitting says it
        notations, understood, schema = understand_columns(frame.arrow, given)
    encoder = TableEncoder.fit(schema, ReadTable(frame, understood, notations))
    modelled = dict(zip(encoder.positions, encoder.columns, strict=True))
    found = []
    for place, column in enumerate(schema):
        cells = frame.arrow.column(place).combine_chunks()
        comparable = family(cells.type) != "other" or place in modelled
        if comparable and (column.kind != IGNORE or column.reason):
            dictionary = cells if pa.types.is_dictionary(cells.type) else None
            found.append(
                Target(
                    name=column.name,
                    place=place,
                    cells=cells if dictionary is None else dictionary.indices,
                    dictionary=dictionary,
                    understood=understood.column(place).combine_chunks(),
                    notation=notations.get(column.name, Words()),
                    modelled=modelled.get(place),
                )
            )
    alike = defaultdict(list)
    for one in found:
        if one.modelled is not None:
            alike[one.style].append(one)
    return [replace(one, like=tuple(each for each in alike[one.style] if each is not one)) for one in found]


def as_numbers(cells: pa.Array | pa.ChunkedArray) -> Floats:
    """Cells that hold numbers as floats; NaN where there is none."""
    return plain(cells).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _as_dates(moments: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Dates on the wall as a column of this type holds them."""
    wall = pa.array(moments, pa.timestamp("us"))
    zone = getattr(type_, "tz", None)
    if zone is not None:  # an hour that clocks skip or show twice is the earlier one
        wall = pc.assume_timezone(wall, zone, ambiguous="earliest", nonexistent="earliest")
    return wall.cast(type_, safe=False)


# ---------------------------------------------------------------- kinds of errors


@dataclass(frozen=True)
class Slip:
    """What cells of some rows of a column become, by one kind of error."""

    cells: pa.Array  # (n,) null where none can be made
    other: Ints | None = None  # (n,) of a swap: the place of the column that gets this one's cell


@dataclass(frozen=True)
class Kind:
    """One kind of error: what it is, which columns it can be made in, and how it is made in some rows of one."""

    about: str
    fits: Callable[[Target], bool]
    make: Callable[[Rng, Target, Ints], Slip]
    cells: int = 1  # that one error takes


def _noisy(rng: Rng, target: Target, rows: Ints) -> Slip:
    """Noise of five standard deviations, as in the paper; dates keep their time of day, counts never fall below 0."""
    _, sd = target.mean_and_sd
    noise = NOISES["gaussian"].draw(rng, len(rows)) * sd
    numbers = target.numbers(rows) + (np.round(noise) if isinstance(target.notation, MOMENTS) else noise)
    return Slip(target.write(np.abs(np.round(numbers)) if target.kind == "count" else numbers))


def _other_level(rng: Rng, target: Target, rows: Ints) -> Slip:
    """Any other level that stands somewhere in the column, all alike."""
    codes = _codes(target)
    known = np.flatnonzero(np.isfinite(codes))
    levels, first = np.unique(codes[known], return_index=True)
    own = np.searchsorted(levels, codes[rows]) % len(levels)
    drawn = (own + rng.integers(1, len(levels), len(rows))) % len(levels)
    return Slip(target.cells.take(pa.array(known[first[drawn]])))


def _codes(target: Target) -> Floats:
    """The number of each cell's level, (N,); NaN where it has none."""
    if not isinstance(target.modelled, LevelColumn):
        return np.full(len(target.cells), np.nan)
    return target.modelled.encode(pa.chunked_array([target.understood]))


def _has_levels(target: Target) -> bool:
    codes = _codes(target)
    return len(np.unique(codes[np.isfinite(codes)])) > 1


def _swapped(rng: Rng, target: Target, rows: Ints) -> Slip:
    """The cell of a like column, drawn for each row; that one gets this one's."""
    drawn = rng.integers(0, len(target.like), len(rows))
    parts = []
    for number in np.unique(drawn):
        other, own = target.like[number], rows[drawn == number]
        there, back = other.cells.take(pa.array(own)), target.cells.take(pa.array(own))
        both = target.differs(own, there) & other.differs(own, back)
        parts.append(pc.if_else(pa.array(both), there, None))
    cells = pa.concat_arrays(parts).take(pa.array(np.argsort(np.argsort(drawn, kind="stable"))))
    return Slip(cells, np.array([each.place for each in target.like])[drawn])


def _in_another_unit(rng: Rng, target: Target, rows: Ints) -> Slip:
    return Slip(target.write(shifted(rng, target.numbers(rows), UNITS, target.decimals)))


def _with_shifted_point(rng: Rng, target: Target, rows: Ints) -> Slip:
    """To the right as far as there are decimals, so that no digit is added."""
    within = [power for power in SHIFTS if target.decimals is None or power <= target.decimals]
    return Slip(target.write(shifted(rng, target.numbers(rows), within, target.decimals)))


def shifted(rng: Rng, numbers: Floats, powers: Sequence[int], decimals: int | None) -> Floats:
    """Numbers (n,) times ten to one of these powers, drawn among those that need no more decimals; NaN if none does.

    >>> shifted(np.random.default_rng(0), np.array([3.18, 0.0]), (1, -1), 2)
    array([31.8,  nan])
    """
    tens = 10.0 ** np.abs(powers)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.where(np.array(powers) > 0, numbers[:, None] * tens, numbers[:, None] / tens)  # (n, powers)
        made = exact if decimals is None else np.round(exact, decimals)
        possible = np.isclose(made, exact, rtol=1e-9, atol=0.0) & (exact != 0)
    drawn = _one_of(rng, possible)
    return np.where(drawn >= 0, made[np.arange(len(made)), drawn], np.nan)


def _one_of(rng: Rng, possible: Mask) -> Ints:
    """The place of one of those that are possible in each row (n, places); -1 if none is."""
    drawn = (rng.random(possible.shape) * possible).argmax(axis=1)
    return np.where(possible.any(axis=1), drawn, -1)


def _mistyped(rng: Rng, target: Target, rows: Ints) -> Slip:
    texts = target.cells.take(pa.array(rows)).to_pylist()
    draws = rng.random((len(rows), 3)).tolist()
    made = [misspelled(text, *each) if text else None for text, each in zip(texts, draws, strict=True)]
    cells = pa.array(made, target.cells.type)
    if target.decimals is None or isinstance(target.notation, MOMENTS):
        return Slip(cells)
    numbers = as_numbers(target.read(cells))
    coarse = np.isnan(numbers) | np.isclose(numbers, np.round(numbers, target.decimals), rtol=1e-12, atol=0.0)
    return Slip(pc.if_else(pa.array(coarse), cells, None))


def misspelled(text: str, how: float, where: float, what: float) -> str:
    """A text with one letter changed, dropped, doubled or exchanged with the next, by draws from 0 to below 1.

    >>> [misspelled("Rome", how, where=0.3, what=0.0) for how in (0.0, 0.25, 0.5, 0.75)]
    ['Rame', 'Rme', 'Roome', 'Rmoe']
    >>> misspelled("44.00", how=0.0, where=0.0, what=0.99), misspelled("44.00", how=0.5, where=0.5, what=0.0)
    ('x4.00', '44..00')
    """
    place = int(where * len(text))
    before, letter, after = text[:place], text[place], text[place + 1 :]
    letters = DIGITS if letter.isdecimal() else string.ascii_uppercase if letter.isupper() else string.ascii_lowercase
    others = letters.replace(letter, "")
    changed = others[int(what * len(others))]
    return before + (changed + after, after, letter + letter + after, after[:1] + letter + after[1:])[int(4 * how)]


def _copied(rng: Rng, target: Target, rows: Ints) -> Slip:
    """What stood in the row above, if there is one."""
    above = target.cells.take(pa.array(np.maximum(rows - 1, 0)))
    return Slip(pc.if_else(pa.array(rows > 0), above, None))


def _is_quantity(target: Target) -> bool:
    return target.holds_numbers and not isinstance(target.notation, MOMENTS)


KINDS_OF_ERRORS: dict[str, Kind] = {
    "gaussian": Kind("a number with noise of five standard deviations", lambda t: t.holds_numbers, _noisy),
    "level": Kind("another level of the column", _has_levels, _other_level),
    "swap": Kind("two cells of a row exchanged", lambda t: bool(t.like), _swapped, cells=2),
    "unit": Kind("a number 10 or 1000 times as large or as small", _is_quantity, _in_another_unit),
    "decimal": Kind(
        "a number with its decimal point shifted", lambda t: _is_quantity(t) and t.decimals != 0, _with_shifted_point
    ),
    "typo": Kind("a text with one letter wrong", lambda t: t.holds_text, _mistyped),
    "copied": Kind("the value of the row above", lambda t: True, _copied),
}
NAMES = tuple(KINDS_OF_ERRORS)


# ---------------------------------------------------------------- a table with errors


@dataclass(frozen=True)
class Injected:
    """A table with known errors, N rows and D columns."""

    table: pa.Table
    targets: tuple[Target, ...]  # its columns as they were
    kinds: NDArray[np.int8]  # (N, D) number of the kind in KINDS_OF_ERRORS, or AS_IT_WAS

    @property
    def mask(self) -> Mask:
        """Which cells are wrong, (N, D)."""
        return self.kinds != AS_IT_WAS


def inject(table: pa.Table, *, schema: Given, share: float, seed: int) -> Injected:
    """The table with one error or a few in a share of its rows, spread evenly over the kinds.

    Missing cells stay missing, and cells that cannot be read as they are. Numbers keep the resolution of their column,
    so that too many digits give nothing away, and text the way in which the column writes it. What a kind would leave
    as it was is not counted.

    >>> clean = pa.table({"depth": ["61.5", "59.8", "62.4"] * 40})
    >>> errors = inject(clean, schema={"depth": "real"}, share=0.1, seed=0)
    >>> int(errors.mask.sum()), int((errors.table["depth"].to_numpy() != clean["depth"].to_numpy()).sum())
    (12, 12)
    """
    rng = np.random.default_rng(seed)
    frame = read_frame(table)
    source, targets = frame.arrow, _targets(frame, schema)
    fitting = {name: [each for each in targets if kind.fits(each)] for name, kind in KINDS_OF_ERRORS.items()}
    possible = [name for name in NAMES if fitting[name]]
    most = max(1, min(MOST_ERRORS, len(targets) // 3))
    kinds = np.full((source.num_rows, source.num_columns), AS_IT_WAS, dtype=np.int8)
    slips: dict[int, list[tuple[Ints, pa.Array]]] = {target.place: [] for target in targets}
    for name, rows in _occasions(rng, possible, rows=source.num_rows, share=share, most=most):
        for place, own, cells in _slip(rng, KINDS_OF_ERRORS[name], fitting[name], rows, kinds == AS_IT_WAS):
            kinds[own, place] = NAMES.index(name)
            slips[place].append((own, cells))
    if (kinds == AS_IT_WAS).all():
        raise InjectionError(
            f"Errors must be made in some cells; in {share:g} of {source.num_rows:,} rows none could be. "
            "Hint: a larger share, or columns that are neither ignored, constant nor empty."
        )
    return Injected(_written(source, targets, slips), tuple(targets), kinds)


def _occasions(rng: Rng, names: Sequence[str], *, rows: int, share: float, most: int) -> Iterator[tuple[str, Ints]]:
    """Kinds of errors and the rows that get one: each drawn row up to `most`, one after the other."""
    picked = rng.permutation(rows)[: max(1, round(share * rows))]
    errors = rng.integers(1, most + 1, len(picked))
    # An error of two cells half as often as others.
    evenly = [number for number, name in enumerate(names) for _ in range(2 // KINDS_OF_ERRORS[name].cells)]
    for already in range(most):
        left = picked[errors > already]
        drawn = rng.permutation(np.resize(rng.permutation(evenly), len(left)))
        for number in np.unique(drawn):
            yield names[number], np.sort(left[drawn == number])


def _slip(
    rng: Rng, kind: Kind, targets: Sequence[Target], rows: Ints, free: Mask
) -> Iterator[tuple[int, Ints, pa.Array]]:
    """One error of this kind in each of the rows where one can be made: the column's place, rows and new cells."""
    made = [kind.make(rng, target, rows) for target in targets]
    possible = np.zeros((len(rows), len(targets)), dtype=bool)
    for number, (target, slip) in enumerate(zip(targets, made, strict=True)):
        also = free[rows, target.place if slip.other is None else slip.other]
        possible[:, number] = target.differs(rows, slip.cells) & free[rows, target.place] & also
    drawn = _one_of(rng, possible)
    for number, (target, slip) in enumerate(zip(targets, made, strict=True)):
        here = drawn == number
        yield target.place, rows[here], slip.cells.filter(pa.array(here))
        for other in np.unique(slip.other[here]) if slip.other is not None else ():
            there = rows[here & (slip.other == other)]
            yield int(other), there, target.cells.take(pa.array(there))


def _written(
    table: pa.Table, targets: Sequence[Target], slips: Mapping[int, Sequence[tuple[Ints, pa.Array]]]
) -> pa.Table:
    for target in targets:
        if slips[target.place]:
            rows, cells = zip(*slips[target.place], strict=True)
            new = target.with_cells(np.concatenate(rows), pa.concat_arrays(cells))
            table = table.set_column(target.place, table.schema.field(target.place), new)
    return table
