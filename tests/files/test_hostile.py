"""Files that claim more than they hold, or are damaged: one sentence, before anything of a claimed size is built."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference

from cellmend.errors import FileError
from cellmend.files.csvtext import read_csv_text
from cellmend.files.formats import read_bytes, read_file
from cellmend.files.layout import Asked

ROWS = [["a", "b"], [1, 2], [3, 4]]
NAMES = "xmlns:{0}='urn:oasis:names:tc:opendocument:xmlns:{0}:1.0'"
DOCUMENT = (
    f"<office:document-content {' '.join(map(NAMES.format, ('office', 'table', 'text')))}>%s</office:document-content>"
)
ODS_CELLS = ["".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row) for row in ROWS]
ODS_ROWS = "".join(f"<table:table-row>{cells}</table:table-row>" for cells in ODS_CELLS)


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    start = time.perf_counter()
    yield
    assert time.perf_counter() - start < 15


def workbook(*, with_sheet: bytes = b"", after: bytes = b"") -> bytes:
    """A small workbook, with more at the end of the cells of its sheet, and after them."""
    book, whole, changed = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    for row in ROWS:
        book.active.append(row)
    book.save(whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"</sheetData>", with_sheet + b"</sheetData>" + after))
    return changed.getvalue()


def far(row: int, column: str = "A") -> bytes:
    return f'<row r="{row}"><c r="{column}{row}"><v>5</v></c></row>'.encode()


def ods(rows: str, **others: str) -> bytes:
    whole = io.BytesIO()
    sheet = f"<table:table table:name='S'>{rows}</table:table>"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("content.xml", DOCUMENT % f"<office:spreadsheet>{sheet}</office:spreadsheet>")
        for name, content in others.items():
            packed.writestr(name.replace("__", "/") + ".xml", content)
    return whole.getvalue()


def ods_row(cell: str = "", row: str = "", text: str = "5") -> str:
    inner = f"<text:p>{text}</text:p>" if text else ""
    return f"<table:table-row {row}><table:table-cell {cell}>{inner}</table:table-cell></table:table-row>"


@pytest.mark.parametrize(
    "content",
    [
        workbook(with_sheet=far(2**20)),
        workbook(with_sheet=far(2**20, "XFD")),
        workbook(with_sheet=far(10**12)),
        workbook(with_sheet=b"".join(far(row, "XFD") for row in range(10, 20_000))),
        workbook(after=b'<mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>'),
        workbook(after=b" " * 2**27),
    ],
)
def test_a_workbook_that_stands_for_more_than_it_holds_is_one_sentence(content: bytes) -> None:
    with pytest.raises(FileError, match=r"^t.xlsx.* must ") as caught:
        read_bytes(content, "t.xlsx")
    assert "\n" not in str(caught.value)


REPEATS = ("table:number-columns-repeated='{0}'", "table:number-rows-repeated='{0}'")


@pytest.mark.parametrize(
    "rows",
    [
        *(ODS_ROWS + ods_row(REPEATS[0].format(times)) for times in ("1000000000", "x", "1e9", "")),
        *(ODS_ROWS + ods_row(row=REPEATS[1].format(times)) for times in ("1000000000", "x")),
        ODS_ROWS + ods_row(row=REPEATS[1].format(16_000)) * 300,
        ODS_ROWS + ods_row(REPEATS[0].format(16_000), REPEATS[1].format(16_000)) * 300,
        ODS_ROWS + ods_row("office:value-type='float' office:value='x'"),
        " " * 2**27,
    ],
)
def test_a_spreadsheet_that_is_not_what_it_says_is_one_sentence(rows: str) -> None:
    with pytest.raises(FileError, match=r"^t.ods.* must ") as caught:
        read_bytes(ods(rows), "t.ods")
    assert "\n" not in str(caught.value)


def test_empty_ends_of_a_spreadsheet_cost_nothing_and_what_is_repeated_in_it_counts() -> None:
    ends = ods_row(REPEATS[0].format(16_384), REPEATS[1].format(2**20), text="") * 3000
    table = read_bytes(ods(ODS_ROWS + ods_row(row=REPEATS[1].format(20_000)) + ends), "t.ods").table
    assert (table.num_rows, table["a"].to_pylist()[-1]) == (20_002, "5")


def test_an_encrypted_spreadsheet_is_called_that() -> None:
    manifest = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
    with pytest.raises(FileError, match="without a password; it is encrypted"):
        read_bytes(ods(ODS_ROWS, **{"META-INF__manifest": manifest}), "t.ods")


@pytest.mark.parametrize("suffix", [".ods", ".xlsx", ".zip"])
def test_a_damaged_member_is_one_sentence(tmp_path: Path, suffix: str) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("t.csv", "a,b\n" + "1,2\n" * 1000)
    content = {".ods": ods(ODS_ROWS), ".xlsx": workbook(), ".zip": whole.getvalue()}[suffix]
    for place in range(40, len(content) - 100, max(len(content) // 60, 1)):
        (tmp_path / f"t{suffix}").write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            read_file(tmp_path / f"t{suffix}")
        except FileError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("charted", [True, False])
@pytest.mark.parametrize("place", [0, 1])
def test_a_workbook_with_a_chart_sheet_is_read_and_copied(charted: bool, place: int) -> None:
    book, whole = openpyxl.Workbook(), io.BytesIO()
    for row in [*ROWS, [5, 6], [7, 8]]:
        book.active.append(row)
    sheet = book.create_chartsheet("Chart", place)
    if charted:
        chart = BarChart()
        chart.add_data(Reference(book.worksheets[0], min_col=1, min_row=1, max_row=3))
        sheet.add_chart(chart)
    book.save(whole)
    file = read_bytes(whole.getvalue(), "t.xlsx")
    changed = file.table.set_column(0, "a", [[9, 3, 5, 7]])
    again = read_bytes(file.original.with_table(changed), "t.xlsx")
    assert again.table.to_pydict() == {"a": [9, 3, 5, 7], "b": [2, 4, 6, 8]}


def test_a_control_character_for_a_workbook_is_one_sentence(tmp_path: Path) -> None:
    file = read_bytes(workbook(), "t.xlsx")
    with pytest.raises(FileError, match="without control characters"):
        file.original.with_table(file.table.set_column(0, "a", [["1", "\x01"]]))


@pytest.mark.parametrize("name", ["t.xlsx", "t.json", "t.jsonl"])
def test_a_column_without_any_value_is_one_of_text(name: str) -> None:
    rows = [{"a": 1, "b": None}, {"a": 2, "b": None}]
    text = json.dumps(rows) if name == "t.json" else "\n".join(map(json.dumps, rows))
    book, whole = openpyxl.Workbook(), io.BytesIO()
    for row in (["a", "b"], [1, None], [2, None]):
        book.active.append(row)
    book.save(whole)
    table = read_bytes(whole.getvalue() if name == "t.xlsx" else text.encode(), name).table
    assert [str(each) for each in table.schema.types] == ["int64", "string"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"])
def test_json_in_another_encoding_is_copied_in_it(encoding: str) -> None:
    text = '{"rows": [{"a": "ä"}, {"a": "b"}], "more": 1}'
    file = read_bytes(text.encode(encoding), "t.json")
    assert file.original.with_table(file.table) == text.encode(encoding)
    changed = file.original.with_table(file.table.set_column(0, "a", [["ä", "c"]]))
    assert changed == text.replace('"b"', '"c"').encode(encoding)


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_column_whose_name_is_empty_is_named_by_its_place_and_stays_as_it_is(name: str) -> None:
    rows = ['{"": 1, "b": 2}', '{"": 3, "b": 4}']
    content = "[" + ", ".join(rows) + "]" if name == "t.json" else "\n".join(rows)
    file = read_bytes(content.encode(), name)
    assert file.table.column_names == ["column 1", "b"]
    changed = file.original.with_table(file.table.set_column(0, "column 1", [[1, 9]]))
    assert changed == content.replace("3", "9").encode()


ENCODINGS = ["punycode", "undefined", "unicode_escape", "utf-7", "idna", "rot13", "hex", "x\0y", "", "cp037", "utf-16"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_any_encoding_gives_a_copy_of_the_same_bytes_or_one_sentence(encoding: str) -> None:
    for raw in (b"a,b\n1,x\n2,\\x41\n", b"a,b\n1,x\n2,y\n\xff", b"a,b\n1,+AGE-\n", "a,b\n1,ä\n".encode("utf-16")):
        try:
            text = read_csv_text(raw, "t.csv", Asked(encoding=encoding))
        except FileError as error:
            assert re.match(r"(t\.csv|--encoding) must ", str(error))  # noqa: PT017
        else:
            assert text.with_cells({}) == raw


def test_an_encoding_that_contradicts_the_mark_keeps_every_byte() -> None:
    raw = b"\xef\xbb\xbfa,b\n1,\xc3\xa4\n"
    text = read_csv_text(raw, "t.csv", Asked(encoding="cp1252"))
    assert text.table()["b"].to_pylist() == ["Ã¤"]
    assert text.with_cells({0: {0: "2"}}) == raw.replace(b"1", b"2")
