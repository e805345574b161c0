"""The report is one page that shows everything, runs nothing of the table, and stays small."""

from __future__ import annotations

import datetime as dt
import json
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cellmend import __version__
from cellmend.findings.finding import Finding
from cellmend.report.listing import FINDINGS_BYTES, FIRST_PAGE, OPENED_COLUMNS, ROWS_BYTES
from cellmend.report.overview import GROUPS, LINES
from cellmend.report.page import UNFOLDED_NOTES, Facts, write_report
from cellmend.report.portrait import Pictured
from cellmend.report.rows import Rows
from cellmend.report.rules import BROKEN_ROWS, NUMBERED_ROWS, RULES, UNFOLDED_RULES
from cellmend.table.kinds import infer_schema
from cellmend.table.relations.ruled import Ruled
from cellmend.table.schema import Column, Schema

HOSTILE = "<script>alert(1)</script></script><img src=x onerror=alert(2)>&amp;\u2028'\""
EMPTY_ELEMENTS = {"meta", "input"}


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, the text outside of scripts, and the scripts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in EMPTY_ELEMENTS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        {"script": self.scripts, "style": []}.get(self.open[-1] if self.open else "", self.words).append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])

    def count(self, tag: str, **attributes: str) -> int:
        return sum(name == tag and attributes.items() <= own.items() for name, own in self.elements)


def finding(row: int, column: str, value: Any, repair: Any, suspicion: float = 0.99) -> Finding:
    return Finding(row, column, value, suspicion, repair, None, None, f"{column} is {value}; it is usually {repair}")


def report(
    path: Path,
    before: pa.Table,
    findings: Sequence[Finding] = (),
    *,
    after: pa.Table | None = None,
    schema: Schema | None = None,
    rows: Rows | None = None,
    **facts: Any,
) -> Page:
    repaired = sum(each.repair is not None for each in findings)
    about = {"name": "a.csv", "seconds": 1.0, "flagged": len(findings), "expected_false": 0.5, "repaired": repaired}
    about |= {"settings": {}, "notes": [], "when": dt.datetime(2026, 5, 3, 9, 7)}
    table = Pictured(schema or infer_schema(before), before, after or before, rows or Rows(before))
    write_report(path, Facts(**(about | facts)), table, findings)
    page = Page(path)
    assert page.open == []  # every element is closed
    return page


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report.html"


# ---------------------------------------------------------------- what it says


def test_the_head_says_what_was_found_and_how_sure_it_is(path: Path) -> None:
    table = pa.table({"x": np.arange(200.0), "y": np.arange(200.0)})
    found = [finding(3, "x", 3.0, 4.0), finding(5, "y", 5.0, None)]
    page = report(path, table, found, expected_false=0.4, seconds=71, settings={"seed": "7"}, notes=["y is odd"])
    assert "2 of 400 cells look wrong; how many of them are right is hard to tell in 200 rows." in page.text
    assert "hard to tell" in page.words
    assert "1 is repaired, 1 is left as found." in page.text
    assert {"1 min 11 s", "seed", "7", "y is odd", "a.csv"} <= set(page.words)


def test_a_table_without_findings_is_said_to_have_none(path: Path) -> None:
    page = report(path, pa.table({"x": [1.5, 2.5]}), expected_false=0.0)
    assert "None of 2 cells looks wrong." in page.text
    assert "hard to tell" not in page.text
    assert "False alarms expected" not in page.words
    assert page.text.count("No cell is flagged.") == 2
    assert len(page.scripts) == 1  # no data, only our own


def test_a_table_without_rows_is_reported_too(path: Path) -> None:
    page = report(path, pa.table({"x": pa.array([], pa.float64()), "s": pa.array([], pa.string())}))
    assert "There is no value to draw." in page.text


def test_the_map_counts_lines_where_the_findings_do(path: Path) -> None:
    table = pa.table({"x": np.arange(300.0)})
    found = [finding(3, "x", 3.0, None), finding(4, "x", 4.0, None)]
    page = report(path, table, found, rows=Rows(table, lines=np.arange(2, 302)))
    assert "the lines of the file run from 2 at the left to 301 at the right" in page.text
    assert "2 flagged cells, most in lines 5 to 7: 2" in page.text
    assert "rows run from" not in page.text
    page = report(path, table, found)
    assert "the rows run from 0 at the left to 299 at the right" in page.text
    assert "2 flagged cells, most in rows 3 to 5: 2" in page.text


