"""Letters of a column, and the two explanations of every text."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellmend.table.explained import CountChances, LearnedTexts, learn_texts
from cellmend.table.letters import ANY, Letters
from cellmend.table.packing import pack, unpack

TEXTS = st.lists(st.text(max_size=8), min_size=1, max_size=12, unique=True)


def naturalness(letters: Letters, texts: list[str], owner: int) -> np.ndarray:
    looked = letters.look(texts, [owner] * len(texts))
    return np.bincount(looked.item, letters.log_chances(looked), minlength=len(texts))


def test_a_letter_that_nothing_tells_of_has_the_chance_of_any() -> None:
    letters = Letters(["ab"])
    looked = letters.look(["ab"], [0])
    assert letters.log_chances(looked) == pytest.approx(np.log([ANY] * 3)), "the text itself is left out"


def test_texts_like_the_others_are_more_natural() -> None:
    letters = Letters([f"{n} Main Street" for n in range(10, 40)])
    own, other = naturalness(letters, ["50 Main Street", "50 Main Stxeet"], -1)
    assert own > other + 5


@given(TEXTS, st.data())
def test_chances_are_at_most_one_and_never_zero(texts: list[str], data: st.DataObject) -> None:
    letters = Letters(texts)
    letters.trust(np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(texts), max_size=len(texts)))))
    chances = letters.log_chances(letters.itself)
    assert np.isfinite(chances).all()
    assert (chances <= 1e-9).all()


@given(TEXTS)
def test_texts_without_trust_say_nothing(texts: list[str]) -> None:
    letters = Letters(texts)
    letters.trust(np.zeros(len(texts)))
    assert letters.log_chances(letters.itself) == pytest.approx(np.log(ANY))


def test_counts_of_values_are_learned() -> None:
    chances = CountChances.of(np.array([1, 4, 5, 6]), np.array([0.0, 1.0, 1.0, 1.0]))
    assert chances(np.array([1, 4])) == pytest.approx([0.05, 0.65 / 4]), (
        "each of five powers has 1/5 of a value, and a tenth of its neighbours"
    )


# ---------------------------------------------------------------- two explanations


SEX = {"Female": 208, "Male": 104, "Femael": 1, "Feamle": 1, "Fmale": 2, "Femalue": 1}


def test_slips_of_frequent_values_are_found_and_undone() -> None:
    verdicts = learn_texts({"sex": SEX})["sex"].verdicts
    assert {text: verdict.meant[0] for text, verdict in verdicts.items() if verdict.suspicion > 0.5} == {
        "Femael": "Female", "Feamle": "Female", "Fmale": "Female", "Femalue": "Female"
    }  # fmt: skip
    assert {verdict.cause for verdict in verdicts.values()} == {"swapped", "dropped", "inserted"}


def test_codes_and_days_that_are_alike_are_values() -> None:
    days = {f"2020/{month:02}/{day:02}": 1 + (day * month) % 5 for month in range(1, 13) for day in range(1, 29)}
    learned = learn_texts({"day": days | {"2020/0x4/11": 1}, "code": {f"B31{n}Q": 1 for n in range(100, 400)}})
    assert [text for text, verdict in learned["day"].verdicts.items() if verdict.suspicion > 0.5] == ["2020/0x4/11"]
    assert not learned["code"].verdicts


def test_a_value_that_stands_nowhere_is_guessed_by_its_letters() -> None:
    streets = ("Main", "Oak", "Church", "Park", "Mill")
    addresses = {f"{n} {streets[n % 5]} Street": 1 for n in range(100, 300)} | {"298 Church Sreet": 1}
    verdict = learn_texts({"address": addresses})["address"].verdicts["298 Church Sreet"]
    assert (verdict.meant[0], verdict.cause) == ("298 Church Street", "dropped")


def test_a_default_has_no_meaning_of_its_own() -> None:
    sectors = {"Retail": 90, "Energy": 80, "Media": 70, "Mining": 60, "Consumer": 50, "Technology": 40, "***": 12}
    verdict = learn_texts({"sector": sectors})["sector"].verdicts["***"]
    assert (verdict.cause, verdict.meant) == ("default", ())


def test_new_texts_are_judged_one_by_one() -> None:
    learned = learn_texts({"sex": SEX})["sex"]
    new = {"Femlae": 1, "femal": 1, "Mle": 1}
    together = learned.judge(new)
    for text, count in new.items():
        assert learned.judge({text: count}).get(text) == together.get(text)
    assert together["Femlae"].meant[0] == "Female"


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=6), st.integers(1, 50), max_size=15))
def test_any_texts_can_be_learned_and_written(counts: dict[str, int]) -> None:
    learned = learn_texts({"x": counts})
    for own in learned.values():
        again = unpack(LearnedTexts, json.loads(json.dumps(pack(own))))
        assert again.verdicts == own.verdicts
        assert all(0 <= verdict.suspicion <= 1 for verdict in own.verdicts.values())


def test_new_texts_are_judged_alike_whatever_others_come_with_them() -> None:
    known = {"Birmingham": 60, "Florence": 50, "Huntsville": 40, "Mobile": 30, "Decatur": 3}
    learned = learn_texts({"city": known})["city"]
    new = ["Birmxngham", "Birmxnghxm", "florence", "Huntsvile", "***", "Zagreb", "Floence", "-1"]
    together = learned.judge(dict.fromkeys(new, 1))
    alone = {text: verdict for each in new for text, verdict in learned.judge({each: 1}).items()}
    assert together == alone


def test_prose_is_not_looked_at(monkeypatch) -> None:
    monkeypatch.setattr("cellmend.table.explained.MOST_LETTERS", 20)
    assert learn_texts({"note": {"a long and unique remark": 1}, "city": {"Rome": 9, "Roma": 1}}).keys() == {"city"}


def test_a_default_that_stands_in_many_columns_is_no_value_of_any() -> None:
    cities = {f"{name} {end}": 9 for name in ("Ulm", "Bonn", "Trier", "Jena") for end in ("East", "West", "North")}
    sizes = {"small": 40, "medium": 40, "large": 40}
    learned = learn_texts({"city": cities | {"-1": 12}, "size": sizes | {"-1": 12}})
    assert all(learned[name].verdicts["-1"].cause == "default" for name in learned)
    again = learn_texts({"city": cities | {"-1": 12}, "birthplace": cities | {"-1": 12}})
    assert "-1" not in again["city"].verdicts, "columns of the same values vouch for each other"


def test_a_word_that_stands_where_numbers_should_is_a_default_elsewhere_too() -> None:
    sizes = {"small": 40, "medium": 40, "large": 40, "Some college": 9}
    assert "Some college" not in learn_texts({"size": sizes})["size"].verdicts
    verdict = learn_texts({"size": sizes}, {"Some college"})["size"].verdicts["Some college"]
    assert (verdict.cause, verdict.meant) == ("default", ())


def test_a_new_name_of_the_same_form_is_no_scramble_unless_many_are() -> None:
    lands = {"Germany": 500, "Austria": 300, "Hungary": 200, "Romania": 90}
    found = learn_texts({"land": lands | {"Denmark": 1}})["land"].verdicts
    assert "Denmark" not in found or found["Denmark"].suspicion < 0.5
    levels = {"founder non-finance": 600, "privatized and resources": 300, "inherited": 300}
    spoiled = ("fktndag bub-donahct", "prnvxtpeev znf egfogrzqw", "foqndwr npn-fihanxe", "privzqilev anp rxsojrqes")
    verdicts = learn_texts({"type": levels | dict.fromkeys(spoiled, 1)})["type"].verdicts
    assert {verdicts[text].cause for text in spoiled} == {"scrambled"}
