# Two commands do everything on a fresh machine: `make demo` and `make test`. `make check` is the fast loop.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo check test lint types format docs lines clean

demo: $(VENV)/.core
	$(BIN)/beltrami train digits --compare 10 --out runs/demo

check: lint types
	$(PYTEST) -m "not slow"

test: lint types
	$(PYTEST)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation site, in build/site. A warning, a broken link or a public name without an entry fails.
docs: $(VENV)/.docs
	$(BIN)/python docs/make_site.py

# Lines and files of the library and of the laboratory.
lines:
	@cd src/beltrami && for part in "library -not" "laboratory"; do set -- $$part; \
	  files=$$(find . -name '*.py' $$2 '(' -path './lab/*' -o -path './report/*' -o -path './cli/*' ')'); \
	  echo "$$1: $$(cat $$files | wc -l) lines in $$(echo "$$files" | wc -l) files"; done

# A failed install leaves no stamp, so the next `make` tries again.
$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("beltrami needs Python 3.11 or newer; this is %d.%d: make PYTHON=python3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.installed: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
