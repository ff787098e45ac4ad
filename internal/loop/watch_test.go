package loop_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAttachAtEveryMoment: whenever a fresh page attaches to a living run, its
// stream is legal, and in the end it shows what the first watcher shows. So does that of a
// page that comes back with the cursor of the last record, here or at another replica.
func TestAttachAtEveryMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		deltas := [][]holdfast.Delta{
			{
				{Reasoning: "let "},
				{Reasoning: "me see"},
				{Text: "I "},
				{Text: "look"},
				{Call: &holdfast.CallDelta{Index: 0, ID: "c", Name: "ping", Arguments: "{"}},
				{Call: &holdfast.CallDelta{Index: 1, ID: "c2", Name: "ping", Arguments: "{"}},
				{
					Call: &holdfast.CallDelta{Index: 0, Arguments: "}"},
				},
				{Call: &holdfast.CallDelta{Index: 1, Arguments: "}"}},
				{Finish: holdfast.FinishToolCalls},
			},
			{{Text: "all "}, {Reasoning: "hm"}, {Text: "done"}, {Finish: holdfast.FinishStop}},
		}
		model := holdfast.ModelFunc(func(ctx context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				for _, d := range deltas[min(req.Iteration, 1)] {
					<-step
					if !yield(d, nil) {
						return
					}
				}
			}
		})
		ping := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) {
			<-step
			return "pong", nil
		})
		db := memstore.New()
		e := looptest.Start(t, db, nil, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{ping}})
		other := looptest.Start(t, db, nil, holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{ping}})
		first, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		seen, ids := map[string][]agui.Event{}, map[string][]string{}
		watch := func(name string, reply *agui.Reply) {
			wg.Go(func() {
				var events []agui.Event
				var cursors []string
				for frames := range reply.Whole() {
					for _, f := range frames {
						ev, err := agui.DecodeEvent(f.Data)
						if err != nil {
							t.Errorf("%s: %v", name, err)
						}
						events, cursors = append(events, ev), append(cursors, f.ID)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				seen[name], ids[name] = events, cursors
			})
		}
		watch("first", first)
		back := map[string]string{} // the cursors of those who come back
		for i := range len(deltas[0]) + len(deltas[1]) + 2 {
			synctest.Wait()
			got, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectV1)
			if err != nil {
				t.Fatal(err)
			}
			watch(fmt.Sprintf("attached at step %d", i), got)
			posted, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", fmt.Sprintf("page-%d", i)))
			if err != nil {
				t.Fatal(err)
			}
			watch(fmt.Sprintf("posted at step %d", i), posted)
			at := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t).Cursor
			for replica, e := range []*looptest.Engine{e, other} {
				for _, run := range []string{"r1", ""} {
					name := fmt.Sprintf("back at replica %d, run %q, at step %d", replica, run, i)
					reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", run,
						looptest.Must(store.ParseCursor(at))(t), agui.DialectV1)
					if err != nil {
						t.Fatal(err)
					}
					back[name] = at
					watch(name, reply)
				}
			}
			synctest.Wait()
			step <- struct{}{}
		}
		synctest.Wait()
		info, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t")
		if err != nil || info.Status == threads.StatusRunning {
			t.Fatalf("the run has not ended: %+v %v", info, err)
		}
		wg.Wait()
		want := looptest.Reduce(seen["first"])[0:]
		want = append([]string{"user:go"}, want...)
		for name, events := range seen {
			if at, is := back[name]; is {
				n := slices.Index(ids["first"], at) + 1
				if whole := append(slices.Clone(seen["first"][:n]), events...); n == 0 ||
					looptest.Show(whole) != looptest.Show(seen["first"]) {
					t.Errorf("%s, after %s: in all it has seen\n%s", name, at, looptest.Show(whole))
				}
				continue
			}
			if err := agui.Verify(slices.Values(events)); err != nil {
				t.Errorf("%s: %v\n%s", name, err, looptest.Show(events))
			}
			if name == "first" {
				continue
			}
			if got := looptest.Reduce(events); !slices.Equal(got, want) {
				t.Errorf("%s shows\n%q, want\n%q", name, got, want)
			}
			if f := looptest.LastOf(events).(agui.RunFinished); strings.HasPrefix(name, "posted") != (f.RunID != "r1") {
				t.Errorf("%s: the end names run %s", name, f.RunID)
			}
		}
	})
}

