# The four commands of this project. `make chat` and `make test` are all that a newcomer needs.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Model files for chat live where specchat keeps them; tests share one cache outside the clone.
export SPECCHAT_TEST_MODELS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/specchat-test-models

.PHONY: coverage chat test check bench package picture clean

chat: $(VENV)/chat
	@$(BIN)/specchat $(ARGS)

test: $(VENV)/test test-models
	$(BIN)/python -m pytest -m "not bench" $(ARGS)

coverage: $(VENV)/test
	$(BIN)/python -m pytest -q -p no:cacheprovider -m "not bench and not gguf and not slow" --hypothesis-profile=coverage \
		--cov --cov-fail-under=98 tests/speculation $(ARGS)

check: $(VENV)/check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/test test-models
	$(BIN)/python -m pytest -m bench -q -p no:cacheprovider $(ARGS)

# The stand-alone folder and, where dpkg-deb is, the Debian package, both in dist/. What the engine was compiled for
# decides where they run: packaging/release.md.
package: $(VENV)/chat
	$(BIN)/python -m pip install --quiet --group package
	$(BIN)/python -m PyInstaller --noconfirm --log-level WARN packaging/specchat.spec
	if command -v dpkg-deb >/dev/null; then $(BIN)/python packaging/deb.py dist/specchat dist; fi

picture: $(VENV)/test
	PYTHONPATH=. $(BIN)/python packaging/picture.py

.PHONY: test-models
test-models: $(VENV)/test
	SPECCHAT_MODELS_DIR="$(SPECCHAT_TEST_MODELS)" $(BIN)/specchat models pull -y smollm2-135m qwen2.5-coder-0.5b qwen2.5-coder-1.5b
	$(BIN)/python -m tests.gguf.fetch

# Each stamp is an environment that has what the target needs. llama-cpp-python compiles here: about four minutes
# the first time, seconds afterwards, because pip keeps the wheel.
$(VENV)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "specchat needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/chat: $(VENV)/pip pyproject.toml
	@echo "Setting up specchat; the first time this compiles llama.cpp, which takes a few minutes."
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/test: $(VENV)/chat
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/check: $(VENV)/test
	$(BIN)/python -m pip install --quiet --group check
	@touch $@

clean:
	rm -rf $(VENV) build dist
