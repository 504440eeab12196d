# Two tiers: `make test` is correctness, with every real service, and is what CI
# runs; `make soak` is the long runs, done by hand before something is called
# finished.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TOOL      := go tool -modfile=tools.mod
BINARY    := bin/geoproxy
UPSTREAM  ?= http://127.0.0.1:7800
# The tests below test/ measure a whole program in time, so they run one by one
# and after the others.
INSIDE     = $(shell go list ./... | grep -v /test/)
PKG       ?= ./...
BENCH     ?= .
BENCHTIME ?= 1s
BASE      ?= HEAD~1
ROUNDS    ?= 10
FUZZTIME  ?= 30s
SOAKFUZZ  ?= 10m

.PHONY: help
help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what the tests need and a fresh Debian-like machine lacks (Chromium, Redis as root; MapLibre GL)
	@.ci/setup

.PHONY: build
build: ## Build bin/geoproxy, stamped with the version
	go build -trimpath -ldflags '-X main.version=$(VERSION)' -o $(BINARY) ./cmd/geoproxy

.PHONY: run
run: build ## Serve in front of UPSTREAM with every default
	$(BINARY) serve --upstream $(UPSTREAM)

.PHONY: demo
demo: build ## Start a small spatial service with geoproxy in front, and say what to try
	$(BINARY) demo

.PHONY: test
test: ## Run every test with the race detector, real services included (needs `make setup` once)
	go test -race -shuffle=on -timeout 20m $(INSIDE)
	go test -race -shuffle=on -timeout 20m -p 1 ./test/...

.PHONY: soak
soak: ## Run the long tests and long fuzzing; the output is kept in docs/soak
	@.ci/soak $(SOAKFUZZ)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@.ci/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## Run the benchmarks that match BENCH for BENCHTIME each (1s)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) $(PKG)

.PHONY: bench-compare
bench-compare: ## Compare the benchmarks of BASE (HEAD~1) and the work tree, ROUNDS (10) times each
	@.ci/bench-compare '$(BASE)' '$(BENCH)' '$(ROUNDS)'

.PHONY: lint
lint: ## Run every check that is not a test
	@.ci/lint

.PHONY: fmt
fmt: ## Format the code
	$(TOOL) golangci-lint fmt

.PHONY: generate
generate: ## Write config/schema.json and docs/config.md anew from the config's structs
	go generate ./config ./test/readme

.PHONY: vuln
vuln: ## Look for known vulnerabilities (needs the network)
	$(TOOL) govulncheck ./...

.PHONY: clean
clean: ## Remove what was built; the caches of Go stay
	rm -rf bin .cache
