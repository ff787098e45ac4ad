package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/simulate/fakeredis"
	"github.com/holdfast-agents/holdfast/store"
)

// Schedules through the Redis layer: each server has the real client and store, and the seams are
// at its connections.

// remote is the Redis of a world.
type remote struct {
	world *World
	redis *fakeredis.Redis
	seen  *redisstore.Store // sees what is there, on connections on which nothing happens

	mu      sync.Mutex
	trials  map[string]trial // the commits and deletions that may still land, by id
	asking  int              // how many requests to the ledger are under way
	unclear bool             // whether one was carried out is not known
}

// trial is a commit on its way, or a deletion, which has no commit.
type trial struct {
	server *server
	key    store.ThreadKey
	at     store.Position
	commit *store.Commit
}

func newRemote(w *World) *remote {
	r := &remote{world: w, redis: fakeredis.New(), trials: map[string]trial{}}
	seen, err := redisstore.New(context.Background(), r.redis.Client(nil), redisstore.Options{})
	if err != nil {
		panic(err) // nothing happens to its connections
	}
	r.seen = seen
	synctest.Wait() // it says that it has come before anybody else listens
	return r
}

// close ends it, after all servers.
func (r *remote) close() {
	for _, s := range r.world.all {
		s.line.Close()
	}
	time.Sleep(2 * time.Second) // until clients notice that no longer try to connect
	_ = r.seen.Close()
	r.redis.Close()
}

// open gives a server its store.
func (r *remote) open(s *server) store.Store {
	seams := &seams{server: s, remote: r}
	seams.opening.Store(true)
	s.line = r.redis.NewLine(seams)
	opened, err := redisstore.New(context.Background(), r.redis.Client(s.line), redisstore.Options{
		Now:    func() time.Time { return s.stamp().Time() },
		Waited: func(ctx context.Context) { seams.Turn(ctx, "who watches", "") },
	})
	if err != nil {
		panic(err) // nothing has happened to its connections yet
	}
	synctest.Wait()
	seams.opening.Store(false)
	s.shut = func() { _ = opened.Close() }
	r.world.all = append(r.world.all, s)
	return &tracked{
		Store:        opened,
		FormatKeeper: opened,
		Roster:       opened,
		server:       s,
		remote:       r,
	}
}

// tracked notes what a server asks of its store, so that it can be said what has landed.
type tracked struct {
	store.Store
	store.FormatKeeper
	store.Roster
	server *server
	remote *remote
}

// Commit implements [store.Committer].
func (t *tracked) Commit(ctx context.Context, c *store.Commit) error {
	t.server.pass(ctx, "commits "+c.Key.Thread)
	t.remote.tries(c.ID, trial{server: t.server, key: c.Key, at: c.Expect, commit: copyOf(c)})
	return t.Store.Commit(ctx, c)
}

// Delete implements [store.Committer].
func (t *tracked) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	t.remote.tries(fmt.Sprintf("deletion of %s at %+v", key.Thread, at), trial{server: t.server, key: key, at: at})
	return t.Store.Delete(ctx, key, at)
}

// Reserve implements [store.Ledger].
func (t *tracked) Reserve(ctx context.Context, r *store.Reservation) error {
	return t.remote.counts(func() error { return t.server.world.reserve(ctx, t.Store, r) })
}

// Settle implements [store.Ledger].
func (t *tracked) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	return t.remote.counts(func() error { return t.server.world.settleLedger(ctx, t.Store, tenant, id, actual) })
}

// counts makes a request to the ledger.
func (r *remote) counts(ask func() error) error {
	r.mu.Lock()
	r.asking++
	r.mu.Unlock()
	err := ask()
	defer r.world.changes.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking--
	var limit *store.LimitError
	r.unclear = r.unclear || err != nil && !errors.As(err, &limit)
	return err
}

// blur notes that it is not known any more what the ledger should say.
func (r *remote) blur() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unclear = true
}

// counted reports whether it is known what the ledger should say.
func (r *remote) counted() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asking == 0 && !r.unclear
}

