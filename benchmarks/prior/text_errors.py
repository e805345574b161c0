"""Errors in how a text is written: its spelling, its form, and placeholders for what was not known."""

from __future__ import annotations

import datetime
import re
import string
import unicodedata
from collections.abc import Callable
from random import Random

from .cells import Place, date_in, day_of, number_in, put_in, value_of
from .kinds import Kinds, Pairs, by_rule, change_one, one, other, spot

KINDS = Kinds()


def _pairs(rules: str) -> Pairs:
    return [(old, new) for old, _, new in (rule.partition(">") for rule in rules.split())]


def _both_cases(pairs: Pairs) -> Pairs:
    return [*pairs, *((old.capitalize(), new.capitalize()) for old, new in pairs)]


# Spelling

LETTER = r"[^\W\d_]"
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEXT = {
    key: "".join(
        _KEYS[r][k] for r in range(max(i - 1, 0), min(i + 2, 3)) for k in (j - 1, j, j + 1)
        if 0 <= k < len(_KEYS[r]) and (r, k) != (i, j)
    )
    for i, line in enumerate(_KEYS) for j, key in enumerate(line)
}  # fmt: skip
_SOUNDS = _both_cases(_pairs(
    "ph>f f>ph ck>k c>k k>c ie>ei ei>ie ou>u oo>u ee>ea ea>ee ai>ay y>i i>y s>z z>s tion>sion sion>tion ce>se "
    "th>t wh>w kn>n gh>g qu>kw x>ks sch>sh ch>sh v>w j>g er>or or>er able>ible ance>ence ent>ant a>e e>a"
))  # fmt: skip
_SCAN = _pairs("rn>m m>rn cl>d d>cl vv>w w>vv li>h h>b ii>u u>ii nn>m c>e e>c I>l")
_LEET = _pairs("l>1 i>1 I>1 O>0 o>0 S>5 s>5 B>8 e>3 E>3 Z>2 g>9 a>4 t>7")
_ACCENTS = "aáàâäãå eéèêë iíìîï oóòôöõø uúùûü cç nñ yý sš zž"
_ACCENTED = [(row[0], accent) for row in _ACCENTS.split() for accent in row[1:]]


def _neighbour_key(letter: str, dice: Random) -> str:
    new = one(_NEXT.get(letter.lower(), string.ascii_lowercase), dice)
    return new.upper() if letter.isupper() else new


def _like(letter: str, new: str) -> str:
    return new.upper() if letter.isupper() else new


def _without_accents(text: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))


def _typos(text: str, dice: Random) -> str:
    for _ in range(2 + spot(2, dice)):
        text = change_one(LETTER, text, dice, lambda each: (_neighbour_key(each, dice), "", each * 2)[spot(3, dice)])
    return text


KINDS.plain(
    "spelling",
    "letters",
    letter_dropped=lambda t, d: change_one(LETTER, t, d, lambda each: ""),
    letter_doubled=lambda t, d: change_one(
        LETTER, t, d, lambda each: each + each.lower() if t != t.upper() else each * 2
    ),
    letters_swapped=lambda t, d: change_one(
        rf"(?=(?P<a>{LETTER})(?!(?P=a))){LETTER}{{2}}", t, d, lambda each: each[::-1]
    ),
    neighbour_key=lambda t, d: change_one(LETTER, t, d, lambda each: _neighbour_key(each, d)),
    letter_inserted=lambda t, d: change_one(LETTER, t, d, lambda each: each + _neighbour_key(each, d)),
    letter_replaced=lambda t, d: change_one(LETTER, t, d, lambda each: _like(each, one(string.ascii_lowercase, d))),
    letter_x=lambda t, d: change_one(LETTER, t, d, lambda each: "x"),
    phonetic=lambda t, d: by_rule(t, _SOUNDS, d),
    scanned=lambda t, d: by_rule(t, _SCAN, d),
    digit_for_letter=lambda t, d: by_rule(t, _LEET, d, 0.3),
    double_letter_lost=lambda t, d: change_one(rf"({LETTER})\1", t, d, lambda each: each[0]),
    accents_lost=lambda t, d: _without_accents(t),
    accent_added=lambda t, d: by_rule(t, _ACCENTED, d),
    several_typos=_typos,
    space_in_word=lambda t, d: change_one(rf"{LETTER}{{2}}(?={LETTER})", t, d, lambda each: each + " "),
    ending=lambda t, d: t[:-1] if t[-1] in "se" else t + one(("s", "e", "n", "'s", "es"), d) if t[-1].isalpha() else t,
)
KINDS.plain("spelling", "words", space_missed=lambda t, d: change_one(r"(?<=\w) (?=\w)", t, d, lambda each: ""))

