"""What the page asks and does about many cells at once, as plain values in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from cellmend.errors import DecisionError
from cellmend.review.answers import Answer, cell_of, done, filter_of, mapping, pulse, verdict_of, whole
from cellmend.review.flagged import Flag
from cellmend.review.groups import OpenGroup, OpenLine
from cellmend.review.many import (
    Edit,
    Pick,
    Rewriting,
    decide_groups,
    decide_same,
    edit_line,
    edit_values,
    rewrite,
    rewritten,
    same_as,
    spellings,
)
from cellmend.review.review import Review
from cellmend.review.rows import texts
from cellmend.table.causes.named import MEANINGS

MOST_GROUPS = 20  # sent at once
FIRST_LINES = 4  # of a group, that are sent with it
MOST_LINES = 50  # lines, cells or values sent at once
MOST_PLAIN = 5000  # different values that are looked through for units without being asked


# ---------------------------------------------------------------- questions


def groups(review: Review, asked: Mapping[str, Any]) -> Any:
    """Some groups of findings with their first lines, and how much there is in all of them."""
    with review.lock:
        version, listing, found = review.version, review.listing, review.groups(filter_of(asked))
    start = whole(asked, "start", 0)
    return {
        "total": len(found),
        "cells": sum(len(each.cells) for each in found),
        "repaired": sum(each.repaired for each in found),
        "start": start,
        "groups": [_group(each) for each in found[start : start + MOST_GROUPS]],
        "listing": listing,
        "version": version,
    }


def lines(review: Review, asked: Mapping[str, Any]) -> Any:
    """More lines of a group."""
    own, start = _group_of(review, asked), whole(asked, "start", 0)
    found = [] if own is None else own.lines
    return {"total": len(found), "lines": [_line(each) for each in found[start : start + MOST_LINES]]}


def line(review: Review, asked: Mapping[str, Any]) -> Any:
    """Some cells of a line."""
    own, start = _group_of(review, asked), whole(asked, "start", 0)
    found = [each for each in own.lines if each.place == whole(asked, "line")] if own else []
    cells = found[0].cells if found else []
    return {"total": len(cells), "cells": _in_rows(review, cells[start : start + MOST_LINES])}


def values(review: Review, asked: Mapping[str, Any]) -> Any:
    """Some of the different values of a column, the most common first."""
    name, start = str(asked.get("column")), whole(asked, "start", 0)
    found = review.values(name)
    kept = found.holding(str(asked.get("text", "")))
    shown = kept[start : start + MOST_LINES]
    proposed = review.flagged.proposals.get(name, {})
    plain = Rewriting(name, "")
    return {
        "total": len(kept),
        "different": len(found.common),
        "cells": int(found.counts[kept].sum()),
        "largest": int(found.counts.max()) if len(found.counts) else 0,
        "start": start,
        "values": [
            {"value": value, "count": count, "repair": proposed.get(value or "")}
            for value, count in zip(found.listed(shown), found.counts[shown].tolist(), strict=True)
        ],
        "plain": len(rewritten(review, plain).rows) if len(found.common) <= MOST_PLAIN else 0,
        "version": review.version,
    }


def clusters(review: Review, asked: Mapping[str, Any]) -> Any:
    """Some clusters of spellings of a column."""
    found, start = spellings(review, str(asked.get("column"))), whole(asked, "start", 0)
    shown = [asdict(each) for each in found[start : start + MOST_LINES]]
    return {"total": len(found), "start": start, "clusters": shown, "version": review.version}


def preview(review: Review, asked: Mapping[str, Any]) -> Any:
    """What a rewriting would do."""
    found = rewritten(review, rewriting_of({**asked, "is_pattern": asked.get("is_pattern") == "true"}))
    listed = zip(found.olds[:MOST_LINES], found.news[:MOST_LINES], found.counts[:MOST_LINES], strict=True)
    changes = [{"value": old, "repair": new, "count": count} for old, new, count in listed]
    return {"cells": len(found.rows), "values": len(found.olds), "changes": changes}


def history(review: Review, asked: Mapping[str, Any]) -> Any:
    """Some of the steps, the last one first."""
    steps, start = review.ledger.steps[::-1], whole(asked, "start", 0)
    shown = [{"step": each.number, "what": each.what} for each in steps[start : start + MOST_LINES]]
    return {"total": len(steps), "steps": shown}


def same(review: Review, asked: Mapping[str, Any]) -> Any:
    """How many other cells have the value of one that was decided."""
    own = cell_of(asked)
    return {"count": len(same_as(review, own)), "value": review.text(own)}


def _group(found: OpenGroup) -> Any:
    return {
        "place": found.place,
        "column": found.column,
        "cause": found.cause,
        "meaning": MEANINGS.get(found.cause, ""),
        "cells": len(found.cells),
        "values": len({each.value for each in found.cells}),
        "repaired": found.repaired,
        "total": len(found.lines),
        "lines": [_line(each) for each in found.lines[:FIRST_LINES]],
    }


def _line(found: OpenLine) -> Any:
    return {
        "place": found.place,
        "rewriting": found.rewriting,
        "cells": len(found.cells),
        "repaired": found.repaired,
        "values": found.values,
        "first": _cell(found.cells[0]),
        "suspicion": sum(each.suspicion for each in found.cells) / len(found.cells),
        "repair_probability": sum(each.repair_probability for each in found.cells) / len(found.cells),
    }


def _cell(flag: Flag) -> Any:
    return {"row": flag.row, "value": flag.value, "repair": flag.repair, "reason": flag.reason}


def _in_rows(review: Review, flags: Sequence[Flag]) -> list[Any]:
    """Cells with their whole texts, and the other cells of their rows."""
    rows = texts(review.table, np.array([flag.row for flag in flags], dtype=np.int64))
    return [_in_row(review, flag, row) for flag, row in zip(flags, rows, strict=True)]


def _in_row(review: Review, flag: Flag, row: Sequence[str | None]) -> Any:
    others = [pair for pair in zip(review.table.column_names, row, strict=True) if pair[0] != flag.column]
    return {**_cell(flag), "text": review.text(flag.cell), "others": others}


def _group_of(review: Review, asked: Mapping[str, Any]) -> OpenGroup | None:
    """The group that is meant; None if nothing of it is open any more."""
    place = whole(asked, "group")
    return next((each for each in review.groups(filter_of(asked)) if each.place == place), None)


# ---------------------------------------------------------------- deeds


def group(review: Review, asked: Mapping[str, Any]) -> Any:
    """Accept the repairs, or keep the values, of groups and lines."""
    picks = [pick_of(each) for each in listed(asked, "picks")]
    with review.lock:
        _check_listing(review, asked)
        step = decide_groups(review, picks, filter_of(asked), verdict_of(asked), whole(asked, "count"))
    return done(review, step)


def edit(review: Review, asked: Mapping[str, Any]) -> Any:
    """Give all cells of a line another repair."""
    pick, repair, insist = pick_of(mapping(asked.get("pick"))), text(asked, "repair"), asked.get("insist") is True
    with review.lock:
        _check_listing(review, asked)
        step = edit_line(review, pick, filter_of(asked), repair, count=whole(asked, "count"), insist=insist)
    return done(review, step)


def _check_listing(review: Review, asked: Mapping[str, Any]) -> None:
    """Refuse places of groups that were counted among other findings than those of now."""
    if whole(asked, "listing") != review.listing:
        raise DecisionError("Other cells are flagged by now; look at the groups again.")


def replace(review: Review, asked: Mapping[str, Any]) -> Any:
    """Replace values of columns wherever they stand."""
    edits = [edit_of(each) for each in listed(asked, "edits")]
    return done(review, edit_values(review, edits, count=whole(asked, "count"), insist=asked.get("insist") is True))


def transform(review: Review, asked: Mapping[str, Any]) -> Any:
    """Rewrite all values of a column."""
    return done(review, rewrite(review, rewriting_of(asked), count=whole(asked, "count")))


def back(review: Review, asked: Mapping[str, Any]) -> Any:
    """Undo all steps after one of them."""
    return {"steps": review.go_back(whole(asked, "step"), whole(asked, "last")), **pulse(review, asked)}


def repeat(review: Review, asked: Mapping[str, Any]) -> Any:
    """Decide about the other cells with the same value as about this one."""
    return done(review, decide_same(review, cell_of(asked), whole(asked, "count")))


MANY_QUESTIONS: dict[str, Answer] = {
    each.__name__: each for each in (groups, lines, line, values, clusters, preview, same, history)
}
MANY_DEEDS: dict[str, Answer] = {each.__name__: each for each in (group, edit, replace, transform, repeat, back)}


# ---------------------------------------------------------------- what is asked, checked


def pick_of(asked: Mapping[str, Any]) -> Pick:
    """A group or a line of it, without some rows."""
    number = whole(asked, "line") if asked.get("line") is not None else None
    besides = [whole({"row": each}, "row") for each in asked.get("besides") or ()]
    return Pick(whole(asked, "group"), number, frozenset(besides))


def edit_of(asked: Mapping[str, Any]) -> Edit:
    """Values of a column, and what they should be."""
    found = asked.get("values")
    if not isinstance(found, list) or not all(isinstance(each, str | None) for each in found):
        raise DecisionError(f"The values to replace must be a list of texts; it is {found!r}.")
    return Edit(str(asked.get("column")), tuple(found), text(asked, "repair"))


def rewriting_of(asked: Mapping[str, Any]) -> Rewriting:
    """What is done to all values of a column."""
    find, put, into = (text(asked, name) if name in asked else "" for name in ("find", "put", "into"))
    return Rewriting(str(asked.get("column")), find, put, asked.get("is_pattern") is True, into)


def listed(asked: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """A list of objects."""
    found = asked.get(name)
    if not isinstance(found, list):
        raise DecisionError(f"{name} must be a list; it is {found!r}.")
    return [mapping(each) for each in found]


def text(asked: Mapping[str, Any], name: str) -> str:
    """A text that must be there."""
    found = asked.get(name)
    if not isinstance(found, str):
        raise DecisionError(f"{name} must be a text; it is {found!r}.")
    return found
