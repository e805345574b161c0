"""Rules about the code itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cellmend

SOURCE = Path(cellmend.__file__).parent
READING_ORDER = [
    "settings",
    "schema",
    "tables",
    "csvtext",
    "files",
    "reading",
    "checks",
    "encoding",
    "drift",
    "likelihoods",
    "layers",
    "network",
    "training",
    "inference",
    "errors",
    "findings",
    "persistence",
    "estimator",
    "streaming",
    "charts",
    "report",
    "jobs",
    "cli",
]


def imported_modules(path: Path) -> set[str]:
    """Modules of cellmend that a file imports anywhere, by their short names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("cellmend.")}
    return found & set(READING_ORDER)


def test_every_module_has_its_place_in_the_reading_order() -> None:
    assert {path.stem for path in SOURCE.glob("*.py")} - {"__init__"} == set(READING_ORDER)


@pytest.mark.parametrize("place", range(len(READING_ORDER)), ids=READING_ORDER)
def test_a_module_imports_only_from_those_above_it(place: int) -> None:
    imported = imported_modules(SOURCE / f"{READING_ORDER[place]}.py")
    assert imported <= set(READING_ORDER[:place])


@pytest.mark.parametrize("code", ["import cellmend", "from cellmend import CellMender"])
def test_importing_does_not_import_what_is_not_needed(code: str) -> None:
    unwanted = "{'matplotlib', 'ray', 'pyspark', 'fastapi', 'flask', 'starlette', 'polars', 'lightgbm'}"
    check = f"{code}; import sys; print(sorted({unwanted} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"


def test_importing_the_package_alone_does_not_import_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import cellmend.cli, sys; print('torch' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def test_public_names_can_be_imported() -> None:
    for name in cellmend.__all__:
        assert getattr(cellmend, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Mender'"):
        cellmend.Mender  # noqa: B018
    assert set(cellmend.__all__) <= set(dir(cellmend))
