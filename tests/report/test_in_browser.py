"""The report in a real browser: it works by mouse and keyboard, and runs and loads nothing of the table.

Needs the package playwright and a Chromium, of the system or from `playwright install chromium`; skipped without.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cellmend.findings.finding import Finding
from cellmend.report.page import Facts, write_report
from cellmend.report.portrait import Pictured
from cellmend.report.rows import Rows
from cellmend.table.causes.named import MEANINGS
from cellmend.table.relations.ruled import Ruled
from cellmend.table.schema import Column, Schema

pytestmark = pytest.mark.browser

HOSTILE = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
FINDINGS = 120


def write_example(path: Path) -> None:
    """1,000 rows with 120 findings in three columns; one cell holds a script."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(1000)[:FINDINGS].tolist()
    width = rng.normal(10, 1, 1000)
    width[rows] *= 100
    texts = ["oak", "ash", "elm"] * 333 + [HOSTILE]
    before = pa.table({"width": width, "wood": texts, "day": np.datetime64("2024-01-01") + np.arange(1000) % 300})
    after = before.set_column(0, "width", pa.array(np.where(np.isin(np.arange(1000), rows), 10.0, width)))
    findings = [
        Finding(
            row, ("width", "day")[place % 2], float(width[row]), 1 - place / 200, 10.0, 9.0, 11.0, f"reason {place}"
        )
        for place, row in enumerate(rows[:-1])
    ]
    findings.append(Finding(999, "wood", HOSTILE, 0.3, None, None, None, f"wood is {HOSTILE}", "form"))
    schema = Schema((Column("width", "real"), Column("wood", "category"), Column("day", "date")))
    facts = Facts(
        name=HOSTILE,
        when=datetime(2026, 5, 3, 9, 7),
        seconds=3.0,
        flagged=FINDINGS,
        expected_false=24.0,
        repaired=FINDINGS - 1,
        settings={"seed": "0"},
        notes=["a long word: " + "x" * 200],
    )
    table = Pictured(schema, before, after, Rows(before, ["wood"], np.arange(1000) + 2))
    write_report(path, facts, table, findings)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_example(path)
    return path


