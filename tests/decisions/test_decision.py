"""Decisions as people take them, and the file that keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from cellmend.decisions.decision import Decision, append_decisions, as_decisions, read_decisions, standing
from cellmend.errors import DecisionError

RIGHT = Decision(3, "city", "Ulm", "right")
WRONG = Decision(4, "city", "Ulmm", "wrong", "Ulm")
UNDO = Decision(3, "city", "Ulm", "undo")


def test_what_is_appended_is_read_back_in_order(tmp_path: Path) -> None:
    append_decisions(tmp_path / "d.jsonl", [RIGHT])
    append_decisions(tmp_path / "d.jsonl", [WRONG, UNDO])
    assert read_decisions(tmp_path / "d.jsonl") == [RIGHT, WRONG, UNDO]


def test_letters_of_any_language_survive_the_file(tmp_path: Path) -> None:
    strange = Decision(0, "città", 'Kö"ln\n\u2028東京', "wrong", "")
    append_decisions(tmp_path / "d.jsonl", [strange, RIGHT])
    assert read_decisions(tmp_path / "d.jsonl") == [strange, RIGHT]


def test_a_half_last_line_is_neither_read_nor_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(RIGHT.to_line() + "\n" + WRONG.to_line()[:20], encoding="utf-8")
    assert read_decisions(path) == [RIGHT]
    append_decisions(path, [WRONG])
    assert read_decisions(path) == [RIGHT, WRONG]


def test_a_last_line_that_only_lacks_its_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(RIGHT.to_line(), encoding="utf-8")
    append_decisions(path, [WRONG])
    assert read_decisions(path) == [RIGHT, WRONG]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "Line 2 of d.jsonl must hold one decision"),
        ("[1]", "Line 2 of d.jsonl must hold one decision"),
        ('{"row": 1, "column": "a", "value": "x"}', "it has no verdict"),
        ('{"row": -1, "column": "a", "value": "x", "verdict": "right"}', "a row from 0; it has -1"),
        ('{"row": 1.5, "column": "a", "value": "x", "verdict": "right"}', "a row from 0; it has 1.5"),
        ('{"row": 1, "column": 7, "value": "x", "verdict": "right"}', "the name of a column; it has 7"),
        ('{"row": 1, "column": "a", "value": "x", "verdict": "rihgt"}', "'right', 'wrong' or 'undo'; it has 'rihgt'"),
        ('{"row": 1, "column": "a", "value": "x", "verdict": "right", "repair": "y"}', "only if its cell is wrong"),
        ('{"row": 1, "column": "a", "value": "x", "verdict": "wrong", "repairs": "y"}', "Did you mean 'repair'?"),
    ],
)
def test_a_bad_line_is_told_in_one_sentence(tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "d.jsonl").write_text(f"{RIGHT.to_line()}\n{line}\n", encoding="utf-8")
    with pytest.raises(DecisionError, match=r"^Line 2 of d\.jsonl") as caught:
        read_decisions(tmp_path / "d.jsonl")
    assert words in str(caught.value)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_data_frame_of_decisions_is_taken(frame: Any) -> None:
    given = {"row": [3, 4], "column": ["city", "city"], "value": ["Ulm", "Ulmm"]}
    given |= {"verdict": ["right", "wrong"], "repair": [None, "Ulm"]}
    assert as_decisions(frame(given)) == [RIGHT, WRONG]


def test_undo_takes_back_and_the_cell_may_be_decided_again() -> None:
    again = Decision(3, "city", "Ulm", "wrong", "Köln")
    assert standing([RIGHT, UNDO]) == []
    assert standing([RIGHT, WRONG, UNDO, again]) == [WRONG, again]


def test_the_same_said_twice_is_one_decision_and_a_repair_may_follow() -> None:
    unsure = Decision(4, "city", "Ulmm", "wrong")
    assert standing([unsure, WRONG, WRONG, unsure]) == [WRONG]


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (RIGHT, Decision(3, "city", "Ulm", "wrong"), "is right and wrong"),
        (WRONG, Decision(4, "city", "Ulmm", "wrong", "Köln"), "repaired as 'Ulm' and as 'Köln'"),
        (RIGHT, Decision(3, "city", "Bonn", "right"), "seen as 'Ulm' and as 'Bonn'"),
    ],
)
def test_contradictions_are_told(one: Decision, other: Decision, words: str) -> None:
    with pytest.raises(DecisionError, match=words):
        standing([one, other])
