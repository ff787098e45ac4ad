package schema

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// The check of each keyword. The order is that of the library, as is what ends a visit early:
// a value of the wrong type has no other problem worth reading.

// visiting is a visit that is under way.
type visiting struct {
	*check
	s        *jsonschema.Schema
	n        *node
	in       *scope
	problems []problem
	done     evaluated
}

// result applies all keywords.
func (v *visiting) result() *result {
	if wrong := v.wrongKind(); wrong != nil {
		return &result{problems: v.describe(v.n, wrong)}
	}
	if v.s.Ref != nil {
		v.self(v.s.Ref)
		if v.s.DraftVersion < 2019 {
			return v.finish() // what stands beside $ref does not count
		}
	}
	switch v.n.value.(type) {
	case map[string]any:
		v.applyObject()
	case []any:
		v.applyArray()
	case string:
		v.applyText()
	case json.Number:
		v.applyNumber()
	}
	if v.s.RecursiveRef != nil {
		v.self(v.recursive(v.in, v.s.RecursiveRef))
	}
	if v.s.DynamicRef != nil {
		v.self(v.dynamic(v.in, v.s.DynamicRef))
	}
	v.applyConditions()
	v.applyUnevaluated()
	return v.finish()
}

func (v *visiting) finish() *result {
	if len(v.problems) > 0 {
		return &result{problems: v.problems}
	}
	return &result{evaluated: &v.done}
}

// say adds what is wrong with the value itself.
func (v *visiting) say(k jsonschema.ErrorKind) { v.add(v.describe(v.n, k)) }

// add adds problems that are new. There may be more than are shown, so that it is seen that
// there are.
func (v *visiting) add(problems []problem) {
	for _, p := range problems {
		if len(v.problems) > maxProblems {
			return
		}
		v.step(1 + len(v.problems)/16)
		if !slices.Contains(v.problems, p) {
			v.problems = append(v.problems, p)
		}
	}
}

// self applies another schema to the same value.
func (v *visiting) self(s *jsonschema.Schema) bool {
	r := v.visit(s, v.n, v.in)
	v.add(r.problems)
	return v.take(r)
}

// take takes over what another schema has evaluated, if the value fits it.
func (v *visiting) take(r *result) bool {
	if r.fits() {
		v.done.merge(v.step, r.evaluated)
	}
	return r.fits()
}

// inner applies a schema to a member or an item.
func (v *visiting) inner(s *jsonschema.Schema, n *node) {
	v.add(v.visit(s, n, v.in).problems)
}

// wrongKind returns what makes all else about a value pointless; nil if nothing does.
func (v *visiting) wrongKind() jsonschema.ErrorKind {
	s, n := v.s, v.n
	if s.Types != nil && !s.Types.IsEmpty() {
		want := s.Types.ToStrings()
		got := n.typeName()
		if !slices.Contains(want, got) && !(n.isInteger() && slices.Contains(want, "integer")) {
			return &kind.Type{Got: got, Want: want}
		}
	}
	if s.Const != nil && !v.allowed(s.Const, []any{*s.Const}) {
		return &kind.Const{Got: n.value, Want: *s.Const}
	}
	if s.Enum != nil && !v.allowed(s.Enum, s.Enum.Values) {
		return &kind.Enum{Got: n.value, Want: s.Enum.Values}
	}
	if s.Format != nil {
		if text, is := n.value.(string); is {
			v.step(1 + len(text)) // a regular expression is compiled
		}
		if err := s.Format.Validate(n.value); err != nil {
			return &kind.Format{Got: n.value, Want: s.Format.Name, Err: err}
		}
	}
	return nil
}

// allowed reports whether the value is one of an enum's, or equal to a const.
func (v *visiting) allowed(by any, values []any) bool {
	known := v.values[by]
	if known == nil {
		known = map[fingerprint]bool{}
		for _, value := range values {
			known[v.fingerprint(&node{value: value})] = true
		}
		v.values[by] = known
	}
	return known[v.fingerprint(v.n)]
}

