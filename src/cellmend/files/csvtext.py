"""CSV, byte for byte: where the records and fields of a file lie in its text, so that only changed cells are new.

A CSV file is read as text, cell by cell, and kept as it was: a repaired copy has new text in the changed cells and the
old bytes everywhere else, "007", "1.50" and trailing spaces included.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from cellmend.errors import FileError
from cellmend.files.layout import NOTHING_ASKED, Asked, Layout, check_header_row, find_layout

Changes = Mapping[int, Mapping[int, str]]  # row -> column -> new text of the cell

DELIMITERS = ",;\t|"
UNIT_SEPARATOR = "\x1f"  # a delimiter that no text holds
LOOKED_AT = 200  # records from which the delimiter is told
MARKED = {  # encodings by their byte order marks; the one of UTF-16 begins that of UTF-32
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
USUAL_BLOCK = 2**20  # bytes that are read at once
BINARY = 2**12  # bytes in which no text has a zero
LAST_LOOKED_AT = 12  # records in which totals are looked for
MOST_LINES_TOLD = 5
QUOTED = re.compile(rb'"(?:[^"]|"")*"\s*')
QUOTE, NEWLINE, RETURN = b'"\n\r'


@dataclass(frozen=True)
class CsvText:
    """The text of a CSV file and where its records lie in it."""

    content: bytes  # UTF-8, without a byte order mark
    mark: bytes  # the byte order mark
    encoding: str
    delimiter: str
    starts: NDArray[np.int64]  # (N + 1,) first byte of each record, the header first
    ends: NDArray[np.int64]  # (N + 1,) the byte after its last, line end not counted
    notes: tuple[str, ...] = ()  # what was skipped above and below the table
    ragged: bool = False  # had records more or fewer fields than the header?

    def with_cells(self, changes: Changes) -> bytes:
        """The file with new text in these cells and all other bytes as they were; rows count from 0 below the header.

        >>> csv = read_csv_text(b"id,x\\n007, 1.50 \\n", "a.csv")
        >>> csv.with_cells({0: {1: "2,5"}})
        b'id,x\\n007,"2,5"\\n'
        """
        content = self._with_texts(changes)
        if self.encoding != "utf-8":
            content = content.decode().encode(self.encoding)
        return self.mark + content

    def changed(self, changes: Changes) -> CsvText:
        """The same file with new text in these cells."""
        content = self._with_texts(changes)
        starts, ends = records(content, self.delimiter)
        own = np.isin(records(self.content, self.delimiter)[0], self.starts)
        return replace(self, content=content, starts=starts[own], ends=ends[own])

    def _with_texts(self, changes: Changes) -> bytes:
        """The content with new text in these cells."""
        width = len(self.names)
        pieces, done = [], 0
        for row in sorted(changes):
            first, last = int(self.starts[row + 1]), int(self.ends[row + 1])
            cells = _cells(self.content[first:last], self.delimiter, width)
            for column, (start, end) in enumerate(cells):
                if column in changes[row]:
                    old = self.content[first + start : first + end]
                    new = _as_field(changes[row][column], old, self.delimiter, alone=width == 1)
                    pieces += [self.content[done : first + start], new]
                    done = first + end
            for column in range(len(cells), max(changes[row], default=-1) + 1):  # that the record lacked
                new = _as_field(changes[row].get(column, ""), b"", self.delimiter, alone=False)
                pieces += [self.content[done:last], self.delimiter.encode(), new]
                done = last
        return b"".join([*pieces, self.content[done:]])

    @property
    def line_numbers(self) -> NDArray[np.int64]:
        """The line of the file, from 1, in which each row starts, (N,).

        >>> read_csv_text(b'id,x\\n"a\\nb",1\\n\\nc,2\\n', "a.csv").line_numbers.tolist()
        [2, 5]
        """
        breaks = np.flatnonzero(np.frombuffer(self.content, dtype=np.uint8) == _line_end(self.content))
        return np.searchsorted(breaks, self.starts[1:]) + 1

    @property
    def names(self) -> list[str]:
        """The columns as the header names them, by their place where it does not."""
        header = self.content[self.starts[0] : self.ends[0]]
        return named([_unquoted(header[start:end]) for start, end in fields(header, self.delimiter)])

    def table(self) -> pa.Table:
        """All cells as text, (N rows); an empty cell is the empty text."""
        names = self.names
        if len(self.starts) == 1:
            return pa.schema([(name, pa.string()) for name in names]).empty_table()
        longest = int((self.ends - self.starts).max())  # a cell may be as long as a book
        block = min(max(USUAL_BLOCK, 4 * longest), 2**31 - 1)
        return pa.csv.read_csv(
            pa.BufferReader(self._body()),
            read_options=pa.csv.ReadOptions(column_names=names, block_size=block),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )

    def _body(self) -> pa.Buffer:
        """The records below the header; ragged ones with as many fields as it has."""
        if not self.ragged:
            return pa.py_buffer(self.content).slice(int(self.starts[1]), int(self.ends[-1] - self.starts[1]))
        width, spans = len(self.names), zip(self.starts[1:].tolist(), self.ends[1:].tolist(), strict=True)
        return pa.py_buffer(b"\n".join(_squared(self.content[a:b], self.delimiter, width) for a, b in spans))

    def with_ragged(self, how: str) -> CsvText:
        """The same file, though some records have more or fewer fields than the header; `how` is one of RAGGED.

        >>> text = read_csv_text(b"id,x\\n1,a\\n2\\n3,b,c\\n", "a.csv")
        >>> text.with_ragged("keep").table()["x"].to_pylist(), text.with_ragged("drop").table()["x"].to_pylist()
        (['a', '', 'b,c'], ['a'])
        """
        width = len(self.names)
        found = [
            len(fields(self.content[a:b], self.delimiter)) - width
            for a, b in zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        ]
        more = np.array(found)
        if not more.any():
            return self
        lines = np.concatenate([[0], self.line_numbers])
        if how == "drop":
            notes = (*self.notes, _at_lines("of more or fewer fields than the header left out", lines[more != 0]))
            return replace(self, starts=self.starts[more == 0], ends=self.ends[more == 0], notes=notes, ragged=True)
        told = {
            "of fewer fields than the header read as empty at the end": lines[more < 0],
            "of more fields than the header read with all others in the last column": lines[more > 0],
        }
        said = [_at_lines(what, own) for what, own in told.items() if len(own)]
        return replace(self, notes=(*self.notes, *said), ragged=True)


def read_csv_text(raw: bytes, name: str, asked: Asked = NOTHING_ASKED) -> CsvText:
    """A CSV file's bytes, with encoding and delimiter found out.

    >>> read_csv_text("größe;x\\n1,5;a\\n".encode("cp1252"), "a.csv").delimiter
    ';'
    """
    mark = next((mark for mark in MARKED if raw.startswith(mark)), b"")
    text, encoding = _decode(raw[len(mark) :], mark, asked.encoding, name)
    content = text.encode("utf-8", "surrogatepass")
    if not content.strip():
        raise FileError(f"{name} must hold a table; it is empty.")
    starts, ends = records(content, asked.delimiter)
    first = [content[start:end] for start, end in zip(starts[:LOOKED_AT], ends, strict=False)]
    delimiter = asked.delimiter or tell_delimiter(first, content)
    layout = _layout(content, delimiter, starts, ends, asked.header_row, name)
    own = slice(layout.first, layout.last)
    return CsvText(content, mark, encoding, delimiter, starts[own], ends[own], layout.notes)


def _layout(
    content: bytes,
    delimiter: str,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    header_row: int | None,
    name: str,
) -> Layout:
    """Which records are the table."""
    if header_row is not None:  # as the file counts its lines
        newlines = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == (NEWLINE if NEWLINE in content else RETURN))
        place = check_header_row(header_row, len(newlines) + 1, name)
        first = int(np.searchsorted(np.searchsorted(newlines, starts), place))
        return Layout(first if first < len(starts) else 0, len(starts), ())

    def split_fields(places: range) -> list[list[str]]:
        raw = (content[starts[place] : ends[place]] for place in places)
        return [[_unquoted(record[a:b]) for a, b in fields(record, delimiter)] for record in raw]

    rows = len(starts)
    is_open = split(content[starts[-1] : ends[-1]], delimiter)[1]  # then rows are lost in it, and it is no footer
    bottom = [] if is_open else split_fields(range(rows)[-LAST_LOOKED_AT:])
    return find_layout(split_fields(range(min(LOOKED_AT, rows))), bottom, rows)


def _decode(raw: bytes, mark: bytes, asked: str | None, name: str) -> tuple[str, str]:
    """As the user or the mark says, else UTF-8, else the one that Windows wrote before."""
    known = _without_mark(asked, mark) if asked else MARKED.get(mark)
    if known is None and b"\0" in raw[:BINARY]:
        raise FileError(f"{name} must hold text; it holds binary data. Hint: is it another kind of file, or in UTF-16?")
    for encoding in [known] if known else ["utf-8", "cp1252"]:
        with suppress(UnicodeError):
            text = raw.decode(encoding)
            if not asked or text.encode(encoding) == raw:  # or a copy would have other bytes
                return text, encoding
    if known:
        raise FileError(f"{name} must be text in {known}; some of it is not. Hint: give another --encoding.")
    return raw.decode("latin-1"), "latin-1"


def _without_mark(asked: str, mark: bytes) -> str:
    """The encoding that is asked for, as it is written behind a byte order mark, which is kept apart.

    >>> _without_mark("UTF-16", codecs.BOM_UTF16_BE), _without_mark("UTF8", b""), _without_mark("latin1", b"")
    ('utf-16-be', 'utf-8', 'iso8859-1')
    """
    try:
        "".encode(asked)
        found = codecs.lookup(asked).name
    except (LookupError, ValueError):
        raise FileError(f"--encoding must be one such as utf-8 or cp1252; {asked!r} is none.") from None
    if found in ("utf-16", "utf-32"):
        ordered = MARKED.get(mark, "")
        return ordered if ordered.startswith(found) else f"{found}-le"
    return found.removesuffix("-sig")


def records(content: bytes, delimiter: str | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each record starts and ends; a line break within quotes does not end one, and empty lines are none.

    >>> starts, ends = records(b'a,b\\n"x\\ny",1\\n\\n2,3')
    >>> starts.tolist(), ends.tolist()
    ([0, 4, 13], [3, 11, 16])
    """
    data = np.frombuffer(content, dtype=np.uint8)
    breaks = np.flatnonzero(data == _line_end(content))
    if QUOTE in content:
        lines = list(islice(filter(None, content.splitlines()), LOOKED_AT))
        breaks = _outside_quotes(content, data, breaks, delimiter or tell_delimiter(lines, content))
    starts = np.concatenate([[0], breaks + 1])
    ends = np.concatenate([breaks, [len(data)]])
    ends = ends - ((ends > starts) & (data[np.maximum(ends - 1, 0)] == RETURN))
    whole = ends > starts
    return starts[whole], ends[whole]


