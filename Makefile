# Two commands do everything: `make demo` and `make test`. Each installs what it needs into .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
LOCK = .ci/requirements.txt
DEV_LOCK = .ci/dev-requirements.txt
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-compile

# Every worker and every process of a test would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-cluster check format lint types imports tests compiled laws other-python monkey site-tests binary-tests \
  binary-again programs golden bench binary wheel installed release-check site man reference pictures image lock clean

demo: $(VENV)/.product  ## open the terminal UI on the embedded demo cluster
	@$(BIN)/python -m kubectl_qos --demo

# The checks take one core: meanwhile another one compiles the tests for all workers.
test:  ## every check, and every test on one Python: minutes
	@$(MAKE) --no-print-directory -j check compiled
	@$(MAKE) --no-print-directory tests

test-all: test laws other-python monkey site-tests binary-tests binary-again  ## also what takes long: before a release, and each night

check: format lint types imports

$(VENV)/.product: $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	@echo "Installing the libraries of kubectl-qos into $(VENV), which takes 10 to 20 seconds."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) --require-hashes -r $(LOCK)
	@touch $@

$(VENV)/.installed: $(VENV)/.product pyproject.toml $(DEV_LOCK)
	@echo "Installing the tools for development into $(VENV), which takes about a minute."
	@$(PIP) --require-hashes -r $(DEV_LOCK)
	@$(PIP) --no-build-isolation --no-deps -e .
	@touch $@

format: $(VENV)/.installed
	$(BIN)/ruff format --check --quiet .

lint: $(VENV)/.installed
	$(BIN)/ruff check --quiet .

types: $(VENV)/.installed
	$(BIN)/mypy

imports: $(VENV)/.installed
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/circles.py

# Two for each core: half the time of a test of the UI is waiting for the screen to come to rest.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
tests: $(VENV)/.installed
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q

compiled: $(VENV)/.installed
	@$(BIN)/pytest --collect-only -q > /dev/null || true  # the tests say why

