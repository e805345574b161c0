"""The recipes of docs/engines.md, as they stand there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cellmend import CellMender
from cellmend.streaming import score_batch
from tests.conftest import follow_recipe

ROWS = 5000


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["DuckDB", "Polars"])
def test_a_recipe_gives_the_scores_of_the_whole_table(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    price = rng.normal(size=ROWS)
    paid = pa.array(np.where(price > 0, "card", "cash"), mask=rng.random(ROWS) < 0.05)
    orders = pa.table({"price": price, "pieces": rng.poisson(4, ROWS), "paid": paid})
    mender = CellMender(epochs=2, hidden_dim=16, latent_dim=4, random_state=0).fit(orders)
    mender.save("orders.cellmend")
    numbered = orders.add_column(0, "order_id", pa.array(rng.permutation(ROWS)))
    pa.parquet.write_table(numbered, "orders.parquet", row_group_size=700)

    follow_recipe(engine, tmp_path)
    scores = pa.parquet.read_table("scores.parquet").sort_by("order_id")
    alone = score_batch(mender, orders.take(pa.array(np.argsort(numbered["order_id"].to_numpy()))))
    assert scores["order_id"].to_pylist() == list(range(ROWS))
    assert scores.drop_columns("order_id").equals(pa.Table.from_batches([alone]))
