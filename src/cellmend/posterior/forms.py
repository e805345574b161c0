"""Forms of a text: itself with something left out, so that texts which differ in that alone fall together."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Form = Callable[[pa.StringArray], pa.Array]

LONGEST = 60  # letters of a text that are looked at; what follows is prose
NUMBER = r"^\s*\(?(?:[-+]?\s*[$€£]?|[$€£]\s*[-+])\s*(\d[\d,]*\.?\d*|\.\d+)([eE][-+]?\d{1,3})?\s*%?\)?\s*$"
YEAR_FIRST = r"^\s*(?P<y>\d{3,4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?:\D.*)?$"
YEAR_LAST = r"^\s*(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})[-/.](?P<y>\d{2,4})(?:\D.*)?$"
LOOKALIKES = (("[oO]", "0"), ("[lI|]", "1"), ("[sS]", "5"), ("[bB]", "8"), ("[zZ]", "2"))  # letters typed for digits
MOJIBAKE = r"[ÃÂÅÄÐÑ][\x{80}-\x{BF}€ƒŠŒŽšœžŸ¡-¿‚„†‡ˆ‰‹Œ‘’“”•–—˜™›]|â[€„‚]|ï»¿|�|&#?\w+;|%[0-9A-F]{2}"
PLACEHOLDER = (
    r"(?i)^\W*(tbd|tba|tbc|todo|unknown|unk|unspecified|undefined|not ?known|not ?available|not ?applicable|n/?a"
    r"|n\.a\.?|nan|none|null|nil|missing|empty|blank|test|dummy|default|sample|x{2,}|z{2,}|\?+|-+|\.+|_+|\*+|#+|#n/?a|#ref!?"
    r"|#value!?|#div/0!?|#name\?|no ?data|no ?value|see notes?|pending|other|misc|various|asdf\w*|qwert\w*|foo|bar)\W*$"
)
SENTINEL = (
    r"^\s*(-?(9{2,}|1|0)(\.0+)?|-?9{2,}\.9+|-?8{2,}|1111+|12345\d*"
    r"|(1900|1970|9999|0000|1899)-(01|12)-(01|31|30).*|0?1/0?1/(1900|1970|1901))\s*$"
)


class _Classes(dict[int, str | None]):
    """A table for str.translate that finds out about each letter once."""

    def __init__(self, kind: Callable[[str], str | None]) -> None:
        self.kind = kind

    def __missing__(self, code: int) -> str | None:
        self[code] = self.kind(chr(code))
        return self[code]


def _class(letter: str) -> str:
    if letter.isdigit():
        return "9"
    if letter.isalpha():
        return "A" if letter.isupper() else "a"
    return " " if letter.isspace() and letter != "\n" else letter


def _kept(letter: str) -> str | None:
    return letter if letter.isalnum() or letter in "-.<>=≤≥\n" else None


_SHAPE, _BARE, _DIGITS = _Classes(_class), _Classes(_kept), _Classes(lambda letter: "9" if letter.isdigit() else letter)


def _each(texts: pa.StringArray, change: Callable[[str], str]) -> pa.StringArray:
    """All texts changed at once, as one string."""
    if not len(texts):
        return texts
    joined = "\n".join(text.replace("\n", " ") for text in texts.to_pylist())
    return pa.array(change(joined).split("\n"), pa.string())


def cut(texts: pa.StringArray) -> pa.StringArray:
    """The beginning of each text: what comes after LONGEST letters is not looked at."""
    return pc.utf8_slice_codeunits(texts, 0, LONGEST)


def folded(texts: pa.StringArray) -> pa.StringArray:
    """Without case and needless spaces.

    >>> folded(pa.array([" New  York"])).to_pylist()
    ['new york']
    """
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(texts), r"[\s\x{A0}]+", " "))


def bare(texts: pa.StringArray) -> pa.StringArray:
    """Letters and digits alone, without case and accents; a minus or a point before a digit stays, what compares, and a
    sign at the end: B+ and B- are two grades.

    >>> bare(pa.array(["São-Paulo, (SP)", "-1.5", "<= 50K", "B-"])).to_pylist()
    ['saopaulosp', '-1.5', '<=50k', 'b-']
    """
    plain = _each(texts, lambda joined: unicodedata.normalize("NFKD", joined.lower()).translate(_BARE))
    plain = pc.replace_substring_regex(plain, r"([^-])-+", r"\1")
    plain = pc.replace_substring_regex(plain, r"^-+([^0-9.-])", r"\1")
    plain = pc.replace_substring_regex(plain, r"\.+([^0-9.]|$)", r"\1")
    plus, minus = (pc.match_substring_regex(texts, rf"\w{sign}$") for sign in ("[+]", "-"))
    return pc.binary_join_element_wise(plain, pc.if_else(plus, "+", pc.if_else(minus, "-", "")), "")


def shape(texts: pa.StringArray) -> pa.StringArray:
    """Capitals, small letters and digits as such, one by one.

    >>> shape(pa.array(["AB-12 c"])).to_pylist()
    ['AA-99 a']
    """
    return _each(cut(texts), lambda joined: joined.translate(_SHAPE))


def without_digits(texts: pa.StringArray) -> pa.StringArray:
    """All digits alike: 13 is not 12 misspelled."""
    return _each(cut(texts), lambda joined: joined.translate(_DIGITS))


# ---------------------------------------------------------------- forms of a shape


def outline(shapes: pa.StringArray) -> pa.StringArray:
    """The shape with runs of one class as one sign, and words all alike.

    >>> outline(shape(pa.array(["New York City 10025", "1,234.50"]))).to_pylist()
    ['Aa 9', '9,9.9']
    """
    for run, sign in (("A+", "A"), ("a+", "a"), ("9+", "9"), (" +", " ")):
        shapes = pc.replace_substring_regex(shapes, run, sign)
    return pc.replace_substring_regex(shapes, r"(Aa? |aA? )+", "Aa ")


def case(shapes: pa.StringArray) -> pa.StringArray:
    """Which case the letters have, word by word: A, a, Aa or a mixture.

    >>> case(shape(pa.array(["New York", "pERMITTED wORK", "usa", "12"]))).to_pylist()
    ['Aa', 'aA', 'a', '']
    """
    words = pc.utf8_trim_whitespace(pc.replace_substring_regex(shapes, r"[^Aa]+", " "))
    words = pc.replace_substring_regex(pc.replace_substring_regex(words, "A+", "A"), "a+", "a")
    for word in ("Aa", "aA", "A", "a"):
        words = pc.replace_substring_regex(words, rf"\b{word}( {word}\b)+", word)
    return words


def symbols(shapes: pa.StringArray) -> pa.StringArray:
    """Neither letters nor digits nor spaces, in their order.

    >>> symbols(shape(pa.array(["(405) 605-1234"]))).to_pylist()
    ['()-']
    """
    return pc.replace_substring_regex(shapes, r"[Aa9 ]", "")


def first_letter(shapes: pa.StringArray) -> pa.StringArray:
    """The class of the first letter."""
    return pc.utf8_slice_codeunits(shapes, 0, 1)


def last_letter(shapes: pa.StringArray) -> pa.StringArray:
    """The class of the last letter."""
    return pc.utf8_slice_codeunits(pc.utf8_reverse(shapes), 0, 1)


def digits(shapes: pa.StringArray) -> pa.Array:
    """How many digits."""
    return pc.count_substring(shapes, "9")


def decimals(shapes: pa.StringArray) -> pa.Array:
    """How many digits after the last point."""
    return pc.utf8_length(pc.replace_substring_regex(shapes, r"^.*?(?:\.(9*))?[^9]*$", r"\1"))


def words(shapes: pa.StringArray) -> pa.Array:
    """How many words."""
    return pc.count_substring_regex(shapes, r"[Aa9]+")


def length(texts: pa.StringArray) -> pa.Array:
    """How many letters."""
    return pc.utf8_length(texts)


def matches(texts: pa.StringArray, pattern: str) -> NDArray[np.bool_]:
    """Which texts match a pattern, (T,)."""
    return pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False).astype(bool)


def unmixed(text: str) -> str:
    """A text that was written as UTF-8 and read as Latin letters, as it was.

    >>> unmixed("UrbÃ¡n"), unmixed("plain")
    ('Urbán', 'plain')
    """
    for encoding in ("cp1252", "latin-1"):
        try:
            return text.encode(encoding).decode("utf-8")
        except (UnicodeEncodeError, UnicodeDecodeError):
            continue
    return text


def as_digits(texts: pa.StringArray, lookalikes: Sequence[tuple[str, str]] = LOOKALIKES) -> pa.StringArray:
    """Letters that look like digits as those digits."""
    for letters, digit in lookalikes:
        texts = pc.replace_substring_regex(texts, letters, digit)
    return texts


def alike(texts: pa.StringArray) -> pa.StringArray:
    """Without case, and letters that look like digits as those digits.

    >>> alike(pa.array(["LO0P", "l00p"])).to_pylist()
    ['100p', '100p']
    """
    return as_digits(folded(texts))


def as_letters(shapes: pa.StringArray) -> pa.StringArray:
    """Digits beside letters as such letters.

    >>> as_letters(shape(pa.array(["L0UISVILLE", "Oh1o 12"]))).to_pylist()
    ['AAAAAAAAAA', 'Aaaa 99']
    """
    for beside in "Aa":
        shapes = pc.replace_substring_regex(shapes, f"{beside}9", 2 * beside)
        shapes = pc.replace_substring_regex(shapes, f"9{beside}", 2 * beside)
    return shapes


def numbers(texts: pa.StringArray) -> NDArray[np.float64]:
    """What the texts say as numbers, (T,); NaN where they are none.

    >>> numbers(pa.array(["1,234.5", "$3", "(7)", "12%", "abc", "1.02E+11"])).tolist()
    [1234.5, 3.0, -7.0, 12.0, nan, 102000000000.0]
    """
    are = matches(texts, NUMBER)
    bare_texts = pc.replace_substring_regex(texts, r"[\s,$€£%()+]", "")
    exponents = pc.replace_substring_regex(bare_texts, r"([eE])(\d)", r"\1+\2")
    values = pc.cast(pc.if_else(pa.array(are), exponents, pa.scalar(None, texts.type)), pa.float64())
    negative = are & matches(texts, r"^\s*\(.*\)\s*$")
    found = values.to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(negative, -found, found)


def days(texts: pa.StringArray, *, day_first: bool = False) -> NDArray[np.float64]:
    """What the texts say as dates, in days of a year of 372, (T,); NaN where they are none.

    >>> days(pa.array(["2024-01-02", "1/2/2024", "1/2/24", "0024-01-02", "x"])).tolist()
    [752960.0, 752960.0, 752960.0, 8960.0, nan]
    >>> days(pa.array(["2024-01-02", "2.1.2024"]), day_first=True).tolist()
    [752960.0, 752960.0]
    """
    year, month, day = _date_parts(texts, day_first=day_first)
    return year * 372 + month * 31 + day - 1


def has_day_first(texts: pa.StringArray) -> NDArray[np.int64]:
    """Of dates with the year last, (T,): 1 where the day must come before the month, -1 where after it, 0 elsewhere.

    >>> has_day_first(pa.array(["31/12/2020", "12/31/2020", "1/2/2020", "2020-12-31"])).tolist()
    [1, -1, 0, 0]
    """
    _, month, day = _date_parts(texts)
    year_last = matches(texts, YEAR_LAST)
    return (year_last & (month > 12) & (day <= 12)).astype(np.int64) - (year_last & (day > 12) & (month <= 12))


def impossible(texts: pa.StringArray, *, day_first: bool | None = None) -> NDArray[np.bool_]:
    """Which texts are written like dates that no calendar has, (T,); where the year comes last, in any order of day and
    month unless it is given.

    >>> impossible(pa.array(["2042-13-05", "31/12/2020", "31/13/2020", "x"])).tolist()
    [True, False, True, False]
    >>> impossible(pa.array(["31/12/2020", "12/31/2020"]), day_first=True).tolist()
    [False, True]
    """
    year, month, day = _date_parts(texts, day_first=bool(day_first))
    is_known = matches(texts, YEAR_FIRST) | (day_first is not None)  # after the year comes the month
    least = np.where(is_known, month, np.minimum(month, day))
    return (least > 12) | (np.maximum(month, day) > 31) | (np.minimum(month, day) < 1) | (year > 2200)


def _date_parts(texts: pa.StringArray, *, day_first: bool = False) -> tuple[NDArray[np.float64], ...]:
    """Year, month and day as written, (T,) each."""
    found = np.full((3, len(texts)), np.nan)
    for pattern in (YEAR_FIRST, YEAR_LAST):
        parts = pc.extract_regex(texts, pattern)
        names = ("y", "d", "m") if pattern == YEAR_LAST and day_first else ("y", "m", "d")
        fields = (pc.cast(pc.struct_field(parts, name), pa.float64()) for name in names)
        each = np.stack([field.to_numpy(zero_copy_only=False) for field in fields])
        short = each[0] < 100 if pattern == YEAR_LAST else False  # 0024 is no short year
        each[0] += np.where(short, np.where(each[0] < 50, 2000, 1900), 0)
        found = np.where(np.isnan(found), each, found)
    return found[0], found[1], found[2]
