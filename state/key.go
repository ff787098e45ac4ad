// Package state is for middleware that remembers something in a thread. [Register] gives a
// state a name, a version and a Go type; the [Key] that it returns reads and writes the
// value in a hook's context. The values are saved with every checkpoint, so they survive
// the process, and a rewind restores those of the checkpoint.
//
// A middleware lists its keys in [holdfast.Middleware].States. Values written by an older
// version of a program are migrated when they are first read; see [Spec].
package state

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast/codes"
)

// Keys: registering a state, and reading and writing it, in a hook's context or in a
// container. Registering gives each key a slot of its own, the index of its value.

// Scope says how long a middleware's state lives.
type Scope string

// The scopes. For what a whole tenant shares, see [store.Ledger].
const (
	// ScopeThread: the state lives as long as the thread. A fork starts with the value
	// at its checkpoint.
	ScopeThread Scope = "thread"
	// ScopeRun: a run with new messages starts with the initial value. A run that is
	// resumed, recovered or answered keeps its value.
	ScopeRun Scope = "run"
)

// Spec describes a state that a middleware keeps in the thread.
type Spec[T any] struct {
	// Name is "owner.name": lower case letters, digits, _ and -, with at least one
	// dot. Checkpoints and logs identify the state by it, so it must never change.
	Name string
	// Version is raised when a stored value would be misread: because a field is
	// removed or renamed, or its type changes. A new optional field does not need a
	// new version. 0 means 1.
	Version int
	// Scope is how long the state lives; empty means ScopeThread.
	Scope Scope
	// Initial makes the value that is read before any was written; nil means the zero
	// T. Members that a stored value lacks take their value from it too, so a member
	// that Initial sets must not be omitempty.
	Initial func() T
	// Migrations turn the JSON of one version into that of the next: the one under
	// key 1 turns version 1 into version 2. They run in order when an older value is
	// first read. See [Migrate].
	Migrations map[int]Migration
	// Redact returns what the thread's owner may see of the value, in the API and on
	// the page; nil shows all of it.
	Redact func(T) any
	// Validate returns what is wrong with a value that JSON can hold and the middleware
	// cannot use, such as a negative count; nil allows all values. A stored value that
	// it refuses is not read ([codes.StateUnreadable]), and [Key.Update] does not write
	// one ([codes.StateUnwritable]). Callers see its text, unless there is a Redact. It
	// must not change the value.
	Validate func(T) error
}

// Key reads and writes one state: it is to [States] what a field name is to a
// struct. Keep it in a variable of the package that owns the state.
type Key[T any] struct {
	def      *stateDef
	node, at int // its place
	initial  func() T
	validate func(T) error
}

// declared is a key of any type.
type declared interface {
	StateName() string
	definition() *stateDef
}

// stateDef is what is known about a state apart from its Go type.
type stateDef struct {
	name       string
	version    int
	scope      Scope
	typ        string
	migrations map[int]Migration
	slot       int
	// restored makes a cell from a stored value.
	restored func(*stored) cell
	// show returns the JSON of what may be shown of a cell; nil shows all of it.
	show func(cell) (json.RawMessage, error)
}

// slots counts the keys of the process, so that a read is an index instead of a
// search. It is the only thing that keys share.
var slots atomic.Int64

