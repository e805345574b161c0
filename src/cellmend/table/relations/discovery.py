"""Which columns decide others: found in a dirty table, with how sure each group of rows is of what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from cellmend.table.priors import FEW, LOOKED_AT, MOST_KEPT, TEN
from cellmend.table.readtable import ReadTable
from cellmend.table.relations.coding import NONE, Coded, Codes
from cellmend.table.relations.dependencies import Broken, Dependency
from cellmend.table.relations.groups import LEAST_AGREED, Grouped, OneValue, learn_one_value

LEAST_HELD = 0.6  # of those rows, and of the groups, surely have one true value
LEAST_GAIN = 10.0  # log: how much better groups must explain a column than chance, whatever was tried
MOST_BROKEN = 0.6  # of the rows that do not have the column's most usual value may break it
MOST_ERRORS, FEW_GROUPS = 0.25, 10  # of the cells where a group has one true value; half as many with so few groups
ERROR_ROUNDS = 3  # in which it is learned which columns err
PRIOR_ERRORS, PRIOR_CELLS = 0.002, 50.0  # cells of a column that are wrong, as if so many had been seen
MOST_DETERMINANTS = 5  # that are kept for a column
MOST_PAIRED, GROUP_ROWS = 12, 4  # columns of which two together are tried, and rows for each pair of their values
TRIED_ROWS = 3000  # rows, in whole groups, on which a dependency is tried first


def learn_dependencies(coded: Sequence[Coded], table: ReadTable) -> list[Dependency]:
    """The dependencies that the columns of a table show."""
    single = [each for one in coded for each in _decided((one,), [other for other in coded if other is not one])]
    return _with_errors(_strongest([*single, *_pairs(coded, single)]), table)


def _strongest(found: Sequence[Dependency]) -> list[Dependency]:
    """Of the dependencies of each column those that hold in most rows."""
    kept: list[Dependency] = []
    for each in sorted(found, key=lambda each: (-int(each.kept.sum()), each.columns)):
        if sum(other.dependent == each.dependent for other in kept) < MOST_DETERMINANTS:
            kept.append(each)
    return kept


def _pairs(coded: Sequence[Coded], single: Sequence[Dependency]) -> Iterator[Dependency]:
    """Dependencies of columns that none decides alone on two that both have few values."""
    decided = {each.dependent for each in single}
    linked = {each.columns for each in single}
    few = sorted(coded, key=lambda each: len(each.values))[:MOST_PAIRED]
    for one, other in combinations(few, 2):
        rows = min(len(each.codes) - np.count_nonzero(each.codes < 0) for each in (one, other))
        names = {one.name, other.name}
        if len(one.values) * len(other.values) * GROUP_ROWS > rows or any(set(link) == names for link in linked):
            continue
        found = _decided((one, other), [each for each in coded if each.name not in names | decided])
        yield from (each for each in found if each.support >= 1 - FEW)


@dataclass(frozen=True)
class Deciding:
    """One column or two that may decide others."""

    columns: tuple[Coded, ...]
    groups: Codes  # (N,) one code for what they hold together; NONE if one says nothing
    names: Codes  # (G, columns) what each code means
    rows: Codes  # (n,) that share their group with others
    tried: Codes  # (t,) enough of them to see whether they decide a column

    @classmethod
    def of(cls, columns: tuple[Coded, ...]) -> Deciding:
        groups, names = _joined(columns)
        sizes = np.bincount(groups[groups >= 0], minlength=1)
        rows = np.flatnonzero((groups >= 0) & (sizes[groups] > 1))
        return cls(columns, groups, names, rows, _some(groups, rows))


def _decided(columns: tuple[Coded, ...], others: Sequence[Coded]) -> list[Dependency]:
    """The dependencies of other columns on these."""
    deciding = Deciding.of(columns)
    learned = (_learn(deciding, other) for other in others)
    return [each for each in learned if each is not None]


def _learn(deciding: Deciding, dependent: Coded) -> Dependency | None:
    """The dependency of a column on these, if it has one."""
    groups, values = deciding.groups, dependent.codes
    tried = deciding.tried[values[deciding.tried] >= 0]
    is_sample = len(deciding.tried) < len(deciding.rows)
    if not _agree(groups[tried], values[tried]) or (is_sample and _found(groups[tried], values[tried]) is None):
        return None
    rows = deciding.rows[values[deciding.rows] >= 0]
    if (found := _found(groups[rows], values[rows])) is None:
        return None
    grouped, learned = found
    kept = grouped.counts[learned.pair].astype(np.int64)
    order = np.sort(np.argsort(-grouped.sizes, kind="stable")[:MOST_KEPT])
    return Dependency(
        determinants=tuple(each.name for each in deciding.columns),
        dependent=dependent.name,
        known=tuple(tuple(each.values) for each in deciding.columns),
        groups=deciding.names[grouped.names[order]],
        top=grouped.value[learned.pair[order]],
        sure=learned.sure[order],
        kept=kept[order],
        sizes=grouped.sizes[order].astype(np.int64),
        values=tuple(dependent.values),
        written=tuple(dependent.written),
        often=dependent.counts,
        errors=(learned.errors,) * (len(deciding.columns) + 1),
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
    sizes = [len(each.values) for each in determinants]
    return joined, np.stack(np.unravel_index(held, sizes), axis=1)


def _some(groups: Codes, rows: Codes) -> Codes:
    """Enough of these rows to try a dependency on, in whole groups where these are small."""
    if len(rows) <= 2 * TRIED_ROWS:
        return rows
    shuffled = np.random.default_rng(0).permutation(int(groups.max()) + 1)[groups[rows]]
    chosen = rows[np.argsort(shuffled, kind="stable")]
    few = len(np.unique(groups[rows])) < TRIED_ROWS // 20
    return rows[:: len(rows) // TRIED_ROWS] if few else chosen[:TRIED_ROWS]


def _agree(groups: Codes, values: Codes) -> bool:
    """Do rows of a group agree far more than any two rows do? Much faster than to weigh explanations."""
    if len(groups) < TEN:
        return False
    wide = int(values.max()) + 1
    _, pair, count = np.unique(groups * wide + values, return_inverse=True, return_counts=True)
    others = np.bincount(groups)[groups] - 1
    shared = others > 0
    chance = float(((np.bincount(values) / len(values)) ** 2).sum())
    agree = float((((count - 1)[pair][shared]) / others[shared]).mean()) if shared.any() else 0.0
    return chance < 1 and agree - chance >= LEAST_AGREED * (1 - chance)


def _found(groups: Codes, values: Codes) -> tuple[Grouped, OneValue] | None:
    """What the groups say, if most rows lie in groups with one true value that chance would not give them."""
    grouped = Grouped.of(groups, values)
    learned, sizes = learn_one_value(grouped), grouped.sizes
    held = float((learned.sure * sizes).sum() / sizes.sum())
    broken, by_chance = 1 - grouped.counts[learned.pair].sum() / len(groups), 1 - grouped.usual.max()
    few = len(sizes) / (len(sizes) + FEW_GROUPS)  # with few groups a column may just lean to one value in each
    is_one = min(held, learned.share) >= LEAST_HELD and learned.errors <= few * MOST_ERRORS
    tells = learned.gain >= LEAST_GAIN and broken <= MOST_BROKEN * by_chance
    return (grouped, learned) if is_one and tells else None


def _with_errors(dependencies: list[Dependency], table: ReadTable) -> list[Dependency]:
    """The dependencies with the share of cells that is wrong in each column, by all of them together."""
    if not dependencies:
        return []
    whole = Broken.of(dependencies, table)
    broken = whole.some(LOOKED_AT)
    stand_for = len(whole.rows) / max(len(broken.rows), 1)
    errors = np.full(len(broken.columns), PRIOR_ERRORS)
    for last in (*[False] * ERROR_ROUNDS, True):
        wrong = stand_for * broken.suspicion(errors).sum(axis=0)
        errors = (wrong + PRIOR_ERRORS * PRIOR_CELLS) / (table.rows + PRIOR_CELLS)
        # Where nothing tells which of two columns errs, the one with more errors so far would get all in the end.
        errors = errors if last else np.full_like(errors, errors.max())
    by_name = {table.names[column]: float(error) for column, error in zip(broken.columns, errors, strict=True)}
    return [replace(each, errors=tuple(by_name[name] for name in each.columns)) for each in dependencies]
