"""Dependencies: a column, or two, that decide another one nearly always, as a code decides a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.relations.coding import NONE, Coded, Codes, Value, codes_among
from cellmend.table.relations.groups import Grouped, OneValue, learn_one_value, wrong_shares
from cellmend.table.relations.weighing import Link, weigh
from cellmend.table.values import shortened

Floats = NDArray[np.float64]

FEWEST_ROWS, FEWEST_GROUPS = 10, 2  # rows that share their group with others, and such groups
LEAST_HELD = 0.6  # of those rows, and of the groups, surely have one true value
LEAST_GAIN = 10.0  # log: how much better groups must explain a column than chance, whatever was tried
MOST_BROKEN = 0.6  # of the rows that do not have the column's most usual value may break it
MOST_GROUPS = 20_000  # that are kept, the largest
MOST_ERRORS = 0.4  # of the cells where a group has one true value
LEAST_SUSPICION = 0.3  # that is told
ERROR_ROUNDS = 3  # in which it is learned which columns err
PRIOR_ERRORS, PRIOR_CELLS = 0.02, 50.0  # cells of a column that are wrong, as if so many had been seen
MOST_DETERMINANTS = 5  # that are kept for a column
MOST_PAIRED, GROUP_ROWS = 12, 4  # columns of which two together are tried, and rows for each pair of their values
TRIED_ROWS = 3000  # rows, in whole groups, on which a dependency is tried first


@dataclass(frozen=True)
class Dependency:
    """Rows that agree in `determinants` agree in `dependent`, but for errors."""

    determinants: tuple[str, ...]
    dependent: str
    known: tuple[tuple[Value, ...], ...]  # of each determinant the values that it has
    groups: Codes  # (G, determinants) which of them a group has, sorted
    top: Codes  # (G,) place among `values` of what the group says
    sure: Floats  # (G,) that the group says one thing, and that it is this
    kept: Codes  # (G,) rows that say so
    sizes: Codes  # (G,) rows
    values: tuple[Value, ...]  # of the dependent column
    written: tuple[str, ...]  # (V,) the same as the column writes them
    often: Codes  # (V,) rows with each of them
    errors: tuple[float, ...]  # of each of `columns` the share of cells that is wrong
    support: float
    kind: str = "dependency"

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.determinants, self.dependent)

    def suspects(self, table: ReadTable) -> list[Suspect]:
        return dependency_suspects([self], table)

    def words(self) -> str:
        return f"{' and '.join(self.determinants)} decide{'s' * (len(self.determinants) == 1)} {self.dependent}"

    def link(self, table: ReadTable) -> Link:
        """Where it holds and where it is broken."""
        group, value = self._group(table), codes_among(table, self.dependent, self.values)
        known = (group >= 0) & (value != NONE)
        places = tuple(table.names.index(name) for name in self.columns)
        usual = self.often / self.often.sum()
        top = self.top[group]
        return Link(
            places, known & (value == top), known & (value != top), 1 - self.sure[group], usual[top], top, group
        )

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

    def reason(self, group: int, row: Sequence[str]) -> str:
        """Why a cell of the dependent column looks wrong, where the determinants say what `row` has."""
        given = " and ".join(f"{name} {shortened(value)}" for name, value in zip(self.determinants, row, strict=True))
        says = shortened(self.written[self.top[group]])
        return f"for {given} it is {says} in {self.kept[group]} of {self.sizes[group]} rows"

    def to_json(self) -> dict[str, Any]:
        return {
            "determinants": list(self.determinants),
            "dependent": self.dependent,
            "known": [list(each) for each in self.known],
            "values": list(self.values),
            "written": list(self.written),
            "errors": list(self.errors),
            "support": self.support,
        } | {name: getattr(self, name).tolist() for name in ARRAYS}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Dependency:
        texts = {name: tuple(entry[name]) for name in ("determinants", "values", "written", "errors")}
        arrays = {name: np.array(entry[name], dtype=type_) for name, type_ in ARRAYS.items()}
        known = tuple(tuple(each) for each in entry["known"])
        return cls(dependent=entry["dependent"], known=known, support=entry["support"], **texts, **arrays)


ARRAYS: dict[str, type] = {"groups": int, "top": int, "sure": float, "kept": int, "sizes": int, "often": int}


def _odds(often: Codes, codes: Codes) -> Floats:
    """How much likelier each cell is to be a wrong one than a right one, by how often its value stands, (N,)."""
    usual = often / max(often.sum(), 1)
    odds = np.append(wrong_shares(usual) / np.maximum(usual, 1e-12), 1.0)
    rare = odds[:-1].max(initial=1.0)
    return np.where(codes >= 0, odds[codes], np.where(codes == NONE, 1.0, rare))


# ---------------------------------------------------------------- cells that break them


def dependency_suspects(dependencies: Sequence[Dependency], table: ReadTable) -> list[Suspect]:
    """The cells that are probably wrong by all that these dependencies say of their rows together."""
    judged = _judge(dependencies, table)
    suspects = []
    for row, place in zip(*np.nonzero(judged.suspicion >= LEAST_SUSPICION), strict=True):
        chance = round(float(judged.suspicion[row, place]), 6)
        own, column = int(judged.rows[row]), judged.columns[place]
        meant, why = _told(dependencies, judged, table, int(row), column)
        reason = f"{table.names[column]} is {shortened(table.arrow.column(column)[own].as_py())}; {why}"
        suspects.append(Suspect(own, column, chance, meant, reason, readable=False, cause="dependency"))
    return suspects


@dataclass(frozen=True)
class Judged:
    """Rows in which a dependency is broken."""

    rows: Codes  # (n,) places in the table
    columns: list[int]  # (C,) places in the table
    links: list[Link]  # of these rows
    suspicion: Floats  # (n, C)


def _judge(dependencies: Sequence[Dependency], table: ReadTable) -> Judged:
    links = [each.link(table) for each in dependencies]
    columns = sorted({column for link in links for column in link.columns})
    rows = np.flatnonzero(np.logical_or.reduce([link.broken for link in links])) if links else np.zeros(0, np.int64)
    if not len(rows):
        return Judged(rows, columns, [], np.zeros((0, len(columns))))
    own, prior = {column: place for place, column in enumerate(columns)}, np.zeros((len(rows), len(columns)))
    for each, link in zip(dependencies, links, strict=True):
        for column, error, odds in zip(link.columns, each.errors, each.odds(table), strict=True):
            prior[:, own[column]] = np.log(error / (1 - error) * odds[rows])
    near = [replace(link.of(rows), columns=tuple(own[column] for column in link.columns)) for link in links]
    return Judged(rows, columns, near, 1 / (1 + np.exp(-np.clip(weigh(near, prior), -50, 50))))


def _told(
    dependencies: Sequence[Dependency], judged: Judged, table: ReadTable, row: int, column: int
) -> tuple[tuple[str, ...], str]:
    """What was probably meant in a cell, and why, by the dependency that is surest of it."""
    place, best, trust = judged.columns.index(column), None, 0.0
    for each, link in zip(dependencies, judged.links, strict=True):
        if link.broken[row] and place in link.columns:
            others = [other for other in link.columns if other != place]
            right = float((1 - judged.suspicion[row, others]).prod() * (1 - link.exception[row]))
            right += 1.0 if link.columns[-1] == place else 0.0  # only these say what was meant
            if best is None or right > trust:
                best, trust = (each, link), right
    if best is None:
        return (), "the rest of the row does not go with it"
    each, link = best
    own = judged.rows[row]
    given = [table.arrow[name][int(own)].as_py() for name in each.determinants]
    says = each.written[link.top[row]]
    if link.columns[-1] != place:
        return (
            (),
            f"{each.dependent} of such rows is {shortened(says)}, not {table.arrow[each.dependent][int(own)].as_py()}",
        )
    return (says,), each.reason(int(link.group[row]), given)


# ---------------------------------------------------------------- learning


def learn_dependencies(coded: Sequence[Coded], table: ReadTable) -> list[Dependency]:
    """The dependencies that the columns of a table show."""
    single = [each for each in _single(coded) if each is not None]
    pairs = [each for each in _pairs(coded, single) if each is not None]
    return _with_errors(_strongest([*single, *pairs]), table)


def _strongest(found: Sequence[Dependency]) -> list[Dependency]:
    """Of the dependencies of each column those that hold in most rows."""
    kept: list[Dependency] = []
    for each in sorted(found, key=lambda each: (-int(each.kept.sum()), each.columns)):
        if sum(other.dependent == each.dependent for other in kept) < MOST_DETERMINANTS:
            kept.append(each)
    return kept


def _pairs(coded: Sequence[Coded], single: Sequence[Dependency]) -> Iterator[Dependency | None]:
    """Dependencies of columns that none decides alone on two that both have few values."""
    decided = {each.dependent for each in single}
    linked = {each.columns for each in single}
    few = sorted(coded, key=lambda each: len(each.values))[:MOST_PAIRED]
    for one, other in combinations(few, 2):
        rows = min(len(each.codes) - np.count_nonzero(each.codes < 0) for each in (one, other))
        names = {one.name, other.name}
        if len(one.values) * len(other.values) * GROUP_ROWS > rows or any(set(link) == names for link in linked):
            continue
        for dependent in coded:
            if dependent.name not in names | decided:
                yield _learn((one, other), dependent)


def _single(coded: Sequence[Coded]) -> Iterator[Dependency | None]:
    """Of all pairs of columns those of which the first decides the second."""
    for one in coded:
        sizes = one.counts
        shared = one.codes[(one.codes >= 0)]
        shared = shared[sizes[shared] > 1]
        if len(shared) < FEWEST_ROWS or np.count_nonzero(sizes > 1) < FEWEST_GROUPS:
            continue
        for other in coded:
            if other is not one:
                yield _learn((one,), other)


def _learn(determinants: tuple[Coded, ...], dependent: Coded) -> Dependency | None:
    """The dependency between these columns, if they have one."""
    groups, names = _joined(determinants)
    both = (groups >= 0) & (dependent.codes >= 0)
    sizes = np.bincount(groups[both], minlength=int(groups.max(initial=0)) + 1)
    rows = np.flatnonzero(both & (sizes[groups] > 1))
    tried = _some(groups, rows)
    if len(tried) < len(rows) and _found(groups[tried], dependent.codes[tried]) is None:
        return None
    found = _found(groups[rows], dependent.codes[rows])
    if found is None:
        return None
    grouped, learned = found
    kept = grouped.counts[learned.pair].astype(np.int64)
    order = np.sort(np.argsort(-grouped.sizes, kind="stable")[:MOST_GROUPS])
    return Dependency(
        determinants=tuple(each.name for each in determinants),
        dependent=dependent.name,
        known=tuple(tuple(each.values) for each in determinants),
        groups=names[grouped.names[order]],
        top=grouped.value[learned.pair[order]],
        sure=learned.sure[order],
        kept=kept[order],
        sizes=grouped.sizes[order].astype(np.int64),
        values=tuple(dependent.values),
        written=tuple(dependent.written),
        often=dependent.counts,
        errors=(learned.errors,) * (len(determinants) + 1),
        support=float(kept.sum() / len(rows)),
    )


def _joined(determinants: tuple[Coded, ...]) -> tuple[Codes, Codes]:
    """One code for what the determinants hold together, (N,), NONE if one says nothing; and what each code means."""
    wide, missing = np.zeros_like(determinants[0].codes), np.zeros(len(determinants[0].codes), dtype=bool)
    for each in determinants:
        wide, missing = wide * len(each.values) + each.codes, missing | (each.codes < 0)
    held, codes = np.unique(wide[~missing], return_inverse=True)
    joined = np.full(len(wide), NONE)
    joined[~missing] = codes
    names = []
    for each in reversed(determinants):
        names.append(held % len(each.values))
        held = held // len(each.values)
    return joined, np.stack(names[::-1], axis=1)


def _some(groups: Codes, rows: Codes) -> Codes:
    """Enough of these rows to try a dependency on, in whole groups where these are small."""
    if len(rows) <= 2 * TRIED_ROWS:
        return rows
    shuffled = np.random.default_rng(0).permutation(int(groups.max()) + 1)[groups[rows]]
    chosen = rows[np.argsort(shuffled, kind="stable")]
    few = len(np.unique(groups[rows])) < TRIED_ROWS // 20
    return rows[:: len(rows) // TRIED_ROWS] if few else chosen[:TRIED_ROWS]


def _found(groups: Codes, values: Codes) -> tuple[Grouped, OneValue] | None:
    """What the groups say, if most rows lie in groups with one true value that chance would not give them."""
    if len(groups) < FEWEST_ROWS or len(np.unique(values)) < 2:
        return None
    grouped = Grouped.of(groups, values)
    learned = learn_one_value(grouped)
    sizes = grouped.sizes
    held = float((learned.sure * sizes).sum() / sizes.sum())
    broken, by_chance = 1 - grouped.counts[learned.pair].sum() / len(groups), 1 - grouped.usual.max()
    is_one = min(held, learned.share) >= LEAST_HELD and learned.errors <= MOST_ERRORS
    tells = learned.gain >= LEAST_GAIN and broken <= MOST_BROKEN * by_chance
    return (grouped, learned) if is_one and tells else None


def _with_errors(dependencies: list[Dependency], table: ReadTable) -> list[Dependency]:
    """The dependencies with the share of cells that is wrong in each column, by all of them together."""
    for last in (*[False] * ERROR_ROUNDS, True) if dependencies else ():
        judged = _judge(dependencies, table)
        found = (judged.suspicion.sum(axis=0) + PRIOR_ERRORS * PRIOR_CELLS) / (table.rows + PRIOR_CELLS)
        # Where nothing tells which of two columns errs, the one with more errors so far would get all in the end.
        found = found if last else np.full_like(found, found.mean())
        by_name = {table.names[column]: float(error) for column, error in zip(judged.columns, found, strict=True)}
        dependencies = [replace(each, errors=tuple(by_name[name] for name in each.columns)) for each in dependencies]
    return dependencies
