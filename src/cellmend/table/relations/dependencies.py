"""Dependencies: a column, or two, that decide another one nearly always, as a code decides a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from cellmend.table.readtable import LEAST_TOLD, ReadTable, Suspect
from cellmend.table.relations.breaks import Breaks
from cellmend.table.relations.coding import NONE, Codes, Value, codes_among
from cellmend.table.relations.groups import wrong_shares
from cellmend.table.relations.weighing import Link, chance_of, weigh
from cellmend.table.values import Floats, shortened


@dataclass(frozen=True)
class Dependency:
    """Rows that agree in `determinants` agree in `dependent`, but for errors."""

    kind: ClassVar[str] = "dependency"

    determinants: tuple[str, ...]
    dependent: str
    known: tuple[tuple[Value, ...], ...]  # of each determinant the values that it has
    values: tuple[Value, ...]  # of the dependent column
    written: tuple[str, ...]  # (V,) the same as the column writes them
    errors: tuple[float, ...]  # of each of `columns` the share of cells that is wrong
    support: float
    groups: Codes  # (G, determinants) which of the known values a group has, sorted
    top: Codes  # (G,) place among `values` of what the group says
    sure: Floats  # (G,) that the group says one thing, and that it is this
    kept: Codes  # (G,) rows that say so
    sizes: Codes  # (G,) rows
    often: Codes  # (V,) rows with each of the values

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.determinants, self.dependent)

    def breaks(self, table: ReadTable) -> Breaks:
        """The rows that break it."""
        link = self.link(table)
        rows = np.flatnonzero(link.broken)
        return Breaks(rows, np.zeros(len(rows)), partial(self._say, table, link.group))

    def _say(self, table: ReadTable, groups: Codes, row: int) -> str:
        """What a row has, and what its group says."""
        here = shortened(table.cell(row, self.dependent))
        return f"{self.reason(table, groups[row], row, self.dependent)}, but here it is {here}"

    def words(self) -> str:
        return f"{' and '.join(self.determinants)} decide{'s' * (len(self.determinants) == 1)} {self.dependent}"

    def link(self, table: ReadTable) -> Link:
        """Where it holds and where it is broken."""
        group, value = self._group(table), codes_among(table, self.dependent, self.values)
        known = (group >= 0) & (value != NONE)
        places = tuple(table.names.index(name) for name in self.columns)
        top = self.top[group]
        holds, broken, usual = known & (value == top), known & (value != top), (self.often / self.often.sum())[top]
        return Link(places, holds, broken, 1 - self.sure[group], usual, top, group)

    def _group(self, table: ReadTable) -> Codes:
        """The group of each row, (N,); NONE if it has none."""
        wide = 0 * self.groups[:, 0]
        own = np.zeros(table.rows, dtype=np.int64)
        missing = np.zeros(table.rows, dtype=bool)
        for place, name in enumerate(self.determinants):
            codes = codes_among(table, name, self.known[place])
            missing |= codes < 0
            wide, own = (each * len(self.known[place]) + c for each, c in ((wide, self.groups[:, place]), (own, codes)))
        found = np.minimum(np.searchsorted(wide, own), len(wide) - 1)
        return np.where(~missing & (wide[found] == own), found, NONE)

    def odds(self, table: ReadTable) -> list[Floats]:
        """For each of `columns`, how much likelier its cell is to stand where it is wrong than where it is right."""
        found = []
        for place, name in enumerate(self.determinants):
            often = np.maximum(np.bincount(self.groups[:, place], self.sizes, minlength=len(self.known[place])), 1)
            found.append(_odds(often, codes_among(table, name, self.known[place])))
        return [*found, _odds(self.often, codes_among(table, self.dependent, self.values))]

    def reason(self, table: ReadTable, group: int, row: int, what: str = "it") -> str:
        """Why a cell of the dependent column looks wrong in a row of this group."""
        given = " and ".join(f"{name} {shortened(table.cell(row, name))}" for name in self.determinants)
        says = shortened(self.written[self.top[group]])
        return f"for {given} {what} is {says} in {self.kept[group]} of {self.sizes[group]} rows"


def _odds(often: Codes, codes: Codes) -> Floats:
    """How much likelier each cell is to be a wrong one than a right one, by how often its value stands, (N,)."""
    usual = often / often.sum()
    odds = np.append(wrong_shares(usual) / usual, 1.0)
    return np.where(codes >= 0, odds[codes], np.where(codes == NONE, 1.0, odds.max()))


# ---------------------------------------------------------------- cells that break them


def dependency_suspects(dependencies: Sequence[Dependency], table: ReadTable) -> list[Suspect]:
    """The cells that are probably wrong by all that these dependencies say of their rows together."""
    if not dependencies:
        return []
    broken = Broken.of(dependencies, table)
    errors = {name: e for each in dependencies for name, e in zip(each.columns, each.errors, strict=True)}
    suspicion = broken.suspicion(np.array([errors[table.names[column]] for column in broken.columns]))
    suspects = []
    for row, place in zip(*np.nonzero(suspicion >= LEAST_TOLD), strict=True):
        own, column = int(broken.rows[row]), broken.columns[place]
        meant, why = _told(dependencies, broken, suspicion[row], (int(row), int(place)), table)
        chance, reason = round(float(suspicion[row, place]), 6), f"{table.said(column, own)}; {why}"
        suspects.append(Suspect(own, column, chance, meant, reason, Dependency.kind))
    return suspects


@dataclass(frozen=True)
class Broken:
    """The rows of a table in which a dependency is broken."""

    rows: Codes  # (n,) places in the table
    columns: list[int]  # (C,) places in the table
    links: list[Link]  # of these rows, which name columns by their places in `columns`
    odds: Floats  # (n, C) how much likelier each cell is to stand where it is wrong than where it is right

    @classmethod
    def of(cls, dependencies: Sequence[Dependency], table: ReadTable) -> Broken:
        """From all rows, by one dependency or more."""
        links = [each.link(table) for each in dependencies]
        columns = sorted({column for link in links for column in link.columns})
        rows = np.flatnonzero(np.logical_or.reduce([link.broken for link in links]))
        own, odds = {column: place for place, column in enumerate(columns)}, np.ones((len(rows), len(columns)))
        for each, link in zip(dependencies, links, strict=True):
            for column, cells in zip(link.columns, each.odds(table), strict=True):
                odds[:, own[column]] = cells[rows]
        near = [replace(link.of(rows), columns=tuple(own[column] for column in link.columns)) for link in links]
        rare = [odds[:, link.columns].max(axis=1) for link in near]  # rare values are wrong more often, or exceptions
        return cls(rows, columns, [link.rarer(often) for link, often in zip(near, rare, strict=True)], odds)

    def suspicion(self, errors: Floats) -> Floats:
        """Of each cell, (n, C), given the share of cells that is wrong in each column, (C,)."""
        if not len(self.rows):
            return np.zeros_like(self.odds)
        return chance_of(weigh(self.links, np.log(errors / (1 - errors) * self.odds)))

    def some(self, most: int) -> Broken:
        """At most so many of the rows, evenly chosen."""
        chosen = np.linspace(0, len(self.rows) - 1, min(most, len(self.rows)), dtype=np.int64)
        return Broken(self.rows[chosen], self.columns, [link.of(chosen) for link in self.links], self.odds[chosen])


def _told(
    dependencies: Sequence[Dependency], broken: Broken, suspicion: Floats, cell: tuple[int, int], table: ReadTable
) -> tuple[tuple[str, ...], str]:
    """What was probably meant in a cell, and why, by the broken dependency that is surest of it.

    `suspicion` is that of all cells of the row, (C,); `cell` are the places of row and column among what is broken.
    """
    (at, place), best, trust = cell, None, -1.0
    for each, link in zip(dependencies, broken.links, strict=True):
        if link.broken[at] and place in link.columns:
            others = [other for other in link.columns if other != place]
            right = float((1 - suspicion[others]).prod() * (1 - link.exception[at]))
            right += float(link.columns[-1] == place)  # only these say what was meant
            if right > trust:
                best, trust = (each, link), right
    if best is None:
        return (), "the rest of the row does not go with it"
    (each, link), row = best, int(broken.rows[at])
    says = each.written[link.top[at]]
    if link.columns[-1] == place:
        return (says,), each.reason(table, link.group[at], row)
    return (), f"{each.dependent} of such rows is {shortened(says)}, not {shortened(table.cell(row, each.dependent))}"
