"""Causes: each channel against a value worked out by hand, and what holds for all of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.table.causes import NEVER, SLIPS
from cellmend.table.causes.base import LETTERS
from cellmend.table.causes.defaults import log_chance_of_default
from cellmend.table.causes.named import DEFAULT, MEANINGS
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.keys import Key
from cellmend.table.relations.sequences import Series
from cellmend.table.relations.sources import Sources

CAUSES = {cause.name: cause for cause in SLIPS}
PAGE = Path(__file__).parents[2] / "docs" / "causes.md"


def test_every_cause_has_a_meaning_and_a_line_in_the_docs() -> None:
    assert {*CAUSES, DEFAULT} <= set(MEANINGS)
    assert {each.kind for each in (Arithmetic, Dependency, Key, Series, Sources)} | {"decisions"} <= set(MEANINGS)
    lines = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    told = {cells[1].strip(): cells[2].partition(":")[0].strip() for cells in lines}
    assert {name: told[name] for name in MEANINGS} == MEANINGS


@pytest.mark.parametrize(
    ("cause", "seen", "meant", "one_of"),
    [
        ("inserted", "KIcNGS", "KINGS", 6 * LETTERS),  # six places, sixty letters
        ("inserted", "KINGSx", "KINGS", 6 * LETTERS),
        ("doubled", "KINNGS", "KINGS", 5),  # five letters that may be doubled
        ("dropped", "KNGS", "KINGS", 5),
        ("dropped", "INGS", "KINGS", 5),
        ("replaced", "KIxGS", "KINGS", 5 * LETTERS),
        ("swapped", "IKNGS", "KINGS", 4),  # four pairs of neighbours
        ("swapped", "ZA", "AZ", 1),
        ("throughout", "hexrt xttxck", "heart attack", 8 * LETTERS),  # eight different letters, a space among them
        ("cased", "kings", "KINGS", 4),
        ("cased", "kINGS", "KINGS", 20),
        ("spaced", "NEWYORK", "NEW YORK", 9),
        ("framed", "KINGS***", "KINGS", 20),  # before or after, ten kinds of signs
        ("reversed", "nossreP nafetS", "Stefan Persson", 1),
        ("scrambled", "Xyz-abc 7", "Xpq-cbc 7", 4**3 / 0.03**3),  # three letters kept, three of 25 others
        ("truncated", "Rockingham Cou", "Rockingham County", 17),
    ],
)
def test_the_chance_of_a_slip(cause: str, seen: str, meant: str, one_of: int) -> None:
    assert CAUSES[cause].log_chance(seen, meant) == pytest.approx(-math.log(one_of))


@pytest.mark.parametrize("cause", SLIPS, ids=lambda cause: cause.name)
def test_nothing_is_made_of_itself_or_of_something_else(cause: object) -> None:
    assert cause.log_chance("KINGS", "KINGS") == NEVER
    assert cause.log_chance("KINGS", "Manhattan") == NEVER


@pytest.mark.parametrize("meant", ["HH", "BY", "AB"])
def test_of_a_text_without_a_letter_left_no_slip_tells_what_was_meant(meant: str) -> None:
    assert all(cause.log_chance("XX", meant) == NEVER for cause in SLIPS)


@given(st.text("abAB1 *", max_size=8), st.integers(0, 8), st.text("abAB1 ", max_size=3))
def test_what_a_cause_undoes_it_can_have_made(seen: str, place: int, likely: str) -> None:
    for cause in SLIPS:
        for meant in cause.undo(seen, place, likely):
            if meant and meant != seen:
                assert any(other.log_chance(seen, meant) > NEVER for other in SLIPS), (cause.name, seen, meant)


@given(st.text("abc", min_size=1, max_size=5))
def test_the_chances_of_all_that_a_cause_makes_are_at_most_one(meant: str) -> None:
    inserted = {meant[:at] + letter + meant[at:] for at in range(len(meant) + 1) for letter in "abcdef"}
    dropped = {meant[:at] + meant[at + 1 :] for at in range(len(meant))}
    for cause in SLIPS:
        assert sum(math.exp(cause.log_chance(seen, meant)) for seen in inserted | dropped) <= 1 + 1e-9


@given(st.text(max_size=6), st.text(max_size=6))
def test_any_texts_have_a_chance(seen: str, meant: str) -> None:
    for cause in SLIPS:
        assert cause.log_chance(seen, meant) <= 0
        assert isinstance(cause.words(meant), str)


def test_a_default_is_a_sign_or_a_number() -> None:
    assert log_chance_of_default("20010101") == pytest.approx(-math.log(100) - 8 * math.log(10))
    assert log_chance_of_default("11111111") == pytest.approx(-math.log(100))
    assert log_chance_of_default("unknown") == NEVER
    assert log_chance_of_default("??") == pytest.approx(-math.log(50))


@pytest.mark.parametrize("tag", ["+", "%", "++", "+/-", "<=", "&"])
def test_signs_that_say_something_are_no_placeholders(tag: str) -> None:
    assert log_chance_of_default(tag) == NEVER
