"""JSON Lines: a table in objects, one a line; lines in which no cell was changed stay as they were."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.errors import FileError
from cellmend.files.cells import differences, keys_of, table_of, typed_like
from cellmend.files.layout import NOTHING_ASKED, Asked


@dataclass(frozen=True)
class JsonLines:
    """The lines of a JSON Lines file and the table in them."""

    lines: list[bytes]  # line ends included
    places: list[int]  # (N,) the line of each row
    keys: list[str]  # (D,) as the objects name the columns
    table: pa.Table
    notes: tuple[str, ...] = ()

    @property
    def line_numbers(self) -> NDArray[np.int64]:
        """The line of the file, from 1, in which each row stands, (N,)."""
        return np.array(self.places, dtype=np.int64) + 1

    def with_table(self, changed: pa.Table) -> bytes:
        """The file with the cells of this table; a line in which none differs is as it was."""
        lines, names = list(self.lines), self.keys
        for row, cells in differences(self.table, changed).items():
            place = self.places[row]
            lines[place] = _with_values(lines[place], {names[column]: cell for column, cell in cells.items()})
        return b"".join(lines)


def read_json_lines(content: bytes, name: str, asked: Asked = NOTHING_ASKED) -> JsonLines:
    """A JSON Lines file's bytes."""
    lines = content.splitlines(keepends=True)
    places = [place for place, line in enumerate(lines) if line.strip()]
    rows = [_json_object(lines[place], name, place + 1) for place in places]
    return JsonLines(lines, places, keys_of(rows), table_of(rows, name))


def _json_object(line: bytes, name: str, number: int) -> dict[str, Any]:
    must = f"{name} must hold a JSON object in every line; line {number}"
    try:
        found = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        found = None
    except RecursionError:
        raise FileError(f"{must} is nested too deeply.") from None
    except ValueError:
        why = f"one in line {number} has thousands of digits"
        raise FileError(f"{name} must hold numbers that can be read; {why}.") from None
    if not isinstance(found, dict):
        raise FileError(f"{must} holds none.")
    return found


def _with_values(line: bytes, values: Mapping[str, Any]) -> bytes:
    """A line of JSON with new values, as wide or as narrow as it was.

    >>> _with_values(b'{"id":7,"city":"Ulm"}\\r\\n', {"city": "Köln"}).decode()
    '{"id":7,"city":"Köln"}\\r\\n'
    """
    old = json.loads(line)
    new = old | {name: typed_like(old.get(name), value) for name, value in values.items()}
    written = json.dumps(new, ensure_ascii=False, separators=(", ", ": ") if b'": ' in line else (",", ":"))
    mark = codecs.BOM_UTF8 if line.startswith(codecs.BOM_UTF8) else b""
    return mark + written.encode() + line[len(line.rstrip(b"\r\n")) :]


def write_json_lines(table: pa.Table, path: Path) -> None:
    """A new file."""
    lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in table.to_pylist())
    path.write_text("".join(lines), encoding="utf-8")
