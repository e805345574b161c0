"""One column drawn before and after repair, as inline SVG or a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.report.markup import cell_html, counted, cut, escaped, html_table
from cellmend.report.portrait import Portrait
from cellmend.table.schema import Column
from cellmend.table.values import level_text, readable

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]

LONGEST_LEVEL = 60
BINS = 30  # of a histogram at most, without the two for gross values
TAILS = (0.005, 0.995)  # quantiles: what lies beyond them may be gross and must not squash the rest
ON_GRID = 0.9  # of the values are multiples of a width: they are rounded, and a finer bin would be empty
FEW_BINS = 8  # so few can have a number each
UNITS = (("D", 86_400), ("h", 3_600), ("m", 60), ("s", 1))  # of an axis of times, in seconds
TALL, DEEP, SHORTEST = 92, 32, 1.5  # pixels: the longest bars above and below the line, and the shortest
APART = 0.7  # of a bar between the gross values and the others
LEVELS = 12  # of a column that get a line each


def chart(column: Portrait) -> str:
    """The picture of a column: a histogram where values have distances, else its levels."""
    if column.is_empty:
        return "<p>There is no value to draw.</p>"
    if column.has_distances:
        return _histogram(column)
    return _levels(column) if column.has_levels else "<p>Not drawn.</p>"


# ---------------------------------------------------------------- numbers and dates


@dataclass(frozen=True)
class Axis:
    """Where the bins of a histogram lie; before the first and after the last edge are two more, for gross values."""

    edges: Numbers
    unit: str  # what 1 is: "D", "h", "m" or "s" since 1970 of times, nothing of numbers
    is_centred: bool  # do values lie in the middle of their bins, as rounded ones do?

    @property
    def middles(self) -> Numbers:
        """The middle of each bin."""
        return self.edges[:-1] / 2 + self.edges[1:] / 2

    def count(self, values: Numbers) -> Counts:
        """How many values lie before the first edge, in each bin, and from the last edge on."""
        places = np.searchsorted(self.edges, values[~np.isnan(values)], side="right")
        return np.bincount(places, minlength=len(self.edges) + 1)

    def say(self, number: float) -> str:
        """A number on this axis as one would write it.

        >>> Axis(np.zeros(2), "D", False).say(18262), Axis(np.zeros(2), "", False).say(12000.5)
        ('2020-01-01', '12,000.5')
        """
        if self.unit:
            time = np.int64(math.floor(number)).astype(f"datetime64[{self.unit}]")
            return str(time.astype("datetime64[m]") if self.unit == "h" else time).replace("T", " ")
        return f"{number:,.6g}" if abs(number) < 1e6 else f"{number:.4g}"

    def describe(self, place: int) -> str:
        """What the numbers are like that `count` counts at a place."""
        if place == 0:
            return f"{'before' if self.unit else 'below'} {self.say(self.edges[0])}"
        if place == len(self.edges):
            return f"{self.say(self.edges[-1])} or {'later' if self.unit else 'more'}"
        if self.is_centred:
            return f"about {self.say(self.middles[place - 1])}"
        return f"{self.say(self.edges[place - 1])} to {self.say(self.edges[place])}"

    def ticks(self) -> list[str]:
        """The middle of every bin if they are few, else the ends of the axis and, where there is one, its middle."""
        ends = self.middles if self.is_centred else self.edges
        if self.is_centred and len(ends) <= (2 if self.unit else FEW_BINS):
            return [self.say(tick) for tick in ends]
        has_middle = len(ends) % 2 or not self.is_centred
        return [self.say(tick) for tick in [ends[0], *[ends[0] / 2 + ends[-1] / 2] * has_middle, ends[-1]]]


def axis_of(values: Numbers, unit: str) -> Axis:
    """About 30 bins of a round width at most, over the middle 99 % of the values, or over all if none is far out.

    >>> axis = axis_of(np.append(np.linspace(0, 9.9, 1000), 1e9), "")  # one gross value
    >>> axis.edges[[0, 1, -1]].tolist(), axis.count(np.array([-3.0, 0.2, 1e9]))[[0, 1, -1]].tolist()
    ([0.0, 0.5, 10.0], [1, 1, 1])
    """
    low, high = np.quantile(values, TAILS, method="nearest").tolist()
    least, most, reach = float(values.min()), float(values.max()), high / 4 - low / 4
    low, high = (least if least >= low - reach else low), (most if most <= high + reach else high)
    width, is_on_grid = bin_width(values[(values >= low) & (values <= high)])
    shift = width / 2 if is_on_grid else 0.0
    places = range(math.floor((low + shift) / width), math.floor((high + shift) / width) + 2)
    # With 15 digits the edge after 0.2 is 0.3, and the value 0.3 does not lie before it.
    edges = np.array([float(f"{place * width - shift:.15g}") for place in places])
    return Axis(np.nan_to_num(edges), unit, is_on_grid)  # an edge past the largest float is that float


def bin_width(values: Numbers) -> tuple[float, bool]:
    """1, 2 or 5 times a power of ten, and whether the values are multiples of it, as rounded ones may be.

    >>> bin_width(np.array([1.0, 2.0, 5.0])), bin_width(np.linspace(0, 100, 999))
    ((1.0, True), (5.0, False))
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        return (1.0, True) if low.is_integer() else (10.0 ** math.floor(math.log10(abs(low))), False)
    # Floats next to each other leave no room for bins between them.
    least = max(high / BINS - low / BINS, 16 * math.ulp(max(abs(low), abs(high))))
    power = 10.0 ** math.floor(math.log10(least))
    width = next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))
    coarser = 10.0 ** math.ceil(math.log10(width) - 1e-9)
    while coarser <= high - low and _are_multiples(values, coarser):
        width, coarser = coarser, 10 * coarser
    return width, _are_multiples(values, width)


