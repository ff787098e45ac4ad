package loop

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
	"github.com/holdfast-agents/holdfast/internal/memstore"
)

// tested is an engine and its keeper, on one store.
type tested struct {
	*Engine
	*Keeper
	Store holdfast.Store
}

// testConfig is what a test may change.
type testConfig struct {
	Config
	ArchiveAfter time.Duration
	Retention    Retention
}

// Start starts both.
func (e *tested) Start(ctx context.Context) error {
	e.Keeper.Start()
	return e.Engine.Start(ctx)
}

// Shutdown ends both.
func (e *tested) Shutdown(ctx context.Context) error {
	e.Keeper.Stop()
	return e.Engine.Shutdown(ctx)
}

// newTested makes both, not started.
func newTested(cfg testConfig) (*tested, error) {
	e := &tested{Store: cfg.Store}
	cfg.Ended = func(key holdfast.ThreadKey) { e.ArchiveSoon(key) }
	var err error
	if e.Engine, err = New(cfg.Config); err != nil {
		return nil, err
	}
	e.Keeper = NewKeeper(KeeperConfig{
		Store: cfg.Store, Engine: e.Engine, KeepCheckpoints: cfg.KeepCheckpoints, ArchiveAfter: cfg.ArchiveAfter, Retention: cfg.Retention,
		Log: cfg.Log, Now: cfg.Now, NewID: cfg.NewID, Observer: cfg.Observer,
	})
	return e, nil
}

var alice = holdfast.Principal{Tenant: "acme", User: "alice"}

// nobody ignores what it observes.
type nobody struct{}

var serial atomic.Int64

// engine starts an engine on a store; the test ends it.
func engine(t *testing.T, store holdfast.Store, change func(*testConfig), agents ...holdfast.Agent) *tested {
	t.Helper()
	cfg := testConfig{ArchiveAfter: time.Minute, Config: Config{
		Store: store, Agents: agents, Recover: true, Frequency: PerIteration, KeepCheckpoints: 100, Lease: 3 * time.Second,
		MaxRuns: 100, MaxParallelTools: 8, ModelTries: 3, StoreTimeout: 30 * time.Second, BufferBytes: 1 << 20, TailBytes: 1 << 16,
		KeepAlive: 15 * time.Second, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: time.Now,
		NewID:    func(prefix string) string { return fmt.Sprintf("%s%08d", prefix, serial.Add(1)) },
		Observer: nobody{},
	}}
	if change != nil {
		change(&cfg)
	}
	e, err := newTested(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Shutdown(ctx)
	})
	return e
}

// say is a model that answers with the text of turn n of the conversation.
func say(turns ...holdfast.Delta) holdfast.Model {
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

func calls(name, args string) holdfast.Delta {
	return holdfast.Delta{Call: &holdfast.CallDelta{Name: name, Arguments: args}, Finish: holdfast.FinishToolCalls}
}

func tool(name string, effect holdfast.Effect, f func(context.Context) (string, error)) holdfast.Tool {
	return holdfast.NewTool(name, name, func(ctx context.Context, _ struct{}) (string, error) { return f(ctx) }, holdfast.WithEffect(effect))
}

func runInput(id, run string, messages ...agui.Message) *agui.RunAgentInput {
	return &agui.RunAgentInput{ThreadID: id, RunID: run, ProtocolVersion: agui.ProtocolVersion, Messages: messages}
}

func userSays(id, text string) agui.Message {
	return agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.RoleUser, Text: text})
}

// collect reads a reply to its end. What it read is a legal stream.
func collect(t *testing.T, reply *agui.Reply, err error) []agui.Event {
	t.Helper()
	if err != nil {
		t.Fatalf("post: %v", err)
	}
	var events []agui.Event
	for frames, err := range reply.Frames {
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
		t.Fatalf("not a legal stream: %v\n%s", err, show(events))
	}
	return events
}

func show(events []agui.Event) string {
	var b strings.Builder
	for _, ev := range events {
		b.Write(ev.AppendJSON(nil))
		b.WriteByte('\n')
	}
	return b.String()
}

func lastOf(events []agui.Event) agui.Event { return events[len(events)-1] }

// succeeded checks that the stream ends in success.
func succeeded(t *testing.T, events []agui.Event) agui.RunFinished {
	t.Helper()
	f, ok := lastOf(events).(agui.RunFinished)
	if !ok || (f.Outcome != nil && f.Outcome.Type != agui.OutcomeSuccess) {
		t.Fatalf("the run did not succeed:\n%s", show(events))
	}
	return f
}

