// Package looptest runs an engine with its keeper in tests: models and tools that do what a
// test says, requests, and readers of streams and histories. Most of it is one file of
// small helpers, in the order in which a test uses them: start, post, collect, compare.
package looptest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/process"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Engine is an engine and its keeper, on one store.
type Engine struct {
	Owner  *owner.Engine  // runs agents
	Keeper *upkeep.Keeper // keeps the threads
	// Store is the store that both work on.
	Store store.Store
}

// Config is what a test may change.
type Config struct {
	loop.Config
	ArchiveAfter time.Duration    // see upkeep.Config
	Retention    upkeep.Retention // see upkeep.Config
}

// Mortal is a store as one process sees it, which dies when the test says so.
type Mortal = process.Store

// ErrUnreachable is the error of a dead store.
var ErrUnreachable = process.ErrUnreachable

// Start starts both.
func (e *Engine) Start(ctx context.Context) error {
	e.Keeper.Start()
	return e.Owner.Start(ctx)
}

// Shutdown ends both.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.Keeper.Stop()
	return e.Owner.Shutdown(ctx)
}

// New returns both, not started.
func New(cfg Config) (*Engine, error) {
	e := &Engine{Store: cfg.Store}
	cfg.Ended = func(key store.ThreadKey) { e.Keeper.ArchiveSoon(key) }
	cfg.Observer = observe.Join(cfg.Observer, observe.Observer{Committed: checkListings})
	var err error
	if e.Owner, err = owner.New(cfg.Config); err != nil {
		return nil, err
	}
	looked := func(l upkeep.IndexLook) { observe.Join(cfg.Observer).IndexLooked(observe.IndexLook(l)) }
	e.Keeper = upkeep.New(upkeep.Config{
		Store:           cfg.Store,
		Engine:          e.Owner,
		Limits:          cfg.Limits,
		KeepCheckpoints: cfg.KeepCheckpoints,
		ArchiveAfter:    cfg.ArchiveAfter,
		Retention:       cfg.Retention,
		Log:             cfg.Log,
		Now:             cfg.Now,
		NewID:           cfg.NewID,
		CheckState: func(ctx context.Context, agent string, state json.RawMessage) error {
			return e.Owner.Agents().CheckState(ctx, agent, state)
		},
		Cleaned:     observe.Join(cfg.Observer).Cleaned,
		Walked:      observe.Join(cfg.Observer).Walked,
		IndexLooked: looked,
	})
	return e, nil
}

// Alice is the user of most tests.
var Alice = holdfast.Principal{Tenant: "acme", User: "alice"}

// Serial numbers the ids that engines make.
var Serial atomic.Int64

// newID numbers ids. Those of fences differ in what cursors have of them.
func newID(prefix string) string {
	if prefix == "" {
		return fmt.Sprintf("%06d", Serial.Add(1))
	}
	return fmt.Sprintf("%s%08d", prefix, Serial.Add(1))
}

// Start starts an engine on a store. change may adjust its configuration. The engine is shut
// down at the end of the test.
func Start(t testing.TB, store store.Store, change func(*Config), agents ...holdfast.Agent) *Engine {
	t.Helper()
	cfg := Settings(store, slog.New(slog.NewTextHandler(t.Output(), nil)), agents...)
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The rest of a run still tries to store something, which a dead store refuses.
	t.Cleanup(func() { _ = process.End(context.Background(), e.Shutdown) })
	return e
}

// Settings is the configuration of an engine in a test.
func Settings(store store.Store, log *slog.Logger, agents ...holdfast.Agent) Config {
	return Config{ArchiveAfter: time.Minute, Config: loop.Config{
		Store:            store,
		Memory:           memory,
		Agents:           agents,
		Recover:          true,
		Frequency:        loop.PerIteration,
		KeepCheckpoints:  100,
		Lease:            3 * time.Second,
		MaxRuns:          100,
		MaxParallelTools: 8,
		ModelTries:       3,
		StoreTimeout:     30 * time.Second,
		BufferBytes:      1 << 20,
		TailBytes:        1 << 16,
		KeepAlive:        15 * time.Second,
		Log:              log,
		Now:              clock.Wall,
		NewID:            newID,
	}}
}

// memory makes the stores of side runs.
func memory() store.Store { return memstore.New() }

// Say returns a model that answers with the text of turn n of the conversation.
func Say(turns ...holdfast.Delta) holdfast.Model {
	return holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			n := 0
			for _, m := range req.Messages {
				if m.Role == holdfast.RoleAssistant {
					n++
				}
			}
			d := turns[min(n, len(turns)-1)]
			if d.Finish == "" {
				d.Finish = holdfast.FinishStop
			}
			yield(d, nil)
		}
	})
}