def test_a_cell_that_got_no_repair_is_left_as_found(path: Path) -> None:
    page = report(path, pa.table({"x": [1.5, 2.5]}), [finding(0, "x", 1.5, None)])
    assert page.data["lines"][0][4] is None
    assert page.words.count("left as found") == 4  # the cell, its group and the line in it, and what one filters by


def test_left_out_columns_are_named_with_the_reason(path: Path) -> None:
    schema = Schema((Column("x", "real"), Column("id", "ignore", reason="a different number in every row")))
    page = report(path, pa.table({"x": [1.5, 2.5], "id": ["a", "b"]}), schema=schema)
    assert page.words.count("left out") == 1
    assert "a different number in every row" in page.words


def test_the_first_findings_stand_in_the_page_for_those_without_scripts(path: Path) -> None:
    table = pa.table({"x": np.arange(200.0)})
    page = report(path, table, [finding(row, "x", float(row), 1.0) for row in range(120)])
    assert page.count("td", **{"class": "reason"}) == FIRST_PAGE
    assert "x is 0.0; it is usually 1.0" in page.words
    assert len(page.data["lines"]) == 120


def test_numbers_in_the_data_are_those_that_a_person_would_write(path: Path) -> None:
    table = pa.table({"x": [0.5, 1.5, 2.5]})
    found = [finding(0, "x", 0.1 + 0.2, 2**60), finding(1, "x", float("nan"), float("inf")), finding(2, "x", "3,x", 5)]
    lines = report(path, table, found).data["lines"]
    assert [line[2] for line in lines] == [0.3, "nan", "3,x"]
    assert [line[4] for line in lines] == [str(2**60), "inf", 5]


def test_findings_come_first_and_say_which_row_of_the_file_they_are_in(path: Path) -> None:
    table = pa.table({"make": ["Peugeot", "Fiat"], "model": ["107", "500"], "doors": [5.0, 3.0]})
    rows = Rows(table, ["make", "model"], np.array([2, 3]))
    page = report(path, table, [finding(1, "doors", 3.0, 2.0)], rows=rows)
    sections = [own["id"] for tag, own in page.elements if tag == "section"]
    assert sections[:3] == ["groups", "findings", "causes"]
    assert {"Fiat · 500", "line 3"} <= set(page.words)
    assert page.data["lines"][0][-3:] == [3, "Fiat · 500", 0]
    assert page.data["rows"] == [[1, "Fiat", "500", "3"]]


def test_a_very_wide_row_opens_with_its_names_and_flagged_cells(path: Path) -> None:
    table = pa.table({f"c{place}": [1.0, 2.0] for place in range(500)})
    page = report(path, table, [finding(0, "c300", 1.0, 2.0)], rows=Rows(table, ["c400"]))
    assert len(page.data["opened"]) == OPENED_COLUMNS
    assert {300, 400} <= set(page.data["opened"])


def test_causes_are_counted_by_column(path: Path) -> None:
    found = [replace(finding(row, "x", 1.5, None), cause="point") for row in (0, 1)]
    page = report(path, pa.table({"x": [1.5, 2.5], "y": [1.5, 2.5]}), [*found, finding(0, "y", 1.5, None)])
    assert page.count("a", **{"data-cause": "point"}) == 1
    assert "the decimal point moved" in page.words
    assert page.words[page.words.index("the decimal point moved") + 1 :][:4] == ["2", "x", " ", "2"]


def test_the_page_says_when_and_by_which_version_it_was_made(path: Path) -> None:
    page = report(path, pa.table({"x": [1.5, 2.5]}))
    assert "2026-05-03 09:07" in page.words
    assert __version__ in page.words


def test_columns_that_no_model_knows_are_listed_with_what_they_are_checked_for(path: Path) -> None:
    table = pa.table({"x": [1.5, 2.5], "id": ["a", "b"], "note": ["", ""]})
    schema = Schema((Column("x", "real"), Column("id", "ignore"), Column("note", "ignore")))
    facts = Facts("a.csv", dt.datetime(2026, 5, 3), 1.0, 0, 0.0, 0, {}, [])
    write_report(path, facts, Pictured(schema, table, table, Rows(table), checked={"id": "odd forms"}), [])
    assert {"id: checked for odd forms.", "note: not checked."} <= set(Page(path).words)


