# koordlet's commands. `make` prints them.
#
# Everything lives below the checkout and is named by relative paths, so a path with spaces works.
# The environment is keyed by the content of the lock files: nothing is installed twice, and a
# changed lock file is never overlooked.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:
# One shell per recipe, so that a recipe reads as the script that it is.
.ONESHELL:

# Settings of the caller's own Python must not leak into the environment.
unexport PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV
export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PY := .venv/bin/python
# The same hash for the same lock files; `make` runs this once per call.
key = $(shell cat $(1) | sha256sum | cut -c 1-16)
# How many packages a lock file names: one that differs by Python's version is there twice.
packages = sed -n 's/==.*//p' $(1) | sort -u | wc -l
RUNTIME := .venv/.runtime-$(call key,requirements.lock)
DEVELOP := .venv/.develop-$(call key,requirements.lock requirements-dev.lock)
BUILD := .venv/build/.installed-$(call key,requirements-build.lock)
DOCS := .venv/docs/.installed-$(call key,requirements-docs.lock)

# Options for the program behind the target: make run ARGS="--observe", make test ARGS="-k cpuset".
ARGS ?=
# Each run names its slowest tests: a stage that grows shows where.
PYTEST := $(PY) -m pytest --durations=15 --durations-min=5
# What an ordinary `make test` leaves out: each needs a real kernel, a machine, or patience.
ORDINARY := not e2e and not vm and not cluster and not bench and not soak and not browser and not site

##@ Use

.PHONY: help
help: ## Print this list
	@printf 'koordlet: make TARGET [ARGS="..."]\n'
	@sed -nE \
	  -e 's/^##@ (.*)/\n\1/p' \
	  -e 's/^([a-z][a-z0-9-]*):[^#]*## (.*)/  \1\t\2/p' \
	  Makefile | while IFS=$$'\t' read -r name words; do \
	    if [ -z "$${words:-}" ]; then printf '%s\n' "$$name"; \
	    else printf '  %-12s %s\n' "$$name" "$$words"; fi; done

.PHONY: run
run: $(RUNTIME) ## Start the agent on this host, standalone, with two demo workloads (ARGS="...")
	@exec $(PY) -m koordlet run --demo $(ARGS)

##@ Check

.PHONY: test
test: $(DEVELOP) ## Run the tests that need neither root nor a real kernel (ten minutes on two CPUs)
	@$(PYTEST) -n auto -m '$(ORDINARY)' $(ARGS)

PYTHONS ?= python3.12 python3.13 python3.14
.PHONY: matrix
matrix: ## Run the same tests on newer Pythons, each in an environment of its own (PYTHONS="PATH ...")
	@failed=0 verdicts=()
	for python in $(PYTHONS); do
	  if ! version=$$("$$python" -c 'import platform; print(platform.python_version())' 2>/dev/null); then
	    verdicts+=("$$python: not run, there is none here") failed=1
	    continue
	  fi
	  folder=build/python-$$version-$(call key,requirements-dev.lock)
	  if [ ! -f "$$folder/.installed" ]; then
	    printf '▸ Installing %d packages for Python %s, once\n' \
	      "$$($(call packages,requirements-dev.lock))" "$$version"
	    "$$python" -m venv --clear "$$folder"
	    "$$folder/bin/python" -m pip install -qq --no-deps --require-hashes -r requirements-dev.lock
	    printf '../../../../..\n' >"$$(echo "$$folder"/lib/python3*/site-packages)/koordlet.pth"
	    touch "$$folder/.installed"
	  fi
	  verdict=passed
	  "$$folder/bin/python" -m pytest -n auto -m '$(ORDINARY)' $(ARGS) || verdict=failed failed=1
	  verdicts+=("Python $$version: $$verdict")
	done
	printf '▸ matrix\n'; printf '  %s\n' "$${verdicts[@]}"
	exit $$failed

.PHONY: check
check: $(DEVELOP) format-check lint types imports cycles wiring sizes names proves generated shell docs ## Run every static check

.PHONY: docs
docs: $(DEVELOP) $(DOCS) ## Build the site of the documents into build/site, and follow its links
	@printf '▸ docs\n'
	.venv/docs/bin/python -m mkdocs build --quiet --strict --site-dir build/site
	$(PYTEST) -q -m site tests/docs $(ARGS)

