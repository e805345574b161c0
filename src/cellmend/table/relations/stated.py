"""Rules of one's own: what a person says that every row keeps, in plain words.

    zip matches ^\\d{5}$
    price > 0
    end >= start
    status in [open, paid]
    order_id unique
    customer_id decides city

A gap keeps every rule. Cells are compared as they are written, numbers and dates by what they say.
"""

from __future__ import annotations

import csv
import datetime
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from cellmend.errors import RulesError, did_you_mean
from cellmend.table.dates import DAY, EPOCH
from cellmend.table.priors import MOSTLY
from cellmend.table.readtable import ReadTable, Violation
from cellmend.table.relations.coding import NONE, Codes
from cellmend.table.texts import Unread, holds_text
from cellmend.table.values import Bools, Floats, as_text, family, plain, shortened

HINT = (
    "Hint: rules are written as 'zip matches ^[0-9]+$', 'price > 0', 'end >= start', 'status in [open, paid]', "
    "'order_id unique' or 'customer_id decides city'."
)
SIGN = re.compile(r" (>=|<=|!=|=|>|<|matches|in|unique|decides?)(?: |$)")
AND = " and "
COMPARED: dict[str, Callable[[Floats, Floats], Bools]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
    "!=": operator.ne,
}


class Stated(Protocol):
    """A rule that every row keeps, as a person says."""

    by_row: ClassVar[bool]  # does a row show by itself whether it keeps the rule?

    @property
    def columns(self) -> tuple[str, ...]:
        """That it speaks of."""

    def words(self) -> str:
        """What it says, in one plain line; the same line is read as the same rule."""

    def violations(self, table: ReadTable) -> list[Violation]:
        """The cells that break it, by the rows in which they do."""


# ---------------------------------------------------------------- of one column


@dataclass(frozen=True)
class Matches:
    """Texts in which a regular expression is found."""

    by_row: ClassVar[bool] = True

    column: str
    pattern: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def words(self) -> str:
        return f"{self.column} matches {self.pattern}"

    def violations(self, table: ReadTable) -> list[Violation]:
        levels, codes = levels_of(table, self.column)
        found = re.compile(self.pattern).search
        return _of_cells(self, table, ~np.array([found(text) is not None for text in levels], dtype=bool), codes)


@dataclass(frozen=True)
class Among:
    """Texts, or numbers, of a list."""

    by_row: ClassVar[bool] = True

    column: str
    values: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def words(self) -> str:
        """The list, with quotes where a value holds a comma.

        >>> Among("status", ("open", "paid, late")).words()
        'status in [open, "paid, late"]'
        """
        quoted = [f'"{each.replace(chr(34), chr(34) * 2)}"' if set(each) & set(',"') else each for each in self.values]
        return f"{self.column} in [{', '.join(quoted)}]"

    def violations(self, table: ReadTable) -> list[Violation]:
        levels, codes = levels_of(table, self.column)
        numbers = {_number(each) for each in self.values} - {None} if _holds_numbers(table, self.column) else set()
        broken = [text not in self.values and (not numbers or _number(text) not in numbers) for text in levels]
        return _of_cells(self, table, np.array(broken, dtype=bool), codes)


@dataclass(frozen=True)
class Unique:
    """Columns that hold nothing twice, each alone or all together."""

    by_row: ClassVar[bool] = False

    columns: tuple[str, ...]

    def words(self) -> str:
        return f"{AND.join(self.columns)} unique"

    def violations(self, table: ReadTable) -> list[Violation]:
        codes, places = joined_codes(table, self.columns), _places(table, self.columns)
        found = []
        for rows in _groups(codes, np.flatnonzero(codes >= 0)):
            if len(rows) > 1:
                cells = tuple((row, place) for row in rows for place in places)
                said = f"{_seen(table, self.columns, rows[0])} in {len(rows)} rows"
                found.append(Violation(self.words(), cells, said))
        return found


# ---------------------------------------------------------------- of several


