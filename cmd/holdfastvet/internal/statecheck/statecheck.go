// Package statecheck is an analysis that finds mistakes in the states of middleware
// before run time. docs/state-checks.md describes each code.
package statecheck

import (
	"go/ast"
	"go/token"
	"go/types"
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
	pass   *analysis.Pass
	files  []*ast.File // without tests
	allows map[line][]allow
	// inits are the only values of variables that are never changed.
	inits map[types.Object]ast.Expr
	decls map[types.Object]*ast.FuncDecl
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
	c := &checker{pass: pass, told: map[finding]bool{}}
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

// usesStates reports whether the package refers to anything in package state. A package
// can use another's keys without importing package state.
func (c *checker) usesStates() bool {
	for _, obj := range c.pass.TypesInfo.Uses {
		if obj.Pkg() != nil && pathOf(obj.Pkg()) == statePath {
			return true
		}
	}
	return false
}

// pathOf returns a package's path without the suffix of variants built for tests.
func pathOf(p *types.Package) string {
	path, _, _ := strings.Cut(p.Path(), " [")
	return path
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
