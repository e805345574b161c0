"""Forms of texts: worked examples, and whatever text there is."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cellmend.posterior import forms

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
TEXTS = st.lists(ANY_TEXT, min_size=1, max_size=8)
OF_TEXTS = (forms.cut, forms.folded, forms.bare, forms.shape, forms.without_digits, forms.as_digits, forms.length)
OF_SHAPES = (
    forms.outline,
    forms.case,
    forms.symbols,
    forms.first_letter,
    forms.last_letter,
    forms.digits,
    forms.decimals,
    forms.words,
)


def one(form: forms.Form, text: str) -> object:
    return form(pa.array([text]))[0].as_py()


@given(TEXTS)
@example(["a\nb", "\n", "\x00", "", "İ", "ﬁ²½", "\u2028x\u0085y", "\U0010ffff", "a" * 200])
def test_forms_take_any_text_and_give_one_form_for_each(texts: list[str]) -> None:
    given_texts = pa.array(texts, pa.string())
    for form in OF_TEXTS:
        assert len(form(given_texts)) == len(texts), form.__name__
    shapes = forms.shape(given_texts)
    for form in OF_SHAPES:
        found = form(shapes)
        assert len(found) == len(texts), form.__name__
        assert found.null_count == 0, form.__name__
    for pattern in (forms.MOJIBAKE, forms.PLACEHOLDER, forms.SENTINEL, forms.NUMBER):
        assert len(forms.matches(given_texts, pattern)) == len(texts)


@given(TEXTS)
@example(["a\nb c", "²٣", "ǅ"])
def test_a_shape_has_a_sign_for_each_of_the_first_letters(texts: list[str]) -> None:
    for text, shape, plain in zip(
        texts, forms.shape(pa.array(texts)).to_pylist(), forms.without_digits(pa.array(texts)).to_pylist(), strict=True
    ):
        seen = text[: forms.LONGEST]
        assert len(shape) == len(plain) == len(seen)
        for letter, sign, same in zip(seen, shape, plain, strict=True):
            expected = "9" if letter.isdigit() else "A" if letter.isupper() else "a" if letter.isalpha() else None
            if expected is not None and (letter.isalpha() or letter.isdigit()):
                assert sign == expected
            assert same == ("9" if letter.isdigit() else " " if letter == "\n" else letter)


@given(TEXTS)
def test_folding_twice_is_folding_once(texts: list[str]) -> None:
    once = forms.folded(pa.array(texts, pa.string()))
    # Lower case is not always its own lower case ("ẞ" and friends are); spaces are.
    assert [len(text) for text in forms.folded(once).to_pylist()] == [len(text) for text in once.to_pylist()]
    assert all("  " not in text and text == text.strip(" ") for text in once.to_pylist())


@given(TEXTS)
def test_no_texts_give_no_forms_and_each_text_has_its_form_whatever_stands_beside_it(texts: list[str]) -> None:
    for form in OF_TEXTS:
        assert len(form(pa.array([], pa.string()))) == 0
        whole = form(pa.array(texts, pa.string())).to_pylist()
        assert whole == [form(pa.array([text], pa.string()))[0].as_py() for text in texts], form.__name__


@given(TEXTS)
@example(["1e999", "-1e-999", "9" * 400, "1,,,2.", ".5", "+5", "(5", "12%)"])
def test_a_text_is_a_number_or_none_and_never_stops_the_rest(texts: list[str]) -> None:
    assert len(forms.numbers(pa.array(texts, pa.string()))) == len(texts)


@pytest.mark.parametrize("text", ["--5", "-$-5"])
def test_a_number_with_two_signs_does_not_stop_the_rest(text: str) -> None:
    assert forms.numbers(pa.array(["1", text]))[0] == 1


@given(st.floats(-1e12, 1e12).map(lambda x: round(x, 4)))
def test_numbers_are_read_as_python_writes_them(value: float) -> None:
    texts = [repr(value), f"{value:,.4f}", f" {value:.4f} ", f"${abs(value):.4f}", f"({abs(value):.4f})"]
    expected = [value, value, value, abs(value), -abs(value)]
    assert forms.numbers(pa.array(texts)).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.5", 1234.5),
        ("$3", 3.0),
        ("-$3", -3.0),
        ("€ 7.25", 7.25),
        ("(7)", -7.0),
        ("12%", 12.0),
        ("1.02E+11", 1.02e11),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("  42 ", 42.0),
        ("1e400", math.inf),
        ("abc", math.nan),
        ("12 kg", math.nan),
        ("1.2.3", math.nan),
        ("", math.nan),
        ("-", math.nan),
        ("2024-01-02", math.nan),
    ],
)
def test_what_is_read_as_a_number(text: str, value: float) -> None:
    assert forms.numbers(pa.array([text])).tolist() == pytest.approx([value], nan_ok=True)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2024-01-02", (2024, 1, 2)),
        ("1/2/2024", (2024, 1, 2)),
        ("12.31.1999", (1999, 12, 31)),
        ("1/2/49", (2049, 1, 2)),
        ("1/2/50", (1950, 1, 2)),
        ("2024/1/2 10:30", (2024, 1, 2)),
        ("2024-01-02T00:00:00", (2024, 1, 2)),
    ],
)
def test_days_count_months_of_31_and_years_of_12_of_them(text: str, date: tuple[int, int, int]) -> None:
    year, month, day = date
    assert forms.days(pa.array([text])).tolist() == [12 * 31 * year + 31 * month + day - 1]


@given(TEXTS)
def test_dates_are_read_or_not_whatever_the_text(texts: list[str]) -> None:
    assert len(forms.days(pa.array(texts, pa.string()))) == len(texts)
    assert forms.impossible(pa.array(texts, pa.string())).dtype == bool


def test_later_days_of_the_calendar_are_later() -> None:
    written = np.arange(np.datetime64("1995-01-01"), np.datetime64("2005-01-01")).astype(str)
    assert (np.diff(forms.days(pa.array(written))) > 0).all()


@pytest.mark.parametrize("text", ["2042-13-45", "0/1/2020", "1/32/2020", "13/13/2020", "2300-01-01", "2020-00-10"])
def test_days_that_no_calendar_has_are_impossible(text: str) -> None:
    assert forms.impossible(pa.array([text])).tolist() == [True]


@pytest.mark.parametrize("text", ["31/12/2020", "12/31/2020", "2020-12-31", "1/1/99", "x", "", "99", "13.5"])
def test_all_other_texts_are_possible(text: str) -> None:
    assert forms.impossible(pa.array([text])).tolist() == [False]


@pytest.mark.parametrize("text", ["Urbán", "São Paulo", "Œuvre", "naïve – “quoted”", "日本", "€5", "À la carte", "x"])
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_a_text_read_in_a_wrong_encoding_is_read_back(text: str, encoding: str) -> None:
    try:
        mixed = text.encode("utf-8").decode(encoding)
    except UnicodeDecodeError:
        pytest.skip("no such letter in that encoding")
    assert forms.unmixed(mixed) == text


@pytest.mark.parametrize(
    "text",
    [
        "UrbÃ¡n",
        "SÃ£o Paulo",
        "donâ€™t",
        "Â£5",
        "1 &amp; 2",
        "a%2Fb",
        "caf\ufffd",
        "Ã€ la carte",
        "Å’uvre",
    ],
)
def test_texts_read_in_a_wrong_encoding_are_known(text: str) -> None:
    assert forms.matches(pa.array([text]), forms.MOJIBAKE)[0]


@pytest.mark.parametrize("text", ["Urbán", "ÃO", "SÃO PAULO", "Ângela", "100%", "AT&T", "50% OFF"])
def test_letters_with_accents_are_no_sign_of_a_wrong_encoding(text: str) -> None:
    assert not forms.matches(pa.array([text]), forms.MOJIBAKE)[0]


@given(ANY_TEXT)
def test_unmixing_takes_any_text_and_leaves_plain_ones(text: str) -> None:
    found = forms.unmixed(text)
    assert isinstance(found, str)
    if text.isascii():
        assert found == text


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (forms.folded, "  New\t York ", "new york"),
        (forms.folded, "a\u00a0b", "a b"),
        (forms.bare, "São-Paulo, (SP)", "saopaulosp"),
        (forms.bare, "-1.5", "-1.5"),
        (forms.bare, "St. Louis", "stlouis"),
        (forms.bare, "405-605-1234", "4056051234"),
        (forms.shape, "AB-12 c", "AA-99 a"),
        (forms.without_digits, "B12", "B99"),
        (forms.as_digits, "O.67", "0.67"),
        (forms.as_digits, "lSBz", "1582"),
        (forms.cut, "x" * 100, "x" * 60),
        (forms.length, "äb", 2),
    ],
)
def test_forms_of_texts(form: forms.Form, text: str, expected: object) -> None:
    assert one(form, text) == expected


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (forms.outline, "New York City 10025", "Aa 9"),
        (forms.outline, "1,234.50", "9,9.9"),
        (forms.case, "New York", "Aa"),
        (forms.case, "NEW YORK", "A"),
        (forms.case, "pERMITTED wORK", "aA"),
        (forms.case, "New york", "Aa a"),
        (forms.case, "12", ""),
        (forms.symbols, "(405) 605-1234", "()-"),
        (forms.first_letter, "a1", "a"),
        (forms.last_letter, "a1", "9"),
        (forms.digits, "a1b22", 3),
        (forms.decimals, "12.345", 3),
        (forms.decimals, "12", 0),
        (forms.decimals, "$1.50 ", 2),
        (forms.words, "one two-3", 3),
    ],
)
def test_forms_of_shapes(form: forms.Form, text: str, expected: object) -> None:
    assert form(forms.shape(pa.array([text])))[0].as_py() == expected


@pytest.mark.parametrize(("text", "same"), [("a--b", "a-b"), ("wait...", "wait")])
def test_several_signs_in_a_row_are_left_out_like_one(text: str, same: str) -> None:
    assert one(forms.bare, text) == one(forms.bare, same)


@pytest.mark.parametrize("text", ["TBD", "n/a", "N.A.", "unknown", "???", "--", "xxx", "#REF!", "No data", "null"])
def test_placeholders_are_known(text: str) -> None:
    assert forms.matches(pa.array([text]), forms.PLACEHOLDER)[0]


@pytest.mark.parametrize("text", ["Nana", "Testing", "Otherwise", "x", "5", "Pending order", "Nullarbor"])
def test_words_that_only_begin_so_are_no_placeholders(text: str) -> None:
    assert not forms.matches(pa.array([text]), forms.PLACEHOLDER)[0]