def _are_multiples(values: Numbers, width: float) -> bool:
    steps = values / width
    return bool(np.mean(np.abs(steps - np.round(steps)) < 1e-6) >= ON_GRID)


def _numbers(values: pa.ChunkedArray) -> Numbers:
    """Numbers as floats, times as seconds since 1970; NaN where there is none."""
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    return values.cast(pa.float64(), safe=False).to_numpy()


def _unit_of(column: Portrait, numbers: Numbers) -> tuple[str, int]:
    """What an axis counts in, and its length in `numbers`: for times the longest unit that gives enough bins."""
    if not pa.types.is_temporal(column.before.type):
        return ("D" if column.counts_days else ""), 1
    if pa.types.is_date(column.before.type):
        return UNITS[0]
    low, high = np.nanquantile(numbers, TAILS)
    return next((unit for unit in UNITS if high - low >= BINS * unit[1]), UNITS[-1])


@dataclass(frozen=True)
class Panel:
    """One histogram: all values, and the marked ones by colour, counted along an axis."""

    time: str
    values: Counts
    marks: dict[str, Counts]

    @property
    def marked(self) -> Counts:
        """How many are marked in each bin."""
        return np.sum(list(self.marks.values()), axis=0)

    def describe(self, places: slice) -> str:
        """How many values there are, and how many of them are marked."""
        marked = [(int(counts[places].sum()), colour) for colour, counts in self.marks.items()]
        own = counted(int(self.values[places].sum()), "value")
        return ", ".join([own, *(f"{number:,} {colour}" for number, colour in marked if number)])


