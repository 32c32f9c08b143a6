# The front door. `make demo` and `make test` are all that a newcomer needs; each sets up what it lacks first.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The Python to build .venv on, 3.11 or newer. One that has torch saves fetching it: make setup PYTHON=...
PYTHON ?= python3

# operator/ is a source root. With the current folder on the module path it would stand before Python's own `operator`.
export PYTHONSAFEPATH := 1

# What others' shells set shall not reach the tools.
unexport PYTHONHOME PYTHONSTARTUP

# Ranks start in seconds when torch's modules are compiled once and kept, not anew in each process of each run.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv/bin
CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/muster
DIGITS := training/examples/digits
# A name to push to.
IMAGE ?= muster:0.1.0
# What it is built on: a tag, or a digest behind one.
BASE ?= python:3.11-slim-bookworm
DEV = PYTHONPATH=tools $(VENV)/python -m muster_dev
CLUSTER = PYTHONPATH=tests $(VENV)/python -m cluster
# Runs all tests even if some fail, and lists the failures at the end.
SUITE = PYTHONPATH=tests:tools $(VENV)/python -m suite

.PHONY: help setup demo demo-recovery test check format lock upgrade generate image-facts image clean cluster cluster-down cluster-build test-cluster test-long test-gpu test-attacks bench bench-soak mutants

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Bring .venv up to date from the hashed lock (downloads are kept in ~/.cache/muster)
	@PYTHONPATH=tools $(PYTHON) -m muster_dev setup

demo: setup ## Train a classifier on 2 nodes x 2 ranks on this machine, with the board of all ranks
	@$(VENV)/python $(DIGITS)/prepare.py "$(CACHE)/digits"
	$(VENV)/muster run -f $(DIGITS)/job.yaml \
	  --input train="$(CACHE)/digits/train" --input validation="$(CACHE)/digits/validation"

demo-recovery: setup ## As demo, and kill a rank on the way: the job goes on from its checkpoint
	@$(VENV)/python $(DIGITS)/prepare.py "$(CACHE)/digits"
	$(VENV)/muster run -f training/examples/recovery/job.yaml \
	  --input train="$(CACHE)/digits/train" --input validation="$(CACHE)/digits/validation"

test: setup ## Run all checks and the tests that need no cluster (some: make test ARGS="-k hook")
	@$(SUITE) test $(ARGS)

check: setup ## Format, lint, types, layers, the agent's Python, generated files, the lock
	@$(DEV) check

format: setup ## Put the format right, and what ruff can repair
	@$(VENV)/ruff check --fix --quiet . ; $(VENV)/ruff format .

generate: setup ## Write the files that are made from code (the CRD, the field reference, the examples' rendered jobs)
	@$(DEV) generate

lock: setup ## Resolve pyproject.toml into requirements/*.txt, keeping versions where they fit
	@$(DEV) lock

upgrade: setup ## As lock, with the newest versions
	@$(DEV) lock --upgrade

cluster: setup ## Start a real two-node Kubernetes on this machine and keep it (docs/cluster.md; as root)
	@$(CLUSTER) up

cluster-down: setup ## Take it down; nothing of it is left
	@$(CLUSTER) down

cluster-build: setup ## Build and fetch what the cluster is made of (make test-cluster does it, too)
	@$(CLUSTER) build --if-it-can

test-cluster: setup ## Run the tests on a real Kubernetes: one of their own, or the one that runs (docs/cluster.md)
	@$(SUITE) test-cluster $(ARGS)

test-long: setup ## Run the tests that take minutes: gigabytes from S3, kills at every call, random kills, installing again
	@$(SUITE) test-long $(ARGS)

test-gpu: setup ## Run the tests that need a GPU, on a machine that has one (minutes)
	@$(SUITE) test-gpu $(ARGS)

test-attacks: setup ## Attack an installed operator as a tenant, in each way alone as well (20 minutes)
	@$(CLUSTER) build --if-it-can
	@$(VENV)/python -m pytest tests/cluster/security/test_attacks.py -m long $(ARGS)

bench: setup ## Measure large jobs beside Indexed Jobs on one API server (bench/scale.py; as root, minutes)
	@$(CLUSTER) build --if-it-can
	@PYTHONPATH=tests:bench $(VENV)/python bench/scale.py $(ARGS)

bench-soak: setup ## Run jobs for an hour, and measure the memory of the operator (bench/jobs_at_scale.py; as root)
	@$(CLUSTER) build --if-it-can
	@PYTHONPATH=tests:bench $(VENV)/python bench/jobs_at_scale.py soak --seconds 3600 $(ARGS)

mutants: setup ## Count how many small faults in the source the tests find (docs/mutation.md; many minutes)
	@PYTHONPATH=tests:tools $(VENV)/python -m mutant_run $(ARGS)

image-facts: setup ## Take over what the locked SageMaker SDK knows of training images (docs/sagemaker-images.md)
	@$(DEV) image-facts

image: ## Build the operator's image with Docker (docs/install.md): make image IMAGE=registry.example/muster:0.1.0
	docker build --build-arg BASE="$(BASE)" --tag "$(IMAGE)" .

clean: ## Remove .venv and what tools keep in the tree
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
