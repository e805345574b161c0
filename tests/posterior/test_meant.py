"""What a wrong cell may have been."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellmend.findings.hypotheses import Asked, Hypotheses, joined, told_by_interval, weighed
from cellmend.posterior.evidence import Portrait, places_of
from cellmend.posterior.meant import (
    FIGURES,
    SOURCES,
    Hypothesis,
    Spellings,
    _in_case,
    _moved,
    _turned,
    figures_of,
    told_by_pairs,
)
from cellmend.posterior.posterior import Posterior
from cellmend.posterior.priors import FARTHEST
from cellmend.posterior.weigher import FAMILIES, OF_CELL, learned
from cellmend.table.readtable import Suspect
from tests.posterior.test_known import known_of

CITIES = ["Denver"] * 20 + ["LOUISVILLE"] * 15 + ["Urbán"] * 10 + ["Springfield Heights"] * 8 + ["Boston"] * 5
ITSELF = {"mojibake", "trimmed", "digits", "point", "sign", "word"}
SHORT = st.text("aA1. ", min_size=1, max_size=3).filter(str.strip)
COLUMNS = st.lists(SHORT, min_size=1, max_size=20)


RATES = np.full((1, len(FAMILIES)), 0.01)


def meant(text: str, column: list[str]) -> dict[str, list[str]]:
    """By source what the text may have been."""
    found: dict[str, list[str]] = {}
    for each in Spellings(known_of(list(column))).of(text):
        found.setdefault(each.source, []).append(each.meant)
    return found


def asked_of(column: list[str], text: str, *suspects: Suspect) -> list[Hypothesis]:
    """All hypotheses about a cell that stands below a column."""
    portrait, coded = Portrait.learn(pa.table({"city": [*column, text]}))
    words = None  # asked of columns that are modelled alone
    collected = Hypotheses(portrait, portrait.figures(coded), words)  # type: ignore[arg-type]
    return collected.of(Asked(len(column), 0, suspects, None))


@pytest.mark.parametrize(
    ("text", "source", "right"),
    [
        ("denver", "variant", "Denver"),
        ("DEN VER", "variant", "Denver"),
        ("Urban", "variant", "Urbán"),
        ("UrbÃ¡n", "mojibake", "Urbán"),
        (" Denver ", "trimmed", "Denver"),
        ("LOUSIVILLE", "near", "LOUISVILLE"),
        ("Dover LOUSIVILLE", "word", "Dover LOUISVILLE"),
        ("Springfield Hei", "longer", "Springfield Heights"),
        ("Bos", "longer", "Boston"),
    ],
)
def test_a_text_may_have_been_another_of_its_column(text: str, source: str, right: str) -> None:
    assert right in meant(text, [*CITIES, text])[source]
    assert (source, right) in {(each.source, each.meant) for each in asked_of(CITIES, text)}


def test_letters_for_digits_a_moved_point_and_another_sign_are_tried() -> None:
    column = ["0.67", "0.70", "0.81", "0.9"] * 5
    assert meant("O.67", [*column, "O.67"])["digits"] == ["0.67"]
    assert "0.67" in meant("67", column)["point"]
    assert meant("-0.7", column)["sign"] == ["0.7"]
    assert meant("0.7", column)["sign"] == ["-0.7"]
    assert not {"point", "sign"} & set(meant("0", column))
    assert not {"point", "sign"} & set(meant("2024-01-03", ["2024-01-02"] * 9))


def test_a_point_is_not_moved_to_where_no_number_of_the_column_has_one() -> None:
    assert meant("90", ["1", "2", "3", "90"])["point"] == ["9", "900", "9000", "90000"]
    assert "9.0" not in meant("90", ["1.5", "2.5"])["point"]
    assert "0.9" in meant("90", ["1.5", "2.5"])["point"]
    assert "0.09" not in meant("90", ["1.5", "2.5"])["point"]


def test_frequent_texts_may_have_been_no_rarer_ones() -> None:
    column = ["Denver"] * 9 + ["denver"] + ["Denvers", "Dnver"]
    assert meant("Denver", column) == {}


@pytest.mark.parametrize("other", ["denver", "Den-ver", "Denvers", "Dnever", "Denver Heights"])
def test_equally_frequent_texts_are_no_hypotheses_about_each_other(other: str) -> None:
    column = ["Denver", other] * 3
    assert set(meant("Denver", column)) <= {"word", "common"}  # a word of its own or of public tables may be meant
    assert set(meant(other, column)) <= {"word", "common"}


@given(COLUMNS, SHORT)
@settings(max_examples=30)
def test_no_hypothesis_of_the_column_is_rarer_than_the_text(column: list[str], text: str) -> None:
    for each in Spellings(known_of(list(column))).of(text):
        assert each.source in SOURCES
        assert each.because
        if each.source not in ITSELF:
            assert each.meant != text
            assert column.count(each.meant) > column.count(text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=1, max_size=6))
@settings(max_examples=20)
def test_any_text_may_be_asked_about(column: list[str]) -> None:
    spellings = Spellings(known_of([*column, *column[:1]]))
    for text in column:
        list(spellings.of(text))


def test_a_usual_text_with_spaces_is_not_trimmed_to_a_rare_one() -> None:
    assert "trimmed" not in meant("a  b", ["a  b"] * 10 + ["a b"])


def test_a_placeholder_is_meant_only_where_the_cell_is_written_nearly_so() -> None:
    assert "near" in meant("unknwn", ["unknown"] * 9 + ["unknwn"])
    assert {each.source for each in asked_of(["unknown"] * 9, "unknwn")} >= {"near"}
    slip = Suspect(3, 0, 0.9, ("pending", "Rome"), "a slip", "replaced")
    found = asked_of(["Rome", "Oslo", "Lima"], "pendng", slip)
    assert [each.meant for each in found if each.source == "slip"] == ["pending", "Rome"]
    assert not any(each.meant == "pending" for each in found if each.source in ("level", "number", "pair"))


def test_a_question_mark_says_that_somebody_was_in_doubt_and_is_not_taken_away() -> None:
    column = ["G5"] * 20 + ["G4"] * 9 + ["G5?"]
    assert "G5" in meant("G5?", column)["variant"]
    assert "G5" not in [each.meant for each in asked_of(column, "G5?")]


def test_a_reason_names_the_meaning_that_it_is_given_for() -> None:
    slip = Suspect(3, 0, 0.9, ("Rome", "Oslo"), "Rxme is probably Rome", "replaced")
    found = {each.meant: each.because for each in asked_of(["Lima"], "Rxme", slip) if each.source == "slip"}
    assert found == {"Rome": "Rxme is probably Rome", "Oslo": "probably Oslo"}


def test_experts_tell_by_relations_or_slips_and_each_meaning_stands_once_a_source() -> None:
    suspects = (
        Suspect(3, 0, 0.7, ("Rome",), "the key says so", "dependency"),
        Suspect(3, 0, 0.6, ("Rome", "Oslo"), "a letter", "replaced"),
        Suspect(3, 0, 0.5, ("Rome",), "another letter", "swapped"),
    )
    found = [(each.source, each.meant) for each in asked_of(["Lima", "Bonn", "Kyiv"], "Paris", *suspects)]
    assert sorted(found) == [("relation", "Rome"), ("slip", "Oslo"), ("slip", "Rome")]


@pytest.mark.parametrize(
    ("text", "power", "moved"),
    [
        ("31.8", -1, "3.18"),
        ("5", 1, "50"),
        ("1,200", 1, None),
        ("0.05", 2, "5"),
        ("100", -2, "1"),
        ("-7.5", 1, "-75"),
        (" 4 ", -1, "0.4"),
        ("1e30", 1, None),
        ("nan", 1, None),
        ("Infinity", 1, None),
        ("x", 1, None),
    ],
)
def test_points_are_moved_as_on_paper(text: str, power: int, moved: str | None) -> None:
    assert _moved(text, power) == moved


@pytest.mark.parametrize(
    ("text", "turned"), [("5", "-5"), ("-5", "5"), (".5", "-.5"), (" 5 ", "-5"), ("(5)", None), ("$5", None)]
)
def test_signs_are_turned(text: str, turned: str | None) -> None:
    assert _turned(text) == turned


def test_a_word_has_the_case_of_the_one_that_it_replaces() -> None:
    assert [_in_case("rome", like) for like in ("OSLO", "Oslo", "oslo")] == ["ROME", "Rome", "rome"]


def places() -> tuple[Portrait, np.ndarray]:
    table = pa.table({"zip": ["1", "2"] * 10 + ["2"], "city": ["a", "b"] * 10 + ["a"]})
    portrait, coded = Portrait.learn(table)
    return portrait, places_of(portrait.columns, coded)


def test_the_column_beside_tells_what_a_cell_was() -> None:
    portrait, codes = places()
    told = told_by_pairs(portrait, codes, 20, 0)
    assert told == Hypothesis("1", "pair", "for city a it is 1 in 10 of 11 rows", 10 / 12)
    assert told_by_pairs(portrait, codes, 0, 0) is None


def test_figures_of_hypotheses_by_hand() -> None:
    portrait, codes = places()
    both = [Hypothesis("1", "pair", "", 0.5), Hypothesis("1", "near", ""), Hypothesis("77", "level", "", 0.2)]
    supports = [portrait.pairs.support(codes, 20, 0, place) for place in (0, 0, -1)]
    found = figures_of("2", both, Spellings(portrait.columns[0]), supports, [-1.0, math.nan, -99.0])
    assert found.shape == (3, len(FIGURES))
    line = [dict(zip(FIGURES, each, strict=True)) for each in found.tolist()]
    for each, hypothesis in zip(line, both, strict=True):
        assert [source for source in SOURCES if each[source]] == [hypothesis.source]
    assert line[0]["log_count"] == pytest.approx(math.log1p(10))
    assert line[0]["log_more"] == pytest.approx(math.log(10.5 / 11))
    assert [each["agreeing"] for each in line] == [1, 1, 0]
    assert [each["likeness"] for each in line] == [0, 0, 0]
    assert (line[0]["pair_says"], line[2]["pair_says"]) == (pytest.approx(10 / 12), 0)
    assert line[0]["pair_cells"] == pytest.approx(math.log1p(11))
    assert [each["net_fit"] for each in line] == [-1, 0, -12]
    assert [each["net_chance"] for each in line] == [1, 0, 1]
    assert [each["expert_sure"] for each in line] == [0.5, 0, 0.2]
    assert [each["same_outline"] for each in line] == [1, 1, 1]
    assert line[0]["own_length"] == pytest.approx(math.log(2))


def test_hypotheses_are_weighed_with_the_log_odds_and_the_families_of_their_cell() -> None:
    logs = np.log(np.full((2, 1, 1 + len(FAMILIES)), 1 / (1 + len(FAMILIES))))
    posterior = Posterior(logs, np.ones((2, 1), dtype=bool), RATES)
    cells = [Asked(0, 0, (), None), Asked(1, 0, (), None)]
    figures = [np.zeros((2, len(FIGURES))), np.ones((1, len(FIGURES)))]
    whole = joined(posterior, cells, figures)
    assert whole.shape == (3, len(FIGURES) + OF_CELL)
    np.testing.assert_allclose(whole[:, len(FIGURES)], math.log(len(FAMILIES)))  # as probably right as each family
    np.testing.assert_allclose(whole[:, len(FIGURES) + 1 :], 1 / len(FAMILIES))
    found = weighed(learned().repairs, posterior, cells, figures)
    assert [len(each) for each in found] == [2, 1]
    assert all(((each > 0) & (each <= 1)).all() for each in found)
    assert weighed(learned().repairs, posterior, [], []) == []


def test_a_hypothesis_is_no_likelier_than_that_its_cell_is_wrong() -> None:
    """p(meant | wrong) = p(meant) / p(wrong), worked out by hand, and 1 where the weigher says more than that."""

    class Weigher:
        def chances(self, figures: np.ndarray) -> np.ndarray:
            return np.array([0.2, 0.9])

    logs = np.log(np.full((1, 1, 1 + len(FAMILIES)), 0.5 / len(FAMILIES)))
    logs[..., 0] = math.log(0.5)
    posterior = Posterior(logs, np.ones((1, 1), dtype=bool), RATES)
    (found,) = weighed(Weigher(), posterior, [Asked(0, 0, (), None)], [np.zeros((2, len(FIGURES)))])  # type: ignore[arg-type]
    np.testing.assert_allclose(found, [0.4, 1.0])


@pytest.mark.parametrize("chance", [0.001, 0.3, 0.9999999])
def test_log_odds_of_a_cell_are_those_of_its_suspicion(chance: float) -> None:
    logs = np.full((1, 1, 1 + len(FAMILIES)), math.log(chance / len(FAMILIES)))
    logs[..., 0] = math.log1p(-chance)
    posterior = Posterior(logs, np.ones((1, 1), dtype=bool), RATES)
    assert posterior.log_odds(0, 0) == pytest.approx(min(math.log(chance) - math.log1p(-chance), FARTHEST))


@pytest.mark.parametrize(("source", "typed"), [("point", True), ("relation", True), ("number", False)])
def test_an_interval_speaks_for_what_somebody_typed_and_not_for_what_was_worked_out(source: str, typed: bool) -> None:
    """An interval of .5 deviations, of 3.29 that nine tenths of a column take: 1 - .5 / 3.29 is ruled out."""
    figures = np.zeros((2, len(FIGURES)))
    for at, each in enumerate(("number", source)):
        figures[at, FIGURES.index(each)] = figures[at, FIGURES.index("net_chance")] = 1.0
    figures[0, FIGURES.index("expert_sure")] = figures[1, FIGURES.index("expert_sure")] = math.exp(-0.5)
    worked_out, asked = told_by_interval(figures).tolist()
    assert worked_out == 0
    assert asked == pytest.approx((1 - 0.5 / 3.29) * typed)
    figures[:, FIGURES.index("net_fit")] = -1.4  # outside of the interval
    assert not told_by_interval(figures).any()
