package statecheck

// HF001 and HF004: whether a state's type is a struct, and whether everything in it
// survives being written as JSON and read back.

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// checkType checks that the state is a struct, and that its fields survive JSON.
func (c *checker) checkType(s *spec) {
	if _, generic := types.Unalias(s.typ).(*types.TypeParam); generic {
		return
	}
	if _, ok := s.typ.Underlying().(*types.Struct); !ok {
		c.report(codeNotStruct, s.call,
			fmt.Sprintf("%s is of type %s: a state must be a struct by value, so that nobody "+
				"can change it in place. %s", c.title(s), c.typeName(s.typ), c.structFix(s.typ)))
		return
	}
	w := &walker{checker: c, state: c.typeName(s.typ), at: s.call, seen: map[visit]bool{}}
	w.walk(s.typ, w.state)
}

func (c *checker) structFix(t types.Type) string {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		if _, ok := p.Elem().Underlying().(*types.Struct); ok {
			return fmt.Sprintf("Register %s itself.", c.typeName(p.Elem()))
		}
	}
	return "Make it a field of a struct and register that."
}

// walker goes through a state's type as encoding/json does.
type walker struct {
	*checker
	state string
	// at is where a mistake is reported: the innermost field in this package, or
	// the call of state.Register.
	at ast.Node
	// seen holds what was walked: a type may refer to itself, and a second visit from
	// the same place finds nothing new.
	seen map[visit]bool
}

type visit struct {
	t  types.Type
	at token.Pos
}

// lost reports a part of the state that does not survive JSON.
func (w *walker) lost(path string, t types.Type, why, fix string) {
	w.report(codeLost, w.at, fmt.Sprintf("%s (%s) does not survive a checkpoint: %s. %s", path, w.typeName(t), why,
		fix))
}

const leaveOut = `If it may be lost, tag the field json:"-".`

func (w *walker) walk(t types.Type, path string) {
	v := visit{t, w.at.Pos()}
	if w.seen[v] {
		return
	}
	w.seen[v] = true
	if w.ownForm(t, path) {
		return
	}
	if isLock(t) {
		w.lost(path, t, "a lock or an atomic belongs to this process's memory, and a state is copied",
			"Use a plain value; Update already puts changes in order.")
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		w.basic(u, t, path)
	case *types.Chan:
		w.lost(path, t, "encoding/json refuses channels, so that nothing of the state can be saved", leaveOut)
	case *types.Signature:
		w.lost(path, t, "encoding/json refuses functions, so that nothing of the state can be saved", leaveOut)
	case *types.Interface:
		w.lost(path, t, "what is read back is not the type that was written: any becomes map[string]any or "+
			"float64, other interfaces fail",
			"Use a concrete type, or json.RawMessage for JSON that only passes through.")
	case *types.Pointer:
		w.walk(u.Elem(), path)
	case *types.Slice:
		w.walk(u.Elem(), path+"[]")
	case *types.Array:
		w.walk(u.Elem(), path+"[]")
	case *types.Map:
		w.mapKey(u, t, path)
		w.walk(u.Elem(), path+"[]")
	case *types.Struct:
		w.fields(u, path)
	}
}

// ownForm handles a type with its own methods to write and read JSON or text.
func (w *walker) ownForm(t types.Type, path string) bool {
	writes, reads := method(t, "MarshalJSON", "MarshalText"), method(t, "UnmarshalJSON", "UnmarshalText")
	st, ok := t.Underlying().(*types.Struct)
	switch {
	case writes == nil && reads == nil:
		return false
	case writes == nil || reads == nil:
		w.lost(path, t, "it has a method of its own to write JSON or text, or to read it, but not both",
			"Add the other one.")
	case ok && len(writes.Index()) > 1 && st.NumFields() > 1:
		w.lost(path, t, fmt.Sprintf("the %s of an embedded type writes the whole struct, so that "+
			"the other fields are lost", writes.Obj().Name()), "Make the embedded type a field with a name.")
	}
	return true
}

