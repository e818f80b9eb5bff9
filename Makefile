# `make help` lists the targets. Everything runs in .venv, which is created from requirements.lock on first use.

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?=
CONFIG ?= configs/quickstart.py
WORKDIR ?= runs/$(basename $(notdir $(CONFIG)))
ARGS ?=
WORKERS ?= auto

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed$(if $(EXTRAS),-$(EXTRAS))

.DEFAULT_GOAL := help
.PHONY: help setup train test check format lock bench docs docs-serve clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-10s %s\n' "$$name" "$$text"; done
	@printf '\n  Set CONFIG and WORKDIR for train, ARGS for train, test, bench and docs, EXTRAS=cuda12 or cuda13 for NVIDIA GPUs,\n'
	@printf '  PYTHON=python3.12 to choose an interpreter. Example: make train CONFIG=configs/connect_four.py\n'

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || { \
		found=$$($(PYTHON) --version 2>&1) || found="not installed"; \
		echo "error: PYTHON=$(PYTHON) is $$found; name a Python 3.11, 3.12 or 3.13, e.g. PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing into $(VENV) (about 1.8 GB; repeated only when requirements.lock or pyproject.toml changes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(EXTRAS),-c requirements.lock -e '.[$(EXTRAS)]',--no-deps -e .)
	@touch $@

setup: $(STAMP)  ## install everything into .venv

train: $(STAMP)  ## train CONFIG into WORKDIR, or resume it
	$(BIN)/alphagat train --config $(CONFIG) --workdir $(WORKDIR) $(ARGS)

test: check  ## check, then run every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 10 $(ARGS)

check: $(STAMP)  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(STAMP)  ## format, and apply automatic lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(STAMP)  ## regenerate requirements.lock from pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	printf 'jax==%s\n' 0.10.2 | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-annotate \
		--constraints - --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml

bench: $(STAMP)  ## measure the speed of every part on 1, 2, 4 and 8 devices
	$(BIN)/python benchmarks/throughput.py $(ARGS)

docs: $(STAMP)  ## build the site into build/docs; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)

docs-serve: $(STAMP)  ## serve the site and rebuild it on changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve $(ARGS)

clean:  ## delete .venv and caches, never runs/
	rm -rf $(VENV) .pytest_cache .ruff_cache build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
