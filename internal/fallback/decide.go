// Package fallback decides what follows when a model fails: the same model again, at once
// or after a while, another one, or the end. It is pure: it is told what happened and what
// there is, and calls nothing.
package fallback

import (
	"time"

	"github.com/holdfast-agents/holdfast/failure"
)

// Step is what follows a try that failed.
type Step string

// The steps. They are also the words of logs and metrics.
const (
	Retry    Step = "retry"    // the same model, after Decision.Wait
	Shrink   Step = "shrink"   // the same model, which is shown less
	FallBack Step = "fallback" // another model, at once
	End      Step = "end"      // the run ends with the error
)

// Steps returns all of them.
func Steps() []Step { return []Step{Retry, Shrink, FallBack, End} }

// Others is what there is besides the model that has failed.
type Others int

// The possible inputs.
const (
	NoOthers Others = iota // no model is left that was not tried
	Broken                 // there are others, whose circuits are open
	Healthy                // there is one with a closed circuit
)

// Failure is a try that failed, and what is known beside it.
type Failure struct {
	// Kind is what kind of failure it is; it may be empty.
	Kind failure.Kind
	// Retryable means that the same model may succeed.
	Retryable bool
	// RetryAfter is how long the provider asked to wait; 0 if it did not.
	RetryAfter time.Duration
	// Tries counts the tries of this model for this answer, with the one that failed; of
	// them MaxTries are allowed.
	Tries, MaxTries int
	// Shrunk means that the model was asked again with less already, or that there is
	// nothing less to show.
	Shrunk bool
	// Others is what there is besides.
	Others Others
	// RefusedToo means that another model may answer what this one declines to.
	RefusedToo bool
}

// Decision is what follows, and after how long.
type Decision struct {
	Step Step
	Wait time.Duration
}

const (
	// shortWait is how long a run waits because a provider asks for it although there is
	// another model.
	shortWait = 20 * time.Second
	// longestWait bounds how long a provider can make a run wait.
	longestWait = 2 * time.Minute
	// cutTries is how often a model is tried whose answers break off, and backOffTries one
	// that is overloaded or limits the rate, while there is another model.
	cutTries, backOffTries = 3, 4
	// healthyTries is backOffTries if the other one has a closed circuit.
	healthyTries = 2
	// firstWait doubles with each try, up to maxBackOff.
	firstWait, maxBackOff = 200 * time.Millisecond, 10 * time.Second
)

// Decide returns what follows a failure. random returns numbers from 0 up to 1, or is nil;
// it spreads the tries of many runs.
func Decide(f Failure, random func() float64) Decision {
	last := Decision{Step: End}
	if f.Others != NoOthers {
		last.Step = FallBack
	}
	switch f.Kind {
	case failure.Invalid:
		return Decision{Step: End}
	case failure.Refused:
		if !f.RefusedToo {
			return Decision{Step: End}
		}
		return last
	case failure.Quota, failure.Auth:
		return last
	case failure.TooLong:
		if !f.Shrunk {
			return Decision{Step: Shrink}
		}
		return last
	}
	if wait := f.wait(random); f.again(wait) {
		return Decision{Step: Retry, Wait: wait}
	}
	return last
}

// again reports whether the same model is asked again after that wait.
func (f *Failure) again(wait time.Duration) bool {
	switch {
	case !f.Retryable || f.Tries >= f.MaxTries:
		return false
	case f.Others == NoOthers:
		return true
	case wait > shortWait:
		return false
	case f.Kind == failure.Cut:
		return f.Tries < cutTries
	case f.Others == Healthy && !(f.Kind == failure.Rate && f.RetryAfter > 0):
		return f.Tries < healthyTries && wait <= time.Second
	}
	return f.Tries < backOffTries
}

// wait returns how long to wait before the same model is asked again.
func (f *Failure) wait(random func() float64) time.Duration {
	if f.RetryAfter > 0 {
		return min(f.RetryAfter, longestWait)
	}
	doubled := f.Tries - 1
	if f.Kind == failure.Cut {
		if f.Tries < cutTries {
			return 0
		}
		doubled -= cutTries - 1
	}
	d := min(firstWait<<min(max(doubled, 0), 10), maxBackOff)
	if random != nil {
		d = d/2 + time.Duration(random()*float64(d/2))
	}
	return d
}
