"""One column of a report: what it holds before and after repair, and which of its cells are flagged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.findings.finding import Finding
from cellmend.table.schema import DATE, IGNORE, Column, Schema
from cellmend.table.values import family, plain, readable

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Portrait:
    """One column before and after repair, and which of its cells are flagged."""

    place: int  # in the table
    schema: Column
    before: pa.ChunkedArray  # dictionaries as their values
    after: pa.ChunkedArray
    flagged: Rows
    repaired: Rows  # those of them that got a repair

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

    @property
    def counts_days(self) -> bool:
        """Are its numbers days since 1970?"""
        return self.schema.kind == DATE


def portraits(schema: Schema, before: pa.Table, after: pa.Table, findings: Iterable[Finding]) -> list[Portrait]:
    """The columns of the table in order, each with its flagged cells."""
    marks: dict[str, list[tuple[int, bool]]] = {name: [] for name in before.column_names}
    for finding in findings:
        marks[finding.column].append((finding.row, finding.repair is not None))
    columns = {column.name: column for column in schema}
    found = []
    for place, (name, own) in enumerate(marks.items()):
        rows, has_repair = np.array(own, dtype=np.int64).reshape(-1, 2).T
        values = plain(before[name]), plain(after[name])
        found.append(Portrait(place, columns[name], *values, rows, rows[has_repair == 1]))
    return found


def kind_in_words(column: Column) -> str:
    """What a column was taken for."""
    return "left out" if column.kind == IGNORE else column.kind
