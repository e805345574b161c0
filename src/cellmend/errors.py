"""What cellmend refuses: one base, and a child for each thing that can be wrong; and hints at what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CellmendError(Exception):
    """Something that cellmend refuses; its text is one sentence for the user, often with a hint."""


class SettingError(CellmendError, ValueError):
    """A setting that cannot be."""


class SchemaError(CellmendError, ValueError):
    """A schema that cannot be read, or that does not fit the table."""


class RulesError(CellmendError, ValueError):
    """Rules that cannot be read."""


class TableError(CellmendError, ValueError):
    """A table that cannot be read, or that does not fit the model."""


class FileError(CellmendError, ValueError):
    """A file that cannot be read or written as a table."""


class ModelFileError(CellmendError, ValueError):
    """A model file that cannot be read."""


class StreamError(CellmendError, ValueError):
    """A folder of results that holds something else than the run asked for."""


class DecisionError(CellmendError, ValueError):
    """A decision that cannot be read, that contradicts another, or that no cell of the table fits."""


class PatchError(CellmendError, ValueError):
    """A patch that cannot be read, or a cell that cannot hold what it should."""


class TrainingError(CellmendError, RuntimeError):
    """Training that did not end in finite weights."""


class EngineError(CellmendError, RuntimeError):
    """A cluster that is not there, or work that failed on it again and again."""


class EvaluationError(CellmendError, ValueError):
    """A share of rows that cannot be, or a baseline that nobody knows."""


class InjectionError(CellmendError, ValueError):
    """A table without a cell that an error could be put into."""


class MissingExtraError(CellmendError, ImportError):
    """An optional part that is not installed."""


class SchemaWarning(UserWarning):
    """A column is left out of the model."""


class DecisionWarning(UserWarning):
    """Decisions are about cells that a table does not have."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint at the known word that is nearest, if one is near.

    >>> did_you_mean("catgory", ["real", "category"])
    " Did you mean 'category'?"
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
