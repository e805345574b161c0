"""Relations as rules for a person to read and to edit: strike out those that do not hold, confirm those that do."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cellmend.errors import RulesError, SchemaWarning, did_you_mean
from cellmend.table.packing import pack
from cellmend.table.readtable import ReadTable
from cellmend.table.relations import RELATIONS
from cellmend.table.relations.base import Relation
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.keys import Key
from cellmend.table.relations.stated import HINT, Compares, Decides, Unique, parse
from cellmend.table.relations.sure import kept_by_all
from cellmend.table.values import LONGEST_TEXT

HEAD = """\
# Rules that the table shows. Delete one that does not hold; write sure: true for one that always does.
# Rules of your own stand below, under own:, a line each, such as - price > 0
# Give the file back with --rules.
"""
DEEPEST = 8  # nested lists and mappings of a file of rules, which needs four
LISTED = "Hint: `cellmend rules TABLE` prints one."


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
    """The rules of a table: relations that it shows and that a person kept, and rules of one's own.

    >>> rules = Rules((Rule("code decides city", "dependency", ("code", "city"), 0.98),), ("price > 0",))
    >>> Rules.from_yaml(rules.to_yaml()) == rules
    True
    """

    rules: tuple[Rule, ...] | None = None  # None: nobody looked, so that all relations are used
    own: tuple[str, ...] = ()  # in plain words

    @classmethod
    def of(cls, given: Rules | Mapping[str, Any] | Iterable[Any]) -> Rules:
        """What a user gives as `rules=`, as Rules: these, what a file says, or a list of entries and plain words."""
        if isinstance(given, Rules):
            return given
        if isinstance(given, Mapping):
            return _of_mapping(given)
        entries = list(given)
        own, relations = (
            [each for each in entries if isinstance(each, str)],
            [e for e in entries if not isinstance(e, str)],
        )
        return _of_mapping({"own": own} | ({"rules": relations} if relations or not own else {}))

    @classmethod
    def told_by(cls, relations: Iterable[Relation], sure: Sequence[str] = ()) -> Rules:
        """What these relations say, and the rules that are sure; those that are no relations are of one's own."""
        told = {kept_by_all(each).words(): each for each in relations}
        rules = (
            Rule(each.words(), each.kind, tuple(each.columns), round(float(each.support), 4), said in sure)
            for said, each in told.items()
        )
        return cls(tuple(rules), tuple(each for each in sure if each not in told))

    def to_yaml(self) -> str:
        """As YAML, for a person to edit."""
        return HEAD + yaml.safe_dump(self.to_json(), sort_keys=False, allow_unicode=True, width=10_000)

    def to_json(self) -> dict[str, Any]:
        """In plain values; Rules.of is the opposite."""
        relations = {} if self.rules is None else {"rules": [pack(rule) for rule in self.rules]}
        return relations | ({"own": list(self.own)} if self.own else {})

    @classmethod
    def from_yaml(cls, text: str) -> Rules:
        """The opposite of to_yaml."""
        try:
            _refuse_bombs(text)
            entries = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:  # a month 13 is a ValueError
            said = " ".join(str(error).split())
            raise RulesError(f"Rules must be YAML as `cellmend rules` prints it; this cannot be read: {said}") from None
        if not isinstance(entries, Mapping):
            raise RulesError(f"Rules must be YAML with a list under 'rules' or 'own'. {LISTED}")
        return _of_mapping(entries)

    @classmethod
    def load(cls, path: str | Path) -> Rules:
        """Read rules from a YAML file."""
        return cls.from_yaml(read_text(path))

    def and_own(self, own: Iterable[str]) -> Rules:
        """With more rules of one's own."""
        return replace(self, own=(*self.own, *own))

    def choose(self, relations: Sequence[Relation]) -> list[Relation]:
        """Of these relations those that were not struck out; those that are sure hold in every group of rows."""
        kept = relations if self.rules is None else [each for each in relations if self._said_of(each) is not None]
        return [_confirmed(each) if self._is_sure(each) else each for each in kept]

    def sure(self, chosen: Sequence[Relation], columns: Sequence[str]) -> tuple[str, ...]:
        """The rules that every row keeps, in plain words: relations among the chosen ones, those that are sure though
        the table does not show them, and rules of one's own."""
        shown = [kept_by_all(each).words() for each in chosen if self._is_sure(each)]
        known = {(each.kind, tuple(each.columns)) for each in chosen}
        unseen = [_unseen(rule) for rule in self.rules or () if rule.sure and (rule.kind, rule.columns) not in known]
        own = (parse(text, columns).words() for text in self.own)
        return tuple(dict.fromkeys([*shown, *(words for words in unseen if words), *own]))

    def _said_of(self, relation: Relation) -> Rule | None:
        return next(
            (r for r in self.rules or () if (r.kind, r.columns) == (relation.kind, tuple(relation.columns))), None
        )

    def _is_sure(self, relation: Relation) -> bool:
        said = self._said_of(relation)
        return (said is not None and said.sure) or kept_by_all(relation).words() in self.own


