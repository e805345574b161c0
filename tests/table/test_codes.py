"""Codes that look like numbers are text; numbers with slips and numbers with an exponent stay numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cellmend.table.codes import are_hexadecimal, hold_codes
from cellmend.table.kinds import infer_column, names_a_code
from cellmend.table.notation import learn_notation, learn_notations
from cellmend.table.numbers import Numbers
from cellmend.table.reader import guess_schema
from cellmend.table.schema import IGNORE
from cellmend.table.texts import Words

RNG = np.random.default_rng(0)
MANY = [str(number) for number in range(4000, 4400)]


def test_hexadecimal_ids_of_which_most_can_be_read_as_numbers_are_text() -> None:
    plain = [str(number) for number in RNG.integers(10**7, 10**8, 280)]
    hexadecimal = [f"{number}e{other}" for number, other in RNG.integers(100, 1000, (20, 2)).tolist()]
    ids = [text.ljust(8, "7") for text in [*plain, *hexadecimal]]
    assert learn_notation(pa.array(ids)) == Words()


def test_uuids_are_text_although_some_hold_no_letter() -> None:
    uuids = ["12345678-1234-4123-8123-123456789012"] * 9 + ["1234e567-1234-4123-8123-123456789012"] * 3
    assert learn_notation(pa.array(uuids)) == Words()
    assert are_hexadecimal(uuids, np.ones(12, dtype=int))


@pytest.mark.parametrize(
    "texts",
    [
        ["1.02E+11", "3.15E+11", "9.00E+10"],
        ["3e-5", "1e-4", "2.5e-4"],
        ["100000e3", "2e5", "31e4", "12"],  # of many lengths
        [*MANY, "1e5"],
    ],
)
def test_numbers_with_an_exponent_stay_numbers(texts: list[str]) -> None:
    assert isinstance(learn_notation(pa.array(texts)), Numbers)


def test_numbers_in_which_letters_of_any_kind_stray_are_not_hexadecimal() -> None:
    numbers = [str(number) for number in range(1_000_000, 1_000_100)]
    slips = ["100a053", "100b053", "100x053", "100q053", "100k053", "100w053"]
    assert not are_hexadecimal([*numbers, *slips], np.ones(106, dtype=int))
    assert not are_hexadecimal([*numbers[:50], "100a053"], np.ones(51, dtype=int))
    assert not are_hexadecimal([*numbers, "100a053", "100e053"], np.array([9] * 100 + [1, 1]))


@pytest.mark.parametrize(
    "codes",
    [
        ["4325A", "4325B", "4325C"],  # they differ in the letter only
        ["4117B", "4117B", "4320D", "4320D"],  # and come again
        [f"{number}{letter}" for number, letter in zip(MANY, "ABDGHKLMNPRSTUVW", strict=False)],  # many at one place
        [f"EXIT{number}" for number in range(15)],
        ["26, 30", "12, 13, 17", "1, 2", "3, 9, 12, 80", "7, 8"] * 3,  # lists
    ],
)
def test_numbers_beside_codes_with_letters_are_text(codes: list[str]) -> None:
    assert learn_notation(pa.array([*MANY, *codes])) == Words()


@pytest.mark.parametrize(
    "slips",
    [
        ["43x5", "k117", "4201q"],  # letters at any place
        ["4325A"],
        ["q4000", "4w001", "40x02", "400z3", "4004k", "j4005", "4v006", "40y07", "400u8", "4009s"],
        [f"{number}q3" for number in range(40, 48)] + [f"{number}q" for number in range(400, 408)],
    ],
)
def test_slips_in_numbers_leave_them_numbers(slips: list[str]) -> None:
    assert isinstance(learn_notation(pa.array([*MANY, *slips])), Numbers)


def test_of_few_numbers_slips_come_again_by_chance() -> None:
    ratings = {str(rating): 100 for rating in range(1, 6)}
    assert not hold_codes({"3x": 1, "3q": 1, "4k": 1, "4m": 1}, ratings)
    scores = {str(score): 3 for score in range(10, 100)}  # a letter in place of a digit leaves one
    assert not hold_codes({"3x": 1, "3q": 1, "4k": 1, "4m": 1, "7b": 1, "8b": 1}, scores)
    assert not hold_codes({"4325x": 1, "4325q": 1}, dict.fromkeys(MANY[:200], 1))
    assert hold_codes({"4325x": 1, "4325q": 1, "4117k": 1, "4117m": 1}, dict.fromkeys(MANY, 1))


def test_random_slips_hardly_ever_make_codes_of_numbers() -> None:
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        numbers = [str(number) for number in rng.integers(10, 1000, 400)]
        for row in rng.choice(400, 24, replace=False):
            text, place = numbers[row], int(rng.integers(0, len(numbers[row])))
            letter, taken = chr(97 + rng.integers(26)), int(rng.integers(2))
            numbers[row] = text[:place] + letter + text[place + taken :]
        wrong += not isinstance(learn_notation(pa.array(numbers)), Numbers)
    assert wrong <= 1


def test_numbers_as_long_as_the_longest_are_codes() -> None:
    codes = [f"{number:03}" for number in [98, 99, *range(100, 500)]]
    assert learn_notation(pa.array(codes)) == Words()
    assert isinstance(learn_notation(pa.array([*codes[2:], "098"])), Numbers)  # one may be a slip
    assert isinstance(learn_notation(pa.array([*codes, "1000"])), Numbers)


@pytest.mark.parametrize(
    "name",
    ["fips", "StateFIPS", "countyfips", "combinedfips_code", "Zip", "ZIPCODE", "postal code", "GEOID10", "agency_cd",
     "order_id", "deviceId", "OBJECTID", "METHCODE", "geoid_one_zero", "GEOID10_Tract", "stratification_id_two"],
)  # fmt: skip
def test_names_of_codes(name: str) -> None:
    assert names_a_code(name)


@pytest.mark.parametrize(
    "name",
    ["paid", "grid", "bid", "solid", "humid", "width", "Number of codes", "zip_count", "fips_per_state", "CD4", "cd",
     "lines_of_code", "zipper", "id_score", "", "1", "x"],
)  # fmt: skip
def test_names_of_quantities(name: str) -> None:
    assert not names_a_code(name)


def test_whole_numbers_that_are_called_codes_are_categories_in_text_and_in_numbers() -> None:
    values = RNG.choice([1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13, 17, 21, 22, 29, 31, 34, 36, 40, 44, 47, 53], 300)
    assert infer_column("state_fips", pa.chunked_array([values])).kind == "category"
    assert infer_column("rooms", pa.chunked_array([values])).kind == "real"
    texts = pa.table({"state_fips": values.astype(str), "rooms": values.astype(str)})
    assert [column.kind for column in guess_schema(texts)] == ["category", "real"]
    assert learn_notations(texts, {})["state_fips"] == Words()
    assert isinstance(learn_notations(texts, {"state_fips": "real"})["state_fips"], Numbers)


def test_codes_with_a_letter_of_a_column_called_so_are_no_numbers_with_a_unit() -> None:
    texts = pa.array(["50027C", "50021C", "50025C", "500056"] * 20)
    assert learn_notation(texts, name="DFIRM_ID") == Words()
    assert isinstance(learn_notation(pa.array(["12.5", "13.75", "14.5", "12"] * 20), name="zip"), Numbers)


def test_called_a_code_decimals_signs_and_a_few_rows_stay_numbers() -> None:
    assert infer_column("code", pa.chunked_array([RNG.normal(size=100)])).kind == "real"
    assert infer_column("code", pa.chunked_array([RNG.integers(-50, 50, 200)])).kind == "real"
    assert infer_column("zip", pa.chunked_array([[1, 2, 3]])).kind == "real"


def test_codes_that_are_nearly_all_different_are_left_out() -> None:
    distinct = RNG.choice(10**5, 60, replace=False)
    for texts in (distinct.astype(str), [*distinct.astype(str), *distinct[:20].astype(str)]):
        assert isinstance(learn_notation(pa.array(texts), name="zip"), Numbers)  # their order may tell
    assert learn_notation(pa.array([f"{number}C" for number in distinct]), name="zip") == Words()
    column = infer_column("zip", pa.chunked_array([distinct]))
    assert column.kind == IGNORE
    assert "identifier" in column.reason
    assert infer_column("zip", pa.chunked_array([[*distinct, *distinct[:10]]])).kind == IGNORE
    assert infer_column("price", pa.chunked_array([distinct])).kind == "real"
