package loop_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/looptest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// wantsFormat has an engine ask for a data format.
func wantsFormat(format int) func(*looptest.Config) {
	return func(c *looptest.Config) { c.DataFormat = format }
}

// silentProcess has a process that says nothing of formats live on the store.
func silentProcess(t *testing.T, s *memstore.Store, process string) {
	t.Helper()
	if err := s.Announce(t.Context(), process, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// formatsOf returns the formats of the thread's state, its last checkpoint and its run, and
// the run's revision.
func formatsOf(t *testing.T, s store.Store, id, run string) string {
	t.Helper()
	key := looptest.KeyOf(id)
	st := looptest.Must(thread.DecodeState(looptest.Must(s.Head(t.Context(), key))(t).State))(t)
	var rec thread.Run
	if err := thread.Decode(looptest.Must(s.Value(t.Context(), key, store.KindRun, run))(t), &rec); err != nil {
		t.Fatal(err)
	}
	cp := looptest.Must(
		thread.DecodeCheckpoint(looptest.Must(s.Values(t.Context(), key, store.KindCheckpoint, "", 1))(t)[0].Data),
	)(
		t,
	)
	return strings.TrimSpace(fmt.Sprint(st.Format, cp.Format, cp.State.Format, rec.Format, " ", rec.Revision))
}

// goes runs the thread's next run to its end.
func goes(t *testing.T, e *looptest.Engine, id, run string) {
	t.Helper()
	reply, err := e.Post(t.Context(), looptest.Alice, "", looptest.RunInput(id, run, looptest.UserSays("u"+run, "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
}

func speaks() holdfast.Agent {
	return holdfast.Agent{Name: "speaks", Revision: "6f1e", Model: looptest.Say(holdfast.Delta{Text: "yes"})}
}

// TestFormatStep: while a process of the version before lives, the format before is written,
// also by who asks for the newer one. Once the last of them has left, all processes learn
// that the newer one is written, and each thread gets it with its next run.
func TestFormatStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		silentProcess(t, shared, "before")
		first := looptest.Start(t, shared, nil, speaks())
		second := looptest.Start(t, shared, wantsFormat(thread.Format), speaks())
		goes(t, first, "a", "r1")
		goes(t, second, "b", "r1")
		for _, id := range []string{"a", "b"} {
			if got := formatsOf(t, shared, id, "r1"); got != "8 8 8 8" {
				t.Errorf("while a process of the version before lives, %s is written as %s", id, got)
			}
		}
		if got := second.DataFormat().
			String(); !strings.Contains(got, "held back") ||
			!strings.Contains(got, "before (reads 8)") {
			t.Errorf("it is not said who holds it back: %s", got)
		}
		if got := first.DataFormat().String(); !strings.Contains(got, "--data-format=11") {
			t.Errorf("it is not said how to go on: %s", got)
		}
		if err := shared.Retire(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // both renew their leases twice
		synctest.Wait()
		goes(t, first, "a", "r2")
		if got := formatsOf(t, shared, "a", "r2"); got != "11 11 11 11 6f1e" {
			t.Errorf("after the step, a is written as %s", got)
		}
		if got := formatsOf(t, shared, "b", "r1"); got != "8 8 8 8" {
			t.Errorf("b, which did not run since, is now %s", got)
		}
		if got := first.DataFormat(); got.String() != "format 11" || got.Write != thread.Format || len(got.Behind) > 0 {
			t.Errorf("after the step: %+v", got)
		}
	})
}

// TestFormatStays: who does not ask gets the format of the store, and a process that dies
// right after it asked has asked for all.
func TestFormatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		silentProcess(t, shared, "before")
		stays := looptest.Start(t, shared, nil, speaks())
		if err := shared.Retire(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := stays.DataFormat().Write; got != thread.FormatBefore {
			t.Errorf("nobody has asked, and format %d is written", got)
		}
		mortal := &looptest.Mortal{Store: shared}
		looptest.Start(t, mortal, wantsFormat(thread.Format), speaks())
		mortal.Dead.Store(true)
		time.Sleep(5 * time.Second)
		if got := stays.DataFormat().Write; got != thread.Format {
			t.Errorf("one has asked and died, and format %d is written", got)
		}
	})
}

// TestFormatTooNew: a process that reads less than the others write does not start, and
// leaves no lease.
func TestFormatTooNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		silentProcess(t, shared, "next")
		next := store.FormatTerms{Reads: thread.Format + 1, Wants: thread.Format + 1, Silent: thread.Format}
		if _, err := shared.AgreeFormat(t.Context(), "next", next); err != nil {
			t.Fatal(err)
		}
		var own string
		e, err := looptest.New(looptest.Config{Config: loop.Config{
			Store: shared, Agents: []holdfast.Agent{speaks()}, MaxRuns: 1, Lease: time.Second, Now: clock.Wall,
			NewID: func(prefix string) string { own = prefix + "x"; return own },
		}})
		if err != nil {
			t.Fatal(err)
		}
		err = e.Start(t.Context())
		if !errors.Is(err, store.ErrVersionTooNew) ||
			!strings.Contains(
				err.Error(),
				"write data of format 12 into this store, and this version reads up to 11: start a newer version",
			) {
			t.Errorf("it starts with %v", err)
		}
		if l := looptest.Must(shared.Lease(t.Context(), own))(t); !l.Gone {
			t.Errorf("it has left the lease %+v", l)
		}
		_ = e.Shutdown(t.Context())
	})
}

// TestFormatTooNewLater: a process that was cut off from the store, and finds when it is
// back that a newer version does not count on it any more, gives way to it.
func TestFormatTooNewLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		mortal := &looptest.Mortal{Store: shared}
		cut := looptest.Start(t, mortal, nil, speaks())
		silentProcess(t, shared, "next")
		next := store.FormatTerms{Reads: thread.Format + 1, Wants: thread.Format + 1, Silent: thread.FormatBefore}
		raise := func() int { return looptest.Must(shared.AgreeFormat(t.Context(), "next", next))(t).Write }
		if got := raise(); got != thread.Format {
			t.Fatalf("format %d is written although a process reads only %d", got, thread.Format)
		}
		mortal.Dead.Store(true)
		time.Sleep(4 * time.Second)
		if got := raise(); got != thread.Format+1 {
			t.Fatalf("format %d is written although nobody needs it", got)
		}
		mortal.Dead.Store(false)
		time.Sleep(2 * time.Second)
		if err := cut.Ready(t.Context()); !errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("it is ready: %v", err)
		}
		time.Sleep(10 * time.Second)
		for process, reads := range looptest.Must(shared.Formats(t.Context(), thread.FormatBefore))(t).Reads {
			if process != "next" {
				t.Errorf("%s, which reads %d, has a lease", process, reads)
			}
		}
	})
}
