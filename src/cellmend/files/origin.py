"""source.json: which table a folder of results is about, so that it can be opened again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cellmend.errors import FileError
from cellmend.files.layout import NOTHING_ASKED, Asked
from cellmend.files.places import is_url, whole_file
from cellmend.files.records import parsed

NAME = "source.json"


@dataclass(frozen=True)
class Origin:
    """The table that results are about, and by which threshold its cells were flagged."""

    table: str  # a URL, or a path as seen from the folder
    name: str  # as people know the table
    asked: Asked = field(default_factory=Asked)  # what was said of its file
    digest: str = ""  # of a file on this machine, to see whether it is still the same
    threshold: Mapping[str, float] = field(default_factory=dict)  # "fdr", "suspicion" or "top"

    @classmethod
    def of(
        cls, table: str, name: str, folder: Path, threshold: Mapping[str, float], asked: Asked = NOTHING_ASKED
    ) -> Origin:
        """The origin of results in `folder` that are about `table`."""
        if is_url(table):
            return cls(table, name, asked, threshold=threshold)
        return cls(os.path.relpath(table, folder), name, asked, digest_of(table), threshold)

    def save(self, folder: Path) -> None:
        """Write source.json."""
        with whole_file(folder / NAME) as temporary:
            temporary.write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Origin:
        """What source.json of a folder says."""
        try:
            entries = parsed((folder / NAME).read_bytes())
            table, name, digest = (str(entries[each]) for each in ("table", "name", "digest"))
            return cls(table, name, Asked(**entries["asked"]).checked(), digest, dict(entries["threshold"]))
        except FileNotFoundError:
            raise FileError(
                f"{folder} must hold {NAME}, which says which table it is about; it holds none. "
                "Hint: name the table with --table, or run cellmend clean again."
            ) from None
        except (ValueError, KeyError, TypeError):
            raise FileError(
                f"{folder / NAME} must be as cellmend clean wrote it. Hint: --table names the table."
            ) from None

    def find(self, folder: Path) -> str:
        """Where the table lies now; refuses one that is gone or is no longer the same."""
        if is_url(self.table):
            return self.table
        path = Path(os.path.normpath(folder / self.table))
        if not path.exists():
            raise FileError(f"{path}, the table of {folder}, is no longer there. Hint: --table says where it is now.")
        if digest_of(path) != self.digest:
            raise FileError(
                f"{path} has changed since {folder} was made, so the findings may not fit it. "
                "Hint: clean it again, or name a copy of the old one with --table."
            )
        return str(path)


def digest_of(place: str | Path) -> str:
    """SHA-256 of a file, to tell one from another; of a folder that of the names and sizes in it."""
    path = Path(place)
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file())
        listed = "\n".join(f"{each.relative_to(path).as_posix()} {each.stat().st_size}" for each in files)
        return hashlib.sha256(listed.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
