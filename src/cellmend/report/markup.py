"""Text and tables as they may stand in a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from rapidfuzz.distance import Postfix, Prefix

LONGEST_TEXT = 240  # letters of a cell that are shown
LONGEST_SHOWN = 90  # letters that are read at a glance; of a longer cell the first lines are shown
BESIDE = 24  # letters that are shown on either side of what differs in two long texts
MOST_LINES = 12  # of a table that is as high as it is; one of more lines scrolls in a box
LONGEST_WHOLE = 16  # letters of a cell that is never broken in two, as numbers and dates are not


def escaped(value: str) -> str:
    """Text from the table as it may stand in a page, cut if it is long."""
    return escape(cut(value))


def cut(value: str, longest: int = LONGEST_TEXT) -> str:
    """A text that is not endless."""
    return value if len(value) <= longest else value[: longest - 1] + "…"


def cell_html(value: str) -> str:
    """The text of a cell as it may stand in a page, also if nothing would be seen of it."""
    return escaped(value) if value.strip() else "<i>empty text</i>"


def whole_cell_html(value: str) -> str:
    """The text of a cell, in one piece if it is short, its first lines if it is long.

    >>> whole_cell_html("1,150,000"), whole_cell_html("a text of some words")
    ('<span class="whole">1,150,000</span>', 'a text of some words')
    """
    shown = cell_html(value)
    if not value.strip() or LONGEST_WHOLE < len(value) <= LONGEST_SHOWN:
        return shown
    return f'<span class="{"whole" if len(value) <= LONGEST_WHOLE else "long"}">{shown}</span>'


def around(one: str, other: str) -> tuple[str, str]:
    """Two texts; of long ones what differs, with some letters on either side.

    >>> around("Rmoe", "Rome")
    ('Rmoe', 'Rome')
    >>> around("taking " * 20 + "hexrt drugs" + " daily" * 20, "taking " * 20 + "heart drugs" + " daily" * 20)
    ('… taking taking taking hexrt drugs daily daily dai…', '… taking taking taking heart drugs daily daily dai…')
    """
    if max(len(one), len(other)) <= LONGEST_SHOWN:
        return one, other
    start = int(Prefix.similarity(one, other))
    end = min(int(Postfix.similarity(one, other)), len(one) - start, len(other) - start)
    return _from_to(one, start, end), _from_to(other, start, end)


def _from_to(text: str, start: int, end: int) -> str:
    """What lies between so many letters at the start and so many at the end, with some of them."""
    first, last = max(0, start - BESIDE), len(text) - max(0, end - BESIDE)
    return cut(f"{'…' * (first > 0)}{text[first:last]}{'…' * (last < len(text))}", LONGEST_SHOWN)


def percent(share: float) -> str:
    """A share as one would say it; nearly all is not all.

    >>> percent(0.942), percent(0.9996), percent(1.0), percent(0.002)
    ('94 %', 'over 99 %', '100 %', 'under 1 %')
    """
    if 0.995 <= share < 1:
        return "over 99 %"
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "cell"), counted(1200, "cell")
    ('1 cell', '1,200 cells')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def html_table(caption: str, style: str, head: Mapping[str, str], lines: Iterable[Sequence[str]]) -> str:
    """A table of HTML cells, the first of a line its heading; `head` is each column's heading and class."""
    heads = "".join(f'<th scope="col" class="{name}">{word}</th>' for word, name in head.items())
    body = "".join(
        f'<tr><th scope="row">{first}</th>'
        + "".join(f'<td class="{name}">{cell}</td>' for cell, name in zip(rest, [*head.values()][1:], strict=True))
        + "</tr>"
        for first, *rest in lines
    )
    return (
        f'<table class="{style}"><caption class="unseen">{caption}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def boxed(table: str, label: str, lines: int) -> str:
    """A table of so many lines, in a box that scrolls if they are many."""
    if lines <= MOST_LINES:
        return table
    return f'<div class="box" role="region" aria-label="{label}" tabindex="0">{table}</div>'
