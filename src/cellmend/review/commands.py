"""`cellmend review`: from a folder of results to a page that people can open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cellmend.errors import MissingExtraError
from cellmend.review.results import held, open_results
from cellmend.review.review import Review


def open_review(folder: Path, table: str | None, port: int, *, say: Callable[[str], None]) -> None:
    """Serve the review of a folder until it is stopped; `say` is called with the address."""
    try:
        from cellmend.review.server import serve
    except ImportError as error:
        raise MissingExtraError(
            f"The review page needs {error.name}, which is not installed. Hint: pip install 'cellmend[review]'."
        ) from None
    results = open_results(folder, table)
    with held(folder):
        serve(Review(results), port=port, ready=say)
