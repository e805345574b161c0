from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cellmend.evaluation.vandal import RIGHT, Vandal, columns_of, vandalise
from cellmend.evaluation.vandal_forms import BREAKS, FORMS, impossible_date
from cellmend.evaluation.vandal_kinds import KINDS, NAMES, SINGLE, SWAPPED
from cellmend.evaluation.vandal_numbers import flip_sign, number, same, shift_point, wrong_date
from cellmend.evaluation.vandal_pairs import decided, exchanged
from cellmend.evaluation.vandal_words import add_spaces, change_case, cut_off, mangle, slip, swap
from cellmend_bench.families import family_of, is_kept
from cellmend_bench.novelty import NONE, case_of, none_of_it, recurring

TOWNS = ("Springfield", "Riverside Park", "Oakland Hills", "Greenville", "Montréal")


def towns(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "town": rng.choice(TOWNS, rows),
            "length": [f"{value:.2f}" for value in rng.normal(50, 10, rows)],
            "visits": [str(value) for value in rng.integers(10, 5000, rows)],
            "opened": [f"{y}-{m:02d}-{d:02d}" for y, m, d in rng.integers((1990, 1, 1), (2020, 13, 29), (rows, 3))],
            "gaps": np.where(rng.random(rows) < 0.5, "", "Northern District"),
            "key": [str(value) for value in range(rows)],
        }
    )
    return table.join(contacts(rows)).astype(object)


def contacts(rows: int) -> pd.DataFrame:
    """Columns of one form each, names to be exchanged, and a region that the branch tells."""
    rng = np.random.default_rng(1)
    digits = rng.integers(2_000_000, 9_999_999, rows)
    letters = rng.choice(list("BDKLMNRT"), (2, rows))
    vowels = rng.choice(list("aeiou"), (2, rows))
    first, last = (
        [f"{letter}{vowel}{end}" for letter, vowel in zip(*own, strict=True)]
        for own, end in zip(zip(letters, vowels, strict=True), ("na", "mer"), strict=True)
    )
    branch = rng.integers(12, size=rows)
    return pd.DataFrame(
        {
            "phone": [f"{each // 10_000}-{each % 10_000:04d}" for each in digits],
            "mail": [f"{name.lower()}{each}@firm.example.org" for name, each in zip(first, digits, strict=True)],
            "account": [f"DE4450010517{each:010d}" for each in digits],
            "zipcode": [f"{value:05d}" for value in rng.integers(1000, 99_999, rows)],
            "page": [f"http://www.firm.example.org/{each}" for each in digits],
            "opens": [f"{hour:02d}:{minute:02d}" for hour, minute in rng.integers((0, 0), (24, 60), (rows, 2))],
            "first": first,
            "last": last,
            "branch": [f"B{each}" for each in branch],
            "region": np.array(["North", "South", "Coast", "Highland"])[branch % 4],
        }
    )


def spoiled_by(kinds: list[str], *, cells: int) -> np.ndarray:
    """Which cells are spoiled, and how, by these kinds of error alone, half of them as habits."""
    vandal = Vandal(towns(), np.random.default_rng(4), lambda place, meant, text: True)
    chosen = [NAMES.index(kind) for kind in kinds]
    vandal.form_habits(cells // 2, chosen)
    vandal.scatter(cells, chosen)
    return vandal.marks


def test_marked_are_exactly_the_cells_that_changed() -> None:
    clean = towns()
    dirty, marks = vandalise(clean, np.random.default_rng(1), share=0.1)
    assert ((dirty != clean).to_numpy() == (marks != RIGHT)).all()
    assert list(dirty.columns) == list(clean.columns)


def test_the_same_generator_spoils_the_same_cells() -> None:
    one, other = (vandalise(towns(), np.random.default_rng(5), share=0.05) for _ in range(2))
    assert one[0].equals(other[0])
    assert (one[1] == other[1]).all()


def test_empty_cells_stay_empty_and_none_is_made() -> None:
    clean = towns()
    dirty, _ = vandalise(clean, np.random.default_rng(2), share=0.3)
    assert ((dirty.apply(lambda own: own.str.strip()) == "") == (clean == "")).all(axis=None)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.3])
def test_about_the_share_asked_for_is_wrong(share: float) -> None:
    clean = towns(1000)
    _, marks = vandalise(clean, np.random.default_rng(3), share=share)
    assert (marks != RIGHT).sum() == pytest.approx(share * (clean != "").to_numpy().sum(), rel=0.1, abs=1)


