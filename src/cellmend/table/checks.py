"""What a column's own values say, before any model: misspellings, strange units, identifiers twice, slipped values.

A rare text that is nearly a frequent one is probably that one misspelled. How probably, the column itself tells: where
frequent values are alike too (ami-2, ami-3), being alike means little; where many rare values are like no other,
rare values are natural.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz.distance import OSA, Levenshtein
from rapidfuzz.process import cdist

from cellmend.table.frames import Suspect, Table
from cellmend.table.notation import Dates, Numbers, Words, form_of, strange_cells
from cellmend.table.schema import IDENTIFIER_NAME, IGNORE, MOST_IDENTIFIERS, Schema, family, level_text, plain

FREQUENT = 3  # cells at least that hold a value which others may be misspellings of
MOST_ALIKE = 5000  # frequent values of a column that are looked at, and ten times as many rare ones
TIMES_RARER = 5  # a misspelling is than what was meant
REPEATED = 0.1  # how much less likely a misspelling is for every further cell that has the very same
BROKEN = 5.0  # how much likelier, if no frequent value has letters and digits where it has them
LETTERS_PER_SLIP = 6  # one of so many letters may be wrong
SHORTEST = 4  # letters of a word that can be told to be misspelled: Iran and Iraq, yes and yet differ no more
LIKE_BY_CHANCE = 0.1  # of natural rare values are like a frequent one at least, as Iceland is like Ireland
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
        """For those of the texts that may be misspelled, of which a table has so many each: the chance of it, and
        what may have been meant.

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
                broken = bool(self.forms) and form_of(text) not in self.forms
                odds = self.odds * REPEATED ** (count - 1) * (BROKEN if broken else 1.0)
                found[text] = round(odds / (1 + odds), 6), tuple(self.words[word] for word in meant[:CLOSEST])
        return found

    def followed_by(self, new: Spelling) -> Spelling:
        """With the frequent values of newer rows too.

        >>> Spelling(("rome", "oslo"), (9, 8), odds=9.0).followed_by(Spelling(("oslo", "ulm"), (5, 4), odds=1.0))
        Spelling(words=('oslo', 'rome', 'ulm'), counts=(13, 9, 4), odds=9.0, schemes=())
        """
        counts = Counter(dict(zip(self.words, self.counts, strict=True)))
        counts.update(dict(zip(new.words, new.counts, strict=True)))
        words, often = zip(*counts.most_common(MOST_ALIKE), strict=True)
        forms, schemes = (tuple(sorted({*a, *b})) for a, b in ((self.forms, new.forms), (self.schemes, new.schemes)))
        return Spelling(words, often, self.odds, forms, schemes)


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
    share = max((alike + 0.5) / (len(words) + 1), LIKE_BY_CHANCE)  # of natural values that are like a frequent one
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
    return Spelling(words, counts, odds, tuple(sorted({form_of(word) for word in words})), tuple(schemes))


