"""A run, and the file in which runs are kept: stop it as you like, it ends as if nothing had happened."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from cellmend.files.places import whole_file

Outcome = dict[str, Any]


@dataclass(frozen=True)
class Keyed:
    """What a line of results is about."""

    @property
    def key(self) -> str:
        """All of it as text, to find it among the results."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, row: Outcome) -> Self:
        """What a line is about."""
        return cls(**{each.name: row[each.name] for each in fields(cls)})


@dataclass(frozen=True)
class Run(Keyed):
    """One line of the results: what was corrupted how, and who looked at it."""

    experiment: str
    table: str
    noise: str
    level: float | None
    seed: int
    method: str
    setting: dict[str, float] = field(default_factory=dict)


class Results:
    """A JSONL file, one line a run, written at once; a half last line of a killed run is dropped.

    How long runs took stands in a file beside it, so that results are the same whenever they are made.
    """

    def __init__(self, path: Path, *, retry: bool = False) -> None:
        """With `retry` runs that failed are forgotten, so that they are made again."""
        self.path, self.timings = path, path.with_suffix(".timings.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        read_lines(self.timings)
        self.rows: dict[str, Outcome] = {Run.of(row).key: row for row in read_lines(path)}
        if retry:
            self._rewrite(row for row in self.rows.values() if row["status"] == "ok")

    def add(self, run: Run, outcome: Outcome, seconds: float) -> None:
        """Append one run, unless it is there."""
        if run.key in self.rows:
            return
        row = asdict(run) | outcome
        self.rows[run.key] = row
        append_line(self.path, row)
        append_line(self.timings, asdict(run) | {"seconds": round(seconds, 3)})

    def known(self, run: Run, *, within: Iterable[str]) -> Outcome | None:
        """The outcome of the same run under one of these experiments."""
        for name in within:
            row = self.rows.get(replace(run, experiment=name).key)
            if row is not None and row["status"] == "ok":
                return {key: value for key, value in row.items() if key not in asdict(run)}
        return None

    def choice(self, table: str, method: str) -> dict[str, float] | None:
        """The setting that labels chose for this method on this table, if it has been run."""
        made = (row for row in self.rows.values() if (row["table"], row["method"]) == (table, method))
        return next((row["choice"] for row in made if row["status"] == "ok"), None)

    def arrange(self) -> None:
        """Bring the lines into one order: they then do not depend on who was faster, nor on interruptions."""
        written = {Run.of(row).key: row for row in read_lines(self.path)}  # another process may have added some
        self._rewrite(sorted((written | self.rows).values(), key=lambda row: Run.of(row).key))

    def _rewrite(self, rows: Iterable[Outcome]) -> None:
        self.rows = {Run.of(row).key: row for row in rows}
        with whole_file(self.path) as temporary:
            temporary.write_text("".join(json.dumps(row) + "\n" for row in self.rows.values()), encoding="utf-8")


def read_lines(path: Path) -> list[Outcome]:
    """The lines of a file, if it is there; what a killed run left behind the last whole one is cut off."""
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    with path.open("rb+") as file:
        file.truncate(len(whole) + 1 if whole else 0)
    return [json.loads(line) for line in whole.decode().splitlines()]


def append_line(path: Path, row: Outcome) -> None:
    """Write a line at once, so that a killed run loses none."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())
