"""The review page on a large made-up table: how soon it is ready, how fast a decision is acknowledged, how much memory.

    python benchmarks/review.py --rows 1000000 --format parquet

Nothing is fitted to the large table: the findings are made up, and the model is fitted to 500 of its rows.
Page ready is from the start of the command `cellmend review` to the first cell on the page, in a Chromium if there is
one, else to the answers that it needs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cellmend import CellMender
from cellmend.files.origin import Origin

WRITERS = {"parquet": pa.parquet.write_table, "csv": pa.csv.write_csv}
DECISIONS = 200
MANY_ASKED = (
    "groups",
    "groups?only=number_3",
    "groups?text=99",
    "values?column=place_2",
    "values?column=number_2",
    "values?column=id&text=99",
    "clusters?column=place_2",
    "preview?column=place_2&find=town&put=city",
    "rows?within=place_2&holds=town+007",
)


def made_up(rows: int) -> pa.Table:
    """An identifier, nine numbers, five counts and five columns of 200 levels."""
    rng = np.random.default_rng(0)
    levels = np.array([f"town {place:03d}" for place in range(200)])
    columns: dict[str, Any] = {"id": np.arange(rows)}
    columns |= {f"number_{place}": np.round(rng.normal(100, 15, rows), 2) for place in range(9)}
    columns |= {f"count_{place}": rng.poisson(20, rows) for place in range(5)}
    columns |= {f"place_{place}": pa.array(levels[rng.integers(0, 200, rows)]) for place in range(5)}
    return pa.table(columns)


def write_results(folder: Path, table: pa.Table, kind: str) -> None:
    """What `cellmend clean` would leave: a flagged cell in every twentieth row."""
    path = folder / f"table.{kind}"
    WRITERS[kind](table, path)
    rows = np.random.default_rng(1).permutation(table.num_rows)[: table.num_rows // 20].tolist()
    with (folder / "findings.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "column", "value", "suspicion", "repair", "low", "high", "reason", "cause"])
        for place, row in enumerate(rows):
            name = f"number_{place % 9}"
            value = table[name][row].as_py()
            reason = f"{name} is {value}; usually it is more"
            suspicion = 1 - place / len(rows) / 2
            writer.writerow([row, name, value, suspicion, round(value + 1, 2), value, value + 2, reason, "noise"])
    Origin.of(str(path), path.name, folder, {"fdr": 0.1}).save(folder)
    small = CellMender(epochs=2, hidden_dim=16, latent_dim=8, embedding_dim=4, random_state=0, schema={"id": "ignore"})
    small.fit(table.slice(0, 500)).save(folder / "model.cellmend")


def ask(url: str, name: str, deed: dict[str, Any] | None = None) -> Any:
    """What the server answers."""
    base, _, token = url.partition("/?token=")
    body = None if deed is None else json.dumps(deed).encode()
    request = urllib.request.Request(f"{base}/api/{name}", body, {"X-Cellmend-Token": token})  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return json.load(answer)


@contextmanager
def browser() -> Iterator[Callable[[str], str]]:
    """Opens a page, in a Chromium that runs already if there is one, and says how."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None or find_spec("playwright") is None:
        yield open_without
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = running.new_page()

        def open_page(url: str) -> str:
            page.goto(url)
            page.wait_for_selector("html[data-ready]")
            return "in a Chromium"

        yield open_page
        running.close()


def open_without(url: str) -> str:
    """Ask what the page would ask."""
    for name in ("state", "queue"):
        ask(url, name)
    return "without a browser"


def memory(process: int) -> float:
    """The most memory that a process had, in GB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1e6


def measure(folder: Path, open_page: Callable[[str], str]) -> None:
    """Start the server and tell what it took."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "cellmend.cli", "review", str(folder)]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:  # noqa: S603
        try:
            assert server.stderr is not None  # noqa: S101
            url = re.findall(r"http://\S+", server.stderr.readline())[0]
            listening = time.perf_counter() - started
            how = open_page(url)
            tell(f"listening after {listening:.2f} s; page ready after {time.perf_counter() - started:.2f} s ({how})")
            answered = []
            for each in ask(url, "queue?count=100")["cells"] + ask(url, "queue?count=100&only=number_3")["cells"]:
                flag = each["flag"]
                deed = {name: flag[name] for name in ("row", "column", "repair")} | {"verdict": "wrong"}
                deed |= {"value": each["text"], "edited": False}
                start = time.perf_counter()
                ask(url, "decide", deed)
                answered.append(time.perf_counter() - start)
            slow = 1000 * np.quantile(answered[:DECISIONS], [0.5, 0.95, 1])
            tell("a decision: median {:.1f} ms, 95 % within {:.1f} ms, at most {:.1f} ms".format(*slow))
            many(url)
            for what in (
                "queue?count=20",
                "queue?count=20",
                "rows?start=900000&count=100",
                "rows?text=town+007&count=100",
                "rows?only=number_1&count=100",
            ):
                start = time.perf_counter()
                ask(url, what)
                tell(f"{what}: {1000 * (time.perf_counter() - start):.0f} ms")
            tell(f"memory at most {memory(server.pid):.2f} GB")
        finally:
            server.terminate()


def many(url: str) -> None:
    """Decide about many cells at once, a line, a group, a value and a pattern, each followed by its undo."""
    while ask(url, "pulse")["learning"]["is_running"]:  # the model is read beside: that is what decisions above show
        time.sleep(0.5)
    listed = ask(url, "groups")
    group = listed["groups"][0]
    line, edit = group["lines"][0], {"column": "place_3", "values": ["town 007"], "repair": "town 008"}
    count = ask(url, "values?column=place_3&text=town+007")["cells"]
    pattern = {"column": "place_4", "find": "town 00", "put": "town 10"}
    whole = {"group": group["place"]}
    deeds: list[tuple[str, str, dict[str, Any]]] = [
        ("a line", "group", {"picks": [whole | {"line": line["place"]}], "count": line["repaired"]}),
        ("a group", "group", {"picks": [whole], "count": group["repaired"]}),
        ("a value", "replace", {"edits": [edit], "count": count}),
        ("a pattern", "transform", {**pattern, "count": ask(url, "preview?column=place_4&find=town+00")["cells"]}),
    ]
    for words, name, deed in deeds:
        start = time.perf_counter()
        done = ask(url, name, deed | {"verdict": "wrong", "insist": True, "listing": listed["listing"]})
        tell(f"{words}: {done['cells']:,} cells in {1000 * (time.perf_counter() - start):.0f} ms")
        start = time.perf_counter()
        ask(url, "undo", {"step": done["step"]})
        tell(f"  undone in {1000 * (time.perf_counter() - start):.0f} ms")
    for what in MANY_ASKED:
        answered = []
        for _ in range(2):
            start = time.perf_counter()
            ask(url, what)
            answered.append(f"{1000 * (time.perf_counter() - start):.0f} ms")
        tell(f"{what}: {', then '.join(answered)}")


def tell(sentence: str) -> None:
    """Print it at once."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--format", choices=WRITERS, default="parquet")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_results(Path(name), made_up(asked.rows), asked.format)
        with browser() as open_page:
            measure(Path(name), open_page)


if __name__ == "__main__":
    main()
