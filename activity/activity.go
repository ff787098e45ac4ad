// Package activity shows people what an agent does while it does it. An activity is a message
// of the thread's history that people see and models do not, and that changes while the run
// goes on: a bar of progress, a plan whose steps are ticked off, an interface that an agent
// draws. A step says in the stream that a part of the work begins, and that it has ended.
//
// Tools and all hooks of middleware may use both; [holdfast.Record] is for what does not change.
package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

// The types of activities that clients know. Any other, "owner.name", can be shown too.
const (
	// TypeProgress is the type of a [Progress].
	TypeProgress = "holdfast.progress"
	// TypePlan is the type of a [Plan].
	TypePlan = "holdfast.plan"
	// TypeSurface is the type of an interface in A2UI; its content are A2UI's operations.
	TypeSurface = "a2ui-surface"
	// TypeApp is the type of a UI resource of an MCP server.
	TypeApp = "mcp-apps"
)

// MaxBytes is the size that the content of an activity may have, as JSON.
const MaxBytes = 256 << 10

var (
	// ErrTooLarge means that an activity's content is larger than [MaxBytes].
	ErrTooLarge = errors.New("the activity is too large")
	// ErrTooMany means that there are too many activities since the last message of a user, or too
	// many steps: 100 may be open at a time.
	ErrTooMany = errors.New("there are too many")
)

// Activity is a message of the history whose content changes while the run goes on.
type Activity struct{ change Change }

// Show adds an activity to the thread's history: of this type, and with this content, which is
// encoded as a JSON object. People see it at once, and again when they come back later; models
// are not shown it. Like any message it belongs to its branch, and forks and exports have it.
//
// In a tool it belongs to the call, of which there is one activity of each type: a call that is
// made again after a crash continues its activity instead of adding another one. In a hook there
// is one of each type for each message of a user. [Named] is for others.
//
// It does not wait until the activity is stored, and within an answer that is being shown the
// activity appears after the answer. The error says what is wrong with the content, or that
// the run is over; a tool that shows progress may ignore it.
func Show(ctx context.Context, activityType string, content any) (*Activity, error) {
	return begin(ctx, Change{Type: activityType, Call: holdfast.CallFrom(ctx).ID}, content)
}

// Named is [Show] for an activity that has a name. There is one of each type and name until the
// next message of a user, which every tool and hook continues that shows it: one tool makes a
// plan, for example, and another one ticks it off.
func Named(ctx context.Context, activityType, name string, content any) (*Activity, error) {
	return begin(ctx, Change{Type: activityType, Name: name}, content)
}

func begin(ctx context.Context, c Change, content any) (*Activity, error) {
	a := &Activity{c}
	if err := a.Set(ctx, content); err != nil {
		return nil, err
	}
	return a, nil
}

// Set changes what the activity shows. Clients get the difference, or all of it if that is
// shorter. Changes that come faster than they can be stored may be left out, but never the
// last one.
func (a *Activity) Set(ctx context.Context, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("show %s: %w", a.change.Type, err)
	}
	c := a.change
	c.Content = data
	return c.Show(ctx)
}

// Progress is how far a piece of work has come, which Holdfast Studio shows as a bar.
type Progress struct {
	// Title says what is done; it may be empty.
	Title string `json:"title,omitempty"`
	// Text says what is done right now; it may be empty.
	Text string `json:"text,omitempty"`
	// Done is how much of Total is done.
	Done float64 `json:"done"`
	// Total is how much there is to do; 0 means that this is not known.
	Total float64 `json:"total,omitempty"`
}

// Plan is what is to be done, which Holdfast Studio shows as a list.
type Plan struct {
	// Title says what the plan is for; it may be empty.
	Title string `json:"title,omitempty"`
	// Items are what is to be done, in order.
	Items []PlanItem `json:"items"`
}

// PlanItem is a part of a [Plan].
type PlanItem struct {
	// Text says what is to be done.
	Text string `json:"text"`
	// Status is how far it has come; empty means [Pending].
	Status Status `json:"status,omitempty"`
}

// Status is how far a part of a plan has come.
type Status string

// The states of a part of a plan.
const (
	Pending Status = "pending"
	Running Status = "running"
	Done    Status = "done"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)
