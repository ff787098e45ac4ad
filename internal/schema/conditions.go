package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Schemas that another one applies to the same value: not, allOf, anyOf, oneOf, if, and
// unevaluatedProperties and unevaluatedItems, which are about the members that the others
// leave.

func (v *visiting) applyConditions() {
	s := v.s
	if s.Not != nil && v.take(v.visit(s.Not, v.n, v.in)) {
		v.say(&kind.Not{})
	}
	for _, sub := range s.AllOf {
		v.self(sub)
	}
	if len(s.AnyOf) > 0 {
		v.applyAnyOf()
	}
	if len(s.OneOf) > 0 {
		v.applyOneOf()
	}
	switch {
	case s.If == nil:
	case v.take(v.visit(s.If, v.n, v.in)):
		if s.Then != nil {
			v.self(s.Then)
		}
	case s.Else != nil:
		v.self(s.Else)
	}
}

func (v *visiting) applyAnyOf() {
	var failed []*result
	fits := false
	for _, sub := range v.s.AnyOf {
		r := v.visit(sub, v.n, v.in)
		if v.take(r) {
			fits = true // the others still say what is evaluated
			continue
		}
		failed = append(failed, r)
	}
	if !fits {
		v.add(v.alternatives(failed))
	}
}

func (v *visiting) applyOneOf() {
	var failed []*result
	fits := -1
	for i, sub := range v.s.OneOf {
		r := v.visit(sub, v.n, v.in)
		switch {
		case !v.take(r):
			failed = append(failed, r)
		case fits >= 0:
			v.say(&kind.OneOf{Subschemas: []int{fits, i}})
			return
		default:
			fits = i
		}
	}
	if fits < 0 {
		v.add(v.alternatives(failed))
	}
}

// maxAlternatives bounds the text that says why none of several schemas fits, in bytes.
const maxAlternatives = 4_000

// alternatives explains why none of several schemas fits.
func (v *visiting) alternatives(failed []*result) []problem {
	var reasons []string
	size := 0
	for _, r := range failed {
		reason := problemsError(slices.Clone(r.problems)).Error()
		v.step(1 + len(reason)/bytesPerStep + len(reasons)/16)
		if size < maxAlternatives && !slices.Contains(reasons, reason) {
			reasons = append(reasons, shorten(reason, maxAlternatives))
			size += len(reason)
		}
	}
	return v.problem(v.n, noneFits(reasons))
}

func (v *visiting) applyUnevaluated() {
	s := v.s
	if s.UnevaluatedProperties != nil {
		members := v.n.members()
		for i := range members {
			if m := &members[i]; !v.done.members[m.name] && v.n.typeName() == "object" {
				v.inner(s.UnevaluatedProperties, m)
				v.done.member(m.name)
			}
		}
	}
	if s.UnevaluatedItems != nil {
		items := v.n.items()
		for i := range items {
			if !v.done.hasItem(i) && v.n.typeName() == "array" {
				v.inner(s.UnevaluatedItems, &items[i])
				v.done.item(i)
			}
		}
	}
}
