from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import typer

from cellmend.cli import app
from cellmend.console import Teller, findings_table
from cellmend.evaluation.evaluation import Evaluation
from cellmend.findings.finding import Finding

LONG = "postal_code_of_the_delivery_address"


def evaluated() -> Evaluation:
    figures = {name: [0.5, 0.25] for name in ("found", "precision", "avpr", "repaired", "closer")}
    line = {"errors": [1, 2000], **figures, "right_changed": [0, 12], "repair_error": [0.5, 1234.5]}
    kinds = {"kind": ["telephone number", "swapped pair"], **line}
    columns = [LONG, "hire_date"]
    causes = {
        "cause": ["spelling", "valid"],
        "flagged": [1, 2],
        "precision": [0.5, 1.0],
        "columns": columns,
    }
    overall = dict.fromkeys(("precision", "recall", "closer", "right_changed", "right_changed_share"), 0.5)
    by_column = pa.table({"column": columns, **line})
    return Evaluation(100, 2, pa.table(kinds), by_column, pa.table(causes), overall, None)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_an_evaluation_shows_names_and_figures_whole_on_a_line_of_any_usual_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    Teller().evaluation(evaluated(), [])
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "hire_date" in shown
    assert "1234.500" in shown
    assert all(len(line) <= width for line in shown.splitlines())
    by_column = shown[shown.index("By column") : shown.index("By cause")]
    first = [line.split("│")[1].strip() for line in by_column.splitlines() if line.startswith("│")]
    assert "".join(first) == f"{LONG}hire_date"


def test_help_shows_every_default_that_it_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        named = [option.help for option in command.params if "default: " in (getattr(option, "help", "") or "")]
        with pytest.raises(SystemExit):
            app([name, "--help"])
        shown = capsys.readouterr().out
        for said in named:
            assert said.replace("\\", "") in shown, (name, said)
        if name == "clean":
            assert "[default: 0.1]" in shown
            assert "[default: 0.9, or the model's]" in shown


@pytest.mark.parametrize(("lines", "title", "number"), [(np.arange(2, 9), "line", 5), (None, "row", 3)])
def test_the_worst_cells_are_shown_with_their_line_where_the_file_has_lines(
    lines: np.ndarray | None, title: str, number: int
) -> None:
    finding = Finding(3, "price", "1O", 0.9, "10", None, None, "")
    shown = findings_table([finding], "a.csv", lines)
    assert shown.columns[0].header == title
    assert [str(cell) for cell in shown.columns[0].cells] == [str(number)]
