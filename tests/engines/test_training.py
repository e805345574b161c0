"""Several processes that train one network: the same weights as one process, and after a kill the same again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from cellmend import CellMender, SettingError, load
from cellmend import streaming as s
from cellmend.engines import training
from tests.conftest import KINDS, mixed_table
from tests.engines.conftest import OF_RAY

pytestmark = OF_RAY
SETTINGS = {"hidden_dim": 16, "latent_dim": 4, "embedding_dim": 4, "random_state": 0, "epochs": 12, "batch_size": 64}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("together")
    table = pa.Table.from_pandas(mixed_table(600), preserve_index=False)
    for number in range(4):
        pq.write_table(table.slice(150 * number, 150), folder / f"{number}.parquet")
    return folder


def plan_for(data: Path, model: Path, settings: dict | None = None) -> training.Plan:
    mender = CellMender(**SETTINGS | (settings or {}), schema=KINDS)
    return training.make_plan(mender, s.open_stream(str(data)), model)


def command(plan: training.Plan, processes: int) -> list[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [*launch, "-m", "cellmend.engines.training", str(Path(plan.kept) / "plan.json")]


def torchrun(plan: training.Plan, processes: int) -> CellMender:
    subprocess.run(command(plan, processes), check=True, capture_output=True, timeout=120)  # noqa: S603
    return load(plan.model)


def weights(mender: CellMender) -> dict[str, torch.Tensor]:
    return mender.network_.state_dict()


@pytest.fixture(scope="module")
def two(data: Path, tmp_path_factory: pytest.TempPathFactory) -> CellMender:
    return torchrun(plan_for(data, tmp_path_factory.mktemp("two") / "m.cellmend"), 2)


@pytest.mark.slow
@pytest.mark.process
def test_two_processes_learn_what_one_learns_from_all_rows(data: Path, two: CellMender, tmp_path: Path) -> None:
    one = torchrun(plan_for(data, tmp_path / "m.cellmend"), 1)
    for name, each in weights(one).items():
        torch.testing.assert_close(weights(two)[name], each, rtol=1e-3, atol=1e-4, msg=name)
    assert two.history_ == pytest.approx(one.history_, rel=1e-4)
    assert two.model_.calibration.rates.rows == pytest.approx(one.model_.calibration.rates.rows, rel=1e-2)
    assert two.offset_ == pytest.approx(one.offset_, abs=1e-3)
    table = pa.Table.from_pandas(mixed_table(600), preserve_index=False)
    fitted = CellMender(**SETTINGS, schema=KINDS).fit(table)
    assert np.corrcoef(two.cell_scores(table).ravel(), fitted.cell_scores(table).ravel())[0, 1] > 0.99


@pytest.mark.slow
@pytest.mark.process
def test_processes_that_are_killed_go_on_to_the_same_weights(data: Path, two: CellMender, tmp_path: Path) -> None:
    plan = plan_for(data, tmp_path / "m.cellmend")
    first = subprocess.Popen(command(plan, 2), start_new_session=True, stderr=subprocess.DEVNULL)  # noqa: S603
    while not list(Path(plan.kept).glob("epoch-*")) and first.poll() is None:
        time.sleep(0.005)  # until something is kept
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert list(Path(plan.kept).glob("epoch-*")), "and there it goes on"
    assert plan_for(data, tmp_path / "m.cellmend") == plan
    assert list(Path(plan.kept).glob("epoch-*")), "the same plan keeps what there is"
    again = torchrun(plan, 2)
    for name, each in weights(two).items():
        assert torch.equal(weights(again)[name], each), name


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.process
def test_ray_train_ends_with_the_weights_of_torchrun(
    data: Path, two: CellMender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.chdir(data.parent)  # a worker runs elsewhere
    mender = CellMender(**SETTINGS, schema=KINDS)
    training.fit(mender, s.open_stream(data.name), tmp_path / "m.cellmend", workers=2)
    found = load(tmp_path / "m.cellmend")
    for name, each in weights(two).items():
        assert torch.equal(weights(found)[name], each), name
    assert [path.name for path in tmp_path.iterdir()] == ["m.cellmend"]


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.process
def test_a_worker_that_is_killed_while_training_on_two_nodes_changes_nothing(
    cluster, data: Path, two: CellMender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign, together = tmp_path / "killed", training.train_together

    def deadly(config: dict) -> None:
        import torch.distributed as dist

        keep = training.Kept.keep

        def keep_and_die(self: training.Kept, epochs: int, state: dict) -> None:
            keep(self, epochs, state)
            if epochs == 10 and dist.get_rank() == 1 and not sign.exists():
                sign.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        training.Kept.keep = keep_and_die
        together(config)

    monkeypatch.setattr(training, "train_together", deadly)
    mender = CellMender(**SETTINGS, schema=KINDS)
    training.fit(mender, s.open_stream(str(data)), tmp_path / "m.cellmend", workers=2)
    assert sign.exists()
    for name, each in weights(two).items():
        assert torch.equal(weights(load(tmp_path / "m.cellmend"))[name], each), name


def test_another_plan_begins_anew(data: Path, tmp_path: Path) -> None:
    plan = plan_for(data, tmp_path / "m.cellmend")
    (Path(plan.kept) / "epoch-00005-of-2-0.safetensors").write_bytes(b"of another training")
    plan_for(data, tmp_path / "m.cellmend", {"latent_dim": 5})
    assert sorted(path.name for path in Path(plan.kept).iterdir()) == ["plan.json", "start.cellmend"]
    assert json.loads((Path(plan.kept) / "plan.json").read_text())["settings"]["latent_dim"] == 5


def test_settings_that_need_one_process_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="time_limit=None"):
        plan_for(data, tmp_path / "m.cellmend", {"time_limit": 3.0})
