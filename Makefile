# Two commands do all: `make demo` and `make test`. Each prepares what it needs first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
OPS ?= 150000
COMPILED_OPS ?= 50000
VECTORS ?= tests/conformance/kafka-vectors.json
APART := deploy differential integration/spark pipeline spark spark_listener
ROOMS := alerts cli clients dashboards demo exporter metrics pages pipeline quotas spark_listener

.PHONY: help demo demo-stack test quick lint types contracts simulated unit real coverage compiled bench bench-exposition bench-pipeline bench-scrape bench-rules bench-spark bench-catch-up conformance differential replay-check simulate fuzz thorough soak mutation newest requirements release-check rules docs pictures format jars collector deploy services spark spark-jar spark-matrix kafka-matrix tier-brokers tier-jobs tier-releases tier-units clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

demo: .venv/ready-run ## Run the whole product in one process: an engine, clients that hit their quotas, the exporter
	$(BIN)/quotascope demo

demo-stack: .venv/ready-run ## The demo with a Prometheus that has our rules, and the dashboards to import; other ports: ARGS='--port 1234 --prometheus-port 1235'
	tools/setup prometheus
	@exec $(BIN)/python -m tools.demo_stack $(ARGS)

test: .venv/ready-dev ## Everything that CI runs: lint, types, import contracts, every tier of tests
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint contracts
	$(MAKE) --no-print-directory --jobs=4 --keep-going services tier-units types tier-jobs tier-brokers tier-releases simulated compiled
	$(BIN)/python tools/check_coverage.py

# Side by side on two cores, the units from the start. Two others, of about the same length, start brokers, Spark and browsers and often
# wait for them, as what installs these waits for its downloads; the units, which only compute, take what is left idle. All run to their end.
# Scenes of other releases of Kafka, one broker after the other, begin where the first of these has ended.
# The units alone reach the floors of coverage, so that its tracer slows nothing else. They are two processes, as they are the last to end.
tier-jobs: TESTS := $(APART:%=tests/%) -m "real or java"
tier-brokers: TESTS := tests $(APART:%=--ignore=tests/%) --ignore=tests/releases -m "real or java"
tier-releases: TESTS := tests/releases -m real
tier-units: TESTS := tests -m "not real and not java" -n 2 --dist worksteal $(ROOMS:%=--cov=%) --cov-report=
tier-units tier-releases: GIVE_WAY := nice -n 5
tier-units: .venv/ready-dev
tier-jobs tier-brokers tier-releases: services
tier-jobs tier-brokers tier-releases tier-units: tier-%:
	PYTHONUNBUFFERED=1 QUOTASCOPE_DIFFERENTIAL_OPS=$(OPS) \
	  $(GIVE_WAY) $(BIN)/pytest --durations=15 -o cache_dir=.pytest_cache/$* $(TESTS) | sed -u 's/^/$*: /'

lint: .venv/ready-dev ## Style and common mistakes (ruff)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/ready-dev ## Types, strict, of code and tests (mypy)
	$(BIN)/mypy

simulated: .venv/ready-dev ## Less than a minute of simulation by new seeds; a seed that does not hold is printed and ends with an error
	nice -n 5 $(BIN)/python -m tests.simulation --seconds 17

contracts: .venv/ready-dev ## Which folder may import which (import-linter)
	$(BIN)/lint-imports

quick: .venv/ready-dev ## A change in under a minute: ruff, mypy of changed files, unit tests of changed rooms; or of one: make quick ARGS=quotas
	@$(BIN)/python tools/quick.py $(ARGS)

unit: .venv/ready-dev ## The tests that need neither Java nor a broker nor a Prometheus, on two cores; of one room: make unit ARGS=tests/quotas
	$(BIN)/pytest -n 2 --dist worksteal -m "not real and not java" $(ARGS)

real: services ## The tests against a real broker and a real Prometheus
	$(BIN)/pytest -m real

compiled: services build/compiled/ready ## The engine's tests again, against the wheel whose hot path mypyc made C of
	PYTHONPATH=build/compiled QUOTASCOPE_EXPECT=compiled QUOTASCOPE_DIFFERENTIAL_OPS=$(COMPILED_OPS) \
	  $(BIN)/pytest -m "not interpreted" tests/metrics tests/conformance tests/differential

bench: services build/compiled/ready ## The compiled engine beside Kafka's own classes; fewer: make bench ARGS='--only bucket'
	PYTHONPATH=build/compiled $(BIN)/python -m benchmarks engine $(ARGS)

bench-exposition: .venv/ready-dev ## The exporter's text beside prometheus_client's: 100,000 series, and how time grows up to 1,000,000
	$(BIN)/python -m benchmarks exposition $(ARGS)

bench-scrape: services ## Whole scrapes of a real broker beside jmx_exporter's
	$(BIN)/python -m benchmarks scrape $(ARGS)

bench-rules: services ## Our rules and dashboards' queries in a real Prometheus, 10,000 entities on ten brokers; less: ARGS='--scale 0.02'
	$(BIN)/python -m benchmarks rules $(ARGS)

bench-spark: services ## A Spark job of 10,000 tasks: no listener, quotascope, callbacks into Python; busy driver: ARGS=--busy
	$(BIN)/python -m benchmarks spark-overhead $(ARGS)

bench-catch-up: services ## How well the Spark listener predicts the end of backlogs of 2, 5 and 10 minutes under a quota; less: ARGS='--minutes 0.2'
	$(BIN)/python -m benchmarks spark-catch-up $(ARGS)

bench-pipeline: services ## Ingest of 5 M lines, replay of 20 M and up to 100 M rows, on Spark and alone; less: ARGS='--scale 0.05 --only replay'
	$(BIN)/python -m benchmarks pipeline $(ARGS)

