package state

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Values in a container. One that comes from a store stays JSON until somebody reads it:
// only then is it migrated and decoded, once, and what fails then is reported to the
// reader.

// cell is an entry of any type: a value in its place.
type cell interface {
	definition() *stateDef
	encode() (json.RawMessage, error)
	stored() *stored
}

// entry is a value: either one written by this program, or a stored one that is
// decoded when it is first read.
type entry[T any] struct {
	key     *Key[T]
	kept    *stored                         // the stored value; nil if the value was written
	pending atomic.Bool                     // kept is not decoded yet
	text    atomic.Pointer[json.RawMessage] // value as JSON, once that was needed
	value   T
}

func (e *entry[T]) definition() *stateDef { return e.key.def }

func (e *entry[T]) stored() *stored { return e.kept }

func (e *entry[T]) encode() (json.RawMessage, error) {
	if e.kept != nil {
		return e.kept.data, nil
	}
	if text := e.text.Load(); text != nil {
		return *text, nil
	}
	b, err := json.Marshal(&e.value)
	if err != nil {
		return nil, holdfast.Errorf(codes.StateUnwritable, "The state %q cannot be written as JSON.", e.key.def.name).
			Wrap(err)
	}
	text := json.RawMessage(b)
	e.text.Store(&text)
	return text, nil
}

// decode reads the stored value. Of several readers the first decodes; the others
// wait.
func (e *entry[T]) decode() (err error) {
	e.kept.mu.Lock()
	defer e.kept.mu.Unlock()
	if e.pending.Load() {
		e.value, err = e.key.read(e.kept)
		e.pending.Store(err != nil)
	}
	return err
}

// read migrates and decodes a stored value.
func (k *Key[T]) read(kept *stored) (value T, err error) {
	data, err := kept.migrated(k.def)
	if err != nil {
		return value, err
	}
	return k.decode(data)
}

// decode reads JSON into the initial value, so that missing members keep their
// defaults.
func (k *Key[T]) decode(data json.RawMessage) (value T, err error) {
	if isNull(data) {
		return k.of(nil)
	}
	err = json.Unmarshal(data, &value)
	if err == nil && k.initial != nil {
		alone := value
		value = k.initial()
		forget(reflect.ValueOf(&value).Elem(), reflect.ValueOf(&alone).Elem())
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		return value, errUnreadable(k.def, err)
	}
	if err := k.check(value); err != nil {
		return value, errInvalid(codes.StateUnreadable, "The stored value of the state %q is invalid", k.def, err).
			WithHint("It was left as it is. Go back to an earlier checkpoint, or correct the value in " +
				"an export and import it.")
	}
	return value, nil
}

// isNull reports whether the JSON says that there is no value.
func isNull(data json.RawMessage) bool { return len(data) == 0 || string(data) == "null" }

// forget removes from an initial value the maps, slices and pointers that the stored
// one also has. Decoding would merge them: deleted entries would reappear, and a map
// that all initial values share would be written to.
func forget(initial, stored reflect.Value) {
	switch initial.Kind() {
	case reflect.Struct:
		for i := range initial.NumField() {
			forget(initial.Field(i), stored.Field(i))
		}
	case reflect.Array:
		for i := range initial.Len() {
			forget(initial.Index(i), stored.Index(i))
		}
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		if initial.CanSet() && !stored.IsNil() {
			initial.SetZero()
		}
	}
}

func errUnreadable(def *stateDef, err error) *holdfast.Error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		what := mismatch.Value
		if mismatch.Field != "" {
			what += " in " + mismatch.Field
		}
		return errStateType(def, what).Wrap(err)
	}
	return holdfast.Errorf(codes.StateUnreadable, "The stored state %q is not JSON that can be read as %s.", def.name,
		def.typ).
		WithHint("It was left as it is. The server's log has the cause.").
		Wrap(err)
}

// errInvalid says that a value is not one that its middleware can use, and why if the
// state has nothing to hide.
func errInvalid(code, what string, def *stateDef, err error) *holdfast.Error {
	if def.show != nil {
		return holdfast.Errorf(code, what+".", def.name).Wrap(err)
	}
	return holdfast.Errorf(code, what+": %v.", def.name, err).Wrap(err)
}

func errStateType(def *stateDef, got string) *holdfast.Error {
	return holdfast.Errorf(codes.StateUnreadable, "The state %q is stored as %s, but %s is expected.", def.name, got,
		def.typ).
		WithHint("It was left as it is. If its type has changed, raise its version and add a migration.")
}

// stored is a state as it was read from the store. It is kept unchanged until the
// state is written.
type stored struct {
	version int
	data    json.RawMessage
	// redacted: the program that wrote it asked not to show it.
	redacted bool
	// missing, if set, is called when a migration does not exist; if it is nil, reading
	// fails.
	missing func(name string, from, to int)
	// mu is held while migrating and decoding.
	mu sync.Mutex
	// read is the cell of the key that first read a state unknown to the schema.
	read atomic.Pointer[cell]
}

// cell returns the cell of a state that has no place in its container.
func (s *stored) cell(def *stateDef) cell {
	if s.read.Load() == nil {
		c := def.restored(s)
		s.read.CompareAndSwap(nil, &c)
	}
	return *s.read.Load()
}

// shortName returns the last part of a state's name, for logs.
func shortName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