# The other supported interpreters, where they are installed; the matrix of the workflows has them all.
other-python: $(VENV)/.installed  ## every test on each other Python that is installed
	@for name in python3.11 python3.12 python3.13 python3.14; do \
	  python=$$(for found in $$name $$HOME/.pyenv/versions/$${name#python}*/bin/$$name; do \
	    $$found -c '' 2>/dev/null && echo $$found && break; done); \
	  if [ -z "$$python" ]; then echo "skipped: $$name is not installed"; continue; fi; \
	  if [ "$$($$python -c 'import sys; print(sys.version_info[:2])')" = \
	       "$$($(BIN)/python -c 'import sys; print(sys.version_info[:2])')" ]; then continue; fi; \
	  echo "tests on $$python"; \
	  $(MAKE) --no-print-directory tests PYTHON=$$python VENV=$(VENV)-$$name || exit 1; \
	done

# `make test-cluster KUBECONFIG=FILE` is about the cluster of that file. Otherwise the tests start etcd, kube-apiserver,
# kube-controller-manager and kube-scheduler, from PATH or the folder KUBECTL_QOS_TEST_BIN, and are skipped without them.
# An exported KUBECONFIG names a cluster of somebody's work: only the variable on the command line counts.
TEST_KUBECONFIG = $(if $(filter command line,$(origin KUBECONFIG)),$(KUBECONFIG))
test-cluster: $(VENV)/.installed  ## against a real cluster: KUBECONFIG=FILE
	KUBECTL_QOS_TEST_KUBECONFIG=$(TEST_KUBECONFIG) $(BIN)/pytest -q tests/real_cluster

laws: $(VENV)/.installed  ## tests of laws, each with ten times as many examples as in `make test`
	$(BIN)/pytest -n $(WORKERS) -q --hypothesis-profile thorough $$(grep -lrE "^@given|settings\(\)\.max|SAMPLE" tests --include='*.py')

monkey: $(VENV)/.installed  ## a minute of random keys in the terminal UI
	QOS_MONKEY_SECONDS=60 $(BIN)/pytest -q tests/tui/test_monkey.py

site-tests: site  ## the tests of the site
	$(BIN)/pytest -q tests/distribution/test_docs.py

binary-tests: binary  ## the tests of the binary
	$(BIN)/pytest -q tests/distribution/test_binary.py tests/distribution/test_krew_install.py

binary-again: binary  ## a second build gives the same bytes
	cat dist/kubectl-qos_*.sha256 > build/first.sha256
	$(MAKE) --no-print-directory binary
	cat dist/kubectl-qos_*.sha256 | cmp - build/first.sha256

# A test that needs a program skips without it. Nothing but this target installs programs.
PROGRAMS = bash-completion buildah chromium fish groff-base prometheus prometheus-alertmanager tmux victoria-metrics zsh
AS_ROOT = $(shell [ "$$(id -u)" = 0 ] || echo sudo)
programs:  ## what some tests need and skip without, by apt-get, which needs root
	$(AS_ROOT) apt-get update --quiet
	$(AS_ROOT) apt-get install --quiet --yes --no-install-recommends $(PROGRAMS)

golden: $(VENV)/.installed  ## predictions against every golden vector in tests/
	$(BIN)/python tests/golden/compare.py --cases tests/golden/data/cases-dev.jsonl.xz \
	  tests/golden/data/results-dev.jsonl.xz tests/golden/data/quantity-dev.jsonl.xz

bench: binary  ## speed as ratios against named yardsticks
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/list.py
	$(BIN)/python benchmarks/fleet.py
	$(BIN)/python benchmarks/manifests.py
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/commands.py
	$(BIN)/python benchmarks/watch.py
	$(BIN)/python benchmarks/ui.py
	$(BIN)/python benchmarks/exporter.py
	$(BIN)/python -m benchmarks.deaths
	$(BIN)/python benchmarks/binary.py

# The same input gives the same bytes. A module that PyInstaller compiles itself is stored otherwise than the same one
# from __pycache__, so all are compiled before. They are not compressed one by one: the archive is, and start-up is
# quicker without.
binary: export PYTHONHASHSEED = 0
binary: export SOURCE_DATE_EPOCH = 1580601600
binary: export PYINSTALLER_ZLIB_COMPRESSION_LEVEL = 0
binary: export PYINSTALLER_CONFIG_DIR = build/pyinstaller
binary: $(VENV)/.installed  ## an archive that needs no Python: dist/kubectl-qos_OS_ARCH.tar.gz and its .sha256
	$(BIN)/python -c "import compileall as c, sysconfig; [c.compile_dir(path, quiet=2) for path in ('kubectl_qos', sysconfig.get_path('purelib'))]"
	$(BIN)/pyinstaller --noconfirm --clean --log-level ERROR build.spec
	$(BIN)/python release/archive.py dist/kubectl-qos dist

IMAGE ?= ghcr.io/kubectl-qos/kubectl-qos:dev
ARCHES ?= $(patsubst dist/kubectl-qos_linux_%.tar.gz,%,$(wildcard dist/kubectl-qos_linux_*.tar.gz))
image:  ## a container image of the Linux archives in dist/, by buildah
	buildah manifest rm $(IMAGE) 2> /dev/null || true
	buildah manifest create $(IMAGE)
	for arch in $(ARCHES); do buildah build --platform linux/$$arch --manifest $(IMAGE) --file Containerfile . || exit 1; done

pictures: $(VENV)/.installed  ## the pictures of docs/ and its table of keys
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_animation.py
	$(BIN)/python docs/make_keys.py

reference: $(VENV)/.installed  ## docs/reference, docs/schema, docs/check-rules and the dashboard of deploy/ from the program
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_schema.py
	$(BIN)/python docs/make_checks.py
	$(BIN)/python deploy/make_dashboard.py

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

# The version that is next: CHANGELOG.md has its notes.
TAG ?= v$(shell sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)
release-check: test-all installed site man  ## all of a release that can be tried on one machine
	$(BIN)/python release/sbom.py dist/kubectl-qos dist/kubectl-qos.cdx.json
	$(BIN)/python release/krew_manifest.py $(TAG) dist --only-present > /dev/null
	$(BIN)/python release/notes.py $(TAG) > /dev/null

# The product has the versions that it is tested with.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --custom-compile-command 'make lock' pyproject.toml
lock: $(VENV)/.installed  ## renew the locked versions
	$(COMPILE) --group dev -o $(DEV_LOCK)
	$(COMPILE) -c $(DEV_LOCK) -o $(LOCK)

clean:
	rm -rf $(VENV) $(VENV)-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
