package loop_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// In these tests the lease is 3 seconds, and a pinned run waits for 15 minutes.

// revised is a revision of an agent that charges once, and then says which revision it is,
// once the gate is open; nil is an open one. The notebook gets each call of its tool and its
// model.
func revised(revision string, j *looptest.Notebook, gate <-chan struct{}) holdfast.Agent {
	charge := looptest.Tool("charge", holdfast.EffectOnce, func(context.Context) (string, error) {
		j.Note("charged by " + revision)
		return "charged", nil
	})
	model := holdfast.ModelFunc(func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			j.Note("asked " + revision)
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleUser {
				yield(looptest.Calls("charge", "{}"), nil)
				return
			}
			if gate != nil {
				select {
				case <-gate:
				case <-ctx.Done():
					return
				}
			}
			yield(holdfast.Delta{Text: "by " + revision, Finish: holdfast.FinishStop}, nil)
		}
	})
	return holdfast.Agent{Name: "a", Revision: revision, Model: model, Tools: []holdfast.Tool{charge}}
}

// pinned is a configuration by which runs wait for their revision.
func pinned(c *looptest.Config) { c.OnRevision, c.PinTimeout = owner.Pin, 15*time.Minute }

// bereft returns a store with a run on the thread "t" that has charged and is with revision
// 1, and whose server looks dead from then on, with its gate closed.
func bereft(t *testing.T, j *looptest.Notebook) (shared *memstore.Store, owner *looptest.Mortal, gate chan struct{}) {
	t.Helper()
	shared, gate = memstore.New(), make(chan struct{})
	owner = &looptest.Mortal{Store: shared}
	e := looptest.Start(t, owner, pinned, revised("1", j, gate))
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	owner.Dead.Store(true)
	if got := j.Take(); !slices.Equal(got, []string{"asked 1", "charged by 1", "asked 1"}) {
		t.Fatalf("the owner did %q", got)
	}
	return shared, owner, gate
}

// info returns the thread "t".
func info(t *testing.T, e *looptest.Engine) *threads.Info {
	t.Helper()
	return looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
}

// replayed returns the whole stream of a run of the thread "t", as JSON lines; the run must
// have ended.
func replayed(t *testing.T, e *looptest.Engine, run string) string {
	t.Helper()
	reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", run, store.Cursor{}, agui.DialectV1)
	return looptest.Show(looptest.Collect(t, reply, err))
}

// revisionOf returns the revision that a run of the thread "t" has recorded.
func revisionOf(t *testing.T, e *looptest.Engine, run string) string {
	t.Helper()
	for _, r := range looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "", 10))(t) {
		if r.ID == run {
			return r.Revision
		}
	}
	t.Fatalf("there is no run %s", run)
	return ""
}

// TestAdopt: a run that is taken over goes on with the revision that there is, says so, and
// has it recorded.
func TestAdopt(t *testing.T) {
	for name, change := range map[string]func(*looptest.Config, *holdfast.Agent){
		"by default":    func(*looptest.Config, *holdfast.Agent) {},
		"by the agent":  func(c *looptest.Config, a *holdfast.Agent) { pinned(c); a.OnRevision = owner.Adopt },
		"by the server": func(c *looptest.Config, _ *holdfast.Agent) { c.OnRevision = owner.Adopt },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &looptest.Notebook{}
				shared, _, _ := bereft(t, j)
				agent := revised("2", j, nil)
				change(&looptest.Config{}, &agent)
				e := looptest.Start(t, shared, func(c *looptest.Config) { change(c, &agent) }, agent)
				time.Sleep(10 * time.Second)
				looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:charged", "assistant:by 2")
				if got := j.Take(); !slices.Equal(got, []string{"asked 2"}) {
					t.Errorf("the new owner did %q", got)
				}
				if shown := replayed(t, e, "r1"); !strings.Contains(shown, `"fromRevision":"1"`) ||
					!strings.Contains(shown, `"toRevision":"2"`) {
					t.Errorf("nobody is told of the other revision:\n%s", shown)
				}
				if got := revisionOf(t, e, "r1"); got != "2" {
					t.Errorf("the run has the revision %q", got)
				}
			})
		})
	}
}