def _line_end(content: bytes) -> int:
    """The byte that ends lines: that which ends the header. Within quotes may stand another one."""
    is_quoted = False
    for found in re.finditer(rb'"|\r?\n|\r', content):
        if found[0] == b'"':
            is_quoted = not is_quoted
        elif not is_quoted:
            return found[0][-1]
    return NEWLINE if NEWLINE in content else RETURN


def _outside_quotes(
    content: bytes, data: NDArray[np.uint8], breaks: NDArray[np.int64], delimiter: str
) -> NDArray[np.int64]:
    """The line breaks that end a record.

    Quotes are in pairs where they open and close fields: a break with an even number before it is outside. Where a
    quote stands elsewhere (5" pipe), lines are gone through one by one.
    """
    quotes = np.flatnonzero(data == QUOTE)
    is_edge = np.zeros(256, dtype=bool)
    is_edge[list(b"\n\r" + delimiter.encode())] = True
    opening = is_edge[data[np.maximum(quotes - 1, 0)]] | (quotes == 0)
    closing = is_edge[data[np.minimum(quotes + 1, len(data) - 1)]] | (quotes == len(data) - 1)
    if not (opening[::2].all() and closing[1::2].all()) or len(quotes) % 2:
        return _outside_quotes_slowly(content, breaks, delimiter)
    return breaks[np.searchsorted(quotes, breaks) % 2 == 0]


