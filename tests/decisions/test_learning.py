"""What decisions teach: their own cells, cells that are alike, repairs, and what may not change."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cellmend import PAPER, CellMender, load
from cellmend.errors import DecisionError, DecisionWarning, ModelFileError, SettingError
from tests.conftest import SMALL
from tests.decisions.conftest import harvest, verdict

TWENTY = range(20)


def taught(mender: CellMender, table: pd.DataFrame, rows: range = TWENTY) -> CellMender:
    """A copy that was told about the weights of these rows."""
    return copy.copy(mender).learn(table, [verdict(table, row, "weight") for row in rows])


def suspicion(mender: CellMender, table: pd.DataFrame) -> np.ndarray:
    return np.asarray(mender.cell_suspicion(table), dtype=float)


def test_no_decisions_change_nothing(untaught: CellMender, fields: pd.DataFrame) -> None:
    learned = copy.copy(untaught).learn(fields, [])
    assert np.array_equal(suspicion(learned, fields), suspicion(untaught, fields))
    assert np.array_equal(learned.row_scores(fields), untaught.row_scores(fields))
    assert len(learned.learned_) == 0


def test_a_decision_holds_for_its_own_cell(untaught: CellMender, fields: pd.DataFrame) -> None:
    odd = {"row": 7, "column": "crop", "value": fields["crop"][7], "verdict": "wrong", "repair": "rye"}
    fine = {"row": 8, "column": "crop", "value": fields["crop"][8], "verdict": "right"}
    learned = copy.copy(untaught).learn(fields, [odd, fine])
    assert suspicion(learned, fields)[[7, 8], 0].tolist() == [1, 0]
    found = learned.findings(fields).query("row == 7 and column == 'crop'")
    assert found["repair"].tolist() == ["rye"]
    assert found["reason"].tolist() == [f"crop is {fields['crop'][7]}, which was decided to be wrong"]
    assert learned.repair(fields)["crop"][7] == "rye"


def test_what_was_said_of_some_cells_is_learned_of_those_that_are_alike(
    untaught: CellMender, fields: pd.DataFrame
) -> None:
    wrong = fields["weight"].str.endswith(" lb").to_numpy()
    flagged = suspicion(taught(untaught, fields), fields)[:, 1] >= 0.5
    assert (flagged == wrong)[20:].mean() > 0.99


def test_what_changed_elsewhere_is_listed(untaught: CellMender, fields: pd.DataFrame) -> None:
    fine = [verdict(fields, row, "weight") | {"verdict": "right", "repair": None} for row in TWENTY]
    learned = copy.copy(untaught).learn(fields, fine)  # a weight in pounds is one, too
    before, after = suspicion(untaught, fields), suspicion(learned, fields)
    moved = (before >= 0.5) != (after >= 0.5)
    moved[list(TWENTY), 1] = False
    changed = learned.learned_
    listed = {(row, fields.columns.get_loc(name)) for row, name in zip(changed["row"], changed["column"], strict=True)}
    assert moved.any()
    assert listed == set(zip(*np.nonzero(moved), strict=True))
    assert set(changed["change"]) <= {"found", "dropped"}


def test_given_repairs_teach_how_others_are_repaired(untaught: CellMender, fields: pd.DataFrame) -> None:
    repaired = taught(untaught, fields).set_params(repair_from=0.5).repair(fields)
    assert repaired["weight"].tolist() == fields["weight"].str.removesuffix(" lb").tolist()


def test_decisions_in_one_column_leave_the_flags_of_another(fields: pd.DataFrame) -> None:
    dirty = fields.copy()
    dirty.loc[50, "crop"] = "whezt"
    mender = CellMender(**SMALL).fit(dirty)
    assert suspicion(mender, dirty)[50, 0] >= 0.5
    assert suspicion(taught(mender, dirty), dirty)[50, 0] >= 0.5


def test_what_was_taught_is_kept_in_the_model_file(untaught: CellMender, fields: pd.DataFrame, tmp_path: Path) -> None:
    learned = taught(untaught, fields)
    learned.save(tmp_path / "m.cellmend")
    again = load(tmp_path / "m.cellmend")
    assert np.array_equal(suspicion(again, fields), suspicion(learned, fields))
    assert again.findings(fields).equals(learned.findings(fields))


def test_decisions_that_were_learned_from_other_evidence_are_refused_with_a_sentence(
    untaught: CellMender, fields: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"names": list(fields), "known": [], "portrait": {"habits": []}, "repairs": []}
    monkeypatch.setattr("cellmend.decisions.taught.Taught.to_json", lambda self: entry)
    taught(untaught, fields).save(tmp_path / "old.cellmend")
    with pytest.raises(ModelFileError, match=r"old.cellmend learned its decisions from evidence that this cellmend no"):
        load(tmp_path / "old.cellmend")


def test_decisions_reach_cells_that_are_alike_with_the_methods_of_the_paper(fields: pd.DataFrame) -> None:
    mender = taught(CellMender(**PAPER | SMALL).fit(fields), fields)
    flagged = suspicion(mender, fields)[:, 1] >= 0.5
    assert (flagged == fields["weight"].str.endswith(" lb"))[list(TWENTY)].all()
    assert (flagged == fields["weight"].str.endswith(" lb"))[20:].mean() > 0.9


def test_decisions_about_a_column_to_ignore_hold_for_their_own_cells_alone(fields: pd.DataFrame) -> None:
    table = fields.assign(size=np.arange(len(fields)) % 7)
    mender = taught(CellMender(**SMALL, schema={"weight": "ignore"}).fit(table), table)
    after = suspicion(mender, table)[:, 1]
    assert after[:20].tolist() == fields["weight"].str.endswith(" lb")[:20].astype(float).tolist()
    assert not after[20:].any()


def test_a_newer_table_is_judged_by_what_was_taught(untaught: CellMender, fields: pd.DataFrame) -> None:
    newer = harvest(360)[300:].reset_index(drop=True)
    flagged = suspicion(taught(untaught, fields), newer)[:, 1] >= 0.5
    assert (flagged == newer["weight"].str.endswith(" lb")).mean() > 0.95


def test_pieces_are_judged_as_the_whole_bit_for_bit(untaught: CellMender, fields: pd.DataFrame) -> None:
    learned = taught(untaught, fields)
    cells, rows = learned.score_rows(fields)
    pieces = [learned.score_rows(fields[start : start + 77]) for start in range(0, len(fields), 77)]
    assert np.array_equal(cells, np.concatenate([each[0] for each in pieces]))
    assert np.array_equal(rows, np.concatenate([each[1] for each in pieces]))


def test_undo_takes_back_what_was_taught(untaught: CellMender, fields: pd.DataFrame) -> None:
    learned = taught(untaught, fields)
    undone = [verdict(fields, row, "weight") | {"verdict": "undo"} for row in TWENTY]
    learned.learn(fields, [{key: each[key] for key in ("row", "column", "value", "verdict")} for each in undone])
    assert np.array_equal(suspicion(learned, fields), suspicion(untaught, fields))


def test_teaching_twice_adds_up(untaught: CellMender, fields: pd.DataFrame) -> None:
    twice = taught(taught(untaught, fields, range(10)), fields, range(10, 20))
    assert np.array_equal(suspicion(twice, fields), suspicion(taught(untaught, fields), fields))


def test_a_row_is_known_wherever_it_stands(untaught: CellMender, fields: pd.DataFrame) -> None:
    known = fields.assign(crop=[f"{crop} {row}" if row == 7 else crop for row, crop in enumerate(fields["crop"])])
    odd = {"row": 7, "column": "crop", "value": known["crop"][7], "verdict": "wrong"}
    learned = copy.copy(untaught).learn(known, [odd])
    moved = pd.concat([known[7:], known[:7]], ignore_index=True)
    assert suspicion(learned, moved)[0, 0] == 1


def test_decisions_about_no_column_of_the_table_are_refused(untaught: CellMender, fields: pd.DataFrame) -> None:
    with pytest.raises(DecisionError, match=r"it has no 'corp'\. Did you mean 'crop'"):
        copy.copy(untaught).learn(fields, [{"row": 1, "column": "corp", "value": "x", "verdict": "right"}])


@pytest.mark.parametrize(("row", "value"), [(1, "rye"), (9999, "hay")])
def test_decisions_about_no_cell_of_the_table_are_told_and_change_nothing(
    untaught: CellMender, fields: pd.DataFrame, row: int, value: str
) -> None:
    mender = copy.copy(untaught)
    with pytest.warns(
        DecisionWarning, match="1 of 1 decisions is about .*: 0 hold for their values, 1 is not applicable"
    ):
        mender.learn(fields, [{"row": row, "column": "crop", "value": value, "verdict": "right"}])
    assert np.array_equal(suspicion(mender, fields), suspicion(untaught, fields))


def test_a_failed_lesson_changes_nothing(untaught: CellMender, fields: pd.DataFrame) -> None:
    mender = copy.copy(untaught)
    row = verdict(fields, 0, "weight")
    with pytest.raises(DecisionError, match="is wrong and right"):
        mender.learn(fields, [row, {"row": 0, "column": "weight", "value": row["value"], "verdict": "right"}])
    assert mender.model_ is untaught.model_


def test_repairs_of_numbers_stay_numbers() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=120).round(2), "b": rng.integers(0, 9, 120), "id": np.arange(120)})
    with pytest.warns(UserWarning, match="Left out of the model"):
        mender = CellMender(**SMALL).fit(table)
    given = {"row": 3, "column": "b", "value": int(table["b"][3]), "verdict": "wrong", "repair": 12}
    number = {"row": 4, "column": "id", "value": 4, "verdict": "wrong", "repair": "44"}
    repaired = mender.learn(table, [given, number]).repair(table)
    assert (repaired["b"][3], repaired["id"][4]) == (12, 44)
    assert repaired.dtypes.equals(table.dtypes)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_cells_that_should_be_empty_are_emptied_and_columns_keep_their_types(frame: type) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=120).round(2), "b": rng.integers(0, 9, 120)})
    table.loc[[3, 9, 20, 40], "a"] = 999.0
    empty = [{"row": row, "column": "a", "value": 999, "verdict": "wrong", "repair": ""} for row in (3, 9)]
    empty += [{"row": 5, "column": "b", "value": int(table["b"][5]), "verdict": "wrong", "repair": ""}]
    fine = [{"row": row, "column": "a", "value": table["a"][row], "verdict": "right"} for row in (1, 2, 4, 5)]
    given = frame({name: table[name].to_numpy() for name in table})
    repaired = CellMender(**SMALL).fit(given).learn(given, empty + fine).repair(given)
    assert np.flatnonzero(np.isnan(repaired["a"].to_numpy())).tolist() == [3, 9, 20, 40]
    assert repaired["b"].dtype == given["b"].dtype


# ---------------------------------------------------------------- how far decisions carry


def cities(rows: int = 300) -> pd.DataFrame:
    """Towns with some slips, that are flagged, and numbers of which some are written in another way."""
    rng = np.random.default_rng(0)
    town = np.array(["Hamburg", "Dresden", "Bremen", "Leipzig"])[rng.integers(0, 4, rows)].astype(object)
    town[::25] = [text[:-2] + "x" + text[-2:] for text in town[::25]]
    return pd.DataFrame({"town": town, "size": [str(number) for number in rng.integers(100, 999, rows)]})


def right(table: pd.DataFrame, row: int, column: str) -> dict[str, object]:
    return {"row": row, "column": column, "value": table[column][row], "verdict": "right"}


def test_that_other_cells_are_right_takes_nothing_from_a_flag() -> None:
    table = harvest()
    table.loc[50::25, "crop"] = [text[:2] + "q" + text[2:] for text in table["crop"][50::25]]
    mender = CellMender(**SMALL).fit(table)
    decided = [verdict(table, row, name) for row in TWENTY for name in table]
    slips = range(50, len(table), 25)
    before, after = (suspicion(each, table)[slips, 0] for each in (mender, copy.copy(mender).learn(table, decided)))
    assert (before >= 0.9).all()
    assert (after >= before).all()


def test_flags_fall_once_flagged_cells_were_decided_to_be_right() -> None:
    table = cities()
    mender = CellMender(**SMALL).fit(table)
    before = suspicion(mender, table)[:, 0]
    odd = [{"row": row, "column": "size", "value": table["size"][row], "verdict": "wrong"} for row in (1, 2)]
    fine = [right(table, row, "town") for row in np.flatnonzero(before >= 0.5)[:6].tolist()]
    after = suspicion(copy.copy(mender).learn(table, [*odd, *fine]), table)[:, 0]
    others = np.flatnonzero(before >= 0.5)[6:]
    assert (after[others] < before[others]).all()


def test_a_single_decision_does_not_condemn_a_column(untaught: CellMender, fields: pd.DataFrame) -> None:
    odd = {"row": 7, "column": "crop", "value": fields["crop"][7], "verdict": "wrong"}
    fine = [right(fields, row, "crop") for row in (8, 9)]
    changed = copy.copy(untaught).learn(fields, [odd, *fine]).learned_
    same = fields.index[(fields == fields.loc[7]).all(axis=1)]  # the same row, wherever it stands
    assert set(changed["row"]) <= set(same)


def test_decisions_about_odd_cells_are_not_taken_for_what_holds_of_all_others() -> None:
    table = cities(1000)
    mender = CellMender(**SMALL).fit(table)
    odd = np.flatnonzero(suspicion(mender, table)[:, 0] >= 0.5).tolist()
    wrong = [{"row": row, "column": "town", "value": table["town"][row], "verdict": "wrong"} for row in odd[:12]]
    learned = copy.copy(mender).learn(table, [*wrong, *(right(table, row, "town") for row in odd[12:15])])
    flagged = suspicion(learned, table) >= 0.5
    assert set(np.flatnonzero(flagged[:, 0])) == set(odd) - set(odd[12:15])
    assert flagged[:, 1:].sum() <= (suspicion(mender, table)[:, 1:] >= 0.5).sum()


# ---------------------------------------------------------------- asking


def test_questions_are_about_undecided_cells_of_several_columns(untaught: CellMender, fields: pd.DataFrame) -> None:
    asked = taught(untaught, fields, range(4)).questions(fields, 12)
    assert len(asked) == 12
    assert set(asked["column"]) == {"crop", "weight"}
    assert not ((asked["column"] == "weight") & (asked["row"] < 4)).any()
    assert (asked["speaks_for"] >= 0).all()
    assert len(set(zip(asked["row"], asked["column"], strict=True))) == 12
    for row, column, value in zip(asked["row"], asked["column"], asked["value"], strict=True):
        assert fields[column][row] == value


def test_whole_rows_can_be_asked_for(untaught: CellMender, fields: pd.DataFrame) -> None:
    asked = untaught.questions(fields, 3, whole_rows=True)
    assert asked["row"].nunique() == 3
    assert len(asked) == 6


def test_questions_come_in_the_kind_of_the_table(untaught: CellMender, fields: pd.DataFrame) -> None:
    asked = untaught.questions(pl.from_pandas(fields), 2)
    assert isinstance(asked, pl.DataFrame)
    assert asked.columns == ["row", "column", "value", "suspicion", "repair", "cause", "speaks_for"]


def test_the_number_of_questions_is_checked(untaught: CellMender, fields: pd.DataFrame) -> None:
    with pytest.raises(SettingError, match="n must be a whole number from 1"):
        untaught.questions(fields, 0)
