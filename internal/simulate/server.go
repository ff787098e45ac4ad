package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/simulate/fakeredis"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
)

// A server: one process with an engine, which can be killed, suspended, shut down, cut off
// from the store, and started again.

// server is one process.
type server struct {
	world     *World
	index     int
	name      string
	life      int
	variant   variant
	process   string
	engine    *owner.Engine
	keeper    *upkeep.Keeper
	limits    *quota.Limiter
	handler   http.Handler
	link      *link
	ended     atomic.Bool   // dead
	ready     atomic.Bool   // started
	begun     chan struct{} // closed when nothing starts it any more
	suspended atomic.Bool
	mistaken  atomic.Bool // others were told that it is dead, although it lives
	stopping  bool
	clients   context.Context    // of its streams
	hangUp    context.CancelFunc // ends the streams
	skew      time.Duration
	line      *fakeredis.Line   // its way to Redis; nil in memory
	shut      func()            // closes its store
	unused    []<-chan struct{} // closed when agents that were replaced are not needed any more

	mu          sync.Mutex
	ids         map[string]int
	gone        map[string]time.Time // until when the leases lasted of processes of whose death it was told
	onPost      func(store.ThreadKey)
	onDeparture func(store.Departure)
}

// timings of every server.
const (
	lease        = time.Second
	storeTimeout = 4 * time.Second
	pinTimeout   = 5 * time.Second
	grace        = 2 * time.Second
)

// newServer starts a server.
func (w *World) newServer(index, life int, v variant) *server {
	s := &server{
		world:   w,
		index:   index,
		name:    fmt.Sprintf("s%d", index+1),
		life:    life,
		variant: v,
		ids:     map[string]int{},
		gone:    map[string]time.Time{},
		skew:    w.plan.skews[index],
	}
	s.begun = make(chan struct{})
	s.clients, s.hangUp = context.WithCancel(context.Background())
	s.link = &link{world: w, server: s, base: w.base}
	var base store.Store = s.link
	s.shut = func() {}
	if w.redis != nil {
		base = w.redis.open(s)
	}
	s.limits = w.plan.limits(base, s.stamp, s.newID)
	engine, err := owner.New(loop.Config{
		Store:            base,
		Memory:           func() store.Store { return memstore.New() },
		Agents:           w.agents(s),
		Recover:          !v.noRecover,
		OnRevision:       v.onRevision,
		PinTimeout:       pinTimeout,
		Frequency:        loop.PerIteration,
		KeepCheckpoints:  4,
		Lease:            lease,
		MaxRuns:          maxRuns,
		Limits:           s.limits,
		MaxParallelTools: 8,
		ModelTries:       3,
		StoreTimeout:     storeTimeout,
		BufferBytes:      1 << 20,
		TailBytes:        1 << 10,
		KeepAlive:        15 * time.Second,
		ResetNewerStates: true,
		FinishURL:        func(token string) string { return token },
		Authorize:        func(context.Context, holdfast.Principal, access.Action, string) error { return nil },
		Random:           func() float64 { return 0.5 },
		Log:              slog.New(slog.DiscardHandler),
		Now:              s.stamp,
		NewID:            s.newID,
		Waited: func(ctx context.Context, what string) {
			who, _ := ctx.Value(asked{}).(string)
			s.pass(ctx, "waited "+what+" "+who)
		},
		Ended: func(key store.ThreadKey) {
			if w.plan.extras.keepers {
				s.keeper.ArchiveSoon(key)
			}
		},
		Pause: func(key store.ThreadKey) { s.pass(context.Background(), "writer "+key.Thread) },
	})
	if err != nil {
		panic(err) // the agents are ours
	}
	s.engine, s.process = engine, owner.Process(engine)
	s.keeper = newKeeper(w.plan.retention, base, engine, s.limits, s.stamp, s.newID)
	s.handler = s.web()
	w.ended.Go(func() {
		defer close(s.begun)
		for !s.isDead() {
			if s.engine.Start(context.Background()) == nil {
				s.ready.Store(true)
				if w.plan.extras.keepers && !s.isDead() {
					s.keeper.Start()
				}
				return
			}
			time.Sleep(lease / 7)
		}
	})
	return s
}

// stamp is the server's clock, which may be wrong.
func (s *server) stamp() clock.Stamp { return clock.At(time.Now().Add(s.skew)) }

