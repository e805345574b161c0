"""What tells a person which row it is: the columns that name it, and the line of its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cellmend.table.values import as_text

BETWEEN = " · "


@dataclass(frozen=True)
class Rows:
    """The rows of a table, as its file has them."""

    table: pa.Table
    names: Sequence[str] = ()  # columns that name a row
    lines: NDArray[np.int64] | None = None  # (N,) where each row starts; None if the file has no lines

    def line(self, row: int) -> int | None:
        """The line of the file in which a row starts."""
        return None if self.lines is None else int(self.lines[row])

    def named(self, row: int) -> list[str]:
        """What stands in the columns that name a row."""
        return [as_text(self.cell(row, name)) for name in self.names]

    def name(self, row: int) -> str:
        """A row by its name; "" if it has none.

        >>> Rows(pa.table({"make": ["Peugeot"], "model": ["107"], "doors": [5]}), ["make", "model"]).name(0)
        'Peugeot · 107'
        """
        return BETWEEN.join(text for text in self.named(row) if text.strip())

    def cell(self, row: int, name: str) -> Any:
        """What stands in a cell."""
        return self.table[name][row].as_py()
