"""Hostile inputs: each must end in a right answer or in one clear sentence, in bounded time and memory.

    python benchmarks/hostile.py [NAME ...]     all, or those whose names contain one of these

Every case runs in a process of its own, forked from one that has imported everything. What is wrong with an outcome
is printed: a traceback, an error number, a warning that leaks, no sentence, a hang, much memory, files left behind.
"""

from __future__ import annotations

import codecs
import datetime
import decimal
import gzip
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import torch

from cellmend import CellMender
from cellmend.cli import main
from cellmend.errors import CellmendError
from cellmend.model.file import read_parts, write_parts

SECONDS, GIGABYTES = 30, 1.0  # that a case may take
BAD = re.compile(r"Traceback|Errno|errno|Warning:|Exception|\bNoneType\b|sample\(s\)|0x[0-9a-f]{6}|nan%")
QUICK = ("--time-limit", "1", "--quiet")
CASES: dict[str, Callable[[Path], Any]] = {}
Rows = Sequence[Sequence[Any]]


def case(make: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Takes a function that makes an input in a folder: arguments of the command line, or a table for Python."""
    CASES[make.__name__] = make
    return make


def lines(rows: int = 80, header: str = "id,city,size,price") -> list[str]:
    """A good CSV table."""
    rng = np.random.default_rng(0)
    cities, sizes = rng.choice(["Rome", "Oslo", "Ulm"], rows), rng.normal(10, 2, rows).round(2)
    body = [f"{n},{city},{size},{size * 3:.2f}" for n, (city, size) in enumerate(zip(cities, sizes, strict=True))]
    return [header, *body]


def frame(**columns: Any) -> pd.DataFrame:
    """A good table for Python, with further columns."""
    rng = np.random.default_rng(0)
    size = rng.normal(10, 2, 80).round(2)
    return pd.DataFrame({"size": size, "price": size * 3, "city": rng.choice(["Rome", "Oslo"], 80)}).assign(**columns)


def clean(folder: Path, content: bytes | str, name: str = "t.csv", *more: str) -> list[str]:
    """The command that cleans a file with this content."""
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(data)
    return ["clean", str(folder / name), "-o", str(folder / "out"), *QUICK, *more]


def with_cell(text: str, row: int = 5) -> str:
    """A good CSV table with another text in a cell."""
    rows = lines()
    number, _, size, price = rows[row].split(",")
    rows[row] = f"{number},{text},{size},{price}"
    return "\n".join(rows) + "\n"


# ---------------------------------------------------------------- bytes and encodings


@case
def an_encoding_of_domain_names(folder: Path) -> Any:
    return clean(folder, "\n".join(lines()), "t.csv", "--encoding", "punycode")


@case
def binary_junk(folder: Path) -> Any:
    return clean(folder, np.random.default_rng(0).bytes(200_000))


@case
def binary_junk_as_parquet(folder: Path) -> Any:
    return clean(folder, np.random.default_rng(0).bytes(20_000), "t.parquet")


@case
def binary_junk_as_xlsx(folder: Path) -> Any:
    return clean(folder, np.random.default_rng(0).bytes(20_000), "t.xlsx")


@case
def binary_junk_as_feather(folder: Path) -> Any:
    return clean(folder, np.random.default_rng(0).bytes(20_000), "t.feather")


@case
def utf_16(folder: Path) -> Any:
    return clean(folder, "\n".join(lines()).encode("utf-16"))


@case
def utf_32(folder: Path) -> Any:
    return clean(folder, "\n".join(lines()).encode("utf-32"))


@case
def byte_order_mark(folder: Path) -> Any:
    return clean(folder, codecs.BOM_UTF8 + "\n".join(lines()).encode())


@case
def latin_letters(folder: Path) -> Any:
    return clean(folder, with_cell("Köln").encode("latin-1"))


@case
def zero_bytes(folder: Path) -> Any:
    return clean(folder, with_cell("Ro\0me"))


@case
def nothing_at_all(folder: Path) -> Any:
    return clean(folder, b"")


@case
def header_only(folder: Path) -> Any:
    return clean(folder, "id,city,size\n")


@case
def blank_lines_only(folder: Path) -> Any:
    return clean(folder, "\n\n\n\n")


@case
def one_column(folder: Path) -> Any:
    return clean(folder, "size\n" + "\n".join(str(n % 7) for n in range(60)))


@case
def one_row(folder: Path) -> Any:
    return clean(folder, "\n".join(lines(1)))


# ---------------------------------------------------------------- lines and names


@case
def ragged_rows(folder: Path) -> Any:
    return clean(folder, "\n".join([*lines(), "1,Rome", "2,Oslo,3,4,5,6"]))


@case
def unclosed_quote(folder: Path) -> Any:
    return clean(folder, with_cell('"Rome'))


@case
def an_open_quote_far_above_the_end(folder: Path) -> Any:
    rows = lines(3000, "id,city,size,price,more,rest")
    rows = [rows[0], *(f"{row},1,2" for row in rows[1:])]
    rows[100] = rows[100].replace(",", ',"', 1)
    return clean(folder, "\n".join(rows))


@case
def two_open_quotes(folder: Path) -> Any:
    rows = lines(3000)
    for place in (100, 2000):
        rows[place] = rows[place].replace(",", ',"', 1)
    return clean(folder, "\n".join(rows))


@case
def ragged_rows_that_are_kept(folder: Path) -> Any:
    return clean(folder, "\n".join([*lines(), "1,Rome", "2,Oslo,3,4,5,6"]), "t.csv", "--ragged", "keep")


@case
def a_header_below_a_hundred_thousand_lines(folder: Path) -> Any:
    above = [f"note {n}" for n in range(100_000)]
    more = ("--header-row", "100001", "--delimiter", ",")
    return clean(folder, "\n".join([*above, *lines()]), "t.csv", *more)


@case
def orders_to_the_terminal_in_a_name(folder: Path) -> Any:
    return clean(folder, "\n".join(lines(header="id,\x1b[2Jcity,\x9b31msize,price")))


@case
def mixed_line_ends(folder: Path) -> Any:
    rows = lines()
    return clean(folder, "\r\n".join(rows[:30]) + "\n" + "\r".join(rows[30:60]) + "\r\n" + "\n".join(rows[60:]))


@case
def names_twice(folder: Path) -> Any:
    return clean(folder, "\n".join(lines(header="id,city,size,size")))


@case
def names_empty(folder: Path) -> Any:
    return clean(folder, "\n".join(lines(header="id,,size,")))


@case
def names_of_our_own(folder: Path) -> Any:
    return clean(folder, "\n".join(lines(header="row,column,__index__,suspicion")))


@case
def names_that_are_formulas(folder: Path) -> Any:
    return clean(folder, "\n".join(lines(header="id,=cmd|' /C calc'!A0,@size,+price")))


@case
def a_name_as_long_as_a_book(folder: Path) -> Any:
    return clean(folder, "\n".join(lines(header=f"id,{'x' * 300_000},size,price")))


@case
def ten_thousand_columns(folder: Path) -> Any:
    names = ",".join(f"c{n}" for n in range(10_000))
    body = "\n".join(",".join(str((n * row) % 17) for n in range(10_000)) for row in range(50))
    return clean(folder, f"{names}\n{body}\n")


# ---------------------------------------------------------------- cells


@case
def a_number_of_five_million_digits(folder: Path) -> Any:
    rows = lines()
    rows[5] = f"5,Rome,{'9' * 5_000_000},3"
    return clean(folder, "\n".join(rows))


@case
def a_cell_of_ten_megabytes(folder: Path) -> Any:
    return clean(folder, with_cell("x" * 10_000_000))


@case
def infinity_and_nan(folder: Path) -> Any:
    rows = lines()
    rows[3:7] = ["3,Rome,inf,3", "4,Rome,-Infinity,3", "5,Rome,NaN,3", "6,Rome,1e999,3"]
    return clean(folder, "\n".join(rows))


@case
def formulas(folder: Path) -> Any:
    return clean(folder, with_cell("=cmd|' /C calc'!A0"))


@case
def markup(folder: Path) -> Any:
    return clean(folder, with_cell("<script>alert(1)</script>"))


@case
def right_to_left_and_emoji(folder: Path) -> Any:
    return clean(folder, with_cell("\u202eemoR 🤦🏽\u200d♂️ مرحبا"))


@case
def all_equal(folder: Path) -> Any:
    return clean(folder, "a,b,c\n" + "1,x,2.5\n" * 60)


@case
def all_missing(folder: Path) -> Any:
    return clean(folder, "a,b,c\n" + ",,\n" * 60)


@case
def identifiers_alone(folder: Path) -> Any:
    return clean(folder, "id,ref\n" + "".join(f"C-{n:05d},{n * 7919 % 10**6:06d}x\n" for n in range(2000)))


@case
def eight_columns_of_identifiers(folder: Path) -> Any:
    rows = [",".join(f"{letter}-{n:06d}" for letter in "ABCDEFGH") for n in range(10_000)]
    return clean(folder, "\n".join(["a,b,c,d,e,f,g,h", *rows]))


@case
def every_row_the_same_but_one(folder: Path) -> Any:
    return clean(folder, "a,b,c\n" + "1,x,2.5\n" * 60 + "2,y,9.5\n")


@case
def whole_numbers_beyond_measure(folder: Path) -> Any:
    rows = [f"{n},{10**40 + n},{n % 5},{n % 3}" for n in range(80)]
    return clean(folder, "\n".join(["id,big,a,b", *rows]))


@case
def complex_numbers(folder: Path) -> Any:
    return clean(folder, "\n".join(["a,b", *(f"{n}+{n}j,{n % 5}" for n in range(80))]))


# ---------------------------------------------------------------- packed and nested


@case
def a_bomb_in_gzip(folder: Path) -> Any:
    with gzip.open(folder / "t.csv.gz", "wb", compresslevel=9) as file:
        for _ in range(1000):
            file.write(bytes(1_000_000))
    return ["clean", str(folder / "t.csv.gz"), "-o", str(folder / "out"), *QUICK]


@case
def a_bomb_in_zip(folder: Path) -> Any:
    with zipfile.ZipFile(folder / "t.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("t.csv", bytes(500_000_000))
    return ["clean", str(folder / "t.zip"), "-o", str(folder / "out"), *QUICK]


@case
def a_torn_gzip(folder: Path) -> Any:
    return clean(folder, gzip.compress("\n".join(lines()).encode())[:-40], "t.csv.gz")


@case
def two_tables_in_a_zip(folder: Path) -> Any:
    with zipfile.ZipFile(folder / "t.zip", "w") as file:
        for name in ("../../a.csv", "b.csv"):
            file.writestr(name, "\n".join(lines()))
    return ["clean", str(folder / "t.zip"), "-o", str(folder / "out"), *QUICK]


def damaged(content: bytes) -> bytes:
    """A packed file with a byte in the middle that is another one."""
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


@case
def a_damaged_zip(folder: Path) -> Any:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("t.csv", "\n".join(lines(3000)))
    return clean(folder, damaged(whole.getvalue()), "t.zip")


def workbook(folder: Path, old: bytes, new: bytes) -> Any:
    """The command that cleans a workbook in whose first sheet another text stands in this one's place."""
    whole, changed = io.BytesIO(), io.BytesIO()
    frame().to_excel(whole, index=False)
    with zipfile.ZipFile(whole) as file, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in file.namelist():
            content = file.read(name)
            copy.writestr(name, content.replace(old, new) if name.endswith("sheet1.xml") else content)
    return clean(folder, changed.getvalue(), "t.xlsx")


@case
def a_cell_far_off_in_a_workbook(folder: Path) -> Any:
    far = b'<row r="1048576"><c r="XFD1048576"><v>5</v></c></row></sheetData>'
    return workbook(folder, b"</sheetData>", far)


@case
def a_row_beyond_measure_in_a_workbook(folder: Path) -> Any:
    return workbook(folder, b"</sheetData>", b'<row r="1000000000000"><c r="A1"><v>5</v></c></row></sheetData>')


@case
def all_cells_of_a_workbook_merged(folder: Path) -> Any:
    merged = b'</sheetData><mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    return workbook(folder, b"</sheetData>", merged)


@case
def a_workbook_with_an_empty_column(folder: Path) -> Any:
    frame(empty=None).to_excel(folder / "t.xlsx", index=False)
    return ["clean", str(folder / "t.xlsx"), "-o", str(folder / "out"), *QUICK]


def spreadsheet(folder: Path, cell: str, row: str) -> Any:
    """The command that cleans an .ods file of a row with these attributes of its cell and of itself."""
    whole, start = io.BytesIO(), "urn:oasis:names:tc:opendocument:xmlns"
    names = " ".join(f'xmlns:{each}="{start}:{each}:1.0"' for each in ("office", "table", "text"))
    cells = f"<table:table-row {row}><table:table-cell {cell}><text:p>5</text:p></table:table-cell></table:table-row>"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "content.xml", f'<office:d {names}><table:table table:name="S">{cells * 99}</table:table></office:d>'
        )
    return clean(folder, whole.getvalue(), "t.ods")


