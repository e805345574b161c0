# Every target sets up .venv by itself. `make demo` and `make test` are all that is needed.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint bench clean

demo: .venv/demo-ready
	$(BIN)/cellmend demo --force

test: .venv/ready
	$(BIN)/python -m pytest

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python benchmarks/wine.py

clean:
	rm -rf .venv build dist cellmend-demo .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo-ready: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Setting up .venv (a few minutes the first time)" >&2
	$(INSTALL) --editable .
	touch $@

.venv/ready: .venv/demo-ready
	$(INSTALL) --editable ".[dev]"
	touch $@
