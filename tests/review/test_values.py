"""What a column holds, and which of its values may be spellings of the same thing."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from cellmend.review.clusters import clusters, pairs_of
from cellmend.review.facets import FEW, Values


def counted(values: Values) -> dict[str | None, int]:
    return dict(zip(values.listed(values.common), values.counts[values.common].tolist(), strict=True))


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        (["b", "a", "b", None, ""], {"b": 2, "a": 1, None: 1, "": 1}),
        ([5.0, 5.0, 0.1 + 0.2, None], {"5": 2, "0.3": 1, None: 1}),
        ([7, 8, 7], {"7": 2, "8": 1}),
        ([True, False, True], {"True": 2, "False": 1}),
        ([datetime.datetime(2024, 5, 3), None], {"2024-05-03": 1, None: 1}),
    ],
)
def test_values_of_any_type_are_texts_as_they_are_shown(cells: list[object], texts: dict[str | None, int]) -> None:
    whole = pa.chunked_array([pa.array(cells)])
    for column in (whole, pa.chunked_array([whole.slice(0, 1).combine_chunks(), whole.slice(1).combine_chunks()])):
        assert counted(Values.of(column)) == texts
        assert counted(Values.of(column.dictionary_encode())) == texts


def test_edited_cells_count_with_their_new_text() -> None:
    values = Values.of(pa.chunked_array([["a", "b", "b", None]])).edited({1: "a", 2: "new", 3: "new"})
    assert counted(values) == {"a": 2, "new": 2}
    assert values.rows(["new"]).tolist() == [2, 3]
    assert values.rows(["b", "none of them"]).tolist() == []


def test_many_values_are_found_as_few_are() -> None:
    values = Values.of(pa.chunked_array([[*map(str, range(100)), None]]))
    some = [*map(str, range(2 * FEW)), None, "x"]
    assert values.find(some).tolist() == [values.find([each]).tolist()[0] for each in some]
    assert values.rows([None]).tolist() == [100]


def test_values_are_filtered_whatever_the_case() -> None:
    values = Values.of(pa.chunked_array([["Ulm", "ULM", "Bonn", None, "Bonn"]]))
    assert set(values.listed(values.holding("ulm"))) == {"Ulm", "ULM"}
    assert values.listed(values.holding("")) == values.listed(values.common)


def spelled_as(*values: str) -> dict[str, str]:
    """Each value that is spelled like a more common one, and that one."""
    return {values[each.seen]: values[each.known] for each in pairs_of(values)}


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("Köln", "Koeln"),
        ("Köln", "KOLN"),
        ("New York", "York, New"),
        ("New York", "NewYork"),
        ("Strasse", "Straße"),
        ("St. Louis", "St Louis"),
        ("Louisville", "Lousiville"),
        ("birmingham hospital", "birmxngham hosxital"),
    ],
)
def test_spellings_of_one_thing(value: str, other: str) -> None:
    assert spelled_as(value, other) == {other: value}


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("room 12", "room 13"),
        ("A-1", "A-2"),
        ("Ulm", "Bonn"),
        ("cat", "car"),
        ("lamp", "ampl"),
        ("12.0 oz", "1.20 oz"),
        ("", " "),
    ],
)
def test_other_things_are_no_spellings(value: str, other: str) -> None:
    assert spelled_as(value, other) == {}


def test_the_most_common_spelling_is_the_middle_of_its_cluster() -> None:
    values = ["Louisville", "louisville", "Lousiville", "Bonn", "lousivile"]
    [cluster] = clusters(len(values), pairs_of(values))
    assert [(each.seen, each.known) for each in cluster] == [(1, 0), (2, 0), (4, 0)]