# Form

_SHORT = [("Street", "St."), ("Avenue", "Ave"), ("Road", "Rd"), ("North", "N"), ("South", "S"), ("West", "W"),
          ("East", "E"), ("County", "Co."), ("Department", "Dept."), ("University", "Univ."), ("Saint", "St"),
          ("Company", "Co"), ("Incorporated", "Inc."), ("Number", "No."), ("Building", "Bldg"), ("Center", "Ctr"),
          ("School", "Sch"), ("District", "Dist."), ("International", "Intl"), ("United States", "US"),
          ("January", "Jan"), ("February", "Feb"), ("September", "Sept"), ("October", "Oct"), ("December", "Dec"),
          (" and ", " & "), (" & ", " and "), (" of ", " o. "), ("St.", "Street"), ("Ave", "Avenue")]  # fmt: skip
_SAME = ("yes y true 1 t", "no n false 0 f", "male m man", "female f woman", "true yes t 1", "false no f 0",
         "active act. a", "inactive inact. i", "open o", "closed c", "high hi h", "medium med m",
         "low lo l")  # fmt: skip
_SYNONYMS = {row.split()[0]: row.split()[1:] for row in _SAME}
_UNITS = (
    "kg",
    " kg",
    " cm",
    "cm",
    " m",
    " km",
    " mi",
    " lbs",
    " years",
    " hrs",
    " min",
    "%",
    " %",
    " ppm",
    " units",
    "°C",
)
_MONEY = ("$", "€", "£", "USD ", "US$", "EUR ")
_DAYS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d %b %Y", "%B %d, %Y", "%Y%m%d", "%d-%b-%y", "%m/%d/%y",
         "%Y/%m/%d", "%a %d %b %Y", "%Y-%m-%dT00:00:00Z", "%m-%d-%Y", "%b-%y")  # fmt: skip
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_FULL = {"'": "’", '"': "”", "-": "–", " ": "\xa0"}


def _misread(text: str) -> str:
    try:
        return text.encode("utf-8").decode("cp1252")
    except UnicodeDecodeError:
        return text.encode("utf-8", "replace").decode("latin-1")


def _misread_signs(text: str, dice: Random) -> str:
    return by_rule(text, [(old, _misread(new)) for old, new in _FULL.items()], dice, 0.5)


def _thousands(text: str, dice: Random) -> str:
    number, sign = number_in(text), one((",", ",", " ", ".", "'"), dice)
    if not number or number["power"] or "," in text or (sign == "." and "." in text):
        return text
    whole = f"{abs(int(value_of(number))):,}".replace(",", sign)
    return put_in(number, "body", re.sub(r"\d+", lambda _: whole, number["body"], count=1)) if sign in whole else text


def _scientific(text: str, dice: Random) -> str:
    number = number_in(text)
    digits = 1 + spot(5, dice)
    return put_in(number, "body", f"{value_of(number):.{digits}{one('eE', dice)}}") if number else text


def _on_body(text: str, new: Callable[[str], str]) -> str:
    number = number_in(text)
    return put_in(number, "body", new(number["body"])) if number else text


def _as_percent(text: str, dice: Random) -> str:
    number = number_in(text)
    return f"{100 * value_of(number):g}%" if number and 0 < abs(value_of(number)) <= 1 and "%" not in text else text


def _other_date(text: str, dice: Random) -> str:
    date = date_in(text)
    first = spot(len(_DAYS), dice)
    if not date or not (day := day_of(date)):
        return text
    written = (day.strftime(_DAYS[(first + k) % len(_DAYS)]) for k in range(2))
    return next((new for new in written if new != text), text)


def _serial(text: str, dice: Random) -> str:
    date = date_in(text)
    return str((day - datetime.date(1899, 12, 30)).days) if date and (day := day_of(date)) else text


def _spoken(text: str, dice: Random) -> str:
    number = number_in(text)
    value = value_of(number) if number else -1
    return _SMALL[int(value)] if value in range(13) else text


