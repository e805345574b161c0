"""Small tables of all kinds, and one small fitted model, shared by the tests."""

from __future__ import annotations

import os
import re
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import settings

from cellmend import CellMender
from cellmend.model.likelihoods import Distributions
from cellmend.model.measures import KNOTS

# On a busy machine an example may take long; the same ones in every run, unless other ones are asked for.
settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("other", deadline=None)
settings.load_profile("other" if "CELLMEND_FUZZ" in os.environ else "same")

# Small networks run faster on one thread, and other tests' load cannot change their sums.
torch.set_num_threads(1)

KNOTS_AT = tuple(np.linspace(-2, 2, KNOTS).tolist())  # of a real column that is made by hand
PUBLISHED = Distributions(outlier="gaussian", outlier_scale=2.0, components=0, binned=False)
KINDS = {"id": "ignore", "country": "ignore"}  # of the mixed table, as inference would say with a warning
SMALL = {"epochs": 20, "hidden_dim": 16, "latent_dim": 8, "embedding_dim": 4, "random_state": 0}


def mixed_table(rows: int = 120) -> pd.DataFrame:
    """All four kinds, gaps, whole numbers, and two columns that no model wants."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    table = pd.DataFrame(
        {
            "height": np.round(170 + 10 * x, 1),
            "income": (30_000 + 5_000 * x + 1_000 * rng.normal(size=rows)).round().astype(int),
            "city": rng.choice(["Rome", "Oslo", "Lima"], rows),
            "smoker": rng.random(rows) < 0.3,
            "children": rng.poisson(1.5, rows),
            "rating": np.clip(np.round(3 + x), 1, 5).astype(int),
            "id": np.arange(rows),
            "country": "Norway",
        }
    )
    table.loc[5, "height"] = np.nan
    table.loc[9, "city"] = None
    return table


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as the only batch of a stream."""
    return table.combine_chunks().to_batches()[0]


@pytest.fixture
def table() -> pd.DataFrame:
    return mixed_table()


@pytest.fixture(scope="session")
def fitted() -> CellMender:
    """Fitted to the mixed table; tests must not refit or change it."""
    with pytest.warns(UserWarning, match="Left out of the model"):
        return CellMender(**SMALL).fit(mixed_table())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser; skipped without playwright or a Chromium, unless CELLMEND_BROWSER is "required"."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        found = shutil.which("chromium") or shutil.which("google-chrome") or driver.chromium.executable_path
        if not Path(found).exists() and os.environ.get("CELLMEND_BROWSER") != "required":
            pytest.skip("there is no Chromium")
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def follow_recipe(section: str, folder: Path) -> dict[str, Any]:
    """Run the Python code below a heading of docs/engines.md; returns its variables."""
    text = (Path(__file__).parents[1] / "docs" / "engines.md").read_text(encoding="utf-8")
    own = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    code = folder / "recipe.py"
    code.write_text("\n".join(re.findall(r"```python\n(.*?)```", own, flags=re.DOTALL)), encoding="utf-8")
    return runpy.run_path(str(code))
