"""What was learned, each time in a folder of its own: what stands is `learned`, those before are `learned-1`, ..."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cellmend.files.earlier import LEARNED
from cellmend.files.records import parsed
from cellmend.files.results import FINDINGS, MODEL

ABOUT = "learning.json"  # in each of the folders
UNFINISHED = f"{LEARNED}.new"


@dataclass(frozen=True)
class Learning:
    """One time that the model was taught."""

    number: int  # from 1
    when: str  # to the minute, in UTC
    about: Mapping[str, Any]  # what was learned from, and what it changed


class Learnings:
    """The folders of one review in which what was learned is kept.

    >>> import tempfile
    >>> kept = Learnings(Path(tempfile.mkdtemp()))
    >>> for decisions in (3, 5):
    ...     kept.keep({"decisions": decisions}, lambda place: (place / "findings.csv").touch())
    >>> [each.about for each in kept.history], kept.undo(), [each.about for each in kept.history]
    ([{'decisions': 3}, {'decisions': 5}], True, [{'decisions': 3}])
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.current = folder, folder / LEARNED

    @property
    def findings(self) -> Path | None:
        """The folder of the findings that stand; None if nothing was learned."""
        return self.current if (self.current / FINDINGS).is_file() else None

    @property
    def model(self) -> Path | None:
        """The model that stands; None if nothing was learned."""
        path = self.current / MODEL
        return path if path.is_file() else None

    @property
    def history(self) -> list[Learning]:
        """What was learned, the last time last."""
        places = [*self._before, *([self.current] if self.current.is_dir() else [])]
        return [_read(place, number) for number, place in enumerate(places, 1)]

    @property
    def _before(self) -> list[Path]:
        """The folders of former times, the first one first."""
        found = {each: re.fullmatch(rf"{LEARNED}-(\d+)", each.name) for each in self.folder.glob(f"{LEARNED}-*")}
        return sorted((each for each, name in found.items() if name), key=lambda each: int(each.name.split("-")[1]))

    def keep(self, about: Mapping[str, Any], write: Callable[[Path], None]) -> None:
        """Let `write` fill a folder, which stands from now on once it is whole."""
        new = self.folder / UNFINISHED
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        write(new)
        now = datetime.now(UTC).isoformat(" ", "minutes").partition("+")[0]
        (new / ABOUT).write_text(json.dumps({"when": now, **about}, ensure_ascii=False) + "\n", encoding="utf-8")
        if self.current.exists():
            last = int(self._before[-1].name.split("-")[1]) if self._before else 0
            self.current.rename(self.folder / f"{LEARNED}-{last + 1}")
        new.rename(self.current)

    def undo(self) -> bool:
        """Go back to what stood before the last time; False if nothing was learned."""
        if not self.current.exists():
            return False
        gone = self.folder / UNFINISHED
        shutil.rmtree(gone, ignore_errors=True)
        self.current.rename(gone)
        if self._before:
            self._before[-1].rename(self.current)
        shutil.rmtree(gone, ignore_errors=True)
        return True


def _read(place: Path, number: int) -> Learning:
    path = place / ABOUT
    entry = parsed(path.read_bytes()) if path.is_file() else None
    about = dict(entry) if isinstance(entry, dict) else {}
    return Learning(number, str(about.pop("when", "")), about)
