"""What `benchmarks/nightly.py` measures: a model of one month that judges the next."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.fixture(scope="module")
def module(pytestconfig: pytest.Config) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(pytestconfig.rootpath)
        return importlib.import_module("benchmarks.nightly")


@pytest.mark.slow
@pytest.mark.parametrize("spoiled_first", [False, True])
def test_months_that_go_on_are_not_harmed_and_their_errors_are_found(module: Any, spoiled_first: bool) -> None:
    clean, dirty = module.harm(seed=4, rows=300, months=3, spoiled_first=spoiled_first)
    assert clean.changed == dirty.changed == 0
    assert clean.flagged == 0, clean.reasons
    assert dirty.flagged <= 1, dirty.reasons
    assert dirty.found >= 0.6 * dirty.errors