conformance: .venv/ready-dev ## Conformance vectors; another file: make conformance VECTORS=FILE
	@$(BIN)/python tools/conformance.py "$(VECTORS)"

differential: services ## Random operations against Kafka's own classes; at length: make differential OPS=1000000
	QUOTASCOPE_DIFFERENTIAL_OPS=$(OPS) $(BIN)/pytest -m java -s tests/differential

replay-check: .venv/ready-dev ## A request log's throttles beside their replay: make replay-check LOG=FILE QUOTAS=FILE
	@$(BIN)/python -m tools.replay_check "$(LOG)" "$(QUOTAS)"

soak: services ## The exporter's process for an hour among agents and brokers that misbehave; less: make soak ARGS='--minutes 2'
	$(BIN)/python -m benchmarks soak $(ARGS)

simulate: .venv/ready-dev ## Commands on a history that are killed and overtaken at any point of their writes, the exporter among agents that misbehave, and the Spark listener on events that are lost or late, by new seeds, a minute each; longer: ARGS='--seconds 7200', one: ARGS='--only exporter'
	@$(BIN)/python -m tests.simulation $(ARGS)

fuzz: .venv/ready-dev ## Fuzz the readers of what comes from outside, a minute each; longer: make fuzz ARGS='--seconds 600 jolokia'
	@$(BIN)/python -m tests.fuzz $(ARGS)

thorough: .venv/ready-dev ## The random tests with 2,000 examples each, new ones in each run; fewer: make thorough ARGS='tests/metrics'
	QUOTASCOPE_HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -m "not real and not java" --hypothesis-show-statistics $(ARGS)

newest: .venv/ready-dev ## Compare the versions that tests run with those that registries offer
	@$(BIN)/python -m tools.newest

requirements: .venv/ready-dev ## Write deploy/requirements.txt and .github/tools.txt: what the exporter and the workflows run with, by hashes, in the versions of constraints.txt
	echo 'setuptools>=77' | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate \
	  --custom-compile-command "make requirements" --constraint constraints.txt \
	  --extra otlp --extra patterns --output-file deploy/requirements.txt pyproject.toml -
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --custom-compile-command "make requirements" --constraint constraints.txt --output-file .github/tools.txt .github/tools.in

mutation: .venv/ready-dev ## Small mistakes in the code, and which of them the unit tests notice; one room: make mutation ARGS='--room quotas --sample 50'
	@$(BIN)/python -m tools.mutation $(ARGS)

docs: .venv/ready-dev ## Write what is generated (pages in docs/, rules, dashboards), and the site of docs/ to build/site
	$(BIN)/python tools/generate_docs.py
	$(BIN)/mkdocs build --strict

pictures: services ## Draw the dashboards of the documentation with Grafana's components; without a Spark job of eight minutes: ARGS=demo
	$(BIN)/python -m tools.pictures $(ARGS)

rules: .venv/ready-run ## Write what releases have of the alerts, as a PrometheusRule of each profile and as a mixin, to build/rules
	mkdir -p build/rules
	for profile in core all; do \
	  $(BIN)/quotascope alerts write build/rules/$$profile --profile $$profile --prometheus-rule build/rules/quotascope-prometheusrule-$$profile.yaml; \
	done
	$(BIN)/quotascope alerts mixin > build/rules/quotascope-mixin.libsonnet

release-check: .venv/ready-dev ## Build all files of a release that can be built here, and install them where nothing else is; needs `make services`
	@$(BIN)/python tools/release_check.py

format: .venv/ready-dev ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

jars: .venv/ready-dev ## Fetch Kafka's jars and the agents through Maven
	tools/setup jars

spark-jar: .venv/ready-dev ## Build the jar for Spark that spark_listener/jvm keeps, with a JDK 17; needs `make jars`
	$(BIN)/python -m tools.build_spark_jar

collector: .venv/ready-dev ## Build the OpenTelemetry Collector that the tests of the push need
	tools/setup collector

deploy: .venv/ready-dev ## Build what the tests of deploy/ and of the workflows need: kustomize, Helm, actionlint, and the schemas of the Prometheus operator and Compose
	tools/setup deploy

spark: .venv/ready-dev ## Install the older Spark that the tests run with its Kafka connector and Delta Lake, and what a client of Spark Connect needs
	tools/setup spark

spark-matrix: .venv/ready-dev ## The tests that start Spark, under each older version; fewer: make spark-matrix ARGS='tests/spark -k name'
	tools/setup spark
	$(BIN)/python -m tests.spark.matrix $(ARGS)

kafka-matrix: services ## The scenes of all releases of Kafka, and the table of what works with each; fewer: make kafka-matrix ARGS='3.3.2 3.6.2'
	$(BIN)/python -m tests.releases.matrix $(ARGS)
	$(BIN)/python tools/generate_docs.py

services: .venv/ready-dev ## Install what the real tests need: a JDK, Maven, Prometheus, Chromium, Kafka's jars, Grafana's npm packages, an older Spark
	tools/setup services

clean: ## Remove everything that was built, but not the caches outside this folder
	rm -rf .venv build dist *.egg-info .coverage .coverage.* .fuzz .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

build/compiled/ready: .venv/ready-dev setup.py $(wildcard metrics/*/*.py metrics/*/*/*.py)
	rm -rf build
	QUOTASCOPE_PURE=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/compiled .
	touch $@

.venv/ready-run: pyproject.toml constraints.txt tools/setup
	tools/setup run

.venv/ready-dev: pyproject.toml constraints.txt tools/setup
	tools/setup dev
