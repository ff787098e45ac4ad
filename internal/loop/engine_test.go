package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

func TestFreshRun(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil,
		holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "hello"})})
	in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "hi"))
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
	events := looptest.Collect(t, reply, err)
	looptest.Succeeded(t, events)
	looptest.WantTexts(t, e, "t", "user:hi", "assistant:hello")

	t.Run("the same input attaches to the same run", func(t *testing.T) {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
		if again := looptest.Collect(t, reply, err); looptest.Show(again) != looptest.Show(events) {
			t.Errorf("replay differs:\n%s", looptest.Show(again))
		}
	})
	t.Run("the same id with other input is refused", func(t *testing.T) {
		_, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u9", "other")))
		if looptest.Code(err) != codes.RunIDReused {
			t.Errorf("got %v", err)
		}
	})
	t.Run("somebody else's thread is not found", func(t *testing.T) {
		for _, who := range []holdfast.Principal{{Tenant: "acme", User: "bob"}, {Tenant: "other", User: "alice"}} {
			if _, err := e.Keeper.Thread(t.Context(), who, "t"); looptest.Code(err) != codes.NotFound {
				t.Errorf("%v: %v", who, err)
			}
			if list, err := e.Keeper.Threads(t.Context(), who, time.Time{}, 10); err != nil || len(list) > 0 {
				t.Errorf("%v lists %v, %v", who, list, err)
			}
		}
		if _, err := e.Owner.Post(t.Context(), holdfast.Principal{Tenant: "acme", User: "bob"}, "",
			looptest.RunInput("t", "r2", looptest.UserSays("b", "mine"))); looptest.Code(err) != codes.NotFound {
			t.Errorf("bob posts: %v", err)
		}
	})
}

// TestRepeatedCallIDs: providers repeat call_0; nobody sees it twice.
func TestRepeatedCallIDs(t *testing.T) {
	d := looptest.Calls("ping", "{}")
	d.Call.ID = "call_0"
	pong := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(d, d, holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{pong},
	})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	events := looptest.Collect(t, reply, err)
	seen := map[string]bool{}
	for _, ev := range events {
		if s, ok := ev.(agui.ToolCallStart); ok {
			if seen[s.ToolCallID] {
				t.Errorf("call id %s is used twice", s.ToolCallID)
			}
			seen[s.ToolCallID] = true
		}
	}
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:pong", "assistant:", "tool:pong", "assistant:done")
	key := store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}
	for _, kind := range []store.Kind{store.KindPending, store.KindIntent} {
		if left, err := e.Store.Values(t.Context(), key, kind, "", 0); err != nil || len(left) > 0 {
			t.Errorf("the final checkpoint left %s values: %v %v", kind, left, err)
		}
	}
	if list, err := e.Store.Values(t.Context(), key, store.KindCheckpoint, "", 0); err != nil || len(list) != 4 {
		t.Errorf("%d checkpoints, want input, two of the loop and the final one (%v)", len(list), err)
	}
}

// TestNoPendingWriteOutlivesItsCheckpoint: a result and the checkpoint that
// holds it may be one commit.
func TestNoPendingWriteOutlivesItsCheckpoint(t *testing.T) {
	c := &store.Commit{Put: []store.Value{{Kind: store.KindPending, ID: "c"}, {Kind: store.KindBlob, ID: "s"}}}
	thread.ClearMarks(c)
	if len(c.Put) != 1 || c.Put[0].Kind != store.KindBlob || len(c.Clear) != 2 {
		t.Errorf("%+v", c)
	}
}