// Calls returns the delta of a model that calls a tool.
func Calls(name, args string) holdfast.Delta {
	return holdfast.Delta{Call: &holdfast.CallDelta{Name: name, Arguments: args}, Finish: holdfast.FinishToolCalls}
}

// Tool returns a tool without arguments that calls f.
func Tool(name string, effect holdfast.Effect, f func(context.Context) (string, error)) holdfast.Tool {
	return holdfast.NewTool(name, name, func(ctx context.Context, _ struct{}) (string, error) { return f(ctx) },
		holdfast.WithEffect(effect))
}

// RunInput returns the input of a run on the thread id.
func RunInput(id, run string, messages ...agui.Message) *agui.RunAgentInput {
	return &agui.RunAgentInput{ThreadID: id, RunID: run, ProtocolVersion: agui.ProtocolVersion, Messages: messages}
}

// UserSays returns a user message.
func UserSays(id, text string) agui.Message {
	return agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.RoleUser, Text: text})
}

// Collect reads a reply to its end and checks that it is a legal stream.
func Collect(t testing.TB, reply *agui.Reply, err error) []agui.Event {
	t.Helper()
	if err != nil {
		t.Fatalf("post: %v", err)
	}
	var events []agui.Event
	for frames, err := range reply.Whole() {
		if err != nil {
			t.Fatalf("stream: %v", err)
		}
		for _, f := range frames {
			ev, err := agui.DecodeEvent(f.Data)
			if err != nil {
				t.Fatalf("frame %s: %v", f.Data, err)
			}
			events = append(events, ev)
		}
	}
	if err := agui.Verify(slices.Values(events)); err != nil {
		t.Fatalf("not a legal stream: %v\n%s", err, Show(events))
	}
	return events
}

// Show returns the events as JSON lines.
func Show(events []agui.Event) string {
	var b strings.Builder
	for _, ev := range events {
		b.Write(agui.Append(nil, ev))
		b.WriteByte('\n')
	}
	return b.String()
}

// LastOf returns the last event of a stream.
func LastOf(events []agui.Event) agui.Event { return events[len(events)-1] }

// Succeeded checks that the stream ends in success.
func Succeeded(t testing.TB, events []agui.Event) agui.RunFinished {
	t.Helper()
	f, ok := LastOf(events).(agui.RunFinished)
	if !ok || (f.Outcome != nil && f.Outcome.Type != agui.OutcomeSuccess) {
		t.Fatalf("the run did not succeed:\n%s", Show(events))
	}
	return f
}

// Messages returns the history.
func (e *Engine) Messages(ctx context.Context, who holdfast.Principal, id string) ([]json.RawMessage, error) {
	messages, err := e.Keeper.Messages(ctx, who, id)
	if err != nil {
		return nil, err
	}
	var all []json.RawMessage
	for m, err := range messages {
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Texts returns the history as "role:text".
func Texts(t testing.TB, e *Engine, id string) []string {
	t.Helper()
	raw, err := e.Messages(t.Context(), Alice, id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range raw {
		m, err := agui.DecodeMessage(r)
		if err != nil {
			t.Fatal(err)
		}
		d, err := m.Domain()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(d.Role)+":"+d.PlainText())
	}
	return out
}

// WantTexts checks the history, written like that of Texts.
func WantTexts(t testing.TB, e *Engine, id string, want ...string) {
	t.Helper()
	if got := Texts(t, e, id); !slices.Equal(got, want) {
		t.Errorf("history:\n got %q\nwant %q", got, want)
	}
}

// Code returns the error's code; "" for nil.
func Code(err error) string {
	if err == nil {
		return ""
	}
	return holdfast.AsError(err).Code
}

// Slowly returns a model that gives its deltas one by one, so that each becomes a record.
func Slowly(turns ...[]holdfast.Delta) holdfast.Model {
	return holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			n := 0
			for _, m := range req.Messages {
				if m.Role == holdfast.RoleAssistant {
					n++
				}
			}
			for _, d := range turns[min(n, len(turns)-1)] {
				wait.Pass(10 * time.Millisecond)
				if d.Text == "break" && req.Attempt == 0 {
					yield(holdfast.Delta{}, &holdfast.ModelError{Retryable: true, Err: holdfast.ErrTruncated})
					return
				}
				if d.Text != "break" && !yield(d, nil) {
					return
				}
			}
		}
	})
}

