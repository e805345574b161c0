"""The face that every relation has."""

from __future__ import annotations

from typing import Protocol


class Relation(Protocol):
    """Something that columns or rows of a table have to do with each other, learned from all rows.

    It keeps what it needs to judge any row by itself, so that pieces of a table are judged as the whole is.
    """

    @property
    def kind(self) -> str:
        """One word; also the cause of the cells that break it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """That it speaks of."""

    @property
    def support(self) -> float:
        """The share of rows that keep it."""

    def words(self) -> str:
        """What it says, in one plain line."""
