package statecheck

import (
	"go/types"
	"reflect"
)

// jsonField is a field as encoding/json sees it.
type jsonField struct {
	v      *types.Var
	tagged bool
}

// topFields returns, for each name, the fields with equal claim to it: those of the
// least depth, and of those the tagged ones if there are any. If there is more than one,
// encoding/json drops them all.
func topFields(st *types.Struct) map[string][]*types.Var {
	winners := map[string][]*types.Var{}
	level := []*types.Struct{st}
	seen := map[*types.Struct]bool{}
	for len(level) > 0 {
		found := map[string][]jsonField{}
		var next []*types.Struct
		for _, s := range level {
			if !seen[s] {
				seen[s] = true
				next = append(next, collect(s, found)...)
			}
		}
		for name, group := range found {
			if winners[name] == nil {
				winners[name] = dominant(group)
			}
		}
		level = next
	}
	return winners
}

// collect adds the fields of one struct and returns its embedded structs.
func collect(st *types.Struct, found map[string][]jsonField) (embedded []*types.Struct) {
	for i := range st.NumFields() {
		f, tag := st.Field(i), st.Tag(i)
		name, tagged := jsonName(f, tag)
		if reflect.StructTag(tag).Get("json") == "-" {
			continue
		}
		if inner := embeddedStruct(f); inner != nil && !tagged {
			embedded = append(embedded, inner)
			continue
		}
		if f.Exported() {
			found[name] = append(found[name], jsonField{f, tagged})
		}
	}
	return embedded
}

func embeddedStruct(f *types.Var) *types.Struct {
	if !f.Embedded() {
		return nil
	}
	t := f.Type()
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	st, _ := t.Underlying().(*types.Struct)
	return st
}

func dominant(group []jsonField) []*types.Var {
	var tagged, all []*types.Var
	for _, f := range group {
		all = append(all, f.v)
		if f.tagged {
			tagged = append(tagged, f.v)
		}
	}
	if len(tagged) > 0 {
		return tagged
	}
	return all
}