// newID numbers ids. Nonces of fences differ in what cursors have of them.
func (s *server) newID(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[prefix]++
	if prefix == "" {
		return fmt.Sprintf("%s%c%03d", s.name, 'a'+rune(s.life), s.ids[prefix])
	}
	return fmt.Sprintf("%s_%s%c_%03d", prefix, s.name, 'a'+rune(s.life), s.ids[prefix])
}

func (s *server) isDead() bool { return s.ended.Load() }

// serves reports whether clients can reach it.
func (s *server) serves() bool { return s.ready.Load() && !s.isDead() && !s.stopping }

// seen reports whether it was told that a process has died which has not renewed its lease since.
func (s *server) seen(process string) bool {
	held, _ := s.world.base.Lease(context.Background(), process)
	s.mu.Lock()
	defer s.mu.Unlock()
	until, gone := s.gone[process]
	return gone && !held.Until.After(until)
}

// listen sets a listener until stop is called.
func (s *server) listen(set, unset func(*server)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		unset(s)
	}
}

// tell calls a listener, if there is one.
func (s *server) tell(f func(*server)) {
	s.mu.Lock()
	heard := s.onPost != nil && s.onDeparture != nil
	s.mu.Unlock()
	if heard && !s.isDead() {
		f(s)
	}
}

// hear tells it of a departure.
func (s *server) hear(d store.Departure) {
	if d.Thread == (store.ThreadKey{}) && !d.Retired {
		s.mu.Lock()
		s.gone[d.Process] = afterAll
		s.mu.Unlock()
	}
	s.tell(func(s *server) { s.onDeparture(d) })
}

// inTouch mends its way to the store.
func (s *server) inTouch() {
	s.link.cut.Store(false)
	s.link.deaf.Store(false)
}

// back has it go on, in touch with the store.
func (s *server) back() {
	s.suspended.Store(false)
	s.inTouch()
}

// die makes it a dead process: nothing of it reaches the store or a tool any more, and its
// connections break. The rest of it ends by itself.
func (s *server) die(noticed bool) {
	s.ended.Store(true)
	s.back()
	s.hangUp()
	synctest.Wait() // streams have left the gate with their contexts; the others are let go
	for _, one := range s.world.gate.sorted() {
		if one.server == s {
			s.world.gate.let(one, dead)
		}
	}
	switch {
	case s.line == nil && noticed:
		s.world.departed(store.Departure{Process: s.process})
	case s.line != nil && noticed:
		s.line.Refuse(true)
		s.line.Break()
	case s.line != nil:
		s.line.Freeze()
	}
	if s.stopping {
		return // it is shutting down already
	}
	s.world.ended.Go(func() {
		<-s.begun
		s.keeper.Stop()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.engine.Shutdown(ctx)
		_ = s.engine.Shutdown(context.Background()) // what was left behind still tries to store something
		s.shut()
	})
}

// stop shuts it down, as SIGTERM does.
func (s *server) stop() {
	s.stopping = true
	s.world.ended.Go(func() {
		s.keeper.Stop()
		s.pass(context.Background(), "shuts down") // what its keeper has waited for may go on, too
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = s.engine.Shutdown(ctx)
		s.pass(context.Background(), "has shut down") // what it says until then is heard
		if !s.ended.Swap(true) {
			s.world.fact("%s has shut down", s.name)
		}
		s.hangUp()
		_ = s.engine.Shutdown(context.Background())
		s.shut()
	})
}

// at is a seam of a model or a tool of the server's.
func (s *server) at(ctx context.Context, name string, options ...string) string {
	if s.isDead() {
		return dead
	}
	verdict, let := s.world.gate.wait(ctx, &waiter{name: s.name + " " + name, server: s, options: options})
	if !let {
		s.pass(context.Background(), "left "+name) // others' contexts may have ended at the same moment
		return dead
	}
	return verdict
}

// pass is a seam that only orders those who come to it at the same moment: they go on, one after
// the other, when nothing else moves.
func (s *server) pass(ctx context.Context, name string) { s.turn(ctx, name, "") }

// turn is pass for those of one name, whom the detail orders.
func (s *server) turn(ctx context.Context, name, detail string) {
	if !s.isDead() {
		s.world.gate.wait(ctx, &waiter{name: s.name + " " + name, detail: detail, server: s, auto: true})
	}
}
