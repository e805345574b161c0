"""The same step on a Spark DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cellmend.errors import EngineError
from cellmend.files.origin import digest_of
from cellmend.streaming.batches import score_batch, scores_schema
from cellmend.streaming.tasks import load_once
from cellmend.table.reader import check_columns


def score(df: Any, model: str | Path, *, keep: Sequence[str] = ()) -> Any:
    """Suspicion of every cell and row scores of a `pyspark.sql.DataFrame`, as a DataFrame, by the model in a file.

    The file must have the same path on all workers. Columns are matched by name, and a row's scores do not depend on
    partitions. Rows have no order in Spark: `keep` names columns that the model does not know, an identifier for
    example, which the result has as they are.
    """
    try:
        from pyspark.sql import DataFrame
        from pyspark.sql.types import DoubleType, StructField, StructType
    except ImportError:
        raise EngineError("Scores of a Spark DataFrame need PySpark. Hint: pip install 'cellmend[spark]'.") from None
    if not isinstance(df, DataFrame):
        raise EngineError(
            f"df must be a pyspark.sql.DataFrame; it is a {type(df).__name__}. "
            "Hint: cellmend.streaming.score_batch takes record batches."
        )
    path = Path(model).absolute()
    digest = digest_of(path)
    names = load_once(path, digest=digest).names_ or []
    check_columns(df.columns, [*keep, *names], "The DataFrame", only=True)
    scores = scores_schema(names)
    if taken := [name for name in keep if name in scores.names]:
        raise EngineError(
            f"Columns to keep must have other names than the scores; {taken[0]!r} is one of them. "
            f"Hint: df.withColumn({taken[0] + '_'!r}, df[{taken[0]!r}]) copies it."
        )
    kept = [df.schema[name] for name in keep]
    schema = StructType([*kept, *(StructField(name, DoubleType()) for name in scores.names)])
    return df.mapInArrow(_scorer(str(path), digest, list(keep)), schema)


def _scorer(path: str, digest: str, keep: list[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with the batches of a partition; plain values, so that it can travel."""

    def score_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mender = load_once(path, digest=digest)
        for batch in batches:
            kept = batch.select(keep)
            scores = score_batch(mender, batch.drop_columns(keep), name="The DataFrame")
            yield pa.record_batch([*kept.columns, *scores.columns], schema=pa.schema([*kept.schema, *scores.schema]))

    return score_all
