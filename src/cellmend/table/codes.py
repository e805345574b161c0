"""Codes that look like numbers: hexadecimal ones, those of a column that is called a code, those with a letter.

An error in a number looks like no other error of its column. Codes look alike: their letters are few, stand at one
place, and come again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from cellmend.table.kinds import FEW_TEXT_LEVELS
from cellmend.table.priors import ALIKE, BUT_FOR_ERRORS, ENOUGH, MOSTLY, RARE, TOGETHER
from cellmend.table.texts import count_cells, form_of, said_texts
from cellmend.table.values import Ints

MOST_BEYOND = 0.1  # letters beyond f for one up to f: slips have three
A_FORM = 0.03  # of the cells look alike and are no numbers: then the column holds more than numbers
MOST_OTHERWISE = 1 / 3  # cells with a letter elsewhere for one with a letter at the usual place
RELATED = 0.005  # of the cells are codes that belong together (12a, 12b) or come again
MORE_THAN_CHANCE = 3  # times as many related ones as slips would have
# Of six digits or more: 12e3 may be a number.
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{6,}|[0-9a-fA-F]{4,}(?:-[0-9a-fA-F]{4,})+")
_CODE = re.compile(r"[^\W\d_]{0,4}-?\d+(?:\.0+)?[^\W\d_]{0,4}")
_WHOLE = re.compile(r"\d+(?:\.0*)?")
_LETTERED = re.compile(r"(?=\D*\d)(?=[\d\W_]*[^\W\d_])[\w.:/-]+")


def are_hexadecimal(levels: Sequence[str], counts: Ints) -> bool:
    """Are these hexadecimal ids, UUIDs or hashes, of which 1234e567 is no number? They are of one length.

    >>> import numpy as np
    >>> are_hexadecimal(["12345678", "1234e567", "9f215678"], np.array([1, 1, 1]))
    True
    >>> are_hexadecimal(["1.02E+11", "3.10E+07"], np.array([1, 1])), are_hexadecimal(["1e3", "2e5"], np.array([1, 1]))
    (False, False)
    """
    said = _said(levels, counts)
    cells = sum(said.values())
    lengths, letters, beyond = Counter[int](), 0, 0
    for text, count in said.items():
        if _HEXADECIMAL.fullmatch(text):
            lengths[len(text)] += count
            letters += count * (not re.fullmatch(r"[\d-]+", text))
        else:
            beyond += count * bool(re.search(r"[^\W\d_]", text))
    if not lengths or letters < max(2, RARE * cells) or beyond > MOST_BEYOND * letters:
        return False
    return lengths.most_common(1)[0][1] >= BUT_FOR_ERRORS * cells


def are_named_codes(levels: Sequence[str], counts: Ints) -> bool:
    """In a column that is called a code: are these whole numbers, with a few letters at most, that come again?

    Numbers of which most are different are identifiers. Those stay numbers: their order may tell which are wrong.
    """
    said = _said(levels, counts)
    cells = sum(said.values())
    if cells < ENOUGH:
        return False
    plain = sum(count for text, count in said.items() if _WHOLE.fullmatch(text))
    if plain >= BUT_FOR_ERRORS * cells and len(said) > max(FEW_TEXT_LEVELS, MOSTLY * cells):
        return False
    return sum(count for text, count in said.items() if _CODE.fullmatch(text)) >= BUT_FOR_ERRORS * cells


def hold_codes(others: Mapping[str, int], numbers: Mapping[str, int]) -> bool:
    """Are cells of a column of numbers that are none, or have a strange unit, codes with letters, not slips?

    Slips put any letter at any place. Codes have it at the same one; and either many cells are such codes, or several
    differ in the letter only (12a, 12b) or stand twice, which slips in the column's numbers would hardly do.

    >>> numbers = {str(number): 1 for number in range(100)}
    >>> hold_codes({"65a": 1, "65b": 1, "65c": 1}, numbers), hold_codes({"6x5": 1, "17q": 1, "3l0": 1}, numbers)
    (True, False)
    """
    lettered = {text: count for text, count in others.items() if _LETTERED.fullmatch(text)}
    forms = count_cells(map(form_of, lettered), lettered.values())
    bodies = count_cells((re.sub(r"[^\W\d_]+", "", text) for text in lettered), lettered.values())
    found, usual = forms.total(), max(forms.values(), default=0)
    if not found or found - usual > MOST_OTHERWISE * usual:
        return False
    cells = sum(others.values()) + sum(numbers.values())
    if usual >= max(ALIKE, A_FORM * cells):
        return True
    shorter = count_cells((text[:-1] for text in numbers), numbers.values())  # a letter may stand for a digit
    same = sum(count**2 for count in shorter.values()) / max(shorter.total(), 1) ** 2
    related = sum(count for count in bodies.values() if count > 1)
    return related >= max(TOGETHER, RELATED * cells, MORE_THAN_CHANCE * found * (found - 1) * same)


def _said(levels: Sequence[str], counts: Ints) -> Counter[str]:
    """How often each text stands, but for words for what is missing."""
    said = said_texts(levels, counts)
    return count_cells((text for text, _ in said), (count for _, count in said))
