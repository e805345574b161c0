"""What the page says of the columns: where their flagged cells are, how each looks, what it was taken for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellmend.findings.finding import Finding
from cellmend.report.axis import Counts
from cellmend.report.charts import chart
from cellmend.report.markup import boxed, counted, escaped, html_table
from cellmend.report.portrait import Portrait, kind_in_words
from cellmend.report.rows import Rows
from cellmend.table.causes.named import MEANINGS
from cellmend.table.reader import TableReader
from cellmend.table.schema import IGNORE, Schema
from cellmend.table.values import level_text

MAPPED = 300  # columns on the map at most
ROW_BINS = 120  # pieces that the map cuts the rows into, at most
SHADES = 4  # of the map
CHARTED = 60  # columns that are drawn at most
UNFOLDED = 12  # columns with flagged cells whose pictures are seen at once
NAMED = 6  # columns that are named in a line at most


def map_of(columns: Sequence[Portrait], rows: Rows) -> str:
    """A line for each column with findings, the rows from left to right, stronger where more cells are flagged."""
    marked = [column for column in columns if len(column.flagged)]
    if not marked:
        return "<p>No cell is flagged.</p>"
    number = rows.table.num_rows
    size = math.ceil(number / ROW_BINS)  # rows to a mark
    counts = [np.bincount(column.flagged // size, minlength=math.ceil(number / size)) for column in marked[:MAPPED]]
    most = max(int(own.max()) for own in counts)
    ends = (0, number - 1) if rows.lines is None else (rows.line(0), rows.line(number - 1))
    what = "rows" if rows.lines is None else "lines of the file"
    words = [f"Each strip is a column; the {what} run from {ends[0]:,} at the left to {ends[1]:,} at the right."]
    if size > 1:
        words.append(f"A mark stands for {size:,} rows, and the strongest for {counted(most, 'flagged cell')}.")
    if len(columns) > len(marked):
        words.append(f"Not shown: {counted(len(columns) - len(marked), 'column')} without flagged cells.")
    if len(marked) > MAPPED:
        words.append(f"Not shown either: {counted(len(marked) - MAPPED, 'more column')} with some.")
    lines = [
        (escaped(column.schema.name), _strip(own, most, size, rows), f"{len(column.flagged):,}")
        for column, own in zip(marked, counts, strict=False)
    ]
    head = {"Column": "", "Rows": "", "Flagged": "number"}
    drawn = boxed(html_table("Flagged cells by column and row", "map", head, lines), "Map", len(lines))
    return f"<p>{' '.join(words)}</p>{drawn}"


def _strip(counts: Counts, most: int, size: int, rows: Rows) -> str:
    shades = np.ceil(SHADES * counts / most).astype(int)
    marks = {
        shade: "".join(f"M{at} 0h1v1h-1z" for at in np.flatnonzero(shades == shade)) for shade in range(1, SHADES + 1)
    }
    paths = "".join(f'<path class="shade-{shade}" d="{path}"/>' for shade, path in marks.items() if path)
    first = int(counts.argmax()) * size
    where = rows.where(first, min(first + size, rows.table.num_rows) - 1)
    said = f"{counted(int(counts.sum()), 'flagged cell')}, most in {where}: {counts.max():,}"
    return (
        f'<svg viewBox="0 0 {len(counts)} 1" preserveAspectRatio="none" role="img" aria-label="{said}">'
        f"<title>{said}</title>{paths}</svg>"
    )


@dataclass(frozen=True)
class Card:
    """One column in words, numbers and a picture."""

    place: int  # in the table
    name: str
    kind: str  # and why it is left out, if it is
    flagged: int
    repaired: int
    gaps: dict[str, str]  # cells without a value, before and after
    chart: str  # HTML


@dataclass(frozen=True)
class Gallery:
    """The columns that are drawn, the most flagged first; those without findings are folded away."""

    flagged: list[Card]
    folded: list[Card]
    left_out: int

    @property
    def first(self) -> list[Card]:
        """Those with most flagged cells, which are seen at once."""
        return self.flagged[:UNFOLDED]


def gallery_of(columns: Sequence[Portrait]) -> Gallery:
    """As many columns as are drawn, before and after repair."""
    marked = sorted((column for column in columns if len(column.flagged)), key=lambda column: -len(column.flagged))
    others = [column for column in columns if not len(column.flagged)]
    shown, folded = marked[:CHARTED], others[: max(0, CHARTED - len(marked))]
    return Gallery([*map(_card, shown)], [*map(_card, folded)], len(columns) - len(shown) - len(folded))


def _card(column: Portrait) -> Card:
    gaps = {"Missing": _change(column.before.null_count, column.after.null_count)}
    if unreadable := _unreadable(column.before):
        gaps["Unreadable"] = _change(unreadable, _unreadable(column.after))
    name, kind = column.schema.name, ": ".join(filter(None, [kind_in_words(column.schema), column.schema.reason]))
    return Card(column.place, name, kind, len(column.flagged), len(column.repaired), gaps, chart(column))


def _change(before: int, after: int) -> str:
    return f"{before:,}" if before == after else f"{before:,}, then {after:,}"


def _unreadable(values: pa.ChunkedArray) -> int:
    return pc.sum(pc.is_nan(values)).as_py() or 0 if pa.types.is_floating(values.type) else 0


def causes_of(findings: Sequence[Finding]) -> str:
    """Which causes acted, how often, and in which columns, as a table."""
    columns: dict[str, Counter[str]] = {}
    for finding in findings:
        columns.setdefault(finding.cause, Counter())[finding.column] += 1
    lines = [
        (
            f'<a href="#findings" data-cause="{escaped(cause)}">{escaped(cause)}</a>',
            escaped(MEANINGS.get(cause, "")),
            f"{own.total():,}",
            _some(own),
        )
        for cause, own in sorted(columns.items(), key=lambda each: -each[1].total())
    ]
    head = {"Cause": "", "What it means": "meaning", "Cells": "number", "Columns": ""}
    return boxed(html_table("Causes of the flagged cells", "causes", head, lines), "Causes", len(lines))


def _some(columns: Counter[str]) -> str:
    """The columns with most cells, each with their number."""
    named = [f"<bdi>{escaped(name)}</bdi> <span>{count:,}</span>" for name, count in columns.most_common(NAMED)]
    return ", ".join(named) + (f" and {len(columns) - NAMED:,} more" if len(columns) > NAMED else "")


def kinds_of(schema: Schema, checked: Mapping[str, str]) -> str:
    """What each column was taken for and what it was checked for without a model, as a table."""
    lines = [
        (
            escaped(column.name),
            kind_in_words(column),
            escaped(column.reason or ", ".join(map(level_text, column.levels or ()))),
            escaped(checked.get(column.name, "nothing")),
        )
        for column in schema
    ]
    head = {"Column": "", "Kind": "", "Its levels, or why it is left out": "", "Checked by itself for": ""}
    return html_table("What each column was taken for", "", head, lines)


def without_model(schema: Schema, checked: Mapping[str, str]) -> list[str]:
    """What was checked in the columns that no model knows, in sentences; columns that fared alike share one."""
    alike: dict[str, list[str]] = {}
    for column in schema:
        if column.kind == IGNORE:
            alike.setdefault(checked.get(column.name, ""), []).append(column.name)
    return [f"{_listed(names)}: {f'checked for {what}' if what else 'not checked'}." for what, names in alike.items()]


def _listed(names: Sequence[str]) -> str:
    """Names for a sentence, long lists cut.

    >>> _listed(["a", "b"]), _listed("abcdefgh")
    ('a, b', 'a, b, c, d, e, f and 2 more')
    """
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def checked_by_itself(reader: TableReader) -> dict[str, str]:
    """What each column is checked for by its own values and by rules between columns, without a model."""
    checks = reader.checks
    words = (
        (checks.texts, "slips of the keyboard, case, spaces and placeholders"),
        (checks.numbers, "what cannot be read, or is written as hardly any other"),
        (dict.fromkeys(name for each in reader.relations for name in each.columns), "rules between columns"),
    )
    found: dict[str, list[str]] = {}
    for columns, what in words:
        for name in columns:
            found.setdefault(name, []).append(what)
    return {name: "; ".join(own) for name, own in found.items()}
