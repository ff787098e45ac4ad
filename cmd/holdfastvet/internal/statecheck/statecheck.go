// Package statecheck is an analysis that finds mistakes in the states of middleware
// before run time. docs/state-checks.md describes each code.
package statecheck

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// The codes of the diagnostics.
const (
	codeNotStruct = "HF001"
	codeInPlace   = "HF002"
	codeDuplicate = "HF003"
	codeLost      = "HF004"
	codeCollision = "HF005"
	codeUnlisted  = "HF006"
)

const (
	// holdfast is the path of the module.
	holdfast = "github.com/holdfast-agents/holdfast"
	// statePath is the path of the package with Register and Key.
	statePath = holdfast + "/state"
)

// Analyzer checks the states that a package registers with state.Register,
// and what it does with their values.
var Analyzer = &analysis.Analyzer{
	Name: "holdfaststate",
	Doc: "find mistakes in the states of holdfast middleware\n\nA state must be a struct by value, listed by a " +
		"middleware, never changed in place, with a name of its own and fields that survive JSON.",
	Run:       run,
	FactTypes: []analysis.Fact{new(registered)},
}

// checker is the check of one package.
type checker struct {
	*source
	allows map[line][]allow
	// told keeps a mistake from being reported again for each state that shares it.
	told map[finding]bool
	// quiet: report nothing for now.
	quiet bool
}

type finding struct {
	pos  token.Pos
	code string
}

func run(pass *analysis.Pass) (any, error) {
	c := &checker{source: &source{pass: pass}, told: map[finding]bool{}}
	for _, f := range pass.Files {
		// Tests register invalid states, and two versions of one state, on purpose.
		if !strings.HasSuffix(pass.Fset.File(f.FileStart).Name(), "_test.go") {
			c.files = append(c.files, f)
		}
	}
	var specs []*spec
	if c.usesStates() {
		c.allows = findAllows(pass.Fset, c.files)
		c.inits, c.decls = c.findValues()
		specs = c.findSpecs()
		for _, s := range specs {
			c.checkType(s)
			c.checkName(s)
		}
		c.checkInPlace(specs)
		c.checkListed(specs)
	}
	c.checkDuplicates(specs)
	return nil, nil
}

// report reports a mistake, unless a comment allows it.
func (c *checker) report(code string, at ast.Node, text string, fixes ...analysis.SuggestedFix) {
	key := finding{at.Pos(), code}
	if c.quiet || c.told[key] {
		return
	}
	c.told[key] = true
	allowed, note := c.allowed(code, at.Pos())
	if allowed {
		return
	}
	c.pass.Report(analysis.Diagnostic{
		Pos:            at.Pos(),
		End:            at.End(),
		Category:       code,
		Message:        code + ": " + text + note,
		SuggestedFixes: fixes,
	})
}
