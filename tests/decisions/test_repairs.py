"""Repairs that people give, and what they tell of other cells."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from cellmend.decisions.habits import TRAITS, Coded, Habits, shape_of
from cellmend.decisions.repairs import Given, Way, best_company, learn_repairs, ways_from

PAIRS = ("rarest_pair", "usual_pairs")


def habits_of(texts: list[str]) -> Habits:
    different = list(dict.fromkeys(texts))
    return Habits.of(Coded(different, np.array([different.index(text) for text in texts])))


@pytest.mark.parametrize(
    ("text", "repair", "other", "meant"),
    [
        ("12 oz", "12", "16 oz", "16"),
        ("8:05aDec 1", "8:05 a.m.", "9:40aDec 2", "9:40 a.m."),
        ("2222", "22", "4455", "45"),
        ("eurt", "true", "eslaf", "false"),
        ("0.732", "732", "1.25", "1250"),
        ("03/12/2024", "12/03/2024", "05/11/2024", "11/05/2024"),
        ("ROME", "rome", "OSLO", "oslo"),
    ],
)
def test_one_repair_tells_another(text: str, repair: str, other: str, meant: str) -> None:
    assert meant in {way.rewrite(other) for way in ways_from(text, repair)}


def test_every_way_leads_to_the_repair_that_it_came_from() -> None:
    for way in ways_from("Fri 12:29 a.m.", "12:29 a.m."):
        assert way.rewrite("Fri 12:29 a.m.") == "12:29 a.m."


@pytest.mark.parametrize(("text", "repair"), [("12.0", "622.0"), ("Birmxngham", "Birmingham"), ("17.0", "13.0")])
def test_a_part_of_a_word_or_number_tells_nothing_of_others(text: str, repair: str) -> None:
    assert [way.name for way in ways_from(text, repair)] == ["value"]


def test_a_way_that_was_wrong_elsewhere_is_not_gone() -> None:
    given = [Given("12 oz", "12", "", None), Given("9 oz", "8", "", None)]
    assert Way("end", " oz", "") not in [way for way, _ in learn_repairs(given, {}).ways]


def test_what_is_rewritten_may_look_as_the_given_repairs_do() -> None:
    wrong = habits_of(["12.0 oz.", "16.0 oz.", "24.0 oz."] * 5)
    told = learn_repairs([Given("12.0 oz.", "12", "", None), Given("16.0 oz.", "16", "", None)], {})
    assert told.meant("24.0 oz.", "", wrong) == "24"
    assert told.meant("x.0 oz.", "", wrong) is None


def test_that_cells_should_be_empty_is_told_and_no_guess_of_it() -> None:
    given = [Given("N/A", "", "", None), Given("N/A", "", "", None)]
    assert learn_repairs(given, {}).meant("N/A", "", None) == ""


def test_ways_must_be_better_than_the_model() -> None:
    known = habits_of(["12", "13", "14"] * 5)
    guessed = [Given("12 oz", "12", "", "12"), Given("13 oz", "13", "", "13"), Given("x", "14", "", "14")]
    assert learn_repairs([Given("12 oz", "12", "", "99")], {}).meant("15 oz", "", known) == "15"
    assert learn_repairs(guessed, {}).ways == ()


def test_what_company_has_is_meant_if_it_was_so_before() -> None:
    told = learn_repairs([Given("9:10", "9:00", "AA-1", None)], {"AA-1": "9:00", "AA-2": "8:00"})
    assert told.meant("8:07", "AA-2", None) == "8:00"
    assert told.meant("8:07", "AA-3", None) is None


def test_cells_that_are_held_to_be_wrong_do_not_count_as_company() -> None:
    flight, time = Coded(["AA-1"], np.zeros(5, dtype=np.int64)), Coded(["9:00", "9:10"], np.array([0, 0, 1, 1, 1]))
    assert best_company(flight, time, np.ones(5)) == {"AA-1": "9:10"}
    assert best_company(flight, time, np.array([1, 1, 0.1, 0.1, 0.1])) == {"AA-1": "9:00"}


def test_traits_are_the_same_in_every_process_to_the_last_digit() -> None:
    program = """
from tests.decisions.test_repairs import habits_of
texts = [f"{name} street {number}" for number, name in enumerate(["Main", "Mill", "Church", "Station"] * 5)]
print(habits_of(texts).traits(texts).tobytes().hex())
"""
    said = [
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] != b""


@pytest.mark.parametrize("text", ["", "Straße 12½", "ABc-9\u0660", "東京 1,200", "x" * 200])
def test_the_shape_of_a_text_is_that_of_its_signs(text: str) -> None:
    slow = "".join(
        "9" if sign.isdigit() else sign if not sign.isalpha() else "A" if sign.isupper() else "a" for sign in text[:80]
    )
    assert shape_of(text) == slow


def test_pairs_of_letters_are_as_rare_as_a_slow_count_says() -> None:
    texts = ["abba", "abc", "xyz", "abba"]
    known = habits_of(texts)
    rarest, usual = (known.traits(["abc", "abba", "new"])[:, TRAITS.index(f"{name}")] for name in PAIRS)
    for place, (text, own) in enumerate([("abc", 1), ("abba", 2), ("new", 1)]):
        cut = f"\x02{text}\x03"
        pairs = {cut[start : start + 2] for start in range(len(cut) - 1)}
        counted = [sum(pair in f"\x02{each}\x03" for each in texts) for pair in pairs]
        rare = [np.log((max(count - own, 0) if count > 1 else 0) + 0.5) - np.log(4) for count in counted]
        assert rarest[place] == pytest.approx(min(rare))
        assert usual[place] == pytest.approx(np.mean(rare))
