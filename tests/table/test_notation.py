"""Text as people type it: numbers with units, commas, gaps and slips."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.table.dates import Dates
from cellmend.table.notation import (
    describe_columns,
    describe_together,
    learn_notation,
    learn_notations,
    notations_from_json,
    notations_to_json,
    tidy,
    understand,
)
from cellmend.table.numbers import Numbers, usual_decimals
from cellmend.table.texts import Words


def read(*texts: str | None) -> tuple[list, list[int]]:
    """The values, None where they are missing or cannot be read, and which cells cannot be read."""
    column = pa.array(texts, pa.string())
    values = learn_notation(column).read(column).values.to_pylist()
    return [v if v == v else None for v in values], [row for row, v in enumerate(values) if v != v]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "2", "3"], [1, 2, 3]),
        (["1.0", "2.50", "-3"], [1.0, 2.5, -3.0]),
        (["1,200", "3", "1,234,567"], [1200, 3, 1234567]),
        (["1.200,50", "3,5"], [1200.5, 3.5]),
        (["1 200,5", "3,25"], [1200.5, 3.25]),
        (["1 000,0", "1 000,0"], [1000.0, 1000.0]),
        (["1'200.5", "3.25"], [1200.5, 3.25]),
        (["$1,200.50", "$3"], [1200.5, 3.0]),
        (["12 %", "7%"], [12, 7]),
        (["1e3", "2.5e-2"], [1000.0, 0.025]),
        (["5.", ".5"], [5.0, 0.5]),
        (["(59.14)", "12.00", "84.66-", "-$8.5", "\u22125.6"], [-59.14, 12.0, -84.66, -8.5, -5.6]),
        (["<30", "45", "> 90", "61", "~7"], [30, 45, 90, 61, 7]),
    ],
)
def test_numbers_are_read_as_they_are_written(texts: list[str], values: list[float]) -> None:
    assert read(*texts) == (values, [])


def test_a_space_behind_a_currency_is_written_again() -> None:
    assert learn_notation(pa.array(["$ 8.45", "$ 1,200.00", "$ 3.10"])).write(845.6, 2) == "$ 845.60"
    assert learn_notation(pa.array(["$8.45", "$ 1,200.00", "$3.10"])).write(845.6, 2) == "$845.60"


def test_what_is_no_number_is_not_only_written_strangely() -> None:
    notation = learn_notation(pa.array(["$ 8.45", "$ 12.00", "$ 3.10"] * 30))
    assert notation.read(pa.array(["845 62", "845.62"])).strange.tolist() == [False, True]


def test_levels_that_differ_in_the_sign_before_a_number_are_no_numbers() -> None:
    texts = ["<=50K"] * 30 + [">50K"] * 15
    for typo in ("<=5K", ">550K", "<=50H"):
        assert isinstance(learn_notation(pa.array([*texts, typo])), Words)
    measured = ["<5", "5", "7", "12", "31", ">100", "44", "18"]
    assert isinstance(learn_notation(pa.array(measured)), Numbers)


@pytest.mark.parametrize("text", ["2026-03-01T00:05:00Z", "2026-03-01T00:05:00+00:00", "2026-03-01 00:05:00Z"])
def test_times_that_name_the_zone_of_greenwich_are_dates(text: str) -> None:
    notation = learn_notation(pa.array([text.replace(":05:", f":{minute:02}:") for minute in range(60)]))
    assert isinstance(notation, Dates)
    assert notation.write(notation.read(pa.array([text])).values[0].as_py(), None) == text


def test_gaps_are_spelled_in_many_ways() -> None:
    assert read("1", "N/A", "nan", "", None, "NULL", "?", "-", " ", "2", "3", "4") == (
        [1, *[None] * 8, 2, 3, 4],
        [],
    )
    assert read("a", "none", "?", "NA", None, "a b")[0] == ["a", "none", "?", None, None, "a b"]


def test_what_is_no_number_in_a_column_of_numbers_cannot_be_read() -> None:
    values, unreadable = read("4400.00", "4400..00", "12", "x", "7", "8")
    assert values == [4400.0, None, 12.0, None, 7.0, 8.0]
    assert unreadable == [1, 3]


def test_a_unit_belongs_to_the_column_however_it_is_spelled() -> None:
    texts = pa.array(["12.0 oz.", "16.0 oz", "12.0 OZ.", "12.0 oz.", "8.4 oz"])
    reader = learn_notation(texts)
    assert reader.read(texts).values.to_pylist() == [12.0, 16.0, 12.0, 12.0, 8.4]
    assert reader.units == ("oz.", "oz", "OZ.")
    assert reader.write(16.0, 1) == "16.0 oz."


@pytest.mark.parametrize(
    "texts",
    [
        ["02134", "94110", "10001"],
        ["12 Main St", "7 Oak Ave", "3 Elm Rd", "9 High St", "1 Low Rd"],
        ["A12", "B7", "C9"],
        ["555-1234", "555-9876"],
        ["1.2.3", "1.2.4"],
        ["<=50K", ">50K"],
        ["50 up", "50 down"],
        ["10-20", "20-30"],
        ["1.3", "1.3.4", "1.4.2", "1.5.1", "1.6.7", "1.2.2", *["1.4"] * 9],
        ["192.168.100.123", "192.168.100.101", "10.168.100.144"],
        ["688 290 773", "688 111 222", "699 123 456"],
        ["980 g", "1.2 kg", "3.4 kg", "2.5 kg", "870 g", "910 g"],
        ["1.5M", "201K", "310K", "2.5M"],
        ["10000000000000000000000000000001", "20000000000000000000000000000001"],
        ["", "NA"],
    ],
)
def test_codes_names_and_versions_are_text(texts: list[str]) -> None:
    assert learn_notation(pa.array(texts)) == Words()


STYLES = st.builds(
    Numbers,
    decimal=st.just("."),
    thousands=st.sampled_from(["", ",", "'", " "]),
    before=st.sampled_from(["", "$", "€"]),
    after=st.sampled_from(["", " kg", "%"]),
) | st.builds(
    Numbers,
    decimal=st.just(","),
    thousands=st.sampled_from(["", ".", " "]),
    before=st.just(""),
    after=st.just(" m"),
)


@pytest.mark.slow
@given(STYLES, st.lists(st.integers(-(10**7), 10**7), min_size=2, max_size=20), st.integers(1, 2))
def test_what_is_written_is_read_again(style: Numbers, whole: list[int], decimals: int) -> None:
    numbers = [value / 10**decimals for value in whole]
    texts = [style.write(number, decimals) for number in numbers]
    column = pa.array(texts)
    reader = learn_notation(column)
    assert reader.read(column).values.to_pylist() == pytest.approx(numbers)
    assert [reader.write(number, decimals) for number in numbers] == texts


@given(st.lists(st.text(max_size=8), max_size=20))
def test_any_text_is_read_somehow(texts: list[str]) -> None:
    column = pa.array(texts, pa.string())
    reader = learn_notation(column)
    values = reader.read(column).values.to_pylist()
    assert len(values) == len(texts)
    if reader == Words():
        assert all(value in (text.strip(), None) for value, text in zip(values, texts, strict=True))


@pytest.mark.slow
@given(st.lists(st.sampled_from(["1", "2,5", "$3", "x", "4 kg", "N/A", "2024-01-05", "5.1.2024", " a "]), min_size=1))
def test_a_reader_survives_json_and_reads_as_before(texts: list[str]) -> None:
    table = pa.table({"a": texts})
    readers = learn_notations(table, {})
    again = notations_from_json(json.loads(json.dumps(notations_to_json(readers))))
    assert again == readers
    one, other = (understand(table, each)["a"].to_pylist() for each in (readers, again))
    assert str(one) == str(other)


# ---------------------------------------------------------------- dates


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["1970-01-02", "1970-02-01"], [1, 31]),
        (["02.01.1970", "01.02.1970"], [1, 31]),
        (["02/01/1970", "01/02/1970"], [1, 31]),
        (["01/02/1970", "02/28/1970"], [1, 58]),
        (["2 Jan 1970", "Feb 1970"], None),
        (["2 Jan 1970", "1 Feb 1970"], [1, 31]),
        (["Jan 2, 1970", "Feb 1, 1970"], [1, 31]),
        (["1970-01-02 06:00", "1970-02-01 12:00"], [1.25, 31.5]),
        (["1970-01-02T06:00:00", "1970-02-01T12:00:00"], [1.25, 31.5]),
    ],
)
def test_dates_are_days_since_1970(texts: list[str], days: list[float] | None) -> None:
    column = pa.array(texts)
    reader = learn_notation(column)
    assert isinstance(reader, Dates) == (days is not None)
    if days is not None:
        assert reader.read(column).values.to_pylist() == days


@given(st.dates(), st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y"]))
def test_a_date_that_is_written_is_read_again(date: datetime.date, form: str) -> None:
    reader = Dates(form)
    days = (date - datetime.date(1970, 1, 1)).days
    assert reader.read(pa.array([reader.write(float(days), 0)])).values.to_pylist() == [days] or date.year < 1000


def test_a_date_that_is_none_cannot_be_read_and_a_gap_is_missing() -> None:
    values, unreadable = read("2024-01-05", "2024-02-30", "", "2024-03-01", "2024-04-01", "2024-05-01", "2024-06-01")
    assert unreadable == [1]
    assert values[2] is None


def test_dates_of_a_type_for_dates_are_days_too() -> None:
    dates = pa.table(
        {"a": pa.array([datetime.date(1970, 1, 2), None]), "b": pa.array([86_400_000, 0], pa.timestamp("ms"))}
    )
    assert understand(dates, learn_notations(dates, {})).to_pydict() == {"a": [1.0, None], "b": [1.0, 0.0]}


# ---------------------------------------------------------------- whole columns


def test_a_word_that_often_stands_for_a_number_means_missing() -> None:
    texts = pa.array(["empty"] * 20 + [str(number) for number in range(20)] + ["1x"])
    reader = learn_notation(texts)
    assert reader.gaps == ("empty",)
    assert reader.read(texts).values.null_count == 20
    assert learn_notation(pa.array(["low", "high", "low", "1", "2"] * 5)) == Words()


def test_a_word_among_few_numbers_with_a_unit_is_a_level_like_them() -> None:
    assert learn_notation(pa.array(["studio", "1br", "2br", "3br"] * 20)) == Words()
    rents = [f"{amount} USD" for amount in range(400, 480)] + ["free"] * 10
    assert isinstance(learn_notation(pa.array(rents)), Numbers)


def test_a_unit_that_hardly_any_cell_has_is_strange() -> None:
    texts = pa.array([f"{number} patients" for number in range(99)] + ["7 paxients", "7"])
    reader = learn_notation(texts)
    assert reader.read(texts).strange.nonzero()[0].tolist() == [99, 100]


def test_codes_of_equal_length_that_stand_often_are_text() -> None:
    zips = [f"{35000 + 7 * number}" for number in range(20)] * 10
    assert learn_notation(pa.array([*zips, "3x007"])) == Words()
    assert isinstance(learn_notation(pa.array([f"{1000 * number}" for number in range(20, 90)] * 10)), Numbers)


@pytest.mark.parametrize(
    ("usual", "few", "decimals"),
    [
        ([0.0, 1.0, 2.0], [0.123456, 1.654321], 0),
        ([0.25, 0.5, 0.75], [0.123456789], 2),
        ([0.25, 0.5, 0.75], [0.125], None),  # one more digit is nothing
        ([0.25, 0.5, 0.75], [0.533333, 0.533333], None),  # comes again: natural
        ([0.0, 0.0, 0.0], [3.27151, 4.19283, 1.11917], None),  # amounts that are mostly 0
    ],
)
def test_far_more_decimals_than_all_others_tell_noise(
    usual: list[float], few: list[float], decimals: int | None
) -> None:
    numbers = np.array(usual * 30 + few)
    assert usual_decimals(numbers) == decimals
    table = pa.table({"x": numbers})
    read = understand(table, learn_notations(table, {}))["x"].to_numpy()
    assert np.isnan(read).sum() == (len(few) if decimals is not None else 0)


def test_what_holds_for_a_whole_column_is_said_once_and_can_be_tidied() -> None:
    table = pa.table(
        {"ibu": ["60", "N/A", "70", "N/A"], "abv": ["0.05", "0.06%", "0.07", "0.05%"], "city": ["a", "b", "a", "b"]}
    )
    readers = learn_notations(table, {})
    assert describe_columns(table, readers) == {
        "ibu": "2 cells say N/A, read as missing",
        "abv": "numbers with the unit % in some cells; 0.06% is read as 0.06",
    }
    tidied = tidy(table, readers)
    assert tidied["ibu"].to_pylist() == ["60", "", "70", ""]
    assert tidied["abv"].to_pylist() == ["0.05", "0.06", "0.07", "0.05"]
    assert tidied["city"] == table["city"]


def test_columns_that_say_the_same_share_one_sentence() -> None:
    shares = {f"share {place}": ["5 %", "N/A", "7 %", "9 %"] for place in range(13)}
    table = pa.table({**shares, "ibu": ["60", "?", "70", "80"]})
    assert describe_together(table, learn_notations(table, {})) == [
        "share 0, share 1, share 2, share 3, share 4 and 8 more: numbers with the unit %; 5 % is read as 5.",
        "13 cells in share 0, share 1, share 2, share 3, share 4 and 8 more say N/A, read as missing.",
        "ibu: 1 cell says ?, read as missing.",
    ]


def test_numbers_in_sentences_have_the_decimal_mark_of_the_column() -> None:
    comma, point = (learn_notation(pa.array(texts)) for texts in (["1,5", "2,25"], ["1.5", "2.25"]))
    assert comma is not None
    assert point is not None
    assert (comma.in_words(1.25), comma.in_words(3)) == ("1,25", "3")
    assert point.in_words(1.25) is None


def test_dates_of_another_form_are_read_and_rewritten() -> None:
    texts = pa.array([f"2024-03-{day:02}" for day in range(1, 29)] * 3 + ["17/04/2024"])
    reader = learn_notation(texts)
    reading = reader.read(texts)
    assert not np.isnan(reading.values.to_numpy()).any()
    assert reading.strange.nonzero()[0].tolist() == [84]


@pytest.mark.parametrize(
    ("texts", "day", "written"),
    [
        (["5/1/2024 4:05", "13/12/2024 14:05"], 19844.170138888891, "1/5/2024 04:05"),
        (["05/01/2024", "13/12/2024"], 19844.0, "01/05/2024"),
        (["20240105", "20241213"], 19844.0, "20240501"),
    ],
)
def test_dates_are_written_as_the_column_writes_them(texts: list[str], day: float, written: str) -> None:
    assert learn_notation(pa.array(texts)).write(day, None) == written


@pytest.mark.parametrize(
    ("texts", "written"),
    [
        (["$12.00", "$7.00", "$3.00"], "$5.00"),
        (["12.0 oz", "8.0 oz.", "7.0 oz"], "5.0 oz"),
        (["2,500", "1200", "3100", "4000"], "5"),
        (["(3)", "4", "6"], "5"),
    ],
)
def test_repairs_are_written_as_most_of_the_column_is(texts: list[str], written: str) -> None:
    reader = learn_notation(pa.array(texts))
    assert reader.write(5.0, 0) == written
    if "2,500" in texts:
        assert reader.write(5000.0, 0) == "5000"


def test_a_unit_among_plain_numbers_is_strange() -> None:
    texts = pa.array([f"{45 + number / 10:.1f}" for number in range(100)] + ["45.2x"])
    assert learn_notation(texts).read(texts).strange.nonzero()[0].tolist() == [100]


def test_bounds_of_times_are_said_to_the_second() -> None:
    assert Dates().in_words(1 + 57_895.975892 / 86_400) == "1970-01-02 16:04:55"
    assert Dates().write(0.5 + 1e-9, 0).microsecond == 0


@pytest.mark.parametrize("word", ["k.A.", "n/d", "s/o", "K. A.", "unbekannt", "sin dato", "нет данных", "—"])
def test_words_for_missing_of_other_languages_are_gaps_among_numbers(word: str) -> None:
    column = pa.array([f"{n} %" for n in range(40)] + [word])
    notation = learn_notation(column)
    assert isinstance(notation, Numbers)
    assert notation.read(column).values[-1].as_py() is None


@pytest.mark.parametrize(("word", "gap"), [("k.A.", True), ("s/o", True), ("unbekannt", False), ("ND", False)])
def test_in_a_column_of_text_only_abbreviations_without_other_meaning_are_gaps(word: str, gap: bool) -> None:
    assert Words().is_missing(word) is gap


def test_a_number_as_long_as_a_book_is_no_number_and_is_read_in_no_time() -> None:
    long = "9" * 3_000_000
    column = pa.array([f"{n}.5" for n in range(40)] + [long, long + " kg", "2024-01-02 " * 200_000])
    notation = learn_notation(column)
    assert isinstance(notation, Numbers)
    assert np.isnan(notation.read(column).values.to_numpy()[-3:]).all()


def test_hardly_any_form_of_dates_is_tried_on_texts_that_look_like_none(monkeypatch) -> None:
    tried = []
    monkeypatch.setattr("cellmend.table.dates._days", lambda text, form: tried.append(form) or float("nan"))
    learn_notation(pa.array([f"{n}.{n}" for n in range(50)]))
    assert tried == []
    learn_notation(pa.array([f"3.{month}.2024" for month in range(1, 13)]))
    assert {"%d.%m.%Y", "%d.%m.%y"} <= set(tried) <= {"%d.%m.%Y", "%d.%m.%y", "%m.%d.%Y"}
