package middleware

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/state"
)

// An agent that is stuck makes the same call over and over. The circuit breaker counts, for
// each tool, how many calls in a row had the same arguments, and opens at the limit. The
// counts are a state of the run and change in the commit that stores the calls, so neither
// a crash nor a call that the frontend executes is missed.

// NoticeCircuitOpen is the notice of an open breaker: the tool, the number of identical
// calls, and the limit.
const NoticeCircuitOpen = "holdfast.circuit_open"

// The choices of a [CircuitBreaker] when it opens.
const (
	// BreakerEnd ends the run.
	BreakerEnd = "end"
	// BreakerTell tells the model.
	BreakerTell = "tell"
)

const (
	breakerMaximum = 3
	// breakerTools bounds the number of tools in the state, because a model can make up
	// names.
	breakerTools = 256
	// unnamedTool stands for a call without a name.
	unnamedTool = "_unknown"
)

// CircuitBreakerOptions are the options of [CircuitBreaker].
type CircuitBreakerOptions struct {
	// MaxIdenticalCalls is how many identical calls in a row open the breaker; the last of
	// them is not run. 0 means 3.
	MaxIdenticalCalls int `json:"maxIdenticalCalls"`
	// Then is what happens when the breaker opens: [BreakerEnd] (default) ends the run with
	// [codes.CircuitOpen]; [BreakerTell] makes it the result of the calls, so that
	// the model can do something else.
	Then string `json:"then"`
	// Tools has the maximum for individual tools, by name; 0 means that the tool is never
	// stopped.
	Tools map[string]int `json:"tools"`
}

func (o CircuitBreakerOptions) withDefaults() CircuitBreakerOptions {
	o.MaxIdenticalCalls = cmp.Or(o.MaxIdenticalCalls, breakerMaximum)
	o.Then = cmp.Or(o.Then, BreakerEnd)
	return o
}

// Validate says what is wrong with the options, and what to write instead.
func (o CircuitBreakerOptions) Validate() error {
	o = o.withDefaults()
	if o.MaxIdenticalCalls < 0 || o.MaxIdenticalCalls == 1 {
		return fmt.Errorf("maxIdenticalCalls is %d: write 2 or more, or leave it out for %d", o.MaxIdenticalCalls,
			breakerMaximum)
	}
	if !slices.Contains([]string{BreakerEnd, BreakerTell}, o.Then) {
		return fmt.Errorf("then is %q: write %q or %q", o.Then, BreakerEnd, BreakerTell)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Tools)) {
		if n := o.Tools[name]; n < 0 || n == 1 {
			return fmt.Errorf("tools: %s is %d: write 2 or more, or 0 for any number", name, n)
		}
	}
	return nil
}

// BreakerState is what a [CircuitBreaker] remembers in a run. It holds a hash of the
// arguments instead of the arguments.
type BreakerState struct {
	// Tools has the last call of each tool, by name.
	Tools map[string]BreakerCount `json:"tools,omitempty"`
	// Ended reports that the breaker has ended the run.
	Ended bool `json:"ended,omitempty"`
}

// BreakerCount is how many times in a row a tool was called with the same arguments. It is
// stored as one text, "9af832660a7ac441 2", because every checkpoint contains it and every
// resume reads it.
type BreakerCount struct {
	// Signature is a hash of the name and the arguments.
	Signature string
	// Count is the number of calls.
	Count int
}

// MarshalText writes the signature and the count.
func (c BreakerCount) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%s %d", c.Signature, c.Count), nil
}

// UnmarshalText reads the form that MarshalText writes.
func (c *BreakerCount) UnmarshalText(text []byte) error {
	signature, count, _ := strings.Cut(string(text), " ")
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a signature and a count", text)
	}
	c.Signature, c.Count = signature, n
	return nil
}

// Predicted returns how many identical calls in a row there would be with one more call.
func (s BreakerState) Predicted(tool, signature string) int {
	if last := s.Tools[tool]; last.Signature == signature {
		return last.Count + 1
	}
	return 1
}

// Record returns the state after one more call and leaves s as it is.
func (s BreakerState) Record(tool, signature string) BreakerState {
	count := BreakerCount{Signature: signature, Count: s.Predicted(tool, signature)}
	if _, known := s.Tools[tool]; !known && len(s.Tools) >= breakerTools {
		s.Tools = nil
	}
	next := maps.Clone(s.Tools)
	if next == nil {
		next = map[string]BreakerCount{}
	}
	next[tool] = count
	s.Tools = next
	return s
}

var breakerState = state.Register(state.Spec[BreakerState]{
	Name: "holdfast.circuit_breaker", Version: 1, Scope: state.ScopeRun,
})

