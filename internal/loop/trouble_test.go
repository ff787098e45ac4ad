package loop_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/threads"
)

// talker speaks for a second, calls a tool, and speaks again.
func talker(started *atomic.Int32) holdfast.Agent {
	var words []holdfast.Delta
	for range 100 {
		words = append(words, holdfast.Delta{Text: "word "})
	}
	call := holdfast.Delta{Call: &holdfast.CallDelta{Name: "act", Arguments: "{}"}}
	act := looptest.Tool("act", holdfast.EffectIdempotent, func(context.Context) (string, error) {
		started.Add(1)
		return "acted", nil
	})
	return holdfast.Agent{Name: "a", Tools: []holdfast.Tool{act},
		Model: looptest.Slowly(append(slices.Clone(words), call, holdfast.Delta{Finish: holdfast.FinishToolCalls}),
			append(slices.Clone(words), holdfast.Delta{Finish: holdfast.FinishStop}))}
}

// TestStoreFails: while the store does not answer, nothing is shown and no tool starts; when
// it is back, the run continues and says so in its log.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		var log bytes.Buffer
		store := &looptest.Mortal{Store: memstore.New()}
		e := looptest.Start(t, store, func(c *looptest.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) },
			talker(&started))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		var shown atomic.Int32
		done := make(chan []agui.Event, 1)
		go func() {
			var events []agui.Event
			for batch, err := range reply.Whole() {
				if err != nil {
					t.Error(err)
				}
				for _, f := range batch {
					ev, _ := agui.DecodeEvent(f.Data)
					events = append(events, ev)
				}
				shown.Add(int32(len(batch)))
			}
			done <- events
		}()
		time.Sleep(500 * time.Millisecond)
		store.Dead.Store(true)
		synctest.Wait()
		had := shown.Load()
		time.Sleep(10 * time.Second)
		if n := shown.Load(); n != had || started.Load() != 0 {
			t.Errorf("while the store was away %d frames were shown and %d tools started", n-had, started.Load())
		}
		store.Dead.Store(false)
		events := <-done
		looptest.Succeeded(t, events)
		if err := agui.Verify(slices.Values(events)); err != nil {
			t.Error(err)
		}
		var back []agui.Custom
		text := ""
		for _, ev := range events {
			switch ev := ev.(type) {
			case agui.Custom:
				back = append(back, ev)
			case agui.TextMessageContent:
				text += ev.Delta
			}
		}
		if len(back) != 1 || back[0].Name != "holdfast.store_recovered" ||
			!strings.Contains(string(back[0].Value), `"outageMs":1`) {
			t.Errorf("the stream says of the outage: %+v", back)
		}
		if strings.Count(text, "word ") != 200 || started.Load() != 1 {
			t.Errorf("%d words, %d tools", strings.Count(text, "word "), started.Load())
		}
		synctest.Wait() // what it logs, it has logged
		for _, want := range []string{"level=WARN msg=\"the store is back\"", "thread=t", "iteration=0", "outage=1"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, log.String())
			}
		}
	})
}

// TestStoreFailsAtTheEnd: the run says that the store was away, too, if its model finished
// meanwhile and nothing but the end is left to store.
func TestStoreFailsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &looptest.Mortal{Store: memstore.New()}
		model := looptest.Slowly([]holdfast.Delta{{Text: "dul"}, {Text: "ci"}, {Text: "mer"},
			{Finish: holdfast.FinishStop}})
		e := looptest.Start(t, store, nil, holdfast.Agent{Name: "a", Model: model})
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Millisecond) // after the first delta
		store.Dead.Store(true)
		time.Sleep(10 * time.Second)
		store.Dead.Store(false)
		events := looptest.Collect(t, reply, nil)
		looptest.Succeeded(t, events)
		said, ok := events[len(events)-2].(agui.Custom)
		if !ok || said.Name != "holdfast.store_recovered" || !strings.Contains(string(said.Value), `"outageMs":10`) {
			t.Errorf("before the end the stream says:\n%s", looptest.Show(events))
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:dulcimer")
		sound(t, store, "t")
	})
}

// TestStopOnStoreFailure: by choice the run is given up at once, and taken over later.
func TestStopOnStoreFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		store := &looptest.Mortal{Store: memstore.New()}
		e := looptest.Start(t, store, func(c *looptest.Config) { c.StopOnStoreFailure = true }, talker(&started))
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		store.Dead.Store(true)
		time.Sleep(100 * time.Millisecond)
		if n := e.Owner.Running(); n != 0 {
			t.Errorf("%d runs go on", n)
		}
		other := looptest.Start(t, store.Store, nil, talker(&started))
		time.Sleep(20 * time.Second)
		looptest.Succeeded(t, looptest.Resumed(t, other, "t", "r2"))
		if info := looptest.Must(other.Keeper.Thread(t.Context(), looptest.Alice,
			"t"))(t); info.Status != threads.StatusIdle || started.Load() != 1 {
			t.Errorf("the thread is %+v, %d tools started", info, started.Load())
		}
	})
}
