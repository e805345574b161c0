"""How fast tables are learned and scored, beside what the machine could do and beside other tools (`make bench-speed`).

    CELLMEND_DATA=folder python benchmarks/speed.py [--json FILE] [--device cuda] [--tables wine adult] [--quick]

Every measurement runs in a process of its own, so that its peak memory is its own. Trainings of fixed epochs whose
epochs all cost the same run 6 of them and 1: what 5 take is known, and so what all of them would. The
share of the limit counts the multiplications and additions of the model with levels looked up, three times for
training (forward, and backward to inputs and to weights), against the rate of a large matrix product.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from plain import PlainRVAE, fit_plain
from rich.console import Console
from rich.table import Table
from sklearn.metrics import average_precision_score

from cellmend import PAPER, CellMender
from cellmend.evaluation.evaluation import cell_avprs
from cellmend.model.encoding import TableEncoder
from cellmend.model.evidence import in_chunks
from cellmend.model.learning import begin
from cellmend.model.published import cell_pi, judge_whole_rows
from cellmend.table.frames import read_frame
from cellmend.table.readtable import read_typed
from cellmend.table.schema import Column, Schema
from cellmend_bench.baselines import IsolationForestRows, one_hot
from cellmend_bench.boosting import LightGBMColumns
from cellmend_bench.corruption import corrupt
from cellmend_bench.datasets import Dataset, load_dataset

TABLES = ("wine", "adult", "credit_default", "letter", "synthetic")
TIMED_EPOCHS = 5
LARGE = 200_000  # rows, from which on slow peers are left out
EQUAL = {  # settings of the published model that reach its quality sooner, and our default after a few epochs
    "published": dict(PAPER),
    "published, batch 1024, 60 epochs": PAPER | {"batch_size": 1024, "epochs": 60, "learning_rate": 3e-3},
    "default, 10 epochs": {"epochs": 10},
}
say = Console(highlight=False, soft_wrap=True).print


def synthetic(rows: int = 1_000_000) -> Dataset:
    """Twelve numbers and eight categories that follow four hidden factors."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(rows, 4)).astype(np.float32)
    numbers = factors @ rng.normal(size=(4, 12)) + 0.3 * rng.normal(size=(rows, 12))
    frame = pd.DataFrame({f"number{d}": numbers[:, d].round(3) for d in range(12)})
    for d in range(8):
        ranks = (factors @ rng.normal(size=4) + 0.3 * rng.normal(size=rows)).argsort().argsort()
        frame[f"level{d}"] = ranks * (3 + 2 * d) // rows
    kinds = [Column(name, "real" if name.startswith("number") else "category") for name in frame]
    return Dataset("synthetic", frame, Schema(tuple(kinds)), None)


def dirty_table(name: str) -> tuple[Dataset, Any, Any]:
    dataset = synthetic() if name == "synthetic" else load_dataset(name)
    if name == "synthetic":
        return dataset, dataset.frame, None
    return dataset, *corrupt(dataset.frame, dataset.schema, noise="gaussian", rows=0.05, seed=0)


# ---------------------------------------------------------------- the machine


def machine(device: str) -> dict[str, Any]:
    """The rate of a large matrix product, in GFLOP/s, and of copying memory, in GB/s: the best of several."""
    sides = 8192 if device == "cuda" else 2048
    a, large, other = torch.randn(sides, sides, device=device), *torch.ones(2, 2**26, device=device)
    product = min(seconds(lambda: a @ a, device) for _ in range(6))
    copy = min(seconds(lambda: large.copy_(other), device) for _ in range(6))
    return {
        "processor": torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "gflops": 2 * sides**3 / product / 1e9,
        "gb_per_s": 2 * 4 * 2**26 / copy / 1e9,
    }


