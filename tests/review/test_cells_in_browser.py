"""Single cells in a real browser: filters, what other rows say, questions, rules, and learning that explains itself."""

from __future__ import annotations

from typing import Any

import pytest

from cellmend.review.review import Review
from cellmend.review.rows import Filter
from cellmend.review.ruling import judge_rule
from tests.review.conftest import cell, decided, notice, press, read, saved, view, wait_for_teacher

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDE_AND_NARROW = pytest.mark.parametrize(
    "page", [{"viewport": {"width": width, "height": 800}} for width in (1280, 400)], indirect=True
)


def is_read(page: Any, review: Review) -> None:
    """The model is read, and the page shows what it says."""
    read(page, review)
    page.get_by_role("button", name="Show", exact=True).click()


def go_to(page: Any, column: str) -> None:
    page.locator("#next button", has_text=column).first.click()
    page.locator("#card h3", has_text=column).wait_for()


# ---------------------------------------------------------------- which cells


@WIDE_AND_NARROW
def test_the_queue_is_filtered_by_column_cause_and_suspicion(page: Any, review: Review) -> None:
    wanted = [flag for flag in review.flagged.flags if flag.column == "city"]
    page.locator("#narrow").get_by_label("Column").select_option("city")
    for flag in wanted:
        page.wait_for_function(
            "row => document.querySelector('#card h3')?.innerText === row", arg=f"city row {flag.row}"
        )
        page.locator("#card").press("s" if flag is wanted[0] else "r")
    page.wait_for_function(
        "row => document.querySelector('#card h3')?.innerText === row", arg=f"city row {wanted[0].row}"
    )
    page.locator("#card").press("r")
    page.get_by_role("heading", name="Nothing that is open fits the filters").wait_for()
    saved(page)
    assert {each.cell for each in decided(review)} == {flag.cell for flag in wanted}
    page.get_by_role("button", name="Show all open cells").click()
    page.locator("#card h3", has_text="row").wait_for()
    assert cell(page)[1] != "city"


def test_another_filter_begins_the_queue_anew_and_nothing_else_is_shown(page: Any, review: Review) -> None:
    narrow = page.locator("#narrow")
    cause = next(flag.cause for flag in review.flagged.flags if flag.column == "city")
    narrow.get_by_label("Cause").select_option(cause)
    first = next(flag for flag in review.flagged.flags if flag.cause == cause)
    page.locator("#card h3", has_text=f"row {first.row}").wait_for()
    narrow.get_by_label("Suspicion at least").select_option("0.99")
    sure = next(each.flag.cell for each in review.queue(1, Filter(cause=cause, least=0.99)))
    page.locator("#card h3", has_text=f"row {sure[0]}").wait_for()


def test_an_answer_to_an_earlier_filter_is_not_shown(page: Any, review: Review) -> None:
    held: list[Any] = []
    page.route("**/api/queue*", lambda route: held.append(route))
    column = page.locator("#narrow").get_by_label("Column")
    with page.expect_request("**/api/queue*only=city*"):
        column.select_option("city")
    column.select_option("width")
    with page.expect_request("**/api/queue*only=width*"):
        held.pop(0).continue_()
    assert page.locator("#card h3").count() == 0
    page.unroute("**/api/queue*")  # lets go of what is held
    page.locator("#card h3", has_text="width").wait_for()


# ---------------------------------------------------------------- what speaks about a cell


@WIDE_AND_NARROW
def test_what_other_rows_say_stands_beside_the_cell_with_lines_of_the_file(page: Any, review: Review) -> None:
    is_read(page, review)
    page.locator("#narrow").get_by_label("Column").select_option("city")
    page.locator("#card h3", has_text="city").wait_for()
    row, column = cell(page)
    flag = review.flagged.by_cell[row, column]
    said = page.locator("#witnesses")
    said.get_by_text(f"“{flag.value}” stands in").wait_for()
    assert said.locator("ul ul li small").first.inner_text().startswith("line ")
    assert page.locator("#card .where").inner_text().startswith(f"line {row + 2} · ")
    assert f"P{row:04d}" in page.locator("#card .where").inner_text()
    assert page.locator("#chart .levels").count() == 1
    if flag.repair is not None:
        assert "% sure" in page.locator("#card .sure").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_no_picture_is_shown_of_a_column_that_names_rows(page: Any, review: Review) -> None:
    is_read(page, review)
    view(page, "Table")
    page.locator("#grid").get_by_text("note 3", exact=True).click()
    page.locator("#panel h3").wait_for()
    page.locator("#grid").press("r")
    page.locator("#panel .verdict").wait_for()
    view(page, "Decide")
    page.locator("#card h3").wait_for()
    page.locator("#card").press("u")
    page.locator("#card h3", has_text="note").wait_for()
    assert page.locator("#chart").is_hidden()


def test_a_digit_takes_a_suggestion_and_changes_no_view(page: Any, review: Review) -> None:
    is_read(page, review)
    go_to(page, "city")
    own = cell(page)
    suggested = page.locator("#card .likely button").all_inner_texts()
    assert page.locator("#card .likely kbd").all_inner_texts() == [str(place) for place in range(1, len(suggested) + 1)]
    press(page, str(len(suggested)))
    saved(page)
    assert [(each.cell, each.repair) for each in decided(review)] == [(own, suggested[-1])]
    page.keyboard.press("9")
    assert page.locator("#decide").is_visible()
    assert len(decided(review)) == 1


