package redisstore

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/redis/go-redis/v9"
)

// TestWatchersWhoComeBack: a thread stays asked until the next tick when nobody waits for it anymore, so that
// somebody who waits again at once need not ask. Threads are asked in one order.
func TestWatchersWhoComeBack(t *testing.T) {
	t.Parallel()
	w := &watchers{asked: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	now := clock.Wall()
	var stops []func()
	var want []string
	for _, id := range []string{"t1", "t2", "t3", "t4", "t5", "t6"} {
		_, stop := w.watch(aThread(id))
		stops, want = append(stops, stop), append(want, tag(aThread(id)))
	}
	begin, end := w.due(now, false)
	if !slices.Equal(begin, want) || len(end) > 0 {
		t.Fatalf("at first %q and %q, want %q and none", begin, end, want)
	}
	for _, tag := range begin {
		w.asked[tag] = now.Time().Add(watchFor)
	}
	for _, stop := range stops {
		stop()
	}
	if begin, end = w.due(now, false); len(begin)+len(end) > 0 {
		t.Errorf("before the tick %q and %q, want none", begin, end)
	}
	_, stop := w.watch(aThread("t1"))
	defer stop()
	if begin, end = w.due(now, true); len(begin) > 0 || !slices.Equal(end, want[1:]) {
		t.Errorf("at the tick %q and %q, want none and %q", begin, end, want[1:])
	}
}

// counting counts the commands of a client, by name.
type counting map[string]int

func (c counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c[cmds[0].Name()]++
		return next(ctx, cmds)
	}
}

// TestReminderOfItsRenewal: whether a renewal is one that reminds the others is not up to the next one, however
// soon that comes.
func TestReminderOfItsRenewal(t *testing.T) {
	t.Parallel()
	s := openAt(t, "redis://"+miniredis.RunT(t).Addr(), "hf:")
	for renewals, want := range map[int]int{2: 1, 1: 0} {
		seen := counting{}
		client := redis.NewClient(s.client.(*redis.Client).Options())
		client.AddHook(seen)
		p := newPeers(client, s.keys, s.watchers, s.roster, s.clock, nil)
		p.renewals = renewals
		p.followSoon(time.Second)
		p.renews(time.Second)
		p.running.Wait()
		p.stop()
		if seen["zcard"] != want {
			t.Errorf("after %d renewals it reminds %d times, want %d", renewals, seen["zcard"], want)
		}
		_ = client.Close()
	}
}
