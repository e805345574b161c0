from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from cellmend.report.charts import axis_of, chart
from cellmend.report.portrait import Portrait
from cellmend.table.schema import Column


def drawn(
    before: Any, after: Any = None, *, flagged: Sequence[int] = (), repaired: Sequence[int] = (), kind: str = "real"
) -> ElementTree.Element:
    """The picture of a column s, whose elements must all be closed."""
    values = [pa.chunked_array([each]) for each in (before, before if after is None else after)]
    rows = [np.array(each, dtype=np.int64) for each in (flagged, repaired)]
    column = Column("s", kind, levels=("S", "M", "L") if kind == "ordinal" else None)
    return ElementTree.fromstring(chart(Portrait(0, column, *values, *rows)))  # noqa: S314


def words(picture: ElementTree.Element) -> list[str]:
    return [*picture.itertext()]


# ---------------------------------------------------------------- numbers and dates


def test_both_pictures_count_all_values_and_the_marked_ones() -> None:
    values = np.linspace(0, 10, 1001)
    picture = drawn(np.where(np.arange(1001) == 7, 500.0, values), values, flagged=[7, 9], repaired=[7])
    assert [svg.get("aria-label") for svg in picture.iter("svg")] == [
        "Histogram of s before repair: 1,001 values, 2 flagged",
        "Histogram of s after repair: 1,001 values, 1 repaired, 1 flagged",
    ]
    assert "10 or more: 2 values, 1 flagged" in words(picture)


def test_a_column_without_findings_is_drawn_once() -> None:
    assert len([*drawn(np.arange(100.0)).iter("svg")]) == 1


def test_one_gross_value_does_not_squash_the_histogram() -> None:
    axis = axis_of(np.append(np.random.default_rng(0).normal(100, 15, 10_000), [1e12, -1e12]), "")
    counts = axis.count(np.array([1e12, -1e12, 100.0]))
    assert counts[0] == counts[-1] == 1
    assert 10 <= len(axis.edges) <= 33
    assert axis.edges[0] > 0
    assert axis.edges[-1] < 250


@pytest.mark.parametrize("step", [0.01, 0.1, 1, 100])
def test_rounded_values_lie_in_the_middle_of_their_bins(step: float) -> None:
    values = np.round(np.arange(12) * step, 2)
    axis = axis_of(values, "")
    assert axis.count(values)[1:-1].tolist() == [1] * 12
    np.testing.assert_allclose(axis.middles, values, atol=1e-12)


def test_no_value_is_lost_between_bins() -> None:
    rng = np.random.default_rng(0)
    for scale in 10.0 ** rng.uniform(-300, 300, 200):
        values = scale * rng.standard_t(1.5, size=rng.integers(1, 400))
        assert axis_of(values, "").count(values).sum() == len(values)


@pytest.mark.parametrize("first", [np.datetime64("2020-01-01"), 18262.0])  # or days since 1970, as the model has them
def test_dates_are_written_as_dates(first: Any) -> None:
    assert words(drawn(first + np.arange(300), kind="date")).count("2019-12-30") == 1  # bins of ten days


# ---------------------------------------------------------------- levels


def test_levels_with_flagged_cells_have_a_line_even_if_they_are_rare() -> None:
    common = [f"level {i}" for i in range(40) for _ in range(100)]
    picture = drawn(["lveel 7", *common], ["level 39", *common], flagged=[0], repaired=[0], kind="category")
    lines = words(picture)
    assert {"lveel 7", "level 39"} <= set(lines[: lines.index("29 others")])
    line = lines[lines.index("lveel 7") :][:5]
    assert line == ["lveel 7", "1", "1", "0", "0"]  # before, flagged, repaired, after


def test_levels_keep_the_order_of_the_schema() -> None:
    lines = words(drawn(["L", "L", "L", "S", "M", "M"], kind="ordinal"))
    assert [word for word in lines if word in {"S", "M", "L"}] == ["S", "M", "L"]


def test_texts_that_look_alike_have_a_line_each() -> None:
    alike = ["", "  ", "x" * 80 + "1", "x" * 80 + "2"]
    lines = words(drawn([*alike, *alike], kind="category"))
    assert lines.count("empty text") == 2
    assert lines.count("x" * 59 + "…") == 2
