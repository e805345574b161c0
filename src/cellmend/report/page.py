"""The report: one HTML page that says what was found in a table, with nothing to load from anywhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from cellmend.files.places import whole_file
from cellmend.findings.finding import Finding
from cellmend.report.columns import gallery_of, kinds_of, map_of
from cellmend.report.listing import listing_of
from cellmend.report.markup import counted, cut
from cellmend.report.portrait import portraits
from cellmend.table.schema import Schema


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
    templates = files("cellmend.report") / "templates"
    style, script = ((templates / f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    page = _template().render(
        facts=facts,
        headline=headline(facts, before.num_rows * before.num_columns),
        rows=before.num_rows,
        columns=before.num_columns,
        map=map_of(columns, before.num_rows),
        gallery=gallery_of(columns),
        listing=listing_of(findings, before.column_names),
        kinds=kinds_of(schema),
        style=style,
        script=script,
        script_sum=b64encode(sha256(script.encode()).digest()).decode(),
    )
    with whole_file(path) as temporary:
        # A name from outside may hold half a character, which UTF-8 cannot write.
        temporary.write_bytes(page.encode("utf-8", "backslashreplace"))


def _template() -> Template:
    pages = Environment(
        loader=PackageLoader("cellmend.report"),
        autoescape=True,
        finalize=_escaped,
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    pages.filters |= {"about": about, "counted": counted, "cut": cut, "duration": duration, "grouped": "{:,}".format}
    return pages.get_template("report.html")


def _escaped(value: object) -> object:
    """Text escaped as in the pictures, what is HTML already as it is."""
    return value if hasattr(value, "__html__") else Markup(escape(str(value)))  # noqa: S704


def headline(facts: Facts, cells: int) -> str:
    """What was found, in a sentence or two."""
    if not facts.flagged:
        return f"None of {counted(cells, 'cell')} looks wrong."
    left = facts.flagged - facts.repaired
    kept = f"; {left:,} {'is' if left == 1 else 'are'} left as found, for no value was sure enough" if left else ""
    return (
        f"{facts.flagged:,} of {counted(cells, 'cell')} {'looks' if facts.flagged == 1 else 'look'} wrong; "
        f"among them {about(facts.expected_false)} false alarms are expected. {facts.repaired:,} got a repair{kept}."
    )


def about(expected: float) -> str:
    """An expected number, with a digit after the point where it matters.

    >>> about(0.04), about(3.21), about(1234.5)
    ('less than 0.1', '3.2', '1,234')
    """
    return "less than 0.1" if 0 < expected < 0.05 else f"{expected:.1f}" if expected < 10 else f"{expected:,.0f}"


def duration(seconds: float) -> str:
    """A time as one would say it.

    >>> duration(0.31), duration(23.4), duration(250)
    ('0.3 s', '23 s', '4 min 10 s')
    """
    whole = round(seconds)
    if whole >= 60:
        return f"{whole // 60} min {whole % 60} s"
    return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
