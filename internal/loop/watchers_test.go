package loop_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// readers is a store that counts how often the log is read.
type readers struct {
	store.Store
	reads atomic.Int64
	away  atomic.Bool                   // the log cannot be read
	slow  atomic.Pointer[chan struct{}] // reads wait until it is closed
}

func (c *readers) Records(
	ctx context.Context, key store.ThreadKey, after store.Cursor, limit int,
) ([]store.Record, error) {
	c.reads.Add(1)
	if slow := c.slow.Load(); slow != nil {
		<-*slow
	}
	if c.away.Load() {
		return nil, looptest.ErrUnreachable
	}
	return c.Store.Records(ctx, key, after, limit)
}

// stepped is an agent that says one word for each step.
func stepped(step <-chan struct{}) holdfast.Agent {
	return holdfast.Agent{
		Name: "a",
		Model: holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				for n := 0; ; n++ {
					select {
					case _, more := <-step:
						if !more {
							yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
							return
						}
					case <-ctx.Done():
						yield(holdfast.Delta{}, ctx.Err())
						return
					}
					if !yield(holdfast.Delta{Text: fmt.Sprintf("word%d ", n)}, nil) {
						return
					}
				}
			}
		}),
	}
}

// crowd is watchers of one run.
type crowd struct {
	wg   sync.WaitGroup
	mu   sync.Mutex
	seen [][]agui.Frame
	errs []error
}

// add lets one more watch; begun is called before it reads.
func (c *crowd) add(t *testing.T, reply *agui.Reply, err error, hold <-chan struct{}) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	c.wg.Go(func() {
		var frames []agui.Frame
		var failed error
		for batch, err := range reply.Whole() {
			frames, failed = append(frames, batch...), err
			if hold != nil {
				<-hold
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen, c.errs = append(c.seen, frames), append(c.errs, failed)
	})
}

// records returns what has an id.
func records(frames []agui.Frame) (out []string) {
	for _, f := range frames {
		if f.ID != "" {
			out = append(out, f.ID+" "+string(f.Data))
		}
	}
	return out
}

// TestManyWatchersAreOneReader: a thousand watchers of a run that lives elsewhere cost as
// many reads of the log as one, from whatever cursor they join. One that does not read holds
// nobody up, and gets what it has missed. Everybody sees the same records.
func TestManyWatchersAreOneReader(t *testing.T) {
	const words = 20
	reads := map[int]int64{}
	for _, watchers := range []int{1, 1000} {
		synctest.Test(t, func(t *testing.T) {
			shared, step := memstore.New(), make(chan struct{})
			counted := &readers{Store: shared}
			owner := looptest.Start(t, shared, nil, stepped(step))
			other := looptest.Start(t, counted, func(c *looptest.Config) { c.TailBytes = 300 }, stepped(nil))
			var first, all crowd
			reply, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r", looptest.UserSays("u", "go")))
			first.add(t, reply, err, nil)
			say := func() { synctest.Wait(); step <- struct{}{}; synctest.Wait() }
			say()
			for range watchers {
				reply, err := other.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectV1)
				all.add(t, reply, err, nil)
			}
			synctest.Wait()
			counted.reads.Store(0)
			for range words {
				say()
			}
			reads[watchers] = counted.reads.Load()

			// Somebody who joins with a cursor that the reader has does not read the log, beyond the
			// check of the cursor; somebody who is further back reads what is missing.
			head, err := shared.Head(t.Context(), looptest.KeyOf("t"))
			if err != nil {
				t.Fatal(err)
			}
			log, err := shared.Records(t.Context(), looptest.KeyOf("t"), store.Cursor{}, 1000)
			if err != nil || uint64(len(log)) != head.Next-1 {
				t.Fatalf("%d records, %v", len(log), err)
			}
			var joined crowd
			for _, c := range []struct{ back, reads int }{{1, 1}, {2, 1}, {words, 2}} {
				counted.reads.Store(0)
				reply, err := other.Owner.Events(t.Context(), looptest.Alice, "t", "r", log[len(log)-1-c.back].Cursor,
					agui.DialectV1)
				joined.add(t, reply, err, nil)
				synctest.Wait()
				if got := counted.reads.Load(); got != int64(c.reads) {
					t.Errorf("joining %d records back takes %d reads, want %d", c.back, got, c.reads)
				}
			}
			hold := make(chan struct{})
			reply, err = other.Owner.Attach(t.Context(), looptest.Alice, "t", agui.DialectV1)
			all.add(t, reply, err, hold)
			for range words {
				say()
			}
			close(step)
			first.wg.Wait()
			synctest.Wait()
			if len(all.seen) != watchers {
				t.Errorf("%d of %d watchers have come to the end while one does not read", len(all.seen), watchers)
			}
			close(hold)
			all.wg.Wait()
			joined.wg.Wait()
			want := records(first.seen[0])
			for n, frames := range slices.Concat(all.seen, joined.seen) {
				if got := records(frames); len(got) < words || !slices.Equal(got, want[len(want)-len(got):]) {
					t.Fatalf("watcher %d has seen %d records, which are not the end of the %d in the log", n, len(got),
						len(want))
				}
			}
		})
	}
	if reads[1] != words || reads[1000] != reads[1] {
		t.Errorf("%d words cost %d reads for one watcher and %d for 1,000", words, reads[1], reads[1000])
	}
}

