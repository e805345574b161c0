"""The table of flagged cells: what stands there, how suspicious it is, what it probably was, and why."""

from __future__ import annotations

import datetime
import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from cellmend.model.encoding import Cells, EncodedColumn, LevelColumn, RealColumn, TableEncoder
from cellmend.model.inference import Reconstruction, best, for_each_network, over_networks, probabilities_of
from cellmend.model.network import RVAE
from cellmend.table.frames import Change, Suspect, Table
from cellmend.table.notation import Dates, Numbers, Reader

TYPES = {
    "row": pa.int64(),
    "column": pa.string(),
    "value": pa.string(),
    "suspicion": pa.float64(),
    "repair": pa.string(),
    "low": pa.float64(),
    "high": pa.float64(),
    "reason": pa.string(),
}
MIXED = ("value", "repair")
LIKELY_LEVELS = 3  # named in a reason at most
LEAST_LIKELY = 0.05  # a level less probable than this is not named
NAMED_COLUMNS = 3  # in a reason at most
REMOVED_COLUMNS = 6  # to see whether they matter: several may tell the same
ENOUGH = 0.8  # of the change that removing all of them makes; further columns are not named
NO_INFLUENCE = 0.05  # log density, or probability: then nothing in the row matters
EXPLAINED = 10_000  # cells for which it is worked out which columns matter; the most suspicious ones
LONGEST_CHUNK = 8192  # rows decoded at once for that
CONFIDENT = 0.5  # probability of the best level, or no repair is made
SLIPS = (-1, 1, -2, 2, -3, 3)  # places that a decimal point slips, and factors between units
WIDEST_SLIP = 0.15  # how often digits may fit by chance
WIDEST = 0.7  # of the column's whole width may be left open by the row, or no repair is made
SHOWN_IN_NOTEBOOKS = 50
LONGEST_TEXT = 60  # letters of a value in a reason


@dataclass(frozen=True)
class Finding:
    """One flagged cell; the fields are the columns of the findings table, in order."""

    row: int  # from 0, the row's place in the table
    column: str
    value: Any
    suspicion: float  # probability that the cell is corrupted
    repair: Any  # None: no value is likely enough
    low: float | None  # the clean component's central 90 %, where the column is ordered
    high: float | None
    reason: str


@dataclass(frozen=True)
class Expectation:
    """What the clean component expects at one flagged cell, in model units."""

    row: int
    column: int  # model column
    value: float
    repair: float
    low: float  # NaN where the column has no order, as high
    high: float
    likely: list[tuple[int, float]]  # level numbers and probabilities, best first; none for numbers
    meant: float  # of the values that may have been meant the likeliest; NaN if there are none
    matter: tuple[int, ...] = ()  # columns that matter most to the expectation; model columns


@dataclass(frozen=True)
class Mended:
    """All that was found in a table, and the table repaired."""

    table: Table
    matrix: NDArray[np.float64]  # (rows, columns) suspicion of every cell
    found: Sequence[Finding]
    repaired: Any  # of the user's kind

    @property
    def findings(self) -> Any:
        """One line per flagged cell, a DataFrame of the user's kind."""
        return to_frame(self.found, self.table)

    @property
    def suspicion(self) -> Any:
        """The suspicion of every cell, kind and shape of the user's table."""
        return self.table.matrix_of(self.matrix)

    def _repr_html_(self) -> str:
        return to_html(self.found)

    @property
    def expected_false(self) -> float:
        """How many of the flagged cells are expected to be right."""
        return float(sum(1 - finding.suspicion for finding in self.found))


def doubt(suspicion: float) -> float:
    """-log(1 - suspicion), finite.

    >>> round(doubt(0.5), 3)
    0.693
    """
    return -math.log1p(-min(suspicion, 1 - 1e-9))


# ---------------------------------------------------------------- what is expected