// TestAttachAnywhere: from every record of a finished run a watcher gets exactly
// the rest; a cursor that the log does not hold is a new start that says so.
func TestAttachAnywhere(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("ping", "{}"), holdfast.Delta{Reasoning: "hm", Text: "done"}),
		Tools: []holdfast.Tool{
			looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil }),
		},
	})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	var all []agui.Frame
	for frames := range reply.Whole() {
		all = append(all, frames...)
	}
	if err != nil || len(all) < 8 {
		t.Fatal(len(all), err)
	}
	for i := range all {
		cursor, err := store.ParseCursor(all[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", cursor, agui.DialectV1)
		if err != nil {
			t.Fatal(err)
		}
		var rest []agui.Frame
		if reply != nil {
			for frames := range reply.Whole() {
				rest = append(rest, frames...)
			}
		} else if i != len(all)-1 {
			t.Fatalf("after record %d nothing is said to be missing", i+1)
		}
		if !slices.EqualFunc(rest, all[i+1:], func(a, b agui.Frame) bool {
			return a.ID == b.ID && bytes.Equal(a.Data, b.Data)
		}) {
			t.Errorf("after record %d: got %d frames, want %d", i+1, len(rest), len(all)-i-1)
		}
	}
	foreign, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{Number: 3, Tag: "nobody"},
		agui.DialectV1)
	started, ok := looptest.Collect(t, foreign, err)[0].(agui.RunStarted)
	if !ok || !strings.Contains(string(started.Metadata), `"resync":true`) {
		t.Errorf("a foreign cursor is not answered by a resync: %s", started.Metadata)
	}
}

// TestPolicies: every way out that an error names works.
func TestPolicies(t *testing.T) {
	ask := holdfast.NewTool("ask", "asks", func(ctx context.Context, _ struct{}) (string, error) {
		if a := holdfast.CallFrom(ctx).Answer; a != nil {
			return "they said " + string(a.Payload), nil
		}
		return "", &holdfast.Interrupt{Message: "well?"}
	})
	model := looptest.Say(looptest.Calls("ask", "{}"), holdfast.Delta{Text: "fine"})
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{ask}})
	post := func(thread, run string, change func(*agui.RunAgentInput), messages ...agui.Message) ([]agui.Event, error) {
		in := looptest.RunInput(thread, run, messages...)
		if change != nil {
			change(in)
		}
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
		if err != nil {
			return nil, err
		}
		return looptest.Collect(t, reply, nil), nil
	}
	props := func(s string) func(*agui.RunAgentInput) {
		return func(in *agui.RunAgentInput) { in.ForwardedProps = json.RawMessage(s) }
	}
	t.Run("decline", func(t *testing.T) {
		post("decline", "r1", nil, looptest.UserSays("u1", "go"))
		if _, err := post("decline", "r2", nil,
			looptest.UserSays("u2", "never mind")); looptest.Code(err) != codes.Interrupted {
			t.Fatal(err)
		}
		if _, err := post("decline", "r2", props(`{"holdfast":{"onInterrupted":"decline"}}`),
			looptest.UserSays("u2", "never mind")); err != nil {
			t.Fatal(err)
		}
		looptest.WantTexts(t, e, "decline", "user:go", "assistant:", "tool:"+thread.TextDeclined, "user:never mind",
			"assistant:fine")
	})
	t.Run("resume with a message", func(t *testing.T) {
		events, _ := post("queue", "r1", nil, looptest.UserSays("u1", "go"))
		open := looptest.LastOf(events).(agui.RunFinished).Outcome.Interrupts
		resume := func(in *agui.RunAgentInput) {
			in.Resume = []agui.ResumeEntry{
				{InterruptID: open[0].ID, Status: agui.ResumeResolved, Payload: []byte(`"yes"`)},
			}
		}
		if _, err := post("queue", "r2", resume, looptest.UserSays("u2", "and then?")); err != nil {
			t.Fatal(err)
		}
		looptest.WantTexts(t, e, "queue", "user:go", "assistant:", `tool:they said "yes"`, "user:and then?",
			"assistant:fine")
		if events, err := post("queue", "r3", resume); err != nil || len(events) == 0 {
			t.Errorf("the same answer again: %v", err)
		}
	})
	t.Run("branch", func(t *testing.T) {
		post("branch", "r1", props(`{"holdfast":{}}`), looptest.UserSays("u1", "go"))
		post("branch", "r2", props(`{"holdfast":{"onInterrupted":"decline"}}`), looptest.UserSays("u2", "one"))
		edited := []agui.Message{looptest.UserSays("u1", "go back")}
		if _, err := post("branch", "r3", nil, edited...); looptest.Code(err) != codes.HistoryDiverged {
			t.Fatal(err)
		}
		if _, err := post("branch", "r3", props(`{"holdfast":{"branch":true,"onInterrupted":"decline"}}`),
			edited...); err != nil {
			t.Fatal(err)
		}
		got := looptest.Texts(t, e, "branch")
		if got[0] != "user:go back" {
			t.Errorf("the branch begins with %q", got)
		}
	})
	t.Run("unknown option", func(t *testing.T) {
		for given, member := range map[string]string{
			`{"alowStale":true}`:                    "alowStale",
			`{"branch":true,"OnBusy":"panic"}`:      "OnBusy",
			`{"onbusy":"reject"}`:                   "onbusy",
			`{"` + strings.Repeat("x", 99) + `":1}`: strings.Repeat("x", 64),
		} {
			_, err := post("branch", "r9", props(`{"holdfast":`+given+`}`), looptest.UserSays("u9", "x"))
			e := holdfast.AsError(err)
			if e == nil || e.Code != codes.InvalidInput || e.Details["field"] != "forwardedProps.holdfast."+member ||
				!strings.Contains(e.Message, member) {
				t.Errorf("%s: %v", given, err)
			}
		}
		for _, given := range []string{`null`, `{}`} {
			if _, err := post("branch", "r3",
				props(`{"holdfast":`+given+`,"other":{"alowStale":1}}`)); looptest.Code(err) == codes.InvalidInput {
				t.Errorf("%s: %v", given, err)
			}
		}
	})
	t.Run("unknown policy", func(t *testing.T) {
		if _, err := post("branch", "r9", props(`{"holdfast":{"onBusy":"panic"}}`),
			looptest.UserSays("u9", "x")); looptest.Code(err) != codes.InvalidInput {
			t.Error(err)
		}
	})
}