// TestSameRevision: where both servers have the same revision nobody hears of it, pinned or
// not; nor does a run wait that has none.
func TestSameRevision(t *testing.T) {
	for name, revisions := range map[string][2]string{"the same": {"1", "1"}, "none": {"", "2"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &looptest.Notebook{}
				shared := memstore.New()
				owner := &looptest.Mortal{Store: shared}
				old := looptest.Start(t, owner, pinned, revised(revisions[0], j, make(chan struct{})))
				if _, err := old.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				owner.Dead.Store(true)
				e := looptest.Start(t, shared, pinned, revised(revisions[1], j, nil))
				time.Sleep(10 * time.Second)
				if shown := replayed(t, e, "r1"); strings.Contains(shown, "evision") ||
					strings.Contains(shown, "waiting") {
					t.Errorf("the stream speaks of revisions:\n%s", shown)
				}
				if got := revisionOf(t, e, "r1"); got != revisions[1] {
					t.Errorf("the run has the revision %q", got)
				}
			})
		})
	}
}

// TestPinnedRunWaits: a pinned run waits for a server with its revision, whose clock may show
// anything. Those who wait with it write that down once.
func TestPinnedRunWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, _, _ := bereft(t, j)
		died := time.Now()
		var others []*looptest.Engine
		for _, off := range []time.Duration{time.Hour, -time.Hour} {
			others = append(others, looptest.Start(t, shared, func(c *looptest.Config) {
				pinned(c)
				c.Now = func() clock.Stamp { return clock.Wall().Add(off) }
			}, revised("2", j, nil)))
		}
		reply, err := others[0].Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		w := info(t, others[1]).Waiting
		if w == nil || w.Revision != "1" || w.Since.Before(died) || w.Since.Sub(died) > 6100*time.Millisecond ||
			w.Until.Sub(w.Since) != 15*time.Minute {
			t.Fatalf("the run waits as %+v; its server died at %s", w, died)
		}
		head := looptest.Must(shared.Head(t.Context(), looptest.KeyOf("t")))(t)
		if head.Fence.Epoch != 2 {
			t.Errorf("the thread was claimed %d times", head.Fence.Epoch-1)
		}
		looptest.Start(t, shared, pinned, revised("1", j, nil))
		synctest.Wait()
		events := looptest.Collect(t, reply, nil)
		looptest.Succeeded(t, events)
		if shown := looptest.Show(events); strings.Count(shown, `"holdfast.waiting"`) != 1 ||
			strings.Contains(shown, "toRevision") {
			t.Errorf("a watcher sees\n%s", shown)
		}
		looptest.WantTexts(t, others[0], "t", "user:go", "assistant:", "tool:charged", "assistant:by 1")
		if got := j.Take(); !slices.Equal(got, []string{"asked 1"}) {
			t.Errorf("the servers did %q", got)
		}
		if after := info(t, others[0]); after.Waiting != nil || after.Status != threads.StatusIdle {
			t.Errorf("the thread is %+v", after)
		}
	})
}

// TestRevisionGone: a pinned run that has waited for as long as it may ends with
// revision_gone, however often those who wait with it were restarted. It can be resumed, with
// the agent as it is then, and nothing that was finished runs again.
func TestRevisionGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, _, _ := bereft(t, j)
		died := time.Now()
		var e *looptest.Engine
		for range 4 {
			if e != nil {
				if err := e.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			e = looptest.Start(t, shared, pinned, revised("2", j, nil))
			time.Sleep(3 * time.Minute)
		}
		w := info(t, e).Waiting
		if w == nil {
			t.Fatal("the run does not wait")
		}
		time.Sleep(time.Until(w.Until) - 10*time.Millisecond)
		if got := info(t, e); got.Status != threads.StatusRunning || got.Waiting == nil {
			t.Errorf("shortly before its time is up the thread is %+v", got)
		}
		time.Sleep(3*time.Second + 20*time.Millisecond)
		if got := info(t, e); got.Status != threads.StatusStopped || got.Code != codes.RevisionGone ||
			got.Waiting != nil {
			t.Errorf("the thread is %+v", got)
		}
		if took := time.Since(died); took > 15*time.Minute+10*time.Second {
			t.Errorf("it waited for %s", took)
		}
		if shown := replayed(t, e, "r1"); !strings.Contains(shown, "15m0s") {
			t.Errorf("the stream ends with\n%s", shown)
		}
		looptest.Succeeded(t, looptest.Resumed(t, e, "t", "r2"))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:charged", "assistant:by 2")
		if got := j.Take(); !slices.Equal(got, []string{"asked 2"}) {
			t.Errorf("the servers did %q", got)
		}
		if first, second := revisionOf(t, e, "r1"), revisionOf(t, e, "r2"); first != "1" || second != "2" {
			t.Errorf("the runs have the revisions %q and %q", first, second)
		}
	})
}

