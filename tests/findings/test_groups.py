"""Findings in groups, and what one rewriting of many values is called."""

from __future__ import annotations

import pytest

from cellmend.findings.finding import Finding
from cellmend.findings.groups import describe, grouped


def finding(
    row: int, value: str | float, repair: str | float | None, cause: str = "form", sure: float = 0.9
) -> Finding:
    return Finding(row, "size", value, sure, repair, None, None, "it is odd", cause, sure / 2)


def rewritings(*pairs: tuple[str, str]) -> list[tuple[str, int]]:
    """The lines of one group of these values and repairs: what is done, and to how many cells."""
    [group] = grouped([finding(row, *pair) for row, pair in enumerate(pairs)])
    return [(line.rewriting or f"{line.value} → {line.repair}", len(line.cells)) for line in group.lines]


def test_findings_are_grouped_by_column_and_cause_the_largest_first() -> None:
    found = [
        finding(0, "Ulmm", "Ulm"),
        finding(1, "x", None, "default"),
        finding(2, "Ulmm", "Ulm"),
        finding(3, "Bon", "Bonn"),
    ]
    groups = grouped(found)
    assert [group.words for group in groups] == ["size · form: 3 cells, 2 values", "size · default: 1 cell, 1 value"]
    assert [[cell.row for cell in line.cells] for line in groups[0].lines] == [[0, 2], [3]]


def test_cells_of_a_value_with_other_repairs_are_another_line_and_the_value_counts_once() -> None:
    [group] = grouped([finding(0, "Ul", "Ulm"), finding(1, "Ul", "Uhl"), finding(2, "Ul", None)])
    assert [(line.value, line.repair) for line in group.lines] == [("Ul", "Ulm"), ("Ul", "Uhl"), ("Ul", None)]
    assert group.values == 1


def test_numbers_and_their_texts_are_the_same_value() -> None:
    [group] = grouped([finding(0, 5.0, 6.0), finding(1, "5", "6")])
    assert [(line.value, line.repair, len(line.cells)) for line in group.lines] == [("5", "6", 2)]


def test_a_line_is_as_sure_as_its_cells_on_average() -> None:
    [group] = grouped([finding(0, "Ulmm", "Ulm", sure=0.8), finding(1, "Ulmm", "Ulm", sure=0.6)])
    assert group.lines[0].suspicion == pytest.approx(0.7)
    assert group.lines[0].repair_probability == pytest.approx(0.35)


def test_one_rewriting_of_many_values_is_one_line() -> None:
    assert rewritings(("12 oz.", "12"), ("16 oz.", "16"), ("16 oz.", "16"), ("8 oz.", "8"), ("x", "9")) == [
        ("‘ oz.’ taken away at the end", 4),
        ("x → 9", 1),
    ]


def test_two_values_that_are_rewritten_alike_stay_two_lines() -> None:
    assert len(rewritings(("12 oz.", "12"), ("16 oz.", "16"))) == 2


def test_a_rewriting_of_few_among_many_other_values_is_no_line() -> None:
    others = [(f"{place} abc {place}", f"{place} xyz {place}") for place in range(10)]
    assert len(rewritings(("12 oz.", "12"), ("16 oz.", "16"), ("8 oz.", "8"), *others)) == 13


def test_the_rewriting_that_describes_most_is_chosen() -> None:
    towns = ["Bend OR", "Salem OR", "Eugene OR", "Gary IN", "Reno NV", "Waco TX"]
    pairs = [(town, town.rpartition(" ")[0]) for town in towns]
    assert rewritings(*pairs[:3]) == [("‘ OR’ taken away at the end", 3)]
    assert rewritings(*pairs) == [("the last word taken away", 6)]


def test_of_thousands_of_values_a_rewriting_is_found_too() -> None:
    many = [(f"{place}%", str(place)) for place in range(2000)]
    assert rewritings(*many) == [("‘%’ taken away at the end", 2000)]


def test_a_cell_without_a_repair_is_not_rewritten() -> None:
    found = [finding(row, f"{row} oz.", None) for row in range(3)]
    assert [line.rewriting for line in grouped(found)[0].lines] == ["", "", ""]


@pytest.mark.parametrize(
    ("value", "repair", "words"),
    [
        ("12.0 oz.", "12.0", "‘ oz.’ taken away at the end"),
        ("$12", "12", "‘$’ taken away at the start"),
        ("12", "12 oz", "‘ oz’ added at the end"),
        ("12 ounce", "12 oz", "‘unce’ at the end replaced by ‘z’"),
        ("hoxse", "house", "‘x’ replaced by ‘u’"),
        ("1O5O", "1050", "‘O’ replaced by ‘0’"),
        ("caxxxd", "called", "‘x’ replaced"),
        ("ROME", "Rome", "capital and small letters"),
        ("New  York ", "New York", "spaces"),
        ("1250", "12.5", "the decimal point moved by 2 places to the left"),
        ("0.05", "50", "the decimal point moved by 3 places to the right"),
    ],
)
def test_a_rewriting_in_words(value: str, repair: str, words: str) -> None:
    assert describe(value, repair)[0] == words


@pytest.mark.parametrize(("value", "repair"), [("Ulm", "Bonn"), ("hxxse", "house"), ("a b c", "a x y c")])
def test_what_no_few_words_say_is_no_rewriting(value: str, repair: str) -> None:
    assert "replaced by" not in " ".join(describe(value, repair))
