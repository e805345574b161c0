"""Results and their review belong together: what new results would leave stale is set aside, never lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellmend.files.earlier import set_aside
from cellmend.files.layout import NOTHING_ASKED, Asked
from cellmend.files.origin import Origin

NEW = {"findings.csv", "report.html", "repaired.csv", "model.cellmend", "source.json"}
FIDDLED = {"decisions.jsonl": "d", "columns.json": "c", "patch.jsonl": "p", "reviewed.csv": "r", "mine.txt": "m"}


@pytest.fixture
def reviewed(tmp_path: Path) -> Path:
    """A folder of results with a review, beside its table."""
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    out = tmp_path / "out"
    (out / "learned").mkdir(parents=True)
    (out / "learned" / "findings.csv").write_text("learned")
    for name, text in FIDDLED.items():
        (out / name).write_text(text)
    for name in NEW:
        (out / name).write_text("old")
    origin_of(tmp_path).save(out)
    return out


def origin_of(place: Path, asked: Asked = NOTHING_ASKED) -> Origin:
    return Origin.of(str(place / "t.csv"), "t.csv", place / "out", {"fdr": 0.1}, asked)


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def test_about_the_same_table_decisions_stay_and_what_was_learned_goes(reviewed: Path, tmp_path: Path) -> None:
    (told,) = set_aside(reviewed, origin_of(tmp_path), NEW)
    assert str(reviewed / "earlier-1") in told
    assert names(reviewed / "earlier-1") == {"learned"}
    assert names(reviewed) == {*NEW, *FIDDLED, "earlier-1"}


def test_about_another_table_all_of_the_review_goes(reviewed: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,3\n")
    assert len(set_aside(reviewed, origin_of(tmp_path), NEW)) == 1
    assert names(reviewed / "earlier-1") == {*FIDDLED, "learned"} - {"mine.txt"}
    assert names(reviewed) == {*NEW, "mine.txt", "earlier-1"}
    assert set_aside(reviewed, origin_of(tmp_path), NEW) == []


def test_the_same_file_read_otherwise_is_another_table(reviewed: Path, tmp_path: Path) -> None:
    set_aside(reviewed, origin_of(tmp_path, Asked(header_row=2)), NEW)
    assert "decisions.jsonl" in names(reviewed / "earlier-1")


def test_without_a_table_of_which_to_know_it_again_all_goes_each_time_elsewhere(reviewed: Path) -> None:
    (reviewed / "earlier-1").mkdir()
    set_aside(reviewed, None, {"findings.csv", "report.html"})
    assert names(reviewed) == {"findings.csv", "report.html", "mine.txt", "earlier-1", "earlier-2"}
    assert (reviewed / "earlier-2" / "decisions.jsonl").read_text() == "d"
