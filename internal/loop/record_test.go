package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// The activities that hooks and tools record in the history.

// recorder is a middleware that records where it is called, in each of its hooks.
func recorder(t *testing.T) holdfast.Middleware {
	note := func(ctx context.Context, where string) {
		if err := holdfast.Record(ctx, "test.seen", map[string]string{"where": where}); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	return holdfast.Middleware{
		Name: "test.recorder",
		Run: func(next holdfast.RunCall) holdfast.RunCall {
			return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
				note(ctx, "run begins")
				outcome, err := next(ctx, it)
				note(ctx, "run ends")
				return outcome, err
			}
		},
		BeforeIteration: func(ctx context.Context, it *holdfast.Iteration) error {
			note(ctx, fmt.Sprint("before ", it.Number))
			return nil
		},
		AfterIteration: func(ctx context.Context, it *holdfast.Iteration, _ *holdfast.IterationResult) {
			note(ctx, fmt.Sprint("after ", it.Number))
		},
		Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					note(ctx, fmt.Sprint("asked ", req.Iteration))
					for d, err := range next(ctx, req) {
						if !yield(d, err) {
							return
						}
						note(ctx, fmt.Sprint("shown ", req.Iteration))
					}
				}
			}
		},
	}
}

// history returns a thread's history, each message as its role and what it says.
func history(t *testing.T, e *looptest.Engine, id string) []string {
	t.Helper()
	var out []string
	for _, raw := range looptest.Must(e.Messages(t.Context(), looptest.Alice, id))(t) {
		m := looptest.Must(agui.DecodeMessage(raw))(t)
		out = append(out, saidIn(looptest.Must(m.Domain())(t)))
	}
	return out
}

func saidIn(m holdfast.Message) string {
	if m.Activity == nil {
		return string(m.Role) + ":" + m.PlainText()
	}
	var content struct{ Where string }
	if json.Unmarshal(m.Activity.Content, &content) != nil || m.Activity.Type != "test.seen" {
		return "not what was recorded"
	}
	return content.Where
}

// TestRecord: whatever records an activity, it stands in the history where the
// conversation was then, is in the stream, and is never shown to the model.
func TestRecord(t *testing.T) {
	t.Parallel()
	var seen []string
	ping := holdfast.NewTool("ping", "ping", func(ctx context.Context, _ struct{}) (string, error) {
		for _, m := range holdfast.HistoryFrom(ctx) {
			seen = append(seen, saidIn(m))
		}
		return "pong", holdfast.Record(ctx, "test.seen", map[string]string{"where": "tool"})
	})
	shown := 0
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, m := range req.Messages {
				if m.Activity != nil || m.Role == holdfast.RoleActivity {
					t.Errorf("the model is shown %+v", m)
				}
			}
			if shown = len(req.Messages); shown > 1 {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			_ = yield(holdfast.Delta{Text: "well"}, nil) && yield(looptest.Calls("ping", "{}"), nil)
		}
	})
	db := memstore.New()
	e := looptest.Start(t, db, nil, holdfast.Agent{
		Name:       "a",
		Model:      model,
		Tools:      []holdfast.Tool{ping},
		Middleware: []holdfast.Middleware{recorder(t)},
	})
	events := looptest.Started(t, e, "t")
	looptest.Succeeded(t, events)
	want := []string{
		"user:go",
		"run begins",
		"before 0",
		"asked 0",
		"assistant:well",
		"shown 0",
		"tool:pong",
		"tool",
		"after 0",
		"before 1",
		"asked 1",
		"assistant:done",
		"after 1",
		"run ends",
	}
	if got := history(t, e, "t"); !slices.Equal(got, want) {
		t.Errorf("history:\n got %q\nwant %q", got, want)
	}
	if !slices.Equal(seen, want[:6]) || shown != 3 {
		t.Errorf("the tool saw %q, and the model %d messages", seen, shown)
	}
	streamed := 0
	for _, ev := range events {
		if a, ok := ev.(agui.ActivitySnapshot); ok {
			streamed++
			if a.ActivityType != "test.seen" || a.Timestamp == 0 {
				t.Errorf("streamed: %+v", a)
			}
		}
	}
	if streamed != 10 {
		t.Errorf("%d activities were streamed:\n%s", streamed, looptest.Show(events))
	}
	sound(t, db, "t")
	wantContinuable(t, e)
}

