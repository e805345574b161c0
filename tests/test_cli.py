from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd
import pytest

from cellmend import __version__, cli


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as a user runs it; one thread, so that a busy machine does not slow it much."""
    command = [sys.executable, "-m", "cellmend.cli", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)  # noqa: S603


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, run("demo", "-o", str(folder / "out"), "--seed", "0")


def test_the_demo_finds_real_typing_errors(demo) -> None:
    folder, done = demo
    assert done.returncode == 0, done.stderr
    findings = pd.read_csv(folder / "out" / "findings.csv")
    worst = {(line.row, line.column, float(line.value)) for line in findings.head(3).itertuples()}
    assert worst == {(2692, "y", 58.9), (5359, "z", 31.8), (5458, "y", 31.8)}
    assert "Most suspicious cells" in done.stdout
    assert "cells look wrong" in done.stderr


def test_the_demo_changes_flagged_cells_only(demo) -> None:
    folder, _ = demo
    findings = pd.read_csv(folder / "out" / "findings.csv")
    repaired = pd.read_csv(folder / "out" / "repaired.csv")
    original = pd.read_csv(cli.files("cellmend") / "data" / "diamonds.csv.gz")
    changed = (repaired != original).stack()
    places = set(changed[changed].index)
    assert places
    assert places <= set(zip(findings["row"], findings["column"], strict=True))


def test_the_demo_overwrites_nothing_unless_forced(demo) -> None:
    folder, _ = demo
    before = (folder / "out" / "findings.csv").read_bytes()
    done = run("demo", "-o", str(folder / "out"))
    assert done.returncode == 1
    assert "is there already. Hint:" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert (folder / "out" / "findings.csv").read_bytes() == before
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["findings.csv", "repaired.csv"]


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"cellmend {__version__}\n")


@pytest.mark.parametrize("wrong", [["--colour"], ["--seed", "-1"]])
def test_a_wrong_option_is_wrong_use(wrong: list[str]) -> None:
    assert run("demo", *wrong).returncode == 2


def test_a_device_that_is_not_there_is_one_sentence(tmp_path) -> None:
    done = run("demo", "-o", str(tmp_path / "out"), "--device", "abacus")
    assert done.returncode == 1
    assert "'abacus' is none" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
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


def test_the_schema_of_a_messy_file_is_printed(tmp_path) -> None:
    rows = "".join(f"{row:05};{row},5 kg;{'ab'[row % 2]}\n" for row in range(60))
    (tmp_path / "t.csv").write_text("code;size;city\n" + rows)
    done = run("schema", str(tmp_path / "t.csv"))
    assert done.returncode == 0, done.stderr
    assert "size: real" in done.stdout
    assert "city: category" in done.stdout
    assert "identifier" in done.stdout
    missing = run("schema", str(tmp_path / "none.csv"))
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "there is no such file" in missing.stderr
