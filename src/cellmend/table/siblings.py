"""Values that are natural beside others: the same but for a number in them, or but for signs, spaces and case.

2956 Main Street is no slip of 2965 Main Street, nor Phase II of Phase I: whoever lists such things counts them. And
Wal-Mart beside Walmart is another hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cellmend.table.values import Floats, Ints

AS_LONG, LONGER = 0.9, 0.1  # of the numbers that differ have as many digits as the other, or any number of them
ROMANS = 10  # numbers that are counted so
STYLE = 0.1  # of the values are also written with other signs, spaces or capitals
MOST_NUMBERS = 8  # in a text that are looked at
_SIGNS = re.compile(r"([\W_])\1*")
_NUMBER = re.compile(r"\d+|\b[IVX]+\b")


@dataclass(frozen=True)
class Siblings:
    """Which texts are alike but for a number or for their style: M times a text has a key that others have too."""

    texts: int
    owner: Ints  # (M,) the text
    key: Ints  # (M,) what it has in common with others
    chance: Floats  # (M,) that a sibling with this key is the text

    @classmethod
    def of(cls, texts: Sequence[str]) -> Siblings:
        """Of different texts.

        >>> found = Siblings.of(["12 Oak St", "15 Oak St", "12 Elm St"])
        >>> found.expected(np.ones(3)).round(3).tolist()
        [0.01, 0.01, 0.0]
        """
        found = [(at, *each) for at, text in enumerate(texts) for each in _keys(text)]
        places: dict[str, int] = {}
        keys = np.array([places.setdefault(key, len(places)) for _, key, _ in found], dtype=np.int64)
        shared = np.bincount(keys, minlength=1)[keys] > 1
        owner = np.array([at for at, _, _ in found], dtype=np.int64)
        chance = np.array([chance for _, _, chance in found])
        return cls(len(texts), owner[shared], keys[shared], chance[shared])

    def expected(self, clean: Floats) -> Floats:
        """How many siblings of others that are each text are expected, given how probably each was meant, (T,)."""
        others = np.bincount(self.key, clean[self.owner], minlength=1)[self.key] - clean[self.owner]
        expected = np.zeros(self.texts)
        np.add.at(expected, self.owner, self.chance * np.maximum(others, 0.0))
        return expected


def _keys(text: str) -> Iterator[tuple[str, float]]:
    """What a text has in common with its siblings, and the chance that one of them is this text."""
    numbers = list(_NUMBER.finditer(text))[:MOST_NUMBERS]
    for found in numbers:
        number, rest = found[0], f"{text[: found.start()]}\0{text[found.end() :]}"
        chance = (10.0 ** -len(number) if number[0].isdigit() else 1 / ROMANS) / len(numbers)
        yield f"{len(number)}\0{rest}", AS_LONG * chance
        yield f"\0{rest}", LONGER * chance
    plain = _without_style(text)
    if plain:
        yield f"style\0{plain}", STYLE / (len(text) + 1)


def _without_style(text: str) -> str:
    """A text without spaces, case and signs; signs that are repeated are no style.

    >>> _without_style("Wal-Mart Inc."), _without_style("KINGS***")
    ('walmartinc', 'kings***')
    """
    together = "".join(text.casefold().split())
    return _SIGNS.sub(lambda found: found[0] if len(found[0]) > 1 else "", together)
