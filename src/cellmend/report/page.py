"""The report: one HTML page that says what was found in a table, with nothing to load from anywhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from cellmend import __version__
from cellmend.files.places import whole_file
from cellmend.findings.finding import FEW_ROWS, Finding, say_broken, say_contradictions, say_sure
from cellmend.report.columns import causes_of, gallery_of, kinds_of, map_of, without_model
from cellmend.report.listing import listing_of
from cellmend.report.markup import boxed, counted, cut
from cellmend.report.overview import overview_of
from cellmend.report.portrait import Pictured, portraits
from cellmend.report.rules import UNFOLDED_RULES, rules_shown

UNFOLDED_NOTES = 6  # that are seen at once


@dataclass(frozen=True)
class Facts:
    """What the head of a report says."""

    name: str  # of the table
    when: datetime  # the run
    seconds: float  # that it took
    flagged: int  # cells, also those that have no place in the page
    expected_false: float  # false alarms among them
    repaired: int
    settings: Mapping[str, str]
    notes: Sequence[str]
    contradictions: int = 0
    broken_rows: int = 0  # that break a rule, though nothing in them is flagged
    commands: Sequence[str] = ()  # by which a person goes on to decide about the cells


def write_report(path: Path, facts: Facts, table: Pictured, findings: Sequence[Finding]) -> None:
    """Write the page about a table before and after repair."""
    columns, before = portraits(table, findings), table.before
    overview = overview_of(findings, table.rows)
    templates = files("cellmend.report") / "templates"
    style, script = ((templates / f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    page = _template().render(
        facts=facts,
        version=__version__,
        headline=headline(facts, before.num_rows, before.num_columns),
        false_alarms=about(facts.expected_false) if before.num_rows >= FEW_ROWS else "hard to tell",
        rows=before.num_rows,
        columns=before.num_columns,
        map=map_of(columns, table.rows),
        gallery=gallery_of(columns),
        overview=overview,
        listing=listing_of(findings, overview, table.rows),
        found=len(findings),
        has_lines=table.rows.lines is not None,
        causes=causes_of(findings) if findings else "",
        kinds=boxed(kinds_of(table.schema, table.checked), "Columns", len(columns)),
        without_model=without_model(table.schema, table.checked),
        rules=rules_shown(table.rules, table.rows, findings),
        unfolded_rules=UNFOLDED_RULES,
        unfolded_notes=UNFOLDED_NOTES,
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
    pages.filters |= {"counted": counted, "cut": cut, "duration": duration, "grouped": "{:,}".format}
    pages.filters |= {"moment": moment}
    return pages.get_template("report.html")


def _escaped(value: object) -> object:
    """Text escaped as in the pictures, what is HTML already as it is."""
    return value if hasattr(value, "__html__") else Markup(escape(str(value)))  # noqa: S704


def headline(facts: Facts, rows: int, columns: int) -> str:
    """What was found, in a sentence or two."""
    cells = rows * columns
    contradictions = f" {say_contradictions(facts.contradictions)}" if facts.contradictions else ""
    rules = f" {say_broken(facts.broken_rows)}" if facts.broken_rows else ""
    if not facts.flagged:
        by_itself = " by itself" if contradictions or rules else ""
        return f"None of {counted(cells, 'cell')} looks wrong{by_itself}.{contradictions}{rules}"
    left = facts.flagged - facts.repaired
    kept = f", {left:,} {_be(left)} left as found" if left else ""
    return (
        f"{facts.flagged:,} of {counted(cells, 'cell')} {'looks' if facts.flagged == 1 else 'look'} wrong; "
        f"{say_sure(facts.expected_false, rows)}. "
        f"{facts.repaired:,} {_be(facts.repaired)} repaired{kept}.{contradictions}{rules}"
    )


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def about(expected: float) -> str:
    """An expected number, as finely as it is known.

    >>> about(0.04), about(1.3), about(1234.5)
    ('less than 1', '1', '1,234')
    """
    return "less than 1" if 0 < expected < 0.5 else f"{expected:,.0f}"


def duration(seconds: float) -> str:
    """A time as one would say it.

    >>> duration(0.31), duration(23.4), duration(250)
    ('0.3 s', '23 s', '4 min 10 s')
    """
    whole = round(seconds)
    if whole >= 60:
        return f"{whole // 60} min {whole % 60} s"
    return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"


def moment(when: datetime) -> str:
    """Day and time, with the zone if it is known.

    >>> moment(datetime(2026, 5, 3, 9, 7))
    '2026-05-03 09:07'
    """
    return f"{when:%Y-%m-%d %H:%M %Z}".strip()
