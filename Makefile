# make demo: the sample table, a worked policy, private answers, a report.   make test: everything that is checked.
# make example NAME=income: one of the complete jobs in examples/.   make examples: all of them.
# All make .venv and install what they need. Another Python: make test PYTHON=python3.13

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS ?= constraints.txt
WORKERS ?= 2
EXAMPLES := income trips stays household losses

.PHONY: demo example examples test test-slow test-oldest lint format bench clean

demo: $(VENV)/.installed
	$(BIN)/tetraodon demo

# The people are made up (or long published), so every run starts a new account. With a real one that would forget what was promised.
example: $(VENV)/.installed
	@test -f "examples/$(NAME)/release.toml" || { echo "Name one: make example NAME=income (of $(EXAMPLES))"; exit 2; }
	cd "examples/$(NAME)" && rm -rf published *.ledger *.ledger-journal && export PATH="$(abspath $(BIN)):$$PATH" && \
		python make_data.py && tetraodon release release.toml && if [ -f editions.sh ]; then sh editions.sh; fi

examples:
	for name in $(EXAMPLES); do $(MAKE) example NAME=$$name || exit; done

test: $(VENV)/.tested lint
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-slow: $(VENV)/.tested
	TETRAODON_RANDOM=1 $(BIN)/python -m pytest -n $(WORKERS) -m slow

# The oldest versions that pyproject.toml admits, in an environment of its own.
test-oldest:
	$(MAKE) VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt .venv-oldest/.tested
	.venv-oldest/bin/python -m pytest -n $(WORKERS) -m "not slow"

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.tested
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

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

clean:
	rm -rf .venv .venv-oldest tetraodon-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
