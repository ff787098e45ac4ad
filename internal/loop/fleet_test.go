package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// lacking starts a server that has another agent, and no hurry to end what waits.
func lacking(t *testing.T, shared store.Store, j *looptest.Notebook) *looptest.Engine {
	t.Helper()
	other := revised("1", j, nil)
	other.Name = "b"
	return looptest.Start(t, shared, func(c *looptest.Config) { c.PinTimeout = 15 * time.Minute }, other)
}

// ridden starts a server with a run on the thread "t", which has charged and is with revision 1. When
// it is told to leave, the server dies, or shuts down.
func ridden(t *testing.T, j *looptest.Notebook, handed bool) (shared *memstore.Store, leave func()) {
	t.Helper()
	shared = memstore.New()
	owner := &looptest.Mortal{Store: shared}
	e := looptest.Start(t, owner, nil, revised("1", j, make(chan struct{})))
	if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	j.Take()
	return shared, func() {
		if handed {
			stopAtOnce(t, e)
		} else {
			owner.Dead.Store(true)
		}
	}
}

// TestLeftToTheAgent: a server without the agent of a run that has lost its owner leaves it to one
// that has it, whether the owner has died or has handed it over, and whatever is asked of the server
// meanwhile. One that does not recover does the same.
func TestLeftToTheAgent(t *testing.T) {
	for _, off := range []bool{false, true} {
		for _, handed := range []bool{false, true} {
			t.Run(fmt.Sprintf("recover=off %t, handed over %t", off, handed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j := &looptest.Notebook{}
					shared, leave := ridden(t, j, handed)
					var quick *looptest.Engine
					if off {
						quick = looptest.Start(t, shared, func(c *looptest.Config) { c.Recover = false },
							revised("1", j, nil))
					} else {
						quick = lacking(t, shared, j)
					}
					slow := looptest.Start(t, &late{shared, shared}, nil, revised("1", j, nil))
					time.Sleep(4 * time.Second) // they may judge the silence of others now
					leave()
					time.Sleep(3010 * time.Millisecond) // the quick one has looked
					if _, err := quick.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{},
						agui.DialectV1); err != nil {
						t.Errorf("attaching: %v", err)
					}
					_, err := quick.Owner.Post(t.Context(), looptest.Alice, "",
						looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
					if err != nil && looptest.Code(err) != codes.AgentNotFound {
						t.Errorf("posting: %v", err)
					}
					time.Sleep(10 * time.Second)
					if got := info(t, slow); got.Status != threads.StatusIdle || got.Code != "" {
						t.Errorf("the thread is %+v", got)
					}
					if did := j.Take(); !slices.Contains(did, "asked 1") {
						t.Errorf("the servers did %q", did)
					}
					if shown := replayed(t, slow, "r1"); strings.Contains(shown, "holdfast.waiting") {
						t.Errorf("the run is said to wait:\n%s", shown)
					}
				})
			})
		}
	}
}

// late is a store that tells its server of departures late, so that others come first.
type late struct {
	store.Store
	store.Roster
}

func (l *late) OnDeparture(process string, f func(store.Departure)) func() {
	return l.Store.OnDeparture(process, func(d store.Departure) { time.AfterFunc(time.Second, func() { f(d) }) })
}

// Owned makes it look for them late, too.
func (l *late) Owned(ctx context.Context) ([]store.OwnedThread, error) {
	time.Sleep(time.Second)
	return l.Store.Owned(ctx)
}

// uncommitted is a store that takes no commits of its server while it is closed.
type uncommitted struct {
	store.Store
	store.Roster
	closed atomic.Bool
}

func (u *uncommitted) Commit(ctx context.Context, c *store.Commit) error {
	if u.closed.Load() {
		return looptest.ErrUnreachable
	}
	return u.Store.Commit(ctx, c)
}

// TestGivenUpByOneThatDoesNotRecover: a server that lives, has given a run up because it could not
// commit, and does not recover, hands the run over to one that does, which would otherwise take
// the run for one that has an owner.
func TestGivenUpByOneThatDoesNotRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, gate := &looptest.Notebook{}, make(chan struct{})
		shared := memstore.New()
		own := &uncommitted{Store: shared, Roster: shared}
		off := looptest.Start(t, own, func(c *looptest.Config) {
			c.Recover, c.StoreTimeout = false, 5*time.Second
		}, revised("1", j, gate))
		other := looptest.Start(t, shared, nil, revised("1", j, nil))
		if _, err := off.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		own.closed.Store(true)
		close(gate)
		time.Sleep(10 * time.Second)
		own.closed.Store(false)
		time.Sleep(10 * time.Second)
		if got := info(t, other); got.Status != threads.StatusIdle || got.Code != "" {
			t.Errorf("the thread is %+v", got)
		}
	})
}

