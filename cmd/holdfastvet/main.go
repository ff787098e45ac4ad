// Command holdfastvet finds mistakes in the states of middleware before run time:
//
//	go vet -vettool="$(which holdfastvet)" ./...
//
// Its findings, and how to fix them, are described in docs/state-checks.md.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/holdfast-agents/holdfast/cmd/holdfastvet/internal/statecheck"
)

func main() { unitchecker.Main(statecheck.Analyzer) }
