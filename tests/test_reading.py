"""Text as people type it: numbers with units, commas, gaps and slips."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.reading import NumberStyle, read_column


def read(*texts: str | None) -> tuple[list, list[int]]:
    """The values, and which cells cannot be read."""
    reading = read_column(pa.array(texts, pa.string()))
    return reading.values.to_pylist(), reading.unreadable.nonzero()[0].tolist()


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "2", "3"], [1, 2, 3]),
        (["1.0", "2.50", "-3"], [1.0, 2.5, -3.0]),
        (["1,200", "3", "1,234,567"], [1200, 3, 1234567]),
        (["1.200,50", "3,5"], [1200.5, 3.5]),
        (["1 200,5", "3,25"], [1200.5, 3.25]),
        (["1 000,0", "1 000,0"], [1000.0, 1000.0]),
        (["1'200.5", "3.25"], [1200.5, 3.25]),
        (["$1,200.50", "$3"], [1200.5, 3.0]),
        (["12 %", "7%"], [12, 7]),
        (["1e3", "2.5e-2"], [1000.0, 0.025]),
        (["5.", ".5"], [5.0, 0.5]),
    ],
)
def test_numbers_are_read_as_they_are_written(texts: list[str], values: list[float]) -> None:
    assert read(*texts) == (values, [])


def test_gaps_are_spelled_in_many_ways() -> None:
    assert read("1", "N/A", "nan", "", None, "NULL", "?", "-", " ", "2", "3", "4") == (
        [1, *[None] * 8, 2, 3, 4],
        [],
    )
    assert read("a", "none", "?", "NA", None, "a b")[0] == ["a", "none", "?", None, None, "a b"]


def test_what_is_no_number_in_a_column_of_numbers_cannot_be_read() -> None:
    values, unreadable = read("4400.00", "4400..00", "12", "x", "7", "8")
    assert values == [4400.0, None, 12.0, None, 7.0, 8.0]
    assert unreadable == [1, 3]


def test_a_unit_belongs_to_the_column_however_it_is_spelled() -> None:
    reading = read_column(pa.array(["12.0 oz.", "16.0 oz", "12.0 OZ.", "12.0 oz.", "8.4 oz"]))
    assert reading.values.to_pylist() == [12.0, 16.0, 12.0, 12.0, 8.4]
    assert reading.units == ("oz.", "oz", "OZ.")
    assert reading.style is not None
    assert reading.style.write(16.0, 1) == "16.0 oz."


@pytest.mark.parametrize(
    "texts",
    [
        ["02134", "94110", "10001"],
        ["12 Main St", "7 Oak Ave", "3 Elm Rd", "9 High St", "1 Low Rd"],
        ["A12", "B7", "C9"],
        ["2020-01-02", "2020-02-03"],
        ["555-1234", "555-9876"],
        ["1.2.3", "1.2.4"],
        ["12:30", "13:45"],
        ["", "NA"],
    ],
)
def test_codes_names_dates_and_versions_are_text(texts: list[str]) -> None:
    assert read_column(pa.array(texts)).style is None


STYLES = st.builds(
    NumberStyle,
    decimal=st.just("."),
    thousands=st.sampled_from(["", ",", "'", " "]),
    before=st.sampled_from(["", "$", "€"]),
    after=st.sampled_from(["", " kg", "%"]),
) | st.builds(
    NumberStyle,
    decimal=st.just(","),
    thousands=st.sampled_from(["", ".", " "]),
    before=st.just(""),
    after=st.just(" m"),
)


@given(STYLES, st.lists(st.integers(-(10**7), 10**7), min_size=2, max_size=20), st.integers(1, 2))
def test_what_is_written_is_read_again(style: NumberStyle, whole: list[int], decimals: int) -> None:
    numbers = [value / 10**decimals for value in whole]
    texts = [style.write(number, decimals) for number in numbers]
    reading = read_column(pa.array(texts))
    assert reading.style is not None
    assert reading.values.to_pylist() == pytest.approx(numbers)
    assert [reading.style.write(number, decimals) for number in numbers] == texts


@given(st.lists(st.text(max_size=8), max_size=20))
def test_any_text_is_read_somehow(texts: list[str]) -> None:
    reading = read_column(pa.array(texts, pa.string()))
    assert len(reading.values) == len(reading.unreadable) == len(texts)
    if reading.style is None:
        assert all(value in (text, None) for value, text in zip(reading.values.to_pylist(), texts, strict=True))