@case
def cells_repeated_without_end(folder: Path) -> Any:
    return spreadsheet(folder, 'table:number-columns-repeated="16000"', 'table:number-rows-repeated="16000"')


@case
def cells_repeated_by_a_word(folder: Path) -> Any:
    return spreadsheet(folder, 'table:number-columns-repeated="many"', "")


@case
def a_number_that_is_none_in_a_spreadsheet(folder: Path) -> Any:
    return spreadsheet(folder, 'office:value-type="float" office:value="five"', "")


@case
def json_in_utf_16(folder: Path) -> Any:
    return clean(folder, frame().to_json(orient="records").encode("utf-16"), "t.json")


@case
def json_with_an_empty_name(folder: Path) -> Any:
    return clean(folder, frame().rename(columns={"size": ""}).to_json(orient="records"), "t.json")


@case
def json_with_an_empty_column(folder: Path) -> Any:
    return clean(folder, frame(empty=None).to_json(orient="records"), "t.json")


@case
def nested_json_lines(folder: Path) -> Any:
    rows = [json.dumps({"a": n % 5, "b": {"c": [n, {"d": n}]}, "e": [1, 2], "f": n % 3}) for n in range(80)]
    return clean(folder, "\n".join(rows), "t.jsonl")


@case
def json_lines_of_many_kinds(folder: Path) -> Any:
    return clean(folder, "\n".join(['{"a": 1}', '{"a": "x"}', '{"b": [1]}', "[1, 2]", "3", "null"] * 9), "t.jsonl")


