from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from cellmend.report.axis import axis_of
from cellmend.report.charts import chart
from cellmend.report.portrait import Portrait
from cellmend.table.dates import Dates
from cellmend.table.numbers import Numbers
from cellmend.table.schema import Column
from cellmend.table.texts import Notation


def drawn(
    before: Any,
    after: Any = None,
    *,
    flagged: Sequence[int] = (),
    repaired: Sequence[int] = (),
    kind: str = "real",
    notation: Notation | None = None,
) -> ElementTree.Element:
    """The picture of a column s, whose elements must all be closed."""
    values = [pa.chunked_array([each]) for each in (before, before if after is None else after)]
    rows = [np.array(each, dtype=np.int64) for each in (flagged, repaired)]
    column = Column("s", kind, levels=("S", "M", "L") if kind == "ordinal" else None)
    return ElementTree.fromstring(chart(Portrait(0, column, *values, *rows, notation)))  # noqa: S314


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


@pytest.mark.parametrize("rows", [12, 40, 99, 150])
def test_one_mistyped_year_does_not_squash_the_dates_of_a_small_table(rows: int) -> None:
    hired = np.datetime64("2015-01-01") + np.random.default_rng(0).integers(0, 2500, rows)
    hired[3] = np.datetime64("2922-07-01")
    axis = axis_of(hired.astype(float), "D")
    assert axis.say(axis.edges[-1]) < "2025"
    assert axis.count(hired.astype(float))[-1] == 1


def test_flagged_values_do_not_squash_the_histogram_however_many_they_are() -> None:
    hired = np.datetime64("2015-01-01") + np.random.default_rng(0).integers(0, 2500, 200)
    hired[:9] = np.datetime64("9999-12-31")
    picture = drawn(pa.array(hired), flagged=range(9), kind="date")
    assert any("or later: 9 values, 9 flagged" in each for each in words(picture))
    ticks = [each.text for each in picture.iter("span") if each.text and each.text.startswith("20")]
    assert ticks[0] > "2014"
    assert ticks[-1] < "2025"


def test_a_column_of_which_every_value_is_flagged_is_drawn_all_the_same() -> None:
    assert "3 flagged" in words(drawn(np.array([1.0, 2.0, 3.0]), flagged=[0, 1, 2]))


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


def test_an_axis_of_millions_is_written_like_one_of_thousands() -> None:
    shown = words(drawn(np.linspace(0, 2_300_000, 1000)))
    assert {"1,200,000", "2,400,000"} <= set(shown)
    assert not any("e+" in word for word in shown)


def test_an_axis_is_written_as_the_column_writes() -> None:
    comma = Numbers(decimal=",", thousands=".")
    assert "1.150,5" in axis_of(np.linspace(0, 2301, 999), "", comma).say(1150.5)
    assert "01.01.2020" in words(drawn(18262.0 + np.arange(3), kind="date", notation=Dates("%d.%m.%Y")))


def test_times_on_an_axis_of_days_have_no_clock() -> None:
    axis = axis_of(18262.0 + np.arange(300), "D", Dates("%d.%m.%Y %H:%M"))
    assert axis.say(18262.0) == "01.01.2020"


def test_the_scale_stands_beside_the_bars_and_flagged_cells_without_a_number_are_counted() -> None:
    values = np.repeat(np.arange(10.0), 66)
    values[3] = np.nan
    picture = drawn(values, np.nan_to_num(values), flagged=[3, 70], repaired=[3])
    scale = [*picture.iterfind(".//div[@class='scale']")]
    assert [[*each.itertext()] for each in scale] == [["66", "0", "1"]] * 2
    assert "1 flagged" in words(picture)
    assert ", 1 flagged without a number" in words(picture)


# ---------------------------------------------------------------- levels


def test_nothing_stands_where_no_cell_is_marked() -> None:
    picture = drawn(["a", "a", "b", "x"], ["a", "a", "b", "b"], flagged=[3], repaired=[3], kind="category")
    marks = {cell.text for cell in picture.iter("td") if "number" in (cell.get("class") or "")}
    assert marks == {None, "1"}


def test_of_identifiers_only_the_flagged_ones_are_shown() -> None:
    identifiers = [f"A-{number}" for number in range(50)]
    picture = drawn(["A-l7", *identifiers], ["A-17", *identifiers], flagged=[0], repaired=[0], kind="ignore")
    assert [word for word in words(picture) if word.startswith("A-")] == ["A-l7", "A-17"]
    assert "49 others" in words(picture)


def test_levels_are_written_with_the_decimal_mark_of_the_column() -> None:
    shown = words(drawn([0.5, 0.5, 2.5], kind="category", notation=Numbers(decimal=",")))
    assert {"0,5", "2,5"} <= set(shown)


def test_levels_with_flagged_cells_have_a_line_even_if_they_are_rare() -> None:
    common = [f"level {i}" for i in range(40) for _ in range(100)]
    picture = drawn(["lveel 7", *common], ["level 39", *common], flagged=[0], repaired=[0], kind="category")
    lines = words(picture)
    assert {"lveel 7", "level 39"} <= set(lines[: lines.index("29 others")])
    line = lines[lines.index("lveel 7") :][:5]
    assert line[:4] == ["lveel 7", "1", "1", "0"]  # before, flagged, none repaired, after


def test_levels_keep_the_order_of_the_schema() -> None:
    lines = words(drawn(["L", "L", "L", "S", "M", "M"], kind="ordinal"))
    assert [word for word in lines if word in {"S", "M", "L"}] == ["S", "M", "L"]


def test_texts_that_look_alike_have_a_line_each() -> None:
    alike = ["", "  ", "x" * 80 + "1", "x" * 80 + "2"]
    lines = words(drawn([*alike, *alike], kind="category"))
    assert lines.count("empty text") == 2
    assert lines.count("x" * 59 + "…") == 2
