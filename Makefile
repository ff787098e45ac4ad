# make run and make test need nothing but Go.
.PHONY: help run build test check bench fuzz web verify-web browser screenshot

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

run: ## run the server: embedded store in ./data, demo model, http://localhost:8080
	go run ./cmd/server

build: ## build bin/holdfast
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/holdfast ./cmd/server

test: ## run all tests, with the race detector if there is a C compiler
	go test -timeout=30m $(shell command -v gcc >/dev/null 2>&1 && echo -race) ./...

check: ## what CI checks besides the tests
	test -z "$$(gofmt -l .)"
	go vet ./...
	go vet -tags crashpoints ./internal/loop
	go build -o bin/holdfastvet ./cmd/holdfastvet
	go vet -vettool=bin/holdfastvet ./...
	go mod tidy -diff

FUZZTIME ?= 10s
fuzz: ## run every fuzz target for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

bench: ## benchmarks and the load bench, with the ratios that docs/benchmarks.md quotes
	scripts/bench.sh

web: ## make web/dist from web/src (needs Node, no packages)
	node web/build.mjs

verify-web: ## check that web/dist matches web/src, and run the page's own tests
	node web/build.mjs --check
	node --test web/test/*.test.mjs

browser: build ## test the page in a real browser, with reload and kill -9
	node web/test/browser.mjs bin/holdfast

screenshot: ## make docs/images/page.png, the picture in the README
	scripts/screenshot.sh
