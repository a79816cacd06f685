PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
EXTRACT := --keywords say:2 --keywords say_plural:2,3 --keywords lazy --no-default-keywords
LOCALES := app/locale

.PHONY: run test test-all test-postgres chaos conformance check bench bench-routing soak format translations clean
.DELETE_ON_ERROR:

run: $(VENV)/installed
	@exec $(BIN)/recado serve

# What is compiled is kept, whatever the machine says: pytest's own copies of the tests and each process that they start.
test test-all test-postgres: export PYTHONDONTWRITEBYTECODE :=

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not slow"

test-all: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 3 --dist worksteal

# What decides on rows, on PostgreSQL: folders that have a database of their own, and chats through whole servers.
ON_POSTGRES := tests/store tests/turns tests/schedule tests/channels tests/memory tests/console $(addprefix tests/test_, \
  consent.py choices.py questions.py scheduled_turns.py handover.py)

test-postgres: $(VENV)/installed-test
	$(BIN)/python -m tests.databases $(BIN)/python -m pytest -n 3 --dist worksteal -m "not slow or both" $(ON_POSTGRES)

# Workers that are killed, frozen and cut off while a thousand people write: see docs/chaos.md.
chaos: $(VENV)/installed-test
	$(BIN)/python -m tests.chaos.workers $(CHAOS)

# Both sides of MCP before its own suite, which is installed once: see docs/mcp.md.
conformance: $(VENV)/installed-test
	$(BIN)/python -m tests.conformance

check: $(VENV)/installed-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed-check
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# Figures beside their baselines, all in one run: see docs/performance.md.
bench: $(VENV)/installed-test $(VENV)/installed-bench
	$(BIN)/python -m bench $(BENCH)

# How well tools are found, on the messages in bench/routing and public sets: see docs/routing.md.
bench-routing: $(VENV)/installed
	$(BIN)/python -m bench.routing

# What takes too long for each change: a million messages moved to PostgreSQL and back, and a hundred thousand that
# three workers answer, or as many as SOAK says: see docs/performance.md.
soak: $(VENV)/installed-test $(VENV)/installed-bench
	$(BIN)/python -m bench.moving $(MOVED)
	$(BIN)/python -m bench.soak $(SOAK)

# Collects our sentences into the catalogues, then compiles them: see docs/translating.md.
translations: $(VENV)/installed
	@mkdir -p build
	$(BIN)/pybabel --quiet extract $(EXTRACT) --mapping-file $(LOCALES)/babel.cfg --no-location --sort-output --project Recado --output build/recado.pot app
	@for language in es pt; do \
	  verb="update --no-fuzzy-matching --ignore-obsolete"; test -f $(LOCALES)/$$language/LC_MESSAGES/recado.po || verb=init; \
	  $(BIN)/pybabel --quiet $$verb --domain recado --input-file build/recado.pot --output-dir $(LOCALES) --locale $$language || exit 1; \
	done
	$(BIN)/pybabel compile --domain recado --directory $(LOCALES) --statistics

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find app skills tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/installed: pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV) (once, about a minute) …"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	@echo "Installing what 'make $*' needs into $(VENV) (once) …"
	@$(PIP) install --editable '.[$*]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Recado needs Python 3.11 or newer; point to one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "On Debian and Ubuntu: apt install python3-venv"; exit 1; }
