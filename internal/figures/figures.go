// Package figures keeps the last hour's figures in memory, for servers without Prometheus: how
// many runs, tokens and errors, and how long things took. They are of this process alone;
// docs/metrics.md has more.
package figures

// An hour is a ring of steps. Every event is counted in the step of its moment. When the next
// step begins, the times of the last one become two numbers, so that an hour takes a few
// kilobytes and a report costs no more than a lock.

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

const (
	// step is how much time a point stands for, and steps how many are kept.
	step  = 10 * time.Second
	steps = 360
	// maxCodes bounds the different error codes.
	maxCodes = 64
)

// Figures are what there is to tell.
type Figures struct {
	Runs   Runs         `json:"runs"`
	Series Series       `json:"series"`
	Errors []ErrorCount `json:"errors"`
}

// Runs counts the runs of this process since its start. Running is how many run now.
type Runs struct {
	Running   int64 `json:"running"`
	Started   int64 `json:"started"`
	Finished  int64 `json:"finished"`
	Waiting   int64 `json:"waiting"`
	Cancelled int64 `json:"cancelled"`
	Failed    int64 `json:"failed"`
	// Left are runs that another process goes on with, and TakenOver those that this one has
	// from another.
	Left      int64 `json:"left"`
	TakenOver int64 `json:"takenOver"`
}

// Series are the last steps, the oldest first. The last one has only begun.
type Series struct {
	StepSeconds int     `json:"stepSeconds"`
	Points      []Point `json:"points"`
}

// Point is one step: what happened in it, and how long that took.
type Point struct {
	At           time.Time `json:"at"`
	Running      int64     `json:"running"`
	Started      int64     `json:"started"`
	Finished     int64     `json:"finished"`
	Failed       int64     `json:"failed"`
	Waiting      int64     `json:"waiting"`
	Cancelled    int64     `json:"cancelled"`
	TokensIn     int64     `json:"tokensIn"`
	TokensCached int64     `json:"tokensCached"`
	TokensOut    int64     `json:"tokensOut"`
	FirstToken   *Spread   `json:"firstTokenMs,omitempty"`
	Run          *Spread   `json:"runMs,omitempty"`
	Commit       *Spread   `json:"commitMs,omitempty"`
}

// ErrorCount is how often runs have ended with a code, and when that happened last.
type ErrorCount struct {
	Code   string    `json:"code"`
	Count  int64     `json:"count"`
	LastAt time.Time `json:"lastAt"`
}

// Ring keeps the figures of a process. Make one with [New].
type Ring struct {
	now clock.Shared

	mu     sync.Mutex
	runs   Runs
	errors map[string]*ErrorCount
	points []Point // of the steps that have ended, at most steps-1
	open   Point   // of the step of the last report
	// The times of the open step.
	firstToken, run, commit times
}

// New returns a ring that begins now.
func New(now clock.Shared) *Ring {
	return &Ring{now: now, errors: map[string]*ErrorCount{}, open: Point{At: now().UTC().Truncate(step)}}
}

// Observer reports to the ring.
func (r *Ring) Observer() observe.Observer {
	return observe.Observer{
		RunStarted:  r.started,
		RunEnded:    r.ended,
		TakenOver:   r.takenOver,
		ModelCalled: r.modelCalled,
		Committed:   r.committed,
	}
}

// Figures returns what there is to tell now.
func (r *Ring) Figures() Figures {
	r.report()
	defer r.mu.Unlock()
	last := r.open
	last.FirstToken, last.Run, last.Commit = r.firstToken.spread(), r.run.spread(), r.commit.spread()
	f := Figures{
		Runs:   r.runs,
		Series: Series{StepSeconds: int(step / time.Second), Points: append(slices.Clone(r.points), last)},
		Errors: []ErrorCount{},
	}
	for _, e := range r.errors {
		f.Errors = append(f.Errors, *e)
	}
	slices.SortFunc(f.Errors, func(a, b ErrorCount) int {
		return cmp.Or(b.LastAt.Compare(a.LastAt), cmp.Compare(a.Code, b.Code))
	})
	return f
}

