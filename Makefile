# Everything pagefold needs is bootstrapped into .venv by python3 (3.11 or newer, with venv and pip).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: check setup demo test lint bench bench-long bench-field fuzz earnings docs agents agents-referee requirements clean

check: lint test

setup: $(READY)

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(READY)

demo: $(READY)
	$(BIN)/pagefold demo

test: $(READY)
	$(BIN)/pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(READY)
	$(BIN)/python bench/start.py
	$(BIN)/python bench/store.py --kills 200
	$(BIN)/python bench/search.py
	$(BIN)/python bench/sink.py
	$(BIN)/python -m bench.replay
	$(BIN)/python bench/proxy.py
	$(BIN)/python bench/dashboard.py
	$(BIN)/python -m bench.codecs
	$(BIN)/python -m bench.prefetch --cases 5000
	$(BIN)/python bench/bad_input.py

# Longer ones, each of some minutes: the solver, the selection, trimming, the fold's laws and all policies on recordings.
bench-long: $(READY)
	$(BIN)/python bench/knapsack.py
	$(BIN)/python bench/selection.py
	$(BIN)/python -m bench.trim
	$(BIN)/python bench/journal.py --runs 1200
	$(BIN)/python bench/fold.py
	$(BIN)/python -m bench.policies
	$(BIN)/python -m bench.tune
	$(BIN)/python -m bench.aggregate
	$(BIN)/python -m bench.referee --family coding-claude-code,coding-claude-code-july --policy lossless,economic --window 64000,200000
	$(BIN)/python -m bench.referee --family coding-codex --model gpt-5.6-sol --policy lossless,economic --window 64000,200000

# pagefold beside the rivals that are installed under PEERS_DIR: a quarter of an hour on two cores. Writes docs/field.md and its picture.
bench-field: $(READY)
	$(BIN)/python -m bench.field --write docs/field.md --every coding-claude-code=2,coding-claude-code-compact=2

# Also long: a million random texts through the codecs, and what each codec earns on recorded sessions.
fuzz: $(READY)
	$(BIN)/python bench/fuzz.py

earnings: $(READY)
	$(BIN)/python -m bench.earnings

docs: $(READY)
	$(BIN)/python docs/generate.py

# Real agents, SDKs, MCP servers and object stores for the tests that drive them, into a folder that can be thrown away.
# AGENTS_DIR names another one. The newest releases, and in `older` a Claude Code that begins MCP with `initialize`.
AGENTS_DIR ?= .agents

agents: $(AGENTS_DIR)/.ready

$(AGENTS_DIR)/.ready: Makefile | $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check playwright==1.65.0
	$(PYTHON) -m venv $(AGENTS_DIR)/venv
	$(AGENTS_DIR)/venv/bin/python -m pip install --quiet --disable-pip-version-check \
	  mcp-server-git==2026.10.19 mcp-server-time==2026.10.19 mcp-server-fetch==2026.10.24 'moto[server]==5.2.5' \
	  anthropic==2.9.0 openai==3.51.0
	$(PYTHON) -m venv $(AGENTS_DIR)/venv-mcp1
	$(AGENTS_DIR)/venv-mcp1/bin/python -m pip install --quiet --disable-pip-version-check \
	  mcp-server-sqlite==2025.4.25 'mcp<2'
	npm install --loglevel=error --no-audit --no-fund --prefix $(AGENTS_DIR) \
	  @anthropic-ai/claude-code@2.1.326 @openai/codex@0.169.0 opencode-ai@1.18.33 \
	  @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31 \
	  @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/inspector@0.15.0 \
	  @zereight/mcp-gitlab@2.1.64 s3rver@3.7.1
	npm install --loglevel=error --no-audit --no-fund --prefix $(AGENTS_DIR)/older @anthropic-ai/claude-code@2.1.197
	touch $@

# Real agents, 60 turns past the window against the enforcing provider, and then without pagefold: some minutes.
agents-referee: $(READY)
	$(BIN)/python -m bench.agents_refereed

requirements:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --group dev pyproject.toml -o requirements/dev.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
