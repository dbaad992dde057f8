# `make run`: set up and run the default configuration. `make test`: set up and check everything.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: run test check format lock clean

run: $(STAMP)
	$(BIN)/snakemake --cores all

test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/snakemake --lint

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/snakefmt Snakefile workflow/rules

# A new environment whenever the lock changes.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11.4 or newer is needed: make PYTHON=/path/to/python3" if sys.version_info < (3, 11, 4) else 0)'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# After a change of versions in the environment: write down what is installed now.
lock:
	$(BIN)/pip freeze --exclude-editable | sed "s/+cpu$$//" > requirements.lock

clean:
	rm -rf .venv .snakemake results/data results/runs results/logs
