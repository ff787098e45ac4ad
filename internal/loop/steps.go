package loop

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// steps are how often each step was begun that is open.
type steps struct {
	mu   sync.Mutex
	open map[string]int
	// ofTool tells of a tool's step in its place among what the tool shows, and ofHook of a
	// hook's at once, since that may be within an answer.
	ofTool, ofHook func(agui.Event) error
	now            func() int64
}

func (s *steps) begin(ofTool, ofHook func(agui.Event) error, now func() int64) {
	s.open, s.ofTool, s.ofHook, s.now = map[string]int{}, ofTool, ofHook, now
}

// maxOpenSteps is how many steps may be open at a time: the head names them.
const maxOpenSteps = 100

// step implements Step of [activity.Run]: tools and hooks call it on their goroutines. For a
// tool that outlives its run it returns an error.
func (s *steps) step(ctx context.Context, name string) (finish func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tell := s.ofHook
	if holdfast.CallFrom(ctx).ID != "" {
		tell = s.ofTool
	}
	if s.open[name] == 0 {
		if len(s.open) >= maxOpenSteps {
			return nil, fmt.Errorf("begin the step %q: %w: at most %d steps can be open at a time", name,
				activity.ErrTooMany, maxOpenSteps)
		}
		ev := agui.StepStarted{StepName: name}
		ev.Timestamp = s.now()
		if err := tell(ev); err != nil {
			return nil, err
		}
	}
	s.open[name]++
	return sync.OnceFunc(func() { s.end(name, tell) }), nil
}

// end ends a step with the last that has begun it. After the run it has ended already.
func (s *steps) end(name string, tell func(agui.Event) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[name]--; s.open[name] > 0 {
		return
	}
	delete(s.open, name)
	ev := agui.StepFinished{StepName: name}
	ev.Timestamp = s.now()
	_ = tell(ev)
}
