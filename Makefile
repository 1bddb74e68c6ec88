# Two commands do everything: `make demo` and `make test`. The rest is for those who change things.
# An interpreter that is named has an environment of its own: `make test PYTHON=python3.13`.
PYTHON ?= python3
ifneq ($(origin PYTHON),file)
VERSION := $(shell $(PYTHON) -c 'import sys; print("-%d.%d" % sys.version_info[:2])')
$(if $(VERSION),,$(error $(PYTHON) does not start))
endif
VENV := .venv$(VERSION)
BIN := $(VENV)/bin

.PHONY: setup demo models fmt check test asked mutants faults attacks suites test-core test-contrib test-all test-wheel test-extras test-docs test-ray test-browser bench supply docs figures picture
.DELETE_ON_ERROR:

setup: $(VENV)/.installed

demo: setup
	@$(BIN)/pearl demo

# What tests/real asks: 98 MB, fetched once, kept in the cache folder of the user, pinned by its hash.
models: setup
	$(BIN)/python -m tests.real.fetch

fmt: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/budgets

# A worker has neighbouring tests until the other has none: each large import, each fixture once.
IN_PARALLEL := -n auto --dist worksteal

test: setup
	$(BIN)/pytest $(IN_PARALLEL)

# The core runs without `pearl/contrib`: its fast tests, in a copy of the tracked files that lacks it.
CORE := out/core

# With RECORD=1 both halves note which tests execute the lines that `make asked` has drawn; Python 3.12 and later can tell.
RECORDED := $(if $(RECORD),-p experiments.reached --reached=$(CURDIR)/out/reached)

test-core: setup
	rm -rf $(CORE) && mkdir -p $(CORE)
	git ls-files -z -- . ':!pearl/contrib' ':!tests/contrib' | xargs -0 cp --parents -t $(CORE)
	cd $(CORE) && PYTHONPATH=$$PWD $(CURDIR)/$(BIN)/python -m pytest $(IN_PARALLEL) $(RECORDED) --ignore tests/docs

# The rest of the fast tests: `test-core` and these are those of `test`.
test-contrib: setup
	$(BIN)/python -m pytest $(IN_PARALLEL) $(RECORDED) pearl/contrib tests/contrib tests/docs

# One-line changes of the lines that a change touches, BASE=COMMIT or what is not in origin/main: of 40 drawn, tests notice 85 % as far as 40 can tell.
# They are chosen by what they execute after `make asked` and the fast tests with RECORD=1, of the same PYTHON; by names of files otherwise.
mutants: setup
	$(BIN)/python experiments/mutation.py --changed $(BASE)

asked: setup
	$(BIN)/python experiments/mutation.py --changed $(BASE) --ask

# Rows of docs/reliability.md: SIZE is ci, nightly or release; ROWS=R15,R7 selects; SEED=N repeats a run;
# FIGURES=docs/reliability.json keeps its figures for `make docs`.
SIZE ?= ci
SUITE = $(BIN)/pytest $(IN_PARALLEL) --size $(SIZE) $(if $(filter-out ci,$(SIZE)),--timeout 0) $(if $(ROWS),--rows $(ROWS)) $(if $(SEED),--seed $(SEED)) $(if $(FIGURES),--figures $(FIGURES))

faults attacks: setup
	$(SUITE) tests/$@

# Both at once: the last long rows of one leave no core idle.
suites: setup
	$(SUITE) tests/faults tests/attacks

# Slow tests as well, those of large packages, those with a real model where `make models` has fetched it,
# and property-based tests with all their examples.
test-all: $(VENV)-all/.installed
	$(VENV)-all/bin/python -m pytest $(IN_PARALLEL) --hypothesis-profile=thorough -m "slow or not slow"

