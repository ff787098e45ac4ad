package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"testing"
)

// maxMethods is how many methods a type may have. A type with more than anybody
// remembers is several types.
const maxMethods = 50

// methods measures each type: its own methods, those that it has from what it embeds,
// and the functions of its package that are methods but for their spelling, because
// they are handed the type before anything but a context.
func methods(all []*code) []measured {
	var types []measured
	for _, c := range all {
		if c.again {
			continue
		}
		functions := functionsOn(c)
		for _, obj := range typesOf(c) {
			own := ownMethods(obj)
			promoted, taking := methodSet(obj)-own, functions[obj]
			m := measured{key: path.Join(c.name, obj.Name()), n: own + promoted + taking}
			at := path.Join(c.name, c.where(obj.Pos()))
			m.complaint = func() string {
				return fmt.Sprintf("%s: %s has %d methods (%d own, %d promoted, %d functions that take it), at most "+
					"%d are allowed: find the fields that only some of them use, and give those a type of their own",
					at, obj.Name(), m.n, own, promoted, taking, maxMethods)
			}
			types = append(types, m)
		}
	}
	return types
}

// typesOf are the types that a package declares, those in functions included.
func typesOf(c *code) []*types.TypeName {
	var all []*types.TypeName
	for _, obj := range c.info.Defs {
		name, ok := obj.(*types.TypeName)
		if !ok || name.IsAlias() {
			continue
		}
		if _, ok := name.Type().(*types.Named); ok {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b *types.TypeName) int { return cmp.Compare(a.Pos(), b.Pos()) })
	return all
}

// ownMethods is how many methods a type declares.
func ownMethods(obj *types.TypeName) int {
	if i, ok := obj.Type().Underlying().(*types.Interface); ok {
		return i.NumExplicitMethods()
	}
	return obj.Type().(*types.Named).NumMethods()
}

// methodSet is how many methods can be called on a type, or on a pointer to it.
func methodSet(obj *types.TypeName) int {
	if i, ok := obj.Type().Underlying().(*types.Interface); ok {
		return i.NumMethods()
	}
	return types.NewMethodSet(types.NewPointer(obj.Type())).Len()
}

// functionsOn counts the functions of a package by the type that they are handed first.
// Variables that hold a function are functions too.
func functionsOn(c *code) map[*types.TypeName]int {
	n := map[*types.TypeName]int{}
	for _, name := range c.types.Scope().Names() {
		obj := c.types.Scope().Lookup(name)
		if isType(obj) {
			continue
		}
		if s, ok := obj.Type().(*types.Signature); ok {
			if first := firstParameter(s); first != nil && first.Pkg() == c.types {
				n[first]++
			}
		}
	}
	return n
}

// firstParameter is the type of the first parameter that is no context, or what it
// points to; nil if it has no name.
func firstParameter(s *types.Signature) *types.TypeName {
	for p := range s.Params().Variables() {
		t := types.Unalias(p.Type())
		if pointer, ok := t.(*types.Pointer); ok {
			t = types.Unalias(pointer.Elem())
		}
		named, ok := t.(*types.Named)
		if !ok {
			return nil
		}
		if obj := named.Obj(); obj.Name() != "Context" || obj.Pkg() == nil || obj.Pkg().Path() != "context" {
			return obj
		}
	}
	return nil
}

// TestMethodsSeen: a type's methods are counted, whatever they are made of.
func TestMethodsSeen(t *testing.T) {
	t.Parallel()
	const want = `methods/methods.go:11: engine has 6 methods (2 own, 0 promoted, 4 functions that take it), ` +
		`at most 50 are allowed: ` +
		`find the fields that only some of them use, and give those a type of their own
methods/methods.go:26: wrapper has 4 methods (1 own, 3 promoted, 0 functions that take it), at most 50 are allowed: ` +
		`find the fields that only some of them use, and give those a type of their own`
	wantRefused(t, gauge{limit: 3}, methods([]*code{fixture(t, "methods")}), want)
}

// No struct embeds these: what is made of one of them holds it in a field with a name,
// or better the few functions of it that it uses.
var notEmbedded = []string{"Engine", "run", "handler", "Keeper", "parser"}

// embedding has the structs that embed one of the types that must not be.
func embedding(all []*code) []measured {
	var structs []measured
	for _, c := range all {
		if c.again {
			continue
		}
		for _, f := range c.files {
			for _, decl := range f.Decls {
				structs = append(structs, embedded(c, decl)...)
			}
		}
	}
	return structs
}

func embedded(c *code, decl ast.Decl) []measured {
	var all []measured
	within := ""
	if fn, ok := decl.(*ast.FuncDecl); ok {
		within = functionName(fn)
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			within = n.Name.Name
		case *ast.StructType:
			for _, field := range n.Fields.List {
				name := typeName(c.info.TypeOf(field.Type))
				if len(field.Names) > 0 || !slices.Contains(notEmbedded, name) {
					continue
				}
				at := path.Join(c.name, c.where(field.Pos()))
				all = append(all, measured{key: path.Join(c.name, within), n: 1, complaint: func() string {
					return fmt.Sprintf("%s: a struct embeds %s: hold it in a field with a name, or better the few "+
						"functions of it that are used", at, name)
				}})
			}
		}
		return true
	})
	return all
}

// typeName is the name that a type, or what it points to, was declared with.
func typeName(t types.Type) string {
	t = types.Unalias(t)
	if pointer, ok := t.(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	if named, ok := t.(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}

// TestEmbeddingSeen: an alias hides nothing, nor does a struct without a name.
func TestEmbeddingSeen(t *testing.T) {
	t.Parallel()
	const why = ": hold it in a field with a name, or better the few functions of it that are used"
	const want = "embedding/embedding.go:21: a struct embeds run" + why + "\n" +
		"embedding/embedding.go:11: a struct embeds Engine" + why + "\n" +
		"embedding/embedding.go:17: a struct embeds run" + why
	wantRefused(t, gauge{}, embedding([]*code{fixture(t, "embedding")}), want)
}
