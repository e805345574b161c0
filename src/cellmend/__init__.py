"""cellmend finds the wrong cells in a table and says what they should have been.

>>> from cellmend import CellMender
>>> CellMender(epochs=5).epochs
5
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellmend.errors import CellmendError, ModelFileError, SchemaError, SchemaWarning, SettingError, TableError
    from cellmend.estimator import CellMender, load
    from cellmend.settings import PAPER
    from cellmend.table.schema import Schema

__version__ = "0.1.0"
__all__ = [
    "PAPER",
    "CellMender",
    "CellmendError",
    "ModelFileError",
    "Schema",
    "SchemaError",
    "SchemaWarning",
    "SettingError",
    "TableError",
    "load",
]

# Read by OpenMP when torch is loaded: threads that spin while they wait slow a busy machine down ten times.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

_HOMES = {"CellMender": "estimator", "PAPER": "settings", "Schema": "table.schema", "load": "estimator"}  # or errors


def __getattr__(name: str) -> Any:
    """Names are imported when first used, so that `import cellmend` and `--help` are fast."""
    if name not in __all__:
        raise AttributeError(f"module 'cellmend' has no attribute {name!r}")
    return getattr(import_module(f"cellmend.{_HOMES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
