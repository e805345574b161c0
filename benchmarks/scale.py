"""How scoring grows with rows, here and on Ray: seconds, rows a second, peak memory.

    python benchmarks/scale.py FOLDER [--millions 1 2 5 10 20] [--device cuda] [--json FILE] [--plot FILE]

Makes a table of 12 numbers and 8 categories with known errors (0.3 % of the cells), a million rows a file; fits the
published model to it; scores the table in memory, and then as a folder of files, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from sklearn.metrics import average_precision_score

from cellmend import PAPER, CellMender, engines, load
from cellmend.streaming import Task, fit_stream, open_stream, read_unit, run

MILLION = 1_000_000
LEVELS = (2, 3, 5, 8, 12, 20, 40, 80)
say = Console(highlight=False, soft_wrap=True).print


def make(folder: Path, number: int) -> None:
    """A file of a million rows that follow four hidden factors, and which cells of it are wrong, (N, 20)."""
    if (folder / f"{number:03d}.parquet").exists():
        return
    shape, rng = np.random.default_rng(0), np.random.default_rng((1, number))
    of_numbers, of_levels = shape.normal(size=(4, 12)), [shape.normal(size=(4, k)) for k in LEVELS]
    z = rng.normal(size=(MILLION, 4))
    numbers = z @ of_numbers + 0.3 * rng.normal(size=(MILLION, 12))
    codes = [(z @ each + 0.5 * rng.gumbel(size=(MILLION, each.shape[1]))).argmax(1) for each in of_levels]
    wrong = rng.random((MILLION, 20)) < 0.003
    numbers += wrong[:, :12] * rng.choice([-1, 1], (MILLION, 12)) * rng.uniform(5, 15, (MILLION, 12))
    columns: dict[str, Any] = {f"x{j}": numbers[:, j].round(4) for j in range(12)}
    for j, (code, levels) in enumerate(zip(codes, LEVELS, strict=True)):
        moved = np.where(wrong[:, 12 + j], (code + 1 + rng.integers(0, levels - 1, MILLION)) % levels, code)
        names = pa.array([f"c{j}_{level:02d}" for level in range(levels)])
        columns[f"c{j}"] = pa.DictionaryArray.from_arrays(pa.array(moved.astype(np.int32)), names)
    np.save(folder / f"_{number:03d}.npy", np.packbits(wrong))
    pq.write_table(pa.table(columns), folder / f"{number:03d}.parquet", row_group_size=250_000)


def fit(data: Path, model: Path, device: str) -> None:
    mender = CellMender(**PAPER | {"batch_size": 1024, "epochs": 15, "train_rows": 50_000}, random_state=0)
    fit_stream(mender.set_params(device=device), open_stream(str(data)))
    mender.save(model)


def in_memory(data: Path, model: Path, device: str) -> dict[str, float]:
    """Rows a second of `score_rows` on a table that is there, and how well its wrong cells are told."""
    mender = load(model, device=device)
    table = pq.read_table(data / "000.parquet")
    mender.score_rows(table.slice(0, 50_000))  # warm
    start = time.perf_counter()
    suspicion, _ = mender.score_rows(table)
    seconds = time.perf_counter() - start
    wrong = np.unpackbits(np.load(data / "_000.npy"))[: MILLION * 20].reshape(MILLION, 20).astype(bool)
    found = np.mean([average_precision_score(wrong[:, j], suspicion[:, j]) for j in range(20)])
    return {"rows_per_s": MILLION / seconds, "cell_avpr": float(found)}


def read_only(data: Path) -> dict[str, float]:
    """Rows a second that the reader alone gives."""
    stream, start = open_stream(str(data)), time.perf_counter()
    rows = sum(batch.num_rows for unit in stream.units for batch in read_unit(stream.url, unit, stream.names))
    return {"rows_per_s": rows / (time.perf_counter() - start)}


def as_files(data: Path, model: Path, output: Path, device: str) -> dict[str, float]:
    stream = open_stream(str(data))
    task = Task("score", stream.url, stream.names, str(output), str(model), "", device)
    start = time.perf_counter()
    run(task, stream, lambda rows: None)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": seconds, "rows_per_s": stream.rows / seconds, "peak_gb": peak}


def on_ray(data: Path, model: Path, output: Path, workers: int) -> dict[str, float]:
    """Scored twice; the second time workers are there and have the model."""
    stream, seconds = open_stream(str(data)), []
    with engines.connected(None, workers):
        for turn in ("cold", "warm"):
            task = Task("score", stream.url, stream.names, str(output / turn), str(model), "")
            start = time.perf_counter()
            engines.run(task, stream, lambda rows: None, workers=workers)
            seconds.append(time.perf_counter() - start)
    return {"cold_s": seconds[0], "warm_s": seconds[1], "rows_per_s": stream.rows / seconds[1]}


def alone(call: Callable[..., Any], *arguments: Any) -> Any:
    """In a process of its own, so that its peak memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(call, *arguments).result()


def first_files(folder: Path, millions: int) -> Path:
    """A folder with the first so many files of the table."""
    chosen = folder / f"first-{millions}"
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir()
    for number in range(millions):
        (chosen / f"{number:03d}.parquet").hardlink_to(folder / "data" / f"{number:03d}.parquet")
    return chosen


def plot(found: dict[str, Any], path: Path) -> None:
    import matplotlib.pyplot as plt

    millions = [int(m) for m in found["files"]]
    seconds = [each["seconds"] for each in found["files"].values()]
    figure, axis = plt.subplots(figsize=(5, 3.2), layout="constrained")
    axis.plot(millions, seconds, "o-", color="#1f5fa8")
    axis.set(xlabel="million rows", ylabel="seconds", xlim=(0, None), ylim=(0, None))
    axis.set_title("Scoring a folder of Parquet files, 20 columns", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 2, 5, 10, 20])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--ray", type=int, default=4, help="million rows to score on Ray; 0: none")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    data, model = asked.folder / "data", asked.folder / f"model-{asked.device}.cellmend"
    data.mkdir(parents=True, exist_ok=True)
    for number in range(max(asked.millions)):
        make(data, number)
    if not model.exists():
        alone(fit, data, model, asked.device)
    found: dict[str, Any] = {"memory": alone(in_memory, data, model, asked.device), "reader": alone(read_only, data)}
    say(found)
    found["files"] = {}
    for millions in asked.millions:
        output = asked.folder / "scores"
        shutil.rmtree(output, ignore_errors=True)
        found["files"][millions] = alone(as_files, first_files(asked.folder, millions), model, output, asked.device)
        say(f"{millions} million rows:", found["files"][millions])
    if asked.ray:
        found["ray"] = {}
        for workers in (1, 2):
            output = asked.folder / "scores"
            shutil.rmtree(output, ignore_errors=True)
            found["ray"][workers] = alone(on_ray, first_files(asked.folder, asked.ray), model, output, workers)
            say(f"Ray, {workers} workers:", found["ray"][workers])
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))
    if asked.plot:
        plot(found, asked.plot)


if __name__ == "__main__":
    main()
