"""Rules about the code itself."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import cellmend

SOURCE = Path(cellmend.__file__).parent
ORDER = (
    "errors",
    "settings",
    "progress",
    "files",
    "table",
    "posterior",
    "decisions",
    "model",
    "findings",
    "rules",
    "estimator",
    "streaming",
    "engines",
    "report",
    "jobs",
    "large_jobs",
    "patch",
    "evaluation",
    "console",
    "options",
    "review",
    "cli",
)
OUTSIDERS = (
    "rules",
    "streaming",
    "engines",
    "report",
    "jobs",
    "large_jobs",
    "patch",
    "review",
    "evaluation",
    "console",
    "cli",
)  # use what others offer to all
LONGEST = 500  # lines of a module
MAY_BE_LONGER = {
    "model/likelihoods.py": "the kinds of columns side by side, each a few lines of the same form",
    "files/csvtext.py": "one reader that keeps every byte",
}
MOST_PARAMETERS = 6
MAY_TAKE_MORE = {
    "estimator.CellMender.__init__": "scikit-learn wants every setting as a keyword",
}
OFFERED = {"_replace", "_asdict", "_fields"}  # names of named tuples that begin with an underscore for another reason

MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
    if path != SOURCE / "__init__.py"
}  # by their names without "cellmend."
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_of(name: str) -> str | None:
    """The module that a dotted name is, or lies in.

    >>> module_of("cellmend.errors.CellmendError"), module_of("cellmend.CellMender"), module_of("numpy.ndarray")
    ('errors', 'estimator', None)
    """
    first, _, own = name.partition(".")
    if first != "cellmend" or not own:
        return None
    while own and own not in MODULES:
        own = own.rpartition(".")[0]
    return own or "estimator"  # what the package itself offers comes from there


def imports_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Dotted names that a file imports anywhere, each with the name that it gets in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from ((f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, alias.asname or alias.name) for alias in node.names)


def imported_modules(name: str) -> set[str]:
    """Modules of cellmend that a module imports anywhere."""
    found = {module_of(imported) for imported, _ in imports_of(TREES[name])}
    return {other for other in found if other is not None}


def package_of(name: str) -> str:
    return name.partition(".")[0]


# ---------------------------------------------------------------- who knows whom


def test_every_module_lies_in_one_of_the_packages() -> None:
    assert {package_of(name) for name in MODULES} <= set(ORDER)


def test_a_module_imports_only_from_packages_before_its_own() -> None:
    order = {package: place for place, package in enumerate(ORDER)}
    known = {name: {package_of(other) for other in imported_modules(name)} for name in MODULES}
    later = {name: {p for p in own if order[p] > order[package_of(name)]} for name, own in known.items()}
    assert offences(later) == {}


@pytest.mark.parametrize("package", ORDER)
def test_modules_of_a_package_do_not_import_each_other_in_a_circle(package: str) -> None:
    own = {name for name in MODULES if package_of(name) == package}
    TopologicalSorter({name: imported_modules(name) & own - {name} for name in own}).prepare()  # or a CycleError


def test_no_module_uses_an_underscore_name_of_another() -> None:
    assert offences({name: private_names(tree) for name, tree in TREES.items()}) == {}


def test_what_works_with_the_model_uses_nothing_private_of_it() -> None:
    outside = {name: private_attributes(tree) for name, tree in TREES.items() if package_of(name) in OUTSIDERS}
    reached = {
        name: {f"{of}.{attribute}" for of, attribute in own if of not in ("self", "cls", "super()")}
        for name, own in outside.items()
    }
    assert offences(reached) == {}


def private_names(tree: ast.Module) -> set[str]:
    """Names with an underscore of modules of cellmend that a file imports, or takes from one it imported."""
    imported = {short: whole for whole, short in imports_of(tree) if module_of(whole)}
    modules = {short for short, whole in imported.items() if whole.removeprefix("cellmend.") in MODULES}
    return {whole for whole in imported.values() if is_private(whole.rpartition(".")[2])} | {
        f"{of}.{name}" for of, name in private_attributes(tree) if of in modules
    }


def private_attributes(tree: ast.Module) -> set[tuple[str, str]]:
    """Of what an attribute with an underscore is taken, and its name."""
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr))
    return {(ast.unparse(node.value), node.attr) for node in attributes}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OFFERED


def offences(found: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """What was found, without the modules in which nothing was."""
    return {name: own for name, own in found.items() if own}


# ---------------------------------------------------------------- what a person reads in one sitting


def test_a_module_is_read_in_one_sitting() -> None:
    lines = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in MODULES.values()
    }
    assert {name: own for name, own in lines.items() if own > LONGEST and name not in MAY_BE_LONGER} == {}


def test_a_function_takes_few_parameters() -> None:
    taken = {
        f"{name}.{place}": parameters_of(function)
        for name, tree in TREES.items()
        for place, function in functions_in(tree)
        if not is_command(function)
    }
    assert {name: own for name, own in taken.items() if own > MOST_PARAMETERS and name not in MAY_TAKE_MORE} == {}


def functions_in(node: ast.AST, above: str = "") -> Iterator[tuple[str, Function]]:
    """Functions and methods with their places, but for those that PyTorch's differentiation calls."""
    for child in ast.iter_child_nodes(node):
        place = f"{above}{child.name}" if isinstance(child, Function | ast.ClassDef) else above.rstrip(".")
        if isinstance(child, Function):
            yield place, child
        if not (isinstance(child, ast.ClassDef) and any("autograd" in ast.unparse(base) for base in child.bases)):
            yield from functions_in(child, f"{place}." if place else "")


def parameters_of(function: Function) -> int:
    taken = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return sum(each.arg not in ("self", "cls") for each in taken)


def is_command(function: Function) -> bool:
    """Is it a command of the command line, whose parameters are its options?"""
    return any(".command(" in ast.unparse(each) for each in function.decorator_list)


# ---------------------------------------------------------------- what is imported when


@pytest.mark.process
@pytest.mark.parametrize("code", ["import cellmend", "from cellmend import CellMender"])
def test_importing_does_not_import_what_is_not_needed(code: str) -> None:
    unwanted = "{'matplotlib', 'ray', 'pyspark', 'fastapi', 'flask', 'starlette', 'polars', 'lightgbm'}"
    check = f"{code}; import sys; print(sorted({unwanted} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"


@pytest.mark.process
def test_importing_the_package_alone_does_not_import_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import cellmend.cli, sys; print('torch' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "spin"), [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)]
)
def test_threads_do_not_spin_unless_the_user_wants_it_from_python_as_from_the_command_line(given, spin) -> None:
    code = "import sys, cellmend, os; print('torch' in sys.modules, os.environ.get('GOMP_SPINCOUNT'))"
    kept = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=kept | given)  # noqa: S603
    assert done.stdout == f"False {spin}\n"


def test_public_names_can_be_imported() -> None:
    for name in cellmend.__all__:
        assert getattr(cellmend, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Mender'"):
        cellmend.Mender  # noqa: B018
    assert set(cellmend.__all__) <= set(dir(cellmend))
