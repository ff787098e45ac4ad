package main

// Placed: what a word costs while its watcher is at the server that runs the thread, as behind a
// balancer that sends all requests of a thread to one server, and while it is at the other of two
// servers. Each client leaves the stream that it has begun its run with, and comes back.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The load: runs at a time, each of which says so many words, one after the other.
const (
	placedRuns  = 20
	placedWords = 200
	placedEvery = 20 * time.Millisecond
	placedTurns = 3
)

// placed is what a word costs: commands in Redis, and µs of a processor.
type placed struct{ commands, redis, servers float64 }

// measurePlaced prints both.
func measurePlaced() error {
	redis, err := startRedis("everysec")
	if err != nil {
		return err
	}
	defer redis.stop()
	for at, name := range []string{"at the server that runs the thread", "at the other server"} {
		var commands, ofRedis, servers []float64
		for range placedTurns {
			p, err := measurePlacedAt(redis, at)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			commands, ofRedis, servers = append(commands, p.commands), append(ofRedis, p.redis),
				append(servers, p.servers)
		}
		fmt.Printf("   a word whose watcher is %-36s %5.1f commands in Redis, %6.1f µs of Redis, "+
			"%6.1f µs of both servers\n", name, median(commands), median(ofRedis), median(servers))
	}
	return nil
}

// measurePlacedAt has runs at the first of two servers, and their watchers at one of them.
func measurePlacedAt(redis *redisServer, at int) (p placed, err error) {
	var servers [2]*watched
	for i := range servers {
		if servers[i], err = launchWatched(redis.url()); err != nil {
			return p, err
		}
		defer servers[i].stop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowdOfPlaced{opened: make(chan error, 2*placedRuns), ended: make(chan error, placedRuns)}
	defer c.all.Wait()
	defer cancel()
	if err := c.come(ctx, servers[0], servers[at]); err != nil {
		return p, err
	}
	before, err := spent(redis, servers[:])
	if err != nil {
		return p, err
	}
	if err := control(servers[0]); err != nil { // go on
		return p, err
	}
	if err := c.finish(); err != nil {
		return p, err
	}
	after, err := spent(redis, servers[:])
	const words = placedRuns * placedWords
	if n := c.seen.Load(); n < words*9/10 {
		return p, fmt.Errorf("%d of %d words were seen", n, words)
	}
	return placed{
		(after.commands - before.commands) / words,
		(after.redis - before.redis) / words,
		(after.servers - before.servers) / words,
	}, err
}

// crowdOfPlaced are the clients, each of which watches the run that it has begun.
type crowdOfPlaced struct {
	seen          atomic.Int64 // words, by all of them
	all           sync.WaitGroup
	opened, ended chan error
}

// come begins the runs at one server and watches them at another, and returns when all streams have begun.
func (c *crowdOfPlaced) come(ctx context.Context, owner, at *watched) error {
	count := func(line []byte) { c.seen.Add(int64(bytes.Count(line, []byte("word ")))) }
	for i := range placedRuns {
		thread := fmt.Sprintf("placed-%d-%d", i, time.Now().UnixNano())
		if err := beginAndLeave(ctx, owner, thread); err != nil {
			return err
		}
		c.all.Go(func() { c.ended <- view(ctx, at.url+"/threads/"+thread+"/stream", count, c.opened) })
	}
	for range placedRuns {
		select {
		case err := <-c.opened:
			if err != nil {
				return err
			}
		case err := <-c.ended:
			return errors.Join(errors.New("a stream has ended early"), err)
		}
	}
	return nil
}

// finish waits until all streams have ended.
func (c *crowdOfPlaced) finish() error {
	for range placedRuns {
		if err := <-c.ended; err != nil {
			return err
		}
	}
	return nil
}

// beginAndLeave begins a run, and leaves once its stream has begun.
func beginAndLeave(ctx context.Context, w *watched, thread string) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	begun := false
	err := newClient(w.url).stream(ctx, thread, script{tokens: placedWords, every: placedEvery},
		func(line []byte) bool {
			begun = begun || bytes.Contains(line, []byte("ready "))
			return !begun
		})
	if begun {
		return nil
	}
	return errors.Join(errors.New("the run has not begun"), err)
}

// spent is what has been used so far.
func spent(redis *redisServer, servers []*watched) (p placed, err error) {
	used, err := redis.usage()
	if err != nil {
		return p, err
	}
	p.commands = used.commands
	cpu, err := redis.cpu()
	if err != nil {
		return p, err
	}
	p.redis = float64(cpu.Microseconds())
	for _, s := range servers {
		cpu, err := s.cpu()
		if err != nil {
			return p, err
		}
		p.servers += float64(cpu.Microseconds())
	}
	return p, nil
}
