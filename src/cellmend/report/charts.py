"""One column drawn before and after repair, as inline SVG or a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.report.axis import BINS, UNITS, Axis, Counts, Numbers, axis_of, middle
from cellmend.report.markup import cell_html, counted, cut, escaped, html_table
from cellmend.report.portrait import Portrait
from cellmend.table.schema import DATE, IGNORE
from cellmend.table.values import readable

LONGEST_LEVEL = 60
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


def _numbers(values: pa.ChunkedArray) -> Numbers:
    """Numbers as floats, times as seconds since 1970; NaN where there is none."""
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    return values.cast(pa.float64(), safe=False).to_numpy()


def _unit_of(column: Portrait, usual: Numbers) -> tuple[str, int]:
    """What an axis counts in, and its length in `usual` values: for times the longest unit that gives enough bins."""
    if not pa.types.is_temporal(column.before.type):
        return ("D" if column.schema.kind == DATE else ""), 1
    units = [*UNITS.items()]
    if pa.types.is_date(column.before.type):
        return units[0]
    low, high = middle(usual)
    return next((unit for unit in units if high - low >= BINS * unit[1]), units[-1])


@dataclass(frozen=True)
class Panel:
    """One histogram: all values, and the marked ones by colour, counted along an axis."""

    time: str
    values: Counts
    marks: dict[str, Counts]
    undrawn: int  # flagged cells without a number

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
    finite = before[np.isfinite(before)]
    if not len(finite):
        return "<p>Not drawn: no value is finite.</p>"
    unflagged = np.delete(before, column.flagged)
    usual = unflagged[np.isfinite(unflagged)]
    unit, length = _unit_of(column, usual if len(usual) else finite)
    before, after = before / length, after / length
    axis = axis_of(finite / length, unit, column.notation, usual / length)
    time = "before repair" if column.is_changed else "as found"
    panels = [_counted(time, axis, before, {"flagged": before[column.flagged]})]
    if column.is_changed:
        left = np.setdiff1d(column.flagged, column.repaired)
        marks = {"repaired": after[column.repaired], "flagged": after[left]}
        panels.append(_counted("after repair", axis, after, marks))
    frame = Frame.around(panels, axis)
    drawn = "".join(_panel(panel, frame, column.schema.name) for panel in panels)
    return f'<div class="panels">{drawn}</div>'


def _counted(time: str, axis: Axis, values: Numbers, marked: Mapping[str, Numbers]) -> Panel:
    marks = {colour: axis.count(own) for colour, own in marked.items()}
    undrawn = sum(int(np.isnan(own).sum()) for own in marked.values())
    return Panel(time, axis.count(values), marks, undrawn)


def _panel(panel: Panel, frame: Frame, name: str) -> str:
    """One histogram: SVG that stretches, and text around it that does not."""
    said = f"Histogram of {cut(name)} {panel.time}: {panel.describe(slice(None))}"
    line = f'<path class="line" d="M1 {TALL}h{len(frame.axis.edges) - 1}"/>'
    return (
        f"<figure><figcaption><b>{panel.time.capitalize()}</b>{_legend(panel)}</figcaption>"
        f'<div class="plot">{_scale(frame)}<div>'
        f'<svg viewBox="{frame.start:g} 0 {frame.width:g} {frame.height}" style="height:{frame.height}px" '
        f'preserveAspectRatio="none" role="img" aria-label="{escape(said)}">{_up_and_down(panel, frame)}{line}'
        f"{_hints(panel, frame)}</svg>{_ticks(frame)}</div></div></figure>"
    )


def _legend(panel: Panel) -> str:
    """How many cells are marked, in their colours."""
    marked = ((int(counts.sum()), colour) for colour, counts in panel.marks.items())
    said = [f'<span class="{colour}">{number:,} {colour}</span>' for number, colour in marked if number]
    return ", ".join([*said, f"{panel.undrawn:,} flagged without a number"] if panel.undrawn else said)


def _scale(frame: Frame) -> str:
    """How many cells the highest bar is, and the longest below the line, beside them."""
    below = f'<span style="bottom:0">{frame.most_marked:,}</span>' if frame.most_marked else ""
    widest = max(len(f"{frame.most:,}"), len(f"{frame.most_marked:,}"))
    return (
        f'<div class="scale" aria-hidden="true" style="height:{frame.height}px;width:{widest}ch">'
        f'<span style="top:0">{frame.most:,}</span><span style="top:{TALL}px" class="zero">0</span>{below}</div>'
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
    before, after = _tally(column, column.before), _tally(column, column.after)
    flagged = _tally(column, column.before.take(pa.array(column.flagged)))
    repaired = _tally(column, column.after.take(pa.array(column.repaired)))
    names = _chosen(before, flagged + repaired, column)
    tallies = (before, flagged, repaired, after) if column.is_changed else (before,)
    lines = [(cell_html(cut(name, LONGEST_LEVEL)), [tally[name] for tally in tallies]) for name in names]
    others = len((before | after).keys() - set(names))
    most = max([max(counts[0], counts[-1]) for _, counts in lines], default=1)
    if others:
        rest = [tally.total() - sum(tally[name] for name in names) for tally in tallies]
        lines.append((f"<i>{counted(others, 'other')}</i>", rest))
    drawn = [
        (level, *(_bar(count, most) if place in (0, 3) else _mark(count) for place, count in enumerate(counts)))
        for level, counts in lines
    ]
    changed = {"Before": "bar", "Flagged": "number flagged", "Repaired": "number repaired", "After": "bar"}
    head = {"Value": "", **(changed if column.is_changed else {"Cells": "bar"})}
    return html_table(f"Values of {escaped(column.schema.name)}", "levels", head, drawn)


def _mark(count: int) -> str:
    """A number of marked cells; none is nothing to look at."""
    return f"{count:,}" if count else ""


def _bar(count: int, most: int) -> str:
    return f'<span style="--part:{min(100, 100 * count / most):.1f}%">{count:,}</span>'


def _tally(column: Portrait, values: pa.ChunkedArray) -> Counter[str]:
    """How often each value comes, as the column writes it, without what is missing or unreadable."""
    found = pc.value_counts(readable(values))
    names = [column.write(value) for value in found.field("values").to_pylist()]
    return Counter(dict(zip(names, found.field("counts").to_pylist(), strict=True)))


def _chosen(common: Counter[str], marked: Counter[str], column: Portrait) -> list[str]:
    """The levels to show, half of them for marked cells; in the column's order, else most common first.

    Of a column that is left out, an identifier perhaps, the other values say nothing.
    """
    names = [name for name, _ in marked.most_common(LEVELS // 2)]
    if column.schema.kind != IGNORE:
        names += [name for name, _ in common.most_common(LEVELS) if name not in names][: LEVELS - len(names)]
    order = {column.write(level): place for place, level in enumerate(column.schema.levels or ())}
    return sorted(names, key=lambda name: (order.get(name, len(order)), -common[name]))
