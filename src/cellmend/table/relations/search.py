"""Formulas that a dirty table shows: tried on a sample of rows, confirmed on all, compared with chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from cellmend.table.priors import ALIKE, BUT_FOR_ERRORS, BY_FAR, ENOUGH, MOSTLY, NEARLY_ALL, TINY, USUAL
from cellmend.table.relations.formulas import ORDER, PRODUCT, SUM, Columns, Formula
from cellmend.table.relations.quantities import EXACT, Quantity
from cellmend.table.values import Bools, Floats, Ints

SAMPLE, SMALL_SAMPLE = 400, 60  # rows on which formulas of two and of three parts are tried
CONFIRMED_ON = 5000  # rows that a formula must be confirmed on before all are looked at
NEARLY = 0.02  # of a product, that its factor is known by at first
FEWEST_RESULTS = 8  # different ones
LEAST_NOISY = 0.97  # and if it holds but for noise
SAME_WAY = 0.3  # of the rows that break it do so in the same way
LEAST_ORDER, LEAST_DATES = 0.995, 0.9  # of numbers, and of dates: these are compared for a reason
TIMES_LESS = 0.4  # rows break it, of those that would by chance
SURE = math.log(100.0)  # how much likelier than chance after all that was tried, as a log
ROUNDINGS = (0.5, 1.5, 2.5)  # units by which sums of rounded numbers miss
A_TAIL = 0.2  # of the rows that break it miss it by a unit more: then that is rounding
NOISE = 8.0  # medians of the misses, which hardly any noise exceeds
MOST_NOISE = 0.005  # of a column's width: what is noisier is for the model
EDGE, MOST_BEYOND = 0.1, 0.05  # of the smallest differences, and how many may lie as far below zero as these above
FEWEST_KNOTS = 16  # different quantiles of a number that is no code or level
MOST_CONFIRMED, MOST_FORMULAS = 400, 60
MOST_COLUMNS = 80  # between which products and sums of three parts are tried, and orders


class Found(NamedTuple):
    """A formula and the share of the rows that tell which keep it."""

    formula: Formula
    support: float


def find_formulas(values: Columns, quantities: Mapping[str, Quantity]) -> list[Found]:
    """The formulas between columns of numbers, those with few parts first; what follows from others is left out.

    >>> price, count = np.arange(1.0, 61.0), np.tile([2.0, 3.0, 5.0, 7.0], 15)
    >>> values = {"price": price, "count": count, "total": price * count}
    >>> from cellmend.table.relations.quantities import learn_quantity
    >>> quantities = {name: learn_quantity(name, own) for name, own in values.items()}
    >>> [str(found.formula) for found in find_formulas(values, quantities)]
    ['total = price × count']
    """
    tried = list(itertools.chain(*(trial(values, quantities) for trial in (_copies, _products, _sums, _spans))))
    tried.sort(key=lambda each: (len(each[1].parts), -each[0]))
    some = {name: column[_some_rows(len(column), CONFIRMED_ON)] for name, column in values.items()}
    likely = [formula for _, formula in tried[:MOST_CONFIRMED] if _confirmed(formula, some, quantities)]
    confirmed = [_confirmed(formula, values, quantities) for formula in likely]
    found = [each for each in confirmed if each is not None]
    found.sort(key=lambda each: _plainness(each.formula, quantities[each.formula.result]))
    return _independent(found, list(values))[:MOST_FORMULAS]


def _plainness(formula: Formula, result: Quantity) -> tuple[int, int, float]:
    """By which the plainest of several formulas comes first: few parts, a round factor, a result that is known well."""
    digits = len(f"{formula.factor:.6e}".partition("e")[0].rstrip("0").replace("1.", "", 1))  # of 1, 10 or 0.01: none
    return len(formula.parts), digits, formula.tolerance / result.width


# ---------------------------------------------------------------- tried on a sample

Tried = tuple[float, Formula]  # share of the sample that fits, and the formula


def _sample(values: Columns, names: Sequence[str], rows: int) -> Floats:
    """Some rows of some columns, (S, C)."""
    own = _some_rows(len(next(iter(values.values()), ())), rows)
    return np.stack([values[name][own] for name in names], axis=1) if names else np.zeros((len(own), 0))


def _some_rows(count: int, most: int) -> Ints:
    """Numbers of at most so many rows, rising, always the same."""
    return np.sort(np.random.default_rng(0).choice(count, min(most, count), replace=False))


def _tolerances(names: Sequence[str], quantities: Mapping[str, Quantity]) -> Floats:
    """By how much a result may miss a formula that is tried, (C,)."""
    return np.array([max(quantities[name].unit, MOST_NOISE * quantities[name].width / 4) for name in names])


def _numbers(quantities: Mapping[str, Quantity]) -> list[str]:
    return [name for name, quantity in quantities.items() if not quantity.is_date]


def _fitting(agree: Bools, told: Bools) -> Floats:
    """The share of the rows that tell (S, C) which agree, (C,); 0 where hardly any tells."""
    rows = told.sum(axis=0)
    return np.where(rows >= ALIKE, (agree & told).sum(axis=0) / np.maximum(rows, 1), 0.0)


def _sums(values: Columns, quantities: Mapping[str, Quantity]) -> Iterator[Tried]:
    """Sums of two and of three numbers."""
    names = _numbers(quantities)
    tolerances = _tolerances(names, quantities)
    for parts, rows in ((2, SAMPLE), (3, SMALL_SAMPLE)):
        sample = _sample(values, names, rows)
        zero, gap = sample == 0, np.isnan(sample)
        for own in itertools.combinations(range(len(names)), parts) if parts < 3 or len(names) <= MOST_COLUMNS else ():
            chosen = list(own)
            total = sample[:, chosen].sum(axis=1)
            told = ~(zero[:, chosen].any(axis=1) | np.isnan(total))
            if told.sum() < ALIKE:
                continue
            fits = _fitting(np.abs(sample - total[:, None]) <= tolerances, told[:, None] & ~gap)
            fits[chosen] = 0.0
            for result in np.flatnonzero(fits >= MOSTLY).tolist():
                yield fits[result], Formula(SUM, names[result], tuple(names[p] for p in own), (1.0,) * parts)


def _copies(values: Columns, quantities: Mapping[str, Quantity]) -> Iterator[Tried]:
    """A number that is another one times a factor."""
    names = _numbers(quantities)
    sample, tolerances = _sample(values, names, SAMPLE), _tolerances(names, quantities)
    for part, name in enumerate(names):
        fits = _times_factor(sample, sample[:, part], tolerances)
        fits[part] = 0.0
        for result in np.flatnonzero(fits >= MOSTLY).tolist():
            yield fits[result], Formula(PRODUCT, names[result], (name,), (1.0,))


def _products(values: Columns, quantities: Mapping[str, Quantity]) -> Iterator[Tried]:
    """Products and quotients of two numbers, times a factor."""
    names = _numbers(quantities) if len(quantities) <= MOST_COLUMNS else []
    sample, tolerances = _sample(values, names, SMALL_SAMPLE), _tolerances(names, quantities)
    wide = _sample(values, names, SAMPLE)
    for one, other in itertools.permutations(range(len(names)), 2):
        for power in (1.0, -1.0) if one < other else (-1.0,):
            fits = _times_factor(sample, _combined(sample, one, other, power), tolerances)
            fits[[one, other]] = 0.0
            for result in np.flatnonzero(fits >= MOSTLY).tolist():
                own = wide[:, [result]], _combined(wide, one, other, power), tolerances[[result]]
                fit = float(_times_factor(*own)[0])
                if fit >= MOSTLY:
                    yield fit, Formula(PRODUCT, names[result], (names[one], names[other]), (1.0, power))


def _combined(sample: Floats, one: int, other: int, power: float) -> Floats:
    """Product or quotient of two columns, (S,); NaN where one of them is 0 or 1 and the result is a copy."""
    pair = sample[:, [one, other]]
    plain = (pair == 0).any(axis=1) | (np.abs(pair) == 1).any(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(plain, np.nan, pair[:, 0] * pair[:, 1] ** power)


def _times_factor(results: Floats, expected: Floats, tolerances: Floats) -> Floats:
    """The share of rows in which each result (S, C) is what is expected (S,) times one factor, (C,)."""
    told = np.isfinite(results) & (np.isfinite(expected) & (expected != 0))[:, None]
    if told.any(axis=1).sum() < ALIKE:
        return np.zeros(results.shape[1])
    ratio = np.where(told, results / np.where(expected == 0, np.nan, expected)[:, None], np.nan)
    factor = _middle(ratio)
    agree = np.abs(results - factor * expected[:, None]) <= tolerances + NEARLY * np.abs(results)
    return np.where(factor == 0, 0.0, _fitting(agree & (results != 0), told))


def _middle(numbers: Floats) -> Floats:
    """The median of each column, (C,), without its gaps; 0 if it has nothing else."""
    ordered = np.sort(numbers, axis=0)  # gaps last
    rows = np.isfinite(ordered).sum(axis=0)
    return np.where(rows > 0, ordered[np.maximum(rows - 1, 0) // 2, np.arange(numbers.shape[1])], 0.0)


def _spans(values: Columns, quantities: Mapping[str, Quantity]) -> Iterator[Tried]:
    """Dates that are an earlier date and a number of days, hours or the like."""
    numbers, dates = _numbers(quantities), [name for name, each in quantities.items() if each.is_date]
    sample = _sample(values, numbers, SAMPLE)
    for end, start in itertools.permutations(dates, 2):
        span = np.subtract(*_sample(values, [end, start], SAMPLE).T)
        tolerance = np.array([quantities[end].cell])
        for place, name in enumerate(numbers):
            fit = float(_times_factor(span[:, None], sample[:, place], tolerance)[0])
            if fit >= MOSTLY and np.nanmedian(sample[:, place]) * np.nanmedian(span) > 0:
                yield fit, Formula(SUM, end, (start, name), (1.0, 0.0))


# ---------------------------------------------------------------- confirmed on all rows


def _confirmed(formula: Formula, values: Columns, quantities: Mapping[str, Quantity]) -> Found | None:
    """The formula with its factor and tolerance, if far more rows keep it than would by chance."""
    known = np.all([np.isfinite(values[name]) for name in formula.columns], axis=0)
    every = {name: values[name][known] for name in formula.columns}
    told = _tells(formula, every)
    own = {name: column[told] for name, column in every.items()}
    if told.sum() < ENOUGH:
        return None
    exact = _with_tolerance(_with_factor(formula, own, quantities), own, quantities[formula.result])
    kept = ~exact.broken(own)
    results = len(np.unique(own[exact.result][kept]))
    against = int((exact.broken(every) & ~told).sum())  # a tip of 0 keeps no rate of tips
    support = kept.sum() / (len(kept) + against)
    is_kept = results >= FEWEST_RESULTS and support >= _least_support(exact, quantities[exact.result])
    if not is_kept or _has_another_rule(exact, {name: own[name][~kept] for name in own}, len(kept)):
        return None
    return _beyond_chance(exact, own, float(support))


def _least_support(formula: Formula, result: Quantity) -> float:
    if formula.tolerance > max(ROUNDINGS) * result.unit:
        return LEAST_NOISY
    if len(formula.parts) > 1:
        return BY_FAR
    return BUT_FOR_ERRORS if formula.factor == 1 else NEARLY_ALL  # prices of today and tomorrow are often equal


def _has_another_rule(formula: Formula, broken: Columns, rows: int) -> bool:
    """Do many rows that break it miss it by the same difference or factor? Then there is a fee, or another rate."""
    result, expected = broken[formula.result], formula.expected(broken)
    if len(result) < max(ALIKE, USUAL * rows):
        return False
    ways = (result - expected) / max(formula.tolerance, EXACT)
    if formula.form == PRODUCT:
        ways = 1000 * np.log(np.abs(result / np.where(expected == 0, np.nan, expected)) + TINY)
    alike = int(np.unique(np.round(ways[np.isfinite(ways)]), return_counts=True)[1].max(initial=0))
    return alike >= max(ALIKE, SAME_WAY * len(result))


def _tells(formula: Formula, values: Columns) -> Bools:
    """Rows in which all parts matter: nothing is added, and nothing times or divided by one."""
    parts = [values[part] for part in formula.parts]
    plain = [part == 0 for part in parts]
    if formula.form == PRODUCT and len(parts) > 1:
        plain += [np.abs(part) == 1 for part in parts]
    return ~np.any(plain, axis=0)


def _with_factor(formula: Formula, values: Columns, quantities: Mapping[str, Quantity]) -> Formula:
    """With the factor of a product, or of the last part of a span, by the rows in which rounding matters least."""
    is_span = formula.form == SUM and 0.0 in formula.weights
    if formula.form == SUM and not is_span:
        return formula
    unknown = Formula(PRODUCT, formula.result, formula.parts[-1:], (1.0,)) if is_span else formula
    result = values[formula.result] - (values[formula.parts[0]] if is_span else 0.0)
    expected = unknown.expected(values)
    large = np.abs(result) >= np.median(np.abs(result))
    middle = float(np.median(result[large] / expected[large]))
    size = float(np.quantile(np.abs(result), 0.9))
    factor = _roundest(middle, max(quantities[formula.result].unit / max(size, TINY), EXACT) / 2)
    return replace(formula, weights=(1.0, factor)) if is_span else replace(formula, factor=factor)


def _roundest(number: float, error: float) -> float:
    """The number with the fewest digits within a relative error, or one divided by such a number.

    >>> _roundest(1.190004, 1e-5), _roundest(0.0416667, 1e-5) == 1 / 24
    (1.19, True)
    """
    for digits in range(8):
        for near in (float(f"{number:.{digits}e}"), 1 / float(f"{1 / number:.{digits}e}") if number else 0.0):
            if abs(near - number) <= error * abs(number):
                return near
    return number


def _with_tolerance(formula: Formula, values: Columns, result: Quantity) -> Formula:
    """With the tolerance that rounding or a little noise needs, and no more."""
    misses = formula.misses(values)
    noise = NOISE * float(np.median(misses))
    if not result.unit or noise > ROUNDINGS[0] * result.unit * NOISE:
        return replace(formula, tolerance=noise if noise <= MOST_NOISE * result.width else 0.0)
    for units in ROUNDINGS:
        tried = replace(formula, tolerance=units * result.unit)
        slack = tried.slack(values)
        beyond = misses > slack
        if (beyond & (misses <= slack + result.unit)).sum() <= A_TAIL * beyond.sum():
            return tried
    return replace(formula, tolerance=ROUNDINGS[0] * result.unit)


def _beyond_chance(formula: Formula, values: Columns, support: float) -> Found | None:
    """The formula, if far more rows keep it than if one of its columns were shuffled, whichever that is."""
    order = np.random.default_rng(0).permutation(len(values[formula.result]))
    shuffled = [{**values, name: values[name][order]} for name in formula.columns]
    chance = max(float((~formula.broken(each)).mean()) for each in shuffled)
    if chance > MOSTLY or 1 - support > TIMES_LESS * (1 - chance):
        return None
    tries = len(formula.parts) * math.log(MOST_COLUMNS)
    beside = chance + 1 / len(order)
    divergence = rel_entr([support, 1 - support], [beside, 1 - beside]).sum()  # of two coins
    return Found(formula, support) if len(order) * divergence > tries + SURE else None


# ---------------------------------------------------------------- what follows from others


def _independent(found: Sequence[Found], names: Sequence[str]) -> list[Found]:
    """Those that do not follow from the ones before them: sums by their weights, products by their powers."""
    kept: list[Found] = []
    spaces: dict[str, list[Floats]] = {SUM: [], PRODUCT: []}
    for each in found:
        vectors = _vectors(each.formula, names)
        if all(_is_new(vector, spaces[form]) for form, vector in vectors.items()):
            kept.append(each)
            for form, vector in vectors.items():
                spaces[form].append(vector)
    return kept


def _vectors(formula: Formula, names: Sequence[str]) -> dict[str, Floats]:
    """What is 0: of sums the weighed columns, of products their weighed logs; a copy is both, (C,)."""
    powers, weights = np.zeros(len(names)), np.zeros(len(names))
    for name, weight in [(formula.result, -1.0), *zip(formula.parts, formula.weights, strict=True)]:
        powers[names.index(name)] = weight
        weights[names.index(name)] = weight if name == formula.result else weight * formula.factor
    if formula.form == SUM:
        return {SUM: weights}
    return {PRODUCT: powers} if len(formula.parts) > 1 else {PRODUCT: powers, SUM: weights}


def _is_new(vector: Floats, others: Sequence[Floats]) -> bool:
    unit = vector / np.linalg.norm(vector)
    if not others:
        return True
    basis = np.stack(others, axis=1)
    rest = unit - basis @ np.linalg.lstsq(basis, unit, rcond=None)[0]
    return bool(np.linalg.norm(rest) > 1e-3)


# ---------------------------------------------------------------- what is at least as large


def find_orders(values: Columns, quantities: Mapping[str, Quantity], formulas: Sequence[Found]) -> list[Found]:
    """Columns that are hardly ever less than another one where they could be, if no formula has both."""
    together = {frozenset(pair) for each in formulas for pair in itertools.combinations(each.formula.columns, 2)}
    found = {}
    if len(quantities) > MOST_COLUMNS:
        return []
    many = [name for name, each in quantities.items() if each.is_date or len(set(each.knots)) >= FEWEST_KNOTS]
    for one, other in itertools.permutations(many, 2):
        if quantities[one].is_date == quantities[other].is_date and frozenset((one, other)) not in together:
            support = _order_support(values[one], values[other], dates=quantities[one].is_date)
            if support:
                found[one, other] = Found(Formula(ORDER, one, (other,), (1.0,)), support)
    between = {(a, c) for a, b in found for b_, c in found if b == b_}
    return [each for pair, each in found.items() if pair not in between]


def _order_support(larger: Floats, smaller: Floats, *, dates: bool) -> float:
    """The share of rows in which the one is not less; 0 if that is seldom, no wonder, or a tail that thins out."""
    least = LEAST_DATES if dates else LEAST_ORDER
    few = slice(None, None, max(1, len(larger) // SAMPLE))
    if (larger[few] < smaller[few]).mean() > 2 * (1 - least) + 3 / SAMPLE:
        return 0.0
    difference = larger - smaller
    order = np.random.default_rng(0).permutation(len(larger))
    by_chance = larger - smaller[order]
    difference, by_chance = (each[np.isfinite(each)] for each in (difference, by_chance))
    if len(difference) < ENOUGH or not len(by_chance):
        return 0.0
    support, chance = float((difference >= 0).mean()), float((by_chance >= 0).mean())
    if support < least or 1 - support > TIMES_LESS * (1 - chance) or chance > NEARLY_ALL:
        return 0.0
    above = difference[difference >= 0]
    edge = max(float(np.quantile(above, EDGE)), 0.0)
    beyond = ((difference < 0) & (difference >= -edge)).sum()
    return support if beyond <= MOST_BEYOND * (above <= edge).sum() else 0.0
