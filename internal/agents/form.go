package agents

import (
	"cmp"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Form is an agent's Output, ready to use: with its defaults, and its schema on one line.
type Form struct {
	holdfast.Output
	Compiled *schema.Schema
}

// newForm returns the form of an agent's answers; nil if any will do.
func newForm(a *holdfast.Agent) (*Form, error) {
	if a.Output == nil {
		return nil, nil
	}
	f := &Form{Output: *a.Output}
	f.Name = cmp.Or(f.Name, "answer")
	mistakes := schema.OutputMistakes(f.Name, f.Schema)
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("agent %q: its Output: %s", a.Name, mistakes[0])
	}
	var err error
	if f.Compiled, err = schema.Compile(f.Schema); err != nil {
		return nil, fmt.Errorf("agent %q: its Output: %w", a.Name, err)
	}
	f.Schema = f.Compiled.JSON()
	return f, nil
}
