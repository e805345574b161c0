"""OpenDocument spreadsheets (.ods): a table in one of the sheets; a repaired copy is an .xlsx workbook."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from cellmend.errors import FileError
from cellmend.files.layout import Asked
from cellmend.files.workbook import choose_sheet, lay_out

TABLE, OFFICE, TEXT = (f"{{urn:oasis:names:tc:opendocument:xmlns:{each}:1.0}}" for each in ("table", "office", "text"))
MOST_REPEATED = 2**14  # cells or rows; files say that their empty ends are repeated a million times
LARGEST = 2**29  # bytes of its text


def read_ods(content: bytes, name: str, asked: Asked) -> tuple[pa.Table, tuple[str, ...]]:
    """The table in a spreadsheet's bytes, and what a person should know of it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if packed.getinfo("content.xml").file_size > LARGEST:
                raise FileError(f"{name} must unpack to at most {LARGEST // 2**20} MB; it does not.")
            root = ElementTree.fromstring(packed.read("content.xml"))  # noqa: S314 - expat refuses bombs by itself
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError):
        raise FileError(f"{name} must be an .ods spreadsheet; it cannot be read as one.") from None
    sheets = {sheet.get(f"{TABLE}name", ""): list(_rows(sheet)) for sheet in root.iter(f"{TABLE}table")}
    title, notes = choose_sheet(sheets, asked.sheet, name)
    found = lay_out(sheets[title], asked.header_row, f"{name}, sheet {title},")
    return found.table, (*notes, *found.notes)


def _rows(sheet: ElementTree.Element) -> Iterator[tuple[Any, ...]]:
    for row in sheet.iter(f"{TABLE}table-row"):
        cells: list[Any] = []
        for cell in row:
            times = int(cell.get(f"{TABLE}number-columns-repeated", "1"))
            cells += [_value(cell)] * (times if times <= MOST_REPEATED else 1)
        while cells and cells[-1] is None:
            cells.pop()
        times = int(row.get(f"{TABLE}number-rows-repeated", "1"))
        yield from [tuple(cells)] * (times if cells and times <= MOST_REPEATED else 1)


def _value(cell: ElementTree.Element) -> Any:
    kind, value = cell.get(f"{OFFICE}value-type"), cell.get(f"{OFFICE}value")
    if kind in ("float", "currency", "percentage") and value is not None:
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if kind == "boolean":
        return cell.get(f"{OFFICE}boolean-value") == "true"
    if kind == "date":
        with suppress(ValueError):
            return datetime.fromisoformat(cell.get(f"{OFFICE}date-value", ""))
    text = "\n".join("".join(each.itertext()) for each in cell.iter(f"{TEXT}p"))
    return text or None
