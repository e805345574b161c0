"""What people say of rules, each as a step of the review: confirmed, struck out, or given by themselves."""

from __future__ import annotations

from cellmend.errors import DecisionError
from cellmend.review.ledger import Step
from cellmend.review.limits import CONFIRMED
from cellmend.review.review import Review


def judge_rule(review: Review, words: str, verdict: str | None) -> Step | None:
    """Confirm a rule that was found, so that what breaks it is flagged, or strike it out; None: neither."""
    if words not in review.rulebook.found:
        raise DecisionError(f"No rule {words!r} was found in the table.")
    return review.wish(lambda before: before.with_rule(words, verdict), _named(words))


def add_rule(review: Review, line: str) -> Step | None:
    """Let a rule of one's own hold for all rows: what breaks it is flagged at once."""
    words = review.rulebook.read(line)
    if words in review.rulebook.found:
        return judge_rule(review, words, CONFIRMED)
    return review.wish(lambda before: before if words in before.own else before.with_own(words), _named(words))


def drop_rule(review: Review, words: str) -> Step | None:
    """Take back a rule of one's own."""
    return review.wish(lambda before: before.without_own(words), _named(words))


def _named(words: str) -> str:
    return f"the rule “{words}”"
