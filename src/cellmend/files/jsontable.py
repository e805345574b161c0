"""JSON: a table as a list of objects, by itself or under one name; copies keep all else that the file holds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cellmend.errors import FileError
from cellmend.files.cells import differences, keys_of, table_of, typed_like
from cellmend.files.layout import NOTHING_ASKED, Asked

WANTED = "a list of objects, such as [{...}, {...}], or an object with one such list"


@dataclass(frozen=True)
class JsonTable:
    """A JSON file and the table in it."""

    content: bytes
    key: str | None  # the name under which the list stands; None: it is the whole file
    table: pa.Table
    notes: tuple[str, ...] = ()

    @property
    def line_numbers(self) -> None:
        """Rows of JSON have no lines of their own."""
        return None

    def with_table(self, changed: pa.Table) -> bytes:
        """The file with the cells of this table; byte by byte as it was if none differs."""
        differ = differences(self.table, changed)
        if not differ:
            return self.content
        whole = parse_json(self.content, "The file")
        rows = whole if self.key is None else whole[self.key]
        names = keys_of(rows)
        for row, cells in differ.items():
            for column, new in cells.items():
                rows[row][names[column]] = typed_like(rows[row].get(names[column]), new)
        encoding = json.detect_encoding(self.content)
        text = self.content.decode(encoding)
        indented = re.search(r"\n([ \t]+)\S", text)
        indent = None if "\n" not in text.strip() else indented[1] if indented else 0
        end = "\n" if text.endswith("\n") else ""
        return (json.dumps(whole, ensure_ascii=False, indent=indent) + end).encode(encoding)


def read_json_table(content: bytes, name: str, asked: Asked = NOTHING_ASKED) -> JsonTable:
    """A JSON file's bytes."""
    whole = parse_json(content, name)
    lists = {key: each for key, each in whole.items() if _is_rows(each)} if isinstance(whole, dict) else {}
    if _is_rows(whole):
        lists = {"": whole}
    if len(lists) != 1:
        raise FileError(f"{name} must hold {WANTED}; it holds {'several' if lists else 'none'}.")
    [(key, rows)] = lists.items()
    notes = (f"the rows under {key} are read",) if key else ()
    return JsonTable(content, key if isinstance(whole, dict) else None, table_of(rows, name), notes)


def parse_json(content: bytes, name: str) -> Any:
    """What a JSON file says, or one sentence about why it says nothing."""
    try:
        return json.loads(content)
    except RecursionError:
        raise FileError(f"{name} must hold {WANTED}; what it holds is nested too deeply.") from None
    except UnicodeDecodeError:
        raise FileError(f"{name} must be JSON in UTF-8; it is not.") from None
    except json.JSONDecodeError as error:
        raise FileError(f"{name} must be JSON; line {error.lineno} is not.") from None
    except ValueError:
        raise FileError(f"{name} must hold numbers that can be read; one has thousands of digits.") from None


def _is_rows(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(row, dict) for row in found)
