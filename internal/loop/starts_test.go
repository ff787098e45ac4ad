package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// held is a store that holds commits back, before they are made or after.
type held struct {
	store.Store
	which  func(*store.Commit) bool
	before bool
	held   chan struct{} // closed when one is
	free   chan struct{} // closed by the test
}

func holdBack(s store.Store, before bool, which func(*store.Commit) bool) *held {
	return &held{Store: s, which: which, before: before, held: make(chan struct{}), free: make(chan struct{})}
}

// Commit implements [store.Committer].
func (h *held) Commit(ctx context.Context, c *store.Commit) error {
	if !h.which(c) {
		return h.Store.Commit(ctx, c)
	}
	if h.before {
		close(h.held)
		<-h.free
	}
	err := h.Store.Commit(ctx, c)
	if !h.before {
		close(h.held)
		<-h.free
	}
	return err
}

// begins reports whether a commit is the first one of the run.
func begins(run string) func(*store.Commit) bool {
	return func(c *store.Commit) bool {
		for _, v := range c.Put {
			if v.Kind == store.KindRun && v.ID == run {
				return true
			}
		}
		return false
	}
}

// intends reports whether a commit is the first with so many intents of calls that are about to
// start.
func intends(n int) func(*store.Commit) bool {
	return func(c *store.Commit) bool {
		found := 0
		for _, v := range c.Put {
			if v.Kind == store.KindIntent && !strings.Contains(string(v.Data), "notStarted") {
				found++
			}
		}
		return found == n
	}
}

// payTwo is an agent with tools that pay once and must be asked for first, in one answer. j notes
// what was paid.
func payTwo(
	j *looptest.Notebook, ask bool, during func(ctx context.Context, name string) error,
	middleware ...holdfast.Middleware,
) holdfast.Agent {
	tool := func(name string) holdfast.Tool {
		options := []holdfast.ToolOption{holdfast.WithEffect(holdfast.EffectOnce)}
		return holdfast.NewTool(name, "pays", func(ctx context.Context, _ struct{}) (string, error) {
			if ask && holdfast.CallFrom(ctx).Answer == nil {
				return "", &holdfast.Interrupt{Message: "May I?"}
			}
			j.Note(name)
			if during != nil {
				if err := during(ctx, name); err != nil {
					return "", err
				}
			}
			return "paid " + name, nil
		}, options...)
	}
	return holdfast.Agent{
		Name:       "a",
		Model:      looptest.TwoCalls("one", "two"),
		Tools:      []holdfast.Tool{tool("one"), tool("two")},
		Middleware: middleware,
	}
}

// stopAtOnce shuts a server down without any patience.
func stopAtOnce(t *testing.T, e *looptest.Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = e.Shutdown(ctx)
}

// paidOnce checks what the next server has made of the run: both are paid, once.
func paidOnce(t *testing.T, e *looptest.Engine, j *looptest.Notebook, doubted ...string) {
	t.Helper()
	time.Sleep(10 * time.Second)
	texts := strings.Join(looptest.Texts(t, e, "t"), "\n")
	if n := strings.Count(texts, thread.TextInDoubt); n != len(doubted) {
		t.Errorf("%d calls are in doubt, want %d:\n%s", n, len(doubted), texts)
	}
	paid := j.Take()
	if len(paid) != 2 || paid[0] == paid[1] {
		t.Errorf("paid %q", paid)
	}
	if left := looptest.Must(e.Store.Values(t.Context(), looptest.KeyOf("t"), store.KindIntent, "",
		0))(t); len(left) > 0 {
		t.Errorf("%d intents are left", len(left))
	}
}

// TestStopAfterApproval: a server that stops between the commit that accepts a person's answers
// and the start of the calls says that they were not started, so nobody is left in doubt: neither
// where another server goes on, nor with the embedded store, after the next start.
func TestStopAfterApproval(t *testing.T) {
	for _, embedded := range []bool{false, true} {
		for _, before := range []bool{false, true} {
			for _, patient := range []bool{false, true} {
				t.Run(fmt.Sprintf("embedded=%t before=%t patient=%t", embedded, before, patient), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var s store.Store = memstore.New()
						dir := t.TempDir()
						if embedded {
							s = looptest.Must(filestore.Open(dir, filestore.Options{}))(t)
						}
						j := &looptest.Notebook{}
						h := holdBack(s, before, begins("r2"))
						leaving := looptest.Start(t, h, nil, payTwo(j, true, nil))
						open := looptest.OpenOf(t, looptest.Started(t, leaving, "t"))
						go func() {
							_, _ = leaving.Owner.Post(t.Context(), looptest.Alice, "",
								looptest.Answers("t", "r2", `{}`, open...))
						}()
						<-h.held
						stopped := make(chan struct{})
						go func() {
							defer close(stopped)
							if patient {
								_ = leaving.Shutdown(t.Context())
							} else {
								ctx, cancel := context.WithTimeout(t.Context(), time.Second)
								defer cancel()
								_ = leaving.Shutdown(ctx)
							}
						}()
						synctest.Wait()
						close(h.free)
						<-stopped
						if embedded {
							if err := s.Close(); err != nil {
								t.Fatal(err)
							}
							s = looptest.Must(filestore.Open(dir, filestore.Options{}))(t)
							defer s.Close()
						}
						next := looptest.Start(t, s, nil, payTwo(j, true, nil))
						paidOnce(t, next, j)
					})
				})
			}
		}
	}
}

