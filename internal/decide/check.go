package decide

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Check asks whether JSON from outside fits a schema, which often is somebody else's, too.
// Finding that out may take long, so a decision, which is made under the thread's lock, only
// says what it has to know: it is checked without a lock and decided again.
type Check struct {
	// Of says whose schema it is, for people.
	Of     string
	Schema json.RawMessage
	Value  json.RawMessage
}

// Verdicts are what came of checks.
type Verdicts map[[2]string][]string

func (c *Check) key() [2]string { return [2]string{string(c.Schema), string(c.Value)} }

// Find makes a check, and notes what is wrong with the value. The error is that of ctx.
func (v Verdicts) Find(ctx context.Context, c Check) error {
	texts, err := Violations(ctx, c)
	if err == nil {
		v[c.key()] = texts
	}
	return err
}

// Of returns what came of a check, and whether it was made.
func (v Verdicts) Of(c Check) (texts []string, made bool) {
	if len(c.Schema) == 0 {
		return nil, true
	}
	texts, made = v[c.key()]
	return texts, made
}

// Violations makes a check, and lists what is wrong with the value. A schema that is missing,
// or that cannot be read, takes anything: the author of the middleware has to check then. One
// that takes too long takes nothing. The error is that of ctx.
func Violations(ctx context.Context, c Check) ([]string, error) {
	if len(c.Schema) == 0 {
		return nil, nil
	}
	var texts []string
	compiled, err := schema.Compile(c.Schema)
	switch value := c.Value; {
	case schema.IsBound(err):
	case err != nil:
		return nil, nil
	default:
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		texts, err = compiled.Violations(ctx, value)
	}
	if schema.IsBound(err) {
		return []string{"it cannot be checked against the schema of " + c.Of + ": " + err.Error()}, nil
	}
	return texts, err
}
