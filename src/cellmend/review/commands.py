"""`cellmend review` and `cellmend apply`: people decide, and what they accepted is put on a newer copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cellmend.console import Teller, say
from cellmend.errors import MissingExtraError
from cellmend.options import FileOptions, ForceOption, TableArgument, with_groups


def review(
    folder: Annotated[Path, typer.Argument(help="Folder that `cellmend clean` wrote.")],
    table: Annotated[
        str | None, typer.Option("--table", help="The table that was cleaned, if it is no longer where it was.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="To listen on, of this machine only; 0: any free.")] = 0,
) -> None:
    """Decide about the flagged cells on a local page: accept, reject, edit, undo, learn, export."""
    open_review(folder, table, port, ready=lambda url: say(f"Review {folder} at {url}", "Ctrl-C ends it."))


def open_review(folder: Path, table: str | None, port: int, *, ready: Callable[[str], None]) -> None:
    """Serve the review of a folder until it is stopped; `ready` is called with the address."""
    try:
        from cellmend.review.server import serve
    except ImportError as error:
        raise MissingExtraError(
            f"The review page needs {error.name}, which is not installed. Hint: pip install 'cellmend[review]'."
        ) from None
    from cellmend.files.results import only_run
    from cellmend.review.results import open_results
    from cellmend.review.review import Review

    results = open_results(folder, table)
    with only_run(folder, hint="it may be open in another review: end that one with Ctrl-C, or use its page."):
        opened = Review(results)
        if opened.ledger.left_out:
            many = f"{opened.ledger.left_out:,} lines of {results.decisions}"
            say(f"{many} no longer count: their cells hold another value now.")
        serve(opened, port=port, ready=ready)


@with_groups
def apply(
    patch: Annotated[Path, typer.Argument(help="patch.jsonl or recipe.jsonl, as the review page exports it.")],
    table: TableArgument,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. \\[default: NAME-patched]")
    ] = None,
    file: FileOptions,
    force: ForceOption = False,
    teller: Teller,
) -> None:
    """Put accepted repairs on a newer copy of a table; cells whose old value no longer matches are refused."""
    from cellmend.files.formats import read_file
    from cellmend.files.results import check_outputs
    from cellmend.patch import apply_patch

    asked = file.asked()
    with teller.reading(table):
        source = read_file(table, asked)
    path = output or Path(f"{source.name.split('.')[0]}-patched{source.suffix}")
    check_outputs([path], force=force, size=source.table.nbytes)
    applied = apply_patch(patch, source, path)
    teller.applied(applied)
    if applied.refused:
        raise typer.Exit(1)
