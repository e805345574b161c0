"""How many small errors in the code its tests catch: python benchmarks/mutation.py [--mutants 60] [--seed 0]

An operator, a comparison, a number or a condition is changed in one place, and the tests of that module run. As many
mutants of each module are drawn by seed as are asked for. What is not caught is printed: a line that no test minds, or
a change that changes nothing. Each mutant runs in a fork of this process, which has the libraries loaded.
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src", ROOT / "benchmarks/src"
TESTS = {
    "cellmend/model/likelihoods.py": ["tests/model/test_likelihoods.py", "tests/model/test_network.py"],
    "cellmend/model/suspicion.py": ["tests/model/test_suspicion.py"],
    "cellmend/model/file.py": ["tests/model/test_file.py", "tests/golden/test_golden.py"],
    "cellmend_bench/metrics.py": ["tests/benchmark/test_metrics.py"],
}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
LONGEST = 200  # processor seconds that the tests of a mutant may take; an endless loop is caught


@dataclass(frozen=True)
class Mutant:
    """One module with one change."""

    module: str
    line: int
    before: str
    after: str
    code: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=60, help="of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", choices=[*TESTS], help="only this one")
    asked = parser.parse_args()
    names = [asked.module] if asked.module else [*TESTS]
    load_libraries()
    for name in names:
        try_module(name, asked.mutants, asked.seed)


def try_module(name: str, mutants: int, seed: int) -> None:
    """Say of each mutant that is drawn whether the tests caught it, and how many they did."""
    if run(Mutant(name, 0, "", "", ast.unparse(tree_of(name)))):
        sys.exit(f"The tests of {name} must pass without a change; they do not.")
    every = list(mutants_of(name))
    places = np.random.default_rng(seed).permutation(len(every))[:mutants]
    caught = 0
    for number, place in enumerate(sorted(places.tolist()), start=1):
        mutant = every[place]
        is_caught = run(mutant)
        caught += is_caught
        said = f"{mutant.module}:{mutant.line}  {mutant.before}  →  {mutant.after}"
        print(f"{number:3} {'caught  ' if is_caught else 'SURVIVED'} {said}", flush=True)  # noqa: T201
    print(f"{name}: {caught} of {len(places)} caught, {caught / len(places):.0%}; {len(every)} possible", flush=True)  # noqa: T201


def tree_of(module: str) -> ast.Module:
    """A module of the product or of the experiments, as it is."""
    path = next(each / module for each in SOURCES if (each / module).exists())
    return ast.parse(path.read_text(encoding="utf-8"))


def mutants_of(module: str) -> Iterator[Mutant]:
    """All mutants of a module."""
    tree = tree_of(module)
    unseen = {id(inner) for node in ast.walk(tree) for outer in types_of(node) for inner in ast.walk(outer)}
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        for node in own_nodes(statement):
            if id(node) not in unseen:
                yield from changes_of(module, tree, statement, node)


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements inside it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from ast.walk(child)


def types_of(node: ast.AST) -> Iterator[ast.AST]:
    """Annotations, which no test can see."""
    for name in ("annotation", "returns"):
        if (found := getattr(node, name, None)) is not None:
            yield found


def changes_of(module: str, tree: ast.Module, statement: ast.stmt, node: ast.AST) -> Iterator[Mutant]:
    """The mutants that differ in this node."""
    before = first_line(statement)
    for name, old, new in alternatives(node):
        setattr(node, name, new)
        yield Mutant(module, statement.lineno, before, first_line(statement), ast.unparse(tree))
        setattr(node, name, old)


def alternatives(node: ast.AST) -> Iterator[tuple[str, object, object]]:
    """Attributes of a node, what they are, and what they could be in their place."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield "op", node.op, OPERATORS[type(node.op)]()
    if isinstance(node, ast.BoolOp):
        yield "op", node.op, ast.Or() if isinstance(node.op, ast.And) else ast.And()
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield "ops", node.ops, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "value", node.value, not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "value", node.value, node.value + 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "op", node.op, ast.UAdd()
    if isinstance(node, ast.IfExp):
        yield "test", node.test, ast.UnaryOp(ast.Not(), node.test)


def first_line(statement: ast.stmt) -> str:
    return ast.unparse(statement).partition("\n")[0]


def load_libraries() -> None:
    """So that a fork has them already; not cellmend, which each reads anew, nor hypothesis, which pytest rewrites."""
    import pandas
    import pyarrow.dataset
    import scipy.stats
    import sklearn.base
    import torch

    torch.set_num_threads(1)
    _ = pandas, pyarrow, scipy, sklearn


def run(mutant: Mutant) -> bool:
    """Do the tests of the module notice?"""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        for each in SOURCES:
            shutil.copytree(each, source, dirs_exist_ok=True)
        changed = source / mutant.module
        changed.write_text(mutant.code, encoding="utf-8")
        child = os.fork()
        if child == 0:
            os._exit(tests_fail(source, [str(changed), *TESTS[mutant.module]]))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def tests_fail(source: Path, tests: list[str]) -> int:
    """Runs in the fork: 0 if all tests pass."""
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(ROOT)
    sys.path[:0] = [str(source), str(ROOT)]
    quick = ["-m", "not process and not ray and not browser and not spark"]
    here = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *here, *quick, *tests]))


if __name__ == "__main__":
    main()