.PHONY: man
man: $(RUNTIME) ## Write manual pages into build/man: man -l build/man/koordlet.1
	@$(PY) -m tools.docs.man build/man

.PHONY: browser
browser: $(DEVELOP) $(DOCS) ## Look at the console and the site in a real browser (needs Chromium)
	@$(PYTEST) -n 2 --dist worksteal -m browser tests/browser $(ARGS)

.PHONY: e2e
# Two tests at a time (tests/e2e/conftest.py): an agent and its test mostly wait for each other.
e2e: $(DEVELOP) ## Run the tests on the real kernel of this host (needs root)
	@$(PYTEST) -n 2 --dist loadscope --no-loadscope-reorder -m "e2e and not soak" tests/e2e $(ARGS)

.PHONY: cluster
# Two servers at a time (tests/cluster/conftest.py): a test mostly waits for programs that it started.
cluster: $(DEVELOP) ## Run the tests beside a real Kubernetes (needs the lab that boots one)
	@$(PYTEST) -n 2 --dist loadscope --no-loadscope-reorder -m "cluster and not soak" tests/cluster $(ARGS)

.PHONY: vm
# Two machines at a time: one alone waits for its own clock half of the time.
vm: $(DEVELOP) ## Run the tests inside emulated machines (needs QEMU)
	@$(PYTEST) -n 2 --dist worksteal -v -m "vm and not soak" tests/vm $(ARGS)

.PHONY: bench
bench: $(DEVELOP) ## Measure, and fail where a ratio is over its budget
	@$(PY) -m tests.bench $(ARGS)

.PHONY: colocation
colocation: $(DEVELOP) ## Judge best-effort control on this host, as root: five minutes, nothing else may run
	@$(PY) -m tests.bench.colocation --gate $(ARGS)

.PHONY: soak
soak: $(DEVELOP) ## Run the large counts: hours, seeded, resumable
	@$(PYTEST) -m soak --hypothesis-profile=soak tests $(ARGS)

# The parts of `check`, one command each; pre-commit calls the same ones.

.PHONY: format-check lint types imports cycles wiring sizes names proves generated shell
format-check: $(DEVELOP)
	@printf '▸ format\n'
	$(PY) -m ruff format --check . || { printf 'fix: make format\n' >&2; exit 1; }

lint: $(DEVELOP)
	@printf '▸ lint\n'
	$(PY) -m ruff check .
	$(PY) -m pytest -q tests/test_dependencies.py tests/test_rooms.py

types: $(DEVELOP)
	@printf '▸ types\n'
	$(PY) -m mypy

imports: $(DEVELOP)
	@printf '▸ imports\n'
	$(PY) -P .venv/bin/lint-imports --no-logo

# No code assigns to an attribute of another object; tools/wiring_allowed.txt lists the files that do.
wiring: $(DEVELOP)
	@printf '▸ wiring\n'
	$(PY) -m tools.wiring

# A module that outgrows this is split by noun; generated code is not read, so it may be long.
LINES := 400
sizes:
	@printf '▸ sizes: at most $(LINES) lines; the longest five:\n'
	longest=$$(find koordlet tests tools -name '*.py' -not -path 'koordlet/rpc/gen/*' -exec wc -l {} + |
	  grep -v ' total$$' | sort -rn)
	sed -n '1,5s/^/  /p' <<<"$$longest"
	over=$$(while read -r lines name; do
	  [ "$$lines" -le $(LINES) ] || printf '  %s\n' "$$name"; done <<<"$$longest")
	[ -z "$$over" ] || { printf 'over $(LINES) lines:\n%s\n' "$$over" >&2; exit 1; }

cycles: $(DEVELOP)
	@printf '▸ cycles\n'
	$(PY) -m tools.checks.cycles

# Two classes with one name make every search ambiguous; tools/checks/class_names.txt has the rest. A
# variable says the role of its type.
names: $(DEVELOP)
	@printf '▸ names\n'
	$(PY) -m tools.checks.class_names
	$(PY) -m tools.checks.vague_names

proves: $(DEVELOP)
	@printf '▸ proves: a test file for each module, or a row of tests/proves.toml\n'
	$(PY) -m tools.checks.proves

generated: $(DEVELOP)
	@printf '▸ generated\n'
	$(PY) -m tools.proto.generate --check
	$(PY) -m tools.deploy.dashboards --check
	$(PY) -m tools.deploy.prometheus_rule --check
	$(PY) -m tools.deploy.chart --check

