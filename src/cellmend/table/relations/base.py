"""The face that every relation has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from cellmend.table.readtable import ReadTable, Suspect


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

    def suspects(self, table: ReadTable) -> list[Suspect]:
        """The cells that break it."""

    def words(self) -> str:
        """What it says, in one plain line."""

    def to_json(self) -> dict[str, Any]:
        """As a model file holds it."""

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Relation:
        """The opposite of to_json."""
