# Needs git, make, npm and Node 20 or newer. Everything else comes from the lockfile, including Node 24.
SHELL := /bin/sh
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
export npm_config_update_notifier := false
.DEFAULT_GOAL := help
# Concurrent installations would remove each other's packages.
.NOTPARALLEL:

# Stamp files: one for the packages in `dependencies`, and one for all packages.
RUNTIME := node_modules/.gatehouse-runtime
INSTALLED := node_modules/.gatehouse-installed
NPM_CI := npm ci --no-fund --no-audit --loglevel=error

.PHONY: help run test check build package binary images lint schemas format fuzz bench bench-check scale migration soak recording pictures mutations unit clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(INSTALLED): package.json package-lock.json
	@echo "Installing all packages in the lockfile, including Node 24 (about 880 MB) ..."
	@$(NPM_CI)
	@tap build
	@touch $(RUNTIME) $@

ifeq ($(wildcard $(INSTALLED)),)
$(RUNTIME): package.json package-lock.json
	@echo "Installing the packages that Gatehouse needs to run, including Node 24 (about 420 MB) ..."
	@$(NPM_CI) --omit=dev
	@touch $@
else
$(RUNTIME): $(INSTALLED)
	@touch $@
endif

run: build ## Run the quickstart: three MCP servers behind one address
	@node dist/gatehouse.js dev -f manifests/examples/quickstart

test: lint build ## Everything that guards main: lint, types, generated files, all tests
	@node test/run.ts

check: lint unit ## Lint, types, generated files and unit tests, in about three minutes on two cores

build: $(RUNTIME) ## Make dist/: the two programs, with licenses and package lists
	@node manifests/bundle/main.ts

package: build ## Make the npm package: a tarball that needs Node and nothing else
	@node manifests/bundle/package.ts

binary: $(INSTALLED) build ## Make dist/bin/gatehouse: one executable that needs no Node, for this platform
	@node manifests/bundle/binary.ts

# docker, podman or buildah, whichever is there; TAG names the version.
BUILDER = $(shell for b in docker podman buildah; do command -v $$b && break; done)
TAG ?= dev
images: ## Build the two images, gatehouse and gatehouse-hooks, tagged TAG (default dev)
	@test -n "$(BUILDER)" || { echo "images: needs docker, podman or buildah" >&2; exit 1; }
	@$(BUILDER) build -f runtime/Dockerfile -t gatehouse:$(TAG) .
	@$(BUILDER) build -f hooks/Dockerfile -t gatehouse-hooks:$(TAG) .

lint: $(INSTALLED) ## Format, lint, types, and that generated files are current
	@biome format .
	@oxlint --type-aware --deny-warnings
	@tsc
	@tsc -p runtime/console/web
	@node schemas/generate/main.ts --check
	@node manifests/generate/main.ts --check
	@node test/requirements/pages.ts --check
	@node test/conformance/page.ts --check
	@node runtime/cli/help/reference.ts --check

schemas: $(INSTALLED) ## Write everything generated: validators, types, CRDs, manifests, reference pages
	@node schemas/generate/main.ts
	@node manifests/generate/main.ts
	@node test/requirements/pages.ts
	@node test/conformance/page.ts
	@node runtime/cli/help/reference.ts

format: $(INSTALLED) ## Format the sources
	@biome format --write .

unit: $(INSTALLED) ## The unit tests only
	@node test/run.ts 'test/unit/**/*.test.ts'

fuzz: $(INSTALLED) ## The generators of hostile input, with ten times as many cases as in the tests
	@FC_RUNS=3000 tap --reporter=terse --timeout=3600 $$(grep -rlE --include='*.test.ts' 'FC_RUNS|startWatched' test)

mutations: $(INSTALLED) ## Change rules of the specification, one at a time, and check that a test fails for each
	@node test/mutations/main.ts

scale: $(INSTALLED) build ## Reconcile thousands of objects with a real API server and Metacontroller (METACONTROLLER names it)
	@node test/bench/scale.ts

migration: $(INSTALLED) build ## Convert the examples of a ToolHive checkout (CHECKOUT=DIR) and run them on a real control plane
	@node test/bench/migration.ts $(CHECKOUT)

bench: $(INSTALLED) build ## Requests per second through proxy and vMCP, as a ratio of direct access
	@node test/bench/main.ts

bench-check: $(INSTALLED) build ## Check in a few minutes that calls have not become more expensive, relative to floors in the same run
	@node test/bench/cost/check.ts

pictures: $(INSTALLED) build ## Take the pictures of the docs from a real run of the quickstart (needs Chromium)
	@node test/helpers/console/pictures.ts

soak: $(INSTALLED) build ## Three hours of churning clients and dying backends against the built vMCP at 60 % of its capacity; memory must stay flat
	@node test/bench/soak.ts

recording: $(INSTALLED) package ## Record install, import, run, call and connect, and gatehouse up with ten servers, in docs/images (needs the npm registry and Chromium)
	@node test/recording/main.ts
	@node test/recording/up.ts

clean: ## Remove what was built
	@rm -rf dist .tap gatehouse-*.tgz
