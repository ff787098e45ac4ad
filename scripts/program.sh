#!/usr/bin/env bash
# Builds, tests and runs examples/program, a module with a name of its own that uses every
# public package as somebody else's program would.
set -euo pipefail
cd "$(dirname "$0")/../examples/program"

test -z "$(gofmt -l .)"
go mod tidy -diff
# Now that its go.mod is known to be whole: in the workspace it is the same, and takes the
# packages of this repository as they are compiled for everything else.
go vet ./...
# Among the tests, the programs themselves run, with a local stand-in for the model.
go test -timeout=5m ./...