@pytest.fixture
def page(chromium: Any, report: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The open report; at the end nothing must have gone wrong in it, and nothing been loaded."""
    context = chromium.new_context(**getattr(request, "param", {}))
    page = context.new_page()
    troubles: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    yield page
    assert troubles == []
    assert [url.split("#")[0] for url in requests] == [report.as_uri()]
    context.close()


def cells(page: Any, field: str) -> list[str]:
    return page.locator(f"#table tbody td.{field}").all_inner_texts()


def status(page: Any) -> str:
    return page.locator("#shown").inner_text()


def test_the_most_suspicious_findings_come_first(page: Any) -> None:
    assert status(page) == "1 to 50 of 120 findings"
    assert cells(page, "reason") == [f"reason {place}" for place in range(50)]
    assert page.locator("th.suspicion").get_attribute("aria-sort") == "descending"


def test_a_click_on_a_heading_sorts_and_another_one_turns_the_order_round(page: Any) -> None:
    heading = page.locator("th.row button")
    heading.click()
    lines = [int(row.split()[-1]) for row in cells(page, "row")]
    assert lines == sorted(lines)
    heading.click()
    assert cells(page, "row")[0].endswith("line 1001")
    page.get_by_role("button", name="Suspicion").click()
    assert cells(page, "suspicion")[:2] == ["1.000", "0.995"]
    page.get_by_role("button", name="Suspicion").click()
    assert cells(page, "suspicion")[0] == "0.300"
    assert page.locator("[aria-sort]").count() == 1


def test_numbers_sort_by_size_and_text_comes_after_them(page: Any) -> None:
    page.get_by_role("button", name="Value").click()
    values = [float(value) for value in cells(page, "value")]
    assert values == sorted(values)
    page.get_by_role("button", name="Value").click()
    assert cells(page, "value")[0] == HOSTILE


def test_headings_sort_by_keyboard(page: Any) -> None:
    page.locator("th.row button").focus()
    page.keyboard.press("Enter")
    assert page.locator("th.row").get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Space")
    assert page.locator("th.row").get_attribute("aria-sort") == "descending"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert cells(page, "column")[0] == "day"


def test_findings_are_searched_in_all_their_words(page: Any) -> None:
    page.get_by_label("Search").fill("REASON 11")
    assert status(page) == "1 to 10 of 10 findings"  # 11 and 110 to 118
    assert cells(page, "reason")[0] == "reason 11"
    page.get_by_label("Search").fill("no such words")
    assert status(page) == "No finding matches."
    page.get_by_label("Search").fill("")
    assert status(page) == "1 to 50 of 120 findings"


def test_findings_are_filtered_by_column_and_suspicion(page: Any) -> None:
    page.locator("#column").select_option(label="day")
    assert set(cells(page, "column")) == {"day"}
    assert status(page) == "1 to 50 of 59 findings"
    page.get_by_label("Suspicion at least").fill("0.9")
    assert status(page) == "1 to 10 of 10 findings"
    assert min(float(suspicion) for suspicion in cells(page, "suspicion")) >= 0.9


def test_the_number_of_flagged_cells_leads_to_the_findings_of_the_column(page: Any) -> None:
    column = page.locator("article", has_text="wood")
    column.locator("summary").click()
    column.get_by_role("link").click()
    assert cells(page, "column") == ["wood"]
    assert cells(page, "repair") == ["left as found"]
    assert page.locator("#column").input_value() == "1"


def test_findings_are_filtered_by_cause_and_by_what_became_of_them(page: Any) -> None:
    page.get_by_label("Outcome").select_option("left as found")
    assert cells(page, "repair") == ["left as found"]
    assert status(page) == "1 to 1 of 1 finding"
    page.get_by_label("Outcome").select_option("repaired")
    assert status(page) == "1 to 50 of 119 findings"
    page.get_by_label("Cause").select_option("form")
    assert status(page) == "No finding matches."
    page.locator("#causes a", has_text="form").click()
    assert cells(page, "column") == ["wood"]
    assert page.get_by_label("Outcome").input_value() == ""


def test_a_finding_opens_its_row_with_the_flagged_cell_marked(page: Any) -> None:
    place = page.locator("#table tbody button").first
    assert place.inner_text().split("\n")[0] in ("oak", "ash", "elm")  # the column that names rows
    place.focus()
    page.keyboard.press("Enter")
    assert place.get_attribute("aria-expanded") == "true"
    opened = page.locator("tr.opened")
    assert opened.locator("dt").all_inner_texts() == ["width", "wood", "day"]
    assert opened.locator(".marked dt").all_inner_texts() == ["width"]
    assert opened.locator(".marked dd").inner_text().endswith("→ 10")
    page.keyboard.press("Enter")
    assert page.locator("tr.opened").count() == 0


def test_the_findings_shown_can_be_downloaded(page: Any) -> None:
    page.locator("#column").select_option(label="wood")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download").click()
    with Path(waiting.value.path()).open(encoding="utf-8-sig", newline="") as file:
        lines = [*csv.DictReader(file)]
    assert [(line["row"], line["value"], line["cause"], line["line"]) for line in lines] == [
        ("999", HOSTILE, "form", "1001")
    ]


def test_one_page_has_no_pages_to_turn(page: Any) -> None:
    assert page.locator("#page").is_visible()
    page.locator("#column").select_option(label="wood")
    assert not page.locator("#page").is_visible()


def test_numbers_are_not_broken_in_two(chromium: Any, report: Path) -> None:
    for width in (390, 800, 1280):
        narrow = chromium.new_page(viewport={"width": width, "height": 900})
        narrow.goto(report.as_uri())
        heights = narrow.locator("td.value .whole, .ticks span, .numbers dd").evaluate_all(
            "all => all.filter((each) => each.textContent).map((each) => each.getClientRects().length)"
        )
        assert set(heights) == {1}


def test_pages_are_turned(page: Any) -> None:
    previous, following = page.get_by_role("button", name="Previous"), page.get_by_role("button", name="Next")
    assert previous.is_disabled()
    following.click()
    following.click()
    assert status(page) == "101 to 120 of 120 findings"
    assert page.locator("#page").inner_text() == "Page 3 of 3"
    assert following.is_disabled()
    previous.click()
    assert cells(page, "reason")[0] == "reason 50"


def test_a_script_in_a_cell_is_shown_and_not_run(page: Any) -> None:
    page.locator("#column").select_option(label="wood")
    assert cells(page, "value") == [HOSTILE]
    assert page.get_by_role("heading", level=1).inner_text() == HOSTILE
    assert page.title().endswith(": findings")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2


def test_a_script_that_got_into_the_page_would_not_run(chromium: Any, report: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(
        report.read_text("utf-8").replace("<main>", "<main><script>document.title = 'run'</script>"), "utf-8"
    )
    page = chromium.new_page()
    page.goto(broken.as_uri())
    assert page.title() != "run"
    assert status(page) == "1 to 50 of 120 findings"


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_dark_mode_is_light_on_dark(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    ink, paper = page.evaluate(
        "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
    )
    assert brightness(ink) > 200
    assert brightness(paper) < 50


def brightness(colour: str) -> float:
    """The mean of the three numbers of `rgb(r, g, b)`."""
    return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) / 3


@pytest.mark.parametrize("page", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_a_phone_shows_it_without_scrolling_sideways(page: Any) -> None:
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#table tbody tr").first.bounding_box()["width"] <= 390


SCREEN, SCREENS = 800, 10  # of a phone: pixels, and how many a report may be high


def write_large(path: Path) -> None:
    """A report of all that makes one long: 60 columns, 3,000 findings of 24 causes, rules, notes, long texts."""
    names = [f"column_of_a_long_name_{place}" for place in range(60)]
    rng = np.random.default_rng(0)
    table = pa.table({names[0]: ["word " * 60] * 1000} | {name: rng.normal(10, 1, 1000).round(2) for name in names[1:]})
    causes = [*MEANINGS][:24]
    findings = [
        Finding(
            row, name, f"{row % 20} oz", 0.9, None if row % 3 else 7.0, None, None, "reason " * 30, causes[row % 24]
        )
        for name in names
        for row in range(50)
    ]
    rules = [Ruled(f"{name} decides {names[0]}", (name, names[0]), tuple(range(90))) for name in names]
    rules += [Ruled(f"{name} > 0", (name,), ()) for name in names]
    schema = Schema(tuple(Column(name, "category" if name == names[0] else "real") for name in names))
    facts = Facts(
        name="large.csv",
        when=datetime(2026, 5, 3, 9, 7),
        seconds=3.0,
        flagged=len(findings),
        expected_false=24.0,
        repaired=1000,
        settings={"seed": "0"},
        notes=[f"{name}: numbers with the unit oz; 7 oz is read as 7." for name in names],
        commands=["cellmend review large-cleaned"],
    )
    rows = Rows(table, [names[0]], np.arange(1000) + 2)
    write_report(path, facts, Pictured(schema, table, table, rows, rules=rules), findings)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "report.html"
    write_large(path)
    return path


@pytest.mark.parametrize("scripts", [True, False])
def test_the_longest_report_takes_few_screens_of_a_phone(chromium: Any, large: Path, scripts: bool) -> None:
    context = chromium.new_context(viewport={"width": 400, "height": SCREEN}, java_script_enabled=scripts)
    page = context.new_page()
    page.goto(large.as_uri())
    assert page.evaluate("document.documentElement.scrollHeight") <= SCREENS * SCREEN
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    context.close()


def test_what_scrolls_in_a_box_is_reached_by_keyboard(chromium: Any, large: Path) -> None:
    from playwright.sync_api import expect

    page = chromium.new_page(viewport={"width": 400, "height": SCREEN})
    page.goto(large.as_uri())
    boxes = page.locator(".box, pre")
    assert boxes.count() == 5  # the command, the findings, causes, the map, what columns were taken for
    for box in boxes.all():
        assert box.get_attribute("tabindex") == "0"
        assert box.get_attribute("aria-label")
    page.locator("#box").focus()
    page.keyboard.press("End")
    expect(page.locator("#table tbody tr").last).to_be_in_viewport()


def test_a_number_of_cells_leads_to_their_findings_and_back(page: Any) -> None:
    group = page.locator("#groups details").first
    group.locator("summary").focus()
    page.keyboard.press("Enter")
    line = group.locator("li").first
    assert line.locator("a").inner_text() == "1 cell"
    change = line.locator(".change").inner_text().split(" → ")
    line.locator("a").focus()
    page.keyboard.press("Enter")
    assert status(page) == "1 to 1 of 1 finding"
    assert [*cells(page, "value"), *cells(page, "repair")] == change
    page.get_by_role("button", name="Show all").click()
    assert status(page) == "1 to 50 of 120 findings"
    assert not page.get_by_role("button", name="Show all").is_visible()
    group.get_by_role("link", name="with other values").click()
    assert status(page) == "1 to 50 of 60 findings"
    assert set(cells(page, "column")) == {"width"}


def test_all_of_a_section_opens_and_folds_at_once(page: Any) -> None:
    section, opened = page.locator("#columns"), page.locator("#columns details[open]")
    section.get_by_role("button", name="Open all").click()
    assert opened.count() == section.locator("details").count() == 3
    assert page.locator("#groups details[open]").count() == 0
    section.get_by_role("button", name="Fold all").click()
    assert opened.count() == 0


def test_what_a_text_from_right_to_left_becomes_stands_at_its_right(chromium: Any, tmp_path: Path) -> None:
    table = pa.table({"name": ["مستشفى الملكك", "مستشفى الملك", "مستشفى الملك"]})
    found = [Finding(0, "name", "مستشفى الملكك", 0.9, "مستشفى الملك", None, None, "reason", "doubled")]
    facts = Facts("names.csv", datetime(2026, 5, 3), 1.0, 1, 0.1, 1, {}, [])
    schema = Schema((Column("name", "category"),))
    write_report(tmp_path / "report.html", facts, Pictured(schema, table, table, Rows(table)), found)
    page = chromium.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.locator("#groups summary").click()
    line = page.locator("#groups li")
    was, now = (line.locator(name).bounding_box() for name in (".flagged", ".repaired"))
    assert was["x"] + was["width"] < now["x"]


CONTRAST = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
  };
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const said = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (!said || element.closest("svg, script, :disabled, .unseen") || !element.checkVisibility()) continue;
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    found.push([ratio, `${element.tagName} ${element.className}: ${said.slice(0, 40)}`]);
  }
  return found;
}"""


@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_all_text_stands_out_from_what_is_behind_it(page: Any) -> None:
    page.locator("#table tbody button").first.click()
    found = page.evaluate(CONTRAST)
    assert len(found) > 300
    assert [said for ratio, said in found if ratio < 4.5] == []


@pytest.mark.parametrize("page", [{"java_script_enabled": False}], indirect=True)
def test_without_scripts_the_first_findings_are_there(page: Any) -> None:
    assert status(page) == "The first 50 of 120 findings"
    assert len(cells(page, "reason")) == 50
    assert not page.locator(".controls").is_visible()


def test_the_first_findings_are_the_same_with_and_without_scripts(page: Any, chromium: Any, report: Path) -> None:
    plain = chromium.new_context(java_script_enabled=False).new_page()
    plain.goto(report.as_uri())
    for field in ("row", "column", "value", "repair", "suspicion", "reason"):
        assert [" ".join(each.split()) for each in cells(plain, field)] == [
            " ".join(each.split()) for each in cells(page, field)
        ]


def test_print_shows_the_findings_and_what_is_folded_but_no_buttons_and_no_long_lists(page: Any) -> None:
    page.emulate_media(media="print")
    assert len(cells(page, "reason")) == 50
    assert not page.get_by_role("button", name="Next").is_visible()
    assert page.locator("#columns .card").first.is_visible()
    assert not page.locator("#schema td").first.is_visible()  # nobody opened it
    assert page.locator("#groups li").first.is_visible()
    assert not page.locator(".unfold").first.is_visible()
    box = page.locator("#box")
    assert box.evaluate("(each) => each.scrollHeight === each.clientHeight")  # nothing of it is left off the paper


def test_headings_labels_and_landmarks_are_in_order(page: Any) -> None:
    levels = [int(tag[1]) for tag in page.locator("h1, h2, h3").evaluate_all("all => all.map((each) => each.tagName)")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for role in ("banner", "main", "contentinfo", "search"):
        assert page.get_by_role(role).count() == 1
    assert page.locator("svg:not([aria-label])").count() == 0
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("#shown").get_attribute("role") == "status"