@torch.no_grad()
def expect(
    network: RVAE, cells: Cells, seen: Reconstruction, flagged: Tensor, meant: dict[tuple[int, int], list[float]]
) -> list[Expectation]:
    """Expectations for the cells `flagged` (B, D) of some rows; `meant` has for some of them values to choose from."""
    rows, columns = flagged.nonzero(as_tuple=True)
    asked, place = torch.unique(rows, return_inverse=True)  # bounds take long: of flagged rows only
    bounds = network.interval(seen.decoded[..., asked, :])
    low, high = ((bound.mean(0) if bound.dim() == 3 else bound)[place, columns] for bound in bounds)
    repair = seen.values[rows, columns]
    # The mean of a distribution with several humps can lie outside of the middle nine tenths.
    held = cells.values[rows, columns]
    numbers = torch.stack([held, repair, torch.minimum(low, repair), torch.maximum(high, repair)])  # (4, F)
    likely: list[list[tuple[int, float]]] = [[] for _ in rows]
    for span, probabilities in probabilities_of(network, seen.decoded):
        own = ((columns >= span.start) & (columns < span.stop)).nonzero()[:, 0]
        at_own = probabilities[rows[own], columns[own] - span.start]  # (own, C)
        top = at_own.topk(min(LIKELY_LEVELS, at_own.shape[-1]), dim=-1)
        for cell, levels, chances in zip(own.tolist(), top.indices.tolist(), top.values.tolist(), strict=True):
            likely[cell] = [pair for pair in zip(levels, chances, strict=True) if pair[1] > 0]
    chosen = _choose(network, cells, seen, meant)
    places = zip(rows.tolist(), columns.tolist(), strict=True)
    return [
        Expectation(row, column, value, mean, least, most, levels, chosen.get((row, column), np.nan))
        for (row, column), value, mean, least, most, levels in zip(places, *numbers.tolist(), likely, strict=True)
    ]


def _choose(
    network: RVAE, cells: Cells, seen: Reconstruction, meant: dict[tuple[int, int], list[float]]
) -> dict[tuple[int, int], float]:
    """Of the values that may have been meant at a cell the one that the rest of the row makes likeliest."""
    asked = [(row, column, value) for (row, column), values in meant.items() for value in values]
    if not asked:
        return {}
    rows, columns, values = (torch.tensor(each) for each in zip(*asked, strict=True))
    tried = cells[rows.to(cells.values.device)]
    filled, every = tried.values.clone(), torch.arange(len(rows))
    filled[every, columns] = values.to(filled)
    asked_of = for_each_network(network, Cells(filled, torch.ones_like(tried.observed)))
    log_clean = over_networks(network.log_clean(asked_of, seen.decoded[..., rows.to(filled.device), :]))
    chosen: dict[tuple[int, int], tuple[float, float]] = {}
    for (row, column, value), score in zip(asked, log_clean[every, columns].tolist(), strict=True):
        if (row, column) not in chosen or score > chosen[row, column][0]:
            chosen[row, column] = score, value
    return {cell: value for cell, (_, value) in chosen.items()}


