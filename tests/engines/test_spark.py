"""Scores of a Spark DataFrame, by a Spark on this machine; `make test-spark` installs what it needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cellmend import CellMender, load
from cellmend.engines.spark import score
from cellmend.errors import EngineError, TableError
from cellmend.streaming import score_batch
from tests.conftest import follow_recipe

SparkSession = pytest.importorskip("pyspark.sql", reason="pyspark is not installed").SparkSession
# Spark says so of all that it does with Arrow, whether pandas has a part in it or not.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

ROWS = 300
NAMES = ["moment", "width", "count", "wood"]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def measurements() -> pa.Table:
    """Numbers, a category and gaps, and a number for each row."""
    rng = np.random.default_rng(0)
    width = rng.normal(size=ROWS)
    gap = rng.random((2, ROWS)) < 0.05
    return pa.table(
        {
            "moment": rng.permutation(ROWS) + rng.random(ROWS),
            "width": pa.array(width, mask=gap[0]),
            "count": rng.poisson(4, ROWS),
            "wood": pa.array(np.where(width > 0, "oak", "ash"), mask=gap[1]),
            "row": np.arange(ROWS),
        }
    )


def save_model(path: Path, seed: int) -> None:
    CellMender(epochs=2, hidden_dim=32, latent_dim=4, random_state=seed).fit(measurements().select(NAMES)).save(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "small.cellmend"
    save_model(path, seed=0)
    return path


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("spark"))  # what Spark takes paths from, and where it may leave files
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # or else workers run the first python3 of the path
        session = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def at_once(model: Path) -> pa.RecordBatch:
    """Scores of the whole table, in its order."""
    return score_batch(load(model), measurements().select(NAMES).to_batches()[0])


def in_order(answer: Any) -> pa.RecordBatch:
    """The scores that Spark gives, in the order of the table."""
    return answer.toArrow().sort_by("row").drop_columns("row").combine_chunks().to_batches()[0]


@pytest.mark.parametrize(("partitions", "most_rows"), [(1, 10_000), (3, 7), (5, 1), (40, 64)])
def test_scores_do_not_depend_on_partitions_and_batches(
    spark: SparkSession, model: Path, partitions: int, most_rows: int
) -> None:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", most_rows)
    by_name = measurements().select(["wood", "row", "count", "width", "moment"])
    answer = score(spark.createDataFrame(by_name).repartition(partitions), model, keep=["row"])
    assert [each.dataType.typeName() for each in answer.schema] == ["long", *["double"] * 5]
    assert answer.columns == ["row", *NAMES, "row_score"]
    assert in_order(answer).equals(at_once(model))


def test_a_partition_without_rows_has_no_scores(spark: SparkSession, model: Path) -> None:
    df = spark.createDataFrame(measurements().select(NAMES))
    assert score(df.filter("width > 1000").repartition(3), model).count() == 0


def test_a_model_that_was_written_anew_is_read_again(spark: SparkSession, tmp_path: Path) -> None:
    df, path = spark.createDataFrame(measurements()), tmp_path / "changing.cellmend"
    for seed in (0, 1):
        save_model(path, seed)
        assert in_order(score(df, path, keep=["row"])).equals(at_once(path))


@pytest.mark.parametrize(
    ("names", "keep", "what"),
    [
        (["moment", "width", "count"], [], "it lacks 'wood'"),
        ([*NAMES, "row"], [], "it also has 'row'"),
        ([*NAMES, "width"], [], "it has twice 'width'"),
        (NAMES, ["row"], "it lacks 'row'"),
    ],
)
def test_columns_that_do_not_fit_are_told_before_anything_runs(
    spark: SparkSession, model: Path, names: list[str], keep: list[str], what: str
) -> None:
    df = spark.createDataFrame(measurements())
    df = df.select(*[df[name] for name in names])
    with pytest.raises(TableError, match=f"The DataFrame must have the columns of the model; {what}. Hint:"):
        score(df, model, keep=keep)


def test_a_column_to_keep_must_not_have_the_name_of_a_score(spark: SparkSession, model: Path) -> None:
    df = spark.createDataFrame(measurements().rename_columns([*NAMES, "row_score"]))
    with pytest.raises(EngineError, match="Columns to keep must have other names than the scores; 'row_score' is one"):
        score(df, model, keep=["row_score"])


def test_another_kind_of_table_is_refused(model: Path) -> None:
    with pytest.raises(EngineError, match=r"df must be a pyspark.sql.DataFrame; it is a Table\. Hint:"):
        score(measurements(), model)


def test_the_recipe_of_the_documentation_runs(spark: SparkSession, model: Path) -> None:
    folder = Path.cwd()
    pa.parquet.write_table(measurements().rename_columns([*NAMES, "order_id"]), folder / "orders.parquet")
    (folder / "orders.cellmend").write_bytes(model.read_bytes())
    follow_recipe("Spark", folder)
    scores = pa.parquet.read_table(folder / "scores.parquet").sort_by("order_id").drop_columns("order_id")
    assert scores.combine_chunks().to_batches()[0].equals(at_once(model))
