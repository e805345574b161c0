from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cellmend
from cellmend import __version__, cli
from cellmend.files.formats import read_file
from cellmend.files.places import filesystem, whole_file
from tests.conftest import mixed_table


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as a user runs it; one thread, so that a busy machine does not slow it much."""
    command = [sys.executable, "-m", "cellmend.cli", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)  # noqa: S603


def here(monkeypatch, *arguments: str) -> int:
    """Exit code of a command, run in this process, which has the libraries loaded."""
    monkeypatch.setattr(sys, "argv", ["cellmend", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def said_by(capsys) -> str:
    """What was told on standard error since the last time, without its frames and line breaks."""
    return re.sub(r"[\s│]+", " ", capsys.readouterr().err)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, run("demo", "-o", str(folder / "out"), "--seed", "0")


@pytest.mark.process
def test_the_demo_finds_real_typing_errors(demo) -> None:
    folder, done = demo
    assert done.returncode == 0, done.stderr
    findings = pd.read_csv(folder / "out" / "findings.csv")
    found = {(line.row, line.column, line.value) for line in findings.astype({"value": str}).itertuples()}
    assert {(2692, "y", "58.9"), (5359, "z", "31.8"), (5458, "y", "31.8")} <= found
    assert "Most suspicious cells" in done.stdout
    assert "cells look wrong" in done.stderr


@pytest.mark.process
def test_the_demo_changes_flagged_cells_only(demo) -> None:
    folder, _ = demo
    findings = pd.read_csv(folder / "out" / "findings.csv")
    repaired = pd.read_csv(folder / "out" / "repaired.csv")
    original = pd.read_csv(cli.files("cellmend") / "data" / "diamonds.csv.gz")
    changed = (repaired != original).stack()
    places = set(changed[changed].index)
    made = findings[findings["repair"].notna()]
    assert places == set(zip(made["row"], made["column"], strict=True))


@pytest.mark.process
def test_the_demo_explains_by_the_columns_that_matter(demo) -> None:
    folder, _ = demo
    findings = pd.read_csv(folder / "out" / "findings.csv")
    worst = findings[(findings["row"] == 5359) & (findings["column"] == "z")].iloc[0]
    assert worst["reason"] == "31.8 is probably 3.18, with the decimal point moved"
    assert 3.0 < worst["low"] < 3.18 < worst["high"] < 3.4
    assert float(worst["repair"]) == 3.18
    told = findings[findings["value"].astype(str) == "0.0"]
    assert told["reason"].str.contains("for ").any()
    assert told["repair"].isna().all(), "what the network works out was never typed"


@pytest.mark.process
def test_the_demo_overwrites_nothing_unless_forced(demo, monkeypatch, capsys) -> None:
    folder, _ = demo
    before = (folder / "out" / "findings.csv").read_bytes()
    assert here(monkeypatch, "demo", "-o", str(folder / "out")) == 1
    assert "is there already. Hint:" in said_by(capsys)
    assert (folder / "out" / "findings.csv").read_bytes() == before
    written = ["findings.csv", "model.cellmend", "original.csv", "repaired.csv", "report.html", "source.json"]
    assert sorted(path.name for path in (folder / "out").iterdir()) == written


@pytest.mark.process
def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"cellmend {__version__}\n")


@pytest.mark.parametrize("wrong", [["--colour"], ["--seed", "-1"]])
def test_a_wrong_option_is_wrong_use(wrong: list[str], monkeypatch) -> None:
    assert here(monkeypatch, "demo", *wrong) == 2


def test_a_device_that_is_not_there_is_one_sentence(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "people.csv").write_text(people(30))
    table, out = str(tmp_path / "people.csv"), str(tmp_path / "out")
    assert here(monkeypatch, "clean", table, "-o", out, "--device", "abacus") == 1
    assert "'abacus' is none" in said_by(capsys)
    assert not (tmp_path / "out").exists()


def test_errors_of_cellmend_are_one_sentence_and_others_are_not_hidden(monkeypatch, capsys) -> None:
    from cellmend import TableError

    def fails_with(error: BaseException):
        def fail() -> None:
            raise error

        return fail

    monkeypatch.setattr(cli, "app", fails_with(TableError("A table must be clean.")))
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    assert capsys.readouterr().err == "cellmend: A table must be clean.\n"
    monkeypatch.setattr(cli, "app", fails_with(KeyboardInterrupt()))
    with pytest.raises(SystemExit, match="130"):
        cli.main()
    monkeypatch.setattr(cli, "app", fails_with(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_the_schema_of_a_messy_file_is_printed(tmp_path, monkeypatch, capsys) -> None:
    rows = "".join(f"{row:05};{row},5 kg;{'ab'[row % 2]}\n" for row in range(60))
    (tmp_path / "t.csv").write_text("code;size;city\n" + rows)
    assert here(monkeypatch, "schema", str(tmp_path / "t.csv")) == 0
    shown = capsys.readouterr().out
    assert "size: real" in shown
    assert "city: category" in shown
    assert "identifier" in shown
    assert here(monkeypatch, "schema", str(tmp_path / "none.csv")) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "there is none" in shown.err


# ---------------------------------------------------------------- one step at a time


UNSURE = ("--repair-from", "0.5")  # lengths are rounded, so that a weight worked out from one may be off by .1 kg


def people(rows: int = 400) -> str:
    """A semicolon file with decimal commas, a unit, gaps and two planted errors."""
    x = np.random.default_rng(0).normal(size=rows)
    lines = ["id;weight;length;size"]
    for row, value in enumerate(x):
        weight = "n/a" if row == 3 else f"{(50 + 5 * value) * (10 if row == 7 else 1):.1f} kg".replace(".", ",")
        size = "large" if value > 0 else "small"
        lines.append(f"A{row:04};{weight};{10 + value:.2f};{'smakl' if row == 9 else size}".replace(".", ","))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clean")
    (folder / "people.csv").write_text(people(200))
    return folder, run("clean", str(folder / "people.csv"), "-o", str(folder / "out"), "--json", *UNSURE)


@pytest.mark.process
def test_clean_writes_findings_a_repaired_copy_a_report_and_a_model(cleaned) -> None:
    folder, done = cleaned
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["columns"], summary["table"]) == (200, 4, "people.csv")
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "findings.csv", "model.cellmend", "repaired.csv", "report.html", "source.json",
    ]  # fmt: skip
    findings = pd.read_csv(folder / "out" / "findings.csv")
    assert summary["flagged"] == len(findings)
    assert {(7, "weight"), (9, "size")} <= set(zip(findings["row"], findings["column"], strict=True))
    before, after = people(200).splitlines(), (folder / "out" / "repaired.csv").read_text().splitlines()
    assert after[8].split(";")[1].endswith(" kg")
    assert after[8] != before[8]
    assert after[4] == before[4], "a missing cell stays"
    assert any("numbers with the unit kg" in note for note in summary["notes"])
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert f"cellmend review {shlex.quote(str(folder / 'out'))}<" in page
    assert any("identifier" in note for note in summary["notes"])
    assert "cells look wrong" in done.stderr


@pytest.mark.process
def test_a_saved_model_scores_repairs_and_reports_newer_data(cleaned, tmp_path, monkeypatch, capsys) -> None:
    folder, _ = cleaned
    model, new = str(folder / "out" / "model.cellmend"), tmp_path / "new.csv"
    new.write_text("\n".join(people(200).splitlines()[:20]) + "\n")
    assert here(monkeypatch, "score", str(new), "-m", model, "-o", str(tmp_path / "scores.parquet")) == 0
    scores = pd.read_parquet(tmp_path / "scores.parquet")
    assert list(scores.columns) == ["id", "weight", "length", "size", "row_score"]
    assert scores.loc[7, "weight"] > 0.9
    np.testing.assert_allclose(scores["row_score"], scores.drop(columns="row_score").sum(axis=1))
    done = run("repair", str(new), "-m", model, "-o", "-", "--suspicion", "0.9", "-q", *UNSURE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "id;weight;length;size"
    assert done.stdout.splitlines()[8] != new.read_text().splitlines()[8]
    assert done.stderr == ""
    capsys.readouterr()
    report = ["report", str(new), "-m", model, "-o", str(tmp_path / "r.html"), "--top", "3", "--json"]
    assert here(monkeypatch, *report) == 0
    assert json.loads(capsys.readouterr().out)["flagged"] == 3
    page = (tmp_path / "r.html").read_text()
    assert page.startswith("<!")
    assert "model.cellmend" in page
    assert "fitted on" not in page, "it was fitted to another table"


@pytest.fixture
def nightly(fitted, tmp_path, monkeypatch) -> Path:
    """A folder with a model and a Parquet file that is large enough to be scored in four pieces."""
    monkeypatch.setattr("cellmend.streaming.limits.PIECE", 30)
    monkeypatch.setattr("cellmend.streaming.limits.LARGE", 30)
    fitted.save(tmp_path / "m.cellmend")
    mixed_table().to_parquet(tmp_path / "new.parquet", index=False)
    return tmp_path


def score_nightly(folder: Path, output: str, monkeypatch, *options: str, name: str = "new.parquet") -> int:
    """Exit code of scoring the file of a `nightly` folder, in this process."""
    return here(monkeypatch, "score", str(folder / name), "-m", str(folder / "m.cellmend"), "-o", output, *options)


def test_a_table_is_scored_into_a_folder_and_taken_up_again(nightly, monkeypatch, capsys) -> None:
    out = nightly / "scores"
    assert score_nightly(nightly, str(out), monkeypatch, "-q") == 0
    assert [path.name for path in sorted(out.iterdir())] == ["_manifest.json", "part-00000.parquet"]
    scores = pd.read_parquet(out / "part-00000.parquet")
    assert score_nightly(nightly, str(nightly / "scores.parquet"), monkeypatch, "-q") == 0
    assert scores.equals(pd.read_parquet(nightly / "scores.parquet"))
    written = (out / "part-00000.parquet").stat().st_mtime_ns
    assert score_nightly(nightly, str(out), monkeypatch, "-q") == 0
    assert (out / "part-00000.parquet").stat().st_mtime_ns == written, "nothing is done twice"
    mixed_table(90).to_parquet(nightly / "new.parquet", index=False)
    assert score_nightly(nightly, str(out), monkeypatch, "-q") == 1
    assert "holds the results of another run" in said_by(capsys)
    assert score_nightly(nightly, str(out), monkeypatch, "-q", "--force") == 0
    assert len(pd.read_parquet(out / "part-00000.parquet")) == 90


def test_a_csv_file_is_scored_into_a_folder_too(nightly, monkeypatch, capsys) -> None:
    mixed_table().to_csv(nightly / "new.csv", index=False)
    assert score_nightly(nightly, str(nightly / "scores"), monkeypatch, "-q", name="new.csv") == 0
    assert len(pd.read_parquet(nightly / "scores" / "part-00000.parquet")) == 120
    (nightly / "new.jsonl").write_text("{}")
    assert score_nightly(nightly, str(nightly / "other"), monkeypatch, "-q", name="new.jsonl") == 1
    assert "must be Parquet, Arrow or CSV files" in said_by(capsys)


def test_a_table_is_repaired_into_a_folder_with_its_findings(nightly, monkeypatch, capsys) -> None:
    table = mixed_table()
    table.loc[7, "height"] = 999.0
    table.to_parquet(nightly / "new.parquet", index=False)
    arguments = ["repair", str(nightly / "new.parquet"), "-m", str(nightly / "m.cellmend"), "-o", str(nightly / "out")]
    assert here(monkeypatch, *arguments, "--json", "--suspicion", "0.5") == 0
    said = json.loads(capsys.readouterr().out)
    found = pd.read_parquet(nightly / "out" / "findings")
    repaired = pd.read_parquet(nightly / "out" / "repaired")
    assert said["rows"] == 120
    assert said["flagged"] >= 1
    assert (7, "height") in set(zip(found["row"], found["column"], strict=True))
    assert said["repaired"] == found["repair"].notna().sum()
    assert repaired.drop(columns=found["column"].unique()).equals(table.drop(columns=found["column"].unique()))
    assert list(repaired.dtypes) == list(table.dtypes)


@pytest.mark.slow
def test_a_small_table_behind_a_url_is_read_by_every_command(nightly, monkeypatch) -> None:
    system, folder = filesystem("memory://nightly")
    system.create_dir(folder)
    with system.open_output_stream(f"{folder}/new.parquet") as file:
        file.write((nightly / "new.parquet").read_bytes())
    url, model, out = "memory://nightly/new.parquet", str(nightly / "m.cellmend"), nightly / "scores.csv"
    assert here(monkeypatch, "score", url, "-m", model, "-o", str(out), "-q") == 0
    assert len(pd.read_csv(out)) == 120
    assert here(monkeypatch, "update", url, "-m", model, "-q", "--time-limit", "1") == 0
    assert here(monkeypatch, "clean", url, "-o", str(nightly / "cleaned"), "-q", "--time-limit", "1") == 0
    assert len(pd.read_parquet(nightly / "cleaned" / "repaired")) == 120


@pytest.mark.parametrize("name", ["new.parquet", "new.csv.gz"])
def test_commands_that_hold_the_table_read_it_behind_a_url_too(nightly, monkeypatch, capsys, name: str) -> None:
    mixed_table().to_csv(nightly / "new.csv.gz", index=False)
    system, folder = filesystem("memory://held")
    system.create_dir(folder)
    with system.open_output_stream(f"{folder}/{name}", compression=None) as file:
        file.write((nightly / name).read_bytes())
    url, model, copy = f"memory://held/{name}", str(nightly / "m.cellmend"), nightly / name.replace("new", "copy")
    assert here(monkeypatch, "schema", url) == 0
    assert "height: real" in capsys.readouterr().out
    assert here(monkeypatch, "report", url, "-m", model, "-o", str(nightly / "r.html"), "-q") == 0
    assert name in (nightly / "r.html").read_text()
    assert here(monkeypatch, "repair", url, "-m", model, "-o", str(copy), "-q") == 0
    assert len(read_file(copy).table) == 120
    assert here(monkeypatch, "evaluate", url, "-q", "--json", "--time-limit", "0.1") == 0
    assert here(monkeypatch, "score", url, "-m", model, "-o", str(nightly / "scores"), "-q") == 0
    assert len(pd.read_parquet(nightly / "scores")) == 120
    assert here(monkeypatch, "schema", "memory://held/none.csv") == 1
    assert "memory://held/none.csv must be a file or a folder with a table" in said_by(capsys)


def test_a_model_learns_from_a_very_large_table(nightly, monkeypatch, capsys) -> None:
    monkeypatch.setattr("cellmend.streaming.limits.VERY_LARGE", 100)
    monkeypatch.setattr("cellmend.streaming.limits.LEARNED", 90)
    before = (nightly / "m.cellmend").read_bytes()
    arguments = ["update", str(nightly / "new.parquet"), "-m", str(nightly / "m.cellmend"), "--json", "-q"]
    assert here(monkeypatch, *arguments, "--time-limit", "1") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 90
    assert (nightly / "m.cellmend").read_bytes() != before


@pytest.mark.slow
def test_a_very_large_table_is_cleaned_without_being_held(nightly, monkeypatch, capsys) -> None:
    monkeypatch.setattr("cellmend.streaming.limits.VERY_LARGE", 100)
    monkeypatch.setattr("cellmend.streaming.limits.LEARNED", 100)
    table = mixed_table(300).drop(columns=["id", "country"])
    table.loc[7, "height"] = 999.0
    table.to_parquet(nightly / "new.parquet", index=False)
    arguments = ["clean", str(nightly / "new.parquet"), "-o", str(nightly / "out"), "--time-limit", "2"]
    assert here(monkeypatch, *arguments) == 0
    shown = said_by(capsys)
    assert "of 300 rows, drawn at random" in shown
    assert sorted(path.name for path in (nightly / "out").iterdir()) == [
        "findings",
        "model.cellmend",
        "repaired",
        "report.html",
        "source.json",
    ]
    assert len(pd.read_parquet(nightly / "out" / "repaired")) == 300
    written = (nightly / "out" / "model.cellmend").stat().st_mtime_ns
    assert here(monkeypatch, *arguments, "-q") == 0
    assert (nightly / "out" / "model.cellmend").stat().st_mtime_ns == written, "it goes on with its model"
    (nightly / "out" / "decisions.jsonl").write_text("")
    table[::-1].to_parquet(nightly / "new.parquet", index=False)
    assert here(monkeypatch, *arguments, "--force") == 0
    assert "about another table is now in" in said_by(capsys)
    assert [path.name for path in (nightly / "out" / "earlier-1").iterdir()] == ["decisions.jsonl"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--engine", "spark"), "--engine must be here or ray"),
        (("--workers", "2"), "are for --engine ray"),
        (("--engine", "ray"), "With --engine ray results are a folder"),
    ],
)
def test_engines_that_are_misnamed_are_wrong_use(nightly, options, said: str, monkeypatch, capsys) -> None:
    assert score_nightly(nightly, str(nightly / "scores.csv"), monkeypatch, *options) == 2
    assert said in said_by(capsys)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_large_parquet_file_is_scored_with_one_bar(nightly, suffix: str, monkeypatch, capsys) -> None:
    out = nightly / f"scores{suffix}"
    assert score_nightly(nightly, str(out), monkeypatch) == 0
    scores = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
    assert list(scores.columns) == [*mixed_table().columns, "row_score"]
    assert len(scores) == 120
    assert capsys.readouterr().err.count("Scoring") == 1
    assert score_nightly(nightly, str(out), monkeypatch) == 1, "it is there already"


@pytest.mark.parametrize(("large", "end"), [(30, ".csv"), (1000, ".csv"), (30, "")], ids=["pieces", "whole", "folder"])
def test_scoring_tells_of_columns_that_moved(nightly, monkeypatch, capsys, large: int, end: str) -> None:
    monkeypatch.setattr("cellmend.streaming.limits.LARGE", large)
    assert score_nightly(nightly, str(nightly / f"a{end}"), monkeypatch) == 0
    assert "moved" not in capsys.readouterr().err
    mixed_table().assign(city="Lima").to_parquet(nightly / "new.parquet", index=False)
    assert score_nightly(nightly, str(nightly / f"b{end}"), monkeypatch) == 0
    said = capsys.readouterr().err
    assert re.search(r"city moved since the model learned: Lima is 100 % of the cells, it was \d\d %\.", said)
    assert "Hint: cellmend update" in said
    assert score_nightly(nightly, str(nightly / f"c{end}"), monkeypatch, "-q") == 0
    assert capsys.readouterr().err == ""


def updated(folder: Path, monkeypatch, *options: str) -> int:
    """Exit code of updating the model of a `nightly` folder, in this process."""
    return here(
        monkeypatch,
        "update",
        str(folder / "new.parquet"),
        "-m",
        str(folder / "m.cellmend"),
        "--time-limit",
        "1",
        *options,
    )


@pytest.mark.slow
def test_a_model_file_is_updated_in_place_or_beside(nightly, monkeypatch, capsys) -> None:
    before = (nightly / "m.cellmend").read_bytes()
    mixed_table().replace({"city": {"Oslo": "Ulm"}}).to_parquet(nightly / "new.parquet", index=False)
    assert updated(nightly, monkeypatch, "-o", str(nightly / "n.cellmend"), "--json") == 0
    said = capsys.readouterr()
    assert (nightly / "m.cellmend").read_bytes() == before
    assert "city learned a new level: Ulm." in json.loads(said.out)["notes"]
    assert "of its cells hold a value that it did not know" in said.err
    assert updated(nightly, monkeypatch, "-o", str(nightly / "n.cellmend"), "-q") == 1, "it is there already"
    assert "--force" in capsys.readouterr().err
    assert updated(nightly, monkeypatch, "-q") == 0
    assert capsys.readouterr().err == ""
    assert (nightly / "m.cellmend").read_bytes() != before
    assert cellmend.load(nightly / "m.cellmend").encoder_.columns[3].levels[-1] == "Ulm"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.rename(columns={"height": "heigth"}), "lacks 'height'. Did you mean 'heigth'?"),
        (lambda t: t.assign(height="tall"), "height"),
    ],
)
def test_an_update_that_fails_is_one_sentence_and_leaves_the_model(nightly, monkeypatch, capsys, change, said) -> None:
    before = (nightly / "m.cellmend").read_bytes()
    change(mixed_table()).to_parquet(nightly / "new.parquet", index=False)
    assert updated(nightly, monkeypatch, "-q") == 1
    err = capsys.readouterr().err
    assert err.startswith("cellmend: ")
    assert said in " ".join(err.split())
    assert (nightly / "m.cellmend").read_bytes() == before
    assert sorted(path.name for path in nightly.iterdir()) == ["m.cellmend", "new.parquet"]


def test_a_large_parquet_file_is_scored_to_standard_output(nightly, monkeypatch, capsysbinary) -> None:
    assert score_nightly(nightly, "-", monkeypatch, "-q") == 0
    shown = capsysbinary.readouterr()
    assert len(shown.out.splitlines()) == 121
    assert shown.err == b""


@pytest.mark.parametrize(
    ("stop", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "Stopped. Nothing was written that is not whole."),
        (OSError(28, "No space left on device"), 1, "cellmend: Something cannot be read or written: the disk is full."),
    ],
)
def test_scoring_that_is_stopped_leaves_the_old_scores(nightly, monkeypatch, capsys, stop, code: int, said) -> None:
    judged = []

    def stopped(self, table) -> tuple[np.ndarray, np.ndarray]:
        judged.append(table)
        if len(judged) == 3:
            raise stop
        return np.zeros((table.num_rows, table.num_columns)), np.zeros(table.num_rows)

    monkeypatch.setattr("cellmend.estimator.CellMender.score_rows", stopped)
    (nightly / "scores.csv").write_text("old")
    assert score_nightly(nightly, str(nightly / "scores.csv"), monkeypatch, "--force", "-q") == code
    assert capsys.readouterr().err.strip() == said
    assert (nightly / "scores.csv").read_text() == "old"
    assert sorted(path.name for path in nightly.iterdir()) == ["m.cellmend", "new.parquet", "scores.csv"]


def test_fit_keeps_a_model_and_a_schema_can_be_given(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "people.csv").write_text(people(120))
    (tmp_path / "kinds.yaml").write_text("weight: category\n")
    arguments = ["fit", str(tmp_path / "people.csv"), "-m", str(tmp_path / "m.cellmend"), "--time-limit", "1"]
    assert here(monkeypatch, *arguments, "--schema", str(tmp_path / "kinds.yaml")) == 0
    assert cellmend.load(tmp_path / "m.cellmend").schema_["weight"].kind == "category"
    assert here(monkeypatch, *arguments) == 1
    assert "is there already" in said_by(capsys)


@pytest.mark.slow
@pytest.mark.process
def test_standard_input_is_a_table_too(tmp_path) -> None:
    command = [sys.executable, "-m", "cellmend.cli", "clean", "-", "-o", str(tmp_path / "out"), "--time-limit", "1"]
    done = subprocess.run(command, input=people(100).encode(), capture_output=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "repaired.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["claen", "t.csv"], 2, "Did you mean 'clean'?"),
        (["clean", "--fdr", "0.1", "--top", "3", "x.csv"], 2, "Only one of --fdr and --top can be given"),
        (["clean", "x.csv", "--fdr", "2"], 2, "fdr must be between 0 and 1; it is 2.0"),
        (["clean", "peple.csv"], 1, "Did you mean 'people.csv'?"),
        (["clean", "people.pdf"], 1, "must end in one of .csv"),
        (["repair", "people.csv", "-m", "none.cellmend", "-o", "x.csv"], 1, "none.cellmend"),
    ],
)
def test_wrong_use_is_one_clear_sentence(
    tmp_path, monkeypatch, capsys, arguments: list[str], code: int, message: str
) -> None:
    (tmp_path / "people.csv").write_text(people(30))
    (tmp_path / "people.pdf").write_text("no table")
    monkeypatch.chdir(tmp_path)
    assert here(monkeypatch, *arguments) == code
    assert message in said_by(capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "people.pdf"]


@pytest.mark.slow
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_stopped_job_leaves_nothing_half_written(tmp_path, monkeypatch, stop: type[BaseException]) -> None:
    """Stopped while the report, the third of four files, is written."""
    (tmp_path / "people.csv").write_text(people(60))

    def stopped(self, path) -> None:
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise stop

    monkeypatch.setattr("cellmend.jobs.Job.write_report", stopped)
    arguments = ["clean", str(tmp_path / "people.csv"), "-o", str(tmp_path / "out"), "-q", "--time-limit", "1"]
    monkeypatch.setattr(sys, "argv", ["cellmend", *arguments])
    with pytest.raises(SystemExit):
        cli.main()
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"], "all results or none"


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_terminal_that_closes_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    mixed_table().to_csv(tmp_path / "t.csv", index=False)
    command = [sys.executable, "-m", "cellmend.cli", "clean", str(tmp_path / "t.csv"), "-o", str(tmp_path / "out")]

    def listen() -> None:  # what started the tests may not listen, as under nohup
        signal.signal(number, signal.SIG_DFL)

    with subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=listen) as run:  # noqa: S603
        while not (tmp_path / ".out.partial").exists() and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(number)
        run.communicate()
    assert run.returncode == 128 + number
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_names_of_columns_give_a_terminal_no_orders(tmp_path: Path, monkeypatch, capsys) -> None:
    table = pd.DataFrame({"\x1b[2Jsize\x9b": [f"n {n}" for n in range(60)], "b": [n % 7 / 2 for n in range(60)]})
    table.to_csv(tmp_path / "t[bold].csv", index=False)
    (tmp_path / "s.yaml").write_text('"\\e[2Jx": real\n')
    limit = ("--time-limit", "0.1", "-o", str(tmp_path / "out"))
    assert here(monkeypatch, "clean", str(tmp_path / "t[bold].csv"), "--top", "2", *limit) == 0
    assert here(monkeypatch, "clean", str(tmp_path / "t[bold].csv"), "--schema", str(tmp_path / "s.yaml"), *limit) == 1
    assert here(monkeypatch, "schema", str(tmp_path / "t[bold].csv")) == 0
    said = capsys.readouterr()
    assert "\\x1b[2Jsize\\x9b" in said.err + said.out
    assert not {"\x1b", "\x9b"} & {*said.err, *said.out}
