"""Records: one JSON object a line, as decisions and patches are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cellmend.errors import CellmendError


@dataclass(frozen=True)
class Records:
    """One kind of record: what it is called, how one looks, and what is raised where none stands.

    >>> notes = Records("note", '{"text": "..."}', CellmendError)
    >>> list(notes.read(b'{"text": "a"}', "notes.jsonl"))
    [('Line 1 of notes.jsonl', {'text': 'a'})]
    >>> list(notes.read(b"[1]", "notes.jsonl"))
    Traceback (most recent call last):
    cellmend.errors.CellmendError: Line 1 of notes.jsonl must hold one note, such as {"text": "..."}; it holds none.
    """

    name: str
    example: str
    refused_by: type[CellmendError]

    def read(self, content: bytes, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Where each record of a file stands, to begin a sentence, and what it holds."""
        try:
            lines = content.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise self.refused_by(f"{file} must be UTF-8 text; it is not.") from None
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"Line {number} of {file}"
                if not isinstance(entry := parsed(line), dict):
                    raise self.refusal(where)
                yield where, entry

    def refusal(self, where: str) -> CellmendError:
        """That a line holds no such record."""
        return self.refused_by(f"{where} must hold one {self.name}, such as {self.example}; it holds none.")


def parsed(text: str | bytes) -> Any:
    """What JSON says; None if it is none, is nested without end, or has half a character, which no file can hold.

    >>> parsed("[1]"), parsed("[1"), parsed("[" * 9999), parsed('"\\\\ud800"')
    ([1], None, None, None)
    """
    with suppress(ValueError, RecursionError):
        said = json.loads(text)
        json.dumps(said, ensure_ascii=False).encode()
        return said
    return None