def _outside_quotes_slowly(content: bytes, breaks: NDArray[np.int64], delimiter: str) -> NDArray[np.int64]:
    outside, start, closed = [], 0, 0
    for end in breaks.tolist():
        if end < closed:
            continue
        found, is_open = split(content[start:end], delimiter)
        if not is_open:
            outside.append(end)
            start = end + 1
        elif (closed := _closing(content, start + found[-1][0])) < 0:
            break  # all that follows is within the quote
    return np.array(outside, dtype=np.int64)


def fields(record: bytes, delimiter: str) -> list[tuple[int, int]]:
    """Where each field of a record starts and ends, quotes included.

    >>> fields(b'a,"b,c",', ",")
    [(0, 1), (2, 7), (8, 8)]
    """
    return split(record, delimiter)[0]


def split(record: bytes, delimiter: str) -> tuple[list[tuple[int, int]], bool]:
    """The fields of a record, and whether the last one opens a quote that nothing closes.

    A quote opens only at the start of a field, and two of them within are one that is meant.
    """
    between, start = delimiter.encode(), 0
    found: list[tuple[int, int]] = []
    while True:
        close = start
        if record[start : start + 1] == b'"':
            close = _closing(record, start)
            if close < 0:
                return [*found, (start, len(record))], True
        end = record.find(between, close)
        found.append((start, len(record) if end < 0 else end))
        if end < 0:
            return found, False
        start = end + len(between)


