"""What a column says about a text, against slow plain versions."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellmend.posterior import forms
from cellmend.posterior.known import Known
from cellmend.posterior.looks import (
    Beginnings,
    Cases,
    Evidence,
    Forms,
    Frequency,
    Letters,
    Lookalikes,
    Signs,
    Spelling,
    Variants,
    Whole,
    bounded,
)
from tests.posterior.test_known import known_of

SHORT = st.text("abA 1", min_size=1, max_size=5).filter(str.strip)
COLUMN = st.lists(SHORT, min_size=1, max_size=15)
ASKED = st.lists(SHORT, min_size=1, max_size=5)


def figure(sort: Evidence, known: Known, text: str, name: str) -> float:
    return float(sort.of(known, pa.array([text]))[0, sort.names.index(name)])


def log_share(cells: float, known: Known) -> float:
    return math.log((max(cells - 1, 0) + 0.5) / (known.cells + 0.5))


def test_a_text_is_as_frequent_as_its_cells_are() -> None:
    found = Frequency().of(known_of(["a"] * 9 + ["b"]), pa.array(["a", "b", "c"]))
    share = [math.log(8.5 / 10.5), math.log(0.5 / 10.5), math.log(0.5 / 10.5)]
    np.testing.assert_allclose(found, np.stack([[math.log(9), 0, 0], share, [0, 1, 1]], axis=1))


@given(COLUMN, ASKED)
@settings(max_examples=25)
def test_forms_are_shared_with_as_many_cells_as_have_them(column: list[str], asked: list[str]) -> None:
    known = known_of(column)
    found = Forms().of(known, pa.array(asked))

    def form_of(text: str, form: forms.Form | None) -> object:
        if form is forms.length:
            return len(text)
        shape = forms.shape(pa.array([text]))
        return (shape if form is None else form(shape))[0].as_py()

    for place, form in enumerate((None, forms.length, *Forms.of_shapes)):
        for at, text in enumerate(asked):
            alike = sum(form_of(other, form) == form_of(text, form) for other in column)
            assert found[at, place] == pytest.approx(log_share(alike, known))


@given(COLUMN, ASKED)
@settings(max_examples=25)
def test_letters_and_pairs_of_letters_are_as_rare_as_other_texts_make_them(column: list[str], asked: list[str]) -> None:
    known = known_of(column)
    found = Letters().of(known, pa.array(asked))
    different = set(column)

    def plain(text: str) -> str:
        return "".join("9" if letter.isdigit() else letter for letter in text)

    def logs(text: str, size: int) -> list[float]:
        def parts(other: str) -> list[str]:
            marked = f"\n{plain(other)}\n"
            return [marked[at + 1 - size + 1 : at + 2] for at in range(len(marked) - 1)]

        often = [sum(part in parts(other) for other in different) - (text in different) for part in parts(text)]
        return sorted(math.log((max(each, 0) + 0.5) / (len(different) + 0.5)) for each in often)

    for at, text in enumerate(asked):
        letters, pairs = logs(text, 1), logs(text, 2)
        expected = [letters[0], pairs[0], pairs[1], sum(pairs) / len(pairs)]
        assert found[at].tolist() == pytest.approx(expected)


@given(COLUMN, ASKED)
@settings(max_examples=25)
def test_beginnings_and_ends_are_counted_as_by_hand(column: list[str], asked: list[str]) -> None:
    found = Beginnings().of(known_of(column), pa.array(asked))
    for at, text in enumerate(asked):
        begins = sum(other.startswith(text) and other != text for other in column)
        ends = sum(other.endswith(text) and other != text for other in column)
        expected = [math.log1p(begins), math.log(begins / len(column) + 1e-4), math.log1p(ends)]
        assert found[at].tolist() == pytest.approx(expected)


def test_the_same_written_otherwise_more_often_speaks_against_a_text() -> None:
    known = known_of(["Denver"] * 8 + ["denver"] * 2 + ["Boston"])
    assert figure(Variants(), known, "denver", "folded_more") == pytest.approx(math.log(4))
    assert figure(Variants(), known, "Denver", "folded_more") == 0
    assert figure(Variants(), known, "Den-ver", "folded_more") == 0
    assert figure(Variants(), known, "Den-ver", "bare_more") == pytest.approx(math.log(8))
    assert figure(Variants(), known, "Boston", "bare_log_most") == 0


def test_a_text_in_a_wrong_encoding_is_found_again_as_it_should_be() -> None:
    known = known_of(["Urbán"] * 5 + ["UrbÃ¡n"])
    assert figure(Variants(), known, "UrbÃ¡n", "is_mojibake") == 1
    assert figure(Variants(), known, "UrbÃ¡n", "unmixed_known") == pytest.approx(math.log1p(5))
    assert figure(Variants(), known, "Urbán", "is_mojibake") == 0


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        (" Rome", "spaced"),
        ("New  York", "spaced"),
        ("N/A", "placeholder"),
        ("-999", "sentinel"),
        ("?!", "no_letters"),
        ("CITY ", "is_header"),
        ("RomeRome", "doubled"),
        ("12", "is_number"),
        ("1O", "number_if_digits"),
        ("b2", "has_digit"),
        ("b2", "has_letter"),
        ("b2", "ascii"),
    ],
)
def test_signs_of_trouble_are_seen(text: str, sign: str) -> None:
    known = known_of(["Rome"] * 6 + ["New York"] * 4, "City")
    assert figure(Signs(), known, text, sign) == 1
    absent = ("spaced", "placeholder", "sentinel", "no_letters", "is_header", "doubled", "is_number", "impossible_date")
    assert all(figure(Signs(), known, "Rome", each) == 0 for each in absent)


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("new york", "small"),
        ("NEW YORK 7", "capital"),
        ("nEW yORK", "swapped"),
        ("lIMA a", "swapped"),
        ("New York", None),
        ("eBay", None),
        ("iPhone", None),
        ("12", None),
    ],
)
def test_the_case_of_letters_is_seen_and_counted(text: str, case: str | None) -> None:
    column = [text, "Lima", "LIMA", "lima", "Oslo"]
    known, sort = known_of(column), Cases()
    found = {name: figure(sort, known, text, name) for name in sort.names}
    seen = {name for name in ("small", "capital", "swapped") if found[name]}
    assert seen == ({case} if case else set())
    for name, alike in (("small", str.islower), ("capital", str.isupper)):
        cells = sum(alike(other) == alike(text) for other in column)
        assert found[f"share_{name}"] == pytest.approx(log_share(cells, known))
    assert found["share_swapped"] == pytest.approx(log_share(1 if case == "swapped" else 5, known))


def test_dates_that_no_calendar_has_are_seen_in_columns_of_dates_alone() -> None:
    assert figure(Signs(), known_of(["2024-01-02"] * 5), "2024-13-45", "impossible_date") == 1
    assert figure(Signs(), known_of(["a"] * 5), "2024-13-45", "impossible_date") == 0


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("a", {"spaced": 8, "placeholder": 9, "ascii": 9, "is_number": 10}),
        (" a", {"spaced": 2, "placeholder": 9, "ascii": 9, "is_number": 10}),
        ("n/a", {"spaced": 8, "placeholder": 1, "ascii": 9, "is_number": 10}),
        ("7", {"spaced": 8, "placeholder": 9, "ascii": 9, "is_number": 0}),
    ],
)
def test_signs_are_shared_with_as_many_cells_as_have_them(text: str, alike: dict[str, int]) -> None:
    known = known_of(["a"] * 6 + [" a"] * 2 + ["n/a"] + ["é"])
    found = [figure(Signs(), known, text, f"share_{name}") for name in alike]
    assert found == pytest.approx([log_share(cells, known) for cells in alike.values()])


@pytest.mark.parametrize(
    ("column", "text", "figure_of"),
    [
        (["0.67", "0.12", "3.95"] * 9, "O.67", "shape_if_digits"),
        (["1200", "3415"] * 9, "l200", "shape_if_digits"),
        (["LOUISVILLE", "LEXINGTON"] * 9, "L0UISVILLE", "outline_if_letters"),
    ],
)
def test_letters_for_digits_and_digits_for_letters_would_be_at_home(
    column: list[str], text: str, figure_of: str
) -> None:
    known = known_of([*column, text])
    assert figure(Lookalikes(), known, text, figure_of) > 2
    assert all(figure(Lookalikes(), known, column[0], name) <= 0 for name in Lookalikes.names)


def test_a_letter_for_a_digit_that_many_cells_have_counts_less() -> None:
    few, many = (known_of(["0.67", "0.12"] * 20 + ["O.67"] * times) for times in (1, 20))
    gains = [figure(Lookalikes(), known, "O.67", "shape_if_digits") for known in (few, many)]
    assert gains[0] > gains[1] > 0


def test_a_code_that_lookalikes_make_the_same_is_a_variant() -> None:
    known = known_of(["LO0P7"] * 9 + ["L00P7"])
    assert figure(Variants(), known, "L00P7", "alike_more") == pytest.approx(math.log(9))
    assert figure(Variants(), known, "LO0P7", "alike_more") == 0


def test_a_more_frequent_spelling_and_word_speak_against_a_text() -> None:
    known = known_of(["LOUISVILLE"] * 9 + ["LOUSIVILLE"] + ["NEW LOUISVILLE"] * 3)
    assert figure(Spelling(), known, "LOUSIVILLE", "text_near") > 0
    assert figure(Spelling(), known, "LOUISVILLE", "text_near") == 0
    assert figure(Spelling(), known, "LOUSIVILLE", "text_distance") == 1
    assert figure(Spelling(), known, "NEW LOUSIVILLE", "word_near") == pytest.approx(math.log(12 / 1))
    assert figure(Spelling(), known, "NEW LOUSIVILLE", "word_distance") == 1


def test_a_column_is_described_as_it_is() -> None:
    known = known_of(["aa"] * 3 + ["b"] + [None])
    found = Whole().of(known, pa.array(["x", "y"]))
    expected = [math.log1p(4), math.log1p(2), 0.5, 0.25, 0.2, math.log1p(7 / 4), 0.75, 0.0]
    np.testing.assert_allclose(found, [expected, expected])


def test_figures_are_held_within_bounds() -> None:
    assert bounded(np.array([np.nan, np.inf, -np.inf, 1e9, -3.0])).tolist() == [0.0, 12.0, -12.0, 12.0, -3.0]
