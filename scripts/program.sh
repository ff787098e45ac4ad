#!/usr/bin/env bash
# Builds, tests and runs examples/program, a module of its own that uses every public
# package as somebody else's program would.
set -euo pipefail
cd "$(dirname "$0")/../examples/program"

test -z "$(gofmt -l .)"
go mod tidy -diff
go vet ./...
go build -o /dev/null ./...
# Among the tests, the programs themselves run, with a local stand-in for the model.
go test -timeout=5m ./...