// texts is the history, as "role:text".
func texts(t *testing.T, e *tested, id string) []string {
	t.Helper()
	raw, err := e.Messages(t.Context(), alice, id)
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

func wantTexts(t *testing.T, e *tested, id string, want ...string) {
	t.Helper()
	if got := texts(t, e, id); !slices.Equal(got, want) {
		t.Errorf("history:\n got %q\nwant %q", got, want)
	}
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return holdfast.AsError(err).Code
}

// slowly is a model that gives its deltas one by one, so that each is a record.
func slowly(turns ...[]holdfast.Delta) holdfast.Model {
	return holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			n := 0
			for _, m := range req.Messages {
				if m.Role == holdfast.RoleAssistant {
					n++
				}
			}
			for _, d := range turns[min(n, len(turns)-1)] {
				time.Sleep(10 * time.Millisecond)
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

// wordy is a run with everything that an archive leaves out, and an answer that was
// given up.
func wordy() holdfast.Agent {
	model := slowly([]holdfast.Delta{
		{Reasoning: "let "}, {Reasoning: "mé"}, {Reasoning: " see 🙂"},
		{Text: "I \"look\" "}, {Text: "it ünder"}, {Text: " up\n"},
		{Call: &holdfast.CallDelta{Index: 0, ID: "c1", Name: "big", Arguments: ""}},
		{Call: &holdfast.CallDelta{Index: 1, ID: "c2", Name: "big", Arguments: "{"}},
		{Call: &holdfast.CallDelta{Index: 0, Arguments: "{ "}}, {Call: &holdfast.CallDelta{Index: 1, Arguments: " "}},
		{Call: &holdfast.CallDelta{Index: 0, Arguments: "}"}}, {Call: &holdfast.CallDelta{Index: 1, Arguments: "}"}},
		{Finish: holdfast.FinishToolCalls},
	}, []holdfast.Delta{{Text: "dulci"}, {Text: "mer"}, {Text: "break"}, {Text: " all "}, {Text: "done"}, {Finish: holdfast.FinishStop}})
	big := tool("big", holdfast.EffectPure, func(context.Context) (string, error) { return strings.Repeat("lengthy ", 100), nil })
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{big}}
}

// framesOf reads a reply to its end.
func framesOf(t *testing.T, reply *agui.Reply, err error) (frames []agui.Frame, events []agui.Event) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range reply.Frames {
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

// must returns a function that gives the value, or ends the test with the error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// waitFor waits, in a bubble, until everything has come to rest and is as it is to be.
func waitFor(t *testing.T, done func() bool) {
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

func keyOf(id string) holdfast.ThreadKey {
	return holdfast.ThreadKey{Tenant: alice.Tenant, Thread: id}
}

// notebook counts what tools did, by "tool key".
type notebook struct {
	mu   sync.Mutex
	list []string
}

func (j *notebook) note(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = append(j.list, s)
}

func (j *notebook) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.list
	j.list = nil
	return list
}

// traveller is an agent that calls tools in two iterations, and then answers.
func traveller(j *notebook) holdfast.Agent {
	step := func(name string, effect holdfast.Effect) holdfast.Tool {
		return holdfast.NewTool(name, name, func(ctx context.Context, args struct {
			N int `json:"n"`
		}) (string, error) {
			c := holdfast.CallFrom(ctx)
			j.note(name + " " + c.Key)
			if err := holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(fmt.Sprintf(`{"last":%q}`, name)), nil
			}); err != nil {
				return "", err
			}
			return fmt.Sprintf("%s %d", name, args.N), nil
		}, holdfast.WithEffect(effect))
	}
	first := calls("look", `{"n":1}`)
	second := calls("charge", `{"n": 2}`)
	return holdfast.Agent{
		Name: "a", Model: say(first, second, holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{step("look", holdfast.EffectPure), step("charge", holdfast.EffectOnce)},
	}
}

// checkpoints lists the thread's checkpoints, oldest first.
func checkpoints(t *testing.T, e *tested, id string) []holdfast.Checkpoint {
	t.Helper()
	list := must(e.Checkpoints(t.Context(), alice, id, "", time.Time{}, 100))(t)
	slices.Reverse(list)
	return list
}

// resumed continues a thread with an empty-messages POST.
func resumed(t *testing.T, e *tested, id, run string) []agui.Event {
	t.Helper()
	reply, err := e.Post(t.Context(), alice, "", runInput(id, run))
	return collect(t, reply, err)
}

func travelled(t *testing.T) (*tested, *notebook) {
	j := &notebook{}
	e := engine(t, memstore.New(), nil, traveller(j))
	reply, err := e.Post(t.Context(), alice, "", runInput("t", "r1", userSays("u1", "go")))
	succeeded(t, collect(t, reply, err))
	j.take()
	return e, j
}

func posted(t *testing.T, e *tested, in *agui.RunAgentInput) []agui.Event {
	t.Helper()
	reply, err := e.Post(t.Context(), alice, "", in)
	return collect(t, reply, err)
}

// started posts "go" to a new thread.
func started(t *testing.T, e *tested, id string) []agui.Event {
	t.Helper()
	return posted(t, e, runInput(id, "r1", userSays("u1", "go")))
}

func answers(id, run string, payload string, open ...agui.Interrupt) *agui.RunAgentInput {
	in := runInput(id, run)
	for _, i := range open {
		in.Resume = append(in.Resume, agui.ResumeEntry{InterruptID: i.ID, Status: agui.ResumeResolved, Payload: json.RawMessage(payload)})
	}
	return in
}

// openOf returns the questions with which a stream ends.
func openOf(t *testing.T, events []agui.Event) []agui.Interrupt {
	t.Helper()
	f, ok := lastOf(events).(agui.RunFinished)
	if !ok || f.Outcome == nil || f.Outcome.Type != agui.OutcomeInterrupt {
		t.Fatalf("nobody was asked:\n%s", show(events))
	}
	return f.Outcome.Interrupts
}

func failed(t *testing.T, events []agui.Event, code string) agui.RunError {
	t.Helper()
	f, ok := lastOf(events).(agui.RunError)
	if !ok || f.Code != code {
		t.Fatalf("want RUN_ERROR %s:\n%s", code, show(events))
	}
	return f
}

// pinger is an agent that calls ping n times, one after the other, and then is done.
func pinger(n int, middleware ...holdfast.Middleware) holdfast.Agent {
	turns := make([]holdfast.Delta, n+1)
	for i := range turns {
		turns[i] = calls("ping", fmt.Sprintf(`{"n":%d}`, i))
	}
	turns[n] = holdfast.Delta{Text: "done"}
	ping := holdfast.NewTool("ping", "ping", func(context.Context, struct {
		N int `json:"n"`
	}) (string, error) {
		return "pong", nil
	}, holdfast.WithEffect(holdfast.EffectPure))
	return holdfast.Agent{Name: "a", Model: say(turns...), Tools: []holdfast.Tool{ping}, Middleware: middleware}
}

// twoCalls is a model that makes two calls, and then is done.
func twoCalls(a, b string) holdfast.Model {
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

// recorder notes each of its hooks.
func recorder(name string, j *notebook) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "test." + name,
		Run: func(next holdfast.RunCall) holdfast.RunCall {
			return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
				j.note(name + " run")
				outcome, err := next(ctx, it)
				j.note(name + " run over: " + outcome)
				return outcome, err
			}
		},
		BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
			j.note(fmt.Sprintf("%s before %d", name, it.Number))
			return nil
		},
		AfterIteration: func(_ context.Context, it *holdfast.Iteration, done *holdfast.IterationResult) {
			j.note(fmt.Sprintf("%s after %d: %s%d", name, it.Number, done.Answer.Text, len(done.Calls)))
		},
		Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				j.note(name + " model")
				return next(ctx, req)
			}
		},
		Batch: func(_ context.Context, b *holdfast.Batch) error {
			j.note(fmt.Sprintf("%s batch %d of %d", name, b.Number, len(b.Calls)))
			return nil
		},
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				j.note(name + " tool")
				return next(ctx, tool, call)
			}
		},
	}
}

func (nobody) RunStarted(holdfast.Iteration, bool, int) {}

func (nobody) RunEnded(holdfast.Iteration, string, string, time.Duration) {}

func (nobody) Claimed(holdfast.Iteration, string, string) {}

func (nobody) ModelCalled(holdfast.Iteration, string, time.Duration, time.Duration, *holdfast.Usage) {
}

func (nobody) ToolCalled(holdfast.Iteration, string, string, time.Duration) {}

func (nobody) IterationDone(holdfast.Iteration, int) {}

func (nobody) Committed(holdfast.Iteration, *holdfast.Commit, time.Duration, error) {}

func (nobody) Cleaned(holdfast.Cleaned) {}

func (nobody) Grown(holdfast.Iteration, int64) {}

func (nobody) Notified(holdfast.Iteration, string) {}

func (nobody) HookFailed(holdfast.Iteration, string, string) {}

func (nobody) SchemaChanged(holdfast.Iteration, *holdfast.SchemaChange) {}

func (nobody) LeaseRenewed(error) {}
