package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// Watchers in this process are woken directly for its own commits,
// and by Pub/Sub for those of other processes. Publishing every commit would cost more
// than most commits, so a thread publishes only while somebody asks for it.

const (
	// watchFor is how long a thread is asked to publish its commits, and watchTick how
	// often the requests are checked.
	watchFor  = 5 * time.Minute
	watchTick = time.Second
)

// watchers wakes those who wait in this process. Its subscriptions share one
// connection.
type watchers struct {
	storekit.Waiters
	client  redis.UniversalClient
	keys    keys
	scripts *scripts
	clock   *clock.Remote
	// news is given what is published on the channel of the peers, and joined is called once
	// that channel is heard.
	news   func(text string)
	joined func()

	mu      sync.Mutex
	own     string               // the channel of what is posted to this process's threads; "" before it is announced
	asked   map[string]time.Time // until when each watched thread publishes, by tag
	changed chan struct{}        // there may be something to subscribe to or to leave
	moved   chan struct{}        // the subscriptions are at the wrong Redis
	pubsub  *redis.PubSub        // changed by ask alone
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// start subscribes and starts the goroutines; the caller must call stop.
func (w *watchers) start() {
	w.asked = map[string]time.Time{}
	w.changed, w.moved = make(chan struct{}, 1), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.pubsub = w.client.Subscribe(ctx, w.channels()...)
	w.running.Go(func() { w.listen(w.pubsub.ChannelWithSubscriptions()) })
	w.running.Go(func() { w.ask(ctx) })
}

// stop ends the subscriptions and waits for the goroutines.
func (w *watchers) stop() {
	w.cancel()
	w.mu.Lock()
	// This ends the channel that listen reads. The only error is that it is closed.
	_ = w.pubsub.Close()
	w.mu.Unlock()
	w.running.Wait()
}

// announced has ask subscribe to what is posted to the threads of the process.
func (w *watchers) announced(process string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own = w.keys.ownInbox(process)
	w.change()
}

// listenToOwn subscribes to that channel, and reports whether it has.
func (w *watchers) listenToOwn(ctx context.Context) bool {
	w.mu.Lock()
	own := w.own
	w.mu.Unlock()
	return own != "" && w.pubsub.Subscribe(ctx, own) == nil
}

// channels are those that everybody listens to, and the process's own.
func (w *watchers) channels() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []string{w.keys.inboxChannel(), w.keys.peersChannel()}
	if w.own != "" {
		all = append(all, w.own)
	}
	return all
}

// follow has ask resubscribe, on another connection.
func (w *watchers) follow() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// move resubscribes to everything, on another connection.
func (w *watchers) move(ctx context.Context) {
	channels := w.channels()
	for tag := range w.asked {
		channels = append(channels, w.keys.commitsChannel(tag))
	}
	next := w.client.Subscribe(ctx, channels...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		_ = next.Close() // w is stopped
		return
	}
	// This ends what listens to it. The only error is that it is closed.
	_ = w.pubsub.Close()
	w.pubsub = next
	w.running.Go(func() { w.listen(next.ChannelWithSubscriptions()) })
}

// watch returns what [Store.Watch] does.
func (w *watchers) watch(key store.ThreadKey) (<-chan struct{}, func()) {
	ch, stop := w.Waiters.Watch(key)
	w.change()
	return ch, func() {
		stop()
		w.change()
	}
}

// change has ask look at who waits.
func (w *watchers) change() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// listen passes on what is published. A confirmed subscription also wakes, including
// those after a reconnection, because nothing was heard of earlier commits.
func (w *watchers) listen(messages <-chan any) {
	for m := range messages {
		switch m := m.(type) {
		case *redis.Message:
			if m.Channel == w.keys.peersChannel() {
				w.news(m.Payload)
				continue
			}
			w.heard(m.Channel, m.Payload)
		case *redis.Subscription:
			switch {
			case m.Kind != "subscribe":
			case m.Channel == w.keys.peersChannel():
				w.joined()
			default:
				w.heard(m.Channel, "")
			}
		}
	}
}

// heard wakes those whom a message concerns. On the inbox channel, a message without a
// tag concerns everybody.
func (w *watchers) heard(channel, payload string) {
	inbox := w.keys.isInbox(channel)
	if !inbox {
		payload = w.keys.tagOf(channel)
	}
	key, ok := parseTag(payload)
	switch {
	case inbox:
		w.Posted(key)
	case ok:
		w.Committed(key)
	}
}

// ask keeps the subscriptions and the threads in step with those who wait. A failed attempt is
// repeated at the next tick.
func (w *watchers) ask(ctx context.Context) {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	own := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
			w.move(ctx)
		case <-w.changed:
		case <-tick.C:
		}
		own = own || w.listenToOwn(ctx)
		begin, end := w.due(w.clock.Stamp())
		for _, tag := range begin {
			w.askFor(ctx, tag)
		}
		for _, tag := range end {
			// If this fails, some wake-ups are spurious, which does no harm.
			_ = w.pubsub.Unsubscribe(ctx, w.keys.commitsChannel(tag))
		}
	}
}

// due returns the tags of the threads to ask, for the first time or again, and of those
// that nobody waits for anymore.
func (w *watchers) due(now clock.Stamp) (begin, end []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := map[string]bool{}
	for _, k := range w.Threads() {
		tag := tag(k)
		waiting[tag] = true
		if now.Age(w.asked[tag]) > -watchFor/2 {
			begin = append(begin, tag)
		}
	}
	for tag := range w.asked {
		if !waiting[tag] {
			delete(w.asked, tag)
			end = append(end, tag)
		}
	}
	return begin, end
}

// askFor subscribes, then asks the thread to publish, then wakes: a reader that reads after
// that misses nothing.
func (w *watchers) askFor(ctx context.Context, tag string) {
	w.mu.Lock()
	_, subscribed := w.asked[tag]
	w.asked[tag] = time.Time{}
	w.mu.Unlock()
	if !subscribed && w.pubsub.Subscribe(ctx, w.keys.commitsChannel(tag)) != nil {
		w.mu.Lock()
		delete(w.asked, tag)
		w.mu.Unlock()
		return
	}
	until := w.clock.Stamp().Add(watchFor)
	n, err := w.scripts.run(ctx, w.scripts.watch, []string{w.keys.thread(tag)}, until.UnixMilli())
	if err != nil || n == 0 {
		return
	}
	w.mu.Lock()
	w.asked[tag] = until.Time()
	w.mu.Unlock()
	w.heard(w.keys.commitsChannel(tag), "")
}