# What users install: the wheel, without extras, in an environment that has nothing else.
test-wheel: setup
	rm -rf out/wheel $(VENV)-wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir out/wheel .
	$(PYTHON) -m venv $(VENV)-wheel
	.ci/install $(VENV)-wheel --quiet out/wheel/*.whl
	$(BIN)/pytest tests/test_installed.py --installed $(VENV)-wheel

test-extras: test-docs test-ray

# Tests that need these packages, and no others: those are run without.
test-ray: $(VENV)-ray/.installed
	$(VENV)-ray/bin/python -m pytest -m "slow or not slow" -k ray tests/contracts/test_executors.py tests/cli/test_working_folder.py
	$(VENV)-ray/bin/python -m pytest -m "slow or not slow" tests/contrib/cluster

test-docs: $(VENV)-docs/.installed
	$(VENV)-docs/bin/python -m pytest -m "slow or not slow" tests/docs/test_site.py tests/docs/test_service.py

# Pages in Chromium, which the system has to bring: apt-get install chromium.
IN_BROWSER := $(VENV)-browser/bin/python -m pytest -n 2 --dist loadfile -m "slow or not slow" tests/browser

test-browser: $(VENV)-browser/.installed
	$(IN_BROWSER)

# What PEARL costs beside its peers, as one table: some minutes, most of them of valgrind where it is installed.
bench: setup
	$(BIN)/python experiments/bench/table.py

# Bill of materials, known weaknesses, licences, and a wheel that is built twice: before a release.
supply: $(VENV)-supply/.installed
	.ci/supply $(VENV)-supply

# The pages that are made from the program, then the site: nothing is fetched, a warning is an error.
docs: $(VENV)-docs/.installed
	$(BIN)/python docs/make_cli_page.py
	$(BIN)/python docs/make_grammar_tables.py
	$(BIN)/python docs/make_plan_page.py
	$(BIN)/python docs/make_results_schema.py
	$(BIN)/python docs/make_reliability_page.py
	$(BIN)/python docs/make_figures_page.py
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/python -m mkdocs build --quiet --config-file docs/site/mkdocs.yml
	@echo "the site: out/site/index.html"

# Figures of docs/figures.md: runs what can run here, renews the values of docs/figures.toml and makes the page. CHECK=1 only compares, and
# fails where a figure is stale: before a release, by hand. ONLY="Retrieval" takes one section, DATA the folder of the data sets.
figures: setup
	$(BIN)/python docs/make_figures_page.py $(if $(CHECK),--check,--run) $(if $(ONLY),--only "$(ONLY)") $(if $(DATA),--data "$(DATA)")

# The pictures of the docs, anew, after a change that pages are meant to show.
picture: $(VENV)-browser/.installed
	$(VENV)-browser/bin/python docs/make_picture.py

# Environments, of the versions in uv.lock. Those of the large extras lie on top of the usual one: few need
# them, and `make demo` stays short. Byte code is written as modules are imported: most never are.
$(VENV)-all/.installed: private WHAT := --editable ".[data,llamacpp]" --group large
$(VENV)-ray/.installed: private WHAT := --editable ".[ray]" --group columns
$(VENV)-browser/.installed: private WHAT := --group browser
$(VENV)-docs/.installed: private WHAT := --group docs
$(VENV)-supply/.installed: private WHAT := --editable ".[cloud,data,llamacpp,lsp,ocr,office,pdf-tables,pictures]" --group supply
ON_TOP := $(VENV)-all/.installed $(VENV)-ray/.installed $(VENV)-browser/.installed $(VENV)-docs/.installed $(VENV)-supply/.installed
$(ON_TOP): $(VENV)/.installed
	$(PYTHON) -m venv $(@D)
	ls -d $(CURDIR)/$(VENV)/lib/python*/site-packages | sed 's/.*/import site; site.addsitedir("&")/' >$$(ls -d $(@D)/lib/python*/site-packages)/below.pth
	.ci/install $(@D) --quiet $(WHAT)
	@touch $@

$(VENV)/.installed: pyproject.toml uv.lock
	$(PYTHON) -m venv $(VENV)
	.ci/install $(VENV) --quiet --editable ".[eval]" --group dev
	@touch $@
