# Each target makes the virtual environment that it needs, once, from the lock files; after that no network is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILED := JAX_COMPILATION_CACHE_DIR=$(CURDIR)/$(VENV)/compiled JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help test test-long test-browser lint types types-of-source types-of-tests validity mutants demo wheel bench docs pictures tools \
	lock clean

help:
	@echo "make demo   the charging game on real prices, solved, certified and reported"
	@echo "make test   lint, format, types, tests"
	@echo "make test-long  the tests that make test leaves out: at most 40 minutes"
	@echo "make test-browser  the report page in headless Chromium, which must be installed"
	@echo "make wheel  dist/epszero-….whl and .tar.gz, for pip"
	@echo "make bench  speed, side by side with peers"
	@echo "make validity  how often each bound and certificate misses, and make mutants: about two hours"
	@echo "make mutants  do the tests notice a wrong sign in a bound? about an hour"
	@echo "make docs   build the documentation into site/"
	@echo "make pictures  draw docs/first-screen.png anew"
	@echo "make tools  everything in $(VENV), pre-commit too"
	@echo "make lock   pin the newest versions that fit (needs a package index)"
	@echo "make clean  remove whatever the others made"

test: lint types
	OPENBLAS_NUM_THREADS=1 $(COMPILED) $(BIN)/python -m pytest -n 2 --dist loadfile

test-long: $(VENV)/.ready
	OPENBLAS_NUM_THREADS=1 $(COMPILED) $(BIN)/python -m pytest -n 2 --dist loadfile -m long

test-browser: $(VENV)/.browser
	@command -v chromium > /dev/null || { echo "test-browser: chromium is not installed. Install Debian's package chromium." >&2; exit 1; }
	$(BIN)/python -m pytest tests/browser/page_in_chromium.py

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	@$(MAKE) --no-print-directory --jobs 2 --output-sync types-of-source types-of-tests

types-of-source:
	$(BIN)/basedpyright --pythonpath $(BIN)/python

types-of-tests:
	$(BIN)/basedpyright --pythonpath $(BIN)/python --project tests/pyrightconfig.json

validity: $(VENV)/.ready
	OPENBLAS_NUM_THREADS=1 $(COMPILED) $(BIN)/python -m tests.validity.full
	OPENBLAS_NUM_THREADS=1 EPSZERO_ATTACKS=50 $(COMPILED) $(BIN)/python -m pytest -n 2 --dist loadfile tests/attacks
	@$(MAKE) --no-print-directory mutants

mutants: $(VENV)/.tools
	$(COMPILED) $(BIN)/python tools/mutants.py --write

demo: $(VENV)/.ready
	$(BIN)/epszero demo

wheel: $(VENV)/.ready
	rm -rf dist
	$(BIN)/python -m hatchling build --target sdist --target wheel
	@echo "pip install $$(ls dist/*.whl)"

bench: $(VENV)/.tools
	$(BIN)/python -m benchmarks

docs: $(VENV)/.tools
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

pictures: $(VENV)/.ready
	$(COMPILED) $(BIN)/python tools/pictures.py

tools: $(VENV)/.tools

lock: $(VENV)/.ready
	$(BIN)/python tools/lock.py

clean:
	rm -rf $(VENV) site dist build .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.locked: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11 …" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -qq --no-compile --no-deps --requirement requirements.lock
	@touch $@

$(VENV)/.ready: $(VENV)/.locked pyproject.toml
	$(PIP) install -qq --no-deps --no-build-isolation --editable .
	@$(PIP) check
	@touch $@

$(VENV)/.tools: $(VENV)/.ready requirements-tools.lock
	$(PIP) install -qq --no-deps --requirement requirements-tools.lock
	@$(PIP) check
	@touch $@

$(VENV)/.browser: $(VENV)/.ready requirements-browser.lock
	$(PIP) install -qq --no-deps --requirement requirements-browser.lock
	@$(PIP) check
	@touch $@