def _closing(content: bytes, quote: int) -> int:
    """Where the quote that opens here is closed; -1 if nothing closes it."""
    close = content.find(b'"', quote + 1)
    while close >= 0 and content[close + 1 : close + 2] == b'"':
        close = content.find(b'"', close + 2)
    return close


def _cells(record: bytes, delimiter: str, width: int) -> list[tuple[int, int]]:
    """Where the cells of a record lie, at most `width`: what more fields it has belong to the last one."""
    found = fields(record, delimiter)
    return found if len(found) <= width else [*found[: width - 1], (found[width - 1][0], len(record))]


def _squared(record: bytes, delimiter: str, width: int) -> bytes:
    """A record with as many fields as the header.

    >>> _squared(b"1,a,b", ",", 2), _squared(b"1", ",", 3)
    (b'1,"a,b"', b'1,,')
    """
    found = fields(record, delimiter)
    if len(found) <= width:
        return record + delimiter.encode() * (width - len(found))
    start = found[width - 1][0]
    return record[:start] + b'"' + record[start:].replace(b'"', b'""') + b'"'


def _at_lines(what: str, lines: NDArray[np.int64]) -> str:
    """How many rows are so, and where, in words."""
    shown = ", ".join(map(str, lines[:MOST_LINES_TOLD].tolist())) + (", ..." if len(lines) > MOST_LINES_TOLD else "")
    return f"{len(lines):,} {'row' if len(lines) == 1 else 'rows'} {what} (line{'s' * (len(lines) > 1)} {shown})"


