# Two commands do everything: `make demo` and `make test`. Both make their own environment in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
LOCK = .ci/dev-requirements.txt

.PHONY: demo test check format lint types imports tests other-python browser golden bench binary lock pictures clean

demo: $(VENV)/.installed  ## open the terminal UI on the embedded demo cluster
	@$(BIN)/kubectl-qos --demo

test: check browser tests other-python  ## every check and every test

check: format lint types imports

$(VENV)/.installed: pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

format: $(VENV)/.installed
	$(BIN)/ruff format --check --quiet .

lint: $(VENV)/.installed
	$(BIN)/ruff check --quiet .

types: $(VENV)/.installed
	$(BIN)/mypy

imports: $(VENV)/.installed
	$(BIN)/lint-imports --no-cache

# Two for each core: half the time of a test of the UI is waiting for the screen to come to rest.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
tests: $(VENV)/.installed
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q $(LESS)

# The other supported interpreters, where they are installed; the matrix of the workflows has them all. What each
# key does and how long a monkey is borne is the same on all of them: it takes minutes, and is tried on one.
SLOW = --ignore=tests/tui/test_every_key.py --ignore=tests/tui/test_monkey.py
other-python: $(VENV)/.installed
	@for name in python3.11 python3.13; do \
	  python=$$(for found in $$name $$HOME/.pyenv/versions/$${name#python}*/bin/$$name; do \
	    $$found -c '' 2>/dev/null && echo $$found && break; done); \
	  if [ -z "$$python" ]; then echo "skipped: $$name is not installed"; continue; fi; \
	  if [ "$$($$python -c 'import sys; print(sys.version_info[:2])')" = \
	       "$$($(BIN)/python -c 'import sys; print(sys.version_info[:2])')" ]; then continue; fi; \
	  echo "tests on $$python"; \
	  $(MAKE) --no-print-directory tests PYTHON=$$python VENV=$(VENV)-$$name LESS="$(SLOW)" || exit 1; \
	done

browser:  ## Chromium from Debian's packages; without any the tests that need one are skipped
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { apt-get update && apt-get install -y --no-install-recommends chromium; }; } >/dev/null 2>&1 || true

golden: $(VENV)/.installed  ## predictions against every golden vector in tests/
	$(BIN)/python tests/golden/compare.py --cases tests/golden/data/cases-dev.jsonl.gz \
	  tests/golden/data/v*-dev.jsonl.gz tests/golden/data/quantity-dev.jsonl.gz

bench: $(VENV)/.installed  ## speed as ratios against named yardsticks
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/list.py
	$(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/watch.py
	$(BIN)/python benchmarks/ui.py

binary: $(VENV)/.installed  ## a folder with a binary that needs no Python: dist/kubectl-qos
	$(BIN)/pyinstaller --noconfirm --log-level WARN build.spec

pictures: $(VENV)/.installed  ## the pictures of docs/ and its table of keys
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_keys.py

lock: $(VENV)/.installed  ## renew the locked versions of development
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --custom-compile-command 'make lock' --group dev pyproject.toml -o $(LOCK)

clean:
	rm -rf $(VENV) $(VENV)-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
