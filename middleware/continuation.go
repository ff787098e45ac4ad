package middleware

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/state"
)

// A run that has used its iterations asks a person before it begins another one. The answer
// grants more iterations or ends the run. Everything that counts is a state of the run, so
// that an answer to another question, a result from the frontend or a crash does not
// restart the count; what ends a run is stored before the run ends, and is read again if a
// crash comes in between.

// The notices of [Continuation].
const (
	// NoticeContinuationGranted is the notice of a run that continues: for how many
	// iterations, and whether the permission was remembered.
	NoticeContinuationGranted = "holdfast.continuation_granted"
	// NoticeContinuationRefused is the notice of a run that does not: how many iterations
	// it has used, and why it may not use more.
	NoticeContinuationRefused = "holdfast.continuation_refused"
)

const (
	continuationReason  = "holdfast:continuation"
	continuationMaximum = 20
	// One answer may grant at most continuationFactor times the limit, and a run may use
	// no more than that altogether unless MaxTotal says otherwise.
	continuationFactor = 10
)

// How long an answer with "always" is remembered.
const (
	// RememberRun remembers it until the person's next message.
	RememberRun = "run"
	// RememberThread remembers it as long as the thread exists.
	RememberThread = "thread"
)

// ContinuationOptions are the options of [Continuation].
type ContinuationOptions struct {
	// MaxIterations is how many iterations a run may use before a person is asked; 0 means
	// 20.
	MaxIterations int `json:"maxIterations"`
	// MaxTotal is how many iterations a run may use altogether, whatever was answered; 0
	// means ten times MaxIterations.
	MaxTotal int `json:"maxTotal"`
	// Remember is how long an answer with "always" is valid: [RememberRun] or
	// [RememberThread]. If it is empty, a person is asked at every limit.
	Remember string `json:"remember"`
}

func (o ContinuationOptions) withDefaults() ContinuationOptions {
	o.MaxIterations = cmp.Or(o.MaxIterations, continuationMaximum)
	o.MaxTotal = cmp.Or(o.MaxTotal, continuationFactor*o.MaxIterations)
	return o
}

// Validate says what is wrong with the options, and what to write instead.
func (o ContinuationOptions) Validate() error {
	o = o.withDefaults()
	switch {
	case o.MaxIterations < 0:
		return fmt.Errorf("maxIterations is %d: write 1 or more, or leave it out for %d", o.MaxIterations,
			continuationMaximum)
	case o.MaxTotal < 0:
		return fmt.Errorf("maxTotal is %d: write more than maxIterations, or leave it out for ten times as many",
			o.MaxTotal)
	case o.MaxTotal <= o.MaxIterations:
		return fmt.Errorf("maxTotal is %d and maxIterations %d, so nobody would ever be asked: "+
			"write a larger maxTotal", o.MaxTotal, o.MaxIterations)
	case !slices.Contains([]string{"", RememberRun, RememberThread}, o.Remember):
		return fmt.Errorf("remember is %q: write %q or %q, or leave it out to ask at each limit", o.Remember,
			RememberRun, RememberThread)
	}
	return nil
}

// ContinuationState is what [Continuation] remembers in a run.
type ContinuationState struct {
	// Used counts the iterations since the run began or was last allowed to continue.
	Used int `json:"used"`
	// Total counts the iterations of the whole run.
	Total int `json:"total"`
	// Granted is how many iterations a person has granted; 0 means as many as the limit.
	Granted int `json:"granted,omitempty"`
	// Always reports that the person does not want to be asked again.
	Always bool `json:"always,omitempty"`
	// Answered is the id of the last question whose answer was taken. The run still shows
	// that answer until the model has answered, so it must not be taken twice.
	Answered string `json:"answered,omitempty"`
	// Ended is the id of a run that was not allowed to continue.
	Ended string `json:"ended,omitempty"`
}

// ContinuationThreadState is what [Continuation] remembers in a thread.
type ContinuationThreadState struct {
	// Always reports that the person does not want to be asked again.
	Always bool `json:"always,omitempty"`
}

