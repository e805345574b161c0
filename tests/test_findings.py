from __future__ import annotations

import pytest

from cellmend.findings import say_why, show


def test_a_number_is_explained_by_its_interval() -> None:
    assert say_why("z", 31.8, 3.15, 3.21, []) == "z is 31.8; for a row like this it is usually 3.15 to 3.21"


def test_a_category_is_explained_by_its_likely_levels() -> None:
    likely = [("Ideal", 0.72), ("Premium", 0.251), ("Fair", 0.029)]
    assert say_why("cut", "Fair", None, None, likely) == (
        "cut is Fair; for a row like this it is usually Ideal (72 %) or Premium (25 %)"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (0.1 + 0.2, "0.3"), (1234567.89, "1234567.89"), (12, "12"), (True, "True")],
)
def test_values_are_shown_as_a_person_would_write_them(value, text: str) -> None:
    assert show(value) == text