// TestPinnedEndsInTime: a pinned run ends within a second of its time, however seldom anybody sweeps.
func TestPinnedEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, _, _ := bereft(t, j)
		e := looptest.Start(t, shared, func(c *looptest.Config) {
			pinned(c)
			dueAlone(c)
			c.Lease = time.Minute
		}, revised("2", j, nil))
		time.Sleep(3 * time.Minute)
		w := info(t, e).Waiting
		if w == nil {
			t.Fatal("the run does not wait")
		}
		time.Sleep(time.Until(w.Until) - 10*time.Millisecond)
		if got := info(t, e); got.Status != threads.StatusRunning {
			t.Errorf("shortly before its time is up the thread is %+v", got)
		}
		time.Sleep(1010 * time.Millisecond)
		if got := info(t, e); got.Status != threads.StatusStopped || got.Code != codes.RevisionGone {
			t.Errorf("a second after its time the thread is %+v", got)
		}
	})
}

// TestPinnedAgentGone: a run whose agent is not there at all waits too, where runs are
// pinned, and ends as it would without waiting.
func TestPinnedAgentGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, _, _ := bereft(t, j)
		other := revised("2", j, nil)
		other.Name = "b"
		e := looptest.Start(t, shared, pinned, other)
		time.Sleep(time.Minute)
		if got := info(t, e); got.Waiting == nil {
			t.Errorf("the thread is %+v", got)
		}
		time.Sleep(15 * time.Minute)
		if got := info(t, e); got.Code != codes.AgentNotFound {
			t.Errorf("the thread is %+v", got)
		}
	})
}

// whileItWaits calls f with a process that has another revision than the run, which it has
// only just found, or which waits.
func whileItWaits(t *testing.T, f func(t *testing.T, e *looptest.Engine, j *looptest.Notebook, waits bool)) {
	for name, waited := range map[string]time.Duration{"found just now": 4 * time.Second, "waits": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &looptest.Notebook{}
				shared, _, _ := bereft(t, j)
				e := looptest.Start(t, shared, pinned, revised("2", j, nil))
				time.Sleep(waited)
				f(t, e, j, waited == time.Minute)
			})
		})
	}
}

// TestCancelWhileItWaits: a run that waits, or is about to, can be cancelled. It ends at once,
// and neither the model nor a tool of the other revision is asked for that.
func TestCancelWhileItWaits(t *testing.T) {
	whileItWaits(t, func(t *testing.T, e *looptest.Engine, j *looptest.Notebook, waits bool) {
		if got := info(t, e); (got.Waiting != nil) != waits || got.Status != threads.StatusRunning {
			t.Fatalf("the thread is %+v", got)
		}
		if _, err := e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := info(t, e); got.Status != threads.StatusIdle || got.Outcome != holdfast.OutcomeCancelled ||
			got.Waiting != nil {
			t.Errorf("the thread is %+v", got)
		}
		if got := j.Take(); len(got) > 0 {
			t.Errorf("for the cancel the server did %q", got)
		}
		if got := revisionOf(t, e, "r1"); got != "1" {
			t.Errorf("the run has the revision %q", got)
		}
	})
}

// TestPostWhileItWaits: a thread whose run waits is a running one: a message is refused, or
// cancels the run if that is the policy.
func TestPostWhileItWaits(t *testing.T) {
	whileItWaits(t, func(t *testing.T, e *looptest.Engine, _ *looptest.Notebook, _ bool) {
		in := looptest.RunInput("t", "r2", looptest.UserSays("u2", "hello?"))
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", in); looptest.Code(err) != codes.RunInProgress {
			t.Errorf("a message gets %v", err)
		}
		in.ForwardedProps = []byte(`{"holdfast":{"onBusy":"cancel_and_run"}}`)
		looptest.Succeeded(t, looptest.Posted(t, e, in))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:charged", "user:hello?", "assistant:",
			"tool:charged", "assistant:by 2")
		if got := revisionOf(t, e, "r2"); got != "2" {
			t.Errorf("the run has the revision %q", got)
		}
	})
}

// TestTitleWhileItWaits: a request for another title while the run waits, or when it begins
// to, is answered so, instead of waiting with it.
func TestTitleWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, _, _ := bereft(t, j)
		e := looptest.Start(t, shared, pinned, revised("2", j, nil))
		time.Sleep(4 * time.Second)
		for _, waits := range []bool{false, true} {
			now, title, begun := looptest.Must(e.Owner.Current(t.Context(), looptest.Alice, "t"))(t), "Mine", time.Now()
			if (now.State.Waiting != nil) != waits {
				t.Fatalf("the run waits as %+v", now.State.Waiting)
			}
			if _, err := e.Owner.Amend(t.Context(), now,
				thread.Amendment{Description: &threads.Description{Title: &title}}); looptest.Code(err) !=
				codes.RunInProgress || time.Since(begun) > 3*time.Second {
				t.Errorf("after %s the title gets %v", time.Since(begun), err)
			}
		}
	})
}

