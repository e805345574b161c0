"""Deciding, undoing, deciding many at once, looking through the table, limits, exports: what the page asks for."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from cellmend import CellMender
from cellmend.decisions.decision import Decision, append_decisions, read_decisions, standing
from cellmend.errors import CellmendError, DecisionError, FileError, MissingExtraError, PatchError
from cellmend.files.formats import read_file
from cellmend.files.results import only_run
from cellmend.jobs import Cleaning, clean
from cellmend.review.answers import DEEDS, QUESTIONS
from cellmend.review.commands import open_review
from cellmend.review.flagged import LIKENESSES, Flag, Flagged, read_flagged
from cellmend.review.ledger import ConflictError, state_of
from cellmend.review.limits import Limits, Wishes, numbers_of
from cellmend.review.results import open_results
from cellmend.review.review import STATES, Review, UnusualError
from cellmend.review.rows import Filter
from cellmend.review.teaching import asked_rows, changes_between
from cellmend.settings import Threshold
from tests.conftest import SMALL
from tests.review.conftest import HOSTILE, ROWS, Client, wait_for_teacher


def with_repair(review: Review) -> Flag:
    return next(flag for flag in review.flagged.flags if flag.repair is not None)


def where(flag: Flag) -> dict[str, Any]:
    """The cell, as it is shown."""
    return {"row": flag.row, "column": flag.column, "value": flag.value}


def ask(client: Client, question: str, **asked: Any) -> dict[str, Any]:
    answer = client.get(f"/api/{question}?{urlencode(asked)}")
    assert answer.status_code == 200, answer.text
    return answer.json()


# ---------------------------------------------------------------- one decision


def test_a_decision_is_in_the_file_before_it_is_acknowledged(client: Client, review: Review) -> None:
    flag = with_repair(review)
    done = client.tell("decide", **where(flag), verdict="wrong", repair=flag.repair)
    assert done["decision"]["state"] == "accepted"
    assert read_decisions(review.results.decisions) == [Decision(*flag.cell, flag.value, "wrong", flag.repair)]


def test_reopening_goes_on_where_it_was(review: Review, folder: Path) -> None:
    flag = review.flagged.flags[0]
    review.keep(flag.cell, seen=None)
    again = Review(open_results(folder, None))
    assert again.ledger.of(flag.cell) == Decision(*flag.cell, flag.value, "right")
    assert again.tally() == review.tally()
    assert flag.cell not in [asked.flag.cell for asked in again.queue(100, Filter())]


def test_the_tally_is_after_every_step_what_a_new_count_says(review: Review) -> None:
    def check() -> None:
        counted = dict.fromkeys(STATES, 0)
        for cell in {*review.flagged.by_cell, *(each.cell for each in review.ledger.standing)}:
            flag = review.flagged.get(cell)
            counted[state_of(review.ledger.of(cell), flag.repair if flag else None)] += 1
        assert review.tally() == counted
        for flag in review.flagged.flags:
            alike = {
                by: {verdict: len(review.bulk(flag, by, verdict)) for verdict in ("right", "wrong")}
                for by in LIKENESSES
            }
            assert review.count_alike(flag) == alike

    check()
    flag = with_repair(review)
    step = review.accept(flag.cell, flag.repair, seen=None)
    check()
    review.keep((150, "city"), seen=None)
    review.withdraw((150, "city"), seen=review.ledger.of((150, "city")))
    check()
    last = review.flagged.flags[-1]
    bulk = review.decide_alike(last.cell, "cause", "right", len(review.open_alike(last, "cause")))
    assert step is not None
    assert bulk is not None
    check()
    review.undo(bulk.number)
    review.set_limits("width", Limits(low=9.0))
    check()


def test_a_half_line_of_a_killed_server_is_left_out(review: Review, folder: Path) -> None:
    flags = review.flagged.flags
    review.keep(flags[0].cell, seen=None)
    with review.results.decisions.open("ab") as file:
        file.write(b'{"row": 3, "colu')
    again = Review(open_results(folder, None))
    again.keep(flags[1].cell, seen=None)
    assert [each.cell for each in standing(read_decisions(again.results.decisions))] == [flags[0].cell, flags[1].cell]


def test_the_same_decision_of_two_tabs_stands_once(review: Review) -> None:
    cell = review.flagged.flags[0].cell
    assert review.keep(cell, seen=None) is not None
    assert review.keep(cell, seen=None) is None
    assert len(read_decisions(review.results.decisions)) == 1


def test_another_decision_of_a_tab_that_has_not_seen_the_first_is_a_conflict(client: Client, review: Review) -> None:
    flag = with_repair(review)
    client.tell("decide", **where(flag), verdict="right")
    answer = client.post("/api/decide", json={**where(flag), "verdict": "wrong", "repair": flag.repair})
    assert answer.status_code == 409
    assert "was decided meanwhile: right as it is" in answer.json()["error"]
    seen = ask(client, "cell", **where(flag))["decision"]
    client.tell("decide", **where(flag), verdict="wrong", repair=flag.repair, seen=seen)
    assert [each.verdict for each in standing(read_decisions(review.results.decisions))] == ["wrong"]


def test_undo_takes_back_one_step_after_another_and_no_step_twice(review: Review) -> None:
    first, second = (flag.cell for flag in review.flagged.flags[:2])
    review.keep(first, seen=None)
    step = review.keep(second, seen=None)
    assert step is not None
    assert review.undo(step.number)
    assert not review.undo(step.number)  # the other tab pressed it too
    assert [each.cell for each in review.ledger.standing] == [first]
    last = review.ledger.last
    assert last is not None
    assert review.undo(last.number)
    assert standing(read_decisions(review.results.decisions)) == []


def test_undoing_a_change_of_mind_brings_the_first_decision_back(review: Review) -> None:
    flag = with_repair(review)
    review.keep(flag.cell, seen=None)
    first = review.ledger.of(flag.cell)
    step = review.accept(flag.cell, flag.repair, seen=first)
    assert step is not None
    review.undo(step.number)
    assert review.ledger.of(flag.cell) == first
    assert standing(read_decisions(review.results.decisions)) == [first]


def test_a_cell_that_is_not_flagged_can_be_decided_too(review: Review) -> None:
    flagged = {flag.row for flag in review.flagged.flags}
    row = next(row for row in range(ROWS) if row not in flagged)
    review.accept((row, "width"), "11.5", seen=None)
    assert review.tally()["edited"] == 1
    assert review.rows(Filter(state="edited")).tolist() == [row]


@pytest.mark.parametrize("cell", [(ROWS, "width"), (0, "nowhere")])
def test_a_cell_that_is_not_there_cannot_be_decided(review: Review, cell: tuple[int, str]) -> None:
    with pytest.raises(DecisionError, match="The table has no row"):
        review.keep(cell, seen=None)


@pytest.mark.parametrize("asked", [{"row": -1}, {"row": "x"}, {"row": True}, {"verdict": "maybe"}, {"repair": 5}])
def test_what_is_asked_wrongly_is_refused_in_a_sentence(client: Client, review: Review, asked: dict[str, Any]) -> None:
    shown = {"row": 0, "column": "width", "value": review.text((0, "width"))}
    answer = client.post("/api/decide", json={**shown, "verdict": "wrong", **asked})
    assert answer.status_code == 422
    assert answer.json()["error"].endswith(".")
    assert review.ledger.standing == []


def test_what_is_said_of_a_cell_that_was_shown_with_another_value_is_refused(client: Client, review: Review) -> None:
    shown = {**where(with_repair(review)), "value": "Paris"}
    for deed, asked in (("decide", {"verdict": "right"}), ("withdraw", {})):
        answer = client.post(f"/api/{deed}", json={**shown, **asked})
        assert answer.status_code == 409
        assert "'Paris' was shown" in answer.json()["error"]
    assert review.ledger.standing == []


def test_a_decision_that_was_not_seen_is_not_withdrawn(client: Client, review: Review) -> None:
    flag = with_repair(review)
    client.tell("decide", **where(flag), verdict="right")
    assert client.post("/api/withdraw", json=where(flag)).status_code == 409
    seen = ask(client, "cell", **where(flag))["decision"]
    client.tell("withdraw", **where(flag), seen=seen)
    assert review.ledger.standing == []


def test_all_that_is_told_of_the_next_cells_comes_at_once(client: Client, review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    review.keep(review.flagged.flags[-1].cell, seen=None)
    for card in ask(client, "queue", count=5)["cells"]:
        flag = card["flag"]
        assert card == ask(client, "cell", row=flag["row"], column=flag["column"])
        assert len(card["row"]) == review.table.num_columns
        assert card["picture"] is not None


# ---------------------------------------------------------------- steps


@pytest.mark.slow
def test_decisions_kinds_limits_and_rules_are_undone_in_one_order(client: Client, review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    flag, rule = with_repair(review), next(iter(review.rulebook.found))
    client.tell("column", column="width", kind="category")
    client.tell("decide", **where(flag), verdict="right")
    client.tell("column", column="city", limits={"levels": ["Rome"]})
    done = client.tell("rule", rule=rule, verdict="struck")
    assert client.tell("rule", rule=rule, verdict="struck")["step"] is None  # that is said already
    undone = []
    while done["undo"] is not None:
        undone.append(done["undo"]["what"])
        done = client.tell("undo", step=done["undo"]["step"])
        assert done["undone"]
    cell = f"row {flag.row}, {flag.column}"
    assert undone == [f"the rule “{rule}”", "the valid values of city", cell, "the kind of width"]
    assert (review.wishes, review.ledger.standing) == (Wishes(), [])
    assert Wishes.load(review.results.columns) == Wishes()
    assert all(each.cause != "not allowed" for each in review.flagged.flags)


# ---------------------------------------------------------------- edits


def test_an_edit_stays_one_when_the_model_then_proposes_the_same(review: Review, folder: Path) -> None:
    edited, accepted, *_ = (flag for flag in review.flagged.flags if flag.repair is not None)
    review.accept(edited.cell, "7.7", seen=None)
    review.accept(accepted.cell, accepted.repair, seen=None)
    learned = [replace(edited, repair="7.7"), replace(accepted, repair="8.8")]
    review.teacher.take(Flagged(learned))
    assert (review.tally()["edited"], review.tally()["accepted"]) == (1, 1)
    assert review.rows(Filter(state="edited")).tolist() == [edited.row]
    again = Review(open_results(folder, None))
    assert (again.tally()["edited"], again.tally()["accepted"]) == (1, 1)


def test_a_proposal_is_accepted_as_it_was_shown(client: Client, review: Review) -> None:
    flag = with_repair(review)
    review.teacher.take(Flagged([replace(flag, repair="1.2")]))  # learned while it was shown
    client.tell("decide", **where(flag), verdict="wrong", repair=flag.repair, edited=False)
    assert review.tally()["accepted"] == 1


def test_a_cell_is_emptied_only_if_the_person_insists(client: Client, review: Review) -> None:
    shown = {"row": 0, "column": "width", "value": review.text((0, "width")), "verdict": "wrong", "repair": ""}
    answer = client.post("/api/decide", json=shown)
    assert answer.status_code == 422
    assert answer.json() == {"error": "Nothing is typed. Save width of row 0 as empty?", "may_insist": True}
    assert review.ledger.standing == []
    client.tell("decide", **shown, insist=True)
    assert [each.repair for each in review.ledger.standing] == [""]


def test_an_edit_must_be_readable_in_its_column(review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    with pytest.raises(PatchError, match="width holds numbers; 'wide' cannot be read as one"):
        review.accept((0, "width"), "wide", seen=None)
    assert review.ledger.standing == []


def test_a_level_that_never_stood_there_must_be_insisted_on(review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    with pytest.raises(UnusualError, match="'Rom' does not stand in city so far"):
        review.accept((0, "city"), "Rom", seen=None)
    review.accept((0, "city"), "Rom", seen=None, insist=True)
    assert [each.repair for each in review.ledger.standing] == ["Rom"]


def test_an_edit_must_keep_the_limits_of_its_column(review: Review) -> None:
    review.set_limits("note", Limits(pattern=r"note \d+"))
    with pytest.raises(PatchError, match=r"note must be of the form note .*; 'memo 7' is not"):
        review.accept((0, "note"), "memo 7", seen=None)
    review.accept((0, "note"), "note 7", seen=None)


# ---------------------------------------------------------------- many at once


def test_all_cells_with_the_same_value_are_decided_and_undone_at_once(client: Client, review: Review) -> None:
    flag = next(flag for flag in review.flagged.flags if flag.value == "Oslx")
    found = ask(client, "alike", **where(flag), by="value", verdict="right")
    assert {each["value"] for each in found["cells"]} == {"Oslx"}
    assert found["count"] == len(found["cells"]) > 1
    done = client.tell("bulk", **where(flag), by="value", verdict="right", count=found["count"])
    assert done["cells"] == found["count"]
    assert {each.value for each in review.ledger.standing} == {"Oslx"}
    client.tell("undo", step=done["undo"]["step"])
    assert review.ledger.standing == []


def test_what_is_decided_at_once_is_what_was_shown(client: Client, review: Review) -> None:
    flag = next(flag for flag in review.flagged.flags if flag.value == "Oslx")
    shown = ask(client, "alike", **where(flag), by="value", verdict="right")["count"]
    review.keep(flag.cell, seen=None)
    answer = client.post("/api/bulk", json={**where(flag), "by": "value", "verdict": "right", "count": shown})
    assert answer.status_code == 422
    assert "look at them again" in answer.json()["error"]


def test_skipped_cells_come_last(review: Review) -> None:
    first = review.queue(1, Filter())[0].flag.cell
    review.skip(first)
    queue = [asked.flag.cell for asked in review.queue(1000, Filter())]
    assert queue[-1] == first
    assert len(queue) == len(review.flagged.flags)


# ---------------------------------------------------------------- the table


def test_rows_come_as_the_file_has_them(client: Client, review: Review) -> None:
    found = ask(client, "rows", start=28, count=4)
    assert found["rows"] == [28, 29, 30, 31]
    assert found["texts"][2][1] == HOSTILE
    assert found["total"] == ROWS


def test_rows_are_filtered_by_column_cause_suspicion_decision_and_text(review: Review) -> None:
    flag = review.flagged.flags[0]
    assert flag.row in review.rows(Filter(column=flag.column, cause=flag.cause, least=flag.suspicion))
    assert review.rows(Filter(state="decided")).tolist() == []
    review.keep(flag.cell, seen=None)
    assert review.rows(Filter(state="kept")).tolist() == [flag.row]
    assert review.rows(Filter(text="NOTE 17")).tolist() == [17, *range(170, 180)]
    assert review.rows(Filter(text="note 17", state="kept")).tolist() == []
    assert review.rows(Filter()) is None


def test_the_next_flagged_cell_is_found_in_the_order_of_the_table(review: Review) -> None:
    names = review.table.column_names
    ordered = sorted((flag.row, names.index(flag.column)) for flag in review.flagged.flags)
    cell: tuple[int, str] | None = (-1, "")
    seen = []
    while (cell := review.next_cell(cell, Filter(), backwards=False)) is not None:
        seen.append((cell[0], names.index(cell[1])))
    assert seen == ordered
    back = review.next_cell((ROWS, ""), Filter(), backwards=True)
    assert back == (ordered[-1][0], names[ordered[-1][1]])


# ---------------------------------------------------------------- columns


def test_cells_that_break_a_limit_are_flagged_at_once_and_after_reopening(review: Review, folder: Path) -> None:
    review.set_limits("city", Limits(levels=("Rome", "Oslo", "Lima")))
    for each in (review, Review(open_results(folder, None))):
        flag = each.flagged.get((30, "city"))
        assert flag is not None
        assert flag.cause == "not allowed"
        assert flag.reason.endswith("you said that it must be one of Rome, Oslo, Lima")
    review.set_limits("city", Limits())
    assert all(flag.cause != "not allowed" for flag in review.flagged.flags)


def test_a_valid_range_is_of_the_numbers_that_a_column_says(review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    review.set_limits("length", Limits(low=0, high=22))
    wide = [row for row, text in enumerate(review.table["length"].to_pylist()) if float(text) > 22]
    assert sorted(flag.row for flag in review.flagged.flags if flag.cause == "not allowed") == wide


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"low": "x"}, "The least value must be a number"),
        ({"low": 2, "high": 1}, "2 is more than 1"),
        ({"pattern": "("}, "must be a regular expression"),
        ({"earliest": "today"}, "must be a date such as 2024-01-31; it is 'today'"),
        ({"earliest": "2024-02-01", "latest": "2024-01-01"}, "2024-02-01 is after 2024-01-01"),
        ({"levels": "S"}, "must be a list"),
    ],
)
def test_limits_that_cannot_be_are_refused(client: Client, limits: dict[str, Any], said: str) -> None:
    answer = client.post("/api/column", json={"column": "city", "limits": limits})
    assert answer.status_code == 422
    assert said in answer.json()["error"]


def test_a_kind_that_nobody_knows_is_refused(client: Client, review: Review) -> None:
    answer = client.post("/api/column", json={"column": "city", "kind": "town"})
    assert answer.status_code == 422
    assert review.wishes.kinds == {}


def test_dates_can_be_limited() -> None:
    days = pa.array([datetime(2023, 12, 31, 23), datetime(2024, 1, 1), datetime(2024, 3, 1, 12), datetime(2024, 3, 2)])
    texts = days.cast(pa.string())
    for given, forbidden in (
        ({"earliest": "2024-01-01"}, [True, False, False, False]),
        ({"latest": "2024-03-01"}, [False, False, False, True]),
        ({"earliest": "2024-01-02", "latest": "2024-03-01"}, [True, True, False, True]),
    ):
        assert Limits.of(given).forbids(texts, numbers_of(days, None)).tolist() == forbidden


def test_limits_of_dates_are_kept(client: Client, review: Review, folder: Path) -> None:
    client.tell("column", column="note", limits={"earliest": "2024-01-01", "latest": ""})
    again = Review(open_results(folder, None))
    assert again.wishes.limits["note"].in_words() == "2024-01-01 or later"


# ---------------------------------------------------------------- what comes out


def test_an_export_has_accepted_repairs_only_and_the_other_bytes_as_they_were(client: Client, review: Review) -> None:
    flags = [flag for flag in review.flagged.flags if flag.repair is not None]
    accepted, kept = flags[0], flags[1]
    client.tell("decide", **where(accepted), verdict="wrong", repair=accepted.repair)
    client.tell("decide", **where(kept), verdict="right")
    client.tell("decide", row=0, column="length", value=review.text((0, "length")), verdict="wrong", repair=" 99.9 ")
    assert client.tell("export")["fixes"] == 2
    before = review.results.source.csv
    assert before is not None
    after = read_file(review.results.reviewed)
    place = review.places[accepted.column]
    changes = {accepted.row: {place: accepted.repair}}
    changes.setdefault(0, {})[review.places["length"]] = " 99.9 "
    assert review.results.reviewed.read_bytes() == before.with_cells(changes)  # type: ignore[arg-type]
    changed = [
        (row, name)
        for name in review.table.column_names
        for row in range(ROWS)
        if review.table[name][row] != after.table[name][row]
    ]
    assert sorted(changed) == sorted([accepted.cell, (0, "length")])
    fixes = [json.loads(line) for line in review.results.patch.read_text("utf-8").splitlines()]
    assert {fix["column"] for fix in fixes} == {accepted.column, "length"}
    assert fixes[0]["key"] == ["parcel_id", f"P{accepted.row:04d}"]


def test_with_nothing_decided_the_export_is_the_table_byte_for_byte(
    client: Client, review: Review, folder: Path
) -> None:
    client.tell("export")
    assert review.results.reviewed.read_bytes() == (folder.parent / "parcels.csv").read_bytes()
    assert client.get("/api/export/table").content == review.results.reviewed.read_bytes()


def test_what_is_not_exported_yet_cannot_be_fetched(client: Client) -> None:
    assert client.get("/api/export/patch").status_code == 404


# ---------------------------------------------------------------- folders


def test_a_table_that_changed_or_went_is_told(folder: Path) -> None:
    table = folder.parent / "parcels.csv"
    content = table.read_bytes()
    table.write_bytes(content + b"P9999,Rome,1.0,2.0,new\r\n")
    with pytest.raises(FileError, match="has changed since"):
        open_results(folder, None)
    table.rename(folder.parent / "elsewhere.csv")
    with pytest.raises(FileError, match="is no longer there"):
        open_results(folder, None)
    assert open_results(folder, str(folder.parent / "elsewhere.csv")).source.table.num_rows == ROWS + 1


def test_findings_of_another_table_are_told(folder: Path) -> None:
    table = folder.parent / "parcels.csv"
    table.write_bytes(b"\r\n".join(table.read_bytes().split(b"\r\n")[:3]) + b"\r\n")
    with pytest.raises(FileError, match="is not in it"):
        Review(open_results(folder, str(table)))


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"must hold source\.json"):
        open_results(tmp_path, None)
    with pytest.raises(FileError, match="there is none"):
        open_results(tmp_path / "nowhere", None)


def test_a_folder_is_open_in_one_review_only(folder: Path) -> None:
    with only_run(folder), pytest.raises(FileError, match="is being written by another run"):
        open_review(folder, None, 0, ready=lambda _: pytest.fail("it was opened"))


def test_a_folder_that_is_open_already_is_told_without_options_that_do_not_exist(folder: Path) -> None:
    with only_run(folder), pytest.raises(FileError, match="open in another review") as caught:
        open_review(folder, None, 0, ready=lambda _: pytest.fail("it was opened"))
    assert "-o" not in str(caught.value).partition("Hint: ")[2]


def test_a_flagged_date_has_dates_as_its_usual_range(folder: Path) -> None:
    findings = folder / "findings.csv"
    findings.write_text(findings.read_text() + "5,note,2090-01-01,0.5,,2024-01-05,2024-07-14,note is late,,,,\n")
    flag = Review(open_results(folder, None)).flagged.by_cell[5, "note"]
    assert (flag.low, flag.high) == ("2024-01-05", "2024-07-14")


def test_findings_of_a_large_table_come_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "findings").mkdir()
    lines = {"row": [7, 3], "column": ["x", "y"], "value": ["9", "8"], "suspicion": [0.6, 0.9], "repair": ["1", None]}
    more = {"low": [None, 1.0], "high": [None, 2.0], "reason": ["x is 9", "y is 8"]}
    pa.parquet.write_table(pa.table(lines | more), tmp_path / "findings" / "part-0.parquet")
    assert [(flag.cell, flag.repair) for flag in read_flagged(tmp_path).flags] == [((3, "y"), None), ((7, "x"), "1")]


# ---------------------------------------------------------------- what learning changed


def flag_at(row: int, repair: str | None) -> Flag:
    return Flag(row, "x", "9", 0.9, repair, None, None, "x is 9", "noise")


def test_what_changed_is_told_without_the_cells_that_were_decided() -> None:
    before = Flagged([flag_at(1, "5"), flag_at(2, "5"), flag_at(3, "5"), flag_at(4, "5")])
    after = Flagged([flag_at(2, "6"), flag_at(3, "5"), flag_at(8, None), flag_at(9, "7")])
    changes = changes_between(before, after, decided={(9, "x"), (4, "x")})
    assert dict(changes.counts) == {"found": 1, "dropped": 1, "repaired otherwise": 1}
    assert [(each.what, each.row, each.before, each.after) for each in changes.listed] == [
        ("found", 8, None, None),
        ("dropped", 1, "5", None),
        ("repaired otherwise", 2, "5", "6"),
    ]


def test_questions_of_a_large_table_come_from_rows_with_and_without_findings() -> None:
    marked = pa.array(range(0, 900_000, 20)).to_numpy()
    rows = asked_rows(1_000_000, marked)
    assert len(rows) == len(set(rows.tolist())) == 20_000
    assert 0.4 < sum(row in set(marked.tolist()) for row in rows.tolist()) / len(rows) < 0.7


def test_a_conflict_is_a_decision_error() -> None:
    assert issubclass(ConflictError, DecisionError)


def test_without_the_extra_one_sentence_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cellmend.review.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"needs uvicorn.*pip install 'cellmend\[review\]'"):
        open_review(folder, None, 0, ready=lambda _: None)


# ---------------------------------------------------------------- files that changed under it


def test_clean_over_a_review_of_another_table_starts_anew_and_loses_nothing(folder: Path, review: Review) -> None:
    flag = with_repair(review)
    review.accept(flag.cell, flag.repair, seen=None)
    review.set_limits("width", Limits(low=9.0))
    table = folder.parent / "parcels.csv"
    lines = table.read_bytes().splitlines(keepends=True)
    table.write_bytes(b"".join([lines[0], *lines[:0:-1]]))
    mender = CellMender(**SMALL, schema={"parcel_id": "ignore", "note": "ignore", "city": "category"})
    job, _ = clean(read_file(table), mender, Cleaning(folder, Threshold(top=9), force=True, table=str(table)))
    assert "about another table is now in" in job.notes[-1]
    again = Review(open_results(folder, None))
    assert (again.ledger.standing, again.wishes.limits) == ([], {})
    assert again.export() == []
    assert read_decisions(folder / "earlier-1" / "decisions.jsonl")[0].cell == flag.cell


def test_a_decision_counts_only_where_its_value_still_stands(folder: Path, review: Review) -> None:
    good = with_repair(review)
    review.accept(good.cell, good.repair, seen=None)
    others = [Decision(0, "city", "Berlin", "wrong", "Paris"), Decision(ROWS, "city", "Rome", "wrong", "Oslo")]
    append_decisions(review.results.decisions, [*others, Decision(0, "country", "Rome", "wrong", "Oslo")])
    again = Review(open_results(folder, None))
    assert [each.cell for each in again.ledger.standing] == [good.cell]
    assert again.ledger.left_out == 3
    assert [fix.row for fix in again.export()] == [good.row]
    again.keep((0, "city"), seen=None)
    assert Review(open_results(folder, None)).ledger.of((0, "city")) is not None


def test_results_with_a_cell_as_long_as_a_book_are_opened(folder: Path) -> None:
    findings = folder / "findings.csv"
    findings.write_text(findings.read_text() + f'5,note,{"x" * 300_000},0.5,,,,"note is {"x" * 300_000}",,,,\n')
    assert any(len(flag.value) == 300_000 for flag in Review(open_results(folder, None)).flagged.flags)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("findings.csv", b"row,column\n1,city\n"),
        ("findings.csv", b"row,column,value,suspicion,repair,low,high,reason\nx,city,a,1,,,,\n"),
        ("findings.csv", b"row,column,value,suspicion,repair,low,high,reason\n1,city,a,1,,low,,\n"),
        ("findings.csv", b"row,column,value,suspicion,repair,low,high,reason\n-1,city,a,1,,,,\n"),
        ("findings.csv", b"\xff\xfe\x00"),
        ("source.json", b"[" * 100_000),
        ("source.json", b"[]"),
        (
            "source.json",
            b'{"table": "../parcels.csv", "name": "t", "digest": "", "asked": {"sheet": 5}, "threshold": {}}',
        ),
        ("columns.json", b"[" * 100_000),
        ("columns.json", b'{"kinds": {"city": 5}, "limits": {}, "rules": {}}'),
        ("columns.json", b'{"kinds": {"town": "real"}, "limits": {}}'),
        ("columns.json", b'{"kinds": {}, "limits": {"town": {"low": 1}}}'),
        ("columns.json", b'{"kinds": {}, "limits": {"width": {"low": "x"}}}'),
        ("columns.json", b'{"kinds": [], "limits": {}}'),
        ("decisions.jsonl", b'{"row": 1e400, "column": "city", "value": "a", "verdict": "right"}\n'),
        ("decisions.jsonl", b'{"row": 1, "column": "city", "value": "\\ud800", "verdict": "right"}\n'),
        ("decisions.jsonl", b"\xff\n"),
    ],
)
def test_edited_files_of_a_review_are_one_sentence(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(CellmendError) as caught:
        Review(open_results(folder, None))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("threshold", [b'{"fdr": "x"}', b'{"odd": 1}', b'{"fdr": 0.1, "top": 2}', b"{}"])
def test_an_edited_threshold_is_one_sentence(folder: Path, threshold: bytes) -> None:
    source = folder / "source.json"
    source.write_bytes(re.sub(rb'"threshold": \{[^}]*\}', b'"threshold": ' + threshold, source.read_bytes()))
    with pytest.raises(FileError, match="threshold"):
        open_results(folder, None)


ODD = [None, 5, "x", [], {}, {"row": []}, {"verdict": 5}, "\ud800", 1e400, True, -1, 10**30]


@pytest.mark.parametrize("deed", list(DEEDS))
def test_no_deed_ends_in_an_error_of_the_server(client: Client, review: Review, deed: str) -> None:
    flag = with_repair(review)
    good = where(flag) | {"verdict": "wrong", "repair": flag.repair, "by": "value", "count": 1, "step": 1}
    good |= {"rule": "city tells width", "kind": "real", "seen": None, "limits": {"low": 1}}
    for name in good:
        for odd in ODD:
            answer = client.post(f"/api/{deed}", content=json.dumps(good | {name: odd}).encode())
            assert answer.status_code in (200, 400, 409, 422), (name, odd, answer.text)
    wait_for_teacher(review)


@pytest.mark.parametrize("question", list(QUESTIONS))
def test_no_question_ends_in_an_error_of_the_server(client: Client, review: Review, question: str) -> None:
    review.start()
    wait_for_teacher(review)
    flag = with_repair(review)
    good = where(flag) | {"verdict": "wrong", "by": "value", "count": 1, "start": 0, "repair": "x", "least": 0.5}
    good |= {"only": "city", "cause": "x", "state": "open", "text": "e", "backwards": "true"}
    for name in good:
        for odd in ("", "x", "-1", "9" * 15, "nan", "inf", "%ED%A0%80", "\x00", "9" * 400):
            asked = urlencode(good | {name: odd}).replace("%25", "%")
            answer = client.get(f"/api/{question}?{asked}")
            assert answer.status_code in (200, 422), (name, odd, answer.text)
