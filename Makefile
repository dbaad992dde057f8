# Each of these sets up .venv first.
# `make run`: the default configuration. `make test`: every check and test.
# `make quick`: the checks and the fast unit tests. `make smoke`: a whole run on the tiny corpus.
# `make cluster-test`: runs on a SLURM cluster of one node, with faults.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# Where `make cluster-test` writes what happened.
TRANSCRIPT ?= build/cluster.md

.PHONY: run test quick smoke cluster-test check browser screenshots format lock clean

run: $(STAMP)
	$(BIN)/snakemake --cores all

test: check browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

quick: check
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" tests/unit

# In a folder of its own, so that the results of other runs stay as they are.
smoke: $(STAMP)
	$(BIN)/snakemake --cores 2 --directory build/smoke --configfile config/smoke.yaml

# As root, with Debian's packages, which are installed; otherwise skipped with the reason.
cluster-test: $(STAMP)
	@command -v slurmctld >/dev/null && command -v munged >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
	          --no-install-recommends slurmctld slurmd slurm-client munge >/dev/null; } \
	  || echo "No SLURM, and no rights to install it: apt-get install slurm-wlm munge"
	@$(BIN)/python -c "import snakemake_executor_plugin_slurm" 2>/dev/null \
	  || $(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.lock \
	       $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['cluster'])")
	TAILTABLES_CLUSTER=1 TAILTABLES_TRANSCRIPT=$(TRANSCRIPT) $(BIN)/python -m pytest -rs tests/cluster

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/snakemake --lint

# Chromium, for the tests of the report's page. Without it they are skipped, and fail where CI is set.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -qq -y --no-install-recommends \
	          chromium chromium-driver fonts-dejavu-core >/dev/null; } \
	  || echo "No Chromium, and no rights to install it: apt-get install chromium chromium-driver"

# The pictures of results/report.html in results/reference, and the figure of the README.
screenshots: $(STAMP) browser
	$(BIN)/python tests/workflow/screenshots.py results/report.html results/reference
	$(BIN)/python -m workflow.studies.headline

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
	$(BIN)/python -m methods.warm_up # compiles ahead of use
	touch $@

# After a change of versions in the environment: write down what is installed now.
lock:
	$(BIN)/pip freeze --exclude-editable | sed "s/+cpu$$//" > requirements.lock

clean:
	rm -rf .venv .snakemake build results/data results/runs results/logs
