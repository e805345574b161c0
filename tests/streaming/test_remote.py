"""Tables on other filesystems: a real S3 server on this machine, and one that only fsspec knows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from moto.server import ThreadedMotoServer
from pyarrow.fs import FileSelector, FileSystem, FileType

import cellmend
from cellmend import CellMender
from cellmend.errors import FileError, StreamError
from cellmend.files import places
from cellmend.files.places import filesystem
from cellmend.streaming import Task, draw, limits, open_stream, run, score_batch, tasks
from cellmend.streaming.tasks import MANIFEST
from tests.conftest import follow_recipe

ROWS = 600
PARTS = [f"part-{number:05d}.parquet" for number in range(4)]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An empty bucket; what a user sets in the environment for a server of their own is the same."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "any")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        system, path = FileSystem.from_uri("s3://tables?allow_bucket_creation=true")
        system.create_dir(path)
        yield "s3://tables"
    server.stop()


@pytest.fixture(params=["s3", "memory"])
def place(request: pytest.FixtureRequest) -> str:
    """A folder that does not exist yet."""
    root = request.getfixturevalue("bucket") if request.param == "s3" else "memory://tables"
    return f"{root}/{uuid4()}"


@pytest.fixture(autouse=True)
def _small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNIT", 100)
    monkeypatch.setattr(limits, "PIECE", 64)


def measurements() -> pa.Table:
    rng = np.random.default_rng(0)
    width = rng.normal(size=ROWS)
    wood = pa.array(np.where(width > 0, "oak", "ash"), mask=rng.random(ROWS) < 0.05)
    return pa.table({"width": width, "length": 2 * width + rng.normal(size=ROWS), "wood": wood})


@pytest.fixture(scope="module")
def mender() -> CellMender:
    return CellMender(epochs=2, hidden_dim=16, latent_dim=4, random_state=0).fit(measurements())


@pytest.fixture(autouse=True, scope="module")
def _saved(mender: CellMender, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The model in a file named `model`, where all tests of this module run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("model"))
        mender.save("model")
        yield


def write_source(url: str) -> str:
    """Two files of two units each below a folder, and files that are no part of the table."""
    system, folder = filesystem(url)
    for number in range(2):
        system.create_dir(f"{folder}/day={number}")
        with system.open_output_stream(f"{folder}/day={number}/data.parquet") as file:
            own = measurements().slice(300 * number, 300)
            pa.parquet.write_table(own.slice(0, 250) if number else own, file, row_group_size=150)
    for name in ("_SUCCESS", "notes.txt", ".hidden.parquet"):
        with system.open_output_stream(f"{folder}/{name}") as file:
            file.write(b"-")
    return url


def score_task(source: str, output: str) -> Task:
    return Task("score", source, measurements().column_names, output, "model", "digest")


def names_in(url: str) -> list[str]:
    system, folder = filesystem(url)
    return sorted(each.base_name for each in system.get_file_info(FileSelector(folder)) if each.type == FileType.File)


def scores_in(url: str) -> list[pa.Table]:
    system, folder = filesystem(url)
    return [pa.parquet.read_table(f"{folder}/{name}", filesystem=system) for name in PARTS]


def test_a_remote_table_is_read_as_a_local_one(place: str, tmp_path: Path) -> None:
    there, here = open_stream(write_source(place)), open_stream(write_source(str(tmp_path)))
    assert [unit.rows for unit in there.units] == [150, 150, 150, 100]
    assert there.names == here.names == [*measurements().column_names, "day"]
    assert [(unit.rows, unit.first_row, unit.keys) for unit in there.units] == [
        (unit.rows, unit.first_row, unit.keys) for unit in here.units
    ]
    assert draw(there, 550, 0).drop_columns("day") == measurements().slice(0, 550)
    assert draw(there, 70, 0) == draw(here, 70, 0)
    assert open_stream(f"{place}/day=0/data.parquet").rows == 300


@pytest.mark.slow
def test_a_remote_run_goes_on_where_it_was_stopped(place: str, tmp_path: Path, mender: CellMender) -> None:
    source, output = write_source(f"{place}/in"), f"{place}/out/of/it/"
    task, stream = score_task(source, output), open_stream(source)
    run(task, stream, lambda done: None)
    assert names_in(output) == [MANIFEST, *PARTS]

    local = str(tmp_path / "out")
    run(score_task(source, local), stream, lambda done: None)
    assert [part.num_rows for part in scores_in(local)] == [150, 150, 150, 100]
    assert scores_in(output) == scores_in(local)

    system, folder = filesystem(output)
    system.delete_file(f"{folder}/{PARTS[2]}")
    with system.open_output_stream(f"{folder}/.{PARTS[2]}.123-4") as file:
        file.write(b"of a worker that was killed")
    seen: list[int] = []
    run(task, stream, seen.append)
    assert seen == [400, 550]  # only the part that was missing
    assert names_in(output) == [MANIFEST, *PARTS]
    assert scores_in(output) == scores_in(local)


def test_a_remote_part_is_whole_or_not_there(place: str, mender: CellMender, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = write_source(f"{place}/in"), f"{place}/out"
    judged = []

    def fail_at_last(mender: CellMender, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
        judged.append(batch)
        if len(judged) == 5:
            raise MemoryError
        return score_batch(mender, batch, name=name)

    monkeypatch.setattr(tasks, "score_batch", fail_at_last)
    with pytest.raises(MemoryError):
        run(score_task(source, output), open_stream(source), lambda done: None)
    assert names_in(output) == [MANIFEST, PARTS[0]]


def test_a_run_that_was_killed_before_its_manifest_was_whole_can_be_taken_up(place: str, mender: CellMender) -> None:
    source, output = write_source(f"{place}/in"), f"{place}/out"
    system, folder = filesystem(output)
    system.create_dir(folder)
    with system.open_output_stream(f"{folder}/.{MANIFEST}.123-4") as file:
        file.write(b"{")
    run(score_task(source, output), open_stream(source), lambda done: None)
    assert names_in(output) == [MANIFEST, *PARTS]


def test_a_remote_folder_with_something_else_is_left_alone(place: str, mender: CellMender) -> None:
    source = write_source(place)
    with pytest.raises(StreamError, match=r"must be a new folder; it holds day=0\. Hint:"):
        run(score_task(source, place), open_stream(source), lambda done: None)


def test_what_is_not_there_is_told(place: str) -> None:
    with pytest.raises(FileError, match=f"^{place} must be a file or a folder with a table; there is none"):
        open_stream(place)


@pytest.mark.parametrize("url", ["nothing://tables/in", "nothing+s3://tables"])
def test_a_filesystem_that_nobody_knows_is_told(url: str) -> None:
    with pytest.raises(FileError, match=r"must begin with s3://.*Protocol not known: nothing.*\. Hint: pip install"):
        open_stream(url)


def test_a_filesystem_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(url: str) -> None:
        raise OSError("Unable to load libjvm\nand where it was looked for")

    monkeypatch.setattr(places, "FileSystem", SimpleNamespace(from_uri=unreachable))
    with pytest.raises(FileError, match=r"can be reached; it is not \(Unable to load libjvm\)\.$"):
        open_stream("hdfs://cluster/tables")


@pytest.mark.slow
def test_the_recipe_of_the_documentation_runs(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cellmend, "CellMender", partial(CellMender, epochs=2, hidden_dim=16, latent_dim=4))
    write_source(f"{bucket}/orders")
    assert follow_recipe("S3 and other filesystems", tmp_path)["orders"].rows == 550
    assert names_in(f"{bucket}/scores") == [MANIFEST, *PARTS]
