# Two commands: `make run` serves the app, `make test` runs the tests. Everything else is for people who work on it.
.PHONY: run dev test test-all lint format check chromium clean
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

VENV ?= .venv
PORT ?= 8501
ADDRESS ?= localhost
PY := $(VENV)/bin/python
STREAMLIT = $(PY) -m streamlit run app.py --server.port=$(PORT) --server.address=$(ADDRESS)

help:
	@echo "make run    install what is missing, then serve the app on http://localhost:$(PORT) (PORT=8600 make run for another port)"
	@echo "make test   install what is missing, then run every test but the slow and the GPU ones, browser tests included"
	@echo "make test-all, make lint, make format, make check, make dev, make chromium: see CONTRIBUTING.md"

$(VENV)/bin/python:
	@for p in $${PYTHON:-} python3 python3.13 python3.12 python3.11; do \
	  if command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$p; break; fi; \
	done; \
	if [ -z "$${found:-}" ]; then echo "MERIT Explorer needs Python 3.11 or newer and found none. Install one, or say where it is: PYTHON=/path/to/python3.11 make run" >&2; exit 1; fi; \
	echo "Making $(VENV) with $$($$found --version) ..."; \
	$$found -m venv $(VENV) || { rm -rf $(VENV); echo "Python could not make a virtual environment. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }

# Stamps are written only after pip succeeded, so an interrupted install is taken up again.
$(VENV)/.installed: requirements.txt | $(VENV)/bin/python
	@echo "Installing the packages of requirements.txt: torch, transformers, streamlit, lancedb and what they need."
	@echo "The first time this takes minutes; several GB may be downloaded. Interrupt and start again as you like."
	@$(PY) -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(PY) -m pip install --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.installed
	@echo "Installing what the tests need: pytest, hypothesis, playwright, ruff, mypy."
	@$(PY) -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

run: $(VENV)/.installed
	@echo "Serving on http://$(ADDRESS):$(PORT) - the page opens at once and shows the model files arriving. Stop with Ctrl-C."
	@exec $(STREAMLIT)

dev: $(VENV)/.installed-dev
	@exec $(STREAMLIT) --server.fileWatcherType=auto --server.runOnSave=true

chromium: $(VENV)/.installed-dev
	@$(PY) tests/browser/get_chromium.py

test: $(VENV)/.installed-dev chromium
	@$(PY) -m pytest -m "not slow and not gpu"

test-all: $(VENV)/.installed-dev chromium
	@$(PY) -m pytest -m "not gpu"

lint: $(VENV)/.installed-dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: $(VENV)/.installed-dev
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

check: lint test

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
