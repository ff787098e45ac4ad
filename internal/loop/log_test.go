package loop_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// logOf reads the log of a run in pages, and returns its frames with each event in one piece.
func logOf(
	t *testing.T, e *looptest.Engine, id, run string, after store.Cursor, limit int,
) (frames []agui.Frame, ended bool) {
	t.Helper()
	for {
		page, err := owner.Log(t.Context(), e.Owner, looptest.Alice, id, run, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		n := len(frames)
		for batch, err := range (&agui.Reply{Frames: page.Frames}).Whole() {
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, batch...)
		}
		if len(frames)-n > limit {
			t.Fatalf("a page has %d records, not %d", len(frames)-n, limit)
		}
		if page.Next == "" {
			return frames, page.Ended
		}
		if last := frames[len(frames)-1].ID; page.Next != last || page.Ended {
			t.Fatalf("the page after %s begins at %s (ended: %v)", last, page.Next, page.Ended)
		}
		if after, err = store.ParseCursor(page.Next); err != nil {
			t.Fatal(err)
		}
	}
}

func sameFrames(a, b []agui.Frame) bool {
	return slices.EqualFunc(a, b, func(x, y agui.Frame) bool { return x.ID == y.ID && bytes.Equal(x.Data, y.Data) })
}

// TestLog: the log of a run has what its stream had, in pages of any size, and no record of
// another run; while the run is under way, what there is so far.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		long := looptest.Tool("long", holdfast.EffectIdempotent, func(context.Context) (string, error) {
			<-gate
			return strings.Repeat("x", 500), nil
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("long", "{}"), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{long},
		})
		first := make(chan []agui.Frame)
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		go func() {
			frames, _ := looptest.FramesOf(t, reply, err)
			first <- frames
		}()
		synctest.Wait()
		early, ended := logOf(t, e, "t", "r1", store.Cursor{}, 100)
		if len(early) == 0 || ended {
			t.Errorf("while it runs there are %d records (ended: %v)", len(early), ended)
		}
		close(gate)
		streamed := <-first
		looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "again")))
		for _, limit := range []int{1, 2, 3, len(streamed) - 1, len(streamed), 20_000} {
			got, ended := logOf(t, e, "t", "r1", store.Cursor{}, limit)
			if !ended || !sameFrames(got, streamed) || !sameFrames(got[:len(early)], early) {
				t.Errorf("in pages of %d (ended: %v):\n%v\nstreamed:\n%v", limit, ended, got, streamed)
			}
		}
		last, _ := store.ParseCursor(streamed[len(streamed)-1].ID)
		if got, ended := logOf(t, e, "t", "r1", last, 10); len(got) != 0 || !ended {
			t.Errorf("after the last record there are %d (ended: %v)", len(got), ended)
		}
		time.Sleep(2 * time.Minute) // until it is archived
		synctest.Wait()
		got, ended := logOf(t, e, "t", "r1", store.Cursor{}, 3)
		if !ended || len(got) == 0 || got[len(got)-1].ID != streamed[len(streamed)-1].ID ||
			!bytes.Contains(bytes.Join(dataOf(got), nil), []byte(strings.Repeat("x", 500))) {
			t.Errorf("archived (ended: %v): %v", ended, got)
		}
		later, _ := logOf(t, e, "t", "r2", store.Cursor{}, 1)
		beyond, _ := store.ParseCursor(later[0].ID)
		if got, ended := logOf(t, e, "t", "r1", beyond, 10); len(got) != 0 || !ended {
			t.Errorf("archived, after a record of the next run there are %d (ended: %v)", len(got), ended)
		}
	})
}

func dataOf(frames []agui.Frame) (data [][]byte) {
	for _, f := range frames {
		data = append(data, f.Data)
	}
	return data
}

// TestLogRefused: a client that asks for a log that is not there is told why.
func TestLogRefused(t *testing.T) {
	e, _ := looptest.Travelled(t)
	run := looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "", 0))(t)[0].ID
	fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t).Thread
	for what, ask := range map[string]struct {
		who         holdfast.Principal
		thread, run string
		after       store.Cursor
		code        string
	}{
		"another user": {holdfast.Principal{Tenant: "acme", User: "bob"}, "t", run, store.Cursor{},
			codes.NotFound},
		"no such thread":     {looptest.Alice, "t9", run, store.Cursor{}, codes.NotFound},
		"no such run":        {looptest.Alice, "t", "r9", store.Cursor{}, codes.NotFound},
		"the run of a fork":  {looptest.Alice, fork.ID, fork.Run, store.Cursor{}, codes.NotFound},
		"a cursor beyond it": {looptest.Alice, "t", run, store.Cursor{Number: 9999, Tag: "x"}, codes.InvalidCursor},
		"a made-up cursor":   {looptest.Alice, "t", run, store.Cursor{Number: 2, Tag: "x"}, codes.InvalidCursor},
	} {
		if _, err := owner.Log(t.Context(), e.Owner, ask.who, ask.thread, ask.run, ask.after,
			10); looptest.Code(err) != ask.code {
			t.Errorf("%s: %v, want %s", what, err, ask.code)
		}
	}
}
