"""What a column's own values say, before any model: misspellings, strange units, identifiers twice, slipped values.

A rare text that is nearly a frequent one is probably that one misspelled. How probably, the column itself tells: where
frequent values are alike too (ami-2, ami-3), being alike means little; where many rare values are like no other,
rare values are natural.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import OSA, Levenshtein
from rapidfuzz.process import cdist

from cellmend.reading import Dates, Readers, Words, strange_cells
from cellmend.schema import IGNORE, MOST_IDENTIFIERS, Schema, family
from cellmend.tables import Suspect, Table

FREQUENT = 3  # cells at least that hold a value which others may be misspellings of
MOST_ALIKE = 5000  # frequent values of a column that are looked at, and ten times as many rare ones
TIMES_RARER = 5  # a misspelling is than what was meant
REPEATED = 0.2  # how much less likely a misspelling is for every further cell that has the very same
BROKEN = 5.0  # how much likelier, if no frequent value has letters and digits where it has them
LETTERS_PER_SLIP = 4  # one of so many letters may be wrong
SCHEME = 0.3  # of the rare values that are like a frequent one may differ from it in the same way, or it is a scheme
SAME_FORM = 0.95  # of the identifiers have one form, or forms do not matter
STRANGE_UNIT, BAD_IDENTIFIER, SLIPPED, UNREADABLE = 0.95, 0.95, 0.97, 0.999  # of checks without a rate of their own
CLOSEST, MOST_MEANT = 5, 20  # values kept that may have been meant, of words and of numbers


# ---------------------------------------------------------------- misspellings


@dataclass(frozen=True)
class Spelling:
    """The frequent values of a column of text, and how likely a rare one that is like them is a misspelling."""

    words: tuple[str, ...]  # the most frequent first
    counts: tuple[int, ...]
    odds: float  # that a rare value which is like a frequent one is misspelled
    forms: tuple[str, ...] = field(default=(), repr=False)
    schemes: tuple[str, ...] = ()  # changes that so many rare values have in common that they are no slips

    def judge(self, texts: Sequence[str], counts: Sequence[int]) -> dict[str, tuple[float, tuple[str, ...]]]:
        """For those of the texts that may be misspelled: the chance of it, and what may have been meant.

        >>> spelling = Spelling(("birmingham", "florence"), (90, 80), odds=9.0)
        >>> spelling.judge(["birmxngham", "boaz"], [1, 1])
        {'birmxngham': (0.9, ('birmingham',))}
        """
        known = set(self.words)
        rare = [(text, count) for text, count in zip(texts, counts, strict=True) if text not in known][
            : 10 * MOST_ALIKE
        ]
        found = {}
        for (text, count), near in zip(rare, _near([text for text, _ in rare], self.words), strict=True):
            meant = [word for word in near if self.counts[word] >= TIMES_RARER * count]
            if meant and _change(self.words[meant[0]], text) not in self.schemes:
                broken = bool(self.forms) and _form(text) not in self.forms
                odds = self.odds * REPEATED ** (count - 1) * (BROKEN if broken else 1.0)
                found[text] = round(odds / (1 + odds), 6), tuple(self.words[word] for word in meant[:CLOSEST])
        return found


def learn_spelling(texts: pa.ChunkedArray) -> Spelling | None:
    """What is usual in a column of text; None if no value is frequent.

    >>> cities = pa.chunked_array([["birmingham"] * 60 + ["florence"] * 50 + ["boaz"] * 20 + ["birmxngham"]])
    >>> spelling = learn_spelling(cities)
    >>> spelling.words, spelling.odds > 3
    (('birmingham', 'florence', 'boaz'), True)
    """
    found = pc.value_counts(texts.drop_null().combine_chunks())
    by_count = sorted(
        zip(found.field("counts").to_pylist(), found.field("values").to_pylist(), strict=True), reverse=True
    )
    frequent = [(text, count) for count, text in by_count if count >= FREQUENT][:MOST_ALIKE]
    if not frequent:
        return None
    words, counts = zip(*frequent, strict=True)
    most = counts[0]
    # Of the frequent values themselves those count as known that are no misspellings of even more frequent ones.
    alike = sum(any(other != own for other in near) for own, near in enumerate(_near(words, words)))
    share = (alike + 0.5) / (len(words) + 1)  # of natural values that are like a frequent one
    rare = [(text, count) for count, text in by_count if count < FREQUENT and TIMES_RARER * count <= most]
    near = _near([text for text, _ in rare[: 10 * MOST_ALIKE]], words)
    nearest = [
        (text, next((words[word] for word in each if counts[word] >= TIMES_RARER * count), None))
        for (text, count), each in zip(rare, near, strict=False)
    ]
    changes = Counter(_change(word, text) for text, word in nearest if word is not None)
    schemes = [change for change, times in changes.items() if times >= max(FREQUENT, SCHEME * changes.total())]
    like = changes.total() - sum(changes[scheme] for scheme in schemes)
    natural = (len(near) - like + 0.5) * share / (1 - share)  # rare values that are like a frequent one by chance
    odds = max(like - natural, 0.05) / natural
    return Spelling(words, counts, odds, tuple(sorted({_form(word) for word in words})), tuple(schemes))


def _near(texts: Sequence[str], words: Sequence[str]) -> list[list[int]]:
    """For each text the places of those words that it may be a misspelling of, the nearest first."""
    near: list[list[int]] = []
    lengths = np.array([len(word) for word in words])
    for start in range(0, len(texts), 1000):
        piece = texts[start : start + 1000]
        own = np.array([len(text) for text in piece])
        allowed = np.maximum(1, np.maximum(own[:, None], lengths) // LETTERS_PER_SLIP)
        allowed = np.minimum(allowed, 3 + own[:, None] // 20)
        folded = [text.casefold() for text in piece], [word.casefold() for word in words]
        distance = cdist(*folded, scorer=OSA.distance, score_cutoff=int(allowed.max(initial=1)), dtype=np.int32)
        for text, row, most in zip(piece, distance, allowed, strict=True):
            places = np.flatnonzero(row <= most)
            places = places[np.argsort(row[places], kind="stable")]
            near.append([place for place in places.tolist() if _differ(text, words[place])])
    return near


def _change(word: str, text: str) -> str:
    """What was done to a word.

    >>> _change("al_ami-1", "ak_ami-1") == _change("al_pn-3", "ak_pn-3")
    True
    """
    steps = Levenshtein.editops(word, text)
    return " ".join(f"{step.tag}:{step.src_pos}:{text[step.dest_pos : step.dest_pos + 1]}" for step in steps)


def _differ(text: str, word: str) -> bool:
    """In more than digits: room 12 and room 13 are two rooms."""
    return text != word and re.sub(r"\d", "9", text) != re.sub(r"\d", "9", word)


def _form(text: str) -> str:
    """Letters and digits as such, runs as one: "AB-123" is "a-9"."""
    return re.sub(r"9+", "9", re.sub(r"\d", "9", re.sub(r"[^\W\d_]+", "a", text)))


# ---------------------------------------------------------------- all checks of a table


@dataclass(frozen=True)
class Checks:
    """What was learned of the columns by themselves."""

    spellings: Mapping[str, Spelling]
    identifiers: Mapping[str, str]  # column of identifiers to the form that they have; "" if they have many
    numbers: Mapping[str, tuple[str, ...]]  # column of numbers or dates to those that are often written

    def misspelled(self, table: pa.Table) -> list[Suspect]:
        """Cells that are probably a frequent value misspelled."""
        suspects = []
        for name, spelling in self.spellings.items():
            place = table.column_names.index(name)
            if family(table.schema.field(name).type) != "text":
                continue
            coded = table.column(place).combine_chunks().dictionary_encode()
            texts = coded.dictionary.to_pylist()
            counts = np.bincount(coded.indices.drop_null().to_numpy(), minlength=len(texts)).tolist()
            found = spelling.judge(texts, counts)
            wrong = pa.array([text in found for text in texts], pa.bool_())
            rows = pc.fill_null(wrong.take(coded.indices), False).to_numpy(zero_copy_only=False).nonzero()[0]
            for row, text in zip(rows.tolist(), table.column(place).take(pa.array(rows)).to_pylist(), strict=True):
                chance, meant = found[text]
                reason = f"{name} is {text}, which is rare and nearly {' or '.join(meant[:2])}"
                suspects.append(Suspect(row, place, chance, meant, reason, readable=False))
        return suspects

    def to_json(self) -> dict[str, Any]:
        return {
            "spellings": {name: asdict(spelling) for name, spelling in self.spellings.items()},
            "identifiers": dict(self.identifiers),
            "numbers": dict(self.numbers),
        }

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Checks:
        spellings = {}
        for name, entry in entries["spellings"].items():
            held: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()}
            spellings[name] = Spelling(**held)
        return cls(spellings, entries["identifiers"], {n: tuple(words) for n, words in entries["numbers"].items()})


def learn_checks(table: Table, schema: Schema, readers: Readers) -> Checks:
    """What is usual in each column that the user did not tell to ignore."""
    spellings, identifiers, numbers = {}, {}, {}
    for column in schema:
        values = table.understood[column.name]
        if not isinstance(readers.get(column.name, Words()), Words) and column.kind != IGNORE:
            numbers[column.name] = _often_written(table, column.name)
        looked_at = column.kind == "category" or (column.kind == IGNORE and column.reason)
        if not looked_at or family(values.type) not in ("text", "number") or pa.types.is_dictionary(values.type):
            continue
        observed = values.drop_null()
        if (
            column.kind == IGNORE
            and len(observed) > 1
            and pc.count_distinct(observed).as_py() >= MOST_IDENTIFIERS * len(observed)
        ):
            identifiers[column.name] = _usual_form(observed)
        elif family(values.type) == "text":
            spelling = learn_spelling(values)
            if spelling is not None:
                spellings[column.name] = spelling
    return Checks(spellings, identifiers, numbers)


def _often_written(table: Table, name: str) -> tuple[str, ...]:
    """The texts that stand for a number or a date in several cells, the most frequent first."""
    texts, values = table.arrow[name], table.understood[name]
    if family(texts.type) != "text":
        return ()
    said = texts.filter(pc.is_valid(values) if not pa.types.is_floating(values.type) else pc.is_finite(values))
    found = pc.value_counts(pc.utf8_trim_whitespace(said.combine_chunks()))
    counts = found.field("counts")
    order = pc.sort_indices(counts, sort_keys=[("", "descending")])[:MOST_ALIKE]
    often = order.filter(pc.greater(counts.take(order), 1))
    return tuple(found.field("values").take(often).to_pylist())


def _usual_form(observed: pa.ChunkedArray) -> str:
    if family(observed.type) != "text":
        return ""
    forms = Counter(_form(text) for text in observed.to_pylist())
    form, count = forms.most_common(1)[0]
    return form if count >= SAME_FORM * len(observed) else ""


def check(table: Table, checks: Checks, readers: Readers) -> Table:
    """The table with every cell that some check speaks against; what is probably misspelled is not learned from."""
    found = [
        *checks.misspelled(table.understood),
        *_bad_identifiers(checks, table.understood),
        *_strange_units(checks, table.arrow, readers),
        *_unreadable(checks, table, readers),
        *_slipped(checks, table.understood),
    ]
    by_cell: dict[tuple[int, int], Suspect] = {}
    for suspect in sorted(found, key=lambda each: each.suspicion):
        by_cell[suspect.row, suspect.column] = suspect
    suspects = tuple(sorted(by_cell.values(), key=lambda each: (each.row, each.column)))
    return replace(table, understood=_without(table.understood, suspects), suspects=suspects)


def _without(understood: pa.Table, suspects: Sequence[Suspect]) -> pa.Table:
    """The table with what is probably misspelled or slipped taken for missing."""
    rows: dict[int, list[int]] = {}
    for suspect in suspects:
        if suspect.hidden:
            rows.setdefault(suspect.column, []).append(suspect.row)
    for place, own in rows.items():
        gone = np.zeros(understood.num_rows, dtype=bool)
        gone[own] = True
        column = pc.if_else(pa.array(gone), pa.scalar(None, understood.schema.types[place]), understood.column(place))
        understood = understood.set_column(place, understood.column_names[place], column)
    return understood


def _unreadable(checks: Checks, table: Table, readers: Readers) -> list[Suspect]:
    """Cells that should be numbers or dates and are none, with the values that are written nearly so."""
    suspects = []
    for name, reader in readers.items():
        place = table.understood.column_names.index(name)
        if isinstance(reader, Words) or not pa.types.is_floating(table.understood.schema.types[place]):
            continue
        rows = pc.fill_null(pc.is_nan(table.understood.column(place)), False).to_numpy().nonzero()[0]
        if len(rows) == 0:
            continue
        texts = [str(cell).strip() for cell in table.arrow.column(place).take(pa.array(rows)).to_pylist()]
        words = checks.numbers.get(name, ())
        what = "date" if isinstance(reader, Dates) else "number"
        for row, text, near in zip(rows.tolist(), texts, _near(texts, words), strict=True):
            meant = tuple(words[word] for word in near[:MOST_MEANT])
            reason = f"{name} is {text}, which is no {what} such as the others"
            suspects.append(Suspect(row, place, UNREADABLE, meant, reason, readable=False))
    return suspects


def _strange_units(checks: Checks, table: pa.Table, readers: Readers) -> list[Suspect]:
    """Numbers with a unit that hardly any other has: of "9x%" a digit may be wrong, of "619 paxients" only the unit."""
    suspects = []
    for name, reader, rows in strange_cells(table, readers):
        place, words = table.column_names.index(name), checks.numbers.get(name, ())
        texts = [text.strip() for text in table.column(place).take(pa.array(rows)).to_pylist()]
        usual = f"the unit {reader.units[0]}" if reader.units[0] else "no unit"
        for row, text, near in zip(rows.tolist(), texts, _near(texts, words), strict=True):
            own = reader.rewrite(text)
            slips = OSA.distance(text.casefold(), own.casefold())
            closer = [words[word] for word in near if OSA.distance(text.casefold(), words[word].casefold()) <= slips]
            meant = tuple(dict.fromkeys([own, *closer[:MOST_MEANT]]))
            reason = f"{name} is {text}, written as hardly any other; usually it has {usual}"
            suspects.append(Suspect(row, place, STRANGE_UNIT, meant, reason, readable=len(meant) == 1))
    return suspects


def _bad_identifiers(checks: Checks, table: pa.Table) -> list[Suspect]:
    """Identifiers that stand in an earlier row too, have another form than the rest, or are no numbers."""
    suspects = []
    for name, form in checks.identifiers.items():
        place, values = table.column_names.index(name), table[name]
        coded = values.combine_chunks().dictionary_encode()
        texts = coded.dictionary.to_pylist()
        index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        order = np.argsort(index, kind="stable")
        again = order[1:][(index[order[1:]] == index[order[:-1]]) & (index[order[1:]] >= 0)]
        _, first_row = np.unique(index, return_index=True)
        first = dict(zip(index[first_row].tolist(), first_row.tolist(), strict=True))
        for row in again.tolist():
            text = texts[index[row]]
            if text == text:
                reason = f"{name} is {text} as in row {first[index[row]]}; in all other rows it differs"
                suspects.append(Suspect(row, place, BAD_IDENTIFIER, (), reason, readable=True))
        odd = {code for code, text in enumerate(texts) if text != text or (form and _form(str(text)) != form)}
        for row in np.flatnonzero(np.isin(index, list(odd))).tolist():
            text = texts[index[row]]
            reason = (
                f"{name} is no number" if text != text else f"{name} is {text}, which has another form than the others"
            )
            suspects.append(Suspect(row, place, BAD_IDENTIFIER, (), reason, readable=True))
    return suspects


def _slipped(checks: Checks, table: pa.Table) -> list[Suspect]:
    """Values that slipped into a neighbour: "San Francisco CA" where the state is missing and CA is one."""
    suspects = []
    for name, spelling in checks.spellings.items():
        place = table.column_names.index(name)
        missing = table[name].is_null().to_numpy().nonzero()[0]
        words = set(spelling.words)
        if len(missing) == 0 or family(table.schema.field(name).type) != "text":
            continue
        for beside in (place - 1, place + 1):
            if not 0 <= beside < table.num_columns or family(table.schema.field(beside).type) != "text":
                continue
            other = table.column_names[beside]
            for row, text in zip(
                missing.tolist(), table.column(beside).take(pa.array(missing)).to_pylist(), strict=True
            ):
                left, joint, right = (text or "").rpartition(" ") if beside < place else _first_word(text or "")
                own, rest = (right, left) if beside < place else (left, right)
                if joint and rest and own in words:
                    reason = f"{other} is {text} and {name} is missing: {own} belongs to {name}"
                    suspects.append(Suspect(row, beside, SLIPPED, (rest.rstrip(" ,;"),), reason, readable=False))
                    suspects.append(Suspect(row, place, SLIPPED, (own,), reason, readable=False))
    return suspects


def _first_word(text: str) -> tuple[str, str, str]:
    return text.partition(" ")
