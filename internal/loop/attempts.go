package loop

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The tries of one iteration's model call, with one model or several, until one has
// answered. Package fallback decides what follows a failure; this file does it: takes back
// what was shown, waits, and moves the run to another model, with which it stays.

// complete makes one iteration's model call, and tries again while that can help. It
// returns nil once the answer is committed; if it has calls, once that is durable.
func (r *run) complete() error {
	t := &attempts{r: r, tries: make([]int, len(r.models)), over: make([]bool, len(r.models))}
	err := t.afterLoss()
	if err == nil {
		err = t.untilAnswered()
	}
	if err != nil && t.half != nil {
		return t.end(err)
	}
	return err
}

// untilAnswered asks models until one has answered. After an error, half may be on the screen.
func (t *attempts) untilAnswered() error {
	r := t.r
	for {
		if err := r.await(t.next); err != nil {
			return err
		}
		if err := t.choose(); err != nil {
			return err
		}
		if err := t.addRecorded(); err != nil {
			return err
		}
		if err := r.owner.mayStart("", false); err != nil {
			return err
		}
		m := &r.models[r.model]
		t.tries[r.model]++
		t.asking.Model = m.Model
		a := t.begin()
		err := a.observed(&t.asking)
		if err == nil {
			r.host.Config.Circuit.Report(m.Circuit, "", 0)
			r.repeats = false
			t.count++
			t.past = 0
			if done, err := a.settle(); done || err != nil {
				return err
			}
			continue
		}
		if (listener{r}).keepsBegun() {
			return t.keepBegun(err)
		}
		for _, c := range a.sequence {
			r.st.TakeBack(c.id)
		}
		if r.ctx.Err() != nil {
			if a.shown || t.half == nil {
				t.half = a
			}
			return context.Cause(r.ctx)
		}
		if err := t.follow(a, err); err != nil {
			return err
		}
	}
}

// begin returns the next try.
func (t *attempts) begin() *completion {
	a := &completion{
		r:         t.r,
		retake:    t.retake,
		attempt:   t.count,
		overflows: t.overflows,
		message:   t.r.host.Config.NewID("msg"),
		calls:     map[int]*callBuilder{},
	}
	if t.past > 0 {
		a.held = &heldBack{past: t.past, limit: t.r.host.Config.BufferBytes}
	}
	return a
}

// end decides about what is still on the screen when no model answers because of err.
func (t *attempts) end(err error) error {
	r, half := t.r, t.half
	var ask *holdfast.Interrupt
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, errCancelled): // it keeps what people have already read
		return errors.Join(errCancelled, half.keepPartial())
	case cause != nil:
		return cause
	case errors.As(err, &ask):
		return errors.Join(t.retake(), err)
	}
	r.failed = func() []agui.Message { return half.messages(false) }
	return err
}

// attempts are the tries of a model call.
type attempts struct {
	r     *run
	count int    // of all tries
	tries []int  // of each model
	over  []bool // models that are not asked again for this answer
	// half is what the last try has shown, if it is still to be taken back, and taken what was
	// taken back last.
	half, taken *completion
	// past is how many bytes the model's last try had received that has shown any.
	past int
	// overflows is how often the model has said that the conversation is too long, and asking
	// is how it is asked: with less than before, if it has said so.
	overflows int
	asking    hooks.Asking
	// tooLong is the error of a model that is asked again with less, passing that of one
	// that may answer later.
	tooLong, passing error
}

// choose moves the run to another model if the one that it has is not to be asked.
func (t *attempts) choose() error {
	if t.r.going != nil {
		return nil // it goes on with the one that it has
	}
	if at, _ := t.pick(t.r.host.Config.Circuit.Begin); at != t.r.model {
		if err := t.move(at); err != nil {
			return err
		}
	}
	if t.count > 0 && t.r.host.Stopping() {
		return ErrStopped // as between two iterations
	}
	return nil
}

// pick returns the model to ask, and whether its circuit is closed, as open says.
func (t *attempts) pick(open func(string) (time.Time, bool)) (at int, healthy bool) {
	return t.r.models.Pick(t.r.model, func(i int) bool { return t.over[i] }, open)
}

// next returns the place of the model that is asked next, unless its circuit opens before.
func (t *attempts) next() int {
	at, _ := t.pick(t.r.host.Config.Circuit.Open)
	return at
}

