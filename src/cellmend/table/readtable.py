"""A table as it was read: the user's own, what its columns say, and the cells that their own columns speak against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cellmend.table.frames import Frame, read_frame
from cellmend.table.texts import Notation


@dataclass(frozen=True)
class Suspect:
    """One cell that its column's own values speak against, whatever the rest of the row says."""

    row: int
    column: int  # place in the table
    suspicion: float
    meant: tuple[str, ...]  # what may have been meant, the nearest first; none if nobody knows
    reason: str
    readable: bool  # does the cell say something that a model can learn from?
    cause: str = ""  # what made it wrong, if that is known

    @property
    def hidden(self) -> bool:
        """Is the cell taken for missing by the model?"""
        return not self.readable and self.suspicion >= 0.5

    @property
    def is_told(self) -> bool:
        """Is what was meant known for sure?"""
        return self.readable and len(self.meant) == 1


@dataclass(frozen=True)
class ReadTable:
    """The user's table, and the same with text as the numbers or dates that it says."""

    frame: Frame
    understood: pa.Table  # NaN where a number or a date should stand and does not; null where nothing does
    notations: Mapping[str, Notation]  # how columns of text and dates were understood
    suspects: tuple[Suspect, ...] = ()

    @property
    def arrow(self) -> pa.Table:
        """The cells as they came."""
        return self.frame.arrow

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.frame.arrow.num_rows

    @property
    def names(self) -> list[str]:
        """Of the columns, in their order."""
        return self.frame.arrow.column_names


def read_typed(X: Any) -> ReadTable:
    """A table whose columns all have the type of what they hold, taken as it is."""
    frame = read_frame(X)
    return ReadTable(frame, frame.arrow, {})
