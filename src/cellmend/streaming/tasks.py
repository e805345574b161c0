"""A task over all units of a table: each becomes one file of the result, whole or not there.

So a run that was stopped goes on with the units that are missing, and units can be worked on anywhere: here one after
the other, or on a cluster (engines).
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import lru_cache, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pyarrow.fs import FileType

from cellmend.errors import StreamError
from cellmend.estimator import CellMender, load
from cellmend.files.places import filesystem, listed, whole_stream
from cellmend.model.profile import Profile
from cellmend.settings import LEAST_FLAGGED, Caution, Threshold
from cellmend.streaming.batches import conform, find_batch, repair_batch, score_batch
from cellmend.streaming.streams import Stream, Unit, ahead, read_unit
from cellmend.table.notation import notations_from_json

MANIFEST = "_manifest.json"  # what begins so is no part of a table
PROFILE = "cellmend.summary"  # key of the metadata of a part with scores
LOADING = threading.Lock()


@dataclass(frozen=True)
class Task:
    """What is done with each unit of a table, and where it is written; plain values, so that it can travel."""

    what: str  # "score", "find" or "repair"
    source: str
    names: list[str]
    output: str
    model: str
    digest: str  # of the model file
    device: str = "cpu"
    least: float = LEAST_FLAGGED  # suspicion of a finding, or of a repair
    findings: str = ""  # folder with findings, of "repair"
    caution: Caution = field(default_factory=Caution)  # of "find"
    notations: Mapping[str, Any] = field(default_factory=dict)  # of columns written otherwise than learned, as JSON

    def part(self, unit: Unit) -> str:
        """The file that a unit becomes."""
        return f"part-{unit.number:05d}.parquet"


def pending(task: Task, stream: Stream) -> list[Unit]:
    """The units that are still to be done; what was done by the same task before is not done again."""
    system, folder = filesystem(task.output)
    plan = _plan(task, stream)
    names = [each.base_name for each in listed(system, folder)]
    there = {name for name in names if name == MANIFEST or not name.startswith((".", "_"))}
    if MANIFEST in there:
        with system.open_input_stream(f"{folder}/{MANIFEST}") as file:
            if file.read().decode() != plan:
                raise StreamError(
                    f"{task.output} holds the results of another run, by another model, table or threshold. "
                    "Hint: choose another folder, or add --force."
                )
    elif there:
        raise StreamError(f"{task.output} must be a new folder; it holds {sorted(there)[0]}. Hint: choose another.")
    else:
        system.create_dir(folder, recursive=True)
        with whole_stream(system, f"{folder}/{MANIFEST}") as file:
            file.write(plan.encode())
    return [unit for unit in stream.units if task.part(unit) not in there]


def _plan(task: Task, stream: Stream) -> str:
    """What tells one run from another, as the manifest keeps it."""
    units = [{name: value for name, value in vars(unit).items() if name != "schema"} for unit in stream.units]
    return json.dumps({"task": asdict(task) | {"device": ""}, "files": stream.files, "units": units})


def do_unit(task: Task, unit: Unit) -> int:
    """Do a task with one unit and write its part, whole or not at all; returns how many rows it had."""
    work = _work(task, unit)
    system, folder = filesystem(task.output)
    first, batches = unit.first_row, ahead(read_unit(task.source, unit, task.names))
    part = f"{folder}/{task.part(unit)}"
    with whole_stream(system, part) as file, ExitStack() as opened, ThreadPoolExecutor(1) as pool:
        writer: pa.parquet.ParquetWriter | None = None
        written: Future[None] | None = None
        for batch in batches:
            answer = work(batch, first)
            first += batch.num_rows
            if written is not None:
                written.result()
            if writer is None:
                writer = opened.enter_context(_part_writer(file, answer.schema))
                if task.what in ("score", "find"):  # the first batch tells enough of what moved
                    writer.add_key_value_metadata({PROFILE: _profile(task, batch)})
            written = pool.submit(writer.write_batch, answer)  # while the next is judged
        if written is not None:
            written.result()
    return unit.rows


def mender_of(task: Task) -> CellMender:
    """The model of a task, for tables that are written as that of the task is."""
    loaded = load_once(task.model, task.device, task.digest)
    return loaded.reading(notations_from_json(task.notations))


def _profile(task: Task, batch: pa.RecordBatch) -> str:
    mender = mender_of(task)
    return json.dumps(mender.profile(conform(batch, mender, "The batch")).to_json())


def profile_of(task: Task, stream: Stream) -> Profile:
    """What the first rows of every unit look like, all together, from what is kept with scores or findings."""
    system, folder = filesystem(task.output)
    found = []
    for unit in stream.units:
        with system.open_input_file(f"{folder}/{task.part(unit)}") as file:
            found.append(Profile.from_json(json.loads(pa.parquet.read_metadata(file).metadata[PROFILE.encode()])))
    return reduce(add, found)


def _part_writer(file: Any, schema: pa.Schema) -> pa.parquet.ParquetWriter:
    # Numbers that hardly ever repeat gain nothing by a dictionary, and to find that out takes most of the time.
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return pa.parquet.ParquetWriter(file, schema, use_dictionary=repeated or False)


def _work(task: Task, unit: Unit) -> Callable[[pa.RecordBatch, int], pa.RecordBatch]:
    """What is done with a batch, given the number of its first row."""
    if task.what == "repair":
        system, folder = filesystem(task.findings)
        lines = pa.parquet.read_table(f"{folder}/{task.part(unit)}", filesystem=system)
        return lambda batch, first: repair_batch(batch, lines, least=task.least, first_row=first)
    model = mender_of(task)
    name = unit.file.rpartition("/")[2]
    if task.what == "find":
        model = copy.copy(model).set_params(**task.caution.settings())
        return lambda batch, first: find_batch(model, batch, least=task.least, first_row=first, name=name)
    return lambda batch, first: score_batch(model, batch, name=name)


def load_once(model: str | Path, device: str = "cpu", digest: str = "") -> CellMender:
    """The model in a file; a process loads it once, however many threads it has, and again if its digest is new."""
    with LOADING:
        return _loaded(str(model), device, digest)


@lru_cache(maxsize=2)
def _loaded(model: str, device: str, digest: str) -> CellMender:
    return load(model, device=device).set_params(verbose=False)


def run(task: Task, stream: Stream, on_rows: Callable[[int], None]) -> None:
    """Do a task with all units that are still to be done, here, one after the other on all cores."""
    todo = pending(task, stream)
    done = stream.rows - sum(unit.rows for unit in todo)
    for unit in todo:
        on_rows(done)
        done += do_unit(task, unit)
    finish(task)
    on_rows(done)


def finish(task: Task) -> None:
    """Remove what killed workers left half-written."""
    system, folder = filesystem(task.output)
    for each in listed(system, folder):
        if each.base_name.startswith((".part-", f".{MANIFEST}.")):
            system.delete_file(each.path)


def cutoff(findings: str, threshold: Threshold) -> float:
    """The least suspicion that is flagged, from all findings in a folder."""
    suspicion = [lines["suspicion"].to_numpy() for lines in _findings(findings, "suspicion")]
    return threshold.cutoff(np.concatenate(suspicion))


def count(findings: str, least: float) -> tuple[int, int]:
    """How many cells of at least this suspicion are in a folder of findings, and how many of them have a repair."""
    flagged = repaired = 0
    for lines in _findings(findings, "suspicion", "repair"):
        chosen = lines.filter(pc.greater_equal(lines["suspicion"], least))
        flagged += chosen.num_rows
        repaired += chosen.num_rows - chosen["repair"].null_count
    return flagged, repaired


def _findings(place: str, *names: str) -> Iterator[pa.Table]:
    """These columns of the findings in a folder, part by part."""
    system, folder = filesystem(place)
    for each in listed(system, folder):
        if each.path.endswith(".parquet"):
            yield pa.parquet.read_table(each.path, columns=list(names), filesystem=system)


def clear(output: str) -> None:
    """Remove the results of an earlier run from a folder, and nothing else."""
    system, folder = filesystem(output)
    for each in listed(system, folder):
        own = each.base_name == MANIFEST or each.base_name.startswith(("part-", ".part-"))
        if own and each.type == FileType.File:
            system.delete_file(each.path)