def page_of_rules(path: Path, table: pa.Table, rules: Sequence[Ruled], findings: Sequence[Finding] = ()) -> Page:
    facts = Facts("a.csv", dt.datetime(2026, 5, 3), 1.0, len(findings), 0.0, 0, {}, [], broken_rows=60)
    rows = Rows(table, (), np.arange(table.num_rows) + 2)
    write_report(path, facts, Pictured(infer_schema(table), table, table, rows, rules=rules), findings)
    page = Page(path)
    assert page.open == []
    return page


def test_rules_are_listed_as_far_as_one_would_read_them(path: Path) -> None:
    table = pa.table({"x": [1.5, 2.5]})
    page = page_of_rules(path, table, [Ruled(f"rule {number}", (), ()) for number in range(RULES + 10)])
    assert {"Rules that all rows keep", "rule 0", f"rule {RULES - 1}", "all 2 rows keep it"} <= set(page.words)
    assert f"rule {RULES}" not in page.words
    assert f"{RULES - UNFOLDED_RULES} more rules that all rows keep" in page.words
    assert "Not listed: 10 more rules that all rows keep." in page.words


def test_rows_that_break_a_rule_are_listed_by_their_lines_and_no_rule_is_kept_that_is_broken(path: Path) -> None:
    listed = BROKEN_ROWS + NUMBERED_ROWS
    table = pa.table({"x": [1.5, 2.5, -1.0] * 200, HOSTILE: ["a"] * 600})
    sure = Ruled("x > 0", ("x",), tuple(range(2, 60, 3)), sure=True)
    page = page_of_rules(path, table, [Ruled(HOSTILE, (HOSTILE,), tuple(range(listed + 20))), sure])
    assert {"line 4: x is -1", "line 61: x is -1", f"line 3: {HOSTILE} is a"} <= set(page.words)
    said = "580 of 600 rows keep it, and you say that all keep it; 20 rows break it, none of them with a finding"
    assert page.words.index("x > 0") < page.words.index(said) < page.words.index(f"line 3: {HOSTILE} is a")
    others = ", ".join(str(row + 2) for row in range(BROKEN_ROWS, listed))
    assert f"Also lines {others} and 20 more rows." in page.words
    assert "Rules that all rows keep" not in page.words
    assert "None of 1,200 cells looks wrong by itself. In 60 rows without a finding a rule is broken" in page.text


def test_of_the_rows_that_break_a_rule_those_without_a_finding_come_first_and_it_is_said_why(path: Path) -> None:
    table = pa.table({"zip": ["53111"] * 9, "city": ["Bonn"] * 7 + ["Born", "Ulm"]})
    rule = Ruled("zip decides city", ("zip", "city"), (7, 8), say=lambda row: f"it is <b> in row {row}")
    page = page_of_rules(path, table, [rule], [finding(7, "city", "Born", "Bonn")])
    assert "7 of 9 rows keep it; 2 rows break it, 1 of them with a finding" in page.words
    exception, error = (
        page.words.index("line 10: it is <b> in row 8"),
        page.words.index("line 9: zip is 53111, city is "),
    )
    assert exception < error
    assert page.words[error + 1 : error + 4] == ["Born", " → ", "Bonn"]


def test_rules_that_rows_without_a_finding_break_come_before_others(path: Path) -> None:
    table = pa.table({"x": [1.5, 2.5, 3.5], "y": [1.5, 2.5, 3.5]})
    rules = [Ruled("x decides y", ("x", "y"), (0,)), Ruled("y decides x", ("y", "x"), (0, 1))]
    page = page_of_rules(path, table, rules, [finding(0, "x", 1.5, None)])
    assert page.words.index("y decides x") < page.words.index("x decides y")


# ---------------------------------------------------------------- groups, and how to go on


def test_findings_that_are_to_be_changed_in_the_same_way_are_one_line(path: Path) -> None:
    table = pa.table({"city": ["Ulmm"] * 150 + ["Born", "?"]})
    habit = [replace(finding(row, "city", "Ulmm", "Ulm"), repair_probability=0.948) for row in range(150)]
    found = [*habit, finding(150, "city", "Born", "Bonn"), replace(finding(151, "city", "?", None), suspicion=0.7)]
    page = report(path, table, found, rows=Rows(table, ["city"], np.arange(152) + 2))
    assert {"152 cells, 3 values", "150 cells", "suspicion 99 %, repair 95 % sure"} <= set(page.words)
    assert {"first in line 2 (Ulmm)", "line 152 (Born)", "suspicion 70 %"} <= set(page.words)
    assert [line[-1] for line in page.data["lines"]] == [0] * 150 + [1, 2]
    assert [page.count("a", **{"data-alike": str(number)}) for number in range(4)] == [1, 1, 1, 0]