// TestCancel: what was read and what was finished is kept, what was not is
// closed, and the thread is ready for the next message.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := looptest.Tool("quick", holdfast.EffectPure, func(context.Context) (string, error) {
			return "finished",
				nil
		})
		deaf := looptest.Tool("deaf", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			time.Sleep(time.Hour)
			return "late", nil
		})
		model := holdfast.ModelFunc(func(ctx context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if last := req.Messages[len(req.Messages)-1]; last.Text == "again" {
					yield(holdfast.Delta{Text: "fine", Finish: holdfast.FinishStop}, nil)
					return
				}
				yield(holdfast.Delta{Text: "working"}, nil)
				yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: 0, Name: "quick", Arguments: "{}"}}, nil)
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{Index: 1, Name: "deaf", Arguments: "{}"},
						Finish: holdfast.FinishToolCalls,
					},
					nil,
				)
			}
		})
		e := looptest.Start(t, memstore.New(), nil,
			holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{quick, deaf}})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if info, err := e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"); err != nil ||
			info.Status != threads.StatusRunning {
			t.Fatalf("%+v %v", info, err)
		}
		events := looptest.Collect(t, reply, nil)
		if f, ok := looptest.LastOf(events).(agui.RunFinished); !ok || f.Outcome.Type != agui.OutcomeCancelled {
			t.Fatalf("%s", looptest.Show(events))
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:working", "tool:finished", "tool:"+thread.TextCancelled)
		if info, err := e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"); err != nil ||
			info.Outcome != holdfast.OutcomeCancelled {
			t.Errorf("cancelled twice: %+v %v", info, err)
		}
		// A cut connection and an empty-messages POST after a cancel show the end.
		reply, err = e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2"))
		if f, ok := looptest.LastOf(looptest.Collect(t, reply, err)).(agui.RunFinished); !ok ||
			f.Outcome.Type != agui.OutcomeCancelled {
			t.Errorf("hydrate after a cancel: %+v", f)
		}
		reply, err = e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r3", looptest.UserSays("u2", "again")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
	})
}

// TestCancelAndRun: a request may put an end to the run it finds.
func TestCancelAndRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := holdfast.ModelFunc(func(ctx context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if !yield(holdfast.Delta{Text: "so"}, nil) {
					return
				}
				if req.Messages[len(req.Messages)-1].Text == "go" {
					<-ctx.Done()
					return
				}
				yield(holdfast.Delta{Text: " be it", Finish: holdfast.FinishStop}, nil)
			}
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: model})
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "stop"))
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", in); looptest.Code(err) != codes.RunInProgress {
			t.Fatal(err)
		}
		in.ForwardedProps = json.RawMessage(`{"holdfast":{"onBusy":"cancel_and_run"}}`)
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:so", "user:stop", "assistant:so be it")
	})
}

// TestInterruptBesideFrontendCall: a question and a frontend call of one batch;
// the answer and the frontend's result come in one request.
func TestInterruptBesideFrontendCall(t *testing.T) {
	ask := holdfast.NewTool("ask", "asks", func(ctx context.Context, _ struct{}) (string, error) {
		if a := holdfast.CallFrom(ctx).Answer; a != nil {
			return string(a.Payload), nil
		}
		return "", &holdfast.Interrupt{Message: "well?"}
	})
	two := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if len(req.Messages) > 1 {
				yield(holdfast.Delta{Text: "ok", Finish: holdfast.FinishStop}, nil)
				return
			}
			yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: 0, Name: "ask", Arguments: "{}"}}, nil)
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{Index: 1, Name: "page", Arguments: "{}"},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: two, Tools: []holdfast.Tool{ask}})
	in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
	in.Tools = []agui.Tool{{Name: "page"}}
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
	open := looptest.LastOf(looptest.Collect(t, reply, err)).(agui.RunFinished).Outcome
	if open.Type != agui.OutcomeInterrupt {
		t.Fatalf("%+v", open)
	}
	info, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t")
	if err != nil || len(info.PendingToolCalls) != 1 || len(info.Interrupts) != 1 {
		t.Fatalf("%+v %v", info, err)
	}
	result := agui.FromDomain(holdfast.Message{ID: "p1", Role: holdfast.RoleTool, CallID: info.PendingToolCalls[0],
		Text: "clicked"})
	next := looptest.RunInput("t", "r2", result)
	next.Resume = []agui.ResumeEntry{
		{InterruptID: open.Interrupts[0].ID, Status: agui.ResumeResolved, Payload: []byte(`"yes"`)},
	}
	reply, err = e.Owner.Post(t.Context(), looptest.Alice, "", next)
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:clicked", `tool:"yes"`, "assistant:ok")
}

