"""What `benchmarks/nightly.py` measures: a model of one month that judges the next."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cellmend import CellMender
from cellmend.cli import main


@pytest.fixture(scope="module")
def module(pytestconfig: pytest.Config) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(pytestconfig.rootpath)
        return importlib.import_module("benchmarks.nightly")


@pytest.mark.slow
@pytest.mark.parametrize("spoiled_first", [False, True])
def test_months_that_go_on_are_not_harmed_and_their_errors_are_found(module: Any, spoiled_first: bool) -> None:
    clean, dirty = module.harm(seed=4, rows=300, months=3, spoiled_first=spoiled_first)
    assert clean.changed == dirty.changed == 0
    assert clean.flagged == 0, clean.reasons
    assert dirty.flagged <= 1, dirty.reasons
    assert dirty.found >= 0.6 * dirty.errors


@pytest.mark.slow
def test_what_is_new_in_a_month_is_news_and_no_finding(module: Any, tmp_path: Path, monkeypatch, capsys) -> None:
    """Also what was new is still known after the model was saved."""
    rng = np.random.default_rng(1)
    shop = module.Shop.draw(rng)
    first, second = (shop.month(number, 300, rng) for number in range(2))
    CellMender(random_state=0, schema={"order_id": "ignore"}).fit(first).save(tmp_path / "m")
    second.to_csv(tmp_path / "new.csv", index=False)
    new = [name for name in dict.fromkeys(second["article"]) if name not in set(first["article"])]
    words = ["repair", str(tmp_path / "new.csv"), "-m", str(tmp_path / "m"), "-o", str(tmp_path / "out.csv"), "--json"]
    monkeypatch.setattr(sys, "argv", ["cellmend", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (0, None)
    done = json.loads(capsys.readouterr().out)
    assert done["flagged"] == done["repaired"] == 0
    assert len(new) > 1
    assert f"article has {len(new)} new levels: {', '.join(new)}." in done["notes"]
    assert not [note for note in done["notes"] if note.startswith("status")]
