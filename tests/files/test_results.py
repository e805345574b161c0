"""Whole or nothing: result folders appear at once, for one run at a time; what cannot be is told before the work."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cellmend.errors import FileError
from cellmend.files.places import whole_file
from cellmend.files.results import check_outputs, check_room, only_run, result_folder

NAMES = ["findings.csv", "report.html"]


def write(partial: Path, text: str = "new") -> None:
    for name in NAMES:
        (partial / name).write_text(text)


def test_a_new_folder_is_not_there_until_all_of_it_is(tmp_path: Path) -> None:
    with result_folder(tmp_path / "out", NAMES, force=False) as partial:
        write(partial)
        assert not (tmp_path / "out").exists()
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == NAMES
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_files_move_into_a_folder_that_is_there_and_others_in_it_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("findings.csv", "mine.txt"):
        (out / name).write_text("old")
    with pytest.raises(FileError, match=r"findings.csv is there already"), result_folder(out, NAMES, force=False):
        pass
    with result_folder(out, NAMES, force=True) as partial:
        write(partial)
        assert (out / "findings.csv").read_text() == "old"
    assert {each.name: each.read_text() for each in out.iterdir()} == {
        "findings.csv": "new", "report.html": "new", "mine.txt": "old",
    }  # fmt: skip


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, FileError])
def test_a_run_that_stops_leaves_nothing(tmp_path: Path, stop: type[BaseException]) -> None:
    def run() -> None:
        with result_folder(tmp_path / "out", NAMES, force=False) as partial:
            write(partial)
            raise stop

    with pytest.raises(stop):
        run()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_what_a_killed_run_leaves_is_hidden_and_the_next_run_removes_it(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from cellmend.files.results import result_folder
with result_folder(Path(sys.argv[1]), ["findings.csv"], force=False) as partial:
    (partial / "findings.csv").write_text("half")
    print("at work", flush=True)
    time.sleep(600)
"""
    out = tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE) as run:  # noqa: S603
        assert run.stdout.readline() == b"at work\n"
        with pytest.raises(FileError, match="out is being written by another run"), only_run(out):
            pass
        run.send_signal(signal.SIGKILL)
    assert not out.exists()
    assert all(each.name.startswith(".") for each in tmp_path.iterdir())
    with result_folder(out, NAMES, force=False) as partial:
        assert list(partial.iterdir()) == []
        write(partial)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_run_left_beside_a_folder_is_removed_once_the_folder_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / ".out.partial").mkdir()
    (tmp_path / ".out.partial" / "findings.csv").write_text("half")
    (tmp_path / ".out.lock").write_text("")
    with result_folder(out, NAMES, force=False) as partial:
        write(partial)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert sorted(each.name for each in out.iterdir()) == sorted(NAMES)


def test_two_runs_into_one_folder_do_not_both_write(tmp_path: Path) -> None:
    with only_run(tmp_path / "out"):
        with pytest.raises(FileError, match="Hint: wait"), result_folder(tmp_path / "out", NAMES, force=True):
            pass
        with only_run(tmp_path / "other"):
            pass
    with only_run(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_a_killed_process_left_half_written_is_removed_by_the_next(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    half, other = tmp_path / f".m.cellmend.{ended.pid}-1", tmp_path / f".m.cellmend.{os.getpid()}-1"
    half.write_text("half")
    other.write_text("of a process that lives")
    with whole_file(tmp_path / "m.cellmend") as temporary:
        temporary.write_text("whole")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([other.name, "m.cellmend"])


def test_a_full_disk_is_told_before_the_work_with_the_path(tmp_path: Path, monkeypatch) -> None:
    nearly_full = shutil.disk_usage(tmp_path)._replace(free=3 * 2**20)
    monkeypatch.setattr("shutil.disk_usage", lambda _: nearly_full)
    with pytest.raises(FileError, match=r"m.cellmend needs 8 MB of room; the disk has 3 MB left"):
        check_outputs([tmp_path / "m.cellmend"], force=False)


def test_a_read_only_place_is_told_before_the_work_with_the_path(tmp_path: Path, monkeypatch) -> None:
    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(FileError, match=r"out/deep cannot be written: the disk is read-only\.$"):
        check_room(tmp_path / "out" / "deep")


def test_a_file_where_a_folder_should_be_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    refused = pytest.raises(FileError, match="out must be a folder to write into; it is a file")
    with refused, result_folder(tmp_path / "out", ["a"], force=True):
        pytest.fail("the work began")
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"must be in a folder; .*file is a file"):
        check_room(tmp_path / "file" / "out")
    with pytest.raises(FileError, match="must be a file; it is a folder"):
        check_outputs([tmp_path], force=True)
