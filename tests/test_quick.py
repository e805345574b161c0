"""Without a network: the same commands and answers, in seconds, by all evidence but the network's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cellmend import PAPER, CellMender, SettingError, load
from cellmend.cli import app


def dirty(rows: int = 300) -> pd.DataFrame:
    """Cities with their countries and an amount; a misspelled city, one in another country, a gross amount."""
    rng = np.random.default_rng(0)
    places = np.array([["Rome", "Italy"], ["Oslo", "Norway"], ["Lisbon", "Portugal"]])[rng.integers(0, 3, rows)]
    table = pd.DataFrame({"city": places[:, 0], "country": places[:, 1], "paid": rng.normal(50, 5, rows).round(2)})
    table.loc[7, "city"] = "Lisbno" if table.loc[7, "city"] == "Lisbon" else "Olso"
    table.loc[20, "paid"] = 50_000.0
    return table


@pytest.fixture(scope="module")
def quick() -> CellMender:
    return CellMender(quick=True, random_state=0).fit(dirty())


def test_errors_are_found_without_a_network(quick: CellMender) -> None:
    assert quick.encoder_.columns == []
    assert quick.history_ == []
    found = quick.findings(dirty())
    assert {(7, "city"), (20, "paid")} <= set(zip(found["row"], found["column"], strict=True))
    assert quick.cell_suspicion(dirty()).to_numpy().shape == (300, 3)


def test_its_file_answers_the_same_and_can_be_updated(quick: CellMender, tmp_path: Path) -> None:
    quick.save(tmp_path / "model.cellmend")
    again = load(tmp_path / "model.cellmend")
    pd.testing.assert_frame_equal(again.cell_suspicion(dirty()), quick.cell_suspicion(dirty()))
    assert len(again.update(dirty()).findings(dirty())) > 0


@pytest.mark.parametrize(("given", "says"), [({"impute": True}, "impute"), (PAPER, "repair_method")])
def test_what_needs_a_network_is_refused(given: dict, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        CellMender(**given, quick=True).fit(dirty())


def test_the_command_says_that_no_network_was_trained(tmp_path: Path) -> None:
    dirty().to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["clean", str(tmp_path / "t.csv"), "--quick", "-o", str(out)])
    assert (done.exit_code, "No network was trained, as asked for" in done.output) == (0, True)
    assert "Lisbno" in (out / "findings.csv").read_text() or "Olso" in (out / "findings.csv").read_text()
    model = str(out / "model.cellmend")
    both = CliRunner().invoke(
        app, ["clean", str(tmp_path / "t.csv"), "--quick", "-m", model, "-o", str(tmp_path / "b")]
    )
    assert both.exit_code != 0
    assert not (tmp_path / "b").exists()