// TestReloadFindsTheRevision: a run that waits goes on when a reload brings its revision.
func TestReloadFindsTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, _, _ := bereft(t, j)
		e := looptest.Start(t, shared, pinned, revised("2", j, nil))
		time.Sleep(time.Minute)
		use(t, e, revised("1", j, nil))
		synctest.Wait()
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:charged", "assistant:by 1")
	})
}

// TestReloadKeepsTheRevision: a server whose agents were replaced still has a revision while
// a run with it goes on there, and takes over others that are pinned to it.
func TestReloadKeepsTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, gate := memstore.New(), make(chan struct{})
		e := looptest.Start(t, shared, pinned, revised("1", j, gate))
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("mine", "r", looptest.UserSays("u", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		unused := use(t, e, revised("2", j, nil))
		owner := &looptest.Mortal{Store: shared}
		old := looptest.Start(t, owner, pinned, revised("1", j, make(chan struct{})))
		if _, err := old.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		owner.Dead.Store(true)
		time.Sleep(10 * time.Second)
		if n := e.Owner.Running(); n != 2 {
			t.Errorf("the server has %d runs", n)
		}
		close(gate)
		synctest.Wait()
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:charged", "assistant:by 1")
		if !closed(unused) {
			t.Error("the agents of before are still used")
		}
	})
}

// TestHandOverToTheRevision: a server that shuts down hands a pinned run over to the one that
// has its revision, although another one is asked first, and nobody writes that it waits.
func TestHandOverToTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, gate := memstore.New(), make(chan struct{})
		leaving := looptest.Start(t, shared, pinned, revised("1", j, gate))
		if _, err := leaving.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		looptest.Start(t, elect{shared, true}, pinned, revised("2", j, nil))
		staying := looptest.Start(t, elect{shared, false}, pinned, revised("1", j, nil))
		synctest.Wait()
		grace, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = leaving.Shutdown(grace) // the model call in flight is cut off
		time.Sleep(110 * time.Millisecond)
		synctest.Wait()
		looptest.WantTexts(t, staying, "t", "user:go", "assistant:", "tool:charged", "assistant:by 1")
		if shown := replayed(t, staying, "r1"); strings.Contains(shown, "holdfast.waiting") {
			t.Errorf("the run is said to wait:\n%s", shown)
		}
	})
}

// TestSilentOwnerOfAPinnedRun: a server that was only silent has lost its run, which waits for
// its revision by then, and takes it back.
func TestSilentOwnerOfAPinnedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, owner, gate := bereft(t, j)
		e := looptest.Start(t, shared, pinned, revised("2", j, nil))
		time.Sleep(time.Minute)
		if info(t, e).Waiting == nil {
			t.Fatal("the run does not wait")
		}
		owner.Dead.Store(false)
		close(gate)
		time.Sleep(10 * time.Second)
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:charged", "assistant:by 1")
		if got := info(t, e); got.Waiting != nil {
			t.Errorf("the thread is %+v", got)
		}
	})
}

// TestQuestionOutlivesRevision: a run keeps its revision through a reload, until it asks. The
// answer begins another run, with the newest revision.
func TestQuestionOutlivesRevision(t *testing.T) {
	asking := func(revision string) holdfast.Agent {
		ask := looptest.Tool("ask", holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
			if holdfast.CallFrom(ctx).Answer == nil {
				return "", &holdfast.Interrupt{Reason: holdfast.ReasonInputRequired, Message: "which?"}
			}
			return "asked by " + revision, nil
		})
		return holdfast.Agent{
			Name:     "a",
			Revision: revision,
			Model:    looptest.Say(looptest.Calls("ask", "{}"), holdfast.Delta{Text: "by " + revision}),
			Tools:    []holdfast.Tool{ask},
		}
	}
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), pinned, asking("1"))
		open := looptest.OpenOf(t, looptest.Started(t, e, "t"))
		use(t, e, asking("2"))
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.Answers("t", "r2", `"this"`, open...)))
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:asked by 2", "assistant:by 2")
		if first, second := revisionOf(t, e, "r1"), revisionOf(t, e, "r2"); first != "1" || second != "2" {
			t.Errorf("the runs have the revisions %q and %q", first, second)
		}
	})
}
