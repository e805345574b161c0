"""The tables of `walk`, as people have them: orders, staff, sensors, a European export and reviews."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from cellmend_bench import walk_errors as slips
from cellmend_bench import walk_words as words
from cellmend_bench.walk_errors import EACH, Draft, Rng

Names = Sequence[str]


@dataclass(frozen=True)
class Walked:
    """A kind of table: how one is made and goes wrong, how its file looks, and which of its columns are amounts."""

    make: Callable[[Rng, int], Draft]
    rows: int
    amounts: Names  # repaired rightly if within 1 %
    delimiter: str = ","
    decimal: str = "."


def chosen(rng: Rng, options: Sequence[str], rows: int, *, skewed: bool = False) -> list[str]:
    """So many of these, some far more often if `skewed`."""
    weights = 1 / np.arange(1, len(options) + 1) ** (0.8 if skewed else 0.0)
    return [options[place] for place in rng.choice(len(options), rows, p=weights / weights.sum())]


def days(rng: Rng, first: str, last: str, rows: int) -> pd.Series:
    """Days between two, drawn at random."""
    start, end = pd.Timestamp(first), pd.Timestamp(last)
    return pd.Series(start + pd.to_timedelta(rng.integers((end - start).days, size=rows), unit="D"))


def money(values: object, decimal: str = ".") -> list[str]:
    """Amounts with two decimals."""
    return [f"{value:.2f}".replace(".", decimal) for value in np.asarray(values, dtype=float)]


# ---------------------------------------------------------------- orders


def orders(rng: Rng, rows: int) -> Draft:
    """A customer decides city, state and zip, an article its price; total = quantity * price."""
    customers = [words.ADDRESSES[place] for place in rng.integers(len(words.ADDRESSES), size=160)]
    who = rng.choice(len(customers), rows, p=rng.dirichlet(np.full(len(customers), 3.0)))
    articles = words.ARTICLES
    prices = np.round(rng.lognormal(2.8, 0.7, len(articles)), 2)
    what = [articles.index(each) for each in chosen(rng, articles, rows, skewed=True)]
    quantity = np.minimum(1 + rng.geometric(0.35, rows), 24)
    clean = pd.DataFrame(
        {
            "order_id": [f"OR{number}" for number in range(70_001, 70_001 + rows)],
            "ordered": days(rng, "2023-01-01", "2024-12-31", rows).sort_values().dt.strftime("%Y-%m-%d").to_numpy(),
            "customer": [f"K{1000 + each}" for each in who],
            "city": [customers[each][0] for each in who],
            "state": [customers[each][1] for each in who],
            "zip": [customers[each][2] for each in who],
            "article": [articles[each] for each in what],
            "quantity": [str(each) for each in quantity],
            "price": money(prices[what]),
            "total": money(quantity * prices[what]),
            "status": chosen(rng, ["shipped", "delivered", "returned", "open"], rows, skewed=True),
        },
        dtype=object,
    )
    draft = Draft(clean, rng)
    draft.slip("spelling slip", ["city", "state", "article"], slips.misspell)
    draft.slip("another case", ["city", "article", "status"], slips.other_case)
    draft.slip("spaces", ["city", "article", "status"], slips.stray_space)
    draft.slip("decimal point", ["price", "total"], slips.moved_point)
    draft.slip("sign", ["quantity", "price", "total"], slips.minus)
    draft.slip("sentinel", ["quantity", "price"], slips.one_of("9999", "-1", "8888"))
    draft.slip("placeholder", ["city", "article", "status"], slips.one_of(*words.NOT_SAID))
    draft.slip("letters for digits", ["zip", "price", "total", "quantity"], slips.letters_for_digits)
    draft.slip("decimal comma", ["price", "total"], slips.other_mark)
    draft.slip("impossible date", ["ordered"], slips.impossible_date)
    draft.slip("mistyped year", ["ordered"], slips.mistyped_year)
    draft.slip("postcode", ["zip"], slips.broken_postcode)
    draft.slip("arithmetic", ["total"], partial(other_total, decimal="."))
    draft.take_other("wrong but valid", "zip")
    draft.take_other("wrong but valid", "city")
    draft.repeat_key("order_id")
    draft.take_next(["city", "state", "article"])
    return draft


def other_total(text: str, rng: Rng, decimal: str) -> str:
    """An amount that is wrong and looks like any other."""
    return money([float(text.replace(",", ".")) * rng.uniform(0.5, 1.8)], decimal)[0]


# ---------------------------------------------------------------- staff


def staff(rng: Rng, rows: int) -> Draft:
    """People with dates, telephone numbers, mail addresses and accounts; hired at 18 to 60, paid by grade."""
    first, last = chosen(rng, words.FIRST, rows, skewed=True), chosen(rng, words.LAST, rows)
    born = days(rng, "1960-01-01", "2000-12-31", rows)
    hired = born + pd.to_timedelta(rng.integers(18 * 365, 24 * 365, rows) + rng.integers(0, 2500, rows), unit="D")
    grade = rng.integers(1, 7, rows)
    extension = rng.integers(0, 10_000, rows)
    clean = pd.DataFrame(
        {
            "number": [f"E{each}" for each in rng.choice(np.arange(20_000, 60_000), rows, replace=False)],
            "first_name": first,
            "last_name": last,
            "born": born.dt.strftime("%Y-%m-%d"),
            "hired": hired.dt.strftime("%Y-%m-%d"),
            "department": chosen(rng, words.DEPARTMENTS, rows, skewed=True),
            "grade": [f"G{each}" for each in grade],
            "salary": [str(int(each)) for each in np.round(rng.normal(30_000 + 9_000 * grade, 2_500), -1)],
            "phone": [f"{area}-{each:04d}" for area, each in zip(rng.integers(200, 999, rows), extension, strict=True)],
            "mail": [f"{one}.{other}@brightmoor.com".lower() for one, other in zip(first, last, strict=True)],
            "iban": [iban(rng) for _ in range(rows)],
            "starts": [f"{hour:02d}:{minute:02d}" for hour, minute in rng.choice(SHIFTS, rows)],
        },
        dtype=object,
    )
    draft = Draft(clean, rng)
    draft.slip("spelling slip", ["department", "first_name", "last_name"], slips.misspell)
    draft.slip("another case", ["department", "first_name", "last_name"], slips.other_case)
    draft.slip("spaces", ["department", "first_name", "mail"], slips.stray_space)
    draft.slip("sign", ["salary"], slips.minus)
    draft.slip("decimal point", ["salary"], tenfold)
    draft.slip("sentinel", ["salary"], slips.one_of("999999", "0", "-1"))
    draft.slip("sentinel", ["born", "hired"], slips.one_of("1900-01-01", "9999-12-31"))
    draft.slip("placeholder", ["department", "last_name", "mail"], slips.one_of(*words.NOT_SAID))
    draft.slip("letters for digits", ["salary", "hired", "grade"], slips.letters_for_digits)
    draft.exchange("swapped dates", "born", "hired")
    draft.exchange("swapped names", "first_name", "last_name")
    draft.slip("impossible date", ["born", "hired"], slips.impossible_date)
    draft.slip("mistyped year", ["born", "hired"], slips.mistyped_year)
    draft.slip("telephone", ["phone"], slips.broken_telephone)
    draft.slip("mail", ["mail"], slips.broken_mail)
    draft.slip("IBAN", ["iban"], slips.broken_iban)
    draft.slip("time", ["starts"], slips.broken_time)
    draft.repeat_key("number")
    draft.take_next(["last_name", "department", "salary", "mail"])
    return draft


SHIFTS = ((6, 0), (6, 30), (7, 0), (8, 15), (9, 0), (14, 0), (22, 0))


def tenfold(text: str, rng: Rng) -> str:
    """A nought too many, or one too few."""
    return f"{text}0" if rng.random() < 0.5 or not text.endswith("0") else text[:-1]


def iban(rng: Rng) -> str:
    """A German one, with its two check digits."""
    account = "".join(map(str, rng.integers(0, 10, 18)))
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


# ---------------------------------------------------------------- sensors


def sensors(rng: Rng, rows: int) -> Draft:
    """Three sensors in turn, every ten minutes; each signal drifts, follows the day and has some noise."""
    names, steps = ("north", "south", "roof"), rows // 3
    times = pd.Series(pd.date_range("2024-03-01", periods=steps, freq="10min").strftime("%Y-%m-%d %H:%M"))
    day = np.sin(np.arange(steps) / 144 * 2 * np.pi - 2)[:, None]
    own = rng.normal(0, 1.5, 3)
    warmth = 12 + 6 * day + own + np.cumsum(rng.normal(0, 0.05, (steps, 3)), axis=0) + rng.normal(0, 0.15, (steps, 3))
    humid = np.clip(62 - 2.2 * (warmth - 12) + rng.normal(0, 0.8, (steps, 3)), 5, 99)
    pressure = 1013 + np.cumsum(rng.normal(0, 0.08, (steps, 1)), axis=0) + rng.normal(0, 0.1, (steps, 3))
    volts = 4.1 - np.arange(steps)[:, None] * 4e-4 + rng.normal(0, 0.01, (steps, 3))
    signals = {"temperature": (warmth, 1), "humidity": (humid, 1), "pressure": (pressure, 1), "battery": (volts, 2)}
    clean = pd.DataFrame({"time": np.repeat(times.to_numpy(), 3), "sensor": list(names) * steps}, dtype=object)
    for name, (values, decimals) in signals.items():
        clean[name] = pd.Series([f"{value:.{decimals}f}" for value in values.ravel()], dtype=object)
    draft = Draft(clean, rng)
    starts = rng.choice(np.arange(20, steps - 60, 45), 2 * EACH, replace=False)
    for place, start in enumerate(starts):
        rows_of_one = [int(each) * 3 + place % 3 for each in range(start, start + int(rng.integers(18, 36)))]
        if place < EACH:
            draft.run("stuck sensor", rows_of_one, [str(rng.choice(["temperature", "humidity", "pressure"]))])
        else:
            draft.run("outage", rows_of_one, list(signals), str(rng.choice(["0", "-999", "-999.9"])))
    draft.slip("decimal point", list(signals), slips.moved_point)
    draft.slip("sign", ["temperature", "humidity", "pressure", "battery"], slips.minus)
    draft.slip("sentinel", list(signals), slips.one_of("-999", "9999"))
    draft.slip("letters for digits", list(signals), slips.letters_for_digits)
    draft.slip("decimal comma", list(signals), slips.other_mark)
    draft.slip("spelling slip", ["sensor"], slips.misspell)
    draft.slip("another case", ["sensor"], slips.other_case)
    draft.slip("impossible date", ["time"], slips.impossible_date)
    draft.slip("mistyped year", ["time"], slips.mistyped_year)
    draft.take_next(["temperature", "humidity", "pressure"])
    return draft


# ---------------------------------------------------------------- a European export


def european(rng: Rng, rows: int) -> Draft:
    """Invoices with semicolons, decimal commas and dd.mm.yyyy; Betrag = Menge * Preis, Brutto = Betrag * 1,19."""
    towns = [line.rsplit(" ", 1) for line in words.ORTE]
    customers = [towns[place] for place in rng.integers(len(towns), size=90)]
    who = rng.integers(len(customers), size=rows)
    wares = words.WAREN
    prices = np.round(rng.lognormal(1.9, 0.8, len(wares)), 2)
    what = [wares.index(each) for each in chosen(rng, wares, rows, skewed=True)]
    count = np.minimum(rng.geometric(0.15, rows), 60)
    net = np.round(count * prices[what], 2)
    dates = days(rng, "2023-06-01", "2024-06-30", rows).sort_values(ignore_index=True)
    paid = dates + pd.to_timedelta(rng.integers(1, 45, rows), unit="D")
    clean = pd.DataFrame(
        {
            "Rechnung": [f"RE-{number}" for number in range(4001, 4001 + rows)],
            "Datum": dates.dt.strftime("%d.%m.%Y"),
            "Kunde": [f"KD{500 + each}" for each in who],
            "PLZ": [customers[each][1] for each in who],
            "Ort": [customers[each][0] for each in who],
            "Ware": [wares[each] for each in what],
            "Menge": [str(each) for each in count],
            "Preis": money(prices[what], ","),
            "Betrag": money(net, ","),
            "Brutto": money(net * 1.19, ","),
            "Bezahlt": paid.dt.strftime("%d.%m.%Y"),
            "Gewicht": [f"{each:.3f}".replace(".", ",") for each in rng.lognormal(0.5, 0.4, rows)],
        },
        dtype=object,
    )
    draft = Draft(clean, rng)
    draft.slip("spelling slip", ["Ort", "Ware"], slips.misspell)
    draft.slip("another case", ["Ort", "Ware"], slips.other_case)
    draft.slip("spaces", ["Ort", "Ware"], slips.stray_space)
    draft.slip("decimal point", ["Preis", "Betrag", "Brutto"], slips.moved_point)
    draft.slip("sign", ["Menge", "Preis", "Brutto"], slips.minus)
    draft.slip("sentinel", ["Menge", "Preis", "Gewicht"], slips.one_of("9999", "-1"))
    draft.slip("placeholder", ["Ort", "Ware"], slips.one_of(*words.NICHT_GESAGT))
    draft.slip("letters for digits", ["Menge", "Preis", "Betrag", "PLZ"], slips.letters_for_digits)
    draft.slip("decimal comma", ["Preis", "Betrag", "Brutto", "Gewicht"], slips.other_mark)
    draft.slip("impossible date", ["Datum", "Bezahlt"], slips.impossible_date)
    draft.slip("mistyped year", ["Datum", "Bezahlt"], slips.mistyped_year)
    draft.exchange("swapped dates", "Datum", "Bezahlt")
    draft.slip("arithmetic", ["Betrag", "Brutto"], partial(other_total, decimal=","))
    draft.take_other("wrong but valid", "PLZ")
    draft.slip("postcode", ["PLZ"], slips.broken_postcode)
    draft.repeat_key("Rechnung")
    draft.take_next(["PLZ", "Ort", "Ware"])
    return draft


# ---------------------------------------------------------------- reviews


def reviews(rng: Rng, rows: int) -> Draft:
    """A place has a city, a kitchen, a postcode, a page and a point on the map; people come, rate and write."""
    names = [f"{one} {other}" for one in words.SIGNS for other in words.HOUSES]
    where = [words.ADDRESSES[each] for each in rng.integers(len(words.ADDRESSES), size=len(names))]
    kitchens = chosen(rng, words.KITCHENS, len(names))
    north, east = rng.uniform(31, 48, len(names)), rng.uniform(-122, -75, len(names))
    which = rng.integers(len(names), size=rows)
    stars = rng.choice([1, 2, 3, 4, 5], rows, p=[0.07, 0.1, 0.2, 0.38, 0.25])
    parts = (words.OPINIONS, words.TOPICS, words.TOPICS)
    said = zip(*(chosen(rng, each, rows) for each in parts), strict=True)
    clean = pd.DataFrame(
        {
            "review": [str(number) for number in np.sort(rng.choice(np.arange(500_000, 900_000), rows, replace=False))],
            "place": [names[each] for each in which],
            "kitchen": [kitchens[each] for each in which],
            "city": [where[each][0] for each in which],
            "postcode": [where[each][2] for each in which],
            "latitude": [f"{north[each]:.4f}" for each in which],
            "longitude": [f"{east[each]:.4f}" for each in which],
            "page": [f"https://www.tablefinder.net/{names[each].lower().replace(' ', '-')}" for each in which],
            "visited": days(rng, "2022-01-01", "2024-06-30", rows).dt.strftime("%Y-%m-%d"),
            "seated": [f"{hour:02d}:{5 * minute:02d}" for hour, minute in rng.integers((11, 0), (23, 12), (rows, 2))],
            "stars": [str(each) for each in stars],
            "score": [f"{each:.1f}" for each in np.clip(stars * 2 + rng.normal(0, 0.5, rows), 0.5, 10)],
            "comment": [f"{how.capitalize()} {one}, and we liked the {two}." for how, one, two in said],
        },
        dtype=object,
    )
    draft = Draft(clean, rng)
    draft.slip("spelling slip", ["place", "kitchen", "city"], slips.misspell)
    draft.slip("another case", ["place", "kitchen", "city"], slips.other_case)
    draft.slip("spaces", ["place", "kitchen", "city"], slips.stray_space)
    draft.slip("decimal point", ["latitude", "longitude"], slips.moved_point)
    draft.slip("sign", ["latitude", "score"], slips.minus)
    draft.slip("sentinel", ["stars", "score"], slips.one_of("99", "-1"))
    draft.slip("placeholder", ["place", "kitchen", "comment"], slips.one_of(*words.NOT_SAID))
    draft.slip("letters for digits", ["postcode", "score", "latitude"], slips.letters_for_digits)
    draft.slip("decimal comma", ["score", "latitude", "longitude"], slips.other_mark)
    draft.exchange("swapped coordinates", "latitude", "longitude")
    draft.slip("impossible date", ["visited"], slips.impossible_date)
    draft.slip("mistyped year", ["visited"], slips.mistyped_year)
    draft.slip("URL", ["page"], slips.broken_url)
    draft.slip("time", ["seated"], slips.broken_time)
    draft.take_other("wrong but valid", "city")
    draft.slip("postcode", ["postcode"], slips.broken_postcode)
    draft.repeat_key("review")
    draft.take_next(["place", "kitchen", "city"])
    return draft


TABLES = {
    "orders": Walked(orders, 1500, ("quantity", "price", "total")),
    "staff": Walked(staff, 800, ("salary",)),
    "sensors": Walked(sensors, 2400, ("temperature", "humidity", "pressure", "battery")),
    "european": Walked(european, 1000, ("Menge", "Preis", "Betrag", "Brutto", "Gewicht"), ";", ","),
    "reviews": Walked(reviews, 900, ("latitude", "longitude", "stars", "score")),
}
