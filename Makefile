# Two commands do everything: `make demo` and `make test`. The rest is for those who change things.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo fmt check test bench docs
.DELETE_ON_ERROR:

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[data,eval,pictures]" --group dev
	@touch $@

demo: setup
	@$(BIN)/pearl demo story
	@echo
	@$(BIN)/pearl demo consultation

fmt: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup
	$(BIN)/pytest -n auto

bench: setup
	$(BIN)/python experiments/bench/startup.py
	$(BIN)/python experiments/bench/makespan.py --quick
	$(BIN)/python experiments/bench/prefix.py --quick
	$(BIN)/python experiments/bench/overhead.py --quick
	$(BIN)/python experiments/bench/killed_runs.py --kills 20

docs: setup
	$(BIN)/python docs/make_cli_page.py
