"""What people do to numbers and dates when they get them wrong: texts in, texts out, as it was where it cannot be."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from cellmend.evaluation.vandal_words import Rng, one_of, pick

SENTINELS = ("-1", "999", "9999", "-999", "99999", "-9999", "-99", "99")  # numbers that stand for nothing
UNITS = (2.54, 0.3048, 1.609344, 0.45359, 3.78541, 4046.86, 1000.0, 60.0, 0.6214, 3.28084, 100.0)
YEAR = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)(?!\d)")
DAY = re.compile(r"^(\d{1,2})([/.-])(\d{1,2})\2(\d{2,4})(.*)$")
ISO_DAY = re.compile(r"^(\d{4})([/-])(\d{2})\2(\d{2})(.*)$")
YEARS_OFF = (-1, 1, -10, 10, -100, 100, -1000)


def number(text: str) -> float | None:
    """The number that a text is, if it is a plain one.

    >>> [number(text) for text in ("-1.5", "1e3", "nan", "1_000", "x")]
    [-1.5, 1000.0, None, None, None]
    """
    if not re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*", text, flags=re.ASCII):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def same(seen: str, meant: str) -> bool:
    """Whether two texts say the same, as text or as numbers."""
    if seen.strip() == meant.strip():
        return True
    a, b = number(seen), number(meant)
    return a is not None and b is not None and abs(a - b) <= 1e-6 * max(1e-9, abs(b))


def decimals(text: str) -> int:
    """Digits after the point."""
    return len(re.sub(r"[eE].*", "", text.strip()).partition(".")[2])


def written_like(value: float, text: str, *, more: int = 0) -> str:
    """A number with as many digits after the point as another one."""
    return f"{value:.{min(decimals(text) + more, 12)}f}"


def flip_sign(text: str, rng: Rng, flavour: float) -> str:
    """A minus too many, or one forgotten."""
    own = text.strip()
    value = number(own)
    if value is None or value == 0:
        return text
    return own[1:] if own.startswith("-") else f"-{own.removeprefix('+')}"


def shift_point(text: str, rng: Rng, flavour: float) -> str:
    """The decimal point one to three places off."""
    value = number(text)
    if value is None or value == 0 or "e" in text.lower():
        return text
    shift = pick((1, -1, 2, -2, 3, 1, -1), flavour)
    return f"{Decimal(text.strip()).scaleb(shift).normalize():f}"


def other_unit(text: str, rng: Rng, flavour: float) -> str:
    """The same amount in another unit."""
    value = number(text)
    if value is None or value == 0 or "e" in text.lower():
        return text
    return written_like(value * pick(UNITS, flavour), text, more=0 if decimals(text) else int(rng.integers(0, 3)))


def add_noise(text: str, rng: Rng, flavour: float, *, scale: float) -> str:
    """An outlier: Laplace or Gaussian noise some times as wide as the column."""
    value = number(text)
    if value is None:
        return text
    draw = rng.laplace() if flavour < 0.5 else rng.normal()
    far = math.copysign(1 + abs(draw), draw) * pick((2.0, 4.0, 8.0), flavour * 2 % 1)
    return written_like(value + far * scale, text)


def wrong_date(text: str, rng: Rng, flavour: float) -> str:
    """Another year, or day and month the wrong way round."""
    if flavour < 0.35:
        turned = _turned(text)
        if turned != text:
            return turned
    found = YEAR.search(text)
    if found is None:
        return text
    off = pick(YEARS_OFF, flavour) if flavour > 0.2 else one_of(YEARS_OFF, rng)
    return f"{text[: found.start()]}{int(found.group()) + off:04d}{text[found.end() :]}"


def _turned(text: str) -> str:
    """Day and month exchanged where both can be months."""
    iso = ISO_DAY.match(text)
    if iso and int(iso[3]) <= 12 and int(iso[4]) <= 12:
        return f"{iso[1]}{iso[2]}{iso[4]}{iso[2]}{iso[3]}{iso[5]}"
    plain = DAY.match(text)
    if plain and int(plain[1]) <= 12 and int(plain[3]) <= 12:
        return f"{plain[3]}{plain[2]}{plain[1]}{plain[2]}{plain[4]}{plain[5]}"
    return text


def is_date(text: str) -> bool:
    """Whether a text is a date, or begins with one."""
    return bool((DAY.match(text) or ISO_DAY.match(text)) and len(text) < 40)
