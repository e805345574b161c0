"""Tables whose columns and rows belong together, to learn from how much formulas, keys, sources and series are worth.

Published tables have few totals, few sources that tell of the same thing and few logs. All that is here is drawn anew
for each table: how many rows and columns, which words, how large the numbers, how they are written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from cellmend.posterior.lexicon import lexicon

Columns = dict[str, list[str]]
FEWEST_ROWS, MOST_ROWS = 120, 1000
MOST_UNRELATED = 4_000  # rows of a table whose columns have nothing to do with each other


def made_table(rng: np.random.Generator) -> pd.DataFrame:
    """A clean table of text, of a sort drawn at random."""
    sort = SORTS[int(rng.integers(len(SORTS)))]
    rows = int(np.exp(rng.uniform(np.log(FEWEST_ROWS), np.log(MOST_ROWS))))
    return pd.DataFrame(sort(rng, rows), dtype=object)


def orders(rng: np.random.Generator, rows: int) -> Columns:
    """Articles with prices, customers with addresses, totals, dates in order, a running number."""
    people, articles = int(rng.integers(15, 120)), int(rng.integers(8, 80))
    who, what = rng.integers(people, size=rows), _uneven(rng, articles, rows)
    cities = _names(rng, max(people // 3, 4), 1)
    city = rng.integers(len(cities), size=people)
    zips = [f"{code:05}" for code in rng.integers(500, 99999, size=len(cities))]
    names, labels = _names(rng, people, 2), _names(rng, articles, int(rng.integers(1, 4)))
    price = np.round(np.exp(rng.normal(3, 1, articles)), 2)
    quantity = 1 + rng.poisson(rng.uniform(1, 6), rows)
    net = np.round(price[what] * quantity, 2)
    first, later = np.sort(rng.integers(0, 700, size=rows)), rng.integers(0, 20, size=rows)
    found = {
        "order_id": _texts(int(rng.integers(1, 50_000)) + np.arange(rows)),
        "order_date": _days(first),
        "ship_date": _days(first + later),
        "customer": [names[at] for at in who],
        "city": [cities[city[at]] for at in who],
        "zip": [zips[city[at]] for at in who],
        "article": [f"A{at:03}" for at in what],
        "description": [labels[at] for at in what],
        "price": [f"{price[at]:.2f}" for at in what],
        "quantity": _texts(quantity),
        "total": [f"{each:.2f}" for each in net],
    }
    if rng.random() < 0.5:
        tax = np.round(net * rng.choice([0.05, 0.07, 0.19, 0.2]), 2)
        found |= {"tax": [f"{each:.2f}" for each in tax], "gross": [f"{each:.2f}" for each in net + tax]}
    return _some(rng, found)


def sources(rng: np.random.Generator, rows: int) -> Columns:
    """The same things as several sources tell of them."""
    tellers = _names(rng, int(rng.integers(4, 25)), 1)
    things = max(rows // len(tellers), 5)
    facts = {name: _facts(rng, things) for name in _names(rng, int(rng.integers(2, 6)), 1)}
    pairs = [(thing, teller) for thing in range(things) for teller in range(len(tellers)) if rng.random() < 0.95]
    order = rng.permutation(len(pairs)) if rng.random() < 0.5 else np.arange(len(pairs))
    pairs = [pairs[at] for at in order.tolist()]
    code = rng.integers(100, 9999, size=things)
    found = {"source": [tellers[teller] for _, teller in pairs], "item": [f"IT-{code[t]}-{t}" for t, _ in pairs]}
    return found | {name: [own[thing] for thing, _ in pairs] for name, own in facts.items()}


def _facts(rng: np.random.Generator, things: int) -> list[str]:
    """What is true of each thing: a time, a name or an amount."""
    sort = rng.random()
    if sort < 0.4:
        minutes = rng.integers(0, 1440, size=things)
        return [f"{each // 60 % 12 or 12}:{each % 60:02} {'ap'[int(each >= 720)]}.m." for each in minutes]
    if sort < 0.7:
        return _names(rng, things, 2)
    return [f"{each:.2f}" for each in np.exp(rng.normal(4, 1, things))]


def accounts(rng: np.random.Generator, rows: int) -> Columns:
    """Parts that sum up to the whole, shares of it, and groups that are the same in all their rows."""
    parts = int(rng.integers(2, 6))
    size = np.exp(rng.normal(rng.uniform(2, 8), rng.uniform(0.3, 1.5), rows))
    amounts = np.round(size[:, None] * rng.dirichlet(np.ones(parts), rows) * parts)
    whole = amounts.sum(1)
    groups = _names(rng, int(rng.integers(4, 40)), 1)
    group, years = rng.integers(len(groups), size=rows), rng.integers(1995, 2024, size=rows)
    regions = _names(rng, 4, 1)
    found = {
        "county": [groups[at] for at in group],
        "region": [regions[at % len(regions)] for at in group],
        "fips": [f"{30_000 + 7 * at:05}" for at in group],
        "year": _texts(years),
        **{name: _texts(own) for name, own in zip(_names(rng, parts, 1), amounts.T, strict=True)},
        "all": _texts(whole),
    }
    if rng.random() < 0.6:
        found["share"] = [f"{100 * a / max(b, 1):.1f}" for a, b in zip(amounts[:, 0], whole, strict=True)]
    return _some(rng, found)


def series(rng: np.random.Generator, rows: int) -> Columns:
    """A log: one row after the other in time, signals that run on, counters, a state that stands for a while."""
    time = np.arange(rows)
    found = {"time": [str(each) for each in pd.Timestamp("2021-03-01") + pd.to_timedelta(time * 600, unit="s")]}
    for name in _names(rng, int(rng.integers(2, 7)), 1):
        period, width = rng.uniform(30, 400), np.exp(rng.normal(1, 1.5))
        walk = np.cumsum(rng.normal(0, 0.05, rows)) if rng.random() < 0.5 else np.zeros(rows)
        signal = np.sin(2 * np.pi * time / period) + walk + rng.normal(0, rng.uniform(0.005, 0.1), rows)
        found[name] = [f"{each:.{int(rng.integers(1, 3))}f}" for each in rng.normal(20, 30) + width * signal]
    found["counter"] = _texts(int(rng.integers(0, 10_000)) + np.cumsum(rng.poisson(rng.uniform(0.5, 9), rows)))
    states = _names(rng, int(rng.integers(2, 5)), 1)
    changes = np.cumsum(rng.random(rows) < rng.uniform(0.01, 0.1))
    return _some(rng, found | {"state": [states[at % len(states)] for at in changes]})


def people(rng: np.random.Generator, rows: int) -> Columns:
    """Staff: names, mail addresses made of them, departments with their heads, dates in order, salaries by grade."""
    names, firms = _names(rng, rows, 2), _names(rng, int(rng.integers(3, 15)), 1)
    heads = _names(rng, len(firms), 2)
    firm, grade = _uneven(rng, len(firms), rows), rng.integers(1, 9, size=rows)
    born = rng.integers(-14_000, 0, size=rows)
    hired = born + rng.integers(7_000, 15_000, size=rows)
    domain = _names(rng, 1, 1)[0].lower()
    return _few(
        rng,
        {
            "staff_id": [f"{at:06}" for at in rng.permutation(900_000)[:rows]],
            "name": names,
            "mail": [f"{name.lower().replace(' ', '.')}@{domain}.{_end(rng)}" for name in names],
            "department": [firms[at] for at in firm],
            "head": [heads[at] for at in firm],
            "born": _days(born),
            "hired": _days(hired),
            "grade": _texts(grade),
            "salary": _texts(np.round(28_000 * 1.15**grade * np.exp(rng.normal(0, 0.04, rows)), -1)),
            "phone": [f"({a}) {b:03}-{c:04}" for a, b, c in rng.integers(200, 999, size=(rows, 3))],
            "account": _accounts(rng, rows),
            "page": [f"https://www.{domain}.{_end(rng)}/{name.lower().replace(' ', '-')}" for name in names],
            "from": _clock(rng, rows),
            "latitude": [f"{each:.4f}" for each in rng.normal(rng.uniform(20, 55), 3, rows)],
            "longitude": [f"{each:.4f}" for each in rng.normal(rng.uniform(-120, 120), 4, rows)],
            "first_name": _again(rng, rows, max(rows // 8, 10)),
            "last_name": _again(rng, rows, max(rows // 3, 10)),
        },
    )


def _again(rng: np.random.Generator, rows: int, count: int) -> list[str]:
    """Names of which so many are different, some of them frequent."""
    names = _names(rng, count, 1)
    return [names[at] for at in _uneven(rng, count, rows)]


def _end(rng: np.random.Generator) -> str:
    return str(rng.choice(["com", "org", "de", "co.uk", "net", "gov"]))


def _clock(rng: np.random.Generator, rows: int) -> list[str]:
    """Times of day, on the quarter or on the minute."""
    minutes = rng.integers(1440, size=rows) if rng.random() < 0.5 else 15 * rng.integers(96, size=rows)
    return [f"{each // 60:02}:{each % 60:02}" for each in minutes]


def _accounts(rng: np.random.Generator, rows: int) -> list[str]:
    """Bank accounts with their digits of control."""
    country, length, gaps = str(rng.choice(["DE", "FR", "GB", "ES"])), int(rng.integers(14, 22)), rng.random() < 0.5
    found = []
    for digits in rng.integers(10, size=(rows, length)):
        number = "".join(map(str, digits))
        control = 98 - int(number + "".join(str(int(letter, 36)) for letter in country) + "00") % 97
        whole = f"{country}{control:02}{number}"
        found.append(" ".join(whole[at : at + 4] for at in range(0, len(whole), 4)) if gaps else whole)
    return found


def measures(rng: np.random.Generator, rows: int) -> Columns:
    """Measurements that a few hidden causes make together, each on its own scale; some in a few levels, some skewed."""
    causes = int(rng.integers(1, 5))
    hidden = rng.normal(size=(3 * rows, causes)) * (1 + rng.exponential(0.3, size=(3 * rows, 1)))
    found: Columns = {}
    for name in _names(rng, int(rng.integers(4, 12)), 1):
        bent = np.tanh(hidden @ rng.normal(0, 0.7, (causes, 3))) @ rng.normal(0, 1, 3)
        bent += hidden @ rng.normal(0, 0.7, causes)
        own = bent + rng.exponential(0.25) * bent.std() * rng.normal(size=len(bent))
        sort = rng.random()
        if sort < 0.2:
            levels = _names(rng, int(rng.integers(2, 9)), 1)
            ends = np.quantile(own, np.sort(rng.random(len(levels) - 1)))
            found[name] = [levels[at] for at in np.searchsorted(ends, own)]
        else:
            scaled = np.exp(0.6 * own) if sort < 0.5 else own
            decimals = int(rng.integers(0, 3))
            found[name] = [f"{each:.{decimals}f}" for each in np.exp(rng.normal(3, 2)) * (scaled + rng.normal())]
    return found


def graded(rng: np.random.Generator, rows: int) -> Columns:
    """Things in grades whose names contain one another (S, XS; A, A-; SB1, VSB1), some of them rare, and measurements
    that go with them more or less."""
    worth, found = rng.normal(size=rows), Columns()
    for name in _names(rng, int(rng.integers(2, 6)), 1):
        grades = _grades(rng)
        seen = worth * rng.uniform(0, 2) + rng.normal(size=rows)
        ends = np.quantile(seen, rng.dirichlet(np.full(len(grades), rng.uniform(0.3, 3))).cumsum()[:-1])
        found[name] = [grades[at] for at in np.searchsorted(ends, seen)]
    for name in _names(rng, int(rng.integers(2, 5)), 1):
        own = np.exp(rng.normal(2, 2) + 0.4 * (worth + rng.exponential(0.6) * rng.normal(size=rows)))
        decimals = int(rng.integers(0, 3))
        found[name] = [f"{each:.{decimals}f}" for each in own]
    return _some(rng, found)


def unrelated(rng: np.random.Generator, rows: int) -> Columns:
    """Columns of all sorts that say nothing about each other, as in most registers: names, levels of which some are
    rare, amounts with long tails or mostly 0, codes, dates, remarks."""
    rows = int(np.exp(rng.uniform(np.log(FEWEST_ROWS), np.log(MOST_UNRELATED))))
    makers = (
        *3 * (_levels,), _tailed, _tailed, _mostly_zero, _counted, _coded, *2 * (_dated,), _named, _remarks,
        _formatted,
    )  # fmt: skip
    names = _names(rng, int(rng.integers(4, 15)), 1)
    return {name: makers[int(rng.integers(len(makers)))](rng, rows) for name in names}


def _levels(rng: np.random.Generator, rows: int) -> list[str]:
    """Levels of one to three words, in one way of writing, some frequent and many rare, or most cells the same one."""
    joint, case = rng.choice([" ", "-", "_", "/", " ", " & "]), rng.choice(["title", "lower", "upper", "capitalize"])
    count = int(np.exp(rng.uniform(np.log(2), np.log(80))))
    drawn = _names(rng, count, int(rng.integers(1, 4)))
    words = [getattr(joint.join(each.split(" ")[: int(rng.integers(1, 4))]), case)() for each in drawn]
    share = np.arange(1, count + 1) ** -rng.uniform(0.2, 2.5)
    return [words[at] for at in rng.choice(count, rows, p=share / share.sum())]


def _tailed(rng: np.random.Generator, rows: int) -> list[str]:
    """Numbers with tails of any weight, above 0 or on both sides."""
    sort, decimals = rng.random(), int(rng.integers(0, 4))
    if sort < 0.6:
        own = np.exp(rng.normal(rng.uniform(0, 8), rng.uniform(0.2, 2), rows))
    elif sort < 0.8:
        own = rng.normal(0, 10 ** rng.uniform(-1, 3)) + rng.standard_t(rng.uniform(1.5, 20), rows) * 10 ** rng.uniform(
            -1, 3
        )
    else:
        own = rng.uniform(0, 10 ** rng.uniform(0, 5), rows)
    return [f"{each:.{decimals}f}" for each in own]


def _mostly_zero(rng: np.random.Generator, rows: int) -> list[str]:
    """Amounts in a few rows, 0 in all others."""
    own = np.round(np.exp(rng.normal(rng.uniform(1, 8), rng.uniform(0.3, 1.5), rows)), int(rng.integers(0, 3)))
    own = np.where(rng.random(rows) < rng.uniform(0.5, 0.98), 0, own)
    return [f"{each:g}" if each < 1e5 else str(int(each)) for each in own]


def _counted(rng: np.random.Generator, rows: int) -> list[str]:
    """Whole numbers: counts, ages, years, scores."""
    sort = int(rng.integers(5))
    if sort == 0:
        return _texts(rng.negative_binomial(rng.uniform(0.2, 4), rng.uniform(0.02, 0.6), rows))
    if sort == 1:
        return _texts(np.clip(rng.normal(40, 14, rows), 0, 99))
    if sort == 2:
        return _texts(2024 - rng.exponential(rng.uniform(3, 20), rows))
    if sort == 3:
        return _texts(rng.binomial(100, rng.beta(2, 2, rows)))
    return _texts(np.round(rng.normal(40, 12, rows) / 5).clip(0) * 5)


def _coded(rng: np.random.Generator, rows: int) -> list[str]:
    """Identifiers: running, drawn, with letters, hexadecimal, with zeros before them."""
    sort, size = int(rng.integers(5)), int(10 ** rng.uniform(3, 8))
    drawn = rng.integers(size, size=rows)
    if sort == 0:
        return _texts(int(rng.integers(1, 90_000)) + np.arange(rows))
    if sort == 1:
        letters = rng.choice(list("ABCDEFGHKLMNPRSTUVWX"), (rows, 2))
        return [f"{a}{b if rng.random() < 0.5 else ''}-{each:06}" for (a, b), each in zip(letters, drawn, strict=True)]
    if sort == 2:
        return [f"{each:08x}" for each in drawn]
    if sort == 3:
        return [f"{each:0{len(str(size))}}" for each in drawn]
    return [f"({each % 800 + 200}) {each % 900 + 100}-{each % 9000 + 1000}" for each in drawn]


def _dated(rng: np.random.Generator, rows: int) -> list[str]:
    """Days in one way of writing, or minutes of them."""
    form = str(rng.choice(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d %H:%M", "%d %b %Y", "%Y-%m"]))
    minutes = rng.integers(60 * 24 * int(rng.integers(30, 9000)), size=rows)
    days = pd.Timestamp("2024-11-03") - pd.to_timedelta(np.sort(minutes) if rng.random() < 0.4 else minutes, unit="min")
    return days.strftime(form).tolist()


def _formatted(rng: np.random.Generator, rows: int) -> list[str]:
    """Times of day, bank accounts, mail addresses, links or telephone numbers."""
    sort = int(rng.integers(5))
    if sort == 0:
        return _clock(rng, rows)
    if sort == 1:
        return _accounts(rng, rows)
    words, end = [name.lower() for name in _names(rng, int(rng.integers(20, 400)), 1)], _end(rng)
    first, second = ([words[at] for at in rng.integers(len(words), size=rows)] for _ in range(2))
    if sort == 2:
        host = words[0] if rng.random() < 0.5 else None
        joint = str(rng.choice([".", "_", "-", ""]))
        return [f"{a}{joint}{b}@{host or words[len(a) % len(words)]}.{end}" for a, b in zip(first, second, strict=True)]
    if sort == 3:
        return [f"https://{words[len(a) % 3]}.{end}/{a}/{b}" for a, b in zip(first, second, strict=True)]
    form = str(
        rng.choice(
            ["{0}-{1:03}-{2:04}", "+{0} {1:03} {2:04}", "{1:03}-{2:04}", "0{0}/{1:03}{2:04}", "({0}) {1:03} {2:04}"]
        )
    )
    digits = zip(rng.integers(201, 990, rows), rng.integers(0, 1000, rows), rng.integers(0, 10_000, rows), strict=True)
    return [form.format(*each) for each in digits]


def _named(rng: np.random.Generator, rows: int) -> list[str]:
    """People or places, nearly all of them once."""
    first, last = _names(rng, int(rng.integers(30, 300)), 1), _names(rng, int(rng.integers(60, 900)), 1)
    order = "{1}, {0}" if rng.random() < 0.3 else "{0} {1}"
    places = (rng.random((rows, 2)) * (len(first), len(last))).astype(int)
    return [order.format(first[a], last[b]) for a, b in places.tolist()]


def _remarks(rng: np.random.Generator, rows: int) -> list[str]:
    """Some words about each row."""
    words = [name.lower() for name in _names(rng, int(rng.integers(50, 600)), 1)]
    place = (rng.random((rows, 12)) ** rng.uniform(1, 3) * len(words)).astype(int)
    lengths = rng.integers(1, 13, size=rows)
    return [
        " ".join(words[at] for at in own[:length]).capitalize()
        for own, length in zip(place.tolist(), lengths.tolist(), strict=True)
    ]


def _grades(rng: np.random.Generator) -> list[str]:
    """The names of some grades, made of one another."""
    letters = ["".join(rng.choice(list("ABCDEFGHILMNPRSTVWX"), int(rng.integers(1, 3)))) for _ in range(3)]
    sort = rng.random()
    if sort < 0.35:
        ends = rng.choice(["+", "-", "1", "2", "3", "a", "b"], int(rng.integers(1, 4)), replace=False).tolist()
        found = [letter + end for letter in letters for end in ("", *ends)]
    elif sort < 0.7:
        bases = [letter + end for letter in letters[:2] for end in rng.choice(["1", "2", ""], 2, replace=False)]
        before = str(rng.choice(list("VXUHE")))
        found = [before * times + base for base in bases for times in range(int(rng.integers(2, 4)))]
    else:
        found = [letters[0] * times for times in range(1, 5)] + ["I" * times for times in range(1, 4)]
    return list(dict.fromkeys(found))[: int(rng.integers(4, 12))]


SORTS: tuple[Callable[[np.random.Generator, int], Columns], ...] = (
    orders, sources, accounts, series, people, people, measures, measures, graded, graded, *7 * (unrelated,)
)  # fmt: skip


def _some(rng: np.random.Generator, columns: Columns) -> Columns:
    """All columns, or now and then without one or two."""
    gone = rng.permutation(list(columns))[: int(rng.integers(0, 3))] if rng.random() < 0.3 else ()
    return {name: own for name, own in columns.items() if name not in gone}


def _few(rng: np.random.Generator, columns: Columns) -> Columns:
    """Some of the columns, five at least."""
    kept = set(rng.permutation(list(columns))[: int(rng.integers(5, len(columns) + 1))])
    return {name: list(own) for name, own in columns.items() if name in kept}


def _names(rng: np.random.Generator, count: int, words: int) -> list[str]:
    """Different names of so many words each: common words, or three times in ten words that no list knows."""
    common = np.array([word for word, families in lexicon().families.items() if families >= 4])
    if rng.random() < 0.3:
        common = np.array([_invented(rng) for _ in range(2 * count + 30)])
    drawn: dict[str, None] = {}
    while len(drawn) < count:
        drawn[" ".join(word.capitalize() for word in common[rng.integers(len(common), size=words)].tolist())] = None
    return list(drawn)


def _invented(rng: np.random.Generator) -> str:
    """A word that can be spoken, as names from elsewhere look."""
    starts, ends = ["", *"bcdfghjklmnprstvwz", "br", "ch", "dr", "gr", "sch", "st", "tr"], [*8 * [""], *"lmnrst"]
    syllables = [(*rng.choice(starts, 1), *rng.choice(list("aeiou"), 1), *rng.choice(ends, 1)) for _ in range(3)]
    return "".join("".join(each) for each in syllables[: int(rng.integers(2, 4))])


def _uneven(rng: np.random.Generator, values: int, rows: int) -> np.ndarray:
    """Places of values of which some are frequent and many are rare."""
    weight = rng.exponential(1, values) ** 2 + 0.02
    return rng.choice(values, rows, p=weight / weight.sum())


def _texts(numbers: np.ndarray) -> list[str]:
    return [str(int(each)) for each in numbers]


def _days(days: np.ndarray) -> list[str]:
    return [str(each.date()) for each in pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")]
