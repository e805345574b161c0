"""cellmend finds the wrong cells in a table and says what they should have been.

>>> from cellmend import CellMender
>>> CellMender(epochs=5).epochs
5
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellmend.estimator import CellMender, load
    from cellmend.persistence import ModelFileError
    from cellmend.schema import Schema, SchemaError, SchemaWarning
    from cellmend.settings import PAPER, SettingError
    from cellmend.tables import TableError

__version__ = "0.1.0"
__all__ = [
    "PAPER",
    "CellMender",
    "ModelFileError",
    "Schema",
    "SchemaError",
    "SchemaWarning",
    "SettingError",
    "TableError",
    "load",
]

_HOMES = {
    "CellMender": "estimator",
    "PAPER": "settings",
    "load": "estimator",
    "ModelFileError": "persistence",
    "Schema": "schema",
    "SchemaError": "schema",
    "SchemaWarning": "schema",
    "SettingError": "settings",
    "TableError": "tables",
}


def __getattr__(name: str) -> Any:
    """Names are imported when first used, so that `import cellmend` and `--help` are fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cellmend' has no attribute {name!r}")
    return getattr(import_module(f"cellmend.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
