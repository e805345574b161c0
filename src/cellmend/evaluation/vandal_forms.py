"""What people do to texts of one form, and to dates, so that they break it: texts in, texts out."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from cellmend.evaluation.vandal_numbers import DAY, ISO_DAY
from cellmend.evaluation.vandal_words import Rng, look_alike, one_of

Way = Callable[[str], str]

FORMS = {
    "telephone number": re.compile(r"(?=(\D*\d){7})\+?\(?\d{2,5}\)?([ ./-]\(?\d{2,8}\)?){1,5}"),
    "mail address": re.compile(r"[^@\s,]+@[^@\s,]+\.[^@\s.,]{2,}"),
    "account number": re.compile(r"[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){2,7}( ?[A-Z0-9]{1,4})?"),
    "postcode": re.compile(r"\d{5}(-\d{4})?"),
    "web address": re.compile(r"(https?|ftp)://[^\s/.]+(\.[^\s/.]+)+(/\S*)?"),
    "time of day": re.compile(r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?"),
}


def _wrong_digits(text: str, rng: Rng, flavour: float) -> str:
    """A letter for a digit, a digit lost, or one struck twice."""
    places = [place for place, letter in enumerate(text) if letter.isdigit()][1:]
    if not places:
        return text
    place = one_of(places, rng)
    ways = (
        look_alike(text, rng, flavour),
        text[:place] + text[place + 1 :],
        text[:place] + text[place] + text[place:],
    )
    return ways[int(flavour * len(ways))]


def _one_way(ways: tuple[Way, ...], text: str, rng: Rng, flavour: float) -> str:
    return ways[int(flavour * len(ways))](text)


def _late(text: str) -> str:
    """A time with an hour or a minute that no clock shows."""
    hour, minute = text.split(":", 1)
    return f"{hour}:{int(minute[:2]) + 60}{minute[2:]}" if int(hour) < 5 else f"{int(hour) + 24}:{minute}"


def _plain_ways(**ways: tuple[Way, ...]) -> dict[str, Callable[[str, Rng, float], str]]:
    return {name.replace("_", " "): partial(_one_way, own) for name, own in ways.items()}


BREAKS: dict[str, Callable[[str, Rng, float], str]] = {
    **dict.fromkeys(("telephone number", "account number", "postcode"), _wrong_digits),
    **_plain_ways(
        mail_address=(
            lambda text: text.replace("@", ""),
            lambda text: ",".join(text.rsplit(".", 1)),
            lambda text: text.replace("@", "(at)"),
            lambda text: text.replace("@", "@ "),
        ),
        web_address=(
            lambda text: text.replace("://", ":/", 1),
            lambda text: text.replace("://", ":", 1),
            lambda text: text.replace("tp", "pt", 1),
            lambda text: text.replace(".", " ", 1),
        ),
        time_of_day=(
            _late,
            lambda text: text.replace(":", "", 1),
            lambda text: text.replace(":", ";", 1),
        ),
    ),
}


def impossible_date(text: str, rng: Rng, flavour: float) -> str:
    """A month after the twelfth, or a day after the thirty-first."""
    month, day = str(int(rng.integers(13, 60))), str(int(rng.integers(32, 80)))
    iso, plain = ISO_DAY.match(text), DAY.match(text)
    if iso:
        year, mark, old_month, old_day, rest = iso.groups()
        return mark.join((year, month, old_day) if flavour < 0.5 else (year, old_month, day)) + rest
    if plain:
        one, mark, other, year, rest = plain.groups()  # day or month comes first: neither can be so large
        return mark.join((day, other, year) if flavour < 0.5 else (one, day, year)) + rest
    return text
