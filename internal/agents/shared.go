package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// Shared is an agent's State, ready to use.
type Shared struct {
	all   bool     // is shown
	paths []string // to what is shown
	most  int      // bytes that are shown
}

// defaultMaxShown bounds what a model is shown of a state, in bytes.
const defaultMaxShown = 16 << 10

// newShared returns what an agent does with the shared state; nil if nothing.
func newShared(a *holdfast.Agent) (*Shared, error) {
	if a.State == nil {
		return nil, nil
	}
	if err := a.State.Validate(); err != nil {
		return nil, fmt.Errorf("agent %q: its State: %w", a.Name, err)
	}
	return &Shared{
		all:   a.State.Show == "all",
		paths: a.State.Paths,
		most:  cmp.Or(a.State.MaxBytes, defaultMaxShown),
	}, nil
}

// Shown returns what the model is shown of a state, as JSON on one line; nil if nothing. If
// that is more than the agent shows, it returns only how many bytes it has. s may be nil.
func (s *Shared) Shown(state json.RawMessage) (shown json.RawMessage, tooLarge int) {
	if s == nil || !s.all && len(s.paths) == 0 || len(state) == 0 || string(state) == "null" {
		return nil, 0
	}
	var b bytes.Buffer
	if s.all {
		if json.Compact(&b, state) != nil {
			return nil, 0 // what is stored is JSON
		}
	} else {
		s.pick(&b, state)
	}
	if b.Len() > s.most {
		return nil, b.Len()
	}
	return b.Bytes(), 0
}

// pick writes an object with a member for each path that the state has.
func (s *Shared) pick(b *bytes.Buffer, state json.RawMessage) {
	b.WriteByte('{')
	for _, path := range s.paths {
		value, there := at(state, path)
		if !there {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(path)
		if err != nil {
			continue // texts can be written
		}
		b.Write(name)
		b.WriteByte(':')
		if json.Compact(b, value) != nil {
			b.WriteString("null") // it is a part of JSON
		}
	}
	b.WriteByte('}')
}

// unescaped is what ~0 and ~1 stand for in a JSON Pointer.
var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// at returns the value that a JSON Pointer points to.
func at(value json.RawMessage, pointer string) (json.RawMessage, bool) {
	for pointer != "" {
		name, rest, more := strings.Cut(pointer[1:], "/")
		if pointer = ""; more {
			pointer = "/" + rest
		}
		value = bytes.TrimLeft(value, " \t\r\n")
		switch name = unescaped.Replace(name); {
		case len(value) > 0 && value[0] == '{':
			var members map[string]json.RawMessage
			if json.Unmarshal(value, &members) != nil {
				return nil, false
			}
			inner, there := members[name]
			if !there {
				return nil, false
			}
			value = inner
		case len(value) > 0 && value[0] == '[':
			var items []json.RawMessage
			i, err := strconv.Atoi(name)
			if err != nil || strconv.Itoa(i) != name || json.Unmarshal(value, &items) != nil || i < 0 ||
				i >= len(items) {
				return nil, false
			}
			value = items[i]
		default:
			return nil, false
		}
	}
	return value, true
}
