"""What the page asks and does, as plain values in and out: each question and each deed is one small function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cellmend.decisions.decision import RIGHT, VERDICTS, Decision
from cellmend.errors import DecisionError
from cellmend.review.flagged import LIKENESSES, Asked, Flag
from cellmend.review.ledger import Cell, Step, in_words, state_of
from cellmend.review.limits import Limits
from cellmend.review.review import Review
from cellmend.review.rows import MOST_ROWS, Filter, Rows, marks, texts
from cellmend.review.teaching import Levels
from cellmend.review.witnesses import Witness

if TYPE_CHECKING:
    from cellmend.review.rulebook import Rule

MOST_ASKED = 100  # cells of the queue sent at once
MOST_LISTED = 500  # cells of a bulk decision sent at once

Answer = Callable[[Review, Mapping[str, Any]], Any]  # what is asked, as plain values -> what is answered


# ---------------------------------------------------------------- questions


def state(review: Review, asked: Mapping[str, Any]) -> Any:
    """What holds for the whole table."""
    counts = review.flagged.counts
    columns = [{"name": name, "flagged": counts.get(name, 0)} for name in review.table.column_names]
    return {
        "table": review.results.source.name,
        "rows": review.table.num_rows,
        "columns": columns,
        "causes": review.flagged.causes,
        "flagged": len(review.flagged.flags),
        "rules": [{"rule": each.rule, "broken": each.broken} for each in listed_rules(review) if each.broken],
        **pulse(review, asked),
    }


def pulse(review: Review, asked: Mapping[str, Any]) -> Any:
    """What may have changed since the page last asked, in another tab or by learning."""
    return {
        "version": review.version,
        "tally": review.tally(),
        "undo": _last_step(review),
        "learning": _progress(review),
        "questions": _open_questions(review),
        "is_read": review.teacher.known is not None,
    }


def _last_step(review: Review) -> Any:
    """What would be undone next: its words, whether it is about cells or columns, and the first of the cells."""
    last = review.ledger.last
    if last is None:
        return None
    where = [{"row": row, "column": column} for row, column in islice(last.before, 1)]
    about = "cells" if where else "columns"
    return {"step": last.number, "what": last.what, "about": about, "cell": where[0] if where else None}


def _open_questions(review: Review) -> Any:
    """How many questions the model has, and for how many other cells their answers would speak."""
    still_open = [asked for cell, asked in review.questions.items() if review.ledger.of(cell) is None]
    return {"count": len(still_open), "speaks_for": sum(asked.speaks_for for asked in still_open)}


def listed_rules(review: Review) -> list[Rule]:
    """The rules of the table; none until they were looked at."""
    return review.rules.listed(review.wishes) if review.rules else []


def _progress(review: Review) -> Any:
    """Without the list of changes, which is long and asked for once."""
    told = asdict(review.teacher.progress)
    changes = told.pop("changes")
    return told | {"counts": changes["counts"] if changes else None}


def queue(review: Review, asked: Mapping[str, Any]) -> Any:
    """The next cells to decide, each with all that is told of it; they are at least as new as the version says."""
    most = min(whole(asked, "count", 20), MOST_ASKED)
    version = review.version
    following = review.queue(2 * most, filter_of(asked), of_questions=asked.get("questions") == "true")
    return {"cells": cards(review, following[:most], soon=following[most:]), "version": version}


def cell(review: Review, asked: Mapping[str, Any]) -> Any:
    """All that is told of one cell, and the row around it."""
    return cards(review, [review.describe(cell_of(asked))])[0]


def cards(review: Review, cells: Sequence[Asked], *, soon: Sequence[Asked] = ()) -> list[Any]:
    """All that is told of each of these cells; `soon` are cells that are asked for next."""
    flags = [each.flag for each in cells]
    rows = texts(review.table, np.array([flag.row for flag in flags], dtype=np.int64))
    likely = review.likely([flag.cell for flag in flags], soon=[each.flag.cell for each in soon])
    return [_card(review, *each) for each in zip(cells, rows, likely, strict=True)]


def _card(review: Review, asked: Asked, row: Sequence[str | None], likely: Levels) -> Any:
    flag = asked.flag
    here = marks(np.array([flag.row]), review.table, review.flagged, review.ledger)
    drawn, heard = review.picture(flag.cell, flag.repair), review.witnesses(flag)
    return {
        **asdict(asked),
        "text": review.text(flag.cell),
        "decision": told(review.ledger.of(flag.cell), flag),
        "row": row,
        "marks": [asdict(mark) for mark in here],
        "alike": review.count_alike(flag) if review.flagged.get(flag.cell) else None,
        "likely": likely,
        "picture": None if drawn is None else asdict(drawn),
        "line": _line(review, flag.row),
        "name": review.name(flag.row),
        "witnesses": None if heard is None else [_witness(review, each) for each in heard],
    }


def _witness(review: Review, witness: Witness) -> Any:
    rows = [asdict(each) | {"line": _line(review, each.row)} for each in witness.rows]
    return {**asdict(witness), "rows": rows}


def _line(review: Review, row: int) -> int | None:
    """The line of the file in which a row starts, if it has lines."""
    return None if review.lines is None else int(review.lines[row])


def told(decision: Decision | None, flag: Flag | None) -> Any:
    """A decision as the page shows it."""
    if decision is None:
        return None
    proposed = flag.repair if flag else None
    return {**asdict(decision), "state": state_of(decision, proposed), "words": in_words(decision)}


def rows(review: Review, asked: Mapping[str, Any]) -> Any:
    """Some rows of the table, or of those that a filter keeps."""
    kept, start = review.rows(filter_of(asked)), whole(asked, "start", 0)
    total = review.table.num_rows if kept is None else len(kept)
    stop = min(start + min(whole(asked, "count", 50), MOST_ROWS), total)
    shown = np.arange(start, stop) if kept is None else kept[start:stop]
    found = marks(shown, review.table, review.flagged, review.ledger)
    return {
        "total": total,
        "place": _place(kept, whole(asked, "find"), total) if "find" in asked else None,
        "start": start,
        "rows": shown.tolist(),
        "texts": texts(review.table, shown),
        "marks": [asdict(mark) for mark in found],
        "version": review.version,
    }


def _place(kept: Rows | None, row: int, total: int) -> int | None:
    """At which place of the rows that a filter keeps this one is; None if it is not among them."""
    place = row if kept is None else int(np.searchsorted(kept, row))
    return place if place < total and (kept is None or kept[place] == row) else None


def following(review: Review, asked: Mapping[str, Any]) -> Any:
    """The next flagged or decided cell in the table, and at which place it is shown."""
    wanted = filter_of(asked)
    found = review.next_cell(cell_of(asked, row=-1), wanted, backwards=asked.get("backwards") == "true")
    if found is None:
        return {"cell": None}
    kept = review.rows(wanted)
    place = found[0] if kept is None else int(np.searchsorted(kept, found[0]))
    return {"cell": {"row": found[0], "column": found[1]}, "place": place}


def alike(review: Review, asked: Mapping[str, Any]) -> Any:
    """The cells that a bulk decision would decide, to be looked at before."""
    flag = review.describe(cell_of(asked)).flag
    cells = review.bulk(flag, likeness(asked), verdict_of(asked))
    start = whole(asked, "start", 0)
    return {"count": len(cells), "cells": [asdict(each) for each in cells[start : start + MOST_LISTED]]}


def columns(review: Review, asked: Mapping[str, Any]) -> Any:
    """What each column is, and what people said of it."""
    known, wishes, counts = review.teacher.known, review.wishes, review.flagged.counts
    if known is None:
        return {"columns": None}
    listed = [
        {
            "name": each.name,
            "kind": wishes.kinds.get(each.name, each.kind),
            "guessed": each.kind,
            "why": each.reason,
            "flagged": counts.get(each.name, 0),
            "limits": asdict(wishes.limits.get(each.name, Limits())),
        }
        for each in known.schema
    ]
    return {"columns": listed}


# ---------------------------------------------------------------- deeds


def decide(review: Review, asked: Mapping[str, Any]) -> Any:
    """Decide about one cell as it was shown: keep its value, or give it a repair."""
    own, seen = cell_of(asked), seen_of(asked)
    review.check_shown(own, text_of(asked, "value"))
    if verdict_of(asked) == RIGHT:
        step = review.keep(own, seen=seen)
    else:
        repair, edited = text_of(asked, "repair"), asked.get("edited")
        if not isinstance(edited, bool | None):
            raise DecisionError(f"Whether a repair was edited is true or false; it is {edited!r}.")
        step = review.accept(own, repair, seen=seen, insist=asked.get("insist") is True, edited=edited)
    return done(review, step) | {"decision": told(review.ledger.of(own), review.flagged.get(own))}


def bulk(review: Review, asked: Mapping[str, Any]) -> Any:
    """Decide about all open cells that are alike."""
    count = whole(asked, "count", 0)
    return done(review, review.decide_alike(cell_of(asked), likeness(asked), verdict_of(asked), count))


def undo(review: Review, asked: Mapping[str, Any]) -> Any:
    """Take back the last step."""
    return {"undone": review.undo(whole(asked, "step", 0)), **pulse(review, asked)}


def withdraw(review: Review, asked: Mapping[str, Any]) -> Any:
    """Take back what was decided about a cell."""
    own = cell_of(asked)
    review.check_shown(own, text_of(asked, "value"))
    return done(review, review.withdraw(own, seen=seen_of(asked)))


def skip(review: Review, asked: Mapping[str, Any]) -> Any:
    """Ask about a cell later."""
    review.skip(cell_of(asked))
    return pulse(review, asked)


def set_column(review: Review, asked: Mapping[str, Any]) -> Any:
    """Say something of a whole column."""
    name = str(asked.get("column"))
    if "limits" in asked:
        step = review.set_limits(name, Limits.of(mapping(asked["limits"])))
    else:
        step = review.set_kind(name, asked.get("kind"))
    return done(review, step) | columns(review, asked)


def export(review: Review, asked: Mapping[str, Any]) -> Any:
    """Write the reviewed table and the patch."""
    fixes, results = review.export(), review.results
    names = {what: path.name for what, path in results.exported.items()}
    return {"fixes": len(fixes), "folder": str(results.folder.absolute()), "files": names}


def done(review: Review, step: Step | None) -> dict[str, Any]:
    """What came of a deed, and the number of the step by which it is undone."""
    return {"cells": len(step.before) if step else 0, "step": step and step.number, **pulse(review, {})}


ASKING = (state, pulse, queue, cell, rows, following, alike, columns)
QUESTIONS: dict[str, Answer] = {each.__name__: each for each in ASKING}
DOING = (decide, bulk, undo, withdraw, skip, export)
DEEDS: dict[str, Answer] = {each.__name__: each for each in DOING} | {"column": set_column}


# ---------------------------------------------------------------- what is asked, checked


def cell_of(asked: Mapping[str, Any], row: int | None = None) -> Cell:
    """Which cell is meant; `row` if none is."""
    return whole(asked, "row", row), str(asked.get("column", ""))


def whole(asked: Mapping[str, Any], name: str, otherwise: int | None = None) -> int:
    """A whole number from 0."""
    given = asked.get(name, otherwise)
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 16:
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or (given < 0 and given != otherwise):
        raise DecisionError(f"{name} must be a whole number from 0; it is {given!r}.")
    return given


def likeness(asked: Mapping[str, Any]) -> str:
    """By what cells are alike."""
    if asked.get("by") not in LIKENESSES:
        raise DecisionError(f"Cells are alike by {' or '.join(LIKENESSES)}; not by {asked.get('by')!r}.")
    return str(asked["by"])


def text_of(asked: Mapping[str, Any], name: str) -> str | None:
    """The text of a cell; None for one that is missing or not known."""
    given = asked.get(name)
    if not isinstance(given, str | None):
        raise DecisionError(f"A {name} must be a text; it is {given!r}.")
    return given


def seen_of(asked: Mapping[str, Any]) -> Decision | None:
    """The decision that was shown to stand for the cell."""
    seen = asked.get("seen")
    if seen is None:
        return None
    names = [each.name for each in fields(Decision) if each.name in mapping(seen)]
    return Decision.of({name: seen[name] for name in names})


def verdict_of(asked: Mapping[str, Any]) -> str:
    """Right or wrong."""
    if asked.get("verdict") not in VERDICTS[:2]:
        raise DecisionError(f"A verdict is right or wrong; it cannot be {asked.get('verdict')!r}.")
    return str(asked["verdict"])


def filter_of(asked: Mapping[str, Any]) -> Filter:
    """Which rows or cells are wanted."""
    words = {name: str(asked.get(name, "")) for name in ("cause", "state", "text", "rule", "within", "holds")}
    try:
        least = float(asked.get("least") or 0)
    except ValueError:
        raise DecisionError(f"The least suspicion must be a number; it is {asked.get('least')!r}.") from None
    return Filter(column=str(asked.get("only", "")), least=least, **words)


def mapping(given: Any) -> Mapping[str, Any]:
    """What must be a JSON object."""
    if not isinstance(given, dict):
        raise DecisionError("A request must be a JSON object.")
    return given