// report locks the ring, in the step of this moment.
func (r *Ring) report() {
	r.mu.Lock()
	r.reach(r.now().UTC().Truncate(step))
}

// reach closes the open step and those in which nothing was reported, if a later one has
// begun. A clock that goes back changes nothing.
func (r *Ring) reach(at time.Time) {
	if !at.After(r.open.At) {
		return
	}
	r.open.FirstToken, r.open.Run, r.open.Commit = r.firstToken.spread(), r.run.spread(), r.commit.spread()
	r.firstToken, r.run, r.commit = times{}, times{}, times{}
	r.points = append(r.points, r.open)
	if oldest := at.Add(-(steps - 1) * step); r.open.At.Before(oldest) { // nothing of the hour is left
		r.points, r.open.At = r.points[:0], oldest.Add(-step)
	}
	for next := r.open.At.Add(step); next.Before(at); next = next.Add(step) {
		r.points = append(r.points, Point{At: next, Running: r.runs.Running})
	}
	if extra := len(r.points) - (steps - 1); extra > 0 {
		r.points = slices.Delete(r.points, 0, extra)
	}
	r.open = Point{At: at, Running: r.runs.Running}
}

func (r *Ring) started(holdfast.Iteration, bool, int) {
	r.report()
	defer r.mu.Unlock()
	r.runs.Running++
	r.runs.Started++
	r.open.Running = max(r.open.Running, r.runs.Running)
	r.open.Started++
}

func (r *Ring) ended(_ holdfast.Iteration, outcome holdfast.Outcome, code string, took time.Duration) {
	r.report()
	defer r.mu.Unlock()
	r.runs.Running--
	switch outcome {
	case holdfast.OutcomeSuccess:
		r.runs.Finished++
		r.open.Finished++
	case holdfast.OutcomeInterrupt:
		r.runs.Waiting++
		r.open.Waiting++
	case holdfast.OutcomeCancelled:
		r.runs.Cancelled++
		r.open.Cancelled++
	case observe.OutcomeLeft:
		r.runs.Left++
		return // it has not ended
	default:
		r.failed(code)
	}
	r.run.add(took)
}

// failed counts a run that has ended with an error. The caller holds mu.
func (r *Ring) failed(code string) {
	r.runs.Failed++
	r.open.Failed++
	e := r.errors[code]
	if e == nil {
		if len(r.errors) >= maxCodes {
			return
		}
		e = &ErrorCount{Code: code}
		r.errors[code] = e
	}
	e.Count++
	e.LastAt = r.now().UTC()
}

// takenOver counts a takeover. A run that nobody continues has failed without having run here.
func (r *Ring) takenOver(_ holdfast.Iteration, result observe.TakeoverResult, code string) {
	r.report()
	defer r.mu.Unlock()
	switch result {
	case observe.TakeoverDone:
		r.runs.TakenOver++
	case observe.TakeoverCut:
		r.failed(code)
	}
}

func (r *Ring) modelCalled(_ holdfast.Iteration, _ observe.ModelResult, first, _ time.Duration, usage *holdfast.Usage) {
	r.report()
	defer r.mu.Unlock()
	if first >= 0 {
		r.firstToken.add(first)
	}
	if usage != nil {
		r.open.TokensIn += tokens(usage.InputTokens)
		r.open.TokensCached += tokens(usage.CachedInput)
		r.open.TokensOut += tokens(usage.OutputTokens)
	}
}

// tokens returns what a provider has reported; less than nothing is its mistake.
func tokens(n *int64) int64 {
	if n == nil {
		return 0
	}
	return max(*n, 0)
}

func (r *Ring) committed(_ holdfast.Iteration, _ *store.Commit, took time.Duration, err error) {
	if err != nil {
		return
	}
	r.report()
	defer r.mu.Unlock()
	r.commit.add(took)
}
