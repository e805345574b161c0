"""The names of all causes, as findings say them, and what each means."""

from __future__ import annotations

from collections.abc import Mapping

UNREADABLE, DECIMALS = "unreadable", "decimals"
DEFAULT = "default"
KEY, FORM, SLIPPED = "key", "form", "slipped"
POINT, UNLIKE_ROW = "point", "unlike its row"
SEVERAL, SPELLING, TRUNCATED = "several", "spelling", "truncated"
SIGN, NUMBER, DEPENDENCY = "sign", "number", "dependency"
DECIDED, TAUGHT = "decided", "decisions"
RULE = "rule"
EXCHANGED, DAY = "exchanged", "day"

MEANINGS: Mapping[str, str] = {
    "inserted": "a letter too many",
    "doubled": "a letter typed twice",
    "dropped": "a letter left out",
    "replaced": "another letter",
    "swapped": "two neighbouring letters exchanged",
    "throughout": "one letter replaced wherever it stands",
    SEVERAL: "several slips in one text",
    "cased": "capitals for small letters, or the other way round",
    "spaced": "a space too many or too few",
    "framed": "signs before or after the text",
    "reversed": "the text backwards",
    "scrambled": "letters typed at random",
    TRUNCATED: "the end of a text cut off",
    DEFAULT: "a placeholder that a program or a person left",
    SPELLING: "a word spelled otherwise than a more frequent one",
    SIGN: "a number with the wrong sign",
    NUMBER: "a number that does not lie where the others of its column do",
    UNREADABLE: "no number or date, where the others are",
    DECIMALS: "far more decimals than the others",
    FORM: "written as hardly any other cell of its column",
    SLIPPED: "a value of another column",
    "arithmetic": "it breaks a formula between columns",
    "constant": "differs from the one number of its column, and nothing says why",
    DEPENDENCY: "other columns decide it, and say something else",
    "sources": "other rows tell something else of the same thing",
    "sequence": "it does not go with the rows before and after it",
    KEY: "an identifier that was copied into another row",
    POINT: "the decimal point moved",
    EXCHANGED: "two cells of a row in each other's place",
    DAY: "a date with one wrong digit, or two exchanged",
    RULE: "it breaks a rule that a person gave or called sure",
    DECIDED: "a person said that it is wrong",
    TAUGHT: "like cells of which a person said that they are wrong",
    UNLIKE_ROW: "nothing but the rest of its row speaks against it",
}
