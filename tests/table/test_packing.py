"""Dataclasses survive JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cellmend.table.packing import pack, unpack, unpack_fields


class Point(NamedTuple):
    x: float
    names: tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    text: str
    number: int | None = None
    pair: tuple[str, int] = ("", 0)


@dataclass(frozen=True)
class Secret:
    """Written in a way of its own, but for one field."""

    number: int
    leaf: Leaf

    def to_json(self) -> dict[str, Any]:
        return {"number": str(self.number), "leaf": pack(self.leaf)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Secret:
        return unpack_fields(cls, {**entry, "number": int(entry["number"])})


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    values: tuple[str | float, ...]
    by_name: Mapping[str, Leaf]
    often: dict[str, int]
    points: list[Point]
    marks: frozenset[str]
    flag: bool
    best: Leaf | None = None
    children: tuple[Tree, ...] = ()
    secrets: tuple[Secret, ...] = ()


leaves = st.builds(Leaf, st.text(), st.none() | st.integers(), st.tuples(st.text(), st.integers()))
points = st.builds(Point, st.floats(allow_nan=False), st.lists(st.text()).map(tuple))
trees = st.builds(
    Tree,
    st.lists(leaves).map(tuple),
    st.lists(st.text() | st.floats(allow_nan=False)).map(tuple),
    st.dictionaries(st.text(), leaves),
    st.dictionaries(st.text(), st.integers()),
    st.lists(points),
    st.frozensets(st.text()),
    st.booleans(),
    st.none() | leaves,
    secrets=st.lists(st.builds(Secret, st.integers(), leaves)).map(tuple),
)


@given(trees, trees)
def test_a_tree_of_dataclasses_survives(child: Tree, tree: Tree) -> None:
    tree = replace(tree, children=(child,))
    text = json.dumps(pack(tree))
    again = unpack(Tree, json.loads(text))
    assert again == tree
    assert json.dumps(pack(again)) == text


@dataclass(frozen=True)
class Arrays:
    whole: NDArray[np.int64]
    real: NDArray[np.float64]
    yes: NDArray[np.bool_]
    texts: pa.StringArray
    many: tuple[NDArray[np.int64], ...] = field(default=())


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1)), st.lists(st.tuples(st.floats(), st.floats())), st.lists(st.booleans())
)
def test_arrays_keep_their_types_also_without_cells(whole: list[int], real: list[Any], yes: list[bool]) -> None:
    integers = np.array(whole, dtype=np.int64)
    texts = pa.array([None, *map(str, yes)][: len(whole)], pa.string())
    arrays = Arrays(integers, np.array(real, dtype=np.float64), np.array(yes, dtype=np.bool_), texts, (integers,) * 2)
    again = unpack(Arrays, json.loads(json.dumps(pack(arrays))))
    for name in ("whole", "real", "yes"):
        old, new = getattr(arrays, name), getattr(again, name)
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(old, new)
    assert (again.texts.type, again.texts.to_pylist()) == (pa.string(), texts.to_pylist())
    assert [each.tolist() for each in again.many] == [whole] * 2


def test_a_key_is_a_field_in_the_order_of_the_class() -> None:
    assert json.dumps(pack(Leaf("a", None, ("b", 1)))) == '{"text": "a", "number": null, "pair": ["b", 1]}'


def test_what_a_file_of_before_lacks_is_the_default_and_what_is_unknown_says_nothing() -> None:
    assert unpack(Leaf, {"text": "a", "kind": "leaf"}) == Leaf("a")


@pytest.mark.parametrize("entry", [{}, {"number": 1}, [], "text", None, {"text": "a", "pair": ["b"]}])
def test_what_does_not_fit_is_refused(entry: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        unpack(Leaf, entry)


def test_types_that_json_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(TypeError, match="JSON cannot be read as"):
        unpack(tuple[Leaf | Secret, ...], [])  # type: ignore[type-var]
    with pytest.raises(TypeError, match="JSON cannot be read as <class 'complex'>"):
        unpack(complex, 1)
