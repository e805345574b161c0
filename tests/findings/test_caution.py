"""Flagging is not repairing: what may be right is left for a person, and protected columns stay."""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cellmend import CellMender, SettingError, cli
from cellmend.findings.expectation import expect
from cellmend.findings.finder import Finder
from cellmend.findings.wording import Wording
from cellmend.model.judge import Judge
from cellmend.streaming import find_batch
from cellmend.table.frames import read_frame
from tests.conftest import KINDS, SMALL, mixed_table, one_batch


def spoiled() -> pd.DataFrame:
    table = mixed_table()
    table.loc[[7, 8], "height"] = [999.0, 190.5]
    table.loc[11, "city"] = "Rmoe"
    return table


def cautious(fitted: CellMender, **settings: object) -> CellMender:
    """The same model with other settings."""
    return copy.copy(fitted).set_params(**settings)


def changed_cells(before: pd.DataFrame, after: pd.DataFrame) -> set[tuple[int, str]]:
    differ = ((before != after) & ~(before.isna() & after.isna())).to_numpy()
    return {(int(row), before.columns[place]) for row, place in zip(*differ.nonzero(), strict=True)}


def test_only_repairs_that_are_sure_enough_are_made_and_the_others_say_what_the_cells_probably_were(fitted) -> None:
    table = spoiled()
    eager = cautious(fitted, repair_from=1e-9).mend(table, top=30)
    probabilities = sorted(each.repair_probability for each in eager.found if each.repair is not None)
    least = probabilities[len(probabilities) // 2]
    strict = cautious(fitted, repair_from=least).mend(table, top=30)
    assert [(each.row, each.column) for each in strict.found] == [(each.row, each.column) for each in eager.found]
    repaired = {(each.row, each.column) for each in strict.found if each.repair is not None}
    sure = [each for each in eager.found if each.repair_probability >= least and each.repair is not None]
    assert repaired == {(each.row, each.column) for each in sure}
    assert changed_cells(table, strict.repaired) <= repaired
    left = [each for each in strict.found if each.repair is None]
    assert left
    assert all("Left as it is: " in each.reason or "Abstained: " in each.reason for each in left)


def test_a_placeholder_is_never_a_repair(fitted) -> None:
    table = spoiled()
    table.loc[[20, 21, 22, 23], "city"] = "***"
    mended = cautious(fitted, repair_from=1e-9).mend(table, top=200)
    assert any(each.repair is not None for each in mended.found)
    assert not [each for each in mended.found if each.repair in ("***", "", "n/a")]


def test_by_default_no_repair_is_made_that_is_less_probable_than_nine_tenths(fitted) -> None:
    table = spoiled()
    mended = fitted.mend(table, top=40)
    assert any(each.suspicion < 0.9 for each in mended.found)
    assert all(each.repair_probability >= 0.9 for each in mended.found if each.repair is not None)
    sure = {(each.row, each.column) for each in mended.found if each.repair_probability >= 0.9}
    assert changed_cells(table, mended.repaired) <= sure


def test_a_protected_column_is_flagged_and_never_changed_not_even_its_gaps(fitted) -> None:
    table = spoiled()
    eager = cautious(fitted, protect=["height", "city"], repair_from=1e-9)
    mended = eager.mend(table, impute=True, top=40)
    city = next(each for each in mended.found if (each.row, each.column) == (11, "city"))
    assert city.repair is None
    assert "the column is protected; it was probably Rome" in city.reason
    pd.testing.assert_series_equal(mended.repaired["height"], table["height"])
    pd.testing.assert_series_equal(mended.repaired["city"], table["city"])
    assert fitted.mend(table, impute=True).repaired["city"].notna().all(), "gaps of other columns are filled"


def test_a_column_to_protect_must_be_there_which_is_said_before_training(monkeypatch) -> None:
    monkeypatch.setattr("cellmend.estimator.learn", lambda *_: pytest.fail("it trained"))
    with pytest.raises(SettingError, match=r"'heigth' is none. Did you mean 'height'\?"):
        CellMender(**SMALL, protect=["heigth"], schema=KINDS).fit(mixed_table())


@pytest.mark.parametrize("wrong", [0, 1.5, "high"])
def test_repair_from_is_a_probability(wrong: object) -> None:
    with pytest.raises(SettingError, match="repair_from must be above 0 and at most 1"):
        CellMender(**SMALL, repair_from=wrong, schema=KINDS).fit(mixed_table())


def test_a_stream_is_as_cautious(fitted) -> None:
    batch = one_batch(pa.Table.from_pandas(spoiled(), preserve_index=False))
    lines = find_batch(cautious(fitted, protect=["height"], repair_from=1e-9), batch, least=1e-3).to_pylist()
    assert {line["repair"] for line in lines if line["column"] == "height"} == {None}
    assert any(line["repair"] for line in lines)


def test_what_lies_between_two_humps_is_no_repair(fitted, monkeypatch) -> None:
    """The mean of a distribution with two humps is a value that the column hardly ever has."""
    eager, table = cautious(fitted, repair_from=1e-9), spoiled()
    whole = np.ones(table.shape, dtype=bool)

    def by_network() -> set[str]:
        judge = Judge(eager.model_, eager.settings())
        encoded = judge.encode(eager.model_.reader.read(read_frame(table)))
        words = Wording(encoded.table, eager.encoder_)
        _, hypotheses, _ = Finder(judge).hypotheses(encoded, judge.suspicion(encoded), whole, words)
        return {each.source for own in hypotheses for each in own}

    assert "number" in by_network()
    monkeypatch.setattr(
        "cellmend.findings.finder.expect", lambda *asked: [replace(each, outside=True) for each in expect(*asked)]
    )
    assert "number" not in by_network()


# ---------------------------------------------------------------- on the command line


@pytest.fixture
def folder(fitted, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "m.cellmend")
    spoiled().to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def here(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cellmend", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def repair(folder: Path, monkeypatch, *options: str, output: str = "out.csv") -> int:
    where = [str(folder / "new.csv"), "-m", str(folder / "m.cellmend"), "-o", str(folder / output)]
    return here(monkeypatch, "repair", *where, "-q", *options)


def test_repair_also_writes_the_findings(folder, monkeypatch) -> None:
    assert repair(folder, monkeypatch, "--top", "40") == 0
    findings = pd.read_csv(folder / "out.findings.csv")
    assert (7, "height") in set(zip(findings["row"], findings["column"], strict=True))
    assert repair(folder, monkeypatch) == 1, "they are there already"


def test_a_dry_run_of_repair_writes_findings_and_no_copy(folder, monkeypatch) -> None:
    assert repair(folder, monkeypatch, "--dry-run") == 0
    assert sorted(each.name for each in folder.iterdir()) == ["m.cellmend", "new.csv", "out.findings.csv"]


@pytest.mark.parametrize("output", ["out.csv", "out"])
def test_protected_columns_stay_on_the_command_line_too(folder, monkeypatch, output: str) -> None:
    assert repair(folder, monkeypatch, "--protect", "height", "--protect", "city", output=output) == 0
    copied = pd.read_csv(folder / output) if output == "out.csv" else pd.read_parquet(folder / "out" / "repaired")
    assert float(copied["height"].tolist()[7]) == 999.0
    assert copied["city"].tolist()[11] == "Rmoe"


def test_a_dry_run_of_clean_writes_findings_and_report_only(folder, monkeypatch, capsys) -> None:
    wanted = ["clean", str(folder / "new.csv"), "-o", str(folder / "out"), "--time-limit", "0.1", "--json"]
    assert here(monkeypatch, *wanted, "--dry-run", "--repair-from", "0.95") == 0
    assert sorted(each.name for each in (folder / "out").iterdir()) == ["findings.csv", "report.html"]
    assert len(json.loads(capsys.readouterr().out)["written"]) == 2


def test_a_least_suspicion_that_cannot_be_is_wrong_use(folder, monkeypatch, capsys) -> None:
    assert repair(folder, monkeypatch, "--repair-from", "2") == 2
    assert "repair_from must be above 0 and at most 1" in " ".join(capsys.readouterr().err.replace("│", " ").split())


# ---------------------------------------------------------------- nightly runs that watch for something


@pytest.mark.parametrize(("most", "code"), [
    ("findings>5000", 0), ("findings>0", 3), ("findings", 3), ("findings > 0.1 %", 3), ("findings>99%", 0),
    ("findings>0.5", 2), ("moved:", 2), ("gremlins", 2),
])  # fmt: skip
def test_a_run_fails_with_its_own_code_if_there_are_more_findings_than_allowed(folder, monkeypatch, most, code) -> None:
    assert repair(folder, monkeypatch, "--fail-if", most, "--top", "5") == code
    assert (folder / "out.csv").exists() == (code != 2), "results are written all the same"


@pytest.mark.parametrize("output", ["scores.csv", "scores"])
def test_scoring_fails_with_its_own_code_if_a_column_moved(folder, monkeypatch, capsys, output: str) -> None:
    where = [str(folder / "new.csv"), "-m", str(folder / "m.cellmend"), "-q", "--fail-if", "moved"]
    assert here(monkeypatch, "score", *where, "-o", str(folder / f"usual-{output}")) == 0
    spoiled().assign(city="Lima").to_csv(folder / "new.csv", index=False)
    assert here(monkeypatch, "score", *where, "-o", str(folder / output)) == 3
    assert "Failed, as --fail-if says: city moved." in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("command", "output"), [("repair", "out.csv"), ("repair", "out"), ("report", "out.html")])
@pytest.mark.parametrize(("watched", "code"), [("moved", 3), ("moved:city", 3), ("moved:height", 0), ("moved:cty", 1)])
def test_every_command_by_a_model_fails_if_a_watched_column_moved(
    folder, monkeypatch, capsys, command: str, output: str, watched: str, code: int
) -> None:
    spoiled().assign(city="Lima").to_csv(folder / "new.csv", index=False)
    where = [str(folder / "new.csv"), "-m", str(folder / "m.cellmend"), "-o", str(folder / output)]
    assert here(monkeypatch, command, *where, "--fail-if", watched) == code
    said = " ".join(capsys.readouterr().err.split())
    assert ("Failed, as --fail-if says: city moved." in said) == (code == 3)
    assert ("Did you mean 'city'?" in said) == (code == 1)
    assert (folder / output).exists() == (code != 1)


@pytest.mark.parametrize(
    ("command", "watched"),
    [(("score", "-m", "m.cellmend"), "findings>3"), (("clean",), "moved"), (("clean",), "moved:a")],
)
def test_what_a_command_cannot_watch_is_refused(folder, monkeypatch, capsys, command, watched: str) -> None:
    monkeypatch.chdir(folder)
    assert here(monkeypatch, command[0], "new.csv", *command[1:], "-o", "out", "--fail-if", watched) == 2
    assert "Hint:" in " ".join(capsys.readouterr().err.split())
    assert not (folder / "out").exists()


def test_repairing_into_a_folder_says_what_is_written_otherwise_and_what_nobody_knows(
    folder, monkeypatch, capsys
) -> None:
    table = spoiled().assign(remark="hello", height=lambda t: t["height"].astype(str).str.replace(".", ","))
    table.to_csv(folder / "new.csv", index=False, sep=";")
    learned = CellMender(**SMALL, schema=KINDS).fit(spoiled().astype({"height": str}))
    learned.save(folder / "m.cellmend")
    where = ["repair", str(folder / "new.csv"), "-m", str(folder / "m.cellmend"), "-o", str(folder / "out"), "--json"]
    assert here(monkeypatch, *where) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert notes[0] == "Not known to the model and left as it is: remark."
    assert notes[1].startswith("height: written with a decimal comma")


@pytest.mark.parametrize("command", ["score", "repair", "report", "update"])
def test_every_command_takes_columns_in_any_order_and_leaves_others_alone(folder, monkeypatch, capsys, command) -> None:
    table = spoiled().assign(remark="hello")
    table[["remark", *reversed(spoiled().columns)]].to_csv(folder / "new.csv", index=False)
    out = {"score": "out.csv", "repair": "out.csv", "report": "out.html", "update": "n.cellmend"}[command]
    where = [command, str(folder / "new.csv"), "-m", str(folder / "m.cellmend"), "-o", str(folder / out)]
    options = {"update": ["--time-limit", "0.1"], "repair": ["--top", "40", "--repair-from", "0.000001"]}
    assert here(monkeypatch, *where, *options.get(command, [])) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "Not known to the model and left as it is: remark." in said
    if command == "repair":
        copied = pd.read_csv(folder / out)
        assert list(copied.columns) == ["remark", *reversed(spoiled().columns)]
        assert (copied["remark"] == "hello").all()
        assert copied["city"].tolist()[11] == "Rome"


def test_an_identifier_that_was_copied_is_not_guessed() -> None:
    """The network would say a number that another row has."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"id": rng.permutation(400) + 1000.0, "size": rng.normal(size=400), "weight": rng.random(400)})
    frame.loc[frame.index[:60], "id"] = np.repeat([1007.0, 1020.0, 1030.0, 1100.0, 1200.0, 1300.0], 10)
    schema = {"id": "real", "size": "real", "weight": "real"}
    repaired = CellMender(**SMALL, schema=schema).fit(frame).repair(frame, suspicion=0.01)
    pd.testing.assert_series_equal(repaired["id"], frame["id"])


def test_an_amount_in_a_column_that_is_mostly_0_is_not_overwritten_by_0() -> None:
    rng = np.random.default_rng(4)
    size = rng.normal(size=600)
    paid = np.where(rng.random(600) < 0.06, rng.exponential(20, 600).round(2), 0.0)
    table = pd.DataFrame({"paid": paid, "size": size, "twice": 2 * size + rng.normal(0, 0.01, 600)})
    table.loc[5, "paid"] = -400.0
    settings = SMALL | {"schema": {"paid": "real", "size": "real", "twice": "real"}}
    mended = CellMender(**settings).fit(table).mend(table, suspicion=0.01)
    assert (5, "paid") in {(each.row, each.column) for each in mended.found}
    assert (mended.repaired["paid"] == table["paid"])[table["paid"] > 0].all()
