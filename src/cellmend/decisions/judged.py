"""A table as decisions see it: its texts, and all that the model says of its cells before anybody decided."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cellmend.posterior import forms
from cellmend.posterior.evidence import LAYOUT, NAMES, Figures, Portrait
from cellmend.posterior.experts import EXPERTS
from cellmend.posterior.known import Coded, Floats
from cellmend.posterior.posterior import Posterior
from cellmend.posterior.priors import FARTHEST
from cellmend.posterior.rows import ORDER
from cellmend.posterior.weigher import FAMILIES
from cellmend.table.priors import MULTIPLIER
from cellmend.table.readtable import ReadTable
from cellmend.table.values import Bools, Ints

# Figures that a row has by itself; those of neighbouring rows are not known in a piece of a table.
OF_ROW = [at for at, name in enumerate((*NAMES, *EXPERTS)) if name not in (*ORDER, *LAYOUT)]
Marks = tuple[str, str, str]  # by which a decision speaks for other cells of its column: text, shape and outline


@dataclass(frozen=True)
class Judged:
    """A table and what the model says of it without decisions.

    With the methods of the paper there are neither figures nor families of causes: traits are then the suspicion alone.
    """

    table: ReadTable
    suspicion: Floats  # (N, D)
    figures: Figures | None = None
    posterior: Posterior | None = None
    portrait: Portrait | None = None  # of the table that the model was fitted to

    @cached_property
    def columns(self) -> list[Coded]:
        """The columns as their different texts."""
        return [Coded.of(column) for column in self.table.arrow.columns]

    @cached_property
    def marks(self) -> list[list[Marks]]:
        """Of each column the marks of its different texts."""
        shapes = [forms.shape(column.texts) for column in self.columns]
        marked = ((c.texts, shape, forms.outline(shape)) for c, shape in zip(self.columns, shapes, strict=True))
        return [list(zip(*(each.to_pylist() for each in own), strict=True)) for own in marked]

    @cached_property
    def held(self) -> Bools:
        """Cells of which something can be learned, (N, D): not empty, and judged by the model."""
        texts = np.stack([column.codes >= 0 for column in self.columns], axis=1)
        return texts if self.posterior is None else texts & self.posterior.observed

    def traits(self, rows: Ints) -> Floats:
        """The evidence of the cells of these rows, (n, D, traits), the log odds of suspicion first."""
        own = self.suspicion[rows]
        elsewhere = np.log1p(own.sum(axis=1, keepdims=True) - own)
        parts = [log_odds(own)[..., None], elsewhere[..., None]]
        if self.figures is not None and self.posterior is not None:
            logs = self.posterior.logs[rows]
            families = logs[..., 1 : 1 + len(FAMILIES)] - logs[..., :1]
            parts += [np.clip(families, -FARTHEST, FARTHEST), self.figures[rows][..., OF_ROW]]
        return np.concatenate(parts, axis=-1)

    def rows_with(self, place: int, text: str) -> Ints:
        """The rows whose cell in a column that is judged holds a text, but for spaces around it."""
        holds = np.isin(self.columns[place].codes, self._codes[place].get(text, []))
        return np.flatnonzero(holds & self.held[:, place])

    @cached_property
    def _codes(self) -> list[dict[str, list[int]]]:
        """Of each column the places of its different texts, by what they are without spaces around them."""
        found: list[dict[str, list[int]]] = []
        for column in self.columns:
            found.append({})
            for code, text in enumerate(column.texts.to_pylist()):
                found[-1].setdefault(text.strip(), []).append(code)
        return found

    def shows_in_text(self, rows: Ints, place: int) -> bool:
        """If these cells of a column are wrong, does the text of each of them probably show it?"""
        return self.posterior is not None and bool(self.posterior.shows_in_text[rows, place].all())

    def text(self, row: int, place: int) -> str:
        """What stands in a cell as a person writes it; "" if it is empty."""
        return (self.table.text(row, place) or "").strip()

    @cached_property
    def prints(self) -> NDArray[np.uint64]:
        """A number for each row by which rows that hold the same in every column are known, (N,)."""
        whole = np.zeros(self.table.rows, dtype=np.uint64)
        for column in self.columns:
            texts = (text.strip().encode() for text in [*column.texts.to_pylist(), ""])  # gaps last
            digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
            whole = whole * np.uint64(MULTIPLIER) + np.frombuffer(digests, dtype="<u8")[column.codes]
        return whole


def log_odds(suspicion: Floats) -> Floats:
    """Log odds of a probability, as far as they matter.

    >>> log_odds(np.array([0.5, 1.0])).tolist()
    [0.0, 12.0]
    """
    with np.errstate(divide="ignore"):
        return np.clip(np.log(suspicion) - np.log1p(-suspicion), -FARTHEST, FARTHEST)
