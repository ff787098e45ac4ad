package middleware

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/state"
)

// NoticeTooManyErrors is the notice of a run that is ended: the number of failing
// iterations, and the limit.
const NoticeTooManyErrors = "holdfast.too_many_errors"

const failingMaximum = 3

// ErrorTrackingOptions are the options of [ErrorTracking].
type ErrorTrackingOptions struct {
	// MaxFailingIterations is how many failing iterations in a row end the run; 0 means 3.
	MaxFailingIterations int `json:"maxFailingIterations"`
}

func (o ErrorTrackingOptions) withDefaults() ErrorTrackingOptions {
	o.MaxFailingIterations = cmp.Or(o.MaxFailingIterations, failingMaximum)
	return o
}

// Validate says what is wrong with the options, and what to write instead.
func (o ErrorTrackingOptions) Validate() error {
	o = o.withDefaults()
	if o.MaxFailingIterations < 0 {
		return fmt.Errorf("maxFailingIterations is %d: write 1 or more, or leave it out for %d",
			o.MaxFailingIterations, failingMaximum)
	}
	return nil
}

// ErrorTrackingState is what [ErrorTracking] remembers in a run.
type ErrorTrackingState struct {
	// Failing is how many iterations in a row have failed.
	Failing int `json:"failing"`
}

// After returns the state after an iteration with these calls. An iteration fails if a
// tool was run and its result is a failure. One in which nothing was run, because every
// call was denied or declined, changes nothing: it says nothing about the tools.
func (s ErrorTrackingState) After(calls []holdfast.CallResult) ErrorTrackingState {
	ran := len(calls) == 0
	for _, c := range calls {
		switch {
		case c.Result.NotRun:
		case c.Result.Failed:
			return ErrorTrackingState{Failing: s.Failing + 1}
		default:
			ran = true
		}
	}
	if ran {
		return ErrorTrackingState{}
	}
	return s
}

var errorTrackingState = state.Register(state.Spec[ErrorTrackingState]{
	Name: "holdfast.error_tracking", Version: 1, Scope: state.ScopeRun,
	Validate: func(s ErrorTrackingState) error { return notNegative("failing", s.Failing) },
})

// ErrorTracking ends a run with [codes.TooManyErrors] when tools have failed in too
// many iterations in a row. An iteration without a failure restarts the count, and so does
// a person who resumes the run.
//
// An agent should have only one: a second one would count every iteration twice.
func ErrorTracking(o ErrorTrackingOptions) holdfast.Middleware {
	mustBeValid("ErrorTracking", o)
	limit := o.withDefaults().MaxFailingIterations
	return holdfast.Middleware{
		Name:    "holdfast.error_tracking",
		States:  []holdfast.State{errorTrackingState},
		Notices: []string{NoticeTooManyErrors},
		BeforeIteration: func(ctx context.Context, it *holdfast.Iteration) error {
			return checkFailing(ctx, it, limit)
		},
		AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, done *holdfast.IterationResult) {
			// The error can be ignored: a state that cannot be read ends the run before
			// its next iteration.
			_, _ = errorTrackingState.Update(ctx, func(s ErrorTrackingState) ErrorTrackingState {
				return s.After(done.Calls)
			})
		},
	}
}

// checkFailing ends the run at the limit. A resumed run starts over with a count of 0.
func checkFailing(ctx context.Context, it *holdfast.Iteration, limit int) error {
	s, err := errorTrackingState.Load(ctx)
	if err != nil || s.Failing < limit {
		return err
	}
	if it.Granted == 0 && it.Number > 0 {
		_, err := errorTrackingState.Update(ctx, func(ErrorTrackingState) ErrorTrackingState {
			return ErrorTrackingState{}
		})
		return err
	}
	if err := holdfast.Notify(ctx, NoticeTooManyErrors,
		map[string]int{"failures": s.Failing, "limit": limit}); err != nil {
		return err
	}
	return holdfast.Errorf(codes.TooManyErrors, "%s; the limit is %d.", haveFailed(s.Failing), limit).
		WithHint(hintResume).With("failures", s.Failing).With("limit", limit)
}

func haveFailed(n int) string {
	if n == 1 {
		return "An iteration has failed"
	}
	return fmt.Sprintf("%d iterations in a row have failed", n)
}