@case
def json_nested_without_end(folder: Path) -> Any:
    return clean(folder, "[" * 100_000, "t.json")


@case
def json_lines_with_nan(folder: Path) -> Any:
    rows = [f'{{"a": {n % 7}, "b": {"NaN" if n == 5 else "Infinity" if n == 6 else n}}}' for n in range(80)]
    return clean(folder, "\n".join(rows), "t.jsonl")


# ---------------------------------------------------------------- places


@case
def a_folder_as_a_file(folder: Path) -> Any:
    (folder / "t.csv").mkdir()
    return ["clean", str(folder / "t.csv"), "-o", str(folder / "out"), *QUICK]


@case
def a_link_to_itself(folder: Path) -> Any:
    (folder / "t.csv").symlink_to(folder / "t.csv")
    return ["clean", str(folder / "t.csv"), "-o", str(folder / "out"), *QUICK]


@case
def a_link_to_nowhere(folder: Path) -> Any:
    (folder / "t.csv").symlink_to(folder / "none.csv")
    return ["clean", str(folder / "t.csv"), "-o", str(folder / "out"), *QUICK]


@case
def a_file_as_the_target_folder(folder: Path) -> Any:
    (folder / "out").write_text("mine")
    return clean(folder, "\n".join(lines()))


@case
def a_target_below_a_file(folder: Path) -> Any:
    (folder / "mine").write_text("mine")
    command = clean(folder, "\n".join(lines()))
    return [str(folder / "mine" / "out") if part == str(folder / "out") else part for part in command]