@pytest.mark.parametrize("kind", NAMES)
def test_each_kind_spoils_something_and_only_as_itself(kind: str) -> None:
    assert set(np.unique(spoiled_by([kind], cells=30))) == {RIGHT, NAMES.index(kind)}


def test_a_swapped_pair_is_both_cells_in_each_others_place() -> None:
    vandal = Vandal(towns(), np.random.default_rng(4), lambda place, meant, text: True)
    vandal.scatter(20, [NAMES.index(SWAPPED)])
    names = list(towns().columns)
    first, last = names.index("first"), names.index("last")
    rows = np.flatnonzero(vandal.marks[:, first] != RIGHT)
    assert len(rows)
    assert set(np.flatnonzero((vandal.marks != RIGHT).any(axis=0))) == {first, last}
    assert (vandal.texts[rows, first] == vandal.clean[rows, last]).all()
    assert (vandal.texts[rows, last] == vandal.clean[rows, first]).all()


def test_a_pair_of_which_one_column_cannot_hold_the_others_value_is_not_swapped() -> None:
    last = list(towns().columns).index("last")
    vandal = Vandal(towns(), np.random.default_rng(4), lambda place, meant, text: place != last)
    vandal.scatter(20, [NAMES.index(SWAPPED)])
    assert vandal.spoiled == 0


def test_what_goes_against_another_column_stands_where_one_tells_the_other() -> None:
    names = list(towns().columns)
    columns = columns_of(towns())
    assert decided(columns) == {names.index("region")}
    shuffled = towns()
    shuffled["region"] = np.random.default_rng(0).permutation(shuffled["region"])
    assert decided(columns_of(shuffled)) == set()


def test_dates_names_and_coordinates_are_exchanged_and_nothing_else() -> None:
    rng = np.random.default_rng(2)
    table = towns()[["first", "last", "visits"]].assign(
        begun=[f"2019-0{each}-11" for each in rng.integers(1, 9, 300)],
        ended=[f"2020-0{each}-12" for each in rng.integers(1, 9, 300)],
        north=[f"{each:.4f}" for each in rng.uniform(40, 50, 300)],
        east=[f"{each:.4f}" for each in rng.uniform(5, 15, 300)],
        price=[f"{each:.2f}" for each in rng.uniform(5, 15, 300)],
    )
    assert exchanged(columns_of(table)) == {0: 1, 1: 0, 3: 4, 4: 3, 5: 6, 6: 5}


@pytest.mark.parametrize("name", sorted({*BREAKS} - {"telephone number", "account number"}))  # no one length
def test_what_breaks_a_form_no_longer_has_it(name: str) -> None:
    rng = np.random.default_rng(3)
    column = next(column for column in columns_of(towns()) if KINDS[NAMES.index(name)].fits(column))
    for text in column.texts[:5]:
        broken = [BREAKS[name](text, rng, float(flavour)) for flavour in np.arange(0, 1, 0.1)]
        assert not any(FORMS[name].fullmatch(each) for each in broken if each != text)
        assert len(set(broken)) > 2


@pytest.mark.parametrize(
    ("text", "form"), [("2019-04-03", "%Y-%m-%d"), ("3/14/2015", "%m/%d/%Y"), ("14.03.2015", "%d.%m.%Y")]
)
def test_no_calendar_has_an_impossible_date(text: str, form: str) -> None:
    for flavour in (0.1, 0.9):
        broken = impossible_date(text, np.random.default_rng(3), flavour)
        assert pd.isna(pd.to_datetime(broken, format=form, errors="coerce"))


def test_the_benchmark_of_tables_in_the_wild_keeps_its_kinds_of_errors() -> None:
    _, marks = vandalise(towns(1000), np.random.default_rng(3), share=0.1, kinds=len(SINGLE))
    assert set(np.unique(marks)) - {RIGHT} <= set(range(22))


def test_running_numbers_get_no_slips_of_people() -> None:
    marks = spoiled_by(["one digit", "spaces"], cells=300)
    assert (marks[:, 5] == RIGHT).all()