def _synonym(text: str, dice: Random) -> str:
    new = _SYNONYMS.get(text.strip().lower())
    return (one(new, dice).capitalize() if text[0].isupper() else one(new, dice)) if new else text


def _abbreviated(text: str, dice: Random) -> str:
    keep, dot = 2 + spot(4, dice), one((".", "", "."), dice)
    short = by_rule(text, _SHORT, dice)
    return (
        short if short != text else change_one(rf"{LETTER}{{{keep + 2},}}", text, dice, lambda each: each[:keep] + dot)
    )


def _initials(text: str, dice: Random) -> str:
    dot = one((".", ""), dice)
    return "".join(word[0] + dot for word in text.split())


def _reordered(text: str, dice: Random) -> str:
    words = text.split()
    return f"{words[-1]}{one((', ', ' '), dice)}{' '.join(words[:-1])}" if len(words) > 1 else text


KINDS.plain(
    "form",
    "letters",
    upper=lambda t, d: t.upper(),
    lower=lambda t, d: t.lower(),
    title=lambda t, d: t.title(),
    random_case=lambda t, d: "".join(each.upper() if d.random() < 0.5 else each.lower() for each in t),
    swapped_case=lambda t, d: t.swapcase(),
    one_letter_case=lambda t, d: change_one(LETTER, t, d, str.swapcase),
    first_letter_case=lambda t, d: t[0].swapcase() + t[1:],
    mojibake=lambda t, d: _misread(t) if t != _misread(t) else _misread_signs(t, d),
    accent_misread=lambda t, d: by_rule(t, [(a, _misread(b)) for a, b in _ACCENTED], d, 0.3),
    not_in_the_font=lambda t, d: change_one(r"[^\x00-\x7f]|['-]", t, d, lambda each: one(("?", "�", "??", "�"), d)),
    html=lambda t, d: by_rule(t, [("&", "&amp;"), ("'", "&#39;"), (" ", "&nbsp;"), ("-", "&ndash;")], d, 0.5),
    punctuation_lost=lambda t, d: re.sub(r"[.,;:'\"()/&-]+", "", t),
    abbreviated=_abbreviated,
    synonym=_synonym,
    point_as_comma=lambda t, d: change_one(
        rf"(?<=\w)\.(?={LETTER})", t, d, lambda each: one((",", ",", ";", " ", ". ", ".."), d)
    ),
    at_lost=lambda t, d: t.replace("@", one(("", "", " ", "#", "(at)", " at ", "@@", "2", "qq"), d)) if "@" in t else t,
    in_brackets=lambda t, d: one(("({})", "[{}]", "<{}>", "{{{}}}", "*{}*"), d).format(t),
)
KINDS.plain(
    "form",
    "words",
    joined_by_sign=lambda t, d: t.strip().replace(" ", one(("_", "-", ".", "", "+", "%20"), d)),
    reordered=_reordered,
    initials=_initials,
    separator=lambda t, d: by_rule(t, [(",", ";"), (", ", ","), (",", ", "), ("-", " "), ("/", "-"), (" ", ", ")], d),
)
KINDS.plain(
    "form",
    "any",
    space_before=lambda t, d: one((" ", " ", "  ", "\t"), d) + t,
    space_after=lambda t, d: t + one((" ", " ", "  ", "   ", "\t", "\n"), d),
    space_doubled=lambda t, d: change_one(" ", t, d, lambda each: "  "),
    space_unusual=lambda t, d: t.replace(" ", "\xa0") if " " in t else t + one(("\xa0", "\u200b", "\ufeff"), d),
    sign_after=lambda t, d: t + one((".", ",", ";", ":", "!", "*", "'", "/"), d),
    quoted=lambda t, d: one(('"{}"', "'{}'", "“{}”", "'{}", '"{}', "`{}`"), d).format(t),
)
KINDS.plain(
    "form",
    "number",
    thousands=_thousands,
    thousands_lost=lambda t, d: t.replace(",", ""),
    decimal_comma=lambda t, d: t.replace(".", ",") if "," not in t else t,
    unit_added=lambda t, d: t.strip() + one(_UNITS, d),
    currency_added=lambda t, d: one(_MONEY, d) + t.strip() if not set("$€£%") & set(t) else t,
    zeros_before=lambda t, d: _on_body(t, lambda body: "0" * (1 + spot(3, d)) + body if body[0].isdigit() else body),
    zeros_lost=lambda t, d: _on_body(t, lambda body: re.sub(r"^(-?)0+(?=[.\d])", r"\1", body)),
    end_zeros_lost=lambda t, d: _on_body(t, lambda body: re.sub(r"\.?0+$", "", body) if "." in body else body),
    point_zero=lambda t, d: _on_body(t, lambda body: body + one((".0", ".0", ".00"), d) if "." not in body else body),
    zeros_after=lambda t, d: _on_body(t, lambda body: body + "0" * (1 + spot(4, d)) if "." in body else body),
    scientific=_scientific,
    plus_sign=lambda t, d: _on_body(t, lambda body: "+" + body if body[0].isdigit() else body),
    accounting=lambda t, d: _on_body(t, lambda body: f"({body[1:]})" if body[0] == "-" else body),
    as_percent=_as_percent,
    spoken=_spoken,
)
KINDS.plain(
    "form",
    "date",
    date_format=_other_date,
    date_serial=_serial,
    time_added=lambda t, d: t + one((" 00:00:00", " 00:00", "T00:00:00Z", " 12:00 AM"), d) if ":" not in t else t,
    time_lost=lambda t, d: re.split(r"(?<=\d)[ T](?=\d\d?:)", t, maxsplit=1)[0],
    short_year=lambda t, d: put_in(m, "y", m["y"][2:]) if (m := date_in(t)) and len(m["y"]) == 4 else t,
)

