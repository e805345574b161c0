"""What a column is known to hold, against counting by hand."""

from __future__ import annotations

import datetime
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellmend.posterior import forms, known
from cellmend.posterior.known import Coded, Known, texts_of
from cellmend.table.packing import pack, unpack

CELLS = st.lists(st.none() | st.text("aAbB1. ", max_size=4), max_size=20)


def chunked(values: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.string())])


def known_of(values: list[str | None], name: str = "x") -> Known:
    return Known.of(name, Coded.of(chunked(values)))


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([5.0, None, float("nan"), 0.5]), ["5", None, None, "0.5"]),
        (pa.array([7, None]), ["7", None]),
        (pa.array([True, None]), ["True", None]),
        (pa.array([None, None]), [None, None]),
        (pa.array(["a", "", "  ", None, " b"]), ["a", None, None, None, " b"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([[1], None]), ["[1]", None]),
        (pa.array([b"\xff"]), ["b'\\xff'"]),
        (pa.array(["a"], pa.large_string()), ["a"]),
        (pa.array([datetime.date(2024, 1, 2)]), ["2024-01-02"]),
        pytest.param(
            pa.array([b"\xff"], pa.large_binary()),
            ["b'\\xff'"],
        ),
    ],
)
def test_cells_of_any_type_are_texts_and_what_is_empty_is_none(values: pa.Array, texts: list[str | None]) -> None:
    assert texts_of(pa.chunked_array([values])).to_pylist() == texts


def test_chunks_do_not_matter() -> None:
    parts = pa.chunked_array([pa.array(["a", "b"]), pa.array([], pa.string()), pa.array(["b", None])])
    coded = Coded.of(parts)
    assert coded.texts.to_pylist() == ["a", "b"]
    assert coded.codes.tolist() == [0, 1, 1, -1]
    assert coded.counts.tolist() == [1, 2]


@given(CELLS, st.lists(st.text("aAbB1. ", min_size=1, max_size=4), min_size=1, max_size=5))
@settings(max_examples=50)
def test_cells_of_one_form_are_counted_as_by_hand(cells: list[str | None], asked: list[str]) -> None:
    column, texts = known_of(cells), pa.array(asked)
    held = Counter(cell for cell in cells if cell is not None and cell.strip())
    assert column.cells == sum(held.values())
    assert column.rows == len(cells)
    assert column.total(None, texts).tolist() == [held[text] for text in asked]
    assert column.count_of(texts).tolist() == [max(held[text], 1) for text in asked]
    for form in (forms.folded, forms.bare, forms.length):
        own = {text: form(pa.array([text]))[0].as_py() for text in [*held, *asked]}
        alike = [[held[other] for other in held if own[other] == own[text]] for text in asked]
        assert column.total(form, texts).tolist() == [sum(each) for each in alike]
        assert column.most(form, texts).tolist() == [max(each, default=0) for each in alike]


def test_shapes_are_counted_by_cells() -> None:
    shapes = known_of(["ab", "cd", "ab", "A1"]).shapes
    assert dict(zip(shapes.texts.to_pylist(), shapes.counts.tolist(), strict=True)) == {"aa": 3, "A9": 1}


def test_of_very_many_texts_the_most_frequent_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "MOST_TEXTS", 2)
    column = known_of(["a", "b", "b", "c", "c", "d"])
    assert column.texts.to_pylist() == ["b", "c"]
    assert column.cells == 6


def test_a_column_is_read_as_dates_if_more_cells_are_dates_than_numbers() -> None:
    dates, numbers = known_of(["2024-01-02"] * 2 + ["5"]), known_of(["2024-01-02", "5", "5"])
    assert dates.holds_dates
    assert not numbers.holds_dates
    assert np.isfinite(dates.numbers).tolist() == [True, False]
    assert np.isfinite(numbers.numbers).tolist() == [False, True]
    assert not known_of([]).holds_dates


def test_the_share_of_some_texts_is_that_of_their_cells() -> None:
    column = known_of(["a", "a", "a", "b", None])
    assert column.share(np.array([True, False])) == 0.75
    assert known_of([None]).share(np.array([], dtype=bool)) == 0


@given(CELLS)
@settings(max_examples=30)
def test_a_column_survives_json(cells: list[str | None]) -> None:
    column = known_of(cells)
    again = unpack(Known, pack(column))
    assert pack(again) == pack(column)
    assert again.texts.equals(column.texts)


@given(CELLS, CELLS)
@settings(max_examples=30)
def test_a_newer_table_counts_where_it_has_more_of_a_text(older: list[str | None], newer: list[str | None]) -> None:
    """Known texts keep their places, and the same table once more changes nothing."""
    own, more = known_of(older), Coded.of(chunked(newer))
    both = own.with_more(more)
    assert both.texts[: len(own.texts)].equals(own.texts)
    held = [Counter(text for text in cells if text is not None and text.strip()) for cells in (older, newer)]
    assert dict(zip(both.texts.to_pylist(), both.counts.tolist(), strict=True)) == held[0] | held[1]
    assert both.cells == both.counts.sum()
    assert pack(own.with_more(Coded.of(chunked(older)))) == pack(own)
