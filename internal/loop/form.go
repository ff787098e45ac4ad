package loop

import (
	"cmp"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/schema"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// form is an agent's Output, ready to use: with its defaults, and its schema on one line.
type form struct {
	holdfast.Output
	compiled *schema.Schema
}

// newForm returns the form of an agent's answers; nil if any will do.
func newForm(a *holdfast.Agent) (*form, error) {
	if a.Output == nil {
		return nil, nil
	}
	f := &form{Output: *a.Output}
	f.Name = cmp.Or(f.Name, "answer")
	mistakes := schema.OutputMistakes(f.Name, f.Schema)
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("agent %q: its Output: %s", a.Name, mistakes[0])
	}
	var err error
	if f.compiled, err = schema.Compile(f.Schema); err != nil {
		return nil, fmt.Errorf("agent %q: its Output: %w", a.Name, err)
	}
	f.Schema = f.compiled.JSON()
	return f, nil
}

// after returns what the model reads after all else, in the tail: the answer that did not fit, and
// why.
func after(m *thread.Misfit) []holdfast.Message {
	if m == nil {
		return nil
	}
	return []holdfast.Message{
		{ID: "misfit", Role: holdfast.RoleAssistant, Text: m.Answer},
		{ID: "misfit_errors", Role: holdfast.RoleUser, Text: thread.MisfitText(m.Errors)},
	}
}

// behind returns what the model reads behind a message: what is wrong with an answer that was
// kept although it does not fit.
func behind(m *agui.Message) []holdfast.Message {
	errors := thread.MisfitOf(m)
	if errors == nil {
		return nil
	}
	return []holdfast.Message{{ID: m.ID + "_errors", Role: holdfast.RoleUser, Text: thread.MisfitText(errors)}}
}
