// Package loop is a run, once the process that it lives in owns its thread. It iterates:
// model call, tools, checkpoint, again. A run's events go through package journal to the store
// and from there to the watchers. The package knows no HTTP and no particular store, and it
// does not know who owns its thread, or how: that is package owner.
package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The loop of a run: the BeforeIteration hooks, the model's answer (completion.go), its
// tool calls (batch.go), the AfterIteration hooks and a checkpoint, and again until the
// history ends in an answer. A run that was resumed or taken over enters it wherever its
// state says that it stopped, so nothing here depends on what this process did before.

// iterate runs iterations until the run is over. An error means that the run does not end
// by itself: see end.
func (r *run) iterate() (*conclusion, error) {
	if err := (listener{r}).restore(); err != nil {
		return nil, err
	}
	for {
		if r.st.Open || len(r.st.Calls) > 0 {
			if end, err := r.callTools(); end != nil || err != nil {
				return end, err
			}
			if err := r.closeIteration(); err != nil {
				return nil, err
			}
		}
		if r.completed() || r.side && r.st.Iteration > 0 {
			return succeeded(), nil
		}
		if r.host.Stopping() {
			return nil, ErrStopped
		}
		if err := r.measure(); err != nil {
			return nil, err
		}
		if err := r.chain.BeforeIteration(r.inner, r.at.Load()); err != nil {
			return r.asked(err)
		}
		// The model's input is durable before the model is asked, and so is everything that
		// hooks recorded to decide about it: a process that takes the run over asks the same,
		// instead of running calls again that may have other results.
		if err := (growth{r}).addRecorded(); err != nil {
			return nil, err
		}
		if err := r.w.Flush(r.ctx); err != nil {
			return nil, err
		}
		if err := r.complete(); err != nil {
			return r.asked(err)
		}
	}
}

// asked ends the run with a hook's question if err is one; otherwise it returns err.
func (r *run) asked(err error) (*conclusion, error) {
	var ask *holdfast.Interrupt
	if !errors.As(err, &ask) || r.ctx.Err() != nil {
		return nil, err
	}
	r.st.Question = &thread.Question{Interrupt: r.interrupt(ask, "")}
	return asks(r.st.Interrupts()), nil
}

// closeIteration ends an iteration whose calls all have results with its checkpoint. The
// checkpoint of the last iteration is that of the run's end.
func (r *run) closeIteration() error {
	if r.chain.Closes() {
		r.chain.AfterIteration(r.inner, r.at.Load(), iterationResult(r.hist.Path))
	}
	r.nextIteration()
	r.st.Advanced()
	r.st.Open = false
	recorded, shown := growth{r}.recorded(false)
	if added := append(recorded, r.st.TakeQueued()...); len(added) > 0 {
		if err := r.append(added, shown, journal.Soon, nil); err != nil {
			return err
		}
	}
	if r.completed() {
		return nil
	}
	if err := r.checkpoint(); err != nil || r.st.Ending == nil {
		return err
	}
	return r.st.Ending.Err()
}

// iterationResult returns what came of the iteration. It reads that from the history,
// because a run that was taken over has nothing else.
func iterationResult(path []agui.Message) *holdfast.IterationResult {
	done := &holdfast.IterationResult{}
	results := map[string]holdfast.ToolResult{}
	for i := len(path) - 1; i >= 0; i-- {
		m := &path[i]
		d, err := m.Domain()
		if err != nil || thread.Failed(m) {
			continue
		}
		switch d.Role {
		case holdfast.RoleTool:
			said := thread.MarkOf(m)
			results[d.CallID] = holdfast.ToolResult{
				Text:   d.Text,
				Parts:  d.Parts,
				Failed: said.Failed || d.Error != "",
				NotRun: said.NotRun,
			}
		case holdfast.RoleAssistant:
			done.Answer = d
			for _, c := range d.Calls {
				done.Calls = append(done.Calls, holdfast.CallResult{Call: c, Result: results[c.ID]})
			}
			return done
		case holdfast.RoleUser:
			return done
		}
	}
	return done
}

// notify implements [holdfast.Notify]. For a tool that outlives its run it returns an
// error.
func (r *run) notify(_ context.Context, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("notify %s: %w", name, err)
	}
	ev := agui.Custom{Name: name, Value: data}
	ev.Timestamp = r.now()
	if err := r.w.Add([]agui.Event{ev}, journal.Soon, nil); err != nil {
		return err
	}
	r.host.Config.Observer.Notified(r.place(), name)
	r.log.Info("middleware notice",
		"notice", name, "thread", r.key.Thread, "run", r.rec.ID, "iteration", r.number.Load())
	return nil
}

// measure returns an error if the run's thread has become too large, and warns once if it
// is about to be.
func (r *run) measure() error {
	over, err := r.host.Measured(r.ctx, r.key, r.st, r.warned)
	if err != nil || !over || r.warned {
		return err
	}
	r.warned = true
	r.host.Config.Observer.Grown(r.place(), r.st.Bytes)
	ev := agui.Custom{
		Name:  "holdfast.thread_large",
		Value: thread.MustJSON(map[string]any{"bytes": r.st.Bytes, "warnBytes": r.host.Config.WarnBytes}),
	}
	ev.Timestamp = r.now()
	return r.w.Add([]agui.Event{ev}, journal.Soon, nil)
}

// nextIteration moves the run to the next iteration.
func (r *run) nextIteration() {
	r.host.Config.Observer.IterationDone(r.place(), r.results)
	r.st.Iteration++
	r.moveTo(r.st.Iteration)
	r.results = 0
	r.starts.forget()
}