var (
	continuationState = state.Register(state.Spec[ContinuationState]{
		Name: "holdfast.continuation", Version: 1, Scope: state.ScopeRun,
		Validate: func(s ContinuationState) error {
			return cmp.Or(notNegative("used", s.Used), notNegative("total", s.Total), notNegative("granted", s.Granted))
		},
	})
	continuationThreadState = state.Register(state.Spec[ContinuationThreadState]{
		Name: "holdfast.continuation_thread", Version: 1, Scope: state.ScopeThread,
	})
)

// Continuation asks a person when a run has used its iterations. Depending on the answer
// the run continues, or ends with [codes.MaxIterations]. Only iterations with tool
// calls count: one without is the run's last. Neither an answer to another question nor a
// result from the frontend restarts the count.
//
// An agent should have only one. The server does not apply its own iteration limit to an
// agent that has one.
func Continuation(o ContinuationOptions) holdfast.Middleware {
	mustBeValid("Continuation", o)
	o = o.withDefaults()
	c := &continuation{limit: o.MaxIterations, total: o.MaxTotal, remember: o.Remember}
	return holdfast.Middleware{
		Name:             "holdfast.continuation",
		States:           []holdfast.State{continuationState, continuationThreadState},
		Notices:          []string{NoticeContinuationGranted, NoticeContinuationRefused},
		BoundsIterations: true,
		BeforeIteration:  c.before,
		// The commit that stores the calls stores the count too, so each answer is counted
		// once, whatever happens.
		Batch: func(ctx context.Context, _ *holdfast.Batch) error {
			_, err := continuationState.Update(ctx, func(s ContinuationState) ContinuationState {
				s.Used++
				s.Total++
				return s
			})
			return err
		},
	}
}

type continuation struct {
	limit, total int
	remember     string
}

func (c *continuation) before(ctx context.Context, it *holdfast.Iteration) error {
	s, err := continuationState.Load(ctx)
	if err != nil {
		return err
	}
	switch a := it.Answer; {
	// A refusal is taken again in the same run: a crash may have come between the refusal
	// and the end of the run.
	case a != nil && a.Reason == continuationReason && (a.InterruptID != s.Answered || s.Ended == it.Run):
		s, err = c.take(ctx, it, s)
	case s.Ended != "" && s.Ended != it.Run:
		// A person has resumed the run with empty messages.
		s.Used, s.Granted, s.Ended = 0, 0, ""
		err = c.proceed(ctx, s, false)
	}
	if err != nil {
		return err
	}
	if s.Total >= c.total {
		return c.exhausted(it)
	}
	if s.Used < c.allowed(s) {
		return nil
	}
	always, err := c.always(ctx, s)
	if err != nil {
		return err
	}
	if always {
		s.Used = 0
		return c.proceed(ctx, s, true)
	}
	return c.question(s)
}

// allowed returns how many iterations the run may use before somebody is asked.
func (c *continuation) allowed(s ContinuationState) int { return cmp.Or(s.Granted, c.limit) }

// always reports whether a person has said that the run may always continue.
func (c *continuation) always(ctx context.Context, s ContinuationState) (bool, error) {
	if c.remember == RememberThread {
		t, err := continuationThreadState.Load(ctx)
		return t.Always, err
	}
	return c.remember == RememberRun && s.Always, nil
}

// take applies a person's answer.
func (c *continuation) take(
	ctx context.Context, it *holdfast.Iteration, s ContinuationState,
) (ContinuationState, error) {
	said, no := c.read(it.Answer)
	s.Answered = it.Answer.InterruptID
	if no != "" {
		s.Ended = it.Run
		if err := noteContinuation(ctx, s, NoticeContinuationRefused,
			map[string]any{"used": s.Used, "why": no}); err != nil {
			return s, err
		}
		return s, c.refused(it, s, no)
	}
	s.Used, s.Granted, s.Ended = 0, said.Iterations, ""
	switch {
	case said.Always && c.remember == RememberRun:
		s.Always = true
	case said.Always && c.remember == RememberThread:
		always := func(ContinuationThreadState) ContinuationThreadState { return ContinuationThreadState{Always: true} }
		if _, err := continuationThreadState.Update(ctx, always); err != nil {
			return s, err
		}
	}
	return s, c.proceed(ctx, s, false)
}