// TestIterationLimit: the run stops at the limit, and an empty-messages POST
// grants the same number again.
func TestIterationLimit(t *testing.T) {
	limit := holdfast.Middleware{
		Name: "test.limit",
		BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
			if it.Granted >= 2 {
				return holdfast.Errorf(codes.MaxIterations, "the limit of 2 iterations is reached at iteration %d",
					it.Number)
			}
			return nil
		},
	}
	again := looptest.Calls("ping", "{}")
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:       "a",
		Model:      looptest.Say(again, again, again, holdfast.Delta{Text: "done"}),
		Middleware: []holdfast.Middleware{limit},
		Tools: []holdfast.Tool{
			looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil }),
		},
	})
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	if failed, ok := looptest.LastOf(looptest.Collect(t, reply, err)).(agui.RunError); !ok ||
		failed.Code != codes.MaxIterations {
		t.Fatalf("%+v", failed)
	}
	_, err = e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r2", looptest.UserSays("u2", "hello?")))
	if looptest.Code(err) != codes.MidExecution || holdfast.AsError(err).Details["iteration"] != 2 {
		t.Fatalf("scenario 4: %v", err)
	}
	reply, err = e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2"))
	events := looptest.Collect(t, reply, err)
	looptest.Succeeded(t, events)
	for i, want := range []agui.Type{agui.TypeRunStarted, agui.TypeMessagesSnapshot, agui.TypeStateSnapshot} {
		if agui.EventType(events[i]) != want {
			t.Errorf("event %d of a resume is %s, want %s", i, agui.EventType(events[i]), want)
		}
	}
}

// TestMaxRuns: beyond the bound a request is refused, and nothing is stored.
func TestMaxRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		wait := holdfast.ModelFunc(func(ctx context.Context,
			_ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				<-hold
				yield(holdfast.Delta{Text: "ok", Finish: holdfast.FinishStop}, nil)
			}
		})
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.MaxRuns = 1 },
			holdfast.Agent{Name: "a", Model: wait})
		first, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t1", "r", looptest.UserSays("u", "go")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t2", "r", looptest.UserSays("u", "go"))); looptest.Code(err) != codes.TooManyRuns {
			t.Fatal(err)
		}
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t2"); looptest.Code(err) != codes.NotFound {
			t.Errorf("the refused run left a thread: %v", err)
		}
		close(hold)
		looptest.Succeeded(t, looptest.Collect(t, first, nil))
		synctest.Wait()
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t2", "r", looptest.UserSays("u", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
	})
}

