"""All pairs of a column at once say what each says by itself, and a column of identifiers costs little."""

from __future__ import annotations

import string
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.errors import SchemaWarning
from cellmend.table.candidates import near_pairs
from cellmend.table.causes import NEVER, SLIPS
from cellmend.table.explained import learn_texts
from cellmend.table.slippairs import Near, known_pairs, sibling, stray_letter

LETTERS = st.text(st.sampled_from("abA1 2-*ß\t*Ii\u0130"), max_size=9)
WORDS = st.sampled_from(
    ["Pale Blue", "Dark Blue", "Drk Bleu", "Rockingham Cou", "Rockingham County", "KINGS***", "KINGS"]
)
TEXTS = st.lists(LETTERS | WORDS, min_size=2, max_size=12, unique=True)


@given(TEXTS)
def test_all_pairs_at_once_are_what_each_cause_says_of_each(texts: list[str]) -> None:
    both = np.array([(a, b) for a in range(len(texts)) for b in range(len(texts)) if a != b and texts[a] and texts[b]])
    seen, known = both.reshape(-1, 2).astype(np.int64).T
    found = known_pairs(texts, Near(seen, known, len(texts)))
    expected = [
        (a, b, number, chance, stray_letter(cause.name, texts[a], texts[b]), sibling(texts[a], texts[b]))
        for a, b in zip(seen.tolist(), known.tolist(), strict=True)
        for number, cause in enumerate(SLIPS)
        if (chance := cause.log_chance(texts[a], texts[b])) > NEVER
    ]
    assert list(zip(*(each.tolist() for each in found), strict=True)) == expected


@given(st.lists(LETTERS.filter(bool), min_size=2, max_size=12, unique=True), st.integers(0, 3), st.data())
def test_texts_are_near_if_they_become_the_same_without_a_letter(texts: list[str], asked: int, data) -> None:
    counts = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(texts), max_size=len(texts))))
    near = near_pairs(texts, counts, asked)
    cut = [{text[:at] + text[at + 1 :] for at in range(len(text))} | {text} for text in texts]
    for one in range(len(texts)):
        for other in range(len(texts)):
            if one != other and one >= asked and counts[other] >= counts[one] and cut[one] & cut[other]:
                assert (one, other) in near
    assert all(one >= asked and counts[other] >= counts[one] for one, other in zip(near.seen, near.known, strict=True))


def test_columns_of_very_many_texts_are_left_out_after_the_time_limit_and_named() -> None:
    many = {f"C-{n:04d}": 1 for n in range(1500)}
    states = {"Alabama": 40, "Alaska": 30, "Alabma": 1}
    with pytest.warns(SchemaWarning, match=r"time limit ended before slips were looked for in 'id'\.$"):
        learned = learn_texts({"id": many, "state": states}, until=0.0)
    assert learned.keys() == {"state"}
    assert learned["state"].verdicts["Alabma"].meant == ("Alabama",)
    assert learn_texts({"id": many, "state": states}).keys() == {"id", "state"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["in a row", "by chance"])
def test_identifiers_are_checked_in_time(kind: str) -> None:
    drawn = np.random.default_rng(0).choice(list(string.ascii_uppercase + string.digits), (10_000, 8))
    row, chance = (f"C-{n:06d}" for n in range(10_000)), map("".join, drawn)
    start = time.perf_counter()
    assert learn_texts({"id": dict.fromkeys(row if kind == "in a row" else chance, 1)})["id"].verdicts == {}
    assert time.perf_counter() - start < 15
