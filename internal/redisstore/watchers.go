package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// Watchers in this process are woken directly for its own commits, and by Pub/Sub for those of other
// processes. Publishing every commit would cost more than most commits, so a thread publishes only while
// somebody asks for it. In a cluster it does so on the channel of its shard (shards.go), and on the
// ordinary one, which reaches everybody, if nobody hears that, as while the slot moves, or if a process
// of the version before may be the one that publishes (wire.go). So watchers listen to both.

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
	// shards are nil outside of a cluster, and in one whose shards have no channels. elders are of any
	// cluster.
	shards *shards
	elders *elders
	waited func(ctx context.Context) // Options.Waited
	// everywhere means that threads are asked to publish on their ordinary channels; only ask uses it.
	everywhere bool

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
func (w *watchers) start(shards *shards) {
	w.asked = map[string]time.Time{}
	w.changed, w.moved = make(chan struct{}, 1), make(chan struct{}, 1)
	if w.shards, w.everywhere = shards, true; shards != nil {
		shards.heard, shards.again = w.heard, w.change
	}
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
	if w.shards != nil {
		w.shards.stop()
	}
	w.running.Wait()
}

// announced has ask subscribe to what is posted to the threads of the process.
func (w *watchers) announced(process string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own = w.keys.ownInbox(process)
	w.change()
}

// ownChannel returns that channel; "" before the process is announced.
func (w *watchers) ownChannel() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own
}

// listenToOwn subscribes to that channel, and reports whether it has.
func (w *watchers) listenToOwn(ctx context.Context) bool {
	own := w.ownChannel()
	return own != "" && w.pubsub.Subscribe(ctx, own) == nil
}

// channels are those that everybody listens to, and the process's own.
func (w *watchers) channels() []string {
	all := []string{w.keys.inboxChannel(), w.keys.peersChannel()}
	if own := w.ownChannel(); own != "" {
		all = append(all, own)
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
	for ticks := false; ; ticks = false {
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
			w.move(ctx)
		case <-w.changed:
		case <-tick.C:
			ticks = true
		}
		if w.waited != nil {
			w.waited(ctx)
		}
		own = own || w.listenToOwn(ctx)
		if w.shards != nil {
			w.atShards(ctx)
		}
		begin, end := w.due(w.clock.Stamp(), ticks)
		for _, tag := range begin {
			w.askFor(ctx, tag)
		}
		for _, tag := range end {
			// If this fails, some wake-ups are spurious, which does no harm.
			_ = w.pubsub.Unsubscribe(ctx, w.keys.commitsChannel(tag))
			if w.shards != nil {
				w.shards.unsubscribe(ctx, w.keys.commitsChannel(tag))
			}
		}
	}
}

// atShards subscribes to what is lost, and to the process's own channel where that is by now, and decides
// how threads are asked. If they are to publish everywhere and were not before, all are asked again.
func (w *watchers) atShards(ctx context.Context) {
	if own := w.ownChannel(); own != "" {
		_ = w.shards.subscribe(ctx, own) // if this fails, posts go to all processes until the next tick
	}
	for _, channel := range w.shards.lost() {
		// If this fails, the channel stays lost until the next tick.
		_ = w.shards.subscribe(ctx, channel)
	}
	if len(w.Threads()) == 0 {
		return
	}
	before := w.everywhere
	w.everywhere = w.elders.look(ctx) || w.shards.refuses()
	if w.everywhere && !before {
		w.mu.Lock()
		defer w.mu.Unlock()
		for tag := range w.asked {
			w.asked[tag] = time.Time{}
		}
	}
}

// due returns the tags of the threads to ask, for the first time or again, and at a tick of those
// that nobody waits for anymore: somebody who waits again at once finds them asked.
func (w *watchers) due(now clock.Stamp, ticks bool) (begin, end []string) {
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
		if ticks && !waiting[tag] {
			delete(w.asked, tag)
			end = append(end, tag)
		}
	}
	slices.Sort(begin)
	slices.Sort(end)
	return begin, end
}

// askFor subscribes, then asks the thread to publish, then wakes: a reader that reads after
// that misses nothing.
func (w *watchers) askFor(ctx context.Context, tag string) {
	w.mu.Lock()
	_, subscribed := w.asked[tag]
	w.asked[tag] = time.Time{}
	w.mu.Unlock()
	channel, field := w.keys.commitsChannel(tag), fieldWatched
	if !subscribed && w.pubsub.Subscribe(ctx, channel) != nil {
		w.mu.Lock()
		delete(w.asked, tag)
		w.mu.Unlock()
		return
	}
	if w.shards != nil && w.shards.subscribe(ctx, channel) == nil && !w.everywhere {
		field = fieldWatchedAtShard
	}
	until := w.clock.Stamp().Add(watchFor)
	n, err := w.scripts.run(ctx, w.scripts.watch, []string{w.keys.thread(tag)}, until.UnixMilli(), field)
	if err != nil || n == 0 {
		return
	}
	w.mu.Lock()
	w.asked[tag] = until.Time()
	w.mu.Unlock()
	w.heard(channel, "")
}

// post says in a cluster that something was posted to a thread of a process, or says it to all processes if
// that one may not listen to its own channel. Only shards count all listeners of a channel.
func (w *watchers) post(ctx context.Context, process, tag string) error {
	channel := w.keys.inboxChannel()
	switch own := w.keys.ownInbox(process); {
	case process == "":
	case w.shards != nil:
		if n, err := w.client.SPublish(ctx, own, tag).Result(); err == nil && n > 0 {
			return nil
		}
	case !w.elders.look(ctx):
		channel = own
	}
	return w.client.Publish(ctx, channel, tag).Err()
}

// inCluster returns 1 if the process looks at what threads are asked of their shards, else 0.
func (w *watchers) inCluster() int {
	if isCluster(w.client) {
		return 1
	}
	return 0
}
