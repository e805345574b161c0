"""Many cells at once in a real browser: groups, values, spellings, and the same for the others."""

from __future__ import annotations

from typing import Any

import pytest

from cellmend.review.review import Review
from tests.review.conftest import decided, notice, wait_for_teacher

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDE_AND_NARROW = pytest.mark.parametrize(
    "page", [{"viewport": {"width": 1280, "height": 800}}, {"viewport": {"width": 400, "height": 800}}], indirect=True
)


@pytest.fixture
def page(page: Any, address: str) -> Any:
    """The page as it opens, with groups."""
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def rows(review: Review) -> list[int]:
    return sorted(each.row for each in decided(review))


def line(page: Any, value: str) -> Any:
    """The line with this value, brought to the front by the filter."""
    page.get_by_label("Text in a value").first.fill(value)
    page.wait_for_function("() => document.querySelectorAll('#group-list .group').length === 1")
    return page.locator("#group-list .line-of").filter(has_text=value)


def values_of(page: Any, column: str) -> None:
    page.locator(".view[data-view=values]").click()
    page.locator("#value-filters select").select_option(column)


# ---------------------------------------------------------------- groups


def test_the_page_opens_with_all_that_was_found_in_groups(page: Any, review: Review) -> None:
    flags = review.flagged.flags
    said = page.locator("#groups-listed").inner_text()
    assert said.startswith(f"{len(flags)} open cells in {len(review.flagged.groups)} group")
    assert page.locator("#group-list .group").count() == len(review.flagged.groups)
    assert page.locator(".view[aria-current]").inner_text() == "Groups"


@WIDE_AND_NARROW
def test_a_line_is_accepted_by_mouse_and_taken_back_with_one_undo(page: Any, review: Review) -> None:
    line(page, "Oslx").get_by_role("button", name="Accept 4").click()
    notice(page, "Accepted 4 repairs")
    assert rows(review) == [5, 6, 7, 8]
    page.locator("#groups-listed", has_text="Nothing that is open fits").wait_for()
    page.locator("#undo").click()
    notice(page, "Undone")
    page.locator("#group-list .line-of", has_text="Oslx").wait_for()
    assert decided(review) == []


def test_a_group_is_decided_by_keyboard_alone(page: Any, review: Review) -> None:
    line(page, "Oslx")
    page.locator("h1").click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.className") == "line-head"
    page.keyboard.press("r")
    notice(page, "Kept 4 values")
    assert {each.verdict for each in decided(review)} == {"right"}


def test_what_is_ticked_is_decided_as_one_step(page: Any, review: Review) -> None:
    page.locator("#tick-all").check()
    page.locator("#reject-ticked", has_text=f"Reject {len(review.flagged.flags)} ticked").click()
    notice(page, "Kept")
    assert len(decided(review)) == len(review.flagged.flags)
    page.locator("#groups-listed", has_text="Nothing that was found is open").wait_for()
    page.keyboard.press("u")
    notice(page, "Undone")
    assert decided(review) == []


@WIDE_AND_NARROW
def test_inside_a_line_single_cells_are_unticked(page: Any, review: Review) -> None:
    own = line(page, "Oslx")
    own.get_by_role("button", name="Look inside").click()
    own.locator(".inside-cell").filter(has_text="P0006").wait_for()  # the row around it
    own.get_by_label("Row 6").uncheck()
    own.get_by_role("button", name="Accept 3").click()
    notice(page, "Accepted 3 repairs")
    assert rows(review) == [5, 7, 8]


def test_the_target_of_a_line_is_edited_and_a_bad_one_is_told(page: Any, review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    own = line(page, "Oslx")
    own.get_by_role("button", name="Edit").click()
    field = own.get_by_label("What city should be where it is Oslx")
    assert field.input_value() == "Oslo"
    field.fill("Osaka")
    page.keyboard.press("Enter")
    assert "does not stand in city so far" in own.get_by_role("alert").inner_text()
    assert decided(review) == []
    own.get_by_role("button", name="Save it all the same").click()
    notice(page, "Set 4 cells of city to Osaka")
    assert {each.repair for each in decided(review)} == {"Osaka"}


def test_a_single_cell_is_edited_inside_its_line(page: Any, review: Review) -> None:
    own = line(page, "Oslx")
    own.get_by_role("button", name="Look inside").click()
    own.locator(".inside-cell").filter(has_text="P0007").get_by_role("button", name="Edit").click()
    own.get_by_label("What city of row 7 should be").fill("Lima")
    page.keyboard.press("Enter")
    notice(page, "city of row 7 becomes Lima")
    assert [(each.row, each.repair) for each in decided(review)] == [(7, "Lima")]
    own.get_by_role("button", name="Accept 3").wait_for()


def test_what_changed_meanwhile_is_not_decided_unseen(page: Any, review: Review) -> None:
    own = line(page, "Oslx")
    button = own.get_by_role("button", name="Accept 4")
    page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true })")  # it does not look by itself
    review.keep((5, "city"), seen=None)
    button.click()
    notice(page, "4 cells were shown and it would be 3 now")
    own.get_by_role("button", name="Accept 3").wait_for()
    assert rows(review) == [5]