@case
def a_target_in_a_system_folder(folder: Path) -> Any:
    command = clean(folder, "\n".join(lines()))
    return ["/proc/out" if part == str(folder / "out") else part for part in command]


@case
def a_pipe_as_a_file(folder: Path) -> Any:
    os.mkfifo(folder / "t.csv")
    return ["clean", str(folder / "t.csv"), "-o", str(folder / "out"), *QUICK]


# ---------------------------------------------------------------- models, schemas, decisions


def _model(folder: Path) -> Path:
    model = folder / "m.cellmend"
    CellMender(random_state=0, time_limit=1).fit(frame()).save(model)
    frame().to_csv(folder / "t.csv", index=False)
    return model


@case
def a_torn_model(folder: Path) -> Any:
    model = _model(folder)
    model.write_bytes(model.read_bytes()[:-100])
    return ["score", str(folder / "t.csv"), "-m", str(model), "-o", str(folder / "s.csv")]


@case
def a_model_with_a_flipped_byte(folder: Path) -> Any:
    model = _model(folder)
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    model.write_bytes(bytes(content))
    return ["repair", str(folder / "t.csv"), "-m", str(model), "-o", str(folder / "r.csv")]


def claiming(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Any:
    """The command that asks a model whose header was changed, with a checksum that is right."""
    model = _model(folder)
    header, weights = read_parts(model)
    change(header)
    write_parts(model, header, weights)
    return ["score", str(folder / "t.csv"), "-m", str(model), "-o", str(folder / "s.csv")]


@case
def a_model_with_networks_without_end(folder: Path) -> Any:
    return claiming(folder, lambda header: header["settings"].update(networks=10**8))


@case
def a_model_with_components_without_end(folder: Path) -> Any:
    return claiming(folder, lambda header: header["settings"].update(components=10**8))


@case
def a_model_with_rates_that_are_none(folder: Path) -> Any:
    return claiming(folder, lambda header: header.update(rates={"rows": "many"}))


@case
def a_table_as_a_model(folder: Path) -> Any:
    _model(folder)
    return ["report", str(folder / "t.csv"), "-m", str(folder / "t.csv"), "-o", str(folder / "r.html")]


@case
def a_model_of_another_table(folder: Path) -> Any:
    model = _model(folder)
    (folder / "u.csv").write_text("a,b\n1,2\n3,4\n")
    return ["repair", str(folder / "u.csv"), "-m", str(model), "-o", str(folder / "r.csv")]


@case
def a_model_asked_about_no_rows(folder: Path) -> Any:
    model = _model(folder)
    (folder / "u.csv").write_text("size,price,city\n")
    return ["score", str(folder / "u.csv"), "-m", str(model), "-o", str(folder / "s.csv")]


@case
def a_bomb_in_a_schema(folder: Path) -> Any:
    bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    bomb += [f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]" for n in range(9)]
    (folder / "s.yaml").write_text("\n".join(bomb))
    return clean(folder, "\n".join(lines()), "t.csv", "--schema", str(folder / "s.yaml"))


@case
def a_schema_that_runs_code(folder: Path) -> Any:
    (folder / "s.yaml").write_text('city: !!python/object/apply:os.system ["touch /tmp/owned"]')
    return clean(folder, "\n".join(lines()), "t.csv", "--schema", str(folder / "s.yaml"))


@case
def broken_decisions(folder: Path) -> Any:
    (folder / "d.jsonl").write_text('{"row": 1, "column": "city"}\n{"row": "x"\n\x00')
    return clean(folder, "\n".join(lines()), "t.csv", "--decisions", str(folder / "d.jsonl"))


# ---------------------------------------------------------------- tables for Python


@case
def an_index_of_several_levels(folder: Path) -> Any:
    return frame().set_index(["city", "size"], append=True)


@case
def columns_of_several_levels(folder: Path) -> Any:
    table = frame()
    table.columns = pd.MultiIndex.from_product([["a"], table.columns])
    return table


@case
def an_index_with_twins(folder: Path) -> Any:
    return frame().set_index(pd.Index([0] * 80))


@case
def levels_that_nobody_has(folder: Path) -> Any:
    return frame(level=pd.Categorical(["a", "b"] * 40, categories=["a", "b", *map(str, range(5000))]))


@case
def decimals_and_zones(folder: Path) -> Any:
    zones = pd.date_range("2026-03-28", periods=80, freq="h", tz="Europe/Berlin")
    return frame(d=[decimal.Decimal(n) / 7 for n in range(80)], t=zones)


@case
def lists_and_objects(folder: Path) -> Any:
    return frame(a=[[n, n] for n in range(80)], b=[object() for _ in range(80)], c=[1, "x", None, 2.5] * 20)


@case
def complex_and_infinite(folder: Path) -> Any:
    return frame(a=np.arange(80) + 1j, b=[np.inf, -np.inf, np.nan, 1.0] * 20)


@case
def dates_beyond_measure(folder: Path) -> Any:
    return frame(a=[datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)] * 40)


