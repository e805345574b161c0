"""What a column's own values say, before any model: misspellings, strange units, identifiers twice, slipped values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz.distance import OSA

from cellmend.table.kinds import IDENTIFIER_NAME, MOST_IDENTIFIERS
from cellmend.table.numbers import Numbers
from cellmend.table.readtable import ReadTable, Suspect
from cellmend.table.schema import IGNORE, Schema
from cellmend.table.spelling import MOST_ALIKE, Spelling, learn_spelling, near_words
from cellmend.table.texts import Words, form_of, holds_text
from cellmend.table.values import family, level_text, plain

SAME_FORM = 0.95  # of the identifiers have one form, or forms do not matter
STRANGE_UNIT, BAD_IDENTIFIER, SLIPPED, UNREADABLE = 0.95, 0.95, 0.97, 0.999  # of checks without a rate of their own
MOST_MEANT = 20  # numbers kept that may have been meant


@dataclass(frozen=True)
class Checks:
    """What was learned of the columns by themselves."""

    spellings: Mapping[str, Spelling]
    identifiers: Mapping[str, str]  # column of identifiers to the form that they have; "" if they have many
    numbers: Mapping[str, tuple[str, ...]]  # column of numbers or dates to those that are often written

    def misspelled(self, table: pa.Table, *, rows_alone: bool) -> list[Suspect]:
        """Cells that are probably a frequent value misspelled; `rows_alone` as if each had a value of its own."""
        suspects = []
        for name, spelling in self.spellings.items():
            place = table.column_names.index(name)
            if family(table.schema.field(name).type) != "text":
                continue
            column = plain(table.column(place))
            coded = column.combine_chunks().dictionary_encode()
            texts = coded.dictionary.to_pylist()
            counts = np.bincount(coded.indices.drop_null().to_numpy(), minlength=len(texts)).tolist()
            found = spelling.judge(texts, [1] * len(texts) if rows_alone else counts)
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


def learn_checks(table: ReadTable, schema: Schema) -> Checks:
    """What is usual in each column that the user did not tell to ignore."""
    spellings, identifiers, numbers = {}, {}, {}
    for column in schema:
        values = table.understood[column.name]
        if not isinstance(table.notations.get(column.name, Words()), Words) and column.kind != IGNORE:
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


def check(table: ReadTable, checks: Checks, *, rows_alone: bool = False) -> ReadTable:
    """The table with every cell that some check speaks against; what is probably misspelled is not learned from.

    With `rows_alone` no row is compared with other rows of the table, which may be any piece of a larger one.
    """
    found = [
        *checks.misspelled(table.understood, rows_alone=rows_alone),
        *_bad_identifiers(checks, table.understood),
        *_strange_units(checks, table),
        *_unreadable(checks, table),
    ]
    if not rows_alone:
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


def _unreadable(checks: Checks, table: ReadTable) -> list[Suspect]:
    """Cells that should be numbers or dates and are none, with the values that are written nearly so."""
    suspects = []
    for name, notation in table.notations.items():
        place = table.understood.column_names.index(name)
        if isinstance(notation, Words) or not pa.types.is_floating(table.understood.schema.types[place]):
            continue
        rows = pc.fill_null(pc.is_nan(table.understood.column(place)), False).to_numpy().nonzero()[0]
        if len(rows) == 0:
            continue
        texts = [str(cell).strip() for cell in table.arrow.column(place).take(pa.array(rows)).to_pylist()]
        words = checks.numbers.get(name, ())
        for row, text, near in zip(rows.tolist(), texts, near_words(texts, words, strict=False), strict=True):
            meant = tuple(words[word] for word in near[:MOST_MEANT])
            reason = f"{name} is {text}, which is no {notation.noun}"
            if notation.rounded(text) is not None:
                meant, reason = (), f"{name} is {text}, with far more decimals than the others"
            suspects.append(Suspect(row, place, UNREADABLE, meant, reason, readable=False))
    return suspects


def _strange_units(checks: Checks, table: ReadTable) -> list[Suspect]:
    """Numbers with a unit that hardly any other has: of "9x%" a digit may be wrong, of "619 paxients" only the unit."""
    suspects = []
    for name, notation in table.notations.items():
        if isinstance(notation, Words) or not holds_text(table.arrow.schema.field(name).type):
            continue
        rows = np.flatnonzero(notation.read(table.arrow[name]).strange)
        place, words = table.arrow.column_names.index(name), checks.numbers.get(name, ())
        texts = [text.strip() for text in table.arrow.column(place).take(pa.array(rows)).to_pylist()]
        for row, text, near in zip(rows.tolist(), texts, near_words(texts, words, strict=False), strict=True):
            own = notation.rewrite(text)
            slips = OSA.distance(text.casefold(), own.casefold())
            near = near if isinstance(notation, Numbers) else []
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
