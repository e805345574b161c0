"""Any text is a schema or one sentence, and a schema survives its YAML."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from cellmend.errors import SchemaError
from cellmend.table.schema import EVERY_KIND, Column, Schema
from tests.fuzz.conftest import FUZZ

WORDS = ("a", "age", "kind", "levels", "reason", "count", "ordinal", "null", "~", "é")
SIGNS = (": ", ":", "\n", "\n  ", "- ", ", ", "? ", "| ", "> ", "---\n", "...\n", *"[]{}'\"\\%@#=\t", "\x85", "\ufeff")
TAGS = (
    "&x ",
    "*x",
    "!!python/object:os.system ",
    "!!binary ",
    "<<",
    "2024-13-45",
    "12:61:61",
    ".inf",
    "1e999",
    "0o9",
    "0x",
)
pieces = st.sampled_from((*WORDS, *SIGNS, *TAGS))
texts = st.lists(pieces | st.text(max_size=3), max_size=40).map("".join)
names = st.text(min_size=1, max_size=8)
levels = st.lists(st.text(max_size=6) | st.integers() | st.booleans() | st.floats(allow_nan=False), max_size=4)


@FUZZ
@given(texts)
def test_any_text_is_a_schema_or_one_sentence(text: str) -> None:
    try:
        schema = Schema.from_yaml(text)
    except SchemaError:
        return
    assert Schema.from_yaml(schema.to_yaml()) == schema


@FUZZ
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.dates(),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_value_as_a_schema_is_taken_or_one_sentence(value: object) -> None:
    with suppress(SchemaError):
        Schema.of(value)  # type: ignore[arg-type]


@FUZZ
@given(st.dictionaries(names, st.tuples(st.sampled_from(EVERY_KIND), levels, st.text(max_size=9)), max_size=4))
def test_a_schema_survives_its_yaml(columns: dict[str, tuple[str, list[object], str]]) -> None:
    try:
        schema = Schema(
            tuple(
                Column(name, kind, tuple(own) or None, reason)  # type: ignore[arg-type]
                for name, (kind, own, reason) in columns.items()
            )
        )
    except SchemaError:
        return
    assert Schema.from_yaml(schema.to_yaml()) == schema
