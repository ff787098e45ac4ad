package statecheck_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/holdfast-agents/holdfast/cmd/holdfastvet/internal/statecheck"
)

// The corpus in testdata says in each file what is found; everything else in it is
// correct.
func TestCorpus(t *testing.T) {
	t.Parallel()
	analysistest.Run(t, analysistest.TestData(), statecheck.Analyzer, "right", "notstruct", "inplace", "lost", "names",
		"fields", "dup", "dup/both", "dup/top", "listed", "program", "shapes",
		"github.com/holdfast-agents/holdfast/internal/builtin")
}

func TestFixesKeepWhatTheProgramDoes(t *testing.T) {
	t.Parallel()
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), statecheck.Analyzer, "fixes")
}
