"""What a report is about: a table before and after repair, and each of its columns with its flagged cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.findings.finding import Finding
from cellmend.report.rows import Rows
from cellmend.table.numbers import Numbers
from cellmend.table.relations.ruled import Ruled
from cellmend.table.schema import IGNORE, Column, Schema
from cellmend.table.texts import Notation
from cellmend.table.values import family, level_text, plain, readable

RowNumbers = NDArray[np.int64]


@dataclass(frozen=True)
class Pictured:
    """A table as it was read, `before`, and as it is with its repairs, `after`."""

    schema: Schema
    before: pa.Table
    after: pa.Table
    rows: Rows  # as they stand in the file
    notations: Mapping[str, Notation] = field(default_factory=dict)  # how columns write their values
    checked: Mapping[str, str] = field(default_factory=dict)  # what columns are checked for without a model
    rules: Sequence[Ruled] = ()  # and the rows that break each


@dataclass(frozen=True)
class Portrait:
    """One column before and after repair, and which of its cells are flagged."""

    place: int  # in the table
    schema: Column
    before: pa.ChunkedArray  # dictionaries as their values
    after: pa.ChunkedArray
    flagged: RowNumbers
    repaired: RowNumbers  # those of them that got a repair
    notation: Notation | None = None

    @property
    def is_changed(self) -> bool:
        """Is there more to show than the values as they were?"""
        return len(self.flagged) > 0

    @property
    def is_empty(self) -> bool:
        """Is no cell readable?"""
        return len(readable(self.before)) == 0

    @property
    def has_distances(self) -> bool:
        """Are values more or less far apart, as numbers and times are?"""
        type_ = self.before.type
        is_number = family(type_) == "number" and self.schema.kind != "category"
        return is_number or pa.types.is_date(type_) or pa.types.is_timestamp(type_)

    @property
    def has_levels(self) -> bool:
        """Do values repeat? Text that is left out differs in almost every row, or is the same in all."""
        return family(self.before.type) != "other" and (self.is_changed or self.schema.kind != IGNORE)

    def write(self, value: Any) -> str:
        """A value as the column writes it, units left out."""
        text = level_text(value)
        return text.replace(".", self.notation.decimal) if isinstance(self.notation, Numbers) else text


def portraits(table: Pictured, findings: Iterable[Finding]) -> list[Portrait]:
    """The columns of the table in order, each with its flagged cells."""
    marks: dict[str, list[tuple[int, bool]]] = {name: [] for name in table.before.column_names}
    for finding in findings:
        marks[finding.column].append((finding.row, finding.repair is not None))
    columns = {column.name: column for column in table.schema}
    found = []
    for place, (name, own) in enumerate(marks.items()):
        rows, has_repair = np.array(own, dtype=np.int64).reshape(-1, 2).T
        values = plain(table.before[name]), plain(table.after[name])
        marked = rows, rows[has_repair == 1]
        found.append(Portrait(place, columns[name], *values, *marked, table.notations.get(name)))
    return found


def kind_in_words(column: Column) -> str:
    """What a column was taken for."""
    return "left out" if column.kind == IGNORE else column.kind
