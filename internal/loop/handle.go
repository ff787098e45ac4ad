package loop

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast/internal/thread"
)

// A call may keep a value, such as the handle of work that it has started elsewhere. The value
// becomes a part of the open call in the thread's state, so a process that continues the run
// makes the call again with it. The token of a one-time URL is kept in the same way.

// kept is a change of an open call on its way from the call's goroutine to the run's.
type kept struct {
	call   string
	change func(*thread.Call)
	// added receives the error of adding it to the next commit.
	added chan error
}

// errCallOver is returned to a call that keeps a value after its run has stopped waiting
// for it.
var errCallOver = errors.New("the run no longer waits for this call")

// keeps are the values that the calls of a run keep.
type keeps struct {
	values chan kept
	over   <-chan struct{} // closed when the run no longer waits
	flush  func(context.Context) error
}

// save saves a value with an open call; see change.
func (k keeps) save(ctx context.Context, call string, value json.RawMessage) error {
	return k.change(ctx, call, func(c *thread.Call) { c.Kept = value })
}

// change changes an open call, and waits until that is durable. Calls do so from goroutines
// of their own; after a cancel they can as long as the run waits for them.
func (k keeps) change(ctx context.Context, call string, change func(*thread.Call)) error {
	v := kept{call: call, change: change, added: make(chan error, 1)}
	select {
	case k.values <- v:
	case <-k.over:
		return errCallOver
	}
	if err := <-v.added; err != nil {
		return err
	}
	return k.flush(context.WithoutCancel(ctx))
}
