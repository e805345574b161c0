"""Rules of the table: which there are, who breaks them, and what follows when people judge them."""

from __future__ import annotations

from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pytest

from cellmend.errors import DecisionError, FileError, RulesError
from cellmend.findings.finding import to_arrow
from cellmend.review.flagged import Flag, Flagged
from cellmend.review.limits import Wishes
from cellmend.review.results import open_results
from cellmend.review.review import Review
from cellmend.review.rows import Filter
from cellmend.review.rulebook import RuleBook
from cellmend.review.ruling import add_rule
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from tests.review.conftest import Client, wait_for_teacher

FORMULA = "length = 2 × width"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Codes that decide towns, and totals; row 5 has the wrong town, row 7 the wrong total."""
    code = [f"c{row % 6}" for row in range(120)]
    town = np.array([f"town {each}" for each in code], dtype=object)
    town[5] = "town c1"
    price = np.random.default_rng(0).integers(2, 90, 120)
    count = np.random.default_rng(1).integers(2, 9, 120)
    total = price * count
    total[7] += 100
    return pa.table({"code": code, "town": town.tolist(), "price": price, "count": count, "total": total})


@pytest.fixture(scope="module")
def book(table: pa.Table) -> RuleBook:
    reader, _ = TableReader.fit(read_frame(table), None)
    return RuleBook(reader, table)


def flag(row: int, column: str, cause: str, suspicion: float = 0.7) -> Flag:
    return Flag(row, column, "?", suspicion, None, None, None, "it looks odd", cause)


def by_words(book: RuleBook, wishes: Wishes) -> dict[str, tuple[int, str, str | None]]:
    return {each.rule: (each.broken, each.source, each.verdict) for each in book.listed(wishes)}


# ---------------------------------------------------------------- which there are


def test_rules_that_a_table_shows_are_listed_with_the_rows_that_break_them(book: RuleBook) -> None:
    told = by_words(book, Wishes())
    assert told["code decides town"] == (1, "found", None)
    assert told["total = price × count"] == (1, "found", None)
    assert book.broken_by("code decides town", Wishes()).tolist() == [5]
    assert book.broken_by("total = price × count", Wishes()).tolist() == [7]
    with pytest.raises(RulesError, match="There is no rule 'town is nice'"):
        book.broken_by("town is nice", Wishes())


def test_ones_own_rules_come_first_and_those_with_few_exceptions_before_others(book: RuleBook) -> None:
    listed = book.listed(Wishes(own=("price > 50",)))
    assert listed[0].rule == "price > 50"
    assert listed[0].source == "own"
    assert listed[0].support == 1 - listed[0].broken / 120
    broken = [each.broken or 120 for each in listed[1:]]
    assert broken == sorted(broken)


def test_a_line_is_read_as_the_rule_that_it_says(book: RuleBook) -> None:
    assert book.read(" code  decides town".replace("  ", " ")) == "code decides town"
    assert book.read("price > 0") == "price > 0"
    with pytest.raises(RulesError, match="Did you mean 'price'"):
        book.read("prices > 0")
    with pytest.raises(RulesError, match="must compare numbers or dates; 'town'"):
        book.read("town > 3")


# ---------------------------------------------------------------- what follows


def test_a_confirmed_rule_flags_what_breaks_it_as_clean_does(table: pa.Table) -> None:
    from cellmend import CellMender
    from tests.conftest import SMALL

    reader, _ = TableReader.fit(read_frame(table), None)
    own = RuleBook(reader, table).heeding(Flagged([]), Wishes(own=("price < 80",)))
    mender = CellMender(**SMALL, rules=["price < 80"], schema={"town": "ignore"}).fit(table)
    told = {(each["row"], each["column"]): each["cause"] for each in to_arrow(mender.mend(table).found).to_pylist()}
    assert [flag.row for flag in own.flags] == [
        row for row, price in enumerate(table["price"].to_pylist()) if price >= 80
    ]
    causes = [told[flag.cell] for flag in own.flags]
    assert causes.count("rule") > len(causes) / 2  # of others the model knows more
    assert {flag.cause for flag in own.flags} == {"rule"}
    assert all(flag.suspicion == 1 for flag in own.flags)
    assert all("the rule is price < 80" in flag.reason for flag in own.flags)


def test_of_several_cells_that_break_a_rule_the_flagged_one_explains_it(book: RuleBook) -> None:
    wishes = Wishes(rules={"code decides town": "confirmed"})
    both = {each.cell: each for each in book.heeding(Flagged([]), wishes).flags}
    assert {cell: each.suspicion for cell, each in both.items()} == {(5, "code"): 0.5, (5, "town"): 0.5}
    assert both[5, "town"].repair == "town c5"
    assert both[5, "code"].repair is None
    one = book.heeding(Flagged([flag(5, "town", "dependency", 0.4)]), wishes).flags
    assert [(each.cell, each.cause, each.suspicion) for each in one] == [((5, "town"), "rule", 1.0)]
    known = Flagged([flag(5, "town", "rule", 0.9)])
    assert book.heeding(known, wishes).flags == known.flags


def test_a_rule_that_is_struck_out_takes_its_flags_away_and_no_others(book: RuleBook) -> None:
    found = Flagged(
        [
            flag(5, "town", "dependency"),
            flag(7, "total", "arithmetic"),
            flag(5, "price", "dependency"),
            flag(5, "code", "typo"),
        ]
    )
    left = book.heeding(found, Wishes(rules={"code decides town": "struck"}))
    silent = [each for each in found.flags if each not in left.flags]
    also_broken = {words for words, each in book.found.items() if 5 in each.rows} - {"code decides town"}
    assert [each.cell for each in silent] == ([(5, "town")] if not also_broken else [])
    assert left.get((7, "total"))
    gone = book.heeding(found, Wishes(rules=dict.fromkeys(book.found, "struck")))
    assert [each.cell for each in gone.flags] == [(5, "price"), (5, "code")]


# ---------------------------------------------------------------- in a review


@pytest.mark.slow
def test_rules_are_steps_of_the_review_and_undone(review: Review, client: Client) -> None:
    with pytest.raises(DecisionError, match="still being read"):
        add_rule(review, "width < 100")
    review.start()
    wait_for_teacher(review)
    before = list(review.flagged.flags)
    done = client.tell("own_rule", rule=" width < 11 ")
    words = [(each["rule"], each["source"]) for each in done["rules"]]
    assert words[0] == ("width < 11", "own")
    broken = review.rows(Filter(rule="width < 11"))
    assert broken is not None
    assert {flag.row for flag in review.flagged.flags if flag.cause == "rule"} == set(broken.tolist())
    assert client.tell("own_rule", rule="width < 11")["step"] is None  # it is said already
    assert Review(open_results(review.results.folder, None)).wishes.own == ("width < 11",)
    client.tell("undo", step=done["step"])
    assert list(review.flagged.flags) == before
    found = review.rulebook.found
    assert found
    words = next(iter(found))
    client.tell("rule", rule=words, verdict="confirmed")
    client.tell("rule", rule=words, verdict="struck")
    assert review.wishes.rules == {words: "struck"}
    assert client.post("/api/rule", json={"rule": "width is nice", "verdict": "struck"}).status_code == 422
    assert client.post("/api/own_rule", json={"rule": 5}).status_code == 422


@pytest.mark.slow
def test_rows_that_break_a_rule_are_filtered_with_other_filters_too(review: Review, client: Client) -> None:
    review.start()
    wait_for_teacher(review)
    add_rule(review, "width < 10")
    broken = review.rows(Filter(rule="width < 10"))
    assert broken is not None
    assert 0 < len(broken) < review.table.num_rows
    row = int(broken[0])
    some = client.get(f"/api/rows?{urlencode({'rule': 'width < 10', 'text': f'note {row}'})}").json()
    assert row in some["rows"]
    assert set(some["rows"]) <= set(broken.tolist())
    following = client.get(f"/api/following?{urlencode({'rule': 'width < 10', 'row': 0})}").json()
    assert following["cell"]["row"] in broken
    assert client.get(f"/api/rows?{urlencode({'rule': 'no such rule'})}").status_code == 422


def test_a_kept_rule_of_another_table_is_refused_in_one_sentence(review: Review) -> None:
    review.results.columns.write_text('{"kinds": {}, "limits": {}, "rules": {}, "own": ["prize > 0"]}', "utf-8")
    with pytest.raises(FileError, match=r"must hold rules of the table\. .*'prize'"):
        Review(open_results(review.results.folder, None))
    review.results.columns.write_text('{"kinds": {}, "limits": {}, "rules": {}, "own": [5]}', "utf-8")
    with pytest.raises(FileError, match="as the review page wrote it"):
        Review(open_results(review.results.folder, None))
