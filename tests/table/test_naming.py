from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cellmend.table.frames import read_frame
from cellmend.table.naming import naming_columns
from cellmend.table.reader import TableReader

pytestmark = pytest.mark.filterwarnings("ignore:Left out of the model")
RNG = np.random.default_rng(0)
ROWS = 400


def names_of(columns: dict[str, Any]) -> list[str]:
    reader, table = TableReader.fit(read_frame(pd.DataFrame(columns)), None)
    return naming_columns(table, reader.schema, reader.identifiers)


def texts(stem: str, different: int) -> list[str]:
    return [
        f"{stem} {'abcdefghij'[number % 10]}{'klmnopqrst'[number // 10 % 10]}"
        for number in RNG.integers(0, different, ROWS)
    ]


def test_a_car_is_named_by_make_and_model() -> None:
    makes = [["Peugeot", "Fiat", "Seat", "Skoda"][number % 4] for number in range(ROWS)]
    models = [f"model {chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(ROWS)]
    columns = {"power": RNG.normal(90, 10, ROWS), "make": makes, "model": models, "fuel": texts("fuel", 3)}
    assert names_of(columns) == ["make", "model"]


def test_an_identifier_comes_with_the_words_of_its_row() -> None:
    columns = {
        "customer": texts("customer", 90),
        "order": [f"A-{number}" for number in range(ROWS)],
        "n": RNG.normal(size=ROWS),
    }
    assert names_of(columns) == ["order"]
    assert names_of(columns | {"item": texts("item", 90)}) == ["customer", "order", "item"]


def test_rows_that_nothing_tells_apart_have_no_name() -> None:
    assert names_of({"cut": texts("cut", 4), "colour": texts("colour", 5), "x": RNG.normal(size=ROWS)}) == []


def test_a_day_names_a_row_where_words_are_not_enough() -> None:
    days = [str(day.date()) for day in pd.date_range("2020-01-01", periods=ROWS // 2)] * 2
    stations = ["North"] * (ROWS // 2) + ["South"] * (ROWS // 2)
    assert names_of({"day": days, "station": stations, "x": RNG.normal(size=ROWS)}) == ["day", "station"]


def test_prose_and_codes_name_nothing() -> None:
    prose = [
        f"a long text of many words that differs in every single row of the table {number}" for number in range(ROWS)
    ]
    codes = RNG.integers(10_000, 99_999, 60)[RNG.integers(0, 60, ROWS)].astype(str)
    assert names_of({"text": prose, "zip": codes, "x": RNG.normal(size=ROWS)}) == []