// endless is a store that cannot store the end of a run.
type endless struct{ store.Store }

func (e *endless) Commit(ctx context.Context, c *store.Commit) error {
	for _, data := range c.Records {
		if agui.TypeOf(data) == agui.TypeRunFinished {
			return looptest.ErrUnreachable
		}
	}
	return e.Store.Commit(ctx, c)
}

// TestLastCommitFails: the log says why a run was left whose end could not be stored, also if it
// was cancelled.
func TestLastCommitFails(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			gate := make(chan struct{})
			e := looptest.Start(t, &endless{memstore.New()}, func(c *looptest.Config) {
				c.Recover, c.StoreTimeout, c.Log = false, 5*time.Second, slog.New(slog.NewTextHandler(&log, nil))
			}, revised("1", &looptest.Notebook{}, gate))
			looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
			synctest.Wait()
			if cancelled {
				looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
			} else {
				close(gate)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			line := `msg="run left to be recovered" thread=t run=r1 reason=.*` + looptest.ErrUnreachable.Error()
			if !regexp.MustCompile(line).Match(log.Bytes()) {
				t.Errorf("cancelled %t: no line like %s in\n%s", cancelled, line, log.String())
			}
		})
	}
}

// TestOnlyOneRecovers: where nobody else recovers, a server that does not ends a run at once.
func TestOnlyOneRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, leave := ridden(t, j, false)
		off := func(c *looptest.Config) { c.Recover = false }
		e := looptest.Start(t, shared, off, revised("1", j, nil))
		looptest.Start(t, shared, off, revised("1", j, nil))
		leave()
		time.Sleep(4 * time.Second)
		if got := info(t, e); got.Code != codes.CutOff {
			t.Errorf("the thread is %+v", got)
		}
	})
}

// TestNobodyHasTheAgent: a run whose agent no living server has waits after a lease, goes on when
// one gets it by a reload, and the others are told of that.
func TestNobodyHasTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, leave := ridden(t, j, false)
		e := lacking(t, shared, j)
		reloaded := lacking(t, shared, j)
		leave()
		time.Sleep(10 * time.Second)
		if got := info(t, e); got.Waiting == nil || got.Waiting.Revision != "1" {
			t.Errorf("the thread is %+v", got)
		}
		said := looptest.Must(shared.Described(t.Context()))(t)
		agents := looptest.Must(reloaded.Owner.NewAgents([]holdfast.Agent{revised("2", j, nil)}, nil, nil))(t)
		reloaded.Owner.Use(agents)
		time.Sleep(10 * time.Millisecond)
		if again := looptest.Must(shared.Described(t.Context()))(t); changed(said, again) != 1 {
			t.Errorf("the servers say %q, and before the reload %q", again, said)
		}
		time.Sleep(time.Second)
		if got := info(t, e); got.Status != threads.StatusIdle || got.Code != "" {
			t.Errorf("the thread is %+v", got)
		}
	})
}

// changed counts the processes that say something else.
func changed(before, after map[string][]byte) (n int) {
	for process, about := range after {
		if string(before[process]) != string(about) {
			n++
		}
	}
	return n
}

// TestSilentServerHasTheAgent: a living server that says nothing, because it is of an earlier build,
// counts as one that has every agent.
func TestSilentServerHasTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &looptest.Notebook{}
		shared, leave := ridden(t, j, false)
		e := lacking(t, shared, j)
		var silent atomic.Bool
		silent.Store(true)
		go func() {
			for silent.Load() {
				_ = shared.Announce(t.Context(), "earlier", 3*time.Second)
				time.Sleep(time.Second)
			}
		}()
		leave()
		time.Sleep(time.Minute)
		if got := info(t, e); got.Status != threads.StatusRunning || got.Waiting != nil {
			t.Errorf("the thread is %+v", got)
		}
		silent.Store(false)
		time.Sleep(15 * time.Second)
		if got := info(t, e); got.Waiting == nil {
			t.Errorf("nobody is left, and the thread is %+v", got)
		}
		time.Sleep(15 * time.Minute)
		if got := info(t, e); got.Code != codes.AgentNotFound {
			t.Errorf("the thread is %+v", got)
		}
	})
}
