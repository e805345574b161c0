"""The report: one HTML page that says what was found in a table, with nothing to load from anywhere."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.files import whole_file
from cellmend.findings import Finding, show
from cellmend.schema import (
    DATE,
    IGNORE,
    LARGEST_EXACT_WHOLE,
    Column,
    Schema,
    family,
    level_text,
    plain,
    readable,
)

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]

SECTIONS = {
    "map": "Where the flagged cells are",
    "columns": "Columns before and after repair",
    "findings": "Findings",
    "notes": "Notes",
    "schema": "Schema",
}
FINDINGS_BYTES = 1_500_000  # of findings in the page; the rest are in findings.csv
FIRST_PAGE = 50  # findings that stand in the page itself, for paper and where scripts are off
LONGEST_TEXT = 240  # letters of a cell that are shown
LONGEST_LEVEL = 60
MAPPED = 100  # columns on the map at most
ROW_BINS = 120  # pieces that the map cuts the rows into, at most
SHADES = 4  # of the map
CHARTED = 60  # columns that are drawn at most
BINS = 30  # of a histogram at most, without the two for gross values
TAILS = (0.005, 0.995)  # quantiles: what lies beyond them may be gross and must not squash the rest
ON_GRID = 0.9  # of the values are multiples of a width: they are rounded, and a finer bin would be empty
FEW_BINS = 8  # so few can have a number each
UNITS = (("D", 86_400), ("h", 3_600), ("m", 60), ("s", 1))  # of an axis of times, in seconds
TALL, DEEP, SHORTEST = 92, 32, 1.5  # pixels: the longest bars above and below the line, and the shortest
APART = 0.7  # of a bar between the gross values and the others
LEVELS = 12  # of a column that get a line each
HTML_LETTERS = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}  # as JSON may also write them


@dataclass(frozen=True)
class Facts:
    """What the head of a report says."""

    name: str  # of the table
    seconds: float
    flagged: int  # cells, also those that have no place in the page
    expected_false: float  # false alarms among them
    repaired: int
    settings: Mapping[str, str]
    notes: Sequence[str]


@dataclass(frozen=True)
class Portrait:
    """One column before and after repair, and which of its cells are flagged."""

    place: int  # in the table
    schema: Column
    before: pa.ChunkedArray  # dictionaries as their values
    after: pa.ChunkedArray
    flagged: Counts  # rows
    repaired: Counts  # those of them that got a repair

    @property
    def is_changed(self) -> bool:
        """Is there more to show than the values as they were?"""
        return len(self.flagged) > 0 or not self.before.equals(self.after)


def write_report(
    path: Path, facts: Facts, schema: Schema, before: pa.Table, after: pa.Table, findings: Sequence[Finding]
) -> None:
    """Write the page about a table as it was read, `before`, and as it is with its repairs, `after`."""
    columns = portraits(schema, before, after, findings)
    sections = {
        "map": _map(columns, before.num_rows),
        "columns": _charts(columns),
        "findings": _findings(findings, facts.flagged, before.column_names),
        "notes": _notes(facts.notes),
        "schema": _schema(schema),
    }
    page = _page(facts.name, _head(facts, before), "".join(_section(*section) for section in sections.items()))
    with whole_file(path) as temporary:
        # A name from outside may hold half a character, which UTF-8 cannot write.
        temporary.write_bytes(page.encode("utf-8", "backslashreplace"))


def portraits(schema: Schema, before: pa.Table, after: pa.Table, findings: Iterable[Finding]) -> list[Portrait]:
    """The columns of the table in order, each with its flagged cells."""
    marks: dict[str, list[tuple[int, bool]]] = {name: [] for name in before.column_names}
    for finding in findings:
        marks[finding.column].append((finding.row, finding.repair is not None))
    columns = {column.name: column for column in schema}
    found = []
    for place, (name, own) in enumerate(marks.items()):
        rows, has_repair = np.array(own, dtype=np.int64).reshape(-1, 2).T
        values = plain(before[name]), plain(after[name])
        found.append(Portrait(place, columns[name], *values, rows, rows[has_repair == 1]))
    return found


def _page(name: str, head: str, main: str) -> str:
    """The whole document; its policy is to load nothing, and to run only the script with this sum."""
    style, script = ((files("cellmend") / "data" / f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="generator" content="cellmend">\n'
        f"<title>{_text(name)}: findings</title>\n<style>{style}</style>\n</head>\n"
        f'<body>\n<a class="skip" href="#findings">Skip to the findings</a>\n{head}\n<main>{main}\n</main>\n'
        "<footer>Written by cellmend. This page loads nothing from anywhere. It holds values of the table: "
        f"share it only with those who may see them.</footer>\n<script>{script}</script>\n</body>\n</html>\n"
    )


# ---------------------------------------------------------------- words and numbers


def _text(value: str) -> str:
    """Text from the table as it may stand in the page: escaped, and not endless."""
    return escape(_cut(value))


def _cut(value: str, longest: int = LONGEST_TEXT) -> str:
    return value if len(value) <= longest else value[: longest - 1] + "…"


def _count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> _count(1, "cell"), _count(1200, "cell")
    ('1 cell', '1,200 cells')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _about(expected: float) -> str:
    """An expected number, with a digit after the point where it matters.

    >>> _about(0.04), _about(3.21), _about(1234.5)
    ('less than 0.1', '3.2', '1,234')
    """
    return "less than 0.1" if 0 < expected < 0.05 else f"{expected:.1f}" if expected < 10 else f"{expected:,.0f}"


def _duration(seconds: float) -> str:
    """A time as one would say it.

    >>> _duration(0.31), _duration(23.4), _duration(250)
    ('0.3 s', '23 s', '4 min 10 s')
    """
    whole = round(seconds)
    if whole >= 60:
        return f"{whole // 60} min {whole % 60} s"
    return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"


def _section(id_: str, content: str) -> str:
    heading = f'<h2 id="{id_}-heading">{SECTIONS[id_]}</h2>'
    return f'\n<section id="{id_}" aria-labelledby="{id_}-heading">{heading}{content}</section>'


def _terms(terms: Mapping[str, str], style: str) -> str:
    """A list of terms and what is said of each, both HTML."""
    said = "".join(f"<div><dt>{term}</dt><dd>{said}</dd></div>" for term, said in terms.items())
    return f'<dl class="{style}">{said}</dl>'


def _table(caption: str, style: str, head: Mapping[str, str], lines: Iterable[Sequence[str]]) -> str:
    """A table of HTML cells, the first of a line its heading; `head` is each column's heading and class."""
    heads = "".join(f'<th scope="col" class="{name}">{word}</th>' for word, name in head.items())
    body = "".join(
        f'<tr><th scope="row">{first}</th>'
        + "".join(f'<td class="{name}">{cell}</td>' for cell, name in zip(rest, [*head.values()][1:], strict=True))
        + "</tr>"
        for first, *rest in lines
    )
    return (
        f'<table class="{style}"><caption class="unseen">{caption}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


# ---------------------------------------------------------------- head, notes, schema


def _head(facts: Facts, table: pa.Table) -> str:
    """The name of the table, what was found in a sentence and in numbers, and the way to the sections."""
    numbers = {
        "Rows": f"{table.num_rows:,}",
        "Columns": f"{table.num_columns:,}",
        "Flagged cells": f'<span class="flagged">{facts.flagged:,}</span>',
        "False alarms expected": _about(facts.expected_false),
        "Repaired": f'<span class="repaired">{facts.repaired:,}</span>',
        "Left as found": f"{facts.flagged - facts.repaired:,}",
    }
    settings = {escape(term): escape(said) for term, said in facts.settings.items()}
    links = "".join(f'<a href="#{id_}">{id_.capitalize()}</a>' for id_ in SECTIONS)
    return (
        f'<header><p class="kicker">cellmend report</p><h1>{_text(facts.name)}</h1>'
        f'<p class="lead">{_headline(facts, table.num_rows * table.num_columns)}</p>{_terms(numbers, "numbers")}'
        f"{_terms({'time': _duration(facts.seconds), **settings}, 'settings')}"
        f'<nav aria-label="Sections">{links}</nav></header>'
    )


def _headline(facts: Facts, cells: int) -> str:
    if not facts.flagged:
        return f"None of {_count(cells, 'cell')} looks wrong."
    left = facts.flagged - facts.repaired
    kept = f"; {left:,} {'is' if left == 1 else 'are'} left as found, for no value was sure enough" if left else ""
    return (
        f"{facts.flagged:,} of {_count(cells, 'cell')} {'looks' if facts.flagged == 1 else 'look'} wrong; "
        f"among them {_about(facts.expected_false)} false alarms are expected. {facts.repaired:,} got a repair{kept}."
    )


def _notes(notes: Sequence[str]) -> str:
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<ul>{listed}</ul>" if notes else "<p>There is nothing to note.</p>"


def _schema(schema: Schema) -> str:
    lines = [
        (_text(column.name), _kind(column), _text(column.reason or ", ".join(map(level_text, column.levels or ()))))
        for column in schema
    ]
    head = {"Column": "", "Kind": "", "Its levels, or why it is left out": ""}
    table = _table("What each column was taken for", "", head, lines)
    return f"<details><summary>Kinds of {_count(len(lines), 'column')}</summary>{table}</details>"


def _kind(column: Column) -> str:
    return "left out" if column.kind == IGNORE else column.kind


# ---------------------------------------------------------------- where in the table


def _map(columns: Sequence[Portrait], rows: int) -> str:
    """A line for each column with findings, the rows from left to right, stronger where more cells are flagged."""
    marked = [column for column in columns if len(column.flagged)]
    if not marked:
        return "<p>No cell is flagged.</p>"
    size = math.ceil(rows / ROW_BINS)  # rows to a mark
    counts = [np.bincount(column.flagged // size, minlength=math.ceil(rows / size)) for column in marked[:MAPPED]]
    most = max(int(own.max()) for own in counts)
    words = [f"Each line is a column; the rows run from 0 at the left to {rows - 1:,} at the right."]
    if size > 1:
        words.append(f"A mark stands for {size:,} rows, and the strongest for {_count(most, 'flagged cell')}.")
    if len(columns) > len(marked):
        words.append(f"Not shown: {_count(len(columns) - len(marked), 'column')} without flagged cells.")
    if len(marked) > MAPPED:
        words.append(f"Not shown either: {_count(len(marked) - MAPPED, 'more column')} with some.")
    lines = [
        (_text(column.schema.name), _strip(own, most, size, rows), f"{len(column.flagged):,}")
        for column, own in zip(marked, counts, strict=False)
    ]
    head = {"Column": "", "Rows": "", "Flagged": "number"}
    return f"<p>{' '.join(words)}</p>{_table('Flagged cells by column and row', 'map', head, lines)}"


def _strip(counts: Counts, most: int, size: int, rows: int) -> str:
    shades = np.ceil(SHADES * counts / most).astype(int)
    marks = {
        shade: "".join(f"M{at} 0h1v1h-1z" for at in np.flatnonzero(shades == shade)) for shade in range(1, SHADES + 1)
    }
    paths = "".join(f'<path class="shade-{shade}" d="{path}"/>' for shade, path in marks.items() if path)
    first = int(counts.argmax()) * size
    last = min(first + size, rows) - 1
    where = f"rows {first:,} to {last:,}" if last > first else f"row {last:,}"
    said = f"{_count(int(counts.sum()), 'flagged cell')}, most in {where}: {counts.max():,}"
    return (
        f'<svg viewBox="0 0 {len(counts)} 1" preserveAspectRatio="none" role="img" aria-label="{said}">'
        f"<title>{said}</title>{paths}</svg>"
    )


# ---------------------------------------------------------------- columns


def _charts(columns: Sequence[Portrait]) -> str:
    """Every column before and after repair, the most flagged first; those without findings folded."""
    marked = sorted((column for column in columns if len(column.flagged)), key=lambda column: -len(column.flagged))
    others = [column for column in columns if not len(column.flagged)]
    shown, folded = marked[:CHARTED], others[: max(0, CHARTED - len(marked))]
    content = "".join(_card(column) for column in shown)
    if shown:
        content = (
            "<p>Bars that stand are all values of a column. Bars that hang, on a scale of their own, are its "
            '<span class="flagged">flagged cells</span> as they were found and as they are '
            '<span class="repaired">repaired</span>.</p>'
        ) + content
    if folded:
        cards = "".join(_card(column) for column in folded)
        summary = f"{_count(len(folded), 'column')} without flagged cells"
        content += f"<details><summary>{summary}</summary>{cards}</details>"
    if left := len(columns) - len(shown) - len(folded):
        content += f"<p>Not drawn: {_count(left, 'more column')}.</p>"
    return content


def _card(column: Portrait) -> str:
    flagged, repaired = len(column.flagged), len(column.repaired)
    numbers = {"Missing": _change(column.before.null_count, column.after.null_count)}
    if unreadable := _unreadable(column.before):
        numbers["Unreadable"] = _change(unreadable, _unreadable(column.after))
    if flagged:
        link = f'<a href="#findings" data-column="{column.place}">{flagged:,}</a>'
        numbers = {"Flagged": link, "Repaired": f"{repaired:,}", "Left as found": f"{flagged - repaired:,}", **numbers}
    kind = ": ".join(filter(None, [_kind(column.schema), column.schema.reason]))
    return (
        f'\n<article class="card"><div><h3>{_text(column.schema.name)}</h3><p class="kind">{_text(kind)}</p>'
        f"{_terms(numbers, '')}</div>{_chart(column)}</article>"
    )


def _change(before: int, after: int) -> str:
    return f"{before:,}" if before == after else f"{before:,}, then {after:,}"


def _unreadable(values: pa.ChunkedArray) -> int:
    return pc.sum(pc.is_nan(values)).as_py() or 0 if pa.types.is_floating(values.type) else 0


def _chart(column: Portrait) -> str:
    """The picture of a column: a histogram where values have distances, else its levels."""
    type_, kind = column.before.type, column.schema.kind
    if len(readable(column.before)) == 0:
        return "<p>There is no value to draw.</p>"
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_) or (family(type_) == "number" and kind != "category"):
        return _histogram(column)
    # Text that is left out is different in almost every row, or the same in all.
    if family(type_) == "other" or (kind == IGNORE and not column.is_changed):
        return "<p>Not drawn.</p>"
    return _levels(column)


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
        return ("D" if column.schema.kind == DATE else ""), 1
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
        own = _count(int(self.values[places].sum()), "value")
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
    said = f"Histogram of {_cut(name)} {panel.time}: {panel.describe(slice(None))}"
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
    lines = [(_said(_cut(name, LONGEST_LEVEL)), [tally[name] for tally in tallies]) for name in names]
    if others := len((before | after).keys() - set(names)):
        rest = [tally.total() - sum(tally[name] for name in names) for tally in tallies]
        lines.append((f"<i>{_count(others, 'other')}</i>", rest))
    most = max(max(counts[0], counts[-1]) for _, counts in lines)
    drawn = [
        (level, *(_bar(count, most) if place in (0, 3) else f"{count:,}" for place, count in enumerate(counts)))
        for level, counts in lines
    ]
    changed = {"Before": "bar", "Flagged": "number flagged", "Repaired": "number repaired", "After": "bar"}
    head = {"Value": "", **(changed if column.is_changed else {"Cells": "bar"})}
    return _table(f"Values of {_text(column.schema.name)}", "levels", head, drawn)


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


# ---------------------------------------------------------------- findings

HEAD = {
    "row": "Row",
    "column": "Column",
    "value": "Value",
    "repair": "Repair",
    "suspicion": "Suspicion",
    "reason": "Reason",
}
Line = tuple[int, int, float | str | None, float, float | str | None, str]


def _findings(findings: Sequence[Finding], flagged: int, names: Sequence[str]) -> str:
    """The table of findings: the first ones as they are, and all that have room as data for the page's script."""
    if not findings:
        return "<p>No cell is flagged.</p>"
    places = {name: place for place, name in enumerate(names)}
    lines = _fitting(findings, places)
    words = "Rows count from 0. Suspicion is the probability that the cell is wrong."
    if len(lines) < flagged:
        words += (
            f" This page holds the {len(lines):,} most suspicious of {flagged:,} findings; all are in findings.csv."
        )
    shown = f"The first {min(FIRST_PAGE, len(lines))} of {_count(len(lines), 'finding')}"
    head = "".join(f'<th scope="col" role="columnheader" class="{id_}">{word}</th>' for id_, word in HEAD.items())
    body = "".join(_finding(json.loads(line), names) for line in lines[:FIRST_PAGE])
    joined = ",\n".join(lines)
    return (
        f'<p>{words}</p>{_controls(findings, places)}<p id="shown" role="status" aria-live="polite">{shown}</p>'
        '<table role="table" id="table"><caption class="unseen">Flagged cells</caption><thead role="rowgroup">'
        f'<tr role="row">{head}</tr></thead><tbody role="rowgroup">{body}</tbody></table>'
        '<nav class="pages" aria-label="Pages of findings" hidden><button type="button" id="previous">Previous</button>'
        '<span id="page"></span><button type="button" id="next">Next</button></nav><script type="application/json" '
        f'id="data">{{"columns":{_json([_cut(name) for name in names])},"lines":[\n{joined}]}}</script>'
    )


def _controls(findings: Sequence[Finding], places: Mapping[str, int]) -> str:
    """What findings are filtered with; hidden until the script runs."""
    columns = sorted({places[finding.column]: finding.column for finding in findings}.items())
    options = "".join(f'<option value="{place}">{_text(name)}</option>' for place, name in columns)
    return (
        '<div class="controls" role="search" aria-label="Findings" hidden>'
        '<label>Search <input type="search" id="search" autocomplete="off"></label>'
        f'<label>Column <select id="column"><option value="">all columns</option>{options}</select></label>'
        '<label>Suspicion at least <input type="number" id="suspicion" min="0" max="1" step="0.01" value="0"></label>'
        "</div>"
    )


def _fitting(findings: Iterable[Finding], places: Mapping[str, int]) -> list[str]:
    """As many findings as have room, as JSON."""
    lines, room = [], FINDINGS_BYTES
    for finding in findings:
        line = _json(_line(finding, places))
        room -= len(line.encode("utf-8", "backslashreplace")) + 2
        if room < 0:
            break
        lines.append(line)
    return lines


def _line(finding: Finding, places: Mapping[str, int]) -> Line:
    """What the page says of one finding: row, place of the column, value, suspicion, repair, reason."""
    value, repair = _cell(finding.value), _cell(finding.repair)
    return finding.row, places[finding.column], value, round(finding.suspicion, 3), repair, _cut(finding.reason)


def _cell(value: Any) -> float | str | None:
    """A number that JSON and the script hold exactly, text, or None for what is not there.

    >>> _cell(0.1 + 0.2), _cell("007"), _cell(True), _cell(2**60), _cell(float("nan"))
    (0.3, '007', 'True', '1152921504606846976', 'nan')
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_EXACT_WHOLE
    return json.loads(show(value)) if is_number else _cut(show(value))


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in.

    >>> print(_json("</script>"))
    "\\u003c/script\\u003e"
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(HTML_LETTERS)


def _finding(line: Line, names: Sequence[str]) -> str:
    """One line of the table as the script would write it."""
    row, place, value, suspicion, repair, reason = line
    cells = {
        "row": f"{row}",
        "column": _text(names[place]),
        "value": "<i>missing</i>" if value is None else _said(show(value)),
        "repair": "<i>left as found</i>" if repair is None else _said(show(repair)),
        "suspicion": f"{suspicion:.3f}",
        "reason": _text(reason),
    }
    return f'<tr role="row">{"".join(f"<td class={id_} role=cell>{cell}</td>" for id_, cell in cells.items())}</tr>'


def _said(value: str) -> str:
    return _text(value) if value.strip() else "<i>empty text</i>"