@torch.no_grad()
def with_reasons(network: RVAE, cells: Cells, shown: Tensor, expected: Sequence[Expectation]) -> list[Expectation]:
    """The expectations with the columns whose removal changes them most, rows counted within `cells`.

    `shown` (B, D) are the cells that speak for the others: observed, and not wrong themselves.
    """
    each_time = max(1, LONGEST_CHUNK // (cells.values.shape[1] + 1))
    pieces = (expected[start : start + each_time] for start in range(0, len(expected), each_time))
    return [explained for piece in pieces for explained in _explained(network, cells, shown, piece)]


def _explained(network: RVAE, cells: Cells, shown: Tensor, piece: Sequence[Expectation]) -> Iterator[Expectation]:
    """Columns are removed one after the other, each time the one that changes the expectation most.

    One by one would not do: of x, y and carat, each of which tells z, the removal of a single one changes nothing.
    """
    rows = torch.tensor([each.row for each in piece], device=shown.device)
    own = torch.tensor([each.column for each in piece], device=shown.device)
    every = torch.arange(len(piece), device=shown.device)
    left = shown[rows]  # (F, D)
    left[every, own] = False
    values, whole, rounds = cells.values[rows], left.clone(), []
    for _ in range(min(REMOVED_COLUMNS, left.shape[1])):
        change = torch.where(left, _changes(network, values, whole, left, own), -1.0)  # (F, D)
        most, column = change.max(-1)
        rounds.append((most, column))
        left[every, column] = False
    changes, columns = (torch.stack(each, -1) for each in zip(*rounds, strict=True))  # (F, rounds)
    for each, change, order in zip(piece, changes.tolist(), columns.tolist(), strict=True):
        wanted = max(ENOUGH * max(change), NO_INFLUENCE)
        enough = next((place for place, reached in enumerate(change, 1) if reached >= wanted), 0)
        yield replace(each, matter=tuple(order[: min(enough, NAMED_COLUMNS)]))


def _changes(network: RVAE, values: Tensor, whole: Tensor, left: Tensor, own: Tensor) -> Tensor:
    """How far the expectation of each cell's own column is from that by the `whole` row, when of what is `left` of it
    each other column is removed too, (F, D): of levels the total variation, of numbers how much less likely the value
    expected before becomes, as a logarithm, since an expectation may also become vague.
    """
    cells, columns = values.shape
    shown = left.unsqueeze(1).repeat(1, columns + 1, 1)  # (F, D + 1, D), the last with nothing removed
    inner = torch.arange(columns, device=left.device)
    shown[:, inner, inner] = False
    shown[:, -1] = whole
    asked = Cells(values.unsqueeze(1).expand(shown.shape).flatten(0, 1), shown.flatten(0, 1))
    decoded = network.decode(network.encode(for_each_network(network, asked)).mu)
    every = torch.arange(cells, device=own.device)
    expected = best(network, decoded).view(cells, columns + 1, columns)[:, -1]  # (F, D)
    tried = Cells(expected.repeat_interleave(columns + 1, 0), torch.ones_like(asked.observed))
    likely = over_networks(network.log_clean(for_each_network(network, tried), decoded))
    likely = likely.view(cells, columns + 1, columns)[every, :, own]  # (F, D + 1)
    change = (likely[:, -1:] - likely[:, :-1]).clamp_min(0)
    for span, probabilities in probabilities_of(network, decoded):
        coded = ((own >= span.start) & (own < span.stop)).nonzero()[:, 0]
        if len(coded):
            of_all = probabilities.view(cells, columns + 1, *probabilities.shape[1:])
            each = of_all[coded, :, own[coded] - span.start]  # (f, D + 1, C)
            change[coded] = (each[:, :-1] - each[:, -1:]).abs().sum(-1) / 2
    return change


# ---------------------------------------------------------------- in words


@dataclass(frozen=True)
class Wording:
    """What is needed to speak of a table's cells in the user's units and words."""

    table: Table
    encoder: TableEncoder

    def write(self, column: EncodedColumn, value: float) -> Any:
        """A model value as the user's column holds it."""
        decoded = column.decode_one(value)
        reader = self._reader(self.table.arrow.column_names.index(column.name))
        return decoded if reader is None else reader.write(decoded, getattr(column, "decimals", None))

    def read(self, column: EncodedColumn, texts: Sequence[str]) -> list[float]:
        """Texts of a column as model values; those that it does not know are left out."""
        reader = self.table.readers.get(column.name)
        values = pa.chunked_array([pa.array(texts, pa.string())])
        understood = values if reader is None else pa.chunked_array([reader.read(values).values])
        return [value for value in column.encode(understood).tolist() if np.isfinite(value)]

    def writers(self) -> dict[int, Callable[[Any], Any]]:
        """For each modelled position that holds text or dates, how a number is written there."""
        return {
            position: partial(reader.write, decimals=getattr(column, "decimals", None))
            for column, position in zip(self.encoder.columns, self.encoder.positions, strict=True)
            if (reader := self._reader(position)) is not None
        }

    def _reader(self, position: int) -> Reader | None:
        """The reader of a column that holds text or dates; None if it holds what the model holds."""
        return self._read_columns.get(position)

    @cached_property
    def _read_columns(self) -> dict[int, Reader]:
        """By place, the readers of columns that hold text or dates; found out once, since every cell is looked at."""
        names, types = self.table.arrow.column_names, self.table.arrow.schema.types
        return {
            names.index(name): reader
            for name, reader in self.table.readers.items()
            if pa.types.is_temporal(types[names.index(name)]) or self.table.holds_text(names.index(name))
        }

    def meant(
        self, rows: NDArray[np.int64], suspects: Mapping[tuple[int, int], Suspect]
    ) -> dict[tuple[int, int], list[float]]:
        """Of cells of these rows the model values that may have been meant, by place in `rows` and model column."""
        places = {row: place for place, row in enumerate(rows.tolist())}
        columns = {position: d for d, position in enumerate(self.encoder.positions)}
        return {
            (places[row], columns[position]): self.read(self.encoder.columns[columns[position]], suspect.meant)
            for (row, position), suspect in suspects.items()
            if row in places and position in columns and suspect.meant
        }

    def changes(self, found: Sequence[Finding]) -> dict[int, Change]:
        """The repairs of each column, by its place in the table."""
        by_column: dict[str, dict[int, Any]] = {}
        for finding in found:
            if finding.repair is not None:
                by_column.setdefault(finding.column, {})[finding.row] = finding.repair
        levels = {column.name for column in self.encoder.columns if isinstance(column, LevelColumn)}
        changes = {}
        for name, new in by_column.items():
            position, ordered = self.table.arrow.column_names.index(name), sorted(new)
            rows = np.zeros(self.table.arrow.num_rows, dtype=bool)
            rows[ordered] = True
            values = [new[row] for row in ordered]
            if name in levels or any(not isinstance(value, int | float) for value in values):
                changes[position] = Change(rows, np.arange(len(values), dtype=np.float64), tuple(values))
            else:
                changes[position] = Change(rows, np.array(values, dtype=np.float64), None)
        return changes

    def spelled(self, column: EncodedColumn, suspect: Suspect, meant: float) -> Any:
        """The text that may have been meant and says this model value; the nearest if the model knows none."""
        texts = [text for text in suspect.meant if self.read(column, [text]) == [meant]]
        text = texts[0] if texts else suspect.meant[0]
        position = self.table.arrow.column_names.index(column.name)
        return text if position in self._read_columns or np.isnan(meant) else column.decode_one(meant)

    def rounded(self, column: EncodedColumn, value: Any, expected: Expectation) -> Any:
        """A number that only has too many decimals, without those; None if it lies where it is not expected."""
        reader = self.table.readers.get(column.name)
        number = reader.rounded(show(value)) if isinstance(reader, Numbers) else None
        if number is None or not isinstance(column, RealColumn):
            return None
        inside = expected.low <= column.to_model(number) <= expected.high
        return self.write(column, column.to_model(number)) if inside else None

    def value(self, row: int, name: str) -> Any:
        """What stands in a cell, as the user's table has it."""
        return self.table.arrow[name][row].as_py()

    def neighbour(self, row: int, column: int) -> str:
        """A column that matters and what stands in it: "x 5.12"."""
        name = self.encoder.columns[column].name
        return f"{name} {short(self.value(row, name))}"


def explain(
    expected: Expectation, suspicion: float, suspect: Suspect | None, words: Wording, *, abstain: bool
) -> Finding:
    """One expectation in the user's units and words; `suspect` is what the column itself has against the cell.

    With `abstain` there is no repair where the row leaves the value open.
    """
    column = words.encoder.columns[expected.column]
    expected = _within_reach(expected, column)
    value = words.value(expected.row, column.name)
    low, high = (None if np.isnan(bound) else column.decode_one(bound) for bound in (expected.low, expected.high))
    given = [words.neighbour(expected.row, other) for other in expected.matter]
    usual = _usual(expected, column, words)
    if suspect is not None and suspect.readable and len(suspect.meant) == 1:  # the value is known, only badly written
        repair, why = suspect.meant[0], suspect.reason
    elif suspect is not None:
        fits = not isinstance(column, RealColumn) or expected.low <= expected.meant <= expected.high
        if suspect.meant and (fits or np.isnan(expected.meant)):
            repair, why = words.spelled(column, suspect, expected.meant), suspect.reason
        else:
            rounded = words.rounded(column, value, expected)
            repair = _repair(expected, column, words, abstain) if rounded is None else rounded
            why = f"{suspect.reason}; {usual_for(given, usual)}"
    else:
        repair, why = _repair(expected, column, words, abstain), say_why(column.name, value, usual, given)
        slip = slipped_point(expected, column, words) if abstain else None
        if slip is not None:
            repair, why = slip, f"{why}; {short(slip)} with the decimal point moved"
    if repair is None:
        why = f"{why}. Abstained: {_no_repair(expected, column, words)}"
    return Finding(
        row=expected.row,
        column=column.name,
        value=value,
        suspicion=suspicion,
        repair=repair,
        low=_bound(low, words, column),
        high=_bound(high, words, column),
        reason=why,
    )


def _within_reach(expected: Expectation, column: EncodedColumn) -> Expectation:
    """The interval without what the column never holds: no amounts below 0, no percentages above 100."""
    if not isinstance(column, RealColumn):
        return expected
    least, most = min(column.reach[0], expected.repair), max(column.reach[1], expected.repair)
    return replace(expected, low=max(expected.low, least), high=min(expected.high, most))


def explain_suspect(suspect: Suspect, table: Table) -> Finding:
    """A cell of a column that is not modelled, from what the column itself has against it."""
    name = table.arrow.column_names[suspect.column]
    value = table.arrow.column(suspect.column)[suspect.row].as_py()
    repair = suspect.meant[0] if suspect.meant else None
    why = suspect.reason if suspect.meant else f"{suspect.reason}. Abstained: nothing tells what was meant"
    return Finding(suspect.row, name, value, suspect.suspicion, repair, None, None, why)


def _repair(expected: Expectation, column: EncodedColumn, words: Wording, abstain: bool) -> Any:
    return None if abstain and is_open(expected, column) else words.write(column, expected.repair)


def is_open(expected: Expectation, column: EncodedColumn) -> bool:
    """Does the row leave open what the value is?"""
    if isinstance(column, LevelColumn):
        return expected.likely[0][1] < CONFIDENT
    if not isinstance(column, RealColumn):
        return False
    width = column.knots[-1] - column.knots[0]
    return 0 < WIDEST * width < expected.high - expected.low


def slipped_point(expected: Expectation, column: EncodedColumn, words: Wording) -> Any:
    """The cell's own digits with the decimal point where they fit, if they fit and chance would seldom make them.

    Numbers spread evenly over the logarithm: digits fit by chance as often as the interval is wide on that scale.
    """
    if not isinstance(column, RealColumn):
        return None
    low, high, value = (column.in_units(bound) for bound in (expected.low, expected.high, expected.value))
    if low * high <= 0 or value * low <= 0 or abs(math.log10(high / low)) > WIDEST_SLIP:
        return None
    for places in SLIPS:
        if low <= value * 10.0**places <= high:
            return words.write(column, column.to_model(value * 10.0**places))
    return None


def _no_repair(expected: Expectation, column: EncodedColumn, words: Wording) -> str:
    if not isinstance(column, LevelColumn):
        return "the rest of the row does not tell the value"
    named = [short(words.write(column, level)) for level, chance in expected.likely if chance >= LEAST_LIKELY]
    return f"{_listed(named)} are all possible" if len(named) > 1 else "no value is likely"


def _bound(bound: Any, words: Wording, column: EncodedColumn) -> float | None:
    """A bound as a number; dates have none."""
    is_date = isinstance(words.table.readers.get(column.name), Dates)
    return float(bound) if isinstance(bound, int | float) and not is_date else None


def _usual(expected: Expectation, column: EncodedColumn, words: Wording) -> str:
    """What is usual at a cell: likely levels with probabilities, or an interval."""
    if expected.likely:
        levels = [(words.write(column, level), chance) for level, chance in expected.likely]
        named = [f"{short(level)} ({100 * chance:.0f} %)" for level, chance in levels if chance >= LEAST_LIKELY]
        return " or ".join(named)
    low, high = (float(column.decode_one(bound)) for bound in (expected.low, expected.high))
    reader = words.table.readers.get(column.name)
    if isinstance(reader, Dates):
        return f"{short(reader.write(low, 0))} to {short(reader.write(high, 0))}"
    return f"{about(low)} to {about(high)}"


def usual_for(given: Sequence[str], usual: str) -> str:
    """What is usual, given the columns that matter.

    >>> usual_for(["x 5.12", "y 5.15"], "3.15 to 3.21")
    'for x 5.12 and y 5.15 it is usually 3.15 to 3.21'
    """
    return f"for {_listed(given)} it is usually {usual}" if given else f"for a row like this it is usually {usual}"


def say_why(name: str, value: Any, usual: str, given: Sequence[str] = ()) -> str:
    """The reason in words.

    >>> say_why("z", 31.8, "3.15 to 3.21", ["x 5.12", "y 5.15", "depth 61.8"])
    'z is 31.8; for x 5.12, y 5.15 and depth 61.8 it is usually 3.15 to 3.21'
    >>> say_why("sex", "Male", "Female (97 %)")
    'sex is Male; for a row like this it is usually Female (97 %)'
    """
    return f"{name} is {short(value)}; {usual_for(given, usual)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def swapped(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with another reason where two numbers of a row lie each where the other is expected.

    >>> x = Finding(3, "x", 9.0, 0.9, 4.0, 3.9, 4.1, "x is 9")
    >>> y = Finding(3, "y", 4.0, 0.9, 9.1, 8.9, 9.2, "y is 4")
    >>> [finding.reason for finding in swapped([x, y])]
    ['x is 9; it looks swapped with y', 'y is 4; it looks swapped with x']
    """
    by_row: dict[int, list[int]] = {}
    for place, finding in enumerate(findings):
        if finding.low is not None and finding.repair is not None and not np.isnan(_number(finding)):
            by_row.setdefault(finding.row, []).append(place)
    changed = list(findings)
    for places in by_row.values():
        for one in places:
            for other in places:
                if one < other and _fits(findings[one], findings[other]) and _fits(findings[other], findings[one]):
                    changed[one], changed[other] = (
                        _swap(findings[one], findings[other]),
                        _swap(findings[other], findings[one]),
                    )
    return changed


def _fits(one: Finding, other: Finding) -> bool:
    if other.low is None or other.high is None:
        return False
    return other.low <= _number(one) <= other.high and _number(one) != _number(other)


def _number(finding: Finding) -> float:
    try:
        return float(finding.value)
    except (TypeError, ValueError):
        return math.nan


def _swap(one: Finding, other: Finding) -> Finding:
    reason = f"{one.column} is {short(one.value)}; it looks swapped with {other.column}"
    return replace(one, repair=other.value, reason=reason)


def about(bound: float) -> str:
    """A bound with the digits that matter.

    >>> about(3.1512345678), about(123456789.12), about(12)
    ('3.15123', '123456789', '12')
    """
    return show(bound if isinstance(bound, int) else float(f"{bound:.6g}") if abs(bound) < 1e5 else round(bound))


def short(value: Any) -> str:
    """A value for a sentence, long ones cut.

    >>> short("a" * 70) == "a" * 59 + "…", short(None)
    (True, 'missing')
    """
    text = "missing" if value is None else show(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def show(value: Any) -> str:
    """A value as a person would write it, all digits kept that a float has for sure.

    >>> show(-5.0), show(0.1 + 0.2), show(True), show(None), show(datetime.datetime(2024, 5, 3))
    ('-5', '0.3', 'True', '', '2024-05-03')
    """
    if value is None:
        return ""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------- as a table


def to_frame(findings: Sequence[Finding], table: Table) -> Any:
    """The findings as a DataFrame of the user's kind, pandas for an array.

    `value` and `repair` may be text in one line and a number in the next. pandas holds them as they
    are; other kinds need one type a column, so there they are text.
    """
    cells = {name: [getattr(finding, name) for finding in findings] for name in TYPES}
    texts = {
        name: [None if v is None else show(v) for v in cells[name]] if name in MIXED else cells[name] for name in TYPES
    }
    frame = table.frame_of(pa.table({name: pa.array(texts[name], type_) for name, type_ in TYPES.items()}))
    if table.gives_pandas:
        for name in MIXED:
            frame[name] = np.fromiter(cells[name], dtype=object, count=len(findings))
    return frame


def to_html(findings: Sequence[Finding]) -> str:
    """Findings as HTML for a notebook, with whole sentences; nothing in them is taken for markup.

    >>> finding = Finding(3, "x", "<b>", 0.9, None, None, None, "x is <b>")
    >>> "<td>&lt;b&gt;</td>" in to_html([finding])
    True
    """
    titles = "".join(f"<th>{name}</th>" for name in TYPES)
    shown = findings[:SHOWN_IN_NOTEBOOKS]
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_in_table(getattr(each, name)))}</td>" for name in TYPES) + "</tr>"
        for each in shown
    )
    more = f"<p>{len(findings) - len(shown):,} more</p>" if len(findings) > len(shown) else ""
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>{more}"


def _in_table(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else show(cell)