// Wordy is an agent whose run has everything that an archive leaves out, and an answer that
// was taken back.
func Wordy() holdfast.Agent {
	model := Slowly([]holdfast.Delta{
		{Reasoning: "let "}, {Reasoning: "mé"}, {Reasoning: " see 🙂"},
		{Text: "I \"look\" "}, {Text: "it ünder"}, {Text: " up\n"},
		{Call: &holdfast.CallDelta{Index: 0, ID: "c1", Name: "big", Arguments: ""}},
		{Call: &holdfast.CallDelta{Index: 1, ID: "c2", Name: "big", Arguments: "{"}},
		{Call: &holdfast.CallDelta{Index: 0, Arguments: "{ "}}, {Call: &holdfast.CallDelta{Index: 1, Arguments: " "}},
		{Call: &holdfast.CallDelta{Index: 0, Arguments: "}"}}, {Call: &holdfast.CallDelta{Index: 1, Arguments: "}"}},
		{Finish: holdfast.FinishToolCalls},
	}, []holdfast.Delta{{Text: "dulci"}, {Text: "mer"}, {Text: "break"}, {Text: " all "}, {Text: "done"},
		{Finish: holdfast.FinishStop}})
	big := Tool("big", holdfast.EffectPure, func(context.Context) (string, error) {
		return strings.Repeat("lengthy ", 100), nil
	})
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{big}}
}

// FramesOf reads a reply to its end.
func FramesOf(t testing.TB, reply *agui.Reply, err error) (frames []agui.Frame, events []agui.Event) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range reply.Whole() {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range batch {
			ev, err := agui.DecodeEvent(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			frames, events = append(frames, f), append(events, ev)
		}
	}
	return frames, events
}

// Must returns a function that gives the value, or ends the test with the error.
func Must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// WaitFor waits, in a synctest bubble, until everything is blocked and done returns true.
func WaitFor(t testing.TB, done func() bool) {
	t.Helper()
	for range 100 {
		synctest.Wait()
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it never came")
}

// KeyOf returns the key of Alice's thread id.
func KeyOf(id string) store.ThreadKey {
	return store.ThreadKey{Tenant: Alice.Tenant, Thread: id}
}

// Notebook collects what tools did, as "tool key".
type Notebook struct {
	mu   sync.Mutex
	list []string
}

// Note adds a line.
func (j *Notebook) Note(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = append(j.list, s)
}

// Take removes and returns all lines.
func (j *Notebook) Take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.list
	j.list = nil
	return list
}

// Traveller is an agent that calls tools in two iterations, and then answers.
func Traveller(j *Notebook) holdfast.Agent {
	step := func(name string, effect holdfast.Effect) holdfast.Tool {
		return holdfast.NewTool(name, name, func(ctx context.Context, args struct {
			N int `json:"n"`
		}) (string, error) {
			c := holdfast.CallFrom(ctx)
			j.Note(name + " " + c.Key)
			if err := holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(fmt.Sprintf(`{"last":%q}`, name)), nil
			}); err != nil {
				return "", err
			}
			return fmt.Sprintf("%s %d", name, args.N), nil
		}, holdfast.WithEffect(effect))
	}
	first := Calls("look", `{"n":1}`)
	second := Calls("charge", `{"n": 2}`)
	return holdfast.Agent{
		Name: "a", Model: Say(first, second, holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{step("look", holdfast.EffectPure), step("charge", holdfast.EffectOnce)},
	}
}

// Checkpoints lists the thread's checkpoints, oldest first.
func Checkpoints(t testing.TB, e *Engine, id string) []threads.Checkpoint {
	t.Helper()
	list := Must(e.Keeper.Checkpoints(t.Context(), Alice, id, "", time.Time{}, 100))(t)
	slices.Reverse(list)
	return list
}

// Resumed continues a thread with an empty-messages POST.
func Resumed(t testing.TB, e *Engine, id, run string) []agui.Event {
	t.Helper()
	reply, err := e.Owner.Post(t.Context(), Alice, "", RunInput(id, run))
	return Collect(t, reply, err)
}

// Travelled returns an engine on whose thread "t" a Traveller has run, and its empty notebook.
func Travelled(t testing.TB) (*Engine, *Notebook) {
	j := &Notebook{}
	e := Start(t, memstore.New(), nil, Traveller(j))
	reply, err := e.Owner.Post(t.Context(), Alice, "", RunInput("t", "r1", UserSays("u1", "go")))
	Succeeded(t, Collect(t, reply, err))
	j.Take()
	return e, j
}

// Posted posts an input and reads the reply to its end.
func Posted(t testing.TB, e *Engine, in *agui.RunAgentInput) []agui.Event {
	t.Helper()
	reply, err := e.Owner.Post(t.Context(), Alice, "", in)
	return Collect(t, reply, err)
}