// proceed notes that the run continues.
func (c *continuation) proceed(ctx context.Context, s ContinuationState, remembered bool) error {
	return noteContinuation(ctx, s, NoticeContinuationGranted,
		map[string]any{"iterations": c.allowed(s), "remembered": remembered})
}

// noteContinuation stores the state and sends the notice.
func noteContinuation(ctx context.Context, s ContinuationState, notice string, value any) error {
	_, err := continuationState.Update(ctx, func(ContinuationState) ContinuationState { return s })
	if err == nil {
		err = holdfast.Notify(ctx, notice, value)
	}
	return err
}

// continuationAnswer is an answer that allows the run to continue.
type continuationAnswer struct {
	Iterations int // 0 means as many as the limit
	Always     bool
}

// Why a run may not continue.
const (
	continuationNo       = "the answer was no"
	continuationDeclined = "the question was declined"
	continuationUnclear  = `the answer could not be read (it is {"continue": true} to go on)`
)

// read returns the answer if it allows the run to continue, and otherwise why it does not.
// An answer that cannot be read does not.
func (c *continuation) read(a *holdfast.Answer) (said continuationAnswer, no string) {
	if a.Declined {
		return said, continuationDeclined
	}
	var given struct {
		Continue   *bool `json:"continue"`
		Iterations *int  `json:"iterations"`
		Always     bool  `json:"always"`
	}
	err := holdfast.DecodeOptions(a.Payload, &given)
	switch {
	case err != nil || given.Continue == nil:
		return said, continuationUnclear
	case !*given.Continue:
		return said, continuationNo
	}
	said.Always = given.Always
	if given.Iterations != nil {
		if n := *given.Iterations; n < 1 || n > c.most() {
			return said, continuationUnclear
		}
		said.Iterations = *given.Iterations
	}
	return said, ""
}

// most returns how many iterations one answer may grant.
func (c *continuation) most() int { return c.limit * continuationFactor }

func (c *continuation) question(s ContinuationState) *holdfast.Interrupt {
	always := ""
	if c.remember != "" {
		always = fmt.Sprintf(`,"always":{"type":"boolean","description":"Go on without asking, `+
			`for the rest of this %s."}`, c.remember)
	}
	return &holdfast.Interrupt{
		Reason:  continuationReason,
		Message: fmt.Sprintf("The agent has used its %s. Go on?", iterations(s.Used)),
		ResponseSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"continue":{"type":"boolean",`+
			`"description":"Go on?"},`+
			`"iterations":{"type":"integer","minimum":1,"maximum":%d,"description":"How many more; %d `+
			`if it is left out."}%s},`+
			`"required":["continue"],"additionalProperties":false}`, c.most(), c.limit, always)),
		Metadata: json.RawMessage(fmt.Sprintf(`{"used":%d,"limit":%d,"total":%d,"maxTotal":%d}`, s.Used, c.allowed(s),
			s.Total, c.total)),
	}
}

func (c *continuation) refused(it *holdfast.Iteration, s ContinuationState, no string) error {
	return holdfast.Errorf(codes.MaxIterations, "The run stopped before iteration %d: it has used its %s, and %s.",
		it.Number, iterations(s.Used), no).
		WithHint("%s That grants it %d more.", hintResume, c.limit).
		With("limit", c.allowed(s)).
		With("iteration", it.Number)
}

func (c *continuation) exhausted(it *holdfast.Iteration) error {
	return holdfast.Errorf(codes.MaxIterations,
		"The run stopped before iteration %d: it has used all of the %d iterations that a run may use.", it.Number,
		c.total).
		WithHint(`To begin another run, send a new message with forwardedProps.holdfast.onUnfinished set to `+
			`"abandon": finished results are kept.`).
		With("limit", c.total).
		With("iteration", it.Number)
}

func iterations(n int) string {
	if n == 1 {
		return "1 iteration"
	}
	return fmt.Sprintf("%d iterations", n)
}