def test_letters_choose_views_unless_they_are_switched_off(page: Any) -> None:
    for key, name in (("t", "table"), ("o", "columns"), ("c", "decide")):
        page.keyboard.press(key)
        page.locator(f"#{name}").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_label("Letters and digits are keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    assert page.locator("#decide").is_visible()


# ---------------------------------------------------------------- questions


@WIDE_AND_NARROW
def test_questions_are_offered_and_the_queue_does_not_begin_with_them(page: Any, review: Review) -> None:
    first = cell(page)
    is_read(page, review)
    assert cell(page) == first
    count = min(len(review.questions), 5)
    offer = page.get_by_role("button", name=f"{count} question{'s' * (count > 1)}, one minute")
    offer.wait_for()
    assert "speak for" in page.locator("#asked-for").inner_text()
    offer.click()
    asked = []
    for left in range(count, 0, -1):
        page.locator("#asked-for", has_text=f"{left} question").wait_for()
        page.locator("#card .kicker", has_text="speaks for").wait_for()
        asked.append(cell(page))
        page.locator("#card").press("r")
    page.get_by_role("heading", name="Thank you").wait_for()
    saved(page)
    assert [each.cell for each in decided(review)] == asked
    assert set(asked) <= set(review.questions)
    page.get_by_role("button", name="Go on with the flagged cells").click()
    page.locator("#card h3", has_text="row").wait_for()


def test_one_may_leave_the_questions(page: Any, review: Review) -> None:
    is_read(page, review)
    first = cell(page)
    page.get_by_role("button", name="one minute").click()
    page.locator("#card .kicker", has_text="speaks for").wait_for()
    page.get_by_role("button", name="Back to the flagged cells").click()
    page.locator("#card h3", has_text=f"row {first[0]}").wait_for()
    assert decided(review) == []


# ---------------------------------------------------------------- rules


@WIDE_AND_NARROW
def test_a_rule_of_ones_own_flags_at_once_its_rows_are_shown_and_undo_takes_it_back(page: Any, review: Review) -> None:
    is_read(page, review)
    view(page, "Columns")
    field = page.get_by_label("A rule of your own")
    field.fill("widht < 11")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert").filter(has_text="Did you mean 'width'?")
    alert.wait_for()
    assert field.input_value() == "widht < 11"
    assert page.evaluate("document.activeElement.id") == "own-rule-line"
    field.fill("width < 11")
    page.keyboard.press("Enter")
    notice(page, "Saved: width < 11. What breaks it is flagged.")
    rows = review.rows(Filter(rule="width < 11"))
    assert rows is not None
    page.get_by_role("button", name=f"Show the {len(rows)} rows that break width < 11").click()
    page.locator("#shown", has_text=f"{len(rows)} of").wait_for()
    assert page.locator(".line .corner").nth(0).inner_text() == str(rows[0])
    view(page, "Columns")
    page.locator("body").press("u")
    notice(page, "Undone: the rule “width < 11”.")
    assert review.wishes.own == ()
    page.get_by_role("button", name="Remove width < 11").wait_for(state="detached")
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_a_rule_is_confirmed_and_struck_out_with_the_keyboard(page: Any, review: Review) -> None:
    is_read(page, review)
    view(page, "Columns")
    words = next(iter(review.rulebook.found))
    confirm = page.get_by_role("button", name=f"Confirm: {words}")
    confirm.focus()
    page.keyboard.press("Enter")
    notice(page, f"Confirmed: {words}")
    assert review.wishes.rules == {words: "confirmed"}
    page.locator("#rule-list .confirmed", has_text=words).wait_for()
    page.get_by_role("button", name=f"Strike out: {words}").press("Enter")
    notice(page, f"Struck out: {words}")
    page.locator("#rule-list .struck", has_text=words).wait_for()
    page.locator("body").press("u")
    notice(page, "Undone")
    assert review.wishes.rules == {words: "confirmed"}


# ---------------------------------------------------------------- learning


@WIDE_AND_NARROW
def test_learning_says_what_it_needs_shows_what_changed_and_goes_back(page: Any, review: Review) -> None:
    is_read(page, review)
    page.locator("#learn").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("button", name="Learn now").is_disabled()
    page.keyboard.press("Escape")
    before = [flag.cell for flag in review.flagged.flags]
    judge_rule(review, next(iter(review.rulebook.found)), "struck")  # so that something changes
    press(page, "r")
    saved(page)
    page.locator("#learn").click()
    dialog.get_by_text("1 right").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="What learning changed").click()
    dialog.get_by_role("heading", name="What learning changed").wait_for()
    assert dialog.locator(".counts li").count() == 3
    links = dialog.locator(".listed button")
    if links.count():
        links.first.click()
        page.locator("#card h3").wait_for()
    else:
        page.keyboard.press("Escape")
    wait_for_teacher(review)
    page.wait_for_function("() => !document.querySelector('#learn').disabled")
    page.locator("#learn").click()
    dialog.locator(".history li", has_text="from 1 decision").wait_for()
    dialog.get_by_role("button", name="Undo this learning").click()
    notice(page, "The findings are as before this learning")
    assert not review.results.learned.exists()
    assert len(decided(review)) == 1
    judge_rule(review, next(iter(review.rulebook.found)), None)
    assert [flag.cell for flag in review.flagged.flags] == before
