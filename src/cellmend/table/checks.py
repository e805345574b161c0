"""What a column's own values say, before any model: misspellings, strange units, identifiers twice, slipped values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from cellmend.table.causes import named
from cellmend.table.causes.garbles import told_by_rest
from cellmend.table.causes.numbers import (
    NumberCause,
    Strays,
    causes_from_json,
    causes_to_json,
    learn_number_causes,
    stray_together,
)
from cellmend.table.causes.slips import Several
from cellmend.table.dates import Dates
from cellmend.table.explained import LearnedTexts, learn_texts
from cellmend.table.kinds import IDENTIFIER_NAME, MOST_IDENTIFIERS
from cellmend.table.notation import MOMENTS
from cellmend.table.numbers import Numbers
from cellmend.table.readtable import DOUBTFUL, ReadTable, Suspect
from cellmend.table.schema import DATE, IGNORE, Column, Schema
from cellmend.table.texts import Words, form_of, holds_text
from cellmend.table.values import family, level_text, plain

MOST_ALIKE = 5000  # numbers that are often written and looked at
LONGEST = 200  # letters of a number or a date that others are compared with
LETTERS_PER_SLIP = 6  # one of so many letters may be wrong
SAME_FORM = 0.98  # of the identifiers have one form, or forms do not matter
FEWEST_STRANGE = 2  # columns of numbers in which a word stands that is no value of any column
STRANGE_UNIT, BAD_IDENTIFIER, SLIPPED, UNREADABLE = 0.95, 0.95, 0.97, 0.999  # of checks without a rate of their own
SAME_ROW = 0.7  # of the cells of two rows are alike: then they tell of the same thing, with one identifier
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
    return not is_code or _shape(text) != _shape(word)


def _shape(code: str) -> str:
    """Letters and digits as such, one by one."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", code))


# ---------------------------------------------------------------- all checks of a table


@dataclass(frozen=True)
class Checks:
    """What was learned of the columns by themselves."""

    texts: Mapping[str, LearnedTexts]
    identifiers: Mapping[str, str]  # column of identifiers to the form that they have; "" if they have many
    numbers: Mapping[str, tuple[str, ...]]  # column of numbers or dates to those that are often written
    causes: Mapping[str, tuple[NumberCause, ...]]  # column of numbers to what made some of them wrong

    def misspelled(self, table: ReadTable, *, rows_alone: bool) -> list[Suspect]:
        """Cells that one of the causes made of another text; `rows_alone` as if each had a value of its own."""
        suspects = []
        for name, learned in self.texts.items():
            place = table.arrow.column_names.index(name)
            texts, index = _coded_texts(table, name)
            if not texts:  # no text, or gaps only
                continue
            counts = np.bincount(index[index >= 0], minlength=len(texts)).tolist()
            found = learned.judge({text: 1 if rows_alone else count for text, count in zip(texts, counts, strict=True)})
            odd = np.array([text in found for text in texts], dtype=bool)
            for row in np.flatnonzero((index >= 0) & odd[index]).tolist():
                text = texts[index[row]]
                chance, meant, cause, words = found[text]
                if cause == Several().name and isinstance(table.notations.get(name), Dates):
                    continue  # most dates are two digits from another one
                reason = f"{name} is {text}, probably {words}"
                suspects.append(Suspect(row, place, chance, meant, reason, readable=False, cause=cause))
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
        return replace(self, texts=texts, numbers={n: words for n, words in self.numbers.items() if n not in names})

    def followed_by(self, new: Checks) -> Checks:
        """With the values of newer rows too."""
        counts = {name: Counter(dict(learned.counts)) for name, learned in self.texts.items()}
        for name, learned in new.texts.items():
            counts.setdefault(name, Counter()).update(learned.counts)
        numbers = {
            name: tuple(dict.fromkeys([*words, *new.numbers.get(name, ())]))[:MOST_ALIKE]
            for name, words in self.numbers.items()
        }
        return replace(self, texts=learn_texts(counts), numbers=numbers)

    def to_json(self) -> dict[str, Any]:
        return {
            "texts": {name: learned.to_json() for name, learned in self.texts.items()},
            "identifiers": dict(self.identifiers),
            "numbers": dict(self.numbers),
            "causes": {name: causes_to_json(own) for name, own in self.causes.items()},
        }

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Checks:
        if "spellings" in entries:  # as models of before have them
            counts = {name: dict(zip(e["words"], e["counts"], strict=True)) for name, e in entries["spellings"].items()}
            texts = learn_texts(counts)
        else:
            texts = {name: LearnedTexts.from_json(entry) for name, entry in entries["texts"].items()}
        numbers = {name: tuple(words) for name, words in entries["numbers"].items()}
        causes = {name: causes_from_json(own) for name, own in entries.get("causes", {}).items()}
        return cls(texts, entries["identifiers"], numbers, causes)