// move has the run ask another model from now on. The text that the last one has shown is
// taken back in the same step.
func (t *attempts) move(to int) error {
	from, next := t.r.models[t.r.model].Name, t.r.models[to].Name
	t.r.model, t.tooLong, t.overflows, t.asking.Below, t.past = to, nil, 0, 0, 0
	t.r.st.Model = next
	if to == 0 {
		t.r.st.Model = ""
	}
	t.r.host.Config.Observer.FellBack(t.r.place(), from, next)
	t.r.log.Warn("falling back to another model",
		"thread", t.r.key.Thread, "run", t.r.rec.ID, "iteration", t.r.st.Iteration, "attempt", t.count, "from", from,
		"to", next)
	value := map[string]any{"iteration": t.r.st.Iteration, "attempt": t.count, "from": from, "to": next}
	if t.half != nil {
		return t.takeBack("holdfast.fallback", value)
	}
	ev := agui.Custom{Name: "holdfast.fallback", Value: thread.MustJSON(value)}
	ev.Timestamp = t.r.now()
	return t.r.w.Step([]agui.Event{ev}, func(c *store.Commit, _ store.Cursor) { t.r.saveState(c) })
}

// takeBack supersedes what the last try has shown; name and value are those of the event
// that says why.
func (t *attempts) takeBack(name string, value any) error {
	half := t.half
	if half == nil {
		return nil
	}
	t.half, t.taken = nil, half
	if err := t.r.supersede(name, value); err != nil {
		return err
	}
	t.r.stale = t.r.stale || len(half.thoughts) > 0 && !reasons(t.r.hist.Path)
	return nil
}

// retake takes back what the last try has shown, because another one has more to show.
func (t *attempts) retake() error {
	return t.takeBack("holdfast.retry", map[string]any{"iteration": t.r.st.Iteration, "attempt": t.count})
}

// addRecorded adds to the history what hooks have recorded, which is never within an answer.
// Changes of activities wait until a half one is over.
func (t *attempts) addRecorded() error {
	switch {
	case t.r.notes.any():
		if err := t.retake(); err != nil {
			return err
		}
	case t.half != nil:
		return nil
	}
	return growth{t.r}.addRecorded()
}

// follow does what is to be done before another try, after one that failed with err. It
// returns the error if there is to be none.
func (t *attempts) follow(a *completion, err error) error {
	nothingLess := errors.Is(err, hooks.ErrNotShrunk) // no model was asked
	if !nothingLess {
		t.count++
	}
	if a.shown {
		t.half, t.past = a, a.received
	}
	var ask *holdfast.Interrupt
	if a.received > 0 && errors.As(err, &ask) {
		return holdfast.Errorf(codes.MiddlewareFailed,
			"A middleware asked a person after the model had begun to answer.").
			WithHint("A Model hook asks before its first delta.").
			Wrap(errors.New(err.Error()))
		// no question any more
	}
	if nothingLess {
		err = t.tooLong
	}
	var failed *holdfast.ModelError
	if !errors.As(err, &failed) {
		return err
	}
	next := fallback.Decide(t.failure(failed), t.r.host.Config.Random)
	t.log(failed, err, next)
	if !nothingLess {
		t.report(failed, next)
	}
	switch next.Step {
	case fallback.FallBack:
		t.over[t.r.model] = true
		t.passed(failed, err)
		return nil
	case fallback.Shrink:
		t.tooLong, t.asking.Below = err, max(t.asking.Sent(), 1)
		t.overflows++
	case fallback.End:
		t.r.tried = t.count
		t.half = cmp.Or(t.half, t.taken) // no later try has said anything
		return t.last(failed, err)
	}
	return t.pause(next.Wait)
}

// failure returns what package fallback is to know of a try that failed.
func (t *attempts) failure(failed *holdfast.ModelError) fallback.Failure {
	return fallback.Failure{
		Kind:       failed.Kind,
		Retryable:  failed.Retryable,
		RetryAfter: failed.RetryAfter,
		Tries:      t.tries[t.r.model],
		MaxTries:   t.r.agent.Tries,
		Shrunk:     t.tooLong != nil,
		Others:     t.others(),
		RefusedToo: t.r.agent.FallbackRefused,
	}
}