def _near(texts: Sequence[str], words: Sequence[str], *, strict: bool = True) -> list[list[int]]:
    """For each text the places of those words that it may be a misspelling of, the nearest first.

    Not `strict` where it is known that the text is wrong, and only asked what it was.
    """
    near: list[list[int]] = []
    lengths = np.array([len(word) for word in words])
    for start in range(0, len(texts), 1000):
        piece = texts[start : start + 1000]
        own = np.array([len(text) for text in piece])
        longer = np.maximum(own[:, None], lengths)
        allowed = (
            np.where(longer > SHORTEST, np.maximum(1, longer // LETTERS_PER_SLIP), 0) if strict else 1 + longer // 6
        )
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
    """In more than digits, or in a code in more than which letters: room 12 and room 13, AB-100 and AC-100 are two."""
    if re.sub(r"[\d\s]", "", text) == re.sub(r"[\d\s]", "", word) and re.search(r"\d", text):
        return False
    is_code = " " not in word and any(letter.isdigit() for letter in word)
    return not is_code or _shape(text) != _shape(word)


def _shape(code: str) -> str:
    """Letters and digits as such, one by one."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", code))


# ---------------------------------------------------------------- all checks of a table


@dataclass(frozen=True)
class Checks:
    """What was learned of the columns by themselves."""

    spellings: Mapping[str, Spelling]
    identifiers: Mapping[str, str]  # column of identifiers to the form that they have; "" if they have many
    numbers: Mapping[str, tuple[str, ...]]  # column of numbers or dates to those that are often written

    def misspelled(self, table: pa.Table, *, alone: bool) -> list[Suspect]:
        """Cells that are probably a frequent value misspelled; `alone` as if each had a value of its own."""
        suspects = []
        for name, spelling in self.spellings.items():
            place = table.column_names.index(name)
            if family(table.schema.field(name).type) != "text":
                continue
            column = plain(table.column(place))
            coded = column.combine_chunks().dictionary_encode()
            texts = coded.dictionary.to_pylist()
            counts = np.bincount(coded.indices.drop_null().to_numpy(), minlength=len(texts)).tolist()
            found = spelling.judge(texts, [1] * len(texts) if alone else counts)
            wrong = pa.array([text in found for text in texts], pa.bool_())
            rows = pc.fill_null(wrong.take(coded.indices), False).to_numpy(zero_copy_only=False).nonzero()[0]
            for row, text in zip(rows.tolist(), column.take(pa.array(rows)).to_pylist(), strict=True):
                chance, meant = found[text]
                reason = f"{name} is {text}, which is rare and nearly {' or '.join(meant[:2])}"
                suspects.append(Suspect(row, place, chance, meant, reason, readable=False))
        return suspects

    def doubtful(self, table: pa.Table, name: str) -> set[str]:
        """Texts of a column that may be misspelled, also if the same slip was made in many rows."""
        if name not in self.spellings or family(table.schema.field(name).type) != "text":
            return set()
        found = pc.value_counts(plain(table[name]).drop_null())
        return set(self.spellings[name].judge(found.field("values").to_pylist(), found.field("counts").to_pylist()))

    def followed_by(self, new: Checks) -> Checks:
        """With the frequent values of newer rows too; identifiers have the form that they had."""
        spellings = dict(self.spellings)
        for name, spelling in new.spellings.items():
            spellings[name] = spellings[name].followed_by(spelling) if name in spellings else spelling
        numbers = {
            name: tuple(dict.fromkeys([*words, *new.numbers.get(name, ())]))[:MOST_ALIKE]
            for name, words in self.numbers.items()
        }
        return replace(self, spellings=spellings, numbers=numbers)

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


def learn_checks(table: Table, schema: Schema) -> Checks:
    """What is usual in each column that the user did not tell to ignore."""
    spellings, identifiers, numbers = {}, {}, {}
    for column in schema:
        values = table.understood[column.name]
        if not isinstance(table.readers.get(column.name, Words()), Words) and column.kind != IGNORE:
            numbers[column.name] = _often_written(table, column.name)
        looked_at = column.kind == "category" or (column.kind == IGNORE and column.reason)
        if not looked_at or family(values.type) not in ("text", "number"):
            continue
        values = plain(values)
        observed = values.drop_null()
        if column.kind == IGNORE and _are_identifiers(column.name, observed):
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


def _are_identifiers(name: str, observed: pa.ChunkedArray) -> bool:
    """All different but for a few, and numbered, called an id, or with digits and without spaces; not times or mail."""
    if len(observed) < 2 or pc.count_distinct(observed).as_py() < MOST_IDENTIFIERS * len(observed):
        return False
    if family(observed.type) != "text" or IDENTIFIER_NAME.search(name):
        return True
    like = pc.match_substring_regex(observed, r"^[^\s@:]*\d[^\s@:]*$")
    return float(pc.mean(like.cast(pa.float64())).as_py()) >= SAME_FORM


def _usual_form(observed: pa.ChunkedArray) -> str:
    if family(observed.type) != "text":
        return ""
    forms = Counter(form_of(text) for text in observed.to_pylist())
    form, count = forms.most_common(1)[0]
    return form if count >= SAME_FORM * len(observed) else ""


def check(table: Table, checks: Checks, *, alone: bool = False) -> Table:
    """The table with every cell that some check speaks against; what is probably misspelled is not learned from.

    With `alone` no row is compared with other rows of the table, which may be any piece of a larger one.
    """
    found = [
        *checks.misspelled(table.understood, alone=alone),
        *_bad_identifiers(checks, table.understood),
        *_strange_units(checks, table),
        *_unreadable(checks, table),
    ]
    if not alone:
        found += [*_identifiers_again(checks, table.understood), *_slipped(checks, table.understood)]
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
        held = plain(understood.column(place))
        column = pc.if_else(pa.array(gone), pa.scalar(None, held.type), held)
        understood = understood.set_column(place, understood.column_names[place], column)
    return understood


def _unreadable(checks: Checks, table: Table) -> list[Suspect]:
    """Cells that should be numbers or dates and are none, with the values that are written nearly so."""
    suspects = []
    for name, reader in table.readers.items():
        place = table.understood.column_names.index(name)
        if isinstance(reader, Words) or not pa.types.is_floating(table.understood.schema.types[place]):
            continue
        rows = pc.fill_null(pc.is_nan(table.understood.column(place)), False).to_numpy().nonzero()[0]
        if len(rows) == 0:
            continue
        texts = [str(cell).strip() for cell in table.arrow.column(place).take(pa.array(rows)).to_pylist()]
        words = checks.numbers.get(name, ())
        for row, text, near in zip(rows.tolist(), texts, _near(texts, words, strict=False), strict=True):
            meant = tuple(words[word] for word in near[:MOST_MEANT])
            reason = f"{name} is {text}, which is no {'date' if isinstance(reader, Dates) else 'number'}"
            if isinstance(reader, Numbers) and reader.rounded(text) is not None:
                meant, reason = (), f"{name} is {text}, with far more decimals than the others"
            suspects.append(Suspect(row, place, UNREADABLE, meant, reason, readable=False))
    return suspects


def _strange_units(checks: Checks, table: Table) -> list[Suspect]:
    """Numbers with a unit that hardly any other has: of "9x%" a digit may be wrong, of "619 paxients" only the unit."""
    suspects = []
    for name, reader, rows in strange_cells(table.arrow, table.readers):
        place, words = table.arrow.column_names.index(name), checks.numbers.get(name, ())
        texts = [text.strip() for text in table.arrow.column(place).take(pa.array(rows)).to_pylist()]
        for row, text, near in zip(rows.tolist(), texts, _near(texts, words, strict=False), strict=True):
            own = reader.rewrite(text)
            slips = OSA.distance(text.casefold(), own.casefold())
            near = near if isinstance(reader, Numbers) else []
            closer = [words[word] for word in near if OSA.distance(text.casefold(), words[word].casefold()) <= slips]
            meant = tuple(dict.fromkeys([own, *closer[:MOST_MEANT]]))
            reason = f"{name} is {text}, written as hardly any other is"
            suspects.append(Suspect(row, place, STRANGE_UNIT, meant, reason, readable=len(meant) == 1))
    return suspects


def _identifiers_again(checks: Checks, table: pa.Table) -> list[Suspect]:
    """Identifiers that stand in an earlier row too."""
    suspects = []
    for name in checks.identifiers:
        place, texts, index = _coded_column(table, name)
        order = np.argsort(index, kind="stable")
        again = order[1:][(index[order[1:]] == index[order[:-1]]) & (index[order[1:]] >= 0)]
        _, first_row = np.unique(index, return_index=True)
        first = dict(zip(index[first_row].tolist(), first_row.tolist(), strict=True))
        for row in again.tolist():
            text = texts[index[row]]
            if text == text:
                reason = f"{name} is {level_text(text)} as in row {first[index[row]]}; in all other rows it differs"
                suspects.append(Suspect(row, place, BAD_IDENTIFIER, (), reason, readable=True))
    return suspects


def _bad_identifiers(checks: Checks, table: pa.Table) -> list[Suspect]:
    """Identifiers that have another form than the rest, or are no numbers."""
    suspects = []
    for name, form in checks.identifiers.items():
        place, texts, index = _coded_column(table, name)
        odd = {code for code, text in enumerate(texts) if text != text or (form and form_of(str(text)) != form)}
        for row in np.flatnonzero(np.isin(index, list(odd))).tolist():
            text = texts[index[row]]
            reason = (
                f"{name} is no number" if text != text else f"{name} is {text}, which has another form than the others"
            )
            suspects.append(Suspect(row, place, BAD_IDENTIFIER, (), reason, readable=True))
    return suspects


def _coded_column(table: pa.Table, name: str) -> tuple[int, list[Any], NDArray[np.int64]]:
    """Place, distinct values, and for each row which of them it has, -1 for none."""
    coded = table[name].combine_chunks().dictionary_encode()
    index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return table.column_names.index(name), coded.dictionary.to_pylist(), index


def _slipped(checks: Checks, table: pa.Table) -> list[Suspect]:
    """Values that slipped into a neighbour: "San Francisco CA" where the state is missing and CA is one."""
    suspects = []
    for name, spelling in checks.spellings.items():
        place = table.column_names.index(name)
        missing = table[name].is_null().to_numpy()
        if not missing.any() or family(table.schema.field(name).type) != "text":
            continue
        for beside in (place - 1, place + 1):
            if 0 <= beside < table.num_columns and family(table.schema.field(beside).type) == "text":
                found = _slips(plain(table.column(beside)), missing, set(spelling.words), last=beside < place)
                for row, text, rest, own in found:
                    reason = f"{table.column_names[beside]} is {text} and {name} is missing: {own} belongs to {name}"
                    suspects.append(Suspect(row, beside, SLIPPED, (rest,), reason, readable=False))
                    suspects.append(Suspect(row, place, SLIPPED, (own,), reason, readable=False))
    return suspects


def _slips(
    texts: pa.ChunkedArray, missing: NDArray[np.bool_], words: set[str], *, last: bool
) -> Iterator[tuple[int, str, str, str]]:
    """Rows in which the last (or first) word of a text belongs beside it: the text, its rest, and that word.

    A text that also stands where nothing is missing is natural. Its rest must be a value of the column by itself, if
    natural texts end so too: South Africa beside Africa.
    """
    natural = {text for text in texts.filter(pa.array(~missing)).to_pylist() if text}
    ambiguous = any(_parted(text, last)[0] in words and _parted(text, last)[1] for text in natural)
    rows = np.flatnonzero(missing)
    for row, text in zip(rows.tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True):
        own, rest = _parted(text or "", last)
        if rest and own in words and text not in natural and (rest in natural or not ambiguous):
            yield row, text, rest, own


def _parted(text: str, last: bool) -> tuple[str, str]:
    """The last word of a text, or the first, and the rest."""
    before, _, after = text.rpartition(" ") if last else text.partition(" ")
    return (after, before.rstrip(" ,;")) if last else (before, after)