// wantContinuable checks that clients with and without the activities can go on, regenerate,
// and attach.
func wantContinuable(t *testing.T, e *looptest.Engine) {
	t.Helper()
	var all, stripped []agui.Message
	for _, raw := range looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t) {
		m := looptest.Must(agui.DecodeMessage(raw))(t)
		if all = append(all, m); m.Role != string(holdfast.RoleActivity) {
			stripped = append(stripped, m)
		}
	}
	for name, sent := range map[string][]agui.Message{"with": all, "without": stripped} {
		// A client that shows nothing new gets what is there, and starts nothing.
		events := looptest.Posted(t, e, looptest.RunInput("t", "again-"+name, sent...))
		looptest.Succeeded(t, events)
		if n := len(looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)); n != len(all) {
			t.Errorf("%s activities: a repeated request has added %d messages:\n%s", name, n-len(all),
				looptest.Show(events))
		}
	}
	events := looptest.Posted(t, e, looptest.RunInput("t", "more",
		append(stripped, looptest.UserSays("u2", "more"))...))
	looptest.Succeeded(t, events)
	if strings.Contains(looptest.Show(events), string(agui.TypeMessagesSnapshot)) {
		t.Errorf("a client without activities is resynchronised:\n%s", looptest.Show(events))
	}
	anew := looptest.RunInput("t", "anew", stripped[0])
	anew.ForwardedProps = json.RawMessage(`{"holdfast":{"branch":true}}`)
	looptest.Succeeded(t, looptest.Posted(t, e, anew))
	if got := history(t, e, "t"); got[0] != "user:go" || got[1] != "run begins" ||
		strings.Contains(strings.Join(got, " "), "more") {
		t.Errorf("answered anew: %q", got)
	}
}

// journalled is a state that counts what was recorded.
type journalled struct {
	N int `json:"n"`
}

var journalledState = state.Register(state.Spec[journalled]{Name: "test.journalled", Scope: state.ScopeThread})

// TestRecordedWithItsState: whichever commit a process dies before or after, the next one
// finds as many activities as the state has counted, none lost and none twice.
func TestRecordedWithItsState(t *testing.T) {
	count := func(ctx context.Context) {
		v, err := journalledState.Update(ctx, func(v journalled) journalled { return journalled{v.N + 1} })
		if err == nil {
			_ = holdfast.Record(ctx, "test.seen", map[string]string{"where": fmt.Sprint(v.N)})
		}
	}
	counting := holdfast.Middleware{
		Name: "test.counting", States: []holdfast.State{journalledState},
		AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) { count(ctx) },
		Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					count(ctx)
					for d, err := range next(ctx, req) {
						time.Sleep(time.Second / 8) // for what came before to be committed
						if !yield(d, err) {
							return
						}
						count(ctx)
					}
				}
			}
		},
		Run: func(next holdfast.RunCall) holdfast.RunCall {
			return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
				defer count(ctx)
				return next(ctx, it)
			}
		},
	}
	for dies := int32(1); ; dies++ {
		commits := int32(0)
		synctest.Test(t, func(t *testing.T) {
			shared := memstore.New()
			first := &shortLived{Mortal: looptest.Mortal{Store: shared}, after: dies}
			one := looptest.Start(t, first, nil, looptest.Pinger(2, counting))
			_, _ = one.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			first.Dead.Store(true)
			two := looptest.Start(t, shared, nil, looptest.Pinger(2, counting))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			n := 0
			for _, said := range history(t, two, "t") {
				if strings.Contains(said, ":") {
					continue
				}
				if n++; said != fmt.Sprint(n) {
					t.Errorf("dead after %d commits: %q", dies, history(t, two, "t"))
				}
			}
			head := looptest.Must(shared.Head(t.Context(), looptest.KeyOf("t")))(t)
			if want := fmt.Sprintf(`"test.journalled":{"n":%d}`, n); n == 0 ||
				!strings.Contains(string(head.State), want) {
				t.Errorf("dead after %d commits: %d activities, and the head %s", dies, n, head.State)
			}
			sound(t, shared, "t")
			commits = first.commits.Load()
		})
		if commits < dies || t.Failed() { // it ended before it could die
			if dies < 5 {
				t.Errorf("only %d commits were tried", dies)
			}
			return
		}
	}
}

// shortLived is a store that dies after a number of commits, as its process sees it.
type shortLived struct {
	looptest.Mortal
	after   int32
	commits atomic.Int32
}

func (d *shortLived) Commit(ctx context.Context, c *store.Commit) error {
	err := d.Mortal.Commit(ctx, c)
	if err == nil && d.commits.Add(1) == d.after {
		d.Dead.Store(true)
		return looptest.ErrUnreachable
	}
	return err
}

// TestRecordingIsNoProgress: a run that records and dies each time is given up.
func TestRecordingIsNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		never := holdfast.ModelFunc(func(ctx context.Context,
			_ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(func(holdfast.Delta, error) bool) { <-ctx.Done() }
		})
		killed(t, shared, owner.MaxTakeovers+1,
			holdfast.Agent{Name: "a", Model: never, Middleware: []holdfast.Middleware{recorder(t)}})
		last := looptest.Start(t, shared, nil,
			holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "now"})})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if info := looptest.Must(last.Keeper.Thread(t.Context(), looptest.Alice,
			"t"))(t); info.Code != "recovery_gave_up" {
			t.Errorf("%+v", info)
		}
	})
}

// TestRecordTooLate: a tool that outlives its run is told so.
func TestRecordTooLate(t *testing.T) {
	t.Parallel()
	var kept context.Context
	tool := looptest.Tool("ping", holdfast.EffectPure, func(ctx context.Context) (string, error) {
		kept = ctx
		return "pong", nil
	})
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("ping", "{}"), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{tool},
	})
	looptest.Succeeded(t, looptest.Started(t, e, "t"))
	if err := holdfast.Record(kept, "test.seen", struct{}{}); err == nil {
		t.Error("it was recorded after the end")
	}
}
