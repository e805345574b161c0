"""The report: one HTML page that says what was found in a table, with nothing to load from anywhere."""

from __future__ import annotations

import json
import math
from base64 import b64encode
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

from cellmend.files.formats import whole_file
from cellmend.findings.findings import Finding, show
from cellmend.report.charts import Counts, Portrait, cell_html, chart, counted, cut, escaped, html_table
from cellmend.table.schema import IGNORE, Column, Schema
from cellmend.table.values import LARGEST_EXACT_WHOLE, level_text, plain

SECTIONS = {
    "map": "Where the flagged cells are",
    "columns": "Columns before and after repair",
    "findings": "Findings",
    "notes": "Notes",
    "schema": "Schema",
}
FINDINGS_BYTES = 1_500_000  # of findings in the page; the rest are in findings.csv
FIRST_PAGE = 50  # findings that stand in the page itself, for paper and where scripts are off
MAPPED = 100  # columns on the map at most
ROW_BINS = 120  # pieces that the map cuts the rows into, at most
SHADES = 4  # of the map
CHARTED = 60  # columns that are drawn at most
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
        f"<title>{escaped(name)}: findings</title>\n<style>{style}</style>\n</head>\n"
        f'<body>\n<a class="skip" href="#findings">Skip to the findings</a>\n{head}\n<main>{main}\n</main>\n'
        "<footer>Written by cellmend. This page loads nothing from anywhere. It holds values of the table: "
        f"share it only with those who may see them.</footer>\n<script>{script}</script>\n</body>\n</html>\n"
    )


# ---------------------------------------------------------------- words and numbers


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
        f'<header><p class="kicker">cellmend report</p><h1>{escaped(facts.name)}</h1>'
        f'<p class="lead">{_headline(facts, table.num_rows * table.num_columns)}</p>{_terms(numbers, "numbers")}'
        f"{_terms({'time': _duration(facts.seconds), **settings}, 'settings')}"
        f'<nav aria-label="Sections">{links}</nav></header>'
    )


def _headline(facts: Facts, cells: int) -> str:
    if not facts.flagged:
        return f"None of {counted(cells, 'cell')} looks wrong."
    left = facts.flagged - facts.repaired
    kept = f"; {left:,} {'is' if left == 1 else 'are'} left as found, for no value was sure enough" if left else ""
    return (
        f"{facts.flagged:,} of {counted(cells, 'cell')} {'looks' if facts.flagged == 1 else 'look'} wrong; "
        f"among them {_about(facts.expected_false)} false alarms are expected. {facts.repaired:,} got a repair{kept}."
    )


def _notes(notes: Sequence[str]) -> str:
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<ul>{listed}</ul>" if notes else "<p>There is nothing to note.</p>"


def _schema(schema: Schema) -> str:
    lines = [
        (escaped(column.name), _kind(column), escaped(column.reason or ", ".join(map(level_text, column.levels or ()))))
        for column in schema
    ]
    head = {"Column": "", "Kind": "", "Its levels, or why it is left out": ""}
    table = html_table("What each column was taken for", "", head, lines)
    return f"<details><summary>Kinds of {counted(len(lines), 'column')}</summary>{table}</details>"


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
    return f"<p>{' '.join(words)}</p>{html_table('Flagged cells by column and row', 'map', head, lines)}"


def _strip(counts: Counts, most: int, size: int, rows: int) -> str:
    shades = np.ceil(SHADES * counts / most).astype(int)
    marks = {
        shade: "".join(f"M{at} 0h1v1h-1z" for at in np.flatnonzero(shades == shade)) for shade in range(1, SHADES + 1)
    }
    paths = "".join(f'<path class="shade-{shade}" d="{path}"/>' for shade, path in marks.items() if path)
    first = int(counts.argmax()) * size
    last = min(first + size, rows) - 1
    where = f"rows {first:,} to {last:,}" if last > first else f"row {last:,}"
    said = f"{counted(int(counts.sum()), 'flagged cell')}, most in {where}: {counts.max():,}"
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
        summary = f"{counted(len(folded), 'column')} without flagged cells"
        content += f"<details><summary>{summary}</summary>{cards}</details>"
    if left := len(columns) - len(shown) - len(folded):
        content += f"<p>Not drawn: {counted(left, 'more column')}.</p>"
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
        f'\n<article class="card"><div><h3>{escaped(column.schema.name)}</h3><p class="kind">{escaped(kind)}</p>'
        f"{_terms(numbers, '')}</div>{chart(column)}</article>"
    )


def _change(before: int, after: int) -> str:
    return f"{before:,}" if before == after else f"{before:,}, then {after:,}"


def _unreadable(values: pa.ChunkedArray) -> int:
    return pc.sum(pc.is_nan(values)).as_py() or 0 if pa.types.is_floating(values.type) else 0


# ---------------------------------------------------------------- findings

HEAD = ("row", "column", "value", "repair", "suspicion", "reason")
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
    shown = f"The first {min(FIRST_PAGE, len(lines))} of {counted(len(lines), 'finding')}"
    head = "".join(f'<th scope="col" role="columnheader" class="{id_}">{id_.capitalize()}</th>' for id_ in HEAD)
    body = "".join(_finding(json.loads(line), names) for line in lines[:FIRST_PAGE])
    joined = ",\n".join(lines)
    return (
        f'<p>{words}</p>{_controls(findings, places)}<p id="shown" role="status" aria-live="polite">{shown}</p>'
        '<table role="table" id="table"><caption class="unseen">Flagged cells</caption><thead role="rowgroup">'
        f'<tr role="row">{head}</tr></thead><tbody role="rowgroup">{body}</tbody></table>'
        '<nav class="pages" aria-label="Pages of findings" hidden><button type="button" id="previous">Previous</button>'
        '<span id="page"></span><button type="button" id="next">Next</button></nav><script type="application/json" '
        f'id="data">{{"columns":{_json([cut(name) for name in names])},"lines":[\n{joined}]}}</script>'
    )


def _controls(findings: Sequence[Finding], places: Mapping[str, int]) -> str:
    """What findings are filtered with; hidden until the script runs."""
    columns = sorted({places[finding.column]: finding.column for finding in findings}.items())
    options = "".join(f'<option value="{place}">{escaped(name)}</option>' for place, name in columns)
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
    return finding.row, places[finding.column], value, round(finding.suspicion, 3), repair, cut(finding.reason)


def _cell(value: Any) -> float | str | None:
    """A number that JSON and the script hold exactly, text, or None for what is not there.

    >>> _cell(0.1 + 0.2), _cell("007"), _cell(True), _cell(2**60), _cell(float("nan"))
    (0.3, '007', 'True', '1152921504606846976', 'nan')
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_EXACT_WHOLE
    return json.loads(show(value)) if is_number else cut(show(value))


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
        "column": escaped(names[place]),
        "value": "<i>missing</i>" if value is None else cell_html(show(value)),
        "repair": "<i>left as found</i>" if repair is None else cell_html(show(repair)),
        "suspicion": f"{suspicion:.3f}",
        "reason": escaped(reason),
    }
    return f'<tr role="row">{"".join(f"<td class={id_} role=cell>{cell}</td>" for id_, cell in cells.items())}</tr>'
