package redisstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A process whose connections have all broken needs a few round trips until it is there again: to
// notice, to connect, to greet, to subscribe. On a slow link that takes longer than the others
// would wait, so it tells them how long, and they take nothing of it before. Both are measured by
// the process's own clock, and the others wait by theirs.

const (
	// fewestTrips and mostTrips bound how many round trips a connection counts for: one that was
	// slow because the machine was busy does not make a death go unnoticed for longer.
	fewestTrips, mostTrips = 3, 7
	// linkSamples is how many of the last measurements count.
	linkSamples = 5
	// pingEvery keeps the connections from looking idle to whatever lies between.
	pingEvery = 10 * time.Second
)

// link is what a process has measured of its link to Redis.
type link struct {
	mu       sync.Mutex
	trips    []time.Duration // round trips of single commands
	connects []time.Duration // from the beginning of a connection to its subscription
}

// tripped notes a round trip.
func (l *link) tripped(d time.Duration) { l.note(&l.trips, d) }

// connected notes how long a connection took.
func (l *link) connected(d time.Duration) { l.note(&l.connects, d) }

func (l *link) note(samples *[]time.Duration, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*samples = append(*samples, d)
	if len(*samples) > linkSamples {
		*samples = (*samples)[1:]
	}
}

// needs returns how long the process needs to come back; 0 if it does not know.
func (l *link) needs() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.trips) == 0 {
		return 0
	}
	trip := slices.Min(l.trips) // others may have waited for a processor, or for a new connection
	// It notices one way later, and one way before it knows that it is there again, the others do.
	back := fewestTrips * trip
	if len(l.connects) > 0 {
		back = max(back, slices.Min(l.connects))
	}
	return min(back, mostTrips*trip) + trip/2
}

// receive returns what ended the subscription, and whether there was one. It calls connected when
// that begins.
func receive(ctx context.Context, shown *redis.PubSub, connected func()) (worked bool, err error) {
	for {
		m, err := shown.ReceiveTimeout(ctx, pingEvery)
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() {
			err = shown.Ping(ctx)
		}
		if s, ok := m.(*redis.Subscription); ok {
			if !worked {
				connected()
			}
			worked = true
			if s.Kind == "sunsubscribe" {
				err = errMoved
			}
		}
		if _, moved := redis.IsMovedError(err); moved {
			err = errMoved
		}
		if err != nil {
			return worked, err
		}
	}
}

// errMoved means that a node of the cluster has given the channel to another one.
var errMoved = errors.New("the channel belongs to another node")