@dataclass(frozen=True)
class Compares:
    """Numbers, dates or texts that are compared with another column, or with one value."""

    by_row: ClassVar[bool] = True

    column: str
    sign: str
    other: str
    with_column: bool  # is the other one a column?

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, self.other) if self.with_column else (self.column,)

    def words(self) -> str:
        return f"{self.column} {self.sign} {self.other}"

    def violations(self, table: ReadTable) -> list[Violation]:
        kept = self._compared_texts(table) if self.of_texts(table) else self._compared(table)
        places = _places(table, self.columns)
        rows = np.flatnonzero(~kept).tolist()
        return [
            Violation(self.words(), tuple((row, place) for place in places), _seen(table, self.columns, row))
            for row in rows
        ]

    def of_texts(self, table: ReadTable) -> bool:
        """Are texts compared, which are the same or not?"""
        read = [_amounts(table, name) is not None for name in self.columns]
        is_said = self.with_column or _amount(table, self.column, self.other) is not None
        return self.sign in ("=", "!=") and not (all(read) and is_said)

    def check(self, table: ReadTable) -> None:
        """Refuse what cannot be compared."""
        if self.of_texts(table):
            return
        for name in self.columns:
            if _amounts(table, name) is None:
                raise RulesError(
                    f"A rule must compare numbers or dates; {name!r} in the rule {self.words()!r} holds neither."
                )
        if not self.with_column and _amount(table, self.column, self.other) is None:
            known = did_you_mean(self.other, table.names)
            raise RulesError(
                f"A rule must compare with a column, a number or a date; {self.other!r} in the rule "
                f"{self.words()!r} is none.{known}"
            )

    def _compared(self, table: ReadTable) -> Bools:
        """Which rows keep it; a cell that is no number keeps no rule of one value, and any of two columns."""
        unread = np.full(table.rows, np.nan)
        own, other = (unread if (held := _amounts(table, name)) is None else held for name in self._pair)
        if not self.with_column:
            said = _amount(table, self.column, self.other)
            return COMPARED[self.sign](own, np.full(table.rows, said)) | gaps_of(table, self.column)
        return COMPARED[self.sign](own, other) | ~np.isfinite(own) | ~np.isfinite(other)

    @property
    def _pair(self) -> tuple[str, str]:
        return self.columns[0], self.columns[-1]

    def _compared_texts(self, table: ReadTable) -> Bools:
        own, codes = levels_of(table, self.column)
        texts = np.array([*own, None], dtype=object)[codes]
        known, others = codes >= 0, np.full(len(codes), self.other, dtype=object)
        if self.with_column:
            levels, places = levels_of(table, self.other)
            known, others = known & (places >= 0), np.array([*levels, None], dtype=object)[places]
        return np.asarray((texts == others) == (self.sign == "="), dtype=bool) | ~known


@dataclass(frozen=True)
class Decides:
    """Rows that agree in some columns agree in another one."""

    by_row: ClassVar[bool] = False

    determinants: tuple[str, ...]
    dependent: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.determinants, self.dependent)

    def words(self) -> str:
        return f"{AND.join(self.determinants)} decide{'s' * (len(self.determinants) == 1)} {self.dependent}"

    def violations(self, table: ReadTable) -> list[Violation]:
        """Rows that say something else than most rows of their group; of a group without a majority all rows."""
        groups, (levels, codes) = joined_codes(table, self.determinants), levels_of(table, self.dependent)
        known = np.flatnonzero((groups >= 0) & (codes >= 0))
        pairs = np.unique(np.stack([groups[known], codes[known]]), axis=1)[0]
        several = np.flatnonzero(np.bincount(pairs, minlength=1) > 1)
        found: list[Violation] = []
        for rows in _groups(groups, known[np.isin(groups[known], several)]):
            counts = np.bincount(codes[rows])
            top, most = int(counts.argmax()), int(counts.max())
            differ = [row for row in rows if codes[row] != top]
            if 2 * most > len(rows):
                meant, said = levels[top], f"is {shortened(levels[top])} in {most} of {len(rows)} rows"
                found += [self._violation(table, [row], said, meant) for row in differ]
            else:
                values = [shortened(levels[code]) for code in np.unique(codes[rows]).tolist()[:3]]
                found.append(self._violation(table, rows, f"is {' and '.join(values)}", None))
        return found

    def pairs(self, table: ReadTable) -> Iterator[tuple[Any, Any]]:
        """For each value of one determinant the dependent one that stands beside it most often."""
        given, told = (plain(table.arrow[name]).to_pylist() for name in self.columns)
        groups, (_, codes) = joined_codes(table, self.determinants), levels_of(table, self.dependent)
        for rows in _groups(groups, np.flatnonzero((groups >= 0) & (codes >= 0))):
            top = int(np.bincount(codes[rows]).argmax())
            row = next(row for row in rows if codes[row] == top)
            yield given[row], told[row]

    def _violation(self, table: ReadTable, rows: Sequence[int], said: str, meant: str | None) -> Violation:
        given = AND.join(f"{name} {shortened(table.cell(rows[0], name))}" for name in self.determinants)
        here = f", but here {shortened(table.cell(rows[0], self.dependent))}" if meant is not None else ""
        cells = tuple((row, place) for row in rows for place in _places(table, self.columns))
        return Violation(self.words(), cells, f"for {given} {self.dependent} {said}{here}", meant)