// patternsOf returns the regular expressions of patternProperties, always in the same order.
func (v *visiting) patternsOf(s *jsonschema.Schema) []jsonschema.Regexp {
	if len(s.PatternProperties) == 0 {
		return nil
	}
	known := v.sorted[s]
	if known == nil {
		known = slices.SortedFunc(maps.Keys(s.PatternProperties), func(a, b jsonschema.Regexp) int {
			return cmp.Compare(a.String(), b.String())
		})
		v.step(len(known))
		v.sorted[s] = known
	}
	return known
}

func (v *visiting) applyObject() {
	s, members := v.s, v.n.members()
	v.step(1 + len(members)/2)
	if s.MinProperties != nil && len(members) < *s.MinProperties {
		v.say(&kind.MinProperties{Got: len(members), Want: *s.MinProperties})
	}
	if s.MaxProperties != nil && len(members) > *s.MaxProperties {
		v.say(&kind.MaxProperties{Got: len(members), Want: *s.MaxProperties})
	}
	if missing := v.missing(s.Required); missing != nil {
		v.say(&kind.Required{Missing: missing})
	}
	for i := range members {
		switch needs := s.Dependencies[members[i].name].(type) {
		case []string:
			v.needs(members[i].name, needs)
		case *jsonschema.Schema:
			v.self(needs)
		}
	}
	v.applyMembers()
	if s.PropertyNames != nil {
		v.applyNames()
	}
	for i := range members {
		if sub := s.DependentSchemas[members[i].name]; sub != nil {
			v.self(sub)
		}
		v.needs(members[i].name, s.DependentRequired[members[i].name])
	}
}

// needs says which members are missing that another one needs.
func (v *visiting) needs(name string, others []string) {
	if missing := v.missing(others); missing != nil {
		v.say(&kind.DependentRequired{Prop: name, Missing: missing})
	}
}

// applyNames applies what a schema says of the names of members.
func (v *visiting) applyNames() {
	members := v.n.members()
	for i := range members {
		name := &node{value: members[i].name}
		for _, p := range v.visit(v.s.PropertyNames, name, v.in).problems {
			v.add(v.problem(v.n, "the member's name is wrong: "+p.text))
		}
	}
}

// applyMembers applies what a schema says of the members by their names.
func (v *visiting) applyMembers() {
	s := v.s
	var unknown []string
	members := v.n.members()
	for i := range members {
		m := &members[i]
		evaluated := false
		if sub, is := s.Properties[m.name]; is {
			evaluated = true
			v.inner(sub, m)
		}
		for _, p := range v.patternsOf(s) {
			if v.matches(p, m.name) {
				evaluated = true
				v.inner(s.PatternProperties[p], m)
			}
		}
		if !evaluated && s.AdditionalProperties != nil {
			evaluated = true
			switch additional := s.AdditionalProperties.(type) {
			case bool:
				if !additional {
					unknown = append(unknown, m.name)
				}
			case *jsonschema.Schema:
				v.inner(additional, m)
			}
		}
		if evaluated {
			v.done.member(m.name)
		}
	}
	if len(unknown) > 0 {
		v.say(&kind.AdditionalProperties{Properties: unknown})
	}
}

func (v *visiting) applyArray() {
	s, items := v.s, v.n.items()
	v.step(1 + len(items)/8)
	if s.MinItems != nil && len(items) < *s.MinItems {
		v.say(&kind.MinItems{Got: len(items), Want: *s.MinItems})
	}
	if s.MaxItems != nil && len(items) > *s.MaxItems {
		v.say(&kind.MaxItems{Got: len(items), Want: *s.MaxItems})
	}
	if s.UniqueItems {
		v.applyUnique(items)
	}
	first, rest := v.s.PrefixItems, any(s.Items2020)
	if s.DraftVersion < 2020 {
		rest = s.AdditionalItems
		switch declared := s.Items.(type) {
		case *jsonschema.Schema:
			rest = declared
		case []*jsonschema.Schema:
			first = declared
		}
	}
	for i := range min(len(first), len(items)) {
		v.inner(first[i], &items[i])
		v.done.item(i)
	}
	v.applyRest(rest, min(len(first), len(items)))
	v.applyContains(items)
}

