"""Relations as rules for a person to read and to edit: strike out those that do not hold, confirm those that do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cellmend.errors import RulesError
from cellmend.table.packing import pack
from cellmend.table.relations.base import Relation
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.keys import Key

HEAD = """\
# Rules that the table shows. Delete one that does not hold; write sure: true for one that always does.
# Give the file back with --rules.
"""


@dataclass(frozen=True)
class Rule:
    """One relation: what it says, of which columns, in which share of the rows, and whether a person confirmed it."""

    rule: str
    kind: str
    columns: tuple[str, ...]
    support: float
    sure: bool = False


@dataclass(frozen=True)
class Rules:
    """The rules of a table.

    >>> rules = Rules((Rule("code decides city", "dependency", ("code", "city"), 0.98),))
    >>> Rules.from_yaml(rules.to_yaml()) == rules
    True
    """

    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, given: Rules | Iterable[Mapping[str, Any]]) -> Rules:
        """What a user gives as `rules=`, as Rules."""
        return given if isinstance(given, Rules) else cls(tuple(_rule(entry) for entry in given))

    @classmethod
    def told_by(cls, relations: Iterable[Relation]) -> Rules:
        """What these relations say."""
        return cls(tuple(Rule(r.words(), r.kind, tuple(r.columns), round(float(r.support), 4)) for r in relations))

    def to_yaml(self) -> str:
        """As YAML, for a person to edit."""
        entries = {"rules": self.to_list()}
        return HEAD + yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=10_000)

    def to_list(self) -> list[dict[str, Any]]:
        """In plain values."""
        return [pack(rule) for rule in self.rules]

    @classmethod
    def from_yaml(cls, text: str) -> Rules:
        """The opposite of to_yaml."""
        try:
            entries = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise RulesError(f"Rules must be YAML as `cellmend rules` prints it; it cannot be read: {error}") from None
        if not isinstance(entries, Mapping) or not isinstance(entries.get("rules"), list):
            raise RulesError("Rules must be YAML with a list under 'rules'. Hint: `cellmend rules TABLE` prints one.")
        return cls.of(entries["rules"])

    @classmethod
    def load(cls, path: str | Path) -> Rules:
        """Read rules from a YAML file."""
        return cls.from_yaml(Path(path).read_text(encoding="utf-8"))

    def choose(self, relations: Sequence[Relation]) -> list[Relation]:
        """Of these relations those that were not struck out, and those that a person confirmed as sure."""
        said = {(rule.kind, rule.columns): rule for rule in self.rules}
        kept = [(each, said.get((each.kind, tuple(each.columns)))) for each in relations]
        return [_confirmed(each) if rule.sure else each for each, rule in kept if rule is not None]


def _rule(entry: Any) -> Rule:
    if not isinstance(entry, Mapping) or not {"kind", "columns"} <= set(entry):
        raise RulesError(f"A rule must have a kind and columns; this one is {entry!r}.")
    if strange := set(entry) - {each.name for each in fields(Rule)}:
        raise RulesError(f"A rule may have rule, kind, columns, support and sure; one has {min(strange)!r} too.")
    columns = tuple(str(name) for name in entry["columns"])
    support, sure = float(entry.get("support", 1.0)), bool(entry.get("sure", False))
    return Rule(str(entry.get("rule", "")), str(entry["kind"]), columns, support, sure)


def _confirmed(relation: Relation) -> Relation:
    """The relation as one that holds in every row."""
    if isinstance(relation, Dependency):
        return replace(relation, sure=np.ones_like(relation.sure))
    if isinstance(relation, Key):
        return replace(relation, copied=np.ones_like(relation.copied))
    return relation
