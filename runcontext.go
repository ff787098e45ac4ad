package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// RunContext is what hooks and tools reach through their context. The server makes it;
// tests may too. The states of the run and the store's ledger have contexts of their
// own, in the packages state and store.
type RunContext struct {
	// Iteration returns where the run stands; nil means the zero [Iteration].
	Iteration func() Iteration
	// Notify implements [Notify]; nil drops notices.
	Notify func(ctx context.Context, name string, value any) error
	// Keep implements [Keep] for the open call with this id; nil means that no call can
	// keep anything.
	Keep func(ctx context.Context, call string, value json.RawMessage) error
	// Record implements [Record]; nil drops activities.
	Record func(ctx context.Context, a Activity) error
	// History implements [HistoryFrom]; nil means that there are no messages.
	History func() []Message
	// Mark implements [Mark]; nil drops marks.
	Mark func(ctx context.Context, label string) error
}

type runKey struct{}

// ContextWithRun returns a context that carries a run. If ctx carries one already, what run
// leaves out is that one's: a hook can change a part and leave the rest as it is.
func ContextWithRun(ctx context.Context, run *RunContext) context.Context {
	if outer, err := runFrom(ctx); err == nil {
		run = run.within(outer)
	}
	return context.WithValue(ctx, runKey{}, run)
}

// within returns the run with what it leaves out taken from outer.
func (r RunContext) within(outer *RunContext) *RunContext {
	if r.Iteration == nil {
		r.Iteration = outer.Iteration
	}
	if r.Notify == nil {
		r.Notify = outer.Notify
	}
	if r.Keep == nil {
		r.Keep = outer.Keep
	}
	if r.Record == nil {
		r.Record = outer.Record
	}
	if r.History == nil {
		r.History = outer.History
	}
	if r.Mark == nil {
		r.Mark = outer.Mark
	}
	return &r
}

// ErrNoRun is returned outside a run by functions that need one in the context.
var ErrNoRun = errors.New("there is no run in this context")

func runFrom(ctx context.Context) (*RunContext, error) {
	r, ok := ctx.Value(runKey{}).(*RunContext)
	if !ok {
		return nil, ErrNoRun
	}
	return r, nil
}

// IterationFrom returns where the run in the context stands: the agent, the
// principal, the thread. Outside a run it is the zero value.
func IterationFrom(ctx context.Context) Iteration {
	if r, err := runFrom(ctx); err == nil && r.Iteration != nil {
		return r.Iteration()
	}
	return Iteration{}
}

// Notify reports in the run's stream, in the log and in a metric that something
// happened: the stream gets a CUSTOM event with this name and value. The name,
// "owner.name", must be a constant of the caller: metrics have one series for each.
func Notify(ctx context.Context, name string, value any) error {
	r, err := runFrom(ctx)
	if err != nil {
		return err
	}
	if r.Notify == nil {
		return nil
	}
	return r.Notify(ctx, name, value)
}

// Record adds an activity message to the thread's history: of this type, "owner.name", and
// with this content, which is encoded as a JSON object. People see it, in the stream and
// in the history; models are not shown it; [HistoryFrom] returns it from the next step on.
// Like any message it belongs to its branch, and forks, exports and deletions include it.
//
// It may be called by every hook and by tools. The message is committed at the next point
// at which the history may grow, together with the states as they are then: before the
// model's answer, if nothing of that was shown yet, or else after it.
func Record(ctx context.Context, activityType string, content any) error {
	r, err := runFrom(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("record %s: %w", activityType, err)
	}
	if activityType == "" || data[0] != '{' {
		return fmt.Errorf("record %q: an activity has a type, and its content is a JSON object", activityType)
	}
	if r.Record == nil {
		return nil
	}
	return r.Record(ctx, Activity{Type: activityType, Content: data})
}

// Mark has the next checkpoint of the run listed under a label, whatever the checkpoint frequency
// is, so that a person finds the place to go back to: the one after this iteration, or that of
// the run's end. It holds what the iteration has done. Several marks of an iteration name one
// checkpoint together. The label is a text of 1 to 256 bytes without control characters.
//
// It may be called by every hook and by tools. A mark is stored with the result of the call that
// made it; like the call itself, it may be made again after a crash before that.
func Mark(ctx context.Context, label string) error {
	r, err := runFrom(ctx)
	if err != nil || r.Mark == nil {
		return err
	}
	return r.Mark(ctx, label)
}

// HistoryFrom returns the messages of the branch that the run works on: those that its
// model may be shown, as they are stored, and the activities. Hooks may show the model
// fewer or other ones. The messages must not be changed. Outside a run there are none.
func HistoryFrom(ctx context.Context) []Message {
	if r, err := runFrom(ctx); err == nil && r.History != nil {
		return r.History()
	}
	return nil
}