// applyRest applies a schema to the items from one on. It is nil, a bool or a schema.
func (v *visiting) applyRest(rest any, from int) {
	items := v.n.items()
	switch rest := rest.(type) {
	case nil:
		return
	case bool:
		if !rest && from < len(items) {
			v.say(&kind.AdditionalItems{Count: len(items) - from})
		}
	case *jsonschema.Schema:
		if rest == nil {
			return
		}
		for i := range items[from:] {
			v.inner(rest, &items[from+i])
		}
	}
	v.done.allItems = true
}

func (v *visiting) applyUnique(items []node) {
	places := map[fingerprint]int{}
	for i := range items {
		p := v.fingerprint(&items[i])
		if before, twice := places[p]; twice {
			v.say(&kind.UniqueItems{Duplicates: [2]int{before, i}})
			return
		}
		places[p] = i
	}
}

func (v *visiting) applyContains(items []node) {
	s := v.s
	if s.Contains == nil {
		return
	}
	var wrong []problem
	var matched []int
	for i := range items {
		r := v.visit(s.Contains, &items[i], v.in)
		if !r.fits() {
			if len(wrong) <= maxProblems {
				wrong = append(wrong, r.problems...)
			}
			continue
		}
		matched = append(matched, i)
		if s.DraftVersion >= 2020 {
			v.done.item(i)
		}
	}
	few := s.MinContains == nil && len(matched) == 0 || s.MinContains != nil && len(matched) < *s.MinContains
	switch {
	case few && len(wrong) > 0:
		v.add(wrong)
	case few && s.MinContains != nil:
		v.say(&kind.MinContains{Got: matched, Want: *s.MinContains})
	case few:
		v.say(&kind.Contains{})
	}
	if s.MaxContains != nil && len(matched) > *s.MaxContains {
		v.say(&kind.MaxContains{Got: matched, Want: *s.MaxContains})
	}
}

func (v *visiting) applyText() {
	s := v.s
	text, _ := v.n.value.(string)
	if s.MinLength != nil || s.MaxLength != nil {
		v.step(1 + len(text)/bytesPerStep)
		length := utf8.RuneCountInString(text)
		if s.MinLength != nil && length < *s.MinLength {
			v.say(&kind.MinLength{Got: length, Want: *s.MinLength})
		}
		if s.MaxLength != nil && length > *s.MaxLength {
			v.say(&kind.MaxLength{Got: length, Want: *s.MaxLength})
		}
	}
	if s.Pattern != nil && !v.matches(s.Pattern, text) {
		v.say(&kind.Pattern{Got: text, Want: s.Pattern.String()})
	}
}

// matches matches a regular expression, and counts what that takes at most.
func (v *visiting) matches(p jsonschema.Regexp, text string) bool {
	program := 1
	if sized, is := p.(*pattern); is {
		program = sized.program
	}
	v.step(1 + (len(text)+1)*program/bytesPerStep)
	return p.MatchString(text)
}

func (v *visiting) applyNumber() {
	s := v.s
	text, is := v.n.value.(json.Number)
	bounds := s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil
	if !is || !bounds && s.MultipleOf == nil {
		return
	}
	v.step(numberSteps(text))
	n := v.n.number()
	if s.Minimum != nil && n.Cmp(s.Minimum) < 0 {
		v.say(&kind.Minimum{Got: n, Want: s.Minimum})
	}
	if s.Maximum != nil && n.Cmp(s.Maximum) > 0 {
		v.say(&kind.Maximum{Got: n, Want: s.Maximum})
	}
	if s.ExclusiveMinimum != nil && n.Cmp(s.ExclusiveMinimum) <= 0 {
		v.say(&kind.ExclusiveMinimum{Got: n, Want: s.ExclusiveMinimum})
	}
	if s.ExclusiveMaximum != nil && n.Cmp(s.ExclusiveMaximum) >= 0 {
		v.say(&kind.ExclusiveMaximum{Got: n, Want: s.ExclusiveMaximum})
	}
	if s.MultipleOf != nil && !new(big.Rat).Quo(n, s.MultipleOf).IsInt() {
		v.say(&kind.MultipleOf{Got: n, Want: s.MultipleOf})
	}
}

// missing returns which of the names are no members.
func (v *visiting) missing(names []string) []string {
	var missing []string
	object, _ := v.n.value.(map[string]any)
	v.step(len(names))
	for _, name := range names {
		if _, there := object[name]; !there {
			missing = append(missing, name)
		}
	}
	return missing
}
