"""Repairs that people give, and what they tell of other cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cellmend.decisions.repairs import Given, Partner, Repairs, Way, ways_from
from cellmend.posterior.known import Coded, Known


def known(texts: list[str]) -> Known:
    return Known.of("column", Coded.of(pa.chunked_array([pa.array(texts)])))


def given(text: str, repair: str, guess: str | None = None, beside: str = "") -> Given:
    return Given(text, repair, guess, {0: beside})


def meant(repairs: Repairs, text: str, column: list[str], beside: str = "") -> str | None:
    return repairs.meant([(text, beside)], known(column)).get((text, beside))


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
    assert Way("end", " oz", "") not in Repairs.learn([given("12 oz", "12"), given("9 oz", "8")], []).ways


def test_what_is_rewritten_may_look_as_the_given_repairs_do() -> None:
    wrong = ["12.0 oz.", "16.0 oz.", "24.0 oz."] * 5
    told = Repairs.learn([given("12.0 oz.", "12"), given("16.0 oz.", "16")], [])
    assert meant(told, "24.0 oz.", wrong) == "24"
    assert meant(told, "x.0 oz.", wrong) is None


def test_that_cells_should_be_empty_is_told_and_no_guess_of_it() -> None:
    assert meant(Repairs.learn([given("N/A", ""), given("N/A", "")], []), "N/A", ["x"]) == ""


def test_ways_must_be_better_than_the_model() -> None:
    numbers = ["12", "13", "14"] * 5
    guessed = [given("12 oz", "12", "12"), given("13 oz", "13", "13"), given("x", "14", "14")]
    assert meant(Repairs.learn([given("12 oz", "12", "99")], []), "15 oz", numbers) == "15"
    assert Repairs.learn(guessed, []).ways == ()


def test_what_a_partner_tells_is_meant_if_it_was_so_before() -> None:
    flight = Partner(0, {"AA-1": "9:00", "AA-2": "8:00"})
    told = Repairs.learn([given("9:10", "9:00", beside="AA-1")], [Partner(1, {"AA-1": "7:00"}), flight])
    assert told.partner == flight
    assert meant(told, "8:07", [], "AA-2") == "8:00"
    assert meant(told, "8:07", [], "AA-3") is None
    assert Repairs.learn([given("9:10", "9:05", beside="AA-1")], [flight]).partner is None


def test_the_surer_of_ways_and_partner_goes_first() -> None:
    flight = Partner(0, {"AA-1": "9:00", "AA-2": "8:00"})
    twice = [given("9:00 x", "9:00", beside="AA-1"), given("8:00 x", "8:00", beside="AA-2")]
    times = ["7:00", "8:00", "9:00"] * 5
    assert meant(Repairs.learn(twice, [flight]), "7:00 x", times, "AA-2") == "7:00"
    also = [*twice, given("5:00 x", "9:00", beside="AA-1")]
    assert meant(Repairs.learn(also, [flight]), "7:00 x", times, "AA-2") == "8:00"


def test_cells_that_are_held_to_be_wrong_do_not_tell_what_is_meant() -> None:
    flight = Coded(pa.array(["AA-1"]), np.zeros(5, dtype=np.int64))
    time = Coded(pa.array(["9:00", "9:10"]), np.array([0, 0, 1, 1, 1]))
    assert Partner.learn(0, flight, time, np.ones(5)).tells == {"AA-1": "9:10"}
    assert Partner.learn(0, flight, time, np.array([1, 1, 0.1, 0.1, 0.1])).tells == {"AA-1": "9:00"}
