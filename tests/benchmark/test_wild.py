from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cellmend.cli import app
from cellmend.errors import MissingExtraError
from cellmend.evaluation.vandal import RIGHT
from cellmend.evaluation.vandal_kinds import NAMES
from cellmend_bench import judging, wild
from cellmend_bench.errors import MissingDatasetError, UnknownNameError
from cellmend_bench.families import is_kept
from cellmend_bench.foreign import tab_err_errors
from cellmend_bench.judging import Answer, Spoiled, Task, measure, spoil
from cellmend_bench.metrics import scores
from cellmend_bench.results import Outcome
from cellmend_bench.wild import Plan, kept_tables, main, run_wild
from cellmend_bench.wild_summary import (
    by_table,
    false_share,
    flags_per_thousand,
    pooled,
    recall_by_kind,
    summary,
    sure_cells,
)

KEPT = [f"gov_{a}{b}{c}" for a in "abcdef" for b in "aei" for c in "lmn" if is_kept(f"gov_{a}{b}{c}")][:3]


def shop(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "town": rng.choice(["Springfield", "Riverside", "Oakland"], rows),
            "price": [f"{value:.2f}" for value in rng.normal(20, 3, rows)],
            "sold": [str(value) for value in rng.integers(1, 90, rows)],
        },
        dtype=object,
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in (*KEPT, "gov_BLM_roads"):  # the last is there to learn from
        shop().to_csv(folder / f"{name}.csv.gz", index=False)
    return folder


def sees_numbers_below_zero(dirty: pd.DataFrame) -> Answer:
    """A finder that flags whatever begins with a minus, and all of the first row."""
    suspicion = np.array([[0.95 if text.startswith("-") else 0.2 for text in row] for row in dirty.to_numpy()])
    suspicion[0] = 0.92
    flagged = zip(*np.nonzero(suspicion > 0.5), strict=True)
    return Answer(suspicion, [_finding(dirty, int(row), int(place), suspicion) for row, place in flagged])


def _finding(dirty: pd.DataFrame, row: int, place: int, suspicion: np.ndarray) -> Outcome:
    words = {"cause": "sign", "reason": "It is below zero.", "repair": dirty.iat[row, place].lstrip("-")}
    return {"row": row, "column": dirty.columns[place], "place": place, "suspicion": suspicion[row, place], **words}


# ---------------------------------------------------------------- counting


def test_cells_are_counted_as_worked_out_by_hand() -> None:
    clean = pd.DataFrame({"a": ["1", "2", "3", "4"], "b": ["x", "y", "z", ""]}, dtype=object)
    dirty = pd.DataFrame({"a": ["-1", "2", "30", "4"], "b": ["x", "q", "z", ""]}, dtype=object)
    sign, shift, slip = (NAMES.index(name) for name in ("sign", "decimal point", "keyboard slip"))
    marks = np.array([[sign, RIGHT], [RIGHT, slip], [shift, RIGHT], [RIGHT, RIGHT]], dtype=np.int8)
    suspicion = np.array([[0.95, 0.0], [0.9, 0.3], [0.6, 0.0], [0.0, 1.0]])
    flags = [(0, 0, "1"), (1, 0, "5"), (2, 0, "33"), (3, 1, None)]  # the last cell is empty and does not count
    findings = [{"row": row, "place": place, "repair": repair} for row, place, repair in flags]
    found = measure(Spoiled(clean, dirty, marks != RIGHT, marks), Answer(suspicion, findings))
    assert [found[name] for name in ("cells", "wrong", "flagged", "found")] == [7, 3, 3, 2]
    assert [found[name] for name in ("repaired_right", "repaired_wrong", "right_cells_changed")] == [1, 1, 1]
    assert found["by_suspicion"] == [[4, 3, 2.75], [3, 2, 2.45], [2, 1, 1.85], [0, 0, 0.0]]
    assert found["by_kind"]["sign"] == [1, 1, 1, 1, 0, 0]
    assert found["by_kind"]["keyboard slip"] == [1, 0, 1, 0, 0, 0]


def outcome(wrong: int, flagged: int, found: int, **more: object) -> Outcome:
    counts = {"wrong": wrong, "flagged": flagged, "found": found, "cells": 1000, "by_kind": {}}
    nothing = {"repaired_right": 0, "repaired_wrong": 0, "right_cells_changed": 0}
    sure = [[0, 0, 0.0]] * 2 + [[flagged, found, 0.95 * flagged]] + [[0, 0, 0.0]]
    return {"table": "t", "way": "mixed", "by_suspicion": sure} | counts | nothing | more


def test_the_summary_is_as_worked_out_by_hand() -> None:
    two = [outcome(10, 10, 5), outcome(30, 10, 10)]
    assert scores(10, 10, 5) == (0.5, 0.5, 0.5)
    assert scores(0, 0, 0) == (0, 0, 0)
    assert pooled(two) == (0.75, 0.375, 0.5)
    assert np.array(by_table(two)) == pytest.approx(np.array([(0.75, 0.25), (5 / 12, 1 / 12), (0.5, 0.0)]))
    assert false_share([*two, outcome(4, 0, 0)]) == (0.25, 0.25)
    assert sure_cells(two) == pytest.approx((20, 0.75, 0.95))
    assert flags_per_thousand(two) == 10
    kinds = [
        outcome(1, 1, 1, by_kind={"sign": [4, 2, 2, 2, 0, 0]}),
        outcome(1, 1, 1, by_kind={"sign": [6, 3, 1, 0, 5, 1]}),
    ]
    assert recall_by_kind(kinds) == {"sign": [10, 5, 3, 2, 5, 1]}