def tell_delimiter(lines: list[bytes], content: bytes) -> str:
    """The delimiter that splits the header and gives most records the same number of fields, more than one.

    If there is none, the table has one column, and its delimiter is one that its content does not hold.

    >>> tell_delimiter([b"a;b;c", b"1,5;2;3", b"2,5;4;5"], b"")
    ';'
    >>> tell_delimiter([b"greeting", b"Hello, world"], b"greeting\\nHello, world")
    ';'
    """
    header = _header(lines)

    def agreement(delimiter: str) -> tuple[int, int]:
        width, times = Counter(len(fields(line, delimiter)) for line in lines).most_common(1)[0]
        # Above a wide table there may be titles; above two columns they look like a column of one.
        begins = len(fields(header, delimiter)) > 1 or (width > 2 and 2 * times > len(lines))
        return (times, width) if width > 1 and begins else (0, 0)

    best = max(DELIMITERS, key=agreement)
    if agreement(best) > (0, 0):
        return best
    if len(fields(header, ",")) > 1:  # most rows are too short, which is to be said
        return ","
    return next((each for each in DELIMITERS if each.encode() not in content), UNIT_SEPARATOR)


def _header(lines: list[bytes]) -> bytes:
    """The first line, and those after it up to the one that closes its quotes."""
    quotes = np.cumsum([line.count(b'"') for line in lines])
    last = int(np.argmax(quotes % 2 == 0))
    return b"\n".join(lines[: last + 1])


def named(header: list[str]) -> list[str]:
    """Names of columns, by their place where they have none.

    >>> named(["id", "", "x"])
    ['id', 'column 2', 'x']
    """
    return [name if name.strip() else f"column {place}" for place, name in enumerate(header, start=1)]


def _unquoted(field: bytes) -> str:
    text = field.decode()
    return text[1:-1].replace('""', '"') if text.startswith('"') and text.endswith('"') and len(text) > 1 else text


def _as_field(text: str, old: bytes, delimiter: str, *, alone: bool) -> bytes:
    """New text in quotes if the old one was, or if it could not stand without: an empty one `alone` is no record."""
    special = any(each in text for each in (delimiter, '"', "\n", "\r"))
    quoted = old.startswith(b'"') or special or (alone and not text)
    return (f'"{text.replace(chr(34), chr(34) * 2)}"' if quoted else text).encode()


def check_quotes(text: CsvText, name: str) -> None:
    """Refuse a cell of several lines that no quote of its own closes: rows of the table would be lost in it."""
    breaks = np.flatnonzero(np.frombuffer(text.content, dtype=np.uint8) == _line_end(text.content))
    has_break = np.searchsorted(breaks, text.ends) > np.searchsorted(breaks, text.starts)
    has_break[-1] = True  # a quote that nothing closes at all reaches the end
    for place in np.flatnonzero(has_break).tolist():
        first, last = int(text.starts[place]), int(text.ends[place])
        for start, end in fields(text.content[first:last], text.delimiter):
            field = text.content[first + start : first + end]
            if field.startswith(b'"') and not QUOTED.fullmatch(field):
                raise FileError(_unclosed(text, name, first + start))


def _unclosed(text: CsvText, name: str, start: int) -> str:
    return f"{name} must have its quotes in pairs; line {_line_of(text, start)} opens one that nothing closes."


def _line_of(text: CsvText, start: int) -> int:
    return text.content.count(b"\n" if b"\n" in text.content else b"\r", 0, start) + 1


def misfit(text: CsvText, name: str, otherwise: str) -> str:
    """What is wrong with the first record that does not fit the header."""
    width, must = len(text.names), f"{name} must have as many fields in every row as in its header"
    hint = "Hint: --ragged keep reads such lines all the same, --ragged drop leaves them out."
    for start, end in zip(text.starts.tolist(), text.ends.tolist(), strict=True):
        found, is_open = split(text.content[start:end], text.delimiter)
        if is_open:
            return _unclosed(text, name, start + found[-1][0])
        if len(found) != width:
            return f"{must}; line {_line_of(text, start)} has {len(found)} and the header {width}. {hint}"
    return f"{must}; {otherwise}."