def test_groups_are_filtered_by_column_and_cause(page: Any, review: Review) -> None:
    column = page.get_by_label("Column").first
    column.select_option("city")
    shown = [own for own in review.flagged.groups if own.column == "city"]
    page.wait_for_function("many => document.querySelectorAll('#group-list .group').length === many", arg=len(shown))
    assert {each.split()[0] for each in page.locator("#group-list h3").all_inner_texts()} == {"city"}


# ---------------------------------------------------------------- the same for the others


def test_after_a_single_decision_the_others_of_its_value_are_offered(page: Any, review: Review) -> None:
    page.locator(".view[data-view=decide]").click()
    page.locator("#card h3").wait_for()
    while "Oslx" not in page.locator("#card .exchange").inner_text():
        before = page.locator("#card h3").inner_text()
        page.keyboard.press("s")
        page.wait_for_function("before => document.querySelector('#card h3')?.innerText !== before", arg=before)
    page.keyboard.press("a")
    page.locator("#same", has_text="3 other cells hold Oslx").wait_for()
    page.keyboard.press("m")
    notice(page, "Decided 3 cells of city alike")
    assert rows(review) == [5, 6, 7, 8]
    assert page.locator("#same").inner_text() == ""
    page.keyboard.press("u")
    notice(page, "Undone")
    assert len(decided(review)) == 1


# ---------------------------------------------------------------- values


@WIDE_AND_NARROW
def test_a_value_is_set_wherever_it_stands(page: Any, review: Review) -> None:
    values_of(page, "city")
    value = page.locator(".value").filter(has_text="Oslx")
    value.get_by_role("button", name="Edit").click()
    field = value.get_by_label("What city should be wherever it is Oslx")
    assert field.input_value() == "Oslo"
    value.get_by_role("button", name="Set 4 cells").click()
    notice(page, "Set 4 cells of city to Oslo")
    assert rows(review) == [5, 6, 7, 8]
    page.locator(".value").filter(has_text="Oslx").wait_for(state="detached")
    page.keyboard.press("u")
    notice(page, "Undone")
    page.locator(".value").filter(has_text="Oslx").wait_for()


def test_several_values_are_ticked_and_set_at_once(page: Any, review: Review) -> None:
    values_of(page, "city")
    for each in ("Oslx", "Limq"):
        page.locator(".value").get_by_label(each).check()
    field = page.get_by_label("What 2 ticked values of city should be")
    field.fill("Rome")
    page.get_by_role("button", name="Set 5 cells").click()
    notice(page, "Set 5 cells of city to Rome")
    assert rows(review) == [5, 6, 7, 8, 20]


def test_values_are_filtered_and_their_rows_shown_in_the_table(page: Any) -> None:
    values_of(page, "city")
    page.locator("#value-filters [name=text]").fill("OSLX")
    page.locator("#values-listed", has_text="1 value in 4 cells").wait_for()
    page.locator(".value").get_by_role("button", name="Rows").click()
    page.locator("#shown", has_text="4 of 200 rows").wait_for()
    page.locator("#held", has_text="city is Oslx").click()
    page.locator("#shown", has_text="200 rows").wait_for()


def test_spellings_are_set_to_what_is_proposed_but_for_those_unticked(page: Any, review: Review) -> None:
    values_of(page, "city")
    page.get_by_role("button", name="Spellings").click()
    cluster = page.locator(".cluster").filter(has_text="Oslx")
    assert cluster.get_by_label("What city should be in all of them").input_value() == "Oslo"
    cluster.get_by_label("Oslx").uncheck()
    cluster.get_by_role("button", name="Set 0 cells").wait_for()
    cluster.get_by_label("Oslx").check()
    cluster.get_by_role("button", name="Set 4 cells").click()
    notice(page, "Set 4 cells of city to Oslo")
    assert rows(review) == [5, 6, 7, 8]