// TestShutdownHandsOver: a shutdown waits for the boundary between two steps, the next
// process continues, and streams say that they were cut.
func TestShutdownHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		slow := looptest.Tool("slow", holdfast.EffectOnce, func(context.Context) (string, error) {
			time.Sleep(time.Second)
			return "slept", nil
		})
		agent := holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("slow", "{}"), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{slow},
		}
		one := looptest.Start(t, shared, nil, agent)
		reply, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		cut := make(chan error, 1)
		go func() {
			var last error
			for _, err := range reply.Whole() {
				last = err
			}
			cut <- last
		}()
		synctest.Wait()
		if err := one.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-cut; looptest.Code(err) != codes.StreamCut {
			t.Errorf("the stream ended with %v", err)
		}
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t3", "r", looptest.UserSays("u", "x"))); looptest.Code(err) != codes.ShuttingDown {
			t.Errorf("a post after the shutdown: %v", err)
		}
		two := looptest.Start(t, shared, nil, agent)
		time.Sleep(time.Second)
		synctest.Wait()
		looptest.WantTexts(t, two, "t", "user:go", "assistant:", "tool:slept", "assistant:done")
	})
}

// slowEnd holds the end of run r1 up until it is let go.
func slowEnd(letGo <-chan struct{}) observe.Observer {
	return observe.Observer{RunEnded: func(at holdfast.Iteration, _ holdfast.Outcome, _ string, _ time.Duration) {
		if at.Run == "r1" {
			<-letGo
		}
	}}
}

// TestNextRunIsNotForgotten: a run's end is committed, and seen, before its goroutine
// is over. The next run of the thread may begin meanwhile, and is not taken for dead.
func TestNextRunIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		letGo := make(chan struct{})
		hold := make(chan struct{})
		model := holdfast.ModelFunc(func(_ context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if req.Run == "r2" {
					<-hold
				}
				yield(holdfast.Delta{Text: req.Run, Finish: holdfast.FinishStop}, nil)
			}
		})
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.Observer = slowEnd(letGo) },
			holdfast.Agent{Name: "a", Model: model})
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))
		second, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r2", looptest.UserSays("u2", "go")))
		close(letGo)
		time.Sleep(30 * time.Second) // orphans are looked for ten times
		close(hold)
		events := looptest.Collect(t, second, err)
		looptest.Succeeded(t, events)
		if strings.Contains(looptest.Show(events), "holdfast.takeover") {
			t.Errorf("a living run was taken over:\n%s", looptest.Show(events))
		}
	})
}

// TestRunIDIsMadeUp: an input without a run id gets one, which its first event has. Sent
// again, it is recognized by its messages.
func TestRunIDIsMadeUp(t *testing.T) {
	e, _ := looptest.Travelled(t)
	made := map[string]bool{}
	for _, thread := range []string{"u", "v"} {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput(thread, "", looptest.UserSays("u1", "go")))
		events := looptest.Collect(t, reply, err)
		looptest.Succeeded(t, events)
		run := events[0].(agui.RunStarted).RunID
		if run == "" || made[run] || reply.RunID != run || looptest.LastOf(events).(agui.RunFinished).RunID != run {
			t.Errorf("the run is %q, the reply says %q", run, reply.RunID)
		}
		made[run] = true
		again, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput(thread, "", looptest.UserSays("u1", "go")))
		shown := looptest.Collect(t, again, err)
		if started := shown[0].(agui.RunStarted); started.RunID != run || len(started.Metadata) != 0 {
			t.Errorf("sent again, the run is %+v", started)
		}
		if runs := looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, thread, "", 100))(t); len(runs) != 1 {
			t.Errorf("there are %d runs", len(runs))
		}
	}
}
