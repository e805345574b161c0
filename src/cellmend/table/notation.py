"""How a column writes its values: words, numbers with units, dates, or times of day.

A notation is learned from a column once and reads newer ones in the same way. What it reads has a null where the cell
is missing and NaN where it cannot be read, or where a number has far more decimals than those of its column ever have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cellmend.table.clocks import Clocks, learn_clocks
from cellmend.table.codes import are_hexadecimal, are_named_codes
from cellmend.table.dates import Dates, learn_dates
from cellmend.table.kinds import names_a_code
from cellmend.table.numbers import MOST_NUMBERS, Numbers, learn_numbers, usual_decimals
from cellmend.table.packing import pack, unpack
from cellmend.table.priors import BY_FAR
from cellmend.table.texts import Notation, Texts, Unread, Words, counted_texts, distinct_texts, holds_text
from cellmend.table.values import readable

# As model files name them, and tasks that travel.
NOTATIONS: dict[str, type[Notation]] = {
    "words": Words,
    "numbers": Numbers,
    "dates": Dates,
    "clocks": Clocks,
    "unread": Unread,
}
MOMENTS = (Dates, Clocks)  # numbers that have no unit, sign or decimal point
NAMED = 5  # columns in a sentence at most
Notations = Mapping[str, Notation]


def learn_notations(table: pa.Table, declared: Mapping[str, str], decimal: str | None = None) -> dict[str, Notation]:
    """A notation for each column of text or dates; `declared` are kinds that the user gave, `decimal` the mark."""
    columns = zip(table.column_names, table.columns, strict=True)
    learned = {name: learn_notation(values, declared.get(name), decimal, name) for name, values in columns}
    return {name: notation for name, notation in learned.items() if notation is not None}


def learn_notation(
    values: Texts, kind: str | None = None, decimal: str | None = None, name: str = ""
) -> Notation | None:
    """How to read a column: None if it is no text; `kind` if the user said what it is; its name may say it too.

    >>> learn_notation(pa.array(["3 May 2024", "12 Jun 2024"]))
    Dates(form='%d %b %Y', also=(), others=(), padded=True)
    >>> learn_notation(pa.array(["02134", "10001"]))
    Words()
    """
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        return Dates() if kind in (None, "date") else None
    if pa.types.is_floating(values.type):
        numbers = readable(values).to_numpy().astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        decimals = usual_decimals(finite) if kind is None else None
        return None if decimals is None and len(finite) == len(numbers) else Numbers(decimals=decimals)
    if not holds_text(values.type):
        return None
    levels, counts = counted_texts(values)
    if kind in (None, "date"):
        dates = learn_dates(levels, counts, least=BY_FAR if kind is None else 0.0)
        if dates is not None:
            return dates
    if kind is None:
        clocks = learn_clocks(levels, counts)
        if clocks is not None:
            return clocks
    if kind in (None, "real", "count", "ordinal"):
        numbers = learn_numbers(levels, counts, least=MOST_NUMBERS if kind is None else 0.0, decimal=decimal)
        named = numbers is not None and kind is None and names_a_code(name) and are_named_codes(levels, counts)
        if numbers is not None and not named and not (kind is None and are_hexadecimal(levels, counts)):
            return numbers
    return Words()


def understand(table: pa.Table, notations: Notations) -> pa.Table:
    """The table with its text as numbers or dates where it is that.

    >>> table = pa.table({"size": ["1,5 kg", "2,25 kg"], "n": [1, 2]})
    >>> understand(table, learn_notations(table, {})).to_pydict()
    {'size': [1.5, 2.25], 'n': [1, 2]}
    """
    columns = zip(table.column_names, table.columns, strict=True)
    understood = [notations[name].understand(column) if name in notations else column for name, column in columns]
    return pa.table(understood, names=table.column_names)


def describe_columns(table: pa.Table, notations: Notations) -> dict[str, str]:
    """What holds for a whole column and is no error of single cells: its units, its words for what is missing.

    >>> table = pa.table({"ounces": ["12.0 oz", "12.0 oz", "16.0 oz.", "N/A"]})
    >>> describe_columns(table, learn_notations(table, {}))
    {'ounces': 'numbers with the unit oz, oz.; 12.0 oz is read as 12; 1 cell says N/A, read as missing'}
    """
    described = {}
    for name, (units, gaps) in _said_of_columns(table, notations).items():
        missing = [f"{_cells_say(count)} {word}, read as missing" for word, count in gaps.items()]
        described[name] = "; ".join([units, *missing] if units else missing)
    return described


def describe_together(table: pa.Table, notations: Notations) -> list[str]:
    """The same in sentences, one for all columns that have the same units or the same words for what is missing.

    >>> table = pa.table({"a": ["1 %", "2 %", "N/A"], "b": ["3 %", "5 %", "N/A"]})
    >>> describe_together(table, learn_notations(table, {}))
    ['a, b: numbers with the unit %; 1 % is read as 1.', '2 cells in a, b say N/A, read as missing.']
    """
    units: dict[str, tuple[str, list[str]]] = {}
    words: dict[str, dict[str, int]] = {}
    for name, (sentence, gaps) in _said_of_columns(table, notations).items():
        if sentence:
            units.setdefault(sentence.partition(";")[0], (sentence, []))[1].append(name)
        for word, count in gaps.items():
            words.setdefault(word, {})[name] = count
    return [
        *(f"{_some(names)}: {sentence}." for sentence, names in units.values()),
        *(_about_gaps(word, columns) for word, columns in words.items()),
    ]


def _about_gaps(word: str, columns: Mapping[str, int]) -> str:
    said = f"{word}, read as missing."
    if len(columns) == 1:
        return f"{next(iter(columns))}: {_cells_say(columns[next(iter(columns))])} {said}"
    return f"{sum(columns.values()):,} cells in {_some([*columns])} say {said}"


def _said_of_columns(table: pa.Table, notations: Notations) -> dict[str, tuple[str, dict[str, int]]]:
    """Of columns of text that have them: a sentence about units, and words for what is missing with their cells."""
    found = {}
    for name, notation in notations.items():
        if not holds_text(table.schema.field(name).type):
            continue
        texts, counts = counted_texts(table[name])
        gaps = {
            text.strip(): count
            for text, count in zip(texts, counts.tolist(), strict=True)
            if count and text.strip() and notation.is_missing(text)
        }
        units = notation.describe_units(texts, counts)
        if units or gaps:
            found[name] = units, gaps
    return found


def _cells_say(count: int) -> str:
    return f"{count:,} {'cell says' if count == 1 else 'cells say'}"


def _some(names: Sequence[str]) -> str:
    """Names for a sentence, long lists cut.

    >>> _some(["a", "b"]), _some("abcdefgh")
    ('a, b', 'a, b, c, d, e and 3 more')
    """
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def tidy(table: pa.Table, notations: Notations) -> pa.Table:
    """The table with its numbers without units and its missing cells empty; text that is neither stays as it is.

    >>> table = pa.table({"ounces": ["12.0 oz", "16.0 oz.", "N/A", "x"] * 3})
    >>> tidy(table, learn_notations(table, {}))["ounces"].to_pylist()[:4]
    ['12.0', '16.0', '', 'x']
    """
    for name in _said_of_columns(table, notations):
        notation, (texts, place) = notations[name], distinct_texts(table[name])
        plain = ["" if notation.is_missing(text) else notation.without_unit(text) for text in texts]
        tidied = pa.array(plain, pa.string()).take(pa.array(place))
        table = table.set_column(table.column_names.index(name), name, tidied)
    return table


def notations_to_json(notations: Notations) -> dict[str, Any]:
    """Notations as JSON holds them."""
    kinds = {type_: name for name, type_ in NOTATIONS.items()}
    return {name: {"reader": kinds[type(notation)], **pack(notation)} for name, notation in notations.items()}


def notations_from_json(entries: Mapping[str, Any]) -> dict[str, Notation]:
    """The opposite of notations_to_json."""
    return {name: unpack(NOTATIONS[entry["reader"]], entry) for name, entry in entries.items()}
