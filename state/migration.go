package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Migration turns the JSON of one version of a state into that of the next.
type Migration func(old json.RawMessage) (json.RawMessage, error)

// Migrate makes a [Migration] from a function that turns one version's type into the
// next version's.
func Migrate[Old, New any](f func(Old) (New, error)) Migration {
	return func(old json.RawMessage) (json.RawMessage, error) {
		var from Old
		if err := json.Unmarshal(old, &from); err != nil {
			return nil, err
		}
		to, err := f(from)
		if err != nil {
			return nil, err
		}
		return json.Marshal(to)
	}
}

func (s *stored) migrated(def *stateDef) (json.RawMessage, error) {
	if s.version > def.version {
		return nil, errStateTooNew(def.name, s.version, def.version)
	}
	data := s.data
	for v := s.version; v < def.version && !isNull(data); v++ {
		step := def.migrations[v]
		if step == nil {
			if s.missing == nil {
				return nil, holdfast.Errorf(codes.StateMigration,
					"The state %q has version %d and version %d is needed, but there is no migration from %d to %d.",
					def.name, s.version, def.version, v, v+1).
					WithHint("Add the migration, or run with --schema-changes=warn to read it with defaults.")
			}
			s.missing(def.name, s.version, def.version)
			return data, nil
		}
		next, err := runMigration(step, data)
		if err != nil {
			return nil, holdfast.Errorf(codes.StateMigration,
				"The migration of state %q from version %d to %d failed (stored: %d, needed: %d).", def.name, v, v+1,
				s.version, def.version).
				WithHint("Nothing was changed. Fix the migration and try again.").
				Wrap(err)
		}
		data = next
	}
	return data, nil
}

func runMigration(step Migration, data json.RawMessage) (next json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	next, err = step(bytes.Clone(data)) // so that the step cannot change the stored value
	if err == nil && !json.Valid(next) {
		err = errors.New("it did not return JSON")
	}
	return next, err
}

func errStateTooNew(name string, got, known int) *holdfast.Error {
	return holdfast.Errorf(codes.StateTooNew,
		"The state %q has version %d, but this server knows it only up to version %d.", name, got, known).
		WithHint("It was left as it is. Run a version that knows it, or start with --on-newer-state=reset to reset " +
			"that state and keep its newer value aside.")
}
