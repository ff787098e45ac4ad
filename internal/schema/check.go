package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Checking a value. The library reads schemas, but its own check has no end that one could
// set: a schema of 3 KB that refers to the next part twice, forty times over, keeps it busy
// for years. So what it has read is walked here, with a budget of steps and a context. The
// verdict of a schema on a value is found once, however many ways lead there, so such a schema
// costs eighty steps.
//
// applyObject, applyArray and the like are in apply.go, by what the keywords are about.

// check is one check of a value.
type check struct {
	ctx    context.Context
	left   int // steps
	depth  int // how many visits are inside of one another
	seen   map[visit]*result
	scopes map[scope]*scope
	values map[any]map[fingerprint]bool // of each enum and const
	sorted map[*jsonschema.Schema][]jsonschema.Regexp
	// notes is whether anything asks for what is evaluated.
	notes bool
}

// visit is a schema that is applied to a value.
type visit struct {
	schema *jsonschema.Schema
	value  *node
	in     *scope
}

// result is what a schema says of a value. It is not changed once it is made.
type result struct {
	// problems are what is wrong, at most a few more than are shown.
	problems []problem
	// evaluated are the members and items of the value that a part of the schema is about,
	// for unevaluatedProperties and unevaluatedItems. It is nil if the value does not fit.
	evaluated *evaluated
}

func (r *result) fits() bool { return len(r.problems) == 0 }

// fine is the result of a schema that is about nothing.
var fine = &result{evaluated: &evaluated{}}

// problemSteps is how much work it is to put into words what is wrong.
const problemSteps = 8

// stopped ends a check from within.
type stopped struct{ err error }

func newCheck(ctx context.Context, s *Schema) *check {
	return &check{
		ctx:    ctx,
		left:   MaxChecking,
		seen:   map[visit]*result{},
		scopes: map[scope]*scope{},
		values: map[any]map[fingerprint]bool{},
		sorted: map[*jsonschema.Schema][]jsonschema.Regexp{},
		notes:  s.unevaluated,
	}
}

// run checks a value. The error is a [*BoundError], or the context's.
func (c *check) run(s *Schema, value any) (problems []problem, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case stopped:
			err = e.err
		default:
			panic(e)
		}
	}()
	return c.visit(s.compiled, &node{value: value}, nil).problems, nil
}

// contextSteps is after how many steps the context is looked at.
const contextSteps = 1_024

// step counts steps, and ends the check if there are none left or its context is over.
func (c *check) step(n int) {
	before := c.left
	c.left -= n
	if c.left < 0 {
		panic(stopped{errChecking()})
	}
	if before/contextSteps != c.left/contextSteps {
		if err := c.ctx.Err(); err != nil {
			panic(stopped{err})
		}
	}
}

// visit applies a schema to a value, or remembers what came of it.
func (c *check) visit(s *jsonschema.Schema, n *node, in *scope) *result {
	c.step(1)
	if s.Bool != nil {
		if *s.Bool {
			return fine
		}
		return &result{problems: c.describe(n, &kind.FalseSchema{})}
	}
	in = c.enter(in, s)
	at := visit{s, n, in}
	if known, begun := c.seen[at]; known != nil {
		return known
	} else if begun {
		return &result{problems: c.problem(n, "the schema refers to itself here, without end")}
	}
	if c.depth++; c.depth > maxNesting {
		bound := fmt.Sprintf("at most %s schemas inside of one another", thousands(maxNesting))
		panic(stopped{&BoundError{Bound: bound}})
	}
	c.seen[at] = nil
	v := &visiting{
		check: c,
		s:     s,
		n:     n,
		in:    in,
		done:  evaluated{noted: c.notes},
	}
	c.seen[at] = v.result()
	c.depth--
	return c.seen[at]
}

// fingerprint returns that of a value.
func (c *check) fingerprint(n *node) fingerprint { return n.fingerprint(c.step) }

// problem returns what is wrong with a value as a list.
func (c *check) problem(n *node, text string) []problem {
	path := n.path()
	c.step(problemSteps + (len(path)+len(text))/bytesPerStep)
	return []problem{{path, text}}
}

// describe explains what is wrong with a value.
func (c *check) describe(n *node, k jsonschema.ErrorKind) []problem {
	texts := describe(k, n.shown())
	// Members come from maps, so sort them: the same mistake always has the same message.
	slices.Sort(texts)
	var problems []problem
	for _, text := range texts[:min(len(texts), maxProblems+1)] {
		problems = append(problems, c.problem(n, text)...)
	}
	return problems
}

// IsBound reports whether an error says that a schema or a check would have taken more than
// it may.
func IsBound(err error) bool {
	var bound *BoundError
	return errors.As(err, &bound)
}
