"""The same units on a Ray cluster, and the same step on a Ray Dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from cellmend.errors import CellmendError, EngineError
from cellmend.files.origin import digest_of
from cellmend.streaming.batches import score_batch
from cellmend.streaming.streams import Stream, Unit
from cellmend.streaming.tasks import Task, do_unit, finish, load_once, pending

RETRIES = 5  # of a unit, or of a training, whose worker was lost


def run(
    task: Task,
    stream: Stream,
    on_rows: Callable[[int], None],
    *,
    address: str | None = None,
    workers: int | None = None,
) -> None:
    """Do a task with all units that are still to be done, each as a Ray task; paths must be the same for all nodes.

    Without an address a cluster of this machine alone is started, and stopped at the end.
    """
    todo = pending(task, stream)
    done = stream.rows - sum(unit.rows for unit in todo)
    on_rows(done)
    if not todo:
        return
    with connected(address, workers) as ray:
        gpus = 1 if task.device != "cpu" and ray.cluster_resources().get("GPU") else 0
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(do_on_one_core)
        at_once = workers or int(ray.cluster_resources()["CPU"])
        waiting = list(reversed(todo))
        running: list[Any] = []
        while waiting or running:
            while waiting and len(running) < 2 * at_once:  # so that no worker has to wait for the next
                running.append(remote.remote(task, waiting.pop()))
            finished, running = ray.wait(running)
            try:
                done += sum(ray.get(finished))
            except ray.exceptions.RayError as error:
                for each in running:
                    ray.cancel(each, force=True)
                cause = getattr(error, "cause", None)
                if isinstance(cause, CellmendError):  # about the user's table or model
                    raise cause from None
                raise EngineError(f"A unit failed on the cluster, retries included ({reason(error)}).") from None
            on_rows(done)
    finish(task)


def score(dataset: Any, model: str | Path, *, workers: int = 1) -> Any:
    """Suspicion of every cell and row scores of a `ray.data.Dataset`, as a Dataset, by the model in a file."""
    import ray

    pool = ray.data.ActorPoolStrategy(size=workers)  # so that each loads the model once
    return dataset.map_batches(
        Scorer,
        fn_constructor_args=(str(Path(model).absolute()), digest_of(model)),
        batch_format="pyarrow",
        batch_size=None,
        compute=pool,
    )


class Scorer:
    """`score_batch` with a model that each worker loads once."""

    def __init__(self, model: str, digest: str) -> None:
        self.mender = load_once(model, digest=digest)

    def __call__(self, table: pa.Table) -> pa.Table:
        if table.num_rows == 0:
            return table.slice(0, 0)
        return pa.Table.from_batches([score_batch(self.mender, table, name="The dataset")])


def do_on_one_core(task: Task, unit: Unit) -> int:
    """`do_unit` with as many threads as the Ray task asks processors for."""
    torch.set_num_threads(1)
    return do_unit(task, unit)


@contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[Any]:
    """Ray, connected to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a warning about what a future Ray does
    try:
        import ray
    except ImportError:
        raise EngineError("--engine ray needs Ray. Hint: pip install 'cellmend[ray]'.") from None
    mine = not ray.is_initialized()
    if mine:
        try:
            own: dict[str, Any] = {"address": "local", "num_cpus": workers, "include_dashboard": False}
            where = own if address is None else {"address": address}
            ray.init(**where, log_to_driver=False, configure_logging=False)
        except ConnectionError as error:
            raise EngineError(f"There must be a Ray cluster at {address}; {reason(error)}.") from None
    try:
        yield ray
    finally:
        if mine:
            ray.shutdown()


def reason(error: Exception) -> str:
    """The last line of what an error says."""
    return str(error).strip().rpartition("\n")[2].rstrip(".")
