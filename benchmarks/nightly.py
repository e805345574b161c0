"""What a nightly job would harm: python benchmarks/nightly.py [--rows 600] [--seeds 0 1 2] [--months 5] [--show]

Generated months of orders: articles with their names and prices, quantities and totals, customers in their cities,
dates, running order numbers and states. Each month has new articles and new customers, some of them seen once. A model
is fitted to the first month, clean or with planted errors, and repairs the others, clean and with planted errors.
Counts right cells that were changed, right cells that were flagged, and how many of the planted errors were found.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from rich.console import Console

from cellmend import CellMender
from cellmend.errors import SchemaWarning

ARTICLES = (
    "Power strip", "Desk organizer", "Notebook A5", "Sticky notes", "Stapler", "Ballpoint pen", "Paper tray",
    "Desk lamp", "Whiteboard", "Marker set", "Envelope C4", "Letter opener", "Hole punch", "Ring binder", "Glue stick",
    "Paper clips", "Office chair", "Footrest", "Monitor arm", "USB hub", "Keyboard", "Mouse pad", "Headset", "Webcam",
    "Label printer", "Shredder", "Calculator", "Wall clock", "Coat stand", "Waste bin", "Tape dispenser", "Scissors",
    "Cable box", "Door mat", "Flip chart", "Pin board", "Index cards", "Rubber bands", "Ink cartridge", "Laser toner",
)  # fmt: skip
FIRST = (
    "Anna", "Bela", "Carla", "David", "Elif", "Frank", "Greta", "Hugo", "Ines", "Jonas", "Katja", "Liam", "Mira",
    "Nils", "Olga", "Paul", "Rosa", "Sven", "Tara", "Uwe",
)  # fmt: skip
LAST = (
    "Albrecht", "Brandt", "Conrad", "Dietz", "Ebert", "Fischer", "Graf", "Huber", "Jansen", "Keller", "Lang", "Moser",
    "Neumann", "Otto", "Peters", "Richter", "Sauer", "Thoma", "Ulrich", "Weiss",
)  # fmt: skip
CITIES = ("Bonn", "Ulm", "Hamburg", "Leipzig", "Dresden", "Kassel", "Mainz", "Erfurt", "Rostock", "Bremen", "Potsdam")
STATES = {"shipped": 0.7, "paid": 0.15, "open": 0.12, "returned": 0.03}
SOLD_AT_FIRST, NEW_EACH_MONTH = 18, 3  # articles
CUSTOMERS, NEW_CUSTOMERS = 60, 8
FIRST_ORDER, FIRST_DAY = 100_001, date(2026, 1, 1)
ERRORS = 0.01  # share of the cells
say = Console(highlight=False, soft_wrap=True).print


class Spoiled(NamedTuple):
    """A month with errors, and the same without."""

    table: pd.DataFrame
    truth: pd.DataFrame


@dataclass(frozen=True)
class Shop:
    """Who sells what to whom; articles and customers come up in the order of these lists."""

    articles: list[str]
    prices: list[str]
    customers: list[str]
    cities: list[str]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Shop:
        """A shop by chance."""
        articles = rng.permutation(np.array(ARTICLES)).tolist()
        prices = [f"{price:.2f}" for price in np.exp(rng.normal(2.5, 1.0, len(articles))).round(1) + 0.49]
        customers = [
            f"{FIRST[at // len(LAST)]} {LAST[at % len(LAST)]}" for at in rng.permutation(len(FIRST) * len(LAST))
        ]
        return cls(articles, prices, customers, rng.choice(CITIES, len(customers)).tolist())

    def month(self, number: int, rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """The orders of a month, the first being 0, as texts."""
        article = _popular(SOLD_AT_FIRST + NEW_EACH_MONTH * number, NEW_EACH_MONTH * number, rows, rng)
        customer = _popular(CUSTOMERS + NEW_CUSTOMERS * number, NEW_CUSTOMERS * number, rows, rng)
        quantity = np.minimum(1 + rng.poisson(2.0, rows), 12)
        price = np.array(self.prices)[article]
        first = np.datetime64(FIRST_DAY, "M") + number
        days = (first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")
        day = np.sort(rng.integers(0, int(days.astype(int)), rows))
        return pd.DataFrame(
            {
                "order_id": [str(FIRST_ORDER + number * rows + at) for at in range(rows)],
                "date": [str(first.astype("datetime64[D]") + int(each)) for each in day],
                "customer": np.array(self.customers)[customer],
                "city": np.array(self.cities)[customer],
                "article": [f"A{at + 1:03d}" for at in article],
                "name": np.array(self.articles)[article],
                "price": price,
                "quantity": [str(each) for each in quantity],
                "total": [f"{float(p) * int(q):.2f}" for p, q in zip(price, quantity, strict=True)],
                "status": rng.choice(list(STATES), rows, p=list(STATES.values())),
            },
            dtype=object,
        )


def _popular(many: int, new: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Which of so many things each row has: the first far more often than the last, the new ones now and then."""
    old = many - new
    weights = np.concatenate([1 / (1 + np.arange(old)) ** 0.7, np.geomspace(0.2, 0.02, max(new, 1))[:new]])
    return rng.choice(many, rows, p=weights / weights.sum())


# ---------------------------------------------------------------- errors


