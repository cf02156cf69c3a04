# Everything happens in .venv; `make help` lists what can be done.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test check format unit pictures dist bench clean

help: ## list the targets
	@grep -hE '^[a-z.]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dialeval needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install --quiet --constraint constraints.txt --editable '.[models,augment,web]'
	@touch $@

.venv/.installed-dev: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install --quiet --constraint constraints.txt --editable '.[models,augment,train,web,postgres,ray,dev]'
	@touch $@ .venv/.installed

demo: .venv/.installed ## install, fetch the models, score the example, probe a small bot, show it
	@$(BIN)/dialeval models get --preset default --quiet
	@$(BIN)/dialeval score examples/four-bots.jsonl -m judge -m bleu -m bertscore -m pmi -m mme-crs \
	  -o runs/demo --overwrite
	@echo
	@$(BIN)/dialeval compare runs/demo -m judge --quiet
	@$(BIN)/dialeval report runs/demo -o runs/demo.html --overwrite --quiet
	@echo
	@$(BIN)/dialeval probe smollm2-135m --queries examples/queries.txt --limit 3 \
	  --set max_new_tokens=40 -o runs/demo-probe --quiet
	@$(BIN)/dialeval score runs/demo-probe -m diversity -m consistency -o runs/demo-probe-scores \
	  --overwrite --quiet > /dev/null
	@$(BIN)/dialeval show runs/demo-probe-scores --top 1
	@echo
	@echo "The scores are in runs/demo; open runs/demo.html to look at them."
	@echo "Next: source .venv/bin/activate && dialeval --help"

test: check unit ## everything that must pass: style, types, tests

check: .venv/.installed-dev ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: .venv/.installed-dev ## the tests alone; fetches the embedded models
	@$(BIN)/dialeval models get --preset default --quiet
	$(BIN)/python -m pytest -n 2

format: .venv/.installed-dev ## reformat the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pictures: .venv/.installed-dev ## the pictures of README and docs, by Chromium
	@$(BIN)/dialeval models get --preset default --quiet
	$(BIN)/python scripts/make_pictures.py

dist: .venv/.installed-dev ## build a wheel that works alone
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist

bench: .venv/.installed-dev ## speed on this machine, against other packages; more in benchmarks/
	@$(BIN)/dialeval models get --preset default --quiet
	$(BIN)/python benchmarks/peers.py --example
	$(BIN)/python benchmarks/limits.py

clean: ## remove the environment and everything built
	rm -rf .venv build dist runs src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