var stateNames = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)+$`)

// Register makes the key of a state. It panics if the name, the version, the
// scope or T is invalid, because that is a mistake in the program. The middleware that
// owns the state lists the key in its States, which makes it part of an agent; a run
// cannot use any other key. Two states with the same name are detected when they meet
// in one agent: see [NewSchema].
func Register[T any](spec Spec[T]) *Key[T] {
	t := reflect.TypeFor[T]()
	switch {
	case !stateNames.MatchString(spec.Name):
		panic(fmt.Sprintf("state.Register: the name %q is not owner.name: lower case letters, "+
			"digits, _ and -, with a dot", spec.Name))
	case len(spec.Name) > 128:
		panic(fmt.Sprintf("state.Register: the name %q is longer than 128 bytes", spec.Name))
	case t.Kind() != reflect.Struct:
		panic(fmt.Sprintf("state.Register(%q): %v is not a struct; a state is a struct by value, so that "+
			"nobody can change it in place", spec.Name, t))
	case spec.Version < 0:
		panic(fmt.Sprintf("state.Register(%q): version %d is negative", spec.Name, spec.Version))
	case spec.Scope != "" && spec.Scope != ScopeThread && spec.Scope != ScopeRun:
		panic(fmt.Sprintf("state.Register(%q): unknown scope %q; use ScopeThread or ScopeRun", spec.Name, spec.Scope))
	}
	def := &stateDef{
		name:       spec.Name,
		version:    max(spec.Version, 1),
		scope:      spec.Scope,
		typ:        t.String(),
		migrations: spec.Migrations,
		slot:       int(slots.Add(1) - 1),
	}
	if def.scope == "" {
		def.scope = ScopeThread
	}
	key := &Key[T]{def: def, initial: spec.Initial, validate: spec.Validate}
	key.node, key.at = place(def.slot)
	def.restored = func(kept *stored) cell {
		e := &entry[T]{key: key, kept: kept}
		e.pending.Store(true)
		return e
	}
	if spec.Redact != nil {
		def.show = func(c cell) (json.RawMessage, error) {
			value, err := key.of(c)
			if err != nil {
				return nil, err
			}
			return json.Marshal(spec.Redact(value))
		}
	}
	return key
}

// StateName returns the name that the state was registered with.
func (k *Key[T]) StateName() string { return k.def.name }

func (k *Key[T]) definition() *stateDef { return k.def }

// Get returns the state's value, or its initial value if it has none. It fails, and
// changes nothing, if the stored value cannot be read: it has another type or a
// version newer than this program knows, or a migration is missing or failed.
func (k *Key[T]) Get(s *States) (T, error) {
	if n := s.node(k.node); n != nil {
		if e, ok := n[k.at&(nodeWidth-1)].(*entry[T]); ok && !e.pending.Load() {
			return e.value, nil
		}
	}
	return k.find(s)
}

// find is Get for a value that is absent, not decoded yet or without a place. It is a
// separate function so that reading a decoded value needs no stack frame for it.
func (k *Key[T]) find(s *States) (T, error) { return k.of(s.cell(k.def)) }

// of returns the value of a cell of this state.
func (k *Key[T]) of(c cell) (value T, err error) {
	if c == nil {
		if k.initial != nil {
			value = k.initial()
		}
		return value, nil
	}
	e, ok := c.(*entry[T])
	if !ok { // another key of this name has read it
		return value, errStateType(k.def, c.definition().typ)
	}
	if e.pending.Load() {
		err = e.decode()
	}
	if err != nil {
		return value, err
	}
	return e.value, nil
}

// With returns states in which this one has the given value; s does not change.
func (k *Key[T]) With(s *States, value T) *States {
	return s.with(k.def, &entry[T]{key: k, value: value})
}

// Without returns states in which this one has its initial value again. If there is
// no value to forget, it returns s.
func (k *Key[T]) Without(s *States) *States {
	if s.cell(k.def) == nil {
		return s
	}
	return s.with(k.def, nil)
}

// Has reports whether a value was written and not forgotten since.
func (k *Key[T]) Has(s *States) bool { return s.cell(k.def) != nil }

// Load is Get for a hook or a tool: it reads the state of the run in the context.
// Outside a run it returns [holdfast.ErrNoRun]; if no middleware of the run's agent
// lists the key in its States, a [codes.StateNotListed].
func (k *Key[T]) Load(ctx context.Context) (T, error) {
	live, err := liveStates(ctx, k.def)
	if err != nil {
		var zero T
		return zero, err
	}
	return k.Get(live.Now())
}

// Update changes the state of the run in the context and returns the new value.
// Concurrent updates run one at a time, and others may wait for f, so f should only
// compute. The change is stored with the run's next commit: at the latest, with the
// result of the call that makes it or with the iteration's checkpoint. If the new
// value is invalid or cannot be written as JSON, or no middleware of the run's agent
// lists the key, nothing changes.
func (k *Key[T]) Update(ctx context.Context, f func(T) T) (T, error) {
	var zero T
	live, err := liveStates(ctx, k.def)
	if err != nil {
		return zero, err
	}
	e := &entry[T]{key: k}
	err = live.update(func(s *States) (*States, error) {
		old, err := k.Get(s)
		if err != nil {
			return nil, err
		}
		e.value = f(old)
		if err := k.check(e.value); err != nil {
			return nil, errInvalid(codes.StateUnwritable, "The new value of the state %q is invalid", k.def, err)
		}
		if _, err := e.encode(); err != nil {
			return nil, err
		}
		return s.with(k.def, e), nil
	})
	if err != nil {
		return zero, err
	}
	return e.value, nil
}

// check asks the state's owner whether it can use the value.
func (k *Key[T]) check(value T) error {
	if k.validate == nil {
		return nil
	}
	return k.validate(value)
}

// Reset forgets the state's value in the run of the context: it has its initial value
// again. Its errors are those of Load.
func (k *Key[T]) Reset(ctx context.Context) error {
	live, err := liveStates(ctx, k.def)
	if err != nil {
		return err
	}
	return live.update(func(s *States) (*States, error) { return k.Without(s), nil })
}
