"""Any bytes under any name are a table or one sentence; nothing else comes out of a reader."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import warnings
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellmend.errors import CellmendError
from cellmend.files.formats import TableFile, read_file
from cellmend.table.frames import read_frame
from cellmend.table.reader import TableReader
from tests.fuzz.conftest import FUZZ

TEXTS = (".csv", ".tsv", ".txt", ".csv.gz", ".csv.bz2", ".json", ".jsonl")
SUFFIXES = (*TEXTS, ".parquet", ".feather", ".xlsx", ".zip")
TABLE = pd.DataFrame({"id": ["007", "a;b", 'say "x"', "ü"], "x": [1.5, None, -3.0, 1e300], "day": ["2024-05-03"] * 4})

VALUES = (
    "a",
    "1",
    "1,5",
    "-3e5",
    "0" * 400,
    "9" * 400,
    "n/a",
    "2024-02-30",
    "31.12.9999",
    "NaN",
    "inf",
    "é",
    "€ 5",
    "%",
)
SIGNS = (*",;\t|\"\n\r '{}[]:", '""', "\r\n", "\ufeff", "\u2028", "\x00", "=1+1")
pieces = st.sampled_from((*VALUES, *SIGNS))
texts = st.lists(pieces | st.text(max_size=5), max_size=60).map("".join)


def read(path: Path, content: bytes) -> TableFile | None:
    """The table in a file of this content; None if cellmend refuses it with a sentence. Nothing is written."""
    path.write_bytes(content)
    there = sorted(path.parent.iterdir())
    try:
        return read_file(path)
    except CellmendError as error:
        said = str(error)
        assert said.isprintable(), "one line, of characters that can be seen"
        return None
    finally:
        assert path.read_bytes() == content
        assert sorted(path.parent.iterdir()) == there


def check_copy(source: TableFile | None, folder: Path) -> None:
    """A copy of a table without changes is the same table; of a text file each row has its line."""
    if source is None or source.kind == ".ods":  # which is not written
        return
    copy = folder / f"copy{source.suffix}"
    source.write_changed(copy, source.table, {})
    again = read_file(copy)
    assert again.table.column_names == source.table.column_names
    assert str(again.table.to_pylist()) == str(source.table.to_pylist())
    assert source.line_numbers is None or len(source.line_numbers) == source.table.num_rows


def files() -> dict[str, bytes]:
    """A table in every format."""
    plain = TABLE.to_csv(index=False).encode()
    book, parquet, feather = io.BytesIO(), io.BytesIO(), io.BytesIO()
    TABLE.to_excel(book, index=False)
    pa.parquet.write_table(pa.Table.from_pandas(TABLE), parquet)
    pa.feather.write_feather(pa.Table.from_pandas(TABLE), feather)
    lines = "".join(
        json.dumps(row) + "\n" for row in TABLE.astype(object).where(TABLE.notna(), None).to_dict("records")
    )
    with zipfile.ZipFile(archive := io.BytesIO(), "w") as packing:
        packing.writestr(zipfile.ZipInfo("t.csv"), plain)
    packed = {".csv.gz": gzip.compress(plain, mtime=0), ".csv.bz2": bz2.compress(plain), ".zip": archive.getvalue()}
    books = {".xlsx": book.getvalue(), ".parquet": parquet.getvalue(), ".feather": feather.getvalue()}
    records = {".jsonl": lines.encode(), ".json": f"[{lines.strip().replace(chr(10), ',')}]".encode()}
    return {".csv": plain, ".tsv": plain, ".txt": plain, **records, **packed, **books}


FILES = files()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@FUZZ
@given(st.sampled_from(TEXTS), texts, st.sampled_from(["utf-8", "utf-16", "utf-32", "latin-1"]))
def test_any_text_is_a_table_or_one_sentence(folder: Path, suffix: str, text: str, encoding: str) -> None:
    content = text.encode(encoding, "replace")
    packed = {".csv.gz": gzip.compress, ".csv.bz2": bz2.compress}.get(suffix, bytes)(content)
    check_copy(read(folder / f"text{suffix}", packed), folder)


@FUZZ
@given(st.sampled_from(SUFFIXES), st.binary(max_size=300))
def test_any_bytes_are_a_table_or_one_sentence(folder: Path, suffix: str, content: bytes) -> None:
    check_copy(read(folder / f"any{suffix}", content), folder)


@FUZZ
@given(st.sampled_from(SUFFIXES), st.data())
def test_a_damaged_file_is_a_table_or_one_sentence(folder: Path, suffix: str, data: st.DataObject) -> None:
    content = bytearray(FILES[suffix])
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(0, len(content)))])
    check_copy(read(folder / f"damaged{suffix}", cut), folder)


@FUZZ
@given(texts, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
def test_a_copy_of_a_csv_file_without_changes_has_its_bytes(folder: Path, text: str, encoding: str) -> None:
    content = text.encode(encoding, "replace")
    source = read(folder / "copy.csv", content)
    if source is not None and source.csv is not None:
        assert source.csv.with_cells({}) == content
        assert len(source.csv.line_numbers) == source.table.num_rows


@FUZZ
@given(texts, st.data())
def test_a_changed_cell_is_read_again_and_the_others_stay(folder: Path, text: str, data: st.DataObject) -> None:
    source = read(folder / "old.csv", text.encode("utf-8", "replace"))
    if source is None or source.csv is None or source.table.num_rows == 0:
        return
    row = data.draw(st.integers(0, source.table.num_rows - 1))
    column = data.draw(st.integers(0, source.table.num_columns - 1))
    new = data.draw(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8))
    before = [cells.to_pylist() for cells in source.table.columns]
    before[column][row] = new
    after = read(folder / "new.csv", source.csv.with_cells({row: {column: new}}))
    assert after is not None
    assert [cells.to_pylist() for cells in after.table.columns] == before


@FUZZ
@given(st.lists(st.lists(pieces | st.text(max_size=6), min_size=2, max_size=12), min_size=1, max_size=4))
def test_any_columns_of_text_are_understood_or_refused(columns: list[list[str]]) -> None:
    rows = min(map(len, columns))
    frame = pd.DataFrame({f"c{place}": cells[:rows] for place, cells in enumerate(columns)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            _, table = TableReader.fit(read_frame(frame), None)
        except CellmendError:
            return
    assert table.understood.num_rows == rows
    assert all(0 <= suspect.suspicion <= 1 for suspect in table.suspects)
