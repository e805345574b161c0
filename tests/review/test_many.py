"""Decisions about many cells at once, without a browser."""

from __future__ import annotations

from typing import Any

import pytest

from cellmend.decisions.decision import Decision, read_decisions, standing
from cellmend.patch import Replacement, read_patch
from cellmend.review.limits import Limits
from cellmend.review.review import Review
from cellmend.review.rows import Filter
from tests.review.conftest import ROWS, Client, wait_for_teacher


def decided(review: Review) -> list[Decision]:
    path = review.results.decisions
    return standing(read_decisions(path)) if path.exists() else []


def groups(client: Client, **asked: str) -> list[dict[str, Any]]:
    wanted = "&".join(f"{name}={value}" for name, value in asked.items())
    return client.get(f"/api/groups?{wanted}").json()["groups"]


def line_of(client: Client, value: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The group and the line with this value."""
    return next((own, line) for own in groups(client) for line in own["lines"] if line["first"]["value"] == value)


def texts(review: Review, name: str) -> dict[str | None, int]:
    """What a column holds now, with how many cells."""
    values = review.values(name)
    return dict(zip(values.listed(values.common), values.counts[values.common].tolist(), strict=True))


# ---------------------------------------------------------------- groups


def test_all_flagged_cells_stand_in_one_group_of_their_column_and_cause(client: Client, review: Review) -> None:
    found = groups(client)
    assert sum(own["cells"] for own in found) == len(review.flagged.flags)
    assert [own["repaired"] for own in found] == sorted((own["repaired"] for own in found), reverse=True)
    assert {(own["column"], own["cause"]) for own in found} == {(f.column, f.cause) for f in review.flagged.flags}


def test_a_line_is_accepted_and_undone_as_one_step(client: Client, review: Review) -> None:
    group, line = line_of(client, "Oslx")
    assert (line["cells"], line["first"]["repair"]) == (4, "Oslo")
    pick = {"group": group["place"], "line": line["place"]}
    done = client.tell("group", listing=0, picks=[pick], verdict="wrong", count=4)
    assert done["cells"] == 4
    assert sorted((each.row, each.repair) for each in decided(review)) == [(row, "Oslo") for row in (5, 6, 7, 8)]
    assert texts(review, "city").get("Oslx") is None
    client.tell("undo", step=done["undo"]["step"])
    assert decided(review) == []
    assert texts(review, "city")["Oslx"] == 4


def test_a_group_is_decided_without_the_cells_that_were_unticked(client: Client, review: Review) -> None:
    group, line = line_of(client, "Oslx")
    pick = {"group": group["place"], "line": line["place"], "besides": [6]}
    client.tell("group", listing=0, picks=[pick], verdict="right", count=3)
    assert sorted((each.row, each.verdict) for each in decided(review)) == [(row, "right") for row in (5, 7, 8)]
    assert line_of(client, "Oslx")[1]["cells"] == 1


def test_what_is_decided_is_what_was_listed(client: Client, review: Review) -> None:
    group, line = line_of(client, "Oslx")
    review.keep((5, "city"), seen=None)
    pick = {"group": group["place"], "line": line["place"]}
    answer = client.post("/api/group", json={"listing": 0, "picks": [pick], "verdict": "wrong", "count": 4})
    assert answer.status_code == 422
    assert "4 cells were shown and it would be 3 now" in answer.json()["error"]
    assert len(decided(review)) == 1


def test_places_of_groups_count_only_as_long_as_the_same_cells_are_flagged(client: Client, review: Review) -> None:
    """Another group may stand in the same place by then, with as many cells."""
    group, line = line_of(client, "Oslx")
    pick = {"group": group["place"], "line": line["place"]}
    review.set_limits("note", Limits(levels=("note 1",)))
    given = {"listing": 0, "picks": [pick], "verdict": "wrong", "count": 4}
    answer = client.post("/api/group", json=given)
    assert answer.status_code == 422
    assert answer.json()["error"] == "Other cells are flagged by now; look at the groups again."
    assert client.post("/api/edit", json={"listing": 0, "pick": pick, "repair": "Lima", "count": 4}).status_code == 422
    assert decided(review) == []
    assert client.get("/api/groups").json()["listing"] == 1
    review.start()  # the model is read, and flags the same cells
    wait_for_teacher(review)
    assert client.get("/api/groups").json()["listing"] == 1


def test_of_a_filtered_group_only_what_is_shown_is_decided(client: Client, review: Review) -> None:
    [group] = groups(client, text="oslx")
    picks = [{"group": group["place"]}]
    client.tell("group", listing=0, picks=picks, text="oslx", verdict="wrong", count=group["repaired"])
    assert {each.value for each in decided(review)} == {"Oslx"}


def test_the_target_of_a_line_can_be_edited_and_is_checked(client: Client, review: Review) -> None:
    group, line = line_of(client, "Oslx")
    pick = {"group": group["place"], "line": line["place"]}
    client.tell("edit", listing=0, pick=pick, repair="Lima", count=4)
    assert {each.repair for each in decided(review)} == {"Lima"}


def test_cells_without_a_repair_are_not_accepted(client: Client, review: Review) -> None:
    review.set_limits("note", Limits(levels=("note 1",)))
    [group] = groups(client, only="note")
    assert (group["cells"], group["repaired"]) == (ROWS - 1, 0)
    assert client.tell("group", listing=1, picks=[{"group": group["place"]}], verdict="wrong", count=0)["cells"] == 0
    assert decided(review) == []


def test_many_cells_are_emptied_only_if_one_insists(client: Client, review: Review) -> None:
    edit = {"column": "city", "values": ["Oslx"], "repair": ""}
    answer = client.post("/api/replace", json={"edits": [edit], "count": 4})
    assert answer.json()["may_insist"]
    assert decided(review) == []
    client.tell("replace", edits=[edit], count=4, insist=True)
    assert texts(review, "city")[""] == 4


def test_cells_of_a_line_are_listed_with_their_rows(client: Client) -> None:
    group, line = line_of(client, "Oslx")
    told = client.get(f"/api/line?group={group['place']}&line={line['place']}").json()
    assert sorted((each["row"], each["value"]) for each in told["cells"]) == [(row, "Oslx") for row in (5, 6, 7, 8)]


# ---------------------------------------------------------------- the same for the others


def test_what_was_decided_of_one_cell_is_repeated_for_the_others(client: Client, review: Review) -> None:
    client.tell("decide", row=5, column="city", value="Oslx", verdict="wrong", repair="Oslo")
    told = client.get("/api/same?row=5&column=city").json()
    assert told == {"count": 3, "value": "Oslx"}
    client.tell("repeat", row=5, column="city", count=3)
    assert sorted((each.row, each.repair) for each in decided(review)) == [(row, "Oslo") for row in (5, 6, 7, 8)]
    assert client.get("/api/same?row=5&column=city").json()["count"] == 0


def test_a_value_that_was_never_flagged_is_repeated_too(client: Client, review: Review) -> None:
    rows = [row for row, city in enumerate(review.table["city"].to_pylist()) if city == "Rome"]
    client.tell("decide", row=rows[0], column="city", value="Rome", verdict="wrong", repair="Oslo")
    client.tell("repeat", row=rows[0], column="city", count=len(rows) - 1)
    assert texts(review, "city").get("Rome") is None


def test_a_value_that_is_right_is_repeated_for_flagged_cells_only(client: Client, review: Review) -> None:
    client.tell("decide", row=5, column="city", value="Oslx", verdict="right")
    assert client.get("/api/same?row=5&column=city").json()["count"] == 3
    client.tell("decide", row=0, column="city", value=review.text((0, "city")), verdict="right")
    assert client.get("/api/same?row=0&column=city").json()["count"] == 0


def test_of_a_cell_that_is_open_nothing_is_repeated(client: Client) -> None:
    assert client.get("/api/same?row=5&column=city").json()["count"] == 0


# ---------------------------------------------------------------- values


def test_values_are_listed_with_counts_the_most_common_first(client: Client, review: Review) -> None:
    told = client.get("/api/values?column=city").json()
    assert told["cells"] == review.table.num_rows
    assert {each["value"] for each in told["values"][:3]} == {"Rome", "Lima", "Oslo"}
    assert [each["count"] for each in told["values"]] == sorted((e["count"] for e in told["values"]), reverse=True)
    assert next(each for each in told["values"] if each["value"] == "Oslx") == {
        "value": "Oslx",
        "count": 4,
        "repair": "Oslo",
    }
    filtered = client.get("/api/values?column=city&text=OSL").json()
    assert {each["value"] for each in filtered["values"]} == {"Oslo", "Oslx"}


def test_a_value_is_replaced_wherever_it_stands(client: Client, review: Review) -> None:
    before = texts(review, "city")
    edit = {"column": "city", "values": ["Oslx", "Rome"], "repair": "Oslo"}
    client.tell("replace", edits=[edit], count=before["Oslx"] + before["Rome"])
    assert texts(review, "city")["Oslo"] == before["Oslo"] + before["Oslx"] + before["Rome"]
    again = {"column": "city", "values": ["Oslo"], "repair": "Rome"}
    client.tell("replace", edits=[again], count=texts(review, "city")["Oslo"])
    after = texts(review, "city")
    assert "Oslo" not in after
    assert after["Rome"] == before["Oslo"] + before["Oslx"] + before["Rome"]
    was_rome = [row for row, city in enumerate(review.table["city"].to_pylist()) if city == "Rome"]
    assert {review.ledger.of((row, "city")).verdict for row in was_rome} == {"right"}  # type: ignore[union-attr]
    client.tell("undo", step=client.get("/api/pulse").json()["undo"]["step"])
    assert texts(review, "city")["Oslo"] == before["Oslo"] + before["Oslx"] + before["Rome"]


def test_a_cell_that_a_person_called_right_is_not_replaced(client: Client, review: Review) -> None:
    review.keep((5, "city"), seen=None)
    done = client.tell("replace", edits=[{"column": "city", "values": ["Oslx"], "repair": "Oslo"}], count=4)
    assert done["cells"] == 3
    assert review.ledger.of((5, "city")).verdict == "right"  # type: ignore[union-attr]


def test_replacing_is_checked_as_an_edit_is(client: Client, review: Review) -> None:
    edit = {"column": "nowhere", "values": ["Oslx"], "repair": "Oslo"}
    answer = client.post("/api/replace", json={"edits": [edit], "count": 4})
    assert answer.status_code == 422
    assert "no column 'nowhere'" in answer.json()["error"]
    edit = {"column": "city", "values": ["Oslx"], "repair": "Oslo"}
    answer = client.post("/api/replace", json={"edits": [edit], "count": 5})
    assert "5 cells were shown and it would be 4 now" in answer.json()["error"]
    assert decided(review) == []


def test_rows_with_a_value_are_shown(client: Client) -> None:
    told = client.get("/api/rows?within=city&holds=Oslx").json()
    assert told["rows"] == [5, 6, 7, 8]


# ---------------------------------------------------------------- rewritings


def test_a_pattern_is_replaced_in_all_values_of_a_column(client: Client, review: Review) -> None:
    asked = {"column": "note", "find": r"^note (\d)$", "put": r"note 0\1", "is_pattern": True}
    told = client.get("/api/preview?column=note&find=%5Enote%20(%5Cd)%24&put=note%200%5C1&is_pattern=true").json()
    assert (told["cells"], told["changes"][0]) == (10, {"value": "note 0", "repair": "note 00", "count": 1})
    client.tell("transform", **asked, count=10)
    assert texts(review, "note")["note 07"] == 1


def test_a_part_of_a_value_fills_gaps_of_another_column(client: Client, review: Review) -> None:
    asked = {"column": "note", "find": r"^.* (\d+)$", "put": r"\1", "is_pattern": True, "into": "city"}
    told = client.post("/api/transform", json={**asked, "count": 1})
    assert told.status_code == 422  # no city is missing
    client.tell("replace", edits=[{"column": "city", "values": ["Oslx"], "repair": ""}], count=4, insist=True)
    client.tell("transform", **asked, count=4)
    assert [review.ledger.of((row, "city")).repair for row in (5, 6)] == ["5", "6"]  # type: ignore[union-attr]


@pytest.mark.parametrize(("find", "put"), [("(", ""), ("x", r"\1")])
def test_a_pattern_that_cannot_be_is_told(client: Client, find: str, put: str) -> None:
    asked = {"column": "note", "find": find, "put": put, "is_pattern": True, "count": 1}
    answer = client.post("/api/transform", json=asked)
    assert answer.status_code == 422
    assert "pattern" in answer.json()["error"]


# ---------------------------------------------------------------- spellings


def test_spellings_are_clustered_around_what_cellmend_proposes(client: Client) -> None:
    told = client.get("/api/clusters?column=city").json()
    assert {each["target"]: [own["value"] for own in each["spellings"]] for each in told["clusters"]} == {
        "Oslo": ["Oslo", "Oslx"],
        "Lima": ["Lima", "Limq"],
    }


def test_clusters_follow_what_was_edited(client: Client, review: Review) -> None:
    client.tell("replace", edits=[{"column": "city", "values": ["Oslx"], "repair": "Oslo"}], count=4)
    assert [each["target"] for each in client.get("/api/clusters?column=city").json()["clusters"]] == ["Lima"]


@pytest.mark.parametrize(
    ("deed", "asked"),
    [
        ("group", {"listing": 0, "picks": "all", "verdict": "wrong", "count": 1}),
        ("group", {"listing": 0, "picks": [{"group": "x"}], "verdict": "wrong", "count": 1}),
        ("edit", {"listing": 0, "pick": {"group": 0}, "repair": 5, "count": 1}),
        ("replace", {"edits": [{"column": "city", "values": "Oslx", "repair": "Oslo"}], "count": 4}),
        ("replace", {"edits": [{"column": "city", "values": ["Oslx"]}], "count": 4}),
        ("transform", {"column": "city", "find": 3, "count": 4}),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(client: Client, deed: str, asked: dict[str, Any]) -> None:
    answer = client.post(f"/api/{deed}", json=asked)
    assert answer.status_code == 422
    assert answer.json()["error"].endswith(".")


def test_a_filter_by_column_and_cause_keeps_only_its_groups(review: Review) -> None:
    first = review.groups(Filter())[0]
    kept = review.groups(Filter(column=first.column, cause=first.cause))
    assert [(each.column, each.cause) for each in kept] == [(first.column, first.cause)]
    assert kept[0].place == first.place


# ---------------------------------------------------------------- steps


def test_all_steps_are_listed_and_one_can_go_back_to_any(client: Client, review: Review) -> None:
    client.tell("decide", row=0, column="city", value=review.text((0, "city")), verdict="right")
    client.tell("replace", edits=[{"column": "city", "values": ["Oslx"], "repair": "Oslo"}], count=4)
    client.tell("column", column="city", kind="ignore")
    steps = client.get("/api/history").json()["steps"]
    assert [each["what"] for each in steps] == ["the kind of city", "4 cells of city", "row 0, city"]
    answer = client.post("/api/back", json={"step": steps[2]["step"], "last": steps[1]["step"]})
    assert answer.status_code == 409
    assert len(decided(review)) == 5
    assert client.tell("back", step=steps[2]["step"], last=steps[0]["step"])["steps"] == 2
    assert [each.row for each in decided(review)] == [0]
    assert review.wishes.kinds == {}
    client.tell("back", step=0, last=steps[2]["step"])
    assert decided(review) == []


def test_an_export_writes_what_was_done_to_values_as_a_recipe(client: Client, review: Review) -> None:
    client.tell("replace", edits=[{"column": "city", "values": ["Oslx", "Limq"], "repair": "Oslo"}], count=5)
    client.tell("export")
    replaced, single = read_patch(review.results.recipe)
    assert replaced == Replacement("city", "Oslx", "Oslo")
    assert (single.column, single.old) == ("city", "Limq")
