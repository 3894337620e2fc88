# make run        simulate the paper's robots and write its tables and figures to results/paper; STUDY=hop runs another
#                 study of examples/studies, STUDY=all runs all of them
# make test       run the fast tests; make test-slow runs the slow ones
# make bytecode   compile the tests, and what they import, to bytecode, before several processes do so
# make lint       check style, formatting, import layers and types; make format formats the code
# make mutants    list single-line changes of the numerical code that no test detects; MUTANTS="--number 20"
# make docs       build the documentation site in results/site
# make bench      measure speed and accuracy beside Pinocchio and MuJoCo, and keep the record in benchmarks/history;
#                 BENCH="--compare" compares with the last run, BENCH="--help" lists the options
# make bench-contact  published tests of rigid contact beside MuJoCo, Drake and Pinocchio; CONTACT="--help" lists them
# make replay-page  bundle the program of replays, legged/viewer/web, after a change of it
# make clean      delete .venv, results/ and build products
#
# Each target first installs its dependencies in .venv; nothing is installed outside of it.

VENV ?= .venv
RESULTS ?= results
STUDY ?= paper
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
	$(name) -c 'import sys, venv, ensurepip; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Modules are compiled to bytecode by their first import, and kept: most of those that are installed are never imported.
unexport PYTHONDONTWRITEBYTECODE

# Recreate a virtual environment whose interpreter has been moved or upgraded.
ifneq ($(shell $(BIN)/python -c 'print("fine")' 2>/dev/null),fine)
$(shell rm -f $(VENV)/made $(VENV)/*.stamp)
endif

.PHONY: run test test-slow mutants docs lint types strict-types format bench bench-contact replay-page bytecode clean

run: $(VENV)/run.stamp
	$(BIN)/python -m examples.studies $(STUDY) --output $(RESULTS)/$(STUDY)

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n 2 --durations 15

bytecode: $(VENV)/test.stamp
	$(BIN)/python -m pytest --collect-only -qq >/dev/null

test-slow: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n 2 -m slow --timeout 3600

mutants: $(VENV)/test.stamp
	$(BIN)/python tests/mutants.py --folder $(RESULTS)/mutants $(MUTANTS)

lint: $(VENV)/lint.stamp
	$(BIN)/python -m ruff check --output-format concise
	$(BIN)/python -m ruff format --check
	$(BIN)/lint-imports --no-cache
	$(MAKE) --no-print-directory -j 2 types strict-types

types: $(VENV)/lint.stamp
	$(BIN)/python -m pyright --pythonpath $(BIN)/python

strict-types: $(VENV)/lint.stamp
	$(BIN)/python tests/project/strict_types.py

format: $(VENV)/lint.stamp
	$(BIN)/python -m ruff check --fix --output-format concise
	$(BIN)/python -m ruff format

docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -d $(RESULTS)/site.doctrees docs $(RESULTS)/site
	@echo "$(RESULTS)/site/index.html"

bench: $(VENV)/test.stamp
	$(BIN)/python -m benchmarks --output $(RESULTS)/benchmarks $(BENCH)

bench-contact: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks.contact --output $(RESULTS)/contact $(CONTACT)

replay-page: $(VENV)/run.stamp
	$(INSTALL) --no-deps --editable .

clean:
	rm -rf $(VENV) $(RESULTS) build dist docs/reference/api *.egg-info

# One stamp file for each set of packages; a change of pyproject.toml installs them again.
$(VENV)/run.stamp: pyproject.toml | $(VENV)/made
	$(INSTALL) --editable .
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(VENV)/made
	$(INSTALL) --editable '.[test]'
	@touch $@ $(VENV)/run.stamp

$(VENV)/bench.stamp: pyproject.toml | $(VENV)/made
	$(INSTALL) --editable '.[bench]'
	@touch $@ $(VENV)/run.stamp $(VENV)/test.stamp

$(VENV)/lint.stamp: pyproject.toml | $(VENV)/made
	$(INSTALL) --editable '.[lint,test]'
	@touch $@ $(VENV)/run.stamp $(VENV)/test.stamp

$(VENV)/docs.stamp: pyproject.toml | $(VENV)/made
	$(INSTALL) --editable '.[docs]'
	@touch $@ $(VENV)/run.stamp

$(VENV)/made:
	@test -n "$(PYTHON)" || { echo "needs Python 3.11 or later with its venv module; set PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@
