# Everything a newcomer, a developer or a build server runs. GNU make 3.81 and a POSIX shell do.
# `make PYTHON=/path/to/python3` names the interpreter; TEST_ARGS goes to pytest.

SHELL = /bin/sh
.SUFFIXES:

PYTHON ?=
TEST_WORKERS ?= 4
TEST_ARGS ?=
LOCK_ARGS ?=

VENV = .venv
BIN = $(VENV)/bin

# Tried first to last; one that is installed but does not run (a pyenv shim) is passed over.
CANDIDATES = python3.13 python3.12 python3.11 python3

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

.PHONY: demo
demo: $(VENV)/runtime-installed ## see a risky call held, and decide it
	@$(BIN)/clearance demo

.PHONY: test
test: $(VENV)/dev-installed ## run the tests, on SQLite and on PostgreSQL
	@$(BIN)/pytest -n $(TEST_WORKERS) $(TEST_ARGS)

.PHONY: check
check: $(VENV)/dev-installed ## check format, lint, types and imports, then run the tests
	@echo '== Format'
	@$(BIN)/ruff format --check .
	@echo '== Lint'
	@$(BIN)/ruff check .
	@echo '== Types'
	@$(BIN)/mypy
	@echo '== Imports'
	@$(BIN)/lint-imports --no-logo
	@echo '== Tests'
	@$(MAKE) --no-print-directory test

.PHONY: bench
bench: $(VENV)/dev-installed ## measure beside LangChain, and write docs/benchmarks.md
	@$(BIN)/python -m benchmarks

.PHONY: images
images: $(VENV)/dev-installed ## take pictures of the pages, into docs/images
	@$(BIN)/python -m tests.browser.images

.PHONY: cases
cases: $(VENV)/dev-installed ## run the public failure cases (others: FILE=cases.jsonl)
	@$(BIN)/python -m tests.journeys.cases $(FILE)

.PHONY: format
format: $(VENV)/dev-installed ## format the code and sort its imports
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format .

.PHONY: reference
reference: $(VENV)/dev-installed ## make the pages of the reference that come from the code
	@$(BIN)/python -m tests.house.python_reference

.PHONY: venv
venv: $(VENV)/runtime-installed ## make .venv with what the product needs

.PHONY: lock
lock: $(VENV)/uv-installed ## renew requirements/*.txt (newest: LOCK_ARGS=--upgrade)
	@$(USE_UV); \
	compile='$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes'; \
	compile="$$compile --no-emit-index-url --no-emit-find-links $(LOCK_ARGS)"; \
	export UV_CUSTOM_COMPILE_COMMAND='make lock'; \
	echo '== requirements/uv.txt'; \
	$$compile requirements/uv.in -o requirements/uv.txt; \
	echo '== requirements/runtime.txt'; \
	$$compile pyproject.toml --extra research -o requirements/runtime.txt; \
	echo '== requirements/dev.txt'; \
	$$compile pyproject.toml --extra research --extra otel --extra oidc --extra agui requirements/dev.in -c requirements/runtime.txt -o requirements/dev.txt

.PHONY: clean
clean: ## remove .venv and every cache; ./workspace stays
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment; each file in .venv says that one stage is done ---

# Sets $python to the first interpreter that runs, is new enough and can make an environment.
FIND_PYTHON = \
	set -e; python=; lacking=; \
	if [ -n '$(PYTHON)' ]; then set -- '$(PYTHON)'; else set -- $(CANDIDATES); fi; \
	for each in "$$@"; do \
		"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
		if "$$each" -c 'import ensurepip, venv' >/dev/null 2>&1; then python=$$each; break; fi; \
		lacking=$${lacking:-$$each}; \
	done; \
	if [ -z "$$python" ] && [ -n "$$lacking" ]; then \
		package=$$("$$lacking" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		echo "$$lacking cannot make environments: install $$package (Debian, Ubuntu: apt install $$package)." >&2; \
		exit 1; \
	elif [ -z "$$python" ]; then \
		echo "No Python 3.11 or newer runs here (tried: $$*): install one, or say where it is: make PYTHON=/path/to/python3" >&2; \
		exit 1; \
	fi

# uv trusts the certificates of the system and brings no Python of its own. It does not read pip's
# configuration: an index or a certificate bundle that is set for pip alone is handed on.
USE_UV = \
	set -e; export UV_SYSTEM_CERTS=1 UV_PYTHON_DOWNLOADS=never; \
	pip_says() { $(BIN)/python -m pip config get "global.$$1" 2>/dev/null || :; }; \
	if [ -z "$$UV_DEFAULT_INDEX$$UV_INDEX_URL" ] && ! grep -qs index \
		"$${UV_CONFIG_FILE:-$${XDG_CONFIG_HOME:-$$HOME/.config}/uv/uv.toml}" /etc/uv/uv.toml; then \
		index=$${PIP_INDEX_URL:-$$(pip_says index-url)}; \
		if [ -n "$$index" ]; then export UV_DEFAULT_INDEX="$$index"; fi; \
	fi; \
	if [ -z "$$SSL_CERT_FILE" ]; then \
		bundle=$${PIP_CERT:-$$(pip_says cert)}; \
		if [ -f "$$bundle" ]; then export SSL_CERT_FILE="$$bundle"; fi; \
	fi

# Runs `uv pip` and shows what it does, without its long list of every package at the end.
UV_PIP = \
	uv_pip() { \
		rm -f $(VENV)/failed; \
		{ $(BIN)/uv pip "$$@" --python $(BIN)/python 2>&1 || touch $(VENV)/failed; } \
			| sed '/^ [-+~] /d'; \
		[ ! -f $(VENV)/failed ]; \
	}; uv_pip

INSTALL_PROJECT = uv_pip install --quiet --no-deps --editable .

.PHONY: python
python:
	@$(FIND_PYTHON); echo "$$python"

$(VENV)/made:
	@$(FIND_PYTHON); \
	echo "== Making $(VENV) with $$python ($$("$$python" --version))"; \
	"$$python" -m venv --clear $(VENV)
	@touch $@

$(VENV)/uv-installed: $(VENV)/made requirements/uv.txt
	@echo '== Installing uv, the installer'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
		--require-hashes -r requirements/uv.txt
	@touch $@

$(VENV)/runtime-installed: $(VENV)/uv-installed requirements/runtime.txt pyproject.toml
	@echo '== Installing what Clearance needs'
	@$(USE_UV); $(UV_PIP) install --require-hashes -r requirements/runtime.txt; \
	$(INSTALL_PROJECT)
	@touch $@

$(VENV)/dev-installed: $(VENV)/runtime-installed requirements/dev.txt
	@echo '== Installing what its tests and checks need'
	@$(USE_UV); $(UV_PIP) sync --require-hashes requirements/dev.txt; \
	$(INSTALL_PROJECT)
	@touch $@
