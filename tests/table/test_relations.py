"""Dependencies, keys and sources: found where they were planted, told in words, and applied to any piece of a table."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cellmend.table.frames import read_frame
from cellmend.table.notation import understand
from cellmend.table.reader import TableReader, understand_columns
from cellmend.table.readtable import ReadTable, Suspect, read_typed
from cellmend.table.relations import learn_relations, relate, relations_from_json, relations_to_json
from cellmend.table.relations.base import Relation
from cellmend.table.relations.coding import code_column
from cellmend.table.relations.ruled import ruled_rows

SEEDS = st.integers(0, 10_000)


def table_of(frame: pd.DataFrame) -> tuple[ReadTable, list[Relation]]:
    """A table as it is read, without checks of single columns, and its relations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = read_frame(frame)
        understood = understand_columns(read.arrow, None)
    table = ReadTable(read, understood.table, understood.notations)
    return table, learn_relations(table, understood.schema)


def planted(seed: int, share: float, rows: int = 1200) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """A code that decides a city, and through it nothing else; and the rows whose city is another one."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 60, rows)
    city = rng.integers(0, 25, 60)[code]
    wrong = rng.random(rows) < share
    seen = np.where(wrong, (city + rng.integers(1, 25, rows)) % 25, city)
    frame = pd.DataFrame(
        {
            "code": [f"A{each}" for each in code],
            "city": [f"city {each}" for each in seen],
            "copy": [f"C-{each}" for each in code],
            "size": rng.normal(size=rows).round(2),
        }
    )
    return frame, wrong


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS, share=st.floats(0.01, 0.2))
def test_a_planted_dependency_is_found_however_often_it_is_broken(seed: int, share: float) -> None:
    frame, _ = planted(seed, share)
    _, relations = table_of(frame)
    assert ("code", "city") in {each.columns for each in relations if each.kind == "dependency"}


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS, levels=st.integers(2, 200))
def test_random_tables_have_no_relations(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"c{d}": [f"v{each}" for each in rng.integers(0, levels, 400)] for d in range(4)})
    frame["skewed"] = np.where(rng.random(400) < 0.95, "usual", "rare")
    _, relations = table_of(frame)
    assert relations == []


def test_cells_that_break_a_dependency_are_suspects_with_what_their_group_says() -> None:
    frame, wrong = planted(seed=1, share=0.1)
    table, relations = table_of(frame)
    suspects = [each for each in relate(table, relations).suspects if each.suspicion >= 0.5]
    found = {each.row for each in suspects}
    assert {each.column for each in suspects} == {1}
    assert len(found & set(np.flatnonzero(wrong))) > 0.8 * wrong.sum()
    assert len(found - set(np.flatnonzero(wrong))) < 0.05 * len(found)
    usual = frame[~wrong].groupby("code")["city"].first()
    assert np.mean([each.meant == (usual[frame["code"][each.row]],) for each in suspects]) > 0.95
    assert "rows" in suspects[0].reason


def test_of_two_cells_that_do_not_go_together_neither_is_accused_without_a_third() -> None:
    frame, _ = planted(seed=2, share=0.1)
    table, relations = table_of(frame[["code", "city"]])
    assert np.median([each.suspicion for each in relate(table, relations).suspects]) < 0.6


def test_two_columns_decide_a_third_that_neither_decides_alone() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 8, 2000), rng.integers(0, 7, 2000)
    price = rng.integers(0, 20, 56)[one * 7 + other]
    frame = pd.DataFrame({"article": [f"a{x}" for x in one], "shop": [f"s{x}" for x in other], "price": price + 100})
    _, relations = table_of(frame)
    assert "shop and article decide price" in [each.words() for each in relations]
    assert not [each for each in relations if len(each.columns) == 2]


def test_what_two_columns_only_make_usual_is_no_rule() -> None:
    """In one row of ten something else stands: that is a habit, and what stands there is no error."""
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 8, 2000), rng.integers(0, 7, 2000)
    price = rng.integers(0, 20, 56)[one * 7 + other]
    price = np.where(rng.random(2000) < 0.1, rng.integers(0, 20, 2000), price)
    frame = pd.DataFrame({"article": [f"a{x}" for x in one], "shop": [f"s{x}" for x in other], "price": price + 100})
    assert not [each for each in table_of(frame)[1] if each.kind == "dependency"]


def keyed() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    number = np.arange(500) + 4000
    number[rng.choice(np.arange(100, 500), 30, replace=False)] = rng.choice(number[:10], 30)
    return pd.DataFrame({"number": number, "x": rng.normal(size=500), "kind": rng.choice(["a", "b", "c"], 500)})


def test_identifiers_that_were_copied_are_suspects_and_their_owners_are_not() -> None:
    frame = keyed()
    table, relations = table_of(frame)
    assert "number is different in every row" in [each.words() for each in relations]
    suspects = [each for each in relate(table, relations).suspects if each.cause == "key"]
    assert {each.row for each in suspects} == set(np.flatnonzero(frame["number"] != np.arange(500) + 4000))


def test_values_that_stand_often_by_nature_are_no_copies() -> None:
    rng = np.random.default_rng(0)
    often = rng.zipf(2.2, 400)
    frame = pd.DataFrame({"name": [f"shop {k}" for k in np.repeat(np.arange(400), np.minimum(often, 40))]})
    frame["x"] = rng.normal(size=len(frame))
    table, relations = table_of(frame.sample(frac=1, random_state=0, ignore_index=True))
    assert not [each for each in relate(table, relations).suspects if each.suspicion >= 0.5]


def told() -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """40 flights by 12 sources, of which three are wrong in half of what they say."""
    rng = np.random.default_rng(3)
    true = rng.integers(0, 24 * 60, 40)
    flight, source = (each.ravel() for each in np.meshgrid(np.arange(40), np.arange(12), indexing="ij"))
    wrong = rng.random(480) < np.where(source < 3, 0.5, 0.02)
    minute = np.where(wrong, (true[flight] + rng.integers(1, 600, 480)) % 1440, true[flight])
    text = [f"{m // 60}:{m % 60:02d}" for m in minute]
    text = [f"2011-12-02 {t}" if s == 5 else t for t, s in zip(text, source, strict=True)]  # the same, written longer
    return pd.DataFrame({"flight": [f"F{f}" for f in flight], "site": [f"s{s}" for s in source], "leaves": text}), wrong


def test_what_most_reliable_sources_say_tells_which_cells_are_wrong() -> None:
    frame, wrong = told()
    table, relations = table_of(frame)
    sources = [each for each in relations if each.kind == "sources"]
    assert [each.columns for each in sources] == [("flight", "site", "leaves")]
    found = {each.row for each in sources[0].suspects(table) if each.suspicion >= 0.5}
    assert len(found & set(np.flatnonzero(wrong))) > 0.9 * wrong.sum()
    assert not found - set(np.flatnonzero(wrong))


def around(rows: int = 1200) -> pd.DataFrame:
    """A code that is always 4; in one row of seven it is off by 1 or 2, by chance."""
    rng = np.random.default_rng(3)
    code = np.where(rng.random(rows) < 1 / 7, 4 + rng.choice([-2, -1, 1, 2], rows), 4)
    return pd.DataFrame(
        {"code": code, "city": rng.choice(["Ulm", "Bonn", "Kiel"], rows), "size": rng.normal(size=rows)}
    )


@pytest.mark.parametrize(
    "frame", [planted(5, 0.1)[0], keyed(), told()[0], around()], ids=["dependency", "key", "sources", "constant"]
)
def test_a_piece_of_a_table_is_judged_as_the_whole_is(frame: pd.DataFrame) -> None:
    table, relations = table_of(frame)
    read = relations_from_json(relations_to_json(relations))
    whole = {(each.row, each.column): each for each in relate(table, relations).suspects}
    assert whole
    pieces: dict[tuple[int, int], Suspect] = {}
    for start in range(0, len(frame), 137):
        piece = read_frame(frame.iloc[start : start + 137].reset_index(drop=True))
        read_piece = ReadTable(piece, understand(piece.arrow, table.notations), table.notations)
        for each in relate(read_piece, read).suspects:
            pieces[each.row + start, each.column] = each
    assert {cell: (each.suspicion, each.meant, each.reason) for cell, each in pieces.items()} == {
        cell: (each.suspicion, each.meant, each.reason) for cell, each in whole.items()
    }


def test_a_model_file_of_before_has_no_relations() -> None:
    frame, _ = planted(seed=0, share=0.05, rows=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader, _ = TableReader.fit(read_frame(frame), None)
    entries = reader.to_json()
    assert reader.relations
    assert len(TableReader.from_json(entries).relations) == len(reader.relations)
    gone = {"kind": "a kind that is gone", "columns": ["size"]}
    more = entries | {"relations": [gone, *entries["relations"]]}
    assert [each.kind for each in TableReader.from_json(more).relations] == [each.kind for each in reader.relations]
    del entries["relations"]
    assert TableReader.from_json(entries).relations == ()


def test_cells_around_the_one_number_of_a_column_are_wrong_if_nothing_explains_them() -> None:
    frame = around()
    table = relate(*table_of(frame))
    found = {each.row: each for each in table.suspects if each.cause == "constant"}
    assert set(found) == set(np.flatnonzero(frame["code"] != 4).tolist())
    assert all(each.meant == ("4",) and each.suspicion >= 0.9 for each in found.values())


@pytest.mark.parametrize("explained_by", ["city", "size", "place"])
def test_cells_around_the_one_number_of_a_column_are_natural_if_something_explains_them(explained_by: str) -> None:
    frame = around()
    rows = {
        "city": np.array(frame["city"] == "Ulm"),
        "size": np.array(frame["size"] > 0.5),
        "place": np.arange(len(frame)) < len(frame) // 3,
    }[explained_by]
    frame["code"] = np.where(rows, frame["code"], 4)
    assert not [each for each in relate(*table_of(frame)).suspects if each.cause == "constant"]


def test_a_natural_tail_on_one_side_of_the_usual_number_is_no_error() -> None:
    frame = around()
    frame["code"] = 4 + (frame["code"] - 4).abs()
    assert not [each for each in relate(*table_of(frame)).suspects if each.cause == "constant"]


def test_a_number_copied_over_a_running_count_is_repaired_by_the_rows_around_it() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"id": np.arange(1, 401), "size": rng.normal(size=400), "city": rng.choice(["a", "b"], 400)})
    wrong = np.array([50, 51, 120, 200, 310])
    frame.loc[wrong, "id"] = 7
    found = {each.row: each.meant for each in relate(*table_of(frame)).suspects if each.cause == "key"}
    assert found == {row: (str(row + 1),) for row in wrong.tolist()}


def test_a_slip_that_may_mean_several_values_counts_for_none_of_them() -> None:
    table = read_typed(pd.DataFrame({"number": ["10006", "10008", "1000x", "1O006"]}))
    slips = [
        Suspect(2, 0, 0.99, ("10008", "10006"), "", readable=False, cause="replaced"),
        Suspect(3, 0, 0.99, ("10006",), "", readable=False, cause="replaced"),
    ]
    coded = code_column(table.with_suspects(slips), "number")
    assert [coded.values[code] if code >= 0 else None for code in coded.codes] == ["10006", "10008", None, "10006"]


def copied_keys(*, is_sorted: bool, text: bool) -> tuple[list[list[int]], float]:
    """The rows of each violation of a key of which row 70 holds a copy of row 20, and how probable it is."""
    random = np.random.default_rng(0)
    ids = np.arange(400) * 3 if is_sorted else random.permutation(400) * 3
    ids[70] = ids[20]
    frame = pd.DataFrame({"id": [f"A-{i:05d}" for i in ids] if text else ids, "x": random.normal(size=400)})
    table, relations = table_of(frame)
    violations = relate(table, relations).violations
    assert {each.cause for each in violations} == {"key"}
    return [[row for row, _ in each.cells] for each in violations], violations[0].chance


@pytest.mark.parametrize("text", [True, False])
def test_of_a_key_that_stands_twice_the_row_out_of_order_is_named_and_elsewhere_both(text: bool) -> None:
    assert copied_keys(is_sorted=True, text=text)[0] == [[70]]
    rows, chance = copied_keys(is_sorted=False, text=text)
    assert rows == [[20, 70]]
    assert chance > 0.9


def test_numbers_that_stand_twice_by_chance_or_as_ties_are_no_copies() -> None:
    random = np.random.default_rng(0)
    drawn = pd.DataFrame({"x": random.normal(size=400), "zip": random.integers(10_000, 99_999, 400)})
    assert relate(*table_of(drawn)).violations == ()
    ranks = pd.DataFrame({"rank": [*range(1, 51), *range(50, 400)], "x": random.normal(size=400)})
    assert relate(*table_of(ranks)).violations == ()


def test_codes_in_the_first_column_name_rows_also_where_they_are_drawn_at_random() -> None:
    random = np.random.default_rng(0)
    numbers = random.choice(90_000, 400, replace=False) + 10_000  # among so many few would stand twice by chance
    numbers[70] = numbers[20]
    frame = pd.DataFrame({"visit": numbers, "x": random.normal(size=400)})
    (found,) = relate(*table_of(frame)).violations
    assert ([row for row, _ in found.cells], found.chance > 0.9) == ([20, 70], True)
    assert relate(*table_of(frame[["x", "visit"]])).violations == ()
    days = pd.Series(pd.Timestamp("2015-01-01") + pd.to_timedelta(numbers // 20, "D")).dt.strftime("%Y-%m-%d")
    assert relate(*table_of(pd.DataFrame({"day": days, "x": frame["x"]}))).violations == ()


def test_a_key_that_was_learned_without_copies_names_those_of_a_newer_table() -> None:
    random = np.random.default_rng(0)
    ids = random.permutation(400)
    _, relations = table_of(pd.DataFrame({"id": ids, "x": random.normal(size=400)}))
    newer = ids + 400
    newer[70] = newer[20]
    table, _ = table_of(pd.DataFrame({"id": newer, "x": random.normal(size=400)}))
    (found,) = relate(table, relations).violations
    assert [row for row, _ in found.cells] == [20, 70]


def test_what_hardly_ever_comes_twice_by_chance_is_not_listed_as_a_rule() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"id": random.permutation(400), "total": random.integers(0, 90_000, 400) / 100})
    table, relations = table_of(frame)
    assert {each.columns for each in relations} == {("id",), ("total",)}
    assert [each.rule for each in ruled_rows(relations, (), table)] == ["id is different in every row"]