def seconds(work: Callable[[], Any], device: str = "cpu") -> float:
    """How long it takes, what runs on a GPU included."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


# ---------------------------------------------------------------- what is measured


def measure_cellmend(settings: dict[str, Any], table: str, device: str, *, whole: bool) -> dict[str, Any]:
    """Fit, either wholly or a few epochs, and score all cells."""
    dataset, dirty, mask = dirty_table(table)
    mender = CellMender(**settings, schema=dataset.schema, random_state=0, device=device)
    CellMender(**settings | {"epochs": 1}, schema=dataset.schema, device=device).fit(
        dirty[:2000]
    )  # loads what torch loads
    if whole:
        fit = seconds(lambda: mender.fit(dirty), device)
    else:
        fit = epoch_seconds(mender, dirty, device) * settings["epochs"]
        mender.set_params(epochs=settings["epochs"])
    rows = min(len(dirty), mender.train_rows or len(dirty))
    score = min(seconds(lambda: mender.cell_scores(dirty), device) for _ in range(3 if len(dirty) < LARGE else 1))
    found = {
        "fit": fit,
        "epoch": fit / mender.epochs,
        "score_rows_per_s": len(dirty) / score,
        "flop": 6 * operations(mender) * rows * mender.epochs,
        "score_flop_per_row": 2 * operations(mender),
    }
    if mask is not None and whole:
        found["cell_avpr"] = float(np.nanmean(cell_avprs(mender.cell_scores(dirty), mask)))
    if settings.get("repair_method") == "map":
        found["network_rows_per_s"] = network_rows_per_second(mender, dirty)
    return found


def epoch_seconds(mender: CellMender, dirty: Any, device: str) -> float:
    """Seconds of an epoch of training as published: what a few more of them take."""
    short, long = (
        seconds(partial(mender.set_params(epochs=epochs).fit, dirty), device) for epochs in (1, 1 + TIMED_EPOCHS)
    )
    return (long - short) / TIMED_EPOCHS


def network_rows_per_second(mender: CellMender, dirty: Any) -> float:
    """Scores of cells that are already on the device."""
    model, alpha = mender.model_, mender.alpha
    cells = model.encoder.encode(model.reader.read(read_frame(dirty)))
    many = torch.arange(4_000_000 if model.device.type == "cuda" else len(cells)) % len(cells)
    cells = cells[many].to(model.device)

    def score() -> None:
        for first, chunk in in_chunks(model.network, cells):
            draws = model.generator(first)
            cell_pi(judge_whole_rows(model.network, chunk, "map", draws, weights="coordinate", alpha=alpha), chunk)

    return len(cells) / min(seconds(score, cells.values.device.type) for _ in range(3))


def operations(mender: CellMender) -> int:
    """Multiplications, each with an addition, to take a row through the network; a level is looked up."""
    network = mender.network_
    hidden, latent = network.decoder_hidden.bias.shape[-1], network.decoder_hidden.weight.shape[-2]
    encoder = latent * (2 if mender.kl_weight else 1)
    inputs = network.encoder_input.number_weight.shape[-2] + network.embeddings.columns / 2  # an addition each
    return int(hidden * (inputs + encoder + latent + network.outputs))


def measure_plain(table: str, device: str) -> dict[str, Any]:
    """RVAE as one would first write it: 2 epochs after one that does not count."""
    dataset, dirty, _ = dirty_table(table)
    mender = CellMender(**PAPER, schema=dataset.schema, random_state=0, device="cpu")
    start = begin(*mender.read_to_fit(dirty), mender.settings())
    columns, cells = start.encoder.columns, start.cells
    part = cells[:15_000]
    fit_plain(part[:600], columns, epochs=1)
    epoch = seconds(lambda: fit_plain(part, columns, epochs=2)) / 2 * len(cells) / len(part)
    model = PlainRVAE(columns)
    with torch.no_grad():
        score = seconds(lambda: model.loss(part.values, part.observed)) / len(part)
    return {"fit": epoch * PAPER["epochs"], "epoch": epoch, "score_rows_per_s": 1 / score}


def measure_forest(table: str, device: str) -> dict[str, Any]:
    dataset, dirty, _ = dirty_table(table)
    forest = IsolationForestRows(schema=dataset.schema, random_state=0)
    fit = seconds(lambda: forest.fit(dirty))
    return {"fit": fit, "score_rows_per_s": len(dirty) / seconds(lambda: forest.row_scores(dirty))}


def measure_lightgbm(table: str, device: str) -> dict[str, Any]:
    dataset, dirty, mask = dirty_table(table)
    trees = LightGBMColumns(schema=dataset.schema, random_state=0, jobs=torch.get_num_threads())
    fit = seconds(lambda: trees.fit(dirty))
    score = seconds(lambda: trees.cell_scores(dirty[: len(dirty) // 2]))
    return {
        "fit": fit,
        "score_rows_per_s": len(dirty) // 2 / score,
        "cell_avpr": float(np.nanmean(cell_avprs(trees.cell_scores(dirty), mask))),
    }


def measure_pyod(name: str, table: str, device: str) -> dict[str, Any]:
    """A detector of PyOD, on one-hot rows; it scores rows, not cells."""
    from pyod.models.auto_encoder import AutoEncoder
    from pyod.models.ecod import ECOD

    dataset, dirty, mask = dirty_table(table)
    read = read_typed(dirty)
    encoder = TableEncoder.fit(dataset.schema, read)
    rows = one_hot(encoder.encode(read), encoder.columns)
    detector = ECOD() if name == "ECOD" else AutoEncoder(verbose=0, preprocessing=True)
    fit = seconds(lambda: detector.fit(rows))
    found = {"fit": fit, "score_rows_per_s": len(rows) / seconds(lambda: detector.decision_function(rows))}
    if mask is not None:
        found["row_avpr"] = float(average_precision_score(mask.any(axis=1), detector.decision_scores_))
    return found


def methods(table: str, device: str) -> dict[str, Callable[[str, str], dict[str, Any]]]:
    """What runs on this table and device."""
    ours: dict[str, Callable[[str, str], dict[str, Any]]] = {
        "published": partial(measure_cellmend, dict(PAPER), whole=False),
        "published, batch 1024": partial(measure_cellmend, PAPER | {"batch_size": 1024}, whole=False),
        "default": partial(measure_cellmend, {}, whole=True),
    }
    if device == "cuda":
        return ours
    peers: dict[str, Callable[[str, str], dict[str, Any]]] = {
        "plain PyTorch": measure_plain,
        "Isolation Forest": measure_forest,
    }
    if find_spec("pyod"):
        peers["PyOD ECOD"] = partial(measure_pyod, "ECOD")
    if table != "synthetic":
        peers |= {"LightGBM": measure_lightgbm} if find_spec("lightgbm") else {}
        peers |= {"PyOD AutoEncoder": partial(measure_pyod, "AutoEncoder")} if find_spec("pyod") else {}
    return ours | peers


def alone(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """In a process of its own, with its peak memory in MB."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_with_memory, work).result()


