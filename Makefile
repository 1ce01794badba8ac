# Each verb sets up all it needs in $(VENV): python3, a C++20 compiler and make are enough.
#
#   make test                                the system's compiler
#   make test CXX=clang++ VENV=.venv-clang   another one, beside it
#   make test PYTHON=python3.12 VENV=.venv-312

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2

PY    := $(VENV)/bin/python
BUILD := build/$(notdir $(VENV))
PIP   := $(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# editable: Python is read from src/, the extension is built in $(BUILD) and lives in $(VENV)
INSTALL := $(PIP) --no-build-isolation --config-settings=build-dir=$(BUILD) \
           --config-settings=cmake.define.POISE_WERROR=ON --editable

VALIDATOR := build/gltf-validator

CPP := $(shell find cpp -name '*.hpp' -o -name '*.cpp')
# the editable install knows the modules that were there: one more or less needs it anew
ROOMS := $(shell find src/poise -type d -not -name __pycache__)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-cpus sanitize bench lint docs stub check-stub format clean validator

help:
	@echo "make demo        a humanoid kicks on its own feet and is pushed; page, video, BVH, GLB, plots in out/demo"
	@echo "make test        the tests but the slow ones"
	@echo "make test-all    all tests"
	@echo "make test-cpus   make test with the arithmetic of other CPUs: BLAS kernels, instruction sets (about an hour)"
	@echo "make sanitize    the core's tests under address and undefined-behaviour sanitizers (about 20 minutes)"
	@echo "make bench       the benchmarks, with the peers that are installed"
	@echo "make lint        ruff, mypy, clang-format: look only"
	@echo "make format      ruff and clang-format: mend"
	@echo "make docs        the documentation, in docs/_build/html"
	@echo "make stub        write src/poise/_core.pyi anew (check-stub: compare only)"
	@echo "make clean       remove the builds and what runs wrote (the environment stays)"

demo: $(VENV)/.core
	$(VENV)/bin/poise balance forward-kick --push chest:150N:forward@0.3s+0.1s \
	    --push chest:60N:left@2s+0.1s --out out/demo

# each worker has a core: a BLAS with threads of its own would only be in the others' way
test test-all test-cpus: export OPENBLAS_NUM_THREADS = 1

test: $(VENV)/.core $(VENV)/.with-test validator
	$(PY) -m pytest -n $(JOBS) -m "not slow"

test-all: $(VENV)/.core $(VENV)/.with-test validator
	$(PY) -m pytest -n $(JOBS)

# which they are: .ci/cpus.py --all --list
test-cpus: $(VENV)/.core $(VENV)/.with-test validator
	$(PY) .ci/cpus.py --all -n $(JOBS) -m "not slow"

# a build of its own, in build/sanitize; other instruction sets: .ci/sanitize.py --isa avx512
sanitize: $(VENV)/.core $(VENV)/.with-test
	$(PY) .ci/sanitize.py -n $(JOBS)

# the Khronos validator of glTF; where npm is missing or offline, the tests that need it are skipped
validator:
	@test -d $(VALIDATOR)/node_modules/gltf-validator || npm install --silent --no-audit --no-fund \
	    --fetch-retries=0 --fetch-timeout=20000 --prefix $(VALIDATOR) gltf-validator@2.0.0-dev.3.10 \
	    || echo "npm cannot install gltf-validator: the tests that need it are skipped"

bench: $(VENV)/.core $(VENV)/.with-bench
	$(PY) benchmarks/run.py

lint: $(VENV)/.core $(VENV)/.with-dev $(VENV)/.with-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/clang-format --dry-run --Werror $(CPP)

format: $(VENV)/.with-dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(CPP)

docs: $(VENV)/.core $(VENV)/.with-docs
	$(PY) -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

stub: $(VENV)/.core
	$(PY) -m nanobind.stubgen -m poise._core -o src/poise/_core.pyi

check-stub: $(VENV)/.core
	$(PY) -m nanobind.stubgen -m poise._core -o $(BUILD)/_core.pyi
	diff -u src/poise/_core.pyi $(BUILD)/_core.pyi || (echo "run 'make stub' and commit" && false)

clean:
	rm -rf build dist out docs/_build $(VENV)/.core

# stamps ---------------------------------------------------------------------------------------

$(VENV)/.tools: pyproject.toml constraints.txt
	@echo "setting up $(VENV)"
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) scikit-build-core nanobind cmake ninja
	@touch $@

$(VENV)/.core: $(VENV)/.tools CMakeLists.txt $(CPP) $(ROOMS)
	@echo "building the extension"
	$(INSTALL) .
	@touch $@

$(VENV)/.with-%: $(VENV)/.tools | $(VENV)/.core
	@echo "installing what '$*' needs"
	$(INSTALL) '.[$*]'
	@touch $@