// tries notes what may land from now on.
func (r *remote) tries(id string, t trial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trials[id] = t
}

// look takes in what has landed since the last look. Nobody knows of it yet.
func (r *remote) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.trials)) {
		t := r.trials[id]
		head, err := r.seen.Head(context.Background(), t.key)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			continue
		case err != nil && t.commit == nil:
			r.world.mu.Lock()
			r.world.truth.delete(t.key.Thread, t.at)
			r.world.mu.Unlock()
		case err == nil && t.commit != nil && head.ETag == id:
			r.world.mu.Lock()
			r.world.landed(t.server, t.commit)
			r.world.mu.Unlock()
		case t.at.ETag == "", err == nil && head.Position() == t.at:
			continue // it may still land: a thread that is deleted can begin again
		}
		delete(r.trials, id)
	}
}

// seams are those of a server's connections.
type seams struct {
	server  *server
	remote  *remote
	opening atomic.Bool // the world waits until the server has its store
}

// away reports whether nothing of the server arrives.
func (m *seams) away() bool { return m.server.suspended.Load() || m.server.link.cut.Load() }

// Turn implements [fakeredis.Seams].
func (m *seams) Turn(ctx context.Context, name, detail string) {
	if !m.opening.Load() {
		who, _ := ctx.Value(asked{}).(string)
		m.server.turn(ctx, "asks "+name+" for "+who, detail)
	}
}

// rest waits until the client waits for an answer. A connection that breaks before that has another error.
func (m *seams) rest(ctx context.Context, name string) {
	m.server.world.gate.wait(ctx, &waiter{name: m.server.name + " dies " + name, server: m.server, auto: true})
}

// Reachable implements [fakeredis.Seams].
func (m *seams) Reachable() bool { return m.opening.Load() || !m.away() && !m.server.isDead() }

// Request implements [fakeredis.Seams].
func (m *seams) Request(ctx context.Context, r fakeredis.Request, land func()) fakeredis.Verdict {
	s := m.server
	switch {
	case s.isDead():
		m.rest(ctx, r.Name)
		return fakeredis.Lose
	case m.opening.Load() && !r.Writes, r.Minor && !m.away() && !s.link.deaf.Load():
		return fakeredis.Carry
	}
	one := &waiter{
		name:   s.name + " " + r.Name,
		detail: r.Detail,
		server: s,
		linked: true,
		auto:   r.Minor,
	}
	if !r.Minor {
		one.options = []string{lost, mute, late}
	}
	verdict, let := s.world.gate.wait(ctx, one)
	if r.Writes && (!let || verdict == dead) {
		s.world.astray(one.name, func() {
			if r.Reserves { // it may have been repeated and settled, and then its amount stays
				m.remote.blur()
			}
			land()
		})
	}
	switch {
	case !let || verdict == dead || verdict == lost:
		return fakeredis.Lose
	case verdict == mute:
		return fakeredis.Mute
	case verdict == late:
		return fakeredis.Late
	}
	return fakeredis.Carry
}

// Carried implements [fakeredis.Seams].
func (m *seams) Carried(r fakeredis.Request) {
	if r.Writes {
		m.remote.look()
		m.server.world.changes.Add(1)
	}
}

// Reply implements [fakeredis.Seams].
func (m *seams) Reply(ctx context.Context, r fakeredis.Request) bool {
	verdict, let := m.server.world.gate.wait(ctx, &waiter{
		name:    m.server.name + " " + r.Name + " reply",
		detail:  r.Detail,
		server:  m.server,
		options: []string{lost},
		linked:  true,
	})
	return let && verdict == goOn
}

// Told implements [fakeredis.Seams].
func (m *seams) Told(ctx context.Context, what string) bool {
	if m.server.isDead() {
		m.rest(ctx, "told")
		return false
	}
	verdict, let := m.server.world.gate.wait(ctx, &waiter{
		name: m.server.name + " told " + what, server: m.server, options: []string{"lose"}, linked: true,
	})
	return let && verdict == goOn
}