@case
def booleans_only(folder: Path) -> Any:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.random((80, 4)) < 0.5, columns=list("abcd"))


@case
def infinity_in_parquet(folder: Path) -> Any:
    table = pa.Table.from_pandas(frame(b=[np.inf, -np.inf, np.nan, 1.0] * 20))
    pa.parquet.write_table(table, folder / "t.parquet")
    return ["clean", str(folder / "t.parquet"), "-o", str(folder / "out"), *QUICK]


@case
def odd_types_in_feather(folder: Path) -> Any:
    table = pa.table(
        {
            "a": pa.array([datetime.timedelta(hours=n % 9) for n in range(80)]),
            "b": pa.array([b"x%d" % (n % 4) for n in range(80)]),
            "c": pa.array([[n] for n in range(80)]),
            "d": pa.nulls(80),
            "e": pa.array([n % 7 for n in range(80)], pa.uint8()),
            "f": pa.array([n % 5 / 2 for n in range(80)], pa.float32()),
        }
    )
    pa.feather.write_feather(table, folder / "t.feather")
    return ["clean", str(folder / "t.feather"), "-o", str(folder / "out"), *QUICK]


# ---------------------------------------------------------------- trying them


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    code: int  # exit code, or minus a signal
    said: str
    seconds: float
    gigabytes: float
    left: list[str]  # files that should not be there

    def complaints(self) -> Iterator[str]:
        """What is wrong with it."""
        if self.code not in (0, 1, 2):
            yield f"ended with {self.code}"
        if BAD.search(self.said):
            yield "says what no user should read"
        sentences = [line for line in self.said.splitlines() if "cellmend: " in line]
        if self.code == 1 and len(sentences) != 1:
            yield f"says {len(sentences)} sentences"
        if self.seconds > SECONDS:
            yield f"took {self.seconds:.0f} s"
        if self.gigabytes > GIGABYTES:
            yield f"took {self.gigabytes:.1f} GB"
        if self.left:
            yield f"left {', '.join(self.left)}"