def _coded_texts(table: ReadTable, name: str) -> tuple[list[str] | None, NDArray[np.int64]]:
    """The different texts of a column of text, and which of them each row has, -1 for none; None if it is no text."""
    column = table.arrow[name] if isinstance(table.notations.get(name), Dates) else table.understood[name]
    if family(column.type) != "text":
        return None, np.zeros(0, dtype=np.int64)
    trimmed = pc.utf8_trim_whitespace(plain(column).combine_chunks())
    coded = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, trimmed.type), trimmed).dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def learn_checks(table: ReadTable, schema: Schema) -> Checks:
    """What is usual in each column that the user did not tell to ignore."""
    counts, identifiers, numbers, causes = {}, {}, {}, {}
    for column in schema:
        values, name = table.understood[column.name], column.name
        if column.kind == IGNORE and not column.reason:
            continue
        if not isinstance(table.notations.get(name, Words()), Words) and column.kind != IGNORE:
            numbers[name] = _often_written(table, name)
        if column.kind == IGNORE and family(values.type) in ("text", "number") and _are_identifiers(name, values):
            identifiers[name] = _usual_form(plain(values).drop_null())
        if _are_quantities(column, values) and not isinstance(table.notations.get(name), MOMENTS):
            causes[name] = learn_number_causes(_numbers(values))
        texts, index = _coded_texts(table, name)
        if texts and column.levels is None:
            often = np.bincount(index[index >= 0], minlength=len(texts)).tolist()
            counts[name] = dict(zip(texts, often, strict=True))
    learned = learn_texts(counts, _strangers(table))
    return Checks(learned, identifiers, numbers, _without_reason(causes, table.understood))


def _strangers(table: ReadTable) -> set[str]:
    """Words that stand in several columns of numbers and are none."""
    found = Counter[str]()
    for name, notation in table.notations.items():
        values = table.understood[name]
        if isinstance(notation, Numbers) and pa.types.is_floating(values.type):
            unread = table.arrow[name].filter(pc.fill_null(pc.is_nan(values), False))
            found.update({str(text).strip() for text in pc.unique(unread).to_pylist()})
    return {text for text, columns in found.items() if columns >= FEWEST_STRANGE and text and text[-1:].isalpha()}


def _are_quantities(column: Column, values: pa.ChunkedArray) -> bool:
    return family(values.type) == "number" and column.kind not in (IGNORE, DATE) and column.levels is None


def _without_reason(
    causes: Mapping[str, tuple[NumberCause, ...]], table: pa.Table
) -> dict[str, tuple[NumberCause, ...]]:
    """The causes but for noise that two columns have in the same rows: there both were measured, and else a default."""
    rows = {}
    for name, own in causes.items():
        for cause in own:
            if isinstance(cause, Strays):
                numbers = _numbers(table[name])
                rows[name] = np.isfinite(numbers) & ~np.isin(numbers, cause.levels)
    natural = {a for a in rows for b in rows if a != b and stray_together(rows[a], rows[b])}
    kept = {
        name: tuple(each for each in own if not (name in natural and isinstance(each, Strays)))
        for name, own in causes.items()
    }
    return {name: own for name, own in kept.items() if own}


