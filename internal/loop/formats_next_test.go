//go:build nextformat

package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The step to a newer data format, with the invented one that comes after this version's: see
// package thread.

// wantsFormat has an engine ask for a data format.
func wantsFormat(format int) func(*looptest.Config) {
	return func(c *looptest.Config) { c.DataFormat = format }
}

// formatsOf returns the formats of the thread's state, its last checkpoint and its run.
func formatsOf(t *testing.T, s store.Store, id, run string) string {
	t.Helper()
	key := looptest.KeyOf(id)
	st := looptest.Must(thread.DecodeState(looptest.Must(s.Head(t.Context(), key))(t).State))(t)
	var rec thread.Run
	if err := thread.Decode(looptest.Must(s.Value(t.Context(), key, store.KindRun, run))(t), &rec); err != nil {
		t.Fatal(err)
	}
	cp := looptest.Must(thread.DecodeCheckpoint(looptest.Must(s.Values(t.Context(), key, store.KindCheckpoint, "",
		1))(t)[0].Data))(t)
	return fmt.Sprint(st.Format, cp.Format, cp.State.Format, rec.Format)
}

// allOf is what formatsOf returns if all of them have the same format.
func allOf(format int) string { return fmt.Sprint(format, format, format, format) }

// goes runs the thread's next run to its end.
func goes(t *testing.T, e *looptest.Engine, id, run string) {
	t.Helper()
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput(id, run, looptest.UserSays("u"+run, "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
}

// TestNextFormatStep: while a process of the version before lives, the format before is written,
// also by who asks for the newer one. Once the last of them has left, all processes learn
// that the newer one is written, and each thread gets it with its next run.
func TestNextFormatStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		readsFormat(t, shared, "before", thread.FormatBefore)
		first := looptest.Start(t, shared, nil, speaks())
		second := looptest.Start(t, shared, wantsFormat(thread.Format), speaks())
		goes(t, first, "a", "r1")
		goes(t, second, "b", "r1")
		for _, id := range []string{"a", "b"} {
			if got := formatsOf(t, shared, id, "r1"); got != allOf(thread.FormatBefore) {
				t.Errorf("while a process of the version before lives, %s is written as %s", id, got)
			}
		}
		if got := second.Owner.DataFormat().
			String(); !strings.Contains(got, "held back") ||
			!strings.Contains(got, fmt.Sprintf("before (reads %d)", thread.FormatBefore)) {
			t.Errorf("it is not said who holds it back: %s", got)
		}
		if got := first.Owner.DataFormat().String(); !strings.Contains(got,
			fmt.Sprint("--data-format=", thread.Format)) {
			t.Errorf("it is not said how to go on: %s", got)
		}
		if err := shared.Retire(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Second) // both have agreed with the others twice
		synctest.Wait()
		goes(t, first, "a", "r2")
		if got := formatsOf(t, shared, "a", "r2"); got != allOf(thread.Format) {
			t.Errorf("after the step, a is written as %s", got)
		}
		if got := formatsOf(t, shared, "b", "r1"); got != allOf(thread.FormatBefore) {
			t.Errorf("b, which did not run since, is now %s", got)
		}
		if got := first.Owner.DataFormat(); got.Write != thread.Format || len(got.Behind) > 0 {
			t.Errorf("after the step: %+v", got)
		}
	})
}

// TestNextFormatStays: who does not ask gets the format of the store, and a process that dies
// right after it asked has asked for all.
func TestNextFormatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		readsFormat(t, shared, "before", thread.FormatBefore)
		stays := looptest.Start(t, shared, nil, speaks())
		if err := shared.Retire(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := stays.Owner.DataFormat().Write; got != thread.FormatBefore {
			t.Errorf("nobody has asked, and format %d is written", got)
		}
		mortal := &looptest.Mortal{Store: shared}
		looptest.Start(t, mortal, wantsFormat(thread.Format), speaks())
		mortal.Dead.Store(true)
		time.Sleep(5 * time.Second)
		if got := stays.Owner.DataFormat().Write; got != thread.Format {
			t.Errorf("one has asked and died, and format %d is written", got)
		}
	})
}
