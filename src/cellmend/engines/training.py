"""One network trained by several processes: each reads its own row groups, and gradients are added up.

All processes draw the same batches of the same rows; each works on those that it has. The gain is a sum over rows, so
that the sum of the gradients is that of one process with all rows. Started by Ray Train (`fit`), or by torchrun:

    torchrun --nproc-per-node 2 -m cellmend.engines.training PLAN.json
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor

from cellmend.engines import connected, reason
from cellmend.engines.ray import RETRIES
from cellmend.errors import EngineError, SettingError
from cellmend.estimator import CellMender, load
from cellmend.files.places import whole_file
from cellmend.model.encoding import Cells
from cellmend.model.file import settings_to_json
from cellmend.model.hidden import hidden_ratios
from cellmend.model.judge import Judge
from cellmend.model.learning import climb, lesson, reviser, worst_of
from cellmend.model.model import Calibration, Model, draw_networks
from cellmend.model.network import RVAE
from cellmend.model.optimiser import Watch
from cellmend.model.suspicion import RARE_SHARE, Suspicions, expected_errors
from cellmend.model.update import known_room
from cellmend.settings import Settings
from cellmend.streaming import Stream, chosen_rows, fit_stream, open_stream, read_rows
from cellmend.table.frames import read_frame
from cellmend.table.kinds import refuse_unmodelled

KEEP_EVERY = 5  # epochs
JUDGED = 200_000  # rows of all processes together, from which the rates of errors are estimated
WORKERS = 2  # processes, unless the user says otherwise
OF_SUSPICIONS = "suspicions."  # before the names of what they learned, in files


@dataclass(frozen=True)
class Plan:
    """What the processes are told; plain values."""

    source: str
    start: str  # a model file: all but the weights is learned
    model: str  # file to write
    kept: str  # folder for the state after epochs
    rows: int | None  # to train on, drawn at random; None: all


def fit(mender: CellMender, stream: Stream, model: Path, *, workers: int, address: str | None = None) -> None:
    """Fit by so many processes on a Ray cluster and save the model; a run that was killed goes on where it was.

    Paths must be the same for all nodes.
    """
    plan = make_plan(mender, stream, model)
    with connected(address, workers + 1 if address is None else None):
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchTrainer

        trainer = TorchTrainer(
            train_together,
            train_loop_config=asdict(plan),
            scaling_config=ScalingConfig(num_workers=workers),
            run_config=RunConfig(
                storage_path=str(Path(plan.kept).resolve()), failure_config=FailureConfig(max_failures=RETRIES)
            ),
        )
        try:
            trainer.fit()
        except TrainingFailedError as error:
            raise EngineError(f"Training failed on the cluster, retries included ({reason(error)}).") from None
    shutil.rmtree(plan.kept)


def make_plan(mender: CellMender, stream: Stream, model: Path) -> Plan:
    """Learn kinds, scales and levels from drawn rows, and write down what the processes need."""
    for name in ("time_limit", "patience"):
        if getattr(mender, name) is not None:
            raise SettingError(f"Processes that train together need {name}=None: each has a clock of its own.")
    kept = model.with_name(f"{model.name}.training").resolve()
    kept.mkdir(exist_ok=True)
    plan = Plan(stream.url, str(kept / "start.cellmend"), str(model.resolve()), str(kept), mender.train_rows)
    asked = json.dumps({"plan": asdict(plan), "settings": settings_to_json(mender.settings()), "files": stream.files})
    place = kept / "plan.json"
    if not place.exists() or place.read_text() != asked:
        shutil.rmtree(kept)
        kept.mkdir()
        rounds = mender.epochs
        fit_stream(mender.set_params(epochs=1), stream)  # of its weights nothing is kept
        mender.set_params(epochs=rounds)
        refuse_unmodelled(mender.schema_)
        mender.save(plan.start)
        with whole_file(place) as temporary:
            temporary.write_text(asked)
    return plan


def train_together(config: Mapping[str, object]) -> None:
    """What each process does, after they know of each other."""
    plan = Plan(**config)  # type: ignore[arg-type]
    mender, stream = load(plan.start, device="cpu").set_params(verbose=False), open_stream(plan.source)
    network = fresh_network(mender)
    cells, team = own_cells(mender.model_, stream, plan, mender.settings())

    some = Cells(*team.some(cells.values, cells.observed))
    suspicions = Suspicions(known_room(replace(mender.model_, network=network), some))
    settings, watch = mender.settings(), Watch(team=team, keeper=Kept(Path(plan.kept), suspicions))
    revise, alpha = reviser(network, cells, suspicions, team.some), suspicions.first_alpha(mender.alpha)
    history = climb(network, lesson(cells, settings, revise, alpha), settings, mender.model_.seed, watch=watch)
    mender.model_ = replace(
        mender.model_,
        network=network,
        calibration=calibrated(network, cells, team, suspicions, mender.alpha),
        history=history.tolist(),
    )
    if dist.get_rank() == 0:
        mender.save(plan.model)
    dist.barrier()


def fresh_network(mender: CellMender) -> RVAE:
    """The network as it is drawn by the model's seed."""
    if mender.networks > 1 or mender.repair_method != "hidden":
        raise SettingError("Processes that train together need networks=1 and repair_method='hidden'.")
    return draw_networks(mender.encoder_.columns, mender.settings(), mender.model_.seed)[0]


