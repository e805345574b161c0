"""What the rest of the row and the rows around it say, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cellmend.posterior.known import Coded, Known
from cellmend.posterior.rows import BESIDE, FEWEST_ORDERED, ORDER, Everywhere, beside, extremes, order
from tests.posterior.test_known import chunked

Column = list[str | None]


def coded(*columns: Column) -> tuple[list[Known], list[Coded]]:
    each = [Coded.of(chunked(column)) for column in columns]
    return [Known.of(f"c{at}", column) for at, column in enumerate(each)], each


def beside_of(*columns: Column) -> np.ndarray:
    known, each = coded(*columns)
    return beside(known, each, Everywhere.of(known))


def order_of(*columns: Column) -> np.ndarray:
    return order(*coded(*columns))


def test_a_text_of_the_next_column_is_at_home_there() -> None:
    found = beside_of([*["a"] * 9, "x"], ["x"] * 10, [*["q"] * 9, None])
    right = BESIDE.index("right")
    expected = np.log((10 + 0.5) / 10.5) - np.log(0.5 / 10.5)
    assert found[9, 0, right] == pytest.approx(expected)
    assert found[0, 0, right] < 0
    assert not found[:, 0, BESIDE.index("left")].any()
    assert not found[9, 2].any()


def test_a_text_that_stands_twice_in_its_row_is_an_echo() -> None:
    found = beside_of(["Rome", "Oslo", None], ["rome ", "Lima", None], ["x", "y", "z"])[..., BESIDE.index("echo")]
    assert found.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_texts_are_counted_everywhere_else() -> None:
    found = beside_of(["a", "b"], ["A", "a"], ["c", "d"])[..., BESIDE.index("elsewhere")]
    np.testing.assert_allclose(found, np.log1p([[2, 1, 0], [0, 1, 0]]))


def test_the_order_of_few_rows_says_nothing() -> None:
    few = [str(row) for row in range(FEWEST_ORDERED - 1)]
    assert not order_of(few).any()
    assert order_of([*few, "19"]).any()


def test_a_number_that_alone_breaks_an_order_is_seen() -> None:
    numbers: Column = [str(row) for row in range(40)]
    numbers[20] = "3"
    found = order_of(numbers)[:, 0]
    assert np.flatnonzero(found[:, ORDER.index("breaks_order")]).tolist() == [20]
    assert found[:, ORDER.index("off_neighbours")].argmax() == 20
    assert found[0, ORDER.index("share_ordered")] == pytest.approx(38 / 39)


def test_the_same_holds_for_an_order_that_falls() -> None:
    numbers: Column = [str(100 - row) for row in range(40)]
    numbers[20] = "3"
    assert np.flatnonzero(order_of(numbers)[:, 0, ORDER.index("breaks_order")]).tolist() == [20]


def test_a_value_alone_among_the_same_is_seen() -> None:
    texts: Column = [*["a"] * 10, "b", *["a"] * 14]
    found = order_of(texts)[:, 0]
    assert np.flatnonzero(found[:, ORDER.index("alone_in_run")]).tolist() == [10]
    assert found[10, ORDER.index("as_before")] == 0
    assert found[5, ORDER.index("as_before")] == 1
    assert found[0, ORDER.index("share_as_before")] == pytest.approx(22 / 25)
    assert found[0, ORDER.index("share_in_runs")] == pytest.approx(21 / 25)


def test_gaps_are_no_run() -> None:
    assert not order_of([None] * 25)[..., ORDER.index("as_before")].any()


def test_the_other_numbers_of_a_row_are_those_but_for_itself() -> None:
    found = extremes(np.array([[1.0, -4.0, 0.0, 2.0], [0.0, 3.0, 0.0, 0.0]]))
    np.testing.assert_allclose(found[0, :, 0], [3.0, 1.5, 7 / 3, 2.5])
    np.testing.assert_allclose(found[0, :, 1], [4.0, 2.0, 4.0, 4.0])
    np.testing.assert_allclose(found[1, :, 0], [3.0, 0.0, 3.0, 3.0])
    assert extremes(np.array([[5.0]])).tolist() == [[[0.0, 0.0]]]
