"""What a column's own texts say: misspellings, and numbers and dates that cannot be read."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from cellmend.errors import SchemaWarning
from cellmend.table.frames import read_frame
from cellmend.table.kinds import resolve_schema
from cellmend.table.reader import TableReader
from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.schema import Schema

CITIES = ["Birmingham"] * 60 + ["Florence"] * 50 + ["Boaz"] * 40


def checked(columns: dict[str, list], **kinds: str) -> ReadTable:
    """A table after all checks learned from it."""
    reader, table = TableReader.fit(read_frame(pa.table(columns)), kinds)
    again = TableReader.from_json(json.loads(json.dumps(reader.to_json())))
    assert again.read(table.frame).suspects == table.suspects
    return table


def found(table: ReadTable, column: int) -> list[tuple[int, tuple[str, ...]]]:
    """Rows and what was meant, of suspects of a column that are more probably wrong than not."""
    return [(each.row, each.meant) for each in table.suspects if each.column == column and each.suspicion > 0.5]


# ---------------------------------------------------------------- misspellings


@pytest.mark.parametrize("typo", ["Birmxngham", "Birmingam", "Birminghham", "Bimringham", "birmingham "])
def test_a_rare_text_that_is_nearly_a_frequent_one_is_misspelled(typo: str) -> None:
    table = checked({"city": [*CITIES, typo, "Birmingham"]})
    assert found(table, 0) == [(150, ("Birmingham",))]
    assert table.without_suspects.understood["city"][150].as_py() is None, "relations do not learn it"
    assert table.understood["city"][151].as_py() == "Birmingham"


def test_values_that_are_frequent_are_no_misspellings_however_alike() -> None:
    table = checked({"code": ["ami-b"] * 40 + ["ami-c"] * 40 + ["ami-d"] * 2 + ["ami-f"]})
    assert found(table, 0) == []


def test_values_that_differ_in_digits_only_are_different() -> None:
    assert found(checked({"room": ["room 12"] * 50 + ["room 13"] * 50 + ["room 14", "hall"]}), 0) == []


def test_where_rare_values_are_natural_being_alike_means_little() -> None:
    names = (
        ["Smith"] * 30 + ["Smyth"] * 25 + ["Meyer"] * 30 + ["Meier"] * 30 + [f"Name{chr(97 + n)}x" for n in range(20)]
    )
    assert found(checked({"name": [*names, "Mayer"]}, name="category"), 0) == []


def test_a_change_that_many_rare_values_share_is_a_scheme() -> None:
    codes = [f"al_{letter}" * 2 for letter in ("heart", "lung", "brain", "liver", "spine", "elbow")]
    scheme = [code.replace("al_", "ak_", 1) for code in codes]
    assert found(checked({"code": [*codes * 20, *scheme]}), 0) == []


def test_what_the_user_says_to_ignore_is_not_checked() -> None:
    kinds = {"city": "ignore", "x": "real"}
    assert checked({"city": [*CITIES, "Birmxngham"], "x": [n / 7 for n in range(151)]}, **kinds).suspects == ()


# ---------------------------------------------------------------- numbers, dates


def test_what_is_no_number_is_suspect_and_knows_what_is_written_nearly_so() -> None:
    table = checked({"score": ["97.25"] * 30 + ["98.25"] * 40 + ["100.5"] * 30 + ["9x.25", "??!", "xx%"]})
    nine, odd, none = table.suspects
    assert [each.row for each in table.suspects] == [100, 101, 102]
    assert set(nine.meant) >= {"97.25", "98.25"}
    assert nine.hidden, "its value is not known"
    assert odd.meant == none.meant == ()
    assert "which is no number" in odd.reason


def test_what_is_left_of_a_number_says_what_it_may_have_been() -> None:
    numbers = [str(n) for n in range(150_000, 250_000, 317)] + ["151105"] * 5
    typed, other = (
        next(each for each in checked({"weight": [*numbers, text]}).suspects if each.row == len(numbers))
        for text in ("19O105", "19x105")
    )
    assert typed.meant == ("190105",), "not 151105, in which another digit differs"
    assert set(other.meant) >= {f"19{digit}105" for digit in range(10)}


def test_a_letter_in_place_of_a_digit_tells_nothing() -> None:
    table = checked({"paid": ["0"] * 60 + ["1"] * 40 + ["x"]})
    assert [(each.row, each.meant) for each in table.suspects] == [(100, ())]
    letters = checked({"colour": ["E"] * 300 + ["F"] * 300 + ["G"] * 300 + ["x"]})
    assert [each.meant for each in letters.suspects] in ([], [()])


def test_a_date_that_cannot_be_is_suspect() -> None:
    dates = [f"2024-03-{day:02}" for day in range(1, 29)] * 3
    table = checked({"day": [*dates, "2024-03-99"]})
    assert [(each.row, each.cause, each.hidden) for each in table.suspects] == [(84, "unreadable", True)]
    assert "which is no date" in table.suspects[0].reason


def test_a_day_that_no_month_has_is_no_slip_of_two_digits() -> None:
    days = [f"{day:02}.{month:02}.2026" for month in (1, 2) for day in range(1, 28)] * 12
    suspects = checked({"day": [*days, "31.02.2026"]}).suspects
    assert {each.row for each in suspects} == {len(days)}
    assert max(suspects, key=lambda each: each.suspicion).cause == "unreadable"


# ---------------------------------------------------------------- identifiers, and what is no error


@pytest.mark.filterwarnings("ignore::cellmend.errors.SchemaWarning")
def test_numbered_rows_are_checked_too() -> None:
    table = checked({"nr": [*range(100), 7], "x": [n / 7 for n in range(101)]})
    assert [each.row for each in table.suspects] == [100]


def test_nothing_slipped_where_nothing_is_missing() -> None:
    columns = {"city": ["Rome", "Paris", "Oslo"] * 20 + ["New York NY"], "state": ["IT", "NY", "NO"] * 20 + ["NY"]}
    assert found(checked(columns), 0) == []


def test_a_suspect_hides_its_cell_only_if_it_is_probable_and_says_nothing() -> None:
    assert Suspect(0, 0, 0.9, (), "", cause="unreadable", readable=False).hidden
    assert not Suspect(0, 0, 0.4, (), "", cause="unreadable", readable=False).hidden
    assert not Suspect(0, 0, 0.9, (), "", cause="unreadable", readable=True).hidden


def test_a_clean_table_has_no_suspects() -> None:
    columns = {
        "city": CITIES,
        "size": ["small", "large"] * 75,
        "price": [f"${n}.50" for n in range(150)],
        "day": [f"2024-0{1 + n % 9}-1{n % 10}" for n in range(150)],
    }
    assert checked(columns).suspects == ()


def test_left_out_columns_are_named() -> None:
    with pytest.warns(SchemaWarning, match="Left out"):
        resolve_schema(pa.table({"id": [f"a{n}" for n in range(50)], "x": [n / 7 for n in range(50)]}), Schema(()))


def test_numbers_with_far_more_decimals_are_suspect_and_said_to_be() -> None:
    table = checked({"yr": [0.0, 1.0] * 60 + [0.87351119, 1.360216238]})
    assert [(each.row, each.meant) for each in table.suspects] == [(120, ()), (121, ())]
    assert "far more decimals" in table.suspects[0].reason
    assert resolve_schema(table.understood, None)["yr"].kind == "category"


def test_natural_texts_of_two_words_stay_whole() -> None:
    """South Africa stands where the continent is given too, and Dark is no colour."""
    countries = ["South Africa", "Kenya", "Peru"] * 20
    table = checked(
        {"country": [*countries, "South Africa"], "continent": ["Africa", "Africa", "America"] * 20 + [None]}
    )
    assert found(table, 0) == []
    colours = ["Blue", "Dark Blue", "Red"] * 20
    table = checked({"colour": [*colours, "Pale Blue"], "shade": ["Blue", "Blue", "Red"] * 20 + [None]})
    assert found(table, 0) == []


def test_a_batch_in_which_a_column_has_gaps_only_is_read() -> None:
    reader, _ = TableReader.fit(read_frame(pa.table({"city": CITIES, "n": [k % 7 for k in range(len(CITIES))]})), None)
    batch = pa.table({"city": pa.array([None, None], pa.string()), "n": [1, 2]})
    assert reader.read(read_frame(batch), rows_alone=True).suspects == ()
