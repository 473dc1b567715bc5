# make demo: the sample table, a worked policy, private answers, a report.   make test: everything that is checked.
# make example NAME=income: one of the complete jobs in examples/.   make examples: all of them.
# All make .venv and install what they need. Another Python: make test PYTHON=python3.13

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS ?= constraints.txt
WORKERS ?= 2
EXAMPLES := income trips stays household losses

.PHONY: demo example examples test test-slow test-oldest coverage test-mutation lint format assurance bench audit-deps clean

demo: $(VENV)/.installed
	$(BIN)/tetraodon demo

# The people are made up (or long published), so every run starts a new account. With a real one that would forget what was promised.
example: $(VENV)/.installed
	@test -f "examples/$(NAME)/release.toml" || { echo "Name one: make example NAME=income (of $(EXAMPLES))"; exit 2; }
	cd "examples/$(NAME)" && rm -rf published *.ledger *.ledger-journal && export PATH="$(abspath $(BIN)):$$PATH" && \
		python make_data.py && tetraodon release release.toml && if [ -f editions.sh ]; then sh editions.sh; fi

examples:
	for name in $(EXAMPLES); do $(MAKE) example NAME=$$name || exit; done

# One thread of linear algebra for each worker: two workers with two threads each wait for one another.
test: $(VENV)/.tested lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-slow: $(VENV)/.tested
	TETRAODON_RANDOM=1 $(BIN)/python -m pytest -n $(WORKERS) -m slow

# The oldest versions that pyproject.toml admits, in an environment of its own.
test-oldest:
	$(MAKE) VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt .venv-oldest/.tested
	OPENBLAS_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n $(WORKERS) -m "not slow"

# Line and branch coverage of the code that decides what is private; fails below 95 % of any part.
coverage: $(VENV)/.tested
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/mutation/covered.py

# 300 small changes of that code, one at a time, in a copy: which ones no test notices; writes docs/mutation.md. Goes on where it was stopped,
# as long as the changed files are as they were.
test-mutation: $(VENV)/.tested
	OPENBLAS_NUM_THREADS=1 nice $(BIN)/python tests/mutation/run.py --workers $(WORKERS)

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.tested
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Every audit with many draws; writes docs/assurance.md.
assurance: $(VENV)/.tested
	$(BIN)/python tests/audit/assurance.py

bench: $(VENV)/.tested
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/cdf.py
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python -m benchmarks.blowfish.figure2
	$(BIN)/python -m benchmarks.blowfish.pairs
	$(BIN)/python benchmarks/counts.py
	$(BIN)/python -m benchmarks.channels.least_leaking --only 10 20
	$(BIN)/python -m benchmarks.channels.least_distortion --only 5 7
	$(BIN)/python benchmarks/channels/apply.py
	$(BIN)/python -m benchmarks.learned.rounds --out $(VENV)/bench
	$(BIN)/python -m benchmarks.microdata.compare --only made-up --out $(VENV)/bench
	$(BIN)/python -m benchmarks.microdata.scaling --only rows --rows 10000 100000 1000000 --out $(VENV)/bench

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e .
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[test]"
	@touch $@

# Known vulnerabilities of what is installed, by pip-audit in an environment of its own. It tells, and never fails.
audit-deps: $(VENV)/.installed
	@test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && \
		.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; }
	@$(BIN)/python -m pip list --format=freeze --exclude-editable --disable-pip-version-check > .venv-audit/installed.txt
	-.venv-audit/bin/pip-audit -r .venv-audit/installed.txt --no-deps --disable-pip --progress-spinner off

clean:
	rm -rf .venv .venv-oldest .venv-audit tetraodon-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutation
