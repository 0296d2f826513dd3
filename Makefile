# Everything is set up in .venv; nothing outside this directory is touched but the caches of pip and of the kernels, and,
# where root runs the tests, the programs of the system that they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Without compiled bytecode every process of a test compiles the sources, and every run rewrites the tests anew.
unexport PYTHONDONTWRITEBYTECODE

# Each worker takes neighbouring tests, which share fixtures and a session of Spark, until it has none left.
WORKERS := --numprocesses auto --dist worksteal

.PHONY: help app demo system-packages quick test test-all test-versions docs lint format bench figures reproduce reproduce-full clean

help:
	@echo "make demo      anonymize a generated census-like table, audit, measure and report it; files in demo/"
	@echo "make app       open the local page on the export of an invented hospital; files in app-demo/"
	@echo "make quick     some cases of every test that needs nothing but Python; about a minute"
	@echo "make test      all tests but the slow ones; needs Chromium, PostgreSQL, Java and npm"
	@echo "make test-all  all tests, with many more random examples (hours)"
	@echo "make test-versions  the tests of make quick with the lowest versions that are declared, and with the newest"
	@echo "make docs      run the blocks of README and docs, and rewrite what the pages show"
	@echo "make lint      style, types and the direction of imports"
	@echo "make format    rewrite the sources in the house style"
	@echo "make bench     measure speed, memory and loss, record the figures and write them into the docs (long)"
	@echo "make figures   write the recorded figures into the docs"
	@echo "make reproduce       run the figures of the papers in reduced sizes, and write docs/papers.md (ten minutes)"
	@echo "make reproduce-full  the same in the papers' sizes (hours)"
	@echo "make clean     remove what these commands made"

$(VENV)/ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Sfumato needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv does not work; on Debian: apt-get install python3-venv"; exit 1; }
	@touch $@

$(VENV)/installed: $(VENV)/ready pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

# The peers pin old versions of numpy and pandas, so they live in an environment of their own.
$(VENV)-peers/installed: benchmarks/peers.txt
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip --disable-pip-version-check install --quiet --requirement benchmarks/peers.txt
	@touch $@

# What is declared at its lowest; and what is newest, without Spark, which does not allow the newest pandas. Each time
# anew: the newest of yesterday is not the newest.
$(VENV)-lowest $(VENV)-newest: FORCE
	$(PYTHON) -m venv --clear $@

FORCE:

demo: $(VENV)/installed
	$(BIN)/sfumato demo --directory demo

$(VENV)/installed-app: $(VENV)/installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[app,excel]'
	@touch $@

app: $(VENV)/installed-app
	@mkdir -p app-demo
	@test -e app-demo/export.csv || $(BIN)/sfumato generate hospital -n 5000 --flaws -o app-demo/export.csv
	@test -e app-demo/export.xlsx || $(BIN)/sfumato generate hospital -n 5000 --flaws -o app-demo/export.xlsx
	$(BIN)/sfumato app app-demo $(APP)

# Programs that tests need and pip does not bring, each with the package of Debian that does.
PROGRAMS := chromium:chromium npm:npm pg_lsclusters:postgresql java:openjdk-17-jre-headless

system-packages:
	@scripts/system-packages $(PROGRAMS)

quick: $(VENV)/installed-dev
	$(BIN)/python -m pytest --quick $(WORKERS)

test: $(VENV)/installed-dev system-packages
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -m 'not slow' $(WORKERS)

test-all: $(VENV)/installed-dev system-packages
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest $(WORKERS)

test-versions: $(VENV)-lowest $(VENV)-newest
	scripts/lowest-versions > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint $(VENV)-lowest/constraints.txt --editable '.[spark,test]'
	$(VENV)-newest/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[test]'
	$(VENV)-lowest/bin/python -m pytest --quick $(WORKERS)
	$(VENV)-newest/bin/python -m pytest --quick $(WORKERS)

docs: $(VENV)/installed-dev
	$(BIN)/python -m pytest tests/docs/test_blocks.py tests/docs/test_tutorial.py --write-docs

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-dev $(VENV)-peers/installed
	$(BIN)/python -m benchmarks --peers $(VENV)-peers/bin/python $(BENCH)

figures: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks docs

# Which figures: make reproduce REPRODUCE=ghinita-12
reproduce: $(VENV)/installed-dev
	$(BIN)/python -m reproduce $(REPRODUCE)

reproduce-full: $(VENV)/installed-dev
	$(BIN)/python -m reproduce --profile full $(REPRODUCE)

clean:
	rm -rf $(VENV) $(VENV)-peers $(VENV)-lowest $(VENV)-newest demo app-demo build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