@dataclass(frozen=True)
class Frame:
    """What the histograms of one column share: the axis, the scales, the place of each bar, which is one unit wide."""

    axis: Axis
    most: int  # values in a bin
    most_marked: int
    lefts: Numbers  # where the bar of each count starts
    has_below: bool  # is anything before the first edge?
    has_above: bool

    @classmethod
    def around(cls, panels: Sequence[Panel], axis: Axis) -> Frame:
        """The frame that holds all panels; bars of gross values stand apart, if there are any."""
        values = np.stack([panel.values for panel in panels])
        lefts = np.arange(values.shape[1], dtype=float)
        lefts[[0, -1]] += -APART, APART
        marked = max(int(panel.marked.max()) for panel in panels)
        return cls(axis, int(values.max()), marked, lefts, bool(values[:, 0].any()), bool(values[:, -1].any()))

    @property
    def start(self) -> float:
        """The left end."""
        return float(self.lefts[0 if self.has_below else 1])

    @property
    def width(self) -> float:
        """From the left end to the right."""
        return float(self.lefts[-1 if self.has_above else -2]) + 1 - self.start

    @property
    def height(self) -> int:
        """From the top of the highest bar to the end of the longest that hangs."""
        return TALL + (DEEP if self.most_marked else 0)


def _histogram(column: Portrait) -> str:
    """Before and after on one axis, the flagged cells below the line."""
    before, after = _numbers(column.before), _numbers(column.after)
    unit, length = _unit_of(column, before)
    before, after = before / length, after / length
    finite = before[np.isfinite(before)]
    if not len(finite):
        return "<p>Not drawn: no value is finite.</p>"
    axis = axis_of(finite, unit)
    time = "before repair" if column.is_changed else "as found"
    panels = [Panel(time, axis.count(before), {"flagged": axis.count(before[column.flagged])})]
    if column.is_changed:
        left = np.setdiff1d(column.flagged, column.repaired)
        marks = {"repaired": axis.count(after[column.repaired]), "flagged": axis.count(after[left])}
        panels.append(Panel("after repair", axis.count(after), marks))
    frame = Frame.around(panels, axis)
    drawn = "".join(_panel(panel, frame, column.schema.name) for panel in panels)
    return f'<div class="panels">{drawn}</div>'


def _panel(panel: Panel, frame: Frame, name: str) -> str:
    """One histogram: SVG that stretches, and text around it that does not."""
    scale = f"standing up to {frame.most:,}" + (f", hanging up to {frame.most_marked:,}" if frame.most_marked else "")
    said = f"Histogram of {cut(name)} {panel.time}: {panel.describe(slice(None))}"
    line = f'<path class="line" d="M1 {TALL}h{len(frame.axis.edges) - 1}"/>'
    return (
        f"<figure><figcaption><b>{panel.time.capitalize()}</b> {scale}</figcaption>"
        f'<svg viewBox="{frame.start:g} 0 {frame.width:g} {frame.height}" style="height:{frame.height}px" '
        f'preserveAspectRatio="none" role="img" aria-label="{escape(said)}">{_up_and_down(panel, frame)}{line}'
        f"{_hints(panel, frame)}</svg>{_ticks(frame)}</figure>"
    )


def _up_and_down(panel: Panel, frame: Frame) -> str:
    """All values above the line, the marked ones below it, one colour under the other."""
    lower = np.full(len(panel.values), TALL, dtype=float)
    drawn = _bars("values", frame.lefts, lower, -panel.values * TALL / frame.most)
    for colour, counts in panel.marks.items():
        lengths = counts * DEEP / max(frame.most_marked, 1)
        drawn += _bars(colour, frame.lefts, lower, lengths)
        lower = lower + lengths
    return drawn


def _bars(colour: str, lefts: Numbers, starts: Numbers, lengths: Numbers) -> str:
    """Bars from `starts` downwards, or upwards where a length is negative; the shortest are still seen."""
    seen = np.sign(lengths) * np.maximum(np.abs(lengths), SHORTEST)
    bars = [f"M{lefts[at] + 0.06:.2f} {starts[at]:.1f}h.88v{seen[at]:.1f}h-.88z" for at in np.flatnonzero(lengths)]
    return f'<path class="{colour}" d="{"".join(bars)}"/>' if bars else ""