def _often_written(table: ReadTable, name: str) -> tuple[str, ...]:
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


def _are_identifiers(name: str, values: pa.ChunkedArray) -> bool:
    """All different but for a few, and numbered, called an id, or with digits and without spaces; not times or mail."""
    observed = plain(values).drop_null()
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


def check(table: ReadTable, checks: Checks, *, rows_alone: bool = False) -> ReadTable:
    """The table with every cell that some check speaks against; what is probably misspelled is not learned from.

    With `rows_alone` no row is compared with other rows of the table, which may be any piece of a larger one.
    """
    found = [
        *_bad_identifiers(checks, table.understood),
        *_strange_units(checks, table),
        *_unreadable(checks, table),
        *_wrong_numbers(checks, table),
    ]
    if not rows_alone:
        found += [*_identifiers_again(checks, table.understood), *_slipped(checks, table.understood)]
    misspelled = checks.misspelled(table, rows_alone=rows_alone)
    return table.with_suspects([*misspelled, *sorted(found, key=lambda each: each.suspicion)])


def _unreadable(checks: Checks, table: ReadTable) -> list[Suspect]:
    """Cells that should be numbers or dates and are none, with the values that are written nearly so."""
    suspects = []
    places = {name: place for place, name in enumerate(table.names)}
    for name, notation in table.notations.items():
        place = places[name]
        if isinstance(notation, Words) or not pa.types.is_floating(table.understood.column(place).type):
            continue
        rows = pc.fill_null(pc.is_nan(table.understood.column(place)), False).to_numpy().nonzero()[0]
        if len(rows) == 0:
            continue
        texts = [str(cell).strip() for cell in table.arrow.column(place).take(pa.array(rows)).to_pylist()]
        words = checks.numbers.get(name, ())
        for row, text, near in zip(rows.tolist(), texts, _near(texts, words), strict=True):
            meant = tuple(words[word] for word in near[:MOST_MEANT])
            if isinstance(notation, Numbers):
                meant = told_by_rest(text, words) or _meant_numbers(text, meant, notation.decimal)
            reason, cause = f"{name} is {text}, which is no {notation.noun}", named.UNREADABLE
            if notation.rounded(text) is not None:
                meant, cause = (), named.DECIMALS
                reason = f"{name} is {text}, with far more decimals than the others"
            suspects.append(Suspect(row, place, UNREADABLE, meant, reason, readable=False, cause=cause))
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


def _wrong_numbers(checks: Checks, table: ReadTable) -> list[Suspect]:
    """Numbers that one of the causes made wrong."""
    suspects = []
    for name, causes in checks.causes.items():
        place, numbers = table.understood.column_names.index(name), _numbers(table.understood[name])
        for cause in causes:
            found = cause.judge(np.unique(numbers[np.isfinite(numbers)]))
            for row in np.flatnonzero(np.isin(numbers, list(found))).tolist():
                chance, meant = found[numbers[row]]
                said = table.arrow.column(place)[row].as_py()
                reason = f"{name} is {cause.words(str(said))}"
                texts = tuple(_written(table, name, number) for number in meant)
                suspects.append(Suspect(row, place, chance, texts, reason, readable=cause.readable, cause=cause.name))
    return suspects


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return plain(column).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _written(table: ReadTable, name: str, number: float) -> str:
    """A number as its column writes it."""
    notation = table.notations.get(name)
    return str(notation.write(number, None)) if isinstance(notation, Numbers) else level_text(number)


