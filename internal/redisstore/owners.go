package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The processes that may have left threads behind: those whose leases have ended, and those that are
// seen to be gone.

// firstLeases is how many leases Owners reads at first: those that have ended, of which there are
// few, and the one that ends next.
const firstLeases = 16

// owners finds them.
type owners struct {
	client redis.UniversalClient
	keys   keys
	clock  *clock.Remote
	peers  *peers
}

// processAge is how long after the end of its lease a process is forgotten, if it has
// left no thread behind. One that has retired has a lease that ended in 1970, so it is
// forgotten as soon as it has no thread left: only these would ask for it.
const processAge = time.Hour

// list returns what [store.Index] says.
func (s *owners) list(ctx context.Context) ([]store.Owner, error) {
	leases, err := s.client.ZRangeWithScores(ctx, s.keys.leases(), 0, firstLeases-1).Result()
	now := s.clock.Stamp()
	if n := len(leases); err == nil && n == firstLeases && int64(leases[n-1].Score) <= now.Time().UnixMicro() {
		leases, err = s.client.ZRangeWithScores(ctx, s.keys.leases(), 0, -1).Result()
	}
	if err != nil {
		return nil, failed("list processes", err)
	}
	var owners []store.Owner
	for _, z := range leases {
		o := s.ownerOf(member(z), z.Score, now)
		owners = append(owners, o)
		if o.Lease.Left > 0 {
			break
		}
	}
	if owners, err = s.withoutForgotten(ctx, owners); err != nil {
		return nil, err
	}
	gone := s.peers.goneNow()
	if len(gone) == 0 {
		return owners, nil
	}
	scores, err := s.client.ZMScore(ctx, s.keys.leases(), gone...).Result()
	if err != nil {
		return nil, failed("list processes", err)
	}
	for i, process := range gone {
		known := func(o store.Owner) bool { return o.Process == process }
		if o := s.ownerOf(process, scores[i], now); !o.Lease.Alive() && !slices.ContainsFunc(owners, known) {
			owners = append(owners, o)
		}
	}
	return owners, nil
}

// ownerOf returns a process whose lease has the score.
func (s *owners) ownerOf(process string, score float64, now clock.Stamp) store.Owner {
	if score == 0 {
		return store.Owner{Process: process, Lease: store.Lease{Gone: true}}
	}
	until := time.UnixMicro(int64(score))
	return store.Owner{Process: process, Lease: store.Lease{
		Until: until,
		Left:  -now.Age(until),
		Gone:  s.peers.gone(process, until),
	}}
}

// withoutForgotten leaves out those whose leases ended long ago, or that have retired, and that have
// left no thread behind. They are forgotten.
func (s *owners) withoutForgotten(ctx context.Context, owners []store.Owner) ([]store.Owner, error) {
	old := func(o store.Owner) bool { return o.Lease.Left < -processAge || o.Lease.Until.IsZero() }
	if !slices.ContainsFunc(owners, old) {
		return owners, nil
	}
	pipe := s.client.Pipeline()
	claims := map[string]*redis.IntCmd{}
	for _, o := range owners {
		if old(o) {
			claims[o.Process] = pipe.ZCard(ctx, s.keys.owned(o.Process))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failed("list processes", err)
	}
	forget := s.client.Pipeline()
	owners = slices.DeleteFunc(owners, func(o store.Owner) bool {
		n := claims[o.Process]
		none := n != nil && n.Val() == 0
		if none {
			forget.ZRem(ctx, s.keys.leases(), o.Process)
		}
		return none
	})
	if forget.Len() > 0 {
		// Anything that this fails to remove is removed the next time.
		_, _ = forget.Exec(ctx)
	}
	return owners, nil
}
