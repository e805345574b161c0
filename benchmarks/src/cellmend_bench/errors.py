"""What the experiments refuse, beside what cellmend does."""

from __future__ import annotations

from cellmend.errors import CellmendError


class MissingDatasetError(CellmendError, LookupError):
    """A table of the benchmark that is not there."""


class ResultsError(CellmendError, ValueError):
    """A results file that holds nothing to report."""


class UnknownNameError(CellmendError, ValueError):
    """An experiment or a method that does not exist."""