def calibrated(network: RVAE, cells: Cells, team: Together, suspicions: Suspicions, alpha: float) -> Calibration:
    """Error rates and the threshold of `predict`, from rows of all processes."""
    ratio, by_chance, observed = team.some(*hidden_ratios(network, cells), cells.observed)
    judged = Cells(team.some(cells.values)[0], observed)
    rates = suspicions.settle(ratio, by_chance, observed, rare=RARE_SHARE)
    scores = expected_errors(ratio, judged, rates).numpy()
    return Calibration(rates, worst_of(scores, alpha), "hidden")


def own_cells(model: Model, stream: Stream, plan: Plan, settings: Settings) -> tuple[Cells, Together]:
    """The cells of this process's rows, (n, D), and where all rows are."""
    rank, world = dist.get_rank(), dist.get_world_size()
    units = stream.units[rank::world]
    chosen = chosen_rows(stream.rows, plan.rows, model.seed)
    mine = np.zeros(len(chosen), dtype=bool)
    for unit in units:
        mine |= (chosen >= unit.first_row) & (chosen < unit.first_row + unit.rows)
    if not mine.any():
        raise SettingError(
            f"Every process must have rows; of {world}, number {rank} has none of the {len(stream.units)} parts of "
            "the table. Hint: fewer --workers, or more and smaller files."
        )
    table: pa.Table = read_rows(stream, units, chosen)
    place = torch.full((len(chosen),), -1)
    place[torch.from_numpy(mine)] = torch.arange(int(mine.sum()))
    read = model.reader.read(read_frame(table), rows_alone=True)
    return Judge(model, settings).encode(read).cells, Together(place)


class Together:
    """The processes of torch.distributed, as training sees them."""

    def __init__(self, place: Tensor) -> None:
        self.place = place

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each by its sum over all processes, all in one message."""
        flat = torch.cat([each.reshape(-1) for each in tensors])
        dist.all_reduce(flat)
        for each, total in zip(tensors, flat.split([each.numel() for each in tensors]), strict=True):
            each.copy_(total.view_as(each))

    def some(self, *own: Tensor) -> list[Tensor]:
        """Rows of all processes below each other, at most JUDGED of them, in the same order everywhere."""
        most = JUDGED // dist.get_world_size()
        found: list[list[Tensor]] = [[] for _ in range(dist.get_world_size())]
        dist.all_gather_object(found, [each[:most] for each in own])
        return [torch.cat(each) for each in zip(*found, strict=True)]


class Kept:
    """The state of training in files, one for each process; the newest that all have written counts."""

    def __init__(self, folder: Path, suspicions: Suspicions) -> None:
        self.folder, self.rank, self.world = folder, dist.get_rank(), dist.get_world_size()
        self.suspicions = suspicions

    def restore(self, state: Mapping[str, Tensor]) -> int:
        """Fill in the newest state, and say after how many epochs that was."""
        dist.barrier()
        done = self._newest()
        if done:
            kept = load_file(self._file(done, self.rank))
            self.suspicions.restore({name: kept.pop(OF_SUSPICIONS + name) for name in self.suspicions.state()})
            for name, each in kept.items():
                state[name].copy_(each)
        return done

    def keep(self, epochs: int, state: Mapping[str, Tensor]) -> None:
        """Write the state now and then; what is older than the newest that all have written is taken away."""
        if epochs % KEEP_EVERY:
            return
        whole = {**state, **{OF_SUSPICIONS + name: each for name, each in self.suspicions.state().items()}}
        with whole_file(self._file(epochs, self.rank)) as temporary:
            save_file({name: each.detach().clone().contiguous() for name, each in whole.items()}, temporary)
        dist.barrier()
        for old in self.folder.glob(f"epoch-*-of-{self.world}-{self.rank}.safetensors"):
            if old != self._file(epochs, self.rank):
                old.unlink()

    def _file(self, epochs: int, rank: int) -> Path:
        return self.folder / f"epoch-{epochs:05d}-of-{self.world}-{rank}.safetensors"

    def _newest(self) -> int:
        found = [
            {int(path.name[6:11]) for path in self.folder.glob(f"epoch-*-of-{self.world}-{rank}.safetensors")}
            for rank in range(self.world)
        ]
        return max(set.intersection(*found), default=0)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train_together(json.loads(Path(sys.argv[1]).read_text())["plan"])
    dist.destroy_process_group()
