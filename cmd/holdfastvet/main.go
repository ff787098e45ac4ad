// Command holdfastvet finds mistakes in the states of middleware before run time:
//
//	go vet -vettool="$(which holdfastvet)" ./...
//
// What it finds, and how to fix it, is described in docs/state-checks.md.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/holdfast-agents/holdfast/cmd/holdfastvet/internal/statecheck"
)

func main() { unitchecker.Main(statecheck.Analyzer) }
