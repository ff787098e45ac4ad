package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/redis/go-redis/v9"
)

const (
	// watchFor is how long a thread is asked to tell its commits, and watchTick
	// how often that is looked after.
	watchFor  = 5 * time.Minute
	watchTick = time.Second
)

// watched is what somebody waits for.
type watched struct {
	tag   string
	topic holdfast.Topic
}

// watchers wakes those who wait in this process. What this process commits
// wakes them at once; what others commit comes by Pub/Sub, on one connection for
// all. A thread tells its commits only while its head says that somebody
// elsewhere wants to know.
type watchers struct {
	keys    keys
	mu      sync.Mutex
	waiting map[watched]map[chan struct{}]bool
	asked   map[string]time.Time // until when each thread of TopicRecords tells
	changed chan struct{}        // there may be something to ask or to leave
	pubsub  *redis.PubSub
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// start begins to listen; the caller must call stop.
func (w *watchers) start(s *Store) {
	w.keys = s.keys
	w.waiting = map[watched]map[chan struct{}]bool{}
	w.asked = map[string]time.Time{}
	w.changed = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.pubsub = s.client.Subscribe(ctx, w.keys.inboxChannel())
	w.running.Go(func() { w.listen(w.pubsub.ChannelWithSubscriptions()) })
	w.running.Go(func() { w.ask(ctx, s) })
}

func (w *watchers) stop() {
	w.cancel()
	// Closing it ends the channel that listen reads; go-redis has no other error
	// for it than that it is closed.
	_ = w.pubsub.Close()
	w.running.Wait()
}

// Watch implements [holdfast.Notifier]. The channel holds one wake-up, so that
// none is lost while its reader is busy.
func (s *Store) Watch(key holdfast.ThreadKey, topic holdfast.Topic) (<-chan struct{}, func()) {
	w := &s.watchers
	k := watched{tag(key), topic}
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	if w.waiting[k] == nil {
		w.waiting[k] = map[chan struct{}]bool{}
	}
	w.waiting[k][ch] = true
	w.mu.Unlock()
	w.change(topic)
	return ch, func() {
		w.mu.Lock()
		delete(w.waiting[k], ch)
		if len(w.waiting[k]) == 0 {
			delete(w.waiting, k)
		}
		w.mu.Unlock()
		w.change(topic)
	}
}

func (w *watchers) change(topic holdfast.Topic) {
	if topic != holdfast.TopicRecords {
		return // every process listens to all posts
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *watchers) wake(k watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.waiting[k] {
		select {
		case ch <- struct{}{}:
		default: // a wake-up is waiting there already
		}
	}
}

// listen passes on what comes. A confirmed subscription also wakes, after a
// reconnection too: what was committed before it has not been told.
func (w *watchers) listen(messages <-chan any) {
	for m := range messages {
		switch m := m.(type) {
		case *redis.Message:
			w.heard(m.Channel, m.Payload)
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				w.heard(m.Channel, "")
			}
		}
	}
}

// heard wakes those whom a message concerns. The inbox channel without a tag
// concerns all who wait for posts.
func (w *watchers) heard(channel, payload string) {
	if channel != w.keys.inboxChannel() {
		w.wake(watched{w.keys.tagOf(channel), holdfast.TopicRecords})
		return
	}
	if payload != "" {
		w.wake(watched{payload, holdfast.TopicInbox})
		return
	}
	w.mu.Lock()
	var all []watched
	for k := range w.waiting {
		if k.topic == holdfast.TopicInbox {
			all = append(all, k)
		}
	}
	w.mu.Unlock()
	for _, k := range all {
		w.wake(k)
	}
}

// ask keeps the subscriptions and the heads in step with those who wait. What
// fails is tried again at the next tick.
func (w *watchers) ask(ctx context.Context, s *Store) {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		case <-tick.C:
		}
		begin, end := w.due(s.now())
		for _, tag := range begin {
			w.askFor(ctx, s, tag)
		}
		for _, tag := range end {
			// Being told for nothing does no harm.
			_ = w.pubsub.Unsubscribe(ctx, w.keys.log(tag))
		}
	}
}

// due returns the threads to ask, for the first time or again, and those that
// nobody waits for any more.
func (w *watchers) due(now time.Time) (begin, end []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.waiting {
		if k.topic == holdfast.TopicRecords && w.asked[k.tag].Sub(now) < watchFor/2 {
			begin = append(begin, k.tag)
		}
	}
	for tag := range w.asked {
		if w.waiting[watched{tag, holdfast.TopicRecords}] == nil {
			delete(w.asked, tag)
			end = append(end, tag)
		}
	}
	return begin, end
}

// askFor subscribes, then makes the thread tell, then wakes: whoever reads
// after that misses nothing.
func (w *watchers) askFor(ctx context.Context, s *Store, tag string) {
	w.mu.Lock()
	_, subscribed := w.asked[tag]
	w.asked[tag] = time.Time{}
	w.mu.Unlock()
	if !subscribed && w.pubsub.Subscribe(ctx, s.keys.log(tag)) != nil {
		w.mu.Lock()
		delete(w.asked, tag)
		w.mu.Unlock()
		return
	}
	until := s.now().Add(watchFor)
	n, err := s.runScript(ctx, s.scripts.watch, []string{s.keys.thread(tag)}, until.UnixMilli())
	if err != nil || n == 0 {
		return
	}
	w.mu.Lock()
	w.asked[tag] = until
	w.mu.Unlock()
	w.wake(watched{tag, holdfast.TopicRecords})
}