def test_habits_recur_in_a_column_and_single_cells_do_not() -> None:
    marks = np.full((1000, 2), RIGHT, dtype=np.int8)
    marks[:20, 0], marks[0, 1] = NAMES.index("case"), NAMES.index("case")
    assert recurring(marks).sum() == 20
    _, made = vandalise(towns(1000), np.random.default_rng(7), share=0.05)
    assert recurring(made).sum() > 0.3 * (made != RIGHT).sum()


def test_what_the_clean_column_has_none_of() -> None:
    clean = pd.DataFrame({"x": ["5", "-3", "7"], "y": ["5", "3", "7"], "w": ["ROME", "Oslo", "Lima"]}, dtype=object)
    dirty = pd.DataFrame({"x": ["-5", "-3", "7"], "y": ["-5", "3", "999"], "w": ["ROME", "OSLO", "lima"]}, dtype=object)
    sign, sentinel, case = (NAMES.index(name) for name in ("sign", "sentinel", "case"))
    marks = np.array([[sign, sign, RIGHT], [RIGHT, RIGHT, case], [RIGHT, sentinel, case]], dtype=np.int8)
    assert none_of_it(clean, dirty, marks).tolist() == [
        [False, True, False],  # x has a negative number, y has none
        [False, False, False],  # ROME is in capitals, too
        [False, True, True],
    ]


def test_every_kind_can_be_told_from_what_the_clean_column_has() -> None:
    assert set(NONE) == {kind.name for kind in SINGLE}


def test_kinds_on_texts() -> None:
    rng = np.random.default_rng(0)
    assert change_case("USA", rng, 0.0) == "usa"
    assert change_case("Permitted Work", rng, 0.5) == "pERMITTED wORK"
    assert mangle("Montréal", rng, 0.5) == "MontrÃ©al"
    assert sorted(swap("abcd", rng, 0.0)) == list("abcd")
    assert len(slip("Oslo", rng, 0.3)) == 4
    assert slip("Oslo", rng, 0.3)[0] == "O"
    assert add_spaces("Oslo", rng, 0.8) == "Oslo "
    assert "Springfield".startswith(cut_off("Springfield", rng, 0.0))


def test_kinds_on_numbers_and_dates() -> None:
    rng = np.random.default_rng(0)
    assert flip_sign("-12.50", rng, 0.0) == "12.50"
    assert flip_sign("0", rng, 0.0) == "0"
    assert shift_point("12.5", rng, 0.0) == "125"
    assert shift_point("12", rng, 0.2) == "1.2"
    assert wrong_date("2019-04-03", rng, 0.0) == "2019-03-04"
    assert wrong_date("3/14/2015", rng, 0.9) == "3/14/1015"
    assert number("12e3") == 12000
    assert number("1,5") is None
    assert same("1.50", " 1.5")
    assert not same("1.5", "1.6")


def test_columns_know_what_they_hold() -> None:
    table = towns()
    town, length, _, opened, _, key, *_ = columns_of(table)
    assert town.worded
    assert not town.measured
    assert length.measured
    assert opened.dated
    assert not opened.worded
    assert key.made_by_machine
    assert [case_of(text) for text in ("USA", "usa", "New York", "nEW yORK", "McLean", "12")] == [
        "upper", "lower", "title", "caps lock", "mixed", ""
    ]  # fmt: skip


def test_similar_tables_are_one_family_and_the_split_stays() -> None:
    alike = (
        ("git_technician_shifts_128_548498", "git_technician_shifts_511_501260"),
        ("git_ir.model.access_102373_622504", "git_ir.model.access_104113_571709"),
        ("git_MTF.dll.csv_3527476970_380525", "git_wslhost.exe.csv_4130548782_414252"),
        ("git_PL1331LAH2DZKH_788495", "git_WD-WCC070198392_799801"),
        ("gov_1.03_Patient_Transfer_of_Care_-_Stroke_detail_", "gov_1.03_Patient_Transfer_of_Care_-_Heart_Attack"),
        ("gov_2013_Real_Property_Asset_Data", "gov_2017_Real_Property_Asset_Data.csv.gz"),
    )
    assert all(family_of(one) == family_of(other) for one, other in alike)
    names = (
        "gov_BLM_AZ_Roads",
        "git_MTF.dll.csv_3527476970_380525",
        "gov_Bridges",
        "gov_Hypertension",
        "git_test4_811279",
    )
    assert [is_kept(name) for name in names] == [False, True, True, True, False]
    share = np.mean([is_kept(a + b + c) for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh"])
    assert 0.28 < share < 0.39