// TestStopBeforeTheTools: the same for a server that is told to stop while the commit with the
// intents of an answer's calls is under way, or between that commit and the tools.
func TestStopBeforeTheTools(t *testing.T) {
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprint("before=", before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := memstore.New(), &looptest.Notebook{}
				h := holdBack(s, before, intends(2))
				leaving := looptest.Start(t, h, nil, payTwo(j, false, nil))
				if _, err := leaving.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
					t.Fatal(err)
				}
				<-h.held
				go func() { time.Sleep(time.Millisecond); close(h.free) }()
				stopAtOnce(t, leaving)
				paidOnce(t, looptest.Start(t, s, nil, payTwo(j, false, nil)), j)
			})
		})
	}
}

// TestStopAmongTheTools: of calls of which one was started, only that one is in doubt, also if the
// servers that go on with the run stop or die as well.
func TestStopAmongTheTools(t *testing.T) {
	hang := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
	oneByOne := func(cfg *looptest.Config) { cfg.MaxParallelTools = 1 }
	synctest.Test(t, func(t *testing.T) {
		s, j := memstore.New(), &looptest.Notebook{}
		leaving := looptest.Start(t, s, oneByOne, payTwo(j, false, hang))
		if _, err := leaving.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stopAtOnce(t, leaving)
		first := strings.Join(j.Take(), "")

		mortal := &looptest.Mortal{Store: s}
		dying := looptest.Start(t, mortal, nil, payTwo(j, false, hang))
		time.Sleep(5 * time.Second)
		second := strings.Join(j.Take(), "")
		if first == second || first == "" || second == "" {
			t.Fatalf("started were %q and then %q", first, second)
		}
		mortal.Dead.Store(true) // the other call is in doubt now, too
		j.Note(first)
		j.Note(second)
		stopAtOnce(t, dying)
		paidOnce(t, looptest.Start(t, s, nil, payTwo(j, false, nil)), j, "one", "two")
	})
}

// TestStopBehindAHook: a run that a hook holds up before its calls start is handed over without
// doubt, and one that a hook ends there can be continued without.
func TestStopBehindAHook(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails=", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := memstore.New(), &looptest.Notebook{}
				gate := holdfast.Middleware{Name: "test.gate", Run: func(next holdfast.RunCall) holdfast.RunCall {
					return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
						switch {
						case it.Run != "r2":
							return next(ctx, it)
						case fails:
							return "", holdfast.Errorf("test.closed", "Not now.")
						}
						<-ctx.Done()
						return "", ctx.Err()
					}
				}}
				leaving := looptest.Start(t, s, nil, payTwo(j, true, nil, gate))
				open := looptest.OpenOf(t, looptest.Started(t, leaving, "t"))
				if _, err := leaving.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.Answers("t", "r2", `{}`, open...)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				stopAtOnce(t, leaving)
				next := looptest.Start(t, s, nil, payTwo(j, true, nil))
				if fails {
					looptest.Succeeded(t, looptest.Resumed(t, next, "t", "r3"))
				}
				paidOnce(t, next, j)
			})
		})
	}
}

// TestCancelBeforeTheTools: a call of a run that is cancelled before it was started says that it
// was not.
func TestCancelBeforeTheTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := memstore.New(), &looptest.Notebook{}
		e := looptest.Start(t, s, nil, payTwo(j, true, nil,
			holdfast.Middleware{Name: "test.gate", Run: func(next holdfast.RunCall) holdfast.RunCall {
				return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
					if it.Run == "r2" {
						<-ctx.Done()
					}
					return next(ctx, it)
				}
			}}))
		open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.Answers("t", "r2", `{}`, open...)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r2"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		said := 0
		for _, raw := range looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t) {
			m := looptest.Must(agui.DecodeMessage(raw))(t)
			if m.Role == "tool" && thread.MarkOf(&m).NotRun {
				said++
			}
		}
		if said != 2 || len(j.Take()) > 0 {
			t.Errorf("%d of 2 results say that nothing was started", said)
		}
	})
}