// Started posts "go" to a new thread.
func Started(t testing.TB, e *Engine, id string) []agui.Event {
	t.Helper()
	return Posted(t, e, RunInput(id, "r1", UserSays("u1", "go")))
}

// Answers returns an input that gives all open questions the same answer.
func Answers(id, run string, payload string, open ...agui.Interrupt) *agui.RunAgentInput {
	in := RunInput(id, run)
	for _, i := range open {
		in.Resume = append(in.Resume, agui.ResumeEntry{InterruptID: i.ID, Status: agui.ResumeResolved,
			Payload: json.RawMessage(payload)})
	}
	return in
}

// OpenOf returns the questions with which a stream ends.
func OpenOf(t testing.TB, events []agui.Event) []agui.Interrupt {
	t.Helper()
	f, ok := LastOf(events).(agui.RunFinished)
	if !ok || f.Outcome == nil || f.Outcome.Type != agui.OutcomeInterrupt {
		t.Fatalf("nobody was asked:\n%s", Show(events))
	}
	return f.Outcome.Interrupts
}

// Failed checks that the stream ends in an error with that code.
func Failed(t testing.TB, events []agui.Event, code string) agui.RunError {
	t.Helper()
	f, ok := LastOf(events).(agui.RunError)
	if !ok || f.Code != code {
		t.Fatalf("want RUN_ERROR %s:\n%s", code, Show(events))
	}
	return f
}

// Pinger is an agent that calls ping n times, one after the other, and then answers.
func Pinger(n int, middleware ...holdfast.Middleware) holdfast.Agent {
	turns := make([]holdfast.Delta, n+1)
	for i := range turns {
		turns[i] = Calls("ping", fmt.Sprintf(`{"n":%d}`, i))
	}
	turns[n] = holdfast.Delta{Text: "done"}
	ping := holdfast.NewTool("ping", "ping", func(context.Context, struct {
		N int `json:"n"`
	}) (string, error) {
		return "pong", nil
	}, holdfast.WithEffect(holdfast.EffectPure))
	return holdfast.Agent{Name: "a", Model: Say(turns...), Tools: []holdfast.Tool{ping}, Middleware: middleware}
}

// TwoCalls returns a model that makes two calls and then answers.
func TwoCalls(a, b string) holdfast.Model {
	return holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			for i, name := range []string{a, b} {
				if !yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: "{}"}}, nil) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
		}
	})
}

// Recorder notes each of its hooks.
func Recorder(name string, j *Notebook) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "test." + name,
		Run: func(next holdfast.RunCall) holdfast.RunCall {
			return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
				j.Note(name + " run")
				outcome, err := next(ctx, it)
				j.Note(name + " run over: " + outcome)
				return outcome, err
			}
		},
		BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
			j.Note(fmt.Sprintf("%s before %d", name, it.Number))
			return nil
		},
		AfterIteration: func(_ context.Context, it *holdfast.Iteration, done *holdfast.IterationResult) {
			j.Note(fmt.Sprintf("%s after %d: %s%d", name, it.Number, done.Answer.Text, len(done.Calls)))
		},
		Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				j.Note(name + " model")
				return next(ctx, req)
			}
		},
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			j.Note(fmt.Sprintf("%s batch %d of %d", name, b.Number, len(b.Calls)))
			return nil
		},
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				j.Note(name + " tool")
				return next(ctx, tool, call)
			}
		},
	}
}

// WholeTrip is the history that a Traveller leaves.
var WholeTrip = []string{"user:go", "assistant:", "tool:look 1", "assistant:", "tool:charge 2", "assistant:done"}

// AsksLeave asks for leave to make each call of the tools, as AG-UI defines it.
func AsksLeave(expires time.Time, tools ...string) holdfast.Middleware {
	return holdfast.Middleware{Name: "test.leave", Batch: func(_ context.Context, b *holdfast.Batch) error {
		for i, call := range b.Calls {
			if slices.Contains(tools, call.Name) {
				b.Ask(i, &holdfast.Interrupt{
					Reason:    holdfast.ReasonToolCall,
					Message:   "May it?",
					ExpiresAt: expires,
					Metadata:  []byte(`{"mine":1}`),
					ResponseSchema: []byte(`{"type":"object","required":["approved"],` +
						`"properties":{"approved":{"type":"boolean"},` +
						`"editedArgs":{"type":"object"}}}`),
				})
			}
		}
		return nil
	}, Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
		return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
			if call.Answer != nil && string(call.Answer.Asked) != `{"mine":1}` {
				return holdfast.ToolResult{}, fmt.Errorf("asked %s", call.Answer.Asked)
			}
			return next(ctx, tool, call)
		}
	}}
}
