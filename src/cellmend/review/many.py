"""Decisions about many cells at once: groups of findings, values of a column, and others like one that was decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cellmend.decisions.decision import RIGHT, WRONG, Decision
from cellmend.errors import DecisionError
from cellmend.review.flagged import Flag
from cellmend.review.ledger import Cell, Step
from cellmend.review.limits import matching
from cellmend.review.review import Review, UnusualError
from cellmend.review.rows import Filter, texts_of

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Pick:
    """A line of a group, or all its lines, without the cells of some rows; places as `Review.groups` gives them."""

    group: int
    line: int | None = None
    besides: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Edit:
    """Cells of a column that hold one of these values shall hold another one."""

    column: str
    values: tuple[str | None, ...]
    repair: str


@dataclass(frozen=True)
class Rewriting:
    """What is done to each value of a column; the result goes into the column, or where another one is empty."""

    column: str
    find: str  # "": take away units, and what only says that a value is missing
    put: str = ""
    is_pattern: bool = False
    into: str = ""  # another column; "": the same


# ---------------------------------------------------------------- groups of findings


def picked(review: Review, picks: Iterable[Pick], wanted: Filter, verdict: str) -> list[Flag]:
    """The open cells of groups and lines; where repairs are accepted, those that have one."""
    groups = {each.place: each for each in review.groups(wanted)}
    found: dict[Cell, Flag] = {}
    for pick in picks:
        lines = groups[pick.group].lines if pick.group in groups else ()
        for line in lines:
            if pick.line in (None, line.place):
                found |= {each.cell: each for each in line.cells if each.row not in pick.besides}
    return [each for each in found.values() if verdict == RIGHT or each.repair is not None]


def decide_groups(review: Review, picks: Iterable[Pick], wanted: Filter, verdict: str, count: int) -> Step | None:
    """Accept the repairs, or keep the values, of all these cells, as one step; `count` is how many were shown."""
    with review.lock:
        cells = picked(review, picks, wanted, verdict)
        _check_count(len(cells), count)
        repairs = [each.repair if verdict == WRONG else None for each in cells]
        return _decide(review, [each.cell for each in cells], verdict, repairs)


def edit_line(review: Review, pick: Pick, wanted: Filter, repair: str, *, count: int, insist: bool) -> Step | None:
    """Give all cells of a line another repair."""
    with review.lock:
        cells = [each.cell for each in picked(review, [pick], wanted, RIGHT)]
        _check_count(len(cells), count)
        for name in {name for _, name in cells}:
            _check_target(review, name, repair, insist=insist)
        return _decide(review, cells, WRONG, [repair] * len(cells))


# ---------------------------------------------------------------- values of a column


def rows_of(review: Review, edit: Edit) -> Rows:
    """The rows in which a column holds one of these values now."""
    return review.values(edit.column).rows([each for each in edit.values if each != edit.repair])


def edit_values(review: Review, edits: Sequence[Edit], *, count: int, insist: bool) -> Step | None:
    """Replace values wherever they stand, but where a person called them right, as one step; `count` is how many cells
    were shown to hold them."""
    with review.lock:
        held = [rows_of(review, edit) for edit in edits]
        _check_count(sum(map(len, held)), count)
        for edit in edits:
            _check_target(review, edit.column, edit.repair, insist=insist)
        rows = [_not_kept(review, edit.column, own) for edit, own in zip(edits, held, strict=True)]
        cells = [(row, edit.column) for edit, own in zip(edits, rows, strict=True) for row in own.tolist()]
        repairs = [edit.repair for edit, own in zip(edits, rows, strict=True) for _ in own]
        return _decide(review, cells, WRONG, repairs)


def same_as(review: Review, cell: Cell) -> list[Cell]:
    """The other cells of the column with the value of this one, of which nothing is decided; for a value that was kept
    those that are flagged."""
    row, name = cell
    decision = review.ledger.of(cell)
    if decision is None:
        return []
    rows = review.original(name).rows([review.text(cell)])
    others = [(each, name) for each in rows.tolist() if each != row and review.ledger.of((each, name)) is None]
    return others if decision.verdict == WRONG else [each for each in others if review.flagged.get(each) is not None]


def decide_same(review: Review, cell: Cell, count: int) -> Step | None:
    """Decide about the others of the same value as about this cell."""
    with review.lock:
        cells, decision = same_as(review, cell), review.ledger.of(cell)
        _check_count(len(cells), count)
        repair = decision.repair if decision else None
        return None if decision is None else _decide(review, cells, decision.verdict, [repair] * len(cells))


# ---------------------------------------------------------------- spellings


@dataclass(frozen=True)
class Spelling:
    """A value of a cluster, and why it belongs there."""

    value: str
    count: int
    why: str


@dataclass(frozen=True)
class Cluster:
    """Values that may be spellings of the same thing, and what they should be."""

    target: str
    spellings: list[Spelling]  # the most common first; the target too, if it stands in a cell


def spellings(review: Review, name: str) -> list[Cluster]:
    """Clusters of a column of text by what it holds now, those with the most cells to change first."""
    values, repairs, found = review.values(name), review.flagged.proposals.get(name, {}), []
    for pairs in review.similar(name):
        whys = {pairs[0].known: "", **{each.seen: each.why for each in pairs}}
        places = np.array([place for place in whys if values.counts[place]], dtype=np.int64)
        if len(places) > 1:
            texts = [text or "" for text in values.listed(places)]
            own = zip(texts, values.counts[places].tolist(), places.tolist(), strict=True)
            proposed = next((repairs[text] for text in texts if text in repairs), texts[0])
            found.append(Cluster(proposed, [Spelling(text, count, whys[place]) for text, count, place in own]))
    return sorted(found, key=lambda each: -sum(own.count for own in each.spellings if own.value != each.target))


# ---------------------------------------------------------------- one rewriting of all values


@dataclass(frozen=True)
class Rewritten:
    """What a rewriting would do: the rows, and for each of them its new text."""

    rows: Rows
    olds: list[str]  # of the different values that are rewritten, the most common first
    news: list[str]
    counts: list[int]
    which: NDArray[np.int64]  # (rows,) places among the different values


def rewritten(review: Review, asked: Rewriting) -> Rewritten:
    """What a rewriting would do."""
    for name in filter(None, (asked.column, asked.into)):
        review.check_column(name)
    values = review.values(asked.column)
    texts = pc.fill_null(values.texts, "")
    new = _plain(review, asked.column, texts) if asked.find == "" else _replaced(texts, asked)
    is_changed = pc.not_equal(texts, new).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(is_changed[values.places])
    if asked.into:
        target = review.values(asked.into)
        rows = np.intersect1d(rows, target.rows([None, ""]))
    rows = _not_kept(review, asked.into or asked.column, rows)
    counts = np.bincount(values.places[rows], minlength=len(texts))
    changed = np.flatnonzero(counts)
    changed = changed[np.argsort(-counts[changed], kind="stable")]
    where = np.zeros(len(texts), dtype=np.int64)
    where[changed] = np.arange(len(changed))
    olds, news = (each.take(pa.array(changed)).to_pylist() for each in (texts, new))
    return Rewritten(rows, olds, news, counts[changed].tolist(), where[values.places[rows]])


def rewrite(review: Review, asked: Rewriting, *, count: int) -> Step | None:
    """Rewrite all values of a column, as one step; `count` is how many cells were shown, with what they become."""
    with review.lock:
        found, name = rewritten(review, asked), asked.into or asked.column
        _check_count(len(found.rows), count)
        for text in dict.fromkeys(found.news):
            review.check_text(name, text, insist=True)
        repairs = [found.news[place] for place in found.which.tolist()]
        return _decide(review, [(row, name) for row in found.rows.tolist()], WRONG, repairs)


def _replaced(texts: pa.StringArray, asked: Rewriting) -> pa.StringArray:
    if not asked.is_pattern:
        return pc.replace_substring(texts, asked.find, asked.put)
    matching(texts, asked.find, asked.find)  # or the pattern cannot be read
    try:
        return pc.replace_substring_regex(texts, asked.find, asked.put)
    except pa.ArrowInvalid:
        raise DecisionError(
            rf"What is put in may name groups of the pattern as \1, \2 and so on; {asked.put!r} names others."
        ) from None


def _plain(review: Review, name: str, texts: pa.StringArray) -> pa.StringArray:
    """Texts without their units, and "" for those that only say that a value is missing."""
    notation = review.notation(name)
    if notation is None:
        return texts
    plain = ["" if notation.is_missing(each) else notation.without_unit(each) for each in texts.to_pylist()]
    return pa.array(plain, pa.string())


# ---------------------------------------------------------------- in common


def _not_kept(review: Review, name: str, rows: Rows) -> Rows:
    """Without the rows in which a person called the value of the column right."""
    kept = [each.row for each in review.ledger.standing if each.column == name and each.verdict == RIGHT]
    return np.setdiff1d(rows, kept) if kept else rows


def _check_target(review: Review, name: str, text: str, *, insist: bool) -> None:
    if text == "" and not insist:
        raise UnusualError(f"Nothing is typed. Save these cells of {name} as empty?")
    review.check_text(name, text, insist=insist)


def _check_count(found: int, shown: int) -> None:
    if found != shown:
        raise DecisionError(f"{shown:,} cells were shown and it would be {found:,} now; look at them again.")


def _decide(review: Review, cells: Sequence[Cell], verdict: str, repairs: Sequence[str | None]) -> Step | None:
    """Let this stand for all cells, as one step; to repair a cell as what it held at first is to call that right."""
    if not cells:
        return None
    held = texts_of(review.table, cells)
    decisions = [
        Decision(*cell, old, RIGHT)
        if verdict == RIGHT or repair == (old or "")
        else Decision(*cell, old, WRONG, repair, _is_edited(review, cell, repair))
        for cell, old, repair in zip(cells, held, repairs, strict=True)
    ]
    return review.ledger.decide_all(decisions, _named(cells))


def _is_edited(review: Review, cell: Cell, repair: str | None) -> bool | None:
    flag = review.flagged.get(cell)
    return None if repair is None else flag is None or flag.repair != repair


def _named(cells: Sequence[Cell]) -> str:
    """What a step is about, for a sentence."""
    names = list(dict.fromkeys(name for _, name in cells))
    many = f"{len(cells):,} cell{'' if len(cells) == 1 else 's'}"
    return f"{many} of {names[0]}" if len(names) == 1 else f"{many} of {len(names)} columns"