def test_a_pattern_is_tried_out_before_all_values_are_rewritten(page: Any, review: Review) -> None:
    values_of(page, "note")
    page.get_by_role("button", name="Replace", exact=True).click()
    page.get_by_label("It is a regular expression").check()
    page.get_by_label("Find").fill("(")
    page.locator("#values-listed", has_text="must be a regular expression").wait_for()
    page.get_by_label("Find").fill(r"^note (\d)$")
    page.get_by_label("Put in its place").fill(r"note 0\1")
    page.locator("#value-list", has_text="note 07").wait_for()
    assert decided(review) == []
    page.get_by_role("button", name="Replace in 10 cells").click()
    notice(page, "Set 10 cells of note")
    assert {each.repair for each in decided(review)} == {f"note 0{digit}" for digit in range(10)}


@pytest.mark.parametrize(
    "page",
    [{"viewport": {"width": 400, "height": 800}, "color_scheme": scheme} for scheme in ("light", "dark")],
    indirect=True,
)
def test_nothing_scrolls_sideways_on_a_phone(page: Any) -> None:
    page.locator(".look").first.click()
    page.locator(".inside-cell").first.wait_for()
    for view in ("groups", "values"):
        page.locator(f".view[data-view={view}]").click()
        assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_a_step_about_many_cells_is_taken_back_where_it_is_seen(page: Any, review: Review) -> None:
    line(page, "Oslx").get_by_role("button", name="Accept 4").click()
    notice(page, "Accepted 4 repairs")
    page.keyboard.press("c")
    page.locator("#decide:not([hidden])").wait_for()
    page.locator("h1").click()
    page.keyboard.press("u")
    notice(page, "Undo once more takes it back")
    assert len(decided(review)) == 4
    page.keyboard.press("u")
    notice(page, "Undone")
    assert decided(review) == []


def test_what_is_being_typed_stays_whatever_else_is_done(page: Any, review: Review) -> None:
    own = line(page, "Oslx")
    own.get_by_role("button", name="Edit").click()
    field = own.get_by_label("What city should be where it is Oslx")
    field.fill("Osl")
    own.get_by_role("button", name="Look inside").click()
    own.get_by_label("Row 6").uncheck()
    assert field.input_value() == "Osl"
    own.get_by_role("button", name="Set 3 cells").wait_for()
    review.keep((0, "width"), seen=None)  # in another tab
    page.locator("#decided-words", has_text="1 decided").wait_for()
    own.get_by_role("button", name="Accept 3").wait_for()
    assert field.input_value() == "Osl"
    field.press("Escape")
    assert own.locator("form").count() == 0


def test_one_goes_back_to_an_earlier_step(page: Any, review: Review) -> None:
    line(page, "Oslx").get_by_role("button", name="Accept 4").click()
    notice(page, "Accepted 4 repairs")
    line(page, "Limq").get_by_role("button", name="Accept 1").click()
    notice(page, "Accepted 1 repair.")
    page.get_by_role("button", name="Steps").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("li").first.wait_for()
    assert dialog.locator("li").all_inner_texts() == ["1 cell of city now", "4 cells of city Back to here"]
    dialog.get_by_role("button", name="Back to here").click()
    notice(page, "Undone: 1 step")
    assert rows(review) == [5, 6, 7, 8]
    page.keyboard.press("u")
    notice(page, "Undone: 4 cells of city")
    assert decided(review) == []


def test_what_was_repeated_from_a_group_is_undone_there(page: Any, review: Review) -> None:
    own = line(page, "Oslx")
    own.get_by_role("button", name="Look inside").click()
    own.locator(".inside-cell").filter(has_text="P0007").get_by_role("button", name="Edit").click()
    own.get_by_label("What city of row 7 should be").fill("Lima")
    page.keyboard.press("Enter")
    page.locator("#same", has_text="3 other cells hold Oslx").get_by_role("button").click()
    notice(page, "Decided 3 cells of city alike")
    page.locator("#groups-listed", has_text="Nothing that is open fits").wait_for()
    assert {each.repair for each in decided(review)} == {"Lima"}
    page.locator(".view[data-view=decide]").click()
    page.locator("#undo").click()
    notice(page, "Undo once more takes it back")
    page.locator("#undo").click()
    notice(page, "Undone")
    assert rows(review) == [7]


def test_what_was_typed_into_one_cluster_stays_when_another_one_is_set(page: Any, review: Review) -> None:
    values_of(page, "city")
    page.get_by_role("button", name="Spellings").click()
    other = page.locator(".cluster").filter(has_text="Limq")
    other.get_by_label("What city should be in all of them").fill("Lima Norte")
    page.locator(".cluster").filter(has_text="Oslx").get_by_role("button", name="Set 4 cells").click()
    notice(page, "Set 4 cells of city to Oslo")
    page.locator(".cluster").filter(has_text="Oslx").wait_for(state="detached")
    assert other.get_by_label("What city should be in all of them").input_value() == "Lima Norte"
