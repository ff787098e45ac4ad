package redisstore

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// Announce implements [store.Presence].
func (s *Store) Announce(ctx context.Context, process string, ttl time.Duration) error {
	asked, began := s.local(), time.Now()
	args := []any{process, ttl.Microseconds(), s.ofProcess(process), s.peers.link.needs().Microseconds()}
	now, err := s.replicas.write(ctx, s.scripts.announce, []string{s.keys.leases(), s.keys.about()}, args...)
	if err != nil {
		return failed("announce the process", s.explain(ctx, err))
	}
	s.peers.link.tripped(time.Since(began))
	s.read(now, asked)
	if !s.peers.announced(process) {
		s.peers.followSoon(ttl / 3) // which is when the lease is renewed again
	}
	return nil
}

// Retire implements [store.Presence].
func (s *Store) Retire(ctx context.Context, process string) error {
	if _, err := s.replicas.write(
		ctx,
		s.scripts.retire,
		[]string{s.keys.leases()},
		process,
		s.keys.peersChannel(),
		newsGone+process,
	); err != nil {
		return failed("retire the process", err)
	}
	return nil
}

// HandOver implements [store.Presence]. The heir is one of the processes with a lease; each
// time it is the next of them.
func (s *Store) HandOver(ctx context.Context, process string, key store.ThreadKey) error {
	args := []any{
		process,
		s.handed.Add(1),
		s.keys.peersChannel(),
		newsLeft + tag(key) + " " + url.QueryEscape(process) + " ",
	}
	if _, err := s.runScript(ctx, s.scripts.handOver, []string{s.keys.leases()}, args...); err != nil {
		return failed("hand over thread "+key.String(), err)
	}
	return nil
}

// OnDeparture implements [store.Presence].
func (s *Store) OnDeparture(process string, f func(store.Departure)) func() {
	defer s.peers.change()
	return s.watchers.OnDeparture(process, f)
}

// What is published on the channel of the peers begins with one of these.
const (
	newsCame   = "came"    // by a process that has begun to listen
	newsClaims = "claims " // and the process, which says that it claims threads
	newsGone   = "gone "   // and the process, which has retired
	newsLeft   = "left "   // and the thread's tag, the process that has left it, and the heir
)

// heard passes on what was published on the channel of the peers. What cannot be read
// is of a newer version, and only makes something happen later.
func (p *peers) heard(text string) {
	if text == newsCame {
		p.came()
		return
	}
	if process, ok := strings.CutPrefix(text, newsClaims); ok {
		p.claimed(process)
		return
	}
	if process, ok := strings.CutPrefix(text, newsGone); ok {
		p.s.watchers.Departed(store.Departure{Process: process, Retired: true}, "")
		return
	}
	left, ok := strings.CutPrefix(text, newsLeft)
	parts := strings.SplitN(left, " ", 3)
	if !ok || len(parts) != 3 {
		return
	}
	key, ok := parseTag(parts[0])
	process, err := url.QueryUnescape(parts[1])
	if ok && err == nil {
		p.s.watchers.Departed(store.Departure{Process: process, Thread: key}, cmp.Or(parts[2], noHeir))
	}
}

// noHeir is the heir of a thread that nobody could be named for. No process is called so.
const noHeir = "\x00"

// Lease implements [store.Presence]. A process that has retired has the score 0.
func (s *Store) Lease(ctx context.Context, process string) (store.Lease, error) {
	times, err := s.scripts.lease.Run(ctx, s.client, []string{s.keys.leases()}, process).Int64Slice()
	if err != nil {
		return store.Lease{}, failed("look for a process", err)
	}
	switch {
	case len(times) != 2:
		return store.Lease{}, nil
	case times[0] == 0:
		return store.Lease{Gone: true}, nil
	}
	until, now := time.UnixMicro(times[0]), time.UnixMicro(times[1])
	return store.Lease{Until: until, Left: until.Sub(now), Gone: s.peers.gone(process, until)}, nil
}
