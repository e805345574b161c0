"""The review in a real browser: people decide by keyboard and mouse, and lose nothing.

Needs the package playwright and a Chromium, of the system or from `playwright install chromium`; skipped without.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cellmend.decisions.decision import Decision, read_decisions, standing
from cellmend.files.formats import read_file
from cellmend.review.flagged import Flagged
from cellmend.review.review import Review
from tests.review.conftest import (
    HOSTILE,
    ROWS,
    cell,
    decided,
    notice,
    opened,
    press,
    read,
    saved,
    served,
    view,
    wait_for_teacher,
)

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# The contrast of every text that is seen with what lies behind it, and the least that WCAG AA allows.
CONTRASTS = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, share, i) => sum + share * linear(rgb[i] / 255), 0);
  const over = ([r, g, b, alpha = 1], below) => [r, g, b].map((part, i) => part * alpha + below[i] * (1 - alpha));
  const behind = (node) => {
    const below = node.parentElement ? behind(node.parentElement) : [255, 255, 255];
    return over(parse(getComputedStyle(node).backgroundColor), below);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const bad = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const isSeen = walker.currentNode.textContent.trim() && node.getBoundingClientRect().width;
    if (!isSeen || node.closest(".unseen, .skip, :disabled, option, kbd, title")) continue;
    const style = getComputedStyle(node);
    const lights = [light(over(parse(style.color), behind(node))), light(behind(node))].sort((x, y) => y - x);
    const contrast = (lights[0] + 0.05) / (lights[1] + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700);
    if (contrast < (isLarge ? 3 : 4.5)) bad.push(`${node.textContent.slice(0, 30)} ${contrast.toFixed(2)}`);
  }
  return bad;
}"""


# ---------------------------------------------------------------- deciding


def test_the_page_opens_with_the_most_suspicious_cell_and_its_row(page: Any, review: Review) -> None:
    flag = review.flagged.flags[0]
    assert cell(page) == flag.cell
    assert page.locator("#card .reason").inner_text() == flag.reason
    assert page.locator("#row .here dt").inner_text() == flag.column
    assert page.title() == "parcels.csv: review"
    assert page.locator("#decided-words").inner_text() == f"0 decided, {len(review.flagged.flags)} open"


def test_cells_are_accepted_and_rejected_by_keyboard(page: Any, review: Review) -> None:
    taken = []
    for _ in range(4):
        row, column = cell(page)
        flag = review.flagged.by_cell[row, column]
        key, repair = ("a", flag.repair) if flag.repair is not None and not taken else ("r", None)
        press(page, key)
        taken.append(Decision(row, column, flag.value, "wrong" if key == "a" else "right", repair))
    saved(page)
    assert decided(review) == taken
    assert page.locator("#decided-words").inner_text().startswith("4 decided")
    assert page.evaluate("document.activeElement.id") == "card"


def test_a_mouse_works_too(page: Any, review: Review) -> None:
    first = cell(page)
    page.get_by_role("button", name="Value is right").click()
    notice(page, "Kept")
    assert [each.cell for each in decided(review)] == [first]


