"""Files as people have them: titles, totals, several sheets, other kinds; found out and said, or said by the user."""

from __future__ import annotations

import gzip
import io
import json
import time
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from cellmend import load
from cellmend.errors import FileError
from cellmend.files.formats import read_file
from cellmend.files.layout import Asked, find_layout
from cellmend.streaming import open_in_pieces
from tests.test_cli import here

BODY = "".join(f"{n};Ulm;{n},5\n" for n in range(1, 30))


def saved(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---------------------------------------------------------------- titles and totals


def test_titles_above_and_totals_below_a_csv_table_are_skipped_said_and_kept_in_the_copy(tmp_path: Path) -> None:
    text = f"Sales 2024;;\nby region;;\n;;\nid;city;size\n{BODY}Total;;435\n"
    file = read_file(saved(tmp_path / "a.csv", text))
    assert file.table.column_names == ["id", "city", "size"]
    assert file.table["size"].to_pylist()[::28] == ["1,5", "29,5"]
    assert file.notes == ("3 title rows skipped: Sales 2024", "1 row below the table skipped: Total")
    file.write_changed(tmp_path / "b.csv", file.table, {0: {1: "Bonn"}})
    assert (tmp_path / "b.csv").read_text() == text.replace("1;Ulm;1,5", "1;Bonn;1,5", 1)


@pytest.mark.parametrize(
    "text",
    [
        ",x\n0,1.5\n1,2.5\n",
        "name,\nUlm,1\nBonn,2\n",
        "a,b,c\n1,2,3\n4,,\n",
        "a,b\nx,1\nTotal,2\n",
        "greeting\nHello, world\nHi, you\nGood day, sir\n",
        "a,b,c\n,,\n1,2,3\n",
    ],
    ids=["index", "no second name", "gaps at the end", "a company called Total", "one column", "a row of gaps"],
)
def test_what_may_be_part_of_the_table_is(tmp_path: Path, text: str) -> None:
    file = read_file(saved(tmp_path / "a.csv", text))
    assert file.notes == ()
    assert file.table.num_rows == text.count("\n") - 1


def test_a_title_without_delimiters_is_no_column(tmp_path: Path) -> None:
    file = read_file(saved(tmp_path / "a.csv", f"Sales of all regions\nid;city;size\n{BODY}"))
    assert (file.table.num_rows, file.table.column_names) == (29, ["id", "city", "size"])
    stream = open_in_pieces(str(tmp_path / "a.csv"), tmp_path / "copies")
    assert (stream.rows, stream.names) == (29, ["id", "city", "size"])


def test_the_user_says_where_the_header_is_how_fields_are_parted_and_what_the_bytes_mean(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.csv", "x|größe\nid|name\n1|Köln\n2|Ulm\n".encode("latin-1"))
    asked = Asked(header_row=2, delimiter="|", encoding="latin-1")
    assert read_file(path, asked).table.to_pydict() == {"id": ["1", "2"], "name": ["Köln", "Ulm"]}
    with pytest.raises(FileError, match=r"--header-row must be a row of a.csv, 1 to 5; it is 9"):
        read_file(path, Asked(header_row=9))
    with pytest.raises(FileError, match="must be text in utf-8; some of it is not"):
        read_file(path, Asked(encoding="utf-8"))
    with pytest.raises(FileError, match="'klingon' is none"):
        read_file(path, Asked(encoding="klingon"))


# ---------------------------------------------------------------- workbooks


def workbook(path: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    for title, offset in (("Sales", 0), ("Costs", 100)):
        sheet = book.create_sheet(title)
        for row in [
            [f"{title} 2024"],
            [],
            ["id", "city", "size"],
            *([n, "Ulm", n + offset] for n in range(9)),
            ["Total"],
        ]:
            sheet.append(row)
    book.save(path)
    return path


def test_of_several_sheets_the_first_with_content_is_read_which_is_said(tmp_path: Path) -> None:
    file = read_file(workbook(tmp_path / "a.xlsx"))
    assert file.table["size"].to_pylist() == list(range(9))
    assert file.notes[0] == "of 2 sheets with content Sales is read (--sheet)"
    assert file.notes[1:] == ("2 title rows skipped: Sales 2024", "1 row below the table skipped: Total")


def test_a_cover_is_no_table_if_a_later_sheet_has_one(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(workbook(tmp_path / "a.xlsx"))
    book["Notes"].append(["Quarterly report"])
    book["Notes"].append(["Prepared by", "HR"])
    book.save(tmp_path / "b.xlsx")
    file = read_file(tmp_path / "b.xlsx")
    assert file.table["size"].to_pylist() == list(range(9))
    assert file.notes[0] == "of 3 sheets with content Sales is read (--sheet)"


def test_a_remark_below_the_total_of_a_sheet_is_no_row_of_it(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(workbook(tmp_path / "a.xlsx"))
    for row in ([], ["* preliminary figures"]):
        book["Sales"].append(row)
    book.save(tmp_path / "b.xlsx")
    file = read_file(tmp_path / "b.xlsx")
    assert file.table["size"].to_pylist() == list(range(9))
    assert file.notes[-1] == "3 rows below the table skipped: Total"


def test_a_sparse_last_row_is_no_remark() -> None:
    rows = [["a", "b", "c"], *[["x", "", ""], ["y", "1", ""]] * 4, ["z", "", ""]]
    assert find_layout(rows, rows, len(rows)).last == len(rows)
    full = [["a", "b", "c"], *[["7", "1", "2"]] * 8, ["8", "", ""]]
    assert find_layout(full, full, len(full)).last == len(full)  # a number is no remark


@pytest.mark.parametrize("sheet", ["Costs", "3"])
def test_a_sheet_is_chosen_by_name_or_number(tmp_path: Path, sheet: str) -> None:
    file = read_file(workbook(tmp_path / "a.xlsx"), Asked(sheet=sheet))
    assert file.table["size"].to_pylist() == list(range(100, 109))
    with pytest.raises(FileError, match=r"--sheet must be one of Notes, Sales, Costs, .* Did you mean 'Costs'\?"):
        read_file(tmp_path / "a.xlsx", Asked(sheet="Cost"))


def test_flagged_cells_of_a_workbook_are_coloured_and_commented_in_its_copy(tmp_path: Path) -> None:
    file = read_file(workbook(tmp_path / "a.xlsx"), Asked(sheet="Costs"))
    changed = file.table.set_column(2, "size", pa.array([7, *range(101, 109)]))
    file.write_changed(tmp_path / "b.xlsx", changed, {}, {(0, 2): "size is 100", (1, 1): "city is Ulm"})
    sheet = pytest.importorskip("openpyxl").load_workbook(tmp_path / "b.xlsx")["Costs"]
    assert (sheet["C4"].value, sheet["C4"].comment.text) == (7, "size is 100")
    assert (sheet["B5"].value, sheet["B5"].comment.text) == ("Ulm", "city is Ulm")
    assert len({sheet[cell].fill.start_color.rgb for cell in ("C4", "B5", "A4")}) == 3
    assert sheet["A1"].value == "Costs 2024"


# ---------------------------------------------------------------- other kinds


@pytest.mark.parametrize("wrapped", [False, True])
def test_json_is_read_and_changed(tmp_path: Path, wrapped: bool) -> None:
    rows = [{"id": 1, "city": "Köln"}, {"id": 2, "city": "Ulm", "more": [1]}]
    whole = {"source": "x", "rows": rows} if wrapped else rows
    path = saved(tmp_path / "a.json", json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    file = read_file(path)
    assert file.table["city"].to_pylist() == ["Köln", "Ulm"]
    file.write_changed(tmp_path / "b.json", file.table, {})
    assert (tmp_path / "b.json").read_bytes() == path.read_bytes()
    file.write_changed(tmp_path / "b.json", file.table.set_column(1, "city", pa.array(["Bonn", "Ulm"])), {})
    assert (tmp_path / "b.json").read_bytes() == path.read_bytes().replace("Köln".encode(), b"Bonn")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1, 2]", "must hold a list of objects"),
        ('{"a": [{"x": 1}], "b": [{"x": 1}]}', "it holds several"),
        ("[{]", "must be JSON; line 1 is not"),
        ("[" * 200_000, "nested too deeply"),
        ('[{"x": ' + "9" * 5000 + "}]", "thousands of digits"),
    ],
    ids=["no objects", "two tables", "no JSON", "deep", "digits"],
)
def test_json_without_a_table_says_why(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        read_file(saved(tmp_path / "a.json", content))


def test_one_table_in_a_zip_file_is_read(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("data/a.csv", f"id;city;size\n{BODY}")
        file.writestr("__MACOSX/a.csv", "x")
        file.writestr("README.md", "x")
    source = read_file(saved(tmp_path / "a.zip", packed.getvalue()))
    assert (source.name, source.suffix, source.table.num_rows) == ("a.csv", ".csv", 29)
    with zipfile.ZipFile(packed, "a") as file:
        file.writestr("b.csv", "x")
    with pytest.raises(FileError, match=r"must hold one table; it holds data/a.csv, b.csv"):
        read_file(saved(tmp_path / "a.zip", packed.getvalue()))
    with pytest.raises(FileError, match="can be unpacked; it is not"):
        read_file(saved(tmp_path / "a.zip", b"PK no"))


def test_an_opendocument_spreadsheet_is_read(tmp_path: Path) -> None:
    names = "".join(
        f'xmlns:{each}="urn:oasis:names:tc:opendocument:xmlns:{each}:1.0" ' for each in ("office", "table", "text")
    )
    text = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    number = '<table:table-cell office:value-type="float" office:value="{}"/>'
    rows = [text.format("id") + text.format("city"), *(number.format(n) + text.format("Ulm") for n in (1, 2.5))]
    gaps = '<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>'
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows) + gaps
    content = (
        f'<office:document-content {names}><table:table table:name="S">{body}</table:table></office:document-content>'
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("content.xml", content)
    source = read_file(saved(tmp_path / "a.ods", packed.getvalue()))
    assert source.table.to_pydict() == {"id": [1.0, 2.5], "city": ["Ulm", "Ulm"]}
    assert source.suffix == ".xlsx"
    with pytest.raises(FileError, match=r"must be an .ods spreadsheet"):
        read_file(saved(tmp_path / "a.ods", b"no"))


def test_an_old_workbook_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"Hint: save it as .xlsx"):
        read_file(saved(tmp_path / "a.xls", b"\xd0\xcf"))


# ---------------------------------------------------------------- hostile files


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_marked_encoding_is_read_and_written_back(tmp_path: Path, encoding: str) -> None:
    path = saved(tmp_path / "a.csv", "id,city\n1,Köln\n2,Ulm\n".encode(encoding))
    file = read_file(path)
    assert file.table["city"].to_pylist() == ["Köln", "Ulm"]
    file.write_changed(tmp_path / "b.csv", file.table, {1: {1: "Bonn"}})
    assert (tmp_path / "b.csv").read_bytes().decode(encoding) == "id,city\n1,Köln\n2,Bonn\n"


def test_a_cell_as_long_as_a_book_is_read(tmp_path: Path) -> None:
    file = read_file(saved(tmp_path / "a.csv", f"id,text\n1,{'z' * 3_000_000}\n2,x\n"))
    assert [len(text) for text in file.table["text"].to_pylist()] == [3_000_000, 1]


def test_binary_junk_is_called_that(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="it holds binary data"):
        read_file(saved(tmp_path / "a.csv", bytes(range(256)) * 50))


def test_a_small_file_that_unpacks_to_very_much_is_refused_in_time(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("cellmend.files.packed.LEAST_BOUND", 2**20)
    with pytest.raises(FileError, match=r"must unpack to at most 100 times its size; it is more than 1 MB"):
        read_file(saved(tmp_path / "a.csv.gz", gzip.compress(b"0" * 2**24)))


def test_options_of_the_file_reach_the_commands(tmp_path: Path, monkeypatch, capsys) -> None:
    path = saved(tmp_path / "a.csv", "junk\nid|size\n" + "".join(f"{n}|{n}.5\n" for n in range(30)))
    assert here(monkeypatch, "schema", str(path), "--header-row", "2", "--delimiter", "|") == 0
    assert "size: real" in capsys.readouterr().out
    assert here(monkeypatch, "schema", str(path), "--delimiter", "||") == 2


def test_notes_on_the_file_are_said(tmp_path: Path, monkeypatch, capsys) -> None:
    table = pd.DataFrame({"a": range(60), "b": [n % 7 / 2 for n in range(60)], "c": list("xyz") * 20})
    path = saved(tmp_path / "a.csv", "My table,,\n" + table.to_csv(index=False))
    assert here(monkeypatch, "fit", str(path), "-m", str(tmp_path / "m"), "--time-limit", "0.1") == 0
    assert "a.csv: 1 title row skipped: My table." in " ".join(capsys.readouterr().err.split())


def test_the_user_says_the_decimal_mark(tmp_path: Path, monkeypatch, capsys) -> None:
    table = pd.DataFrame({"a": [f"1,{n:03}" for n in range(60)], "b": list("xyz") * 20})
    path = saved(tmp_path / "a.csv", table.to_csv(index=False, sep=";"))
    for mark, read in ((".", 1059.0), (",", 1.059)):
        arguments = ["fit", str(path), "-m", str(tmp_path / "m"), "--time-limit", "0.1", "-q", "--force"]
        assert here(monkeypatch, *arguments, "--decimal", mark) == 0
        assert load(tmp_path / "m").model_.reader.notations["a"].read(pa.array(["1,059"])).values[0].as_py() == read
    assert here(monkeypatch, "fit", str(path), "-m", str(tmp_path / "n"), "--decimal", "'") == 1
    assert "decimal must be one of '.', ','" in " ".join(capsys.readouterr().err.split())


def test_a_header_far_down_is_found_in_time(tmp_path: Path) -> None:
    above = [f"note {n}" for n in range(60_000)]
    path = saved(tmp_path / "a.csv", "\n".join([*above, "id,x,y", "1,2,3"]))
    start = time.perf_counter()
    assert read_file(path, Asked(header_row=60_001, delimiter=",")).table.to_pylist() == [
        {"id": "1", "x": "2", "y": "3"}
    ]
    assert time.perf_counter() - start < 2
