# From a fresh clone, with python3.11 and make alone:
#   make run            set up, then the pocket system on the bank, both arms
#   make test           set up, then every check and test
#   make test-models    the tests of the models, each inside its environment
#   make lock           compile requirements/*.txt anew

PYTHON ?= python3.11
BEGAN := $(shell date +%s)
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
LOCKS := $(addprefix requirements/,bootstrap.txt core.txt build.txt)
TOOLS := $(VENV)/pytest-for-models
PYTEST_FLAGS ?=
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

# A virtual environment that already has the packages of the tests is good enough to run with.
READY := $(if $(wildcard $(VENV)/.dev),$(VENV)/.dev,$(VENV)/.core)

.PHONY: setup run check test test-fast test-ray test-models lock clean

setup: $(VENV)/.dev

run: $(READY)
	@$(BIN)/torus env build pocket
	@ready=$$(date +%s); code=0; \
	$(BIN)/torus run pocket || code=$$?; \
	echo "set-up $$((ready - $(BEGAN))) s, evaluation $$(($$(date +%s) - ready)) s"; \
	exit $$code

# --- checks and tests -------------------------------------------------------------------------------------------------

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

test: check test-fast test-ray

test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not ray" --ignore=tests/actors --numprocesses 2 --dist loadfile $(PYTEST_FLAGS)

test-ray: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m ray --ignore=tests/actors --ignore=tests/engine/test_nodes.py --numprocesses 2 --dist loadfile $(PYTEST_FLAGS)

# pytest stands beside the environment: what the lock holds, and nothing else, is what hosts get.
test-models: $(VENV)/.dev $(TOOLS)/.done
	@python=$$($(BIN)/python -c \
	    "from torus_ray.engine.environments import *; print(build(find_environment('pocket')).python)"); \
	HF_HUB_OFFLINE=1 PYTHONPATH=$(CURDIR):$(CURDIR)/$(TOOLS) "$$python" -m pytest -q tests/actors \
	    --ignore=tests/actors/measures --ignore=tests/actors/hf $(PYTEST_FLAGS)
	@$(BIN)/python -m tests.actors.measures.environments $(PYTEST_FLAGS)
	@$(BIN)/python -m tests.actors.hf.environments $(PYTEST_FLAGS)
	@$(BIN)/python -m pytest -q tests/engine/test_nodes.py $(PYTEST_FLAGS)

# --- set-up -----------------------------------------------------------------------------------------------------------

# uv comes first and by hash; everything after it too. Packages are exactly those of the lock, the project on top.
define install
	@echo "setting up $(VENV) from $(1)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(UV) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes $(1)
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --build-constraints requirements/build.txt --editable .
endef

$(VENV)/.core: $(LOCKS) pyproject.toml
	$(call install,requirements/core.txt)
	@touch $@

$(VENV)/.dev: $(LOCKS) requirements/dev.txt pyproject.toml
	$(call install,requirements/dev.txt)
	@touch $@ $(VENV)/.core

$(TOOLS)/.done: requirements/pytest.txt $(VENV)/.dev
	@rm -rf $(TOOLS)
	@$(UV) pip install --quiet --python $(BIN)/python --target $(TOOLS) --no-deps --require-hashes -r requirements/pytest.txt
	@touch $@

lock: $(VENV)/.dev
	@for name in bootstrap core build dev pytest benchmarks; do \
	    $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	        requirements/$$name.in --output-file requirements/$$name.txt; \
	done

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
