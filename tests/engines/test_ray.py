"""The same units on Ray: two nodes on this machine, workers and drivers that are killed, and the same results."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cellmend import CellMender, ModelFileError, engines
from cellmend import streaming as s
from tests.conftest import KINDS, SMALL, mixed_table, one_batch
from tests.engines.conftest import OF_RAY
from tests.streaming.conftest import nothing, result, task_for

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.process, *OF_RAY]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, pa.Table]:
    """A folder of 8 files, a model, and what one batch of all rows says."""
    folder = tmp_path_factory.mktemp("ray")
    table = pa.Table.from_pandas(mixed_table(800), preserve_index=False)
    mender = CellMender(**SMALL | {"epochs": 2}, schema=KINDS).fit(table)
    mender.save(folder / "m.cellmend")
    (folder / "data").mkdir()
    for number in range(8):
        pq.write_table(table.slice(100 * number, 100), folder / "data" / f"{number}.parquet")
    return folder / "data", folder / "m.cellmend", pa.Table.from_batches([s.score_batch(mender, one_batch(table))])


def test_a_cluster_of_two_nodes_gives_the_scores_of_one_batch(cluster, made, tmp_path: Path) -> None:
    data, model, expected = made
    task, stream = task_for(data, model, tmp_path / "out")
    told: list[int] = []
    engines.run(task, stream, told.append)
    assert told[0] == 0
    assert told[-1] == 800
    assert result(tmp_path / "out").equals(expected)
    engines.run(task, stream, told.append)
    assert told[-1] == 800, "nothing is left to do"


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(
    cluster, made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every worker kills itself at its first unit, as often as there is no sign that one did."""
    data, model, expected = made
    task, stream = task_for(data, model, tmp_path / "out")
    sign = tmp_path / "killed"

    def deadly(task: s.Task, unit: s.Unit) -> int:
        if unit.number in (1, 5) and not Path(f"{sign}{unit.number}").exists():
            Path(f"{sign}{unit.number}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return s.do_unit(task, unit)

    monkeypatch.setattr("cellmend.engines.ray.do_on_one_core", deadly)
    engines.run(task, stream, nothing)
    assert len(list(tmp_path.glob("killed*"))) == 2
    assert result(tmp_path / "out").equals(expected)
    assert sorted(path.name for path in (tmp_path / "out").glob("*.parquet")) == [task.part(u) for u in stream.units]


def test_what_cellmend_refuses_on_a_worker_is_said_here(cluster, made, tmp_path: Path) -> None:
    data, _, _ = made
    stream = s.open_stream(str(data))
    (tmp_path / "gone.cellmend").write_bytes(b"no model")
    wrong = s.Task("score", stream.url, stream.names, str(tmp_path / "out"), str(tmp_path / "gone.cellmend"), "")
    with pytest.raises(ModelFileError, match=r"gone.cellmend is not"):
        engines.run(wrong, stream, nothing)


def test_a_dataset_has_the_scores_of_one_batch(cluster, made) -> None:
    data, model, expected = made
    dataset = ray.data.read_parquet(str(data), override_num_blocks=3)
    scored = pa.concat_tables(ray.get(engines.score(dataset, model).to_arrow_refs()))
    keys = [(name, "ascending") for name in expected.column_names]
    one, two = (table.select(expected.column_names).sort_by(keys) for table in (scored, expected))
    for name in expected.column_names:
        assert one[name].to_pylist() == two[name].to_pylist(), name


@pytest.mark.parametrize("engine", ["here", "ray"])
def test_everything_is_killed_in_the_middle_and_run_again(made, tmp_path: Path, engine: str) -> None:
    """The command, killed when its first parts are there; the second run ends with the same result."""
    data, model, expected = made
    out = tmp_path / "out"
    command = [sys.executable, "-m", "cellmend.cli", "score", str(data), "-m", str(model), "-o", str(out), "-q"]
    command += ["--engine", engine, *(["--workers", "1"] if engine == "ray" else [])]
    first = subprocess.Popen(command, start_new_session=True)  # noqa: S603
    while not list(out.glob("part-*")) and first.poll() is None:
        time.sleep(0.01)  # until it has begun
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    subprocess.run(command, check=True, start_new_session=True)  # noqa: S603
    assert all((out / name).stat().st_mtime_ns == when for name, when in before.items()), "nothing is done twice"
    assert result(out).equals(expected)
    assert not list(out.glob(".part*"))
