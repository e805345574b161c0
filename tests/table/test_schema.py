from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.errors import SchemaError, SchemaWarning
from cellmend.table.kinds import infer_column, infer_schema, resolve_schema
from cellmend.table.schema import IGNORE, KINDS, Column, Schema

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, 2.25, 3.0] * 10, "real"),
        ([True, False, True] * 10, "category"),
        (["red", "blue", "red"] * 10, "category"),
        ([0, 1, 1] * 10, "category"),
        ([7, 9] * 10, "category"),
        ([1, 2, 3, 4, 5] * 10, "ordinal"),
        ([1.0, 2.0, 3.0, 4.0, 5.0, None] * 10, "ordinal"),
        ([10, 20, 30, 99] * 10, "category"),
        (RNG.poisson(3.0, 500).tolist(), "count"),
        (RNG.poisson(0.5, 500).tolist(), "count"),
        (RNG.negative_binomial(1, 0.05, 500).tolist(), "real"),
        (RNG.integers(18, 90, 500).tolist(), "real"),
        ([1, 2, 3], "real"),
    ],
)
def test_the_kind_follows_from_type_and_values(values: list[object], kind: str) -> None:
    assert infer_column("x", pa.chunked_array([pa.array(values)])).kind == kind


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (list(range(50)), "identifier"),
        ([7, 3, *range(100, 150)], ""),
        (RNG.permutation(50).tolist(), "identifier"),
        ([f"person {n}" for n in range(50)], "identifier"),
        ([4.0] * 10, "constant"),
        (["same", None] * 10, "constant"),
        ([None] * 10, "missing"),
        ([2**60 + n for n in range(5)] * 2, "2**53"),
        ([b"raw", b"bytes"] * 10, "binary"),
    ],
)
def test_columns_that_cannot_be_modelled_are_left_out_with_a_reason(values: list[object], reason: str) -> None:
    column = infer_column("x", pa.chunked_array([pa.array(values)]))
    if reason:
        assert column.kind == IGNORE
        assert reason in column.reason
    else:
        assert column.kind == "real"


def test_distinct_numbers_are_an_identifier_only_when_the_name_says_so() -> None:
    values = pa.chunked_array([RNG.choice(10**6, 50, replace=False)])
    assert infer_column("salary", values).kind == "real"
    assert infer_column("customer_id", values).kind == IGNORE


def test_an_ordered_dictionary_is_ordinal_in_its_own_order() -> None:
    codes, levels = pa.array([0, 1, 2, 1], pa.int8()), pa.array(["low", "mid", "high"])
    ordered = pa.DictionaryArray.from_arrays(codes, levels, ordered=True)
    assert infer_column("x", pa.chunked_array([ordered])) == Column("x", "ordinal", ("low", "mid", "high"))


def test_an_unordered_dictionary_is_a_category_whatever_it_holds() -> None:
    codes = pa.chunked_array([pa.array([94110, 10001, 94110] * 20).dictionary_encode()])
    assert infer_column("zip", codes).kind == "category"


def test_one_wild_cell_does_not_remove_a_column() -> None:
    ages = pa.chunked_array([[*RNG.integers(20, 80, 200).astype(float), 1e17]])
    assert infer_column("age", ages).kind == "real"


def test_numpy_levels_become_plain_ones() -> None:
    schema = Schema.from_dict({"a": {"kind": "ordinal", "levels": np.arange(3)}})
    assert schema.to_yaml() == "a:\n  kind: ordinal\n  levels: [0, 1, 2]\n"


def test_a_given_schema_overrules_inference_for_the_columns_it_names() -> None:
    table = pa.table({"a": [1.5, 2.5, 3.5], "b": [0.5, 1.5, 0.5]})
    schema = resolve_schema(table, {"a": "category"})
    assert [column.kind for column in schema] == ["category", "real"]


def test_left_out_columns_are_named_in_a_warning() -> None:
    table = pa.table({"a": [1.5, 2.5, 3.5], "b": ["x", "x", "x"]})
    with pytest.warns(SchemaWarning, match=r"'b' \(constant: always 'x'\)"):
        resolve_schema(table, None)


@pytest.mark.parametrize(
    ("given_schema", "message"),
    [
        ({"a": "reel"}, "must be one of .* Did you mean 'real'"),
        ({"aa": "real"}, "names column 'aa'.* Did you mean 'a'"),
        ({"a": {"levels": [1, 2]}}, "must have a kind"),
        ({"a": {"kind": "ordinal", "levels": [1]}}, "must be two or more"),
        ({"a": {"kind": "ordinal", "levels": [1, 1.0]}}, "must be two or more different"),
        ({"a": {"kind": "ordinal", "levels": [1, None]}}, "must be two or more different"),
        ({"a": {"kind": "ordinal", "levels": "SML"}}, "must be a list in order"),
        ({"a": {"kind": "ordinal", "levels": 5}}, "must be a list in order"),
        ({"a": {"kind": "ordinal", "levels": {1, 2}}}, "must be a list in order"),
        ({"a": {"kind": "ordinal", "order": [1, 2]}}, "'order' too"),
        ("real", "a Schema or a mapping"),
    ],
)
def test_a_wrong_schema_is_one_sentence(given_schema: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        resolve_schema(pa.table({"a": [1.5, 2.5]}), given_schema)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["- a\n- b", "a: [", "just words"])
def test_yaml_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        Schema.from_yaml(text)


def test_infer_schema_covers_every_column_in_order() -> None:
    schema = infer_schema(pa.table({"b": [1.5, 2.5], "a": ["x", "x"]}))
    assert [column.name for column in schema] == ["b", "a"]


names = st.text(min_size=1, max_size=12)
levels = st.lists(st.text(max_size=8) | st.integers(-9, 9), min_size=2, max_size=5, unique_by=str)
columns = st.builds(
    Column,
    name=names,
    kind=st.sampled_from([*KINDS, IGNORE]),
    levels=st.none() | levels.map(tuple),
    reason=st.text(max_size=20),
)


@given(st.lists(columns, max_size=4, unique_by=lambda column: column.name))
def test_any_schema_survives_yaml(given_columns: list[Column]) -> None:
    schema = Schema(tuple(given_columns))
    assert Schema.from_yaml(schema.to_yaml()) == schema


def test_a_schema_is_saved_and_loaded(tmp_path) -> None:
    schema = Schema((Column("size", "ordinal", ("S", "M", "L")), Column("id", IGNORE, reason="identifier")))
    schema.save(tmp_path / "schema.yaml")
    assert Schema.load(tmp_path / "schema.yaml") == schema


@pytest.mark.parametrize(
    "text",
    ["a: 2024-13-45", "a: !!timestamp x", "a: !!bool x", "a: {kind: real, 1: x, b: y}", "[" * 2000, "a: !!int x"],
)
def test_yaml_that_makes_its_reader_stumble_is_one_sentence(text: str) -> None:
    with pytest.raises(SchemaError, match="schema"):
        Schema.from_yaml(text)


def test_yaml_that_cannot_be_read_is_one_line() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_yaml('city: !!python/object/apply:os.system ["ls"]\nage: [')
    assert "\n" not in str(caught.value)