def _hints(panel: Panel, frame: Frame) -> str:
    """What a bar stands for, shown where one points at it."""
    return "".join(
        f'<rect x="{frame.lefts[place]:g}" width="1" height="{frame.height}">'
        f"<title>{frame.axis.describe(place)}: {panel.describe(slice(place, place + 1))}</title></rect>"
        for place in np.flatnonzero(panel.values).tolist()
    )


def _ticks(frame: Frame) -> str:
    """Numbers under the axis, and what the bars of gross values stand for."""
    room = 100 * (1 + APART) / frame.width  # per cent of the width that a bar of gross values takes
    style = f"padding:0 {room * frame.has_above:.1f}% 0 {room * frame.has_below:.1f}%"
    ticks = frame.axis.ticks()
    name = "ticks each" if len(ticks) == len(frame.axis.middles) else "ticks"
    spans = "".join(f"<span>{tick}</span>" for tick in ticks)
    below = frame.axis.describe(0) if frame.has_below else ""
    above = frame.axis.describe(len(frame.axis.edges)) if frame.has_above else ""
    ends = f'<p class="ticks ends"><span>{below}</span><span>{above}</span></p>' if below or above else ""
    return f'<p class="{name}" style="{style}">{spans}</p>{ends}'


# ---------------------------------------------------------------- levels


def _levels(column: Portrait) -> str:
    """The most common levels and those with flagged cells, a line each, with bars behind the numbers."""
    before, after = _tally(column.before), _tally(column.after)
    flagged = _tally(column.before.take(pa.array(column.flagged)))
    repaired = _tally(column.after.take(pa.array(column.repaired)))
    names = _chosen(before, flagged + repaired, column.schema)
    tallies = (before, flagged, repaired, after) if column.is_changed else (before,)
    lines = [(cell_html(cut(name, LONGEST_LEVEL)), [tally[name] for tally in tallies]) for name in names]
    if others := len((before | after).keys() - set(names)):
        rest = [tally.total() - sum(tally[name] for name in names) for tally in tallies]
        lines.append((f"<i>{counted(others, 'other')}</i>", rest))
    most = max(max(counts[0], counts[-1]) for _, counts in lines)
    drawn = [
        (level, *(_bar(count, most) if place in (0, 3) else f"{count:,}" for place, count in enumerate(counts)))
        for level, counts in lines
    ]
    changed = {"Before": "bar", "Flagged": "number flagged", "Repaired": "number repaired", "After": "bar"}
    head = {"Value": "", **(changed if column.is_changed else {"Cells": "bar"})}
    return html_table(f"Values of {escaped(column.schema.name)}", "levels", head, drawn)


def _bar(count: int, most: int) -> str:
    return f'<span style="--part:{100 * count / most:.1f}%">{count:,}</span>'


def _tally(values: pa.ChunkedArray) -> Counter[str]:
    """How often each value comes, as text, without what is missing or unreadable.

    >>> _tally(pa.chunked_array([[1.0, 2.5, 1.0, None, float("nan")]]))
    Counter({'1': 2, '2.5': 1})
    """
    found = pc.value_counts(readable(values))
    names = [level_text(value) for value in found.field("values").to_pylist()]
    return Counter(dict(zip(names, found.field("counts").to_pylist(), strict=True)))


def _chosen(common: Counter[str], marked: Counter[str], column: Column) -> list[str]:
    """The levels to show, half of them for marked cells; in the column's order, else most common first."""
    names = [name for name, _ in marked.most_common(LEVELS // 2)]
    names += [name for name, _ in common.most_common(LEVELS) if name not in names][: LEVELS - len(names)]
    order = {level_text(level): place for place, level in enumerate(column.levels or ())}
    return sorted(names, key=lambda name: (order.get(name, len(order)), -common[name]))
