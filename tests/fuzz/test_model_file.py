"""A file that somebody made to do harm, with a checksum that is right, is refused with one sentence or just a model."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend import CellMender, ModelFileError, load
from cellmend.model.file import read_parts, write_parts
from tests.fuzz.conftest import FUZZ

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def path(fitted: CellMender, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fuzz") / "m.cellmend"
    fitted.save(file)
    return file


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every entry of nested lists and dictionaries, as what holds it and where."""
    inner = [*value.items()] if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else []
    return [pair for key, own in inner for pair in ((value, key), *places(own))]


@FUZZ
@given(st.data())
def test_a_header_with_another_entry_is_one_sentence_or_a_model(path: Path, data: st.DataObject) -> None:
    header, weights = read_parts(path)
    holder, key = data.draw(st.sampled_from(range(len(places(header)))).map(lambda at: places(header)[at]))
    holder[key] = data.draw(values)
    changed = path.with_name("changed")
    write_parts(changed, header, weights)
    with suppress(ModelFileError):
        load(changed)


@FUZZ
@given(st.data())
def test_a_damaged_file_is_refused(path: Path, data: st.DataObject) -> None:
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    damaged = path.with_name("damaged")
    damaged.write_bytes(content)
    with pytest.raises(ModelFileError):
        load(damaged)