def _typo(text: str, _: pd.Series, rng: np.random.Generator) -> str:
    at = int(rng.integers(1, len(text) - 1))
    instead = ["", 2 * text[at], str(rng.choice(list("bdfgkmpvwz")))]
    return text[:at] + str(rng.choice(instead)) + text[at + 1 :]


def _tenfold(text: str, _: pd.Series, rng: np.random.Generator) -> str:
    return f"{float(text) * 10:.2f}"


def _miscounted(text: str, _: pd.Series, rng: np.random.Generator) -> str:
    return f"{float(text) + float(rng.integers(1, 9)):.2f}"


def _other_year(text: str, _: pd.Series, rng: np.random.Generator) -> str:
    return str(rng.choice(["1926", "2062", "2206"])) + text[4:]


def _no_number(text: str, _: pd.Series, rng: np.random.Generator) -> str:
    return text.replace("1", "l") if "1" in text else f"{text}x"


def _other_value(text: str, column: pd.Series, rng: np.random.Generator) -> str:
    return str(rng.choice(column[column != text].to_numpy()))


KINDS: dict[str, tuple[tuple[str, ...], Callable[[str, pd.Series, np.random.Generator], str]]] = {
    "typo": (("name", "city", "customer", "status"), _typo),
    "tenfold": (("price", "total"), _tenfold),
    "wrong sum": (("total",), _miscounted),
    "other year": (("date",), _other_year),
    "no number": (("price", "quantity"), _no_number),
    "other value": (("name", "city"), _other_value),
}


def with_errors(truth: pd.DataFrame, rng: np.random.Generator) -> Spoiled:
    """A month in which a share of the cells is wrong, at most one of a row."""
    table = truth.copy()
    for row in rng.choice(len(truth), round(ERRORS * truth.size), replace=False).tolist():
        columns, spoil = KINDS[str(rng.choice(list(KINDS)))]
        column = str(rng.choice(list(columns)))
        table.loc[row, column] = spoil(str(truth.loc[row, column]), truth[column], rng)
    return Spoiled(table, truth)


# ---------------------------------------------------------------- what is done to them


@dataclass
class Harm:
    """What was done to some months, in cells."""

    cells: int = 0
    errors: int = 0
    found: int = 0
    repaired: int = 0  # as they were
    changed: int = 0  # that were right
    flagged: int = 0  # that were right, but for those in contradiction with a wrong one
    reasons: list[str] = field(default_factory=list)  # why right cells were flagged

    def add(self, mender: CellMender, month: Spoiled) -> None:
        """Also what a model does to this month."""
        mended = mender.mend(month.table, fdr=0.1)
        wrong = month.table.to_numpy(object) != month.truth.to_numpy(object)
        found, repaired = mended.findings, mended.repaired.to_numpy(object)
        columns = {name: place for place, name in enumerate(month.table.columns)}
        places = [(row, columns[name]) for row, name in zip(found["row"], found["column"], strict=True)]
        open_ones = Counter[float]()
        for place, number in zip(places, found["contradiction"], strict=True):
            if wrong[place] and pd.notna(number):
                open_ones[number] += 1
        flagged = np.zeros_like(wrong)
        for place, each in zip(places, found.to_dict("records"), strict=True):
            explained = pd.notna(each["contradiction"]) and open_ones[each["contradiction"]]
            flagged[place] = not explained or wrong[place]
            if flagged[place] and not wrong[place]:
                self.reasons.append(f"{each['suspicion']:.3f} {each['reason']}: {each['repair']}")
        self.cells += wrong.size
        self.errors += int(wrong.sum())
        self.found += int((flagged & wrong).sum())
        self.repaired += int((wrong & (repaired == month.truth.to_numpy(object))).sum())
        self.changed += int((~wrong & (repaired != month.table.to_numpy(object))).sum())
        self.flagged += int((flagged & ~wrong).sum())

    def __str__(self) -> str:
        rate = 10_000 * self.flagged / max(self.cells, 1)
        return (
            f"{self.cells:,} cells: {self.changed} right ones changed, {self.flagged} flagged ({rate:.1f} in 10,000); "
            f"{self.found} of {self.errors} errors found, {self.repaired} repaired"
        )


def harm(seed: int, rows: int, months: int, *, spoiled_first: bool = False) -> tuple[Harm, Harm]:
    """What a model of the first month does to the others, clean and with errors."""
    rng = np.random.default_rng(seed)
    shop = Shop.draw(rng)
    truths = [shop.month(number, rows, rng) for number in range(months)]
    first = with_errors(truths[0], rng).table if spoiled_first else truths[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        mender = CellMender(random_state=0).fit(first)
    clean, dirty = Harm(), Harm()
    for truth in truths[1:]:
        clean.add(mender, Spoiled(truth, truth))
        dirty.add(mender, with_errors(truth, rng))
    return clean, dirty


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=600, help="of each month")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--months", type=int, default=5)
    parser.add_argument("--show", action="store_true", help="why right cells were flagged")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for seed in asked.seeds:
        for spoiled_first in (False, True):
            first = "with errors" if spoiled_first else "clean"
            both = harm(seed, asked.rows, asked.months, spoiled_first=spoiled_first)
            for name, found in zip(("clean", "dirty"), both, strict=True):
                say(f"seed {seed}, first month {first}, later ones {name}: {found}")
                for reason in found.reasons if asked.show else ():
                    say(f"    {reason}")


if __name__ == "__main__":
    main()
