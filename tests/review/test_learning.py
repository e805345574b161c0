"""Learning beside the page: what was decided teaches, what changed is told, and reopening goes on with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellmend import load
from cellmend.errors import DecisionError
from cellmend.files.earlier import set_aside
from cellmend.files.origin import Origin
from cellmend.review.answers_model import changes, learnings, rules, unlearn
from cellmend.review.limits import Wishes
from cellmend.review.results import open_results
from cellmend.review.review import Review
from cellmend.review.rows import Filter
from cellmend.review.ruling import judge_rule
from cellmend.review.teaching import LEAST_DOUBT, STAGES, heed
from tests.review.conftest import wait_for_teacher

pytestmark = pytest.mark.slow


def learned(review: Review) -> Review:
    """After it learned, without trouble."""
    assert review.learn()
    wait_for_teacher(review)
    assert review.teacher.progress.error == ""
    return review


def test_questions_are_asked_apart_and_say_for_how_many_they_speak(review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    assert review.teacher.progress.error == ""
    assert [each.flag for each in review.queue(1000, Filter())] == list(review.flagged.flags)
    asked = review.queue(1000, Filter(), of_questions=True)
    assert [each.flag.cell for each in asked] == list(review.questions)
    assert asked
    for each in asked:
        assert each.is_question
        assert each.speaks_for > 0
        assert each.flag.column not in ("parcel_id", "note")  # which are left out
        assert each.flag.suspicion >= LEAST_DOUBT


def test_a_decision_holds_for_its_cell_and_changes_elsewhere_are_told(review: Review) -> None:
    alike = [flag.cell for flag in review.flagged.flags if flag.value == "Oslx"]
    for cell in alike[:2]:
        review.accept(cell, "Oslo", seen=None)
    kept = next(flag.cell for flag in review.flagged.flags if flag.column == "width")
    review.keep(kept, seen=None)
    before = review.version
    learned(review)
    assert review.flagged.get(kept) is None
    assert all(review.flagged.by_cell[cell].repair == "Oslo" for cell in alike)
    assert review.version > before
    changes = review.teacher.progress.changes
    assert changes is not None
    told = {(each.row, each.column) for each in changes.listed}
    assert not told & {*alike[:2], kept}
    assert changes.counts.keys() == {"found", "dropped", "repaired otherwise"}


def test_reopening_goes_on_with_what_was_learned(review: Review, folder: Path) -> None:
    kept = next(flag.cell for flag in review.flagged.flags if flag.column == "width")
    review.keep(kept, seen=None)
    learned(review)
    again = Review(open_results(folder, None))
    assert [flag.cell for flag in again.flagged.flags] == [flag.cell for flag in review.flagged.flags]
    assert load(folder / "learned" / "model.cellmend").cell_suspicion(again.table)[kept[1]][kept[0]].as_py() == 0
    assert (folder / "findings.csv").is_file()


def test_an_undone_decision_leaves_nothing_behind(review: Review) -> None:
    kept = next(flag.cell for flag in review.flagged.flags if flag.column == "width")
    first = sorted(flag.cell for flag in learned(review).flagged.flags)
    step = review.keep(kept, seen=None)
    assert step is not None
    assert kept not in [flag.cell for flag in learned(review).flagged.flags]
    review.undo(step.number)
    assert sorted(flag.cell for flag in learned(review).flagged.flags) == first


def test_another_kind_of_a_column_fits_the_model_again(review: Review, folder: Path) -> None:
    review.set_kind("city", "ignore")
    learned(review)
    known = review.teacher.known
    assert known is not None
    assert known.schema["city"].kind == "ignore"
    assert load(folder / "learned" / "model.cellmend").schema_["city"].kind == "ignore"
    assert load(folder / "model.cellmend").schema_["city"].kind == "category"


def test_one_thing_is_learned_at_a_time_and_progress_is_told(review: Review) -> None:
    assert review.learn()
    progress = review.teacher.progress
    assert progress.is_running
    assert progress.stage in STAGES
    assert not review.learn()
    wait_for_teacher(review)
    assert review.teacher.progress.runs == 1


def test_a_model_that_is_gone_is_told_and_the_page_goes_on(review: Review) -> None:
    review.results.model.unlink()
    review.start()
    wait_for_teacher(review)
    assert "model.cellmend" in review.teacher.progress.error
    review.keep(review.flagged.flags[0].cell, seen=None)
    assert len(review.ledger.standing) == 1


def test_a_rule_that_is_struck_out_no_longer_speaks(folder: Path, review: Review) -> None:
    mender = load(folder / "model.cellmend")
    found = [rule.words() for rule in mender.model_.reader.relations]
    assert found
    heed(mender, Wishes(rules={found[0]: "struck"}, own=("width > 0",)))
    assert [rule.words() for rule in mender.model_.reader.relations] == found[1:]
    assert mender.model_.reader.sure == ("width > 0",)
    review.start()
    wait_for_teacher(review)
    judge_rule(review, found[0], "struck")
    learned(review)
    shown = {each["rule"]: each["verdict"] for each in rules(review, {})["rules"]}
    assert shown == {**dict.fromkeys(found), found[0]: "struck"}
    model = load(folder / "learned" / "model.cellmend").model_
    assert [rule.words() for rule in model.reader.relations] == found[1:]


# ---------------------------------------------------------------- history


def test_learning_is_kept_with_what_it_was_and_goes_back_step_by_step(review: Review, folder: Path) -> None:
    first = [flag.cell for flag in review.flagged.flags]
    kept = next(flag.cell for flag in review.flagged.flags if flag.column == "width")
    review.keep(kept, seen=None)
    once = [flag.cell for flag in learned(review).flagged.flags]
    review.accept(once[0], None, seen=None)
    learned(review)
    told = learnings(review, {})
    assert [each["decisions"] for each in told["history"]] == [1, 2]
    assert told["now"] == {"decisions": 2, "right": 1, "wrong": 1, "repairs": 0, "columns": 1, "wishes": 0}
    assert changes(review, {})["counts"] == told["history"][-1]["counts"]
    assert changes(review, {"number": "1"})["is_last"] is False
    for before in (once, first):
        assert unlearn(review, {})["started"]
        wait_for_teacher(review)
        assert review.teacher.progress.error == ""
        assert [flag.cell for flag in review.flagged.flags] == before
        assert [flag.cell for flag in Review(open_results(folder, None)).flagged.flags] == before
    assert len(review.ledger.standing) == 2  # decisions stay
    with pytest.raises(DecisionError, match="Nothing was learned yet"):
        unlearn(review, {})
    assert not list(folder.glob("learned*"))


def test_what_was_learned_is_set_aside_by_another_cleaning(review: Review, folder: Path) -> None:
    for _ in range(2):
        review.keep(review.queue(1, Filter())[0].flag.cell, seen=None)
        learned(review)
    assert sorted(each.name for each in folder.glob("learned*")) == ["learned", "learned-1"]
    told = set_aside(folder, Origin.load(folder), [])
    assert "learned, learned-1" in told[0]
    assert not list(folder.glob("learned*"))


def test_a_damaged_note_of_learning_does_not_stop_the_review(review: Review, folder: Path) -> None:
    review.keep(review.flagged.flags[0].cell, seen=None)
    learned(review)
    for content in (b"", b"[1]", b'{"when": 5, "changes": 7}', b'{"changes": {"counts": 3}}'):
        (folder / "learned" / "learning.json").write_bytes(content)
        assert changes(review, {})["listed"] == []
        assert learnings(review, {})["history"][0]["counts"] == {}