def test_of_a_group_of_many_values_the_most_frequent_are_shown_and_the_way_to_the_others(path: Path) -> None:
    letters = [f"{chr(97 + number % 26)}{number}" for number in range(LINES + 30)]
    table = pa.table({"city": letters})
    page = report(path, table, [finding(row, "city", text, f"Q{row}") for row, text in enumerate(letters)])
    assert page.count("a", **{"data-column": "0", "data-cause": "unlike its row"}) == 1
    assert "30 more cells with other values" in page.words
    assert [line[-1] for line in page.data["lines"]] == [*range(LINES), *[None] * 30]


def test_the_way_to_the_review_page_is_told_if_there_is_something_to_decide(path: Path) -> None:
    table, commands = pa.table({"x": [1.5, 2.5]}), [f"cellmend review '{HOSTILE}'", "and so on"]
    page = report(path, table, [finding(0, "x", 1.5, None)], commands=commands)
    assert page.words.count("\n".join(commands)) == 1
    assert "Decide about these cells" in page.words
    for other in (report(path, table, commands=commands), report(path, table, [finding(0, "x", 1.5, None)])):
        assert "Decide about these cells" not in other.words


def test_many_notes_are_folded(path: Path) -> None:
    page = report(path, pa.table({"x": [1.5]}), notes=[f"note {number}" for number in range(UNFOLDED_NOTES + 3)])
    assert {"note 0", "3 more notes", f"note {UNFOLDED_NOTES + 2}"} <= set(page.words)


# ---------------------------------------------------------------- nothing of the table is run


def test_text_of_the_table_is_shown_and_never_run(path: Path) -> None:
    table = pa.table({HOSTILE: [HOSTILE, "a", "a", "b"], "x": [1.0, 2.0, 3.0, 4.0]})
    schema = Schema((Column(HOSTILE, "category", levels=(HOSTILE, "a")), Column("x", "ignore", reason=HOSTILE)))
    found = [finding(0, HOSTILE, HOSTILE, HOSTILE)]
    page = report(path, table, found, schema=schema, name=HOSTILE, settings={HOSTILE: HOSTILE}, notes=[HOSTILE])
    assert page.count("script") == 2
    assert page.count("script", type="application/json") == 1
    assert page.count("img") == 0
    assert page.words.count(HOSTILE) >= 10
    assert page.data["columns"][0] == page.data["lines"][0][2] == HOSTILE
    assert not [name for _, own in page.elements for name in own if name.startswith("on")]
    assert not set("<>&\u2028") & set(page.scripts[0])


def test_the_page_may_load_nothing_and_run_only_its_own_script(path: Path) -> None:
    page = report(path, pa.table({"x": [1.5, 2.5]}))
    policies = [own["content"] or "" for tag, own in page.elements if tag == "meta" and "http-equiv" in own]
    assert len(policies) == 1
    assert re.search(r"default-src 'none'; style-src 'unsafe-inline'.* script-src 'sha256-\S+'$", policies[0])
    links = [own.get(name) or "#" for _, own in page.elements for name in ("src", "href")]
    assert all(link.startswith("#") for link in links)


def test_half_a_character_does_not_stop_the_report(path: Path) -> None:
    page = report(path, pa.table({"x": [1.5, 2.5]}), [finding(0, "x", "\udc80", 1.5)], notes=["\udc80"])
    assert page.data["lines"][0][2] == "\udc80"


def test_long_text_is_cut(path: Path) -> None:
    page = report(path, pa.table({"s": ["a" * 10_000, "b", "b"]}), [finding(0, "s", "a" * 10_000, "b")])
    assert len(page.data["lines"][0][2]) == 240
    assert "a" * 241 not in page.source


# ---------------------------------------------------------------- size and speed