// others returns what models are left besides the one that failed.
func (t *attempts) others() fallback.Others {
	was := t.over[t.r.model]
	t.over[t.r.model] = true
	defer func() { t.over[t.r.model] = was }()
	switch at, healthy := t.pick(t.r.host.Config.Circuit.Open); {
	case at < 0:
		return fallback.NoOthers
	case healthy:
		return fallback.Healthy
	}
	return fallback.Broken
}

// reported is what a circuit is told of a failure. A kind is never empty there.
func reported(failed *holdfast.ModelError) failure.Kind {
	switch {
	case failed.Kind != "":
		return failed.Kind
	case failed.Retryable:
		return failure.Overloaded
	}
	return failure.Invalid
}

// passed remembers the failure of a model that is not asked again now.
func (t *attempts) passed(failed *holdfast.ModelError, err error) {
	if failed.Retryable && t.passing == nil {
		t.passing = err
	}
}

// last returns the error with which the run ends: if a later try may help, that of the
// model that may answer then.
func (t *attempts) last(failed *holdfast.ModelError, err error) error {
	if t.passing != nil && !failed.Retryable && failed.Kind != failure.Refused {
		return t.passing
	}
	return err
}

// report tells the circuit and the observer of a try that failed.
func (t *attempts) report(failed *holdfast.ModelError, next fallback.Decision) {
	m := &t.r.models[t.r.model]
	kind := reported(failed)
	t.r.host.Config.Circuit.Report(m.Circuit, kind, failed.RetryAfter)
	if kind == failure.Rate || kind == failure.Overloaded {
		t.r.host.Config.Pace.Refused(m.Circuit, int(t.r.host.Sharing.Load()), failed.RetryAfter)
	}
	t.r.host.Config.Observer.ModelFailed(t.r.place(), observe.ModelFailure{
		Provider:  m.Provider,
		Model:     m.ID,
		Kind:      failed.Kind,
		Status:    failed.Status,
		RequestID: failed.RequestID,
		Attempt:   t.count - 1,
		Next:      observe.NextStep(next.Step),
		Wait:      next.Wait,
	})
}

// log tells operators of a try that failed, and what follows.
func (t *attempts) log(failed *holdfast.ModelError, err error, next fallback.Decision) {
	m := &t.r.models[t.r.model]
	t.r.log.Warn("model call failed",
		"thread", t.r.key.Thread, "run", t.r.rec.ID, "iteration", t.r.st.Iteration, "attempt", t.count-1,
		"provider", m.Provider, "model", m.ID, "kind", failed.Kind, "status", failed.Status,
		"request", failed.RequestID, "next", next.Step, "in", next.Wait, "error", err)
}

// modelAttrs returns what the log says of the model that has failed a run; nothing if it
// was not a model.
func (r *run) modelAttrs(err error) []any {
	var failed *holdfast.ModelError
	if !errors.As(err, &failed) {
		return nil
	}
	return []any{
		"attempts",
		r.tried,
		"provider",
		failed.Provider,
		"model",
		failed.Model,
		"kind",
		failed.Kind,
		"status",
		failed.Status,
		"request",
		failed.RequestID,
	}
}

// pause waits for d, or until the run ends, or the server does, which gives the run to
// another one.
func (t *attempts) pause(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.r.host.Draining:
		return ErrStopped
	case <-t.r.ctx.Done():
		return context.Cause(t.r.ctx)
	}
}

// keepBegun is what follows a try that failed with err after the model's side had begun calls with
// effects: their message stands.
func (t *attempts) keepBegun(err error) error {
	r := t.r
	t.half = nil
	if err := r.w.CloseOpen(); err != nil {
		return err
	}
	if err := (listener{r}).restore(); err != nil {
		return err
	}
	if cause := context.Cause(r.ctx); cause != nil {
		return cause
	}
	r.lost = err
	return nil
}

// afterLoss decides what follows the loss of a stream between two messages, before the model is
// asked again.
func (t *attempts) afterLoss() error {
	err := t.r.lost
	if err == nil {
		return nil
	}
	t.r.lost = nil
	t.r.losses++
	t.tries[t.r.model] = t.r.losses
	return t.follow(&completion{r: t.r}, err)
}
