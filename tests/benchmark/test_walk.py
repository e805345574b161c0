from __future__ import annotations

import ast
import csv
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from cellmend.cli import app
from cellmend_bench import walk
from cellmend_bench.errors import UnknownNameError
from cellmend_bench.walk import Answer, Task, count, draw, run_walk, summary
from cellmend_bench.walk_errors import Draft, impossible_date, mistyped_year, moved_point
from cellmend_bench.walk_tables import TABLES, Walked, iban

KINDS = {
    "spelling slip", "another case", "spaces", "decimal point", "sign", "sentinel", "placeholder", "letters for digits",
    "decimal comma", "swapped dates", "swapped names", "swapped coordinates", "impossible date", "mistyped year",
    "telephone", "mail", "IBAN", "postcode", "URL", "time", "arithmetic", "wrong but valid", "stuck sensor", "outage",
    "duplicate key", "next column",
}  # fmt: skip


@pytest.fixture(scope="module")
def drafts() -> dict[str, Draft]:
    return {name: draw(name, 3) for name in TABLES}


# ---------------------------------------------------------------- the tables


def test_every_kind_of_error_is_planted_somewhere(drafts: dict[str, Draft]) -> None:
    assert {kind for draft in drafts.values() for kind in draft.kinds.values()} == KINDS


@pytest.mark.parametrize("name", TABLES)
def test_recorded_are_exactly_the_cells_that_differ(drafts: dict[str, Draft], name: str) -> None:
    draft = drafts[name]
    differ = (draft.dirty != draft.clean).stack()
    assert set(differ[differ].index) == set(draft.kinds)


@pytest.mark.parametrize("name", ["orders", "staff", "european", "reviews"])
def test_a_row_has_one_error_at_most(drafts: dict[str, Draft], name: str) -> None:
    kinds = pd.Series(drafts[name].kinds).groupby(level=0).agg(set)
    assert (kinds.str.len() == 1).all()


def test_a_seed_makes_the_same_table_each_time_and_another_one_another() -> None:
    one, again, other = (draw("staff", seed).dirty for seed in (0, 0, 1))
    assert one.equals(again)
    assert not one.equals(other)


def test_clean_tables_keep_their_relations(drafts: dict[str, Draft]) -> None:
    clean = drafts["orders"].clean
    total = (clean["quantity"].astype(int) * clean["price"].astype(float)).map("{:.2f}".format)
    assert (total == clean["total"]).all()
    assert (clean.groupby("customer")["zip"].nunique() == 1).all()
    assert (drafts["staff"].clean["born"] < drafts["staff"].clean["hired"]).all()


def test_account_numbers_have_the_check_digits_of_the_standard(drafts: dict[str, Draft]) -> None:
    number = iban(drafts["staff"].rng)
    letters = "".join(str(int(letter, 36)) for letter in number[4:] + number[:4])
    assert int(letters) % 97 == 1


def test_slips_are_what_their_names_say(drafts: dict[str, Draft]) -> None:
    rng = drafts["staff"].rng
    assert {moved_point("19.90", rng) for _ in range(50)} == {"199", "1990", "1.99", "0.199"}
    for text in ("2023-07-21", "21.07.2023"):
        for _ in range(20):
            dayfirst = "." in text
            assert pd.isna(pd.to_datetime(impossible_date(text, rng), dayfirst=dayfirst, errors="coerce"))
            year = int(mistyped_year(text, rng)[-4:] if dayfirst else mistyped_year(text, rng)[:4])
            assert abs(year - 2023) >= 100 or year == 2023


@pytest.mark.parametrize("name", ["walk", "walk_errors", "walk_tables", "walk_words"])
def test_the_tables_share_no_code_with_what_learns_or_with_the_other_injector(name: str) -> None:
    tree = ast.parse((Path(walk.__file__).parent / f"{name}.py").read_text(encoding="utf-8"))
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in imported if "evaluation" in module or "prior" in module]


# ---------------------------------------------------------------- what is counted


def price_list() -> Draft:
    """Four rows; a typing error, a moved point, a key that stands twice, and nothing."""
    clean = pd.DataFrame({"key": ["a", "b", "c", "d"], "price": ["1.00", "2.00", "3.00", "4.00"]}, dtype=object)
    draft = Draft(clean, draw("staff", 0).rng)
    draft.put("decimal point", {(0, "price"): "100"})
    draft.put("sign", {(1, "price"): "-2.00"})
    draft.put("duplicate key", {(2, "key"): "d"})
    draft.involved.add((3, "key"))
    return draft


def answered(repairs: dict[tuple[int, str], str]) -> Answer:
    repaired = price_list().dirty
    for cell, text in repairs.items():
        repaired.at[cell] = text
    flagged = {(0, "price"), (1, "price"), (3, "price")}
    return Answer(flagged, [{(2, "key"), (3, "key")}, {(0, "key"), (1, "key")}], {}, repaired)


def test_cells_are_counted_as_worked_out_by_hand() -> None:
    repairs = {(0, "price"): "1.005", (1, "price"): "2.50", (3, "price"): "5.00"}
    outcome = count(Task("list", 0, Path()), price_list(), answered(repairs), Walked(lambda *_: None, 4, ("price",)))
    assert dict(outcome.planted) == {"decimal point": 1, "sign": 1, "duplicate key": 1}
    assert outcome.found.total() == 3
    assert dict(outcome.repaired_right) == {"decimal point": 1}  # within 1 %
    assert dict(outcome.repaired_wrong) == {"sign": 1}
    assert (outcome.flags, outcome.false_flags, outcome.right_changed) == (5, 2, 1)
    said = summary([outcome])
    for words in ("found 100.0 % of all errors", "40.0 % of 5 flags", "50.0 % of 2 made", "changed 1 of 8 cells"):
        assert words in said


# ---------------------------------------------------------------- the command


def test_the_command_writes_the_tables_and_tells_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sees_large_numbers(path: Path, delimiter: str) -> Answer:
        dirty = pd.read_csv(path, sep=delimiter, dtype=str, keep_default_na=False)
        return Answer({(row, "Menge") for row in dirty.index[dirty["Menge"] == "9999"]}, [], {}, dirty)

    monkeypatch.setattr(walk, "ask", sees_large_numbers)
    asked = ["bench", "run", "walk", "--tables", "european", "--seed", "5", "--seeds", "2"]
    done = CliRunner().invoke(app, [*asked, "-r", str(tmp_path / "results.jsonl")])
    assert done.exit_code == 0
    assert "european, 6" in done.output
    assert "--seed 5" in done.output
    folder = tmp_path / "walk"
    assert (folder / "european-5.clean.csv").read_text(encoding="utf-8").startswith("Rechnung;Datum;")
    with (folder / walk.CELLS).open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    wrong = draw("european", 5).kinds | draw("european", 6).kinds
    assert len(lines) >= len(wrong)
    assert all(line["kind"] in KINDS for line in lines)


def test_other_names_and_company_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="one is 'wine'"):
        run_walk(tmp_path, tables=["wine"], seeds=[0])
    assert CliRunner().invoke(app, ["bench", "run", "walk", "wild"]).exit_code == 2


@pytest.mark.slow
def test_the_default_finds_most_of_it_and_changes_nothing_that_is_right(tmp_path: Path) -> None:
    outcome = walk.judge(Task("orders", 0, tmp_path))
    assert outcome.found.total() > 0.5 * outcome.planted.total()
    assert outcome.right_changed == 0