def wide_table(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    numbers = {f"number {i}": rng.lognormal(size=rows) for i in range(20)}
    texts = {f"text {i}": np.char.add("level ", rng.integers(0, 500, rows).astype(str)) for i in range(8)}
    days = np.datetime64("2020-01-01") + rng.integers(0, 2000, rows)
    return pa.table({**numbers, **texts, "day": days, "note": np.arange(rows).astype(str)})


@pytest.mark.slow
def test_30_columns_and_100_000_rows_make_less_than_3_mb(path: Path) -> None:
    table = wide_table(100_000)
    assert table.num_columns == 30
    rows = np.random.default_rng(1).integers(0, 100_000, 100_000).tolist()
    found = [finding(row, table.column_names[place % 28], "some value", "another") for place, row in enumerate(rows)]
    start = time.perf_counter()
    page = report(path, table, found)
    assert time.perf_counter() - start < 20
    assert path.stat().st_size < 3_000_000
    held = len(page.data["lines"])
    assert 10_000 < held < 100_000
    assert f"This page holds the {held:,} most suspicious of 100,000 findings; all are in findings.csv." in page.text
    room = FINDINGS_BYTES + ROWS_BYTES
    assert room * 0.9 < len(page.scripts[0]) <= room + 1_000
    assert 1_000 < len(page.data["rows"]) < held  # rows that can be opened


def test_many_columns_do_not_make_the_page_large(path: Path) -> None:
    table = pa.table({f"c{i}": np.random.default_rng(i).normal(size=500) for i in range(400)})
    page = report(path, table, [finding(7, f"c{i}", 0.5, 0.1) for i in range(320)])
    assert "Not shown: 80 columns without flagged cells. Not shown either: 20 more columns with some." in page.text
    assert f"Not shown here: {320 - GROUPS} smaller groups. Their cells stand among the findings." in page.words
    assert "Not drawn: 340 more columns." in page.text
    assert path.stat().st_size < 1_500_000


# ---------------------------------------------------------------- all kinds of columns


def test_all_types_of_columns_can_be_drawn(path: Path) -> None:
    hours = [dt.datetime(2024, 1, 1, hour, tzinfo=dt.UTC) for hour in range(5)]
    columns = {
        "whole": pa.array([1, 2, 3, None, 10**12]),
        "broken": pa.array([0.5, float("nan"), None, float("inf"), -1e308]),
        "decimal": pa.array([1, 2, 3, 4, None]).cast(pa.decimal128(30, 2)),
        "constant": pa.array([0.1] * 5),
        "zero": pa.array([0] * 5),
        "tiny": pa.array([5e-324, 0.0, 1e-310, 0.0, 0.0]),
        "close": pa.array([1e15, 1e15 + 0.125, 1e15 + 0.25, None, None]),
        "huge": pa.array([1.7e308, -1.7e308, 0.0, 1.0, 2.0]),
        "all missing": pa.array([None] * 5, pa.float64()),
        "nothing": pa.nulls(5),
        "unreadable": pa.array([float("nan")] * 5),
        "endless": pa.array([float("inf")] * 5),
        "boolean": pa.array([True, False, None, True, True]),
        "text": pa.array(["a", "", None, "a", "ü"]),
        "dictionary": pa.array(["S", "M", "L", None, "S"]).dictionary_encode(),
        "date": pa.array([dt.date(2020, 1, day) for day in range(1, 5)] + [None]),
        "old": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None, None, None]),
        "moment": pa.array(hours, pa.timestamp("ns", "Europe/Oslo")),
        "second": pa.array([1, 2, 3, None, 5], pa.timestamp("us")),
        "time": pa.array([dt.time(1, 2)] * 5),
        "list": pa.array([[1], [2], None, [], [3]]),
    }
    table = pa.table(columns)
    found = [finding(row, name, "old", "new") for name in columns for row in (0, 2)]
    flagged = report(path, table, found)
    assert flagged.count("article") == len(columns)
    assert report(path, table).count("article") == len(columns)


def test_missing_and_unreadable_cells_are_counted_before_and_after(path: Path) -> None:
    before = pa.table({"x": [1.5, None, float("nan"), float("nan"), 2.5]})
    after = pa.table({"x": [1.5, 2.0, 2.0, float("nan"), 2.5]})
    page = report(path, before, [finding(2, "x", "abc", 2.0)], after=after)
    assert "Missing 1, then 0 Unreadable 2, then 1" in page.text


def test_the_map_says_where_most_flagged_cells_are(path: Path) -> None:
    table = pa.table({"x": np.arange(12_000.0), "y": np.arange(12_000.0)})
    page = report(path, table, [finding(row, "x", 0.0, 1.0) for row in (3, 5_001, 5_002, 5_099)])
    said = "4 flagged cells, most in rows 5,000 to 5,099: 3"
    assert page.count("svg", **{"aria-label": said}) == 1
    assert "Not shown: 1 column without flagged cells." in page.text
