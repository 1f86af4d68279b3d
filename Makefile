# Two commands do everything: `make demo` and `make test`. Both make their own environment in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
LOCK = .ci/dev-requirements.txt

.PHONY: demo test check format lint types imports tests other-python programs golden bench binary wheel installed \
  release-check site man reference pictures lock clean

demo: $(VENV)/.installed  ## open the terminal UI on the embedded demo cluster
	@$(BIN)/kubectl-qos --demo

test: check programs binary tests other-python  ## every check and every test

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
# key does and how long a monkey is borne is the same on all of them: it takes minutes, and is tried on one. So is
# the binary, which has an interpreter of its own.
ON_ONE = tui/test_every_key tui/test_monkey distribution/test_binary distribution/test_krew_install
SLOW = $(ON_ONE:%=--ignore=tests/%.py)
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

# What tests look for and skip without: a browser for `web`, and shells that complete.
PROGRAMS = chromium zsh fish bash-completion
programs:
	@for name in chromium zsh fish; do command -v $$name || exit 1; done >/dev/null 2>&1 || \
	  { apt-get update && apt-get install -y --no-install-recommends $(PROGRAMS); } >/dev/null 2>&1 || true

golden: $(VENV)/.installed  ## predictions against every golden vector in tests/
	$(BIN)/python tests/golden/compare.py --cases tests/golden/data/cases-dev.jsonl.gz \
	  tests/golden/data/v*-dev.jsonl.gz tests/golden/data/quantity-dev.jsonl.gz

bench: binary  ## speed as ratios against named yardsticks
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/list.py
	$(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/watch.py
	$(BIN)/python benchmarks/ui.py
	$(BIN)/python benchmarks/binary.py

# The same input gives the same bytes. The modules are not compressed one by one: the archive is, and start-up is
# quicker without.
binary: export PYTHONHASHSEED = 0
binary: export SOURCE_DATE_EPOCH = 1580601600
binary: export PYINSTALLER_ZLIB_COMPRESSION_LEVEL = 0
binary: export PYINSTALLER_CONFIG_DIR = build/pyinstaller
binary: $(VENV)/.installed  ## an archive that needs no Python: dist/kubectl-qos_OS_ARCH.tar.gz and its .sha256
	$(BIN)/pyinstaller --noconfirm --clean --log-level ERROR build.spec
	$(BIN)/python release/archive.py dist/kubectl-qos dist

pictures: $(VENV)/.installed  ## the pictures of docs/ and its table of keys
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_keys.py

reference: $(VENV)/.installed  ## docs/reference from the grammar of the command line
	$(BIN)/python docs/make_reference.py

site: $(VENV)/.installed  ## the documentation: build/site/index.html
	$(BIN)/sphinx-build -W -n --keep-going -q -b html -d build/doctrees docs build/site

man: $(VENV)/.installed  ## man pages: build/man
	$(BIN)/sphinx-build -W -n --keep-going -q -b man -d build/doctrees docs build/man

wheel: $(VENV)/.installed  ## the wheel and the sdist: dist/kubectl_qos-*
	rm -f dist/kubectl_qos-*
	$(BIN)/python -m hatchling build
	$(BIN)/python -m twine check --strict dist/kubectl_qos-*

installed: wheel  ## the wheel in new environments of each Python here; needs the package index
	$(BIN)/python release/installed.py dist/kubectl_qos-*.whl

# TAG=v0.2.0 asks for the notes of that version, else for those of what is unreleased.
release-check: binary test installed site man  ## all of a release that can be tried on one machine
	$(BIN)/python release/sbom.py dist/kubectl-qos dist/kubectl-qos.cdx.json
	$(BIN)/python release/krew_manifest.py $(or $(TAG),v0.0.0) dist --only-present > /dev/null
	$(BIN)/python release/notes.py $(or $(TAG),Unreleased) > /dev/null

lock: $(VENV)/.installed  ## renew the locked versions of development
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --custom-compile-command 'make lock' --group dev pyproject.toml -o $(LOCK)

clean:
	rm -rf $(VENV) $(VENV)-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
