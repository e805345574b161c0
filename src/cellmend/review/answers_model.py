"""What the page asks about the rules of the table and about learning, and what people do about both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cellmend.errors import DecisionError
from cellmend.review import ruling
from cellmend.review.answers import Answer, done, listed_rules, pulse, whole
from cellmend.review.learnings import Learning
from cellmend.review.ledger import Step
from cellmend.review.review import Review
from cellmend.review.teaching import learned_from

# ---------------------------------------------------------------- rules


def rules(review: Review, asked: Mapping[str, Any]) -> Any:
    """The rules of the table, with what people said of each; null until they were looked at."""
    return {"rules": [asdict(each) for each in listed_rules(review)] if review.rules else None}


def rule(review: Review, asked: Mapping[str, Any]) -> Any:
    """Confirm a rule that was found, or strike it out."""
    return _done(review, ruling.judge_rule(review, str(asked.get("rule")), asked.get("verdict")))


def own_rule(review: Review, asked: Mapping[str, Any]) -> Any:
    """Let a rule of one's own hold for all rows."""
    return _done(review, ruling.add_rule(review, _words(asked)))


def drop_rule(review: Review, asked: Mapping[str, Any]) -> Any:
    """Take back a rule of one's own."""
    return _done(review, ruling.drop_rule(review, _words(asked)))


def _done(review: Review, step: Step | None) -> Any:
    return done(review, step) | rules(review, {})


def _words(asked: Mapping[str, Any]) -> str:
    if not isinstance(asked.get("rule"), str):
        raise DecisionError(f"A rule must be a text; it is {asked.get('rule')!r}.")
    return str(asked["rule"])


# ---------------------------------------------------------------- learning


def learnings(review: Review, asked: Mapping[str, Any]) -> Any:
    """What there is to learn from now, and what was learned so far."""
    told = [_learning(each) for each in review.results.learnings.history]
    return {"now": learned_from(review.ledger.standing, review.wishes), "history": told}


def _learning(each: Learning) -> Any:
    """Without the list of changes, which is long and asked for by itself."""
    about = {name: value for name, value in each.about.items() if name != "changes"}
    return {"number": each.number, "when": each.when, **about, "counts": _changes_of(each)["counts"]}


def changes(review: Review, asked: Mapping[str, Any]) -> Any:
    """What learning changed, the last time or the one with this number."""
    history = review.results.learnings.history
    number = whole(asked, "number", len(history))
    found = next((each for each in history if each.number == number), None)
    return {"number": number, "is_last": number == len(history), **_changes_of(found)}


def _changes_of(each: Learning | None) -> Mapping[str, Any]:
    """What a learning changed; nothing if its file does not say."""
    found = each.about.get("changes") if each else None
    if isinstance(found, dict) and isinstance(found.get("counts"), dict) and isinstance(found.get("listed"), list):
        return found
    return {"counts": {}, "listed": []}


def learn(review: Review, asked: Mapping[str, Any]) -> Any:
    """Begin to learn."""
    return {"started": review.learn(), **pulse(review, asked)}


def unlearn(review: Review, asked: Mapping[str, Any]) -> Any:
    """Begin to go back to what was found before the last learning."""
    if not review.results.learnings.history:
        raise DecisionError("Nothing was learned yet.")
    return {"started": review.teacher.unlearn(), **pulse(review, asked)}


MODEL_QUESTIONS: dict[str, Answer] = {each.__name__: each for each in (rules, learnings, changes)}
MODEL_DEEDS: dict[str, Answer] = {each.__name__: each for each in (rule, own_rule, drop_rule, learn, unlearn)}