// CircuitBreaker stops an agent that keeps calling a tool with the same arguments. The
// call that reaches the limit is not run, and neither are the other calls of the same
// answer. A call of the tool with different arguments restarts its count; a call of
// another tool does not.
//
// An agent should have only one: a second one would count every call twice.
func CircuitBreaker(o CircuitBreakerOptions) holdfast.Middleware {
	mustBeValid("CircuitBreaker", o)
	o = o.withDefaults()
	b := &breaker{maximum: o.MaxIdenticalCalls, tools: maps.Clone(o.Tools), ends: o.Then == BreakerEnd}
	return holdfast.Middleware{
		Name:            "holdfast.circuit_breaker",
		States:          []holdfast.State{breakerState},
		Notices:         []string{NoticeCircuitOpen},
		BeforeIteration: b.close,
		Batch:           b.batch,
	}
}

type breaker struct {
	maximum int
	tools   map[string]int
	ends    bool
}

// limit returns how many identical calls open the breaker; 0 if none do.
func (b *breaker) limit(tool string) int {
	if n, own := b.tools[tool]; own {
		return n
	}
	return b.maximum
}

// close resets the counts of a run that the breaker had ended: only a person can have
// resumed it.
func (b *breaker) close(ctx context.Context, _ *holdfast.Iteration) error {
	s, err := breakerState.Load(ctx)
	if err != nil || !s.Ended {
		return err
	}
	_, err = breakerState.Update(ctx, func(BreakerState) BreakerState { return BreakerState{} })
	return err
}

// batch counts the calls of an answer and decides whether they may run.
func (b *breaker) batch(ctx context.Context, calls *holdfast.Batch) error {
	var open *openCircuit
	_, err := breakerState.Update(ctx, func(s BreakerState) BreakerState {
		s, open = b.count(s, calls.Calls)
		s.Ended = open != nil && b.ends
		return s
	})
	if err != nil || open == nil {
		return err
	}
	if err := holdfast.Notify(ctx, NoticeCircuitOpen, open); err != nil {
		return err
	}
	if b.ends {
		return open.err()
	}
	for i, c := range calls.Calls {
		calls.Deny(i, open.text(breakerTool(c)))
	}
	return nil
}

// count returns the state after the calls, and the first call that opens the circuit; nil
// if none does.
func (b *breaker) count(s BreakerState, calls []holdfast.ToolCall) (next BreakerState, open *openCircuit) {
	for _, c := range calls {
		tool := breakerTool(c)
		limit := b.limit(tool)
		if limit == 0 {
			continue
		}
		signature := breakerSignature(tool, c.Arguments)
		if n := s.Predicted(tool, signature); n >= limit && open == nil {
			open = &openCircuit{Tool: tool, Count: n, Limit: limit}
		}
		s = s.Record(tool, signature)
	}
	return s, open
}

// openCircuit is why the breaker opened, and the value of the notice.
type openCircuit struct {
	Tool  string `json:"tool"`
	Count int    `json:"count"`
	Limit int    `json:"limit"`
}

func (o *openCircuit) err() error {
	return holdfast.Errorf(codes.CircuitOpen,
		"The agent goes round in circles: it has called %s %d times in a row with the same arguments, and the limit "+
			"is %d. The last call was not run.", o.Tool, o.Count, o.Limit).WithHint(hintResume).With("tool", o.Tool).
		With("count", o.Count).With("limit", o.Limit)
}

// text returns what the model reads as the result of a call of the tool.
func (o *openCircuit) text(tool string) string {
	if tool != o.Tool {
		return fmt.Sprintf("Not run, because %s was called in the same step, %d times in a row now with the same "+
			"arguments. Call %s again without that call.", o.Tool, o.Count, tool)
	}
	return fmt.Sprintf("Not run: %s has been called %d times in a row with the same arguments, and the limit is %d. "+
		"To repeat it will not help. Use other arguments or another tool, or answer with what you know "+
		"and say what is missing.", o.Tool, o.Count, o.Limit)
}

func breakerTool(c holdfast.ToolCall) string { return cmp.Or(c.Name, unnamedTool) }

// breakerSignature returns a hash that is the same for calls with the same meaning.
func breakerSignature(tool string, arguments json.RawMessage) string {
	sum := sha256.New()
	sum.Write([]byte(tool))
	sum.Write([]byte{0})
	sum.Write(sortedArguments(arguments))
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// sortedArguments returns JSON with sorted members and without whitespace; numbers stay
// as they were written. Text that is not JSON is returned unchanged.
func sortedArguments(text json.RawMessage) []byte {
	if len(text) == 0 {
		return []byte("{}") // which is how tools read it
	}
	return strictjson.CanonicalText(text)
}