# ---------------------------------------------------------------- plain words


def parse(text: str, columns: Sequence[str]) -> Stated:
    """The rule that a line of plain words says of a table with these columns.

    >>> parse("end >= start", ["start", "end"])
    Compares(column='end', sign='>=', other='start', with_column=True)
    """
    line, unknown = text.strip(), ""
    if "\n" in line or not line:
        raise RulesError(f"A rule must be one line; this one is {text!r}. {HINT}")
    for found in SIGN.finditer(f"{line} "):
        names = _names_in(line[: found.start()], columns)
        if names:
            return _made(line, names, found.group(1), line[found.end() :].strip(), columns)
        unknown = unknown or line[: found.start()]
    if not unknown:
        raise RulesError(f"A rule must say what holds of which column; {line!r} does not. {HINT}")
    missing = _first_unknown(unknown, columns)
    raise RulesError(
        f"A rule must be of columns of the table; the rule {line!r} speaks of {missing!r}, which is none."
        f"{did_you_mean(missing, columns)}"
    )


def _made(line: str, names: tuple[str, ...], sign: str, rest: str, columns: Sequence[str]) -> Stated:
    if sign == "unique" and not rest:
        return Unique(names)
    if sign.startswith("decide") and rest:
        if rest not in columns or rest in names:
            raise RulesError(
                f"What columns decide must be another column of the table; {rest!r} in the rule {line!r} is none."
                f"{did_you_mean(rest, columns)}"
            )
        return Decides(names, rest)
    if len(names) > 1 or not rest or sign == "unique":
        raise RulesError(f"A rule must be complete and, unless it says 'decide' or 'unique', of one column; "
                         f"{line!r} is not. {HINT}")  # fmt: skip
    if sign == "matches":
        return Matches(names[0], _checked_pattern(rest, line))
    if sign == "in":
        return Among(names[0], _listed(rest, line))
    return Compares(names[0], sign, rest, rest in columns)