def attempt(make: Callable[[Path], Any]) -> Outcome:
    """Makes an input in an empty folder and tries it in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = make(folder)
        before = {each.name for each in folder.iterdir()}
        with tempfile.TemporaryFile() as talk:
            start, child = time.perf_counter(), os.fork()
            if child == 0:
                _in_child(asked, talk.fileno())
            _, status, used = os.wait4(child, 0)
            seconds = time.perf_counter() - start
            talk.seek(0)
            said = talk.read().decode(errors="replace")
        new = {each.name for each in folder.iterdir()} - before
        code = os.waitstatus_to_exitcode(status)
        expected = {"out", "s.csv", "r.csv", "r.html", "r-findings.csv"} if code == 0 else set()
        return Outcome(code, said, seconds, used.ru_maxrss / 1e6, sorted(new - expected))


def _in_child(asked: Any, talk: int) -> None:
    """Runs a command or fits to a table, with all that it says in `talk`; never returns."""
    code = 1
    try:
        os.dup2(talk, 1)
        os.dup2(talk, 2)
        signal.alarm(SECONDS + 10)
        resource.setrlimit(resource.RLIMIT_AS, (40 << 30, 40 << 30))
        if isinstance(asked, pd.DataFrame):
            _mend(asked)
        else:
            sys.argv = ["cellmend", *asked]
            main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _mend(table: pd.DataFrame) -> None:
    import warnings

    from cellmend.errors import SchemaWarning

    warnings.simplefilter("ignore", SchemaWarning)
    try:
        repaired = CellMender(random_state=0, time_limit=1).fit(table).repair(table)
    except CellmendError as error:
        sys.stdout.write(f"cellmend: {error}\n")
        raise SystemExit(1) from None
    same = repaired.index.equals(table.index), list(repaired.columns) == list(table.columns)
    if not all(same) or list(repaired.dtypes) != list(table.dtypes):
        raise TypeError("index, columns or types changed")


def run(chosen: Sequence[str]) -> int:
    """Tries the chosen cases, prints what came of them, and returns how many are wrong."""
    torch.set_num_threads(1)  # some cases fit a model here, and a process forked from one with threads hangs
    wrong = 0
    for name, make in CASES.items():
        if chosen and not any(each in name for each in chosen):
            continue
        outcome = attempt(make)
        complaints = list(outcome.complaints())
        wrong += bool(complaints)
        said = " / ".join(outcome.said.split("\n")) if complaints else outcome.said.strip().splitlines()[-1:]
        mark = "WRONG " + "; ".join(complaints) if complaints else "ok"
        used = f"{outcome.code}, {outcome.seconds:.0f} s, {outcome.gigabytes:.1f} GB"
        sys.stdout.write(f"{name}: {mark} ({used}) {said}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(CASES)} cases, {wrong} wrong\n")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(run(sys.argv[1:])))