shell:
	@printf '▸ shell\n'
	mapfile -t -d '' scripts < <(find .ci tests systemd deploy -name '*.sh' -print0 2>/dev/null)
	scripts+=(.ci/run)
	for each in "$${scripts[@]}"; do bash -n "$$each"; done
	if command -v shellcheck >/dev/null; then shellcheck "$${scripts[@]}"
	else printf '  shellcheck is not installed: only the syntax was checked\n'; fi

##@ Change

.PHONY: format
format: $(DEVELOP) ## Rewrite the code in the project's format, and fix what ruff can fix
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format --quiet .

.PHONY: pictures
pictures: $(DEVELOP) ## Draw and take the pictures of docs/images and the recorded minute anew, of the running demo (needs Chromium)
	@$(PY) -m tests.kit.pictures
	@$(PY) -m tests.kit.cast
	$(PY) -m tests.browser.pictures

.PHONY: proto
proto: $(DEVELOP) ## Regenerate the gRPC code from the protos
	@$(PY) -m tools.proto.generate $(ARGS)

.PHONY: chart
chart: $(DEVELOP) ## Regenerate the Helm chart from the manifests of deploy/
	@$(PY) -m tools.deploy.chart

# The resolver has an environment of its own, so that it is in nobody else's. What is locked stays
# as it is unless pyproject.toml asks for more, or UPGRADE=1 for the newest of everything.
RESOLVER := uv==0.13.8
.PHONY: lock
lock: | .venv/bin/python ## Write the lock files anew from pyproject.toml (UPGRADE=1: the newest)
	@[ -x .venv/lock/bin/uv ] || $(PY) -m venv .venv/lock
	.venv/lock/bin/python -m pip install --quiet $(RESOLVER) 2>/dev/null
	resolve() {
	  .venv/lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) \
	    --output-file "$$1.new" "$${@:3}"
	  # Every line would say that the agent runs on Linux and CPython; pyproject.toml says it once.
	  { printf '# %s Written by make lock.\n' "$$2"
	    sed "s/ ; implementation_name == 'cpython' and sys_platform == 'linux'//" "$$1.new"
	  } >"$$1"
	  rm "$$1.new"
	  printf '▸ %s: %d packages\n' "$$1" "$$($(call packages,"$$1"))"
	}
	[ -n '$(UPGRADE)' ] || for each in requirements requirements-dev; do
	  [ ! -f $$each.lock ] || cp $$each.lock $$each.lock.new; done
	resolve requirements.lock 'What the agent runs with, each artefact by its hash.' \
	  pyproject.toml
	resolve requirements-dev.lock 'All of requirements.lock, and what the checks run with.' \
	  --extra dev --constraint requirements.lock pyproject.toml
	resolve requirements-build.lock 'What builds a release.' --group build \
	  --constraint requirements-dev.lock
	resolve requirements-docs.lock 'What builds the site of the documents.' --group docs

##@ Release

.PHONY: wheel deb image release
# Each part is written into dist/, and the same for the same commit; the version is koordlet's own.
wheel: $(BUILD) ## Build wheel and sdist into dist/
	@.venv/build/bin/python -m tools.release wheel $(ARGS)

deb: $(BUILD) ## Build the Debian package into dist/, with the list of its parts
	@.venv/build/bin/python -m tools.release deb $(ARGS)

image: $(BUILD) ## Build the container image into dist/, without a daemon and without root
	@.venv/build/bin/python -m tools.release image $(ARGS)

release: $(BUILD) ## Build everything into dist/: wheel, sdist, chart, package, images, parts, checksums
	@.venv/build/bin/python -m tools.release $(ARGS)

.PHONY: clean
clean: ## Remove everything that make made, the environment included
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find koordlet tests tools -type d -name __pycache__ -prune -exec rm -rf {} +

##@ The environment

.PHONY: environment
environment: $(DEVELOP) $(DOCS) ## Only create or update .venv, with all that the checks need

