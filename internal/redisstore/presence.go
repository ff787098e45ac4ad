package redisstore

import (
	"context"
	"net/url"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// Announce implements [store.Presence].
func (s *Store) Announce(ctx context.Context, process string, ttl time.Duration) error {
	asked, began := s.clock.Local(), time.Now()
	whole := s.peers.renews(ttl)
	args := []any{process, ttl.Microseconds(), "", 0, 0}
	if whole {
		args = append(args[:2], s.ofProcess(process), s.peers.link.needs().Microseconds(), s.watchers.inCluster())
	}
	now, err := s.replicas.write(ctx, s.scripts.announce, []string{s.keys.leases(), s.keys.about()}, args...)
	if err != nil {
		return failed("announce the process", s.explain(ctx, err))
	}
	s.peers.link.tripped(time.Since(began))
	s.clock.Read(now, asked)
	switch {
	case s.peers.announced(process):
		s.watchers.announced(process)
	case whole:
		s.peers.followSoon(ttl / 3) // which is when the lease is renewed again
	}
	return nil
}

// Retire implements [store.Presence].
func (s *Store) Retire(ctx context.Context, process string) error {
	if _, err := s.replicas.write(ctx, s.scripts.retire, []string{s.keys.leases()}, process, s.keys.peersChannel(),
		newsGone+process); err != nil {
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
	if _, err := s.scripts.run(ctx, s.scripts.handOver, []string{s.keys.leases()}, args...); err != nil {
		return failed("hand over thread "+key.String(), err)
	}
	return nil
}

// OnDeparture implements [store.Presence].
func (s *Store) OnDeparture(process string, f func(store.Departure)) func() {
	defer s.peers.change()
	return s.watchers.OnDeparture(process, f)
}

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

// Census implements [store.Census].
func (s *Store) Census() (living int, absent func(process string) bool) { return s.peers.census() }