def test_a_bad_edit_is_told_and_what_was_typed_is_not_lost(page: Any, review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    page.locator("#card h3", has_text="width").wait_for()  # the most suspicious cell
    own = cell(page)
    page.keyboard.press("e")
    field = page.get_by_label("What width should be")
    assert field.evaluate("each => each === document.activeElement")
    field.fill("very wide")
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").inner_text() == "width holds numbers; 'very wide' cannot be read as one."
    assert field.input_value() == "very wide"
    assert field.get_attribute("aria-invalid") == "true"
    assert decided(review) == []
    field.fill("9.7")
    page.keyboard.press("Enter")
    notice(page, "Saved")
    assert [(each.cell, each.repair) for each in decided(review)] == [(own, "9.7")]


def test_a_level_that_is_new_is_saved_only_if_one_insists(page: Any, review: Review) -> None:
    read(page, review)
    page.locator("#next button", has_text="city").first.click()
    page.locator("#card h3", has_text="city").wait_for()
    page.keyboard.press("e")
    page.get_by_label("What city should be").fill("Osaka")
    page.keyboard.press("Enter")
    assert "does not stand in city so far" in page.get_by_role("alert").inner_text()
    assert decided(review) == []
    page.get_by_role("button", name="Save it all the same").click()
    notice(page, "Saved")
    assert [each.repair for each in decided(review)] == ["Osaka"]


def test_a_likely_level_is_chosen_with_one_click(page: Any, review: Review) -> None:
    read(page, review)
    page.locator("#next button", has_text="city").first.click()
    page.locator("#card h3", has_text="city").wait_for()
    own = cell(page)
    likely = page.locator("#card .likely button").first
    level = likely.inner_text()
    assert level in ("Rome", "Oslo", "Lima")
    likely.click()
    notice(page, f"becomes {level}")
    assert [(each.cell, each.repair) for each in decided(review)] == [(own, level)]


def test_of_long_texts_the_words_that_differ_are_marked_and_the_reason_is_brief(page: Any) -> None:
    found, meant = (f"patients who were given {word} drugs on the day of surgery" for word in ("hexrt", "heart"))
    marked = """async ([text, other]) => {
      const { brief, compared } = await import("/difference.js");
      const paragraph = document.createElement("p");
      paragraph.append(...compared(text, other));
      const marks = [...paragraph.querySelectorAll("mark")].map((each) => each.textContent);
      return [paragraph.textContent, marks, brief(`it is ${text}, probably ${other}`, text, other)];
    }"""
    assert page.evaluate(marked, [found, meant]) == [found, ["hexrt"], "it is as found, probably as proposed"]
    assert page.evaluate(marked, ["short", "shirt"]) == ["short", [], "it is short, probably shirt"]


def test_escape_leaves_an_edit_and_letters_typed_into_it_decide_nothing(page: Any, review: Review) -> None:
    page.keyboard.press("e")
    page.keyboard.type("aresu")
    page.keyboard.press("Escape")
    assert page.locator("form.editor").count() == 0
    assert decided(review) == []


def test_undo_takes_back_the_last_decision_and_asks_again(page: Any, review: Review) -> None:
    first = cell(page)
    press(page, "r")
    press(page, "u")
    assert cell(page) == first
    saved(page)
    assert decided(review) == []
    assert page.locator("#undo").is_disabled()


def test_skipping_asks_again_at_the_end(page: Any, review: Review) -> None:
    first = cell(page)
    press(page, "s")
    assert cell(page) != first
    saved(page)
    assert list(review.skipped) == [first]


def test_all_of_a_kind_are_listed_before_they_are_decided_at_once(page: Any, review: Review) -> None:
    alike = [flag.cell for flag in review.flagged.flags if flag.value == "Oslx"]
    while cell(page) not in alike:
        press(page, "s")
    page.keyboard.press("b")
    dialog = page.get_by_role("dialog")
    dialog.locator("ol li").first.wait_for()
    assert dialog.locator("ol li").count() == len(alike)
    assert decided(review) == []
    dialog.get_by_role("button", name=f"all {len(alike)}").click()
    notice(page, f"{len(alike)}")
    assert sorted(each.cell for each in decided(review)) == sorted(alike)
    page.keyboard.press("u")
    notice(page, f"Undone: {len(alike)} decisions")
    assert decided(review) == []


# ---------------------------------------------------------------- learning


def test_learning_goes_on_beside_the_work_and_shows_what_changed(page: Any, review: Review) -> None:
    read(page, review)
    first = cell(page)
    press(page, "r")
    page.keyboard.press("l")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Both kinds of decisions: 0 cells wrong (0 with a repair), 1 right").wait_for()
    page.keyboard.press("Enter")
    notice(page, "Learning goes on beside your work")
    page.get_by_role("button", name="What learning changed").click()
    dialog.get_by_role("heading", name="What learning changed").wait_for()
    assert dialog.locator(".counts li").all_inner_texts() == [
        f"{count} {what}" for what, count in review.teacher.progress.changes.counts.items()
    ]
    page.keyboard.press("Escape")
    press(page, "r")
    saved(page)
    assert first in [each.cell for each in decided(review)]
    assert len(decided(review)) == 2
    assert (review.results.learned / "model.cellmend").is_file()


# ---------------------------------------------------------------- nothing is lost


def test_two_tabs_neither_lose_nor_double_a_decision(page: Any, review: Review, address: str) -> None:
    other = opened(page.context.new_page(), address)
    first = cell(page)
    assert cell(other) == first
    press(page, "r")
    press(other, "r")  # the same, by a tab that does not know
    saved(other)
    assert len(read_decisions(review.results.decisions)) == 1
    second = cell(page)
    assert cell(other) == second
    press(page, "r")
    other.locator("#card .news", has_text="Decided in another tab meanwhile").wait_for()
    assert cell(other) == second  # what is shown stays
    other.get_by_role("button", name="Go on").click()
    third = cell(other)
    press(other, "r")
    saved(other)
    page.locator("#decided-words", has_text="3 decided").wait_for()
    assert [each.cell for each in decided(review)] == [first, second, third]


def test_another_decision_by_a_tab_that_does_not_know_is_told_and_not_taken(page: Any, review: Review) -> None:
    row, column = cell(page)
    review.accept((row, column), review.text((row, column)) or "", seen=None, insist=True)
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("was decided meanwhile").wait_for()
    assert dialog.get_by_role("heading").inner_text() == f"Not saved: row {row}, {column}"
    page.keyboard.press("Enter")
    page.locator("#card .verdict", has_text="Decided: wrong, it should be").wait_for()
    assert cell(page) == (row, column)
    assert [each.verdict for each in decided(review)] == ["wrong"]
    press(page, "r")  # now that it is known
    saved(page)
    assert [each.verdict for each in decided(review)] == ["right"]


@pytest.mark.process
def test_a_server_that_is_killed_loses_nothing(chromium: Any, folder: Path) -> None:
    page = chromium.new_page()
    with served(folder) as (server, address):
        opened(page, address)
        cells = [cell(page)]
        for _ in range(3):
            press(page, "r")
            cells.append(cell(page))
        saved(page)
        server.kill()
        server.wait()
        page.keyboard.press("r")
        notice(page, "The server does not answer")
        page.get_by_role("button", name="Show the cell").click()
        page.locator("#card h3", has_text=f"row {cells[3][0]}").wait_for()
        assert page.locator("#saving").inner_text() == "1 not saved"
    with served(folder) as (_, address):
        opened(page, address)
        assert page.locator("#decided-words").inner_text().startswith("3 decided")
        assert cell(page) == cells[3]
    assert [each.cell for each in standing(read_decisions(folder / "decisions.jsonl"))] == cells[:3]
    page.close()


def test_an_export_differs_in_the_accepted_cells_only(page: Any, review: Review, folder: Path) -> None:
    accepted = {}
    for _ in range(5):
        row, column = cell(page)
        repair = review.flagged.by_cell[row, column].repair
        press(page, "r" if repair is None else "a")
        accepted |= {} if repair is None else {(row, column): repair}
    saved(page)
    page.get_by_role("button", name="Export").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("heading", name=f"Exported {len(accepted)} repair").wait_for()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download").first.click()
    download.value.save_as(folder.parent / "downloaded.csv")
    before, after = (read_file(folder.parent / name).table for name in ("parcels.csv", "downloaded.csv"))
    for name in before.column_names:
        for row, (old, new) in enumerate(zip(before[name].to_pylist(), after[name].to_pylist(), strict=True)):
            assert new == accepted.get((row, name), old)
    assert len((folder / "patch.jsonl").read_text("utf-8").splitlines()) == len(accepted)


def test_when_all_is_decided_a_page_says_what_next(page: Any, review: Review) -> None:
    for _ in review.flagged.flags[1:]:
        press(page, "r")
    page.keyboard.press("r")
    page.locator("#card h3", has_text="Everything is decided").wait_for()
    assert f"{len(review.flagged.flags)} decisions are saved" in page.locator("#card").inner_text()
    page.keyboard.press("r")  # decides nothing: there is no cell
    page.locator("#card").get_by_role("button", name="Export").click()
    page.get_by_role("dialog").get_by_role("heading", name="Exported").wait_for()
    page.keyboard.press("Escape")
    page.locator("#card").get_by_role("button", name="Look through the table").click()
    page.locator(".line").first.wait_for()
    assert len(decided(review)) == len(review.flagged.flags)


def test_clearing_a_value_is_asked_about(page: Any, review: Review) -> None:
    own = cell(page)
    page.keyboard.press("e")
    page.locator("form.editor input").fill("")
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").inner_text().endswith(f"Save {own[1]} of row {own[0]} as empty?")
    assert decided(review) == []
    page.get_by_role("button", name="Save it all the same").click()
    notice(page, "becomes empty")
    assert [(each.cell, each.repair) for each in decided(review)] == [(own, "")]


# ---------------------------------------------------------------- the table


def test_the_table_shows_only_rows_in_sight_and_scrolls_to_the_last(page: Any) -> None:
    view(page, "Table")
    page.locator(".line").first.wait_for()
    assert page.locator(".line").count() < 60
    page.locator("#grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    page.locator(f"[aria-rowindex='{ROWS + 1}']").get_by_text(f"note {ROWS - 1}", exact=True).wait_for()
    assert page.locator("#grid").get_attribute("aria-rowcount") == str(ROWS + 1)


def test_the_table_is_walked_by_keyboard_and_cells_are_decided_in_it(page: Any, review: Review) -> None:
    view(page, "Table")
    page.locator("#grid").focus()
    page.keyboard.press("n")
    first = min((flag.row, review.places[flag.column]) for flag in review.flagged.flags)
    page.locator("#panel h3", has_text=f"row {first[0]}").wait_for()
    assert page.locator("[aria-selected=true]").get_attribute("aria-colindex") == str(first[1] + 2)
    page.keyboard.press("r")
    page.locator("#panel .verdict", has_text="right as it is").wait_for()
    assert page.locator("[aria-selected=true]").get_attribute("class") == "cell kept"
    page.locator("#grid").focus()
    page.keyboard.press("ArrowDown")
    page.locator("#panel h3", has_text=f"row {first[0] + 1}").wait_for()
    assert [(each.row, each.verdict) for each in decided(review)] == [(first[0], "right")]


def test_rows_are_filtered(page: Any, review: Review) -> None:
    view(page, "Table")
    page.get_by_label("Text in a row").fill("note 17")
    page.locator("#shown", has_text=f"11 of {ROWS} rows").wait_for()
    page.get_by_label("Text in a row").fill("")
    page.get_by_role("combobox", name="Column").select_option("city")
    rows = {flag.row for flag in review.flagged.flags if flag.column == "city"}
    page.locator("#shown", has_text=f"{len(rows)} of {ROWS} rows").wait_for()
    page.get_by_label("Decision").select_option("decided")
    page.locator("#shown", has_text=f"0 of {ROWS} rows").wait_for()


def test_markup_in_a_cell_is_text(page: Any, review: Review) -> None:
    view(page, "Table")
    page.get_by_label("Text in a row").fill("onerror")
    page.locator("#grid").get_by_text(HOSTILE, exact=True).click()
    page.locator("#panel output", has_text=HOSTILE).wait_for()
    assert page.locator("img").count() == 0
    assert page.title() == "parcels.csv: review"


def test_a_script_that_got_into_the_page_would_not_run(chromium: Any, address: str) -> None:
    page = opened(chromium.new_page(), address)
    page.evaluate(
        """() => { const inline = document.createElement("script"); inline.textContent = "document.title = 'run'";
        document.body.append(inline); const image = document.createElement("div");
        image.innerHTML = '<img src=x onerror="document.title = 1">'; document.body.append(image); }"""
    )
    press(page, "s")
    assert page.title() == "parcels.csv: review"
    page.close()


# ---------------------------------------------------------------- columns


def test_a_limit_flags_cells_at_once(page: Any, review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    view(page, "Columns")
    own = page.locator("article.column", has_text="note")
    own.get_by_text("Limit the values").click()
    own.get_by_label("Of the form").fill(r"note \d\d?")
    own.get_by_role("button", name="Save").click()
    notice(page, "The valid values of note are saved")
    assert review.flagged.counts["note"] == ROWS - 100
    own.get_by_label("Of the form").fill("(")
    own.get_by_role("button", name="Save").click()
    notice(page, "must be a regular expression")


def test_dates_have_an_earliest_and_a_latest_one(page: Any, review: Review) -> None:
    read(page, review)
    view(page, "Columns")
    own = page.locator("article.column", has_text="note")
    own.get_by_label("Kind").select_option("date")
    notice(page, "note counts as date")
    own.get_by_text("Limit the values").click()
    own.get_by_label("Earliest").fill("2024-01-31")
    own.get_by_role("button", name="Save").click()
    notice(page, "The valid values of note are saved")
    assert review.wishes.limits["note"].in_words() == "2024-01-31 or later"


# ---------------------------------------------------------------- looks


@pytest.mark.parametrize("page", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_every_text_stands_out_enough(page: Any, review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    page.keyboard.press("r")
    notice(page, "Kept")
    page.keyboard.press("e")
    assert page.evaluate(CONTRASTS) == []
    page.keyboard.press("Escape")
    view(page, "Table")
    page.keyboard.press("n")
    page.locator("#panel h3").wait_for()
    assert page.evaluate(CONTRASTS) == []
    view(page, "Groups")
    page.locator(".look").first.click()
    page.locator(".inside-cell").first.wait_for()
    assert page.evaluate(CONTRASTS) == []
    view(page, "Values")
    page.locator(".value").first.get_by_role("button", name="Edit").click()
    assert page.evaluate(CONTRASTS) == []
    page.locator("#way-spellings").click()
    page.locator(".cluster").first.wait_for()
    assert page.evaluate(CONTRASTS) == []
    view(page, "Columns")
    page.locator("article.column").first.wait_for()
    assert page.evaluate(CONTRASTS) == []


@pytest.mark.parametrize("page", [{"viewport": {"width": 400, "height": 860}}], indirect=True)
def test_a_phone_shows_it_without_scrolling_sideways(page: Any, review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    for name in ("Groups", "Decide", "Table", "Values", "Columns"):
        view(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400


RIGHT_TO_LEFT = "שלום 17 🦊"


def flag_as(page: Any, review: Review, **otherwise: Any) -> None:
    """Show the first cell as if this had been found of it."""
    first = review.flagged.flags[0]
    review.teacher.take(Flagged([replace(first, **otherwise)]))
    opened(page, page.url)


def test_text_from_right_to_left_stands_apart(page: Any, review: Review) -> None:
    value = review.flagged.flags[0].value
    flag_as(page, review, repair=RIGHT_TO_LEFT, reason=f"width is {value}; probably {RIGHT_TO_LEFT}, it seems")
    assert page.locator("#card output.meant bdi").inner_text() == RIGHT_TO_LEFT
    assert page.locator("#card .reason bdi").all_inner_texts() == [RIGHT_TO_LEFT]
    assert page.locator("#row dd small bdi").inner_text() == RIGHT_TO_LEFT
    page.keyboard.press("a")
    notice(page, RIGHT_TO_LEFT)
    assert RIGHT_TO_LEFT in page.locator("#notice bdi").all_inner_texts()
    view(page, "Table")
    page.locator(".line").first.wait_for()
    assert page.locator(".line [role=gridcell]:not(:has(bdi))").count() == 0


@pytest.mark.parametrize("page", [{"viewport": {"width": w, "height": 800}} for w in (1280, 400)], indirect=True)
def test_a_long_text_scrolls_in_its_own_box(page: Any, review: Review) -> None:
    accept = page.locator("#card button.accept")
    before = accept.bounding_box()
    flag_as(page, review, repair="much ado about nothing " * 260)
    assert accept.bounding_box() == before
    box = page.locator("#card output.meant")
    assert box.evaluate("box => box.scrollHeight > box.clientHeight && getComputedStyle(box).overflowY === 'auto'")


def test_keys_of_one_letter_can_be_switched_off(page: Any, review: Review) -> None:
    first = cell(page)
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_label("Letters and digits are keys").uncheck()
    page.keyboard.press("Escape")
    for key in "rase2u?":
        page.keyboard.press(key)
    opened(page, page.url)
    page.keyboard.press("r")
    assert cell(page) == first
    assert page.locator("#saving").inner_text() == ""
    assert not page.get_by_role("dialog").is_visible()
    page.get_by_role("button", name="Keys").click()
    page.get_by_role("dialog").get_by_label("Letters and digits are keys").check()
    page.keyboard.press("Escape")
    press(page, "r")
    saved(page)
    assert [each.cell for each in decided(review)] == [first]


@pytest.mark.parametrize("page", [{"reduced_motion": "reduce"}], indirect=True)
def test_nothing_moves_for_who_wants_that(page: Any) -> None:
    moving = """() => [...document.querySelectorAll("*")].filter((each) => {
      const { transitionDuration, animationName } = getComputedStyle(each);
      return transitionDuration !== "0s" || animationName !== "none";
    }).length"""
    assert page.evaluate(moving) == 0


@pytest.mark.parametrize("page", [{"viewport": {"width": 400, "height": 800}}], indirect=True)
def test_on_a_phone_the_chosen_cell_is_a_sheet_at_the_bottom(page: Any) -> None:
    view(page, "Table")
    page.locator(".line").first.wait_for()
    assert not page.locator("#panel").is_visible()
    page.locator("#grid").focus()
    page.keyboard.press("n")
    page.locator("#panel h3").wait_for()
    sheet = page.locator("#panel").bounding_box()
    assert (sheet["x"], sheet["width"], sheet["y"] + sheet["height"]) == (0, 400, 800)
    chosen = page.locator("[aria-selected=true]").bounding_box()
    assert chosen["y"] + chosen["height"] <= sheet["y"]  # the sheet does not lie over it


@pytest.mark.parametrize("width", [1280, 400])
def test_who_has_no_token_sees_a_page(chromium: Any, address: str, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 800})
    page.goto(address.replace("a-token", "another"))
    assert page.get_by_role("heading", name="No access").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("main").evaluate("main => getComputedStyle(main).maxWidth") == "544px"  # it has its looks
    page.close()


def test_headings_names_and_landmarks_are_in_order(page: Any) -> None:
    levels = [int(tag[1]) for tag in page.locator("h1, h2, h3").evaluate_all("all => all.map((each) => each.tagName)")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for role in ("banner", "main", "navigation"):
        assert page.get_by_role(role).count() == 1
    unnamed = "all => all.filter((each) => !each.innerText.trim() && !each.ariaLabel).length"
    assert page.locator("button").evaluate_all(unnamed) == 0
    unlabelled = "all => all.filter((each) => !each.labels.length && !each.ariaLabel).length"
    assert page.locator("input, select").evaluate_all(unlabelled) == 0
    assert page.locator("svg:not([aria-label])").count() == 0
    view(page, "Table")
    assert page.get_by_role("grid").get_attribute("aria-labelledby") == "table-heading"


def test_the_focus_is_seen(page: Any) -> None:
    page.keyboard.press("Tab")
    for _ in range(8):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", page.evaluate("document.activeElement.outerHTML")


def test_keys_are_told(page: Any) -> None:
    page.keyboard.press("?")
    assert "accept the proposed repair" in page.get_by_role("dialog").inner_text()