def _names_in(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that a text names, joined by "and"; none if it names anything else.

    >>> _names_in("a and b", ["a", "b"]), _names_in("a and b", ["a and b", "a"]), _names_in("a and c", ["a", "b"])
    (('a', 'b'), ('a and b',), ())
    """
    if text in names:
        return (text,)
    parts = text.split(AND)
    for cut in range(len(parts) - 1, 0, -1):
        first = AND.join(parts[:cut])
        if first in names and (rest := _names_in(AND.join(parts[cut:]), names)):
            return (first, *rest)
    return ()


def _first_unknown(text: str, names: Sequence[str]) -> str:
    return next((part for part in text.split(AND) if part not in names), text)


def _checked_pattern(pattern: str, line: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise RulesError(f"What a column matches must be a regular expression; in the rule {line!r} it is none "
                         f"({error}).") from None  # fmt: skip
    return pattern


def _listed(text: str, line: str) -> tuple[str, ...]:
    """The values of a list.

    >>> _listed('[open, "paid, late"]', "")
    ('open', 'paid, late')
    """
    if not (text.startswith("[") and text.endswith("]") and text[1:-1].strip()):
        raise RulesError(f"Values must be listed as in 'status in [open, paid]'; the rule {line!r} does not.")
    return tuple(each.strip() for each in next(csv.reader([text[1:-1]], skipinitialspace=True)))


# ---------------------------------------------------------------- what cells say


def levels_of(table: ReadTable, name: str) -> tuple[list[str], Codes]:
    """The different values of a column as a person writes them, and which of them each row has, (N,); NONE for gaps."""
    cells = plain(table.arrow[name]).combine_chunks()
    if pa.types.is_null(cells.type):
        return [], np.full(table.rows, NONE)
    coded = cells.dictionary_encode()
    codes = coded.indices.fill_null(NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return [as_text(value) for value in coded.dictionary.to_pylist()], np.where(gaps_of(table, name), NONE, codes)


def gaps_of(table: ReadTable, name: str) -> Bools:
    """Which cells say that there is nothing, (N,)."""
    column = table.arrow[name] if isinstance(table.notations.get(name), Unread) else table.understood[name]
    return column.is_null().to_numpy()


def joined_codes(table: ReadTable, names: Sequence[str]) -> Codes:
    """One number for what these columns hold together in each row, (N,); NONE where one has a gap."""
    joined = np.zeros(table.rows, dtype=np.int64)
    missing = np.zeros(table.rows, dtype=bool)
    for name in names:
        levels, codes = levels_of(table, name)
        missing |= codes < 0
        joined = np.unique(joined * (len(levels) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return np.where(missing, NONE, joined)


def _amounts(table: ReadTable, name: str) -> Floats | None:
    """A column as numbers or days, (N,), NaN where it says none; None if it is a column of neither."""
    held = table.understood[name]
    if _holds_numbers(table, name):
        return _finite(held)
    if not holds_text(table.arrow.schema.field(name).type) or isinstance(table.notations.get(name), Unread):
        return None
    levels, codes = levels_of(table, name)  # codes, and numbers that name rows
    numbers = np.array([np.nan if (number := _number(text)) is None else number for text in [*levels, ""]])[codes]
    return numbers if (np.isfinite(numbers).sum() > MOSTLY * (codes >= 0).sum()) else None


def _finite(column: pa.ChunkedArray) -> Floats:
    held = plain(column).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(held), held, np.nan)


def _amount(table: ReadTable, name: str, text: str) -> float | None:
    """What a person wrote beside a column, as a number or in days; None if it is neither."""
    if (number := _number(text)) is not None:
        return number
    try:
        moment = datetime.datetime.fromisoformat(text)
        return (moment.replace(tzinfo=None) - EPOCH) / DAY
    except ValueError:
        notation = table.notations.get(name)
    if notation is None or not _holds_numbers(table, name):
        return None
    said = notation.understand(pa.chunked_array([[text]]))[0].as_py()
    return said if isinstance(said, float) and np.isfinite(said) else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _holds_numbers(table: ReadTable, name: str) -> bool:
    return family(table.understood.schema.field(name).type) == "number"


def _of_cells(rule: Stated, table: ReadTable, broken: Bools, codes: Codes) -> list[Violation]:
    """One for each cell that holds a value, by its code, which breaks a rule."""
    (name,), rows = rule.columns, np.flatnonzero(np.append(broken, False)[codes])
    place = table.names.index(name)
    return [Violation(rule.words(), ((row, place),), table.said(place, row)) for row in rows.tolist()]


def _groups(codes: Codes, rows: Codes) -> Iterator[list[int]]:
    """Rows of the same code, in order."""
    order = rows[np.argsort(codes[rows], kind="stable")]
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    return (piece.tolist() for piece in np.split(order, cuts) if len(piece))


def _places(table: ReadTable, names: Sequence[str]) -> list[int]:
    return [table.names.index(name) for name in names]


def _seen(table: ReadTable, names: Sequence[str], row: int) -> str:
    return AND.join(table.said(place, row) for place in _places(table, names))
