package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// Run takes what is shown of a run. The server makes it; tests may too, and middleware that
// changes what is shown. A part that it leaves out is taken from the context that it is put into;
// without one there, nothing is shown.
type Run struct {
	// Show takes what an activity shows from now on.
	Show func(ctx context.Context, c Change) error
	// Step implements [Step].
	Step func(ctx context.Context, name string) (finish func(), err error)
}

// Change is what an activity shows from now on.
type Change struct {
	// Type is the activity's.
	Type string
	// Name is the activity's; empty if it has none.
	Name string
	// Call is the id of the call that the activity belongs to; empty for any other.
	Call string
	// Content is a JSON object of at most [MaxBytes].
	Content json.RawMessage
}

// Show passes the change to the run in the context, unless something is wrong with it.
func (c Change) Show(ctx context.Context) error {
	c.Content = bytes.ToValidUTF8(c.Content, []byte("\uFFFD"))
	switch {
	case c.Type == "":
		return errors.New("an activity has a type")
	case len(c.Content) == 0 || c.Content[0] != '{':
		return fmt.Errorf("show %s: the content of an activity is a JSON object", c.Type)
	case len(c.Content) > MaxBytes:
		return fmt.Errorf("show %s: %w: %d bytes, of %d", c.Type, ErrTooLarge, len(c.Content), MaxBytes)
	}
	run, err := runFrom(ctx)
	if err != nil || run.Show == nil {
		return err
	}
	return run.Show(ctx, c)
}

// maxStepName is the longest name of a step, in bytes.
const maxStepName = 256

// Step says in the stream that a part of the work begins: STEP_STARTED. finish says that it has
// ended: STEP_FINISHED. The name is a text of 1 to 256 bytes without control characters. A step
// whose name is open already begins no second time, and ends with the last that has begun it.
// A step that is open when the run ends, or when its process dies, ends then.
func Step(ctx context.Context, name string) (finish func(), err error) {
	run, err := runFrom(ctx)
	switch {
	case err != nil:
		return nil, err
	case name == "" || len(name) > maxStepName || !printable(name):
		return nil, fmt.Errorf("begin a step: its name must be a text of 1 to %d bytes without control characters",
			maxStepName)
	case run.Step == nil:
		return func() {}, nil
	}
	return run.Step(ctx, name)
}

func printable(text string) bool {
	for _, r := range text {
		if unicode.IsControl(r) {
			return false
		}
	}
	return utf8.ValidString(text)
}

type runKey struct{}

// ContextWith returns a context whose activities and steps go to run.
func ContextWith(ctx context.Context, run *Run) context.Context {
	if outer, err := runFrom(ctx); err == nil {
		inner := *run
		if inner.Show == nil {
			inner.Show = outer.Show
		}
		if inner.Step == nil {
			inner.Step = outer.Step
		}
		run = &inner
	}
	return context.WithValue(ctx, runKey{}, run)
}

func runFrom(ctx context.Context) (*Run, error) {
	run, ok := ctx.Value(runKey{}).(*Run)
	if !ok {
		return nil, holdfast.ErrNoRun
	}
	return run, nil
}
