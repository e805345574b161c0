"""Learning beside the page: what was decided teaches, what changed is told, and reopening goes on with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellmend import load
from cellmend.review.answers import columns
from cellmend.review.results import open_results
from cellmend.review.review import Review
from cellmend.review.rows import Filter
from cellmend.review.teaching import STAGES, strike_out
from tests.review.conftest import wait_for_teacher

pytestmark = pytest.mark.slow


def learned(review: Review) -> Review:
    """After it learned, without trouble."""
    assert review.learn()
    wait_for_teacher(review)
    assert review.teacher.progress.error == ""
    return review


def test_questions_come_first_and_say_for_how_many_they_speak(review: Review) -> None:
    review.start()
    wait_for_teacher(review)
    assert review.teacher.progress.error == ""
    asked = review.queue(1000, Filter())
    count = len(review.questions)
    assert count > 0
    assert [each.is_question for each in asked] == [True] * count + [False] * (len(asked) - count)
    assert all(each.speaks_for >= 0 for each in asked[:count])
    assert {flag.cell for flag in review.flagged.flags} <= {each.flag.cell for each in asked}


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
    rules = [rule.words() for rule in mender.model_.reader.relations]
    assert rules
    strike_out(mender, {rules[0]})
    assert [rule.words() for rule in mender.model_.reader.relations] == rules[1:]
    review.set_rule(rules[0], "struck")
    learned(review)
    shown = columns(review, {})["rules"]
    assert {each["rule"]: each["verdict"] for each in shown} == {**dict.fromkeys(rules), rules[0]: "struck"}
    model = load(folder / "learned" / "model.cellmend").model_
    assert [rule.words() for rule in model.reader.relations] == rules[1:]
