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
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// readsFormat has a process that reads data of a format live on the store.
func readsFormat(t *testing.T, s *memstore.Store, process string, format int) {
	t.Helper()
	err := s.Announce(t.Context(), process, time.Hour)
	if err == nil {
		_, err = s.AgreeFormat(t.Context(), process, store.FormatTerms{Reads: format})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func speaks() holdfast.Agent {
	return holdfast.Agent{Name: "speaks", Revision: "6f1e", Model: looptest.Say(holdfast.Delta{Text: "yes"})}
}

// TestFormatTooNew: a process that reads less than the others write does not start, and
// leaves no lease.
func TestFormatTooNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		readsFormat(t, shared, "next", thread.Format+1)
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
			!strings.Contains(err.Error(), fmt.Sprintf("write data of format %d into this store, and this version "+
				"reads up to %d: start a newer version", thread.Format+1, thread.Format)) {
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
		if err := shared.Announce(t.Context(), "next", time.Hour); err != nil {
			t.Fatal(err)
		}
		next := store.FormatTerms{Reads: thread.Format + 1, Wants: thread.Format + 1}
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
		if err := cut.Owner.Ready(t.Context()); !errors.Is(err, store.ErrVersionTooNew) {
			t.Errorf("it is ready: %v", err)
		}
		time.Sleep(10 * time.Second)
		for process, reads := range looptest.Must(shared.Formats(t.Context()))(t).Reads {
			if process != "next" {
				t.Errorf("%s, which reads %d, has a lease", process, reads)
			}
		}
	})
}
