"""Errors in what a cell says: numbers and dates that are off or unreadable, texts cut off or glued."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from random import Random

from .cells import Column, Place, date_in, day_of, number_in, put_in, rewritten, value_of
from .kinds import Kind, Kinds, change_one, one, spot

KINDS = Kinds()

# Numbers that can be read, but are off

_FACTORS = (2.54, 1 / 2.54, 1.609344, 1 / 1.609344, 0.4536, 1 / 0.4536, 3.281, 1 / 3.281, 60, 1 / 60, 1000, 0.001,
            100, 0.01, 12, 1 / 12, 24, 7, 365.25, 3.785, 28.35, 0.3048, 1.1, 1024, 4.184, 0.7457, 2, 0.5)  # fmt: skip
_OFFSETS = (1, -1, 2, 5, 10, -10, 50, 100, -100, 1000, 32, 273.15, 360, -180, 12, 24, 256, 65536)


def _off(change: Callable[[float, Column, Random], float]) -> Callable[[str, Place, Random], str]:
    def apply(text: str, at: Place, dice: Random) -> str:
        number = number_in(text)
        if not number:
            return text
        new = rewritten(number, change(value_of(number), at.column, dice))
        return text if (read := number_in(new)) and value_of(read) == value_of(number) else new

    return apply


def _one_of(items: tuple[float, ...], dice: Random) -> float:
    return items[spot(len(items), dice)]


def _signed(size: float, dice: Random) -> float:
    return -size if dice.random() < 0.5 else size


def _cauchy(dice: Random) -> float:
    return max(min(math.tan(math.pi * (dice.random() - 0.5)), 1e4), -1e4)


def _sizes(dice: Random) -> float:
    """From 1 to 10 standard deviations, small ones as often as large ones."""
    return 10.0 ** dice.random()


_OFF: dict[str, Callable[[float, Column, Random], float]] = {
    "unit": lambda x, c, d: x * _one_of(_FACTORS, d),
    "fahrenheit": lambda x, c, d: (
        _one_of((1.8 * x + 32, (x - 32) / 1.8, x + 273.15, x - 273.15), d) if -100 < x < 400 else x
    ),
    "gaussian_noise": lambda x, c, d: x + c.spread * _sizes(d) * d.gauss(0, 1),
    "laplace_noise": lambda x, c, d: x + c.spread * _sizes(d) * _signed(d.expovariate(1), d),
    "uniform_noise": lambda x, c, d: x + c.spread * _sizes(d) * d.uniform(-1, 1),
    "small_noise": lambda x, c, d: x + c.spread * d.gauss(0, 0.5),
    "outlier": lambda x, c, d: x + c.spread * (4 * _cauchy(d) + _signed(3, d)),
    "shifted": lambda x, c, d: x + _signed(c.spread * (1 + 4 * d.random()), d),
    "constant_added": lambda x, c, d: x + _one_of(_OFFSETS, d),
    "off_by_one": lambda x, c, d: x + _signed(1, d),
    "complement": lambda x, c, d: (1 if 0 < x < 1 else 100 if 0 < x < 100 else 2 * x) - x,
    "relative_noise": lambda x, c, d: x * math.exp(d.gauss(0, 1)),
}


def _unrounded(text: str, at: Place, dice: Random) -> str:
    """Off, and with all the decimals that a calculation leaves."""
    number = number_in(text)
    return text if not number else repr(value_of(number) + at.column.spread * _sizes(dice) * dice.gauss(0, 1))


KINDS["unrounded_noise"] = Kind("unrounded_noise", "number", "number", _unrounded)
for _name, _change in _OFF.items():
    KINDS[_name] = Kind(_name, "number", "number", _off(_change))


def _digits(change: Callable[[str, Random], str]) -> Callable[[str, Random], str]:
    """A change of the digits of a number, of its first seven: what is behind them is hardly ever typed."""

    def apply(text: str, dice: Random) -> str:
        number = number_in(text)
        if not number:
            return text
        new = put_in(number, "body", change(number["body"][:7], dice) + number["body"][7:])
        return text if not (read := number_in(new)) or value_of(read) == value_of(number) else new

    return apply


def _wrong_digit(digit: str, dice: Random) -> str:
    return str((int(digit) + 1 + spot(9, dice)) % 10)


def _near_digit(digit: str, dice: Random) -> str:
    keypad = {"0": "12", "1": "024", "2": "135", "3": "26", "4": "157", "5": "2468", "6": "359", "7": "48", "8": "579"}
    return one(keypad.get(digit, "68"), dice)


def _decimal_shift(text: str, dice: Random) -> str:
    number, places = number_in(text), int(_one_of((1, 1, 1, -1, -1, 2, 2, -2, 3, -3, 4, 6), dice))
    if not number or number["power"] or not value_of(number):
        return text
    new = f"{Decimal(number['body'].replace(',', '')).scaleb(places):f}"
    return put_in(number, "body", new.rstrip("0").rstrip(".") if "." in new else new)


def _rounded(text: str, dice: Random) -> str:
    """Fewer decimals, or zeros for the last digits."""
    number, lost = number_in(text), 1 + spot(3, dice)
    if not number or number["power"]:
        return text
    value, decimals = value_of(number), len(number["decimals"] or "")
    if not decimals:
        return rewritten(number, round(value, -lost)) if abs(value) > 5 * 10**lost else text
    short = f"{value:.{max(min(decimals, 4) - lost, 0)}f}"
    return put_in(number, "body", short) if float(short) != value else text


def _sign(text: str, dice: Random) -> str:
    number = number_in(text)
    if not number or not value_of(number):
        return text
    body = number["body"]
    return put_in(number, "body", body[1:] if body[0] == "-" else "-" + body.lstrip("+"))


def _point_moved(text: str, dice: Random) -> str:
    number = number_in(text)
    if not number or number["power"]:
        return text
    body = number["body"].replace(".", "").replace(",", "")
    digits = body.lstrip("+-")
    sign = body[: len(body) - len(digits)]
    place = 1 + spot(min(len(digits), 7), dice)
    new = put_in(number, "body", sign + (digits if place >= len(digits) else f"{digits[:place]}.{digits[place:]}"))
    return text if not (read := number_in(new)) or value_of(read) == value_of(number) else new


KINDS.plain(
    "number",
    "number",
    sign=_sign,
    rounded=_rounded,
    decimal_shift=_decimal_shift,
    digit_wrong=_digits(lambda t, d: change_one(r"\d", t, d, lambda each: _wrong_digit(each, d))),
    digit_near=_digits(lambda t, d: change_one(r"\d", t, d, lambda each: _near_digit(each, d))),
    digits_swapped=_digits(lambda t, d: change_one(r"(?=(\d)(?!\1))\d\d", t, d, lambda each: each[::-1])),
    digit_dropped=_digits(lambda t, d: change_one(r"\d", t, d, lambda each: "") if len(t) > 1 else t),
    digit_doubled=_digits(lambda t, d: change_one(r"\d", t, d, lambda each: each * 2)),
    digit_inserted=_digits(lambda t, d: change_one(r"\d", t, d, lambda each: each + _wrong_digit(each, d))),
    point_lost=lambda t, d: t.replace(".", "") if 0 < t.find(".") < 8 else t,
    point_moved=_point_moved,
)


@KINDS.add("number", "number")
def stuck(text: str, at: Place, dice: Random) -> str:
    """What was measured some rows before, and since then again and again."""
    length = 3 + spot(40, dice)
    return at.column.cells[at.row - at.row % length]


@KINDS.add("number", "number")
def clipped(text: str, at: Place, dice: Random) -> str:
    """As much as the instrument can say, and no more."""
    numbers = at.column.numbers
    return numbers[int((len(numbers) - 1) * _one_of((0.9, 0.75, 0.95, 0.1, 0.25, 0.5, 1.0, 0.0), dice))]


def _on_date(group: str, new: Callable[[str, Random], str]) -> Callable[[str, Random], str]:
    def apply(text: str, dice: Random) -> str:
        date = date_in(text)
        return put_in(date, group, new(date[group], dice)) if date else text

    return apply


def _day_and_month(text: str, dice: Random) -> str:
    date = date_in(text)
    if not date or not date["m"].isdigit():
        return text
    first, last = sorted(("m", "d"), key=date.start)
    swapped = put_in(date, last, date[first])
    return swapped[: date.start(first)] + date[last] + swapped[date.end(first) :]


def _other_day(text: str, dice: Random) -> str:
    """The same date some days earlier or later."""
    date = date_in(text)
    days = int(_signed(_one_of((1, 1, 2, 7, 10, 30, 365, 100), dice), dice))
    if not date or not date["m"].isdigit() or int(date["m"]) > 12 or not (day := day_of(date)) or day.year < 2:
        return text
    new = day + datetime.timedelta(days)
    parts = sorted((("y", new.year), ("m", new.month), ("d", new.day)), key=lambda each: -date.start(each[0]))
    width = 2 if "0" in (date["m"][0], date["d"][0]) or date.start("y") < date.start("m") else 1
    for group, value in parts:
        written = str(value)[-len(date["y"]) :] if group == "y" else str(value).zfill(width)
        text = text[: date.start(group)] + written + text[date.end(group) :]
    return text


def _century(year: str, dice: Random) -> str:
    return one(("19", "18", "20", "21", "00", "29"), dice) + year[2:] if len(year) == 4 else year


KINDS.plain(
    "number",
    "date",
    year_wrong=_on_date("y", lambda y, d: change_one(r"\d", y, d, lambda each: _wrong_digit(each, d))),
    year_digits_swapped=_on_date("y", lambda y, d: change_one(r"(\d)(?!\1)\d", y, d, lambda each: each[::-1])),
    century=_on_date("y", _century),
    far_future=_on_date("y", lambda y, d: str(2050 + spot(7000, d))[-len(y) :]),
    month_wrong=_on_date("m", lambda m, d: f"{1 + spot(12, d):0{len(m)}}" if m.isdigit() else m),
    day_wrong=_on_date("d", lambda each, d: f"{1 + spot(28, d):0{len(each)}}"),
    day_and_month=_day_and_month,
    other_day=_other_day,
)

# Numbers and dates that can no longer be read

_LOOKS = {"0": "Oo", "1": "lI", "2": "Z", "5": "S", "8": "B", "6": "b", "9": "g", "4": "A", "7": "T", "3": "E"}
_ROW_ABOVE = dict(zip("1234567890", "qwertyuiop", strict=True))
_SHIFTED = dict(zip("1234567890", "!@#$%^&*()", strict=True))
_AROUND = ("about {}", "ca. {}", "~{}", "{} (est.)", ">{}", "<{}", "{}abc", "{} or so", "{}+", "n={}", "{} ?",
           "{}a", "x{}", "{} approx", "{}*", "{}(1)", "[{}", "{}e", "{} see note", "{}-", "={}", "{} ok",
           "No. {}")  # fmt: skip
_NOISE = "#@%&*!~^|\\<>{}[]$?ÃÂ§�¿"


def _look_alike(text: str, dice: Random) -> str:
    order, everywhere, start = dice.random(), dice.random() < 0.4, int(dice.random() * len(text))
    digits = list("0158269473")
    first = int(order * order * 10)
    which = spot(2, dice)
    for digit in digits[first:] + digits[:first]:
        if digit in text:
            new = _LOOKS[digit][which % len(_LOOKS[digit])]
            at = max(text.find(digit, start), text.find(digit))
            return text.replace(digit, new) if everywhere else text[:at] + new + text[at + 1 :]
    return text


def _range(text: str, dice: Random) -> str:
    first, to = text.strip(), one(("-", " - ", " to ", "/"), dice)
    return f"{first}{to}{first[:-1]}{_wrong_digit(first[-1], dice)}" if len(first) < 9 and first[-1].isdigit() else text


def _masked(text: str, dice: Random) -> str:
    sign = one("x?*X#_", dice)
    return change_one(r"\d", text, dice, lambda each: sign)


def _end_masked(text: str, dice: Random) -> str:
    sign, count = one("x?*X#", dice), 1 + spot(max(min(len(text) - 1, 4), 1), dice)
    return text[:-count] + sign * count


def _garbage(text: str, dice: Random) -> str:
    return "".join(one(_NOISE, dice) for _ in range(min(max(len(text), 2), 3 + spot(10, dice))))


def _noise_inside(text: str, dice: Random) -> str:
    at = spot(len(text) + 1, dice)
    return text[:at] + one(_NOISE, dice) * (1 + spot(2, dice)) + text[at + spot(2, dice) :]


def _impossible(text: str, dice: Random) -> str:
    date = date_in(text)
    if not date or not date["m"].isdigit() or len(date["y"]) != 4:
        return text
    month, day = (put_in(date, group, one((str(least + spot(100 - least, dice)), str(least), "00"), dice))
                  for group, least in (("m", 13), ("d", 32)))  # fmt: skip
    return (month, day, put_in(match, "d", str(32 + spot(68, dice))) if (match := date_in(month)) else month)[
        spot(3, dice)
    ]


KINDS.plain(
    "unreadable",
    "digits",
    look_alike=_look_alike,
    row_above=lambda t, d: change_one(r"\d", t, d, lambda each: _ROW_ABOVE.get(each, "o")),
    all_row_above=lambda t, d: t.translate(str.maketrans("1234567890", "qwertyuiop")),
    shift_held=lambda t, d: change_one(r"\d", t, d, lambda each: _SHIFTED.get(each, ")")),
    masked=_masked,
    end_masked=_end_masked,
    letter_inside=lambda t, d: change_one(r"\d", t, d, lambda each: each + one("abcdefghijklmnopqrstuvwxyz", d)),
    space_inside=lambda t, d: change_one(r"\d(?=[\d.])", t, d, lambda each: each + " "),
    sign_doubled=lambda t, d: change_one(r"[.,:/-]", t, d, lambda each: each * 2),
    sign_inside=lambda t, d: change_one(r"\d(?=\d)", t, d, lambda each: each + one(".,-/:;'", d)),
)
KINDS.plain(
    "unreadable",
    "number",
    words_around=lambda t, d: one(_AROUND, d).format(t.strip()),
    two_points=lambda t, d: change_one(r"\d", t, d, lambda each: each + one(("..", ".,", ",."), d)),
    word_for_number=lambda t, d: one(("many", "few", "high", "low", "several", "none left", "yes", "ok", "half"), d),
    range_for_number=_range,
)
KINDS.plain("unreadable", "date", impossible_date=_impossible)
KINDS.plain("unreadable", "any", garbage=_garbage, noise_inside=_noise_inside)

# Cut off, doubled, glued


def _middle_lost(text: str, dice: Random) -> str:
    at = 1 + spot(max(len(text) - 3, 1), dice)
    return text[:at] + text[at + 2 + spot(3, dice) :]


_GLUE = ("", " ", "/", ";", ", ", "|", " / ", "\n", "&")
KINDS.plain(
    "cut",
    "any",
    last_lost=lambda t, d: t[: -(1 + spot(3, d))],
    first_lost=lambda t, d: t[1 + spot(3, d) :],
    half=lambda t, d: t[: (len(t) + 1) // 2] if d.random() < 0.5 else t[len(t) // 2 :],
    cut_anywhere=lambda t, d: t[: 1 + spot(len(t) - 1, d)],
    doubled=lambda t, d: t + one(("", " ", ""), d) + t,
    middle_lost=_middle_lost,
    end_doubled=lambda t, d: t + t[-(1 + spot(4, d)) :],
)
KINDS.plain(
    "cut",
    "words",
    dots=lambda t, d: t[: 3 + spot(len(t) - 4, d)].rstrip() + one(("...", "…", ".."), d),
    last_word_lost=lambda t, d: t.rstrip().rpartition(" ")[0],
    first_word_lost=lambda t, d: t.lstrip().partition(" ")[2],
    word_lost=lambda t, d: change_one(r"(?<=\s)\S+\s", t, d, lambda each: ""),
    word_doubled=lambda t, d: change_one(r"\w{2,}", t, d, lambda each: f"{each} {each}"),
    only_first_word=lambda t, d: t.split()[0],
)


@KINDS.add("cut")
def cut_at_length(text: str, at: Place, dice: Random) -> str:
    """Cut where a field of fixed width ends, which is somewhat less than the longest text needs."""
    longest = max(map(len, at.column.sample))
    return text[: max(int(longest * (0.2 + 0.7 * dice.random())), 1)]


@KINDS.add("cut")
def glued(text: str, at: Place, dice: Random) -> str:
    """Two values in one cell: with that of another row, or of the next."""
    glue, next_one = one(_GLUE, dice), dice.random() < 0.5
    row = (at.row + 1) % len(at.column.cells) if next_one else dice.choice(at.column.filled)
    second = at.column.cells[row]
    return text + glue + second if second.strip() else text


@KINDS.add("cut")
def glued_beside(text: str, at: Place, dice: Random) -> str:
    """Two values in one cell: with that of the column beside."""
    step, glue = 1 if dice.random() < 0.5 else -1, one(_GLUE, dice)
    second = at.grid.columns[(at.column.place + step) % len(at.grid.columns)]
    return text + glue + second.cells[at.row] if second is not at.column and second.cells[at.row].strip() else text