# Placeholders: what stands where nothing was known

_PLACEHOLDERS: dict[str, tuple[str, str]] = {
    "unknown": ("any", "unknown|Unknown|UNKNOWN|unk|not known|undefined|undetermined|not available|unspecified"),
    "to_be_done": ("any", "TBD|tbd|TBA|to be determined|pending|TODO|to follow|tbc|see notes|see comment|ask"),
    "not_applicable": ("any", "n/a|N/A|na|NA|n.a.|not applicable|N.A.|n / a|NaN|nan"),
    "nothing": ("any", "none|None|null|NULL|nil|missing|empty|(blank)|blank|nothing|\\N|(null)|[]|{}|undefined"),
    "mark": ("any", "-|--|---|?|??|???|.|..|*|/|_|~|x|X|#|–|…"),
    "xs": ("any", "xxx|XXX|xx|xxxx|zzz|aaa|XXXXX|xxxxxxxx|###|####"),
    "spreadsheet_error": ("any", "#N/A|#REF!|#VALUE!|#DIV/0!|#NAME?|#NULL!|#NUM!|########|Err:502|#ERROR!"),
    "try_out": ("any", "test|Test|TEST|asdf|asd|foo|abc|dummy|sample|example|qwerty|delete me|test123|lorem ipsum"),
    "ditto": ("any", '"|same|see above|same as above|as above|ditto|do.|〃|other|Other|misc|various|default'),
    "zero": ("any", "0|0|0|0.0|00|0.00|000"),
    "minus_one": ("number", "-1|-1|-1.0|-9|-99|-2|-8"),
    "nines": ("number", "99|999|9999|99999|-999|-9999|999999|99.9|999.9|-99.99|9999999|88|888|8888|-888"),
    "round_default": ("number", "1|100|1000|10|50|1234|12345|123|111|1111|111111|5|12|2147483647|-32768|65535|255"),
    "first_day": ("date", "1900-01-01|1970-01-01|01/01/1900|01/01/1970|9999-12-31|12/31/9999|0000-00-00|1/0/1900"),
}


def _placeholder(words: list[str]) -> Callable[[str, Random], str]:
    return lambda text, dice: other(text, words, dice)


for _name, (_sort, _words) in _PLACEHOLDERS.items():
    KINDS.plain("placeholder", _sort, **{_name: _placeholder(_words.split("|"))})


@KINDS.add("placeholder")
def header(text: str, at: Place, dice: Random) -> str:
    return at.column.name


@KINDS.add("placeholder")
def default_level(text: str, at: Place, dice: Random) -> str:
    """The value that a form comes with: the commonest, the first or the last."""
    common = at.column.commonest
    return one((common, common, at.column.levels[0], at.column.levels[-1]), dice)
