"""OpenDocument spreadsheets (.ods): a table in one of the sheets; a repaired copy is an .xlsx workbook."""

from __future__ import annotations

import io
import zipfile
import zlib
from contextlib import suppress
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from cellmend.errors import FileError
from cellmend.files.layout import Asked
from cellmend.files.packed import read_bounded
from cellmend.files.workbook import Room, choose_sheet, lay_out

TABLE, OFFICE, TEXT = (f"{{urn:oasis:names:tc:opendocument:xmlns:{each}:1.0}}" for each in ("table", "office", "text"))
MOST_EMPTY = 2**14  # rows between others
CONTENT, MANIFEST = "content.xml", "META-INF/manifest.xml"


def read_ods(content: bytes, name: str, asked: Asked) -> tuple[pa.Table, tuple[str, ...]]:
    """The table in a spreadsheet's bytes, and what a person should know of it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if MANIFEST in packed.namelist() and b"encryption-data" in packed.read(MANIFEST):
                raise FileError(f"{name} must be readable without a password; it is encrypted.")
            with packed.open(CONTENT) as file:
                text = read_bounded(file, len(content), name)
        sheets = _sheets(text, name)
    except FileError:
        raise
    except (zipfile.BadZipFile, zlib.error, LookupError, RuntimeError, EOFError, ValueError, ElementTree.ParseError):
        raise FileError(f"{name} must be an .ods spreadsheet; it cannot be read as one.") from None
    title, notes = choose_sheet(sheets, asked.sheet, name)
    found = lay_out(sheets[title], asked.header_row, f"{name}, sheet {title},")
    return found.table, (*notes, *found.notes)


def _sheets(text: bytes, name: str) -> dict[str, list[Any]]:
    """The rows of every sheet by its title; what was read is let go of."""
    sheets: dict[str, list[Any]] = {}
    rows, empty, room = list[Any](), 0, Room(name)
    for event, element in ElementTree.iterparse(io.BytesIO(text), ("start", "end")):  # noqa: S314 - expat refuses bombs
        if event == "start" and element.tag == f"{TABLE}table":
            rows, empty = sheets.setdefault(element.get(f"{TABLE}name", ""), []), 0
        elif event == "end" and element.tag == f"{TABLE}table-row":
            cells = _cells(element, room)
            times = _times(element, "number-rows-repeated")
            if cells:
                room.take(times * len(cells), len(cells) - cells.count(None))
                rows += [()] * min(empty, MOST_EMPTY) + [cells] * times
            empty = 0 if cells else empty + times
            element.clear()
    return sheets


def _cells(row: ElementTree.Element, room: Room) -> tuple[Any, ...]:
    """The cells of a row up to the last one that holds something."""
    cells, empty = list[Any](), 0
    for cell in row:
        value, times = _value(cell), _times(cell, "number-columns-repeated")
        if value is None:
            empty += times
        else:
            room.take(empty + times, 1)
            cells += [*[None] * empty, *[value] * times]
            empty = 0
    return tuple(cells)


def _times(element: ElementTree.Element, name: str) -> int:
    return max(int(element.get(f"{TABLE}{name}", "1")), 1)


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