def _with_memory(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return (
        found
        | {"peak_mb": peak}
        | ({"gpu_mb": torch.cuda.max_memory_allocated() / 2**20} if torch.cuda.is_initialized() else {})
    )


def to_equal_quality(device: str) -> list[dict[str, Any]]:
    """Seconds, and what was found, of settings that reach what the published ones reach on adult."""
    found = []
    for name, settings in EQUAL.items():
        done = alone(partial(measure_cellmend, settings, "adult", device, whole=True))
        found.append({"method": name, "table": "adult"} | done)
        say(f"  adult, {name}: {done['fit']:.1f} s, cell AVPR {done['cell_avpr']:.3f}")
    return found


# ---------------------------------------------------------------- the table


def show(table: str, results: dict[str, dict[str, Any]], rate: float) -> None:
    """One line a method; ratios are to our default and to the published settings, above 1 where the other is slower."""
    title = f"{table}: seconds to fit, rows a second scored, peak memory"
    page = Table(
        "method", "fit", "epoch", "share of limit", "× default", "× published", "rows/s", "MB", "AVPR", title=title
    )
    ours, published = results["default"]["fit"], results["published"]["fit"]
    for name, each in results.items():
        share = f"{each['flop'] / rate / 1e9 / each['fit']:.0%}" if "flop" in each else ""
        page.add_row(
            name,
            f"{each['fit']:.1f}",
            f"{each['epoch']:.2f}" if "epoch" in each else "",
            share,
            f"{each['fit'] / ours:.2f}",
            f"{each['fit'] / published:.2f}",
            f"{each['score_rows_per_s']:,.0f}",
            f"{each['peak_mb']:,.0f}",
            f"{each['cell_avpr']:.3f}" if "cell_avpr" in each else "",
        )
    Console(width=120).print(page)


def main() -> None:
    options = argparse.ArgumentParser(description="Speed of cellmend and others.")
    options.add_argument("--json", type=Path)
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--tables", nargs="*", default=TABLES, choices=TABLES)
    options.add_argument("--quick", action="store_true", help="without LightGBM, PyOD and equal quality")
    asked = options.parse_args()
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as `cellmend` does: no long spinning
    facts = machine(asked.device)
    say({name: round(value, 1) if isinstance(value, float) else value for name, value in facts.items()})
    everything: dict[str, Any] = {"machine": facts, "tables": {}}
    for table in asked.tables:
        results = {}
        for name, work in methods(table, asked.device).items():
            if asked.quick and name.startswith(("LightGBM", "PyOD")):
                continue
            results[name] = alone(partial(work, table, asked.device))
            say(f"  {table}, {name}: {results[name]['fit']:.1f} s")
        show(table, results, facts["gflops"])
        everything["tables"][table] = results
        if asked.json is not None:
            asked.json.write_text(json.dumps(everything, indent=1))
    if "adult" in asked.tables and not asked.quick:
        everything["equal_quality"] = to_equal_quality(asked.device)
    everything["machine_after"] = machine(asked.device)
    if asked.json is not None:
        asked.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
