"""The rules of a table for people to judge: those that it shows, those called sure, and those of one's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cellmend.errors import RulesError
from cellmend.review.flagged import Flag, Flagged
from cellmend.review.limits import CONFIRMED, STRUCK, Wishes
from cellmend.table.causes.named import RULE
from cellmend.table.frames import read_frame
from cellmend.table.notation import understand
from cellmend.table.readtable import ReadTable, Violation
from cellmend.table.relations import relate
from cellmend.table.relations.arithmetic import Arithmetic
from cellmend.table.relations.base import Relation
from cellmend.table.relations.dependencies import Dependency
from cellmend.table.relations.keys import Key
from cellmend.table.relations.ruled import Ruled, ruled_rows
from cellmend.table.relations.stated import Compares, Stated, parse
from cellmend.table.relations.sure import kept_by_all
from cellmend.table.values import Ints, as_text

if TYPE_CHECKING:
    from cellmend.table.reader import TableReader


@dataclass(frozen=True)
class Rule:
    """A rule, how well it is kept, and what people said of it."""

    rule: str  # in words
    support: float  # share of the rows that keep it
    broken: int  # rows that break it
    source: str  # "found" in the table, called "sure" when the table was cleaned, or one's "own"
    verdict: str | None  # CONFIRMED, STRUCK, or nothing said


@dataclass(frozen=True)
class Speaking:
    """The relations that have something to say of a column, by their kinds."""

    dependencies: Sequence[Dependency] = ()
    formulas: Sequence[Arithmetic] = ()
    keys: Sequence[Key] = ()


class RuleBook:
    """What is known of the rules of one table; each is asked for by its words."""

    def __init__(self, reader: TableReader, table: pa.Table) -> None:
        frame = read_frame(table)
        frame = frame if reader.names is None else frame.select(reader.names)
        plain = ReadTable(frame, understand(frame.arrow, reader.notations), reader.notations)
        related = relate(plain, reader.relations, reader.kept_by_all)
        self.table = plain
        self._sure = {each.words(): each for each in reader.kept_by_all}
        self._relations: Mapping[str, Relation] = {each.words(): each for each in reader.relations}
        self._ruled = {each.rule: each for each in ruled_rows(reader.relations, reader.kept_by_all, related)}
        self._rows: dict[tuple[str, bool], Ints] = {}
        self._violations: dict[str, Sequence[Violation]] = {}
        self._breaks: dict[str, tuple[set[int], Callable[[int], str]]] = {}

    # ------------------------------------------------------------ which there are

    @cached_property
    def found(self) -> Mapping[str, Ruled]:
        """The rules that the table shows and those called sure, by their words: those with few exceptions first, and
        last those without any."""
        shown = {
            words: self._ruled.get(self.stated(words).words(), self._ruled.get(words)) for words in self._relations
        }
        of_relations = {self.stated(words).words() for words in shown}
        own = {words: each for words, each in self._ruled.items() if each.sure and words not in of_relations}
        told = {**own, **{words: each for words, each in shown.items() if each is not None}}
        return dict(sorted(told.items(), key=lambda entry: len(entry[1].rows) or self.table.rows))

    def listed(self, wishes: Wishes) -> list[Rule]:
        """All rules: those of one's own, then the others as `found` has them."""
        own = [self._rule(words, "own", CONFIRMED) for words in wishes.own]
        return own + [
            self._rule(words, "sure" if each.sure else "found", wishes.rules.get(words))
            for words, each in self.found.items()
        ]

    def _rule(self, words: str, source: str, verdict: str | None) -> Rule:
        broken = len(self.rows(words, is_sure=verdict == CONFIRMED))
        return Rule(words, 1 - broken / max(self.table.rows, 1), broken, source, verdict)

    def speaking(self, column: str, wishes: Wishes) -> Speaking:
        """The relations of a column that were not struck out."""
        heard = (each for words, each in self._relations.items() if wishes.rules.get(words) != STRUCK)
        own = [each for each in heard if column in each.columns]
        return Speaking(
            [each for each in own if isinstance(each, Dependency)],
            [each for each in own if isinstance(each, Arithmetic)],
            [each for each in own if isinstance(each, Key)],
        )

    def stated(self, words: str) -> Stated:
        """The rule that every row keeps, if people are right about it."""
        if words in self._relations:
            return kept_by_all(self._relations[words])
        return self._sure.get(words) or parse(words, self.table.names)

    def read(self, line: str) -> str:
        """The words of the rule that a person typed; of one that the table shows, those by which it is listed."""
        stated = parse(line, self.table.names)
        if isinstance(stated, Compares):
            stated.check(self.table)
        same = (words for words in self.found if self.stated(words).words() == stated.words())
        return next(same, stated.words())

    # ------------------------------------------------------------ which cells break them

    @np.errstate(all="ignore")  # the largest numbers overflow and then agree with nothing
    def violations(self, words: str) -> Sequence[Violation]:
        """The cells that break a rule, if it has no exceptions."""
        if words not in self._violations:
            self._violations[words] = self.stated(words).violations(self.table)
        return self._violations[words]

    def rows(self, words: str, *, is_sure: bool) -> Ints:
        """The rows that break a rule, sorted; of one that is sure all exceptions count."""
        if (words, is_sure) not in self._rows:
            ruled = None if is_sure else self.found.get(words)
            broken = ruled.rows if ruled else [row for each in self.violations(words) for row, _ in each.cells]
            self._rows[words, is_sure] = np.unique(np.array(broken, dtype=np.int64))
        return self._rows[words, is_sure]

    def said(self, words: str, row: int) -> str | None:
        """What contradicts what in a row that breaks a formula; None if it keeps it."""
        if words not in self._breaks:
            relation = self._relations[words]
            assert isinstance(relation, Arithmetic)  # noqa: S101 - only asked of those in `speaking`
            breaks = relation.breaks(self.table)
            self._breaks[words] = set(breaks.rows.tolist()), breaks.say
        rows, say = self._breaks[words]
        return say(row) if row in rows else None

    def broken_by(self, words: str, wishes: Wishes) -> Ints:
        """The rows that break a rule, by what people said of it."""
        if words not in self.found and words not in wishes.own:
            raise RulesError(f"There is no rule {words!r}.")
        return self.rows(words, is_sure=words in wishes.own or wishes.rules.get(words) == CONFIRMED)

    # ------------------------------------------------------------ what follows

    def heeding(self, found: Flagged, wishes: Wishes) -> Flagged:
        """What is flagged once rules that were struck out are silent, and confirmed ones have no exceptions."""
        struck = [words for words, verdict in wishes.rules.items() if verdict == STRUCK and words in self.found]
        sure = [words for words, verdict in wishes.rules.items() if verdict == CONFIRMED and words in self.found]
        kept = self._without(found, struck) if struck else found
        new = {flag.cell: flag for words in (*sure, *wishes.own) for flag in self._exceptions(words, kept)}
        return kept.merged(new.values()) if new else kept

    def _without(self, found: Flagged, struck: Sequence[str]) -> Flagged:
        """The flagged cells but for those against which nothing speaks besides these rules."""
        silent = self._spoken_against(struck, found.flags)
        silent -= self._spoken_against([words for words in self.found if words not in struck], found.flags)
        return Flagged([flag for place, flag in enumerate(found.flags) if place not in silent]) if silent else found

    def _spoken_against(self, rules: Iterable[str], flags: Sequence[Flag]) -> set[int]:
        """The places of the flagged cells against which these rules speak."""
        places: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, flag in enumerate(flags):
            places[flag.cause, flag.column].append(place)
        rows = np.array([flag.row for flag in flags], dtype=np.int64)
        against: set[int] = set()
        for words in rules:
            ruled, relation = self.found[words], self._relations.get(words)
            cause = RULE if ruled.sure or relation is None else relation.kind
            own = np.array([at for name in ruled.columns for at in places.get((cause, name), ())], dtype=np.int64)
            against.update(own[np.isin(rows[own], self.rows(words, is_sure=False))].tolist())
        return against

    def _exceptions(self, words: str, found: Flagged) -> Iterator[Flag]:
        """The cells that break a sure rule, as `clean` would tell of them: a flagged one explains the row, surely by
        Bayes' rule; where none is flagged each is as suspicious as the others."""
        for violation in self.violations(words):
            cells = [(row, self.table.names[place]) for row, place in violation.cells]
            known = [flag for flag in map(found.get, cells) if flag is not None]
            if any(flag.cause == RULE for flag in known):
                continue  # the model knows it already
            any_wrong = 1 - float(np.prod([1 - flag.suspicion for flag in known]))
            for flag in known:
                reason = f"{flag.reason}; {violation.reason}"
                yield replace(flag, suspicion=flag.suspicion / any_wrong, reason=reason, cause=RULE)
            for cell in cells if not known else ():
                meant = violation.meant if cell == cells[-1] else None
                value = as_text(self.table.cell(*cell)) if self.table.cell(*cell) is not None else ""
                yield Flag(*cell, value, 1 / len(cells), meant, None, None, violation.reason, RULE)