def refuse_unfit(rules: Rules, table: ReadTable) -> None:
    """Refuse rules of columns that a table does not have, and comparisons of what cannot be compared."""
    for rule in rules.rules or ():
        if strange := [name for name in rule.columns if name not in table.names]:
            raise RulesError(
                f"A rule must be of columns of the table; the rule {rule.rule or rule.kind!r} speaks of "
                f"{strange[0]!r}, which is none.{did_you_mean(strange[0], table.names)}"
            )
    for own in (parse(text, table.names) for text in rules.own):
        if isinstance(own, Compares):
            own.check(table)


def read_text(path: str | Path) -> str:
    """A file of rules as text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise RulesError(
            f"Rules must be text in UTF-8; {Path(path).name} is not. Hint: save it again as UTF-8."
        ) from None


def _refuse_bombs(text: str) -> None:
    """Refuse YAML that grows when it is read: nested without end, or one part in many places."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
            raise RulesError(
                f"Rules must be a plain list; this YAML is nested deeply or refers to its own parts. {LISTED}"
            )


def _of_mapping(entries: Mapping[str, Any]) -> Rules:
    """What stands under 'rules' and 'own'."""
    lists = {name: entries[name] for name in ("rules", "own") if name in entries}
    if not lists or set(entries) - set(lists) or not all(isinstance(each, list | tuple) for each in lists.values()):
        raise RulesError(f"Rules must be a list under 'rules', of what a table shows, or under 'own'. {LISTED}")
    if strange := [each for each in lists.get("own", ()) if not isinstance(each, str)]:
        raise RulesError(f"A rule of your own must be a line of text; one is {_shown(strange[0])}. {HINT}")
    rules = tuple(_rule(entry) for entry in lists["rules"]) if "rules" in lists else None
    return Rules(rules, tuple(lists.get("own", ())))


def _rule(entry: Any) -> Rule:
    if not isinstance(entry, Mapping) or not {"kind", "columns"} <= set(entry):
        raise RulesError(
            f"A rule that the table shows must have a kind and columns; one is {_shown(entry)}. "
            "Hint: rules of your own stand under 'own', a line each."
        )
    if strange := set(map(str, entry)) - {each.name for each in fields(Rule)}:
        raise RulesError(f"A rule may have rule, kind, columns, support and sure; one has {min(strange)!r} too.")
    for name, (must, type_) in TYPES.items():
        if name in entry and (not isinstance(entry[name], type_) or (name == "support" and entry[name] is True)):
            raise RulesError(f"The {name} of a rule must be {must}; one is {_shown(entry[name])}.")
    columns = entry["columns"]
    if not columns or not all(isinstance(name, str) for name in columns):
        raise RulesError(f"The columns of a rule must be a list of names; one is {_shown(columns)}.")
    if entry["kind"] not in RELATIONS:
        kinds = f"{', '.join(RELATIONS)}; it is {_shown(entry['kind'])}."
        raise RulesError(f"The kind of a rule must be one of {kinds}{did_you_mean(entry['kind'], RELATIONS)}")
    support, sure = float(entry.get("support", 1.0)), entry.get("sure", False)
    return Rule(entry.get("rule", ""), entry["kind"], tuple(columns), support, sure)


TYPES: dict[str, tuple[str, Any]] = {
    "rule": ("a text", str),
    "kind": ("a text", str),
    "columns": ("a list of names", list | tuple),
    "support": ("a number", int | float),
    "sure": ("true or false, without quotes", bool),
}


def _shown(entry: Any) -> str:
    text = repr(entry)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _unseen(rule: Rule) -> str | None:
    """A sure relation that the table does not show, in plain words; None, and a warning, if it has none."""
    if rule.kind == Dependency.kind and len(rule.columns) > 1:
        return Decides(rule.columns[:-1], rule.columns[-1]).words()
    if rule.kind == Key.kind:
        return Unique(rule.columns).words()
    said = f"The rule {rule.rule or rule.kind!r} is called sure, but the table does not show it: it is not checked."
    warnings.warn(said, SchemaWarning, stacklevel=2)
    return None


def _confirmed(relation: Relation) -> Relation:
    """The relation as one that holds in every row."""
    if isinstance(relation, Dependency):
        return replace(relation, sure=np.ones_like(relation.sure))
    if isinstance(relation, Key):
        return replace(relation, copied=np.ones_like(relation.copied))
    return relation
