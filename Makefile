# make book and make test do everything on a fresh machine, set-up included.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
MODULE_TESTS := $(filter-out tests/test_pages.py tests/test_notebooks.py tests/test_house.py tests/test_claims_build.py,$(wildcard tests/test_*.py))

# The notebooks' kernel is the one of the virtual environment.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help setup book test lint refresh tables clean

help:
	@echo "make book     set up, build the book strictly, print where it is"
	@echo "make test     set up, run all tests and every notebook"
	@echo "make lint     ruff (also on notebooks) and mypy"
	@echo "make refresh  run every notebook in place, after a change in sparsexor/"
	@echo "make tables   measure the committed tables again (takes minutes)"
	@echo "make clean    remove the built book"

setup: $(INSTALLED)

$(INSTALLED): requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python >= 3.11 is needed; name one with make PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.txt
	touch $(INSTALLED)

book: setup
	jupyter-book build -n -W --keep-going book
	@echo "$(CURDIR)/book/_build/html/index.html"

# The second process checks the shapes in the annotations at run time.
test: setup
	pytest --nbval
	pytest --quiet --jaxtyping-packages=sparsexor,beartype.beartype -m "not bad_input" $(MODULE_TESTS)

lint: setup
	ruff check .
	ruff format --check .
	mypy

refresh: setup
	python tools/refresh.py

tables: setup
	python tools/tables.py success
	python tools/refresh.py
	python tools/tables.py figure

clean:
	rm -rf book/_build
