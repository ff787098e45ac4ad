// Package simulate runs several servers, their clients, models and tools, and the store
// between them, in one process and in virtual time, and chooses from a seed what happens next.
// The product's own code runs; the world around it is made here. After every step it is
// checked that what the server promises holds, and a seed that breaks a promise does so again,
// step by step. It is for tests: no server imports it.
package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

// World is everything that happens in one schedule. Its methods are called in a bubble of
// testing/synctest.
type World struct {
	plan    *plan
	base    store.Store // what has landed
	redis   *remote     // nil if the store is in memory
	all     []*server   // that have connections to it
	gate    gate
	agents  func(*server) []holdfast.Agent
	began   clock.Moment
	servers []*server
	ended   sync.WaitGroup // the goroutines of servers that were killed
	forks   []string       // the threads that were begun from others
	tasks   int            // how many requests there were that are no client's

	mu      sync.Mutex
	truth   truth
	watches []*watched
	notices []*notice
	serial  int
	facts   []string // seen since the last step
	broken  []Violation
	story   []string
	settled atomic.Bool  // no more faults
	untold  bool         // nobody wants the story
	changes atomic.Int64 // how often the store may have changed
	looked  int64        // the changes that look has seen
	heads   heads
}

// ids returns the threads that may be there.
func (w *World) ids() []string { return append(w.plan.ids(), w.forks...) }

// lacks reports whether there is no such thread.
func (w *World) lacks(id string) bool {
	_, err := w.base.Head(context.Background(), keyOf(id))
	return err != nil
}

// notice is something that the store tells a server. It is delivered when that is chosen.
type notice struct {
	name    string
	server  *server
	deliver func()
	lose    func() // nil if it cannot be lost
	serial  int
}

// watched is a server's watch over a thread.
type watched struct {
	server *server
	key    store.ThreadKey
	wake   chan struct{}
	due    bool
}

// rest waits until nothing moves any more unless something is chosen.
func (w *World) rest() {
	for {
		synctest.Wait()
		i := -1
		all := w.gate.sorted()
		if i = slices.IndexFunc(all, func(one *waiter) bool { return one.auto && !one.held() }); i < 0 {
			break
		}
		w.gate.let(all[i], goOn)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.facts)
	for _, f := range w.facts {
		w.say("          " + f)
	}
	w.facts = nil
}

// say adds a line to the story.
func (w *World) say(line string) {
	if !w.untold {
		w.story = append(w.story, line)
	}
}

// sayNow adds a line with the time to the story.
func (w *World) sayNow(line string) {
	if !w.untold {
		w.story = append(w.story, fmt.Sprintf("%9.4fs %s", w.began.Ran().Seconds(), line))
	}
}

// fact notes what was seen.
func (w *World) fact(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen(format, args...)
}

// seen is fact for a caller that holds the lock.
func (w *World) seen(format string, args ...any) {
	if !w.untold {
		w.facts = append(w.facts, fmt.Sprintf(format, args...))
	}
}

// violate notes that a promise was broken. The caller holds no lock.
func (w *World) violate(promise, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violated(promise, format, args...)
}

// violated is violate for a caller that holds the lock.
func (w *World) violated(promise, format string, args ...any) {
	w.broken = append(w.broken, Violation{promise, fmt.Sprintf(format, args...)})
}

// violation returns the first promise that was broken; nil if none was.
func (w *World) violation() *Violation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) == 0 {
		return nil
	}
	first := slices.MinFunc(w.broken, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Promise, b.Promise), cmp.Compare(a.Detail, b.Detail))
	})
	return &first
}

// notify has something told to a server.
func (w *World) notify(n *notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	n.serial = w.serial
	w.notices = append(w.notices, n)
}

// take removes a notice from those that are due.
func (w *World) take(n *notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notices = slices.DeleteFunc(w.notices, func(other *notice) bool { return other == n })
}

// due returns the notices that are due, by name.
func (w *World) due() []*notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notices = slices.DeleteFunc(w.notices, func(n *notice) bool { return n.server != nil && n.server.isDead() })
	all := slices.Clone(w.notices)
	slices.SortFunc(all, func(a, b *notice) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.serial, b.serial))
	})
	return all
}

// astray notes that a request that nobody waits for any more may still arrive.
func (w *World) astray(name string, land func()) {
	if w.settled.Load() {
		return
	}
	w.notify(&notice{name: "astray " + name, deliver: land, lose: func() {}})
}

// watch is [store.Notifier.Watch] for a server.
func (w *World) watch(s *server, key store.ThreadKey) (<-chan struct{}, func()) {
	one := &watched{server: s, key: key, wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches = append(w.watches, one)
	return one.wake, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.watches = slices.DeleteFunc(w.watches, func(other *watched) bool { return other == one })
	}
}

// commit makes a commit, and has everybody told who watches.
func (w *World) commit(ctx context.Context, s *server, c *store.Commit) error {
	err := w.base.Commit(ctx, c)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.landed(s, c) || len(c.Records) == 0 {
		return nil
	}
	for _, one := range w.watches {
		if one.key != c.Key || one.due {
			continue
		}
		one.due = true
		w.serial++
		w.notices = append(w.notices, &notice{
			name:   "wake " + one.server.name + " " + c.Key.Thread,
			server: one.server,
			serial: w.serial,
			deliver: func() {
				w.mu.Lock()
				one.due = false
				w.mu.Unlock()
				select {
				case one.wake <- struct{}{}:
				default:
				}
			},
		})
	}
	return nil
}

// delete deletes a thread.
func (w *World) delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.base.Delete(ctx, key, at)
	if err == nil {
		w.truth.delete(key.Thread, at)
		w.seen("%s is deleted", key.Thread)
	}
	return err
}

// posted has the servers told of a post.
func (w *World) posted(key store.ThreadKey) {
	for _, s := range w.servers {
		if s.isDead() {
			continue
		}
		w.notify(&notice{
			name:    "posted " + key.Thread + " to " + s.name,
			server:  s,
			deliver: func() { s.tell(func(s *server) { s.onPost(key) }) },
			lose: func() { // then it learns that it may have missed some
				w.notify(&notice{
					name:    "posted to " + s.name,
					server:  s,
					deliver: func() { s.tell(func(s *server) { s.onPost(store.ThreadKey{}) }) },
				})
			},
		})
	}
}

// departed has the other servers told of a departure. The first of them is the heir.
func (w *World) departed(d store.Departure) {
	heir := d.Thread != (store.ThreadKey{})
	for _, s := range w.servers {
		if s.isDead() || s.process == d.Process {
			continue
		}
		one := d
		one.Heir, heir = heir, false
		name := "departed " + d.Process
		if d.Thread.Thread != "" {
			name += " from " + d.Thread.Thread
		}
		w.notify(&notice{
			name:    name + " to " + s.name,
			server:  s,
			deliver: func() { s.hear(one) },
			lose:    func() {},
		})
	}
}
