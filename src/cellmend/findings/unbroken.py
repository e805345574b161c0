"""Repairs that break no rule: a row that kept a dependency keeps it, and what stands once goes on to stand once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cellmend.findings.finding import Finding
from cellmend.posterior.known import Coded
from cellmend.table.causes.named import DECIDED
from cellmend.table.frames import read_frame
from cellmend.table.readtable import DOUBTFUL, ReadTable
from cellmend.table.relations.base import Relation
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.keys import Key
from cellmend.table.values import Bools, Ints, plain, shortened

Repairs = Mapping[str, Mapping[int, Any]]  # by column and row


def unbroken(
    found: Sequence[Finding], table: ReadTable, relations: Iterable[Relation], identifiers: Iterable[str]
) -> list[Finding]:
    """The findings without the repairs by which a row breaks a dependency that it kept, or a value of a key
    or an identifier, of which each stood once, stands twice. Repairs that a person gave stay."""
    known = [each for each in relations if set(each.columns) <= set(table.names)]  # an array has no names
    dependencies = [each for each in known if isinstance(each, Dependency)]
    unique = {each.column for each in known if isinstance(each, Key)} | {*identifiers} & {*table.names}
    kept, undecided, reading = list(found), True, Reading(table)
    while undecided:  # where a repair is left out, another one may break what both of them kept
        repaired = Repaired(table, _repairs(kept), reading)
        why = dict(_breaking(repaired, dependencies, unique))
        broken = [at for at, each in enumerate(kept) if (each.row, each.column) in why and _may_go(each)]
        for at in broken:
            each = kept[at]
            said = f"{each.reason}. Abstained: {shortened(each.repair)} would break that {why[each.row, each.column]}"
            kept[at] = replace(each, repair=None, reason=said)
        undecided = bool(broken)
    return kept


def _may_go(finding: Finding) -> bool:
    return finding.repair is not None and finding.cause != DECIDED


def _repairs(found: Sequence[Finding]) -> Repairs:
    repairs = dict[str, dict[int, Any]]()
    for each in found:
        if each.repair is not None:
            repairs.setdefault(each.column, {})[each.row] = each.repair
    return repairs


class Reading:
    """What repairs say, as a table is understood; each is read once."""

    def __init__(self, table: ReadTable) -> None:
        self.table = table
        self._known = dict[tuple[str, str, Any], Any]()

    def __call__(self, name: str, repair: Any) -> Any:
        key = name, type(repair).__name__, repair
        if key not in self._known:
            self._known[key] = _understood(self.table, name, repair)
        return self._known[key]


class Repaired:
    """A table and its repairs."""

    def __init__(self, table: ReadTable, repairs: Repairs, reading: Reading) -> None:
        self.table, self.repairs, self.reading = table, repairs, reading
        self.rows = np.unique([row for made in repairs.values() for row in made]).astype(np.int64)  # (n,) repaired ones
        self._codes = dict[str, tuple[Ints, Ints]]()

    @cached_property
    def before_and_after(self) -> tuple[ReadTable, ReadTable]:
        """The repaired rows, as they were and as they are, (n,) each."""
        chosen, understood = pa.array(self.rows), self.table.understood
        before = understood.take(chosen)
        after, places = before, {row: at for at, row in enumerate(self.rows.tolist())}
        for name, made in self.repairs.items():
            held = plain(before[name])
            cells = held.to_pylist()
            for row, repair in made.items():
                cells[places[row]] = self.reading(name, repair)
            after = after.set_column(self.table.names.index(name), name, pa.array(cells, held.type))
        frame = read_frame(self.table.arrow.take(chosen))
        one, two = (ReadTable(frame, each, self.table.notations) for each in (before, after))
        return one, two

    def in_some(self, names: Iterable[str]) -> Bools:
        """Which of the repaired rows are repaired in one of these columns, (n,)."""
        touched = [row for name in names for row in self.repairs.get(name, ())]
        return np.isin(self.rows, np.array(touched, dtype=np.int64))

    def codes(self, name: str) -> tuple[Ints, Ints]:
        """Which value of a column each row holds, before and after its repairs, (N,) each; -1 for a gap."""
        if name not in self._codes:
            column, made, rows = plain(self.table.understood[name]), self.repairs.get(name, {}), self.table.rows
            new = [self.reading(name, repair) for repair in made.values()]
            both = pa.chunked_array([*column.chunks, pa.array(new, column.type)], column.type)
            codes = Coded.of(both).codes
            before, after = codes[:rows], codes[:rows].copy()
            after[list(made)] = codes[rows:]
            self._codes[name] = before, after
        return self._codes[name]


def _breaking(
    repaired: Repaired, dependencies: Sequence[Dependency], unique: Iterable[str]
) -> Iterator[tuple[tuple[int, str], str]]:
    """Cells whose repairs break a rule, by row and column, and the rule in words."""
    repairs = repaired.repairs
    for each in dependencies:
        touched = repaired.in_some(each.columns)
        if touched.any():
            breaks = _learned_breaks(each, *repaired.before_and_after) | _own_breaks(each, repaired)
            for row in repaired.rows[touched & breaks].tolist():
                yield from (((row, name), each.words()) for name in each.columns if row in repairs.get(name, ()))
    for name in unique:
        if name in repairs:
            before, after = (_alone(codes) for codes in repaired.codes(name))
            if before.all():
                yield from (((row, name), f"every {name} stands once") for row in repairs[name] if not after[row])


def _learned_breaks(rule: Dependency, before: ReadTable, after: ReadTable) -> Bools:
    """Which rows break a rule by the groups that were learned, and did not before, (n,)."""
    was, now = rule.link(before), rule.link(after)
    return now.broken & (now.exception < DOUBTFUL) & ~was.broken


def _own_breaks(rule: Dependency, repaired: Repaired) -> Bools:
    """Which repaired rows no longer agree with the other rows of their group in this table, and did before, (n,)."""
    each = [repaired.codes(name) for name in rule.columns]
    before, after = (np.stack([codes[at] for codes in each], axis=1) for at in (0, 1))
    return (_agree(before) & ~_agree(after))[repaired.rows]


def _agree(codes: Ints) -> Bools:
    """Does each row hold what most rows of its group do, (N,)? So does one that others say nothing of, or a gap."""
    group = np.unique(codes[:, :-1], axis=0, return_inverse=True)[1].reshape(-1)
    both = np.stack([group, codes[:, -1]], axis=1)
    pairs, pair, counts = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    most = np.ones(len(pairs), dtype=np.int64)  # of each group; there are no more groups than pairs
    said = pairs[:, 1] >= 0
    np.maximum.at(most, pairs[said, 0], counts[said])
    return (counts[pair.reshape(-1)] == most[group]) | (codes < 0).any(axis=1)


def _alone(codes: Ints) -> Bools:
    """Does the value of each row stand once, (N,)? So does a gap."""
    often = np.bincount(codes[codes >= 0], minlength=1)
    return (codes < 0) | (often[codes] == 1)


def _understood(table: ReadTable, name: str, repair: Any) -> Any:
    """What a repair says, as the table is understood."""
    notation, type_ = table.notations.get(name), plain(table.understood[name]).type
    held = pa.chunked_array([pa.array([repair if repair != "" else None])])
    cell = (held if notation is None else notation.understand(held))[0].as_py()
    try:
        return pa.scalar(cell, type_).as_py()
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
    ):  # the column cannot hold it: it says nothing
        return None
