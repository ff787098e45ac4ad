package statecheck

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// registered is the fact of a package: the states that it and its imports register. It
// includes those of the imports because the facts of an indirectly imported package are
// not always available.
type registered struct {
	States []registration
}

// registration is one call of state.Register.
type registration struct {
	Name, Type, Package string
	// At is file name, line and column.
	At string
}

// AFact marks the type as a fact.
func (*registered) AFact() {}

func (r *registered) String() string {
	names := make([]string, len(r.States))
	for i, s := range r.States {
		names[i] = s.Name
	}
	return "registers " + strings.Join(names, " ")
}

func (r registration) String() string {
	return fmt.Sprintf("%s (%s, %s)", r.Type, r.Package, r.At)
}

// checkDuplicates compares the names of this package's states with each other and with
// those of imported packages, and exports all of them.
func (c *checker) checkDuplicates(specs []*spec) {
	known := c.imported()
	for _, s := range specs {
		if !s.named {
			continue
		}
		r := c.registration(s)
		if i := slices.IndexFunc(known, func(k registration) bool { return k.Name == r.Name && k != r }); i >= 0 {
			c.report(codeDuplicate, s.nameAt,
				fmt.Sprintf("the name %q is registered twice: here with %s, and with %s. One would be read as the "+
					"other. Give each a name of its own, or share one key.", r.Name, r.Type, known[i]))
		}
		known = appendNew(known, r)
	}
	if len(known) > 0 && c.pass.Pkg.Name() != "main" { // nobody imports main
		c.pass.ExportPackageFact(&registered{States: known})
	}
}

func (c *checker) registration(s *spec) registration {
	at := c.pass.Fset.Position(s.call.Pos())
	return registration{
		Name: s.name, Type: c.typeName(s.typ), Package: pathOf(c.pass.Pkg),
		At: fmt.Sprintf("%s:%d:%d", filepath.Base(at.Filename), at.Line, at.Column),
	}
}

// imported returns the states of all imported packages. Two states of one name are
// reported where their packages first meet: an import that has both has reported them
// already.
func (c *checker) imported() []registration {
	var known []registration
	for _, p := range c.pass.Pkg.Imports() {
		var fact registered
		if !c.pass.ImportPackageFact(p, &fact) {
			continue
		}
		before := slices.Clone(known)
		for _, r := range fact.States {
			for _, k := range before {
				if k.Name == r.Name && k != r && !slices.Contains(fact.States, k) && !slices.Contains(before, r) {
					c.reportImport(p.Path(), k, r)
				}
			}
			known = appendNew(known, r)
		}
	}
	return known
}

func (c *checker) reportImport(path string, one, other registration) {
	for _, f := range c.files {
		for _, imp := range f.Imports {
			if imported, err := strconv.Unquote(imp.Path.Value); err == nil && imported == path {
				c.reportDuplicateImport(imp, one, other)
				return
			}
		}
	}
}

func (c *checker) reportDuplicateImport(imp *ast.ImportSpec, one, other registration) {
	c.pass.Report(analysis.Diagnostic{
		Pos:      imp.Pos(),
		End:      imp.End(),
		Category: codeDuplicate,
		Message: fmt.Sprintf("%s: two imported packages register the name %q: %s and %s. An agent with both "+
			"does not start. Rename one.", codeDuplicate, one.Name, one, other),
	})
}

func appendNew(known []registration, r registration) []registration {
	if slices.Contains(known, r) {
		return known
	}
	return append(known, r)
}
