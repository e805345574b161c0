"""What a column's own texts say, before any model: misspellings, and what unreadable numbers may have been."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from cellmend.table.candidates import LETTERS_PER_SLIP
from cellmend.table.causes import named
from cellmend.table.causes.garbles import told_by_rest
from cellmend.table.dates import Dates
from cellmend.table.explained import LONGEST, LearnedTexts, learn_texts
from cellmend.table.numbers import Numbers, split
from cellmend.table.packing import unpack, unpack_fields
from cellmend.table.readtable import DOUBTFUL, ReadTable, Suspect
from cellmend.table.schema import IGNORE, Schema
from cellmend.table.texts import Words
from cellmend.table.values import Ints, family, plain

MOST_ALIKE = 5000  # numbers that are often written and looked at
FEWEST_STRANGE = 2  # columns of numbers in which a word stands that is no value of any column
MOST_MEANT = 20  # numbers kept that may have been meant
LOOKS_LIKE = {"O": "0", "o": "0", "l": "1", "I": "1", "S": "5", "Z": "2", "B": "8"}  # letters typed for digits


# ---------------------------------------------------------------- numbers that are written nearly so


def _near(texts: Sequence[str], words: Sequence[str]) -> list[list[int]]:
    """For each text, which is known to be wrong, the places of the words that may be meant, the nearest first."""
    near: list[list[int]] = []
    texts = [text if len(text) <= LONGEST else "" for text in texts]  # nothing is near a text as long as a page
    lengths = np.array([len(word) for word in words])
    for start in range(0, len(texts), 1000):
        piece = texts[start : start + 1000]
        own = np.array([len(text) for text in piece])
        longer = np.maximum(own[:, None], lengths)
        allowed = 1 + longer // LETTERS_PER_SLIP
        folded = [text.casefold() for text in piece], [word.casefold() for word in words]
        distance = cdist(*folded, scorer=OSA.distance, score_cutoff=int(allowed.max(initial=1)), dtype=np.int32)
        for text, row, most in zip(piece, distance, allowed, strict=True):
            places = np.flatnonzero((row <= most) & (row < lengths))  # a letter is left, or it tells nothing
            places = places[np.argsort(row[places], kind="stable")]
            near.append([place for place in places.tolist() if _differ(text, words[place])])
    return near


def _differ(text: str, word: str) -> bool:
    """In more than digits, or in a code in more than which letters: room 12 and room 13, AB-100 and AC-100 are two."""
    if re.sub(r"[\d\s]", "", text) == re.sub(r"[\d\s]", "", word) and re.search(r"\d", text):
        return False
    is_code = " " not in word and any(letter.isdigit() for letter in word)
    shapes = [re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", code)) for code in (text, word)]
    return not is_code or shapes[0] != shapes[1]


# ---------------------------------------------------------------- all checks of a table


@dataclass(frozen=True)
class Checks:
    """What was learned of the columns by themselves."""

    texts: Mapping[str, LearnedTexts]
    numbers: Mapping[str, tuple[str, ...]]  # column of numbers or dates to those that are often written

    def misspelled(self, table: ReadTable, *, rows_alone: bool) -> list[Suspect]:
        """Cells that one of the causes made of another text; `rows_alone` as if each had a value of its own."""
        suspects = []
        for name, learned in self.texts.items():
            place, (texts, index) = table.names.index(name), _coded_texts(table, name)
            if not texts:  # no text, or gaps only
                continue
            counts = np.bincount(index[index >= 0], minlength=len(texts)).tolist()
            found = learned.judge({text: 1 if rows_alone else count for text, count in zip(texts, counts, strict=True)})
            odd = np.array([text in found for text in texts], dtype=bool)
            for row in np.flatnonzero((index >= 0) & odd[index]).tolist():
                text = texts[index[row]]
                chance, meant, cause, words = found[text]
                if cause == named.SEVERAL and isinstance(table.notations.get(name), Dates):
                    continue  # most dates are two digits from another one
                reason = f"{text} is probably {words}"
                suspects.append(Suspect(row, place, chance, meant, reason, cause, readable=False))
        return suspects

    def doubtful(self, table: pa.Table, name: str) -> set[str]:
        """Texts of a column that were probably not meant, also if the same slip was made in many rows."""
        if name not in self.texts or family(table.schema.field(name).type) != "text":
            return set()
        found = self.texts[name].judge(dict.fromkeys(pc.unique(plain(table[name]).drop_null()).to_pylist(), 1))
        return {text for text, verdict in found.items() if verdict.suspicion >= DOUBTFUL}

    def without(self, names: Container[str]) -> Checks:
        """What is not about the texts of these columns."""
        texts = {name: learned for name, learned in self.texts.items() if name not in names}
        return Checks(texts, {name: words for name, words in self.numbers.items() if name not in names})

    def followed_by(self, new: Checks) -> Checks:
        """With the values of newer rows too."""
        counts = {name: Counter(dict(learned.counts)) for name, learned in self.texts.items()}
        for name, learned in new.texts.items():
            counts.setdefault(name, Counter()).update(learned.counts)
        numbers = {
            name: tuple(dict.fromkeys([*words, *new.numbers.get(name, ())]))[:MOST_ALIKE]
            for name, words in self.numbers.items()
        }
        return Checks(learn_texts(counts), numbers)

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Checks:
        if "spellings" not in entries:
            return unpack_fields(cls, entries)
        spellings = entries["spellings"].items()  # as models of before have them
        texts = learn_texts({name: dict(zip(e["words"], e["counts"], strict=True)) for name, e in spellings})
        return cls(texts, unpack(dict[str, tuple[str, ...]], entries["numbers"]))


def _coded_texts(table: ReadTable, name: str) -> tuple[list[str], Ints]:
    """The different texts of a column, none if it is no text, and which of them each row has, -1 for a gap."""
    column = table.arrow[name] if isinstance(table.notations.get(name), Dates) else table.understood[name]
    if family(column.type) != "text":
        return [], np.zeros(0, dtype=np.int64)
    trimmed = pc.utf8_trim_whitespace(plain(column).combine_chunks())
    coded = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, trimmed.type), trimmed).dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def learn_checks(table: ReadTable, schema: Schema, until: float = math.inf) -> Checks:
    """What is usual in each column that the user did not tell to ignore; `until` as for `learn_texts`."""
    counts, numbers = {}, {}
    for column in schema:
        name = column.name
        if column.kind == IGNORE and not column.reason:
            continue
        if not isinstance(table.notations.get(name, Words()), Words) and column.kind != IGNORE:
            numbers[name] = _often_written(table, name)
        texts, index = _coded_texts(table, name)
        if texts and column.levels is None:
            often = np.bincount(index[index >= 0], minlength=len(texts)).tolist()
            counts[name] = dict(zip(texts, often, strict=True))
    return Checks(learn_texts(counts, _strangers(table), until), numbers)


def _strangers(table: ReadTable) -> set[str]:
    """Words that stand in several columns of numbers and are none."""
    found = Counter[str]()
    for name, notation in table.notations.items():
        values = table.understood[name]
        if isinstance(notation, Numbers) and pa.types.is_floating(values.type):
            unread = table.arrow[name].filter(pc.fill_null(pc.is_nan(values), False))
            found.update({str(text).strip() for text in pc.unique(unread).to_pylist()})
    return {text for text, columns in found.items() if columns >= FEWEST_STRANGE and text and text[-1:].isalpha()}


def _often_written(table: ReadTable, name: str) -> tuple[str, ...]:
    """The texts that stand for a number or a date in several cells, the most frequent first."""
    texts, values = table.arrow[name], table.understood[name]
    if family(texts.type) != "text":
        return ()
    said = texts.filter(pc.is_valid(values) if not pa.types.is_floating(values.type) else pc.is_finite(values))
    found = pc.value_counts(pc.utf8_trim_whitespace(said.combine_chunks()))
    often = found.take(pc.sort_indices(found.field("counts"), sort_keys=[("", "descending")])[:MOST_ALIKE])
    return tuple(often.field("values").filter(pc.greater(often.field("counts"), 1)).to_pylist())


def check(table: ReadTable, checks: Checks, *, rows_alone: bool = False) -> ReadTable:
    """The table with every cell that some check speaks against; what is probably misspelled is not learned from.

    With `rows_alone` no row is compared with other rows of the table, which may be any piece of a larger one.
    """
    return table.with_suspects([*checks.misspelled(table, rows_alone=rows_alone), *_unreadable(checks, table)])


def _unreadable(checks: Checks, table: ReadTable) -> list[Suspect]:
    """Cells that should be numbers or dates and are none, with the values that are written nearly so."""
    suspects = []
    for name, notation in table.notations.items():
        place = table.names.index(name)
        if isinstance(notation, Words) or not pa.types.is_floating(table.understood.column(place).type):
            continue
        rows = pc.fill_null(pc.is_nan(table.understood.column(place)), False).to_numpy().nonzero()[0]
        if len(rows) == 0:
            continue
        texts = [str(cell).strip() for cell in table.arrow.column(place).take(pa.array(rows)).to_pylist()]
        words = checks.numbers.get(name, ())
        for row, text, near in zip(rows.tolist(), texts, _near(texts, words), strict=True):
            meant = tuple(words[word] for word in near[:MOST_MEANT])
            reason, cause = f"{name} is {text}, which is no {notation.noun}", named.UNREADABLE
            if isinstance(notation, Numbers) and notation.decimals is not None and split(text):
                meant, cause = (), named.DECIMALS
                reason = f"{name} is {text}, with far more decimals than the others"
            elif isinstance(notation, Numbers):
                meant = told_by_rest(text, words) or _meant_numbers(text, meant, notation.decimal)
            suspects.append(Suspect(row, place, DOUBTFUL, meant, reason, cause, readable=False))
    return suspects


def _meant_numbers(text: str, near: Sequence[str], decimal: str) -> tuple[str, ...]:
    """Numbers that may have been meant by one with stray letters: all its other digits stay where they are.

    >>> _meant_numbers("19O105", ["151105"], "."), _meant_numbers("61v6", ["61.6"], ".")[:3]
    (('190105',), ('61.6', '6106', '6116'))
    """
    if not any(letter.isdecimal() for letter in text):
        return ()
    strays = [at for at, letter in enumerate(text) if letter.isalpha()]
    kept = [word for word in near if OSA.distance(text.casefold(), word.casefold()) <= max(1, len(strays))]
    if len(strays) == 1 < sum(letter.isdecimal() for letter in text):
        before, stray, after = text[: strays[0]], text[strays[0]], text[strays[0] + 1 :]
        kept += [before + each + after for each in LOOKS_LIKE.get(stray, (*"0123456789", decimal, ""))]
    return tuple(dict.fromkeys(kept))[:MOST_MEANT]
