"""A folder of results, opened for review: the table as it was found, its flagged cells, and where the rest is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cellmend.errors import FileError, SettingError
from cellmend.files.earlier import COLUMNS, DECISIONS, PATCH, RECIPE
from cellmend.files.formats import TableFile, read_file
from cellmend.files.origin import NAME, Origin
from cellmend.files.results import MODEL
from cellmend.review.flagged import Flagged, read_flagged
from cellmend.review.learnings import Learnings
from cellmend.settings import FDR, Threshold


class Results:
    """What a review is about, and the files that it writes."""

    def __init__(self, folder: Path, source: TableFile, threshold: Threshold) -> None:
        self.folder, self.source, self.threshold = folder, source, threshold
        self.model = folder / MODEL  # as it was fitted, before any decision
        self.decisions = folder / DECISIONS  # a line each
        self.columns = folder / COLUMNS  # what people said of whole columns
        self.learnings = Learnings(folder)  # what came of learning from decisions: findings.csv and a model each time
        self.learned = self.learnings.current
        self.reviewed = folder / f"reviewed{source.suffix}"  # the table with accepted repairs only
        self.patch = folder / PATCH  # the accepted repairs, to be put on another copy of the table
        self.recipe = folder / RECIPE  # the same for another table: values that were replaced, and single cells
        self.exported = {
            "table": self.reviewed,
            "patch": self.patch,
            "recipe": self.recipe,
            "decisions": self.decisions,
        }  # by an export

    def read_flagged(self) -> Flagged:
        """The flagged cells, as they are since decisions were last learned from."""
        last = self.learnings.findings or self.folder
        flagged = read_flagged(last)
        rows, names = self.source.table.num_rows, set(self.source.table.column_names)
        misfit = next((flag for flag in flagged.flags if not 0 <= flag.row < rows or flag.column not in names), None)
        if misfit is not None:
            raise FileError(
                f"The findings in {last} must be about {self.source.name}; row {misfit.row} of {misfit.column!r} "
                "is not in it. Hint: --table names the table that was cleaned."
            )
        return flagged


def open_results(folder: Path, table: str | None) -> Results:
    """A folder that `cellmend clean` wrote; `table` says where the cleaned table is, if source.json does not."""
    if not folder.is_dir():
        raise FileError(f"{folder} must be a folder that cellmend clean wrote; there is none.")
    if table is not None and not (folder / NAME).exists():
        return Results(folder, read_file(table), Threshold(fdr=FDR))
    origin = Origin.load(folder)
    source = read_file(origin.find(folder) if table is None else table, origin.asked)
    try:
        threshold = Threshold(**origin.threshold)  # type: ignore[arg-type]
    except (SettingError, TypeError):
        raise FileError(f"{folder / NAME} must name one threshold, such as fdr; it does not.") from None
    return Results(folder, replace(source, name=origin.name), threshold)
