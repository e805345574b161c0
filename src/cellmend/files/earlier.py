"""Earlier results in a folder: set aside, with what people decided about them, when others come into their place."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from pathlib import Path

from cellmend.errors import FileError
from cellmend.files.origin import NAME, Origin
from cellmend.files.results import FINDINGS, MODEL

DECISIONS, COLUMNS, LEARNED = "decisions.jsonl", "columns.json", "learned"  # of a review
PATCH, RECIPE = "patch.jsonl", "recipe.jsonl"
REVIEW = (DECISIONS, COLUMNS, LEARNED, PATCH, RECIPE)
COPIES = ("reviewed", "repaired", "original")  # how names of copies of the table begin
PLACE = "earlier"  # how the name of the folder for them begins


def set_aside(folder: Path, origin: Origin | None, coming: Collection[str]) -> list[str]:
    """Move what new results about `origin` would leave stale into a folder of its own; returns what to tell of it.

    About the same table decisions go on to hold, but not what was learned from them; about another one nothing does.
    `coming` names the files that are written anew.
    """
    same = _is_about(folder, origin)
    learned = [LEARNED, *sorted(each.name for each in folder.glob(f"{LEARNED}-*"))]
    names = learned if same else [*REVIEW, *learned[1:], FINDINGS, "findings", NAME, MODEL, *_copies(folder)]
    stale = [name for name in names if name not in coming and (folder / name).exists()]
    if not stale:
        return []
    places = (folder / f"{PLACE}-{number}" for number in count(1))
    place = next(each for each in places if not each.exists())
    place.mkdir()
    for name in stale:
        (folder / name).rename(place / name)
    why = "of the model before" if same else "about another table"
    return [f"What {folder} held {why} is now in {place}: {', '.join(stale)}."]


def _copies(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("*") if each.name.partition(".")[0] in COPIES)


def _is_about(folder: Path, origin: Origin | None) -> bool:
    """Are the results in a folder about the same table, read in the same way? A URL may hold another one each day."""
    try:
        before = Origin.load(folder)
    except FileError:
        return False
    if origin is None or not origin.digest:
        return False
    return (before.digest, before.asked) == (origin.digest, origin.asked)
