"""Values that are alike and natural: other numbers, another hand."""

from __future__ import annotations

import numpy as np
import pytest

from cellmend.table.explained import learn_texts
from cellmend.table.siblings import STYLE, Siblings


@pytest.mark.parametrize(
    ("one", "other", "chance"),
    [
        ("2956 Main St", "2965 Main St", 1e-4),  # any number of four digits
        ("Phase II", "Phase III", 0.1 * 0.1),  # a Roman number, not as long
        ("Wal-Mart", "WALMART", STYLE / 9),
        ("Wal-Mart***", "WALMART", 0.0),
        ("Main St", "Oak St", 0.0),
    ],
)
def test_the_chance_that_a_sibling_is_this_text(one: str, other: str, chance: float) -> None:
    assert Siblings.of([one, other]).expected(np.ones(2))[0] == pytest.approx(chance)


def test_only_siblings_that_were_meant_count() -> None:
    siblings = Siblings.of(["12 Oak St", "15 Oak St", "17 Oak St"])
    assert siblings.expected(np.array([1.0, 0.0, 0.0]))[0] == 0.0
    assert siblings.expected(np.array([1.0, 1.0, 0.0]))[2] == pytest.approx(2 * 0.01)


def test_house_numbers_and_styles_are_no_slips_and_words_with_a_swap_are() -> None:
    streets = {f"{number} {name} Street": 3 for number in range(1100, 1190) for name in ("Hillside", "Station")}
    odd = {"1191 Hillside Street": 1, "1119 Station Street": 3, "1120 Hillsied Street": 1}
    verdicts = learn_texts({"address": streets | odd})["address"].verdicts
    assert {text for text, verdict in verdicts.items() if verdict.suspicion > 0.5} == {"1120 Hillsied Street"}
