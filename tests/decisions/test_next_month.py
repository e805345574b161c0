"""What was decided of one month, in the next."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cellmend import CellMender, load
from cellmend.cli import main
from cellmend.errors import DecisionWarning
from tests.conftest import SMALL

CITIES = {"Hamburg": "HH", "Rostock": "MV", "Leipzig": "SN", "Potsdam": "BB"}
DECIDED = [
    {"row": 3, "column": "city", "value": "Hamburgg", "verdict": "wrong", "repair": "Hamburg"},
    {
        "row": 9,
        "column": "city",
        "value": "Rostock",
        "verdict": "wrong",
        "repair": "Leipzig",
    },  # it stood in a wrong row
    {"row": 12, "column": "city", "value": "Potsdamm", "verdict": "right"},
    {"row": 20, "column": "city", "value": "Jena", "verdict": "right"},  # a town of last month alone
]


def month(seed: int, **cities: str) -> pd.DataFrame:
    """Cities with their lands; `cities` names those of some rows, written r7 and so on."""
    rng = np.random.default_rng(seed)
    city = rng.choice(list(CITIES), 200)
    table = pd.DataFrame({"city": city, "land": [CITIES[name] for name in city], "size": rng.integers(1, 99, 200)})
    for row, name in cities.items():
        table.loc[int(row[1:]), "city"] = name
    return table


def first() -> pd.DataFrame:
    return month(0, r3="Hamburgg", r9="Rostock", r12="Potsdamm", r20="Jena")


def newer() -> pd.DataFrame:
    return month(1, r50="Hamburgg", r60="Potsdamm", r73="Hamburgg")


@pytest.fixture(scope="module")
def taught() -> CellMender:
    return CellMender(**SMALL).fit(first()).learn(first(), DECIDED)


def test_what_was_decided_of_a_text_holds_for_newer_tables(taught: CellMender, tmp_path: Path) -> None:
    taught.save(tmp_path / "m")
    for mender in (taught, load(tmp_path / "m")):
        repaired = mender.repair(newer())
        assert repaired["city"][[50, 60, 73]].tolist() == ["Hamburg", "Potsdamm", "Hamburg"]
        assert np.asarray(mender.cell_suspicion(newer()))[60, 0] == 0


def test_a_valid_value_that_was_wrong_in_one_row_is_not_wrong_in_others(taught: CellMender) -> None:
    held = (newer()["city"] == "Rostock").to_numpy()
    assert held.sum() > 20
    assert np.asarray(taught.cell_suspicion(newer()))[held, 0].max() < 0.5


def test_a_new_model_is_taught_by_decisions_about_the_month_before() -> None:
    mender = CellMender(**SMALL).fit(newer())
    with pytest.warns(
        DecisionWarning, match="4 of 4 .* not in this table: 2 hold for their values, 2 are not applicable"
    ):
        mender.learn(newer(), DECIDED)
    assert mender.repair(newer())["city"][[50, 60, 73]].tolist() == ["Hamburg", "Potsdamm", "Hamburg"]


def test_a_text_that_was_decided_in_two_ways_says_nothing() -> None:
    mender = CellMender(**SMALL).fit(newer())
    untaught = np.asarray(mender.cell_suspicion(newer()))
    other = {"row": 4, "column": "city", "value": "Hamburgg", "verdict": "right"}
    with pytest.warns(DecisionWarning, match="2 of 2 .* 2 are not applicable"):
        mender.learn(newer(), [DECIDED[0], other])
    assert np.array_equal(np.asarray(mender.cell_suspicion(newer())), untaught)


def test_cleaning_the_next_month_says_which_decisions_do_not_apply(tmp_path: Path, monkeypatch, capsys) -> None:
    newer().to_csv(tmp_path / "new.csv", index=False)
    lines = "".join(json.dumps(each) + "\n" for each in DECIDED)
    (tmp_path / "said.jsonl").write_text(lines)
    monkeypatch.chdir(tmp_path)
    words = ["clean", "new.csv", "--decisions", "said.jsonl", "--time-limit", "1", "--json"]
    monkeypatch.setattr(sys, "argv", ["cellmend", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (0, None)
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("2 hold for their values, 2 are not applicable" in note for note in notes)
    assert pd.read_csv(tmp_path / "new-cleaned" / "repaired.csv")["city"][50] == "Hamburg"
