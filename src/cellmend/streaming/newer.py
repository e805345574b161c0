"""Newer rows beside what was learned: columns written otherwise, columns that moved, columns that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cellmend.estimator import CellMender
from cellmend.model.profile import Profile
from cellmend.table.reader import about_others, others


@dataclass(frozen=True)
class NewRows:
    """What a person should know of a newer table."""

    otherwise: Mapping[str, str] = field(default_factory=dict)  # column to how it is written otherwise than learned
    moved: Mapping[str, str] = field(default_factory=dict)  # column to a sentence
    extra: tuple[str, ...] = ()  # columns that the model does not know

    @property
    def notes(self) -> list[str]:
        """The same in sentences.

        >>> NewRows(moved={"city": "city moved since the model learned: Ulm is 30 %, it was 3 %"}).notes[-1]
        'Hint: cellmend update teaches the model the new rows.'
        """
        hint = ["Hint: cellmend update teaches the model the new rows."] if self.moved else []
        extra = [f"{about_others(self.extra)}."] if self.extra else []
        otherwise = [f"{name}: {sentence}." for name, sentence in self.otherwise.items()]
        return [*extra, *otherwise, *(f"{sentence}." for sentence in self.moved.values()), *hint]


def compare(mender: CellMender, names: list[str], profile: Profile, otherwise: Mapping[str, str]) -> NewRows:
    """A newer table with these columns and this profile beside what the model learned."""
    moved = {name: said for name, said in mender.moved_since(profile).items() if name not in otherwise}
    return NewRows(otherwise, moved, tuple(others(names, mender.names_ or [])))