def test_the_summary_says_what_failed_and_leaves_it_out() -> None:
    failed = {"table": "u", "way": "mixed", "failed": "At least one column must vary."}
    text = summary([outcome(10, 10, 5), failed, outcome(0, 4, 0, way="unspoiled")])
    assert "2 tables" in text
    assert "1  At least one column must vary." in text
    assert "F1 0.500" in text
    assert "4.00 flags per 1,000 cells (4 of 1000)" in text


# ---------------------------------------------------------------- running


def test_only_kept_tables_are_judged_and_a_spread_of_them_can_be_asked_for(corpus: Path) -> None:
    assert kept_tables(corpus) == sorted(KEPT)
    assert kept_tables(corpus, 1) == sorted(KEPT)[1:2]
    with pytest.raises(MissingDatasetError, match="tables to judge on"):
        kept_tables(corpus / "nowhere")


def test_a_run_can_be_stopped_and_goes_on(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(dirty: pd.DataFrame) -> Answer:
        asked.append(dirty)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return sees_numbers_below_zero(dirty)

    monkeypatch.setattr(judging, "ask", ask)
    plan = Plan(corpus, ways=("mixed", "unspoiled"))
    with pytest.raises(KeyboardInterrupt):
        run_wild(plan, tmp_path / "out")
    with (tmp_path / "out" / wild.RESULTS).open("a") as file:
        file.write('{"half')
    text = run_wild(plan, tmp_path / "out")
    assert len(asked) == 3 + 4
    assert "3 tables" in text
    assert run_wild(plan, tmp_path / "out") == text
    assert len(asked) == 3 + 4
    lines = (tmp_path / "out" / wild.RESULTS).read_text().splitlines()
    assert sorted((json.loads(line)["table"], json.loads(line)["way"]) for line in lines) == [
        (name, way) for name in sorted(KEPT) for way in ("mixed", "unspoiled")
    ]


def test_flags_on_unspoiled_tables_are_listed_for_people(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "ask", sees_numbers_below_zero)
    run_wild(Plan(corpus, tables=1, ways=("unspoiled",)), tmp_path)
    with (tmp_path / wild.FLAGS).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["column"] for row in rows] == ["town", "price", "sold"]
    assert json.loads(rows[0]["whole_row"])["town"] == rows[0]["value"]
    assert len(json.loads(rows[1]["samples"])) == 8


def test_a_failure_is_kept_and_made_again_if_asked(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(dirty: pd.DataFrame) -> Answer:
        raise ZeroDivisionError("by nothing")

    plan = Plan(corpus, tables=1, ways=("0.1",))
    monkeypatch.setattr(judging, "ask", fail)
    assert "ZeroDivisionError: by nothing" in run_wild(plan, tmp_path)
    monkeypatch.setattr(judging, "ask", sees_numbers_below_zero)
    assert "by nothing" in run_wild(plan, tmp_path)
    assert "by nothing" not in run_wild(plan, tmp_path, retry=True)


def test_tables_are_spoiled_alike_each_time_and_apart_by_seed() -> None:
    tasks = [Task("t", "0.1", seed, 60, 30) for seed in (0, 0, 1)]
    one, again, other = (spoil(shop(), task).dirty for task in tasks)
    assert one.equals(again)
    assert not one.equals(other)


def test_an_unknown_way_is_refused(corpus: Path) -> None:
    with pytest.raises(UnknownNameError, match="one is 'often'"):
        Plan(corpus, ways=("often",)).tasks()


def test_the_command_and_the_plain_script_say_the_same(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judging, "ask", sees_numbers_below_zero)
    monkeypatch.setenv("CELLMEND_DATA", str(corpus.parent))
    asked = ["bench", "run", "wild", "--tables", "2", "--levels", "0.1", "-r", str(tmp_path / "a" / "results.jsonl")]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0
    main(["--data", str(corpus), "--tables", "2", "--ways", "0.1", "--out", str(tmp_path / "b")])
    said = capsys.readouterr().out
    assert "2 tables kept for judging" in said
    assert said.strip() in done.output
    assert (tmp_path / "a" / "wild" / wild.FLAGS).exists()
    assert CliRunner().invoke(app, ["bench", "run", "wild", "--tables", "wine"]).exit_code == 2


@pytest.mark.slow
def test_the_default_is_judged_in_processes_too(corpus: Path, tmp_path: Path) -> None:
    plan = Plan(corpus, tables=1, ways=("0.1",), most_rows=40)
    here = run_wild(plan, tmp_path / "here")
    assert run_wild(plan, tmp_path / "there", jobs=2) == here
    assert "failed" not in here


# ---------------------------------------------------------------- tab-err


def test_tab_err_spoils_a_twentieth_and_marks_what_differs() -> None:
    pytest.importorskip("tab_err")
    clean = shop(200)
    dirty, wrong = tab_err_errors(clean, np.random.default_rng(0))
    again, _ = tab_err_errors(clean, np.random.default_rng(0))
    assert dirty.equals(again)
    assert (wrong == (dirty != clean).to_numpy()).all()
    assert 0.01 < wrong.mean() < 0.08


def test_without_tab_err_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tab_err", None)
    with pytest.raises(MissingExtraError, match="needs the package tab-err"):
        tab_err_errors(shop(), np.random.default_rng(0))