// TestNewerFormat: what a newer version wrote is refused and left alone.
func TestNewerFormat(t *testing.T) {
	db := memstore.New()
	e := looptest.Start(t, db, nil, holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "x"})})
	key := store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}
	err := db.Commit(t.Context(), &store.Commit{
		Key:       key,
		ID:        "c1",
		Expect:    store.Position{Next: 1},
		User:      looptest.Alice.User,
		Fence:     store.Fence{Epoch: 1, Nonce: "n"},
		UpdatedAt: time.Now(),
		State:     []byte(`{"dataFormat":999}`),
		Records:   [][]byte{[]byte(`{}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r", looptest.UserSays("u", "x"))); looptest.Code(err) != codes.VersionTooNew {
		t.Errorf("got %v", err)
	}
	if head, err := db.Head(t.Context(), key); err != nil || head.ETag != "c1" {
		t.Errorf("the thread was touched: %+v %v", head, err)
	}
}

// TestAgentIsGone: a run whose agent is no longer configured anywhere waits for it, and then ends,
// and says so.
func TestAgentIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &looptest.Mortal{Store: shared}
		never := holdfast.ModelFunc(func(ctx context.Context,
			_ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(func(holdfast.Delta, error) bool) { <-ctx.Done() }
		})
		one := looptest.Start(t, first, nil, holdfast.Agent{Name: "old", Model: never})
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		first.Dead.Store(true)
		two := looptest.Start(t, shared, func(cfg *looptest.Config) { cfg.PinTimeout = time.Minute },
			holdfast.Agent{Name: "new", Model: never})
		time.Sleep(time.Minute)
		if info, err := two.Keeper.Thread(t.Context(), looptest.Alice, "t"); err != nil ||
			info.Status != threads.StatusRunning || info.Waiting == nil {
			t.Errorf("%+v %v", info, err)
		}
		time.Sleep(time.Minute)
		if info, err := two.Keeper.Thread(t.Context(), looptest.Alice, "t"); err != nil ||
			info.Code != codes.AgentNotFound {
			t.Errorf("%+v %v", info, err)
		}
	})
}

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGoldenRun is a whole run on the wire, in both dialects: reasoning, a
// retry after partial output, parallel tools, a question.
func TestGoldenRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := holdfast.ModelFunc(func(_ context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				switch {
				case req.Iteration == 0 && req.Attempt == 0:
					if yield(holdfast.Delta{Text: "I forg"}, nil) {
						yield(holdfast.Delta{}, &holdfast.ModelError{Retryable: true})
					}
				case req.Iteration == 0:
					for _, d := range []holdfast.Delta{
						{Reasoning: "two at once"}, {Text: "Let me see."},
						{Call: &holdfast.CallDelta{Index: 0, ID: "call_0", Name: "look", Arguments: "{}"}},
						{Call: &holdfast.CallDelta{Index: 1, ID: "call_1", Name: "ask", Arguments: "{}"}},
						{Finish: holdfast.FinishToolCalls},
					} {
						if !yield(d, nil) {
							return
						}
					}
				}
			}
		})
		look := looptest.Tool("look", holdfast.EffectPure, func(context.Context) (string, error) { return "seen", nil })
		ask := looptest.Tool("ask", holdfast.EffectPure, func(context.Context) (string, error) {
			time.Sleep(time.Second)
			return "", &holdfast.Interrupt{Message: "Which one?"}
		})
		n := 0
		numbered := func(c *looptest.Config) {
			var mu sync.Mutex
			c.NewID = func(prefix string) string {
				mu.Lock()
				defer mu.Unlock()
				if prefix == "" {
					return "fence0"
				}
				if prefix == "p" {
					return "process0"
				}
				if prefix == "c" {
					return prefix + fmt.Sprint(looptest.Serial.Add(1))
				}
				n++
				return fmt.Sprintf("%s_%d", prefix, n)
			}
		}
		e := looptest.Start(t, memstore.New(), numbered,
			holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{look, ask}})
		var out []byte
		for _, version := range []string{"1.0", ""} {
			in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
			in.ProtocolVersion = version
			if version == "" {
				in.RunID, in.Messages = "old-client", nil
			}
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
			if err != nil {
				t.Fatal(err)
			}
			for frames := range reply.Whole() {
				for _, f := range frames {
					out = fmt.Appendf(out, "%s\t%s\n", f.ID, f.Data)
				}
			}
			out = append(out, '\n')
		}
		path := filepath.Join("testdata", "run.golden")
		if *update {
			if err := os.WriteFile(path, out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != string(out) {
			t.Errorf("what goes over the wire has changed; rewrite %s with -update if that is meant. Got:\n%s", path,
				out)
		}
	})
}
