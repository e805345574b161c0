from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cellmend.cli import app
from cellmend.decisions.decision import Decision
from cellmend.errors import PatchError
from cellmend.files.formats import read_file
from cellmend.patch import (
    Fix,
    Replacement,
    fitting,
    fixes_of,
    key_of,
    read_patch,
    recipe_of,
    replacing,
    typed,
    with_fixes,
    write_fixed,
    write_patch,
)

CSV = b'id;city;"size"\r\nA1;"Ulmm"; 1.50 \r\nA2;Bonn;007\r\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "towns.csv"
    path.write_bytes(CSV)
    return path


def patch_with(folder: Path, *fixes: Fix) -> Path:
    write_patch(folder / "patch.jsonl", fixes)
    return folder / "patch.jsonl"


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_a_patch_is_read_as_it_was_written(tmp_path: Path) -> None:
    fixes = [Fix(3, "city", "Ulmm", "Ulm", ("id", "A1")), Fix(4, "größe", None, ""), Fix(5, "x", "", "<b>")]
    assert read_patch(patch_with(tmp_path, *fixes)) == fixes


@pytest.mark.parametrize(
    "line",
    ["x", "[]", '{"row": 1}', '{"row": -1, "column": "x", "new": "y"}', '{"row": 1, "column": 2, "new": "y"}',
     '{"row": 1, "column": "x", "new": "y", "old": 5}', '{"row": true, "column": "x", "new": "y"}',
     '{"row": 1, "column": "x", "new": "y", "more": 1}', '{"row": 1, "column": "x", "new": "y", "key": ["id"]}'],
)  # fmt: skip
def test_a_line_that_is_no_fix_is_told_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "patch.jsonl"
    path.write_text('{"row": 1, "column": "x", "old": "a", "new": "b"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(PatchError, match=r"Line 2 of patch\.jsonl must hold one fix"):
        read_patch(path)


def test_applying_changes_the_bytes_of_the_fixed_cells_only(table: Path, tmp_path: Path) -> None:
    patch = patch_with(tmp_path, Fix(0, "city", "Ulmm", "Ulm"))
    code, said = run("apply", patch, table, "-o", tmp_path / "out.csv")
    assert code == 0, said
    assert (tmp_path / "out.csv").read_bytes() == CSV.replace(b"Ulmm", b"Ulm")
    assert "1 cell is repaired, 0 refused." in said


def test_a_cell_that_changed_meanwhile_is_refused_and_the_others_are_repaired(table: Path, tmp_path: Path) -> None:
    patch = patch_with(tmp_path, Fix(0, "city", "Ulmm", "Ulm"), Fix(1, "city", "Bom", "Bonn am Rhein"))
    code, said = run("apply", patch, table, "-o", tmp_path / "out.csv")
    assert code == 1
    assert "city of row 1: it should hold 'Bom' and holds 'Bonn'" in said
    assert (tmp_path / "out.csv").read_bytes() == CSV.replace(b"Ulmm", b"Ulm")


def test_where_every_cell_is_refused_nothing_is_written(table: Path, tmp_path: Path) -> None:
    patch = patch_with(tmp_path, Fix(1, "city", "Bom", "Bonn am Rhein"))
    code, said = run("apply", patch, table, "-o", tmp_path / "out.csv")
    assert (code, (tmp_path / "out.csv").exists()) == (1, False)
    assert "1 refused. Nothing is written." in " ".join(said.split())


def test_a_cell_that_is_repaired_already_is_neither_repaired_nor_refused() -> None:
    held = pa.table({"city": ["Ulm"]})
    assert fitting([Fix(0, "city", "Ulmm", "Ulm")], held) == ([], [])


def test_rows_are_found_by_their_key_where_the_newer_copy_has_them_elsewhere() -> None:
    newer = pa.table({"id": [9, 2, 1, 1], "city": ["Kiel", "Bonn", "Ulmm", "Ulmm"]})
    fixes = [Fix(0, "city", "Bonn", "Bonn am Rhein", ("id", "2")), Fix(1, "city", "Ulmm", "Ulm", ("id", "1"))]
    fit, refused = fitting([*fixes, Fix(2, "city", "Kiel", "Köln", ("id", "7"))], newer)
    assert [(fix.row, fix.new) for fix in fit] == [(1, "Bonn am Rhein")]
    assert [str(each) for each in refused] == [
        "city of id 1: id 1 stands 2 times",
        "city of id 7: the table has no such row",
    ]


def test_rows_and_columns_that_are_gone_are_refused() -> None:
    newer = pa.table({"city": ["Ulmm"]})
    _, refused = fitting([Fix(5, "city", "Ulmm", "Ulm"), Fix(0, "town", "Ulmm", "Ulm")], newer)
    assert [each.why for each in refused] == ["the table has 1 rows only", "the table has no such column"]


def test_a_value_that_its_column_cannot_hold_is_refused() -> None:
    _, refused = fitting([Fix(0, "n", "1", "one")], pa.table({"n": [1]}))
    assert [each.why for each in refused] == ["Column 'n' holds numbers (int64); 'one' cannot stand there."]


def test_a_key_is_a_column_of_different_values_that_is_not_repaired_itself() -> None:
    table = pa.table({"name": ["a", "b"], "id": ["x", "y"], "n": [1.5, 2.5], "same": ["c", "c"]})
    assert key_of(table) == "id"
    assert key_of(table, besides=["id"]) == "name"
    assert key_of(table, besides=["id", "name"]) is None
    assert key_of(pa.table({"id": ["x", None]})) is None


def test_only_wrong_cells_with_a_repair_become_fixes() -> None:
    table = pa.table({"x": ["a", "b", "c"]})
    decisions = [Decision(0, "x", "a", "right"), Decision(1, "x", "b", "wrong"), Decision(2, "x", "c", "wrong", "")]
    assert fixes_of(decisions, table) == [Fix(2, "x", "c", "")]


def test_cells_keep_the_types_of_their_columns(tmp_path: Path) -> None:
    times = pa.array([datetime(2024, 5, 3, 10), None], pa.timestamp("us", "Europe/Berlin"))
    table = pa.table(
        {
            "n": pa.array([1, 2], pa.int16()),
            "x": pa.array([0.1, 0.2], pa.float32()),
            "is_new": [True, False],
            "level": pa.array(["a", "b"]).dictionary_encode(),
            "day": times.cast(pa.date32()),
            "time": times,
            "price": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
        }
    )
    pq.write_table(table, tmp_path / "typed.parquet")
    new = {
        "n": "7",
        "x": "2.5",
        "is_new": "False",
        "level": "c",
        "day": "",
        "time": "2024-05-04 11:30:00",
        "price": "9.99",
    }
    write_fixed(
        read_file(tmp_path / "typed.parquet"), tmp_path / "out.parquet", [Fix(0, k, "", v) for k, v in new.items()]
    )
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.schema.types == table.schema.types
    assert written.slice(1).to_pylist() == table.slice(1).to_pylist()
    first = {name: str(value) for name, value in written.slice(0, 1).to_pylist()[0].items()}
    assert first == {"n": "7", "x": "2.5", "is_new": "False", "level": "c", "day": "None",
                     "time": "2024-05-04 11:30:00+02:00", "price": "9.99"}  # fmt: skip


def test_a_cell_cannot_be_fixed_in_two_ways(table: Path, tmp_path: Path) -> None:
    with pytest.raises(PatchError, match="changes row 0 of 'city' twice"):
        write_fixed(
            read_file(table), tmp_path / "out.csv", [Fix(0, "city", "Ulmm", "Ulm"), Fix(0, "city", "Ulmm", "x")]
        )


def test_nothing_is_overwritten_unless_forced(table: Path, tmp_path: Path) -> None:
    patch = patch_with(tmp_path)
    (tmp_path / "out.csv").write_bytes(b"mine")
    done = CliRunner().invoke(app, ["apply", str(patch), str(table), "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 1
    assert (tmp_path / "out.csv").read_bytes() == b"mine"


def test_empty_text_and_nothing_are_the_same_old_value() -> None:
    fit, refused = fitting([Fix(0, "x", "", "5"), Fix(1, "x", None, "6")], pa.table({"x": [None, None, 1]}))
    assert with_fixes(pa.table({"x": [None, None, 1]}), fit)["x"].to_pylist() == [5, 6, 1]
    assert not refused


def test_text_stays_text() -> None:
    assert typed("007", pa.field("zip", pa.string())) == "007"


# ---------------------------------------------------------------- recipes


def test_a_recipe_replaces_values_wherever_they_stand_and_single_cells_before_them(tmp_path: Path) -> None:
    table = tmp_path / "towns.csv"
    table.write_bytes(b"id,city\nA1,Koeln\nA2,Koeln\nA3,Bonn\nA4,koeln\n")
    fixes = [Replacement("city", "Koeln", "Köln"), Fix(1, "city", "Koeln", "Kehl", ("id", "A2"))]
    write_patch(tmp_path / "recipe.jsonl", fixes)
    assert read_patch(tmp_path / "recipe.jsonl") == fixes
    code, said = run("apply", tmp_path / "recipe.jsonl", table, "-o", tmp_path / "out.csv")
    assert code == 0, said
    assert (tmp_path / "out.csv").read_text("utf-8") == "id,city\nA1,Köln\nA2,Kehl\nA3,Bonn\nA4,koeln\n"


def test_a_value_that_no_longer_stands_there_is_no_trouble(table: Path, tmp_path: Path) -> None:
    write_patch(tmp_path / "recipe.jsonl", [Replacement("city", "Kjøln", "Köln"), Replacement("street", "x", "y")])
    code, said = run("apply", tmp_path / "recipe.jsonl", table, "-o", tmp_path / "out.csv")
    assert code == 0, said
    assert (tmp_path / "out.csv").read_bytes() == CSV


@pytest.mark.parametrize("held", [[5.0, None, 5.0], ["5", "", None]])
def test_numbers_and_gaps_are_replaced_too(held: list[object]) -> None:
    found = replacing([Replacement("x", "5", "6"), Replacement("x", "", "7")], pa.table({"x": held}))
    assert {(fix.row, fix.new) for fix in found} == {
        (row, "6" if value in (5.0, "5") else "7") for row, value in enumerate(held)
    }


def test_a_value_counts_as_replaced_only_where_all_its_cells_were_repaired_alike() -> None:
    table = pa.table({"city": ["a", "a", "b", "b", "c", "c", "c", "d"]})
    news = {0: "x", 1: "x", 2: "y", 3: "z", 4: "x", 5: "x", 7: "x"}
    fixes = [Fix(row, "city", table["city"][row].as_py(), new) for row, new in news.items()]
    replaced, single = recipe_of(fixes, table)
    assert replaced == [Replacement("city", "a", "x")]
    assert [fix.row for fix in single] == [2, 3, 4, 5, 7]
