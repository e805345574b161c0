"""A decision about one cell, as people take it and as it is kept: one JSON object a line, undo is another line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import narwhals as nw

from cellmend.errors import DecisionError, did_you_mean
from cellmend.files.records import Records, parsed
from cellmend.table.values import as_text

RIGHT, WRONG, UNDO = "right", "wrong", "undo"
VERDICTS = (RIGHT, WRONG, UNDO)
ENCODER = json.JSONEncoder(ensure_ascii=False)  # one for all lines, of which a step may have many thousands
RECORDS = Records("decision", '{"row": 3, "column": "city", "value": "Ulm", "verdict": "right"}', DecisionError)


@dataclass(frozen=True)
class Decision:
    """What a person said of one cell; `undo` takes back what stands for the cell.

    >>> Decision(3, "city", "Ulmm", "wrong", "Ulm").to_line()
    '{"row": 3, "column": "city", "value": "Ulmm", "verdict": "wrong", "repair": "Ulm"}'
    """

    row: int  # from 0, the row's place in the table
    column: str
    value: str | None  # as it was seen, as text; None: the cell was empty
    verdict: str
    repair: str | None = None  # None: not known; "": the cell should be empty
    edited: bool | None = field(default=None, compare=False)  # was the repair another than was proposed? None: not said

    @property
    def cell(self) -> tuple[int, str]:
        """Row and column."""
        return self.row, self.column

    @classmethod
    def of(cls, entry: Mapping[str, Any], where: str = "A decision") -> Decision:
        """A decision from a mapping, checked; `where` begins the sentence if it is none.

        >>> Decision.of({"row": 3, "column": "size", "value": 1.0, "verdict": "right"}).value
        '1'
        """
        names = [each.name for each in fields(cls)]
        for name in entry:
            if name not in names:
                raise DecisionError(
                    f"{where} must have row, column, value, verdict and, if known, repair and edited; "
                    f"it has {name!r}.{did_you_mean(str(name), names)}"
                )
        for name in names[: names.index("repair")]:
            if name not in entry:
                raise DecisionError(f"{where} must have row, column, value and verdict; it has no {name}.")
        row, verdict, repair = entry["row"], entry["verdict"], _text(entry.get("repair"))
        if isinstance(row, bool) or not _is_whole(row) or row < 0:
            raise DecisionError(f"{where} must have a row from 0; it has {row!r}.")
        if not isinstance(entry["column"], str):
            raise DecisionError(f"{where} must have the name of a column; it has {entry['column']!r}.")
        if verdict not in VERDICTS:
            raise DecisionError(f"{where} must have the verdict 'right', 'wrong' or 'undo'; it has {verdict!r}.")
        if repair is not None and verdict != WRONG:
            raise DecisionError(f"{where} may have a repair only if its cell is wrong; the verdict is {verdict!r}.")
        edited = entry.get("edited")
        edited = None if edited != edited else edited  # as a DataFrame says that it is missing
        if not isinstance(edited, bool | None):
            raise DecisionError(f"{where} must say with true or false whether it was edited; it has {edited!r}.")
        return cls(int(row), entry["column"], _text(entry["value"]), verdict, repair, edited)

    def to_line(self) -> str:
        """As JSON, without a repair if none is known."""
        known = {name: own for name, own in vars(self).items() if own is not None or name not in ("repair", "edited")}
        return ENCODER.encode(known)


def _is_whole(row: Any) -> bool:
    try:
        return int(row) == row
    except (TypeError, ValueError, OverflowError):
        return False


def _text(value: Any) -> str | None:
    """A value as text; None for what is missing, however a DataFrame says that."""
    return None if value is None or value != value else as_text(value)


# ---------------------------------------------------------------- many of them


def as_decisions(given: Any) -> list[Decision]:
    """Decisions from a list of them or of mappings, or from any DataFrame of them, in their order.

    >>> [each.verdict for each in as_decisions([{"row": 3, "column": "city", "value": "Ulm", "verdict": "right"}])]
    ['right']
    """
    if not isinstance(given, Sequence):
        given = nw.from_native(given, eager_only=True).to_arrow().to_pylist()
    return [
        each if isinstance(each, Decision) else Decision.of(each, f"Decision {place}")
        for place, each in enumerate(given, 1)
    ]


def standing(decisions: Iterable[Decision]) -> list[Decision]:
    """Those that hold once what was undone is gone, each cell once.

    >>> right = Decision(3, "city", "Ulm", "right")
    >>> standing([right, Decision(3, "city", "Ulm", "undo")])
    []
    >>> standing([right, Decision(3, "city", "Ulm", "wrong")])
    Traceback (most recent call last):
    cellmend.errors.DecisionError: A cell must be decided in one way; row 3 of 'city' is right and wrong. Hint: take \
the earlier decision back with the verdict "undo".
    """
    held: dict[tuple[int, str], Decision] = {}
    for each in decisions:
        before = held.get(each.cell)
        if each.verdict == UNDO:
            held.pop(each.cell, None)
        elif before is not None and _contradict(before, each):
            raise DecisionError(
                f"A cell must be decided in one way; row {each.row} of {each.column!r} is {_said(before, each)}. "
                'Hint: take the earlier decision back with the verdict "undo".'
            )
        elif before is None or before.repair is None:
            held[each.cell] = each
    return list(held.values())


def _contradict(one: Decision, other: Decision) -> bool:
    repairs = {each.repair for each in (one, other) if each.repair is not None}
    return one.verdict != other.verdict or one.value != other.value or len(repairs) > 1


def _said(one: Decision, other: Decision) -> str:
    if one.verdict != other.verdict:
        return f"{one.verdict} and {other.verdict}"
    if one.value != other.value:
        return f"seen as {one.value!r} and as {other.value!r}"
    return f"repaired as {one.repair!r} and as {other.repair!r}"


# ---------------------------------------------------------------- as a file


def read_decisions(path: Path) -> list[Decision]:
    """All decisions of a file in their order; a half last line, as a killed program leaves it, is not read."""
    whole, half = _parted(path.read_bytes())
    if parsed(half) is not None:  # only the end of the line is missing
        whole += half
    return [Decision.of(entry, where) for where, entry in RECORDS.read(whole, path.name)]


def append_decisions(path: Path, decisions: Iterable[Decision]) -> None:
    """Add decisions to a file, which is made if it is not there; on the disk when this returns."""
    try:
        lines = "".join(each.to_line() + "\n" for each in decisions).encode()
    except UnicodeEncodeError:
        raise DecisionError("A decision must hold whole characters; one holds half of a pair.") from None
    with path.open("ab+") as file:
        if not _ends_whole(file):
            file.seek(0)
            whole, half = _parted(file.read())
            if parsed(half) is None:
                file.truncate(len(whole))
            else:
                file.write(b"\n")
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())


def _ends_whole(file: IO[bytes]) -> bool:
    """Is the file empty, or does it end with the end of a line?"""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    return file.read(1) in (b"", b"\n")


def _parted(content: bytes) -> tuple[bytes, bytes]:
    """The whole lines of a file, and what stands behind the last end of a line."""
    whole, end, half = content.rpartition(b"\n")
    return whole + end, half