// TestWatchersOfAMovingRun: watchers at the server that takes a run over, and at a third one,
// see every record once while the run moves. Then only the third reads the log.
func TestWatchersOfAMovingRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, step := memstore.New(), make(chan struct{})
		mortal := &looptest.Mortal{Store: shared}
		owner := looptest.Start(t, mortal, nil, stepped(step))
		var seen crowd
		reply, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r", looptest.UserSays("u", "go")))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		step <- struct{}{}
		synctest.Wait()
		others := map[*looptest.Engine]*readers{}
		for range 2 {
			counted := &readers{Store: shared}
			others[looptest.Start(t, counted, nil, stepped(step))] = counted
		}
		for range 10 {
			for e := range others {
				reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r", store.Cursor{}, agui.DialectV1)
				seen.add(t, reply, err, nil)
			}
		}
		synctest.Wait()
		mortal.Dead.Store(true)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		for _, counted := range others {
			counted.reads.Store(0)
		}
		const words = 5
		for range words {
			step <- struct{}{}
			synctest.Wait()
		}
		for e, counted := range others {
			if got := counted.reads.Load(); got > words || (got == 0) != (e.Owner.Running() == 1) {
				t.Errorf("10 watchers at a server that has %d runs read the log %d times for %d words",
					e.Owner.Running(), got, words)
			}
		}
		close(step)
		seen.wg.Wait()
		log, err := shared.Records(t.Context(), looptest.KeyOf("t"), store.Cursor{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for n, frames := range seen.seen {
			if got := records(frames); len(got) != len(log) || seen.errs[n] != nil {
				t.Errorf("watcher %d has seen %d of %d records: %v", n, len(got), len(log), seen.errs[n])
			}
			looptest.Succeeded(t, eventsOf(t, frames))
		}
		_ = reply // of a server that is dead
	})
}

// TestStoreAwayFromWatchers: a store that cannot be read ends the streams of all who watch
// through it, after one read, and they can come back.
func TestStoreAwayFromWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, step := memstore.New(), make(chan struct{})
		counted := &readers{Store: shared}
		owner := looptest.Start(t, shared, nil, stepped(step))
		other := looptest.Start(t, counted, nil, stepped(nil))
		var first, cut, again crowd
		reply, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r", looptest.UserSays("u", "go")))
		first.add(t, reply, err, nil)
		synctest.Wait()
		const watchers = 100
		for range watchers {
			reply, err := other.Owner.Events(t.Context(), looptest.Alice, "t", "r", store.Cursor{}, agui.DialectV1)
			cut.add(t, reply, err, nil)
		}
		synctest.Wait()
		counted.reads.Store(0)
		counted.away.Store(true)
		step <- struct{}{}
		cut.wg.Wait()
		if got := counted.reads.Load(); got != 1 {
			t.Errorf("%d reads failed", got)
		}
		for _, err := range cut.errs {
			if looptest.Code(err) != "store_unavailable" {
				t.Errorf("a stream ended with %v", err)
			}
		}
		counted.away.Store(false)
		for _, frames := range cut.seen {
			at, err := store.ParseCursor(frames[len(frames)-1].ID)
			if err != nil {
				t.Fatal(err)
			}
			reply, err := other.Owner.Events(t.Context(), looptest.Alice, "t", "r", at, agui.DialectV1)
			again.add(t, reply, err, nil)
		}
		close(step)
		first.wg.Wait()
		again.wg.Wait()
		want := records(first.seen[0])
		for n := range again.seen {
			if got := slices.Concat(records(cut.seen[0]), records(again.seen[n])); !slices.Equal(got, want) {
				t.Fatalf("%d records were seen of %d", len(got), len(want))
			}
		}
	})
}

// TestArchivedUnderWatchers: the run ends, and its log is archived, before the reader at
// another server has read on. Everybody who watches there gets the rest from the archive.
func TestArchivedUnderWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, step := memstore.New(), make(chan struct{})
		late := &readers{Store: shared}
		owner := looptest.Start(t, shared, nil, stepped(step))
		other := looptest.Start(t, late, nil, stepped(nil))
		var first, seen crowd
		reply, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r", looptest.UserSays("u", "go")))
		first.add(t, reply, err, nil)
		synctest.Wait()
		step <- struct{}{}
		synctest.Wait()
		const watchers = 10
		for range watchers {
			reply, err := other.Owner.Events(t.Context(), looptest.Alice, "t", "r", store.Cursor{}, agui.DialectV1)
			seen.add(t, reply, err, nil)
		}
		synctest.Wait()
		wait := make(chan struct{})
		late.slow.Store(&wait)
		for range 3 {
			step <- struct{}{}
			synctest.Wait()
		}
		close(step)
		first.wg.Wait()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if log, err := shared.Records(t.Context(), looptest.KeyOf("t"), store.Cursor{}, 1000); err != nil ||
			len(log) > 0 {
			t.Fatalf("%d records are not archived, %v", len(log), err)
		}
		close(wait)
		seen.wg.Wait()
		want := looptest.Reduce(eventsOf(t, first.seen[0]))
		for n, frames := range seen.seen {
			if got := looptest.Reduce(eventsOf(t, frames)); seen.errs[n] != nil || !slices.Equal(got, want) {
				t.Errorf("watcher %d has seen %q, want %q: %v", n, got, want, seen.errs[n])
			}
		}
	})
}

// eventsOf decodes frames.
func eventsOf(t *testing.T, frames []agui.Frame) (events []agui.Event) {
	t.Helper()
	for _, f := range frames {
		ev, err := agui.DecodeEvent(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	return events
}