func (w *walker) basic(b *types.Basic, t types.Type, path string) {
	switch {
	case b.Info()&types.IsComplex != 0:
		w.lost(path, t, "encoding/json refuses complex numbers, so that nothing of the state can be saved",
			"Keep the real and the imaginary part in two fields.")
	case b.Kind() == types.UnsafePointer:
		w.lost(path, t, "an address means nothing in another process", "Keep what it points to.")
	}
}

func (w *walker) mapKey(m *types.Map, t types.Type, path string) {
	if b, ok := m.Key().Underlying().(*types.Basic); ok && b.Info()&(types.IsString|types.IsInteger) != 0 {
		return
	}
	byValue := types.NewMethodSet(m.Key()).Lookup(nil, "MarshalText") != nil // a key has no address
	if byValue && method(m.Key(), "UnmarshalText") != nil {
		return
	}
	w.lost(path, t, "its keys are neither strings nor integers, and cannot be written as text and read back",
		"Use a string key, or give the key type MarshalText and UnmarshalText.")
}

// fields walks the fields of one struct; fields that are lost, or share a name, are
// reported where they are declared.
func (w *walker) fields(st *types.Struct, path string) {
	w.sameName(st, path)
	for i := range st.NumFields() {
		f := st.Field(i)
		if f.Name() == "_" || reflect.StructTag(st.Tag(i)).Get("json") == "-" {
			continue
		}
		w.inField(f, func() { w.field(f, path+"."+f.Name()) })
	}
}

func (w *walker) field(f *types.Var, path string) {
	_, pointer := f.Type().Underlying().(*types.Pointer)
	switch {
	case f.Exported(), isLock(f.Type()):
		w.walk(f.Type(), path)
	case f.Embedded() && pointer:
		w.lost(path, f.Type(), "encoding/json cannot make a value for an embedded pointer to an unexported type",
			"Embed it by value, or export the type.")
	case f.Embedded() && isStruct(f.Type()):
		w.walk(f.Type(), path)
	default:
		w.lost(path, f.Type(), "encoding/json leaves unexported fields out",
			`Export it, or tag it json:"-" if it may be lost.`)
	}
}

// inField makes mistakes be reported at the field while f runs, if the field is declared
// in this package.
func (w *walker) inField(v *types.Var, f func()) {
	old := w.at
	if v.Pkg() == w.pass.Pkg {
		w.at = fieldNode{v}
	}
	f()
	w.at = old
}

// fieldNode is the position of a field's name.
type fieldNode struct{ *types.Var }

// End returns where the name ends.
func (f fieldNode) End() token.Pos { return f.Pos() + token.Pos(len(f.Name())) }

// sameName reports fields that encoding/json drops because they share a name at
// the same depth and none, or more than one, is tagged with it.
func (w *walker) sameName(st *types.Struct, path string) {
	claims := topFields(st)
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		group := claims[name]
		if len(group) < 2 {
			continue
		}
		last := group[len(group)-1]
		w.inField(last, func() {
			w.report(codeCollision, w.at,
				fmt.Sprintf("the fields %s and %s of %s are both %q in JSON, so encoding/json silently drops both. "+
					"Give one of them another json tag.", group[0].Name(), last.Name(), path, name))
		})
	}
}

// isStruct reports whether the type is a struct by value.
func isStruct(t types.Type) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// method returns the first of these methods that a type, or a pointer to it, has.
func method(t types.Type, names ...string) *types.Selection {
	switch t.Underlying().(type) {
	case *types.Interface, *types.Pointer:
	default:
		t = types.NewPointer(t)
	}
	set := types.NewMethodSet(t)
	for _, name := range names {
		if m := set.Lookup(nil, name); m != nil {
			return m
		}
	}
	return nil
}

// isLock reports whether the type is from package sync or sync/atomic.
func isLock(t types.Type) bool {
	p := packageOf(t)
	return p == "sync" || p == "sync/atomic"
}

// packageOf returns the path of the package that declares a named type.
func packageOf(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	return named.Obj().Pkg().Path()
}

// jsonName returns the name of a field in JSON, and whether it comes from a tag.
func jsonName(f *types.Var, tag string) (name string, tagged bool) {
	name, _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if name == "" {
		return f.Name(), false
	}
	return name, true
}
