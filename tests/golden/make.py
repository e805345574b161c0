"""Writes the table, the models and the answers of this folder, by the code on PYTHONPATH: python make.py

A model holds the weights by which it weighs evidence, so that other weights in the package change no answer. Write
models and answers anew only where they are meant to change. The models in `before` were written by commit e5a03c5,
which weighed evidence otherwise; they are never written anew and must go on to load.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from typer.testing import CliRunner

from cellmend import PAPER, CellMender, load
from cellmend.cli import app

HERE = Path(__file__).parent
SMALL = {"epochs": 20, "hidden_dim": 16, "latent_dim": 4, "random_state": 0}
MODELS = {"default": SMALL, "paper": PAPER | SMALL}
COMMANDS = {
    "default": {"repair": "repaired.csv", "report": "report.html", "score": "scores.csv"},
    "paper": {"repair": "repaired.csv"},
}
ROWS = 120


def messy_table() -> pd.DataFrame:
    """Days, units, decimal commas, gaps, an identifier that stands twice, and a dozen errors; all as text."""
    rng = np.random.default_rng(5)
    weight = rng.normal(70, 10, ROWS)
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 400, ROWS), unit="D")
    table = pd.DataFrame(
        {
            "id": [f"A-{number:04d}" for number in range(ROWS)],
            "day": days.strftime("%d.%m.%Y"),
            "weight": [f"{x:.1f} kg".replace(".", ",") for x in weight],
            "size": [f"{100 + x:.0f} cm" for x in weight],
            "city": rng.choice(["Birmingham", "Florence", "Huntsville"], ROWS),
            "visits": rng.poisson(2, ROWS).astype(str),
            "grade": np.clip(np.round((weight - 70) / 10 + 3), 1, 5).astype(int).astype(str),
            "note": "n/a",
        }
    )
    errors = {
        "id": {30: "A-0001"},
        "day": {11: "32.01.2023", 40: "01.05.1923"},
        "weight": {7: "7,1 kg", 15: "", 50: "701 kg"},
        "size": {9: "17x cm", 20: "999 cm"},
        "city": {3: "Birmxngham", 60: ""},
        "visits": {33: "?", 70: "90"},
        "grade": {80: "55"},
    }
    for column, cells in errors.items():
        table.loc[list(cells), column] = list(cells.values())
    return table


def read_messy() -> pd.DataFrame:
    return pd.read_csv(HERE / "messy.csv", dtype=str, keep_default_na=False)


def page_of(text: str) -> str:
    """A report without its style and script, its times and version, and white space that does not show."""
    text = re.sub(r"<style>.*?</style>|<script>.*?</script>|'sha256-[^']*'", "", text, flags=re.DOTALL)
    text = re.sub(r"<dt>(cellmend|run on|time taken)</dt><dd>[^<]*</dd>", r"<dt>\1</dt>", text)
    text = re.sub(r"(Written by|content=\"cellmend)[^<>]*", r"\1", text)
    return re.sub(r">\s*<", ">\n<", text).strip() + "\n"


def write_answers(name: str, folder: Path) -> None:
    """All that a model says of the table, as files."""
    model = HERE / f"{name}.cellmend"
    for command, file in COMMANDS[name].items():
        arguments = [command, str(HERE / "messy.csv"), "-m", str(model), "-o", str(folder / file), "--force", "--quiet"]
        done = CliRunner().invoke(app, arguments)
        if done.exit_code:
            raise RuntimeError(done.output) from done.exception
        if command == "report":
            text = (folder / file).read_text(encoding="utf-8")
            (folder / file).write_text(page_of(text), encoding="utf-8")
    mender = load(model)
    mender.findings(read_messy()).to_csv(folder / "findings.csv", index=False)
    (folder / "scores.json").write_text(json.dumps(scores(mender, read_messy())), encoding="utf-8")


def scores(mender: CellMender, table: pd.DataFrame) -> dict[str, list[float]]:
    """By the whole table, and row by row."""
    alone, rows_alone = mender.score_rows(table)
    found = {
        "suspicion": mender.cell_suspicion(table),
        "cell_scores": mender.cell_scores(table),
        "row_scores": mender.row_scores(table),
        "suspicion_alone": alone,
        "row_scores_alone": rows_alone,
    }
    return {kind: np.asarray(values, dtype=float).round(6).tolist() for kind, values in found.items()}


def main() -> None:
    """Write models and answers."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    messy_table().to_csv(HERE / "messy.csv", index=False)
    for name, settings in MODELS.items():
        CellMender(**settings).fit(read_messy()).save(HERE / f"{name}.cellmend")
        (HERE / name).mkdir(exist_ok=True)
        write_answers(name, HERE / name)


if __name__ == "__main__":
    main()
