"""No key decides about another cell than the one that is shown, and nothing is shown as saved that is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cellmend.decisions.decision import read_decisions
from cellmend.review.limits import Limits
from cellmend.review.review import Review
from tests.review.conftest import cell, decided, notice, opened, press, read, saved, view

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Press keys, all before the page can do anything else; gives the cell that was shown at each of them.
PRESSED = """keys => [...keys].map((key) => {
  const shown = document.querySelector("#card h3").innerText;
  document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return shown;
})"""
BOXES = """root => Object.fromEntries([...document.querySelectorAll(`${root} button`)].map((button) => {
  const { x, y, width, height } = button.getBoundingClientRect();
  return [button.firstChild.textContent.trim(), [x + scrollX, y + scrollY, width, height].map(Math.round)];
}))"""


def pressed(page: Any, keys: str) -> list[tuple[int, str]]:
    shown = [heading.rpartition(" row ") for heading in page.evaluate(PRESSED, keys)]
    return [(int(row.replace(",", "")), name) for name, _, row in shown]


def hold(page: Any, path: str) -> Callable[[], None]:
    """Keep back what the page asks until the function that is given back is called."""
    held: list[Any] = []
    is_free = False

    def answer(route: Any) -> None:
        if is_free:
            route.continue_()
        else:
            held.append(route)

    def release() -> None:
        nonlocal is_free
        is_free = True
        for route in held:
            route.continue_()

    page.route(path, answer)
    return release


def many_open(page: Any, review: Review) -> None:
    """A hundred cells more are flagged, and the page has fetched cards ahead."""
    review.set_limits("note", Limits(pattern=r"note \d\d?"))
    page.reload()
    page.wait_for_selector("html[data-ready]")


# ---------------------------------------------------------------- each key is about the cell that is shown


def test_news_that_come_late_do_not_change_the_cell_that_is_shown(page: Any, review: Review) -> None:
    *_, other, another = (flag.cell for flag in review.flagged.flags)
    release = hold(page, "**/api/cell?*")
    with page.expect_request("**/api/cell?*"):  # the page looks what is new about the first cell
        review.keep(another, seen=None)
    first = cell(page)
    press(page, "r")
    second = cell(page)
    with page.expect_response("**/api/cell?*"):
        release()
    with page.expect_request("**/api/cell?*"):  # it looks again, so it is done with the first look
        review.keep(other, seen=None)
    assert cell(page) == second
    press(page, "r")
    saved(page)
    assert {first, second} < {each.cell for each in decided(review)}
    assert len(decided(review)) == 4


def test_fifteen_keys_at_once_are_fifteen_decisions_about_the_cells_that_were_shown(page: Any, review: Review) -> None:
    many_open(page, review)
    release = hold(page, "**/api/decide")
    shown = pressed(page, "r" * 15)
    assert len(set(shown)) == 15
    assert cell(page) not in shown
    assert page.locator("#saving").inner_text() == "Saving 15 …"
    assert page.locator("#decided-words").inner_text().startswith("0 decided")  # nothing is acknowledged yet
    assert decided(review) == []
    release()
    saved(page)
    assert [each.cell for each in decided(review)] == shown
    assert page.locator("#decided-words").inner_text().startswith("15 decided")


def test_a_double_click_is_one_decision(page: Any, review: Review) -> None:
    first = cell(page)
    page.get_by_role("button", name="Value is right").dblclick()
    saved(page)
    assert [each.cell for each in decided(review)] == [first]


def test_keys_go_on_while_cards_are_fetched(page: Any, review: Review) -> None:
    many_open(page, review)
    shown = []
    for _ in range(40):  # more than are fetched ahead
        page.wait_for_selector("#card h3")
        shown += pressed(page, "r")
    saved(page)
    assert [each.cell for each in decided(review)] == shown


@pytest.mark.parametrize("is_slow", [False, True])
def test_undo_keeps_its_place_among_the_keys(page: Any, review: Review, is_slow: bool) -> None:
    release = hold(page, "**/api/decide") if is_slow else lambda: None
    first, second = pressed(page, "rr")
    if not is_slow:
        saved(page)
    third, again, last = pressed(page, "uwr")
    assert (again, last) == (second, third)
    release()
    saved(page)
    assert [(each.cell, each.verdict) for each in decided(review)] == [
        (first, "right"),
        (second, "wrong"),
        (third, "right"),
    ]


def test_leaving_the_page_with_unsaved_decisions_is_asked_about(page: Any) -> None:
    leaving = "() => !dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    assert not page.evaluate(leaving)
    release = hold(page, "**/api/decide")
    press(page, "r")
    assert page.evaluate(leaving)
    release()
    saved(page)
    assert not page.evaluate(leaving)


def test_what_is_being_typed_outlives_all_news(page: Any, review: Review) -> None:
    own = cell(page)
    page.keyboard.press("e")
    page.locator("form.editor input").fill("9.9")
    read(page, review)
    review.keep(own, seen=None)
    page.locator("#card .news", has_text="Decided in another tab meanwhile").wait_for()
    assert page.locator("form.editor input").input_value() == "9.9"
    page.keyboard.press("Enter")
    assert "was decided meanwhile" in page.get_by_role("alert").inner_text()
    assert page.locator("form.editor input").input_value() == "9.9"


# ---------------------------------------------------------------- what could not be saved


def refuse_second(page: Any) -> None:
    """The second decision meets a full disk."""
    seen: list[Any] = []

    def answer(route: Any) -> None:
        seen.append(route)
        if len(seen) == 2:
            route.fulfill(status=507, json={"error": "Nothing was saved: No space left on device."})
        else:
            route.continue_()

    page.route("**/api/decide", answer)


def test_a_full_disk_stops_what_follows_and_brings_the_cell_back(page: Any, review: Review) -> None:
    refuse_second(page)
    shown = pressed(page, "rrrr")
    dialog = page.get_by_role("dialog")
    row, column = shown[1]
    dialog.get_by_role("heading", name=f"Not saved: row {row}, {column}").wait_for()
    assert "No space left on device" in dialog.inner_text()
    assert "2 decisions after it wait" in dialog.inner_text()
    assert page.locator("#saving").inner_text() == "3 not saved"
    assert [each.cell for each in decided(review)] == shown[:1]
    page.keyboard.press("r")  # decides nothing: the dialog is open
    dialog.get_by_role("button", name="Show the cell").click()
    page.locator("#card h3", has_text=f"row {row}").wait_for()
    assert cell(page) == shown[1]
    press(page, "w")
    saved(page)
    assert [each.cell for each in decided(review)] == shown
    assert [each.verdict for each in decided(review)] == ["right", "wrong", "right", "right"]


def test_a_cell_that_could_not_be_saved_comes_back_from_any_view(page: Any, review: Review) -> None:
    release = hold(page, "**/api/decide")
    row, column = pressed(page, "r")[0]
    view(page, "Table")
    review.accept((row, column), "9.9", seen=None)
    release()
    page.get_by_role("button", name="Show the cell").click()
    page.locator("#card .verdict", has_text="Decided: wrong, it should be '9.9'").wait_for()
    assert cell(page) == (row, column)
    assert page.locator("#table").is_hidden()
    assert page.locator("#saving").inner_text() == ""


def test_what_could_not_be_saved_is_sent_again(page: Any, review: Review) -> None:
    refuse_second(page)
    shown = pressed(page, "rrrr")
    here = cell(page)
    page.get_by_role("dialog").get_by_role("button", name="Try again").click()
    saved(page)
    assert [each.cell for each in decided(review)] == shown
    assert cell(page) == here


# ---------------------------------------------------------------- nothing moves


@pytest.mark.parametrize("page", [{"viewport": {"width": w, "height": 800}} for w in (1280, 400)], indirect=True)
def test_no_button_moves_while_news_come_in_and_none_takes_the_place_of_another(page: Any, review: Review) -> None:
    before = page.evaluate(BOXES, "#card")
    read(page, review)
    assert page.evaluate(BOXES, "#card") | before == page.evaluate(BOXES, "#card")
    page.get_by_role("button", name="Show").click()
    for key in "rws":
        shown = page.evaluate(BOXES, "#card .actions")
        assert shown == page.evaluate(BOXES, "#card .actions") == {name: before[name] for name in shown}
        press(page, key)
    notice(page, "Noted")
    assert page.evaluate(BOXES, "#card .actions") == {name: before[name] for name in shown}


# ---------------------------------------------------------------- in the table


def test_after_filtering_no_key_decides_about_what_is_gone(page: Any, review: Review) -> None:
    view(page, "Table")
    page.locator("#grid").focus()
    page.keyboard.press("n")
    page.locator("#panel h3").wait_for()
    page.get_by_label("Text in a row").fill("nowhere to be found")
    page.locator("#shown", has_text="0 of").wait_for()
    page.locator("#panel.empty").wait_for(state="attached")
    page.locator("#grid").focus()
    for key in "arw":
        page.keyboard.press(key)
    assert page.locator("#saving").inner_text() == ""
    page.get_by_label("Text in a row").fill("")
    page.locator(".line").first.wait_for()
    page.locator("#grid").focus()
    page.keyboard.press("r")
    assert page.locator("[aria-selected=true]").count() == 0
    assert decided(review) == []


def test_a_selected_cell_that_the_filter_keeps_stays_selected(page: Any, review: Review) -> None:
    view(page, "Table")
    page.locator("#grid").focus()
    page.keyboard.press("n")
    page.locator("#panel h3").wait_for()
    own = page.locator("#panel h3").inner_text()
    row, column = min((flag.row, review.places[flag.column]) for flag in review.flagged.flags)
    name = review.table.column_names[column]
    page.get_by_role("combobox", name="Column").select_option(name)
    page.locator("#shown", has_text=" of ").wait_for()
    assert page.locator("#panel h3").inner_text() == own
    assert page.locator("[aria-selected=true]").count() == 1
    page.locator("#grid").focus()
    page.keyboard.press("r")
    page.locator("#panel .verdict").wait_for()
    assert [each.cell for each in decided(review)] == [(row, name)]


def test_a_cell_out_of_sight_is_shown_before_it_is_decided(page: Any, review: Review) -> None:
    view(page, "Table")
    page.locator("#grid").focus()
    page.keyboard.press("n")
    page.locator("#panel h3").wait_for()
    page.locator("#grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    page.locator("[aria-selected=true]").wait_for(state="detached")
    page.keyboard.press("r")
    notice(page, "out of sight")
    assert decided(review) == []
    page.locator("[aria-selected=true]").wait_for()
    page.keyboard.press("r")
    page.locator("#panel .verdict").wait_for()
    assert len(decided(review)) == 1


def test_while_a_cell_is_being_fetched_no_key_decides_about_the_one_before(page: Any, review: Review) -> None:
    view(page, "Table")
    page.locator("#grid").focus()
    page.keyboard.press("n")
    page.locator("#panel h3").wait_for()
    release = hold(page, "**/api/cell?*")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("r")
    release()
    page.locator("#panel h3").wait_for()
    assert page.locator("#saving").inner_text() == ""
    assert decided(review) == []


# ---------------------------------------------------------------- one list of steps


def test_undo_takes_back_what_is_in_sight_only_and_says_what(page: Any, review: Review) -> None:
    read(page, review)
    first = cell(page)
    press(page, "r")
    saved(page)
    view(page, "Columns")
    page.locator("article.column", has_text="note").get_by_label("Kind").select_option("category")
    notice(page, "note counts as category")
    page.keyboard.press("c")
    page.locator("#card h3").wait_for()
    page.locator("body").press("u")
    notice(page, "The last step was the kind of note. Undo once more takes it back.")
    assert review.wishes.kinds == {"note": "category"}
    page.locator("body").press("u")
    notice(page, "Undone: the kind of note.")
    assert review.wishes.kinds == {}
    page.locator("body").press("u")  # the decision is not in sight here
    notice(page, f"The last step was row {first[0]}, {first[1]}")
    assert [each.cell for each in decided(review)] == [first]
    page.locator("#card h3").wait_for()
    page.locator("body").press("u")
    notice(page, "Undone: row")
    assert cell(page) == first
    assert decided(review) == []


def test_what_was_decided_before_the_page_was_opened_can_be_undone(page: Any, review: Review) -> None:
    first = cell(page)
    press(page, "r")
    saved(page)
    opened(page, page.url)
    assert cell(page) != first
    page.keyboard.press("u")
    notice(page, "Undone: row")
    page.wait_for_function(
        "words => document.querySelector('#card h3')?.innerText.includes(words)", arg=f"row {first[0]}"
    )
    assert cell(page) == first
    assert read_decisions(review.results.decisions)[-1].verdict == "undo"