def _strange_units(checks: Checks, table: ReadTable) -> list[Suspect]:
    """Numbers with a unit that hardly any other has: of "9x%" a digit may be wrong, of "619 paxients" only the unit."""
    suspects = []
    for name, notation in table.notations.items():
        if isinstance(notation, Words) or not holds_text(table.arrow.schema.field(name).type):
            continue
        rows = np.flatnonzero(notation.read(table.arrow[name]).strange)
        place, words = table.names.index(name), checks.numbers.get(name, ())
        texts = [text.strip() for text in table.arrow.column(place).take(pa.array(rows)).to_pylist()]
        for row, text, near in zip(rows.tolist(), texts, _near(texts, words), strict=True):
            own = notation.rewrite(text)
            slips = OSA.distance(text.casefold(), own.casefold())
            near = near if isinstance(notation, Numbers) else []
            closer = [words[word] for word in near if OSA.distance(text.casefold(), words[word].casefold()) <= slips]
            sure = [] if isinstance(notation, Numbers) and notation.hides_digits(text) else [own]
            meant = tuple(dict.fromkeys([*sure, *closer[:MOST_MEANT]]))
            reason = f"{name} is {text}, written as hardly any other is"
            known = len(meant) == 1
            suspects.append(Suspect(row, place, STRANGE_UNIT, meant, reason, readable=known, cause=named.NOTATION))
    return suspects


def _identifiers_again(checks: Checks, table: pa.Table) -> list[Suspect]:
    """Identifiers that stand in an earlier row too; not if the rows are the same but for little."""
    suspects = []
    for name in checks.identifiers:
        place, texts, index = _coded_column(table, name)
        order = np.argsort(index, kind="stable")
        again = order[1:][(index[order[1:]] == index[order[:-1]]) & (index[order[1:]] >= 0)]
        _, first_row = np.unique(index, return_index=True)
        first = dict(zip(index[first_row].tolist(), first_row.tolist(), strict=True))
        earlier = [first[code] for code in index[again].tolist()]
        alike = _shares_alike(table, again, np.array(earlier, dtype=np.int64))
        for row, before in zip(
            again[alike < SAME_ROW].tolist(), np.array(earlier)[alike < SAME_ROW].tolist(), strict=True
        ):
            text = texts[index[row]]
            if text == text:
                reason = f"{name} is {level_text(text)} as in row {before}; in all other rows it differs"
                suspects.append(Suspect(row, place, BAD_IDENTIFIER, (), reason, readable=True, cause=named.REPEATED))
    return suspects


def _shares_alike(table: pa.Table, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share of cells in which each row is like the other one, (n,)."""
    alike = [
        pc.fill_null(pc.equal(column.take(pa.array(rows)), column.take(pa.array(others))), False).to_numpy()
        for column in map(plain, table.columns)
    ]
    return np.mean(alike, axis=0) if len(rows) else np.zeros(0)


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
            cause = named.UNREADABLE if text != text else named.FORM
            suspects.append(Suspect(row, place, BAD_IDENTIFIER, (), reason, readable=True, cause=cause))
    return suspects


def _coded_column(table: pa.Table, name: str) -> tuple[int, list[Any], NDArray[np.int64]]:
    """Place, distinct values, and for each row which of them it has, -1 for none."""
    coded = table[name].combine_chunks().dictionary_encode()
    index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return table.column_names.index(name), coded.dictionary.to_pylist(), index


def _slipped(checks: Checks, table: pa.Table) -> list[Suspect]:
    """Values that slipped into a neighbour: "San Francisco CA" where the state is missing and CA is one."""
    suspects = []
    for name, learned in checks.texts.items():
        place = table.column_names.index(name)
        missing = table[name].is_null().to_numpy()
        if not missing.any() or family(table.schema.field(name).type) != "text":
            continue
        for beside in (place - 1, place + 1):
            if 0 <= beside < table.num_columns and family(table.schema.field(beside).type) == "text":
                found = _slips(plain(table.column(beside)), missing, learned.values, last=beside < place)
                for row, text, rest, own in found:
                    reason = f"{table.column_names[beside]} is {text} and {name} is missing: {own} belongs to {name}"
                    suspects += [
                        Suspect(row, at, SLIPPED, (meant,), reason, readable=False, cause=named.SLIPPED)
                        for at, meant in ((beside, rest), (place, own))
                    ]
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