.venv/bin/python:
	@# A candidate that exists but does not run (a version manager's shim) is passed over.
	for python in "$${PYTHON:-}" python3.11 python3; do
	  [ -n "$$python" ] && command -v "$$python" >/dev/null || continue
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
	  found=$$python
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || continue
	  printf '▸ Creating the environment .venv with %s\n' "$$("$$python" -V)"
	  exec "$$python" -m venv --clear .venv
	done
	if [ -n "$${found:-}" ]; then
	  printf 'make: %s has no venv module\nfix: apt-get install python3.11-venv\n' "$$found" >&2
	else
	  printf 'make: no Python 3.11 or newer here\nfix: apt-get install python3.11-venv\n' >&2
	fi
	exit 1

# Installs one lock file, each artefact checked against its hash; one line per package is the
# progress. After a change of the lock files the environment starts empty: what is no longer locked
# must not linger and hide that something still needs it. The checkout itself becomes importable by
# one path relative to the environment: it may move, may have spaces in its name, and needs no
# network and no build.
define install
	@for stamp in .venv/.runtime-* .venv/.develop-*; do
	  case $$stamp in *'*' | $(RUNTIME) | $(DEVELOP)) continue ;; esac
	  printf '▸ The lock files have changed: the environment starts empty\n'
	  "$$($(PY) -c 'import sys; print(sys._base_executable)')" -m venv --clear .venv; break
	done
	# Ended half-way, the environment may lack its installer.
	$(PY) -c 'import pip' 2>/dev/null || $(PY) -m ensurepip
	total=$$($(call packages,$(1))); n=0; site=$$(echo .venv/lib/python3*/site-packages)
	printf '▸ Installing %d packages of %s, once\n' "$$total" $(1)
	PYTHONUNBUFFERED=1 $(PY) -m pip install --no-deps --require-hashes -r $(1) 2>&1 |
	  tee .venv/install.log |
	  while read -r verb what _; do
	    case $$verb in
	      Collecting | Processing) what=$${what##*/}; what=$${what%%==*}; what=$${what%%-[0-9]*} ;;
	      Requirement) n=$$((n + 1)); continue ;;
	      Installing) printf '  … unpacking\n'; continue ;;
	      *) continue ;;
	    esac
	    n=$$((n + 1)); printf '  %2d/%d %s\n' "$$n" "$$total" "$$what"
	  done || {
	    grep -E '^ *ERROR' .venv/install.log >&2 || tail -n 20 .venv/install.log >&2
	    printf 'make: %s was not installed; the whole log is in .venv/install.log\n' $(1) >&2
	    printf 'fix: is the package index that pip is set up for reachable?\n' >&2
	    exit 1
	  }
	printf '../../../..\n' >"$$site/koordlet.pth"
	{
	  printf '#!/bin/sh\n'
	  printf 'exec "$$(dirname -- "$$(readlink -f -- "$$0")")/python" -P -m koordlet "$$@"\n'
	} >.venv/bin/koordlet
	chmod 755 .venv/bin/koordlet
endef

$(RUNTIME): | .venv/bin/python
	$(call install,requirements.lock)
	touch $(RUNTIME)

# The larger lock file holds all of the smaller one, so it satisfies both stamps.
$(DEVELOP): | .venv/bin/python
	$(call install,requirements-dev.lock)
	touch $(DEVELOP) $(RUNTIME)

# What builds a release needs four packages, and nothing of what the checks need.
$(BUILD): | .venv/bin/python
	@printf '▸ Installing %d packages of requirements-build.lock, once\n' \
	  "$$($(call packages,requirements-build.lock))"
	$(PY) -m venv --clear .venv/build
	.venv/build/bin/python -m pip install -qq --no-deps --require-hashes \
	  -r requirements-build.lock || {
	  printf 'make: requirements-build.lock was not installed\n' >&2
	  printf 'fix: is the package index that pip is set up for reachable?\n' >&2
	  exit 1
	}
	touch $(BUILD)

# What builds the site has an environment of its own, so that no check and no agent can come to need it.
$(DOCS): | .venv/bin/python
	@printf '▸ Installing %d packages of requirements-docs.lock, once\n' \
	  "$$($(call packages,requirements-docs.lock))"
	$(PY) -m venv --clear .venv/docs
	.venv/docs/bin/python -m pip install -qq --no-deps --require-hashes \
	  -r requirements-docs.lock || {
	  printf 'make: requirements-docs.lock was not installed\n' >&2
	  printf 'fix: is the package index that pip is set up for reachable?\n' >&2
	  exit 1
	}
	touch $(DOCS)
