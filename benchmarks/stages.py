"""Where the seconds of `cellmend clean` go, from the start of the process to the last file.

    python benchmarks/stages.py [TABLE ...] [--quick] [--json FILE]

Without tables: the demo's, adult and hospital of CELLMEND_DATA, and made ones: 2,000 x 500, 40,000 x 6 with an
identifier, 50,000 x 15 with a column of 10,000 levels. Each runs in a process of its own. The seconds of a stage are
without those of stages within it; what lies between the stages is "the rest".
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Stage: where it is entered, module and name.
ENTERED = {
    "reading the file": [("cellmend.streaming", "open_source")],
    "understanding columns, relations": [("cellmend.table.reader", "TableReader.fit")],
    "evidence": [
        ("cellmend.posterior.evidence", "Portrait.learn"),
        ("cellmend.posterior.evidence", "Portrait.figures"),
    ],
    "weighing": [("cellmend.posterior.firstlook", "weigh"), ("cellmend.posterior.posterior", "Sample.of")],
    "training": [("cellmend.model.learning", "climb"), ("cellmend.model.learning", "draw_networks")],
    "asking the network": [("cellmend.model.judge", "Judge.voice"), ("cellmend.model.judge", "Judge.examine")],
    "findings": [("cellmend.findings.finder", "Finder.mend")],
    "report": [("cellmend.jobs", "Job.write_report")],
    "other files": [("cellmend.jobs", "Job.write_findings"), ("cellmend.jobs", "Job.write_repaired")],
}
IMPORTS, REST = "imports", "the rest"


def timed(
    seconds: dict[str, float], open_stages: list[str], stage: str, function: Callable[..., Any]
) -> Callable[..., Any]:
    """The function, with its seconds counted for a stage, and no longer for the one that it is called in."""

    @wraps(function)
    def measured(*args: Any, **kwargs: Any) -> Any:
        start, around = time.perf_counter(), open_stages[-1]
        open_stages.append(stage)
        try:
            return function(*args, **kwargs)
        finally:
            open_stages.pop()
            spent = time.perf_counter() - start
            seconds[stage] += spent
            seconds[around] -= spent

    return measured


def run_here(arguments: list[str]) -> dict[str, float]:
    """`cellmend clean` in this process: seconds by stage."""
    start = time.perf_counter()
    from cellmend.cli import main

    for modules in ENTERED.values():
        for module, _ in modules:
            importlib.import_module(module)
    seconds, open_stages = defaultdict(float, {IMPORTS: time.perf_counter() - start}), [REST]
    for stage, places in ENTERED.items():
        for module, name in places:
            *owners, last = name.split(".")
            owner: Any = importlib.import_module(module)
            for each in owners:
                owner = getattr(owner, each)
            held = vars(owner)[last]
            wrapped = timed(seconds, open_stages, stage, held.__func__ if isinstance(held, classmethod) else held)
            setattr(owner, last, classmethod(wrapped) if isinstance(held, classmethod) else wrapped)
    sys.argv, begun = ["cellmend", "clean", *arguments], time.perf_counter()
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
    seconds[REST] += time.perf_counter() - begun
    return {"whole": time.perf_counter() - start, **seconds}


def run_apart(table: Path, quick: bool) -> dict[str, float]:
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        answer, start = Path(folder) / "seconds.json", time.perf_counter()
        given = [str(table), "-o", str(Path(folder) / "out"), "--quiet", *(["--quick"] if quick else [])]
        asked = [sys.executable, __file__, "--here", str(answer), *given]
        subprocess.run(asked, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        found: dict[str, float] = json.loads(answer.read_text())
        return found | {"process": time.perf_counter() - start}


# ---------------------------------------------------------------- tables


def made(rows: int, numbers: int, levels: tuple[int, ...], identifier: bool = False) -> pd.DataFrame:
    """Numbers and levels that follow three hidden factors, and perhaps an identifier."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(rows, 3))
    columns: dict[str, Any] = {"id": [f"K-{place:06d}" for place in rng.permutation(rows)]} if identifier else {}
    for place in range(numbers):
        columns[f"x{place}"] = (hidden @ rng.normal(size=3) + 0.3 * rng.normal(size=rows)).round(3)
    for place, count in enumerate(levels):
        rank = np.argsort(np.argsort(hidden @ rng.normal(size=3) + 0.2 * rng.normal(size=rows)))
        columns[f"level{place}"] = np.array([f"town {each:05d}" for each in range(count)])[rank * count // rows]
    return pd.DataFrame(columns)


def tables(folder: Path) -> dict[str, Path]:
    """The usual ones, as CSV files."""
    data = Path(os.environ.get("CELLMEND_DATA", "."))
    found = {
        "demo, 53,940 x 10": data / "demo_diamonds.csv.gz",
        "adult, 32,561 x 15": data / "adult.csv.gz",
        "hospital, 1,000 x 20": data / "pair_hospital_dirty.csv.gz",
    }
    makes = {
        "2,000 x 500": lambda: made(2_000, 400, (5,) * 100),
        "40,000 x 6, an identifier": lambda: made(40_000, 3, (20, 300), identifier=True),
        "50,000 x 15, 10,000 levels": lambda: made(50_000, 10, (5, 20, 100, 1_000, 10_000)),
    }
    for number, (name, make) in enumerate(makes.items()):
        found[name] = folder / f"made{number}.csv"
        make().to_csv(found[name], index=False)
    return {name: path for name, path in found.items() if path.exists()}


def main() -> None:
    """The table of seconds, a line for each stage."""
    parser = argparse.ArgumentParser(description="Where the seconds of `cellmend clean` go.")
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true", help="train no network")
    parser.add_argument("--json", type=Path, help="also write the seconds to this file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chosen = {path.name: path for path in asked.tables} or tables(Path(folder))
        found = {name: run_apart(path, asked.quick) for name, path in chosen.items()}
    for stage in ("process", IMPORTS, *ENTERED, REST):
        line = "  ".join(f"{seconds.get(stage, 0.0):10.1f}" for seconds in found.values())
        sys.stdout.write(f"{stage:34}{line}\n")
    sys.stdout.write(f"{'':34}{'  '.join(f'{name[:10]:>10}' for name in found)}\n")
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        Path(sys.argv[2]).write_text(json.dumps(run_here(sys.argv[3:])))
    else:
        main()
